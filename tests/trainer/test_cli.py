"""The command line from data to report on a micro configuration, in one folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seed_trainer.cli import main
from seed_trainer.tiny.model import build_model
from seed_trainer.tiny.tokenizer import build_tokenizer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random household model of 30,000 parameters."""
    folder = tmp_path_factory.mktemp("household")
    tokenizer = build_tokenizer()
    build_model(tokenizer, width=32, layers=1, heads=2).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def smoke(model: str, folder: Path, *flags: str) -> list[str]:
    return ["rl", "--config", "smoke_cpu", "--model_name_or_path", model, "--output_dir", str(folder), *flags]


def test_dry_run_prints_origins_and_arithmetic(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(smoke(model, tmp_path / "run", "--dry_run", "--learning_rate", "2e-3")) == 0
    shown = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "| learning_rate | 0.002 | flag |" in lines
    assert "| opd_coef | 0.3 | config smoke_cpu |" in lines
    assert "| opd_gate_beta | 5.0 | default (paper) |" in lines
    assert "| episodes per round | 4 tasks x 2 = 8 |" in lines
    assert not (tmp_path / "run").exists(), "a dry run writes nothing"


def test_from_data_to_report(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, stage1, run = tmp_path / "data", tmp_path / "stage1", tmp_path / "run"
    common = ["--env_profile", "compact", "--split", "compact_train", "--tasks", "3", "--repeats", "2"]
    library = ["--library", str(tmp_path / "library.json")]
    assert main(["data", *common, "--annotator", "rules_terse", "--output_dir", str(data), *library]) == 0
    assert "6 examples" in capsys.readouterr().out
    flags = ["--use_cpu", "--bf16", "false", "--gradient_checkpointing", "false", "--report_to", "none"]
    flags += ["--max_steps", "2", "--per_device_train_batch_size", "2", "--learning_rate", "1e-3"]
    assert main(["sft", "--data", str(data), "--model_name_or_path", model, "--output_dir", str(stage1), *flags]) == 0
    assert main(smoke(str(stage1), run)) == 0
    shown = capsys.readouterr().out
    assert "95 % interval" in shown and str(run) in shown
    steps = [
        json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines() if "env/success" in line
    ]
    assert steps == [2, 4]
    assert json.loads((run / "run.json").read_text())["origin"]["opd_coef"] == "config smoke_cpu"
    assert {path.name for path in run.glob("checkpoint-*")} == {"checkpoint-2", "checkpoint-4"}
    page = tmp_path / "report.html"
    assert main(["report", str(run), "--output", str(page)]) == 0
    assert "<html" in page.read_text()


def test_resume_from_the_command_line(model: str, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main(smoke(model, whole, "--eval_on_start")) == 0
    assert main(smoke(model, parts, "--eval_on_start", "--max_steps", "2")) == 0
    assert main(smoke(model, parts, "--eval_on_start", "--resume_from_checkpoint")) == 0

    def losses(folder: Path) -> list[tuple[int, float]]:
        lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
        return [(line["step"], line["loss"]) for line in lines if "loss" in line]

    assert losses(parts) == losses(whole) and len(losses(whole)) == 2
    evaluations = (whole / "evaluations.jsonl").read_text()
    assert (parts / "evaluations.jsonl").read_text() == evaluations
    assert [json.loads(line)["step"] for line in evaluations.splitlines()] == [0, 2, 4]


def test_a_finished_run_and_another_runs_checkpoint_are_told_from_the_command_line(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(smoke(model, run)) == 0
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.rglob("*") if path.is_file()}
    capsys.readouterr()
    for wanted in ((), (str(run / "checkpoint-4"),)):
        assert main(smoke(model, run, "--resume_from_checkpoint", *wanted)) == 0
        assert f"already finished: {run}" in capsys.readouterr().out
        assert main(smoke(model, run, "--method", "grpo", "--seed", "1", "--resume_from_checkpoint", *wanted)) == 2
        told = capsys.readouterr().err
        assert "belongs to another run: " in told and "seed is 1 here and 42 there" in told
        assert "method is 'grpo' here and 'seed' there" in told
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.rglob("*") if path.is_file()}
    assert after == before


def test_evaluation_only_method(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(smoke(model, tmp_path / "run", "--method", "vanilla")) == 0
    assert '"eval_success"' in capsys.readouterr().out
    assert not list((tmp_path / "run").glob("checkpoint-*"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--train_split", "compact_trian"], "Did you mean 'compact_train'"),
        (["--env_id", "seed/ALFWrld-v0"], "ALFWorld"),
        (["--env_profile", "compcat"], "compact"),
        (["--env_kwargs", "{"], "is not JSON"),
        (["--eval_tasks", "100000"], "the split lists 240"),
        (["--train_split", "procedural_train", "--train_tasks", "0"], "set train_tasks to a number"),
        (["--model_name_or_path", "builtin/none"], "is not shipped"),
        (["--model_name_or_path", "/no/such/model"], "'/no/such/model' is not a folder"),
        (["--model_name_or_path", "nobody/nothing"], "'nobody/nothing' cannot be loaded"),
        (["--skill_analyzer", "jsn"], "Did you mean 'json'"),
        (["--eval_split="], "set eval_split or eval_manifest"),
        (["--eval_split=", "--eval_rounds", "0", "--method", "vanilla"], "set eval_split or eval_manifest"),
        (["--resume_from_checkpoint"], "no checkpoint to resume from"),
    ],
)
def test_bad_input_is_one_line(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert main(smoke(model, tmp_path / "run", *flags)) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("seed-train rl: ") and message in error


def test_a_dry_run_looks_at_the_models_name(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("/no/such/model", "builtin/none"):
        assert main(smoke(model, tmp_path / "run", "--dry_run", "--model_name_or_path", name)) == 2
        assert f"model '{name}' is not" in capsys.readouterr().err


def test_a_missing_optional_package_is_one_line(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trl.generation.vllm_generation.is_vllm_available", lambda *_: False)
    assert main(smoke(model, tmp_path / "run", "--use_vllm", "true")) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("seed-train rl: vLLM is not available")


def test_inspect_follows_the_recipe_and_the_method_of_a_training_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("recipe: released/webshop\nmethod: opid_steps\nlearning_rate: 1.0e-5\n")
    assert main(["inspect", "--config", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "search[" in shown and '"step_skills"' in shown


@pytest.mark.parametrize("name", ["quickstart", "smoke_cpu"])
def test_inspect_takes_a_training_configuration(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--config", name]) == 0
    assert "compact/train/" in capsys.readouterr().out, "train_split says which tasks"
    assert main(["inspect", "--config", name, "--trun", "1"]) == 2
    assert "Did you mean 'turn'" in capsys.readouterr().err


def test_missing_pieces_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["sft", "--output_dir", str(tmp_path), "--use_cpu", "--bf16", "false"]) == 2
    assert "set data" in capsys.readouterr().err
    assert main(["data"]) == 2
    assert "set output_dir" in capsys.readouterr().err
    assert main(["rl", "--use_cpu", "--bf16", "false"]) == 2
    assert "set output_dir" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--annotator", "rules_terse", "--env_id", "seed/SearchQA-v0"], "has no short rules; use --annotator rules"),
        (["--annotator", "nobody"], "expected one of"),
        (["--annotator", "endpoint"], "needs endpoint_url and endpoint_model"),
        (["--policy", "nowhere"], "neither one of"),
        (["--tasks", "-3"], "tasks=-3 must be at least 0"),
        (["--repeats", "0"], "repeats=0 must be at least 1"),
        (["--library", "/proc/no/library.json"], "--library '/proc/no' cannot be written"),
    ],
)
def test_bad_input_for_data_is_one_line_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert main(["data", "--tasks", "3", "--output_dir", str(tmp_path / "data"), *flags]) == 2
    (error,) = capsys.readouterr().err.strip().splitlines()
    assert error.startswith("seed-train data: ") and message in error
    assert not (tmp_path / "data" / "trajectories.jsonl").exists()


def test_an_output_folder_that_cannot_be_made_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    out = tmp_path / "file" / "data"
    assert main(["data", "--tasks", "3", "--output_dir", str(out)]) == 2
    (error,) = capsys.readouterr().err.strip().splitlines()
    assert error.startswith("seed-train data: ") and f"--output_dir {str(out)!r} cannot be written" in error
