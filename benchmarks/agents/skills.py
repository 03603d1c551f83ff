"""Skill-Prompt*: written skills in the prompt of an agent that was not trained with them.

A skill file is plain text (one skill for every task) or JSON (task type to skill, ``"*"`` for all others). The skill
goes where the profile's template has its slot, by the same code that training uses. No skill is invented here.
"""

from __future__ import annotations

import json
from pathlib import Path

from seed_envs.trajectory import Trajectory

from ..errors import ConfigInvalid
from .base import SkillFor

#: Largest skill file, in bytes.
MAX_BYTES = 1_000_000


def load_skills(path: str | None) -> SkillFor | None:
    """Read a skill file.

    Args:
        path: ``.json`` for a table by task type, anything else is text; None for no skill.

    Raises:
        ConfigInvalid: When the file is missing, too large, empty, or not of that form.
    """
    if path is None:
        return None
    table = _read(Path(path))

    def skill_for(trajectory: Trajectory) -> str:
        return table.get(trajectory.task_type, table.get("*", ""))

    return skill_for


def _read(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigInvalid(f"skill file {path} has {path.stat().st_size} bytes, at most {MAX_BYTES} are read")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(f"skill file {path} cannot be read: {error}") from error
    if path.suffix != ".json":
        if not text.strip():
            raise ConfigInvalid(f"skill file {path} is empty")
        return {"*": text.strip()}
    try:
        table = json.loads(text)
    except ValueError as error:
        raise ConfigInvalid(f"skill file {path}: {error}") from error
    if not isinstance(table, dict) or not table or not all(isinstance(skill, str) for skill in table.values()):
        raise ConfigInvalid(f'skill file {path}: expected an object like {{"task type": "skill", "*": "skill"}}')
    return table
