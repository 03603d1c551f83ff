"""Every method that trains raises the return of a world in which the library's advice is right and readable.

One turn, four words, the goal names the winning one. The starting policy says random words (success 25 %); with a hint
in the prompt it says the hinted word (98 %) and never looks at the goal. So there is everything to learn, by reward or
from a teacher who is hinted. Success is measured on a panel, without a hint unless the method keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from word_world import WORDS, small_model, teach_model, word_tokenizer

from seed_trainer.settings.presets import METHODS
from seed_trainer.skills.library import SkillLibrary
from seed_trainer.trainer import SEEDTrainer

TrainerFactory = Callable[..., SEEDTrainer]
Learn = Callable[..., tuple[float, float]]

ACTOR_READS = ("skill_grpo", "skill_grpo_star")
REWARDED = [
    name
    for name, method in METHODS.items()
    if method.trains and "rl_coef" not in method.fields and name not in ACTOR_READS
]


@pytest.fixture(scope="module")
def reader_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A saved model that follows hints and ignores goals."""
    folder = tmp_path_factory.mktemp("reader")
    model = small_model()
    teach_model(model, steps=400, misleading=True)
    model.save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    return str(folder)


@pytest.fixture
def learn(make_trainer: TrainerFactory, reader_path: str, tmp_path: Path) -> Learn:
    """Return a function that trains and returns the panel's success before and after.

    Four tasks x 8 episodes a round: with half of them a run may stay at a success of 50 % for long, and what a test
    finds would depend on the seed.
    """

    def run(library: SkillLibrary | None = None, rounds: int = 30, **options: Any) -> tuple[float, float]:
        advice = library or SkillLibrary("", {word: word for word in WORDS})
        advice.save(tmp_path / "library.json")
        settings: dict[str, Any] = {
            "model": reader_path,
            "env_turns": 1,
            "env_typed": True,
            "num_generations": 8,
            "per_device_train_batch_size": 16,
            "tasks": 32,
            "panel": True,
            "eval_repeats": 64,
            "eval_temperature": 1.0,
            "learning_rate": 2e-3,
            "skill_library": str(tmp_path / "library.json"),
        }
        trainer = make_trainer(rounds=rounds, **{**settings, **options})
        before = trainer.evaluate()["eval_success"]
        trainer.train()
        return before, trainer.evaluate()["eval_success"]

    return run


def fields_of(name: str) -> dict[str, Any]:
    return {key: value for key, value in METHODS[name].fields.items() if key != "start_from"}


@pytest.mark.parametrize("name", REWARDED)
def test_methods_with_a_reward_raise_the_return(learn: Learn, name: str) -> None:
    options: dict[str, Any] = {"rollout_layout": "turn", "env_turns": 3} if name == "gigpo" else {}
    before, after = learn(**options, **fields_of(name))
    assert before < 0.5 and after > before + 0.2, (before, after)


@pytest.mark.parametrize("teacher", ["initial", "ema"])
@pytest.mark.parametrize("name", ["opsd", "opsd_sampled"])
def test_opsd_learns_from_the_hinted_teacher_alone(learn: Learn, name: str, teacher: str) -> None:
    before, after = learn(**{**fields_of(name), "teacher_policy": teacher})
    assert before < 0.5 and after > 0.7, (before, after)


def test_skill_sd_learns_from_the_hinted_teacher_alone(learn: Learn) -> None:
    options = {"rl_coef": 0.0, "opd_coef": 1.0, "teacher_policy": "initial"}
    before, after = learn(**{**fields_of("skill_sd"), **options})
    assert before < 0.5 and after > 0.7, (before, after)


def test_skill_grpo_carries_over_to_prompts_without_the_skill(learn: Learn) -> None:
    """The skill says nothing about the word; hot sampling, or what is learned stays tied to the prompt with a hint."""
    before, after = learn(SkillLibrary("seen did", {}), 40, temperature=3.0, **fields_of("skill_grpo"))
    assert before < 0.5 and after > before + 0.2, (before, after)


def test_skill_grpo_star_learns_to_overrule_a_wrong_skill(learn: Learn) -> None:
    """The hint is always "gold", right for one task of four, in training and on the panel."""
    before, after = learn(SkillLibrary("gold", {}), 40, **fields_of("skill_grpo_star"))
    assert before < 0.5 and after > before + 0.2, (before, after)


def test_opsd_as_tabled_stops_where_the_kl_holds_it(learn: Learn) -> None:
    """Its lambda of 0.01 stands against a KL coefficient of 0.01, so that it cannot rise far.

    At rest ``lambda (Z - w) + b_KL (log pi / pi_ref - KL) = 0`` for every word: gate 1 on the right word and 0
    on all others means that its odds have grown by ``exp(lambda / b_KL)``, here e. Without the KL
    the same term solves the world.
    """
    before, after = learn(rounds=80, **fields_of("opsd_as_tabled"))
    odds = before / (1 - before) * math.e
    assert before + 0.03 < after < odds / (1 + odds) + 0.12, (before, after)
    free = {"beta": 0.0, "teacher_policy": "initial"}
    before, after = learn(**{**fields_of("opsd_as_tabled"), **free})
    assert after > 0.7, (before, after)
