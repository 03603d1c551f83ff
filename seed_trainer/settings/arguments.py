"""Command-line fields that are no training configuration: environment, tasks, model source, what to do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from seed_trainer.errors import UserError
from seed_trainer.settings.options import option


@dataclass
class EnvArguments:
    """Which environment, and how it is put before the model."""

    env_id: str = option("seed/ALFWorld-v0", "Registered environment id.", "paper")
    env_profile: str = option("paper", "Profile of the environment: prompts, step limit, history.", "paper")
    env_kwargs: str = option("", "Constructor arguments of the environment, as a JSON object.")
    env_max_steps: int = option(0, "Step limit; 0 is the profile's.", "paper")
    env_blind: bool = option(False, "Show black pictures: what is won all the same is won without looking.")

    @property
    def kwargs(self) -> dict[str, Any]:
        """Parsed ``env_kwargs``.

        Raises:
            UserError: If it is not a JSON object.
        """
        try:
            value = json.loads(self.env_kwargs or "{}")
        except json.JSONDecodeError as error:
            raise UserError(f"env_kwargs={self.env_kwargs!r} is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise UserError(f"env_kwargs={self.env_kwargs!r} must be a JSON object")
        return value


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
    recipe: str = option("paper", "Recipe preset: paper, or released/<benchmark>.", "paper")
    train_split: str = option("", "Split to train on; empty is the environment's default.")
    train_tasks: int = option(0, "Number of training tasks, a fixed draw from the split (0: all).")
    eval_split: str = option("", "Split of the evaluation panel; empty evaluates nothing.")
    eval_tasks: int = option(0, "Panel size, a fixed draw from the split (0: all).")
    eval_manifest: str = option("", "Manifest file of the panel, instead of a whole split.")
    base_model: str = option("", "Model before stage 1, used when start_from=base (ablation wo_sft).")
    start_from: str = option("sft", "sft: model_name_or_path; base: base_model.")
    accelerate_config: str = option("", "Launch through accelerate with this configuration (name or file).")
    cpu_threads: int = option(0, "Threads of PyTorch on a CPU; 0 leaves its default. One is best on a shared machine.")
