"""``seed-bench``: run | ls | view | compare | leaderboard | validate | repair | merge.

Reads arguments, calls the modules that do the work, prints Markdown, and turns every user error into one line. Exit
code 0 only for a complete result, 1 for an incomplete one, 2 for a request that cannot be carried out, 130 when
interrupted.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seed_envs.command_line import COMPLETE, INCOMPLETE, INTERRUPTED, Parser, add_version, find_own_modules, run

from .options import EXAMPLES, add_run_options, default_out, give_back, megabytes, moved, resolve, with_file


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``seed-bench``.

    Args:
        arguments: Command line without the program's name; None reads ``sys.argv``.

    Returns:
        The exit code.
    """
    if threading.current_thread() is threading.main_thread():  # only there may a handler be set
        signal.signal(signal.SIGTERM, _as_interrupt)
    find_own_modules(arguments)
    return run(build_parser(), arguments)


def build_parser() -> Parser:
    """The whole command line."""
    parser = Parser(
        prog="seed-bench",
        description="Evaluate language agents on fixed lists of tasks, with intervals.",
        epilog=_MAIN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    play = _add(commands, "run", _run, "play a suite with an agent", EXAMPLES, argument_default=argparse.SUPPRESS)
    add_run_options(play)

    listing = _add(commands, "ls", _ls, "list suites and agents, or the runs in a folder", _LS_EXAMPLES)
    listing.add_argument("folder", nargs="?", type=Path, help="folder of runs (without it: suites and agents)")

    view = _add(commands, "view", _view, "write a run's report.html and print its summary", _VIEW_EXAMPLES)
    view.add_argument("folder", type=Path, help="folder of a run")
    view.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: report.html in the folder)")
    size_help = "transcripts beyond this size are left out, failures first in (default 80)"
    view.add_argument("--max-mb", type=megabytes, default=80.0, help=size_help)
    view.add_argument("--blind", type=Path, metavar="DIR", help="the agent's run with --blind: what it wins by looking")
    view.add_argument("--no-html", action="store_true", help="print only")

    compare = _add(commands, "compare", _compare, "compare runs on the same tasks", _COMPARE_EXAMPLES)
    compare.add_argument("first", type=Path, help="folder of run A")
    compare.add_argument("others", type=Path, nargs="+", metavar="second", help="folder of run B, and of further runs")
    compare.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    page_help = "write a page with a forest plot and the episodes on which runs disagree, side by side"
    compare.add_argument("--out", type=Path, metavar="FILE", help=page_help)

    board = _add(commands, "leaderboard", _leaderboard, "put many runs on one static page", _BOARD_EXAMPLES)
    board.add_argument("folders", type=Path, nargs="+", metavar="folder", help="a run, or a folder of runs")
    board.add_argument("--out", type=Path, default=Path("leaderboard.html"), metavar="FILE", help="(%(default)s)")
    board.add_argument("--title", default="Results", help="heading of the page")

    validate = _add(commands, "validate", _validate, "check that the oracle solves every suite", _VALIDATE_EXAMPLES)
    validate.add_argument("suites", nargs="*", help="names or families (default: every mini suite)")
    validate.add_argument("--all", action="store_true", help="every task instead of a sample")
    validate.add_argument("--sample", type=int, default=20, help="tasks per suite without --all (default 20)")
    validate.add_argument("--num-workers", type=int, default=0, help="worker processes (default 0)")

    repair = _add(commands, "repair", _repair, "take damaged lines out of a run and play their episodes again", _REPAIR)
    repair.add_argument("folder", type=Path, help="folder of the run")
    repair.add_argument("--no-play", action="store_true", help="only take them out")

    merge = _add(commands, "merge", _merge, "join the shards of one run", _MERGE_EXAMPLES)
    merge.add_argument("out", type=Path, help="new folder")
    merge.add_argument("parts", nargs="+", type=Path, help="folders of the shards")
    return parser


