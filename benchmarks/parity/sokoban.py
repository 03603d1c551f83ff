"""Sokoban beside gym-sokoban 0.0.6, and its levels beside the generator of verl-agent.

The original package is found where ``pip install --target`` put it: ``--against FOLDER``, or ``originals`` in this
Python's environment. It needs packages of its time, which fit beside current ones in a folder of their own::

    pip install --no-deps --target originals gym==0.26.2 gym-notices cloudpickle imageio 'setuptools<81' \\
        gym-sokoban==0.0.6
    python -m benchmarks.parity sokoban --against originals

With a clone of verl-agent as FOLDER, whole levels are compared seed by seed instead.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import random
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import gymnasium
import numpy as np

import seed_envs  # noqa: F401  (registers the ids)
from seed_envs.errors import DataMissing
from seed_envs.vision.sokoban.classic import SEARCH_DEPTH, NoLevel, generate_once
from seed_envs.vision.sokoban.rules import ACTION_SETS, Game
from seed_envs.vision.sokoban.text import xsb_grid
from seed_envs.vision.sokoban.topology import walk_classic, walk_length

from .clones import load_file
from .rows import Documented, Options, ParityRow

ORIGINAL = "gym-sokoban 0.0.6"
EPISODES, TURNS = 200, 60
_SHAPES = ((6, 6, 1), (7, 6, 2), (7, 7, 3))
"""Rows, columns, boxes."""
_CLONE_FILE = "agent_system/environments/env_package/sokoban/sokoban/room_utils.py"
_STAND_INS = ("matplotlib", "matplotlib.pyplot", "matplotlib.animation")
STILL = Documented("still", "sokoban", "cost -0.1 and do not count in ``steps``")
FIRST_STEP = Documented("first-step", "sokoban", "A level that begins with a box on a target pays +1 on the first step")
LIMIT = Documented("limit", "sokoban", "the limit truncates instead of ending the episode")


def compare(options: Options) -> list[ParityRow]:
    """Steps of both rule sets and room shapes; or levels, against a clone of verl-agent.

    Raises:
        DataMissing: When the folder holds neither original.
    """
    episodes = options.episodes or EPISODES
    if options.against is not None and (options.against / _CLONE_FILE).is_file():
        return [levels(load_file(options.against, _CLONE_FILE, _STAND_INS), episodes)]
    package = import_original(options.against)
    return [steps(package, "classic", episodes), steps(package, "strict", episodes), shapes(package, episodes)]


def import_original(folder: Path | None) -> ModuleType:
    """The package ``gym_sokoban.envs``.

    Args:
        folder: Where it was installed; None looks in ``originals`` of this environment.
    """
    where = folder or Path(sys.prefix) / "originals"
    if not (where / "gym_sokoban").is_dir():
        packages = "gym==0.26.2 gym-notices cloudpickle imageio 'setuptools<81' gym-sokoban==0.0.6"
        command = f"pip install --no-deps --target {where} {packages}"
        raise DataMissing(f"{where} holds neither gym_sokoban nor a clone of verl-agent; run: {command}")
    sys.path.insert(0, str(where))
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        importlib.import_module("gym_sokoban.envs.sokoban_env")
    return importlib.import_module("gym_sokoban.envs")


def steps(package: Any, rules: Literal["classic", "strict"], episodes: int) -> ParityRow:
    """Random play on the original's own rooms, all nine actions."""
    row = ParityRow(f"steps, rules {rules}", ORIGINAL)
    for number in range(episodes):
        height, width, boxes = _SHAPES[number % len(_SHAPES)]
        random.seed(number)
        np.random.seed(number)
        with contextlib.redirect_stdout(io.StringIO()):  # It prints when a room is drawn again.
            theirs = package.sokoban_env.SokobanEnv((height, width), TURNS, boxes)
        if number % 2:
            _scatter(theirs, np.random.default_rng(number))
        _episode(row, rules, theirs, number)
    return row


def _scatter(env: Any, rng: np.random.Generator) -> None:
    """Boxes and player anywhere on the floor: generated rooms never start with a box on a target."""
    env.room_state[...] = 3
    while not np.any(env.room_state == 4):
        cells = rng.permutation(np.argwhere(env.room_fixed != 0))
        env.room_state = env.room_fixed.copy()
        for cell in cells[: env.num_boxes]:
            env.room_state[tuple(cell)] = 3 if env.room_fixed[tuple(cell)] == 2 else 4
    env.player_position = cells[env.num_boxes]
    env.room_state[tuple(env.player_position)] = 5


