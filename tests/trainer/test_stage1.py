"""Stage 1: collection that resumes, and annotation against a server that misbehaves in every way we could think of."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from word_world import GROWING, WORDS, WordEnv, make_word_env, word_tokenizer

from seed_envs.errors import OracleUnavailable
from seed_envs.rollout import Reply, Request
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Step, StopReason, Trajectory
from seed_trainer.acting.play import EpisodePlayer
from seed_trainer.cli import UserError
from seed_trainer.skills.prompts import ANALYZERS
from seed_trainer.stage1 import annotators, collect, dataset
from seed_trainer.stage1.endpoint import ChatEndpoint, EndpointError
from seed_trainer.stage1.sft import split_by_length
from seed_trainer.watching.linelog import read_records

SKILL = json.dumps({"episode_summary": "s", "episode_skill": "look into the fridge before the shelf"})


def completion(text: Any, finish: str = "stop") -> bytes:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 4}}).encode()


class Server:
    """A local chat endpoint that plays a script of answers, one per request, then repeats the last."""

    def __init__(self) -> None:
        self.script: list[Callable[[BaseHTTPRequestHandler], None]] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        outer, counter = self, itertools.count()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                outer.headers.append(self.headers)
                outer.script[min(next(counter), len(outer.script) - 1)](self)

            def log_message(self, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


def reply(status: int, body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return send


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


def half_an_answer(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(completion(SKILL)[:40])
    handler.wfile.flush()
    handler.connection.close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def endpoint(server: Server, **options: Any) -> tuple[ChatEndpoint, list[float]]:
    pauses: list[float] = []
    return ChatEndpoint(server.url, "glm", timeout=60.0, sleep=pauses.append, **options), pauses


MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(
    "trouble",
    [
        reply(429, b"slow down", Retry_After="7"),
        reply(500, b"oops"),
        reply(200, b"<html>proxy error</html>"),
        reply(200, b'{"choices": []}'),
        reply(200, completion(None)),
        hang_up,
        half_an_answer,
    ],
    ids=["429", "500", "html", "no choices", "null content", "reset", "half"],
)
def test_trouble_is_retried_and_the_answer_still_comes(
    server: Server, trouble: Callable[[BaseHTTPRequestHandler], None]
) -> None:
    server.script = [trouble, trouble, reply(200, completion(SKILL))]
    client, pauses = endpoint(server, api_key="secret")
    answer = client.ask(MESSAGES)
    assert answer.text == SKILL and len(pauses) == 2 and client.usage.attempts == 3
    assert (answer.prompt_tokens, answer.completion_tokens) == (10, 4)
    assert server.headers[0]["Authorization"] == "Bearer secret"
    assert server.bodies[0]["model"] == "glm" and server.bodies[0]["temperature"] == 0.0


def test_retry_after_is_honoured_up_to_a_limit(server: Server) -> None:
    server.script = [
        reply(429, b"", Retry_After="7"),
        reply(429, b"", Retry_After="9999"),
        reply(200, completion(SKILL)),
    ]
    client, pauses = endpoint(server, longest_pause=30.0)
    client.ask(MESSAGES)
    assert pauses == [7.0, 30.0]


def test_a_hanging_server_runs_into_the_timeout(server: Server) -> None:
    release = threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> None:
        release.wait(60)

    server.script = [hang]
    client = ChatEndpoint(server.url, "glm", timeout=0.2, attempts=2, sleep=lambda seconds: None)
    try:
        with pytest.raises(EndpointError, match="gave up after 2 attempts.*imed"):
            client.ask(MESSAGES)
    finally:
        release.set()


def test_a_server_that_never_stops_sending_runs_into_the_timeout(server: Server) -> None:
    """Every piece arrives in time, so the socket's own timeout never strikes."""

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        pause = threading.Event()
        try:
            for _ in range(1_000_000):
                handler.wfile.write(b" ")
                handler.wfile.flush()
                pause.wait(0.02)
        except OSError:
            pass  # the client has hung up

    server.script = [drip]
    client = ChatEndpoint(server.url, "glm", timeout=0.3, attempts=2, sleep=lambda seconds: None)
    with pytest.raises(EndpointError, match="gave up after 2 attempts"):
        client.ask(MESSAGES)


@pytest.mark.parametrize("pause", ["nan", "-5", "inf", "Wed, 21 Oct 2015 07:28:00 GMT", ""])
def test_odd_retry_after_is_ignored(server: Server, pause: str) -> None:
    server.script = [reply(429, b"", Retry_After=pause), reply(200, completion(SKILL))]
    client, pauses = endpoint(server)
    assert client.ask(MESSAGES).text == SKILL
    assert len(pauses) == 1 and 0 < pauses[0] < 2


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"choices": [7]}',
        b'{"choices": [{"message": "text"}]}',
        b'{"choices": {"0": 1}}',
        b"\xff\xfe\x00",
        b"null",
    ],
)
def test_garbage_is_retried_not_raised(server: Server, body: bytes) -> None:
    server.script = [reply(200, body), reply(200, completion(SKILL))]
    client, _ = endpoint(server)
    assert client.ask(MESSAGES).text == SKILL


