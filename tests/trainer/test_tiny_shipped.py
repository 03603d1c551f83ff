"""The model that ships: small, loadable like any other, made by the documented recipe, and teachable by skills."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="packages: needs trl")

from transformers import AutoModelForCausalLM, AutoTokenizer

from seed_envs.alfworld.annotator import annotate_terse
from seed_trainer.commands.building import resolve_model
from seed_trainer.tiny.actor import Actor
from seed_trainer.tiny.lessons import ENV_ID
from seed_trainer.tiny.probing import foreign_skills
from seed_trainer.tiny.recipe import Recipe, write_samples
from seed_trainer.tiny.tokenizer import build_tokenizer

FOLDER = Path(resolve_model("builtin/alfworld-tiny"))
LESSONS = "5164aa4459badc8cb6e85e4f3713246a089ed6c7c8f83ce0d98f74aec80ede26"
"""SHA-256 of the lessons of one game in a hundred, as they were when the weights were made."""


def test_it_is_small_and_loads_like_any_other_model() -> None:
    assert (FOLDER / "model.safetensors").stat().st_size <= 3_000_000
    model = AutoModelForCausalLM.from_pretrained(FOLDER)
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    assert model.num_parameters() < 2_000_000
    assert model.config.model_type != "qwen2"
    assert tokenizer.get_vocab() == build_tokenizer().get_vocab()
    assert model.config.eos_token_id == tokenizer.eos_token_id


def test_the_default_recipe_is_the_one_it_was_made_by() -> None:
    record = json.loads((FOLDER / "recipe.json").read_text(encoding="utf-8"))
    assert record["recipe"] == json.loads(json.dumps(dataclasses.asdict(Recipe())))


def test_the_lessons_it_was_made_from_can_still_be_played() -> None:
    digest = hashlib.sha256()
    for samples in write_samples(Recipe().scaled(0.01), build_tokenizer(), lambda *step: None):
        for sample in samples:
            digest.update(repr((sample.ids, sample.learned)).encode())
    assert digest.hexdigest() == LESSONS, "games, texts or lessons changed: make the model again, or change them back"


def test_fitting_skills_help_and_foreign_ones_do_not() -> None:
    tasks = [f"compact/validation/{number}" for number in range(60)]
    with contextlib.closing(Actor.load(FOLDER, ENV_ID, "compact")) as actor:
        alone = actor.play(tasks, 1.0)
        skills = actor.write(alone)
        own = actor.play(tasks, 1.0, [skill.text if skill.valid else "" for skill in skills])
        foreign = actor.play(tasks, 1.0, foreign_skills(alone, [annotate_terse(episode) for episode in alone]))
    won = [sum(episode.success for episode in episodes) for episodes in (alone, own, foreign)]
    assert sum(skill.valid for skill in skills) > 50
    assert won[0] < 20 and won[1] > won[0] + 10 and won[1] > won[2] + 10, won
