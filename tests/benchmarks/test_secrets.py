"""No secret of a run is in any file of its folder or any line that a command prints."""

from __future__ import annotations

import importlib
import json

import pytest
from canaries import CANARY, holds_canary, leaks
from chat_server import completion, serve
from ladder_env import suite_record
from search_server import searching

from seed_benchmarks.cli import main


def run(capsys, *arguments, code=0):
    """Runs a command; fails when it prints the canary. Returns what it printed."""
    words = list(map(str, arguments))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["seed-bench", *words])  # what a run notes as its command
        assert main(words) == code, capsys.readouterr()
    captured = capsys.readouterr()
    printed = captured.out + captured.err
    assert not holds_canary(printed)
    return printed


@pytest.mark.parametrize("workers", [0, 1])
def test_the_password_of_a_retriever(capsys, tmp_path, workers):
    out = tmp_path / "run"
    with searching() as server:
        address = server.url.replace("://", f"://user:{CANARY}@")
        secret = ["--env-arg", f"retriever={address}", "--env-arg", f'retriever_options={{"token": "{CANARY}"}}']
        what = ["run", "--suite", "search_qa/mini", "--agent", "rule", "--limit", 2, *secret]
        run(capsys, *what, "--dry-run")
        server.refuses = True
        run(capsys, *what, "--out", out, code=2)
        run(capsys, *what, "--num-workers", workers, "--quiet", "--out", out, "--no-preflight", code=1)
        printed = run(capsys, "run", "--resume", out, code=2)
        assert f"--resume {out} --env-arg retriever=... --env-arg retriever_options=..." in printed
        assert "unchanged" in run(capsys, "run", "--resume", out, *secret, "--env-arg", "max_turns=3", code=2)
        server.refuses = False
        run(capsys, "run", "--resume", out, *secret)
    run(capsys, "view", out)
    run(capsys, "compare", out, out)
    run(capsys, "ls", tmp_path)
    run(capsys, "merge", tmp_path / "merged", out)
    assert leaks(tmp_path) == []
    assert "<hidden>" in (out / "config.json").read_text() and "hidden" in (out / "report.html").read_text()


def test_the_key_and_password_of_an_endpoint(capsys, tmp_path, monkeypatch):
    pytest.importorskip("httpx", reason="packages: the endpoint agent needs httpx")
    monkeypatch.setenv("ANY_NAME", CANARY)
    suite, out = tmp_path / "suite.json", tmp_path / "out" / "run"
    suite.write_text(json.dumps(suite_record()))

    def refuse(handler, body, attempt):
        handler.answer({"error": f"wrong: {dict(handler.headers)}"}, 401)

    def repeat(handler, body, attempt):
        handler.answer(completion(f"my headers are {dict(handler.headers)}"))

    with serve(refuse) as server:
        agent = ["--agent", f"openai:tiny@{server.url.replace('://', f'://user:{CANARY}@')}"]
        options = ["--api-key-env", "ANY_NAME", "--limit", 2, "--out", out, "--quiet"]
        run(capsys, "run", "--suite", suite, *agent, *options, code=2)
        printed = run(capsys, "run", "--suite", suite, *agent, *options, "--no-preflight", code=1)
        assert "401" in printed
        assert "--agent ..." in run(capsys, "run", "--resume", out, code=2)
        server.behave = repeat
        run(capsys, "run", "--resume", out, *agent)
    run(capsys, "view", out)
    assert leaks(tmp_path / "out") == []


@pytest.mark.parametrize("package", ["speed", "parity"])
def test_comparisons_print_no_secret(capsys, package):
    command = importlib.import_module(f"seed_benchmarks.{package}.running").main
    address = f"http://user:{CANARY}@127.0.0.1:1/v1"
    assert command([address]) == 2
    captured = capsys.readouterr()
    assert "<hidden>" in captured.err and not holds_canary(captured.out + captured.err)
    with pytest.raises(SystemExit, match="2"):
        command([f"--token={CANARY}"])
    captured = capsys.readouterr()
    assert "unknown argument" in captured.err and not holds_canary(captured.out + captured.err)
