"""Exact knowledge about levels against independent forward searches, and A* on real Boxoban levels."""

from __future__ import annotations

import functools
import random
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from seed_envs.errors import SeedEnvsError
from seed_envs.vision.sokoban.astar import PushSearch
from seed_envs.vision.sokoban.classic import NoLevel
from seed_envs.vision.sokoban.generator import (
    Difficulty,
    GenerationFailed,
    SolvedLevel,
    generate,
    generate_distinct,
    split_of,
)
from seed_envs.vision.sokoban.levels import Level, level_hash
from seed_envs.vision.sokoban.rules import PUSH_ACTIONS, Game
from seed_envs.vision.sokoban.solver import StateBudgetExceeded, StateTable, box_bits, box_cells
from seed_envs.vision.sokoban.sources import ClassicSource
from seed_envs.vision.sokoban.xsb import load_levels, parse_level

Place = tuple[int, int]


def forward_search(level: Level, player: int, boxes: tuple[int, ...], pushes_only: bool = False) -> int | None:
    """Fewest steps (or pushes) to a solution by plain search on (row, column) pairs; None if there is none."""
    floor = {divmod(cell, level.width) for cell, code in enumerate(level.fixed) if code}
    targets = frozenset(divmod(cell, level.width) for cell in level.targets)
    start = (divmod(player, level.width), frozenset(divmod(cell, level.width) for cell in boxes))
    queue, distance = deque([start]), {start: 0}
    while queue:
        place, standing = queue.popleft()
        if standing == targets:
            return distance[place, standing]
        for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            ahead = (place[0] + down, place[1] + right)
            after, cost = standing, 0 if pushes_only else 1
            if ahead not in floor:
                continue
            if ahead in standing:
                beyond = (ahead[0] + down, ahead[1] + right)
                if beyond not in floor or beyond in standing:
                    continue
                after, cost = (standing - {ahead}) | {beyond}, 1
            total = distance[place, standing] + cost
            if total < distance.get((ahead, after), 1 << 30):
                distance[ahead, after] = total
                (queue.append if cost else queue.appendleft)((ahead, after))
    return None


@pytest.fixture(scope="module")
def solved_levels() -> list[SolvedLevel]:
    rng = np.random.default_rng(11)
    kinds = [Difficulty(boxes=1, min_steps=1, max_steps=60)] * 600 + [
        Difficulty(boxes=2, min_steps=1, max_steps=90)
    ] * 400
    return [generate(rng, kind) for kind in kinds]


def test_optimal_length_equals_an_independent_search_on_1000_levels(solved_levels: list[SolvedLevel]) -> None:
    for solved in solved_levels:
        level = solved.level.validate()
        assert forward_search(level, level.player, level.boxes) == solved.optimal_steps


def test_deadlock_equals_unsolvability_on_1000_random_states(solved_levels: list[SolvedLevel]) -> None:
    rng, dead = random.Random(2), 0
    for solved in solved_levels:
        level = solved.level
        floor = [cell for cell, code in enumerate(level.fixed) if code]
        player, *boxes = rng.sample(floor, len(level.boxes) + 1)
        expected = forward_search(level, player, tuple(boxes))
        assert solved.table.distance(player, box_bits(boxes)) == expected
        dead += expected is None
        search = PushSearch(level.height, level.width, level.fixed)
        assert not (search.certainly_dead(box_bits(boxes)) and expected is not None)
    assert 200 < dead < 900


def test_best_actions_are_exactly_those_that_come_closer(solved_levels: list[SolvedLevel]) -> None:
    for solved in solved_levels[::10]:
        game = Game(solved.level)
        for remaining in range(solved.optimal_steps, 0, -1):
            best = solved.table.best_actions(game.player, game.boxes)
            state = game.get_state()
            closer = []
            for word, code in PUSH_ACTIONS.items():
                game.step(code)
                if solved.table.distance(game.player, game.boxes) == remaining - 1:
                    closer.append(word)
                game.set_state(state)
            assert list(best) == closer
            game.step(PUSH_ACTIONS[best[-1]])
        assert game.solved


def test_generated_levels_are_of_the_wanted_kind() -> None:
    rng = np.random.default_rng(0)
    for kind in (Difficulty(), Difficulty(7, 9, 2, 12, 14), Difficulty(8, 8, 3, 10, 20)):
        for split in ("train", "validation", "test"):
            solved = generate(rng, kind, split)
            level = solved.level.validate()
            assert kind.min_steps <= solved.optimal_steps <= kind.max_steps
            assert (level.height, level.width, len(level.boxes)) == (kind.height, kind.width, kind.boxes)
            assert not set(level.boxes) & set(level.targets)
            assert split_of(level.height, level.width, level.fixed) == split


