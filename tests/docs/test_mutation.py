"""Mutation testing: which faults a module can be given, that the lists fit the code, and that a run tells the truth."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

from scripts.mutation.__main__ import HERE, read_core, read_equivalents, sample
from scripts.mutation.faults import faults_of, with_fault

SOURCE = '''
"""A text with 1 number."""
LIMIT: int = 3
def clip(x: float, low: float = 0.0) -> float:
    if x > LIMIT and low is not None:
        raise ValueError(f"{x} + 1")
    scaled = min(x, low) - 1
    if x:
        scaled = scaled * 2
    return sorted([scaled], key=abs)[0]
'''


def test_every_kind_of_fault_is_found_and_named_by_what_it_changes():
    faults = faults_of("m.py", SOURCE)
    found = {fault.name.removeprefix("m.py ") for fault in faults}
    assert {
        "module: LIMIT: int = 3  =>  LIMIT: int = 4",
        "clip: def clip(x: float, low: float=0.0) -> float:  =>  def clip(x: float, low: float=1.0) -> float:",
        "clip: if x > LIMIT and low is not None:  =>  if x >= LIMIT and low is not None:",
        "clip: if x > LIMIT and low is not None:  =>  if x > LIMIT or low is not None:",
        "clip: if x > LIMIT and low is not None:  =>  if x > LIMIT and low is None:",
        "clip: raise ValueError(f'{x} + 1')  =>  pass",
        "clip: scaled = min(x, low) - 1  =>  scaled = max(x, low) - 1",
        "clip: scaled = min(x, low) - 1  =>  scaled = min(x, low) + 1",
        "clip: scaled = min(x, low) - 1  =>  if x: comes first",
        "clip: if x:  =>  if not x:",
        "clip: return sorted([scaled], key=abs)[0]  =>  return [scaled][0]",
        "clip: return sorted([scaled], key=abs)[0]  =>  return sorted([scaled])[0]",
        "clip: return sorted([scaled], key=abs)[0]  =>  return sorted([scaled], key=abs)[1]",
    } <= found
    assert not any("text with 2" in name or "+ 2" in name for name in found), "texts are left alone"
    apart = "a = [2 * part for part in x]\nb = [part / 2 for part in x]\n"
    assert not any("comes first" in fault.name for fault in faults_of("m.py", apart)), "their items are no common name"
    changed = {ast.unparse(with_fault(SOURCE, fault.number)) for fault in faults}
    assert len(changed) == len(faults) == len(found) and ast.unparse(ast.parse(SOURCE)) not in changed


def test_a_sample_changes_only_where_the_code_does():
    before, moved = faults_of("m.py", SOURCE), faults_of("m.py", "x = 1\n\n" + SOURCE)
    names = [fault.name for fault in sample(before, 8, 0)]
    assert names == [fault.name for fault in sample(before, 8, 0)] != [fault.name for fault in sample(before, 8, 1)]
    again = [fault.name for fault in sample(moved, 8, 0) if "module: x" not in fault.name]
    assert set(again) <= set(names) and len(again) >= 7


def test_the_lists_fit_the_code(repo, monkeypatch):
    monkeypatch.chdir(repo)
    core = read_core(HERE / "core.ini")
    names = {fault.name for path in core for fault in faults_of(path, (repo / path).read_text(encoding="utf-8"))}
    assert len(names) > 500
    for test in {test for tests in core.values() for test in tests}:
        file, _, function = test.partition("::")
        assert f"def {function}(" in (repo / file).read_text(encoding="utf-8") if function else (repo / file).exists()
    equivalents = read_equivalents(HERE / "equivalents.txt")
    assert not equivalents.keys() - names, "faults that are gone"
    assert all(equivalents.values()), "every equivalent fault has its reason"


TOY = {
    "seed_envs/__init__.py": "",
    "seed_envs/toy.py": "assert True\n\ndef half(x):\n    return x / 2\n\ndef spare(x):\n    return x + 0\n",
    "conftest.py": "import seed_envs.toy\n",
    "good.py": "from seed_envs.toy import half\ndef test_half(): assert half(4) == 2\n",
    "bad.py": "def test_always(): assert False\n",
    "core.ini": "[seed_envs/toy.py]\ntests = {test}\n",
}


@pytest.mark.parametrize(("test", "code"), [("good.py", 1), ("bad.py", 2)])
def test_a_run_finds_what_survives_and_does_not_trust_tests_that_always_fail(repo, tmp_path, test, code):
    for name, text in TOY.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text.format(test=test) if name == "core.ini" else text)
    command = [sys.executable, "-m", "scripts.mutation", "--core", "core.ini"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{repo}"}
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert run.returncode == code, run.stdout + run.stderr
    if code == 1:
        assert "5 faults: {'failed': 3, 'passed': 2}; noticed or equivalent: 60.0%" in run.stdout
        assert " 60.0% of   5 in seed_envs/toy.py: {'failed': 3, 'passed': 2}" in run.stdout
        assert "survived: seed_envs/toy.py:7  seed_envs/toy.py spare: return x + 0  =>  return x - 0" in run.stdout
    else:
        assert "tests fail without a fault" in run.stdout
