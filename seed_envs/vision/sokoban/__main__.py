"""Commands: ``python -m seed_envs.vision.sokoban show | solve | pool | panels | gif`` (each has ``--help``)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from seed_envs.command_line import Parser, run
from seed_envs.vision.sokoban.generator import Difficulty


def _show(arguments: argparse.Namespace) -> None:
    """Prints levels with what is known about them."""
    import numpy as np

    from seed_envs.vision.sokoban.tasks import make_source
    from seed_envs.vision.sokoban.xsb import format_level

    source = make_source(arguments.levels, _kind(arguments))
    rng = np.random.default_rng(arguments.seed)
    for _ in range(arguments.count):
        task_id = source.choose(rng, arguments.split or source.default_split)
        oracle = source.load(task_id)
        steps = "unknown" if oracle.optimal_steps is None else oracle.optimal_steps
        print(f"; {task_id}, optimal steps: {steps}\n{format_level(oracle.level)}\n")


def _solve(arguments: argparse.Namespace) -> None:
    """Solves every level of a file and prints one line each."""
    from seed_envs.vision.sokoban.astar import PushSearch
    from seed_envs.vision.sokoban.solver import box_bits
    from seed_envs.vision.sokoban.xsb import load_levels

    for index, level in enumerate(load_levels(arguments.file)):
        search = PushSearch(level.height, level.width, level.fixed)
        found = search.solve(level.player, box_bits(level.boxes), arguments.max_states, arguments.max_seconds)
        print(f"{index}: {found.status}, {len(found.pushes)} pushes: {' '.join(found.actions)}")


def _pool(arguments: argparse.Namespace) -> None:
    """Writes a pool of distinct solved levels; with the same arguments always the same file."""
    import numpy as np

    from seed_envs.vision.sokoban.generator import generate_distinct
    from seed_envs.vision.sokoban.pools import Pool

    levels = generate_distinct(np.random.default_rng(arguments.seed), _kind(arguments), arguments.count)
    Pool.pack(levels).save(arguments.output)
    print(f"{arguments.output}: {len(levels)} levels, {Path(arguments.output).stat().st_size} bytes")


def _panels(arguments: argparse.Namespace) -> None:
    """Writes the manifests of the default validation and test panels, with a hash over the levels themselves."""
    from seed_envs.tasks import Manifest
    from seed_envs.vision.sokoban.sources import MANIFESTS, ClassicSource, RetrogradeSource, panel_hash

    kind = _kind(arguments)
    for source in (RetrogradeSource(kind), ClassicSource(kind.height, kind.width, kind.boxes)):
        for split in ("validation", "test"):
            ids = source.make_panel(split)
            name = f"{source.name}/{split}"
            meta = {"levels": panel_hash(source, ids), "made by": "python -m seed_envs.vision.sokoban panels"}
            path = MANIFESTS / f"{name.replace('/', '-')}.txt"
            path.parent.mkdir(exist_ok=True)
            Manifest(f"sokoban/{name}", tuple(ids), meta).save(path)
            print(path.name)


def _gif(arguments: argparse.Namespace) -> None:
    """Writes a GIF of the oracle playing."""
    import gymnasium as gym

    import seed_envs
    from seed_envs.vision.gif import record_oracle, save_gif

    gym.register_envs(seed_envs)
    env = gym.make(
        "seed/Sokoban-v0",
        levels=arguments.levels,
        size=arguments.size,
        boxes=arguments.boxes,
        min_steps=arguments.min_steps,
        max_steps=arguments.max_steps,
        obs_mode="text",
        tile=arguments.tile,
        render_mode="rgb_array",
        max_episode_steps=1000,
    )
    save_gif(record_oracle(env, range(arguments.seed, arguments.seed + arguments.count)), arguments.output)
    print(f"{arguments.output}: {Path(arguments.output).stat().st_size} bytes")


def _kind(arguments: argparse.Namespace) -> Difficulty:
    return Difficulty(arguments.size, arguments.size, arguments.boxes, arguments.min_steps, arguments.max_steps)


def _parser() -> Parser:
    parser = Parser(prog="python -m seed_envs.vision.sokoban", description="Sokoban levels and pictures.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    kind = Parser(add_help=False)
    kind.add_argument("--levels", default="retrograde", help="level source or path (default: retrograde)")
    kind.add_argument("--size", type=int, default=6, help="side of generated rooms (default: 6)")
    kind.add_argument("--boxes", type=int, default=1, help="boxes of generated levels (default: 1)")
    kind.add_argument("--min-steps", type=int, default=4, help="smallest optimal length (default: 4)")
    kind.add_argument("--max-steps", type=int, default=15, help="greatest optimal length (default: 15)")
    kind.add_argument("--seed", type=int, default=0, help="first seed (default: 0)")
    kind.add_argument("--count", type=int, default=3, help="number of levels or episodes (default: 3)")
    show = commands.add_parser("show", parents=[kind], help="print levels as XSB maps")
    show.add_argument("--split", default=None, help="split to draw from (default: the source's own)")
    show.set_defaults(run=_show)
    solve = commands.add_parser("solve", help="solve the levels of a file")
    solve.add_argument("file", help="an .xsb or Boxoban .txt file")
    solve.add_argument("--max-states", type=int, default=200_000, help="positions per level (default: 200000)")
    solve.add_argument("--max-seconds", type=float, default=60.0, help="seconds per level (default: 60)")
    solve.set_defaults(run=_solve)
    pool = commands.add_parser("pool", parents=[kind], help="write a pool of distinct solved levels")
    pool.add_argument("--output", required=True, help="file to write, usually *.pool")
    pool.set_defaults(run=_pool)
    commands.add_parser("panels", parents=[kind], help="write the manifests").set_defaults(run=_panels)
    gif = commands.add_parser("gif", parents=[kind], help="write a GIF of the oracle playing")
    gif.add_argument("--output", required=True, help="file to write")
    gif.add_argument("--tile", type=int, default=28, help="tile size in pixels (default: 28)")
    gif.set_defaults(run=_gif)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    return run(_parser(), argv, user_errors=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
