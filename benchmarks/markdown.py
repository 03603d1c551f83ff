"""Numbers as Markdown for the terminal. Formats what ``summary`` and ``compare`` computed, computes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from seed_envs.tables import number, number_with_interval, percent, table, with_interval

from .identity import differences

#: From this share on, cut replies explain a result.
_MANY_CUT = 0.05
_CUT_REMEDY = "raise --max-new-tokens, or switch thinking off with --thinking off"


def summary_markdown(summary: dict[str, Any]) -> str:
    """Head line, averages, families, how episodes ended, and what is missing."""
    counts, success, macro, score = (summary[key] for key in ("counts", "success", "macro", "score"))
    level = f"{100 * summary['confidence']:.0f} %"
    lines = [
        f"## {summary['suite']} | {summary['agent']}",
        "",
        f"{counts['scored']} of {counts['planned']} episodes scored ({counts['tasks']} tasks), "
        f"{counts['failed']} failed, {counts['missing']} missing. Intervals cover {level}.",
        "",
        table(
            ["", "value", "method"],
            [
                [
                    "success, micro (per episode)",
                    with_interval(success["rate"], success["interval"]),
                    success["method"],
                ],
                [
                    f"success, macro ({macro['families']} families)",
                    with_interval(macro["rate"], macro["interval"]),
                    macro["method"],
                ],
                ["score, micro", with_interval(score["mean"], score["interval"]), score["method"]],
                *(
                    [f"{name}, micro", with_interval(part["mean"], part["interval"]), part["method"]]
                    for name, part in summary["measures"].items()
                ),
            ],
        ),
    ]
    known = {"family": summary["families"], "optimal length": summary["lengths"], **summary["by"]}
    for label, groups in known.items():
        if len(groups) > 1:
            lines += ["", _group_table(label, groups)]
    if "perception" in summary:
        lines += ["", _perception_table(summary["perception"])]
    return "\n".join([*lines, "", *_notes(summary)])


def _group_table(label: str, groups: Sequence[dict[str, Any]]) -> str:
    measures = sorted({name for group in groups for name in group.get("measures", ())})
    rows = [
        [
            group["name"],
            str(group["tasks"]),
            str(group["n"]),
            with_interval(group["rate"], group["interval"]),
            percent(group["score"]),
            f"{group['steps']:.1f}",
            *(percent(group["measures"][name]) if name in group["measures"] else "-" for name in measures),
        ]
        for group in groups
    ]
    return table([label, "tasks", "episodes", "success", "score", "steps", *measures], rows)


def _perception_table(part: dict[str, Any]) -> str:
    p_value = "-" if part["p_value"] is None else f"{part['p_value']:.4f}"
    row = [percent(part["seen"]), percent(part["blind"]), with_interval(part["difference"], part["interval"]), p_value]
    return table(["with pictures", f"blind ({part['mode']})", "won by looking", "p"], [row])


def _notes(summary: dict[str, Any]) -> list[str]:
    counts, success, steps, repeats = (summary[key] for key in ("counts", "success", "steps", "repeats"))
    ends = ", ".join(f"{name} {count}" for name, count in summary["stop_reasons"].items())
    notes = [f"- ended by: {ends or '-'}"]
    if steps["mean"] is not None:
        notes.append(f"- steps: {steps['mean']:.2f} on average, {_faulty(steps)}")
    if repeats["per_task"] > 1:
        notes.append(
            f"- of {repeats['tasks']} tasks with {repeats['per_task']} repeats, "
            f"{percent(repeats['solved_once'])} were solved at least once, {percent(repeats['solved_always'])} always"
        )
    if counts["failed"]:
        errors = ", ".join(f"{name} {count}" for name, count in summary["errors"].items())
        notes.append(
            f"- failed episodes enter no average ({errors}); counted as failures, success would be "
            f"{percent(success['rate_if_errors_fail'])}"
        )
    replies = summary["replies"]
    if replies["cut"]:
        remedy = f" ({_CUT_REMEDY})" if replies["cut_share"] > _MANY_CUT else ""
        notes.append(f"- replies cut at the length limit: {replies['cut']:,} of {replies['total']:,}{remedy}")
    if replies["filtered"]:
        notes.append(f"- replies withheld by a content filter: {replies['filtered']:,} of {replies['total']:,}")
    tokens = summary["tokens"]
    if tokens["completion"]:
        cost = f", cost {tokens['cost']:.4f}" if tokens["cost"] else ""
        notes.append(f"- tokens: {tokens['prompt']:,} read, {tokens['completion']:,} written{cost}")
    notes += _software_notes(summary.get("attempts", []))
    needed = summary["power"]["tasks_needed"]
    if "0.05" in needed:
        notes.append(
            f"- to tell apart another run that differs by 5 points (80 % power): about {needed['0.05']:,} tasks, "
            "unpaired"
        )
    notes += data_notes(summary["data"])
    return notes


def data_notes(data: dict[str, Any]) -> list[str]:
    """What the tasks were made of, a line per kind of data, and a warning where there are too few."""
    notes = []
    for card in data["cards"]:
        files = ", ".join(f"{name} {digest[:12]}" for name, digest in card["files"].items())
        skipped = ", ".join(f"{reason}: {count:,}" for reason, count in card["skipped"].items())
        parts = [
            f"{card['kind']} data",
            f"{card['goals']} goals" if card["goals"] else "",
            f"split {card['split']} of {card['split_size']:,} tasks" if card["split_size"] is not None else "",
            files,
            f"left out: {skipped}" if skipped else "",
        ]
        notes.append(f"- tasks: {'; '.join(part for part in parts if part)}")
    if data["warning"]:
        notes.append(f"- warning: {data['warning']}; a rate over so few tasks says little")
    return notes


def _faulty(steps: dict[str, Any]) -> str:
    return (
        f"{percent(steps['invalid_format_share'])} of the replies unreadable, "
        f"{percent(steps['invalid_share'])} of the actions refused"
    )


def _software_notes(attempts: Sequence[dict[str, Any]]) -> list[str]:
    """What changed between attempts: a mixture is said to be one."""
    known = [(attempt["attempt"], attempt["identity"]) for attempt in attempts if attempt.get("identity")]
    return [
        f"- attempt {number} changed {', '.join(changed)}"
        for (_, before), (number, now) in itertools.pairwise(known)
        if (changed := differences(before, now))
    ]


def rivals_markdown(result: dict[str, Any]) -> str:
    """More than two runs: each with its interval, every pair, families, and on how many tasks they differ."""
    runs, pairs = result["runs"], result["pairs"]
    letters = [chr(ord("A") + index % 26) + ("" if index < 26 else str(index // 26)) for index in range(len(runs))]
    heads = [
        [letter, run["agent"], f"{run['episodes']:,}", with_interval(run["rate"], run["interval"])]
        for letter, run in zip(letters, runs, strict=True)
    ]
    rows = []
    for pair in pairs:
        success = pair["measures"]["success"]
        rows.append(
            [
                f"{letters[pair['second']]} - {letters[pair['first']]}",
                with_interval(success["difference"], success["interval"]),
                p_value(success["p_value"]),
                p_value(pair.get("p_corrected")),
                f"{success['only_second']} / {success['only_first']}",
            ]
        )
    lines = [
        f"## {result['suite']}: {len(runs)} runs",
        "",
        table(["", "agent", "episodes", "success"], heads),
        "",
        table(["pair", "success", "p", "p, corrected", "second better / first better"], rows),
        "",
        f"- p-values are paired by task; corrected: Holm, over {len(pairs)} pairs",
        f"- the runs disagree on {len(result['disagreements'])} tasks; a page shows them side by side: --out FILE",
    ]
    for number_, letter in enumerate(letters[1:]):
        parts = [
            f"{family['name'] or '(none)'} {with_interval(part['difference'], part['interval'])}"
            for family in result["families"]
            for part in [family["against_first"][number_]]
        ]
        if parts:
            lines.append(f"- {letter} - A by family: {'; '.join(parts)}")
    notes = {f"- note, {letters[p['first']]} and {letters[p['second']]}: {note}" for p in pairs for note in p["notes"]}
    return "\n".join([*lines, *sorted(notes)])


def p_value(value: float | None) -> str:
    """Four decimals, ``-`` for None."""
    return "-" if value is None else f"{value:.4f}" if value >= 0.0001 else "< 0.0001"


def comparison_markdown(result: dict[str, Any]) -> str:
    """Two runs side by side, the difference with interval and p-value, and what it would take to be sure."""
    first, second = result["first"], result["second"]
    rows = []
    for name, part in result["measures"].items():
        share = name != "reward"
        rows.append(
            [
                name,
                percent(part["first"]) if share else number(part["first"]),
                percent(part["second"]) if share else number(part["second"]),
                (with_interval if share else number_with_interval)(part["difference"], part["interval"]),
                p_value(part["p_value"]),
                f"{part['only_second']} / {part['only_first']}",
            ]
        )
    header = ["", "A", "B", "B - A", "p", "B better / A better"]
    success = result["measures"]["success"]
    lines = [
        f"## {result['suite']}: A = {first['agent']}, B = {second['agent']}",
        "",
        f"{success['tasks']} common tasks (manifest {result['manifest'][:12]}); "
        f"left out because a run has no scored episode: {result['left_out']}.",
        "",
        table(header, rows),
        "",
        f"- success: interval by {success['interval_method']}; p by {success['test']}",
    ]
    if success["minimal_difference"] is not None:
        lines.append(f"- these tasks detect a difference of {percent(success['minimal_difference'])} with 80 % power")
    if success["tasks_needed"] is not None:
        needed = success["tasks_needed"]
        size = f"about {needed:,}" if needed >= 20 else "fewer than 20"
        lines.append(f"- a true difference of this size takes {size} tasks to detect with 80 % power")
    return "\n".join([*lines, *(f"- note: {note}" for note in result["notes"])])
