"""What a model is shown each turn in the ``paper`` profiles, as data, beside the environment managers of verl-agent.

``--against CLONE`` takes a clone of langfengQ/verl-agent. An episode is played in our environments; the original's
manager is given the same observations and actions, and its templates, like ours, are exchanged for bare slots: what is
compared is what fills them (task, observation, step, history window, admissible list), never the words around.
Pictures are compared by size.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import re
import string
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from seed_envs.errors import DataMissing
from seed_envs.profiles import PromptTemplate, TurnContext
from seed_envs.registration import make
from seed_envs.vision.sokoban.actions import read_classic
from seed_envs.wrappers import make_agent_env

from .clones import clone_of
from .rows import Documented, Options, ParityRow
from .webshop import SEARCH_BUTTON

EPISODES = 10
_FILE = "agent_system/environments/env_manager.py"
_BETWEEN, _IS = "\x1e", "\x1f"
_DISCOVERY = "agent_system.environments.env_package.discovery"
_STAND_INS: dict[str, dict[str, Any]] = {
    "omegaconf": {"OmegaConf": object},
    "torch": {"Tensor": object},
    # A fork's further environment, which imports its simulator.
    _DISCOVERY: {},
    f"{_DISCOVERY}.actions": {"all_plausible_action_mapper": {}},
}
PICTURE_SOKOBAN = Documented("picture-size", "sokoban", "Pictures have 28 pixels a cell; the original's 16")
HISTORY_SOKOBAN = Documented(
    "history-action", "sokoban", "The history of ``paper-text`` shows an action as the reply has it"
)
PICTURE_CARDS = Documented("picture-size", "ezpoints", "Pictures have 308 pixels a side; the original's 300")


@dataclasses.dataclass(frozen=True)
class Side:
    """One environment and the manager that shows it.

    Attributes:
        env_id: Ours.
        manager: Class of the original.
        profile: Our profile.
        env_name: What the original's configuration calls the environment.
        slots: Our slot -> the original's.
        history: How the original writes one step of its history; "" for none.
        env_kwargs: Constructor arguments that need no data.
        raw_kwargs: Arguments under which our environment observes what the original's does; None: as it is.
        picture: Shape of the original's picture, or None.
        known: Reasons for differences by what differs, each with what it is about; the rest has to agree.
    """

    env_id: str
    manager: str
    profile: str = "paper"
    env_name: str = ""
    slots: Mapping[str, str] = dataclasses.field(default_factory=dict)
    history: str = "[Observation {number}: '{observation}', Action {number}: '{action}']"
    env_kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    raw_kwargs: Mapping[str, Any] | None = None
    picture: tuple[int, int, int] | None = None
    known: Mapping[str, tuple[Documented, str]] = dataclasses.field(default_factory=dict)


_WINDOW = {
    "observation": "current_observation", "step": "step_count", "next_step": "current_step",
    "history_length": "history_length", "history": "action_history",
}  # fmt: skip
SIDES = {
    "alfworld": Side(
        "seed/ALFWorld-v0", "AlfWorldEnvironmentManager", env_kwargs={"split": "mini_valid_seen"}, raw_kwargs={},
        slots={**_WINDOW, "goal": "task_description", "admissible": "admissible_actions"},
    ),
    "webshop": Side(
        "seed/WebShop-v0", "WebshopEnvironmentManager", env_kwargs={"split": "test"}, raw_kwargs={"obs_mode": "text"},
        known={"admissible": (SEARCH_BUTTON, r"\nclick\[search\]")},
        slots={**_WINDOW, "goal": "task_description", "admissible": "available_actions"},
    ),
    "search": Side(
        "seed/SearchQA-v0", "SearchEnvironmentManager", env_kwargs={"split": "test", "collection": "tiny"},
        slots={"goal": "task_description", "step": "step_count", "history": "memory_context"},
        history="Step {number}:{action} {observation}\n",
    ),
    "sokoban": Side(
        "seed/Sokoban-v0", "SokobanEnvironmentManager", profile="paper-text",
        slots={ours: theirs for ours, theirs in _WINDOW.items() if ours != "next_step"},
        known={"history": (HISTORY_SOKOBAN, r"(?<=, Action )\d+: '[^']*'")},
    ),
    "sokoban, picture": Side(
        "seed/Sokoban-v0", "SokobanEnvironmentManager", picture=(96, 96, 3), known={"picture": (PICTURE_SOKOBAN, "")},
    ),
    "ezpoints": Side(
        "seed/EZPoints-v0", "GymCardEnvironmentManager", env_name="gym_cards/EZPoints-v0", history="",
        slots={"observation": "text_formula"}, picture=(300, 300, 3), known={"picture": (PICTURE_CARDS, "")},
    ),
    "points24": Side(
        "seed/Points24-v0", "GymCardEnvironmentManager", env_name="gym_cards/Points24-v0", history="",
        slots={"observation": "text_formula"}, picture=(300, 300, 3), known={"picture": (PICTURE_CARDS, "")},
    ),
}  # fmt: skip


def compare(options: Options) -> list[ParityRow]:
    """One row an environment.

    Raises:
        DataMissing: Without a clone.
    """
    managers = import_managers(clone_of(options, "https://github.com/langfengQ/verl-agent"))
    return [play(name, side, managers, options.episodes or EPISODES) for name, side in SIDES.items()]


def import_managers(clone: Path) -> Any:
    """The original's managers, its templates exchanged for slots.

    Raises:
        DataMissing: When the clone has none.
    """
    if not (clone / _FILE).is_file():
        raise DataMissing(f"{clone} has no {_FILE}; --against wants a clone of langfengQ/verl-agent")
    for name, attributes in _STAND_INS.items():
        if name.startswith("agent_system.") or importlib.util.find_spec(name) is None:
            sys.modules[name] = ModuleType(name)
            vars(sys.modules[name]).update(attributes)
    sys.path.insert(0, str(clone))
    managers = importlib.import_module("agent_system.environments.env_manager")
    for name, words in list(vars(managers).items()):
        if isinstance(words, str) and "_TEMPLATE" in name:
            setattr(managers, name, bare(words))
    return managers


def bare(template: str) -> str:
    """The slots of a format string, each with its name, without the words between."""
    names = dict.fromkeys(name for _, name, _, _ in string.Formatter().parse(template) if name)
    return _BETWEEN.join(f"{name}{_IS}{{{name}}}" for name in names)


def filled(shown: str) -> dict[str, str]:
    """What fills the slots of a rendered :func:`bare` template."""
    parts = (part.partition(_IS) for part in shown.split(_BETWEEN) if part)
    return {name: value for name, _, value in parts}


class Recorded:
    """Stands for the original's vector of one environment: what it observes is handed over turn by turn.

    Attributes:
        mode: Sokoban's kind of observation.
        text: What is observed.
        image: The picture, or None.
        info: What the original's environment would say beside it.
    """

    def __init__(self, pictures: bool) -> None:
        self.mode = "rgb_array" if pictures else "text"
        self.text, self.image = "", None
        self.info: dict[str, Any] = {}

    @property
    def get_admissible_commands(self) -> list[list[str]]:
        """ALFWorld's."""
        return [self.info["admissible"]]

    def render(self, mode: str) -> list[str]:
        """Sokoban's room as text."""
        return [self.text]

    def reset(self, kwargs: Any = None) -> Any:
        """Observation and info, in the shape that the manager unpacks; ALFWorld's has pictures apart."""
        seen = [self.text if self.image is None else self.image]
        return (seen, None, [self.info]) if "admissible" in self.info else (seen, [self.info])

    def step(self, actions: Any) -> Any:
        """As :meth:`reset`, with reward and end."""
        *seen, infos = self.reset()
        return (*seen, [0.0], [False], infos)