def test_half_a_character_can_be_written_down(server: Server, tmp_path: Path) -> None:
    answer = completion(json.dumps({"episode_skill": "look into the \ud83d fridge before the shelf"}))
    assert b"ud83d" in answer
    server.script = [reply(200, answer)]
    client, _ = endpoint(server)
    (found,), failures = annotators.EndpointAnnotator(client, tmp_path, 1).annotate(EPISODES[:1])
    assert not failures and found is not None and found.skill.valid
    found.skill.text.encode()


def test_tokens_of_useless_answers_are_counted_too(server: Server) -> None:
    server.script = [reply(200, completion(None)), reply(200, completion(SKILL))]
    client, _ = endpoint(server)
    client.ask(MESSAGES)
    assert (client.usage.prompt_tokens, client.usage.completion_tokens) == (20, 8)


def test_a_wrong_key_stops_the_whole_annotation(server: Server, tmp_path: Path) -> None:
    server.script = [reply(401, b"bad key")]
    client, _ = endpoint(server)
    found, failures = annotators.EndpointAnnotator(client, tmp_path, 1).annotate([episode(n) for n in range(40)])
    assert set(found) == {None} and len(failures) == 40
    assert len(server.bodies) < 10, "the rest was not asked"
    assert "bad key" in failures[0]


def test_refused_requests_are_not_repeated(server: Server) -> None:
    server.script = [reply(401, b'{"error": "bad key"}')]
    client, _ = endpoint(server)
    with pytest.raises(EndpointError, match="HTTP 401.*bad key"):
        client.ask(MESSAGES)
    assert client.usage.attempts == 1


def test_redirects_are_not_followed(server: Server) -> None:
    server.script = [reply(302, b"", Location="http://127.0.0.1:9/elsewhere")]
    client, _ = endpoint(server, api_key="secret")
    with pytest.raises(EndpointError, match="HTTP 302"):
        client.ask(MESSAGES)


def test_it_gives_up_with_the_last_reason_and_hides_the_key(server: Server) -> None:
    server.script = [reply(503, b"maintenance")]
    client, pauses = endpoint(server, attempts=4, api_key="secret")
    with pytest.raises(EndpointError, match="gave up after 4 attempts.*503: maintenance"):
        client.ask(MESSAGES)
    assert len(pauses) == 3 and pauses == sorted(pauses) and "secret" not in repr(client)


def test_bad_address_is_explained() -> None:
    with pytest.raises(ValueError, match="must be an http"):
        ChatEndpoint("file:///etc/passwd", "glm")


def test_images_travel_as_png_addresses(server: Server) -> None:
    server.script = [reply(200, completion("ok"))]
    client, _ = endpoint(server)
    image = {"type": "image", "image": np.zeros((2, 2, 3), dtype=np.uint8)}
    client.ask([{"role": "user", "content": [{"type": "text", "text": "see"}, image]}])
    address = server.bodies[0]["messages"][0]["content"][1]["image_url"]["url"]
    assert address.startswith("data:image/png;base64,iVBOR")


def episode(number: int) -> Trajectory:
    steps = [Step("you see a fridge", [], "open fridge", "open fridge", True, "", 0.0)]
    won = number % 2 == 0
    stop = StopReason.SUCCESS if won else StopReason.MAX_STEPS
    return Trajectory(
        "words", WORDS[number % 4], f"type{number % 2}", "find it", steps=steps, success=won, stop_reason=stop
    )


EPISODES = [episode(number) for number in range(6)]


def test_invalid_skill_gets_one_repair_that_shows_error_and_tail(server: Server, tmp_path: Path) -> None:
    server.script = [reply(200, completion("I think the agent did well.")), reply(200, completion(SKILL))]
    client, _ = endpoint(server)
    (found,), failures = annotators.EndpointAnnotator(client, tmp_path, 1).annotate(EPISODES[:1])
    assert not failures and found is not None and found.skill.valid
    repair = server.bodies[1]["messages"]
    assert repair[1] == {"role": "assistant", "content": "I think the agent did well."}
    assert "no JSON object could be read" in repair[2]["content"]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([completion("no"), completion("still no")], "not_json"),
        ([completion(SKILL, "length"), completion(SKILL, "length")], "truncated"),
        ([completion('{"episode_skill": "too short"}')] * 2, "too_short"),
    ],
)
def test_what_stays_invalid_is_counted_by_reason(
    server: Server, tmp_path: Path, answers: list[bytes], reason: str
) -> None:
    server.script = [reply(200, answer) for answer in answers]
    client, _ = endpoint(server)
    found, _ = annotators.EndpointAnnotator(client, tmp_path, 1).annotate(EPISODES[:1])
    assert annotators.acceptance(found) == {reason: 1.0}
    assert len(server.bodies) == 2, "one repair, not more"


