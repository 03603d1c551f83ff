"""seed-play: built-in players finish an episode, and wrong requests are one line."""

from __future__ import annotations

import io

import pytest

from seed_envs.play import main


@pytest.mark.parametrize("env_id", ["seed/ALFWorld-v0", "seed/Sokoban-v0", "seed/EZPoints-v0"])
def test_the_oracle_wins_in_the_terminal(capsys, env_id):
    assert main([env_id, "--player", "oracle", "--seed", "1"]) == 0
    assert "success: True   score: 1.00" in capsys.readouterr().out


@pytest.mark.parametrize("player", ["random", "rule"])
@pytest.mark.parametrize("env_id", ["seed/Sokoban-v0", "seed/SearchQA-v0"])
def test_built_in_players_repeat_their_game_by_seed(capsys, env_id, player):
    played = []
    for _ in range(2):
        assert main([env_id, "--player", player, "--seed", "3"]) == 0
        played.append([line for line in capsys.readouterr().out.splitlines() if line.startswith("> ")])
    assert played[0] == played[1]
    if "Search" in env_id:
        assert all("<search>" in line or "<answer>" in line for line in played[0])


def test_a_person_sees_the_actions_and_leaves_at_the_end_of_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("?\nnonsense\n"))
    assert main(["seed/Sokoban-v0", "--seed", "1"]) == 1
    printed = capsys.readouterr().out
    assert "up\ndown\nleft\nright" in printed
    assert printed.count("unknown action 'nonsense'") == 1, "a refusal that the observation tells is not told twice"


def test_a_refusal_that_the_observation_does_not_tell_is_printed_once(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("nonsense\n"))
    assert main(["seed/Sokoban-v0", "--seed", "1", "--env-arg", "feedback=plain"]) == 1
    assert capsys.readouterr().out.count("[invalid: unknown action 'nonsense'") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["seed/Sokobann-v0"], "Did you mean 'seed/Sokoban-v0'"),
        (["seed/Sokoban-v0", "--split", "tets"], "Did you mean 'test'"),
        (["seed/Sokoban-v0", "--task_id", "nope"], "task 'nope'"),
        (["seed/Sokoban-v0", "--seed", "-1"], "greater or equal to zero, actual value: -1"),
        (["seed/Sokoban-v0", "--env-arg", "obs_mod=text"], "no argument 'obs_mod'"),
        (["seed/Sokoban-v0", "--picture", "room.jpg"], "--picture room.jpg; expected auto, blocks, none, or a file"),
        (["seed/Sokoban-v0", "--env-arg", "obs_mode=texts"], "obs_mode='texts' is unknown"),
    ],
)
def test_wrong_requests_are_one_line(capsys, arguments, message):
    assert main([*arguments, "--player", "random"]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1


def test_arguments_of_the_environment_are_read_as_json_or_text(capsys):
    arguments = ["--env-arg", "min_steps=1", "--env-arg", "max_steps=3", "--env-arg", "obs_mode=text"]
    assert main(["seed/Sokoban-v0", "--player", "oracle", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "task: retro-6x6-b1-s1-3/" in printed
    assert 1 <= printed.count("\n> ") <= 3
