"""How published question files are read: a record to text, answers, id and whatever else it tells."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from seed_envs.errors import DataInvalid

_SEVERAL = "<|answer_split|>"
"""DeepResearcher's mark between the answers of one string."""
VERL_FIELDS = ("reward_model", "env_kwargs", "extra_info")
HOTPOT_FIELDS = ("supporting_facts", "_id")
_NO_ANSWER = "no answer is published with the question"
_LITERAL = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*(,|\Z)""", re.DOTALL)


class Skip(NamedTuple):
    """A record that is left out, and why."""

    reason: str


class Draft(NamedTuple):
    """What a record says about a question; names of sets and splits are not settled yet.

    Attributes:
        text: The question.
        answers: Gold answers, as found.
        id: Its id, None where it has none.
        source: The set, "" where the record does not say.
        split: The split, "" likewise.
        choices: Options of which `answers` are positions.
        titles: Titles of the gold passages.
    """

    text: Any
    answers: Any
    id: Any = None
    source: str = ""
    split: str = ""
    choices: Any = None
    titles: tuple[str, ...] = ()


Record = Mapping[str, Any]


def short(value: Any) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def as_list(value: Any) -> list[Any] | None:
    """Lists, tuples and numpy arrays as lists, a bare string as a list of one; None for anything else."""
    if isinstance(value, str):
        return [value]
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, (list, tuple)) else None


def _mapping(record: Record, key: str, place: str) -> Record:
    value = record.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise DataInvalid(f"{place}: expected fields under {key!r}, got {short(value)}")
    return value or {}


def _first(record: Record, *names: str) -> Any:
    """The first of these fields that is there and not null, whatever the case of its name."""
    lowered = {key.lower(): value for key, value in record.items()}
    return next((lowered[name] for name in names if lowered.get(name) is not None), None)


def _unique(titles: list[Any] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(title) for title in titles or ()))


def _fact_titles(facts: Any) -> tuple[str, ...]:
    """Titles out of `supporting_facts`: columns of a table, or pairs of title and sentence."""
    if isinstance(facts, Mapping):
        return _unique(as_list(facts.get("title")))
    pairs = as_list(facts) or []
    return _unique([pair[0] for pair in map(as_list, pairs) if pair])


def _metadata_titles(metadata: Any) -> tuple[str, ...]:
    return _fact_titles(metadata.get("supporting_facts")) if isinstance(metadata, Mapping) else ()


def read_verl(record: Record, place: str) -> Draft | Skip:
    """Search-R1, verl, verl-agent and DeepResearcher parquet."""
    extra, model = _mapping(record, "extra_info", place), _mapping(record, "reward_model", place)
    verl = _mapping(record, "env_kwargs", place)
    truth = verl.get("ground_truth") if model.get("ground_truth") is None else model["ground_truth"]
    target = truth.get("target") if isinstance(truth, Mapping) else truth
    golds = record.get("golden_answers") if target is None else target
    if isinstance(golds, str):
        golds = golds.split(_SEVERAL)
    source = str(record.get("data_source") or verl.get("data_source") or "")
    name = extra.get("index") if record.get("id") is None else record["id"]
    if not source or name is None:
        raise DataInvalid(f"{place}: expected data_source and an id (or extra_info.index)")
    text = record.get("question") or verl.get("question") or extra.get("question") or _asked(record.get("prompt"))
    split = str(extra.get("split", "test"))
    return Draft(text, golds, name, source, split, titles=_metadata_titles(record.get("metadata")))


def _asked(prompt: Any) -> str | None:
    """The question in a chat prompt: what follows `Question:` in the last user message, else all of it."""
    users = [m for m in as_list(prompt) or () if isinstance(m, Mapping) and m.get("role") == "user"]
    content = users[-1].get("content") if users else None
    return content.rpartition("Question:")[2].strip() if isinstance(content, str) else None


def read_flashrag(record: Record, place: str) -> Draft | Skip:
    """FlashRAG, and lists of questions that name set and split."""
    golds = record.get("golden_answers", record.get("answers"))
    return Draft(
        record.get("question"), golds, record.get("id"), str(record.get("dataset") or record.get("data_source") or ""),
        str(record.get("split") or ""), record.get("choices"), _metadata_titles(record.get("metadata")),
    )  # fmt: skip


def read_paragraphs(record: Record, place: str) -> Draft | Skip:
    """MuSiQue, and what follows its form: paragraphs of which some support the answer."""
    if record.get("answerable") is False:
        return Skip("the question is marked as not answerable")
    golds = as_list(record.get("answer"))
    if golds is None:
        return Skip(_NO_ANSWER)
    aliases = as_list(record.get("answer_aliases")) or []
    paragraphs = [p for p in as_list(record["paragraphs"]) or () if isinstance(p, Mapping)]
    titles = [p.get("title", "") for p in paragraphs if p.get("is_supporting")]
    return Draft(record.get("question"), list(dict.fromkeys(golds + aliases)), record.get("id"), titles=_unique(titles))


def read_hotpot(record: Record, place: str) -> Draft | Skip:
    """HotpotQA and 2WikiMultihopQA as their authors publish them; the latter lists evidences."""
    if record.get("answer") is None:
        return Skip(_NO_ANSWER)
    source = "2wikimultihopqa" if "evidences" in record else "hotpotqa"
    name = record.get("_id") if record.get("id") is None else record["id"]
    return Draft(
        record["question"], record["answer"], name, source, titles=_fact_titles(record.get("supporting_facts"))
    )


def read_trivia(record: Record, place: str) -> Draft | Skip:
    """TriviaQA: a value with aliases."""
    answer = _first(record, "answer")
    golds = [_first(answer, "value"), *(as_list(_first(answer, "aliases")) or [])]
    name = _first(record, "questionid", "question_id")
    golds = list(dict.fromkeys(gold for gold in golds if gold is not None))
    return Draft(_first(record, "question"), golds, name, "triviaqa") if golds else Skip(_NO_ANSWER)


def read_popqa(record: Record, place: str) -> Draft | Skip:
    """PopQA: the answers are a JSON list inside a field."""
    golds = record["possible_answers"]
    if isinstance(golds, str):
        try:
            golds = json.loads(golds)
        except ValueError as error:
            raise DataInvalid(f"{place}: possible_answers is no JSON list ({error})") from error
    return Draft(record.get("question"), golds, record.get("id"), "popqa")


def read_simpleqa(record: Record, place: str) -> Draft | Skip:
    """SimpleQA: problem and answer."""
    return Draft(record["problem"], record["answer"], source="simpleqa")


def read_browsecomp(record: Record, place: str) -> Draft | Skip:
    """BrowseComp-Plus, decrypted."""
    if re.fullmatch(r"[A-Za-z0-9+/=]{40,}", str(record["query"])):
        raise DataInvalid(f"{place}: the query is encrypted; decrypt the file with its publisher's script first")
    gold = [doc for doc in as_list(record.get("gold_docs")) or () if isinstance(doc, Mapping)]
    titles = _unique([doc["title"] for doc in gold if doc.get("title")])
    return Draft(record["query"], record["answer"], record["query_id"], "browsecomp-plus", titles=titles)


def read_kilt_task(record: Record, place: str) -> Draft | Skip:
    """A task of KILT: every output with an answer counts; provenance names the gold pages."""
    outputs = [output for output in as_list(record["output"]) or () if isinstance(output, Mapping)]
    golds = [output["answer"] for output in outputs if output.get("answer")]
    sources = [p for output in outputs for p in as_list(output.get("provenance")) or () if isinstance(p, Mapping)]
    titles = _unique([p["title"] for p in sources if p.get("title")])
    draft = Draft(record["input"], list(dict.fromkeys(golds)), record.get("id"), titles=titles)
    return draft if golds else Skip(_NO_ANSWER)


def read_beir_queries(record: Record, place: str) -> Draft | Skip:
    """Queries of BEIR; few sets state the answer in their metadata."""
    metadata = record.get("metadata")
    golds = metadata.get("answer") if isinstance(metadata, Mapping) else None
    if golds is None:
        return Skip(_NO_ANSWER)
    return Draft(record["text"], golds, record["_id"], titles=_metadata_titles(metadata))


def read_plain(record: Record, place: str) -> Draft | Skip:
    """NQ-open, R1-Searcher, Bamboogle and all others with a question and an answer or answers."""
    golds = _first(record, "answers", "answer", "golden_answers", "target")
    if golds is None and not {"answers", "answer"} & {key.lower() for key in record}:
        return Skip(_NO_ANSWER)
    name = _first(record, "id", "_id", "idx", "question_id", "qid")
    named = str(_first(record, "dataset", "data_source") or "")
    return Draft(_first(record, "question"), golds, name, named, str(_first(record, "split") or ""))


def read_dpr_pair(record: Record, place: str) -> Draft | Skip:
    """DPR's two columns: a question and a Python list of strings, which is read without evaluating it."""
    question, listed = record["column_1"], record["column_2"].strip()
    golds, position = [], 1
    while position < len(listed) - 1:
        found = _LITERAL.match(listed, position, len(listed) - 1)
        if found is None:
            raise DataInvalid(f"{place}: expected a list of quoted answers, got {short(listed)}")
        inside = found[1] if found[1] is not None else found[2]
        golds.append(re.sub(r"\\(.)", r"\1", inside))
        position = found.end()
    return Draft(question, golds)
