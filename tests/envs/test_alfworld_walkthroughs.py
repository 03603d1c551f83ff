"""Every official game on disk is won by its own walkthrough, exactly at the last command."""

from __future__ import annotations

from pathlib import Path

import pytest

from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.library import Library, open_source


@pytest.fixture(scope="module")
def library(data_dir: Path) -> Library:
    return open_source(data_dir / "alfworld")


def test_all_walkthroughs_win_at_their_last_command_and_none_is_rejected(library: Library) -> None:
    wrong = []
    for task_id in library.ids:
        engine = Engine(library.game(task_id))
        commands = engine.game.walkthrough
        wins = [engine.won]
        for command in commands:
            if command not in engine.admissible() or not engine.act(command).valid:
                wrong.append(f"{task_id}: {command!r} rejected")
            wins.append(engine.won)
        if wins != [False] * len(commands) + [True]:
            wrong.append(f"{task_id}: won after commands {[i for i, won in enumerate(wins) if won]} of {len(commands)}")
    assert len(library.ids) == 3_693
    assert not wrong, wrong[:10]


def test_the_families_and_scenes_are_those_of_the_benchmark(library: Library) -> None:
    games = [library.game(task_id) for task_id in library.ids if task_id.startswith("train/")]
    counts = {kind: sum(game.goal.kind == kind for game in games) for kind in ("simple", "look", "clean", "heat")}
    assert counts == {"simple": 790, "look": 308, "clean": 650, "heat": 459}
    assert max(len(game.receptacles) for game in games) == 54
