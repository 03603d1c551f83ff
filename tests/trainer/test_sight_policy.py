"""The policy that sees: its words, its pictures, its lessons, and that they agree with the processor that is saved."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason="packages: needs trl")

import torch
from transformers import AutoModelForImageTextToText, AutoProcessor

from seed_envs import make_agent_env
from seed_envs.vision.terse import annotate_terse, read_terse
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.tiny.corpus import Sample, SampleEncoder
from seed_trainer.tiny.sight.lessons import GAMES, PROFILE, Classroom, Curriculum, Part
from seed_trainer.tiny.sight.model import PATCHES, SIDE, Shape, build_model, build_processor, pixel_values
from seed_trainer.tiny.sight.words import IMAGE, build_tokenizer

SMALL = Shape(width=32, heads=2, sight_layers=1, layers=1)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer()


@pytest.fixture(scope="module")
def encoder(tokenizer: Any) -> SampleEncoder:
    return SampleEncoder(tokenizer, [tokenizer.convert_tokens_to_ids(IMAGE)] * PATCHES, SIDE)


@pytest.fixture(params=sorted(GAMES))
def classroom(request: pytest.FixtureRequest, encoder: SampleEncoder) -> Iterator[Classroom]:
    with contextlib.closing(Classroom(GAMES[request.param], encoder, "0")) as room:
        yield room


def words(sample: Sample, tokenizer: Any) -> str:
    return str(tokenizer.decode([token for token in sample.ids if token != tokenizer.convert_tokens_to_ids(IMAGE)]))


def tasks(classroom: Classroom, count: int) -> list[str]:
    return [classroom.game.task.format(number) for number in range(count)]


def test_lessons_are_what_the_processor_of_the_saved_model_makes(
    tmp_path: Path, tokenizer: Any, encoder: SampleEncoder, classroom: Classroom
) -> None:
    """Ids, patches and pictures of pre-training are those of training, which reads the folder through AutoProcessor."""
    build_processor(tokenizer).save_pretrained(tmp_path)
    build_model(tokenizer, SMALL).save_pretrained(tmp_path)
    processor = AutoProcessor.from_pretrained(tmp_path)
    (episode,) = classroom.play([Part(tasks(classroom, 1)[0], 1.0, "go up 5 + 7 =")])
    messages = episode.steps[0].messages
    sample = encoder.encode(messages, [False])
    (prompt,) = ChatEncoder(processor, processor.tokenizer).prompts([messages])
    assert prompt == [*sample.ids, tokenizer.convert_tokens_to_ids("<|agent|>")]
    assert tokenizer.unk_token_id not in sample.ids
    shown = episode.steps[0].context.image
    theirs = processor.image_processor(images=[shown], return_tensors="pt")["pixel_values"]
    assert torch.equal(theirs, pixel_values([picture.pixels() for picture in sample.pictures])["pixel_values"])
    model = AutoModelForImageTextToText.from_pretrained(tmp_path)
    inputs = {"input_ids": torch.tensor([prompt]), "pixel_values": theirs}
    assert not torch.equal(model(**inputs).logits, model(**{**inputs, "pixel_values": 0 * theirs}).logits)


def test_clean_lessons_teach_the_oracle_alone_and_put_pictures_into_words(classroom: Classroom, tokenizer: Any) -> None:
    chosen = tasks(classroom, 4)
    samples = list(classroom.lessons(chosen, Curriculum(attempts=2, clean=True, described=1.0, competence=0.5)))
    described = [sample for sample in samples if "describe" in words(sample, tokenizer)]
    assert 0 < len(samples) - len(described) < len(described), "slips are shown and not learned"
    assert all(len(sample.pictures) == 1 for sample in samples)
    alone = classroom.lessons(chosen, Curriculum(attempts=1, moves=False, described=1.0))
    assert all("describe" in words(sample, tokenizer) for sample in alone), "a course of sight teaches no action"
    env = make_agent_env(classroom.game.env_id, PROFILE, render_mode="ansi")
    env.reset(options={"task_id": chosen[0]})
    first = tokenizer(env.unwrapped.render())["input_ids"]  # type: ignore[attr-defined]
    assert first == described[0].ids[-len(first) - 1 : -1]


def test_a_player_repeats_what_worked_and_does_not_begin_with_what_did_not(classroom: Classroom) -> None:
    task = tasks(classroom, 1)[0]
    (won,) = classroom.play([Part(task, 1.0)])
    assert won.success
    skill = annotate_terse(won)
    assert read_terse(skill) == (True, tuple(step.action for step in won.steps))
    advised = classroom.play([Part(task, 0.0, skill)] * 40)
    assert sum(episode.success for episode in advised) > 25
    first = won.steps[0].action
    warned = classroom.play([Part(task, 0.0, f"not {first}")] * 40)
    assert all(episode.steps[0].action != first for episode in warned)
    assert any(episode.steps[0].action == first for episode in classroom.play([Part(task, 0.0)] * 80))


def test_the_same_picture_is_kept_once_and_comes_back_as_it_was(encoder: SampleEncoder) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    message = {"role": "user", "content": [{"type": "image", "image": pixels}, {"type": "text", "text": "step 1"}]}
    first, second = (encoder.encode([message], [False]).pictures[0] for _ in range(2))
    assert first is second and np.array_equal(first.pixels(), pixels)