def test_impossible_difficulties_are_refused() -> None:
    for arguments in ({"boxes": 5}, {"min_steps": 9, "max_steps": 3}, {"height": 3}, {"height": 60, "width": 60}):
        with pytest.raises(ValueError, match="size|boxes|min_steps"):
            Difficulty(**arguments)


def test_a_hopeless_search_for_a_level_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seed_envs.vision.sokoban.classic.MAX_RETRIES", 20)
    monkeypatch.setattr("seed_envs.vision.sokoban.generator.MAX_ATTEMPTS", 50)
    with pytest.raises(GenerationFailed, match="50 rooms"):
        generate(np.random.default_rng(0), Difficulty(4, 4, 1, 90, 99))
    with pytest.raises(NoLevel, match="4x4"):
        ClassicSource(4, 4, 4).load("classic-4x4-b4-d30/7")
    assert issubclass(NoLevel, SeedEnvsError)


def test_distinct_levels_are_distinct_and_asking_for_too_many_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seed_envs.vision.sokoban.generator.MAX_REPEATS", 60)
    kind = Difficulty(5, 5, 1, 1, 2)
    levels = generate_distinct(np.random.default_rng(0), kind, 30)
    assert len({level_hash(level) for level in levels}) == 30
    with pytest.raises(GenerationFailed, match="ask for fewer"):
        generate_distinct(np.random.default_rng(0), Difficulty(4, 5, 1, 1, 1), 1_000)


def test_rooms_too_large_to_search_end_in_advice_not_in_a_long_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    small_budget = functools.partial(StateTable, max_states=100)
    monkeypatch.setattr("seed_envs.vision.sokoban.generator.StateTable", small_budget)
    with pytest.raises(GenerationFailed, match="boxoban"):
        generate(np.random.default_rng(0), Difficulty(10, 10, 3, 10, 40))


def test_the_table_refuses_rooms_beyond_its_budget() -> None:
    rows = ["##########", *["#        #"] * 8, "##########"]
    rows[1], rows[2] = "#@$.   . #", "# $      #"
    level = parse_level(rows, "big")
    with pytest.raises(StateBudgetExceeded):
        StateTable(level.height, level.width, level.fixed, max_states=2_000)


def replay(level: Level, actions: tuple[str, ...]) -> Game:
    game = Game(level)
    for word in actions:
        game.step(PUSH_ACTIONS[word])
    return game


def test_astar_finds_the_fewest_pushes(solved_levels: list[SolvedLevel]) -> None:
    for solved in solved_levels[500:700:2]:
        level = solved.level
        found = PushSearch(level.height, level.width, level.fixed).solve(level.player, box_bits(level.boxes))
        game = replay(level, found.actions)
        assert found.status == "solved"
        assert game.solved
        assert game.pushes == len(found.pushes) == forward_search(level, level.player, level.boxes, pushes_only=True)


def test_astar_proves_deadlocks_and_reports_its_budget() -> None:
    dead = parse_level(["######", "#$  .#", "# @  #", "######"], "dead")
    search = PushSearch(dead.height, dead.width, dead.fixed)
    assert search.solve(dead.player, box_bits(dead.boxes)).status == "unsolvable"
    rows = ["##########", "#@       #", "# $ $  . #", "#   ..   #", "# $ $  . #", "#        #", "##########"]
    large = parse_level(rows, "large")
    found = PushSearch(large.height, large.width, large.fixed).solve(large.player, box_bits(large.boxes), max_states=3)
    assert (found.status, found.pushes, found.states) == ("budget", (), 3)


def test_boxoban_samples_are_solved_and_replayed(data_dir: Path) -> None:
    for name in ("unfiltered_test/000", "medium_valid/000"):
        for level in load_levels(data_dir / "boxoban" / f"{name}.txt")[::25]:
            search = PushSearch(level.height, level.width, level.fixed)
            found = search.solve(level.player, box_bits(level.boxes), max_seconds=None)
            game = replay(level, found.actions)
            assert game.solved, found.status
            assert game.pushes == len(found.pushes)


def test_bit_sets_round_trip() -> None:
    assert box_cells(box_bits((3, 17, 90))) == (3, 17, 90)
