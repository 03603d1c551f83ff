"""The model that sees and ships: small, loadable like any other, made by the documented recipe, and not blind."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="packages: needs trl")

from transformers import AutoModelForImageTextToText, AutoProcessor

from seed_envs import make_agent_env
from seed_envs.vision.terse import read_terse
from seed_envs.wrappers.blind import make_blind_env
from seed_trainer.acting.play import EpisodePlayer
from seed_trainer.commands.building import resolve_model
from seed_trainer.tiny.actor import Actor
from seed_trainer.tiny.sight.lessons import GAMES, PROFILE
from seed_trainer.tiny.sight.recipe import SightRecipe, write_samples
from seed_trainer.tiny.sight.words import build_tokenizer

FOLDER = Path(resolve_model("builtin/vision-tiny"))
LESSONS = "de81c83e4bf828a9db84896d648360104d1f048f03ce78549578277a0869cb12"
"""SHA-256 of the lessons of one task in fifty, as they were when the weights were made."""


def test_it_is_small_and_loads_like_any_other_model() -> None:
    assert (FOLDER / "model.safetensors").stat().st_size <= 3_000_000
    model = AutoModelForImageTextToText.from_pretrained(FOLDER)
    assert model.num_parameters() < 1_000_000
    assert AutoProcessor.from_pretrained(FOLDER).tokenizer.get_vocab() == build_tokenizer().get_vocab()


def test_the_default_recipe_is_the_one_it_was_made_by() -> None:
    record = json.loads((FOLDER / "recipe.json").read_text(encoding="utf-8"))
    assert record["recipe"] == json.loads(json.dumps(dataclasses.asdict(SightRecipe())))


def test_the_lessons_it_was_made_from_can_still_be_played() -> None:
    digest = hashlib.sha256()
    for samples in write_samples(SightRecipe().scaled(0.02), build_tokenizer(), lambda *step: None):
        for sample in samples:
            # Not the pixels: versions of Pillow draw letters differently.
            digest.update(repr((sample.ids, sample.learned, len(sample.pictures))).encode())
    assert digest.hexdigest() == LESSONS, "games, texts or lessons changed: make the model again, or change them back"


@pytest.mark.parametrize("game", sorted(GAMES))
def test_it_wins_by_looking_and_writes_skills_of_its_own_attempts(game: str) -> None:
    env_id = GAMES[game].env_id
    with contextlib.closing(make_agent_env(env_id, PROFILE)) as env:
        panel = list(env.unwrapped.task_ids("validation"))  # type: ignore[attr-defined]
    tasks = (panel * 100)[:100]
    donors = dict(zip(panel, panel[len(panel) // 2 :] + panel[: len(panel) // 2], strict=True))
    with contextlib.closing(Actor.load(FOLDER, env_id, PROFILE)) as actor:
        seen, skills = actor.play(tasks, 0.0), actor.write(actor.play(tasks, 1.0))
        actor.player.close()
        actor.player = EpisodePlayer(
            partial(make_blind_env, donors, env_id, actor.profile, None), env_id, actor.profile
        )
        blind = actor.play(tasks, 0.0)
    won = [sum(episode.success for episode in episodes) for episodes in (seen, blind)]
    assert won[0] > 50 and won[1] < 25, won
    assert sum(skill.valid and bool(read_terse(skill.text).actions) for skill in skills) > 60
