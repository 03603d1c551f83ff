"""The documentation runs: programs and commands print what it says, links lead somewhere, generated pages are fresh."""

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
    [
        *REPO.glob("*.md"),
        *(REPO / "docs").rglob("*.md"),
        *(
            page
            for folder in ("seed_envs", "seed_trainer", "benchmarks")
            for page in (REPO / folder).rglob("README.md")
        ),
    ]
)
# Quick, offline commands whose output is the same everywhere; the others need data, a model, a server or a while.
REPEATABLE = ("seed-bench run --suite ", "python -m seed_envs.vision.sokoban show ")
FENCE = re.compile(r"```(\w+)\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


def python_blocks():
    """Python blocks that are directly followed by a text block: program and expected output."""
    for page in PAGES:
        for language, code, output in FENCE.findall(page.read_text(encoding="utf-8")):
            if language == "python" and output:
                yield pytest.param(code, output, id=f"{page.relative_to(REPO)}:{code.strip().splitlines()[0][:40]}")


def console_commands():
    """Our commands in console blocks: page, words, and the output shown below them or in the text block after it."""
    for page in PAGES:
        for language, code, following in FENCE.findall(page.read_text(encoding="utf-8")):
            if language != "console":
                continue
            for part in re.split(r"^\$ ", code.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
                line, _, output = part.partition("\n")
                words = shlex.split(line, comments=True)
                if words[0] in ("seed-train", "seed-bench", "seed-play", "seed-serve") or words[:2] == ["python", "-m"]:
                    yield page.relative_to(REPO), words, (output.strip() or following.strip())


def commands():
    """Every command of the documentation."""
    for page, words, _ in console_commands():
        yield pytest.param(words, id=f"{page}: {' '.join(words)[:60]}")


def repeatable_commands():
    """The commands that are run as they stand, with the output that is shown."""
    for page, words, output in console_commands():
        if output and " ".join(words).startswith(REPEATABLE):
            yield pytest.param(words, output, id=f"{page}: {' '.join(words)[:60]}")


@pytest.mark.parametrize(("code", "output"), list(python_blocks()))
def test_python_blocks_print_what_they_say(code, output, tmp_path):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == output.strip()


@pytest.mark.parametrize(("words", "output"), list(repeatable_commands()))
def test_commands_print_what_is_shown(words, output, tmp_path):
    call, rest = program(words)
    run = subprocess.run([*call, *rest], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert output in run.stdout


def program(words):
    """How this interpreter's environment runs a command, and the command's arguments."""
    if words[0] == "python":
        return [sys.executable, "-m", words[2]], words[3:]
    path = Path(sys.executable).parent / words[0]
    assert path.exists() or shutil.which(words[0]), f"{words[0]} is not installed"
    return [str(path) if path.exists() else words[0]], words[1:]


def run_help(words):
    call, rest = program(words)
    if rest and not rest[0].startswith("-") and words[0] not in ("seed-play", "seed-serve"):
        call.append(rest[0])
    run = subprocess.run([*call, "--help"], capture_output=True, text=True, cwd=REPO)
    return run, rest


@pytest.mark.parametrize("words", list(commands()))
def test_commands_in_the_documentation_exist_with_their_flags(words):
    if words[:2] in (["seed-train", "rl"], ["seed-train", "sft"]):
        # Their flags are every field of TRL's configurations, so the command itself is tried, without what earlier
        # commands of the page would have made.
        call, rest = program(words)
        options = ["--dry_run", "--no_preflight"]
        run = subprocess.run([*call, *rest, *options], capture_output=True, text=True, cwd=REPO)
        assert run.returncode == 0 or "does not exist; `seed-train data" in run.stderr, run.stderr
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


TINY = str(REPO / "seed_trainer" / "tiny" / "models" / "alfworld-tiny")
EXAMPLES = {
    "01_random_agent.py": ([], "50 steps, success False"),
    "02_llm_agent.py": ([TINY, "seed/ALFWorld-v0", "compact"], "max_steps, success False"),
    "03_evaluate.py": (["folder"], "85.9 % [75.0, 93.4]"),
    "04_train.py": (["folder"], "round 2: {'env/success': "),
    "05_new_environment.py": ([], "solved 16 of 16"),
    "06_stable_baselines3.py": (["512"], "solved before 0."),
}
# They talk to a server: test_agent_loops, test_serving_trainers.
APART = {"11_rllib.py"}  # In an environment of its own: test_rllib.
LOOPS = {"07_openai_tools.py", "08_smolagents.py", "09_langgraph.py", "10_train_over_a_server.py"}


@pytest.mark.parametrize("name", sorted({path.name for path in (REPO / "examples").glob("*.py")} - LOOPS - APART))
def test_examples_run_and_print_their_last_line(name, tmp_path):
    if name in ("02_llm_agent.py", "04_train.py"):
        pytest.importorskip("trl", reason="packages: examples with a model need trl")
    if name == "06_stable_baselines3.py":
        pytest.importorskip("stable_baselines3", reason="integrations: needs stable-baselines3")
    arguments, said = EXAMPLES[name]
    call = [sys.executable, str(REPO / "examples" / name), *arguments]
    run = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert said in run.stdout
