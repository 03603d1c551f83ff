"""Runs the tests of a module against the module with one fault, in a process of its own.

The parent has imported the large libraries and nothing of this project; every fault gets a fork of it, in which the
faulty module takes the place of the real one before anything imports it. Tests that start programs see the real one.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from scripts.mutation.faults import Fault, with_fault

LIBRARIES = ("numpy", "gymnasium", "hypothesis", "yaml", "httpx")
TRAINING = ("torch", "transformers", "trl", "datasets", "peft")
PACKAGES = {"seed_envs": "seed_envs", "seed_trainer": "seed_trainer", "benchmarks": "seed_benchmarks"}
#: Seconds of processor time after which a test is taken to hang; wall time would depend on what else runs.
CPU_LIMIT = 20.0
#: A test that hangs with a fault must pass without it in this; else the machine is slow and the fault shows nothing.
CPU_USUAL = CPU_LIMIT / 4


def load_libraries(paths: Sequence[str]) -> None:
    """Import once what every fork needs for faults in these modules."""
    for name in (*LIBRARIES, *(TRAINING if any(path.startswith("seed_trainer") for path in paths) else ())):
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    ours = [name for name in sys.modules if name.split(".")[0] in (*PACKAGES, *PACKAGES.values())]
    if ours:
        raise RuntimeError(f"{ours[0]} is imported already; faults would come too late")


def module_name(path: str) -> str:
    """The name under which a file of the checkout is imported."""
    first, *rest = Path(path).with_suffix("").parts
    return ".".join([PACKAGES[first], *rest]).removesuffix(".__init__")


class _Faulty(importlib.machinery.SourceFileLoader):
    """Loads a module with one of its faults."""

    def __init__(self, name: str, path: str, number: int) -> None:
        super().__init__(name, path)
        self.number = number

    def get_code(self, fullname: str) -> CodeType:
        """See the base class; nothing is cached."""
        tree = with_fault(Path(self.path).read_text(encoding="utf-8"), self.number)
        return compile(tree, self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    """Puts the faulty module in the place of the real one."""

    def __init__(self, fault: Fault) -> None:
        self.fault, self.name = fault, module_name(fault.path)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See the base class."""
        if fullname != self.name:
            return None
        file = str(Path(self.fault.path).resolve())
        folder = [str(Path(file).parent)] if Path(file).name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, file, loader=_Faulty(fullname, file, self.fault.number), submodule_search_locations=folder
        )


class _FirstFailure:
    """A pytest plugin that writes down the first test that fails or is not ready in time, and ends one that hangs."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.running, self.failed, self.limit = folder / "running", folder / "failed", limit

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Give the test its time; nobody handles the signal, so that it ends the process."""
        self.running.write_text(nodeid, encoding="utf-8")
        signal.setitimer(signal.ITIMER_PROF, self.limit)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the test's id; one that waited in vain for something is told apart."""
        crash = getattr(report.longrepr, "reprcrash", None)
        if report.failed and not (crash and "Timeout" in crash.message):
            self._write(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be imported any more."""
        if report.failed:
            self._write(report.nodeid)

    def _write(self, nodeid: str) -> None:
        if not self.failed.exists():
            self.failed.write_text(nodeid, encoding="utf-8")


def run_tests(tests: Sequence[str], fault: Fault | None, log: Path, limit: float = CPU_LIMIT) -> tuple[str, str]:
    """Run tests in a fork, stopping at the first failure.

    Args:
        tests: Files or test ids.
        fault: Fault to put in, or None for the real modules.
        log: File for what the tests print.
        limit: Seconds of processor time for a test.

    Returns:
        ``"passed"``, ``"failed"`` or ``"hung"`` (also: waited in vain), and the id of the test that was running.

    Raises:
        RuntimeError: When pytest could not run at all, or was killed from outside.
    """
    work = Path(tempfile.mkdtemp(prefix="mutation-"))
    try:
        status = _in_fork(lambda: _child(tests, fault, work, limit), log)
        running, failed = (
            path.read_text(encoding="utf-8") if path.exists() else "" for path in (work / "running", work / "failed")
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            raise RuntimeError(f"{running or tests} was ended by signal {number}: no memory left? see {log}")
        return ("hung" if number == signal.SIGPROF else "failed"), running
    code = os.WEXITSTATUS(status)
    if code == pytest.ExitCode.OK:
        return "passed", ""
    if failed:
        return "failed", failed
    if code == pytest.ExitCode.TESTS_FAILED:
        return "hung", running
    raise RuntimeError(f"pytest ended with code {code}; see {log}")


def _in_fork(work: Callable[[], int], log: Path) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    code = 70
    try:
        os.setsid()
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(handle, stream)
        code = work()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _child(tests: Sequence[str], fault: Fault | None, work: Path, limit: float) -> int:
    signal.setitimer(signal.ITIMER_PROF, limit)  # for importing; every test gets as much again
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(work / "hypothesis")
    if fault is not None:
        sys.meta_path.insert(0, _Finder(fault))
        try:  # pytest calls it a usage error when a conftest cannot be imported
            importlib.import_module(module_name(fault.path))
        except Exception as error:
            (work / "failed").write_text(f"import: {type(error).__name__}", encoding="utf-8")
            return int(pytest.ExitCode.TESTS_FAILED)
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
        "-m",
        "not slow",
        f"--basetemp={work / 'tmp'}",
    ]
    plugins: list[Any] = [_FirstFailure(work, limit)]
    return int(pytest.main([*options, *tests], plugins=plugins))
