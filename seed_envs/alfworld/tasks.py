"""Which games there are: splits, listed ids, and the way from an id to a compiled game.

Four families of ids: official games (``split/task/trial``), the same with a
person's sentence (``human/split/task/trial/number``), generated games in
official rooms (``procedural/part/number[;knob=value…]``), and the compact
preset (``compact/part/number``).  What happens in a game is not decided here.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Collection, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from seed_envs.alfworld.cache import open_library
from seed_envs.alfworld.game import Game
from seed_envs.alfworld.gamefile import with_sentence
from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.goals import KIND_OF_TYPE
from seed_envs.alfworld.human import human_sentence
from seed_envs.alfworld.library import GAME_FILE, OFFICIAL_SPLITS, Library
from seed_envs.alfworld.pddl import Problem, write_problem
from seed_envs.data import data_dir as find_data
from seed_envs.data import named_folder
from seed_envs.data_card import GENERATED, DataSource, Kind, counted
from seed_envs.errors import DataMissing, NoTaskMatches, UnboundedSplit, UnknownTask, close_matches
from seed_envs.tasks import Manifest

MINI_SPLITS: Final = ("mini_train", "mini_valid_seen", "mini_valid_unseen")
PROCEDURAL_SPLITS: Final = tuple(f"procedural_{part}" for part in rooms.PARTS)
COMPACT_SPLITS: Final = tuple(f"compact_{part}" for part in compact.PARTS)
PANEL_SPLITS: Final = ("unlikely_places", "crowded", "new_layouts", "two_goals", "own_words")
"""Listed generated games that each are hard in one way; ``mini_*`` are the plain ones."""
GENERATED_SPLITS: Final = (*MINI_SPLITS, *PROCEDURAL_SPLITS, *COMPACT_SPLITS, *PANEL_SPLITS)
CUSTOM_SPLIT: Final = "custom"
MAX_GENERATED_SEED: Final = 2**31
HUMAN_SPLITS: Final = ("human_valid_seen", "human_valid_unseen")
SPLITS: Final = (*GENERATED_SPLITS, *OFFICIAL_SPLITS, *HUMAN_SPLITS, CUSTOM_SPLIT)
_HUMAN: Final = "human/"
_GENERATED: Final = ("procedural/", "compact/")
_FILES_OF_A_GAME: Final = (GAME_FILE, "traj_data.json", "initial_state.pddl")
DOWNLOAD_COMMAND: Final = "python -m seed_envs.alfworld download --output {folder}"
ORIGINAL_SPLITS: Final = {"eval_in_distribution": "valid_seen", "eval_out_of_distribution": "valid_unseen"}
"""What the original calls the splits -> the name here."""
DATA_VARIABLE: Final = "ALFWORLD_DATA"
ORIGINAL_FOLDER: Final = "~/.cache/alfworld"
"""Where alfworld's own download command writes."""


@lru_cache(maxsize=32)
def manifest(split: str) -> Manifest:
    """The checked-in list of a split.

    Args:
        split: any split with a list that ships.

    Returns:
        The manifest.
    """
    with resources.as_file(resources.files(__package__) / "manifests" / f"{split}.txt") as path:
        return Manifest.load(path)


