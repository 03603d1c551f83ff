"""Processors of published repositories, with and without torchvision, wherever they are read: the same token counts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from published_layouts import CONVERSATIONS, COUNTS, NEEDS, REPOSITORIES, readable, write_repository
from transformers import AutoProcessor

from seed_envs.errors import DependencyMissing
from seed_envs.processors import load_encoder
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.cli import main
from seed_trainer.commands.checks import model_contestant
from seed_trainer.errors import UserError

SMALL = (
    "--env_id seed/Sokoban-v0 --env_profile paper --env_max_steps 2 --train_split train --train_tasks 4 --rounds 1 "
    "--use_cpu true --bf16 false --gradient_checkpointing false --per_device_train_batch_size 2 --num_generations 2 "
    "--steps_per_generation 1 --max_turn_length 4 --max_prompt_length 4000 --skill_source generic --log_episodes 0 "
    "--save_strategy no --report_to none --cpu_threads 1"
).split()


@pytest.fixture(scope="module", params=REPOSITORIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_repository(name, tmp_path_factory.mktemp(name))


def counts(folder: Path) -> tuple[int, ...]:
    processor = load_encoder(str(folder))
    encoder = ChatEncoder(processor, processor.tokenizer)
    return tuple(map(encoder.length, CONVERSATIONS))


def test_counts_are_those_of_auto_processor(name: str, folder: Path) -> None:
    if not readable(name):
        with pytest.raises(DependencyMissing, match=f"pip install {NEEDS[name]}"):
            counts(folder)
        with pytest.raises(UserError, match=f"pip install {NEEDS[name]}"):
            model_contestant(str(folder), None, 4096, 16)
        return
    assert counts(folder) == COUNTS[name]
    preflight = model_contestant(str(folder), None, 4096, 16)
    assert preflight.count_tokens is not None and preflight.sees_pictures
    assert preflight.count_tokens(CONVERSATIONS[0]) == COUNTS[name][0]
    if find_spec("torchvision") is None and name != "Gemma-3":  # the one family without a video half
        with pytest.raises(ImportError, match="Torchvision"):
            AutoProcessor.from_pretrained(folder)
        return
    theirs: Any = AutoProcessor.from_pretrained(folder)
    theirs.chat_template = theirs.chat_template or theirs.tokenizer.chat_template
    for conversation, count in zip(CONVERSATIONS, COUNTS[name], strict=True):
        text = theirs.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
        image = conversation[0]["content"][0]["image"]
        assert len(theirs(text=[text], images=[[image]], add_special_tokens=False)["input_ids"][0]) == count


def test_a_saved_processor_is_read_like_the_one_it_came_from(name: str, folder: Path, tmp_path: Path) -> None:
    """A trained model is exported with its processor, by an installation with torchvision or without."""
    if readable(name):
        load_encoder(str(folder)).save_pretrained(tmp_path)
        (tmp_path / "config.json").write_text((folder / "config.json").read_text(encoding="utf-8"), encoding="utf-8")
        assert counts(tmp_path) == COUNTS[name]


@pytest.mark.slow
def test_a_round_of_training_runs_from_a_published_layout(name: str, folder: Path, tmp_path: Path) -> None:
    """Every family plays and learns for one round; what is exported plays again."""
    command = ["rl", "--model_name_or_path", str(folder), "--output_dir", str(tmp_path / "run"), *SMALL]
    if not readable(name):
        assert main(command) == 2
        return
    assert main(command) == 0
    assert counts(tmp_path / "run") == COUNTS[name]
