"""How replies become actions: our ``paper`` profiles beside the projections of verl-agent.

Every reply is played as a model's would be: through the agent stack of the profile, in a fresh episode. Compared are
what was sent to the game and whether the reply counts as valid. The original's side is a recording,
``$SEED_DATA_DIR/parity/verl_agent_projections.jsonl.gz`` (one JSON object a line: ``env``, ``reply``, ``action``,
``valid``), or with ``--against CLONE`` the projections of a clone of langfengQ/verl-agent, run on random replies.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seed_envs.data import data_dir
from seed_envs.errors import DataMissing
from seed_envs.vision.ezpoints import reading
from seed_envs.vision.ezpoints.rules import ezpoints
from seed_envs.vision.sokoban import actions
from seed_envs.wrappers import make_agent_env

from .clones import load_file
from .rows import Options, ParityRow

FILE = "verl_agent_projections.jsonl.gz"
RANDOM_REPLIES = 2_000
"""Per environment, against a clone."""


class Recorded(NamedTuple):
    """What the original makes of a reply; Sokoban's action as a word, EZPoints' as a token or ``""``."""

    reply: str
    action: str
    valid: bool


def _as_sent(action: str) -> str:
    return action


def _sokoban_word(action: str) -> str:
    code = (actions.read_classic(action).codes or (0,))[0]
    return _DIRECTIONS[code]


def _card_token(action: str) -> str:
    return reading.read_classic(action, ezpoints().tokens)[0]


_DIRECTIONS = ("still", "up", "down", "left", "right")


@dataclass(frozen=True)
class Side:
    """One environment.

    Attributes:
        env_id: Ours.
        folder: The original's package below ``agent_system/environments/env_package``.
        function: Its projection.
        shown: Writes the action that our stack sends as the original's action is written.
        known: The original's actions by code, where it returns codes; the last one stands for -1.
        more: Arguments of the projection beside the replies.
        env_kwargs: Constructor arguments that need no data.
    """

    env_id: str
    folder: str
    function: str
    shown: Callable[[str], str] = _as_sent
    known: tuple[str, ...] = ()
    more: tuple[Any, ...] = ()
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)


SIDES = {
    "alfworld": Side(
        "seed/ALFWorld-v0", "alfworld", "alfworld_projection", more=([[]],), env_kwargs={"split": "mini_valid_seen"}
    ),
    "webshop": Side("seed/WebShop-v0", "webshop", "webshop_projection", env_kwargs={"split": "test"}),
    "search": Side(
        "seed/SearchQA-v0", "search", "search_projection", env_kwargs={"split": "test", "collection": "tiny"}
    ),
    "sokoban": Side("seed/Sokoban-v0", "sokoban", "sokoban_projection", _sokoban_word, _DIRECTIONS),
    "ezpoints": Side(
        "seed/EZPoints-v0",
        "gym_cards",
        "gym_projection",
        _card_token,
        (*ezpoints().tokens, ""),
        ("gym_cards/EZPoints-v0",),
    ),
}


def compare(options: Options) -> list[ParityRow]:
    """One row an environment.

    Args:
        options: ``episodes`` bounds the replies of each environment.

    Raises:
        DataMissing: When there is neither a recording nor a clone.
    """
    recorded = read_recording(_recording()) if options.against is None else {}
    rows = []
    for name, side in SIDES.items():
        if options.against is None:
            replies: Iterable[Recorded] = recorded.get(name, [])[: options.episodes]
            original = "verl-agent, recorded"
        else:
            replies = project(options.against, side, random_replies(options.episodes or RANDOM_REPLIES))
            original = "verl-agent, clone"
        rows.append(compare_replies(name, side, replies, original))
    return rows


def compare_replies(name: str, side: Side, replies: Iterable[Recorded], original: str) -> ParityRow:
    """Play every reply in a fresh episode and compare action and validity."""
    row = ParityRow(f"replies read, {name}", original)
    env = make_agent_env(side.env_id, "paper", **side.env_kwargs)
    _, info = env.reset(seed=0)
    task = {"task_id": info["task_id"]}
    for recorded in replies:
        env.reset(options=task)
        info = env.step(recorded.reply)[4]
        row.episodes, row.steps = row.episodes + 1, row.steps + 1
        sent = side.shown(info["action"])
        pairs = {"action": (sent, recorded.action), "valid": (info["format_valid"], recorded.valid)}
        row.check(f"reply {recorded.reply!r}", pairs)
    env.close()
    return row


def read_recording(path: Path) -> dict[str, list[Recorded]]:
    """The recorded replies by environment."""
    found: dict[str, list[Recorded]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            entry = Recorded(record["reply"], record["action"], record["valid"])
            found.setdefault(record["env"], []).append(entry)
    return found


def _recording() -> Path:
    path = data_dir("parity") / FILE
    if not path.is_file():
        raise DataMissing(f"{path} does not exist; name a clone of verl-agent instead: --against PATH")
    return path


def project(clone: Path, side: Side, replies: Iterable[str]) -> Iterator[Recorded]:
    """What a clone's own projection makes of replies."""
    path = f"agent_system/environments/env_package/{side.folder}/projection.py"
    projection = getattr(load_file(clone, path, stand_ins=("torch",)), side.function)
    for reply in replies:
        (action,), (valid,) = projection([reply], *side.more)
        yield Recorded(reply, side.known[action] if side.known else action, bool(valid))


_PIECES = (
    *("<action>", "</action>", "<ACTION>", "</Action>", "<think>", "</think>", "<THINK>", "</THINK>"),
    *("<search>", "</search>", "<SEARCH>", "</SEARCH>", "<answer>", "</answer>", "<Answer>", "<\u017fearch>"),
    *("go to desk 1", "click[x]", "up", "LEFT", "right", "still", '"action":', '"ACTION": ', "1", "10", "0", "5", "+"),
    *("*", "=", '"', "{", "}", " ", "\n", "\t", "\u0130", "\u03a3", "\u4e2d", "\u3000", "\x1c", "a" * 25, "X" * 40),
)


def random_replies(count: int) -> Iterator[str]:
    """Replies made of tags, tokens and letters that are read in more than one way."""
    rng = np.random.default_rng(np.random.SeedSequence(0))
    for _ in range(count):
        yield "".join(_PIECES[index] for index in rng.integers(len(_PIECES), size=int(rng.integers(14))))
