"""The checks against originals that a user brings: each runs beside one, and says what it wants without one."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from seed_benchmarks import parity
from seed_benchmarks.parity import cards, prompts, search, sokoban
from seed_benchmarks.parity.rows import Documented, Options, ParityRow
from seed_benchmarks.parity.running import is_clean, run_check
from seed_envs.profiles import TurnContext
from seed_envs.wrappers import make_agent_env

REPO = Path(__file__).resolve().parents[2]
#: Check, folder below SEED_ORIGINALS, episodes, rows, and least comparisons of a row.
CHECKS = (
    ("sokoban", "originals", 12, 3, 12),
    ("sokoban", "verl-agent", 40, 1, 40),
    ("cards", "RL4VLM", 10, 2, 200),
    ("cards", "verl-agent", 10, 2, 200),
    ("search", "Search-R1", 500, 3, 500),
    ("prompts", "verl-agent", 1, 7, 5),
    ("webshop", "WebShop", 5, 2, 100),
)


@pytest.mark.parametrize(("name", "folder", "episodes", "rows", "least"), CHECKS, ids=lambda value: str(value))
def test_nothing_undocumented_differs(name, folder, episodes, rows, least, data_dir) -> None:
    if "SEED_ORIGINALS" not in os.environ:
        pytest.skip("originals: SEED_ORIGINALS is not set")
    where = Path(os.environ["SEED_ORIGINALS"]) / folder
    if not where.is_dir():
        pytest.skip(f"originals: {where} does not exist")
    result = run_check(name, Options(where, episodes))
    assert is_clean(result), result
    assert len(result["rows"]) == rows and all(row["comparisons"] >= least for row in result["rows"])


@pytest.mark.parametrize("name", ["sokoban", "cards", "search", "prompts", "webshop"])
def test_without_an_original_the_command_that_brings_it_is_named(name, tmp_path: Path) -> None:
    nothing, wrong = run_check(name, Options()), run_check(name, Options(tmp_path))
    assert nothing["rows"] == [] and re.search(r"git clone https://|pip install --no-deps", nothing["skipped"])
    assert wrong["rows"] == [] and wrong["skipped"] and not wrong["error"]


def documented() -> list[Documented]:
    """Every reason that a check may file a difference under."""
    found = []
    for module in pkgutil.iter_modules(parity.__path__):
        names = (
            vars(importlib.import_module(f"seed_benchmarks.parity.{module.name}")) if module.name != "__main__" else {}
        )
        found += [value for value in names.values() if isinstance(value, Documented)]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("reason", documented(), ids=lambda reason: f"{reason.page}-{reason.key}")
def test_every_documented_difference_is_on_its_page(reason: Documented) -> None:
    page = (REPO / "docs" / "environments" / f"{reason.page}.md").read_text(encoding="utf-8")
    section = page.partition("## Differences from the original")[2].partition("\n## ")[0]
    assert " ".join(reason.words.split()) in " ".join(section.split())


def test_there_are_documented_differences_to_look_for() -> None:
    assert len(documented()) >= 8 and len({reason.page for reason in documented()}) >= 4


def test_slots_hold_what_a_prompt_shows_and_nothing_else() -> None:
    bare = prompts.bare("Do {goal} now: {observation}{skill}, {goal}")
    assert prompts.filled(bare.format(goal="a", observation="b\n", skill="")) == {
        "goal": "a",
        "observation": "b\n",
        "skill": "",
    }
    env = make_agent_env("seed/ALFWorld-v0", "paper", split="mini_valid_seen")
    turn: TurnContext = env.reset(seed=0)[1]["turn"]
    side, row = prompts.SIDES["alfworld"], ParityRow("prompts", "by hand")
    listed = "\n ".join(f"'{action}'" for action in turn.admissible or () if action != "help")
    template = env.get_wrapper_attr("profile").template

    def shown(**slots: str) -> dict[str, list[str]]:
        return {"text": [prompts.bare("{current_observation}{admissible_actions}").format(**slots)]}

    prompts._check(
        row, "start", side, template, turn, shown(current_observation=turn.observation, admissible_actions=listed)
    )
    assert row.undocumented == [] and row.comparisons == len(side.slots)
    wrong = shown(current_observation=turn.observation[1:], admissible_actions=listed + "\n 'help'")
    prompts._check(row, "start", side, template, turn, wrong)
    assert [line.split(" is ")[0] for line in row.undocumented] == ["start: observation", "start: admissible"]


def test_a_wrong_reading_of_search_r1_is_found() -> None:
    loop = SimpleNamespace(
        _postprocess_responses=lambda texts: (texts, texts),
        postprocess_predictions=lambda texts: ([None], [""]),
        execute_predictions=lambda *_, **__: ([""], [0], [0], [0]),
    )
    row = search.replies(loop, 50)
    assert len(row.undocumented) > 30 and row.comparisons == 300


def test_why_card_rewards_may_differ() -> None:
    assert cards._reasons(["2", "*", "*", "3"]) == [cards.POWER] and cards._reasons(["1", "2"]) == [cards.JOINED]
    assert cards._reasons(["8", "/", "3"]) == [cards.EXACT] and cards._reasons(["8", "-", "-", "3"]) == []


def test_rooms_of_the_original_become_maps() -> None:
    import numpy as np

    fixed, state = np.array([[0, 2, 1, 2]]), np.array([[0, 5, 4, 3]])
    assert sokoban.xsb(fixed, state) == "#+$*" and sokoban.xsb(np.ones((1, 2)), np.array([[5, 1]])) == "@ "
