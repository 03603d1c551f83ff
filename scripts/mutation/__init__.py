"""Mutation testing of the core: small faults are put into it one by one, and the tests must notice each.

python -m scripts.mutation --sample 300 --seed 0
"""
