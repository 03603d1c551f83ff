"""A game that is taken back continues as if nothing had happened; stored episodes of every kind become turns."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pytest

from seed_envs.chat import split_observation
from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.play import main
from seed_envs.playing.game import Game
from seed_envs.playing.stored import Episodes

FIVE = ["seed/ALFWorld-v0", "seed/WebShop-v0", "seed/SearchQA-v0", "seed/Sokoban-v0", "seed/EZPoints-v0"]


def same(first, second):
    (text, pixels), (other, others) = split_observation(first.observation), split_observation(second.observation)
    kept = (
        "task_id",
        "goal",
        "admissible_actions",
        "action_valid",
        "invalid_reason",
        "success",
        "score",
        "stop_reason",
    )
    facts = [{key: value for key, value in moment.info.items() if key in kept} for moment in (first, second)]
    for fact in facts:
        fact["admissible_actions"] = list(fact["admissible_actions"] or [])
    return text == other and np.array_equal(pixels, others) and facts[0] == facts[1] and first.total == second.total


@pytest.mark.parametrize("env_id", FIVE)
def test_a_whole_episode_is_taken_back_and_played_again(env_id):
    with contextlib.closing(Game(env_id, seed=3)) as game:
        for _ in range(60):
            if game.now.ended:
                break
            action, reason = game.hint()
            assert not reason
            game.act(action)
        assert game.now.info["success"]
        played = list(game.moments)
        assert game.hint() == ("", "the episode is over")
        while len(game.moments) > 1:
            assert game.undo() == ""
        assert game.undo() == "nothing to take back"
        game.act("nonsense that no environment reads")
        if not game.now.ended:
            assert game.now.info["stop_reason"] == "", "the end that was taken back is not told again"
        assert game.undo() == ""
        for moment in played[1:]:
            assert same(game.act(moment.action), moment)


def test_steps_that_were_taken_back_do_not_count_against_the_limit():
    with contextlib.closing(Game("seed/Sokoban-v0", seed=1)) as game:
        for _ in range(500):
            game.act("nonsense")
            assert not game.now.ended
            game.undo()
        while not game.now.ended:
            game.act("nonsense")
        last = len(game.moments)
        game.undo()
        assert not game.now.ended and game.act("nonsense").ended and len(game.moments) == last


def test_in_lines_a_person_asks_for_hints_and_takes_back(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("<\n!\nup\n<\n"))
    assert main(["seed/Sokoban-v0", "--seed", "1", "--env-arg", "obs_mode=text"]) == 1
    printed = capsys.readouterr().out
    assert "[nothing to take back]" in printed and "[taken back]" in printed
    with contextlib.closing(Game("seed/Sokoban-v0", seed=1)) as game:
        assert f"hint: {game.hint()[0]}\n" in printed


STEP = {
    "observation": "a room",
    "messages": [],
    "reply": "<action>up</action>",
    "action": "up",
    "format_valid": True,
    "action_valid": False,
    "invalid_reason": "a wall",
    "reward": -0.1,
    "seconds": {},
    "meta": {},
}
HEAD = {"task_id": "t1", "goal": "win", "success": False}
TRAJECTORY = {**HEAD, "schema_version": 1, "steps": [STEP], "final_observation": "the same room"}
TRAINED = {
    **HEAD,
    "round": 2,
    "skill": "look first",
    "turns": [{"observation": "a room", "reply": "up", "action": "up", "valid": False, "reason": "a wall"}],
    "rows": [{"tokens": ["u", "p"], "mask": [1, 0], "student": [-1, -1], "teacher": [-0.5, -1], "gate": [0.9, 0.5]}],
}
KINDS = {
    "a run of seed-bench": {**HEAD, "steps": 1, "transcript": {"steps": [STEP], "final_observation": "the same room"}},
    "a collection of seed-train data": {"number": 0, "trajectory": TRAJECTORY},
    "demonstrations": TRAJECTORY,
    "episodes of seed-train rl": TRAINED,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_stored_episode_is_shown(tmp_path, capsys, kind):
    (tmp_path / "episodes.jsonl").write_text(json.dumps(KINDS[kind]) + "\n")
    (episode,) = Episodes(tmp_path)
    assert (episode.task_id, episode.goal, episode.success) == ("t1", "win", False)
    assert (episode.turns[0].observation, episode.turns[0].action, episode.turns[0].refusal) == (
        "a room",
        "up",
        "a wall",
    )
    assert main(["--replay", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "-- turn 1" in printed and "> up" in printed and "[invalid: a wall]" in printed and "not solved" in printed


def test_gates_become_colours_and_skills_are_shown(tmp_path, capsys):
    (tmp_path / "episodes.jsonl").write_text(json.dumps(TRAINED) + "\n")
    ((first, second),) = Episodes(tmp_path)[0].tokens
    assert first.colour.startswith("rgb(") and "gate 0.900" in first.tip and not second.sampled
    assert main(["--replay", str(tmp_path)]) == 0
    assert "skill: look first" in capsys.readouterr().out


def test_pictures_are_read_from_beside_the_episodes_and_from_nowhere_else(tmp_path):
    names = ["images/" + "a" * 24 + ".png", "../secret.png", "/etc/passwd", "images/../images/" + "a" * 24 + ".png"]
    (tmp_path / "run" / "images").mkdir(parents=True)
    for path in (tmp_path / "run" / names[0], tmp_path / "secret.png"):
        path.write_bytes(b"png")
    for name in names:
        shown = [{"role": "user", "content": [{"type": "image", "file": name}, {"type": "text", "text": "look"}]}]
        record = {**TRAJECTORY, "steps": [{**STEP, "messages": shown}, STEP]}
        (tmp_path / "run" / "episodes.jsonl").write_text(json.dumps(record) + "\n")
        turns = Episodes(tmp_path / "run")[0].turns
        expected = tmp_path / "run" / names[0] if name == names[0] else None
        assert [turn.picture for turn in turns[:2]] == [expected, expected]


@pytest.mark.parametrize("line", ['{"a": 1}', "[]", "3", "nonsense", '{"steps": 4, "task_id": "t"}', '{"turns": [1]}'])
def test_a_line_that_is_no_episode_is_named(tmp_path, line):
    (tmp_path / "episodes.jsonl").write_text(line + "\n")
    with pytest.raises(DataInvalid, match=r"episodes\.jsonl, line 1: no stored episode"):
        Episodes(tmp_path)


def test_wrong_requests_are_one_line(tmp_path, capsys):
    with pytest.raises(DataMissing):
        Episodes(tmp_path)
    (tmp_path / "episodes.jsonl").write_text(json.dumps(TRAINED) + "\n")
    for arguments, message in [
        ([], "name an environment"),
        (["--replay", str(tmp_path / "none")], "holds no stored episodes"),
        (["--replay", str(tmp_path), "--episode", "1"], "episodes 0 to 0; there is no episode 1"),
        (["--web", "--replay", str(tmp_path / "none")], "holds no stored episodes"),
        (["--web", "--port", "70000"], "ports go from 0"),
        (["--web", "seed/Sokobann-v0"], "Did you mean 'seed/Sokoban-v0'"),
    ]:
        assert main(arguments) == 2
        complaint = capsys.readouterr().err
        assert message in complaint and complaint.count("\n") == 1


def test_text_of_models_and_shops_does_not_command_the_terminal(capsys, monkeypatch, tmp_path):
    file, spell = tmp_path / "episodes.jsonl", "\x1b[2J\x1b]0;mine\x07\r\x9b1A"
    turn = {"observation": spell, "reply": spell, "action": spell, "valid": False, "reason": spell}
    file.write_text(json.dumps({**TRAINED, "goal": spell, "skill": spell, "turns": [turn]}) + "\n")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["--replay", str(file)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\\x1b[2J") == 6, "goal, observation, reply, action, reason, skill"
    assert all(sign.isprintable() or sign == "\n" for sign in printed)
