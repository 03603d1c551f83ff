"""Sokoban dynamics and reward against a second, slow model written from the rules in (row, column) sets."""

from __future__ import annotations

import random
from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from seed_envs.errors import DataInvalid, UnknownOption
from seed_envs.vision.sokoban.actions import MAX_ACTION_CHARS, read_classic, read_strict
from seed_envs.vision.sokoban.classic import generate
from seed_envs.vision.sokoban.generator import Difficulty
from seed_envs.vision.sokoban.generator import generate as generate_solved
from seed_envs.vision.sokoban.levels import Level
from seed_envs.vision.sokoban.rules import ACTION_SETS, Game
from seed_envs.vision.sokoban.vector import BatchEngine, SokobanVectorEnv
from seed_envs.vision.sokoban.xsb import parse_level

MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


class SetModel:
    """The rules once more: places are (row, column) pairs, things are sets, actions are words."""

    def __init__(self, level: Level, counts_from_zero: bool) -> None:
        def place(cell: int) -> tuple[int, int]:
            return divmod(cell, level.width)

        self.floor = {place(cell) for cell, code in enumerate(level.fixed) if code}
        self.targets = {place(cell) for cell in level.targets}
        self.boxes = {place(cell) for cell in level.boxes}
        self.player = place(level.player)
        self.remembered = 0 if counts_from_zero else len(self.boxes & self.targets)

    def step(self, kind: str, word: str) -> float:
        if kind != "nothing":
            down, right = MOVES[word]
            goal = (self.player[0] + down, self.player[1] + right)
            behind = (goal[0] + down, goal[1] + right)
            free_behind = behind in self.floor and behind not in self.boxes
            if goal in self.boxes and kind == "push" and free_behind:
                self.boxes = (self.boxes - {goal}) | {behind}
                self.player = goal
            elif goal in self.floor and goal not in self.boxes:
                self.player = goal
        standing = len(self.boxes & self.targets)
        reward = -0.1 + (standing > self.remembered) - (standing < self.remembered) + 10 * (self.boxes == self.targets)
        self.remembered = standing
        return reward


CODES = [("nothing", "")] + [("push", word) for word in MOVES] + [("move", word) for word in MOVES]


def snapshot(game: Game) -> tuple[set[tuple[int, int]], tuple[int, int]]:
    boxes = {divmod(cell, game.level.width) for cell, code in enumerate(game.room) if code in (3, 4)}
    return boxes, divmod(game.player, game.level.width)


@pytest.mark.parametrize("rules", ["classic", "strict"])
def test_random_play_equals_the_second_model(rules: str) -> None:
    rng = random.Random(5)
    checked = 0
    for seed in range(150):
        level = generate(seed, 6 + seed % 3, 6 + seed % 2, 1 + seed % 3)
        game, model = Game(level, rules), SetModel(level, rules == "classic")
        for _ in range(60):
            code = rng.randrange(1, 9)
            assert game.step(code) == pytest.approx(model.step(*CODES[code]))
            assert snapshot(game) == (model.boxes, model.player)
            assert game.solved == (model.boxes == model.targets)
            assert game.boxes == sum(1 << row * level.width + column for row, column in model.boxes)
            checked += 1
    assert checked == 9_000


def test_every_pair_of_cells_ahead_and_every_action() -> None:
    """All seven kinds of cell ahead and behind it, all nine actions: 7 x 7 x 9 cases."""
    symbols = "# .$*"
    for ahead, beyond, under, code in product(symbols, symbols, "@+", range(9)):
        row = f"#{under}{ahead}{beyond}#"
        spare = "$" * (row.count(".") + row.count("+")) + "." * row.count("$")
        text = ["########", f"#{under}{ahead}{beyond}   #", "#      #", "#" + (" " + spare).ljust(6) + "#", "########"]
        if len(spare) > 5 or not any(symbol in "$*" for symbol in "".join(text)):
            continue
        level = parse_level(text, "case")
        game, model = Game(level, "strict"), SetModel(level, False)
        assert game.step(code) == pytest.approx(model.step(*CODES[code])), (row, code)
        assert snapshot(game) == (model.boxes, model.player), (row, code)


def play(rows: list[str], words: str, rules: str = "classic") -> list[float]:
    game = Game(parse_level(rows, "case"), rules)
    return [game.step(ACTION_SETS["5"][word]) for word in words.split()]


def test_rewards_of_single_pushes() -> None:
    assert play(["#####", "#@$.#", "#####"], "right") == [pytest.approx(10.9)]
    target_to_target = ["#######", "#@$..$#", "#######"]
    assert play(target_to_target, "right")[-1] == pytest.approx(0.9)
    assert play(target_to_target, "right right")[-1] == pytest.approx(-0.1)
    off_target = ["######", "#@* .#", "# $  #", "######"]
    assert play(off_target, "right", "strict") == [pytest.approx(-1.1)]


def test_a_box_on_target_at_the_start_pays_under_classic_only() -> None:
    rows = ["######", "#@  .#", "#*  $#", "######"]
    assert play(rows, "right", "classic") == [pytest.approx(0.9)]
    assert play(rows, "right", "strict") == [pytest.approx(-0.1)]


def test_action_zero_counts_as_a_step_under_strict_only() -> None:
    for rules, steps in (("classic", 0), ("strict", 1)):
        game = Game(generate(0), rules)
        before = bytes(game.room)
        assert game.step(0) == pytest.approx(-0.1)
        assert (game.steps, bytes(game.room)) == (steps, before)


