"""The documentation runs: Python blocks print what they say, commands exist, generated pages are fresh."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for path in [
        REPO / "README.md",
        REPO / "CONTRIBUTING.md",
        *(REPO / "docs").rglob("*.md"),
        *REPO.glob("*/README.md"),
    ]
    if path.exists()
)
FENCE = re.compile(r"```(\w+)\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


def python_blocks():
    """Python blocks that are directly followed by a text block: program and expected output."""
    for page in PAGES:
        for language, code, output in FENCE.findall(page.read_text(encoding="utf-8")):
            if language == "python" and output:
                yield pytest.param(code, output, id=f"{page.relative_to(REPO)}:{code.strip().splitlines()[0][:40]}")


def commands():
    """Lines of console blocks that start with one of our commands."""
    for page in PAGES:
        for language, code, _ in FENCE.findall(page.read_text(encoding="utf-8")):
            if language != "console":
                continue
            for line in code.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True) if line.startswith("$ ") else []
                if words and (words[0] in ("seed-train", "seed-bench", "seed-play") or words[:2] == ["python", "-m"]):
                    yield pytest.param(words, id=f"{page.relative_to(REPO)}: {line[2:60]}")


@pytest.mark.parametrize(("code", "output"), list(python_blocks()))
def test_python_blocks_print_what_they_say(code, output, tmp_path):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == output.strip()


def run_help(words):
    program = Path(sys.executable).parent / words[0]
    if words[0] == "python":
        call = [sys.executable, "-m", words[2]]
        rest = words[3:]
    else:
        assert program.exists() or shutil.which(words[0]), f"{words[0]} is not installed"
        call, rest = [str(program) if program.exists() else words[0]], words[1:]
    if rest and not rest[0].startswith("-") and words[0] != "seed-play":
        call.append(rest[0])
    run = subprocess.run([*call, "--help"], capture_output=True, text=True, cwd=REPO)
    return run, rest


@pytest.mark.parametrize("words", list(commands()))
def test_commands_in_the_documentation_exist_with_their_flags(words):
    if words[:2] == ["seed-train", "rl"]:
        # Its flags are every field of TRL's configuration, so the command itself is tried, up to the first rollout.
        program = str(Path(sys.executable).parent / words[0])
        run = subprocess.run([program, *words[1:], "--dry_run"], capture_output=True, text=True, cwd=REPO)
        assert run.returncode == 0, run.stderr
        return
    run, rest = run_help(words)
    assert run.returncode == 0, run.stderr
    for flag in (word.split("=")[0] for word in rest if word.startswith("--")):
        assert flag in run.stdout or flag.replace("_", "-") in run.stdout, f"{flag} is not in the help"


def test_generated_environment_pages_are_fresh():
    run = subprocess.run(
        [sys.executable, str(REPO / "scripts" / "build_env_docs.py"), "--check"], capture_output=True, text=True
    )
    assert run.returncode == 0, f"{run.stdout}{run.stderr}\nrun: make docs"


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in PAGES:
        targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        broken += [
            f"{page.relative_to(REPO)} -> {target}"
            for target in targets
            if "://" not in target and not (page.parent / target).exists()
        ]
    assert not broken


def test_the_example_environment_solves_every_task():
    run = subprocess.run(
        [sys.executable, str(REPO / "examples" / "05_new_environment.py")], capture_output=True, text=True, check=True
    )
    assert "solved 16 of 16" in run.stdout
