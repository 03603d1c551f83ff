"""A hand-made kitchen in which every odd fact of the game occurs, and scripts that visit them."""

from __future__ import annotations

from seed_envs.alfworld.game import Game, compile_game
from seed_envs.alfworld.generator.builder import Receptacle, Thing, build_problem
from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.pddl import Problem

RECEPTACLES = (
    Receptacle("cabinet", 0, True),
    Receptacle("cabinet", 0, True),
    Receptacle("coffeemachine", 1, False),
    Receptacle("countertop", 1, False),
    Receptacle("desk", 2, False),
    Receptacle("drawer", 0, False),
    Receptacle("fridge", 3, True),
    Receptacle("microwave", 4, True),
    Receptacle("sidetable", 5, False),
    Receptacle("sinkbasin", 6, False),
    Receptacle("stoveburner", 7, False),
    Receptacle("stoveburner", 7, False),
)
"""Two cabinets and a drawer share a place, so do coffee machine and counter top, and the two burners."""

CABINET_2, CABINET_1, COFFEE, COUNTER, DESK, DRAWER, FRIDGE, MICROWAVE, SIDETABLE, SINK, BURNER_2, BURNER_1 = range(12)

THINGS = (
    Thing("apple", (FRIDGE,)),
    Thing("apple", (COUNTER,)),
    Thing("book", (SIDETABLE,)),
    Thing("bread", (COUNTER,)),
    Thing("butterknife", (DRAWER,)),
    Thing("desklamp", (DESK,)),
    Thing("egg", (CABINET_2, COUNTER)),
    Thing("floorlamp", ()),
    Thing("houseplant", (COUNTER,)),
    Thing("knife", (COUNTER,)),
    Thing("mug", (COFFEE, COUNTER)),
    Thing("mug", (CABINET_1,)),
    Thing("pan", (BURNER_2, BURNER_1)),
    Thing("papertowelroll", (COUNTER,)),
    Thing("plate", (COUNTER,)),
    Thing("saltshaker", (CABINET_1,)),
    Thing("spoon", (COUNTER,), 14),
)

SESSIONS: dict[str, tuple[Goal, tuple[str, ...]]] = {
    "ghost_win": (
        Goal("heat", "mug", "coffeemachine"),
        (
            "look",
            "inventory",
            "help",
            "go to countertop 1",
            "look",
            "go to coffeemachine 1",
            "examine coffeemachine 1",
            "take mug 2 from countertop 1",
            "examine mug 2",
            "look",
            "go to microwave 1",
            "examine mug 2",
            "open microwave 1",
            "close microwave 1",
            "heat mug 2 with microwave 1",
        ),
    ),
    "all_verbs": (
        Goal("cool", "bread", "countertop"),
        (
            "take apple 1 from countertop 1",
            "go to countertop 1",
            "take knife 1 from countertop 1",
            "slice apple 1 with knife 1",
            "slice apple 2 with knife 1",
            "slice bread 1 with knife 1",
            "examine knife 1",
            "move knife 1 to countertop 1",
            "look",
            "take bread 1 from countertop 1",
            "examine bread 1",
            "inventory",
            "go to microwave 1",
            "heat bread 1 with microwave 1",
            "examine bread 1",
            "clean bread 1 with sinkbasin 1",
            "go to fridge 1",
            "cool bread 1 with fridge 1",
            "examine bread 1",
            "open fridge 1",
            "open fridge 1",
            "move bread 1 to fridge 1",
            "take apple 2 from fridge 1",
            "examine apple 2",
            "close fridge 1",
            "go to sinkbasin 1",
            "clean apple 2 with sinkbasin 1",
            "examine apple 2",
            "go to microwave 1",
            "heat apple 2 with microwave 1",
            "examine apple 2",
            "go to fridge 1",
            "cool apple 2 with fridge 1",
            "examine apple 2",
            "Go to fridge 1",
            "  look  ",
            "help",
            "use floorlamp 1",
            "",
        ),
    ),
    "shared_places": (
        Goal("two", "mug", "cabinet"),
        (
            "go to drawer 1",
            "look",
            "open cabinet 1",
            "go to cabinet 1",
            "examine cabinet 1",
            "take mug 1 from cabinet 1",
            "look",
            "open cabinet 2",
            "move mug 1 to cabinet 2",
            "look",
            "take egg 1 from cabinet 2",
            "look",
            "move egg 1 to cabinet 2",
            "move egg 1 to drawer 1",
            "close cabinet 1",
            "look",
            "examine cabinet 2",
            "take butterknife 1 from drawer 1",
            "move butterknife 1 to drawer 1",
            "look",
            "go to stoveburner 1",
            "take pan 1 from stoveburner 1",
            "examine pan 1",
            "examine stoveburner 2",
            "look",
            "move pan 1 to stoveburner 2",
            "examine stoveburner 2",
            "look",
            "take pan 1 from stoveburner 2",
            "look",
            "go to countertop 1",
            "take mug 2 from coffeemachine 1",
        ),
    ),
    "lamp": (
        Goal("look", "book", "desklamp"),
        (
            "use desklamp 1",
            "go to desk 1",
            "use desklamp 1",
            "use desklamp 1",
            "examine desklamp 1",
            "take desklamp 1 from desk 1",
            "go to sidetable 1",
            "take book 1 from sidetable 1",
            "move book 1 to sidetable 1",
            "take book 1 from sidetable 1",
            "go to desk 1",
        ),
    ),
    "dead_end": (
        Goal("simple", "saltshaker", "drawer"),
        (
            "go to countertop 1",
            "take houseplant 1 from countertop 1",
            "take papertowelroll 1 from countertop 1",
            "move papertowelroll 1 to countertop 1",
            "inventory",
            "examine papertowelroll 1",
            "take plate 1 from countertop 1",
            "go to cabinet 1",
            "open cabinet 1",
            "take saltshaker 1 from cabinet 1",
        ),
    ),
    "vessels": (
        Goal("clean", "plate", "cabinet"),
        (
            "go to countertop 1",
            "take spoon 1 from countertop 1",
            "examine spoon 1",
            "move spoon 1 to countertop 1",
            "take plate 1 from countertop 1",
            "examine plate 1",
            "go to microwave 1",
            "heat plate 1 with microwave 1",
            "examine plate 1",
            "go to sinkbasin 1",
            "clean plate 1 with sinkbasin 1",
            "examine plate 1",
            "go to cabinet 2",
            "open cabinet 2",
            "move plate 1 to cabinet 2",
        ),
    ),
}
"""Name -> goal and commands (refused ones included)."""


def quirk_problem(goal: Goal) -> Problem:
    """The kitchen with a goal; the apple in the fridge is cool from the start."""
    problem = build_problem(RECEPTACLES, THINGS, goal)
    problem.flags["iscool"].add("apple_bar_000")
    return problem


def quirk_game(goal: Goal) -> Game:
    """The kitchen, compiled."""
    return compile_game(quirk_problem(goal), game_id=f"quirk/{goal.kind}", sentence=goal.sentence())
