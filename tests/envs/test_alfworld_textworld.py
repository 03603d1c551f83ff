"""The native engine answers word for word like TextWorld: texts, admissible lists and wins, step by step."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alfworld_samples import WITNESS_GAMES

import seed_envs  # noqa: F401
from seed_benchmarks.parity.fuzzing.director import Director
from seed_envs.alfworld.actions import Rules
from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.env import ALFWorldEnv
from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.goals import TASK_TYPES
from seed_envs.alfworld.sources import TaskSource
from seed_envs.alfworld.textworld_engine import TextWorldEngine, TextWorldFailed, TextWorldProcess
from seed_envs.errors import UnknownOption

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("textworld") is None or importlib.util.find_spec("alfworld") is None,
    reason="TextWorld: textworld or alfworld is not installed",
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


def test_forty_official_games_cover_all_families(source: TaskSource) -> None:
    assert len(set(WITNESS_GAMES)) >= 40
    assert {source.game(task_id).goal.kind for task_id in WITNESS_GAMES} == set(TASK_TYPES)
    assert len(WITNESS_GAMES) * OFFICIAL_STEPS + len(generated_ids()) * GENERATED_STEPS >= 3_000


@pytest.mark.parametrize("part", range(5))
def test_official_games_agree_in_every_step(part: int, source: TaskSource, witness: TextWorldProcess) -> None:
    chosen = list(enumerate(WITNESS_GAMES))[part::5]
    found = [line for seed, i in chosen for line in lockstep(i, source, witness, OFFICIAL_STEPS, seed)]
    assert not found, found[:10]


def test_twenty_generated_games_agree_in_every_step(source: TaskSource, witness: TextWorldProcess) -> None:
    ids = generated_ids()
    assert len(ids) >= 20
    found = [line for seed, i in enumerate(ids) for line in lockstep(i, source, witness, GENERATED_STEPS, 100 + seed)]
    assert not found, found[:10]


def test_two_goals_are_met_at_the_same_command(source: TaskSource, witness: TextWorldProcess) -> None:
    """The conjunction in the written problem means to the original what it means here: met together, not in turn."""
    knobs = [rooms.Knobs(task_type=family, goals=2, kinds=2, copies=1, receptacles=9) for family in TASK_TYPES.values()]
    for number, wish in enumerate(knobs):
        task_id = rooms.make_id("train", number, wish)
        game = source.game(task_id)
        original, native = TextWorldEngine(game, source.document(task_id), witness, Rules()), Engine(game)
        assert original.reset() == native.reset()
        for command in game.walkthrough:
            assert not native.won
            assert original.act(command) == native.act(command)
            assert original.won == native.won, (task_id, command)
        assert native.won
    assert not lockstep(rooms.make_id("train", 7, knobs[4]), source, witness, 40, 5)


def test_the_untouched_original_agrees_too(source: TaskSource) -> None:
    """The tests above let the original remember what it parsed; this one does not."""
    process = TextWorldProcess(fast=False)
    try:
        assert lockstep(compact.make_id("train", 2), source, process, 14, 7) == []
    finally:
        process.close()


def test_the_environment_plays_on_the_original_engine(data_dir: Path) -> None:
    env = ALFWorldEnv(engine="textworld", data_dir=data_dir / "alfworld")
    native = ALFWorldEnv()
    try:
        options = {"task_id": compact.make_id("train", 1)}
        observation, info = env.reset(options=options)
        assert (observation, tuple(info["admissible_actions"])) == _shown(native.reset(options=options))
        first = env.oracle_action()
        assert env.step(first)[0] == native.step(first)[0]
        saved = env.get_state()
        assert not env.step("fly away")[4]["action_valid"]
        env.step(env.oracle_action())
        env.set_state(saved)
        while True:
            command = env.oracle_action()
            _, reward, terminated, _, info = env.step(command)
            assert info["action_valid"], command
            if terminated:
                break
        assert reward == 1.0 and info["success"]
        assert env._process is not None
        env._process._child.kill()
        env._process._child.wait()
        assert env.reset(options=options)[0] == observation, "an ended child is replaced"
    finally:
        env.close()
    env.close()
    with pytest.raises(UnknownOption, match="needs wording='move'"):
        ALFWorldEnv(engine="textworld", wording="put", data_dir=data_dir / "alfworld").reset(options=options)
    with pytest.raises(UnknownOption, match="faithful"):
        ALFWorldEnv(engine="textworld", quirks="fixed", data_dir=data_dir / "alfworld").reset(options=options)


def _shown(pair: tuple[str, dict[str, Any]]) -> tuple[str, tuple[str, ...]]:
    return pair[0], tuple(pair[1]["admissible_actions"])


def test_python_in_a_grammar_runs_in_the_original_but_only_in_its_own_process(
    source: TaskSource, tmp_path: Path, witness: TextWorldProcess
) -> None:
    """Why the native engine never interprets grammars."""
    marker = tmp_path / "pid"
    document = source.document(compact.make_id("train", 1))
    attack = f"{{open('{marker}', 'w').write(str(__import__('os').getpid()))}}"
    document["grammar"] = document["grammar"].replace("You are not carrying anything.", attack)
    witness.ask(op="load", document=document)
    witness.ask(op="act", command="inventory")
    assert marker.exists() and int(marker.read_text()) != os.getpid()


def test_a_failing_or_ended_child_is_an_error(witness: TextWorldProcess) -> None:
    with pytest.raises(TextWorldFailed, match="failed"):
        witness.ask(op="load", document={"nothing": 1})
    process = TextWorldProcess(fast=True)
    process.close()
    process.close()
    with pytest.raises(TextWorldFailed, match="ended"):
        process.ask(op="reset")