def _add(commands: Any, name: str, command: Any, about: str, examples: str, **extra: Any) -> Parser:
    parser: Parser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **extra,
    )
    parser.set_defaults(run=command, parser=parser)
    return parser


def _run(options: argparse.Namespace) -> int:
    from .folder import RunFolder
    from .markdown import summary_markdown
    from .preflight import tell
    from .progress import Progress
    from .runner import resume_run, start_run

    given = {key: value for key, value in vars(options).items() if key not in ("run", "parser")}
    if "resume" in given:
        alone = {"resume", "quiet", "agent", "env_arg", "accept_change", "no_preflight"}
        stored = give_back(RunFolder(given["resume"]).run_config(), given, given["resume"])
        config = moved(stored, {name: value for name, value in given.items() if name not in alone})
        progress, say = Progress(quiet="quiet" in given), None if "no_preflight" in given else tell
        result = resume_run(given["resume"], progress, config, say, given.get("accept_change", ()))
    else:
        given = with_file(given, options.parser)
        config = resolve(given)
        say = None if given.get("no_preflight") else tell
        if given.get("dry_run"):
            return _show_plan(config, given.get("out"), say)
        progress = Progress(quiet=bool(given.get("quiet")))
        command = ["seed-bench", *sys.argv[1:]]
        result = start_run(config, given.get("out") or default_out(config), command, progress, say)
    progress.close()
    print(summary_markdown(result.summary))
    print(f"\n{result.outcome}: {result.folder.path}")
    if result.outcome == "complete":
        print(f"report: seed-bench view {result.folder.path}")
        return COMPLETE
    if result.reason:
        print(f"stopped: {result.reason}")
    elif failure := _first_failure(result.folder):
        print(failure)
    print(f"continue: seed-bench run --resume {result.folder.path}")
    return INTERRUPTED if result.outcome == "interrupted" else INCOMPLETE


def _first_failure(folder: Any) -> str:
    """Return one line about the first episode that a fault ended, or nothing when there is none."""
    from .heads import read_run
    from .records import latest

    for record in latest(read_run(folder)).values():
        if record.error:
            message = " ".join(str(record.error["message"]).split())
            text = f"{record.error['type']}: {message}"
            return f"first failure: {record.task_id}: {text[:300]} (traceback: {folder.episodes})"
    return ""


def _show_plan(config: Any, out: Path | None, say: Any) -> int:
    from seed_envs.preflight import check_folder

    from .preflight import check_run
    from .setup_run import build_agent, prepare

    prepared = prepare(config)
    if say is not None:
        check_folder(out or default_out(config), "--out")
        agent = build_agent(config)
        try:
            check_run(prepared, agent, say)
        finally:
            agent.close()
    print(json.dumps({"run": config.to_json(), **prepared.identity(), "planned": len(prepared.plan)}, indent=2))
    for planned in prepared.plan[:5]:
        print(f"  {planned.index:>6}  {planned.task_id}  repeat {planned.repeat}  seed {planned.seed}")
    if len(prepared.plan) > 5:
        print(f"  ... {len(prepared.plan) - 5} more")
    return COMPLETE


def _ls(options: argparse.Namespace) -> int:
    from .listing import list_agents, list_runs, list_suites

    if options.folder is not None:
        print(list_runs(options.folder))
        return COMPLETE
    print(f"{list_suites()}\n\n{list_agents()}")
    if Path("runs").is_dir():
        print(f"\n{list_runs(Path('runs'))}")
    return COMPLETE


def _view(options: argparse.Namespace) -> int:
    from .compare import perception
    from .folder import RunFolder
    from .markdown import summary_markdown
    from .report import write_report
    from .runner import summarise_folder

    folder = RunFolder(options.folder)
    summary = summarise_folder(folder)
    if options.blind:
        summary["perception"] = perception(options.folder, options.blind)
    print(summary_markdown(summary))
    if not options.no_html:
        path = write_report(folder, summary, options.out or folder.report, max_bytes=int(options.max_mb * 1e6))
        print(f"\nreport: {path}")
    return COMPLETE if summary["complete"] else INCOMPLETE


