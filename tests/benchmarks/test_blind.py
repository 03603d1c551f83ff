"""Blind players: pictures are taken away or exchanged, and no player of words alone beats the stored bound."""

from __future__ import annotations

import json

import numpy as np
import pytest

from seed_benchmarks.blind import Blind, check_pictures, donors_of, make_blind_env
from seed_benchmarks.blind_reference import PLAYERS, page, play_blind
from seed_benchmarks.cli import main
from seed_benchmarks.compare import perception
from seed_benchmarks.errors import ConfigInvalid, RunsDiffer
from seed_benchmarks.suites import SUITES
from seed_envs.errors import DataMissing
from seed_envs.profiles import get_profile
from seed_envs.wrappers import make_agent_env

EZPOINTS = "seed/EZPoints-v0"
TASKS = ["cards/H5-S7", "cards/HQ-S2", "cards/D3-C9"]


@pytest.fixture
def references(repo):
    return repo / "benchmarks" / "results" / "blind"


def picture(env, task_id, *replies):
    _, info = env.reset(seed=0, options={"task_id": task_id})
    for reply in replies:
        info = env.step(reply)[4]
    return info["turn"].image, info


def test_blank_pictures_are_black_and_everything_else_stays():
    profile = get_profile(EZPOINTS, "paper")
    seen, blind = make_agent_env(EZPOINTS, profile), make_blind_env(None, EZPOINTS, profile, None)
    for replies in ((), ('{"action": "5"}',)):
        (image, info), (black, blinded) = picture(seen, TASKS[0], *replies), picture(blind, TASKS[0], *replies)
        assert black.shape == image.shape and image.any() and not black.any()
        assert info["turn"].observation == blinded["turn"].observation and info["ezpoints"] == blinded["ezpoints"]


def test_shuffled_pictures_are_those_of_another_task_played_along():
    profile, donors = get_profile(EZPOINTS, "paper"), donors_of(TASKS, 3)
    assert set(donors) == set(donors.values()) == set(TASKS)
    assert all(task != donor for task, donor in donors.items())
    assert donors_of(TASKS, 3) == donors
    seen, blind = make_agent_env(EZPOINTS, profile), make_blind_env(donors, EZPOINTS, profile, None)
    for task in TASKS:
        for replies in ((), ('{"action": "+"}',), ('{"action": "="}',)):
            assert np.array_equal(picture(blind, task, *replies)[0], picture(seen, donors[task], *replies)[0])
    with pytest.raises(ConfigInvalid, match="another task"):
        donors_of(TASKS[:1], 0)


def test_a_twin_that_has_ended_keeps_its_last_picture():
    env = make_blind_env({TASKS[0]: TASKS[1], TASKS[1]: TASKS[0]}, EZPOINTS, get_profile(EZPOINTS, "paper"), None)
    assert isinstance(env, Blind)
    env.reset(options={"task_id": TASKS[0]})
    env.get_wrapper_attr("_twin").step('{"action": "="}')
    env._twin_ended = True
    before = env.step('{"action": "5"}')[4]["turn"].image
    assert np.array_equal(env.step('{"action": "+"}')[4]["turn"].image, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "ezpoints/mini", "--agent", "oracle"], "looks at no picture"),
        (["--suite", "ezpoints/mini_text", "--agent", "python:seed_benchmarks.text_only:fixed"], "shows no picture"),
    ],
)
def test_who_cannot_be_blinded_is_refused(arguments, message, tmp_path, capsys):
    assert main(["run", *arguments, "--blind", "blank", "--out", str(tmp_path / "run")]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "run").exists()
    with pytest.raises(ConfigInvalid, match="shows no picture"):
        check_pictures(EZPOINTS, get_profile(EZPOINTS, "strict-text"), TASKS[0], {})


def test_reports_show_score_blind_score_and_the_paired_difference(tmp_path, capsys):
    command = ["run", "--suite", "ezpoints/mini", "--limit", "6", "--agent", "python:seed_benchmarks.text_only:fixed"]
    for name, more in (("seen", []), ("blank", ["--blind", "blank"]), ("shuffle", ["--blind", "shuffle"])):
        assert main([*command, *more, "--quiet", "--out", str(tmp_path / name)]) == 0
    capsys.readouterr()
    assert main(["view", str(tmp_path / "seen"), "--blind", str(tmp_path / "shuffle")]) == 0
    shown = capsys.readouterr().out
    assert "blind (shuffle)" in shown and "won by looking" in shown and "0.0 % [" in shown
    assert "won by looking" in (tmp_path / "seen" / "report.html").read_text().lower()
    assert perception(tmp_path / "seen", tmp_path / "blank")["difference"] == 0.0  # this player reads words alone
    with pytest.raises(RunsDiffer, match="one with --blind"):
        perception(tmp_path / "blank", tmp_path / "seen")
    assert main(["view", str(tmp_path / "blank"), "--no-html"]) == 0
    assert "(blind: blank)" in capsys.readouterr().out


def test_every_picture_suite_has_a_reference_and_the_page_is_made_from_them(references):
    for suite in SUITES:
        try:
            check_pictures(suite.env_id, suite.find_profile(), suite.load_tasks().ids[0], suite.arguments({}))
        except (ConfigInvalid, DataMissing):  # no picture, or data that is not here
            continue
        assert suite.name in PLAYERS or suite.name == "sokoban/strict", suite.name  # the panel behind sokoban/mini
    for name in PLAYERS:
        record = json.loads((references / f"{name.replace('/', '_')}.json").read_text(encoding="utf-8"))
        assert record["suite"] == name and set(record["players"]) == set(PLAYERS[name])
    assert (references / "README.md").read_text(encoding="utf-8") == page(references)


@pytest.mark.parametrize(
    ("suite", "player"), [("ezpoints/paper", "refusals"), ("ezpoints/paper", "lottery"), ("points24/mini", "adder")]
)
def test_no_player_of_words_alone_beats_the_stored_bound(references, suite, player):
    """Fails when the words of a prompt begin to tell what only the picture should."""
    bound = json.loads((references / f"{suite.replace('/', '_')}.json").read_text(encoding="utf-8"))["bound"]
    assert play_blind(suite, player, 1)["success"]["rate"] <= bound


def test_a_prompt_that_names_refused_cards_would_be_caught(references, tmp_path, capsys):
    """The fault that the bound is there for: with refusals in the prompt, EZPoints is won without looking."""
    bound = json.loads((references / "ezpoints_paper.json").read_text(encoding="utf-8"))["bound"]
    command = ["--suite", "ezpoints/paper", "--agent", "python:seed_benchmarks.text_only:refusals", "--blind", "blank"]
    out = tmp_path / "run"
    assert main(["run", *command, "--env-arg", "feedback=verbose", "--quiet", "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["success"]["rate"] > bound
