"""ALFWorld beside TextWorld on mutated games: a differential fuzzer whose differences come out as small as they get.

Facts of official and of generated games are changed (:mod:`.fuzzing.mutations`) until they hold what no official game
does, both engines play the same text, and feedback, admissible commands, won, lost and score are compared after every
command. Game ``n`` depends on ``n`` alone. Needs the official games and the extra ``alfworld``.
"""

from __future__ import annotations

import numpy as np

from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.pddl import Problem, read_problem
from seed_envs.alfworld.sources import TaskSource
from seed_envs.alfworld.textworld_engine import TextWorldFailed, TextWorldProcess
from seed_envs.data import data_dir
from seed_envs.errors import DataInvalid

from .fuzzing.cases import Case, Difference
from .fuzzing.mutations import mutate, part
from .fuzzing.shrinking import facts_of, shrink
from .rows import Options, ParityRow
from .textgames import GAMES_A_PROCESS, ORIGINAL, pairs

GAMES = 20
STEPS = 40
MOST_MUTATIONS = 8
_SEED = 13


def compare(options: Options) -> list[ParityRow]:
    """One row over ``episodes`` mutated games.

    Raises:
        DataMissing: Without the official games.
        DependencyMissing: Without the extra ``alfworld``.
    """
    row = ParityRow("mutated games", ORIGINAL)
    source, number = TaskSource(data_dir("alfworld", variable="ALFWORLD_DATA")), 0
    while row.episodes < (options.episodes or GAMES):
        process = TextWorldProcess(fast=True)
        last = number + GAMES_A_PROCESS
        while number < last and row.episodes < (options.episodes or GAMES):
            play(row, number, source, process)
            number += 1
        process.close()
    return [row]


def play(row: ParityRow, number: int, source: TaskSource, process: TextWorldProcess) -> None:
    """Play one mutated game until the engines differ; a difference is shrunk before it is noted.

    A goal that nothing can ever meet is not comparable: the original cannot load such a game.
    """
    name, problem, case = draw(number, source)
    commands: list[str] = []
    try:
        for command, ours, theirs in case.explore(process, STEPS, number):
            commands += [] if command is None else [command]
            fields = pairs(ours, theirs)
            if any(mine != other for mine, other in fields.values()):
                found = Difference(tuple(commands), fields)
                small, found = shrink(problem, found, case.document, process)
                row.check(describe(name, small, found), found.fields)
                break
            row.check(name, fields)
    except DataInvalid as refusal:
        row.check(f"{name} refused ({refusal})", {"playable": (False, not case.out_of_reach(process))})
        return
    except TextWorldFailed:
        if not case.out_of_reach(process):
            raise
        return
    row.episodes, row.steps = row.episodes + 1, row.steps + len(commands)


def draw(number: int, source: TaskSource) -> tuple[str, Problem, Case]:
    """The ``number``-th mutated game: name, facts, and both engines' text.

    Every other game starts from an official one, the others from the two generators in turn; of most rooms a part is
    taken.
    """
    rng = np.random.default_rng(np.random.SeedSequence(entropy=_SEED, spawn_key=(number,)))
    pick = int(rng.integers(1 << 30))
    library = source.library()
    if number % 2 == 0:
        task_id = library.ids[pick % len(library.ids)]
    elif number % 4 == 1:
        task_id = compact.make_id("train", pick)
    else:
        task_id = rooms.make_id("train", pick, rooms.Knobs(kinds=6, copies=2, receptacles=12))
    document = source.document(task_id)
    problem = read_problem(document["pddl_problem"])
    if number % 8:
        problem = part(problem, rng)
    problem = mutate(problem, rng, 1 + int(rng.integers(MOST_MUTATIONS)))
    return f"game {number} ({task_id})", problem, Case(problem, document, source.game(task_id).walkthrough)


def describe(name: str, problem: Problem, found: Difference) -> str:
    """A shrunk difference, complete enough to be played again."""
    facts = ", ".join(f"{field} {value}" for field, value in facts_of(problem))
    return f"{name}, commands {list(found.commands)}, goal {tuple(problem.goal)}, start {problem.start}, facts {facts}"
