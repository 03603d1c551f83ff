"""Checks what a user passes to ``ALFWorldEnv`` and to its ``reset``.

Every refusal names the value and what was expected.  Generator knobs are
checked in ``generator.rooms``, quirks in ``quirks``; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from seed_envs.alfworld.game import Game
from seed_envs.alfworld.goals import KIND_OF_TYPE
from seed_envs.alfworld.tasks import belongs, scene_of
from seed_envs.arguments import check_choice
from seed_envs.errors import UnknownOption, close_matches

CHOICES: Final[dict[str, tuple[object, ...]]] = {
    "wording": ("move", "put"),
    "feedback": ("plain", "verbose"),
    "parser": ("strict", "tolerant"),
    "opening": ("full", "room", "start"),
    "engine": ("native", "textworld"),
    "privileged": (False, True),
}


def check_choices(**chosen: object) -> None:
    """Check arguments that have a fixed set of values.

    Args:
        **chosen: argument -> value, arguments as in ``CHOICES``.

    Raises:
        UnknownOption: for a value that is not in the set.
    """
    for name, value in chosen.items():
        check_choice(name, value, CHOICES[name])


def check_budget(value: object) -> float:
    """Check how many commands an episode may take, in lengths of the shortest plan.

    Args:
        value: what the user wrote.

    Returns:
        The multiple; 0 for no budget.

    Raises:
        UnknownOption: for anything else than 0 or a number from 1 to 20.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (value == 0 or 1 <= value <= 20):
        raise UnknownOption(
            f"budget={value!r}: expected 0 or a number from 1 to 20, such as 2 for twice the shortest plan"
        )
    return float(value)


def check_task_type(value: object) -> str:
    """Check the name of a task family.

    Args:
        value: what the user wrote.

    Returns:
        One of the six official family names.

    Raises:
        UnknownOption: for anything else.
    """
    if not isinstance(value, str) or value not in KIND_OF_TYPE:
        known = list(KIND_OF_TYPE)
        raise UnknownOption(f"task_type {value!r} is unknown; known: {known}.{close_matches(value, known)}")
    return value


def check_scene(value: object) -> int:
    """Check a room number.

    Args:
        value: what the user wrote.

    Returns:
        The number.

    Raises:
        UnknownOption: for anything that cannot be one.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1_000:
        raise UnknownOption(f"scene {value!r}: expected a room number such as 301")
    return value


def check_task_types(values: object) -> tuple[str, ...]:
    """Check a collection of families (see :func:`check_task_type`)."""
    return tuple(check_task_type(value) for value in _collection("task_types", values, "pick_and_place_simple"))


def check_scenes(values: object) -> tuple[int, ...]:
    """Check a collection of room numbers (see :func:`check_scene`)."""
    return tuple(check_scene(value) for value in _collection("scenes", values, 301))


def _collection(name: str, values: object, example: object) -> Iterable[object]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UnknownOption(f"{name}={values!r}: expected a collection such as {[example]!r}")
    return values


def check_agreement(game: Game, options: Mapping[str, Any]) -> None:
    """Check that reset options which name a task and describe it do not contradict each other.

    Args:
        game: the game that ``task_id`` names.
        options: reset options.

    Raises:
        UnknownOption: when the game is not of the split, family or room that the options ask for.
    """
    task_id = game.game_id
    split = options.get("split")
    if split is not None and not belongs(task_id, split):
        raise UnknownOption(f"task_id {task_id!r} is no task of split {split!r}; leave 'split' out to play it")
    if "task_type" in options and check_task_type(options["task_type"]) != game.goal.task_type:
        raise UnknownOption(
            f"task_id {task_id!r} has task_type {game.goal.task_type!r}, not {options['task_type']!r}; "
            "give one of the two"
        )
    if "scene" in options and check_scene(options["scene"]) != scene_of(task_id):
        where = f"scene {scene_of(task_id)}" if scene_of(task_id) else "a room without a number"
        raise UnknownOption(f"task_id {task_id!r} plays in {where}, not {options['scene']}; give one of the two")
