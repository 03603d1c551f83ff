"""One game being played: the engine, what was said, and the shortest way to its end.

It turns an action into an outcome.  Which game is played, and what an
episode's state means for Gymnasium, is the business of ``env``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from seed_envs.alfworld import texts
from seed_envs.alfworld.commands import normalise
from seed_envs.alfworld.engine import Engine, condition_rate
from seed_envs.alfworld.explain import explain
from seed_envs.alfworld.game import State
from seed_envs.alfworld.journal import Journal
from seed_envs.alfworld.oracle import Planner, secrets
from seed_envs.base import MAX_ACTION_LENGTH
from seed_envs.outcomes import Outcome
from seed_envs.trajectory import StopReason


class Snapshot(NamedTuple):
    """A saved episode: task, state of the game, whether the episode is still running, and what was said so far."""

    task_id: str
    state: State
    running: bool
    transcript: tuple[tuple[str, str], ...]


class Episode:
    """A game being played, from its start as often as one likes.

    Args:
        engine: plays the game; its rules are those of the episode.

    Attributes:
        journal: what was said.
        command: the last command as it was executed, "" where none was.
        allowed: commands that the episode may take; 0 for no limit.
    """

    __slots__ = ("_planner", "allowed", "command", "engine", "journal")

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.journal = Journal()
        self.command = ""
        self.allowed = 0
        self._planner: Planner | None = None

    @property
    def planner(self) -> Planner:
        """Finds shortest plans; made at the first use, which few episodes have."""
        if self._planner is None:
            self._planner = Planner(self.engine.game, self.engine.rules)
        return self._planner

    def begin(self, opening: texts.Opening, budget: float) -> str:
        """Start over.

        Args:
            opening: how much of the opening text is shown.
            budget: commands that may be sent, as a multiple of the shortest plan's length; 0 for no limit.

        Returns:
            The first observation.
        """
        if budget:
            self.allowed = math.ceil(budget * len(self.planner.plan(self.engine.game.start)))
        self.command = ""
        observation = texts.opening_part(self.engine.reset(), opening)
        self.journal = Journal([("", observation)])
        return observation

    def act(self, action: str, *, tolerant: bool, verbose: bool) -> Outcome:
        """Send one action.

        Args:
            action: what the agent wrote.
            tolerant: whether near misses of a command are read as it.
            verbose: whether the answer to a refused command says why.
        """
        outcome = self._answer(action, tolerant, verbose)
        # The opening is a turn too, so that this many commands were sent.
        if outcome.terminated or not self.allowed or len(self.journal.turns) <= self.allowed:
            return outcome
        return outcome._replace(truncated=True, stop_reason=StopReason.MAX_STEPS)

    def _answer(self, action: str, tolerant: bool, verbose: bool) -> Outcome:
        engine = self.engine
        if len(action) > MAX_ACTION_LENGTH:
            reason = f"The action has {len(action):,} characters; at most {MAX_ACTION_LENGTH:,} are read."
            return self._refuse("", reason, verbose)
        command = action.strip()
        if tolerant:
            command = normalise(command, engine.admissible())
        self.command = command
        text, valid = engine.act(command)
        if not valid:
            return self._refuse(command, explain(engine.game, engine.state, engine.rules, command), verbose)
        self.journal.add(command, text)
        won = engine.won
        return Outcome(text, 1.0 if won else 0.0, won)

    def _refuse(self, command: str, reason: str, verbose: bool) -> Outcome:
        text = reason if verbose else texts.NOTHING_HAPPENS
        self.journal.add(command, text)
        return Outcome(text, action_valid=False, invalid_reason=reason)

    def extras(self, privileged: bool) -> dict[str, Any]:
        """What goes under ``info["alfworld"]``.

        Args:
            privileged: whether plan and contents are told.
        """
        engine = self.engine
        rate, flags = condition_rate(engine.game, engine.state)
        held = engine.state.held
        return {
            "goal_condition_rate": rate,
            "subgoals": flags,
            "inventory": engine.game.objects[held] if held >= 0 else "",
            "command": self.command,
            "budget": self.allowed or None,
            "privileged": secrets(self.planner, engine.state) if privileged else None,
        }

    def plan(self) -> list[str]:
        """A shortest plan from here.

        Raises:
            OracleUnavailable: when the game can no longer be won.
        """
        return self.planner.plan(self.engine.state)

    def advise(self) -> str:
        """The explorer's next command."""
        return self.journal.advise(self.engine.game.sentence, self.engine.admissible())

    def snapshot(self, task_id: str, running: bool) -> Snapshot:
        """The episode as an immutable value."""
        return Snapshot(task_id, self.engine.state, running, tuple(self.journal.turns))

    def resume(self, saved: Snapshot) -> None:
        """Continue from a saved episode of the same game."""
        self.engine.resume(saved.state, [command for command, _ in saved.transcript[1:]])
        self.journal = Journal(saved.transcript)
        self.command = ""

    def copy(self) -> Episode:
        """An independent copy that shares game and planner; engines with a process of their own cannot be copied."""
        twin = Episode(Engine(self.engine.game, self.engine.rules))
        twin.engine.state, twin.engine.won = self.engine.state, self.engine.won
        twin.journal = Journal(self.journal.turns)
        twin.command, twin.allowed, twin._planner = self.command, self.allowed, self._planner
        return twin
