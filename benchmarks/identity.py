"""Whether a run that goes on is still the run it was: settings, model, software, compared at every attempt.

An attempt notes what it plays with. The next one must agree in everything that may change a score; what may differ says
where and how patiently a run is played (:data:`PLACE`). Nothing here reads a run folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seed_envs.hashing import content_hash, file_hash

from .config import RunConfig
from .errors import RunFolderInvalid

#: Settings of a run that say where and how patiently it is played, and those of its agent.
PLACE = frozenset(
    {
        "num_workers", "batch_size", "timeout", "executor", "ray_address", "ray_gpus", "fail_on_error",
        "max_equal_failures",
    }
)  # fmt: skip
AGENT_PLACE = frozenset(
    {
        "requests_per_minute", "retries", "retry_wait", "request_timeout", "price_prompt", "price_completion",
        "api_key_env",
    }
)  # fmt: skip
#: Settings whose keys are the user's: compared as a whole, a key that was added is a change.
_FREE = ("env_kwargs", "request_args")
#: The address at the end of an agent's spec.
URL = re.compile(r"@https?://\S+$")


def what_is_played(run: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a configuration's JSON that may change a score.

    Args:
        run: ``RunConfig.to_json()``.
    """
    agent = {key: value for key, value in run["agent"].items() if key not in AGENT_PLACE}
    agent["spec"] = URL.sub("", agent["spec"])
    return {**{key: value for key, value in run.items() if key not in PLACE}, "agent": agent}


def identity(config: RunConfig, agent: Mapping[str, Any], software: Mapping[str, Any]) -> dict[str, Any]:
    """What an attempt plays with.

    Args:
        config: The run.
        agent: What the agent says of itself; hashes are under ``identity``.
        software: From ``describe_software``.
    """
    kept = {key: software[key] for key in ("seed_envs", "python", "packages")}
    commit = (software.get("git") or {}).get("commit")
    played = what_is_played(json.loads(json.dumps(config.to_json())))
    return {
        **{key: value for key, value in played.items() if key != "shard"},  # parts are joined; records know their place
        "model": dict(agent.get("identity", {})),
        "software": {**kept, **({"commit": commit} if commit else {})},
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Fields that both know and that differ, as dotted names with both values."""
    first, second = _flatten(before), _flatten(now)
    return {name: (first[name], second[name]) for name in first if name in second and first[name] != second[name]}


def check_same(where: Path, before: Mapping[str, Any], now: Mapping[str, Any], accepted: Sequence[str]) -> None:
    """Refuse to go on with anything else than before.

    Args:
        where: The run, for the message.
        before: :func:`identity` of the last attempt.
        now: That of this one.
        accepted: Dotted names, or their beginnings, of fields that were meant to change.

    Raises:
        RunFolderInvalid: Naming every changed field that was not accepted, and how to accept it.
    """
    changed = {
        name: values
        for name, values in differences(before, now).items()
        if not any(name == field or name.startswith(f"{field}.") for field in accepted)
    }
    if not changed:
        return
    told = "; ".join(f"{name} was {_short(old)}, is {_short(new)}" for name, (old, new) in changed.items())
    flags = " ".join(f"--accept-change {name}" for name in changed)
    raise RunFolderInvalid(
        f"{where} did not begin like this: {told}. Start a new run, put it back, or go on with a mixture: {flags}"
    )


def hash_files(paths: Iterable[Path]) -> str:
    """SHA-256 over names and contents, whatever the order."""
    return content_hash(f"{path.name}\0{file_hash(path)}\n".encode() for path in sorted(paths))


def _flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and key not in _FREE:
            flat.update(_flatten(value, f"{name}."))
        else:
            flat[name] = value
    return flat


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:20]}...{text[-8:]}"
