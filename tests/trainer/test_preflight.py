"""``seed-train`` before its first episode: what is refused before weights are loaded, and what a dry run leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seed_trainer.cli import main

TINY = "builtin/alfworld-tiny"
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


def test_stage_1_asks_the_annotator_first(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httpx", reason="packages: the endpoint client needs httpx")
    monkeypatch.setattr("seed_envs.endpoints.probe.PAUSE", 0.0)
    what = ["data", "--tasks", 2, "--annotator", "endpoint", "--endpoint_model", "m", "--output_dir", tmp_path / "data"]
    code, _, err = run(*what, "--endpoint_url", "http://127.0.0.1:9/v1")
    assert code == 2 and "retrying" in err and "nothing answers at http://127.0.0.1:9/v1" in err
    assert not (tmp_path / "data").exists()


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