def _episode(row: ParityRow, rules: str, theirs: Any, seed: int) -> None:
    height, width = theirs.room_fixed.shape
    ours = gymnasium.make(
        "seed/Sokoban-v0", rules=rules, size=(height, width), boxes=theirs.num_boxes, tile=16, action_set="9",
        levels="classic", text_format="xsb", max_episode_steps=TURNS,
    )  # fmt: skip
    started_on_target = bool(np.any(theirs.room_state == 3))
    observation, info = ours.reset(options={"level": xsb(theirs.room_fixed, theirs.room_state)})
    words, rng, counted = list(ACTION_SETS["9"]), np.random.default_rng(seed), info["sokoban"]["steps"]
    row.episodes += 1
    for turn in range(TURNS):
        code = int(rng.integers(len(words)))
        observation, reward, terminated, truncated, info = ours.step(words[code])
        picture, their_reward, done, told = theirs.step(code)
        facts, where = info["sokoban"], f"episode {seed}, turn {turn + 1}, {words[code]}"
        row.steps += 1
        first = started_on_target and (facts["steps"] if rules == "classic" else turn) <= 1
        known = [] if not first else [FIRST_STEP] if rules == "strict" else [STILL] if facts["steps"] <= turn else []
        row.check(where, {"reward": (round(float(reward), 9), round(float(their_reward), 9))}, known)
        row.check(
            where,
            {
                "room": (observation["text"], xsb(theirs.room_fixed, theirs.room_state)),
                "moved player": (facts["moved_player"], bool(told["action.moved_player"])),
                "moved box": (facts["moved_box"], bool(told["action.moved_box"])),
                "end": (terminated or truncated, bool(done)),
                "picture": (observation["image"].shape, picture.shape),
            },
        )
        waiting = [STILL] if rules == "classic" and code == 0 else []
        row.check(where, {"steps": (facts["steps"] - counted, 1)}, waiting)
        counted = facts["steps"]
        if done:
            solved = bool(told["all_boxes_on_target"])
            row.check(where, {"solved": (terminated, solved)})
            row.check(where, {"terminated": (terminated, bool(done))}, [LIMIT])
            break
    ours.close()


def xsb(fixed: Any, state: Any) -> str:
    """A room of the original as an XSB map."""
    rows = zip(fixed.astype(int), state.astype(int), strict=True)
    return "\n".join(
        "".join("+" if ground == 2 and thing == 5 else "# .*$@"[thing] for ground, thing in zip(*row, strict=True))
        for row in rows
    )


def shapes(package: Any, episodes: int) -> ParityRow:
    """Walls and floor of generated rooms, seed by seed: the part of the generator that all versions share."""
    row = ParityRow("room shapes", ORIGINAL)
    for seed in range(episodes):
        height, width, _ = _SHAPES[seed % len(_SHAPES)]
        random.seed(seed)
        length = walk_length(height, width)
        theirs = package.room_utils.room_topology_generation((height, width), 0.35, length)
        ours = walk_classic(random.Random(seed), height, width, length)
        row.episodes += 1
        row.check(f"seed {seed}", {"floor": (list(ours), theirs.ravel().tolist())})
    return row


def levels(room_utils: Any, episodes: int) -> ParityRow:
    """Whole levels by seed, 6x6 with one box as in training, or that a seed gives none."""
    row = ParityRow("levels by seed", "verl-agent, clone")
    for seed in range(episodes):
        random.seed(seed)
        np.random.seed(seed)
        theirs = ours = "no level"
        with contextlib.suppress(RuntimeError, RuntimeWarning):
            made = room_utils.generate_room((6, 6), num_steps=walk_length(6, 6), num_boxes=1, search_depth=SEARCH_DEPTH)
            theirs = xsb(*made[:2])
        with contextlib.suppress(NoLevel):
            ours = xsb_grid(Game(generate_once(seed, 6, 6, 1)))
        row.episodes += 1
        row.check(f"seed {seed}", {"level": (ours, theirs)})
    return row
