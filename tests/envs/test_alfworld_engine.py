"""Rules and texts of the native engine: recorded answers of TextWorld, one test per switch, properties."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from alfworld_quirk_room import SESSIONS, quirk_game

from seed_envs.alfworld.actions import Rules
from seed_envs.alfworld.engine import Engine, condition_rate
from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.quirks import Quirks
from seed_envs.alfworld.texts import NOTHING_HAPPENS, object_text
from seed_envs.errors import UnknownOption

GOLDEN = Path(__file__).parent / "golden" / "alfworld_textworld.jsonl"
RECORDS = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record['session']}-{record['wording']}")
def test_answers_recorded_from_textworld_are_reproduced(record: dict[str, Any]) -> None:
    engine = Engine(quirk_game(SESSIONS[record["session"]][0]), Rules(wording=record["wording"]))
    for command, text, won, admissible in record["rows"]:
        answer = (
            engine.act(command).text if command or engine.state.place != engine.game.start.place else engine.reset()
        )
        assert (command, answer, engine.won) == (command, text, won)
        assert engine.admissible() == admissible


def play(engine: Engine, *commands: str) -> str:
    """Send commands, all of which must be accepted, and return the last answer."""
    text = ""
    for command in commands:
        reply = engine.act(command)
        assert reply.valid, (command, engine.admissible())
        text = reply.text
    return text


def both(goal: Goal, switch: str) -> tuple[Engine, Engine]:
    """The same game with the original behaviour and with one switch repaired."""
    game = quirk_game(goal)
    return Engine(game), Engine(game, Rules(Quirks.resolve({switch: False})))


SIMPLE = Goal("simple", "saltshaker", "drawer")


def test_silent_middle() -> None:
    original, fixed = both(SIMPLE, "silent_middle")
    assert play(original, "look").endswith("you see nothing.")
    assert "a stoveburner 2, and a stoveburner 1." in play(fixed, "look")


def test_no_goto_here() -> None:
    original, fixed = both(SIMPLE, "no_goto_here")
    for engine in (original, fixed):
        play(engine, "go to countertop 1")
    assert original.act("go to coffeemachine 1") == (NOTHING_HAPPENS, False)
    assert play(fixed, "go to coffeemachine 1").startswith("You arrive at coffeemachine 1. On the coffeemachine 1")
    assert "go to countertop 1" in fixed.admissible()


def test_examine_held_only() -> None:
    original, fixed = both(SIMPLE, "examine_held_only")
    for engine in (original, fixed):
        play(engine, "go to countertop 1")
    assert not original.act("examine bread 1").valid
    assert play(fixed, "examine bread 1") == "There's nothing special about bread 1."
    assert not fixed.act("examine mug 1").valid, "behind a closed door"


def test_use_only_on() -> None:
    original, fixed = both(Goal("look", "book", "desklamp"), "use_only_on")
    for engine in (original, fixed):
        play(engine, "go to sidetable 1", "take book 1 from sidetable 1", "go to desk 1")
    assert play(original, "use desklamp 1") == "You turn on the desklamp 1." and original.won
    assert play(fixed, "use desklamp 1") == "You turn on the desklamp 1." and fixed.won
    assert play(original, "use desklamp 1") == "You turn on the desklamp 1." and original.won
    assert play(fixed, "use desklamp 1") == "You turn off the desklamp 1." and not fixed.won


def test_frozen_vessels() -> None:
    original, fixed = both(Goal("heat", "plate", "cabinet"), "frozen_vessels")
    for engine in (original, fixed):
        play(engine, "go to countertop 1", "take plate 1 from countertop 1", "go to microwave 1")
        play(engine, "heat plate 1 with microwave 1")
    assert play(original, "examine plate 1") == "This is a normal plate 1. In it, you see a spoon 1."
    assert play(fixed, "examine plate 1") == "This is a hot plate 1. In it, you see nothing."


def test_closed_stations() -> None:
    original, fixed = both(Goal("heat", "mug", "cabinet"), "closed_stations")
    for engine in (original, fixed):
        play(engine, "go to countertop 1", "take mug 2 from countertop 1", "go to microwave 1")
    assert original.act("heat mug 2 with microwave 1").valid
    assert not fixed.act("heat mug 2 with microwave 1").valid
    play(fixed, "open microwave 1", "heat mug 2 with microwave 1")


def test_floor_echo() -> None:
    original, fixed = both(SIMPLE, "floor_echo")
    for engine in (original, fixed):
        play(engine, "go to cabinet 1", "open cabinet 1", "take saltshaker 1 from cabinet 1", "open cabinet 2")
        engine.act("move saltshaker 1 to cabinet 2")
    assert play(original, "look").endswith("Next to it, you see a saltshaker 1.")
    assert play(fixed, "look").endswith("Next to it, you see nothing.")


def test_slice_unseen() -> None:
    original, fixed = both(SIMPLE, "slice_unseen")
    for engine in (original, fixed):
        play(
            engine,
            "go to countertop 1",
            "take knife 1 from countertop 1",
            "slice bread 1 with knife 1",
            "go to fridge 1",
        )
    assert original.act("slice apple 2 with knife 1").valid, "through the closed door"
    assert not fixed.act("slice apple 2 with knife 1").valid
    play(fixed, "open fridge 1", "slice apple 2 with knife 1")


def test_ghosts() -> None:
    original, fixed = both(Goal("heat", "mug", "coffeemachine"), "ghosts")
    for engine in (original, fixed):
        play(engine, "go to countertop 1", "take mug 2 from countertop 1")
    assert play(original, "examine coffeemachine 1") == "On the coffeemachine 1, you see a mug 2."
    assert play(fixed, "examine coffeemachine 1") == "On the coffeemachine 1, you see nothing."
    for engine in (original, fixed):
        play(engine, "go to microwave 1", "heat mug 2 with microwave 1")
    assert original.won and not fixed.won
    play(fixed, "go to coffeemachine 1", "move mug 2 to coffeemachine 1")
    assert fixed.won


def test_dead_ends() -> None:
    original, fixed = both(SIMPLE, "dead_ends")
    for engine in (original, fixed):
        play(engine, "go to countertop 1")
    assert not fixed.act("take papertowelroll 1 from countertop 1").valid
    play(original, "take papertowelroll 1 from countertop 1")
    assert not any(command.startswith("move") for command in original.admissible())


def test_quirks_by_name_reject_unknown_names_and_values() -> None:
    assert Quirks.resolve("faithful") == Quirks()
    assert not any(getattr(Quirks.resolve("fixed"), name) for name in Quirks.__slots__)
    with pytest.raises(UnknownOption, match="'ghosts'"):
        Quirks.resolve({"ghost": False})
    with pytest.raises(UnknownOption, match="faithful"):
        Quirks.resolve("broken")  # type: ignore[arg-type]
    with pytest.raises(UnknownOption, match="True"):
        Quirks.resolve({"ghosts": 0})  # type: ignore[dict-item]


ALL_RULES = [Rules(), Rules(Quirks.resolve("fixed")), Rules(wording="put")]


def candidates(engine: Engine) -> list[str]:
    """Every command that can be built from the names of a game."""
    game = engine.game
    names = [*game.objects, *game.receptacles, "nothing 1"]
    single = [f"{verb} {name}" for verb in ("go to", "open", "close", "examine", "use", "go", "help") for name in names]
    pairs = [
        form.format(a, b)
        for form in ("take {} from {}", "move {} to {}", "put {} in/on {}", "clean {} with {}", "heat {} with {}")
        for a in names
        for b in names
    ]
    pairs += [f"{verb} {a} with {b}" for verb in ("cool", "slice") for a in names for b in names]
    return [*single, *pairs, "look", "inventory", "help", "", "go", "take", "look 1"]


@pytest.mark.parametrize("rules", ALL_RULES, ids=["faithful", "fixed", "put"])
def test_a_command_is_accepted_exactly_when_it_is_listed(rules: Rules) -> None:
    rng = random.Random(5)
    engine = Engine(quirk_game(Goal("cool", "apple", "cabinet")), rules)
    everything = candidates(engine)
    for _ in range(60):
        state, listed = engine.state, set(engine.admissible())
        assert sorted(listed) == engine.admissible()
        assert listed <= set(everything)
        for command in everything:
            valid = engine.act(command).valid
            assert valid == (command in listed), command
            if not valid:
                assert engine.state is state
            engine.restore(state)
        engine.act(rng.choice(sorted(listed)))


def test_states_are_values_that_can_be_returned_to() -> None:
    rng = random.Random(3)
    engine = Engine(rooms.generate(rooms.make_id("train", 4)))
    saved = []
    for _ in range(200):
        saved.append((engine.state, engine.admissible(), engine.won, condition_rate(engine.game, engine.state)))
        engine.act(rng.choice(engine.admissible()))
    for state, admissible, won, rate in rng.sample(saved, 50):
        engine.restore(state)
        assert (engine.admissible(), engine.won, condition_rate(engine.game, engine.state)) == (admissible, won, rate)


def hostile(engine: Engine, rng: random.Random) -> str:
    """A command that an agent should not have sent."""
    listed = rng.choice(engine.admissible())
    kind = rng.randrange(9)
    if kind == 0:
        return "".join(chr(rng.randrange(1, 0x3000)) for _ in range(rng.randrange(1, 60)))
    if kind == 1:
        return listed * rng.randrange(1, 400)
    if kind == 2:
        return listed.replace(" ", rng.choice(["\x00", "\t", "\u00a0", "  ", "\n", "\u202e"]))
    if kind == 3:
        return listed[: rng.randrange(len(listed) + 1)]
    if kind == 4:
        return "x" * 10_000
    if kind == 5:
        return listed + rng.choice([" 1", ".", "\u200b", " from", "\ud800"])
    if kind == 6:
        return listed.title()
    if kind == 7:
        return f"take {rng.choice(engine.game.objects)} from {rng.choice(engine.game.receptacles)}"
    return listed


def test_a_hundred_thousand_hostile_commands_do_no_harm() -> None:
    rng = random.Random(11)
    engine = Engine(compact.generate(compact.make_id("train", 1)))
    sizes = []
    tracemalloc.start()
    try:
        for number in range(100_000):
            state = engine.state
            command = hostile(engine, rng)
            reply = engine.act(command)
            if not reply.valid:
                assert engine.state is state and reply.text == NOTHING_HAPPENS
            if number % 20_000 == 9_999:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert max(sizes) - sizes[0] < 200_000, sizes


RATES: list[tuple[Goal, tuple[tuple[str, float], ...]]] = [
    (
        Goal("heat", "apple", "sidetable"),
        (
            ("go to countertop 1", 0.0),
            ("take apple 1 from countertop 1", 0.0),
            ("go to microwave 1", 0.0),
            ("heat apple 1 with microwave 1", 1 / 3),
            ("go to sidetable 1", 1 / 3),
            ("move apple 1 to sidetable 1", 1.0),
        ),
    ),
    (
        Goal("two", "apple", "sidetable"),
        (
            ("go to countertop 1", 0.0),
            ("take apple 1 from countertop 1", 0.0),
            ("go to sidetable 1", 0.0),
            ("move apple 1 to sidetable 1", 0.5),
            ("go to fridge 1", 0.5),
            ("open fridge 1", 0.5),
            ("take apple 2 from fridge 1", 0.5),
            ("go to sidetable 1", 0.5),
            ("move apple 2 to sidetable 1", 1.0),
        ),
    ),
    (
        Goal("look", "book", "desklamp"),
        (
            ("go to desk 1", 0.0),
            ("use desklamp 1", 0.5),
            ("go to sidetable 1", 0.0),
            ("take book 1 from sidetable 1", 0.5),
            ("go to desk 1", 1.0),
        ),
    ),
    (
        Goal("simple", "saltshaker", "drawer"),
        (
            ("go to cabinet 1", 0.0),
            ("open cabinet 1", 0.0),
            ("take saltshaker 1 from cabinet 1", 0.0),
            ("move saltshaker 1 to drawer 1", 1.0),
        ),
    ),
]


@pytest.mark.parametrize(("goal", "steps"), RATES, ids=lambda value: value.kind if isinstance(value, Goal) else "")
def test_goal_conditions_are_counted_as_in_alfred(goal: Goal, steps: tuple[tuple[str, float], ...]) -> None:
    engine = Engine(quirk_game(goal))
    for command, expected in steps:
        play(engine, command)
        rate, flags = condition_rate(engine.game, engine.state)
        assert rate == pytest.approx(expected), command
        assert rate == sum(flags.values()) / len(flags) and engine.won == (rate == 1.0)


#: The grammar's rules for ``examine`` in their order; the first one whose facts all hold speaks. Its rule for what is
#: off never does: TextWorld records that something is not toggled only when a command ended it, and none does.
EXAMINE = (
    ("clean hot sliced", "This is a hot and clean sliced apple 1."),
    ("clean cool sliced", "This is a cool and clean sliced apple 1."),
    ("clean sliced", "This is a clean sliced apple 1."),
    ("hot sliced", "This is a hot sliced apple 1."),
    ("cool sliced", "This is a cool sliced apple 1."),
    ("clean hot", "This is a hot and clean apple 1."),
    ("clean cool", "This is a cool and clean apple 1."),
    ("hot", "This is a hot apple 1."),
    ("clean", "This is a clean apple 1."),
    ("cool", "This is a cold apple 1."),
    ("toggleable toggled", "This apple 1 is on."),
    ("sliceable sliced", "This is a sliced apple 1."),
    ("", "There's nothing special about apple 1."),
)


def test_examine_follows_the_grammar_for_every_combination_of_facts() -> None:
    game = quirk_game(Goal("cool", "apple", "cabinet"))
    bit = 1 << game.objects.index("apple 1")
    of_state, of_game = ("clean", "hot", "cool", "sliced", "toggled"), ("toggleable", "sliceable")
    for chosen in itertools.product((False, True), repeat=7):
        facts = {name for name, holds in zip((*of_state, *of_game), chosen, strict=True) if holds}
        masks = {name: bit if name in facts else 0 for name in (*of_state, *of_game)}
        mutated = dataclasses.replace(game, **{name: masks[name] for name in of_game})
        state = game.start._replace(**{name: masks[name] for name in of_state})
        expected = next(text for needed, text in EXAMINE if set(needed.split()) <= facts)
        assert object_text(mutated, state, game.objects.index("apple 1"), Quirks()) == expected, facts
