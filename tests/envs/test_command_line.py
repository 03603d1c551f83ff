"""Every command line explains a mistake in one line, with a close match and the exit code 2."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys

import pytest

from seed_envs.command_line import Parser, add_version, run
from seed_envs.errors import DataMissing, close_matches

ENVIRONMENT_COMMANDS = ("alfworld", "webshop", "search_qa", "vision.sokoban", "vision.ezpoints")


def make_parser():
    parser = Parser(prog="tool")
    add_version(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    fetch = commands.add_parser("fetch")
    fetch.add_argument("--output", default="here")
    fetch.add_argument("--kind", choices=["small", "large"])
    fetch.set_defaults(run=lambda options: print(options.output))
    return parser


def refusal(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        run(make_parser(), arguments)
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "tool: the following arguments are required: COMMAND. See: tool --help"),
        (("fetsh",), "'fetsh' is not one of fetch. Did you mean 'fetch'? See: tool --help"),
        (("fetch", "--ouput", "x"), "tool fetch: unknown argument '--ouput'. Did you mean '--output'? See: tool fetch"),
        (("fetch", "--ouput=x"), "unknown argument '--ouput=x'. Did you mean '--output'?"),
        (("fetch", "--out", "x"), "Did you mean '--output'?"),  # no abbreviations
        (("fetch", "more"), "unknown argument 'more'. See: tool fetch --help"),
        (("fetch", "--kind", "Largo"), "'Largo' is not one of small, large. Did you mean 'large'?"),
    ],
)
def test_wrong_arguments_are_one_line_of_the_command_that_met_them(capsys, arguments, message):
    assert message in refusal(capsys, *arguments)


def test_a_command_runs_and_the_version_is_shown(capsys):
    assert run(make_parser(), ["fetch", "--output", "there"]) == 0
    assert capsys.readouterr().out == "there\n"
    with pytest.raises(SystemExit) as left:
        run(make_parser(), ["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("tool 0.")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (DataMissing("no data; run: fetch"), 2, "tool: no data; run: fetch\n"),
        (FileNotFoundError(2, "No such file or directory", "a/b"), 2, "tool: No such file or directory: 'a/b'\n"),
        (OSError(98, "Address already in use"), 2, "tool: Address already in use\n"),
        (KeyboardInterrupt(), 130, "tool: interrupted\n"),
    ],
)
def test_errors_for_the_user_are_one_line(capsys, error, code, said):
    def fail(_):
        raise error

    assert run(Parser(prog="tool"), [], fail) == code
    assert capsys.readouterr().err == said


def test_faults_of_the_program_are_not_hidden():
    def fail(_: argparse.Namespace) -> int:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        run(Parser(prog="tool"), [], fail)
    assert run(Parser(prog="tool"), [], fail, user_errors=(ValueError,)) == 2


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    command = f"{sys.executable} -m seed_envs.alfworld list compact_train | head -n 1"
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
    assert (shown.stdout, shown.stderr) == ("compact/train/0\n", "")


@pytest.mark.parametrize("name", ENVIRONMENT_COMMANDS)
def test_commands_of_every_environment_refuse_alike(capsys, name):
    main = importlib.import_module(f"seed_envs.{name}.__main__").main
    with pytest.raises(SystemExit) as left:
        main(["no-such-command"])
    complaint = capsys.readouterr().err
    assert left.value.code == 2
    assert complaint.startswith(f"python -m seed_envs.{name}: ") and complaint.count("\n") == 1


def test_close_names_are_found_whatever_their_case():
    assert close_matches("alfworl", ["seed/ALFWorld-v0", "seed/Sokoban-v0"]) == " Did you mean 'seed/ALFWorld-v0'?"
    assert close_matches("xyz", ["seed/ALFWorld-v0"]) == ""