def test_a_stored_state_continues_identically() -> None:
    rng = random.Random(1)
    game = Game(generate(3, boxes=2))
    for _ in range(10):
        game.step(rng.randrange(9))
    state, actions = game.get_state(), [rng.randrange(9) for _ in range(30)]
    first = [game.step(code) for code in actions], bytes(game.room)
    game.set_state(state)
    assert first == ([game.step(code) for code in actions], bytes(game.room))


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("up", (1,)), ("do not go up, go down", (1,)), ("upper left", (1,)), ("left right", (3,)), ("STILL", (0,)),
        ("", ()), ("jump", ()),
    ],
)  # fmt: skip
def test_the_framework_reads_the_first_word_found_as_a_substring(text: str, codes: tuple[int, ...]) -> None:
    read = read_classic(text)
    assert read.codes == codes
    assert bool(read.reason) == (not codes)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (" Up ", (1,)), ("up, right", (1, 4)), ("up,", (1,)), ("do not go up", ()), ("upper", ()), ("still", ()),
        ("", ()), ("up,,up", ()), ("up, up, up, up", ()), ("u" * (MAX_ACTION_CHARS + 1), ()),
    ],
)  # fmt: skip
def test_exact_reading_takes_whole_words_and_refuses_the_turn_otherwise(text: str, codes: tuple[int, ...]) -> None:
    read = read_strict(text, ACTION_SETS["4"], max_actions=3)
    assert read.codes == codes
    assert bool(read.reason) == (not codes)


def test_random_strings_never_raise() -> None:
    rng = random.Random(0)
    alphabet = "upleftrighdonsw ,;\n<>{}\"'#\x00é√"
    for _ in range(10_000):
        text = "".join(rng.choice(alphabet) for _ in range(rng.randrange(40)))
        for read in (read_classic(text), read_strict(text, ACTION_SETS["9"], 4)):
            assert bool(read.codes) != bool(read.reason)


@pytest.mark.parametrize("boxes", [1, 2])
def test_batch_engine_equals_single_games(boxes: int) -> None:
    rng = np.random.default_rng(0)
    levels = [generate_solved(rng, Difficulty(boxes=boxes, min_steps=1, max_steps=40)).level for _ in range(64)]
    engine = BatchEngine(levels, 64)
    engine.load(np.arange(64), np.arange(64))
    games = [Game(level, "strict") for level in levels]
    for _ in range(150):
        actions = rng.integers(0, 9, size=64)
        reward, solved = engine.step(actions)
        assert reward == pytest.approx([game.step(int(code)) for game, code in zip(games, actions, strict=True)])
        assert solved.tolist() == [game.solved for game in games]
        assert engine.rooms.tobytes() == b"".join(bytes(game.room) for game in games)
    assert engine.on_target.tolist() == [game.on_target for game in games]


def test_batch_engine_refuses_mixed_shapes() -> None:
    with pytest.raises(DataInvalid, match="one shape"):
        BatchEngine([generate(0, 6, 6, 1), generate(0, 6, 6, 2)], 4)


def test_vector_environment_restarts_finished_games_and_repeats_by_seed() -> None:
    rng = np.random.default_rng(0)
    levels = [generate_solved(rng, Difficulty(min_steps=1, max_steps=2)).level for _ in range(8)]
    runs = []
    for _ in range(2):
        env = SokobanVectorEnv(levels, 32, max_episode_steps=6)
        observation, _ = env.reset(seed=4)
        actions = np.random.default_rng(1).integers(1, 5, size=(60, 32))
        trace, finished, truncations = [observation], 0, 0
        for row in actions:
            observation, reward, terminated, truncated, info = env.step(row)
            assert env.observation_space.contains(observation)
            assert not (terminated & truncated).any()
            assert (info["steps"] <= 6).all()
            assert (reward[terminated] > 10).all()
            finished, truncations = finished + int(terminated.sum()), truncations + int(truncated.sum())
            trace.append(observation)
        assert finished > 10
        assert truncations > 10
        runs.append(np.concatenate(trace))
    assert np.array_equal(runs[0], runs[1])
    recorded = RecordEpisodeStatistics(SokobanVectorEnv(levels, 8, max_episode_steps=5))
    recorded.reset(seed=0)
    for row in actions[:12, :8]:
        recorded.step(row)
    assert recorded.episode_count >= 16
    assert max(recorded.length_queue) <= 5
    pictures = SokobanVectorEnv(levels, 3, tile=16)
    assert pictures.reset(seed=0)[0].shape == (3, 96, 96, 3)


def test_vector_environment_refuses_what_is_no_action_or_level() -> None:
    env = SokobanVectorEnv([generate(0, 6, 6, 1)], 2)
    env.reset(seed=0, options={"levels": [0, 0]})
    for actions in ([1], [1, 9], [-1, 1], [1.0, 2.0], ["up", "up"], [[1, 2]]):
        with pytest.raises(gym.error.InvalidAction, match="expected"):
            env.step(actions)  # type: ignore[arg-type]
    for options in ({"levels": [0, 1]}, {"levels": [0]}, {"levels": "all"}, {"level": [0, 0]}):
        with pytest.raises(UnknownOption, match="expected|accepted"):
            env.reset(options=options)
