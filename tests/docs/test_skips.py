"""No test is skipped in silence: every reason is on the list, and a reason that is not in order turns a run red."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from skip_list import need_of, read_needs

CALLS = ("skip", "skipif", "importorskip")


def reasons():
    """Every reason that the tests' source can give, with a question mark for what is filled in."""
    for path in sorted((Path(__file__).resolve().parents[1]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
                named = next((word.value for word in node.keywords if word.arg == "reason"), None)
                given = named or (node.args[0] if node.func.attr == "skip" and node.args else None)
                yield f"{path.name}:{node.lineno}", text_of(given)


def text_of(node):
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else "?"


def test_every_reason_to_skip_is_on_the_list():
    found = dict(reasons())
    assert len(found) > 40
    assert {place: reason for place, reason in found.items() if need_of(reason) not in read_needs()} == {}
    assert set(read_needs()) == {need_of(reason) for reason in found.values()}


SUITE = """
import pytest
def test_real_data(): pytest.skip("real data: missing")
def test_runs(): pass
"""
MORE = {
    "": "",
    "TextWorld": "pytest.importorskip('no_such_module', reason='TextWorld: not installed')",
    "not on the list": "def test_more(): pytest.skip('I do not feel like it')",
    "empty": "@pytest.mark.parametrize('x', [])\ndef test_more(x): pass",
}


@pytest.mark.parametrize(
    ("more", "machine", "processes", "red"),
    [
        ("TextWorld", None, 0, False),
        ("", "ci", 2, False),
        ("", "full", 0, True),
        ("TextWorld", "ci", 2, True),
        ("not on the list", "ci", 0, True),
        ("empty", "ci", 0, True),
    ],
)
def test_a_skip_that_is_not_in_order_turns_the_run_red(tmp_path, more, machine, processes, red):
    (tmp_path / "conftest.py").write_text("from skip_list import pytest_sessionfinish, pytest_terminal_summary\n")
    (tmp_path / "test_first.py").write_text(SUITE)
    (tmp_path / "test_second.py").write_text(f"import pytest\n{MORE[more]}\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SEED_MACHINE", "PYTEST"))}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1] / "helpers")
    if machine:
        environment["SEED_MACHINE"] = machine
    command = [sys.executable, "-m", "pytest", "-n", str(processes), "-m", "not slow", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert run.returncode == int(red), run.stdout
    assert "real data: 1 skipped; to bring back: export SEED_DATA_DIR" in run.stdout
    assert "slow tests: left out; to bring back: make test-all" in run.stdout
    if more == "TextWorld":
        assert "TextWorld: 1 skipped; to bring back: apt-get install cmake" in run.stdout
    assert ("not in order on a machine of kind" in run.stdout) == red
