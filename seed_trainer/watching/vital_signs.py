"""Notices a run that learns nothing, and says so in one sentence with a remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tqdm.auto import tqdm
from transformers import TrainerCallback

from seed_trainer.settings.config import SEEDConfig

Metrics = Mapping[str, float | None]


@dataclass(frozen=True)
class Sign:
    """One way of being dead.

    Attributes:
        holds: Whether a log line shows it.
        rounds: For how many rounds in a row it must hold.
        sentence: What is said; ``{rounds}`` is filled in.
        own_skills: Asked only where episodes are taught by the skills written about them.
    """

    holds: Callable[[Metrics], bool]
    rounds: int
    sentence: str
    own_skills: bool = False


def _is(name: str, value: float) -> Callable[[Metrics], bool]:
    return lambda metrics: metrics.get(name) == value


SIGNS: tuple[Sign, ...] = (
    Sign(
        lambda metrics: bool(metrics.get("env/faults")) and metrics.get("env/success") is None,
        2,
        "a fault of the environment ended every episode of {rounds} rounds, so nothing is learned: play one with "
        "`seed-play` under the same arguments to see the error",
    ),
    Sign(
        _is("env/invalid_actions", 1.0),
        2,
        "no action was valid in {rounds} rounds, so nothing shows what pays: look at prompts and replies with "
        "`seed-train inspect`, then take another env_profile or a model that knows its reply format",
    ),
    Sign(
        _is("ties/all_lost", 1.0),
        5,
        "no task was solved once in {rounds} rounds, so there is no policy gradient: take easier tasks or a stronger "
        "model, or raise num_generations or env_max_steps",
    ),
    Sign(
        _is("ties/all_won", 1.0),
        5,
        "every episode of {rounds} rounds solved its task, so there is no policy gradient: stop, or take harder tasks",
    ),
    Sign(
        _is("ties/groups", 1.0),
        5,
        "all episodes of every task returned the same in {rounds} rounds, so there is no policy gradient: raise "
        "temperature or num_generations, or take tasks that are solved now and then",
    ),
    Sign(
        _is("skill/valid", 0.0),
        5,
        "no skill was usable in {rounds} rounds, so nothing is distilled: see skill/invalid/... for the reason, train "
        "skill writing first with `seed-train data` and `seed-train sft`, or raise max_skill_length",
    ),
    Sign(
        lambda metrics: (metrics.get("skill/unrelated") or 0.0) >= 0.9,
        5,
        "nine of ten skills of {rounds} rounds name nothing of their episode, so they teach noise: train skill writing "
        "first with `seed-train data` and `seed-train sft`",
        own_skills=True,
    ),
)
"""What is looked for, the cause before what follows from it; only the first that holds is said."""


class VitalSigns(TrainerCallback):
    """Prints the sentence of the first sign that has held long enough, once when noticed and again at the end.

    Args:
        args: Configuration.
    """

    def __init__(self, args: SEEDConfig) -> None:
        self.args = args
        self.signs = [sign for sign in SIGNS if not sign.own_skills or args.skill_source == "own"]
        self.said: dict[Sign, str] = {}
        self._since: dict[Sign, int] = {}
        self._last = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count rounds from here; a resumed run begins anew."""
        self._last = state.global_step
        self._since.clear()
        self.said.clear()

    def on_log(self, args: Any, state: Any, control: Any, logs: Metrics | None = None, **kwargs: Any) -> None:
        """Look at one line of training metrics."""
        if not state.is_world_process_zero or logs is None or "env/faults" not in logs:
            return
        begin, self._last = self._last, state.global_step
        held = [sign for sign in self.signs if sign.holds(logs)]
        self._since = {sign: self._since.get(sign, begin) for sign in held}
        for sign in held:
            rounds = int((state.global_step - self._since[sign]) / self.args.steps_per_round)
            if rounds >= sign.rounds:
                if sign not in self.said:
                    self.said[sign] = f"seed-train: {sign.sentence.format(rounds=rounds)}"
                    self._say(self.said[sign])
                return

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Repeat what still holds, below everything that was printed meanwhile."""
        for sign, sentence in self.said.items():
            if sign in self._since:
                self._say(sentence)

    def _say(self, sentence: str) -> None:
        tqdm.write(sentence, file=sys.stderr)
