"""The compact preset: one small room for very small models and short horizons.

Twelve places, twelve kinds of things, all six families, plans of 3-8
commands.  A thing lies in its first usual place with probability .6, in its
second with .25, anywhere else with .15, so that where to look first can be
learnt.  (family, object, destination) combinations are split into train,
validation and test, so that the panels ask for goals never seen in training.
Rules and texts are the game's own; nothing here is simplified.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from seed_envs.alfworld import texts
from seed_envs.alfworld.game import Game, compile_game
from seed_envs.alfworld.generator import tables
from seed_envs.alfworld.generator.builder import Receptacle, Thing, build_problem
from seed_envs.alfworld.generator.draw import Draw
from seed_envs.alfworld.goals import SENTENCE_PREFIX, SENTENCES, TASK_TYPES, Goal
from seed_envs.alfworld.oracle import Planner
from seed_envs.alfworld.pddl import Problem
from seed_envs.errors import UnknownTask

PARTS: Final[dict[str, int]] = {"train": 600, "validation": 192, "test": 240}
"""Part -> number of listed tasks (the panel); ids beyond the panel exist too."""

USUAL_WEIGHTS: Final = (0.60, 0.25, 0.15)
DISTRACTORS: Final = 5

_DOORS: Final = frozenset({"drawer", "fridge", "microwave"})
RECEPTACLES: Final = tuple(
    "cabinet countertop desk diningtable drawer dresser fridge garbagecan microwave shelf sidetable sinkbasin".split()
)
_LAMP_STAND: Final = "desk"

USUAL: Final[dict[str, tuple[str, str]]] = {
    "apple": ("diningtable", "countertop"),
    "book": ("dresser", "shelf"),
    "bowl": ("cabinet", "diningtable"),
    "candle": ("sidetable", "dresser"),
    "cd": ("drawer", "desk"),
    "cloth": ("sidetable", "cabinet"),
    "cup": ("shelf", "cabinet"),
    "mug": ("desk", "countertop"),
    "pen": ("desk", "sidetable"),
    "plate": ("countertop", "shelf"),
    "spoon": ("drawer", "diningtable"),
    "tomato": ("countertop", "garbagecan"),
}
"""Kind of thing -> its first and second usual place."""

STATIONS: Final[dict[str, str]] = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
_LOOKED_AT: Final = ("apple", "book", "bowl", "candle", "cd", "cloth", "cup", "mug", "pen", "plate", "spoon", "tomato")
_GOAL_PLACES: Final = tuple(name for name in RECEPTACLES if name not in STATIONS.values())


@lru_cache(maxsize=1)
def goals_by_part() -> dict[str, tuple[Goal, ...]]:
    """The goal combinations of each part; no two parts share one.

    Returns:
        Part -> goals, about 60 % in train and 20 % each in validation and test within every family.
    """
    split: dict[str, list[Goal]] = {part: [] for part in PARTS}
    for kind in TASK_TYPES:
        ranked = sorted(_family(kind), key=lambda goal: hashlib.sha256("/".join(goal[:3]).encode()).digest())
        for number, goal in enumerate(ranked):
            part = ("train", "validation", "train", "test", "train")[number % 5]
            split[part].append(goal)
    return {part: tuple(sorted(goals)) for part, goals in split.items()}


def _family(kind: str) -> list[Goal]:
    if kind == "look":
        return [Goal(kind, thing, "desklamp") for thing in _LOOKED_AT]
    able = {"clean": tables.CLEANABLE, "heat": tables.HEATABLE, "cool": tables.COOLABLE}.get(kind, tables.PICKUPABLE)
    return [
        Goal(kind, thing, place)
        for thing in sorted(USUAL)
        if thing in able
        for place in _GOAL_PLACES
        if thing in tables.CAN_CONTAIN[place]
    ]


def make_id(part: str, seed: int) -> str:
    """The id of a compact game.

    Args:
        part: ``train``, ``validation`` or ``test``.
        seed: number of the game within the part, from 0.

    Returns:
        Such as ``compact/train/17``.
    """
    return f"compact/{part}/{seed}"


def panel(part: str) -> tuple[str, ...]:
    """The listed tasks of a part: families in turn, so that every family is equally frequent.

    Args:
        part: ``train``, ``validation`` or ``test``.

    Returns:
        The ids.
    """
    return tuple(make_id(part, seed) for seed in range(PARTS[part]))


def parse_id(task_id: str) -> tuple[str, int]:
    """Read an id back.

    Args:
        task_id: what :func:`make_id` returned.

    Returns:
        Part and seed.

    Raises:
        UnknownTask: when it is no id of the compact preset in its one canonical spelling.
    """
    match = re.fullmatch(r"compact/([a-z]+)/(0|[1-9][0-9]{0,17})", task_id)
    if match is None or match.group(1) not in PARTS:
        raise UnknownTask(f"task {task_id!r}: expected 'compact/<part>/<number>' with part one of {list(PARTS)}")
    return match.group(1), int(match.group(2))


def generate(task_id: str) -> Game:
    """Generate the compact game that an id names.

    The family is the id's number modulo six, the goal one of the part's combinations, the places drawn.

    Args:
        task_id: see :func:`make_id`.

    Returns:
        The compiled game with its shortest plan as walkthrough.

    Raises:
        UnknownTask: for a malformed id.
    """
    return generate_problem(task_id)[1]


def generate_problem(task_id: str) -> tuple[Problem, Game]:
    """Like :func:`generate`, with the facts beside the game, for writing a game file.

    Args:
        task_id: see :func:`make_id`.

    Returns:
        Facts and compiled game.
    """
    part, seed = parse_id(task_id)
    draw = Draw(task_id)
    kind = list(TASK_TYPES)[seed % len(TASK_TYPES)]
    goal = draw.choice([goal for goal in goals_by_part()[part] if goal.kind == kind])
    things = _draw_things(goal, draw)
    receptacles = [Receptacle(name, place, name in _DOORS) for place, name in enumerate(RECEPTACLES)]
    problem = build_problem(receptacles, things, goal)
    game = compile_game(problem, game_id=task_id)
    return problem, dataclasses.replace(game, walkthrough=tuple(Planner(game).plan(game.start)))


def _draw_things(goal: Goal, draw: Draw) -> list[Thing]:
    others = draw.shuffled([kind for kind in sorted(USUAL) if kind != goal.object_type])[:DISTRACTORS]
    kinds = [goal.object_type] * (2 if goal.kind == "two" else 1) + others
    things = [Thing("desklamp", (RECEPTACLES.index(_LAMP_STAND),))]
    for kind in kinds:
        banned = goal.target_type if kind == goal.object_type else ""
        things.append(Thing(kind, (RECEPTACLES.index(_draw_place(kind, banned, draw)),)))
    return sorted(things, key=lambda thing: thing.kind)


def _draw_place(kind: str, banned: str, draw: Draw) -> str:
    """Where a thing lies: usual place 1, usual place 2, or anywhere else that takes it; never in the goal's place."""
    usual = USUAL[kind]
    elsewhere = [name for name in RECEPTACLES if kind in tables.CAN_CONTAIN[name] and name not in (*usual, banned)]
    rank = draw.weighted((0, 1, 2), USUAL_WEIGHTS)
    place = draw.choice(elsewhere) if rank == 2 else usual[rank]
    if place == banned:
        place = usual[1 - rank]
    return place


