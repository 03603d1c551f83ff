"""Game files made for tests: trees, packs, and the question whether a game is won by its walkthrough."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path
from typing import Any

from seed_envs.alfworld.engine import Engine
from seed_envs.alfworld.generator import compact, rooms
from seed_envs.alfworld.library import PACK_NAME
from seed_envs.alfworld.pddl import write_problem

GRAMMAR = 'grammar :: """\n{"intro": [], "task": [\n {\n "rhs": "@@TASK@@" } ]}\n"""'


def document(task_id: str, **changes: Any) -> dict[str, Any]:
    """A game file's content, with a grammar that holds the goal sentence only."""
    module = compact if task_id.startswith("compact") else rooms
    problem, game = module.generate_problem(task_id)
    content = {
        "pddl_domain": "(define (domain alfred))",
        "grammar": GRAMMAR.replace("@@TASK@@", game.sentence),
        "pddl_problem": write_problem(problem, "test"),
        "solvable": True,
        "walkthrough": list(game.walkthrough),
    }
    return {**content, **changes}


def put_game(root: Path, task_id: str, content: Any) -> Path:
    path = root.joinpath(*task_id.split("/")) / "game.tw-pddl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def wins(engine: Engine) -> bool:
    return all(engine.act(command).valid for command in engine.game.walkthrough) and engine.won


def make_pack(folder: Path, count: int = 4, **changes: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(count):
        content = document(f"compact/train/{number}")
        sentence = re.search(r"Your task is to[^\"]*", content["grammar"])
        assert sentence is not None
        record = {"split": "train", "task": f"task-{number}", "trial": "trial_1", "goal_text": sentence.group()}
        lines.append(
            json.dumps(
                {**record, "walkthrough": content["walkthrough"], "pddl_problem": content["pddl_problem"], **changes}
            )
        )
    (folder / PACK_NAME).write_bytes(lzma.compress("\n".join(lines).encode()))
