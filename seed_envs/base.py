"""``SeedEnv``: the skeleton every environment of this package fills in.

It owns reset and step, the choice of a task, and the info dictionary, whose keys never vary; reset adds ``data``, the
run card of the task. It knows no rules, no prompt and no reward scaling: rules live in the environment folders, the
rest in ``seed_envs.wrappers``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import gymnasium as gym

from seed_envs.arguments import check_arguments
from seed_envs.data_card import GENERATED, DataSource
from seed_envs.errors import (
    BaselineUnavailable,
    EpisodeEnded,
    UnboundedSplit,
    UnknownOption,
    UnknownSplit,
    UnknownTask,
    close_matches,
)
from seed_envs.outcomes import Outcome, TaskStatus
from seed_envs.spaces import UnicodeText

Obs = TypeVar("Obs")

#: Longest action, in characters, that is looked at; anything longer is an invalid action.
MAX_ACTION_LENGTH = 10_000

#: The keys of every info dictionary, beside the environment's own name.
INFO_KEYS = (
    "task_id",
    "task_type",
    "goal",
    "admissible_actions",
    "format_valid",
    "action_valid",
    "invalid_reason",
    "success",
    "score",
    "stop_reason",
)


class SeedEnv(gym.Env[Obs, str], Generic[Obs]):
    """Base class of the environments: strings in, strings (and pictures) out.

    A subclass sets ``name``, ``splits`` and ``option_keys`` (and ``split_aliases``, where others call its splits
    otherwise), and implements :meth:`_begin`, :meth:`_act`,
    :meth:`_status`, :meth:`_extras`, :meth:`task_ids`, :meth:`oracle_action`, :meth:`get_state` and
    :meth:`set_state`.

    Args:
        split: The split that ``reset`` draws from unless its options name another one.
        render_mode: One of ``metadata["render_modes"]`` or None.

    Attributes:
        turn_limit: Steps an episode may take where the registration names no number: what the longest task needs.
        fixed_actions: Every action, where they are few and the same in all states; None elsewhere.
    """

    turn_limit: int | None = None
    fixed_actions: tuple[str, ...] | None = None
    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}
    name: ClassVar[str]
    splits: ClassVar[tuple[str, ...]]
    option_keys: ClassVar[frozenset[str]] = frozenset()
    split_aliases: ClassVar[Mapping[str, str]] = {}

    def __new__(cls, *args: Any, **kwargs: Any) -> SeedEnv[Obs]:
        """Checks names and types of the arguments, the same way for every environment and however it is made.

        Raises:
            UnknownOption: For an argument that the environment lacks, or a value of another type.
        """
        check_arguments(cls, kwargs)
        return super().__new__(cls)

    def __init__(self, *, split: str, render_mode: str | None = None) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise UnknownOption(f"render_mode={render_mode!r}; this environment has {self.metadata['render_modes']}")
        self.split = self.check_split(split)
        self.render_mode = render_mode
        self.action_space = UnicodeText(MAX_ACTION_LENGTH)
        self.observation_space = UnicodeText()  # type: ignore[assignment]  # vision environments set their own
        self.task_id = ""
        self._members: dict[str, Container[str]] = {}
        self._sizes: dict[str, int | None] = {}
        self._running = False
        self._format_valid = True
        self._action_valid = True
        self._invalid_reason = ""
        self._stop_reason = ""

    # -- what a subclass implements ------------------------------------------------------------------------------

    def task_ids(self, split: str) -> Sequence[str]:
        """The tasks of a finite split in listed order.

        Raises:
            UnknownSplit: For a split this environment does not have.
            UnboundedSplit: For a procedural split without a list.
        """
        raise NotImplementedError

    def plain_task_id(self, task_id: str) -> str:
        """The id of a task that the caller named in another way, such as by the path of its file."""
        return task_id

    def belongs(self, task_id: str, split: str) -> bool | None:
        """Whether a task is one of a split's; None where the split has no list to tell by."""
        members = self._members.get(split)
        if members is None:
            try:
                ids = self.task_ids(split)
            except UnboundedSplit:
                return None
            members = self._members[split] = frozenset(ids) if isinstance(ids, (list, tuple)) else ids
        return task_id in members

    def data_source(self, task_id: str) -> DataSource:
        """What a task is made of; the base class says: invented here."""
        return GENERATED

    def data_card(self, task_id: str, split: str) -> dict[str, Any]:
        """The run card of a task (see :class:`~seed_envs.data_card.DataSource`)."""
        if split not in self._sizes:
            try:
                self._sizes[split] = len(self.task_ids(split)) if split else None
            except UnboundedSplit:
                self._sizes[split] = None
        return self.data_source(task_id).card(split, self._sizes[split])

    def require_data(self, split: str) -> None:
        """Make sure, before a run, that every listed task of a split can be played.

        Nothing to do where :meth:`task_ids` reads the data anyway, or where tasks need none.

        Raises:
            DataMissing: When data is missing; the message holds the command that fetches it.
        """

    def check_services(self) -> None:
        """Make sure, before a run, that what the environment talks to answers; most talk to nothing.

        Raises:
            RetrievalError: When it does not.
        """

    def _begin(self, task_id: str, options: dict[str, Any]) -> Obs:
        """Load a task and return its first observation; raises UnknownTask for an unknown id."""
        raise NotImplementedError

    def _act(self, action: str) -> Outcome:
        """Apply one action of a running episode."""
        raise NotImplementedError

    def _status(self) -> TaskStatus:
        """Task type, goal, success and score of the current state."""
        raise NotImplementedError

    def _admissible(self) -> Sequence[str] | None:
        """The admissible actions (possibly a :class:`LazyActions`), or None where there is no such list."""
        return None

    def _extras(self) -> dict[str, Any]:
        """What goes under ``info[name]``; the same keys after reset and step."""
        return {}

    def oracle_action(self) -> str:
        """The next action of a policy that knows everything.

        Raises:
            OracleUnavailable: When no action leads to success any more.
        """
        raise NotImplementedError

    def _require_task(self) -> None:
        """Raise :class:`EpisodeEnded` when there is no task yet to choose an action for."""
        if not self.task_id:
            raise EpisodeEnded("no task is loaded; call reset() first")

    def rule_action(self) -> str:
        """The next action of a simple hand-written player that knows only what an agent is shown.

        The floor that a trained policy has to beat; an environment overrides it.

        Raises:
            BaselineUnavailable: When the environment has no such player.
        """
        raise BaselineUnavailable(f"{self.name} has no rule-based player; use the oracle or the random player")

    def random_action(self) -> str:
        """A random action, drawn with ``np_random``: uniform over the admissible ones.

        Raises:
            BaselineUnavailable: When the environment lists no actions and does not override this.
            EpisodeEnded: Before the first reset (the other two players as well).
        """
        self._require_task()
        actions = self._admissible()
        if not actions:
            raise BaselineUnavailable(f"{self.name} lists no admissible actions to draw from")
        return str(actions[int(self.np_random.integers(len(actions)))])

    def get_state(self) -> Any:
        """A snapshot of the episode; valid for any environment with the same arguments."""
        raise NotImplementedError

    def set_state(self, state: Any) -> None:
        """Continue from a snapshot of :meth:`get_state`."""
        raise NotImplementedError

    # -- the Gymnasium interface -----------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Seeds ``np_random``, from which the task is drawn.
            options: ``task_id`` plays exactly this task; ``split`` draws from another split; the environment may
                accept further keys (``option_keys``).

        Raises:
            UnknownOption: For a key nobody reads, options that are no dictionary, or a task that is not of the split.
            UnknownTask: For an id no manifest or generator knows, or one that is no string.
            UnknownSplit: For a split that does not exist.
        """
        super().reset(seed=seed)
        if options is not None and not isinstance(options, Mapping):
            raise UnknownOption(f'reset options are a dict such as {{"task_id": ...}}; got {options!r}')
        chosen = {} if options is None else {key: value for key, value in options.items() if value is not None}
        for key in chosen:
            if key not in _COMMON_OPTIONS and key not in self.option_keys:
                known = sorted(_COMMON_OPTIONS | self.option_keys)
                raise UnknownOption(f"reset option {key!r} is unknown; accepted: {known}.{close_matches(key, known)}")
        if "split" in chosen:
            chosen["split"] = self.check_split(chosen["split"])
        explicit = "task_id" in chosen
        task_id = chosen["task_id"] if explicit else self._choose_task(chosen)
        if not isinstance(task_id, str):
            raise UnknownTask(f"a task id is a str; got {type(task_id).__name__}: {task_id!r}")
        task_id = self.plain_task_id(task_id)
        split = chosen.get("split", self.split)
        named = explicit or not self.option_keys.isdisjoint(chosen)  # an environment's own option may name a task too
        self._running = False  # a task that cannot start leaves nothing to step
        observation = self._begin(task_id, chosen)
        member = self.belongs(task_id, split) if named else True
        if explicit and "split" in chosen and member is False:
            raise UnknownOption(f"task_id {task_id!r} is no task of split {split!r}; leave 'split' out to play it")
        self.task_id = task_id
        self._running = True
        self._format_valid = self._action_valid = True
        self._invalid_reason, self._stop_reason = "", ""
        info = self._info()
        info["data"] = self.data_card(task_id, split if member else "")
        return observation, info

    def step(self, action: str) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Send one action.

        Raises:
            gymnasium.error.InvalidAction: When the action is not a string (a bug of the caller, not of the agent).
            EpisodeEnded: After the environment ended the episode, or before the first reset.
        """
        if not isinstance(action, str):
            raise gym.error.InvalidAction(f"an action is a str; got {type(action).__name__}: {action!r}")
        if not self._running:
            raise EpisodeEnded("this episode is over (or none was started); call reset() first")
        observation, reward, terminated, valid, reason, truncated, stop_reason, readable = self._act(action)
        self._format_valid, self._action_valid, self._invalid_reason = readable, valid, reason
        self._stop_reason = ""  # a state from before the end may have been restored
        if terminated or truncated:
            self._running = False
            self._stop_reason = stop_reason or ("success" if self._status().success else "failure")
        return observation, reward, terminated, truncated, self._info()

    def _choose_task(self, options: dict[str, Any]) -> str:
        ids = self.task_ids(options.get("split", self.split))
        return ids[int(self.np_random.integers(len(ids)))]

    def check_split(self, split: object) -> str:
        """Return the name of a split as this environment lists it.

        Raises:
            UnknownSplit: When it has no split of that name and none known by it (``split_aliases``).
        """
        if isinstance(split, str):
            split = self.split_aliases.get(split, split)
        if split not in self.splits:
            raise UnknownSplit(
                f"split {split!r} is unknown; this environment has {list(self.splits)}."
                f"{close_matches(split, self.splits)}"
            )
        return str(split)

    def _info(self) -> dict[str, Any]:
        status = self._status()
        return {
            "task_id": self.task_id,
            "task_type": status.task_type,
            "goal": status.goal,
            "admissible_actions": self._admissible(),
            "format_valid": self._format_valid,
            "action_valid": self._action_valid,
            "invalid_reason": self._invalid_reason,
            "success": status.success,
            "score": status.score,
            "stop_reason": self._stop_reason,
            self.name: self._extras(),
        }


_COMMON_OPTIONS = frozenset({"task_id", "split"})
