"""seed-play: built-in players finish an episode, and wrong requests are one line."""

from __future__ import annotations

import io

import pytest

from seed_envs.play import main


@pytest.mark.parametrize("env_id", ["seed/ALFWorld-v0", "seed/Sokoban-v0", "seed/EZPoints-v0"])
def test_the_oracle_wins_in_the_terminal(capsys, env_id):
    assert main([env_id, "--player", "oracle", "--seed", "1"]) == 0
    assert "success: True   score: 1.00" in capsys.readouterr().out


def test_a_person_sees_the_actions_and_leaves_at_the_end_of_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("?\nnonsense\n"))
    assert main(["seed/Sokoban-v0", "--seed", "1"]) == 1
    printed = capsys.readouterr().out
    assert "up\ndown\nleft\nright" in printed
    assert "[invalid: unknown action 'nonsense'" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["seed/Sokobann-v0"], "Did you mean 'seed/Sokoban-v0'"),
        (["seed/Sokoban-v0", "--split", "tets"], "Did you mean 'test'"),
        (["seed/Sokoban-v0", "--task_id", "nope"], "task 'nope'"),
        (["seed/Sokoban-v0", "--seed", "-1"], "greater or equal to zero, actual value: -1"),
    ],
)
def test_wrong_requests_are_one_line(capsys, arguments, message):
    assert main([*arguments, "--player", "random"]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
