"""Facts that no official game holds and the rules still follow, as TextWorld does: what the fuzzer keeps an eye on."""

from __future__ import annotations

import pytest

from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.game import compile_game
from seed_envs.alfworld.generator import compact
from seed_envs.alfworld.pddl import Problem, read_problem, write_problem
from seed_envs.alfworld.sources import generated_problem
from seed_envs.errors import DataInvalid


def problem() -> Problem:
    return generated_problem(compact.make_id("train", 3))[0]


def engine_of(changed: Problem) -> Engine:
    return Engine(compile_game(read_problem(write_problem(changed, "odd")), game_id="odd"))


def test_a_thing_in_the_hand_at_the_start_is_held_and_can_be_put_down() -> None:
    changed = problem()
    changed.held = next(o for o, kind in sorted(changed.object_types.items()) if ("desk", kind) in changed.can_contain)
    changed.inside = {pair for pair in changed.inside if pair[0] != changed.held}
    engine = engine_of(changed)
    name = engine.game.objects[engine.state.held]
    assert engine.act("inventory").text == f"You are carrying: a {name}."
    engine.act("go to desk 1")
    assert not any(command.startswith("take ") for command in engine.admissible())
    assert engine.act(f"move {name} to desk 1").text == f"You move the {name} to the desk 1."


@pytest.mark.parametrize("more", ["(holds agent1 pen_bar_9)", "(holdsAny agent1)"])
def test_hands_that_make_no_sense_are_refused(more: str) -> None:
    changed = problem()
    changed.held = sorted(changed.object_types)[0] if "pen" in more else ""
    text = write_problem(changed, "odd").replace("(:init", f"(:init\n    {more}")
    with pytest.raises(DataInvalid, match="at most one \\(holds agent object\\), and \\(holdsAny agent\\)"):
        read_problem(text)


def test_a_vessel_is_not_told_to_be_in_itself() -> None:
    changed = problem()
    changed.held = sorted(changed.object_types)[0]
    changed.flags["isreceptacleobject"].add(changed.held)
    changed.inner |= {(changed.held, changed.held), (sorted(changed.object_types)[1], changed.held)}
    engine = engine_of(changed)
    name, other = engine.game.objects[engine.state.held], engine.game.objects[1]
    assert engine.act(f"examine {name}").text == f"This is a normal {name}. In it, you see a {other}."


def test_a_thing_without_type_or_receptacle_is_sliced_where_it_is_recorded() -> None:
    changed = problem()
    knife = changed.held = sorted(changed.object_types)[0]
    changed.object_types[knife] = "knife"
    changed.flags["sliceable"].add("bread_bar_ghost")
    desk = next(r for r, kind in changed.receptacle_types.items() if kind == "desk")
    changed.object_locations.add(("bread_bar_ghost", changed.receptacle_locations[desk]))
    engine = engine_of(changed)
    name = engine.game.objects[engine.state.held]
    assert not any(command.startswith("slice") for command in engine.admissible())
    engine.act("go to desk 1")
    assert f"slice bread 1 with {name}" in engine.admissible()
    assert engine.act(f"slice bread 1 with {name}").text == f"You sliced the bread 1 with the {name}."
