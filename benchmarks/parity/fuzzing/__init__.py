"""Mutated ALFWorld games on both engines: what is changed, how it is played, how a difference is made small."""
