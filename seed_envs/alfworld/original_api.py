"""The batch interface of the alfworld package over this package's engine, for scripts that were written against it.

    from seed_envs.alfworld.original_api import AlfredTWEnv  # instead of alfworld.agents.environment

    env = AlfredTWEnv(config, train_eval="eval_out_of_distribution").init_env(batch_size=1)
    observations, infos = env.reset()
    observations, scores, dones, infos = env.step(["look"])

Texts, lists, scores, ends and the order of games are the original's (where its files lie in a tree, in the order in
which the file system lists them, as there). Different on purpose: ``extra.expert_plan`` is this package's explorer for
``handcoded``, without the faults of the original's expert, and its shortest plan for ``planner``.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seed_envs.alfworld.env import ALFWorldEnv
from seed_envs.alfworld.library import GAME_FILE
from seed_envs.alfworld.tasks import GENERATED_PREFIXES, HUMAN_PREFIX, ORIGINAL_SPLITS, plain_id, type_of
from seed_envs.arguments import check_choice
from seed_envs.errors import DataMissing, UnknownOption

Infos = dict[str, list[Any]]

TASK_TYPES = {
    1: "pick_and_place_simple",
    2: "look_at_obj_in_light",
    3: "pick_clean_then_place_in_recep",
    4: "pick_heat_then_place_in_recep",
    5: "pick_cool_then_place_in_recep",
    6: "pick_two_obj_and_place",
}
_PATHS = {
    "train": "data_path",
    "eval_in_distribution": "eval_id_data_path",
    "eval_out_of_distribution": "eval_ood_data_path",
}


def get_environment(env_type: str) -> type[AlfredTWEnv]:
    """The class of a name, as ``alfworld.agents.environment`` has it; only the text one is here."""
    check_choice("env_type", env_type, ("AlfredTWEnv",))
    return AlfredTWEnv


class AlfredTWEnv:
    """The games of a split.

    Args:
        config: alfworld's configuration (``base_config.yaml`` as a dictionary).
        train_eval: ``train``, ``eval_in_distribution`` or ``eval_out_of_distribution``.

    Attributes:
        game_files: Paths of the games, in the order in which they are shuffled.
        num_games: How many.
    """

    def __init__(self, config: Mapping[str, Any], train_eval: str = "train") -> None:
        check_choice("train_eval", train_eval, _PATHS)
        self.config, self.train_eval = config, train_eval
        folder = os.path.expandvars(config["dataset"][_PATHS[train_eval]])
        split = ORIGINAL_SPLITS.get(train_eval, train_eval)
        walked = [
            os.path.join(root, GAME_FILE) for root, _, names in os.walk(folder, topdown=False) if GAME_FILE in names
        ]
        self._env_kwargs: dict[str, Any] = {"split": split, "data_dir": _root(folder, walked)}
        wanted = {TASK_TYPES[number] for number in config["env"]["task_types"] if number in TASK_TYPES}
        env = ALFWorldEnv(**self._env_kwargs)
        files = walked
        if not os.path.isdir(folder):
            files = sorted(os.path.join(folder, *task.split("/")[1:], GAME_FILE) for task in env.task_ids(split))
        self.game_files = [path for path in files if type_of(_task(path)) in wanted]
        if walked:
            library = env.source.library()
            known = set(library.ids)
            self.game_files = [
                path for path in self.game_files if _task(path) in known and library.playable(_task(path))
            ]
        limit = config["dataset"]["num_train_games" if train_eval == "train" else "num_eval_games"]
        self.game_files = self.game_files[:limit] if limit > 0 else self.game_files
        self.num_games = len(self.game_files)
        if not self.game_files:
            raise DataMissing(
                f"{folder} has no game of the families {sorted(wanted)}; see task_types and {_PATHS[train_eval]}"
            )

    def init_env(self, batch_size: int) -> AlfredBatch:
        """The environments that play them.

        Raises:
            UnknownOption: For a training method that alfworld does not have.
        """
        method = self.config["general"]["training_method"]
        if method not in ("dqn", "dagger"):
            raise UnknownOption(f"training_method={method!r}; expected 'dqn' or 'dagger'")
        training = self.config["rl" if method == "dqn" else "dagger"]["training"]
        expert = self.config["env"]["expert_type"] if method == "dagger" and self.train_eval == "train" else ""
        limit = training["max_nb_steps_per_episode"]
        return AlfredBatch(self.game_files, batch_size, limit, expert, self._env_kwargs)


class AlfredBatch:
    """A batch of games, each reset to the next of a shuffled cycle.

    Args:
        game_files: Paths, as ``AlfredTWEnv`` lists them.
        batch_size: Games at a time, B.
        limit: Steps an episode may take.
        expert: ``handcoded``, ``planner``, or ``""`` for no plans.
        env_kwargs: Constructor arguments of the environment.
    """

    def __init__(
        self, game_files: Sequence[str], batch_size: int, limit: int, expert: str, env_kwargs: Mapping[str, Any]
    ) -> None:
        self.gamefiles, self.batch_size, self._limit, self._expert = list(game_files), batch_size, limit, expert
        self._envs = [ALFWorldEnv(**env_kwargs) for _ in range(batch_size)]
        self._last: list[tuple[str, int, bool, dict[str, Any]]] = []
        self._steps = 0
        self.seed(1234)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Shuffle the games anew, with the legacy generator that the original uses."""
        generator = np.random.RandomState(seed)
        games = list(self.gamefiles)
        generator.shuffle(games)
        self._cycle = _shuffled_cycle(games, generator)
        return [seed]

    def skip(self, nb_games: int = 1) -> None:
        """Leave games out."""
        next(itertools.islice(self._cycle, nb_games, nb_games), None)

    def reset(self) -> tuple[tuple[str, ...], Infos]:
        """Start the next B games; returns their texts and infos."""
        self._steps, self._last = 0, []
        for env, path in zip(self._envs, self._cycle, strict=False):
            text, info = env.reset(options={"task_id": _task(path)})
            self._last.append((text, 0, False, self._info(env, info, path)))
        return tuple(last[0] for last in self._last), self._infos()

    def step(self, commands: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...], tuple[bool, ...], Infos]:
        """Send B commands; a game that is over repeats its last result."""
        if len(commands) != len(self._envs):
            raise ValueError(f"{len(commands)} commands for {len(self._envs)} games; expected one for each")
        self._steps += 1
        for index, (env, command) in enumerate(zip(self._envs, commands, strict=True)):
            if not self._last[index][2]:
                text, _, won, _, info = env.step(command)
                done = won or self._steps >= self._limit
                self._last[index] = (text, int(won), done, self._info(env, info))
        texts, scores, dones, _ = zip(*self._last, strict=True)
        return texts, scores, dones, self._infos()

    def close(self) -> None:
        """Release the games."""
        for env in self._envs:
            env.close()

    def _infos(self) -> Infos:
        return {key: [last[3][key] for last in self._last] for key in self._last[0][3]}

    def _info(self, env: ALFWorldEnv, info: dict[str, Any], path: str | None = None) -> dict[str, Any]:
        """What is asked for; as in the original, the path of the game is told at reset alone."""
        shown = {
            "won": info["success"],
            "admissible_commands": list(info["admissible_actions"]),
            "extra.gamefile": path,
        }
        if self._expert:
            shown["extra.expert_plan"] = ["look"] if path and self._expert == "handcoded" else self._plan(env, info)
        return shown

    def _plan(self, env: ALFWorldEnv, info: dict[str, Any]) -> list[str]:
        if info["success"]:
            return []
        return [env.rule_action()] if self._expert == "handcoded" else env.oracle_plan()


def _task(path: str) -> str:
    """The id of a game file."""
    return plain_id(os.path.normpath(path))


def _root(folder: str, paths: Sequence[str]) -> str | None:
    """The folder in which the games of a walk lie as ``NAME/TASK/TRIAL/game.tw-pddl``; None for no games.

    Raises:
        UnknownOption: When they lie in several, or a NAME means something else in ids.
    """
    roots = sorted({str(Path(path).absolute().parents[3]) for path in paths})
    if len(roots) > 1:
        raise UnknownOption(f"{folder} holds games below {roots[0]} and below {roots[1]}; name one of these")
    for name in sorted({Path(path).absolute().parents[2].name for path in paths}):
        if name in ORIGINAL_SPLITS or name.startswith("json_") or f"{name}/" in (*GENERATED_PREFIXES, HUMAN_PREFIX):
            raise UnknownOption(f"{folder}: a folder of games cannot be called {name!r}; rename it, such as to 'games'")
    return roots[0] if roots else None


def _shuffled_cycle(games: list[str], generator: np.random.RandomState) -> Iterator[str]:
    while True:
        yield from games
        generator.shuffle(games)
