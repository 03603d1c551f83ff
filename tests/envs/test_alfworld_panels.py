"""The hard panels: fixed lists, always winnable within their limits, lost by the explorer; people's sentences."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from alfworld_files import document, put_game

from seed_envs.alfworld.env import ALFWorldEnv
from seed_envs.alfworld.generator import rooms, tables
from seed_envs.alfworld.generator.words import DESCRIPTIONS, REQUESTS
from seed_envs.alfworld.goals import TASK_TYPES
from seed_envs.alfworld.reading import guess_goal
from seed_envs.alfworld.tasks import HUMAN_SPLITS, PANEL_SPLITS, manifest
from seed_envs.errors import DataMissing, UnknownOption, UnknownTask

LIMIT = 30
BUDGETS = {
    "unlikely_places": 3,
    "crowded": 2,
    "new_layouts": 1.5,
    "two_goals": 1.5,
    "own_words": 0,
}
HASHES = {
    "unlikely_places": "54552d6711eb17bc6147c7535beceba23f9a2efc4a497a94ec3b1b411e175ab6",
    "crowded": "ca42e7dee780e1b9ba2860e65ddd283f26efd09aca2d200eeac42e649e1cba96",
    "new_layouts": "55806df564900f0197c25cb8281deea099df8eb17c1f5ffe79dab424d7f2dcab",
    "two_goals": "a4307ecde19c1104eceebd557152e9d22888e81e99199309ec17fbeb9fbf8b16",
    "own_words": "94073ef613dde4a2f6e1f5e1700b1620d1140859b2e89e20a4f02fd4a57fe057",
    "human_valid_seen": "a6e39aafb4b4da185951998db74f1843b4c991c2acb618fde655dfd5d60ccac6",
    "human_valid_unseen": "d84f278ce763045d843b84e846b273fc4db84a7b6821d8afffc48afb829c3836",
}


def outcome(env: ALFWorldEnv, task_id: str, player: str) -> tuple[bool, int]:
    """Success and commands of one episode within the limits."""
    env.reset(options={"task_id": task_id})
    for number in range(1, LIMIT + 1):
        _, _, terminated, truncated, info = env.step(getattr(env, player)())
        if terminated or truncated:
            assert info["success"] == terminated and (terminated or info["stop_reason"] == "max_steps")
            return terminated, number
    return False, LIMIT


def test_the_lists_are_fixed_and_hold_every_family_alike() -> None:
    assert {name: manifest(name).sha256 for name in HASHES} == HASHES
    assert set(HASHES) == {*PANEL_SPLITS, *HUMAN_SPLITS} and set(BUDGETS) == set(PANEL_SPLITS)
    for split in PANEL_SPLITS:
        knobs = [rooms.parse_id(task_id) for task_id in manifest(split)]
        assert len(knobs) == 120 and {part for part, *_ in knobs} == {"valid_unseen"}
        assert [k.task_type for *_, k in knobs] == list(TASK_TYPES.values()) * 20
        assert len({dataclasses.replace(k, task_type="") for *_, k in knobs}) == 1
    assert len(manifest("human_valid_seen")) == 420 and len(manifest("human_valid_unseen")) == 402


@pytest.mark.parametrize("split", PANEL_SPLITS)
def test_the_oracle_wins_within_the_limits(split: str) -> None:
    env = ALFWorldEnv(split=split, budget=BUDGETS[split])
    assert all(outcome(env, task_id, "oracle_action")[0] for task_id in manifest(split)[::10])


@pytest.mark.slow
@pytest.mark.parametrize("split", PANEL_SPLITS)
def test_the_oracle_wins_all_and_the_explorer_less_than_six_in_ten(split: str) -> None:
    env = ALFWorldEnv(split=split, budget=BUDGETS[split])
    assert all(outcome(env, task_id, "oracle_action")[0] for task_id in manifest(split))
    assert sum(outcome(env, task_id, "rule_action")[0] for task_id in manifest(split)) < 72


def test_knobs_make_games_hard_in_one_way() -> None:
    plain, knobs = rooms.generate("procedural/valid_unseen/6"), rooms.Knobs
    flat = rooms.generate(rooms.make_id("valid_unseen", 6, knobs(rooms=4)))
    assert len(flat.receptacles) > 2 * len(plain.receptacles)
    assert {"fridge", "bed", "toilet", "sofa"} - set(flat.receptacle_types) <= {"sofa"}
    assert len(set(flat.places)) > len(set(plain.places))
    crowded = rooms.generate(rooms.make_id("valid_unseen", 6, knobs(crowd=40)))
    assert len(set(crowded.object_types)) > len(set(plain.object_types)) + 15
    for seed in range(12):
        game = rooms.generate(rooms.make_id("valid_unseen", seed, knobs(crowd=5)))
        assert game.targets.bit_count() == (2 if game.goal.kind == "two" else 1)
    usual, rare = (
        sum(rarity(rooms.make_id("train", seed, knobs(unlikely=odd))) for seed in range(20)) for odd in (0, 1)
    )
    assert usual > 2 * rare


def rarity(task_id: str) -> float:
    """How frequent the places of a game's things are in the official games, on average."""
    game, typical = rooms.generate(task_id), rooms.typical_places()
    counts = [
        typical.get(game.object_types[item], {}).get(game.receptacle_types[r], 0)
        for r, row in enumerate(game.start.contents)
        for item in row
        if game.pickupable >> item & 1
    ]
    return sum(counts) / len(counts)