def play(name: str, side: Side, managers: Any, episodes: int) -> ParityRow:
    """Episodes of random actions, both sides shown the same."""
    row = ParityRow(name, "verl-agent, clone")
    env: Any = make_agent_env(side.env_id, side.profile, **side.env_kwargs)
    raw = None if side.raw_kwargs is None else make(side.env_id, **side.env_kwargs, **side.raw_kwargs)
    profile = env.get_wrapper_attr("profile")
    config = SimpleNamespace(env=SimpleNamespace(history_length=profile.history, env_name=side.env_name))
    for seed in range(episodes):
        rng, vector = np.random.default_rng(seed), Recorded(side.picture is not None)
        manager = getattr(managers, side.manager)(vector, lambda sent, *_: (sent, [1]), config)
        info = env.reset(seed=seed)[1]
        text = info["turn"].observation if raw is None else raw.reset(options={"task_id": info["task_id"]})[0]
        _hand(vector, text, side, info)
        _check(row, f"episode {seed}, start", side, profile.template, info["turn"], manager.reset([{}])[0])
        row.episodes += 1
        ended = False
        while not ended:
            reply = profile.action_format.reply.format(thought="so", action=_choose(rng, info["turn"]))
            _, _, terminated, truncated, info = env.step(reply)
            ended = terminated or truncated
            _hand(vector, info["turn"].observation if raw is None else raw.step(info["action"])[0], side, info)
            shown = manager.step([_code(info["action"]) if side.manager.startswith("Sokoban") else info["action"]])[0]
            row.steps += 1
            if not ended:  # Nobody is shown the last one.
                _check(row, f"episode {seed}, {info['action']!r}", side, profile.template, info["turn"], shown)
    env.close()
    return row


