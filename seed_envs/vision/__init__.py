"""Vision environments: Sokoban and the card games EZPoints and Points24.

Everything that is seen is drawn here with Pillow primitives; no picture, font or sprite of another project is shipped.
The environment ids are registered by :mod:`seed_envs.registration`; importing this package loads nothing heavy.
"""
