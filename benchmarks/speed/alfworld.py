"""ALFWorld: the native engine beside TextWorld 1.7.0 on the same official games.

Both sides run in this process, the original unmodified. Needs the official games (``SEED_DATA_DIR``) and the extra
``alfworld``. The original takes seconds to load a game, so only a few small and middling games are compared.
"""

from __future__ import annotations

import itertools
import os
import random
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym

import seed_envs
from seed_envs.alfworld.cache import build_cache, open_library
from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.game import Game
from seed_envs.alfworld.library import Library, open_source
from seed_envs.alfworld.oracle import Planner
from seed_envs.alfworld.textworld_child import Player
from seed_envs.data import data_dir
from seed_envs.errors import require

from .rows import SpeedRow, compare_rates, measure_rate

ORIGINAL = "TextWorld 1.7.0"
GAMES = (
    "train/pick_and_place_simple-Candle-None-Cabinet-418/trial_T20190907_190403_681011",
    "train/look_at_obj_in_light-AlarmClock-None-DeskLamp-304/trial_T20190907_170615_242578",
    "train/pick_cool_then_place_in_recep-Bowl-None-Cabinet-25/trial_T20190908_073438_481131",
)


def measure() -> list[SpeedRow]:
    """Run the comparison.

    Raises:
        DataMissing: without the official games.
        DependencyMissing: without the extra ``alfworld``.
    """
    require("textworld", "alfworld", "the original ALFWorld engine")
    require("alfworld", "alfworld", "the original ALFWorld engine")
    gym.register_envs(seed_envs)
    folder = data_dir("alfworld", variable="ALFWORLD_DATA").resolve()
    library = open_source(folder)
    return [*_steps(library), *_resets(library), *_alone(library), *_whole_set(folder)]


def _script(game: Game, length: int, seed: int) -> list[str]:
    """Random admissible commands that do not win, so that both sides stay in one episode."""
    rng, engine = random.Random(seed), Engine(game)
    commands: list[str] = []
    while len(commands) < length:
        before = engine.state
        command = rng.choice(engine.admissible())
        engine.act(command)
        if engine.won:
            engine.restore(before)
        else:
            commands.append(command)
    return commands


def _steps(library: Library) -> list[SpeedRow]:
    """The same commands on both sides, the admissible list read after each."""
    players: list[tuple[Player, Iterator[str]]] = []
    for number, task_id in enumerate(GAMES):
        player = Player()
        player.answer({"op": "load", "document": library.document(task_id)})
        players.append((player, itertools.cycle(_script(library.game(task_id), 300, number))))

    def original() -> int:
        for player, commands in players:
            player.answer({"op": "act", "command": next(commands)})
        return len(players)

    ours, theirs = compare_rates(_replay(library, read_list=True), original)
    return [
        SpeedRow("step, admissible list read", ours, theirs, "steps/s", ORIGINAL),
        SpeedRow(
            "step, list not read", measure_rate(_replay(library, read_list=False)), None, "steps/s",
            how="CPU time", note="the original always builds its list",
        ),
    ]  # fmt: skip


def _replay(library: Library, *, read_list: bool) -> Any:
    scripts = [(library.game(task_id), _script(library.game(task_id), 300, n)) for n, task_id in enumerate(GAMES)]

    def work() -> int:
        done = 0
        for game, commands in scripts:
            engine = Engine(game)
            for command in commands:
                engine.act(command)
                if read_list:
                    engine.admissible()
            done += len(commands)
        return done

    return work


def _resets(library: Library) -> list[SpeedRow]:
    """Loading and resetting, per game."""
    documents = [library.document(task_id) for task_id in GAMES]
    games = [library.game(task_id) for task_id in GAMES]
    player = Player()
    started = time.process_time()
    for document in documents:
        player.answer({"op": "load", "document": document})
    original_load = (time.process_time() - started) / len(GAMES)
    started = time.process_time()
    player.answer({"op": "reset"})
    original_reset = time.process_time() - started

    def reset() -> int:
        for game in games:
            Engine(game).reset()
        return len(games)

    def load() -> int:
        fresh = [library._compile(task_id) for task_id in GAMES]  # type: ignore[attr-defined]
        return len(fresh)

    note = "ours: rate over 1 s; the original: once"
    return [
        SpeedRow("reset", 1e6 / measure_rate(reset), original_reset * 1e6, "us", ORIGINAL, "CPU time", False, note),
        SpeedRow(
            "load a game and reset", 1e3 / measure_rate(load), original_load * 1e3, "ms", ORIGINAL, "CPU time", False,
            "ours: from the PDDL text, uncached",
        ),
    ]  # fmt: skip


def _alone(library: Library) -> list[SpeedRow]:
    """What the original does not offer or cannot be compared fairly in."""
    games = [library.game(task_id) for task_id in library.ids[:: len(library.ids) // 60]]
    planners = [(Planner(game), game.start) for game in games]

    def plan() -> int:
        for planner, state in planners:
            planner.plan(state)
        return len(planners)

    env = gym.make("seed/ALFWorld-v0", split="mini_train", max_episode_steps=1_000_000)
    env.reset(seed=0)
    commands = itertools.cycle(_script(env.unwrapped.game, 300, 0))  # type: ignore[attr-defined]

    def through_gym() -> int:
        for _ in range(500):
            env.step(next(commands))
        return 500

    engine = Engine(games[0])

    def restore() -> int:
        for _ in range(1_000):
            saved = engine.state
            engine.restore(saved)
        return 1_000

    how = "CPU time over one second"
    return [
        SpeedRow("step through gym.make, list not read", measure_rate(through_gym), None, "steps/s", how=how),
        SpeedRow("shortest plan from the start", 1e6 / measure_rate(plan), None, "us", how=how, higher_is_better=False),
        SpeedRow("save and restore a state", 1e6 / measure_rate(restore), None, "us", how=how, higher_is_better=False),
    ]


def _whole_set(folder: Path) -> list[SpeedRow]:
    """Import, reopening and memory of all official games."""
    with tempfile.TemporaryDirectory() as cache:
        saved = os.environ.get("SEED_CACHE_DIR")
        os.environ["SEED_CACHE_DIR"] = cache
        try:
            started = time.process_time()
            size = build_cache(folder).stat().st_size
            built = time.process_time() - started
            open_library.cache_clear()
            started = time.process_time()
            library = open_library(folder)
            games = [library.game(task_id) for task_id in library.ids]
            opened = time.process_time() - started
            open_library.cache_clear()
            tracemalloc.start()
            again = open_library(folder)
            kept = [again.game(task_id) for task_id in again.ids]
            memory = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
        finally:
            open_library.cache_clear()
            os.environ.pop("SEED_CACHE_DIR")
            if saved is not None:
                os.environ["SEED_CACHE_DIR"] = saved
    count = f"{len(games):,} games"
    assert len(kept) == len(games)
    return [
        SpeedRow(f"import {count}", built, None, "s", how="CPU time, once", higher_is_better=False),
        SpeedRow(f"reopen and compile {count}", opened, None, "s", how="CPU time, once", higher_is_better=False),
        SpeedRow(
            f"memory of {count}", memory / 1e6, None, "MB", how="tracemalloc", higher_is_better=False,
            note=f"cache file {size / 1e6:.1f} MB",
        ),
    ]  # fmt: skip
