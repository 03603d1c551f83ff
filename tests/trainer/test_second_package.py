"""A small second package, installed beside this one, adds an environment and a row of every kind to every command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from byte_model import save_byte_model

ENTRY_POINTS = """\
[seed_envs.environments]
demo/Guess-v0 = guess_game:ROW
demo/Broken-v0 = guess_game_that_is_gone:ROW
[seed_envs.suites]
demo/first_four = guess_rows:SUITE
[seed_envs.agents]
always = guess_rows:AGENT
[seed_envs.annotators]
plain = guess_rows:annotate
[seed_envs.retrievers]
shelf = guess_rows:ENGINE
[seed_envs.methods]
steep = guess_rows:METHOD
[seed_envs.analyzers]
haiku = guess_rows:ANALYZER
"""


def build_wheel(repo: Path, folder: Path) -> Path:
    """The example as an installable package, packed by hand: no build tool is needed."""
    info = "seed_guess-1.0.dist-info"
    files = {
        "guess_game.py": (repo / "examples" / "05_new_environment.py").read_text(encoding="utf-8"),
        "guess_rows.py": (repo / "tests/helpers/second_package/guess_rows.py").read_text(encoding="utf-8"),
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: seed-guess\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": ENTRY_POINTS,
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    path = folder / "seed_guess-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return path


@pytest.fixture(scope="module")
def shell(repo, tmp_path_factory):
    """Runs a command of a bare virtual environment in which both packages are installed."""
    folder = tmp_path_factory.mktemp("second")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "shared.pth").write_text("\n".join([str(repo), *(path for path in sys.path if "site-packages" in path)]))
    (site / "seed_benchmarks").symlink_to(repo / "benchmarks")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*pip, str(build_wheel(repo, folder))], check=True)
    mains = {"seed-play": "seed_envs.play", "seed-bench": "seed_benchmarks.cli", "seed-train": "seed_trainer.cli"}
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONSAFEPATH")}

    def run(command: str, *arguments: str, code: int = 0) -> str:
        start = f"import sys; sys.path.pop(0); from {mains[command]} import main; sys.exit(main())"
        call = [str(venv / "bin" / "python"), "-c", start, *arguments]
        done = subprocess.run(call, capture_output=True, text=True, cwd=folder, env=clean, check=False)
        assert done.returncode == code, f"{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    run.folder = folder  # type: ignore[attr-defined]
    return run


def test_it_is_played(shell):
    assert "success: True" in shell("seed-play", "demo/Guess-v0", "--player", "oracle", "--task-id", "number-3")


def test_it_is_benched_with_a_suite_and_an_agent_of_its_own(shell):
    listed = shell("seed-bench", "ls")
    assert "demo/first_four" in listed and "always:NUMBER" in listed
    for suite, scored in (("demo/first_four", 4), ("guess_game:demo/Guess-v0", 16)):
        command = ["run", "--suite", suite, "--agent", "always:2", "--num-workers", "2", "--quiet"]
        out = shell("seed-bench", *command, "--out", f"bench_{scored}_{suite[:9].replace('/', '_')}")
        assert f"{scored} of {scored} episodes scored" in out
        assert f"success {1}" in out and f"max_steps {scored - 1}" in out


def test_stage_1_data_is_collected_with_an_annotator_and_an_analyzer_of_its_own(shell):
    command = ["data", "--env_id", "demo/Guess-v0", "--tasks", "4", "--repeats", "1", "--output_dir", "data"]
    shell("seed-train", *command, "--annotator", "plain", "--analyzer", "haiku")
    records = [json.loads(line) for line in (shell.folder / "data" / "sft.jsonl").read_text().splitlines()]
    asked = json.dumps(records)
    assert len(records) == 4 and "five plain words about number-" in asked and "Answer in three lines." in asked


def test_its_prompts_are_inspected_with_the_annotator_of_its_row(shell):
    look = ["--analyzer", "guess_rows:ANALYZER"]  # the oracle guesses in one turn
    shown = shell("seed-train", "inspect", "--env_id", "guess_game:demo/Guess-v0", *look)
    assert "Halve the range" in shown and "Answer in three lines." in shown and "student prompt, turn 0" in shown


@pytest.mark.slow
def test_a_model_is_trained_on_it_by_a_method_of_its_own(shell):
    model = save_byte_model(shell.folder / "model")
    sft = ["sft", "--data", "data", "--model_name_or_path", model, "--output_dir", "stage1", "--max_steps", "1"]
    cpu = ["--use_cpu", "--bf16", "False", "--gradient_checkpointing", "False", "--report_to", "none"]
    if not (shell.folder / "data").exists():
        shell("seed-train", "data", "--env_id", "demo/Guess-v0", "--tasks", "4", "--output_dir", "data")
    shell("seed-train", *sft, *cpu, "--max_length", "4000")
    rl = [
        "rl",
        "--env_id",
        "demo/Guess-v0",
        "--method",
        "steep",
        "--model_name_or_path",
        "stage1",
        "--output_dir",
        "rl",
    ]
    rl += ["--rounds", "1", "--num_generations", "2", "--steps_per_generation", "2", "--max_turn_length", "4"]
    rl += ["--per_device_train_batch_size", "2", "--eval_split", "train", "--eval_tasks", "2"]
    out = shell("seed-train", *rl, *cpu, "--max_analysis_length", "4", "--max_prompt_length", "2000")
    assert "run folder: rl" in out
    run = json.loads((shell.folder / "rl" / "run.json").read_text())
    assert run["training"]["learning_rate"] == 0.25 and run["script"]["env_id"] == "demo/Guess-v0"
    metrics = [json.loads(line) for line in (shell.folder / "rl" / "metrics.jsonl").read_text().splitlines()]
    assert any("env/success" in record for record in metrics)


def test_search_goes_through_an_engine_of_its_own(shell):
    command = ["seed/SearchQA-v0", "--player", "oracle", "--env-arg", "retriever=shelf:mine"]
    assert "success: True" in shell("seed-play", *command)
    command[-1] = "retriever=python:guess_rows:open_shelf_of_nobody"
    assert "has no attribute" in shell("seed-play", *command, code=2)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["seed-play", "demo/Broken-v0"], "environment 'demo/Broken-v0' cannot be imported: No module named"),
        (["seed-play", "demo/Gess-v0"], "Did you mean 'demo/Guess-v0'"),
        (["seed-bench", "run", "--suite", "demo/first_four", "--agent", "allways:2"], "Did you mean 'always'"),
        (["seed-train", "rl", "--method", "step", "--output_dir", "x"], "Did you mean 'steep'"),
    ],
)
def test_a_mistake_is_answered_in_one_line(shell, command, said):
    out = shell(*command, code=2)
    assert said in out and "Traceback" not in out
