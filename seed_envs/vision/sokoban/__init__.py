"""Sokoban: push every box onto a target, in rooms with exactly known solutions.

The package separates the game (:mod:`rules`), where levels come from (:mod:`sources` and what it uses), what is known
about them (:mod:`solver`, :mod:`astar`) and how they are shown (:mod:`text`, :mod:`render`). The Gymnasium environment
in :mod:`env` only joins these parts.
"""
