"""A pytest plugin: no test is skipped in silence; ``tests/skips.ini`` says what may be missing where."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).resolve().parent.parent / "skips.ini"


@dataclass(frozen=True)
class Need:
    """Something tests need and a machine may lack."""

    bring_back: str
    may_lack: frozenset[str]


def read_needs() -> dict[str, Need]:
    """Return the sections of the list by name."""
    parser = ConfigParser(interpolation=None)
    parser.read(LIST, encoding="utf-8")
    return {name: Need(row["bring_back"], frozenset(row["may_lack"].split())) for name, row in parser.items() if row}


def need_of(reason: str) -> str:
    """Return the part of a skip's reason that names a section."""
    return reason.removeprefix("Skipped: ").partition(":")[0]


def skipped_reasons(config: pytest.Config) -> Counter[str]:
    """Return the reasons of this run's skips with the number of tests (a module that is skipped whole counts once)."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    reports = {report.nodeid: report for report in reporter.stats.get("skipped", [])}
    return Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports.values())


def not_allowed(reasons: Counter[str], machine: str) -> list[str]:
    """Return the reasons that are not on the list for this kind of machine."""
    needs = read_needs()
    return [r for r in sorted(reasons) if need_of(r) not in needs or machine not in needs[need_of(r)].may_lack]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turn a run red that skipped what its kind of machine has."""
    machine = os.environ.get("SEED_MACHINE")
    if not machine or hasattr(session.config, "workerinput") or session.exitstatus != pytest.ExitCode.OK:
        return
    if not_allowed(skipped_reasons(session.config), machine):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> Iterator[None]:
    """End the output with what did not run and the command that brings it back."""
    yield
    needs, reasons = read_needs(), skipped_reasons(config)
    machine = os.environ.get("SEED_MACHINE")
    left_out = "not slow" in (config.option.markexpr or "")
    if reasons or left_out:
        terminalreporter.section("not run")
    for name in sorted({need_of(reason) for reason in reasons}):
        rows = {reason: count for reason, count in reasons.items() if need_of(reason) == name}
        back = needs[name].bring_back if name in needs else "not on the list in tests/skips.ini"
        terminalreporter.line(f"{name}: {sum(rows.values())} skipped; to bring back: {back}")
        for reason, count in sorted(rows.items()):
            terminalreporter.line(f"    {count} x {reason}")
    if left_out:
        terminalreporter.line("slow tests: left out; to bring back: make test-all")
    faults = not_allowed(reasons, machine) if machine else []
    if faults:
        terminalreporter.line(f"FAILED: not in order on a machine of kind {machine!r}:", red=True)
        for reason in faults:
            terminalreporter.line(f"    {reason}", red=True)
