"""A static skill library: general advice and advice by task type, in a JSON file written before training."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from seed_envs.redaction import conceal


@dataclass(frozen=True)
class SkillLibrary:
    """General advice and advice by task type.

    Attributes:
        general: Advice for every task; may be empty.
        task_types: Advice by task type.
    """

    general: str
    task_types: dict[str, str]

    @classmethod
    def load(cls, path: str | Path) -> SkillLibrary:
        """Read a library.

        Raises:
            ValueError: If the file is missing or not of the form
                ``{"general": "...", "task_types": {"<type>": "..."}}``.
        """
        path = Path(path)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError(
                f"skill_library={str(path)!r} does not exist; `seed-train data --library` writes one"
            ) from None
        except json.JSONDecodeError as error:
            raise ValueError(f"skill_library={str(path)!r} is not JSON: {error}") from None
        types = record.get("task_types", {}) if isinstance(record, dict) else None
        if not isinstance(types, dict) or not all(isinstance(text, str) for text in types.values()):
            raise ValueError(f'{path}: expected {{"general": "...", "task_types": {{"<type>": "..."}}}}')
        return cls(str(record.get("general", "")), types)

    def save(self, path: str | Path) -> None:
        """Write the library."""
        record = {"general": self.general, "task_types": self.task_types}
        Path(path).write_text(json.dumps(conceal(record), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def skill(self, task_type: str) -> str:
        """Return general advice followed by the advice of a type; empty if there is neither."""
        return "\n".join(part for part in (self.general, self.task_types.get(task_type, "")) if part)
