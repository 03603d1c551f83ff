"""From defaults, recipe, method, YAML file and flags to one configuration that knows where each value comes from.

Later wins: defaults, recipe, method of the file, file, method given as a flag, flags. A method given as a flag takes
the place of the file's method altogether; what the file itself sets stays.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from seed_envs.errors import close_matches
from seed_envs.redaction import learn
from seed_trainer.errors import UserError
from seed_trainer.settings.options import source_of
from seed_trainer.settings.presets import METHODS, lookup
from seed_trainer.settings.recipes import RECIPES, ROWS

LATEST = "latest"
LOADERS = re.compile(
    "(LD|DYLD)_.*|GCONV_PATH|GLIBC_TUNABLES"  # the dynamic linker and the C library
    "|PATH|PYTHON.*|(BASH_)?ENV|IFS|SHELLOPTS|BASHOPTS"  # programs and shells that are started later
    "|_?JAVA_.*|JDK_JAVA_OPTIONS|CLASSPATH|JVM_PATH"
    "|CUDA_INJECTION.*|OMP_TOOL.*|NCCL_.*_PLUGIN|TRITON_.*_PATH",  # libraries with plug-ins
    re.IGNORECASE,
)
"""Variables that a configuration file, which people pass on to each other, may not set."""
CPU_FLAGS = "--use_cpu --bf16 false --gradient_checkpointing false"


@dataclass
class Resolved:
    """A resolved command line.

    Attributes:
        parts: The dataclass instances, in the order asked for.
        origin: Where the value of every field comes from.
    """

    parts: list[Any]
    origin: dict[str, str] = field(default_factory=dict)


def config_files() -> list[str]:
    """Return the names of the shipped configurations that are files."""
    folder = resources.files("seed_trainer") / "configs"
    return sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml"))


def config_names() -> list[str]:
    """Return the names of all shipped configurations: files, and the rows of the paper."""
    return [*config_files(), *ROWS]


def load_config(name: str) -> dict[str, Any]:
    """Read a YAML file by path, or a shipped configuration by name; a row of the paper is the recipe of its name.

    Raises:
        UserError: If there is no such file or name, or it is not a mapping.
    """
    import yaml

    path = Path(name)
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        if name not in config_names():
            hint = close_matches(name, config_names(), limit=1)
            raise UserError(f"--config {name!r} is neither a file nor one of {config_names()}.{hint}")
        if name in ROWS:
            return {"recipe": name}
        text = (resources.files("seed_trainer") / "configs" / f"{name}.yaml").read_text(encoding="utf-8")
    else:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"--config {name!r} cannot be read: {error.strerror}") from None
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"--config {name!r} is not valid YAML: {error}") from None
    if not isinstance(values, dict):
        raise UserError(f"--config {name!r} must hold a mapping of fields to values")
    variables = values.pop("env", None) or {}
    if not isinstance(variables, dict):
        raise UserError(f"--config {name!r}: env must map environment variables to values (the environment is env_id)")
    learn([values, variables])
    for variable in variables:
        if LOADERS.fullmatch(str(variable)):
            raise UserError(
                f"--config {name!r}: env may not set {variable}, by which programs choose the code they load; "
                "if it is meant, set it in the shell that starts seed-train"
            )
    os.environ.update({str(variable): str(value) for variable, value in variables.items()})
    return {str(key): value for key, value in values.items()}


def _take(arguments: list[str], flag: str) -> str | None:
    """Remove ``--flag value`` (or ``--flag=value``) from the arguments and return the value."""
    for index, argument in enumerate(arguments):
        if argument == f"--{flag}":
            if index + 1 >= len(arguments):
                raise UserError(f"--{flag} needs a value")
            value = arguments[index + 1]
            del arguments[index : index + 2]
            return value
        if argument.startswith(f"--{flag}="):
            del arguments[index]
            return argument.split("=", 1)[1]
    return None


def _bare_resume(arguments: list[str]) -> None:
    """Let ``--resume_from_checkpoint`` without a value mean the latest checkpoint."""
    if "--resume_from_checkpoint" in arguments:
        index = arguments.index("--resume_from_checkpoint")
        if index + 1 == len(arguments) or arguments[index + 1].startswith("--"):
            arguments.insert(index + 1, LATEST)


def _check_known(values: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in values:
        if key not in known:
            raise UserError(f"unknown field {key!r} in {where}.{close_matches(key, known, limit=2)}")


def _flags_given(arguments: Sequence[str]) -> list[str]:
    return [a.removeprefix("--").split("=", 1)[0].replace("-", "_") for a in arguments if a.startswith("--")]


def resolve(
    argv: Sequence[str],
    parts: Sequence[Any],
    description: str = "",
    recipes: Mapping[str, Mapping[str, Any]] = RECIPES,
    prog: str = "seed-train",
    foreign: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> Resolved:
    """Parse a command line into dataclasses.

    Args:
        argv: Arguments after the command.
        parts: Dataclasses whose fields are the known fields. With a field ``recipe`` or ``method`` presets apply.
        description: For ``--help``.
        recipes: What ``recipe`` may name.
        prog: Program and command, for ``--help``.
        foreign: Fields of another command whose configuration files may be given too; they are left out.
        renamed: What a field of such a file is called here.

    Raises:
        UserError: For unknown fields, methods, recipes or values.
    """
    known = [item.name for part in parts for item in dataclasses.fields(part) if item.init]
    parser = make_parser(parts, prog, description)
    options = parser._option_string_actions
    layers = read_layers(argv, known, recipes, foreign, renamed or {})
    for action in parser._actions:
        if action.dest in layers.values:
            action.default = layers.default(action)
            action.required = False
    try:
        instances = list(parser.parse_args_into_dataclasses(layers.arguments, look_for_args_file=False))
    except (ValueError, TypeError) as error:
        raise UserError(f"{error}{_cpu_hint(str(error))}") from None
    for instance in instances:
        _take_token(instance)
    flags = {options[f"--{name}"].dest: "flag" for name in _flags_given(layers.arguments)}
    return Resolved(instances, {**layers.origin, **flags})


def make_parser(parts: Sequence[Any], prog: str = "seed-train", description: str = "") -> Any:
    """A parser of dataclasses that reports bad values in one line instead of printing several hundred options."""
    from transformers import HfArgumentParser

    class Parser(HfArgumentParser):
        """Raises instead of leaving."""

        def error(self, message: str) -> NoReturn:
            raise UserError(message)

    description = f"{description} --config FILE_OR_NAME reads fields from a YAML file; flags win over it."
    return Parser(list(parts), prog=prog, description=description, allow_abbrev=False)


@dataclass
class Layers:
    """What stands below the flags: presets and a file, joined.

    Attributes:
        arguments: The command line without configuration and presets.
        values: Field -> value.
        origin: Field -> where the value comes from.
    """

    arguments: list[str]
    values: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)

    def default(self, action: Any) -> Any:
        """The default of a parser's action under these layers.

        Raises:
            UserError: For a line of a file without a value.
        """
        if action.dest not in self.values:
            return action.default
        value = self.values[action.dest]
        if value is None and action.default is not None:
            raise UserError(
                f"{action.dest} in {self.origin[action.dest]} has no value; write one, or leave the line out"
            )
        return _plain(value)


def read_layers(
    argv: Sequence[str],
    known: Sequence[str],
    recipes: Mapping[str, Mapping[str, Any]] = RECIPES,
    foreign: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> Layers:
    """Read configuration and presets of a command line, and check every name in it.

    Args:
        argv: Arguments after the command.
        known: Names of the fields.
        recipes: See :func:`resolve`, as for the rest.

    Raises:
        UserError: For unknown fields, methods, recipes or files.
    """
    arguments = list(argv)
    _bare_resume(arguments)
    config = _take(arguments, "config")
    values = load_config(config) if config else {}
    if foreign:
        values = _own(values, known, foreign, renamed or {})
    found = Layers(arguments)
    for name, layer in _layers(arguments, values, f"config {config}", known, recipes):
        _check_known(layer, known, name)
        for key, value in layer.items():
            found.values[key], found.origin[key] = value, name
    negated = [f"no_{name}" for name in known]
    _check_known(dict.fromkeys(_flags_given(arguments)), [*known, *negated, "config", "help"], "the flags")
    return found


def flag_value(arguments: Sequence[str], flag: str) -> str | None:
    """The value of a flag, or None where it is not given."""
    return _take(list(arguments), flag)


def _take_token(part: Any) -> None:
    """Hand a token for the hub to the hub's own variable: checkpoints hold the arguments, and they are uploaded."""
    if token := getattr(part, "hub_token", None):
        os.environ["HF_TOKEN"] = token
        part.hub_token = None