def _choose(rng: np.random.Generator, turn: TurnContext) -> str:
    """An admissible action, or a search where nothing is listed; now and then something else."""
    listed = [str(action) for action in turn.admissible or ("<search>the river</search>", "<search>a b</search>")]
    chosen = listed[int(rng.integers(len(listed)))] if rng.random() < 0.9 else "look around"
    return chosen.replace("<your query>", "women shoes")


def _code(action: str) -> int:
    return (read_classic(action).codes or (0,))[0]


def _hand(vector: Recorded, text: str, side: Side, info: dict[str, Any]) -> None:
    """What the original's environment would say now."""
    turn = info["turn"]
    vector.text, vector.image = text.strip() if "memory_context" in side.slots.values() else text, turn.image
    listed = list(turn.admissible or ())
    if side.slots.get("admissible") == "admissible_actions":
        vector.info = {"admissible": listed}
    elif side.slots.get("admissible"):
        clicks = ["search"] * any(action.startswith("search[") for action in listed)
        clicks += [action[len("click[") : -1] for action in listed if action.startswith("click[")]
        vector.info = {"available_actions": {"has_search_bar": "search" in clicks, "clickables": clicks}}
    else:
        name = side.env_name.rpartition("/")[2].partition("-")[0].lower()
        vector.info = {"Formula": info[name]["formula"]} if name else {}


def _check(row: ParityRow, where: str, side: Side, template: PromptTemplate, turn: TurnContext, shown: Any) -> None:
    slots = dataclasses.replace(
        template, first=bare(template.first), turn=bare(template.turn), history_item=side.history or "{action}",
        history_separator="\n", admissible_item="{action}", admissible_separator="\n",
    )  # fmt: skip
    ours, theirs = filled(slots.render(turn)), filled(shown["text"][0])
    for mine, other in side.slots.items():
        pair = (_plain(ours[mine]) if mine in ours else None, theirs.get(other))
        if mine == "admissible" and pair[1] is not None:
            pair = (pair[0], "\n".join(map(_unquoted, pair[1].split("\n"))))
        reason, about = side.known.get(mine, (None, ""))
        if reason:
            rest = [None if value is None else re.sub(about, "", value) for value in pair]
            row.check(where, {f"{mine}, the rest": (rest[0], rest[1])})
        row.check(where, {mine: pair}, [reason] if reason else [])
    if side.picture:
        row.check(where, {"picture": (turn.image.shape, side.picture)}, [side.known["picture"][0]])


def _plain(value: str) -> str:
    """Our goal of ALFWorld is the game's whole sentence; the original cuts its beginning off."""
    return value.removeprefix("Your task is to: ")


def _unquoted(line: str) -> str:
    return line.strip().removesuffix(",").removeprefix("'").removesuffix("'")
