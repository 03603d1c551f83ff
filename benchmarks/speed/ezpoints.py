"""EZPoints and its pictures beside gym_cards of RL4VLM.

gym_cards is not on a package index (it ships 21 MB of card pictures with its repository), so its side is quoted:
figures measured once on another machine, named as such in every row.
"""

from __future__ import annotations

import itertools
import time
from typing import Literal

import numpy as np

from seed_envs.vision.ezpoints.cards import card_picture
from seed_envs.vision.ezpoints.env import EZPointsEnv
from seed_envs.vision.ezpoints.formula import evaluate
from seed_envs.vision.ezpoints.points24 import Points24Env
from seed_envs.vision.ezpoints.render import card_sheet

from .rows import SpeedRow, Work, measure_rate

QUOTED = "gym_cards of RL4VLM (quoted)"
QUOTED_NOTE = "the original's figure was measured on another machine, not in this run"
QUOTED_RESETS, QUOTED_STEPS = 19.0, 2_000.0
"""With a picture, per CPU second (CPython 3.11, one core)."""


def measure() -> list[SpeedRow]:
    """Runs the comparison; no data are needed."""
    how = "CPU time, over 1 s"
    rows = [
        SpeedRow(
            "reset with a picture", _rate(_resets("image")), QUOTED_RESETS, "resets/s", QUOTED, how, note=QUOTED_NOTE
        ),
        SpeedRow("step with a picture", _rate(_steps("image")), QUOTED_STEPS, "steps/s", QUOTED, how, note=QUOTED_NOTE),
        SpeedRow("reset with text only", _rate(_resets("text")), None, "resets/s", how=how),
        SpeedRow("step with text only", _rate(_steps("text")), None, "steps/s", how=how),
        SpeedRow("Points24: new solvable hand with a picture", _rate(_points24()), None, "resets/s", how=how),
        SpeedRow("exact value of a formula of 11 tokens", _rate(_formulas()), None, "formulas/s", how=how),
    ]
    return [*rows, _drawing()]


def _rate(work: Work) -> float:
    work()
    return measure_rate(work)


def _resets(mode: Literal["image", "text"]) -> Work:
    env = EZPointsEnv(obs_mode=mode)
    env.reset(seed=0)

    def work() -> int:
        for _ in range(200):
            env.reset()
        return 200

    return work


def _steps(mode: Literal["image", "text"]) -> Work:
    """Random tokens without ``=``, each formula ended before it is too long; resets are not counted as steps."""
    env = EZPointsEnv(obs_mode=mode)
    env.reset(seed=0)
    start = env.get_state()
    tokens = np.random.default_rng(0).choice(env.puzzle.tokens[:-1], size=(200, 5)).tolist()

    def work() -> int:
        for row in tokens:
            env.set_state(start)
            for token in row:
                env.step(token)
        return 1_000

    return work


def _points24() -> Work:
    env = Points24Env(obs_mode="image")
    env.reset(seed=0)

    def work() -> int:
        for _ in range(50):
            env.reset()
        return 50

    return work


def _formulas() -> Work:
    formulas = itertools.cycle(
        [text.split() for text in ("8 / ( 3 - 8 / 3 )", "( 10 + 2 ) * ( 4 - 2 )", "5 * ( 5 - 1 / 5 )")]
    )

    def work() -> int:
        for _ in range(500):
            evaluate(next(formulas))
        return 500

    return work


def _drawing() -> SpeedRow:
    card_picture.cache_clear()
    started = time.process_time()
    card_sheet(139, 194)
    spent = (time.process_time() - started) * 1e3
    return SpeedRow(
        "52 cards drawn for the first time", spent, None, "ms", how="CPU time, once", higher_is_better=False
    )
