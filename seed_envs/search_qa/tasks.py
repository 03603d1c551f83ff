"""Where questions come from: a generated world with its published ids, or files of real questions.

A task id is `{question set}/{split}/{id}`. Published ids of generated worlds are checked in as manifests (seed 0), and
computed once for other seeds. Nothing here searches except that computation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Protocol, runtime_checkable

from seed_envs.data import cache_root
from seed_envs.errors import DataInvalid, UnknownOption, UnknownSplit, UnknownTask, close_matches
from seed_envs.search_qa.hashing import file_version
from seed_envs.search_qa.knowledge.library import GENERATOR_VERSION, Library, open_library
from seed_envs.search_qa.knowledge.selection import published
from seed_envs.search_qa.knowledge.styles import SPLITS as GENERATED_SPLITS
from seed_envs.search_qa.knowledge.styles import STYLES
from seed_envs.search_qa.question_files import evaluation_order, questions_sha256, read_questions
from seed_envs.search_qa.questions import Question
from seed_envs.search_qa.retrievers.base import fingerprint_of
from seed_envs.tasks import Manifest
from seed_envs.whole_files import whole_file

SPLITS = (*GENERATED_SPLITS, "eval", "hops")
"""Splits of the environment; "eval" is test where there is one, else dev, in the order of the evaluated sets; "hops"
are questions by the number of facts that they need."""

COUNTS = {
    "tiny": {"train": 8, "dev": 1, "test": 2},
    "default": {"train": 200, "dev": 20, "test": 50},
    "large": {"train": 400, "dev": 40, "test": 100},
}
"""Published questions per style and split."""
HOPS = {"nq": 1, "popqa": 1, "hotpotqa": 1, "bamboogle": 1, "2wikimultihopqa": 2, "musique": 2}
"""The split "hops": styles in the order of their hops, one to four, with their share in numbers of the test split, so
that every number of hops is equally frequent."""
MANIFESTS = resources.files("seed_envs.search_qa") / "manifests"


@runtime_checkable
class QuestionSource(Protocol):
    """Questions by task id."""

    def task_ids(self, split: str) -> Sequence[str]:
        """The ids of a split in listed order."""

    def question(self, task_id: str) -> Question:
        """The question of an id; raises UnknownTask."""


class GeneratedQuestions:
    """The questions of a generated world.

    Args:
        size: "tiny", "default" or "large".
        seed: Seed of the world.
    """

    def __init__(self, size: str, seed: int) -> None:
        self.size, self.seed = size, seed
        self._manifests: dict[str, Manifest] = {}
        # The episodes of a group ask the same question.
        self.question: Callable[[str], Question] = lru_cache(maxsize=4096)(self.make)

    def __reduce__(self) -> tuple[type[GeneratedQuestions], tuple[str, int]]:
        return GeneratedQuestions, (self.size, self.seed)

    @property
    def library(self) -> Library:
        """The world behind the questions."""
        return open_library(self.size, self.seed)

    @property
    def sha256(self) -> str:
        """Identifies the questions: they follow from the generator's version, the size and the seed."""
        return fingerprint_of({"generator": GENERATOR_VERSION, "size": self.size, "seed": self.seed})

    def manifest(self, split: str) -> Manifest:
        """The published ids of a split."""
        if split not in self._manifests:
            self._manifests[split] = _load_manifest(self.size, self.seed, split)
        return self._manifests[split]

    def task_ids(self, split: str) -> Sequence[str]:
        """See `QuestionSource`; "eval" is the test split."""
        return self.manifest("test" if split == "eval" else split)

    def make(self, task_id: str) -> Question:
        """The question of an id, as `question` without its cache; raises UnknownTask."""
        parts = task_id.split("/")
        split = parts[1] if len(parts) == 3 and parts[1] in GENERATED_SPLITS else "test"
        if split != "test" or task_id not in self.manifest("hops"):
            self.manifest(split).check(task_id)
        question = self.library.maker.question(parts[0], parts[1], int(parts[2]))
        if question is None:
            raise UnknownTask(f"task {task_id!r}: the manifest does not fit this generator version")
        return question


def manifest_name(size: str, seed: int, split: str) -> str:
    """File name of a manifest of generated questions."""
    return f"generated-{size}-{seed}-{split}.txt"


