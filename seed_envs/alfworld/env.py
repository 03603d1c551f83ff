"""``seed/ALFWorld-v0``: the household text game as a Gymnasium environment.

Joins task choice and play.  A game being played is an ``episode``, the rules
live in ``engine``, texts in ``texts``, games in ``tasks``; step limits,
prompts and paper rewards are wrappers.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from seed_envs.alfworld import arguments, rendering, texts
from seed_envs.alfworld.actions import Rules, Wording, admissible
from seed_envs.alfworld.choosing import TaskChooser
from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.episode import Episode, Snapshot
from seed_envs.alfworld.game import Game
from seed_envs.alfworld.generator import rooms
from seed_envs.alfworld.quirks import Quirks, QuirkSpec
from seed_envs.alfworld.sources import TaskSource
from seed_envs.alfworld.tasks import (
    GENERATED_SPLITS,
    ORIGINAL_SPLITS,
    PROCEDURAL_SPLITS,
    SPLITS,
    belongs,
    plain_id,
)
from seed_envs.arguments import refuse_ignored
from seed_envs.base import SeedEnv
from seed_envs.data_card import DataSource
from seed_envs.errors import InvalidState
from seed_envs.outcomes import LazyActions, Outcome, TaskStatus
from seed_envs.spaces import UnicodeText

if TYPE_CHECKING:
    from seed_envs.alfworld.textworld_engine import TextWorldProcess


class ALFWorldEnv(SeedEnv[str]):
    """A household played as text: find things, treat them, and put them where the task says.

    ## Description

    The agent stands in one room and sends short commands: it goes to receptacles, opens them, takes an object, cleans,
    heats or cools it at the right station, and puts it down; or it looks at an object under a lamp. It sees only what
    is where it stands, so most of the work is searching. The engine is this project's own and answers word for word
    like the original ALFWorld text game (alfworld 0.4 on TextWorld 1.7), several thousand times faster.

    ## Task and data

    Six families, named as in the official paths:

    | task type | the task says, for example | won when |
    |---|---|---|
    | `pick_and_place_simple` | put a mug in shelf / put some mug on shelf | a mug lies in a shelf |
    | `look_at_obj_in_light` | look at book under the desklamp / examine the book with the desklamp | a book is held where a lamp that was switched on stands |
    | `pick_clean_then_place_in_recep` | put a clean mug in shelf / clean some mug and put it in shelf | a clean mug lies in a shelf |
    | `pick_heat_then_place_in_recep` | put a hot mug in shelf / heat some mug and put it in shelf | a hot mug lies in a shelf |
    | `pick_cool_then_place_in_recep` | put a cool mug in shelf / cool some mug and put it in shelf | a cool mug lies in a shelf |
    | `pick_two_obj_and_place` | put two mug in shelf / find two mug and put them in shelf | two mugs lie in one shelf |

    | split | tasks | what |
    |---|---|---|
    | `mini_train`, `mini_valid_seen`, `mini_valid_unseen` | 60, 30, 30 | generated, listed, nothing to download; the default |
    | `procedural_train`, `procedural_valid_seen`, `procedural_valid_unseen` | unlimited | generated in 96 official rooms, `valid_unseen` in 12 other rooms |
    | `compact_train`, `compact_validation`, `compact_test` | 600, 192, 240 | one small room of 12 places, for very small models; goal combinations differ between the splits |
    | `train`, `valid_seen`, `valid_unseen` | 3,553, 140, 134 | the official games, listed in sorted order; the lists ship with the package, the games do not |
    | `unlikely_places`, `crowded`, `new_layouts`, `two_goals`, `own_words` | 120 each | generated panels that are hard in one way, in rooms that no training split uses (see below) |
    | `human_valid_seen`, `human_valid_unseen` | 420, 402 | the official games with people's own sentences: the first three of ALFRED's annotations of each |
    | `custom` | what is there | games of your own in `data_dir` |

    `task_ids(split)` lists the ids of a split in listed order, each once. Ids: `train/<task>/<trial>`, `procedural/train/17;scene=301`, `compact/test/5`, `human/valid_seen/<task>/<trial>/2`. An id is one game on every
    machine. Official games: `python -m seed_envs.alfworld download`, or point `data_dir` (or `$ALFWORLD_DATA`, or
    `$SEED_DATA_DIR/alfworld`; else `~/.cache/alfworld`, where alfworld's own download writes, is read) at trees of
    `game.tw-pddl` files, packs, or both. `python -m seed_envs.alfworld import PATH` compiles them once, so that all open
    within a second afterwards, and says what it found, left out and misses: as in the original, games with a movable
    receptacle or a sliced object and those not marked `solvable` are never played. A game may also be named by the path
    of its file (`infos["extra.gamefile"]`), by `task/trial`, or with the original's split names
    (`eval_in_distribution`, `eval_out_of_distribution`).

    ### Panels that are not solved by looking around

    The explorer, a rule without privileges, wins all official validation games within 30 steps, so that those measure
    format and patience more than understanding. Each of these panels (suites of `seed-bench` of the same name) takes
    one thing away from it, on the same engine and rules. All 120 tasks are in its twelve rooms of `valid_unseen`, 20 of
    each family; nothing is tuned to the player, and the oracle wins every task within the limits.

    | panel | what it measures | limits | oracle | explorer | random |
    |---|---|---|---|---|---|
    | `unlikely_places` | systematic search without a prior: two rooms joined, one thing of each kind, lying where such things rarely lie | 3 x shortest plan, at most 30 | 100 % [97.0, 100.0] | 42.5 % [33.5, 51.9] | 0.0 % [0.0, 3.0] |
    | `crowded` | picking the one wanted thing out of long lists: four rooms joined, forty kinds that do not belong there | 2 x, at most 30 | 100 % [97.0, 100.0] | 51.7 % [42.4, 60.9] | 0.0 % [0.0, 3.0] |
    | `new_layouts` | knowing where to look first in a home never seen: four rooms joined, one thing of each kind | 1.5 x, at most 30 | 100 % [97.0, 100.0] | 41.7 % [32.7, 51.0] | 0.0 % [0.0, 3.0] |
    | `two_goals` | planning and memory: two goals about different things that have to be met at the same time | 1.5 x, at most 30 | 100 % [97.0, 100.0] | 35.0 % [26.5, 44.2] | 0.0 % [0.0, 3.0] |
    | `own_words` | language: things and places described, not named ("make what a hen lays steam") | 30 | 100 % [97.0, 100.0] | 7.5 % [3.5, 13.8] | 0.8 % [0.2, 4.0] |
    | `human_valid_seen` | language as people use it: vague, varied, now and then wrong | 30 | 100 % [99.1, 100.0] | 54.3 % [49.4, 59.1] | 0.1 % [0.0, 1.0] |

    With a limit in terms of the shortest plan no player that cannot see through doors wins everything; the numbers
    compare players, 100 % is not the aim. The explorer reads other people's sentences by keywords and common names.
    Two goals are one conjunction in the game file; TextWorld declares them won at the same command. People's sentences
    need the official games and their annotations: `alfred_annotations.jsonl.xz` beside a pack, or the
    `traj_data.json` that comes beside each game file. What counts as won is the game's goal, also where a person
    described it wrongly. `python -m benchmarks.baselines alfworld/two_goals` plays one panel's baselines.

    ## Action space

    A string. Commands, where R is a receptacle and O an object, both with their number ("drawer 2"):
    `go to R`, `open R`, `close R`, `examine R`, `examine O`, `take O from R`, `move O to R`, `use O`, `clean O with R`,
    `heat O with R`, `cool O with R`, `slice O with O`, `look`, `inventory`, `help`. A command counts exactly when it is
    in `info["admissible_actions"]`; anything else answers "Nothing happens.", changes nothing and uses up a step.

    ## Observation space

    A string: the game's answer. After reset: banner, the receptacles of the room, the task (`opening` shortens it).

    ## Reward

    1 for the command that wins, else 0.

    ## Termination and truncation

    Terminated when won. Truncated by the step limit of the registration (50 commands; invalid ones count too).

    ## Info

    The common keys, and under `info["alfworld"]`:

    | key | content |
    |---|---|
    | `goal_condition_rate` | share of the goal's conditions that are met, 0..1, counted as ALFRED does; not part of the reward |
    | `subgoals` | the conditions by name: `placed`; for two objects `first_placed`, `second_placed`; under a lamp `held`, `lamp_on_here`; of a second goal `also_…`; after a treatment `placed`, `treated`, `treated_placed` (the same object) |
    | `inventory` | the held object or "" |
    | `command` | the command as it was executed (the normalised one with `parser="tolerant"`) |
    | `budget` | with the argument of that name the number of commands that the episode may take, else None |
    | `privileged` | None, or with `privileged=True`: `plan` (a shortest one, None when lost), `contents` of all receptacles, `dead_end` (hands full for ever) |

    `admissible_actions` is built on first reading. `invalid_reason` says why a command was refused.

    ## Oracle

    `oracle_action()`: first command of a shortest plan with knowledge of everything; wins every game that can be won.
    For two goals it is the shortest plan that meets one after the other.
    `rule_action()`: the explorer, which knows only what an agent is shown and where things usually lie.

    ## Arguments

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"mini_train"` | split that `reset` draws from; `"train"` where `data_dir` is given |
    | `task_types` | all | families to draw from |
    | `scenes` | all | room numbers to draw from; compact games have none |
    | `generator` | {} | knobs of procedural games: `task_type`, `scene`, `kinds`, `copies`, `receptacles` (limits of the draw); `rooms` (1-4 joined into one), `goals` (1-2), `unlikely` (1: things lie where they rarely do), `crowd` (number of foreign kinds), `words` (1: the task in other words) |
    | `data_dir` | None | folder with official or own games |
    | `engine` | `"native"` | or `"textworld"`: the original, in a child process (extra `alfworld`); it runs Python found in game files, so trusted files only |
    | `wording` | `"move"` | or `"put"`: the older texts (`put O in/on R`, "You arrive at loc 3.", no `help`) |
    | `quirks` | `"faithful"` | or `"fixed"`, or a mapping from switch to bool |
    | `feedback` | `"plain"` | or `"verbose"`: refused commands are explained |
    | `parser` | `"strict"` | or `"tolerant"`: letter case, articles, missing numbers, `put O in / on R`, `pick up O`, `Action: …`, `**…**` … |
    | `opening` | `"full"` | or `"room"`, `"start"`: parts of the opening text |
    | `budget` | 0 | commands an episode may take, as a multiple (1-20) of the shortest plan's length at its start; 0 leaves it to the step limit |
    | `privileged` | False | fill `info["alfworld"]["privileged"]` |
    | `render_mode` | None | `"ansi"` (transcript) or `"html"` (map of the room, one self-contained page) |

    Reset options: `task_id` plays exactly this task; without it `split`, `task_type` and `scene` say what to draw from,
    in place of the constructor's. A `task_id` that does not fit the other three is refused.

    `get_state()` and `set_state()` save and restore an episode in microseconds, also in another copy of the environment;
    `copy.deepcopy` branches it. The count of a step limit belongs to its wrapper and is not part of a state.

    | quirk (a switch of `quirks`) | True: as in the original | False: repaired |
    |---|---|---|
    | `silent_middle` | `look` in the middle of the room lists nothing | lists the receptacles |
    | `no_goto_here` | `go to R` fails when R shares the current place | describes R |
    | `examine_held_only` | only the held object can be examined | visible ones too |
    | `use_only_on` | a lamp never goes off | `use` toggles |
    | `frozen_vessels` | bowls, cups, pans … never show hot, clean, cool; their contents never change | told; contents follow |
    | `closed_stations` | heating and cooling work behind a closed door | the door must be open |
    | `floor_echo` | "Next to it" names objects moved between receptacles of one place | nothing |
    | `slice_unseen` | slicing ignores doors | the object must be visible |
    | `ghosts` | an object recorded in two receptacles stays in the other when taken, and counts there | leaves both |
    | `dead_ends` | objects that fit nowhere can be taken, hands are full for ever | cannot be taken |

    ## Registered versions

    `seed/ALFWorld-v0`: 50 steps.

    ## Differences from the original

    * Success is `terminated`, the step limit is `truncated`; the original's `done` mixes them.
    * Games are chosen by id or seed from sorted lists; the original shuffles in directory order.
    * Nothing in a game file is executed. The original evaluates Python found in its grammars; the native engine reads
      facts, goal and goal sentence only.
    * The goal sentence is part of the game; nothing is drawn from a global random generator.
    * The explorer's record of its inventory follows `move`; the original's hand-coded expert looks for `put`.
    * Generated games put every object in one receptacle at the start, and nothing starts cool; official games do both.
    * A game whose goal nothing in it can meet is refused with a reason; the original fails while loading it.
      `python -m benchmarks.parity alfworld` plays other games side by side.
    * The vision variant (THOR) is not included.
    * Profile `paper`: replies are read to the letter as verl-agent reads them (`python -m benchmarks.parity projections`)
      and only the format counts as invalid there. The prompts say the same in this package's own words, chat-template
      markers inside game text are broken, and replies of more than a million characters are not read. Profile
      `tolerant`, the default of `seed-bench`, differs in reading alone: tags in lower case, thinking closed after it
      was opened, the first complete block, a trimmed tail.

    ## References and asset credits

    Shridhar et al., "ALFWorld: Aligning Text and Embodied Environments for Interactive Learning", ICLR 2021 (MIT);
    Shridhar et al., "ALFRED", CVPR 2020 (MIT); Cote et al., "TextWorld", 2018 (MIT). Room templates and frequencies of the
    generator are derived from the official games (MIT). The optional original engine loads Fast Downward (GPL-3.0) and
    Jericho (GPL-2.0).
    """  # noqa: E501

    name: ClassVar[str] = "alfworld"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    option_keys: ClassVar[frozenset[str]] = frozenset({"task_type", "scene"})
    split_aliases: ClassVar[Mapping[str, str]] = ORIGINAL_SPLITS
    metadata: dict[str, Any] = {"render_modes": ["ansi", "html"], "render_fps": 4}

    def __init__(
        self,
        *,
        split: str | None = None,
        task_types: Collection[str] = (),
        scenes: Collection[int] = (),
        generator: Mapping[str, Any] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        engine: Literal["native", "textworld"] = "native",
        wording: Wording = "move",
        quirks: QuirkSpec = "faithful",
        feedback: Literal["plain", "verbose"] = "plain",
        parser: Literal["strict", "tolerant"] = "strict",
        opening: texts.Opening = "full",
        budget: float = 0,
        privileged: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if split is None:
            split = "mini_train" if data_dir is None else "train"
        super().__init__(split=split, render_mode=render_mode)
        arguments.check_choices(
            wording=wording, feedback=feedback, parser=parser, opening=opening, engine=engine, privileged=privileged
        )
        self.rules = Rules(Quirks.resolve(quirks), wording)
        self.engine_name, self.feedback, self.parser, self.opening = engine, feedback, parser, opening
        self.privileged = privileged
        self.budget = arguments.check_budget(budget)
        self.task_types = arguments.check_task_types(task_types)
        self.scenes = arguments.check_scenes(scenes)
        if self.split in GENERATED_SPLITS and engine == "native":
            refuse_ignored(f"split={self.split!r}", data_dir=(data_dir, None))
        self.source = TaskSource(data_dir)
        self._chooser = TaskChooser(self.source, rooms.Knobs.checked({} if generator is None else generator))
        if self.split not in PROCEDURAL_SPLITS:
            refuse_ignored(f"split={self.split!r}", generator=(generator or {}, {}))
        self._episode: Episode | None = None
        self._process: TextWorldProcess | None = None

    # -- tasks -------------------------------------------------------------------------------------------------------

    def task_ids(self, split: str) -> Sequence[str]:
        """See ``SeedEnv.task_ids``; filters of the constructor apply."""
        return self._chooser.listed(self.check_split(split), self.task_types, self.scenes)

    def require_data(self, split: str) -> None:
        """See ``SeedEnv.require_data``."""
        self.source.require(self.check_split(split))

    def belongs(self, task_id: str, split: str) -> bool:
        """See ``SeedEnv.belongs``; told from the id, so that own games count for two splits."""
        return belongs(task_id, split)

    def data_source(self, task_id: str) -> DataSource:
        """See ``SeedEnv.data_source``."""
        return self.source.data_source(task_id)

    def plain_task_id(self, task_id: str) -> str:
        """See ``SeedEnv.plain_task_id``: paths of game files, ``task/trial``, and the original's split names."""
        return plain_id(task_id)

    def _choose_task(self, options: dict[str, Any]) -> str:
        task_types, scenes = self.task_types, self.scenes
        if "task_type" in options:
            task_types = (arguments.check_task_type(options["task_type"]),)
        if "scene" in options:
            scenes = (arguments.check_scene(options["scene"]),)
        return self._chooser.draw(options.get("split", self.split), task_types, scenes, self.np_random)

    # -- episode -----------------------------------------------------------------------------------------------------

    def _begin(self, task_id: str, options: dict[str, Any]) -> str:
        game = self.source.game(task_id)
        if "task_id" in options:
            arguments.check_agreement(game, options)
        if self._process is not None and not self._process.alive:
            self.close()
        episode = self._episode
        if episode is None or episode.engine.game is not game:
            episode = self._episode = Episode(self._new_engine(game))
        return episode.begin(self.opening, self.budget)

    def _new_engine(self, game: Game) -> Engine:
        if self.engine_name == "native":
            return Engine(game, self.rules)
        from seed_envs.alfworld.textworld_engine import TextWorldEngine, TextWorldProcess

        if self._process is None:
            self._process = TextWorldProcess()
        return TextWorldEngine(game, self.source.document(game.game_id), self._process, self.rules)

    def close(self) -> None:
        """End the child process of ``engine="textworld"``, if there is one."""
        if self._process is not None:
            self._process.close()
            self._process, self._episode = None, None

    @property
    def game(self) -> Game:
        """The compiled game being played (privileged: it holds every fact)."""
        return self._playing().engine.game

    def _playing(self) -> Episode:
        if self._episode is None:
            raise InvalidState("no game is loaded; call reset() first")
        return self._episode

    def _act(self, action: str) -> Outcome:
        return self._playing().act(action, tolerant=self.parser == "tolerant", verbose=self.feedback == "verbose")

    def _status(self) -> TaskStatus:
        engine = self._playing().engine
        return TaskStatus(engine.game.goal.task_type, engine.game.sentence, engine.won, 1.0 if engine.won else 0.0)

    def _admissible(self) -> Sequence[str]:
        engine = self._playing().engine
        if self._process is not None:
            return tuple(engine.admissible())
        game, state, rules = engine.game, engine.state, self.rules
        return LazyActions(lambda: admissible(game, state, rules))

    def _extras(self) -> dict[str, Any]:
        return self._playing().extras(self.privileged)

    # -- expert, state, picture --------------------------------------------------------------------------------------

    def oracle_action(self) -> str:
        """First command of a shortest plan, with knowledge of everything.

        Returns:
            The command; ``look`` when the game is already won.

        Raises:
            OracleUnavailable: when the game can no longer be won.
        """
        plan = self.oracle_plan()
        return plan[0] if plan else "look"

    def oracle_plan(self) -> list[str]:
        """A shortest plan from here, with knowledge of everything; empty when the game is won.

        Raises:
            OracleUnavailable: when the game can no longer be won.
        """
        return self._playing().plan()

    def rule_action(self) -> str:
        """Next command of the explorer, which knows only what an agent is shown (and where things usually lie).

        Returns:
            An admissible command.
        """
        return self._playing().advise()

    def get_state(self) -> Snapshot:
        """The episode as an immutable value; costs well under a microsecond, valid for any copy of this environment."""
        return self._playing().snapshot(self.task_id, self._running)

    def set_state(self, state: Snapshot) -> None:
        """Continue from a saved episode.

        Args:
            state: what ``get_state`` returned, on any environment with the same data and rules.

        Raises:
            InvalidState: when it is something else.
        """
        if not isinstance(state, Snapshot):
            raise InvalidState(f"expected a Snapshot from get_state(), got {type(state).__name__}")
        if self._episode is None or self.task_id != state.task_id:
            self._begin(state.task_id, {})
            self.task_id = state.task_id
        episode = self._playing()
        episode.resume(state)
        self._running = state.running
        self._action_valid, self._invalid_reason = True, ""
        self._stop_reason = "" if state.running else ("success" if episode.engine.won else "failure")

    def __deepcopy__(self, memo: dict[int, Any]) -> ALFWorldEnv:
        """An independent copy in some tens of microseconds: games, states and rules are immutable and shared.

        Raises:
            InvalidState: with ``engine="textworld"``, whose process cannot be copied.
        """
        if self._process is not None:
            raise InvalidState("engine='textworld' cannot be copied; use get_state and set_state on a second one")
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(self.__dict__)
        twin._episode = None if self._episode is None else self._episode.copy()
        for name in ("action_space", "observation_space"):
            value = self.__dict__[name]
            untouched = isinstance(value, UnicodeText) and value._np_random is None
            twin.__dict__[name] = copy.copy(value) if untouched else copy.deepcopy(value, memo)
        if self._np_random is not None:
            twin._np_random = _copy_generator(self._np_random)
        return twin

    def render(self) -> Any:
        """The transcript (``ansi``) or a map of the room as one HTML page (``html``); None without a render mode."""
        if self.render_mode is None:
            return None
        engine, turns = self._playing().engine, self._playing().journal.turns
        if self.render_mode == "html":
            return rendering.room_page(engine.game, engine.state, turns)
        return rendering.transcript(turns)


def _copy_generator(generator: np.random.Generator) -> np.random.Generator:
    """The same stream at the same position; seven times faster than ``copy.deepcopy``."""
    bits = type(generator.bit_generator)(generator.bit_generator.seed_seq)  # type: ignore[arg-type]  # any seed sequence does
    bits.state = generator.bit_generator.state
    return np.random.Generator(bits)
