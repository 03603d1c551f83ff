"""``seed/Sokoban-v0``: the Gymnasium environment. It joins rules, levels, text and pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from seed_envs.arguments import check_choice, refuse_ignored, whole_number
from seed_envs.base import SeedEnv
from seed_envs.data_card import DataSource
from seed_envs.errors import InvalidState, OracleUnavailable, UnknownOption
from seed_envs.outcomes import Outcome, TaskStatus
from seed_envs.spaces import UnicodeText, picture_space
from seed_envs.vision.sokoban.actions import ReadAction, read_classic, read_strict
from seed_envs.vision.sokoban.baseline import greedy_direction
from seed_envs.vision.sokoban.generator import Difficulty
from seed_envs.vision.sokoban.levels import level_hash
from seed_envs.vision.sokoban.oracle import Oracle
from seed_envs.vision.sokoban.render import TILE_SIZES, Canvas, frame
from seed_envs.vision.sokoban.rules import ACTION_SETS, RULES, Game, State
from seed_envs.vision.sokoban.sources import SPLITS
from seed_envs.vision.sokoban.tasks import LEVEL_SOURCES, make_source
from seed_envs.vision.sokoban.text import TEXT_FORMATS, plain_grid, visible_cells
from seed_envs.vision.sokoban.xsb import parse_levels

OWN_LEVEL = "custom"
_GIVEN = DataSource("own")
"""Task id of a map that was given as a reset option."""
GOAL = "Push every box onto a target."
OBS_MODES = ("both", "image", "text")
PARSINGS = ("exact", "substring")
FEEDBACKS = ("verbose", "plain")
MAX_ACTIONS_PER_TURN = 16

_BEFORE_RESET = "#####\n#@$.#\n#####"

Observation = str | dict[str, Any]


class SokobanState(NamedTuple):
    """Snapshot of an episode."""

    task_id: str
    oracle: Oracle
    game: State
    running: bool


class SokobanEnv(SeedEnv[Observation]):
    """Sokoban for language and vision-language agents.

    ## Description
    A warehouse seen from above. The player walks one cell at a time and pushes single boxes, never pulls. The level is
    solved when every box stands on a target. One wrong push can make a level unsolvable.

    ## Task and data
    A task is a level. ``levels`` chooses where levels come from:

    * ``"retrograde"`` (default): random rooms searched backwards from the solution, so every level is solvable and its
      optimal length lies between ``min_steps`` and ``max_steps``.
    * ``"classic"``: the generator of RAGEN, VAGEN and verl-agent, level for level by seed, for published numbers.
    * ``"boxoban"``: DeepMind's 10x10 levels with four boxes, from ``$SEED_BOXOBAN_DIR``.
    * ``"pack-6x6-b1"``, ``"pack-6x6-b2"``, ``"pack-8x8-b2"``: packs of 1,000 solved levels shipped with the package.
    * a path: an ``.xsb`` or Boxoban text file, a ``.pool`` file, or a Boxoban folder.

    Splits are ``train``, ``validation`` and ``test``; files also have ``all``. For generated levels and single files a
    room (walls and targets, up to the eight rotations and reflections) belongs to exactly one split. The classic
    generator splits by seed, as the frameworks do, and repeats levels within and across splits. Validation and test of
    generated levels are fixed panels of 256. In retrograde panels no two levels are equal up to rotation and reflection
    (settings that allow too few such levels have smaller panels); classic panels keep their published form, the 256
    smallest seeds with whatever levels repeat. ``options={"level": "<xsb map>"}`` plays a map of your own.

    ## Action space
    Text, up to 10,000 characters. ``action_set="4"``: ``up``, ``down``, ``left``, ``right`` (pushing when a box is in
    the way); ``"5"`` adds ``still``; ``"9"`` has the actions of gym-sokoban: ``no operation``, ``push up`` ... and
    ``move up`` ... With ``max_actions`` above 1 a turn may hold several, separated by commas.
    ``parsing="substring"`` reads as verl-agent does: the first of up, down, left, right, still contained in the text.

    ## Observation space
    ``obs_mode="both"`` and ``"image"``: a dict with ``text`` and ``image`` (uint8, ``height * tile`` x
    ``width * tile`` x 3). ``"text"``: a string. The text is the room in ``text_format``: ``"plain"`` and ``"tab"`` use
    ``#`` wall, ``_`` floor, ``O`` target, ``X`` box, ``√`` box on target, ``P`` player, ``S`` player on target;
    ``"xsb"`` uses ``# . $ * @ +`` and blanks; ``"coordinates"`` and ``"caption"`` are words. In mode ``"image"`` the
    text is empty unless the last action was refused.

    | picture | meaning |
    |---|---|
    | brick | wall |
    | plain sand-coloured cell | floor |
    | red ring | target |
    | brown crate with a cross | box |
    | green crate with a cross | box on a target |
    | blue figure | the player (on a target a red ring shows behind it) |

    ## Reward
    Every step -0.1; +1 if more boxes stand on targets than after the step before, -1 if fewer; +10 when all do. The
    last push of a one-box level pays 10.9. ``shaping`` adds the decrease of the exact distance to the goal times that
    factor (potential-based, so optimal policies stay the same).

    ## Termination and truncation
    Terminated when solved. Truncated by a limit that every level of the source can be solved in: a third more turns
    than the longest of the shortest solutions (20 for the default levels; 20, 36 and 58 for the packs), 15 for the
    classic levels of 6x6 with one box as in the papers, 100 for other classic ones, 400 for level files.
    ``max_episode_steps`` sets another; the ``paper`` profiles set 15.

    ## Info
    Beside the common keys, ``info["sokoban"]`` holds ``steps``, ``pushes``, ``boxes_on_target``, ``boxes``,
    ``moved_player``, ``moved_box``, ``level_hash``, and ``oracle``: privileged knowledge that never enters an
    observation, namely ``solver`` ("table" or "astar"), ``optimal_steps``, ``distance``, ``deadlock`` and
    ``best_actions``. Rooms too large for a table have None for what is not known.

    ## Oracle
    Small rooms: an optimal action from the table of all positions. Larger rooms: push-optimal A* with a budget.

    ## Arguments
    All have defaults; wrong names and values are refused with close matches.

    ## Registered versions
    ``seed/Sokoban-v0``: 6x6, one box, 15 turns.

    ## Differences from the original
    gym-sokoban 0.0.6 ignores seeds and cannot be imported with current packages; here seeds work, and the limit
    truncates instead of ending the episode as if it were done. ``rules="classic"`` keeps the framework layer: an
    unreadable action and ``still`` cost -0.1 and do not count in ``steps``; the turn limit counts every turn, as the
    frameworks' rollout loops do. A level that begins with a box on a target pays +1 on the first step under
    ``classic`` and not under ``strict``. The art and the prompts are this package's own. The ``paper`` profiles read
    replies to the letter as verl-agent does, penalise the format alone (a push against a wall costs no more than any
    step) and say nothing about unreadable replies (``feedback="plain"``). Pictures have 28 pixels a cell; the
    original's 16 (``tile=16``). The history of ``paper-text`` shows an action as the reply has it (``go up``), where
    verl-agent's shows the direction it read (``Up``). ``python -m benchmarks.parity sokoban`` compares.

    ## References and asset credits
    Rules: mpSchrader/gym-sokoban (MIT). Framework layer: RAGEN, VAGEN, verl-agent. Boxoban levels: Guez et al., "An
    investigation of Model-free planning: boxoban levels" (2018), Apache-2.0, not shipped. All pictures are drawn by
    code in this package.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}
    name: ClassVar[str] = "sokoban"
    splits = SPLITS
    option_keys: ClassVar[frozenset[str]] = frozenset({"level"})

    def __init__(
        self,
        rules: Literal["classic", "strict"] = "classic",
        levels: str | Path = "retrograde",
        size: int | tuple[int, int] = 6,
        boxes: int = 1,
        min_steps: int = 4,
        max_steps: int = 15,
        obs_mode: Literal["both", "image", "text"] = "both",
        text_format: str = "plain",
        tile: int = 28,
        action_set: Literal["4", "5", "9"] = "4",
        max_actions: int = 1,
        parsing: Literal["exact", "substring"] = "exact",
        feedback: Literal["verbose", "plain"] = "verbose",
        shaping: float = 0.0,
        split: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Makes the environment.

        Args:
            rules: ``"classic"`` (the paper's setting) or ``"strict"`` (its faults repaired).
            levels: Where levels come from, see the class.
            size: Side, or (rows, columns), of generated rooms, the border included.
            boxes: Boxes of generated levels.
            min_steps: Smallest optimal length of retrograde levels.
            max_steps: Greatest optimal length of retrograde levels (not the turn limit).
            obs_mode: What is observed.
            text_format: How the room is written.
            tile: Side of a tile in pixels: 16, 28 (one token of Qwen2.5-VL), 32 or 64.
            action_set: Which actions there are.
            max_actions: Greatest number of actions in one turn.
            parsing: How action text is read.
            feedback: ``"verbose"`` says in the observation why an action was refused; ``"plain"`` shows the room alone.
            shaping: Factor of potential-based shaping; 0 for none.
            split: Split that ``reset`` draws from; None means ``train``, or ``all`` for a file of your own.
            render_mode: None, ``"ansi"`` or ``"rgb_array"``.

        Raises:
            UnknownOption: For a value that does not exist.
            ValueError: For a size, number of boxes or length that generated levels cannot have.
            DataMissing, DataInvalid: If a level file is missing or faulty.
        """
        for label, value, known in (
            ("rules", rules, RULES), ("obs_mode", obs_mode, OBS_MODES), ("text_format", text_format, TEXT_FORMATS),
            ("action_set", action_set, ACTION_SETS), ("parsing", parsing, PARSINGS), ("feedback", feedback, FEEDBACKS),
            ("tile", tile, TILE_SIZES),
        ):  # fmt: skip
            check_choice(label, value, known)
        if type(max_actions) is not int or not 1 <= max_actions <= MAX_ACTIONS_PER_TURN:
            raise UnknownOption(
                f"max_actions={max_actions!r}; expected a whole number from 1 to {MAX_ACTIONS_PER_TURN}"
            )
        if not math.isfinite(shaping):
            raise UnknownOption(f"shaping={shaping!r}; expected a finite number, 0 for no shaping")
        if levels not in LEVEL_SOURCES[:1]:
            lengths = {"min_steps": (min_steps, 4), "max_steps": (max_steps, 15)}
            shape = {} if levels in LEVEL_SOURCES[:2] else {"size": (size, 6), "boxes": (boxes, 1)}
            refuse_ignored(f"levels={str(levels)!r}", **lengths, **shape)
        if parsing == "substring":
            refuse_ignored("parsing='substring'", max_actions=(max_actions, 1))
        if obs_mode == "text" and render_mode != "rgb_array":
            refuse_ignored("obs_mode='text'", tile=(tile, 28))
        sides = size if isinstance(size, (tuple, list)) else (size, size)
        if len(sides) != 2:
            raise UnknownOption(f"size={size!r}; expected one side, or rows and columns")
        named = {"boxes": boxes, "min_steps": min_steps, "max_steps": max_steps}
        numbers = [whole_number(name, value) for name, value in named.items()]
        self.source = make_source(levels, Difficulty(*sides, *numbers))
        self.splits = self.source.splits  # type: ignore[misc]
        super().__init__(split=split or self.source.default_split, render_mode=render_mode)
        self._rules, self._tile, self._max_actions, self._shaping = rules, tile, max_actions, shaping
        self._substring, self._explains = parsing == "substring", feedback == "verbose"
        self._words = ACTION_SETS[action_set]
        self._codes = {code: word for word, code in self._words.items()}
        self.fixed_actions = tuple(self._words)
        self._text_mode, self._shows_text = obs_mode == "text", obs_mode != "image"
        self._write = TEXT_FORMATS[text_format]
        if not self._text_mode:
            picture = picture_space(self.source.height * tile, self.source.width * tile)
            self.observation_space = spaces.Dict({"text": UnicodeText(), "image": picture})
        self._start(Oracle.of(parse_levels(_BEFORE_RESET, "built-in level")[0]))

    @property
    def turn_limit(self) -> int:  # type: ignore[override]  # a constant of the environments that have one
        """Turns that every level of the source can be solved in."""
        return self.source.turn_limit

    def task_ids(self, split: str) -> Sequence[str]:
        """The tasks of a finite split in listed order."""
        return self.source.task_ids(split)

    def belongs(self, task_id: str, split: str) -> bool:
        """See ``SeedEnv.belongs``."""
        return self.source.belongs(task_id, split)

    def data_source(self, task_id: str) -> DataSource:
        """See ``SeedEnv.data_source``."""
        return _GIVEN if task_id == OWN_LEVEL else self.source.data

    def _choose_task(self, options: dict[str, Any]) -> str:
        if "level" in options:
            return OWN_LEVEL
        return self.source.choose(self.np_random, options.get("split", self.split))

    def _begin(self, task_id: str, options: dict[str, Any]) -> Observation:
        if "level" in options and task_id != OWN_LEVEL:
            raise UnknownOption(f"reset options 'level' and 'task_id' ({task_id!r}) exclude each other; pass one")
        if "level" in options and "split" in options:
            raise UnknownOption(
                f"reset options 'level' and 'split' ({options['split']!r}) exclude each other; pass one"
            )
        self._start(self._own_level(options["level"]) if "level" in options else self.source.load(task_id))
        return self._observe("")

    def _own_level(self, text: Any) -> Oracle:
        """The map given as a reset option, padded to the observation's size."""
        from seed_envs.vision.sokoban.files import pad

        if not isinstance(text, str) or len(text) > 10_000:
            raise UnknownOption("reset option 'level' is an XSB map: a string of at most 10,000 characters")
        level, *more = parse_levels(text, "option 'level'")
        if more:
            raise UnknownOption(f"reset option 'level' holds {len(more) + 1} maps; expected one")
        if level.height > self.source.height or level.width > self.source.width:
            raise UnknownOption(
                f"reset option 'level' is {level.height}x{level.width}; this environment shows at most "
                f"{self.source.height}x{self.source.width} (argument size)"
            )
        return Oracle.of(pad(level, self.source.height, self.source.width))

    def _start(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._game = Game(oracle.level, self._rules)
        self._canvas = None if self._text_mode else Canvas(self._game, self._tile)
        self._level_hash = level_hash(oracle.level)
        self._boxes = len(oracle.level.boxes)
        self._task_type = f"{self._boxes}-box"
        if self._shaping and oracle.table is None:
            raise OracleUnavailable(
                "shaping needs exact distances, which rooms of this size do not have; set shaping=0"
            )

    def _read(self, action: str) -> ReadAction:
        return read_classic(action) if self._substring else read_strict(action, self._words, self._max_actions)

    def _act(self, action: str) -> Outcome:
        code = self._words.get(action)
        codes, reason = ((code,), "") if code is not None else self._read(action)
        game, canvas = self._game, self._canvas
        potential = self._potential() if self._shaping else 0.0
        reward = 0.0
        for code in codes or (0,):
            before = game.player
            reward += game.step(code)
            if canvas is not None:
                canvas.update(before)
            if game.solved:
                break
        if self._shaping:
            reward += self._shaping * (self._potential() - potential)
        return Outcome(self._observe(reason), reward, game.solved, not reason, reason, format_valid=not reason)

    def _potential(self) -> float:
        """Minus the distance to the goal; a deadlock is one step farther than any solvable position."""
        table = self._oracle.table
        assert table is not None  # checked when the level was loaded
        return -float(table.distance_of.get((self._game.player, self._game.boxes), len(table.layers)))

    def _observe(self, reason: str) -> Observation:
        text = self._write(self._game) if self._shows_text else ""
        if reason and self._explains:
            text = f"Action refused: {reason}\n{text}" if text else f"Action refused: {reason}"
        if self._canvas is None:
            return text
        return {"text": text, "image": self._canvas.pixels.copy()}

    def _status(self) -> TaskStatus:
        game, boxes = self._game, self._boxes
        return TaskStatus(self._task_type, GOAL, game.on_target == boxes, game.on_target / boxes)

    def _admissible(self) -> Sequence[str] | None:
        return self.fixed_actions

    def _extras(self) -> dict[str, Any]:
        game = self._game
        return {
            "steps": game.steps,
            "pushes": game.pushes,
            "boxes_on_target": game.on_target,
            "boxes": self._boxes,
            "moved_player": game.moved_player,
            "moved_box": game.moved_box >= 0,
            "level_hash": self._level_hash,
            "oracle": self._oracle.privileged(game),
        }

    def oracle_action(self) -> str:
        """An action that leads to the solution by the shortest known way.

        Raises:
            OracleUnavailable: In a deadlock, when solved, or when the search ran out of its budget.
            EpisodeEnded: Before the first reset.
        """
        self._require_task()
        word = self._oracle.action(self._game)
        return word if word in self._words else f"push {word}"

    def rule_action(self) -> str:
        """The next action of a greedy player that pushes whatever box it can closer to a target."""
        self._require_task()
        word = greedy_direction(self._game)
        return word if word in self._words else f"push {word}"

    def get_state(self) -> SokobanState:
        """A snapshot of the episode."""
        return SokobanState(self.task_id, self._oracle, self._game.get_state(), self._running)

    def set_state(self, state: Any) -> None:
        """Continues from a snapshot.

        Raises:
            InvalidState: If it is not a snapshot of this environment.
        """
        if not isinstance(state, SokobanState):
            raise InvalidState(f"expected a SokobanState from get_state(), got {type(state).__name__}")
        level, shown = state.oracle.level, (self.source.height, self.source.width)
        if (level.height, level.width) != shown:
            raise InvalidState(
                f"the state's room is {level.height}x{level.width}; this environment shows {shown[0]}x{shown[1]}"
            )
        self.task_id, self._running = state.task_id, state.running
        self._action_valid, self._invalid_reason, self._stop_reason = True, "", ""
        self._start(state.oracle)
        self._game.set_state(state.game)
        if self._canvas is not None:
            self._canvas = Canvas(self._game, self._tile)

    def render(self) -> Any:
        """The position as text (``"ansi"``) or as an RGB array (``"rgb_array"``); changes nothing.

        Raises:
            EpisodeEnded: Before the first reset.
        """
        self._require_task()
        if self.render_mode == "ansi":
            return plain_grid(self._game)
        if self.render_mode == "rgb_array":
            return self._frame()
        return None

    def _frame(self) -> NDArray[np.uint8]:
        level = self._oracle.level
        return frame(visible_cells(self._game), level.height, level.width, self._tile)
