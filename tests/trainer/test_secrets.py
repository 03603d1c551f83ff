"""No secret of a command is in any file of its folder, pickled arguments included, or any line that it prints."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from canaries import CANARY, holds_canary, leaks
from chat_server import completion, serve
from search_server import searching

from seed_trainer.cli import main


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "")  # put back afterwards, whatever a command sets


def run(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Runs a command; fails when it prints the canary. Returns what it printed."""
    words = list(map(str, arguments))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["seed-train", *words])  # what a run notes as its command
        assert main(words) == code, capsys.readouterr()
    captured = capsys.readouterr()
    assert not holds_canary(captured.out + captured.err)
    return captured.out + captured.err


def test_the_token_for_the_hub(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = [
        "--config",
        "smoke_cpu",
        "--model_name_or_path",
        "builtin/alfworld-tiny",
        "--rounds",
        1,
        "--output_dir",
        tmp_path,
        "--eval_split",
        "",
        "--eval_rounds",
        0,
    ]
    run(capsys, "rl", *options, "--hub_token", CANARY, "--dry_run")
    run(capsys, "rl", *options, "--hub_token", CANARY, "--save_strategy", "steps", "--save_rounds", 1)
    assert os.environ["HF_TOKEN"] == CANARY, "the hub's own client reads it there"
    assert leaks(tmp_path) == []
    assert {"run.json", "training_args.bin"} <= {path.name for path in tmp_path.rglob("*")}
    command = json.loads((tmp_path / "run.json").read_text())["command"]
    assert command[command.index("--hub_token") + 1] == "<hidden>"
    page = tmp_path / "report.html"
    run(capsys, "report", tmp_path, "--output", page)
    assert leaks(tmp_path) == []


def test_arguments_of_the_environment_and_keys_of_an_endpoint(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANY_NAME", CANARY)

    def with_password(address: str) -> str:
        return address.replace("://", f"://user:{CANARY}@")

    def repeat(handler, body, attempt):  # type: ignore[no-untyped-def]
        handler.answer(completion(f"my headers are {dict(handler.headers)}"))

    def refuse(handler, body, attempt):  # type: ignore[no-untyped-def]
        handler.answer({"error": f"wrong: {dict(handler.headers)}"}, 401)

    with serve(refuse) as server, searching() as engine:
        kwargs = {"retriever": with_password(engine.url), "retriever_options": {"token": CANARY}, "collection": "tiny"}
        secret = ["--env_id", "seed/SearchQA-v0", "--env_profile", "search-r1", "--env_kwargs", json.dumps(kwargs)]
        endpoint = ["--annotator", "endpoint", "--endpoint_url", with_password(server.url), "--endpoint_model", "m"]
        what = ["data", *secret, *endpoint, "--endpoint_key_env", "ANY_NAME", "--tasks", 2, "--repeats", 1]
        what += ["--output_dir", tmp_path / "data", "--library", tmp_path / "library.json"]
        run(capsys, *what, code=2)
        run(capsys, *what, "--no_preflight", code=1)
        server.behave = repeat
        run(capsys, *what)
        assert "holds a collection" in run(capsys, *what, "--seed", 5, code=2)
    assert leaks(tmp_path) == []
    assert "<hidden>" in (tmp_path / "data" / "summary.json").read_text()
    assert "<hidden>" in (tmp_path / "data" / "answers.jsonl").read_text()


def test_configuration_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    given = ["--output_dir", tmp_path / "run", "--model_name_or_path", "builtin/alfworld-tiny"]
    path.write_text(f"hub_token: {CANARY}\nenv:\n  SOME_NAME_KEY: {CANARY}\nlearning_rate: {CANARY}\n")
    try:
        assert "<hidden>" in run(capsys, "rl", "--config", path, *given, code=2)
    finally:
        os.environ.pop("SOME_NAME_KEY", None)


def test_supervised_training_with_a_token(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = ["--env_profile", "compact", "--split", "compact_train", "--tasks", 2, "--repeats", 1]
    run(capsys, "data", *data, "--annotator", "rules_terse", "--output_dir", tmp_path / "data")
    options = ["--data", tmp_path / "data", "--model_name_or_path", "builtin/alfworld-tiny", "--use_cpu", "--bf16"]
    options += ["false", "--max_steps", 1, "--save_strategy", "steps", "--save_steps", 1, "--hub_token", CANARY]
    run(capsys, "sft", *options, "--output_dir", tmp_path / "run", "--dry_run")
    run(capsys, "sft", *options, "--output_dir", tmp_path / "run")
    assert leaks(tmp_path) == []
    assert {"training_args.bin", "README.md"} <= {path.name for path in (tmp_path / "run").rglob("*")}
    assert "<hidden>" in run(capsys, "sft", *options, "--output_dir", tmp_path, "--seed", CANARY, code=2)


def test_value_alignment_with_a_token(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ["--config", "smoke_cpu", "--model_name_or_path", "builtin/alfworld-tiny", "--hub_token", CANARY]
    options += ["--states", 1, "--responses", 2, "--continuations", 2, "--env_max_steps", 2, "--output_dir", tmp_path]
    run(capsys, "align", *options)
    assert leaks(tmp_path) == []
    assert "<hidden>" in run(capsys, "align", *options, "--align_seed", CANARY, code=2)


def test_the_texts_of_a_configuration_with_a_password(capsys: pytest.CaptureFixture[str]) -> None:
    address = f"http://user:{CANARY}@127.0.0.1:1"
    what = ["inspect", "--env_profile", "compact", "--split", "compact_train", "--turn", 0]
    assert "see http://<hidden>@" in run(capsys, *what, "--skill", f"see {address}")
    kwargs = {"retriever": address, "retriever_options": {"token": CANARY}, "collection": "tiny"}
    secret = ["--env_id", "seed/SearchQA-v0", "--env_kwargs", json.dumps(kwargs)]
    run(capsys, "inspect", *secret, code=2)
