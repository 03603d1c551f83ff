"""Sokoban beside gym-sokoban 0.0.6: steps with a picture, solved levels, and what only this project has.

The original runs unmodified in this process if it can be imported. It needs packages of its time, which fit beside
current ones in a folder of their own::

    pip install --no-deps --target originals gym==0.26.2 gym-notices cloudpickle imageio 'setuptools<81' \\
        gym-sokoban==0.0.6
    PYTHONPATH=originals python -m benchmarks.speed sokoban

Otherwise figures measured once on another machine stand in for it, and the rows say so.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from seed_envs.vision.sokoban.classic import generate as generate_classic
from seed_envs.vision.sokoban.env import SokobanEnv
from seed_envs.vision.sokoban.files import PACKS
from seed_envs.vision.sokoban.generator import Difficulty, generate
from seed_envs.vision.sokoban.levels import Level
from seed_envs.vision.sokoban.pools import Pool
from seed_envs.vision.sokoban.render import frame
from seed_envs.vision.sokoban.rules import PUSH_ACTIONS, Game
from seed_envs.vision.sokoban.vector import BatchEngine

from .rows import SpeedRow, Work, compare_rates, measure_rate

ORIGINAL = "gym-sokoban 0.0.6"
QUOTED = "gym-sokoban 0.0.6 (quoted)"
QUOTED_NOTE = "the original's figure was measured on another machine, not in this run"
QUOTED_STEPS = 488.0
QUOTED_LEVELS = {1: 440.0, 2: 113.0, 3: 38.0}
"""Steps with a picture, and 6x6 levels by number of boxes, per CPU second (CPython 3.11, one core)."""
_PORTION = 2_000
_WORDS = tuple(PUSH_ACTIONS)


def measure() -> list[SpeedRow]:
    """Runs the comparison; no data are needed."""
    original = _import_original()
    return [*_steps(original), *_levels(original), *_alone()]


def _import_original() -> Any | None:
    """The original package with its environment and generator, or None if it cannot be imported."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            importlib.import_module("gym_sokoban.envs.sokoban_env")
        except ImportError:
            return None
    return importlib.import_module("gym_sokoban.envs")


def _against(workload: str, unit: str, ours: Work, original: Work | None, quoted: float, note: str = "") -> SpeedRow:
    """A row measured side by side, or beside a quoted figure if there is no original."""
    if original is None:
        joined = f"{QUOTED_NOTE}; {note}" if note else QUOTED_NOTE
        return SpeedRow(workload, measure_rate(ours), quoted, unit, QUOTED, "CPU time, over 1 s", note=joined)
    return SpeedRow(workload, *compare_rates(ours, original), unit, ORIGINAL, note=note)


def _env_steps(tile: Literal[16, 28], mode: Literal["image", "text"]) -> Work:
    """Random steps of the environment, info included; a solved level is followed by the next."""
    env = SokobanEnv(levels="pack-6x6-b1", obs_mode=mode, tile=tile)
    env.reset(seed=0)
    words = np.random.default_rng(0).choice(_WORDS, size=_PORTION).tolist()

    def work() -> int:
        for word in words:
            if env.step(word)[2]:
                env.reset()
        return _PORTION

    return work


def _steps(original: Any | None) -> list[SpeedRow]:
    theirs: Work | None = None
    if original is not None:
        env = original.sokoban_env.SokobanEnv(dim_room=(6, 6), num_boxes=1, max_steps=-1)
        codes = np.random.default_rng(0).integers(1, 5, size=100).tolist()

        def theirs() -> int:
            for code in codes:
                if env.step(code)[2]:
                    env.reset()
            return len(codes)

    note = "both step one 6x6 room with one box at random and return a 96x96 picture; resets of solved rooms included"
    return [
        _against("step with a 96x96 picture", "steps/s", _env_steps(16, "image"), theirs, QUOTED_STEPS, note),
        _own("step with a 168x168 picture", "steps/s", _env_steps(28, "image")),
        _own("step with text only", "steps/s", _env_steps(28, "text")),
    ]


def _solved_levels(boxes: int) -> Work:
    rng, kind = np.random.default_rng(0), Difficulty(boxes=boxes, min_steps=1, max_steps=200)

    def work() -> int:
        for _ in range(100):
            generate(rng, kind)
        return 100

    return work


def _original_levels(original: Any, boxes: int) -> Work:
    make: Callable[..., Any] = original.room_utils.generate_room

    def work() -> int:
        made = 0
        while made < 5:
            # The original raises for rooms it cannot use, and its users try again.
            with contextlib.suppress(RuntimeError, RuntimeWarning):
                make(dim=(6, 6), num_steps=20, num_boxes=boxes)
                made += 1
        return made

    return work


def _levels(original: Any | None) -> list[SpeedRow]:
    note = "ours come with the optimal length and all distances; the original's are not verified"
    return [
        _against(
            f"new level, 6x6, {boxes} box{'es' if boxes > 1 else ''}",
            "levels/s",
            _solved_levels(boxes),
            None if original is None else _original_levels(original, boxes),
            QUOTED_LEVELS[boxes],
            note,
        )
        for boxes in (1, 2, 3)
    ]


def _own(workload: str, unit: str, work: Work) -> SpeedRow:
    work()
    return SpeedRow(workload, measure_rate(work), None, unit, how="CPU time, over 1 s")


def _alone() -> list[SpeedRow]:
    pool: Sequence[Level] = list(Pool.load(PACKS / "pack-6x6-b1.pool"))
    seeds = itertools.count()

    def classic() -> int:
        for _ in range(50):
            generate_classic(next(seeds))
        return 50

    game, codes = Game(pool[0]), np.random.default_rng(0).integers(1, 5, size=_PORTION).tolist()

    def rules() -> int:
        for code in codes:
            game.step(code)
        return _PORTION

    def restart() -> int:
        for level in pool:
            Game(level)
        return len(pool)

    cells = pool[0].room()

    def pictures() -> int:
        for _ in range(200):
            frame(cells, 6, 6, 28)
        return 200

    return [
        _own("level of the framework generator, 6x6, one box", "levels/s", classic),
        _own("step of the rules alone", "steps/s", rules),
        _own("restart from a level in memory", "restarts/s", restart),
        _own("whole 168x168 picture", "pictures/s", pictures),
        _own("batch step, 256 rooms", "steps/s", _batch(pool, 256)),
        _own("batch step, 4,096 rooms", "steps/s", _batch(pool, 4_096)),
    ]


def _batch(pool: Sequence[Level], count: int) -> Work:
    engine, rng = BatchEngine(pool, count), np.random.default_rng(0)
    engine.load(np.arange(count), rng.integers(len(pool), size=count))
    actions = rng.integers(1, 5, size=(20, count))

    def work() -> int:
        for row in actions:
            engine.step(row)
        return actions.size

    return work
