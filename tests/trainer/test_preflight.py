"""``seed-train`` before its first episode: what is refused before weights are loaded, and what a dry run leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import completion, serve
from transformers import AutoModelForCausalLM, AutoTokenizer

import seed_trainer
from seed_trainer.cli import main

TINY = "builtin/alfworld-tiny"
SHIPPED = Path(seed_trainer.__file__).parent / "tiny" / "models" / "alfworld-tiny"
SKILL = json.dumps({"episode_summary": "s", "episode_skill": "Look into the fridge before the shelves."})
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        code = main(list(map(str, arguments)))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def rl(folder: Path, *more: object) -> list[object]:
    return ["rl", "--config", "smoke_cpu", "--model_name_or_path", TINY, "--output_dir", folder, *more]


SOKOBAN = ["--env_id", "seed/Sokoban-v0", "--train_split", "test", "--eval_split", "", "--eval_rounds", 0]


@pytest.mark.parametrize("more", [[], ["--dry_run"]], ids=["run", "dry run"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            [*SOKOBAN, "--env_profile", "strict"],
            "reads text alone, and profile 'strict' shows pictures: use --env_profile",
        ),
        (["--max_prompt_length", 5], "and at most 5 fit"),
        (["--max_turn_length", 100_000], "leaves no room for a prompt"),
        (["--model_name_or_path", "./none"], "is not a folder"),
        (["--model_name_or_path", ""], "set model_name_or_path"),
    ],
    ids=str,
)
def test_rl_refuses_at_once(run: Run, tmp_path: Path, arguments: list[object], expected: str, more: list[str]) -> None:
    code, out, err = run(*rl(tmp_path / "run", *arguments, *more))
    assert code == 2 and expected in err and "Loading weights" not in err and out == ""
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["rl", "data", "sft"])
def test_a_folder_that_cannot_be_written(run: Run, tmp_path: Path, command: str) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    sft = ["sft", "--data", tmp_path, "--output_dir", blocked / "run", "--use_cpu", "--bf16", "false"]
    commands: dict[str, list[Any]] = {
        "rl": list(rl(blocked / "run")),
        "data": ["data", "--output_dir", blocked / "run"],
        "sft": list(sft),
    }
    arguments = commands[command]
    code, _, err = run(*arguments)
    assert code == 2 and "--output_dir" in err and "cannot be written" in err and "model" not in err


def test_a_dry_run_leaves_nothing(run: Run, tmp_path: Path) -> None:
    code, out, _ = run(*rl(tmp_path / "run", "--dry_run"))
    assert code == 0 and "| rounds" in out
    what = ["data", "--env_profile", "compact", "--split", "compact_train", "--tasks", 2, "--repeats", 2]
    code, out, _ = run(*what, "--output_dir", tmp_path / "data", "--dry_run")
    assert code == 0 and out.startswith("4 episodes by oracle")
    assert list(tmp_path.iterdir()) == []


def test_stage_1_with_a_model_is_the_same_after_the_preflight(run: Run, tmp_path: Path) -> None:
    what = ["data", "--env_profile", "compact", "--split", "compact_train", "--tasks", 2, "--repeats", 2]
    what += ["--policy", TINY, "--max_turn_length", 10, "--max_prompt_length", 1000, "--temperature", 1.0]
    what += ["--annotator", "rules_terse", "--env_max_steps", 3]
    for name, more in (("with", []), ("without", ["--no_preflight"])):
        code, _, err = run(*what, "--output_dir", tmp_path / name, *more)
        assert code == 0, err
    replies = [(tmp_path / name / "sft.jsonl").read_text() for name in ("with", "without")]
    assert replies[0] == replies[1] != ""


@pytest.mark.parametrize("engine", ["cached", "trl"])
def test_training_is_the_same_after_the_preflight(run: Run, tmp_path: Path, engine: str) -> None:
    for name, more in (("with", []), ("without", ["--no_preflight"])):
        what = ["--rollout_engine", engine, "--eval_split", "", "--eval_rounds", 0, "--learning_rate", 0.01, *more]
        code, _, err = run(*rl(tmp_path / name, *what))
        assert code == 0, err
    for name in ("model.safetensors", "episodes.jsonl"):
        first, second = ((tmp_path / folder / name).read_bytes() for folder in ("with", "without"))
        assert first == second != b"", name
    logged, again = (_metrics(tmp_path / folder / "checkpoint-4") for folder in ("with", "without"))
    assert logged == again and len(logged) == 2


def _metrics(checkpoint: Path) -> list[dict[str, float]]:
    """What was logged but for what a clock says."""
    history = json.loads((checkpoint / "trainer_state.json").read_text())["log_history"]
    return [
        {key: value for key, value in line.items() if not key.startswith(("time/", "step_time"))} for line in history
    ]


def test_the_first_reply_of_a_trained_or_evaluated_model_is_looked_at(run: Run, tmp_path: Path) -> None:
    what = ["--method", "vanilla", "--env_profile", "paper", "--env_max_steps", 1, "--max_prompt_length", 900]
    code, _, err = run(*rl(tmp_path / "asked", *what))
    assert code == 0 and "preflight: the first reply of" in err and "cannot be read" in err
    code, _, err = run(*rl(tmp_path / "not_asked", *what, "--no_preflight"))
    assert code == 0 and "preflight" not in err


def test_a_model_whose_weights_are_not_numbers(run: Run, tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(SHIPPED)
    next(model.parameters()).data.fill_(float("nan"))
    model.save_pretrained(tmp_path / "model")
    AutoTokenizer.from_pretrained(SHIPPED).save_pretrained(tmp_path / "model")
    code, _, err = run(*rl(tmp_path / "run", "--model_name_or_path", tmp_path / "model"))
    assert code == 2 and "the model's logits are not numbers" in err and "Traceback" not in err


def test_stage_1_asks_the_annotator_first(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httpx", reason="packages: the endpoint client needs httpx")
    monkeypatch.setattr("seed_envs.endpoints.probe.PAUSE", 0.0)
    what = ["data", "--tasks", 2, "--annotator", "endpoint", "--endpoint_model", "m", "--output_dir", tmp_path / "data"]
    code, _, err = run(*what, "--endpoint_url", "http://127.0.0.1:9/v1")
    assert code == 2 and "retrying" in err and "nothing answers at http://127.0.0.1:9/v1" in err
    assert not (tmp_path / "data").exists()


def test_stage_1_tells_that_the_annotator_is_asked_again(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("httpx", reason="packages: the endpoint client needs httpx")

    def behave(handler: Any, body: Any, attempt: int) -> None:
        if body is not None and attempt == 1:
            handler.answer({"error": "still loading"}, 503)
        else:
            handler.answer({"data": [{"id": "m"}]} if body is None else completion(SKILL))

    what = ["data", "--env_profile", "compact", "--split", "compact_train", "--tasks", 2, "--repeats", 1]
    with serve(behave) as server:
        what += ["--annotator", "endpoint", "--endpoint_model", "m", "--endpoint_url", server.url]
        code, _, err = run(*what, "--output_dir", tmp_path / "data")
    assert code == 0 and err.count("attempt 1 of 7, retrying in") == 1 and "503" in err


def test_random_players_need_a_list_of_actions(run: Run, tmp_path: Path) -> None:
    what = [
        "data",
        "--env_id",
        "seed/SearchQA-v0",
        "--env_profile",
        "search-r1",
        "--env_kwargs",
        '{"collection": "tiny"}',
    ]
    code, _, err = run(*what, "--policy", "random", "--tasks", 2, "--output_dir", tmp_path / "data")
    assert code == 2 and err.count("\n") == 1 and "list of admissible actions" in err