def test_no_answer_is_ever_asked_for_twice(server: Server, tmp_path: Path) -> None:
    server.script = [reply(200, completion(SKILL))] * 3 + [reply(500, b"down")]
    client, _ = endpoint(server, attempts=2)
    found, failures = annotators.EndpointAnnotator(client, tmp_path, 1).annotate(EPISODES)
    assert sum(item is not None for item in found) == 3 and len(failures) == 3
    assert annotators.acceptance(found) == {"accepted": 0.5, "no_answer": 0.5}
    with (tmp_path / "answers.jsonl").open("a") as file:
        file.write('{"number": 5, "attem')  # torn by a crash
    server.script = [reply(200, completion(SKILL))]
    asked = len(server.bodies)
    for more in (3, 0):  # what was asked for after the torn line is there the next time
        annotator = annotators.EndpointAnnotator(client, tmp_path, 3)
        again, failures = annotator.annotate(EPISODES)
        assert not failures and all(item is not None and item.skill.valid for item in again)
        assert len(server.bodies) - asked == more
        asked = len(server.bodies)
    assert annotator.spent() == (60, 24)


def test_answers_of_another_model_or_format_are_not_taken_over(server: Server, tmp_path: Path) -> None:
    server.script = [reply(200, completion(SKILL))]
    client, _ = endpoint(server)
    annotators.EndpointAnnotator(client, tmp_path, 1).annotate(EPISODES[:1])
    client.model = "other"
    annotators.EndpointAnnotator(client, tmp_path, 1).annotate(EPISODES[:1])
    annotators.EndpointAnnotator(client, tmp_path, 1, ANALYZERS["json_steps"]).annotate(EPISODES[:1])
    assert [body["model"] for body in server.bodies] == ["glm", "other", "other"]


def counting_policy(played: list[str]) -> Any:
    def policy(requests: list[Request]) -> list[Reply]:
        played.extend(f"{request.task.task_id}/{request.turn}" for request in requests)
        return [Reply("red") for _ in requests]

    return policy


def test_collection_resumes_and_ignores_a_torn_line(tmp_path: Path) -> None:
    player = EpisodePlayer(make_word_env, "words", GROWING)
    tasks = [TaskSpec(word) for word in WORDS for _ in range(2)]
    first: list[str] = []
    collect.collect(player, counting_policy(first), tasks[:5], tmp_path)
    with (tmp_path / "trajectories.jsonl").open("a") as file:
        file.write('{"number": 5, "traj')
    second: list[str] = []
    episodes = collect.collect(player, counting_policy(second), tasks, tmp_path)
    third: list[str] = []
    collect.collect(player, counting_policy(third), tasks, tmp_path)
    assert not third, "the first episode after the torn line is not lost"
    assert [item.task_id for item in episodes] == [task.task_id for task in tasks]
    assert {name.split("/")[0] for name in second} == {"blue", "gold"} and len(second) == 9
    with pytest.raises(UserError, match="another collection"):
        collect.collect(player, counting_policy([]), [TaskSpec("gold")] * 8, tmp_path)


def test_oracle_and_random_policies_and_the_training_file(tmp_path: Path) -> None:
    player = EpisodePlayer(make_word_env, "words", GROWING)
    episodes = collect.collect(player, collect.oracle_policy(GROWING), [TaskSpec(word) for word in WORDS], tmp_path)
    assert all(item.success and item.num_steps == 1 for item in episodes)
    with pytest.raises(Exception, match="admissible actions"):
        player.play([TaskSpec("red")], collect.random_policy(GROWING, 0))
    skills = [
        annotators.Annotation(annotators._checked("say the word of the goal now"), "rules:test") for _ in episodes
    ]
    skills[1] = annotators.Annotation(annotators._checked(""), "rules:test")
    path = tmp_path / "sft.jsonl"
    count = dataset.write_examples(path, dataset.examples(episodes, skills, ANALYZERS["turn"], "oracle"))
    assert count == 3, "unusable skills are left out"
    record = json.loads(path.read_text().splitlines()[0])
    assert [message["content"] for message in record["prompt"]] == ["say red ", "red", "success"]
    assert record["completion"][0]["content"] == "say the word of the goal now"
    assert (record["annotator"], record["policy"], record["outcome"]) == ("rules:test", "oracle", "success")
    assert len(dataset.read_examples(path)) == 3
    first = path.read_text()
    again = collect.collect(player, collect.oracle_policy(GROWING), [TaskSpec(word) for word in WORDS], tmp_path)
    dataset.write_examples(path, dataset.examples(again, skills, ANALYZERS["turn"], "oracle"))
    assert path.read_text() == first, "episodes read back from disk give the same examples"