class TaskSource:
    """Finds games by id.

    Args:
        data_dir: folder with official games; None looks at ``$ALFWORLD_DATA``, ``$SEED_DATA_DIR/alfworld``, the
            download cache and ``~/.cache/alfworld``, and only when an official game is wanted.
    """

    def __init__(self, data_dir: str | os.PathLike[str] | None = None) -> None:
        self.data_dir = data_dir
        self._library: Library | None = None
        self._complete: set[str] = set()
        self._custom: tuple[str, ...] | None = None
        self._sources: dict[str, DataSource] = {}
        self._human: dict[str, Game] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without the games: a copy in another process opens them when it needs them."""
        return {**self.__dict__, "_library": None, "_human": {}}

    def library(self) -> Library:
        """The official games on disk.

        Raises:
            DataMissing: when there are none; the message names the command that fetches them.
        """
        if self._library is None:
            folder = find_data("alfworld", self.data_dir, DATA_VARIABLE, DOWNLOAD_COMMAND, (ORIGINAL_FOLDER,))
            self._library = open_library(folder.resolve())
        return self._library

    def ids(self, split: str) -> Sequence[str]:
        """The listed tasks of a split.

        Args:
            split: one of ``SPLITS``.

        Returns:
            The ids in listed order.

        Raises:
            UnboundedSplit: for a procedural split, which has a game for every number.
            DataMissing: for ``custom``, when there are no games of one's own.
        """
        if split in PROCEDURAL_SPLITS:
            part = split.removeprefix("procedural_")
            raise UnboundedSplit(
                f"split {split!r} has a game for every number and no list; use 'mini_{part}' for a listed panel, or "
                f"ids such as {rooms.make_id(part, 0)!r}"
            )
        if split in COMPACT_SPLITS:
            return compact.panel(split.removeprefix("compact_"))
        if split == CUSTOM_SPLIT:
            return self._custom_ids()
        return manifest(split)

    def require(self, split: str) -> None:
        """Make sure that every listed game of a split can be played; only official games can be missing.

        Args:
            split: one of ``SPLITS``.

        Raises:
            DataMissing: when official games are wanted and not all of the split's are there.
        """
        if split in HUMAN_SPLITS and split not in self._complete:
            self.require(split.removeprefix("human_"))
            for task_id in manifest(split):
                self._human_sentence(task_id)
            self._complete.add(split)
        if split not in OFFICIAL_SPLITS or split in self._complete:
            return
        listed = manifest(split)
        here = set(self.library().ids)
        missing = [task_id for task_id in listed if task_id not in here]
        if missing:
            raise DataMissing(
                f"split {split!r} lists {len(listed):,} official games, {len(missing):,} of them are not in "
                f"{self._where()}, the first being {missing[0]!r}; run: {self._cure()}"
                + ("" if len(missing) < len(listed) else ". For games of your own in it pass split='custom'")
            )
        self._complete.add(split)

    def data_source(self, task_id: str) -> DataSource:
        """What a game is made of: a listed official game, one of the user's own, or a generated one."""
        if task_id.startswith(_GENERATED):
            return GENERATED
        task_id = _game_of(task_id)
        split = task_id.partition("/")[0]
        kind: Kind = "real" if split in OFFICIAL_SPLITS and task_id in manifest(split) else "own"
        if kind not in self._sources:
            library = self.library()
            skipped = counted({reason: len(names) for reason, names in library.skipped.items()})
            self._sources[kind] = DataSource(kind, library.files, "", skipped)
        return self._sources[kind]

    def _custom_ids(self) -> tuple[str, ...]:
        if self._custom is None:
            library = self.library()
            official = {task_id for split in OFFICIAL_SPLITS for task_id in manifest(split)}
            own = [task_id for task_id in library.ids if task_id not in official]
            self._custom = tuple(task_id for task_id in own if library.playable(task_id))
        if not self._custom:
            skipped = [f"{len(names)} {reason} ({names[0]})" for reason, names in self.library().skipped.items()]
            raise DataMissing(
                f"split 'custom' means games of your own, and {self._where()} holds none that can be played"
                + (f" (left out: {'; '.join(skipped)})" if skipped else "")
                + "; put <split>/<task>/<trial>/game.tw-pddl files into a folder and pass it as data_dir"
            )
        return self._custom

    def _where(self) -> str:
        folder, origin = self._named()
        return f"{folder} (named by {origin})"

    def _cure(self) -> str:
        return DOWNLOAD_COMMAND.replace("{folder}", shlex.quote(str(self._named()[0])))

    def _named(self) -> tuple[Path, str]:
        return named_folder("alfworld", self.data_dir, DATA_VARIABLE, (ORIGINAL_FOLDER,))

    def game(self, task_id: str) -> Game:
        """The compiled game of an id.

        Args:
            task_id: any id of the four families.

        Returns:
            The game, shared within the process.

        Raises:
            UnknownTask: when there is no such game; names close matches.
            DataMissing: when it is an official game and the data is not there.
        """
        if not isinstance(task_id, str):
            raise UnknownTask(f"a task id is a str, got {task_id!r}")
        if task_id.startswith(_GENERATED):
            return generated_game(task_id)
        if task_id.startswith(_HUMAN):
            if task_id not in self._human:
                sentence = self._human_sentence(task_id)
                self._human[task_id] = dataclasses.replace(
                    self.game(_game_of(task_id)), game_id=task_id, sentence=sentence
                )
            return self._human[task_id]
        split = task_id.partition("/")[0]
        if split in OFFICIAL_SPLITS:
            return self._official_game(task_id, manifest(split))
        shapes = (
            f"task {task_id!r}: expected 'split/task/trial' (official), {rooms.make_id('train', 0)!r} (generated) or "
            f"{compact.make_id('train', 0)!r} (compact)"
        )
        if "/" not in task_id:
            raise UnknownTask(shapes)
        try:
            return self.library().game(task_id)
        except DataMissing as error:
            if self.data_dir is not None:
                raise
            raise UnknownTask(f"{shapes}; a game of your own needs its folder: data_dir or ${DATA_VARIABLE}") from error

    def _human_sentence(self, task_id: str) -> str:
        """The goal line of a listed game in a person's words."""
        split = f"human_{task_id.removeprefix(_HUMAN).partition('/')[0]}"
        listed = manifest(split if split in HUMAN_SPLITS else HUMAN_SPLITS[0])
        listed.check(task_id)
        self.library()
        return human_sentence(self._named()[0].resolve(), _game_of(task_id), int(task_id.rpartition("/")[2]))

    def _official_game(self, task_id: str, listed: Manifest) -> Game:
        """A listed game, or one of the user's own that lies in a folder with the name of an official split."""
        if task_id in listed:
            try:
                return self.library().game(task_id)
            except UnknownTask as error:
                raise DataMissing(
                    f"the official game {task_id!r} is not in {self._where()}; run: {self._cure()}"
                ) from error
        try:
            if task_id in self.library().ids:
                return self.library().game(task_id)
        except DataMissing:
            if self.data_dir is not None:
                raise
        raise UnknownTask(
            f"task {task_id!r} is not one of the {len(listed):,} games of {listed.name!r}."
            f"{close_matches(task_id, listed)}"
        )

    def document(self, task_id: str) -> dict[str, Any]:
        """The content of a game file, for the original engine.

        Args:
            task_id: any id; for a generated game domain and grammar come from the official data folder.

        Returns:
            ``pddl_domain``, ``grammar``, ``pddl_problem``, ``solvable`` and ``walkthrough``.
        """
        if task_id.startswith(_HUMAN):
            document = self.library().document(_game_of(task_id))
            return {**document, "grammar": with_sentence(document["grammar"], self._human_sentence(task_id))}
        if not task_id.startswith(_GENERATED):
            return self.library().document(task_id)
        library = self.library()
        problem, game = generated_problem(task_id)
        model = library.document(library.ids[0])
        return {
            "pddl_domain": model["pddl_domain"],
            "grammar": with_sentence(model["grammar"], game.sentence),
            "pddl_problem": write_problem(problem, "generated"),
            "solvable": True,
            "walkthrough": list(game.walkthrough),
        }


