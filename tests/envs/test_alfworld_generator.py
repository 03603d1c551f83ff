"""Generated games: solvable, split as promised, the same everywhere; the compact preset's prior and vocabulary."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from seed_envs.alfworld.annotator import MAX_TERSE_WORDS
from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.game import Game
from seed_envs.alfworld.generator import compact, rooms, tables
from seed_envs.alfworld.generator.draw import Draw
from seed_envs.alfworld.generator.scene_builder import derive, dump, scene_number
from seed_envs.alfworld.goals import TASK_TYPES
from seed_envs.alfworld.library import open_source
from seed_envs.alfworld.pddl import Problem, read_problem
from seed_envs.errors import NoTaskMatches, UnknownOption
from seed_envs.profiles import GROWING


def wins_exactly(game: Game) -> bool:
    engine = Engine(game)
    seen = [engine.won]
    for command in game.walkthrough:
        assert engine.act(command).valid, (game.game_id, command)
        seen.append(engine.won)
    return seen == [False] * len(game.walkthrough) + [True]


@pytest.mark.parametrize("part", rooms.PARTS)
def test_generated_games_start_unsolved_and_are_solvable(part: str) -> None:
    games = [rooms.generate(rooms.make_id(part, seed)) for seed in range(120)]
    assert all(wins_exactly(game) for game in games)
    kinds = Counter(game.goal.kind for game in games)
    assert set(kinds) == set(TASK_TYPES) and min(kinds.values()) >= 8
    assert {game.sentence for game in games} & {game.goal.sentence(0) for game in games}
    assert {game.sentence for game in games} & {game.goal.sentence(1) for game in games}


def test_placement_goals_are_not_partly_done_at_the_start() -> None:
    for seed in range(60):
        for family in ("pick_and_place_simple", "pick_two_obj_and_place"):
            game = rooms.generate(rooms.make_id("train", seed, rooms.Knobs(task_type=family)))
            inside = [item for r in game.destinations for item in game.start.contents[r]]
            assert not any(game.targets >> item & 1 for item in inside)


def test_parts_are_split_by_room() -> None:
    train, seen, unseen = (set(rooms.scenes_of(part)) for part in rooms.PARTS)
    assert train == seen and not train & unseen
    assert len(train) == 96 and len(unseen) == 12
    assert Counter(rooms.rooms()[scene].kind for scene in unseen) == {
        "kitchen": 3,
        "living": 3,
        "bedroom": 3,
        "bathroom": 3,
    }


def test_knobs_are_obeyed_and_part_of_the_id() -> None:
    knobs = rooms.Knobs.checked({"scene": 7, "kinds": 5, "copies": 1, "receptacles": 12})
    task_id = rooms.make_id("train", 3, knobs)
    assert task_id == "procedural/train/3;scene=7;kinds=5;copies=1;receptacles=12"
    assert rooms.parse_id(task_id) == ("train", 3, knobs)
    game = rooms.generate(task_id)
    assert len(game.receptacles) == 12
    movable = Counter(kind for kind in game.object_types if kind in tables.PICKUPABLE)
    assert len(movable) <= 6
    assert all(count == 1 or kind == game.goal.object_type for kind, count in movable.items())
    for values in ({"copies": 0}, {"copies": 5}, {"kinds": "all"}, {"receptacles": True}, {"task_type": "dance"}):
        with pytest.raises(UnknownOption):
            rooms.Knobs.checked(values)
    with pytest.raises(NoTaskMatches, match="405"):
        rooms.generate(rooms.make_id("train", 0, rooms.Knobs(scene=405, task_type="pick_heat_then_place_in_recep")))


def test_an_id_is_the_same_game_for_ever() -> None:
    """Recorded values: a change of the generator has to be noticed, because ids are published in manifests."""
    game = rooms.generate("procedural/train/17")
    assert (game.sentence, len(game.receptacles), len(game.objects), game.walkthrough[1]) == GOLDEN_ROOM
    small = compact.generate("compact/test/5")
    assert (small.sentence, small.walkthrough) == GOLDEN_COMPACT


GOLDEN_ROOM = ("Your task is to: cool some mug and put it in microwave.", 20, 54, "take mug 1 from coffeemachine 1")
GOLDEN_COMPACT = (
    "Your task is to: put two book in sidetable.",
    (
        "go to countertop 1",
        "take book 1 from countertop 1",
        "go to sidetable 1",
        "move book 1 to sidetable 1",
        "go to dresser 1",
        "take book 2 from dresser 1",
        "go to sidetable 1",
        "move book 2 to sidetable 1",
    ),
)


def test_draws_are_uniform_and_named() -> None:
    draw = Draw("a")
    counts = Counter(draw.below(6) for _ in range(6_000))
    assert sorted(counts) == list(range(6)) and min(counts.values()) > 850
    weighted = Counter(draw.weighted("abc", (6, 3, 1)) for _ in range(6_000))
    assert 3_400 < weighted["a"] < 3_800 and 450 < weighted["c"] < 750
    assert sorted(draw.shuffled(range(9))) == list(range(9))
    assert [Draw("x").unit(), Draw("y").unit()] == [Draw("x").unit(), Draw("y").unit()]
    assert Draw("x").unit() != Draw("y").unit()


def facts(data_dir: Path) -> list[tuple[int, Problem]]:
    library = open_source(data_dir / "alfworld")
    return [(scene_number(task_id), read_problem(library.document(task_id)["pddl_problem"])) for task_id in library.ids]


def test_tables_and_room_templates_are_those_of_the_official_games(data_dir: Path) -> None:
    problems = facts(data_dir)
    shipped = Path(rooms.__file__).with_name("scenes.json").read_text(encoding="utf-8")
    assert dump(derive(problems)) == shipped
    for _, problem in problems[::25]:
        here, places = set(problem.object_types.values()), set(problem.receptacle_types.values())
        expected = {(place, thing) for place in places for thing in tables.CAN_CONTAIN[place] & here}
        assert {pair for pair in problem.can_contain if pair[0] in places and pair[1] in here} == expected
        for flag, members in (
            ("cleanable", tables.CLEANABLE),
            ("heatable", tables.HEATABLE),
            ("coolable", tables.COOLABLE),
            ("sliceable", tables.SLICEABLE),
            ("toggleable", tables.TOGGLEABLE),
            ("isreceptacleobject", tables.VESSELS),
        ):
            assert {name for name, kind in problem.object_types.items() if kind in members} == problem.flags[flag]


# -- compact -----------------------------------------------------------------------------------------------------------


def test_compact_panels_share_no_goal_and_hold_every_family() -> None:
    goals = compact.goals_by_part()
    assert not set(goals["train"]) & set(goals["validation"])
    assert not set(goals["train"]) & set(goals["test"])
    assert not set(goals["validation"]) & set(goals["test"])
    for part, size in compact.PARTS.items():
        games = [compact.generate(task_id) for task_id in compact.panel(part)]
        assert len(games) == size
        assert {game.goal for game in games} <= set(goals[part])
        assert Counter(game.goal.kind for game in games) == dict.fromkeys(TASK_TYPES, size // 6)
        assert all(wins_exactly(game) for game in games)
        assert max(len(game.walkthrough) for game in games) <= 10


def test_compact_things_lie_in_their_usual_places() -> None:
    first = second = other = 0
    for seed in range(600):
        game = compact.generate(compact.make_id("train", seed))
        for receptacle, row in enumerate(game.start.contents):
            for item in row:
                kind = game.object_types[item]
                if kind in compact.USUAL and kind != game.goal.object_type:
                    place = game.receptacle_types[receptacle]
                    first += place == compact.USUAL[kind][0]
                    second += place == compact.USUAL[kind][1]
                    other += place not in compact.USUAL[kind]
    total = first + second + other
    assert total == 600 * compact.DISTRACTORS
    assert abs(first / total - 0.60) < 0.03 and abs(second / total - 0.25) < 0.03 and abs(other / total - 0.15) < 0.03


def test_usual_places_take_their_things() -> None:
    for kind, places in compact.USUAL.items():
        assert all(kind in tables.CAN_CONTAIN[place] and place in compact.RECEPTACLES for place in places)


def test_the_compact_vocabulary_is_closed_and_small() -> None:
    known = set(compact.vocabulary())
    assert len(known) < 130 and known == {word for word in known if word == word.lower()}
    rng = random.Random(0)
    seen: set[str] = set()
    for seed in range(150):
        engine = Engine(compact.generate(compact.make_id("test", seed)))
        seen |= set(compact.words(engine.reset()))
        for _ in range(25):
            seen |= {word for command in engine.admissible() for word in compact.words(command)}
            verbs = sorted({command.split(" ")[0] for command in engine.admissible()})
            verb = rng.choice(verbs)
            command = rng.choice([c for c in engine.admissible() if c.startswith(verb)])
            seen |= set(compact.words(engine.act(command).text))
    assert seen <= known, sorted(seen - known)
    assert MAX_TERSE_WORDS == 26 and GROWING.first == "{goal}{skill}\n{observation}"
