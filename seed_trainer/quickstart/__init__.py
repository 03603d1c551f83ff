"""``seed-train quickstart``: both stages of SEED, with GRPO beside it, on the embedded problem in minutes on a CPU.

A demonstration of the whole machine with real measurements. Two seeds are no evidence for or against a method.
"""
