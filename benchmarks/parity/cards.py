"""The card games beside gym_cards: ``rl4vlm`` rules against a clone of RL4VLM, ``classic`` ones against verl-agent's.

``--against CLONE`` takes a clone of RL4VLM/RL4VLM or langfengQ/verl-agent; each carries its own version of gym_cards.
Deals, formula, used numbers, reward and end are compared under play that is half a shortest solution and half random,
signs, powers and joined digits included; pictures by their size and by where the cards lie.
"""

from __future__ import annotations

import importlib
import random
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from PIL import ImageFont

import seed_envs  # noqa: F401  (registers the ids)
from seed_envs.errors import DataMissing, OracleUnavailable
from seed_envs.vision.ezpoints.cards import TABLE
from seed_envs.vision.ezpoints.rules import NUMBERS, Puzzle, ezpoints, points24

from .clones import clone_of
from .rows import Documented, Options, ParityRow

EPISODES = 500
_VERSIONS = {
    "gym-cards": ("rl4vlm", "gym_cards of RL4VLM, clone"),
    "agent_system/environments/env_package/gym_cards/gym-cards": ("classic", "gym_cards of verl-agent, clone"),
}
_GAMES = {"EZPointEnv": ("seed/EZPoints-v0", ezpoints()), "Point24Env": ("seed/Points24-v0", points24())}
_FONT = "dejavu/DejaVuSans.ttf"
EXACT = Documented("exact", "points24", "Division is exact")
JOINED = Documented("joined", "points24", "Digits are not joined")
POWER = Documented("power", "points24", "there is no power and no floor division")


def compare(options: Options) -> list[ParityRow]:
    """A row for each of the two games.

    Raises:
        DataMissing: Without a clone.
    """
    rules, original, envs = import_original(clone_of(options, "https://github.com/RL4VLM/RL4VLM"))
    return [
        play(getattr(envs, name)(), env_id, puzzle, rules, original, options.episodes or EPISODES)
        for name, (env_id, puzzle) in _GAMES.items()
    ]


def import_original(clone: Path) -> tuple[str, str, Any]:
    """Our rule set, the original's name, and its module of environments.

    Raises:
        DataMissing: When the clone holds no gym_cards.
    """
    for folder, (rules, name) in _VERSIONS.items():
        if (clone / folder / "gym_cards").is_dir():
            sys.path.insert(0, str(clone / folder))
            vars(ImageFont)["truetype"] = _any_font
            return rules, name, importlib.import_module("gym_cards.envs")
    raise DataMissing(f"{clone} holds no gym_cards; --against wants a clone of RL4VLM/RL4VLM or langfengQ/verl-agent")


_truetype = ImageFont.truetype


def _any_font(font: Any, *arguments: Any, **named: Any) -> Any:
    """The original names a font file by a path that depends on where it is started; letters are not compared."""
    if font == _FONT:
        return ImageFont.load_default(*arguments)
    return _truetype(font, *arguments, **named)


def play(theirs: Any, env_id: str, puzzle: Puzzle, rules: str, original: str, episodes: int) -> ParityRow:
    """Episodes of one game."""
    row = ParityRow(f"{puzzle.name}, rules {rules}", original)
    ours: Any = gymnasium.make(env_id, rules=rules, size=300, max_episode_steps=300)
    for seed in range(episodes):
        row.episodes += 1
        seeded = {"task_id": f"deal/{seed}"} if puzzle.cards == 2 else {}
        observation, info = ours.reset(seed=seed, options=seeded)
        cards, numbers = list(info[puzzle.name]["cards"]), list(info[puzzle.name]["numbers"])
        if not seeded:  # The original also deals hands without a solution; it is given ours.
            theirs._generate_cards = lambda hand=(numbers, cards): hand
        random.seed(seed)
        picture, told = theirs.reset(seed=seed)
        row.check(
            f"deal {seed}",
            {
                "cards": ((cards, numbers), (told["Cards"], told["Numbers"])),
                "picture": (observation["image"].shape, picture.shape),
                "layout": (cards_at(observation["image"]), cards_at(picture)),
            },
        )
        _episode(row, ours, theirs, puzzle, seed)
    ours.close()
    return row


def _episode(row: ParityRow, ours: Any, theirs: Any, puzzle: Puzzle, seed: int) -> None:
    rng, ended = np.random.default_rng(seed), False
    while not ended:
        token = _choose(rng, ours, puzzle)
        if token == "*" and theirs.formula[-1:] == ["*"] and ("*", "*") in pairwise(theirs.formula):
            token = "+"  # A tower of powers would keep the original busy for ever.
        _, reward, terminated, truncated, info = ours.step(token)
        _, their_reward, their_end, their_cut, told = theirs.step(puzzle.tokens.index(token))
        facts, ended = info[puzzle.name], terminated or truncated
        formula, where = [one for one in facts["formula"] if one != "="], f"cards {facts['cards']}, {facts['formula']}"
        row.steps += 1
        row.check(
            where,
            {
                "formula": (formula, [str(one) for one in told["Formula"]]),
                "used": (list(facts["used"]), [str(one) for one in theirs.used_cards]),
                "ends": ((terminated, truncated), (bool(their_end), bool(their_cut))),
            },
        )
        row.check(where, {"reward": (reward, float(their_reward))}, _reasons(formula))


def _choose(rng: np.random.Generator, env: Any, puzzle: Puzzle) -> str:
    """Half the time a step of a shortest solution, else any token, ``=`` seldom."""
    if rng.random() < 0.5:
        try:
            return str(env.unwrapped.oracle_action())
        except OracleUnavailable:
            pass
    return str(rng.choice(puzzle.tokens if rng.random() < 0.3 else puzzle.tokens[:-1]))


def _reasons(formula: list[str]) -> list[Documented]:
    """What the original's evaluation of joined text makes of a formula that a parser of tokens does not."""
    pairs = list(pairwise(formula))
    if any(pair in {("*", "*"), ("/", "/")} for pair in pairs):
        return [POWER]
    if any(left in NUMBERS and right in NUMBERS for left, right in pairs):
        return [JOINED]
    return [EXACT] if "/" in formula else []


def cards_at(picture: NDArray[np.uint8]) -> list[tuple[int, int, int, int]]:
    """Left, right, top and bottom of every card of a picture, found by the colour of the table."""
    table = np.asarray(TABLE, np.uint8)
    busy = np.any(picture[:200] != table, axis=-1)  # The formula is below.
    columns = np.flatnonzero(np.diff(np.concatenate([[0], busy.any(axis=0), [0]]).astype(int)))
    boxes = []
    for left, right in columns.reshape(-1, 2).tolist():
        rows = np.flatnonzero(busy[:, left:right].any(axis=1))
        boxes.append((left, right, int(rows[0]), int(rows[-1]) + 1))
    return boxes