def test_a_failure_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "sft.jsonl"
    dataset.write_examples(path, iter([{"a": 1}]))

    def broken() -> Iterator[dict[str, Any]]:
        yield {"a": 2}
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError):
        dataset.write_examples(path, broken())
    assert path.read_text() == '{"a": 1}\n'


def test_lines_end_at_line_feeds_alone(tmp_path: Path) -> None:
    """Line separators of Unicode occur in what models write, and JSON leaves them as they are."""
    odd = "one\u2028two\u0085three\x0cfour"
    message = {"role": "user", "content": odd}
    dataset.write_examples(tmp_path / "sft.jsonl", iter([{"prompt": [message], "completion": [message]}] * 2))
    assert [record["prompt"][0]["content"] for record in dataset.read_examples(tmp_path / "sft.jsonl")] == [odd, odd]
    assert [record["prompt"][0]["content"] for record in read_records(tmp_path / "sft.jsonl")] == [odd, odd]


def test_summary_and_step_skills_of_an_annotator_reach_the_training_answer() -> None:
    answer = json.dumps(
        {"episode_summary": "it went well", "episode_skill": "look into the fridge first", "step_skills": {"0": "go"}}
    )
    skill = ANALYZERS["json_steps"].parse(answer, 5)
    made = annotators.Annotation(skill, "endpoint:glm")
    (record,) = dataset.examples(EPISODES[:1], [made], ANALYZERS["json_steps"], "oracle")
    assert json.loads(record["completion"][0]["content"]) == json.loads(answer)
    rules = annotators.Annotation(annotators._checked("look into the fridge first"), "rules:x")
    (record,) = dataset.examples(EPISODES[1:2], [rules], ANALYZERS["json"], "oracle")
    target = json.loads(record["completion"][0]["content"])
    assert target["episode_summary"] == (
        "The attempt did not solve its task (max_steps) in 1 turn, none of them invalid."
    )


def test_an_oracle_that_knows_no_action_ends_its_own_episode_alone(server: Server, tmp_path: Path) -> None:
    player = EpisodePlayer(make_word_env, "words", GROWING)

    class Lost(WordEnv):
        def oracle_action(self) -> str:
            if self.word == "blue":
                raise OracleUnavailable("nothing is known about blue")
            return self.word

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WordEnv, "oracle_action", Lost.oracle_action)
        episodes = player.play([TaskSpec(word) for word in WORDS], collect.oracle_policy(GROWING))
    assert [item.success for item in episodes] == [True, True, False, True]
    assert episodes[2].error is not None and "nothing is known about blue" in episodes[2].error.message
    server.script = [reply(200, completion(SKILL))]
    client, _ = endpoint(server)
    found, failures = annotators.EndpointAnnotator(client, tmp_path, 2).annotate(episodes)
    assert not failures and len(server.bodies) == 3, "an episode without an outcome is not paid for"
    assert annotators.acceptance(found) == {"accepted": 0.75, "not_written": 0.25}


def test_a_folder_holds_one_collection(tmp_path: Path) -> None:
    collect.claim(tmp_path, {"policy": "oracle", "tasks": 3})
    collect.claim(tmp_path, {"policy": "oracle", "tasks": 3})
    with pytest.raises(UserError, match="holds a collection with policy='oracle', not 'random'"):
        collect.claim(tmp_path, {"policy": "random", "tasks": 3})


def test_over_long_examples_are_named_not_cut() -> None:
    records = [
        {
            "prompt": [{"role": "user", "content": " ".join(["no"] * n)}],
            "completion": [{"role": "assistant", "content": "red"}],
        }
        for n in (1, 50, 2)
    ]
    kept, too_long = split_by_length(records, word_tokenizer(), 20)
    assert len(kept) == 2 and too_long == [(1, 54)]


@pytest.mark.parametrize(("text", "message"), [("{", "line 1: not a stage 1 record"), ("", "holds no example")])
def test_bad_training_files_are_explained(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sft.jsonl"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        dataset.read_examples(path)
    with pytest.raises(UserError, match="does not exist"):
        dataset.read_examples(tmp_path / "none.jsonl")


def test_library_prefers_typical_skills_of_successes() -> None:
    made = [
        Trajectory("words", "t", "say", success=won, stop_reason=StopReason.SUCCESS if won else StopReason.MAX_STEPS)
        for won in (True, True, True, False)
    ]
    texts = [
        "open the fridge first",
        "open the fridge first of all then look",
        "open the fridge",
        "open the fridge first now",
    ]
    skills = [annotators.Annotation(annotators._checked(text, 1), "rules") for text in texts]
    assert dataset.build_library(made, skills).task_types == {"say": "open the fridge first"}
