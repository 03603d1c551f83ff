"""``seed/SearchQA-v0``: answer a question with the help of a search engine, turn by turn.

It joins questions, passages and search engine; what a reply does is in ``rules``. Retrieval is behind a small interface
(see ``retrievers``), prompts and histories are the business of profiles and wrappers; it opens no network connection of
its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from seed_envs.arguments import check_choice, whole_number
from seed_envs.base import SeedEnv
from seed_envs.data_card import GENERATED, DataSource
from seed_envs.errors import InvalidState, OracleUnavailable, RetrievalError, UnknownOption
from seed_envs.outcomes import Outcome, TaskStatus
from seed_envs.search_qa.baseline import random_reply, rule_reply
from seed_envs.search_qa.collection import open_collection
from seed_envs.search_qa.episode import Episode
from seed_envs.search_qa.oracle import next_step
from seed_envs.search_qa.protocol import ask, find_dialect
from seed_envs.search_qa.retrievers.base import Hit, Retriever, check_k, collection_sha256, open_now
from seed_envs.search_qa.retrievers.deadlines import check_seconds, deadline_in
from seed_envs.search_qa.retrievers.factory import holds_passages, shared_retriever
from seed_envs.search_qa.rules import Rules
from seed_envs.search_qa.scoring import check_reward, transcript
from seed_envs.search_qa.tasks import SPLITS, GeneratedQuestions, QuestionFiles, QuestionSource, open_questions

ON_ERROR = ("truncate", "raise", "empty")
MODES = ("corrected", "legacy")


class SearchQAEnv(SeedEnv[str]):
    """Answer questions with a search engine.

    ## Description
    The agent gets a question, may search a passage collection a few times, and ends the episode with a short answer.
    The protocol is that of Search-R1: a reply holds ``<search>query</search>`` or ``<answer>text</answer>``; passages
    come back inside ``<information>``. By default everything is generated and works offline: an encyclopedia of an
    invented world and questions in seven styles, of which the harder ones cannot be answered with a single query.

    ## Task and data
    Task ids are ``{question set}/{split}/{id}``, for example ``musique/test/17``. Splits are ``train``, ``dev`` and
    ``test``; generated questions of different splits never ask about the same entity. ``collection`` chooses the
    passages (``"tiny"`` about 300, ``"default"`` about 10,000, ``"large"`` about 51,000, or a JSON-lines file such
    as wiki-18), ``questions`` real question files (Search-R1 parquet, FlashRAG JSON lines).

    ### The panel by hops
    Split and suite ``hops`` hold 400 questions about the generated world, 100 each that need one, two, three and four
    facts, every fact in a passage that is known (``gold_found``). It measures how far a chain of searches carries:
    reports give success, and the share of gold passages that were shown, by number of hops; what a single search
    with the whole question finds is the rule player's recall. In question files ``hops`` lists the dev and test
    questions whose number of hops is known: from gold titles, from MuSiQue's ids, or from the set (NQ, TriviaQA and
    PopQA one, HotpotQA and Bamboogle two); every other split is grouped in the same way. ``python -m
    seed_envs.search_qa coverage --questions ... --collection ... --topk 10 --output FILE`` keeps the questions whose
    answer such a collection shows at all, for a panel of real ones.

    | hops | oracle | rule | random | recall: oracle | rule | random |
    |---|---|---|---|---|---|---|
    | 1 | 100.0 % [96.4, 100.0] | 0.0 % [0.0, 3.6] | 0.0 % [0.0, 3.6] | 100.0 % | 100.0 % | 22.2 % |
    | 2 | 100.0 % [96.4, 100.0] | 3.0 % [0.6, 8.5] | 0.2 % [0.0, 3.9] | 100.0 % | 50.5 % | 6.8 % |
    | 3 | 100.0 % [96.4, 100.0] | 0.0 % [0.0, 3.6] | 0.0 % [0.0, 3.6] | 100.0 % | 33.3 % | 2.8 % |
    | 4 | 100.0 % [96.4, 100.0] | 0.0 % [0.0, 3.6] | 0.0 % [0.0, 3.6] | 100.0 % | 21.0 % | 2.7 % |

    Intervals cover 95 %; made by ``python -m benchmarks.baselines search_qa/hops``.

    ## Action space
    ``UnicodeText``: the whole reply. Search-R1 cuts it after the first closing search tag (else answer tag), then the
    first search or answer block counts; a tag inside ``<think>`` counts too. A reply without a block is invalid: it
    uses up a turn and nothing else. Queries are cut at 4,096 characters.

    ## Observation space
    ``UnicodeText``: after ``reset`` the question; after a search the passages inside ``<information>``; after an
    invalid reply a fixed hint; after an answer the empty string.

    ## Reward
    Exact match of the answer with a gold answer, 1 or 0, when the episode ends. ``reward`` can also be ``"sub_em"``,
    ``"f1"`` or ``"format"`` (Search-R1's mixed reward).

    ## Termination and truncation
    An answer terminates. With ``search-r1`` there are ``max_turns`` search turns and one more reply with search
    switched off; with ``verl-agent`` reply number ``max_turns`` is the last. An episode that ends without an answer is
    truncated with ``stop_reason="turn_limit"``. A retrieval that fails truncates with ``stop_reason="retrieval_error"``
    and is no wrong answer: ``valid_sample`` is False.

    ## Info
    Besides the common keys, ``info["search_qa"]`` holds: ``turn``, ``turns_left``, ``action`` (search, answer or
    invalid), ``query``, ``hits`` (ids and scores of the last search), ``n_searches``, ``n_duplicate_queries``,
    ``n_invalid``, ``n_valid_searches``, ``answer``, ``em``, ``sub_em``, ``f1``, ``em_lenient``, ``gold_found`` (per
    hop, cumulative), ``recall_at_k`` (share of hops found), ``by`` and ``measures`` (for reports: the number of hops
    where it is known; whether the answer was shown, and the recall where gold passages are known),
    ``answer_in_context`` (a gold string is in a passage),
    ``truncated_passages`` (left out by the budget), ``cut_passages`` (shown in part), ``defanged``,
    ``retrieval_error``, ``valid_sample``, ``fingerprint`` (of the retriever), ``collection_sha256`` (content hash of
    the passages that are searched, ``""`` where a server does not tell).
    Times and cache hits vary between runs, so they are attributes: ``last_search_seconds`` and the
    retriever's counters.

    ## Oracle
    For generated questions it follows the known decomposition through the text it was shown: it searches for the first
    missing fact and answers when the chain is complete, within four searches. For real questions it answers at once.

    ## Arguments
    * ``split``: ``"train"``, ``"dev"``, ``"test"``, ``"eval"`` (test where there is one, else dev) or ``"hops"``.
    * ``collection``: ``"tiny"``, ``"default"``, ``"large"`` or a path to passages. An engine that holds its passages
      itself must hold these; with ``questions`` of your own and no collection named, what it holds is taken.
    * ``questions``: question file, list of files, or a question source; None for the generated questions.
    * ``retriever``: name or URL (``"bm25"``, ``"flat"``, ``"faiss:FILE"``, ``"lucene:DIR"``, ``"http://..."``,
      ``"opensearch://..."``, ``"qdrant://..."``, ``"postgresql://..."``, ``"redis://..."``, ``"hybrid:bm25+flat"``), or
      a retriever object; ``retriever_options`` are passed on to it.
    * ``topk``: passages per search, 1 to 100.
    * ``max_turns``: search turns; None takes the protocol's default, 4.
    * ``protocol``: ``"search-r1"`` or ``"verl-agent"``.
    * ``mode``: ``"corrected"``, or ``"legacy"`` for published behaviour with its faults.
    * ``reward``: ``"em"``, ``"sub_em"``, ``"f1"`` or ``"format"``.
    * ``observation_budget``: most characters of an observation; whole passages are dropped from its end, and of a
      first passage that is longer still the beginning is shown, with ``[cut]`` behind it.
    * ``deadline``: seconds that a retrieval may take in all; ``on_error``: ``"truncate"``, ``"raise"`` or ``"empty"``.
    * ``cache_bytes``: size of the query cache shared in the process; 0 switches it off.
    * ``seed``: seed of the generated world.

    ## Registered versions
    * ``seed/SearchQA-v0``: no ``max_episode_steps``; ``max_turns`` is the limit.

    ## Differences from the original
    In corrected mode: the executed answer is scored and passages are never scanned for answers; protocol tags inside
    passages are broken; an empty query and a search in the last turn are invalid; golds that normalise to nothing are
    compared with their articles; whole passages are dropped instead of cutting text; failed retrievals are typed
    failures. Legacy mode keeps the original's scoring of prompt and passages (an unanswered episode is scored as
    "Beijing"), empty queries, searches in the last turn, empty golds and the text-based format check. Profile ``paper``
    sends what verl-agent's projection sends, the block alone, and shows it in the next prompt; a reply with tags of
    both kinds or two of one is carried out but is not ``format_valid``. Its prompt is in this package's own words.

    ## References and asset credits
    Jin et al., Search-R1, arXiv 2503.09516 and 2505.15117 (PeterGriffinJin/Search-R1, Apache-2.0: prompt, tags, invalid
    hint); langfengQ/verl-agent (Apache-2.0: protocol); RUC-NLPIR/FlashRAG (scores, question format). The generated
    world is this package's own.
    """

    name: ClassVar[str] = "search_qa"
    splits: ClassVar[tuple[str, ...]] = SPLITS

    def __init__(
        self,
        *,
        split: str = "train",
        collection: str | Path = "default",
        questions: QuestionFiles | QuestionSource | None = None,
        retriever: str | Retriever = "bm25",
        retriever_options: Mapping[str, Any] | None = None,
        topk: int = 3,
        max_turns: int | None = None,
        protocol: str = "search-r1",
        mode: str = "corrected",
        reward: str = "em",
        observation_budget: int | None = None,
        deadline: float | None = 10.0,
        on_error: str = "truncate",
        cache_bytes: int = 64 << 20,
        seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.dialect = find_dialect(protocol)
        check_choice("mode", mode, MODES)
        check_choice("on_error", on_error, ON_ERROR)
        self.mode, self.on_error = mode, on_error
        self.reward = check_reward(reward)
        self.topk = check_k(topk)
        self.max_turns = self.dialect.max_turns if max_turns is None else whole_number("max_turns", max_turns, 1)
        self.total_turns = self.dialect.total_turns(self.max_turns)
        self.observation_budget = (
            None if observation_budget is None else whole_number("observation_budget", observation_budget, 0)
        )
        self.deadline = check_seconds("deadline", deadline)
        self.last_search_seconds = 0.0
        self._rules = Rules(
            self.dialect,
            legacy=mode == "legacy",
            reward=self.reward,
            total_turns=self.total_turns,
            observation_budget=self.observation_budget,
            truncates=on_error == "truncate",
        )
        seed = whole_number("seed", seed)
        self._collection = open_collection(collection, seed)
        # With questions of the user's own, an engine that holds its passages is taken as it is unless a collection is
        # named; generated questions ask about a generated world, which it must hold then.
        self._named_collection = collection != "default" or questions is None
        size = self._collection.name if self._collection.generated else "default"
        self._source = open_questions(size, seed, questions)
        if not isinstance(retriever, (str, Retriever)):
            raise UnknownOption(f"retriever={retriever!r}: expected a name, a URL or a retriever object")
        if not isinstance(retriever_options, Mapping | None):
            raise UnknownOption(f"retriever_options={retriever_options!r}: expected a dict of names and values")
        self._retriever_name = retriever
        self._retriever_options = dict(retriever_options or {})
        self._cache_bytes = whole_number("cache_bytes", cache_bytes, 0)
        self._retriever: Retriever | None = None
        self._opened = False
        self._fingerprint = ""
        self._episode: Episode | None = None
        self._data: DataSource | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: the shared search engine is left out and opened again where it is needed."""
        return {**self.__dict__, "_retriever": None, "_opened": False}

    @property
    def retriever(self) -> Retriever:
        """The search engine; made at the first use, in the process that uses it."""
        if self._retriever is None:
            if isinstance(self._retriever_name, str):
                unread = holds_passages(self._retriever_name) and not self._named_collection
                corpus = None if unread else self._collection.open()
                self._retriever = shared_retriever(
                    self._retriever_name, corpus, self._retriever_options, self._cache_bytes
                )
            else:
                self._retriever = self._retriever_name
        return self._retriever

    @property
    def collection_sha256(self) -> str:
        """Content hash of the passages that are searched, "" where the engine does not tell; complete after a reset."""
        return collection_sha256(self.retriever)

    @property
    def questions_sha256(self) -> str:
        """Hash over the questions in their order: ids, texts and answers; "" for sources that have none."""
        return str(getattr(self._source, "sha256", ""))

    def task_ids(self, split: str) -> Sequence[str]:
        """Published ids of a split, in evaluation order."""
        self.check_split(split)
        return self._source.task_ids(split)

    def data_source(self, task_id: str) -> DataSource:
        """See ``SeedEnv.data_source``: questions and passages, by name and content hash, unless both are generated."""
        if self._data is None:
            asked = self.questions_sha256
            named = str(getattr(self._source, "name", type(self._source).__name__))
            searched = Path(self._collection.name).name
            invented = isinstance(self._source, GeneratedQuestions) and self._collection.generated
            files = () if isinstance(self._source, GeneratedQuestions) else ((named, asked),)
            passages = (searched, self.collection_sha256)
            self._data = GENERATED if invented else DataSource("own", (*files, passages))
        return self._data

    def check_services(self) -> None:
        """Search once where the engine is a service; a local one is opened with the first task anyway."""
        if "://" in str(self._retriever_name):
            engine = getattr(self.retriever, "inner", self.retriever)  # the cache would answer for it
            engine.search(["ready"], 1, deadline_in(self.deadline))

    def _begin(self, task_id: str, options: dict[str, Any]) -> str:
        question = self._source.question(task_id)
        if not self._opened:
            # Here and not in a step, whose deadline is for searching.
            open_now(self.retriever)
            self._opened = True
        self._episode = Episode(question, ask(question.text), gold_found=(False,) * len(question.hops))
        return self._episode.goal

    @property
    def episode(self) -> Episode:
        """The current episode.

        Raises:
            InvalidState: Before the first reset.
        """
        if self._episode is None:
            raise InvalidState("no episode yet; call reset() first")
        return self._episode

    def _act(self, action: str) -> Outcome:
        return self._rules.act(self.episode, action, self._search)

    def _search(self, query: str) -> tuple[list[Hit], str]:
        """Returns what the engine finds, and why it failed, if it did."""
        started = time.perf_counter()
        hits: list[Hit] = []
        error = ""
        try:
            hits = self.retriever.search([query], self.topk, deadline_in(self.deadline))[0]
        except RetrievalError as failure:
            if self.on_error == "raise":
                raise
            error = f"{type(failure).__name__}: {failure}"
        self.last_search_seconds = time.perf_counter() - started
        return hits, error

    def _status(self) -> TaskStatus:
        episode = self.episode
        return TaskStatus(
            episode.question.data_source, episode.goal, episode.scores.em == 1.0, min(max(episode.reward, 0.0), 1.0)
        )

    def _extras(self) -> dict[str, Any]:
        return {
            **self.episode.extras(self.total_turns),
            "fingerprint": self._fingerprint or self._identify(),
            "collection_sha256": self.collection_sha256,
        }

    def _identify(self) -> str:
        self._fingerprint = self.retriever.fingerprint
        return self._fingerprint

    def oracle_action(self) -> str:
        """The next move of an agent that knows how to take the question apart; see the class."""
        episode = self.episode
        plan = episode.question.plan
        if plan is None:
            return f"<answer>{episode.question.answers[0]}</answer>"
        step = next_step(plan, episode.shown, episode.asked)
        if step is None or (step.query and len(episode.turns) + 1 >= self.total_turns):
            raise OracleUnavailable(f"{self.task_id}: no search is left and the facts shown do not suffice")
        return f"<answer>{step.answer}</answer>" if step.answer else f"<search>{step.query}</search>"

    def rule_action(self) -> str:
        """The next move of a player that searches for the question and answers with the first title."""
        return rule_reply(self.episode.goal, self.episode.hits)

    def random_action(self) -> str:
        """A random search, then a random title as the answer."""
        return random_reply(self.episode.goal, self.episode.hits, self.np_random)

    def get_state(self) -> tuple[Any, ...]:
        """A snapshot of the episode."""
        episode = self._episode.snapshot() if self._episode is not None else None
        return (self.task_id, episode, self._running, self._action_valid, self._invalid_reason, self._stop_reason)

    def set_state(self, state: tuple[Any, ...]) -> None:
        """Continue from a snapshot of `get_state`.

        Raises:
            InvalidState: It is not one.
        """
        kinds = (str, Episode | None, bool, bool, str, str)
        if not isinstance(state, tuple) or len(state) != len(kinds) or not all(map(isinstance, state, kinds)):
            raise InvalidState(f"expected a state of SearchQAEnv.get_state(), got {type(state).__name__}")
        self.task_id, episode, self._running, self._action_valid, self._invalid_reason, self._stop_reason = state
        self._episode = episode.snapshot() if episode is not None else None

    def render(self) -> str | None:
        """The transcript so far, when `render_mode="ansi"`."""
        if self.render_mode != "ansi" or self._episode is None:
            return None
        return f"Question: {self._episode.goal}\n{transcript(self._episode.turns)}"

    def close(self) -> None:
        """Leaves the shared retriever open for other environments of the process."""
        self._retriever, self._opened = None, False
