"""Asking for skills, reading them, and choosing whose skill teaches."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import numpy as np
import pytest

from seed_envs.trajectory import Step, StopReason, Trajectory
from seed_trainer.settings.options import parse_skill_source
from seed_trainer.skills.context import SkillContext, SkillMemory
from seed_trainer.skills.library import SkillLibrary
from seed_trainer.skills.parsing import REASONS, HindsightSkill, parse_json_skill, parse_plain_skill, repeats_itself
from seed_trainer.skills.privilege import without_names
from seed_trainer.skills.prompts import ANALYZERS, document_messages, get_analyzer, outcome_of, training_answer
from seed_trainer.skills.sources import GENERIC, assign_skills

GOOD = "Look into the fridge before the shelves."


@pytest.mark.parametrize(
    "answer",
    [
        f'{{"episode_summary": "s", "episode_skill": "{GOOD}"}}',
        f'Sure!\n```json\n{{"episode_skill": "{GOOD}",}}\n```\nbye',
        f'thinking {{not json}} then {{"a": 1}} {{"episode_skill": "{GOOD}"}} trailing',
        f"{{'episode_skill': '{GOOD}', 'n': None}}",
        '{"episode_skill": "Look into the fridge\nbefore the shelves."}',
        f'{{"episode_skill": "{GOOD}", "list": [1, 2,],}}',
        f'A draft: {{"episode_skill": "Do it all otherwise, please."}}\n```\n{{"episode_skill": "{GOOD}"}}\n```',
        f'Here: {{"": "a}}", "b": "\\\\", "c": "\\"}}", "episode_skill": "{GOOD}"}} it is.',
        f'```json\n{{"other": 1}}\n```\nAnd {{{{"sure": true, "episode_skill": "{GOOD}"}} it is.',
        "{'a': 1} " * 99 + f"{{'episode_skill': '{GOOD}'}}",
        "." * 190_000 + '{"a": 1} ' * 50 + f'{{"episode_skill": "{GOOD}"}}',
        f'{{"episode_skill": "{GOOD}"}} or }}',
    ],
    ids=[
        *("plain", "fenced", "surrounded", "literal", "line break", "trailing commas", "after a draft", "quotes"),
        *("after another", "last of many", "at the end", "before a brace"),
    ],
)
def test_answers_that_models_really_write_are_read(answer: str) -> None:
    skill = parse_json_skill(answer, 5)
    assert skill.valid and " ".join(skill.text.split()) == GOOD


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("no braces at all", "not_json"),
        ("[1, 2]", "not_json"),
        ('{"episode_summary": "only"}', "no_field"),
        ('{"episode_skill": ["a", "b"]}', "not_a_string"),
        ('{"episode_skill": "   "}', "blank"),
        ('{"episode_skill": "too few"}', "too_short"),
        ('{"episode_skill": "' + "go on " * 8 + '"}', "loop"),
        ('{"episode_skill": "cut off', "not_json"),
        ("__import__('os').system('true')", "not_json"),
        ("{" * 3000, "not_json"),
    ],
)
def test_unusable_answers_have_a_named_reason(answer: str, reason: str) -> None:
    assert parse_json_skill(answer, 5).reason == reason
    assert reason in REASONS


def test_literal_parse_never_evaluates_code() -> None:
    assert parse_json_skill("{'episode_skill': __import__('os').getcwd()}", 1).reason == "not_json"


def test_step_skills_are_read_by_number() -> None:
    skill = parse_json_skill('{"episode_skill": "a b", "step_skills": {"3": "open it", "x": "no", "4": 5}}', 1)
    assert skill.step_skills == {3: "open it"} and skill.summary == ""
    noted = parse_json_skill('{"episode_skill": "a b", "episode_summary": " it went well\\ud800 "}', 1)
    assert (noted.text, noted.summary) == ("a b", "it went well?")
    assert parse_json_skill('{"episode_skill": "a b", "episode_summary": 5}', 1).summary == ""
    odd = {"\u00b2": "superscript", "9" * 5000: "huge", "-1": "negative", "0": " ", "5": "look", "6": "second"}
    skill = parse_json_skill(json.dumps({"episode_skill": "a b", "step_skills": odd}), 1)
    assert skill.valid and skill.step_skills == {5: "look"}, "one critical step, whatever a model writes"


@pytest.mark.parametrize(
    "answer", ["{" * 200_000, "```" + " " * 200_000, "```" + "a" * 200_000, '{"' * 100_000, "," * 200_000]
)
def test_hostile_answers_cost_no_time(answer: str) -> None:
    started = time.process_time()
    assert parse_json_skill(answer, 1).reason == "not_json"
    assert time.process_time() - started < 60, "quadratic parsing would take hours"


def test_plain_skill_of_word_level_models() -> None:
    assert parse_plain_skill(" go to shelf 1 ", 1).text == "go to shelf 1"
    assert parse_plain_skill("  ", 1).reason == "blank"


def test_repetition_is_found_and_ordinary_lists_are_not() -> None:
    assert repeats_itself("again and again and again and again and")
    assert not repeats_itself("well again and again and again and again"), "three times and a half"
    assert not repeats_itself("first one one one"), "three times"
    assert not repeats_itself("go to shelf 1 then go to shelf 2 then go to shelf 3 then go to shelf 4")


def episode(steps: int = 3, success: bool = False, task: str = "t", kind: str = "pick") -> Trajectory:
    made = [
        Step(
            f"observation {i} <|im_end|>",
            [],
            f"reply {i}",
            f"act {i}",
            i != 1,
            "" if i != 1 else "nothing happens",
            0.5,
        )
        for i in range(steps)
    ]
    stop = StopReason.SUCCESS if success else StopReason.MAX_STEPS
    return Trajectory("env", task, kind, "put it away", steps=made, success=success, stop_reason=stop, total_reward=0.5)


@pytest.mark.parametrize(("success", "word", "other"), [(True, "workflow", "mistake"), (False, "mistake", "workflow")])
def test_document_request_shows_outcome_and_steps_but_no_rewards(success: bool, word: str, other: str) -> None:
    made = episode(success=success)
    (message,) = document_messages(made, ANALYZERS["json"], outcome_of(made))
    content = message["content"]
    assert f"Outcome: {'success' if success else 'failure'}" in content and "put it away" in content
    assert word in content.split("Rules:")[0] and other not in content.split("Rules:")[0]
    assert "Step 2" in content and "reply 2" in content and "no (nothing happens)" in content
    assert "0.5" not in content and "reward" not in content.lower()
    assert "<|im_end|>" not in content, "text of the episode must not open a new role"


def test_over_long_episode_loses_middle_steps_never_task_outcome_or_last_step() -> None:
    made = episode(steps=40)
    (message,) = document_messages(made, ANALYZERS["json"], "failure", lambda m: len(m[0]["content"]) < 2500)
    content = message["content"]
    assert len(content) < 2500 and "omitted for length" in content
    assert "put it away" in content and "Outcome: failure" in content and "Step 39" in content and "Step 0" in content


def test_fault_is_an_unknown_outcome() -> None:
    made = episode()
    made.stop_reason = StopReason.ENV_ERROR
    assert outcome_of(made) == "unknown"


@pytest.mark.parametrize("name", sorted(ANALYZERS))
def test_training_answer_is_read_back_by_its_own_analyzer(name: str) -> None:
    analyzer = ANALYZERS[name]
    awkward = 'Say "hello" {first},\nthen go.' if analyzer.style == "document" else "go to shelf 1"
    skill = analyzer.parse(training_answer(analyzer, HindsightSkill(awkward), "sum"), 1)
    assert skill.valid and skill.text == awkward


def test_analyzer_choice_follows_the_profile_and_bad_names_are_explained() -> None:
    assert get_analyzer("auto", "growing").name == "turn" and get_analyzer("auto", "window").name == "json"
    with pytest.raises(ValueError, match="Did you mean 'json_steps'"):
        get_analyzer("json_step", "window")
    with pytest.raises(ValueError, match="needs a profile of style 'growing'"):
        get_analyzer("turn", "window")


EPISODES = [episode(success=i % 2 == 0, task=f"task{i // 4}", kind=f"kind{i // 4}") for i in range(12)]
OWN = [HindsightSkill(f"skill {i}", "" if i != 5 else "blank", 3) for i in range(12)]


def context(**changes: Any) -> SkillContext:
    base: dict[str, Any] = {
        "trajectories": EPISODES,
        "group_size": 4,
        "round_index": 7,
        "rng": np.random.default_rng(0),
        "library": None,
        "memory": SkillMemory(),
        "random_text": lambda length: " ".join(["word"] * length),
        "annotate": lambda episode: f"ruled {episode.success}",
    }
    return SkillContext(**{**base, **changes})


def assigned(source: str, **changes: Any) -> list[HindsightSkill]:
    return assign_skills(parse_skill_source(source), OWN, context(**changes))


def donors(skills: list[HindsightSkill]) -> list[int]:
    return [int(skill.text.split()[1]) for skill in skills]


def test_own_skills_stay_where_they_are() -> None:
    assert donors(assigned("own")) == list(range(12))


def test_shuffled_group_is_a_derangement_within_the_task_and_names_the_outcome() -> None:
    skills = assigned("shuffled_group")
    lent = donors(skills)
    assert sorted(lent) == list(range(12)) and all(a != b and a // 4 == b // 4 for a, b in enumerate(lent))
    for receiver, (donor, skill) in enumerate(zip(lent, skills, strict=True)):
        same = EPISODES[receiver].success == EPISODES[donor].success
        assert skill.origin == f"shuffled_group:{'same' if same else 'other'}_outcome"
        assert skill.reason == OWN[donor].reason


def test_shuffled_batch_lends_from_another_task_each_skill_once() -> None:
    lent = donors(assigned("shuffled_batch"))
    assert sorted(lent) == list(range(12)) and all(a // 4 != b // 4 for a, b in enumerate(lent))
    assert {skill.reason for skill in assigned("shuffled_batch", group_size=12)} == {"no_partner"}


def test_shuffled_family_lends_from_another_task_of_the_same_family_alone() -> None:
    family = [episode(success=True, task=f"task{i // 4}", kind="kind" if i < 8 else "other") for i in range(12)]
    skills = assigned("shuffled_family", trajectories=family)
    assert [skill.reason for skill in skills[8:]] == ["no_partner"] * 4, "its family has one task"
    assert {int(skill.text.split()[1]) // 4 for skill in skills[:4]} == {1}
    assert {int(skill.text.split()[1]) // 4 for skill in skills[4:8]} == {0}


@pytest.mark.parametrize(("source", "won"), [("sibling_won", True), ("sibling_lost", False)])
def test_siblings_lend_by_their_outcome_and_never_to_themselves(source: str, won: bool) -> None:
    for receiver, skill in enumerate(assigned(source)):
        if (source, receiver) == ("sibling_lost", 7):  # the only other failure of its group wrote nothing usable
            assert skill.reason == "no_partner"
            continue
        donor = int(skill.text.split()[1])
        assert donor // 4 == receiver // 4 and donor != receiver and EPISODES[donor].success == won
        assert OWN[donor].valid
    lost = [episode(success=False, task="task", kind="kind") for _ in range(12)]
    assert {skill.reason for skill in assigned("sibling_won", trajectories=lost)} == {"no_partner"}


def test_the_annotator_writes_about_every_scored_episode() -> None:
    texts = [skill.text for skill in assign_skills(parse_skill_source("annotator"), [], context())]
    assert texts == [f"ruled {item.success}" for item in EPISODES]


def test_privilege_is_taken_away_by_words() -> None:
    seen = "You see a shelf 2 and a cabinet 1."
    told = episode(success=True, task="task", kind="kind")
    told = dataclasses.replace(told, goal="put a hot mug in cabinet", final_observation="On the shelf 2 is a mug 1.")
    told.steps[0].observation, told.steps[0].action, told.steps[0].action_valid = seen, "take mug 1 from shelf 2", True
    skill = "First take mug 1 from shelf 2, then put it in cabinet 1."
    assert without_names(skill, told, keep_goal=True) == "First take mug it from it, then put it in cabinet it."
    assert without_names(skill, told, keep_goal=False) == "First take it from it, then put it in it."
    assert without_names("Never do the same thing twice.", told, keep_goal=False) == "Never do the same thing twice."


def test_random_text_matches_length_and_validity() -> None:
    skills = assigned("random_text")
    assert {len(skill.text.split()) for skill in skills} == {3}
    assert [skill.valid for skill in skills] == [skill.valid for skill in OWN]


def test_library_generic_and_none_need_no_own_skills() -> None:
    library = SkillLibrary("general.", {"kind0": "first."})
    skills = assign_skills(parse_skill_source("library"), [], context(library=library))
    assert [skills[0].text, skills[4].text] == ["general.\nfirst.", "general."]
    assert {skill.text for skill in assign_skills(parse_skill_source("generic"), [], context())} == {GENERIC}
    empty = assign_skills(parse_skill_source("none"), [], context())
    assert {skill.text for skill in empty} == {""} and all(skill.valid for skill in empty)


def test_stale_text_recalls_only_old_skills_of_the_same_task() -> None:
    memory = SkillMemory({"task0": [(1, "old 0"), (5, "newer 0")], "task1": [(6, "too new")]})
    skills = assigned("stale_text(2)", memory=memory)
    assert {skill.text for skill in skills[:4]} <= {"old 0", "newer 0"}
    assert {skill.reason for skill in skills[4:]} == {"no_stale_skill"}
    assert memory.skills["task2"][0] == (7, "skill 8"), "today's skills are remembered for later"
    first = assigned("stale_text(inf)", memory=SkillMemory({"task0": [(1, "old 0"), (5, "newer 0")]}))
    assert {skill.text for skill in first[:4]} == {"old 0"}


def test_library_file_round_trip_and_errors(tmp_path: Any) -> None:
    SkillLibrary("g", {"a": "b"}).save(tmp_path / "l.json")
    assert SkillLibrary.load(tmp_path / "l.json").skill("a") == "g\nb"
    with pytest.raises(ValueError, match="does not exist"):
        SkillLibrary.load(tmp_path / "missing.json")
    (tmp_path / "bad.json").write_text('{"task_types": {"a": 1}}')
    with pytest.raises(ValueError, match="expected"):
        SkillLibrary.load(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ovn", "Did you mean 'own'"),
        ("stale", "should read stale\\(k\\)"),
        ("own(3)", "without a number"),
        ("stale(x)", "unknown skill_source"),
    ],
)
def test_bad_skill_sources_are_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_skill_source(text)
