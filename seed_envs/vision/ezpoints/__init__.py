"""EZPoints and Points24: build a formula with a given value from the numbers on playing cards, one token per step.

One game engine (:mod:`rules`) with an exact parser (:mod:`formula`) serves both; they differ in the number of cards,
the operators and the target. Cards and board are drawn by :mod:`cards` and :mod:`render`.
"""