@lru_cache(maxsize=32)
def _load_manifest(size: str, seed: int, split: str) -> Manifest:
    name = manifest_name(size, seed, split)
    with resources.as_file(MANIFESTS / name) as shipped:
        if shipped.is_file():
            return Manifest.load(shipped)
    cached = cache_root() / "search_qa" / "manifests" / f"v{GENERATOR_VERSION}-{name}"
    if not cached.is_file():
        with whole_file(cached) as temporary:
            make_manifest(size, seed, split).save(temporary)
    return Manifest.load(cached)


def make_manifest(size: str, seed: int, split: str) -> Manifest:
    """Selects the published questions of a split; needs searches, so it takes seconds to minutes."""
    from seed_envs.search_qa.retrievers.bm25 import BM25Retriever

    library = open_library(size, seed)
    retriever = BM25Retriever(library.corpus)
    part = "test" if split == "hops" else split
    count, shares = COUNTS[size][part], HOPS if split == "hops" else dict.fromkeys(STYLES, 1)
    chosen = [published(library.maker, retriever, style, part, count * share) for style, share in shares.items()]
    ids = tuple(question.task_id for questions in chosen for question in questions)
    meta = {
        "generator": str(GENERATOR_VERSION),
        "command": f"python -m seed_envs.search_qa manifests --size {size} --seed {seed}",
    }
    return Manifest(f"search_qa/generated-{size}-{seed}/{split}", ids, meta)


class ListedQuestions:
    """Questions that were read from files.

    Args:
        questions: In the order of the files; task ids must differ.
        name: For messages.
    """

    def __init__(self, questions: Sequence[Question], name: str) -> None:
        self.name = name
        self._by_id = {question.task_id: question for question in questions}
        if len(self._by_id) != len(questions):
            repeated = next(q.task_id for n, q in enumerate(questions) if self._by_id[q.task_id] is not questions[n])
            raise DataInvalid(f"{name}: the task id {repeated!r} occurs twice")
        self._ids: dict[str, list[str]] = {split: [] for split in SPLITS}
        for question in questions:
            self._ids[question.task_id.split("/")[1]].append(question.task_id)

    @cached_property
    def sha256(self) -> str:
        """Hash over ids, texts and answers, in order."""
        return questions_sha256(self._by_id.values())

    def task_ids(self, split: str) -> Sequence[str]:
        """See `QuestionSource`; "eval" lists what is evaluated, set by set, "hops" dev and test by hops."""
        if split == "hops" and not self._ids["hops"]:
            known = [q for q in self._by_id.values() if q.n_hops and q.task_id.split("/")[1] != "train"]
            self._ids["hops"] = [q.task_id for q in sorted(known, key=lambda q: q.n_hops)]
        if split == "eval":
            if not self._ids["eval"]:
                self._ids["eval"] = [q.task_id for q in evaluation_order(self._by_id.values())]
            return self._ids["eval"]
        if not self._ids[split]:
            filled = [name for name, found in self._ids.items() if found]
            raise UnknownSplit(f"{self.name} has no {split} questions; it has {filled}")
        return self._ids[split]

    def question(self, task_id: str) -> Question:
        """See `QuestionSource`."""
        if task_id not in self._by_id:
            raise UnknownTask(
                f"task {task_id!r} is not among the {len(self._by_id)} questions of {self.name}."
                f"{close_matches(task_id, list(self._by_id)[:5000])}"
            )
        return self._by_id[task_id]


QuestionFiles = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def open_questions(size: str, seed: int, given: QuestionFiles | QuestionSource | None) -> QuestionSource:
    """The questions of an environment: from files or an object if given, else generated."""
    if given is None:
        return GeneratedQuestions(size, seed)
    if isinstance(given, QuestionSource):
        return given
    paths = [given] if isinstance(given, (str, os.PathLike)) else given
    listed = isinstance(paths, Sequence) and all(isinstance(path, (str, os.PathLike)) for path in paths)
    if not listed or not paths:
        raise UnknownOption(f"questions={given!r}: expected a question file, a list of them, or a question source")
    named = tuple(os.fspath(path) for path in paths)
    return _listed(named, tuple(file_version(Path(path)) if Path(path).is_file() else "" for path in named))


@lru_cache(maxsize=8)
def _listed(paths: tuple[str, ...], versions: tuple[str, ...]) -> ListedQuestions:
    questions = [question for path in paths for question in read_questions(path)]
    return ListedQuestions(questions, ", ".join(Path(path).name for path in paths))
