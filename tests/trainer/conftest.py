"""Fixtures of the trainer tests: a saved word-world model and a factory of small trainers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from word_world import GROWING, WORDS, make_word_env, small_model, teach_model, word_tokenizer

from seed_envs.profiles import Profile
from seed_trainer.settings.config import SEEDConfig
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
    """Return a factory of small trainers: 4 tasks x 4 episodes a round, two mini-batches."""

    def build(profile: Profile = GROWING, tasks: int = 8, panel: bool = False, **options: Any) -> SEEDTrainer:
        settings: dict[str, Any] = {
            "output_dir": str(tmp_path / "run"),
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": "none",
            "disable_tqdm": True,
            "per_device_train_batch_size": 8,
            "steps_per_generation": 2,
            "num_generations": 4,
            "max_turn_length": 3,
            "max_skill_length": 6,
            "rounds": 2,
            "learning_rate": 1e-3,
            "save_strategy": "no",
            "log_episodes": 0,
            "rollout_layout": "episode" if profile.style == "growing" else "turn",
            "skill_analyzer": "auto" if profile.style == "growing" else "json",
            "max_analysis_length": 8,
            "seed": 3,
        }
        peft_config = options.pop("peft_config", None)
        turns, typed = options.pop("env_turns", 3), options.pop("env_typed", False)
        model = options.pop("model", model_path)
        args = SEEDConfig(**{**settings, **options})
        return SEEDTrainer(
            model=model,
            args=args,
            make_env=lambda: make_word_env(profile, turns, typed),
            profile=profile,
            env_id="words",
            train_dataset=Dataset.from_dict({"task_id": [WORDS[i % 4] for i in range(tasks)]}),
            eval_dataset=Dataset.from_dict({"task_id": WORDS}) if panel else None,
            processing_class=word_tokenizer(),
            peft_config=peft_config,
        )

    return build
