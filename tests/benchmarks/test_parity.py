"""``python -m benchmarks.parity``: what counts as a difference, exit codes, and the projections of verl-agent."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from seed_benchmarks.parity import projections
from seed_benchmarks.parity.projections import SIDES, Recorded, compare_replies
from seed_benchmarks.parity.rows import Documented, Options, ParityRow
from seed_benchmarks.parity.running import check_names, format_results, is_clean, main
from seed_envs.errors import DataMissing

#: Replies whose reading follows from the words of the original: the lower-cased slice between the first opening and
#: the first closing tag, thinking tags in the original case and any order.
REPLIES = {
    "alfworld": [
        Recorded("<ACTION>Open Fridge 1</ACTION> done", "open fridge 1", False),
        Recorded("</think>x<think><ACTION>Look</action>", "look", True),
        Recorded("<think></think></action>a<action>b</action>", "", True),
        Recorded("<think></think> GO TO the desk number 1, please", "o to the desk number 1, please", False),
        Recorded("<think>\u770b</think><action>look</action>", "look", False),
    ],
    "search": [
        Recorded("<answer>a</answer> <search>q</search>", "<search>q</search>", False),
        Recorded("<answer>a</answer> </search>", "<answer>a</answer>", True),
        Recorded("<search>q</Search> more", "<search>q</search>", True),
        Recorded("</search><search>q</search>", "", False),
    ],
    "sokoban": [Recorded("<think></think><Action>DO NOT go up, go down</Action>", "up", True)],
    "ezpoints": [
        Recorded('"action": 110', "", False),
        Recorded('{"Action": 10}', "10", True),
        Recorded("take the 5 \n", "", False),
        Recorded("it is 5", "5", True),
    ],
}


@pytest.mark.parametrize("name", list(REPLIES))
def test_replies_are_read_as_the_original_reads_them(name):
    row = compare_replies(name, SIDES[name], REPLIES[name], "by hand")
    assert row.undocumented == [] and row.comparisons == 2 * len(REPLIES[name])


def test_the_recorded_replies_show_no_difference():
    try:
        rows = projections.compare(Options())
    except DataMissing as error:
        pytest.skip(f"real data: {error}")
    assert {row.what.split()[-1] for row in rows} == set(SIDES)
    for row in rows:
        assert row.undocumented == [] and not row.documented and row.comparisons > 700


def test_a_wrong_reading_is_found():
    row = compare_replies("alfworld", SIDES["alfworld"], [Recorded("<action>look</action>", "look", True)], "wrong")
    assert len(row.undocumented) == 1 and "valid is False, the original has True" in row.undocumented[0]


def test_documented_differences_are_counted_apart_and_pass():
    row, reason = ParityRow("a", "b"), Documented("art", "sokoban", "own art")
    row.check("level 1", {"picture": (1, 2), "text": ("x", "x")}, [reason])
    result = {"name": "s", "rows": [row.to_json()], "skipped": "", "error": ""}
    assert (row.comparisons, row.differences) == (2, 1) and is_clean(result)
    assert "art 1" in format_results([result])
    row.check("level 2", {"text": ("x", "y")})
    result = {"name": "s", "rows": [json.loads(json.dumps(row.to_json()))], "skipped": "", "error": ""}
    assert not is_clean(result) and "level 2: text is 'x', the original has 'y'" in format_results([result])


def test_a_check_that_compared_nothing_does_not_pass():
    result = {"name": "s", "rows": [ParityRow("a", "b").to_json()], "skipped": "", "error": ""}
    assert not is_clean(result) and not is_clean({**result, "rows": []})


def test_every_check_has_one_entry_point():
    names = check_names()
    assert "projections" in names and not {"rows", "running", "clones", "fuzzing", "textgames"} & set(names)
    for name in names:
        assert callable(importlib.import_module(f"seed_benchmarks.parity.{name}").compare)


def test_a_clone_is_compared_and_a_wrong_folder_is_named(tmp_path: Path, capsys):
    for side in SIDES.values():
        file = tmp_path / f"agent_system/environments/env_package/{side.folder}/projection.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def {side.function}(replies, *more):\n    return [''], [0]\n")
    (tmp_path / "agent_system/environments/env_package/sokoban/projection.py").write_text(
        "def sokoban_projection(replies):\n    return [0], [0]\n"
    )
    (tmp_path / "agent_system/environments/env_package/gym_cards/projection.py").write_text(
        "def gym_projection(replies, name):\n    return [-1], [0]\n"
    )
    rows = {row.what.split()[-1]: row for row in projections.compare(Options(tmp_path, 40))}
    assert set(rows) == set(SIDES) and all(row.comparisons == 80 for row in rows.values())
    assert rows["alfworld"].differences > 0  # this clone sends nothing; ours sends the end of the reply
    with pytest.raises(SystemExit) as stopped:
        main(["--against", str(tmp_path / "nowhere")])
    assert stopped.value.code == 2 and "there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["projection"], ["--episodes", "0"], ["projections", "--json", "no/x.json"]])
def test_requests_that_cannot_be_carried_out_end_in_one_line(arguments, capsys):
    try:
        code = main(arguments)
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2 and len(capsys.readouterr().err.strip().splitlines()) == 1
