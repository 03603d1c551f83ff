"""The native engine answers word for word like TextWorld: texts, admissible lists and wins, step by step."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from alfworld_samples import WITNESS_GAMES, Director

import seed_envs  # noqa: F401
from seed_envs.alfworld.actions import Rules
from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.goals import TASK_TYPES
from seed_envs.alfworld.tasks import TaskSource
from seed_envs.alfworld.textworld_engine import TextWorldEngine, TextWorldProcess

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("textworld") is None or importlib.util.find_spec("alfworld") is None,
    reason='the original engine is not installed: pip install "seed-envs[alfworld]"',
)

OFFICIAL_STEPS, GENERATED_STEPS = 56, 42


@pytest.fixture(scope="module")
def source(data_dir: Path) -> TaskSource:
    return TaskSource(data_dir / "alfworld")


@pytest.fixture(scope="module")
def witness() -> Iterator[TextWorldProcess]:
    process = TextWorldProcess(fast=True)
    yield process
    process.close()


def generated_ids() -> list[str]:
    """Twenty generated games: every family in small official rooms, and the compact room."""
    ids = [
        rooms.make_id("train", number, rooms.Knobs(task_type=family, kinds=4, copies=2, receptacles=9))
        for number, family in enumerate([*TASK_TYPES.values(), *TASK_TYPES.values()])
    ]
    return ids + [compact.make_id("train", number) for number in range(8)]


def lockstep(task_id: str, source: TaskSource, process: TextWorldProcess, steps: int, seed: int) -> list[str]:
    """Play one game on both engines.

    Returns:
        What differed; empty when nothing did.
    """
    game = source.game(task_id)
    original = TextWorldEngine(game, source.document(task_id), process, Rules())
    native = Engine(game)
    director = Director(seed)
    differences: list[str] = []

    def compare(what: str, theirs: object, ours: object) -> None:
        if theirs != ours:
            differences.append(f"{task_id}: {what}: TextWorld {theirs!r}, native {ours!r}")

    compare("opening", original.reset(), native.reset())
    for number in range(steps):
        compare(f"step {number} list", original.admissible(), native.admissible())
        command = director.choose(native)
        theirs, ours = original.act(command), native.act(command)
        compare(f"step {number} {command!r} text", theirs.text, ours.text)
        compare(f"step {number} {command!r} won", original.won, native.won)
        compare(f"step {number} {command!r} valid", theirs.valid, ours.valid)
        if native.won:
            compare("opening again", original.reset(), native.reset())
    return differences


def test_forty_official_games_of_all_families_agree_in_every_step(
    source: TaskSource, witness: TextWorldProcess
) -> None:
    assert len(set(WITNESS_GAMES)) >= 40
    assert {source.game(task_id).goal.kind for task_id in WITNESS_GAMES} == set(TASK_TYPES)
    found = [
        line for seed, i in enumerate(WITNESS_GAMES) for line in lockstep(i, source, witness, OFFICIAL_STEPS, seed)
    ]
    assert not found, found[:10]


def test_twenty_generated_games_agree_in_every_step(source: TaskSource, witness: TextWorldProcess) -> None:
    ids = generated_ids()
    assert len(ids) >= 20
    assert len(WITNESS_GAMES) * OFFICIAL_STEPS + len(ids) * GENERATED_STEPS >= 3_000
    found = [line for seed, i in enumerate(ids) for line in lockstep(i, source, witness, GENERATED_STEPS, 100 + seed)]
    assert not found, found[:10]


def test_the_untouched_original_agrees_too(source: TaskSource) -> None:
    """The two tests above let the original remember what it parsed; this one does not."""
    process = TextWorldProcess(fast=False)
    try:
        assert lockstep(compact.make_id("train", 2), source, process, 14, 7) == []
    finally:
        process.close()
