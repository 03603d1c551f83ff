"""Commands: fetch, import and list games, write demonstrations and game files.

Run ``python -m seed_envs.alfworld --help``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from seed_envs.alfworld import cache, demos, download, receipt
from seed_envs.alfworld.cache import open_library
from seed_envs.alfworld.generator import scene_builder
from seed_envs.alfworld.library import OFFICIAL_SPLITS, open_source
from seed_envs.alfworld.pddl import read_problem
from seed_envs.alfworld.sources import DATA_VARIABLE, DOWNLOAD_COMMAND, ORIGINAL_FOLDER, TaskSource
from seed_envs.alfworld.tasks import SPLITS
from seed_envs.command_line import Parser, run
from seed_envs.data import cache_root, replacing
from seed_envs.data import data_dir as find_data
from seed_envs.profiles import get_profile
from seed_envs.trajectory import Trajectory


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: command line; ``None`` takes the process's.

    Returns:
        0 on success, 2 after a user error (its message goes to standard error).
    """
    return run(_parser(), arguments)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of tasks")
    return int(text)


def _parser() -> Parser:
    parser = Parser(
        prog="python -m seed_envs.alfworld",
        description="Official ALFWorld games: fetch, import, list, demonstrate.",
        epilog="Without any of this the environment plays generated games.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    fetch = commands.add_parser("download", help="fetch the official games and import them")
    fetch.add_argument("--output", type=Path, default=cache_root() / "alfworld", help="folder (default: %(default)s)")
    fetch.add_argument("--version", choices=sorted(download.ADDRESSES), default=download.DEFAULT_VERSION)
    fetch.add_argument("--url", default="", help="another address of the archive")
    fetch.add_argument("--sha256", default="", help="expected SHA-256 of the archive")
    fetch.set_defaults(run=_download)

    bring = commands.add_parser("import", help="compile all games of a folder, so that they open at once")
    bring.add_argument(
        "path",
        type=Path,
        nargs="?",
        help="folder with packs, trees of game.tw-pddl files or both (default: the folder the environment reads)",
    )
    bring.set_defaults(run=_import)

    show = commands.add_parser("list", help="print the task ids of a split in listed order")
    show.add_argument("split", choices=SPLITS)
    show.add_argument("--data-dir", type=Path)
    show.set_defaults(run=_list)

    demo = commands.add_parser("demos", help="write demonstrations as JSON lines, one trajectory each")
    demo.add_argument("split", choices=SPLITS)
    demo.add_argument("--expert", choices=("oracle", "explorer"), default="explorer")
    demo.add_argument("--profile", default="paper")
    demo.add_argument("--limit", type=_count, default=0, help="number of tasks (default: all)")
    demo.add_argument("--data-dir", type=Path)
    demo.add_argument("--output", type=Path, required=True)
    demo.set_defaults(run=_demos)

    write = commands.add_parser("export", help="write a game as game.tw-pddl, for the original engine")
    write.add_argument("task_id")
    write.add_argument("--data-dir", type=Path)
    write.add_argument("--output", type=Path, required=True)
    write.set_defaults(run=_export)

    rooms = commands.add_parser(
        "scenes", help="derive the generator's room templates from official games (maintainers)"
    )
    rooms.add_argument("path", type=Path)
    rooms.add_argument("--output", type=Path, required=True)
    rooms.set_defaults(run=_scenes)
    return parser


def _download(args: argparse.Namespace) -> None:
    url = args.url or download.ADDRESSES[args.version]
    counts = download.download(args.output, url=url, sha256=args.sha256, progress=download.progress_line("download"))
    receipt = json.loads((args.output / download.RECEIPT).read_text(encoding="utf-8"))
    print(f"{sum(counts.values()):,} games in {args.output}: {counts}")
    print(f"SHA-256 of the archive: {receipt['sha256']}")
    _import(argparse.Namespace(path=args.output))


def _import(args: argparse.Namespace) -> None:
    folder = find_data("alfworld", args.path, DATA_VARIABLE, DOWNLOAD_COMMAND, (ORIGINAL_FOLDER,)).resolve()
    started = time.perf_counter()
    path = cache.build_cache(folder, progress=download.progress_line("import"))
    built = time.perf_counter()
    open_library.cache_clear()
    library = open_library(folder)
    opened = time.perf_counter()
    print(f"{len(library.ids):,} games compiled in {built - started:.1f} s, opened in {opened - built:.3f} s: {path}")
    print(*receipt.lines(receipt.make(library)), sep="\n")


def _list(args: argparse.Namespace) -> None:
    for task_id in TaskSource(args.data_dir).ids(args.split):
        print(task_id)


def _demos(args: argparse.Namespace) -> None:
    source = TaskSource(args.data_dir)
    source.require(args.split)
    ids = source.ids(args.split)
    chosen = list(islice(ids, args.limit or None))
    get_profile(demos.ENV_ID, args.profile)  # What is misspelt is said before a file is touched.
    won = 0
    with replacing(args.output) as file:  # Opened before playing: a wrong path costs no play.

        def keep(trajectory: Trajectory) -> None:
            nonlocal won
            won += 1
            file.write(json.dumps(trajectory.to_json()) + "\n")
            file.flush()

        demos.demonstrations(
            chosen, expert=args.expert, profile=args.profile, data_dir=args.data_dir, on_finish=keep, keep=False
        )
    print(f"{won} of {len(chosen)} tasks won; written to {args.output}")


def _export(args: argparse.Namespace) -> None:
    document = TaskSource(args.data_dir).document(args.task_id)
    args.output.write_text(json.dumps(document), encoding="utf-8")
    print(f"written to {args.output}")


def _scenes(args: argparse.Namespace) -> None:
    library = open_source(args.path.resolve())
    official = [task_id for task_id in library.ids if task_id.split("/")[0] in OFFICIAL_SPLITS]
    problems = (
        (scene_builder.scene_number(task_id), read_problem(library.document(task_id)["pddl_problem"], task_id))
        for task_id in official
    )
    args.output.write_text(scene_builder.dump(scene_builder.derive(problems)), encoding="utf-8")
    print(f"room templates from {len(official):,} games written to {args.output}")


if __name__ == "__main__":
    sys.exit(main())
