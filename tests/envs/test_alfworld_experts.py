"""The oracle's plans win, are shortest, and exist from any state; the explorer wins without privileges."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from alfworld_quirk_room import quirk_game

from seed_envs.alfworld.actions import Rules
from seed_envs.alfworld.engine import Engine, is_won
from seed_envs.alfworld.explorer import Explorer, Habits, Hint
from seed_envs.alfworld.game import Game, State
from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.library import Library, open_source
from seed_envs.alfworld.memory import Memory
from seed_envs.alfworld.oracle import Planner, dead_end
from seed_envs.alfworld.quirks import Quirks
from seed_envs.alfworld.reading import guess_goal, read_goal_line
from seed_envs.errors import OracleUnavailable

FIXED = Rules(Quirks.resolve("fixed"))


@pytest.fixture(scope="module")
def library(data_dir: Path) -> Library:
    return open_source(data_dir / "alfworld")


def check_plan(engine: Engine, plan: list[str]) -> None:
    """Every command is accepted and the last one, not an earlier one, wins."""
    for number, command in enumerate(plan):
        assert not engine.won
        assert engine.act(command).valid, (engine.game.game_id, plan, number)
    assert engine.won, (engine.game.game_id, plan)


def wander(engine: Engine, rng: random.Random, steps: int) -> None:
    """Random commands, rare verbs as often as frequent ones; stops before a win."""
    for _ in range(steps):
        verbs = sorted({command.split(" ")[0] for command in engine.admissible()})
        verb = rng.choice(verbs)
        before = engine.state
        engine.act(rng.choice([command for command in engine.admissible() if command.startswith(verb)]))
        if engine.won:
            engine.restore(before)


# -- oracle ------------------------------------------------------------------------------------------------------------


def test_plans_win_500_official_games_from_random_states(library: Library) -> None:
    rng = random.Random(2)
    lost = 0
    for task_id in rng.sample(library.ids, 500):
        game = library.game(task_id)
        planner, engine = Planner(game), Engine(game)
        assert len(planner.plan(game.start)) <= len(game.walkthrough)
        wander(engine, rng, rng.randrange(1, 40))
        try:
            plan = planner.plan(engine.state)
        except OracleUnavailable:
            assert dead_end(game, engine.state), task_id
            lost += 1
            continue
        check_plan(engine, plan)
    assert lost < 50


@pytest.mark.parametrize("rules", [Rules(), FIXED, Rules(wording="put")], ids=["faithful", "fixed", "put"])
def test_plans_win_generated_games_from_random_states(rules: Rules) -> None:
    rng = random.Random(4)
    for seed in range(150):
        game = rooms.generate(rooms.make_id("train", seed))
        planner, engine = Planner(game, rules), Engine(game, rules)
        wander(engine, rng, rng.randrange(0, 30))
        try:
            plan = planner.plan(engine.state)
        except OracleUnavailable:
            assert dead_end(game, engine.state) and rules.quirks.dead_ends
            continue
        check_plan(engine, plan)


def shorter_plan_exists(game: Game, rules: Rules, start: State, depth: int) -> bool:
    """Breadth-first search over true states: can the game be won with at most ``depth`` commands?"""
    engine = Engine(game, rules)
    known, frontier = {start}, [start]
    silent = ("look", "inventory", "help", "examine", "slice")
    for _ in range(depth):
        following = []
        for state in frontier:
            engine.restore(state)
            for command in engine.admissible():
                if command.startswith(silent):
                    continue
                engine.restore(state)
                engine.act(command)
                if engine.won:
                    return True
                if engine.state not in known:
                    known.add(engine.state)
                    following.append(engine.state)
        frontier = following
    return False


QUIRK_GOALS = (
    Goal("heat", "mug", "coffeemachine"),
    Goal("two", "mug", "cabinet"),
    Goal("look", "book", "desklamp"),
    Goal("clean", "plate", "cabinet"),
    Goal("simple", "saltshaker", "drawer"),
    Goal("cool", "apple", "countertop"),
    Goal("two", "apple", "sidetable"),
)


@pytest.mark.parametrize("rules", [Rules(), FIXED], ids=["faithful", "fixed"])
def test_no_shorter_plan_exists(rules: Rules) -> None:
    rng = random.Random(6)
    games = [quirk_game(goal) for goal in QUIRK_GOALS] + [compact.generate(i) for i in compact.panel("test")[:12]]
    compared = 0
    for game in games:
        planner, engine = Planner(game, rules), Engine(game, rules)
        for steps in (0, 3, 8, 20, 20):
            wander(engine, rng, steps)
            try:
                plan = planner.plan(engine.state)
            except OracleUnavailable:
                assert dead_end(game, engine.state)
                engine.reset()
                continue
            if 2 <= len(plan) <= 5:
                compared += 1
                assert not shorter_plan_exists(game, rules, engine.state, len(plan) - 1), (game.game_id, plan)
    assert compared > 35


def test_ghost_wins_can_be_declined() -> None:
    game = quirk_game(Goal("heat", "mug", "coffeemachine"))
    quick, ordinary = Planner(game).plan(game.start), Planner(game, ghosts=False).plan(game.start)
    assert quick[-1].startswith("heat") and ordinary[-1].startswith("move")
    assert len(quick) < len(ordinary)


def test_a_dead_end_is_named() -> None:
    engine = Engine(quirk_game(Goal("simple", "saltshaker", "drawer")))
    for command in ("go to countertop 1", "take papertowelroll 1 from countertop 1"):
        engine.act(command)
    assert dead_end(engine.game, engine.state)
    with pytest.raises(OracleUnavailable, match="papertowelroll 1"):
        Planner(engine.game).plan(engine.state)


def test_a_won_game_needs_no_plan() -> None:
    game = compact.generate(compact.make_id("train", 0))
    engine = Engine(game)
    check_plan(engine, list(game.walkthrough))
    assert is_won(game, engine.state) and Planner(game).plan(engine.state) == []


# -- explorer ----------------------------------------------------------------------------------------------------------


def explore(game: Game, explorer: Explorer, limit: int, opening: str = "") -> int:
    """Commands until the win, or 0; every command is admissible."""
    engine = Engine(game)
    answer = opening or engine.reset()
    for number in range(1, limit + 1):
        command = explorer.act(answer, engine.admissible())
        reply = engine.act(command)
        assert reply.valid, (game.game_id, command)
        answer = reply.text
        if engine.won:
            return number
    return 0


def test_the_explorer_wins_official_games_within_fifty_commands(library: Library) -> None:
    games = [library.game(task_id) for task_id in random.Random(1).sample(library.ids, 250)]
    used = [explore(game, Explorer(game.sentence), 50) for game in games]
    assert sum(map(bool, used)) >= 245
    assert sum(used) / len(used) < 12


def test_it_reads_goal_and_answers_only() -> None:
    """The same texts and lists give the same commands, whatever game they come from."""
    game = compact.generate(compact.make_id("test", 4))
    engine, one, two = Engine(game), Explorer(game.sentence), Explorer(game.sentence)
    answer = engine.reset()
    for _ in range(12):
        listed = engine.admissible()
        command = one.act(answer, listed)
        assert command == two.act(str(answer), tuple(listed))
        answer = engine.act(command).text


def success(habits: Habits, hints: bool = False, limit: int = 12) -> float:
    games = [compact.generate(task_id) for task_id in compact.panel("validation")[:120]]
    won = 0
    for number, game in enumerate(games):
        source = next(r for r, row in enumerate(game.start.contents) if any(game.targets >> o & 1 for o in row))
        hint = Hint(sources=(game.receptacles[source],)) if hints else Hint()
        won += bool(explore(game, Explorer(game.sentence, habits, hint, name=str(number)), limit))
    return won / len(games)


def test_habits_make_better_and_worse_players() -> None:
    knowing, ignorant = success(Habits(prior="compact")), success(Habits(prior="none"))
    assert knowing > 0.8 and ignorant < knowing - 0.3
    assert success(Habits(prior="none"), hints=True) > ignorant + 0.3
    assert success(Habits(prior="compact", noise=0.3)) < knowing
    assert success(Habits(prior="compact", skip_station=1.0)) < knowing - 0.3
    assert success(Habits(prior="compact", confuse_station=1.0)) < knowing - 0.2
    assert success(Habits(prior="compact", overlook=0.5)) < knowing
    assert success(Habits(prior="compact", wander=0.8)) < knowing


@pytest.mark.parametrize(
    ("sentence", "goal"),
    [
        ("bring me the blue thing", Goal("simple", "", "")),
        ("Put a rinsed mug on the coffee table", Goal("clean", "mug", "coffeetable")),
        ("put two bottles of wine in the trash can", Goal("two", "winebottle", "garbagecan")),
        ("Chill a potato in the fridge, place it in the sink", Goal("cool", "potato", "sinkbasin")),
        ("examine the alarm clock by the light of the lamp", Goal("look", "alarmclock", "desklamp")),
        ("put a pencil and not a pen on the shelf", Goal("simple", "pencil", "shelf")),
    ],
)
def test_other_words_are_read_by_keywords(sentence: str, goal: Goal) -> None:
    line = f"Your task is to: {sentence}."
    assert read_goal_line(line) is None and guess_goal(line) == goal == Explorer(line).goal


def test_two_goals_are_read_and_explored() -> None:
    won = 0
    for seed in range(24):
        game = rooms.generate(rooms.make_id("train", seed, rooms.Knobs(goals=2)))
        assert read_goal_line(game.sentence) == game.goal and len(game.goal.parts) == 2
        won += bool(explore(game, Explorer(game.sentence), 60))
    assert won >= 21


def test_two_goals_have_plans_from_random_states_and_hardly_shorter_ones() -> None:
    rng = random.Random(8)
    for seed in range(40):
        game = rooms.generate(rooms.make_id("train", seed, rooms.Knobs(goals=2)))
        planner, engine = Planner(game), Engine(game)
        wander(engine, rng, rng.randrange(0, 25))
        try:
            check_plan(engine, planner.plan(engine.state))
        except OracleUnavailable:
            assert dead_end(game, engine.state)
    compared = 0
    for seed in range(40):
        game = rooms.generate(rooms.make_id("train", seed, rooms.Knobs(goals=2, kinds=0, copies=1, receptacles=5)))
        if len(game.walkthrough) <= 9:
            compared += 1
            assert not shorter_plan_exists(game, Rules(), game.start, len(game.walkthrough) - 1), game.game_id
    assert compared > 5


@pytest.mark.parametrize("kind", ["simple", "look", "clean", "heat", "cool", "two"])
@pytest.mark.parametrize("variant", [0, 1])
def test_all_twelve_sentences_are_read(kind: str, variant: int) -> None:
    goal = Goal(kind, "mug", "shelf")
    assert read_goal_line("some room\n\n" + goal.sentence(variant)) == goal


def test_memory_holds_what_was_seen() -> None:
    memory = Memory()
    memory.update("You are in the middle of a room. Looking quickly around you, you see a fridge 1, and a desk 1.")
    memory.update("You arrive at fridge 1. The fridge 1 is closed.")
    assert memory.here == "fridge 1" and memory.closed == {"fridge 1"} and memory.contents == {}
    memory.update("You open the fridge 1. The fridge 1 is open. In it, you see a mug 1, and a egg 2.")
    memory.update("You pick up the mug 1 from the fridge 1.")
    memory.update("Nothing happens.")
    assert memory.here == "fridge 1" and memory.held == "mug 1" and memory.contents["fridge 1"] == ["egg 2"]
    memory.update("You heat the mug 1 using the microwave 1.")
    memory.update("You cool the mug 1 using the fridge 1.")
    assert memory.done("cool", "mug 1") and not memory.done("heat", "mug 1")
    memory.update("You move the mug 1 to the fridge 1.")
    assert memory.held == "" and memory.placed == {"mug 1": "fridge 1"} and "mug 1" in memory.contents["fridge 1"]
    memory.update("You arrive at loc 3. On the desk 1, you see a pen 1.")
    assert memory.here == "desk 1" and memory.visited == ["fridge 1", "desk 1"], "also in the older wording"
    memory.update("You close the desk 1.")
    assert memory.closed == {"desk 1"}