def words(text: str) -> list[str]:
    """Split a text into the words of the closed vocabulary.

    Args:
        text: any text of the compact preset.

    Returns:
        Lower-case words, numbers and single punctuation marks, in order.
    """
    return re.findall(r"[a-z]+(?:'[a-z]+)?|[0-9]+|[^\sa-z0-9]", text.lower())


def vocabulary(extra: Iterable[str] = ()) -> list[str]:
    """Every word that goals, observations, commands and the terse skills of the compact preset can contain.

    Args:
        extra: further texts whose words are wanted (for example a prompt template's).

    Returns:
        Sorted words without repeats.
    """
    names = [f"{name} {number}" for name in (*RECEPTACLES, *USUAL, "desklamp") for number in (1, 2)]
    sentences = [SENTENCE_PREFIX + variants[0].format(o="", t="") + "." for variants in SENTENCES.values()]
    told = [
        texts.NOTHING_HAPPENS,
        texts.BANNER,
        texts.MIDDLE,
        texts.HELP,
        "You are facing the, and. Next to it, you see nothing.",
        "You are carrying: a. You are not carrying anything.",
        "You arrive at. The is closed. The is open. In it, you see. On the, you see nothing.",
        "You open the. You close the. You pick up the from the. You move the to the. You turn on the.",
        "You clean the using the. You heat the using the. You cool the using the.",
        "This is a normal hot cold cool clean and. This is on. This is off. There's nothing special about.",
    ]
    commands = "look inventory help go to open close examine take from move to use clean heat cool with"
    everything = [*names, *sentences, *told, commands, *texts.TERSE_TEXTS, *extra]
    return sorted({word for text in everything for word in words(text)})
