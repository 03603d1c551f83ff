"""Fixtures of the trainer tests: a saved word-world model and a factory of small trainers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from word_trainer import build_trainer
from word_world import small_model, teach_model, word_tokenizer

from seed_trainer.trainer import SEEDTrainer


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A saved model of 20,000 parameters that plays the word world badly, with its tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    model = small_model()
    teach_model(model)
    model.save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    return str(folder)


TrainerFactory = Callable[..., SEEDTrainer]
"""Keyword options override the settings of a small trainer."""


@pytest.fixture
def make_trainer(model_path: str, tmp_path: Path) -> TrainerFactory:
    """Return a factory of small trainers; see :func:`word_trainer.build_trainer`."""

    def build(*args: Any, **options: Any) -> SEEDTrainer:
        return build_trainer(options.pop("model", model_path), tmp_path / "run", *args, **options)

    return build
