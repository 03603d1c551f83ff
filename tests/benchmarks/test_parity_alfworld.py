"""The fuzzer beside TextWorld: mutated games agree, a planted fault is found and made small; and the certificate."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from seed_benchmarks.parity import alfworld, certificate
from seed_benchmarks.parity.fuzzing.cases import Case
from seed_benchmarks.parity.fuzzing.mutations import MUTATIONS, mutate, part
from seed_benchmarks.parity.fuzzing.shrinking import facts_of, minimise, shrink, with_facts
from seed_benchmarks.parity.rows import Options
from seed_envs.alfworld import texts
from seed_envs.alfworld.generator import compact
from seed_envs.alfworld.pddl import read_problem, write_problem
from seed_envs.alfworld.sources import TaskSource, generated_problem
from seed_envs.alfworld.textworld_engine import TextWorldProcess

needs_textworld = pytest.mark.skipif(
    importlib.util.find_spec("textworld") is None or importlib.util.find_spec("alfworld") is None,
    reason="TextWorld: textworld or alfworld is not installed",
)


@needs_textworld
def test_twenty_mutated_games_agree(data_dir: Path) -> None:
    (row,) = alfworld.compare(Options(episodes=20))
    assert row.undocumented == [] and row.differences == 0
    assert row.episodes == 20 and row.steps > 700 and row.comparisons == 5 * (row.steps + row.episodes)


@needs_textworld
def test_a_planted_fault_is_found_and_shrunk_to_what_it_needs(data_dir: Path, monkeypatch) -> None:
    monkeypatch.setattr(texts, "inventory_text", lambda game, state: "Nothing at all.")
    problem, game = generated_problem(compact.make_id("train", 0))
    model = TaskSource(data_dir / "alfworld").document(game.game_id)
    process = TextWorldProcess(fast=True)
    found = Case(problem, model).replay(process, ["look", *game.walkthrough[:2], "inventory", "help"])
    assert found is not None and found.commands[-1] == "inventory" and set(found.fields) == {"text"}
    small, found = shrink(problem, found, model, process)
    assert found.commands == ("inventory",) and found.fields["text"][0] == "Nothing at all."
    assert len(facts_of(small)) <= 8 < len(facts_of(problem))  # what the goal needs, without which nothing loads
    line = alfworld.describe("game", small, found)
    assert "commands ['inventory']" in line and all(str(value) in line for _, value in facts_of(small))
    process.close()


def test_every_mutation_leaves_facts_that_can_be_written_and_read() -> None:
    problem = generated_problem(compact.make_id("train", 3))[0]
    changed = 0
    for number, mutation in enumerate(MUTATIONS):
        mutated = mutate(problem, np.random.default_rng(number), 0)
        mutation(mutated, np.random.default_rng(number))
        changed += (
            facts_of(mutated) != facts_of(problem) or mutated.goal != problem.goal or mutated.start != problem.start
        )
        again = read_problem(write_problem(mutated, "mutated"))
        assert (facts_of(again), again.goal, again.held) == (facts_of(mutated), mutated.goal, mutated.held), mutation
    assert changed >= len(MUTATIONS) - 1


def test_mutations_depend_on_their_seed_alone() -> None:
    problem = generated_problem(compact.make_id("train", 3))[0]
    first, second, other = (
        facts_of(mutate(part(problem, rng), rng, 6)) for rng in map(np.random.default_rng, (1, 1, 2))
    )
    assert first == second != other


def test_shrinking_keeps_what_a_difference_needs() -> None:
    assert minimise(list(range(40)), lambda kept: {3, 31} <= set(kept)) == [3, 31]
    assert minimise([1], lambda kept: True) == []
    problem = generated_problem(compact.make_id("train", 3))[0]
    assert facts_of(with_facts(problem, facts_of(problem))) == facts_of(problem)
    gone = sorted(problem.receptacle_types)[0]
    without = with_facts(problem, [fact for fact in facts_of(problem) if fact[1][0] != gone])
    assert gone not in {receptacle for _, receptacle in without.inside} | set(without.receptacle_locations)


def test_the_certificate_holds_every_game_of_valid_seen_and_our_engine_gives_its_hashes(data_dir: Path) -> None:
    certified, games = certificate.read_certificate(certificate.FILE), certificate.open_games()
    assert {i for i in games.ids if i.startswith("valid_seen/")} <= set(certified)
    assert (
        len(certified) == json.loads(certificate.FILE.read_text())["count"]
        and certificate.FILE.stat().st_size < 400_000
    )
    ours = certificate.compare_ours(games, certified, sorted(certified)[::40])
    assert ours.undocumented == [] and ours.comparisons >= 3


@needs_textworld
def test_textworld_gives_the_hashes_too_and_a_changed_one_is_found(data_dir: Path) -> None:
    certified, games = certificate.read_certificate(certificate.FILE), certificate.open_games()
    some = [task_id for task_id in sorted(certified) if "-4" in task_id.split("/")[1]][:2]
    row = certificate.compare_theirs(games, certified, some)
    assert row.undocumented == [] and row.comparisons == 2
    wrong = certificate.compare_ours(games, {some[0]: "0" * 16}, some[:1])
    assert len(wrong.undocumented) == 1 and some[0] in wrong.undocumented[0]


@needs_textworld
def test_a_certificate_is_written_goes_on_where_it_stopped_and_reads_back(
    data_dir: Path, tmp_path: Path, monkeypatch
) -> None:
    games = certificate.open_games()
    monkeypatch.setattr(games, "ids", [i for i in games.ids if i.startswith("valid_seen/") and "-4" in i][:2])
    monkeypatch.setattr(certificate, "open_games", lambda: games)
    file = tmp_path / "certificate.json"
    certificate.write_certificate(file, {games.ids[0]: "kept"})
    assert certificate.main([str(file), "--split", "valid_seen"]) == 0
    found = certificate.read_certificate(file)
    assert (
        found[games.ids[0]] == "kept"
        and found[games.ids[1]] == certificate.read_certificate(certificate.FILE)[games.ids[1]]
    )
