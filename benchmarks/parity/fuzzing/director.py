"""A player that heads for the odd corners of a game."""

from __future__ import annotations

import random

from seed_envs.alfworld.engine import Engine

JUNK = (
    "",
    "look around",
    "LOOK",
    "take",
    "go to",
    "go to nowhere 1",
    "take  mug 1 from desk 1",
    "put mug 1 in/on desk 1",
)


class Director:
    """Chooses commands that visit the odd corners of a game.

    Args:
        seed: of its private random stream.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._last = ""

    def choose(self, engine: Engine) -> str:
        """Pick a command: mostly admissible, rare verbs as often as frequent ones, sometimes refused or nonsense."""
        rng, admissible = self.rng, engine.admissible()
        if self._last.startswith(("move", "put", "take")) and rng.random() < 0.35:
            self._last = "look"
            return "look"
        if rng.random() < 0.08:
            return self._refused(engine)
        followed = engine.game.walkthrough
        if followed and rng.random() < 0.25:
            wanted = [command for command in followed if command in admissible and command != self._last]
            if wanted:
                return self._keep(rng.choice(wanted))
        verbs = sorted({command.split(" ")[0] for command in admissible} - {"help", "inventory"})
        verb = rng.choice(
            verbs if rng.random() < 0.97 else [word for word in ("help", "inventory") if word in admissible]
        )
        return self._keep(rng.choice([command for command in admissible if command.split(" ")[0] == verb]))

    def _keep(self, command: str) -> str:
        self._last = command
        return command

    def _refused(self, engine: Engine) -> str:
        rng, game = self.rng, engine.game
        thing, place = rng.choice(game.objects), rng.choice(game.receptacles)
        made_up = [
            f"take {thing} from {place}",
            f"move {thing} to {place}",
            f"use {thing}",
            f"open {place}",
            f"close {place}",
        ]
        made_up += [f"examine {thing}", f"heat {thing} with {place}", f"clean {thing} with {place}", f"go to {place}"]
        return rng.choice(
            [*made_up, *JUNK, rng.choice(engine.admissible()).upper(), f"  {rng.choice(engine.admissible())} "]
        )