def _compare(options: argparse.Namespace) -> int:
    from .compare import compare_runs
    from .compare_many import compare_many
    from .compare_page import write_comparison
    from .markdown import comparison_markdown, rivals_markdown

    several = compare_many([options.first, *options.others]) if len(options.others) > 1 or options.out else {}
    if len(options.others) > 1:
        result, shown = several, rivals_markdown
    else:
        result, shown = compare_runs(options.first, options.others[0]), comparison_markdown
    print(json.dumps(result, indent=2) if options.json else shown(result))
    if options.out is not None:
        path = write_comparison(several, options.out)
        if not options.json:
            print(f"\npage: {path}")
    return COMPLETE if result["left_out"] == 0 else INCOMPLETE


def _leaderboard(options: argparse.Namespace) -> int:
    from .leaderboard import write_leaderboard

    path, count = write_leaderboard(options.folders, options.out, options.title)
    print(f"{count} runs: {path}")
    return COMPLETE


def _validate(options: argparse.Namespace) -> int:
    from .suites import choose_suites
    from .validate import Verdict, validate_suites, verdicts_markdown

    def show(verdict: Verdict) -> None:
        print(
            f"{verdict.suite}: {'skipped' if verdict.skipped else f'{verdict.solved}/{verdict.played}'}",
            file=sys.stderr,
        )

    suites = choose_suites(options.suites)
    verdicts = validate_suites(suites, None if options.all else options.sample, options.num_workers, show)
    print(verdicts_markdown(verdicts))
    return COMPLETE if all(verdict.holds for verdict in verdicts) else INCOMPLETE


def _repair(options: argparse.Namespace) -> int:
    from .repair import repair_run

    done = repair_run(options.folder)
    for fault in done.faults:
        print(fault)
    if done.copy is None:
        print(f"{done.kept} lines, nothing to repair: {options.folder}")
    else:
        print(f"{done.kept} lines kept; the file as it was: {done.copy}")
    if options.no_play:
        return COMPLETE
    return _run(argparse.Namespace(resume=options.folder))


def _merge(options: argparse.Namespace) -> int:
    from .markdown import summary_markdown
    from .merge import merge_runs

    result = merge_runs(options.parts, options.out)
    print(summary_markdown(result.summary))
    print(f"\n{result.outcome}: {result.folder.path}")
    return COMPLETE if result.outcome == "complete" else INCOMPLETE


def _as_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


_MAIN_EXAMPLES = """\
examples:
  seed-bench ls
  seed-bench run --suite alfworld/mini --agent oracle --out runs/oracle
  seed-bench view runs/oracle
  seed-bench run --help

exit code: 0 complete, 1 incomplete, 2 a request that cannot be carried out, 130 interrupted
"""
_LS_EXAMPLES = "examples:\n  seed-bench ls\n  seed-bench ls runs\n"
_VIEW_EXAMPLES = "examples:\n  seed-bench view runs/alfworld_mini--oracle--20260101-120000\n"
_COMPARE_EXAMPLES = (
    "examples:\n  seed-bench compare runs/before runs/after\n"
    "  seed-bench compare runs/a runs/b runs/c --out compare.html\n"
)
_BOARD_EXAMPLES = "examples:\n  seed-bench leaderboard runs --out board.html\n"
_VALIDATE_EXAMPLES = "examples:\n  seed-bench validate\n  seed-bench validate alfworld --all --num-workers 2\n"
_REPAIR = "examples:\n  seed-bench repair runs/damaged\n  seed-bench repair runs/damaged --no-play\n"
_MERGE_EXAMPLES = "examples:\n  seed-bench merge whole part_1 part_2 part_3\n"


if __name__ == "__main__":
    sys.exit(main())
