"""``ls``: what can be evaluated, and the runs in a folder. Reads summaries and configurations, no episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seed_envs.tables import table, with_interval

from .agents.base import AGENTS
from .errors import RunFolderInvalid
from .folder import RunFolder
from .suites import TABLE


def list_suites() -> str:
    """A table of suites."""
    rows = [
        [suite.name, "-" if suite.tasks is None else f"{suite.tasks:,}", suite.env_id, suite.profile, suite.about]
        for suite in TABLE.values()
    ]
    return table(["suite", "tasks", "environment", "profile", "about"], rows)


def list_agents() -> str:
    """A table of agents."""
    return table(["agent", "what it is"], [[name, row.about] for name, row in AGENTS.items()])


def list_runs(folder: Path) -> str:
    """A table of the runs in a folder (or of the one run that it is).

    Raises:
        RunFolderInvalid: When there is no such folder.
    """
    if not folder.is_dir():
        raise RunFolderInvalid(f"{folder} is not a folder")
    candidates = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    rows = [_row(RunFolder(path)) for path in candidates if RunFolder(path).is_run()]
    if not rows:
        return f"no runs in {folder}"
    return table(["run", "suite", "agent", "scored", "success", "state"], rows)


def _row(folder: RunFolder) -> list[str]:
    try:
        return _intact_row(folder)
    except (RunFolderInvalid, KeyError, TypeError, AttributeError, ValueError, OSError) as error:
        reason = str(error) if isinstance(error, (RunFolderInvalid, OSError)) else f"{type(error).__name__}: {error}"
        return [str(folder.path), "-", "-", "-", "-", f"broken ({reason})"]


def _intact_row(folder: RunFolder) -> list[str]:
    config, summary = folder.read_config(), folder.read_summary()
    run = config["run"]
    head = [str(folder.path), run["suite"]["name"], run["agent"]["spec"]]
    if summary is None:
        return [*head, f"? / {config['planned']}", "-", "unfinished (resume it)"]
    counts: dict[str, Any] = summary["counts"]
    success = summary["success"]
    state = "complete" if summary["complete"] else f"{counts['failed']} failed, {counts['missing']} missing"
    scored = f"{counts['scored']} / {counts['planned']}"
    return [*head, scored, with_interval(success["rate"], success["interval"]), state]
