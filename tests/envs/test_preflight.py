"""What is checked before the first episode, and that nothing of it stays behind."""

from __future__ import annotations

import functools
import os
import socket

import pytest
from chat_server import completion, serve

from seed_envs import get_profile, make_agent_env
from seed_envs.endpoints.probe import ServerFacts, probe
from seed_envs.errors import DataMissing, PreflightFailed
from seed_envs.play import main
from seed_envs.preflight import Contestant, check_folder, preflight, shows_pictures
from seed_envs.profiles import profile_table
from seed_envs.registration import ENVIRONMENTS
from seed_envs.rollout import Reply
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import EpisodeError

SOKOBAN = "seed/Sokoban-v0"


def check(contestant, env_id=SOKOBAN, name="strict", task=None, **kwargs):
    """Runs the checks; returns what was remarked."""
    profile, said = get_profile(env_id, name), []
    make_env = functools.partial(make_agent_env, env_id, profile, **kwargs)
    task = task or TaskSpec(seed=0)
    preflight(make_env, profile, task, contestant, profiles=profile_table(env_id), say=said.append)
    return said


@pytest.mark.parametrize("row", [row for row in ENVIRONMENTS if not row.needs_browser], ids=lambda row: row.id)
def test_a_text_model_is_refused_exactly_where_a_profile_shows_pictures(row):
    for name, profile in profile_table(row.id).items():
        blind = Contestant("hf:words", sees_pictures=False)
        if not shows_pictures(profile):
            assert check(blind, row.id, name) == []
            continue
        with pytest.raises(PreflightFailed, match=r"hf:words reads text alone.* use --profile \S+-text"):
            check(blind, row.id, name)
        assert check(Contestant("hf:eyes", sees_pictures=True), row.id, name) == []


def test_a_prompt_that_does_not_fit():
    def count(messages):
        return 10 + len(messages)

    assert check(Contestant("m", longest_prompt=11, count_tokens=count)) == []
    with pytest.raises(PreflightFailed, match="has 11 tokens, and at most 10 fit m; raise --max-prompt-tokens"):
        check(Contestant("m", longest_prompt=10, count_tokens=count))


@pytest.mark.parametrize(
    ("reply", "remark"),
    [
        (Reply("<think>t</think><action>up</action>"), ""),
        (Reply("I would go up"), "the first reply of m cannot be read: no action found"),
        (Reply("x" * 5000), "x ... x"),
    ],
)
def test_a_reply_that_cannot_be_read_is_said_and_no_more(reply, remark):
    said = check(Contestant("m", policy=lambda requests: [reply for _ in requests]), name="strict-text")
    assert remark in "".join(said) and bool(said) == bool(remark)


def test_a_contestant_that_does_not_answer():
    lost = Reply(error=EpisodeError("EndpointFailed", "nobody there"))
    with pytest.raises(PreflightFailed, match="m does not answer: nobody there"):
        check(Contestant("m", policy=lambda requests: [lost]))


def test_data_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("SEED_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    with pytest.raises(DataMissing, match="alfworld"):
        check(Contestant("m"), "seed/ALFWorld-v0", "paper", split="train")


def test_one_task_that_cannot_start_is_left_to_the_run():
    (said,) = check(Contestant("m"), task=TaskSpec("no/such/1"))
    assert "the first task cannot start" in said


def test_a_search_engine_that_is_gone():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(PreflightFailed, match="the search engine does not answer: .*refused"):
            check(Contestant("m"), "seed/SearchQA-v0", "search-r1", collection="tiny", retriever=address)


def test_a_dead_retriever_ends_seed_play_with_one_line(capsys):
    arguments = ["seed/SearchQA-v0", "--player", "oracle", "--env-arg", "retriever=http://127.0.0.1:9"]
    assert main(arguments) == 2
    assert "127.0.0.1:9" in capsys.readouterr().err
    assert main([*arguments, "--no-preflight"]) == 1
    captured = capsys.readouterr()
    assert "ended by a fault, not scored: retrieval_error" in captured.err and "success" not in captured.out


def test_seed_play_dry_run(capsys):
    assert main([SOKOBAN, "--player", "oracle", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("task: ") and "success" not in out


def test_folders_that_can_be_written_are_left_as_they_were(tmp_path):
    check_folder(tmp_path, "--out")
    check_folder(tmp_path / "a" / "b", "--out")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    for folder in (file, file / "below", dangling, "/proc/none", "/dev/null/x"):
        with pytest.raises(PreflightFailed, match=r"--out '.*' cannot be written: .*; choose another folder"):
            check_folder(type(tmp_path)(folder), "--out")
    if os.geteuid():
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        with pytest.raises(PreflightFailed, match="Permission denied"):
            check_folder(closed, "--out")


# -- the server of a model --------------------------------------------------------------------------------------------


def models(*names, **facts):
    return {"data": [{"id": name, **facts} for name in names]}


def answering(listed, asked=None):
    """A server with this page of models; any other question gets ``asked``, a completion unless told."""

    def behave(handler, body, attempt):
        if handler.command == "GET":
            handler.answer(listed, 200 if listed else 404)
        else:
            handler.answer(*(asked or (completion("x"), 200)))

    return serve(behave)


httpx = pytest.importorskip("httpx", reason="packages: the endpoint agent needs httpx")


def test_what_a_server_says():
    with answering(models("qwen", "other", max_model_len=4096)) as server:
        assert probe(server.url, "qwen") == ServerFacts(("qwen", "other"), 4096)
        assert [path for _, path, _, _ in server.seen] == ["/v1/models"]


@pytest.mark.parametrize("listed", [None, {"data": []}, {"data": 3}, b"<html>", models("smol")])
def test_a_server_that_takes_any_name(listed):
    with answering(listed) as server:
        probe(server.url, "anything")
        assert len(server.seen) == 2


@pytest.mark.parametrize("status", [400, 404])
def test_a_model_that_the_server_does_not_know(status):
    with (
        answering(models("qwen3-4b"), ({"error": "no such model"}, status)) as server,
        pytest.raises(
            PreflightFailed, match=r"does not take the model 'qwen3-4B-x'.*no such model.*lists 'qwen3-4b'.*mean"
        ),
    ):
        probe(server.url, "qwen3-4B-x")


def test_a_key_that_is_refused(monkeypatch):
    for value, hint in ((None, "is not set"), ("wrong-key", "is refused")):
        monkeypatch.delenv("MY_KEY", raising=False)
        if value:
            monkeypatch.setenv("MY_KEY", value)
        refused = pytest.raises(PreflightFailed, match=rf"HTTP 401: \$MY_KEY {hint}")
        with serve(lambda handler, body, attempt: handler.answer({}, 401)) as server, refused:
            probe(server.url, "m", "MY_KEY")


def test_nothing_answers(monkeypatch):
    monkeypatch.setattr("seed_envs.endpoints.probe.PAUSE", 0.0)
    said = []
    with pytest.raises(PreflightFailed, match=r"nothing answers at http://127.0.0.1:9/v1 .*start the server"):
        probe("http://127.0.0.1:9/v1", "m", say=said.append)
    assert len(said) == 1 and said[0].endswith("retrying")
