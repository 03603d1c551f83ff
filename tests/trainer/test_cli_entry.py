"""What ``seed-train`` does around every command: interruptions, and which warnings it keeps to itself."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence

import pytest

from seed_envs.command_line import INTERRUPTED
from seed_trainer import cli


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Sequence[str]], int]], int]:
    """Runs a function as ``seed-train doctor``."""

    class Module:
        main: Callable[[Sequence[str]], int]

    def run(function: Callable[[Sequence[str]], int]) -> int:
        module = Module()
        module.main = function
        monkeypatch.setattr(cli.importlib, "import_module", lambda name: module)
        return cli.main(["doctor"])

    return run


def test_an_interruption_is_one_line(
    command: Callable[[Callable[[Sequence[str]], int]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(argv: Sequence[str]) -> int:
        raise KeyboardInterrupt

    assert command(interrupted) == INTERRUPTED == 130
    assert capsys.readouterr().err == "\nseed-train doctor: interrupted\n"


def test_only_the_renaming_of_gradient_checkpointing_is_silent(
    command: Callable[[Callable[[Sequence[str]], int]], int], recwarn: pytest.WarningsRecorder
) -> None:
    def warns(argv: Sequence[str]) -> int:
        for name in ("gradient_checkpointing", "gradient_checkpointing_kwargs", "is_gradient_checkpointing"):
            warnings.warn(f"`{name}` is deprecated and will be removed in v6.", FutureWarning, stacklevel=1)
        warnings.warn("`gradient_clipping` is deprecated", FutureWarning, stacklevel=1)
        warnings.warn("`gradient_checkpointing` is deprecated", UserWarning, stacklevel=1)
        return 0

    assert command(warns) == 0
    assert [(str(seen.message), seen.category) for seen in recwarn] == [
        ("`gradient_clipping` is deprecated", FutureWarning),
        ("`gradient_checkpointing` is deprecated", UserWarning),
    ]


@pytest.mark.parametrize("module", ["seed_trainer", "seed_envs.play"])
def test_a_reader_that_has_gone_is_no_traceback(module: str) -> None:
    arguments = {"seed_trainer": ["rl", "--help"], "seed_envs.play": ["seed/Sokoban-v0", "--player", "oracle"]}
    reader, writer = os.pipe()
    os.close(reader)
    try:
        call = [sys.executable, "-m", module, *arguments[module]]
        done = subprocess.run(call, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=600)
    finally:
        os.close(writer)
    assert done.stderr == "" and done.returncode == 1
