"""The password of a retriever: in no answer of the search server, no line of its commands, no error, no record."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from canaries import CANARY, holds_canary
from search_server import searching

from seed_envs.search_qa.__main__ import main
from seed_envs.search_qa.retrievers.factory import open_retriever
from seed_envs.search_qa.retrievers.http import HttpRetriever
from seed_envs.search_qa.server import RetrievalServer


def with_password(url):
    return url.replace("://", f"://user:{CANARY}@")


def get(url, body=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=30) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        return error.read()


def test_the_server_shows_no_password(monkeypatch):
    monkeypatch.setenv("SEED_SEARCHQA_TOKEN", "")
    with searching() as engine:
        words = ["serve", "--collection", "tiny", "--port", "0", "--retriever", with_password(engine.url)]
        command = [
            sys.executable,
            "-m",
            "seed_envs.search_qa",
            *words,
            "--option",
            f"token={CANARY}",
            "--cache-mib",
            "0",
        ]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            first = server.stdout.readline()
            assert server.poll() is None, server.stderr.read()
            address, health = first.split()[-1], b""
            while b'"ok"' not in health:
                health = get(f"{address}/health")
            answers = [health, get(f"{address}/metrics"), get(f"{address}/none")]
            engine.refuses = True  # and repeats what it was sent
            answers.append(get(f"{address}/retrieve", json.dumps({"queries": ["q"]}).encode()))
        finally:
            server.send_signal(signal.SIGTERM)
            out, err = server.communicate(timeout=30)
    assert b"<hidden>@127.0.0.1" in answers[0] and b"engine" in answers[-1]
    assert not any(map(holds_canary, [first, out, err, *answers]))


def test_its_commands_show_no_password(capsys, tmp_path):
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({"id": "1", "question": "who?", "golden_answers": ["me"]}) + "\n")
    with searching() as engine:
        retriever = ["--collection", "tiny", "--retriever", with_password(engine.url), "--option", f"token={CANARY}"]
        for words in (["index", *retriever], ["coverage", *retriever, "--questions", str(questions)]):
            assert main(words) == 0
            captured = capsys.readouterr()
            assert captured.out and not holds_canary(captured.out + captured.err)


@pytest.mark.parametrize(
    "name",
    [f"http//user:{CANARY}@host", f"http://user:{CANARY}@[host", f"redis://:{CANARY}@127.0.0.1:1/0?index=i",
     f"hybrid:bm25+http://user:{CANARY}@h:x"],
)  # fmt: skip
def test_errors_show_no_password(name):
    with pytest.raises(Exception) as caught:
        open_retriever(name, None, token=CANARY, nonsense=1).search(["q"], 1)
    assert not holds_canary(str(caught.value))


def test_a_fingerprint_does_not_depend_on_a_password():
    prints = {HttpRetriever(f"http://{user}127.0.0.1:1").fingerprint for user in ("", "user:first@", "user:second@")}
    assert len(prints) == 1


def test_health_of_a_server_made_in_python():
    about = RetrievalServer(HttpRetriever("http://127.0.0.1:1"), engine=f"redis://:{CANARY}@host")._health()
    assert about["engine"] == "redis://<hidden>@host"
