"""Command-line fields that are no training configuration: environment, tasks, model source, what to do."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Literal

from seed_trainer.errors import UserError
from seed_trainer.settings.options import option

ACCELERATE = "Launch through accelerate with this configuration (name or file)."
RECIPE_HELP = "Recipe preset: paper, paper/<benchmark>, released/<benchmark>, or a row of `seed-train configs`."
DATA_FOLDER = "$SEED_DATA_DIR"
"""Stands for the folder of real data at the beginning of a file in ``env_kwargs``."""


@dataclass
class EnvArguments:
    """Which environment, and how it is put before the model."""

    env_id: str = option("seed/ALFWorld-v0", "Registered environment id.", "paper")
    env_profile: str = option("paper", "Profile of the environment: prompts, step limit, history.", "paper")
    env_kwargs: str = option("", "Constructor arguments of the environment, as a JSON object.")
    env_max_steps: int = option(0, "Step limit; 0 is the profile's.", "paper")
    env_blind: Literal["no", "blank", "shuffle"] = option(
        "no", "Black pictures, or those of another task: what is won all the same is won without looking."
    )

    @property
    def kwargs(self) -> dict[str, Any]:
        """Parsed ``env_kwargs``, with the folder of real data in the place of ``$SEED_DATA_DIR``.

        Raises:
            UserError: If it is not a JSON object, or names a folder of real data and there is none.
        """
        value = json_object("env_kwargs", self.env_kwargs)
        if f'"{DATA_FOLDER}/' not in self.env_kwargs:
            return value
        folder = os.environ.get(DATA_FOLDER[1:])
        if not folder:
            raise UserError(
                f"env_kwargs={self.env_kwargs!r} reads real data: export SEED_DATA_DIR=FOLDER, or give --env_kwargs "
                "(an empty object plays the environment's generated tasks)"
            )
        return {key: _in_folder(item, folder) for key, item in value.items()}


def json_object(name: str, text: str) -> dict[str, Any]:
    """Return a field that holds a JSON object; empty text is an empty one.

    Raises:
        UserError: If it is none.
    """
    try:
        value = json.loads(text or "{}")
    except json.JSONDecodeError as error:
        raise UserError(f"{name}={text!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{name}={text!r} must be a JSON object")
    return value


def _in_folder(value: Any, folder: str) -> Any:
    if isinstance(value, list):
        return [_in_folder(item, folder) for item in value]
    prefix = f"{DATA_FOLDER}/"
    return os.path.join(folder, value[len(prefix) :]) if isinstance(value, str) and value.startswith(prefix) else value


@dataclass
class CheckArguments:
    """What is checked before anything is played or trained."""

    no_preflight: bool = option(
        False,
        "Skip the checks before the first episode: folder, first task, pictures, length of the prompt, one reply.",
    )
    dry_run: bool = option(False, "Check, print the resolved configuration and what would be done, then stop.")


@dataclass
class SEEDScriptArguments(EnvArguments, CheckArguments):
    """Everything ``seed-train rl`` needs beside the training configuration and the model."""

    method: str = option("seed", "Method preset; sets the fields that define it.", "paper")
    recipe: str = option("paper", RECIPE_HELP, "paper")
    train_split: str = option("", "Split to train on; empty is the environment's default.")
    train_tasks: int = option(0, "Number of training tasks, a fixed draw from the split (0: all).")
    eval_split: str = option("", "Split of the evaluation panel; empty evaluates nothing.")
    eval_tasks: int = option(0, "Panel size, a fixed draw from the split (0: all).")
    eval_manifest: str = option("", "Manifest file of the panel, instead of a whole split.")
    base_model: str = option("", "Model before stage 1, used when start_from=base (ablation wo_sft).")
    start_from: str = option("sft", "sft: model_name_or_path; base: base_model.")
    accelerate_config: str = option("", ACCELERATE)
    cpu_threads: int = option(0, "Threads of PyTorch on a CPU; 0 leaves its default. One is best on a shared machine.")