def _own(
    values: dict[str, Any], known: Sequence[str], foreign: Collection[str], renamed: Mapping[str, str]
) -> dict[str, Any]:
    """Return what another command's file says about our fields, with its recipe and method where we know neither."""
    other = set(foreign) - set(known)
    try:
        recipe = lookup(RECIPES, str(values.get("recipe") or "paper"), "recipe")
        method = METHODS.find(str(values.get("method") or "seed")).fields
    except ValueError as error:
        raise UserError(str(error)) from None
    presets = {} if "recipe" in known else {**recipe, **method}
    layers = {**{key: value for key, value in presets.items() if key in known or key in renamed}, **values}
    own = {renamed.get(key, key): value for key, value in layers.items()}
    return {key: value for key, value in own.items() if key not in other}


def _cpu_hint(message: str) -> str:
    """Say which flags let a configuration for a GPU pass on a machine without one, where transformers refuses it."""
    return f" Without a GPU, also to look at a --dry_run: {CPU_FLAGS}" if "use_cpu" in message else ""


def _layers(
    arguments: list[str],
    values: dict[str, Any],
    config: str,
    known: Sequence[str],
    recipes: Mapping[str, Mapping[str, Any]],
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the layers of values below the flags, weakest first, each with its name."""
    finders: dict[str, tuple[Callable[[str], Mapping[str, Any]], str]] = {
        "recipe": (lambda name: lookup(recipes, name, "recipe"), "paper"),
        "method": (lambda name: METHODS.find(name).fields, "seed"),
    }
    below: list[tuple[str, Mapping[str, Any]]] = []
    above: list[tuple[str, Mapping[str, Any]]] = []
    for preset, (find, default) in finders.items():
        if preset not in known:
            continue
        flag, in_file = _take(arguments, preset), values.pop(preset, None)
        name = flag or str(in_file or default)
        try:
            layer = (f"{preset} {name}", find(name))
        except ValueError as error:
            raise UserError(str(error)) from None
        if preset == "method" and flag:
            above.append(layer)
        elif flag or in_file or preset == "recipe":
            below.append(layer)
        origin = "flag" if flag else config if in_file else "default (paper)"
        above.append((origin, {preset: name}))
    return [*below, (config, values), *above]


def _plain(value: Any) -> Any:
    """Turn a value of a file into the text it would be on the command line, so that it is read and checked alike."""
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value) if isinstance(value, (bool, int, float)) else value


def default_source(item: dataclasses.Field[Any]) -> str:
    """Return where the default of a field comes from: paper, released, ours or trl."""
    return f"default ({source_of(item.metadata)})"
