"""Runs that learn nothing say so, once, with a remedy; skills that name nothing of their episode teach nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from word_world import WordEnv

from seed_envs.outcomes import Outcome
from seed_envs.trajectory import Step, Trajectory
from seed_trainer.acting.sampling import Sampled
from seed_trainer.commands.building import resolve_model
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.skills.relevance import names_something
from seed_trainer.tiny.actor import Actor
from seed_trainer.trainer import SEEDTrainer
from seed_trainer.watching.diagnostics import explains
from seed_trainer.watching.vital_signs import SIGNS, VitalSigns

HEALTHY = {
    "env/faults": 0.0,
    "env/success": 0.5,
    "env/invalid_actions": 0.1,
    "ties/groups": 0.2,
    "ties/all_won": 0.1,
    "ties/all_lost": 0.1,
    "skill/valid": 0.9,
    "skill/unrelated": 0.0,
}


def watch(lines: list[dict[str, Any]], capsys: Any, steps: int = 4, source: str = "own") -> list[str]:
    """Log one line per round of four optimiser steps and return what was printed."""
    config = SEEDConfig(
        steps_per_generation=4, num_generations=2, per_device_train_batch_size=2, use_cpu=True, bf16=False,
        output_dir="unused", skill_source=source,
    )  # fmt: skip
    signs, state = VitalSigns(config), SimpleNamespace(global_step=0, is_world_process_zero=True)
    signs.on_train_begin(None, state, None)
    for line in lines:
        state.global_step += steps
        signs.on_log(None, state, None, logs={**HEALTHY, **line})
    signs.on_train_end(None, state, None)
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("seed-train: ")]


@pytest.mark.parametrize(
    ("line", "rounds", "said"),
    [
        ({"env/faults": 16.0, "env/success": None, "env/invalid_actions": None}, 2, "fault of the environment"),
        ({"env/invalid_actions": 1.0, "ties/groups": 1.0, "ties/all_lost": 1.0}, 2, "no action was valid in 2 rounds"),
        ({"ties/groups": 1.0, "ties/all_lost": 1.0}, 5, "no task was solved once in 5 rounds"),
        ({"ties/groups": 1.0, "ties/all_won": 1.0}, 5, "solved its task"),
        ({"ties/groups": 1.0}, 5, "returned the same in 5 rounds"),
        ({"skill/valid": 0.0, "skill/unrelated": None}, 5, "no skill was usable in 5 rounds"),
        ({"skill/unrelated": 0.95}, 5, "name nothing of their episode"),
    ],
)
def test_a_dead_run_says_so_once_and_again_at_the_end(
    line: dict[str, Any], rounds: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not watch([line] * (rounds - 1), capsys)
    assert not watch([{}, *[line] * (rounds - 1), {}, *[line] * (rounds - 1)], capsys), "not in a row"
    found = watch([line] * 12, capsys)
    assert len(found) == 2 and found[0] == found[1] and said in found[0] and ": " in found[0].partition(": ")[2]
    assert len(watch([line] * 12 + [{}], capsys)) == 1, "what has passed is not repeated at the end"
    assert len(watch([line] * 12, capsys, steps=16)) == 2, "a line may stand for several rounds"


def test_a_healthy_run_and_a_control_experiment_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert not watch([{}] * 20, capsys)
    assert not watch([{"skill/unrelated": 1.0}] * 20, capsys, source="shuffled_batch"), "there it is the point"


def test_every_metric_that_is_looked_at_exists() -> None:
    asked: set[str] = set()

    class Spy(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            asked.add(name)
            return 1.0

    for sign in SIGNS:
        sign.holds(Spy())
    assert len(asked) >= 6 and all(map(explains, asked))


def test_a_real_run_without_a_valid_action_says_so(
    make_trainer: Callable[..., SEEDTrainer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def deaf(env: WordEnv, action: str) -> Outcome:
        return Outcome("no", 0.0, terminated=False, action_valid=False, invalid_reason="not a word of this world")

    monkeypatch.setattr(WordEnv, "_act", deaf)
    make_trainer(opd_coef=0.3, rounds=3, tasks=16, logging_steps=2).train()
    assert "no action was valid in 2 rounds" in capsys.readouterr().err


def attempt() -> Trajectory:
    step = Step("You see a fridge 1, and a shelf 2.", [], "", "open fridge 1", True, "", 0.0)
    wrong = Step("Nothing happens.", [], "", "eat moon", False, "", 0.0)
    return Trajectory("rooms", "t", goal="Your task is to: put a mug in desk.", steps=[step, wrong])


@pytest.mark.parametrize("text", ["Mug not in shelf", "open it", "FRIDGE!", "look at the desk first"])
def test_a_skill_may_name_a_thing_or_a_command(text: str) -> None:
    assert names_something(text, attempt())


def test_a_whole_command_of_one_word_is_named_whatever_it_is() -> None:
    steps = [Step("", [], "", action, True, "", 0.0) for action in ("7", "up")]
    episode = Trajectory("cards", "t", goal="Make 12.", steps=steps)
    assert names_something("go 7 + 5", episode) and names_something("not up", episode)
    assert not names_something("go 8 + 5", episode)


@pytest.mark.parametrize(
    "text", ["I'm sorry", "I'm sorry, I can't help with that.", "", "1 2", "eat moon", "Nothing happens to you", "OK!"]
)
def test_other_text_is_not_about_the_episode(text: str) -> None:
    assert not names_something(text, attempt())


class Says:
    """A sampler that gives every request the same answer."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids

    def sample(self, keys: Sequence[Hashable], *rest: Any) -> list[Sampled]:
        return [Sampled(self.ids) for _ in keys]

    def forget(self) -> None:
        pass


@pytest.mark.parametrize(
    ("text", "reason"), [("it to the.", "unrelated"), ("take fridge.", ""), ("go to countertop 1.", "")]
)
def test_empty_phrases_of_the_compact_profile_do_not_teach(
    text: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor = Actor.load(Path(resolve_model("builtin/alfworld-tiny")), "seed/ALFWorld-v0", "compact")
    try:
        episodes = actor.play(["compact/test/0", "compact/test/1"], 1.0)
        answer = [*actor.tokenizer(text)["input_ids"], *actor.encoder.eos_token_ids[:1]]
        monkeypatch.setattr(actor, "sampler", Says(answer))
        assert [(skill.reason, skill.valid) for skill in actor.write(episodes)] == [(reason, not reason)] * 2
    finally:
        actor.close()
