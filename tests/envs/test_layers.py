"""Who may import whom, what an import costs, and what the wheel holds."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGES = ("seed_envs", "seed_trainer", "benchmarks")
FORBIDDEN = {
    "seed_envs": ("seed_trainer", "seed_benchmarks", "benchmarks"),
    "seed_trainer": ("seed_benchmarks", "benchmarks"),
    "benchmarks": ("seed_trainer", "seed_benchmarks", "benchmarks"),  # its own modules are imported relatively
}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_nobody_imports_upwards(repo, package):
    offenders = [
        f"{path.relative_to(repo)}: {name}"
        for path in sorted((repo / package).rglob("*.py"))
        for name in imports(path)
        if name.split(".")[0] in FORBIDDEN[package]
    ]
    assert not offenders


FAMILIES = ("alfworld", "webshop", "search_qa", "vision")
ROOMS = (
    "errors",  # of all
    *("settings", "acting", "skills", "learning", "watching", "keeping"),  # the wings
    *("report", "stage1", "tiny", "run", "trainer"),
    *("commands", "quickstart", "cli"),
)
"""The rooms of ``seed_trainer`` from the ground up: each may import itself and those before it."""


@pytest.fixture(scope="module")
def graph(repo):
    """What each module of the packages imports of them, at the top of the file or inside a function."""
    paths = [path.relative_to(repo) for package in PACKAGES for path in sorted((repo / package).rglob("*.py"))]
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    return {name: ours(repo / path, name, path.name == "__init__.py", names) for name, path in names.items()}


def ours(path, name, is_package, names):
    home = name.split(".") if is_package else name.split(".")[:-1]
    found = imports(path)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            above = home[: len(home) + 1 - node.level] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            # `from package import module` depends on the module; on the package only for its own names.
            found.discard(source)
            found |= {inner if (inner := f"{source}.{item.name}") in names else source for item in node.names}
    return found & set(names) - {name}


def test_no_module_imports_itself_by_way_of_others(graph):
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError with the circle


def test_the_trainer_is_built_from_the_ground_up(graph):
    offenders = []
    for name, imported in graph.items():
        package, _, rest = name.partition(".")
        if package != "seed_trainer" or not rest or name.endswith("__main__"):  # entry points stand on top of all
            continue
        room = ROOMS.index(rest.split(".")[0])  # a room that is not found here needs its place above
        below = {f"seed_trainer.{other}" for other in ROOMS[: room + 1]}
        upwards = {other for other in imported if other.split(".")[0] == package} - {package}
        offenders += [f"{name}: {other}" for other in upwards if ".".join(other.split(".")[:2]) not in below]
    assert not offenders


def test_environments_know_neither_each_other_nor_are_known_below(graph):
    """What is common reaches a family by its row in the registration table, as text."""
    offenders = []
    for name, imported in graph.items():
        if not name.startswith("seed_envs."):
            continue
        own = name.split(".")[1]
        strangers = {f"seed_envs.{family}" for family in FAMILIES if family != own}
        offenders += [f"{name}: {other}" for other in imported if ".".join(other.split(".")[:2]) in strangers]
    assert not offenders


HEAVY = (
    "torch",
    "transformers",
    "trl",
    "textworld",
    "flask",
    "selenium",
    "faiss",
    "numba",
    "jnius",
    "pandas",
    "ray",
    "openenv",
    "fastapi",
)


@pytest.mark.parametrize("module", ["seed_envs", "seed_envs.wrappers", "seed_envs.rollout", "seed_envs.play"])
def test_importing_the_library_loads_nothing_heavy(module):
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_package_folder_is_listed(repo):
    config = ConfigParser()
    config.read(repo / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    found = {
        str(path.parent.relative_to(repo)).replace(os.sep, ".")
        for package in PACKAGES
        for path in (repo / package).rglob("__init__.py")
    }
    mapped = {
        name.replace("benchmarks", "seed_benchmarks", 1) if name.startswith("benchmarks") else name for name in found
    }
    assert listed == mapped


@pytest.fixture(scope="module")
def wheel(repo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(folder), str(repo)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert run.returncode == 0, run.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_the_harness_under_its_own_name_only(wheel):
    top = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {"seed_envs", "seed_trainer", "seed_benchmarks"} <= top
    assert not {"benchmarks", "tests", "docs", "scripts"} & top


def test_every_tracked_file_of_the_packages_is_in_the_wheel(repo, wheel):
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES], capture_output=True, text=True, cwd=repo, check=True
    ).stdout.split()
    # Results and speed scripts' reports are records of the repository, not part of the installed harness.
    wanted = {name.replace("benchmarks/", "seed_benchmarks/", 1) for name in listed if "/results/" not in name}
    assert wanted - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_a_bare_venv_plays_an_episode_from_another_folder(wheel, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = venv / "bin" / "python"
    install = subprocess.run([str(python), "-m", "pip", "install", "-q", str(wheel)], capture_output=True, text=True)
    if "Failed to establish a new connection" in install.stderr or "No matching distribution" in install.stderr:
        pytest.skip("package index: none can be reached, so a bare environment cannot be made")
    assert install.returncode == 0, install.stderr
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SEED_DATA_DIR")}
    run = subprocess.run(
        [str(venv / "bin" / "seed-play"), "seed/ALFWorld-v0", "--player", "oracle", "--seed", "1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=clean,
    )
    assert run.returncode == 0, run.stderr
    assert "success: True" in run.stdout
    listed = subprocess.run([str(python), "-m", "pip", "list"], capture_output=True, text=True, check=True).stdout
    assert "torch" not in listed
