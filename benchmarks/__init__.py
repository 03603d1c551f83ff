"""The evaluation harness: manifest x agent -> episodes.jsonl -> statistics -> report.html.

Installed as ``seed_benchmarks`` (console script ``seed-bench``); ``python -m benchmarks`` runs the same in a checkout.
It plays episodes through ``seed_envs.rollout`` and judges them; it trains nothing and holds no environment.
"""
