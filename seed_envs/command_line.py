"""What every command line of this project has in common: one-line errors with close matches, exit codes, ``--version``.

It knows no command. Exit codes: 0 complete, 1 incomplete, 2 a request that cannot be carried out, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from seed_envs import __version__
from seed_envs.errors import SeedEnvsError, close_matches
from seed_envs.redaction import guarded

COMPLETE, INCOMPLETE, REFUSED, INTERRUPTED = 0, 1, 2, 130


@contextmanager
def stoppable() -> Iterator[None]:
    """Treat a request to end like Ctrl-C, so that no child outlives this process and the end is told in one line."""
    try:
        earlier = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # Only the main thread may choose; another one cannot be interrupted either.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def find_own_modules(arguments: Sequence[str] | None) -> None:
    """Let a command that was started as a program import modules of the current folder, as ``python -m`` does.

    The folder goes to the end of the path, so that it hides no installed module.

    Args:
        arguments: What the command was called with; anything else than None leaves the path alone.
    """
    if arguments is None and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


class Parser(argparse.ArgumentParser):
    """An argument parser that explains a wrong option or choice in one line instead of printing the usage.

    Its sub-parsers are of the same class, and an unknown option is reported by the command that met it. Options cannot
    be abbreviated, so that a new option never changes what an old command line means.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes what :class:`argparse.ArgumentParser` takes."""
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def error(self, message: str) -> NoReturn:
        """Leaves with exit code 2 and one line."""
        stop = "" if message.endswith(("?", ".")) else "."
        self.exit(REFUSED, f"{self.prog}: {message}{stop} See: {self.prog} --help\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parses and refuses what it does not know; the second value is always empty."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            known = [option for action in self._actions for option in action.option_strings if len(option) > 2]
            hint = close_matches(unknown[0].split("=")[0], known, limit=1) if unknown[0].startswith("-") else ""
            self.error(f"unknown argument {unknown[0]!r}.{hint}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = None if action.choices is None else list(action.choices)
        if choices is not None and value not in choices:
            listed = ", ".join(map(str, choices))
            raise argparse.ArgumentError(action, f"{value!r} is not one of {listed}.{close_matches(value, choices)}")


def add_version(parser: argparse.ArgumentParser) -> None:
    """Adds ``--version``."""
    parser.add_argument("--version", action="version", version=f"{parser.prog} {__version__}")


def key_and_value(text: str) -> tuple[str, Any]:
    """Reads ``KEY=VALUE``; the value is JSON, or text where it is not.

    Raises:
        argparse.ArgumentTypeError: When it is not of that form.
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r}: expected KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def add_env_arg(parser: argparse.ArgumentParser, more: str) -> None:
    """Adds ``--env-arg``, whose pairs stand in ``env_arg``.

    Args:
        parser: Of a command that makes environments.
        more: What else is to be said of them.
    """
    words = f"argument of the environment, JSON value; {more}"
    parser.add_argument("--env-arg", type=key_and_value, action="append", default=[], metavar="KEY=VALUE", help=words)


def reader_gone() -> int:
    """What a command does about a ``BrokenPipeError``: stay silent, and return the exit code.

    Without it the interpreter complains once more while it closes the stream.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return INCOMPLETE


def run(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    command: Callable[[argparse.Namespace], int | None] | None = None,
    user_errors: tuple[type[Exception], ...] = (),
) -> int:
    """Parses a command line and runs its command.

    Args:
        parser: Declares the options.
        arguments: Command line without the program's name; None takes the process's.
        command: What runs; None takes ``run`` from the parsed options, where sub-commands put theirs.
        user_errors: Exceptions whose message is for the user, besides this package's errors and those of files.

    Returns:
        The command's exit code (None counts as 0), 2 after a user error, whose message is the only line on standard
        error, and 130 after an interruption. Nothing secret is printed (see ``redaction``).
    """
    with guarded(list(sys.argv if arguments is None else arguments)):
        return _run(parser, arguments, command, user_errors)


def _run(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    command: Callable[[argparse.Namespace], int | None] | None,
    user_errors: tuple[type[Exception], ...],
) -> int:
    options = parser.parse_args(arguments)
    for_the_user: tuple[type[Exception], ...] = (SeedEnvsError, *user_errors)
    try:
        code = (command or options.run)(options)
        sys.stdout.flush()
        return code or COMPLETE
    except for_the_user as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return reader_gone()
    except OSError as error:
        place = "" if error.filename is None else f": {str(error.filename)!r}"
        print(f"{parser.prog}: {error.strerror or error}{place}", file=sys.stderr)
        return REFUSED
