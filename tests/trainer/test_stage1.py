"""Stage 1: collection that resumes, and annotation that pays for no answer twice."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from chat_server import completion, serve
from word_world import GROWING, WORDS, WordEnv, make_word_env, word_tokenizer

from seed_envs.endpoints.client import ChatClient
from seed_envs.errors import OracleUnavailable
from seed_envs.journal import read_records
from seed_envs.rollout import Reply, Request
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Step, StopReason, Trajectory
from seed_trainer.acting.play import EpisodePlayer
from seed_trainer.errors import UserError
from seed_trainer.skills.prompts import ANALYZERS
from seed_trainer.stage1 import annotators, collect, dataset
from seed_trainer.stage1.sft import split_by_length

SKILL = json.dumps({"episode_summary": "s", "episode_skill": "look into the fridge before the shelf"})


def says(text: Any, finish: str = "stop") -> Callable[[Any], None]:
    record = completion(text, 10, 4)
    record["choices"][0]["finish_reason"] = finish
    return lambda handler: handler.answer(record)


def refuses(status: int, text: str) -> Callable[[Any], None]:
    return lambda handler: handler.answer({"error": text}, status)


@pytest.fixture
def server() -> Iterator[Any]:
    counter = itertools.count()

    def behave(handler: Any, body: Any, attempt: int) -> None:
        script = handler.server.script
        script[min(next(counter), len(script) - 1)](handler)

    with serve(behave) as made:
        yield made


@pytest.fixture
def make_annotator(server: Any, tmp_path: Path) -> Iterator[Callable[..., annotators.EndpointAnnotator]]:
    """Makes annotators that ask the server, which stops for nobody's pause."""
    with ExitStack() as stack:

        def make(workers: int = 1, model: str = "glm", analyzer: str = "json") -> annotators.EndpointAnnotator:
            client = stack.enter_context(ChatClient(server.url, model, attempts=2, first_pause=0.0))
            asked = {"temperature": 0.0, "max_tokens": 64}
            return annotators.EndpointAnnotator(client, asked, tmp_path, workers, ANALYZERS[analyzer])

        yield make


def test_half_a_character_can_be_written_down(server: Any, make_annotator: Any) -> None:
    server.script = [
        says(json.dumps({"episode_skill": "look into the \ud83d fridge before the shelf"}, ensure_ascii=False))
    ]
    (found,), failures = make_annotator().annotate(EPISODES[:1])
    assert not failures and found is not None and found.skill.valid
    found.skill.text.encode()


def test_a_wrong_key_stops_the_whole_annotation(server: Any, make_annotator: Any) -> None:
    server.script = [refuses(401, "bad key")]
    found, failures = make_annotator().annotate([episode(n) for n in range(40)])
    assert set(found) == {None} and len(failures) == 40
    assert len(server.bodies) < 10, "the rest was not asked"
    assert "bad key" in failures[0]


def episode(number: int) -> Trajectory:
    steps = [Step("you see a fridge", [], "open fridge", "open fridge", True, "", 0.0)]
    won = number % 2 == 0
    stop = StopReason.SUCCESS if won else StopReason.MAX_STEPS
    return Trajectory(
        "words", WORDS[number % 4], f"type{number % 2}", "find it", steps=steps, success=won, stop_reason=stop
    )


EPISODES = [episode(number) for number in range(6)]


def test_invalid_skill_gets_one_repair_that_shows_error_and_tail(server: Any, make_annotator: Any) -> None:
    server.script = [says("I think the agent did well."), says(SKILL)]
    (found,), failures = make_annotator().annotate(EPISODES[:1])
    assert not failures and found is not None and found.skill.valid
    repair = server.bodies[1]["messages"]
    assert repair[1] == {"role": "assistant", "content": "I think the agent did well."}
    assert "no JSON object could be read" in repair[2]["content"]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([["no"], ["still no"]], "not_json"),
        ([[SKILL, "length"]] * 2, "truncated"),
        ([['{"episode_skill": "too short"}']] * 2, "too_short"),
        ([[None]] * 2, "not_json"),
    ],
)
def test_what_stays_invalid_is_counted_by_reason(
    server: Any, answers: list[list[str]], reason: str, make_annotator: Any
) -> None:
    server.script = [says(*answer) for answer in answers]
    found, _ = make_annotator().annotate(EPISODES[:1])
    assert annotators.acceptance(found) == {reason: 1.0}
    assert len(server.bodies) == 2, "one repair, not more"


def test_no_answer_is_ever_asked_for_twice(server: Any, tmp_path: Path, make_annotator: Any) -> None:
    server.script = [says(SKILL)] * 3 + [refuses(500, "down")]
    found, failures = make_annotator().annotate(EPISODES)
    assert sum(item is not None for item in found) == 3 and len(failures) == 3
    assert annotators.acceptance(found) == {"accepted": 0.5, "no_answer": 0.5}
    with (tmp_path / "answers.jsonl").open("a") as file:
        file.write('{"number": 5, "attem')  # torn by a crash
    server.script = [says(SKILL)]
    asked = len(server.bodies)
    for more in (3, 0):  # what was asked for after the torn line is there the next time
        annotator = make_annotator(3)
        again, failures = annotator.annotate(EPISODES)
        assert not failures and all(item is not None and item.skill.valid for item in again)
        assert len(server.bodies) - asked == more
        asked = len(server.bodies)
    assert annotator.spent() == (60, 24)


def test_answers_of_another_model_or_format_are_not_taken_over(server: Any, make_annotator: Any) -> None:
    server.script = [says(SKILL)]
    make_annotator().annotate(EPISODES[:1])
    make_annotator(model="other").annotate(EPISODES[:1])
    make_annotator(model="other", analyzer="json_steps").annotate(EPISODES[:1])
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


def test_an_oracle_that_knows_no_action_ends_its_own_episode_alone(server: Any, make_annotator: Any) -> None:
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
    server.script = [says(SKILL)]
    found, failures = make_annotator(2).annotate(episodes)
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