@lru_cache(maxsize=4096)
def generated_game(task_id: str) -> Game:
    """A generated game, kept for repeated episodes (groups of rollouts share it).

    Args:
        task_id: ``procedural/…`` or ``compact/…``.

    Returns:
        The game.

    Raises:
        UnknownTask: for a malformed id.
    """
    return compact.generate(task_id) if task_id.startswith("compact/") else rooms.generate(task_id)


def generated_problem(task_id: str) -> tuple[Problem, Game]:
    """The facts of a generated game, for writing a game file.

    Args:
        task_id: ``procedural/…`` or ``compact/…``.

    Returns:
        Facts and compiled game.
    """
    make = compact.generate_problem if task_id.startswith("compact/") else rooms.generate_problem
    return make(task_id)


def plain_id(task_id: str) -> str:
    """The id that a name people have stands for.

    Args:
        task_id: an id; or the path of a game file or its folder (``infos["extra.gamefile"]`` of the original), with
            the original's split names or ours; or ``task/trial`` of an official game.

    Returns:
        ``split/task/trial``, or the text unchanged when it is none of these.
    """
    if task_id.startswith(_GENERATED):
        return task_id
    parts = [part for part in task_id.replace(os.sep, "/").split("/") if part]
    is_path = bool(parts) and parts[-1] in _FILES_OF_A_GAME
    if is_path:
        parts.pop()
    if len(parts) >= 3 and (is_path or parts[-3] in OFFICIAL_SPLITS or parts[-3] in ORIGINAL_SPLITS):
        return "/".join([ORIGINAL_SPLITS.get(parts[-3], parts[-3]), *parts[-2:]])
    named = [f"{split}/{'/'.join(parts)}" for split in OFFICIAL_SPLITS] if len(parts) == 2 else []
    return next((name for name in named if name in manifest(name.partition("/")[0])), task_id)


def _game_of(task_id: str) -> str:
    """The official game that an id with a person's sentence is about; any other id unchanged."""
    return task_id.removeprefix(_HUMAN).rpartition("/")[0] if task_id.startswith(_HUMAN) else task_id


def type_of(task_id: str) -> str:
    """Family of an official id, read from its name.

    Args:
        task_id: ``split/task/trial``, or the id of a person's sentence for it.

    Returns:
        One of the six official family names, or "" when the name holds none.
    """
    parts = _game_of(task_id).split("/")
    kind = parts[1].split("-")[0] if len(parts) > 1 else ""
    return kind if kind in KIND_OF_TYPE else ""


def scene_of(task_id: str) -> int:
    """Room number of a task; official ids hold it in their name.

    Args:
        task_id: any id.

    Returns:
        The number, or 0 when there is none (compact games, own games with other names).
    """
    if task_id.startswith("procedural/"):
        return rooms.scene_of(task_id)
    parts = _game_of(task_id).split("/")
    number = parts[1].rsplit("-", 1)[-1] if len(parts) > 1 else ""
    return int(number) if number.isdecimal() else 0


