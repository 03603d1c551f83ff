"""Commands of Search QA: `serve` (retrieval server), `index` (build an index), `manifests` (published questions)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from seed_envs.errors import SeedEnvsError
from seed_envs.search_qa.knowledge.styles import SPLITS
from seed_envs.search_qa.knowledge.world import SIZES


def _manifests(args: argparse.Namespace) -> int:
    from seed_envs.search_qa.tasks import make_manifest, manifest_name

    for split in SPLITS:
        manifest = make_manifest(args.size, args.seed, split)
        path = Path(args.output) / manifest_name(args.size, args.seed, split)
        manifest.save(path)
        print(f"{path}: {len(manifest)} questions, sha256 {manifest.sha256}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m seed_envs.search_qa", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    manifests = commands.add_parser("manifests", help="select the published questions of a generated world")
    manifests.add_argument("--size", choices=list(SIZES), default="default")
    manifests.add_argument("--seed", type=int, default=0)
    manifests.add_argument("--output", default=".", help="folder for the manifest files")
    manifests.set_defaults(run=_manifests)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    args = _parser().parse_args(arguments)
    try:
        return int(args.run(args))
    except (SeedEnvsError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
