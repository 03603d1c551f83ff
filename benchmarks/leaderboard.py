"""``leaderboard``: many runs as one static page, suites across and agents down, without any script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from seed_envs.redaction import redact
from seed_envs.tables import percent, with_interval

from .errors import RunFolderInvalid
from .folder import RunFolder, write_bytes
from .report import stylesheet
from .runner import summarise_folder


def find_runs(folders: Sequence[Path]) -> list[RunFolder]:
    """The runs that folders are or hold, each once, in the order given and then by name.

    Raises:
        RunFolderInvalid: When one of them is no folder or holds no run.
    """
    found: dict[Path, RunFolder] = {}
    for folder in folders:
        inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        runs = [run for run in map(RunFolder, [folder, *inside]) if run.is_run()]
        if not runs:
            raise RunFolderInvalid(f"{folder} holds no run; make one with: seed-bench run --suite ... --out {folder}")
        found.update((run.path.resolve(), run) for run in runs)
    return list(found.values())


def write_leaderboard(folders: Sequence[Path], out: Path, title: str = "Results") -> tuple[Path, int]:
    """Write the page.

    Args:
        folders: Runs, or folders of runs.
        out: The file.
        title: Heading of the page.

    Returns:
        ``out`` and the number of runs on it.

    Raises:
        RunFolderInvalid: When a folder holds no run.
    """
    summaries = [redact(summarise_folder(run)) for run in find_runs(folders)]
    write_bytes(out, _page(summaries, title).encode())
    return out, len(summaries)


def _page(summaries: Sequence[dict[str, Any]], title: str) -> str:
    suites = sorted({summary["suite"] for summary in summaries})
    agents = list(dict.fromkeys(summary["agent"] for summary in summaries))
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for summary in summaries:
        cells.setdefault((summary["agent"], summary["suite"]), []).append(summary)
    head = "".join(f"<th class=num>{escape(suite)}</th>" for suite in suites)
    body = "".join(
        f"<tr><td>{escape(agent)}</td>"
        + "".join(f"<td class=num>{_cell(cells.get((agent, suite), []))}</td>" for suite in suites)
        + "</tr>"
        for agent in agents
    )
    style, policy = stylesheet()
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src {policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n<header><h1>{escape(title)}</h1>\n"
        f'<p class="muted">{len(summaries)} runs. Success per episode with its interval; faults of machinery are not '
        f"scored. Runs that are not complete are marked.</p></header>\n<main>\n<h2>Success</h2>\n"
        f'<div class="scroll"><table class="board"><thead><tr><th>agent</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>\n<h2>Every run</h2>\n"
        f'<div class="scroll"><table class="board"><thead><tr>{_heads()}</tr></thead>'
        f"<tbody>{''.join(map(_row, summaries))}</tbody></table></div>\n</main>\n</body>\n</html>\n"
    )


def _cell(summaries: Sequence[dict[str, Any]]) -> str:
    return "".join(
        f"<div>{escape(with_interval(s['success']['rate'], s['success']['interval']))}"
        f"<small>{escape(' · '.join(_remarks(s)))}</small></div>"
        for s in summaries
    )


def _remarks(summary: dict[str, Any]) -> Iterator[str]:
    counts = summary["counts"]
    yield f"{counts['scored']:,} episodes"
    if not summary["complete"]:
        yield f"not complete: {counts['failed']:,} failed, {counts['missing']:,} missing"


_COLUMNS = ("suite", "agent", "success", "score", "episodes", "steps", "tokens", "cost", "date", "software", "tasks")


def _heads() -> str:
    return "".join(f"<th>{name}</th>" for name in _COLUMNS)


def _row(summary: dict[str, Any]) -> str:
    last = (summary["attempts"] or [{}])[-1]
    software = last.get("software", {})
    versions = [f"seed-envs {software.get('seed_envs', '?')}"]
    versions += [f"{name} {version}" for name, version in sorted((software.get("packages") or {}).items())]
    tokens, steps = summary["tokens"], summary["steps"]["mean"]
    values = (
        summary["suite"],
        f"{summary['agent']} (profile {summary['prompt']['profile']})",
        with_interval(summary["success"]["rate"], summary["success"]["interval"]),
        percent(summary["score"]["mean"]),
        ", ".join(_remarks(summary)),
        "-" if steps is None else f"{steps:.1f}",
        f"{tokens['prompt'] + tokens['completion']:,}" if tokens["completion"] else "-",
        f"{tokens['cost']:.4f}" if tokens["cost"] else "-",
        str(last.get("started", "-"))[:10],
        ", ".join(versions),
        f"{summary['manifest']['name']} {summary['manifest']['sha256'][:12]}",
    )
    return "<tr>" + "".join(f"<td>{escape(value)}</td>" for value in values) + "</tr>"
