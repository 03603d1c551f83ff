"""What makes a run the same run: every setting that changes what is learnt, and nothing else.

A field that is not known to be harmless counts, so that a new one of TRL is not overlooked.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seed_envs.profiles import Profile

if TYPE_CHECKING:
    from datasets import Dataset

_PREFIXES = ("eval_", "hub_", "log_", "logging_", "save_", "staleness_", "trackio_", "vllm_server_", "dataloader_")
_NAMES = frozenset(
    {
        *("output_dir", "run_name", "project", "report_to", "disable_tqdm", "num_completions_to_print"),
        *("rounds", "max_steps", "num_train_epochs", "resume_from_checkpoint", "resume_anyway"),
        *(
            "debug",
            "enable_jit_checkpoint",
            "do_train",
            "do_eval",
            "do_predict",
            "per_device_eval_batch_size",
            "prediction_loss_only",
        ),
        *("push_to_hub", "load_best_model_at_end", "metric_for_best_model", "greater_is_better"),
        *("include_num_input_tokens_seen", "skip_memory_metrics", "local_rank", "ddp_timeout", "gradient_every"),
        *("env_backend", "dataset_num_proc", "vllm_group_port", "vllm_gpu_memory_utilization"),
    }
)
"""Fields that may change when a run goes on: where it goes, how long, what is watched and how often it is saved."""

_HEAD_BYTES = 1 << 20


def run_identity(args: Any, **facts: Any) -> dict[str, Any]:
    """Return what a checkpoint remembers of its run.

    Args:
        args: Training arguments, a dataclass.
        facts: What else makes the run: model, environment, method, tasks.
    """
    values = args.to_dict()
    fields = [item.name for item in dataclasses.fields(args) if item.init and not _free(item.name)]
    record = {name: values[name] for name in fields if name in values and not name.endswith("_token")}
    found: dict[str, Any] = json.loads(json.dumps({**record, "processes": args.world_size, **facts}, default=str))
    return found


def run_facts(model: Any, env_id: str, profile: Profile, tasks: Dataset) -> dict[str, Any]:
    """Return what makes a run of stage 2 beside its training arguments."""
    return {
        "model": model_fact(model),
        "env_id": env_id,
        "env_profile": profile.name,
        "tasks": f"{len(tasks)}, {fingerprint(tasks.to_dict())}",
    }


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return in words what differs between a checkpoint's run and this one; what only one of them knows does not."""
    return [
        f"{name} is {here[name]!r} here and {there[name]!r} there"
        for name in here
        if name in there and here[name] != there[name]
    ]


def fingerprint(value: Any) -> str:
    """Return the beginning of a hash of a JSON value."""
    return f"sha256 {hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]}"


def examples_fact(rows: Sequence[Any]) -> str:
    """Return number and hash of training examples."""
    return f"{len(rows)}, {fingerprint(rows)}"


def model_fact(model: Any) -> str:
    """Return the name of a model, given or loaded; for a folder its whole path, and a hash of its files' beginnings.

    Reading all of a large model would take minutes; training changes the beginning of a weight file too.
    """
    name = str(model if isinstance(model, (str, Path)) else getattr(model.config, "_name_or_path", ""))
    folder = Path(name).expanduser()
    if not name or not folder.is_dir():
        return name
    state = hashlib.sha256()
    for path in sorted([*folder.glob("config.json"), *folder.glob("*.safetensors")]):
        state.update(f"{path.name} {path.stat().st_size} ".encode())
        with path.open("rb") as file:
            state.update(file.read(_HEAD_BYTES))
    return f"{folder.resolve()}, sha256 {state.hexdigest()[:16]}"


def _free(name: str) -> bool:
    return name in _NAMES or name.startswith(_PREFIXES)
