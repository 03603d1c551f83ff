"""ALFWorld, the household text game: own engine, official and generated games, experts, prompts.

Start with ``env`` (the Gymnasium environment), ``engine`` (the rules) and ``tasks`` (which games there are).  Importing
this package imports nothing else.
"""
