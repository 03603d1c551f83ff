"""Putting the report page together. Everything a model or an environment wrote is escaped; nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from seed_envs.pages import gate_colour
from seed_trainer.report.data import Arm, Run, deviation, interval, mean, spread
from seed_trainer.report.svg import Line, chart, legend
from seed_trainer.watching.diagnostics import flat_metrics

CHARTS: tuple[tuple[str, str, bool], ...] = (
    ("eval_success", "Success on the panel", True),
    ("env/success", "Success in training", True),
    ("env/turns", "Turns per training episode", False),
    ("skill/valid", "Usable skills", True),
    ("opd/gate_mean", "Mean gate", True),
    ("opd/delta_mean", "Mean shift D, nats", False),
    ("entropy", "Entropy of the policy, nats", False),
    ("kl", "KL to the reference", False),
    ("ties/groups", "Tied groups", True),
)
COLUMNS: tuple[tuple[str, str], ...] = (
    ("eval_success", "panel success"),
    ("eval_success_macro", "macro"),
    ("eval_turns", "turns"),
    ("env/success", "training success"),
    ("skill/valid", "usable skills"),
    ("opd/gate_mean", "gate"),
    ("kl", "KL"),
)
SHARES = frozenset({"eval_success", "eval_success_macro", "env/success", "skill/valid", "opd/gate_mean"})
"""Columns that cannot leave [0, 1], whatever Student's t says about few seeds."""
COSTS: tuple[tuple[str, str], ...] = (
    ("time/rollout", "rollout"),
    ("time/skills", "skills"),
    ("time/teacher", "teacher"),
    ("time/scoring", "scoring"),
    ("time/update", "update"),
    ("step_time", "an optimiser step"),
    ("time/overhead", "overhead"),
    ("tokens/sampled", "tokens sampled"),
    ("tokens/teacher", "tokens by teacher"),
)
MAX_POINTS = 400
"""Points of a curve; longer ones are thinned evenly."""
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#222;background:#fff;max-width:1080px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.2rem;margin-top:2.2rem;border-bottom:1px solid #ddd}
p.note{color:#666;font-size:.9rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:1rem}
figure{margin:0;display:flex;flex-direction:column}figure svg{margin-top:auto}
figcaption{font-weight:600;font-size:.92rem}figcaption small{font-weight:400;color:#666;display:block}
td small{white-space:nowrap}
svg{width:100%;height:auto}.grid{stroke:#e4e4e4}.tick{font-size:11px;fill:#666}
.legend .key{margin-right:1.4rem;white-space:nowrap}.legend svg{width:34px;height:10px;margin-right:.4rem}
table{margin-bottom:.8rem;border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #eee}
th:first-child,td:first-child{text-align:left;white-space:nowrap}
.scroll{overflow-x:auto}details{border:1px solid #ddd;border-radius:6px;padding:.5rem .9rem;margin:.6rem 0}
summary{cursor:pointer}.won{color:#1a6b2f;font-weight:600}.lost{color:#9a3412;font-weight:600}
.skill{background:#f6f3e8;padding:.4rem .7rem;border-radius:4px;white-space:pre-wrap}
.turn{margin:.3rem 0;white-space:pre-wrap}.obs{color:#555}.act{font-weight:600}.bad{color:#9a3412}
.tokens{font:13px/1.9 ui-monospace,monospace;overflow-wrap:anywhere}
.tokens span{padding:.12em .15em;border-radius:3px;margin-right:1px}
.remark{color:#9a3412;font-size:.9rem}.env{color:#767676}.scale span{padding:.1em .6em;font:12px ui-monospace,monospace}
"""


def render(arms: Sequence[Arm], title: str = "Training report") -> str:
    """Return the page."""
    runs = [run for arm in arms for run in arm.runs]
    folders = ", ".join(escape(str(run.folder)) for run in runs)
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="note">{len(runs)} run(s): {folders}</p>',
        *_remarks(runs),
        "<h2>Curves</h2>",
        legend([arm.name for arm in arms]),
        '<p class="note">Mean over seeds; the band is one standard error over seeds (none with a single seed). '
        "Seeds per arm: " + escape(", ".join(f"{arm.name} {len(arm.runs)}" for arm in arms)) + ".</p>",
        f'<div class="charts">{"".join(_charts(arms))}</div>',
        "<h2>Last values</h2>",
        _table(arms, COLUMNS, last=True),
        *_over_seeds(arms),
        "<h2>Cost per round</h2>",
        _table(arms, COSTS, last=False),
        '<p class="note">Seconds and tokens, mean over rounds. Overhead is the time of skills and teacher over all '
        "other time of the same steps.</p>",
        *_panel(runs),
        "<h2>Episodes</h2>",
        '<p class="note">Colour is sigmoid(beta D) of a token: blue where the episode\'s skill makes it likelier, '
        "orange where it makes it less likely. Point at a token for its numbers.</p>",
        _scale(),
        *_episodes(runs),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _charts(arms: Sequence[Arm]) -> Iterable[str]:
    explained = flat_metrics()
    for name, title, unit in CHARTS:
        lines = []
        for style, arm in enumerate(arms):
            points = [(x, mean(values), spread(values)) for x, values in _thinned(arm.points(name))]
            if points:
                lines.append(Line(arm.name, points, style))
        if lines:
            meaning = escape(explained.get(name, ""))
            caption = f"<figcaption>{escape(title)}<small>{meaning}</small></figcaption>"
            yield f"<figure>{caption}{chart(title, lines, unit)}</figure>"


def _thinned(points: Sequence[Any]) -> Sequence[Any]:
    """Return at most about ``MAX_POINTS`` of the points, always with the last one."""
    step = -(-len(points) // MAX_POINTS)
    return points if step <= 1 else [*points[:-1:step], points[-1]]


def _remarks(runs: Sequence[Run]) -> Iterable[str]:
    for run in runs:
        for remark in run.remarks:
            yield f'<p class="remark">{escape(str(run.folder))}: {escape(remark)}</p>'


def _over_seeds(arms: Sequence[Arm]) -> list[str]:
    """Return mean, deviation and interval over the seeds of every arm that has several."""
    several = [arm for arm in arms if len(arm.runs) > 1]
    shown = [(name, label) for name, label in COLUMNS if any(arm.last(name) for arm in several)]
    if not shown:
        return []
    rows = [
        [f"{escape(arm.name)}, {len(arm.runs)} seeds", *(_statistics(arm.last(n), n in SHARES) for n, _ in shown)]
        for arm in several
    ]
    return [
        _html_table(["mean over seeds", *(escape(label) for _, label in shown)], rows),
        '<p class="note">Mean &plusmn; deviation over seeds, and the 95 % interval of the mean by Student\'s t.</p>',
    ]


def _statistics(values: Sequence[float], share: bool) -> str:
    if not values:
        return ""
    shown, limits = f"{mean(values):.3f} &plusmn; {deviation(values):.3f}", interval(values)
    if limits is None:
        return shown
    low, high = (max(0.0, limits[0]), min(1.0, limits[1])) if share else limits
    return f"{shown} <small>[{low:.3f}, {high:.3f}]</small>"


def _table(arms: Sequence[Arm], columns: Sequence[tuple[str, str]], last: bool) -> str:
    shown = [(name, label) for name, label in columns if any(run.series(name) for arm in arms for run in arm.runs)]
    rows = [[_label(run), *(_cell(run, name, last) for name, _ in shown)] for arm in arms for run in arm.runs]
    return _html_table(["run", *(escape(label) for _, label in shown)], rows)


def _html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already."""
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    top = "".join(f"<th>{cell}</th>" for cell in head)
    return f'<div class="scroll"><table><tr>{top}</tr>{lines}</table></div>'


def _label(run: Run) -> str:
    """The run's arm and random seed; a method may itself be called "seed"."""
    return f"{escape(run.arm)}, random seed {escape(str(run.seed))}"


def _cell(run: Run, name: str, last: bool) -> str:
    series = run.series(name)
    if not series:
        return ""
    value = series[-1][1] if last else mean([y for _, y in series])
    limits = [run.series(f"eval_success_{end}") for end in ("low", "high")] if name == "eval_success" else []
    if limits and all(limits):
        return f"{value:.3f} <small>[{limits[0][-1][1]:.3f}, {limits[1][-1][1]:.3f}]</small>"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3f}"


def _panel(runs: Sequence[Run]) -> list[str]:
    """Return the panel's success by task type at the last evaluation of every run."""
    names = sorted({n for run in runs for line in run.metrics for n in line if n.startswith("eval_success/")})
    if not names:
        return []
    # Long names of task types may break, so that the table stays as wide as the page.
    shown = [escape(name.removeprefix("eval_success/")).replace("_", "_<wbr>") for name in names]
    rows = [[_label(run), *(_cell(run, name, True) for name in names)] for run in runs]
    return ["<h2>Panel by task type</h2>", _html_table(["run", *shown], rows)]


def _scale() -> str:
    steps = "".join(f'<span style="background:{gate_colour(g / 10)}">{g / 10:.1f}</span>' for g in range(11))
    return f'<p class="scale">gate {steps}</p>'


def _episodes(runs: Sequence[Run]) -> Iterable[str]:
    for run in runs:
        for record in run.episodes:
            yield _episode(run, record)


def _episode(run: Run, record: dict[str, Any]) -> str:
    verdict = '<span class="won">solved</span>' if record["success"] else '<span class="lost">not solved</span>'
    summary = (
        f"{_label(run)}, round {record['round']}: "
        f"{escape(str(record['task_id']))}, {verdict} in {len(record['turns'])} turns, "
        f"advantage {record['advantage']:+.2f}"
    )
    turns = []
    for turn in record["turns"]:
        bad = "" if turn["valid"] else f' <span class="bad">({escape(turn["reason"])})</span>'
        turns.append(
            f'<div class="turn"><span class="obs">{escape(turn["observation"])}</span>\n'
            f'<span class="act">&gt; {escape(turn["reply"])}</span>{bad}</div>'
        )
    skill = escape(record["skill"] or "(none)")
    reason = f' <span class="bad">unusable: {escape(record["skill_reason"])}</span>' if record["skill_reason"] else ""
    tokens = "".join(f'<p class="tokens">{_tokens(row)}</p>' for row in record.get("rows", []) if row)
    return (
        f"<details><summary>{summary}</summary><p><b>Goal:</b> {escape(record['goal'])}</p>{''.join(turns)}"
        f'<p><b>Skill</b> ({escape(record["skill_origin"] or "no skill")}){reason}</p><div class="skill">{skill}</div>'
        f"{tokens}</details>"
    )


def _tokens(row: dict[str, Any]) -> str:
    parts = []
    for index, token in enumerate(row["tokens"]):
        text = escape(token) or "&middot;"
        if not row["mask"][index]:
            parts.append(f'<span class="env">{text}</span>')
            continue
        tip = f"student {row['student'][index]:.3f}" if "student" in row else "not scored"
        style = ""
        if "gate" in row:
            tip += f", teacher {row['teacher'][index]:.3f}, gate {row['gate'][index]:.3f}"
            style = f' style="background:{gate_colour(row["gate"][index])}"'
        parts.append(f'<span title="{tip}"{style}>{text}</span>')
    return " ".join(parts)