def test_two_goals_must_be_met_together() -> None:
    env = ALFWorldEnv(split="two_goals")
    for task_id in manifest("two_goals")[:30:5]:
        _, info = env.reset(options={"task_id": task_id})
        first, second = env.game.goal.parts
        assert first.object_type != second.object_type and {first.kind, second.kind} != {"look"}
        assert ", and " in info["goal"] and info["task_type"] == first.task_type
        rates = [info["alfworld"]["goal_condition_rate"]]
        while rates[-1] < 1:
            _, reward, terminated, _, info = env.step(env.oracle_action())
            rates.append(info["alfworld"]["goal_condition_rate"])
            assert terminated == (reward == 1.0) == all(info["alfworld"]["subgoals"].values())
        assert any(name.startswith("also_") for name in info["alfworld"]["subgoals"])


def test_descriptions_name_nothing_and_tell_all_apart() -> None:
    kinds = {*tables.PICKUPABLE, *tables.CAN_CONTAIN, "desklamp"}
    assert set(DESCRIPTIONS) == kinds and set(REQUESTS) == set(TASK_TYPES)
    texts = [text for both in DESCRIPTIONS.values() for text in both]
    assert len(set(texts)) == len(texts)
    assert not [
        text for text in texts + [r for both in REQUESTS.values() for r in both] if re.search(r'[;|"<>\[\]#]', text)
    ]
    for kind, both in DESCRIPTIONS.items():
        assert not [text for text in both if re.search(rf"\b{kind}s?\b", text)], kind
    read = [guess_goal(rooms.generate(i).sentence) == rooms.generate(i).goal for i in manifest("own_words")[:60]]
    assert sum(read) < 12


def test_a_budget_ends_the_episode_and_survives_copies() -> None:
    env = ALFWorldEnv(budget=1.5)
    _, info = env.reset(options={"task_id": "procedural/train/9"})
    allowed = math.ceil(1.5 * len(env.game.walkthrough))
    assert info["alfworld"]["budget"] == allowed
    for _ in range(allowed - 1):
        assert not env.step("look")[3]
    saved, twin = env.get_state(), copy.deepcopy(env)
    other = ALFWorldEnv(budget=1.5)
    other.reset(seed=0)
    other.set_state(saved)
    for member in (env, twin, other):
        _, _, terminated, truncated, info = member.step("nonsense")
        assert truncated and not terminated and info["stop_reason"] == "max_steps" and not info["success"]
    env.reset(options={"task_id": "procedural/train/9"})
    for command in env.game.walkthrough:
        *_, terminated, truncated, _ = env.step(command)
    assert terminated and not truncated
    assert ALFWorldEnv().reset(seed=0)[1]["alfworld"]["budget"] is None
    for wrong in (0.5, -1, True, "2", math.nan, 21):
        with pytest.raises(UnknownOption, match="expected 0 or a number from 1 to 20|expected a number"):
            ALFWorldEnv(budget=wrong)  # type: ignore[arg-type]


def test_peoples_sentences_are_shown_and_the_goal_stays(data_dir: Path) -> None:
    env = ALFWorldEnv(data_dir=data_dir / "alfworld", split="human_valid_seen")
    env.require_data("human_valid_seen")
    listed = env.task_ids("human_valid_seen")
    observation, info = env.reset(options={"task_id": listed[0]})
    assert info["goal"].startswith("Your task is to: ") and observation.endswith(info["goal"])
    goal, sentences = env.game.goal, set()
    for task_id in listed[:3]:
        sentences.add(env.reset(options={"task_id": task_id})[1]["goal"])
        assert env.game.goal == goal and outcome(env, task_id, "oracle_action")[0]
    assert len(sentences) == 2 and env.game.goal.sentence() not in sentences
    assert env.source.document(listed[0])["grammar"].count(observation.rpartition("\n")[2]) == 1
    assert len(env._chooser.listed("human_valid_seen", ["look_at_obj_in_light"], ())) == 39
    assert env.data_source(listed[0]).kind == "real" and env.belongs(listed[0], "human_valid_seen")
    with pytest.raises(UnknownTask, match="Did you mean"):
        env.reset(options={"task_id": listed[0][:-1] + "7"})
    won = sum(outcome(env, task_id, "rule_action")[0] for task_id in listed)
    assert won < 0.6 * 420


def test_sentences_beside_game_files_are_read(tmp_path: Path) -> None:
    task_id = manifest("human_valid_unseen")[4]
    game = task_id.removeprefix("human/").rpartition("/")[0]
    put_game(tmp_path / "json_2.1.1", game, document("compact/train/0"))
    env = ALFWorldEnv(data_dir=tmp_path)
    with pytest.raises(DataMissing, match=r"0 sentences .* traj_data.json"):
        env.reset(options={"task_id": task_id})
    wishes: list[dict[str, Any]] = [{"task_desc": text} for text in ("One.", "\x08Two  things. ", "Three")]
    beside = tmp_path / "json_2.1.1" / game / "traj_data.json"
    beside.write_text(json.dumps({"turk_annotations": {"anns": wishes}}))
    assert env.reset(options={"task_id": task_id})[1]["goal"] == "Your task is to: Two things."