def belongs(task_id: str, split: str) -> bool:
    """Whether a task can be one of a split's, as its id tells.

    Args:
        task_id: any id.
        split: one of ``SPLITS``.

    Returns:
        False when id and split contradict each other. Generated games of a part count for all splits of that part,
        listed or not, and own games beside official ones for both ``custom`` and the split they are named after.
    """
    if split in OFFICIAL_SPLITS:
        return task_id.startswith(f"{split}/")
    if split in (*PANEL_SPLITS, *HUMAN_SPLITS):
        return task_id in manifest(split)
    if split == CUSTOM_SPLIT:
        return not task_id.startswith((*_GENERATED, _HUMAN)) and not any(
            task_id in manifest(name) for name in OFFICIAL_SPLITS
        )
    family, _, part = split.replace("mini_", "procedural_").partition("_")
    return task_id.startswith(f"{family}/{part}/")


def matching(source: TaskSource, split: str, task_types: Collection[str], scenes: Collection[int]) -> tuple[str, ...]:
    """Listed ids of a split that pass filters.

    Args:
        source: where games come from.
        split: a split with a list.
        task_types: families to keep; empty keeps all.
        scenes: rooms to keep; empty keeps all.

    Returns:
        The ids in listed order.
    """
    ids = source.ids(split)
    if not task_types and not scenes:
        return tuple(ids)

    def family(task_id: str) -> str:
        return type_of(task_id) if split in (*OFFICIAL_SPLITS, *HUMAN_SPLITS) else source.game(task_id).goal.task_type

    return tuple(
        task_id
        for task_id in ids
        if (not task_types or family(task_id) in task_types) and (not scenes or scene_of(task_id) in scenes)
    )


def _wish(task_types: Sequence[str], scenes: Sequence[int]) -> str:
    """Filters in words."""
    kinds = " or ".join(kind for kind in task_types if kind)
    numbers = ", ".join(map(str, scenes))
    return " and ".join([f"task_type {kinds}"] * bool(kinds) + [f"scene in [{numbers}]"] * bool(scenes))


class TaskChooser:
    """Lists and draws tasks under filters; what it has listed once it remembers.

    Args:
        source: where games come from.
        knobs: limits for procedural games.
    """

    def __init__(self, source: TaskSource, knobs: rooms.Knobs) -> None:
        self.source = source
        self.knobs = knobs
        self._known: dict[tuple[object, ...], tuple[str, ...]] = {}

    def listed(self, split: str, task_types: Sequence[str], scenes: Sequence[int]) -> tuple[str, ...]:
        """Ids of a split that pass the filters, in listed order (see :func:`matching`)."""
        key = (split, tuple(task_types), tuple(scenes))
        if key not in self._known:
            self._known[key] = matching(self.source, split, task_types, scenes)
        return self._known[key]

    def draw(self, split: str, task_types: Sequence[str], scenes: Sequence[int], rng: np.random.Generator) -> str:
        """Draw a task.

        Args:
            split: any split.
            task_types: families to draw from; empty means all.
            scenes: rooms to draw from; empty means all.
            rng: where chance comes from.

        Returns:
            The task's id.

        Raises:
            NoTaskMatches: when the filters leave nothing.
            DataMissing: when official games are wanted and not all of the split's are there.
        """
        if split in PROCEDURAL_SPLITS:
            return self._draw_procedural(split.removeprefix("procedural_"), task_types, scenes, rng)
        self.source.require(split)
        ids = self.listed(split, task_types, scenes)
        if not ids:
            raise NoTaskMatches(f"no task of split {split!r} has {_wish(task_types, scenes)}")
        return ids[int(rng.integers(len(ids)))]

    def _draw_procedural(
        self, part: str, task_types: Sequence[str], scenes: Sequence[int], rng: np.random.Generator
    ) -> str:
        knobs = self.knobs
        pool = scenes or ((knobs.scene,) if knobs.scene else rooms.scenes_of(part))
        wishes = [dataclasses.replace(knobs, task_type=kind) for kind in task_types or (knobs.task_type,)]
        kinds = [wish.task_type for wish in wishes if any(rooms.allows(part, scene, wish) for scene in pool)]
        if not kinds:
            raise NoTaskMatches(
                f"split 'procedural_{part}' has no room with {_wish(task_types or (knobs.task_type,), pool)}; "
                f"its rooms are {list(rooms.scenes_of(part))}"
            )
        if task_types:
            knobs = dataclasses.replace(knobs, task_type=kinds[int(rng.integers(len(kinds)))])
        if scenes:
            fitting = [scene for scene in scenes if rooms.allows(part, scene, knobs)]
            knobs = dataclasses.replace(knobs, scene=fitting[int(rng.integers(len(fitting)))])
        return rooms.make_id(part, int(rng.integers(MAX_GENERATED_SEED)), knobs)
