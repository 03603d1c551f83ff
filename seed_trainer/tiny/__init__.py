"""The embedded policy: a tiny causal language model that plays compact household tasks on any CPU.

It stands in for an instruction-tuned language model where none can be downloaded: word-level tokenizer, a few hundred
thousand weights, made from scratch by ``seed-train make-tiny``. Nothing here is used with a real language model.
"""
