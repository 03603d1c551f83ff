"""Search QA beside a clone of Search-R1: what a reply asks for, how passages are shown, how answers are scored.

``--against CLONE`` takes a clone of PeterGriffinJin/Search-R1. Its generation loop and its scoring are imported as they
are (with stand-ins for the trainer they only mention) and given random replies, passages in the format that our server
answers with, and random answers. Scoring is compared in legacy mode; what the corrected mode mends is on the page.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from seed_envs.errors import DataMissing
from seed_envs.search_qa.answers import exact_match, substring_match
from seed_envs.search_qa.protocol import DIALECTS
from seed_envs.search_qa.retrievers.base import Hit, titled_hit
from seed_envs.search_qa.scoring import Turn, legacy_answer
from seed_envs.search_qa.server_api import render_result

from .clones import clone_of, load_file
from .rows import Options, ParityRow

ORIGINAL = "Search-R1, clone"
REPLIES = 5_000
_LOOP = "search_r1/llm_agent/generation.py"
_SCORES = "verl/utils/reward_score/qa_em.py"
_MOST_PIECES = 14
_TAGS = ("<search>", "</search>", "<answer>", "</answer>", "<think>", "</think>", "<information>", "</information>")
_WORDS = (
    *("who wrote it", "The Velk River", "a", "an", "the", "The", "U.S.A.", "twenty-one", "Beijing", "yes", "1,000"),
    *(" ", "\n", "\t", "  ", ".", "-", "'s", '"', "\u2019", "\u00e9", "\u0130", "\u4e2d", "\x1c", "<b>", "</"),
)  # fmt: skip


def compare(options: Options) -> list[ParityRow]:
    """Three rows; ``episodes`` is the number of replies, passages and answers.

    Raises:
        DataMissing: Without a clone.
    """
    clone = clone_of(options, "https://github.com/PeterGriffinJin/Search-R1")
    count, loop = options.episodes or REPLIES, import_loop(clone)
    return [replies(loop, count), passages(loop, count), scores(load_file(clone, _SCORES), count)]


def import_loop(clone: Path) -> Any:
    """The original's generation loop, without a model.

    Raises:
        DataMissing: When the clone has none.
    """
    if not (clone / _LOOP).is_file():
        raise DataMissing(f"{clone} has no {_LOOP}; --against wants a clone of PeterGriffinJin/Search-R1")
    for name, attribute in (("verl", "DataProto"), ("verl.utils", ""), ("verl.utils.tracking", "Tracking")):
        sys.modules[name] = ModuleType(name)
        setattr(sys.modules[name], attribute or "tracking", object)
    for name in ("torch", "requests"):
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = ModuleType(name)
    sys.path.insert(0, str(clone))
    manager: Any = importlib.import_module("search_r1.llm_agent.generation").LLMGenerationManager
    loop = manager.__new__(manager)
    loop.config = SimpleNamespace(no_think_rl=False, topk=3, search_url="")
    loop.tokenizer = SimpleNamespace(batch_decode=lambda texts, **_: texts)
    loop._batch_tokenize = lambda texts: texts
    return loop


def replies(loop: Any, count: int) -> ParityRow:
    """What is cut, what a reply asks for, whether it is valid and ends the episode, what an invalid one is told."""
    row, dialect = ParityRow("replies read", ORIGINAL), DIALECTS["search-r1"]
    for reply in texts((*_TAGS, *_TAGS, *_WORDS), count):
        _, (cut,) = loop._postprocess_responses([reply])
        (action,), (content,) = loop.postprocess_predictions([cut])
        (told,), (done,), (valid,), _ = loop.execute_predictions([cut], "", [True], do_search=False)
        ours = dialect.parse(reply)
        row.steps += 1
        row.check(
            f"reply {reply!r}",
            {
                "text": (ours.text, cut),
                "action": (ours.kind, action or "invalid"),
                "content": (ours.content, content),
                "valid": (ours.valid, bool(valid)),
                "end": (ours.kind == "answer", bool(done)),
                "told": (dialect.invalid_text if ours.kind == "invalid" else "", told if action != "search" else ""),
            },
        )
    return row


def passages(loop: Any, count: int) -> ParityRow:
    """Our server's answer as the original's client shows it, beside what our environment shows."""
    row, dialect = ParityRow("passages shown", ORIGINAL), DIALECTS["search-r1"]
    rng, found = np.random.default_rng(1), texts((*_WORDS, *_TAGS), 8 * count)
    for number in range(count):
        hits = [_hit(next(found), next(found), index) for index in range(int(rng.integers(5)))]
        loop._batch_search = lambda _, hits=hits: json.loads(render_result([hits], True))
        (shown,), *_ = loop.execute_predictions(["<search>x</search>"], "", [True])
        row.steps += 1
        row.check(f"passages {number}: {hits!r:.300}", {"text": (dialect.information(hits), shown)})
    return row


def _hit(title: str, text: str, index: int) -> Hit:
    return titled_hit(str(index), " ".join(title.split()) or "title", text, 1.0)


def scores(qa_em: Any, count: int) -> ParityRow:
    """Exact and substring match of answers, and the reward of a transcript with its prompt."""
    row, rng = ParityRow("answers scored", ORIGINAL), np.random.default_rng(2)
    found, many = texts(_WORDS, 4 * count), texts((*_TAGS, *_WORDS), count)
    for transcript in many:
        answer, *golds = (next(found) for _ in range(2 + int(rng.integers(3))))
        if rng.random() < 0.3:
            golds[0] = f" The {answer.upper()}."
        row.steps += 1
        prompt = "".join(f"<answer>{gold}</answer>" for gold in golds[: int(rng.integers(3))])
        random.seed(0)  # The original prints one transcript in 64.
        reward = qa_em.compute_score_em(prompt + transcript, {"target": golds})
        scored = legacy_answer(prompt, [Turn(transcript, "")], 2)
        row.check(
            f"answer {answer!r} for {golds}, transcript {prompt + transcript!r}",
            {
                "em": (exact_match(answer, golds, legacy=True), float(qa_em.em_check(answer, golds))),
                "sub_em": (substring_match(answer, golds, legacy=True), float(qa_em.subem_check(answer, golds))),
                "scored": (scored, qa_em.extract_solution(prompt + transcript)),
                "reward": (0.0 if scored is None else exact_match(scored, golds, legacy=True), float(reward)),
            },
        )
    return row


def texts(pieces: Sequence[str], count: int) -> Iterator[str]:
    """Random concatenations of pieces; the same for the same arguments."""
    rng = np.random.default_rng(np.random.SeedSequence(0))
    for _ in range(count):
        yield "".join(pieces[index] for index in rng.integers(len(pieces), size=int(rng.integers(_MOST_PIECES))))
