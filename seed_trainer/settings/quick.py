"""Mistakes of a command line that are seen without PyTorch, which takes seconds to import.

Looks at names, at our own fields and at what must be given; :mod:`seed_trainer.settings.resolve` does the rest.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from seed_trainer.errors import UserError
from seed_trainer.settings.arguments import SEEDScriptArguments
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.settings.recipes import RECIPES
from seed_trainer.settings.resolve import Layers, flag_value, make_parser, read_layers

GRPO_SOURCES = ("transformers/training_args.py", "trl/trainer/base_config.py", "trl/trainer/grpo_config.py")
SFT_SOURCES = ("transformers/training_args.py", "trl/trainer/base_config.py", "trl/trainer/sft_config.py")
MODEL_SOURCE = "trl/trainer/model_config.py"


@dataclass
class Glance:
    """What a first look at a command line shows.

    Attributes:
        parts: Instances of our own dataclasses.
        layers: Presets, configuration file and remaining arguments.
    """

    parts: list[Any]
    layers: Layers

    def value(self, name: str) -> str:
        """What a flag, a file or a preset says about a field that is not ours, or ``""``."""
        given = flag_value(self.layers.arguments, name)
        return str((self.layers.values.get(name) if given is None else given) or "")

    def require(self, name: str, example: str) -> None:
        """Make sure that a field is given.

        Raises:
            UserError: When it is not.
        """
        if not self.value(name):
            raise UserError(f"set {name}: --{name} {example}")


def library_fields(sources: Sequence[str]) -> set[str]:
    """Names of the fields that configuration classes of other packages declare, read from their source."""
    found: set[str] = set()
    for source in sources:
        package, _, rest = source.partition("/")
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec is not None else []:
            path = Path(folder) / rest
            tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
            nodes = (node.target for node in ast.walk(tree) if isinstance(node, ast.AnnAssign))
            found.update(target.id for target in nodes if isinstance(target, ast.Name))
    return found


def fields_of_rl() -> set[str]:
    """Names of all fields that a configuration of ``seed-train rl`` may hold."""
    own = {item.name for part in (SEEDScriptArguments, SEEDOptions) for item in fields(part)}
    return own | library_fields((*GRPO_SOURCES, MODEL_SOURCE))


def look(
    argv: Sequence[str],
    parts: Sequence[Any],
    sources: Sequence[str],
    recipes: Mapping[str, Mapping[str, Any]] = RECIPES,
) -> Glance:
    """Read a command line as far as it goes without the packages that train.

    Args:
        argv: Arguments after the command.
        parts: Our own dataclasses.
        sources: Files that declare the other fields.
        recipes: What ``recipe`` may name.

    Raises:
        UserError: For what is wrong already.
    """
    parser = make_parser(parts)
    own = {action.dest for action in parser._actions}
    layers = read_layers(argv, sorted(own | library_fields((*sources, MODEL_SOURCE))), recipes)
    for action in parser._actions:
        action.default = layers.default(action)
        action.required = False
    try:
        instances = list(
            parser.parse_args_into_dataclasses(
                layers.arguments, return_remaining_strings=True, look_for_args_file=False
            )[: len(parts)]
        )
        for part in instances:
            if isinstance(part, SEEDOptions):
                part.check_options()
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from None
    return Glance(instances, layers)
