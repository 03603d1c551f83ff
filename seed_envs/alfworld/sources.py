"""From a task id to its compiled game: official games on disk, one's own, and generated ones."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from seed_envs.alfworld.cache import open_library
from seed_envs.alfworld.game import Game
from seed_envs.alfworld.gamefile import with_sentence
from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.human import human_sentence
from seed_envs.alfworld.library import OFFICIAL_SPLITS, Library
from seed_envs.alfworld.pddl import Problem, write_problem
from seed_envs.alfworld.tasks import (
    COMPACT_SPLITS,
    CUSTOM_SPLIT,
    GENERATED_PREFIXES,
    HUMAN_PREFIX,
    HUMAN_SPLITS,
    PROCEDURAL_SPLITS,
    game_of,
    manifest,
)
from seed_envs.data import data_dir as find_data
from seed_envs.data import named_folder
from seed_envs.data_card import GENERATED, DataSource, Kind, counted
from seed_envs.errors import DataMissing, UnboundedSplit, UnknownTask, close_matches
from seed_envs.tasks import Manifest

DOWNLOAD_COMMAND: Final = "python -m seed_envs.alfworld download --output {folder}"
DATA_VARIABLE: Final = "ALFWORLD_DATA"
ORIGINAL_FOLDER: Final = "~/.cache/alfworld"
"""Where alfworld's own download command writes."""


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
        if task_id.startswith(GENERATED_PREFIXES):
            return GENERATED
        task_id = game_of(task_id)
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
        if task_id.startswith(GENERATED_PREFIXES):
            return generated_game(task_id)
        if task_id.startswith(HUMAN_PREFIX):
            if task_id not in self._human:
                sentence = self._human_sentence(task_id)
                self._human[task_id] = dataclasses.replace(
                    self.game(game_of(task_id)), game_id=task_id, sentence=sentence
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
        split = f"human_{task_id.removeprefix(HUMAN_PREFIX).partition('/')[0]}"
        listed = manifest(split if split in HUMAN_SPLITS else HUMAN_SPLITS[0])
        listed.check(task_id)
        self.library()
        return human_sentence(self._named()[0].resolve(), game_of(task_id), int(task_id.rpartition("/")[2]))

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
        if task_id.startswith(HUMAN_PREFIX):
            document = self.library().document(game_of(task_id))
            return {**document, "grammar": with_sentence(document["grammar"], self._human_sentence(task_id))}
        if not task_id.startswith(GENERATED_PREFIXES):
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
