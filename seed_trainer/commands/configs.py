"""``seed-train configs``: the shipped configurations, and what one of them holds, as YAML that can be edited."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import resources

import yaml

from seed_envs.command_line import Parser
from seed_envs.errors import close_matches
from seed_envs.tables import table
from seed_trainer.errors import UserError
from seed_trainer.settings.recipes import BACKBONES, ROWS, STAGES
from seed_trainer.settings.resolve import config_files, config_names


def build_parser() -> Parser:
    """The options."""
    parser = Parser(prog="seed-train configs", description=__doc__)
    parser.add_argument("name", nargs="?", help="configuration to print; without one all are listed")
    parser.add_argument("--stage", choices=list(STAGES), help="of a row of the paper: print this stage alone")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options: argparse.Namespace = build_parser().parse_args(list(argv))
    if options.name is None:
        rows = [(name, "seed-train rl", "a file") for name in config_files()]
        rows += [(row.name, "seed-train " + " | ".join(STAGES), BACKBONES[row.backbone].model) for row in ROWS.values()]
        print(table(("--config", "of", "what"), rows))
        print("\nseed-train configs NAME prints one: its commands and its fields.")
        return 0
    print(text(options.name, options.stage), end="")
    return 0


def text(name: str, stage: str | None = None) -> str:
    """Return a configuration as YAML.

    Args:
        name: What ``--config`` takes.
        stage: Stage of a row; None prints all of them, one document each, below its commands.

    Raises:
        UserError: For an unknown name, or a stage of a file.
    """
    if name not in config_names():
        raise UserError(f"configuration {name!r} is not shipped.{close_matches(name, config_names())}")
    if name not in ROWS:
        if stage:
            raise UserError(f"{name!r} is a file with fields of one command; leave --stage out")
        return (resources.files("seed_trainer") / "configs" / f"{name}.yaml").read_text(encoding="utf-8")
    commands = ROWS[name].commands
    documents = []
    for key, recipes in STAGES.items():
        if stage in (None, key):
            lines = "".join(f"# {command}\n" for command in commands[key])
            documents.append(lines + yaml.safe_dump(recipes[name], sort_keys=False, width=10_000))
    if stage is None:
        documents.append("".join(f"# {command}\n" for command in commands["evaluation"]))
    return "---\n".join(documents)
