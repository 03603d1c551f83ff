"""Prompts, hindsight skills, the tolerant reader and the explanations."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import partial

import pytest
from alfworld_quirk_room import quirk_game

from seed_envs import EnvPool, TaskSpec, Trajectory, get_profile, make_agent_env
from seed_envs.alfworld.actions import Rules
from seed_envs.alfworld.annotator import MAX_TERSE_WORDS, annotate, annotate_terse, read_terse, study
from seed_envs.alfworld.commands import normalise
from seed_envs.alfworld.demos import demonstrations, expert_policy
from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.explain import explain
from seed_envs.alfworld.explorer import Explorer, Habits, Hint
from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.goals import Goal
from seed_envs.alfworld.quirks import Quirks
from seed_envs.rollout import Reply, Request, rollout

ENV_ID = "seed/ALFWorld-v0"

# -- prompts -----------------------------------------------------------------------------------------------------------


def test_the_paper_prompt_shows_task_history_and_quoted_actions() -> None:
    env = make_agent_env(ENV_ID, "paper")
    prompt, _ = env.reset(options={"task_id": "compact/train/0"})
    goal = "Your task is to: "
    assert prompt.count(goal) == 1 and "'go to desk 1'\n'go to diningtable 1'" in prompt and "'help'" not in prompt
    for _ in range(7):
        for place in ("Desk 1", "shelf 1"):
            prompt, _, _, _, info = env.step(f"<think>search</think><action>Go to {place}</action>")
    assert info["action_valid"] and prompt.count(goal) == 1
    shown = [int(number) for number in re.findall(r"\[Observation (\d+):", prompt)]
    assert shown == [10, 11, 12, 13, 14] and "taken 14 step(s)" in prompt and "now step 15" in prompt


def test_the_paper_profile_scales_the_win_and_stops_after_thirty_steps() -> None:
    env = make_agent_env(ENV_ID, "paper")
    env.reset(options={"task_id": "compact/train/0"})
    for number in range(30):
        _, reward, terminated, truncated, _ = env.step("<think>.</think><action>look</action>")
        assert (reward, terminated, truncated) == (0.0, False, number == 29)
    env.reset(options={"task_id": "compact/train/0"})
    rewards: list[float] = []
    while not rewards or rewards[-1] == 0:
        command = env.unwrapped.oracle_action()  # type: ignore[attr-defined]
        rewards.append(float(env.step(f"<think>.</think><action>{command}</action>")[1]))
    assert rewards[-1] == 10.0


@pytest.mark.parametrize(
    ("reply", "sent", "valid"),
    [
        ("<think>a</think><action>go to desk 1</action>", "go to desk 1", True),
        ("<think>a</think><action>Go To Desk 1</action><action>look</action>", "go to desk 1", True),
        ("<action>go to desk 1</action>", "go to desk 1", False),
        ("<think>中</think><action>go to desk 1</action>", "go to desk 1", False),
        ("I would rather like to walk over to the desk", " like to walk over to the desk", False),
    ],
)
def test_replies_are_read_as_in_the_paper(reply: str, sent: str, valid: bool) -> None:
    parsed = get_profile(ENV_ID, "paper").action_format.parse(reply)
    assert (parsed.action, parsed.valid) == (sent, valid)


@pytest.mark.parametrize("profile", ["paper", "verl-agent", "compact", "terse"])
def test_a_skill_has_one_place_right_after_the_task(profile: str) -> None:
    env = make_agent_env(ENV_ID, profile)
    template = get_profile(ENV_ID, profile).template
    _, info = env.reset(options={"task_id": "compact/train/0"})
    with_skill = template.render(info["turn"], skill="go to shelf 1 first")
    assert with_skill.count("go to shelf 1 first") == 1
    assert with_skill.index("Your task is to") < with_skill.index("go to shelf 1 first")
    assert with_skill.replace(template.skill_block.format(skill="go to shelf 1 first"), "") == template.render(
        info["turn"]
    )


def test_the_compact_profile_is_the_bare_game() -> None:
    env = make_agent_env(ENV_ID, "compact")
    prompt, info = env.reset(options={"task_id": "compact/train/0"})
    goal, room = prompt.split("\n")
    assert goal == info["goal"] and room.startswith("You are in the middle of a room.")
    assert env.step("go to fridge 1")[0] == "You arrive at fridge 1. The fridge 1 is closed."


# -- skills ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool() -> Iterator[EnvPool]:
    with EnvPool(partial(make_agent_env, ENV_ID, "compact", max_steps=12), 8) as made:
        yield made


def play(pool: EnvPool, habits: Habits, ids: list[str], hints: dict[str, Hint] | None = None) -> list[Trajectory]:
    players: dict[int, Explorer] = {}

    def policy(requests: list[Request]) -> list[Reply]:
        replies = []
        for request in requests:
            task_id = request.task.task_id or ""
            if request.turn == 0:
                hint = (hints or {}).get(task_id, Hint())
                players[request.episode] = Explorer(request.context.goal, habits, hint, name=task_id)
            listed = list(request.context.admissible or ())
            replies.append(Reply(players[request.episode].act(request.context.observation, listed)))
        return replies

    tasks = [TaskSpec(task_id=task_id) for task_id in ids]
    return rollout(pool, policy, tasks, env_id=ENV_ID, profile=get_profile(ENV_ID, "compact"))  # type: ignore[arg-type]


FUMBLING = Habits(prior="none", noise=0.12, skip_station=0.3, confuse_station=0.2, overlook=0.15, wander=0.3)


@pytest.fixture(scope="module")
def episodes(pool: EnvPool) -> list[Trajectory]:
    played = play(pool, FUMBLING, list(compact.panel("validation")[:96]))
    assert 5 < sum(trajectory.success for trajectory in played) < 60
    return played


def texts_of(trajectory: Trajectory) -> str:
    return " ".join([trajectory.goal, *(step.observation for step in trajectory.steps), trajectory.final_observation])


def test_skills_name_only_what_the_episode_showed(episodes: list[Trajectory]) -> None:
    for trajectory in episodes:
        shown = texts_of(trajectory)
        for skill in (annotate(trajectory), annotate_terse(trajectory)):
            assert len(skill.split()) >= 5
            for name in re.findall(r"[a-z]+ [0-9]+(?= |,|\.|$)", skill.replace(" commands", "")):
                kind = name.split(" ")[0]
                assert name in shown or kind in {"in", "search"}, (name, skill)


def test_terse_skills_keep_to_vocabulary_and_length(episodes: list[Trajectory]) -> None:
    known = set(compact.vocabulary())
    for trajectory in episodes:
        words = [word for word in compact.words(annotate_terse(trajectory)) if word not in ",."]
        assert set(words) <= known and 4 <= len(words) <= MAX_TERSE_WORDS


def test_following_the_own_skill_helps(pool: EnvPool, episodes: list[Trajectory]) -> None:
    hints = {trajectory.task_id: read_terse(annotate_terse(trajectory)) for trajectory in episodes}
    ids = [trajectory.task_id for trajectory in episodes]
    ignorant = Habits(prior="none")
    without = sum(trajectory.success for trajectory in play(pool, ignorant, ids))
    following = sum(trajectory.success for trajectory in play(pool, ignorant, ids, hints))
    assert following > without + len(ids) * 0.3


def finished(task_id: str, commands: list[str]) -> Trajectory:
    """The trajectory of given commands (then ``look`` up to the limit)."""
    script = iter(commands)

    def policy(requests: list[Request]) -> list[Reply]:
        return [Reply(next(script, "look")) for _ in requests]

    with EnvPool(partial(make_agent_env, ENV_ID, "compact", max_steps=10), 1) as one:
        tasks = [TaskSpec(task_id=task_id)]
        return rollout(one, policy, tasks, env_id=ENV_ID, profile=get_profile(ENV_ID, "compact"))[0]  # type: ignore[arg-type]


def heated() -> tuple[str, list[str]]:
    """A heating task with its shortest plan."""
    game = next(g for g in map(compact.generate, compact.panel("train")) if g.goal.kind == "heat")
    return game.game_id, list(game.walkthrough)


def test_a_success_becomes_an_ordered_workflow() -> None:
    task_id, plan = heated()
    trajectory = finished(task_id, ["go to sinkbasin 1", *plan])
    assert trajectory.success
    skill = annotate_terse(trajectory)
    source, thing = plan[0].removeprefix("go to "), next(c for c in plan if c.startswith("take")).split(" from ")[0]
    assert skill.startswith(f"go to {source}, {thing}, heat it with microwave 1, move it to ")
    assert "sinkbasin" not in skill and "This order of actions works" in annotate(trajectory)


def test_a_forgotten_treatment_is_named() -> None:
    task_id, plan = heated()
    skipped = [c for c in plan if not c.startswith("heat") and c != "go to microwave 1"]
    trajectory = finished(task_id, skipped)
    (findings,) = study(trajectory)
    assert not trajectory.success and findings.skipped
    assert "had not been treated: heat it first" in annotate(trajectory)
    assert "heat it with microwave 1" in annotate_terse(trajectory)


def test_a_wrong_treatment_is_named() -> None:
    task_id, plan = heated()
    wrong = [c.replace("heat ", "cool ").replace("microwave", "fridge") for c in plan]
    trajectory = finished(task_id, wrong)
    if any(kind == "cool" for kind, _ in study(trajectory)[0].mistreated):
        assert "It was wrong to cool" in annotate(trajectory)
    else:
        assert "had not been treated" in annotate(trajectory)


def test_a_vain_search_is_told_with_what_is_left() -> None:
    task_id, plan = heated()
    game = compact.generate(task_id)
    empty = [
        name
        for name, row in zip(game.receptacles, game.start.contents, strict=True)
        if not any(game.targets >> o & 1 for o in row) and name not in ("fridge 1", "microwave 1", "drawer 1")
    ][:4]
    trajectory = finished(task_id, [f"go to {name}" for name in empty])
    skill = annotate(trajectory)
    assert f"There was no {game.goal.object_type} in {', '.join(empty)}." in skill
    assert "Search the places not yet looked into" in skill
    assert read_terse(annotate_terse(trajectory)).avoid == tuple(empty)
    assert plan[0] not in skill, "the true place was never seen"


def test_refused_commands_are_told() -> None:
    trajectory = finished(heated()[0], ["fly", "take moon 1 from sky 1", "jump"])
    assert "3 commands did nothing" in annotate(trajectory)


def test_a_task_in_free_words_is_retold() -> None:
    task_id, plan = heated()
    for commands in (["go to sinkbasin 1", *plan], plan[:2]):
        trajectory = dataclasses.replace(finished(task_id, commands), goal="Your task is to: bring me the blue thing.")
        skill, terse = annotate(trajectory), annotate_terse(trajectory)
        if trajectory.success:
            assert skill == f"This order of actions works: {', then '.join(plan)}. Do not search anywhere else."
            assert terse.startswith(", ".join(plan[:2]))
        else:
            assert "The task was not met. It was seen that there is" in skill and "not yet looked into" in skill
            assert terse.startswith("search ")
    nothing = Trajectory(ENV_ID, "x", goal="Your task is to: bring me the blue thing.")
    assert annotate(nothing) == "The task was not met: visit more places, and open closed ones."
    assert annotate_terse(nothing) == "search each place"


def test_two_goals_are_told_one_after_the_other() -> None:
    task_id = rooms.make_id("train", 5, rooms.Knobs(goals=2, task_type="look_at_obj_in_light"))
    game = rooms.generate(task_id)
    trajectory = finished(task_id, list(game.walkthrough))
    assert trajectory.success
    skill = annotate(trajectory)
    placed, looked = game.goal.parts[1], game.goal.parts[0]
    assert 0 < skill.index(f"take {placed.object_type} ") < skill.index(f"take {looked.object_type} ")
    assert "use desklamp" in skill and "It was wrong" not in annotate(finished(task_id, list(game.walkthrough[:-1])))


def test_an_empty_episode_is_told() -> None:
    empty = Trajectory(ENV_ID, "x", goal="Your task is to: put a mug in shelf.")
    assert annotate(empty).startswith("No mug was found") and annotate_terse(empty).startswith("search each place")


def test_demonstrations_carry_the_prompts_of_training() -> None:
    ids = list(compact.panel("train")[:6])
    oracle = demonstrations(ids, expert="oracle")
    assert [trajectory.task_id for trajectory in oracle] == ids and all(t.success for t in oracle)
    step = oracle[0].steps[0]
    assert step.reply == f"<think>{step.reply.split('>')[1].split('<')[0]}</think>\n<action>{step.action}</action>"
    explorer = demonstrations(ids, expert="explorer", profile="compact", won_only=False)
    assert len(explorer) == 6 and explorer[0].steps[0].reply == explorer[0].steps[0].action
    assert callable(expert_policy(get_profile(ENV_ID, "compact"), "oracle"))


# -- tolerant reader and explanations ----------------------------------------------------------------------------------


@pytest.fixture
def engine() -> Engine:
    made = Engine(quirk_game(Goal("heat", "mug", "coffeemachine")))
    for command in ("go to countertop 1", "take mug 2 from countertop 1"):
        made.act(command)
    return made


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("look", "look"),
        ("Look Around.", "look"),
        ("INVENTORY", "inventory"),
        ("go to the fridge", "go to fridge 1"),
        ("walk to fridge 1", "go to fridge 1"),
        ("goto microwave", "go to microwave 1"),
        ("put mug 2 in/on countertop 1", "move mug 2 to countertop 1"),
        ("put the mug on the coffeemachine", "move mug 2 to coffeemachine 1"),
        ('"examine mug 2"', "examine mug 2"),
        ("go to cabinet", "go to cabinet"),
        ("take mug 2 from countertop 1", "take mug 2 from countertop 1"),
        ("dance", "dance"),
        ("", ""),
        ("go to fridge 1 and open it", "go to fridge 1 and open it"),
        ("put mug 2 in / on countertop 1", "move mug 2 to countertop 1"),
        ("put down the mug on the countertop", "move mug 2 to countertop 1"),
        ("put down mug 2", "put down mug 2"),
        ("Action: go to fridge 1", "go to fridge 1"),
        ("Action 3: **go to fridge 1**", "go to fridge 1"),
        ("**Go to the fridge 1.**", "go to fridge 1"),
        ("> inventory", "inventory"),
        ("pick up bread 1", "pick up bread 1"),
    ],
)
def test_the_tolerant_reader_finds_the_one_command_meant(engine: Engine, written: str, meant: str) -> None:
    assert normalise(written, engine.admissible()) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("pick up bread 1", "take bread 1 from countertop 1"),
        ("Action: pick the plate up", "take plate 1 from countertop 1"),
        ("pick up mug 2", "pick up mug 2"),  # it is recorded in two receptacles
        ("grab mug 2 from the countertop", "take mug 2 from countertop 1"),
        ("pick up", "pick up"),
    ],
)
def test_an_object_is_picked_up_without_naming_its_place(written: str, meant: str) -> None:
    engine = Engine(quirk_game(Goal("heat", "mug", "coffeemachine")))
    engine.act("go to countertop 1")
    assert normalise(written, engine.admissible()) == meant


def test_the_tolerant_reader_speaks_the_older_wording_and_leaves_long_text_alone() -> None:
    older = Engine(quirk_game(Goal("heat", "mug", "cabinet")), Rules(wording="put"))
    for command in ("go to countertop 1", "take mug 2 from countertop 1"):
        older.act(command)
    assert normalise("move mug 2 to countertop 1", older.admissible()) == "put mug 2 in/on countertop 1"
    assert normalise("look " * 5_000, older.admissible()) == "look " * 5_000


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("opne fridge 1", "There is no command that begins with 'opne'. Did you mean 'open'"),
        ("go fridge 1", "Expected: go to (receptacle)."),
        ("go to countertop 1", "You are already at the countertop 1."),
        ("go to fridge 7", "There is no 'fridge 7' to go to in this room."),
        ("open fridge 1", "The fridge 1 is not here; go to it first."),
        ("open countertop 1", "The countertop 1 has no door."),
        ("take bread 1 from countertop 1", "Your hands are full: you are carrying mug 2."),
        ("take bread 1", "Expected: take (something) from (something)."),
        ("move bread 1 to countertop 1", "You are not carrying 'bread 1'."),
        ("put mug 2 in/on countertop 1", "This game says: move (object) to (receptacle)."),
        ("heat mug 2 with countertop 1", "To heat something, use a microwave."),
        ("heat mug 2 with microwave 1", "The microwave 1 is not here; go to it first."),
        ("slice bread 1 with mug 2", "The mug 2 does not cut."),
        ("slice bread 1 with knife 1", "You are not carrying 'knife 1'."),
        ("examine bread 1", "Only the held object can be examined, and you are not carrying 'bread 1'."),
        ("use mug 2", "There is no 'mug 2' here that can be switched on."),
        ("look around", "The command is just 'look'."),
        ("x" * 900, "A command has a few words; this has 900 characters."),
    ],
)
def test_refusals_are_explained(engine: Engine, command: str, reason: str) -> None:
    assert not engine.act(command).valid
    assert explain(engine.game, engine.state, engine.rules, command).startswith(reason)


def test_explanations_do_not_tell_what_is_behind_doors(engine: Engine) -> None:
    engine.act("move mug 2 to countertop 1")
    engine.act("go to fridge 1")
    answers = {
        explain(engine.game, engine.state, engine.rules, f"take {thing} from fridge 1")
        for thing in ("apple 2", "apple 1", "unicorn 1")
    }
    assert answers == {"The fridge 1 is closed."}
    for form in ("examine {}", "use {}", "take {} from countertop 1", "move {} to fridge 1", "slice {} with knife 1"):
        told = {
            explain(engine.game, engine.state, engine.rules, form.format(thing)).replace(thing, "X")
            for thing in ("apple 2", "egg 1", "unicorn 1")
        }
        assert len(told) == 1, told


def test_every_refusal_of_every_rule_set_has_a_sentence() -> None:
    for rules in (Rules(), Rules(Quirks.resolve("fixed")), Rules(wording="put")):
        engine = Engine(quirk_game(Goal("cool", "apple", "cabinet")), rules)
        for move in ("look", "go to countertop 1", "take papertowelroll 1 from countertop 1"):
            engine.act(move)
            for thing in (*engine.game.objects, *engine.game.receptacles, "ghost 1"):
                for form in ("open {}", "use {}", "examine {}", "take {} from countertop 1", "move {} to countertop 1"):
                    command = form.format(thing)
                    if command not in engine.admissible():
                        assert explain(engine.game, engine.state, rules, command).rstrip("?").endswith((".", "'"))


def test_names_of_own_games_are_not_read_as_patterns() -> None:
    listed = ["go to shelf[ 1", "go to a+*a+*b 2", "look"]
    assert normalise("Go to the shelf[", listed) == "go to shelf[ 1"
    assert normalise("go to a+*a+*b", listed) == "go to a+*a+*b 2"
    assert normalise("go to " + "a" * 150, listed) == "go to " + "a" * 150
