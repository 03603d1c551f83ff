"""Commands: ``python -m seed_envs.vision.ezpoints gif | sheet | panels`` (each has ``--help``)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from seed_envs.command_line import Parser, run


def _gif(arguments: argparse.Namespace) -> None:
    """Writes a GIF of the oracle playing."""
    import gymnasium as gym

    import seed_envs
    from seed_envs.vision.gif import record_oracle, save_gif

    gym.register_envs(seed_envs)
    env = gym.make(arguments.env, obs_mode="text", render_mode="rgb_array")
    frames = record_oracle(env, range(arguments.seed, arguments.seed + arguments.count))
    save_gif(frames, arguments.output, seconds=0.7)
    print(f"{arguments.output}: {Path(arguments.output).stat().st_size} bytes")


def _sheet(arguments: argparse.Namespace) -> None:
    """Writes a picture of all 52 cards."""
    from PIL import Image

    from seed_envs.vision.ezpoints.render import card_sheet

    Image.fromarray(card_sheet()).quantize(64).save(arguments.output, optimize=True)
    print(f"{arguments.output}: {Path(arguments.output).stat().st_size} bytes")


def _panels(arguments: argparse.Namespace) -> None:
    """Writes the manifests of the validation and test panels, with a hash over the hands themselves."""
    from seed_envs.tasks import Manifest
    from seed_envs.vision.ezpoints.rules import ezpoints, points24
    from seed_envs.vision.ezpoints.tasks import MANIFESTS, HandSource, hand_hash

    MANIFESTS.mkdir(exist_ok=True)
    for puzzle, hands in ((ezpoints(), "classic"), (ezpoints(), "uniform"), (points24(), "uniform")):
        source = HandSource(puzzle, hands)
        for split in ("validation", "test"):
            ids = tuple(source.task_ids(split))
            meta = {"hands": hand_hash(source.load, ids), "made by": "python -m seed_envs.vision.ezpoints panels"}
            path = MANIFESTS / f"{source.name}-{split}.txt"
            Manifest(f"{puzzle.name}/{source.name}/{split}", ids, meta).save(path)
            print(path.name)


def _parser() -> Parser:
    parser = Parser(prog="python -m seed_envs.vision.ezpoints", description="Card games: pictures.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    gif = commands.add_parser("gif", help="write a GIF of the oracle playing")
    gif.add_argument("--env", default="seed/EZPoints-v0", help="environment id (default: seed/EZPoints-v0)")
    gif.add_argument("--seed", type=int, default=0, help="first seed (default: 0)")
    gif.add_argument("--count", type=int, default=3, help="number of episodes (default: 3)")
    gif.add_argument("--output", required=True, help="file to write")
    gif.set_defaults(run=_gif)
    sheet = commands.add_parser("sheet", help="write a picture of all 52 cards")
    sheet.add_argument("--output", required=True, help="file to write")
    sheet.set_defaults(run=_sheet)
    commands.add_parser("panels", help="write the manifests").set_defaults(run=_panels)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    return run(_parser(), argv, user_errors=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
