"""The generated encyclopedia keeps its promises: one answer, stated once, found only by asking step by step."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys

import pytest

from seed_envs.search_qa.answers import normalise
from seed_envs.search_qa.env import SearchQAEnv
from seed_envs.search_qa.knowledge.integers import Stream
from seed_envs.search_qa.knowledge.library import open_library
from seed_envs.search_qa.knowledge.passages import locate_facts, write_passages
from seed_envs.search_qa.knowledge.relations import RELATIONS, read_object, read_subject, state
from seed_envs.search_qa.knowledge.selection import all_hops_found, answer_shown, oracle_searches, published
from seed_envs.search_qa.knowledge.styles import SPLITS, STYLES
from seed_envs.search_qa.knowledge.world import SIZES, build_world
from seed_envs.search_qa.retrievers.bm25 import BM25Retriever
from seed_envs.search_qa.tasks import COUNTS, GeneratedQuestions, make_manifest

PASSAGES_SHA256 = {
    "tiny": "947482a73db5961861f8ace5fb0fb057ad21e36bf0fac90e5ca02ac92d1db730",
    "default": "e0435083c859b6f524e14f2452afbfaf8ba1df38056953dbeeed6bf260f39a29",
}


def digest(seed, size):
    text = "".join(f"{hit.id}\n{hit.contents}\n\n" for hit in write_passages(build_world(seed, size)))
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def library():
    return open_library("default", 0)


@pytest.fixture(scope="module")
def questions():
    source = GeneratedQuestions("default", 0)
    return {split: [source.question(task_id) for task_id in source.task_ids(split)] for split in SPLITS}


@pytest.fixture(scope="module")
def retriever(library):
    return BM25Retriever(library.corpus)


def test_the_integer_generator_never_changes():
    stream = Stream("a", 1)
    assert [stream.next() for _ in range(2)] == [12961125103477788784, 14068508734976514177]
    assert [Stream("b").below(10) for _ in range(3)] == [Stream("b").below(10)] * 3


@pytest.mark.parametrize("size", ["tiny", "default"])
def test_the_bytes_of_a_seed_are_committed(size):
    assert digest(0, size) == PASSAGES_SHA256[size]
    assert digest(1, "tiny") != PASSAGES_SHA256["tiny"]


def test_another_process_and_hash_seed_make_the_same_bytes():
    code = (
        "import hashlib\n"
        "from seed_envs.search_qa.knowledge.passages import write_passages\n"
        "from seed_envs.search_qa.knowledge.world import build_world\n"
        "text = ''.join(f'{h.id}\\n{h.contents}\\n\\n' for h in write_passages(build_world(0, 'tiny')))\n"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.strip() == PASSAGES_SHA256["tiny"]


def test_the_file_in_the_cache_holds_the_written_passages(library):
    written = write_passages(library.world)
    assert len(library.corpus) == len(written)
    for position in range(0, len(written), 501):
        assert library.corpus.passage(position) == written[position]


def test_numbers_and_lengths_of_passages(library):
    assert 9_500 <= len(library.corpus) <= 10_500
    lengths = [len(hit.text.split()) for hit in write_passages(library.world)]
    assert 60 <= sum(lengths) / len(lengths) <= 100
    assert min(lengths) >= 55
    assert max(lengths) <= 100


def test_no_text_holds_a_protocol_tag(library, questions):
    tag = re.compile(r"</?\s*(think|search|information|answer)", re.IGNORECASE)
    for hit in write_passages(library.world):
        assert not tag.search(hit.contents)
        assert "<" not in hit.contents
    assert not any("<" in question.text for split in questions.values() for question in split)


def test_each_fact_is_stated_in_its_passage_and_nowhere_else(library):
    passages = write_passages(library.world)
    sources = locate_facts(library.world)
    for entity in library.world.entities()[::9]:
        for relation, value in entity.facts.items():
            text = passages[int(sources[entity.kind, entity.name, relation])].text
            assert read_object(relation, entity.name, [text]) == value
    stated = dict.fromkeys(RELATIONS, 0)
    sentences: dict[str, int] = {}
    for hit in passages:
        for sentence in re.findall(r"[^.]+\.", hit.text):
            sentences[sentence.strip()] = sentences.get(sentence.strip(), 0) + 1
    for kind, name, relation in sources:
        value = library.world.named(kind, name).facts[relation]
        stated[relation] += sum(sentences.get(state(relation, name, value, wording), 0) for wording in (0, 1))
    facts = {name: sum(relation == name for _, _, relation in sources) for name in RELATIONS}
    # A novel and an album of one title can have come out in the same year; nobody is asked for it.
    del stated["year"], facts["year"]
    assert stated == facts


def test_relations_can_be_read_in_both_directions():
    for name in RELATIONS:
        known = {"university_city": "University of Xara", "university_year": "University of Xara"}.get(name, "Ab Cd")
        pattern = RELATIONS[name].pattern
        value = "1900" if pattern == r"\d{4}" else "poet" if pattern.startswith("[a-z]") else "Ef"
        value = {"university": "University of Gh", "river": "Gh River"}.get(name, value)
        for wording in (0, 1):
            text = "Before that. " + state(name, known, value, wording) + " Afterwards."
            assert read_object(name, known, [text]) == value
            assert read_subject(name, value, [text]) == known


def test_aliases_belong_to_one_person(library):
    aliases = [alias for person in library.world.kinds["person"] for alias in person.aliases]
    assert len(set(aliases)) == len(aliases) == 3000


def test_every_published_question_has_one_answer_and_the_oracle_finds_it(questions, retriever):
    for split in ("dev", "test"):
        assert len(questions[split]) == COUNTS["default"][split] * len(STYLES)
        for question in questions[split]:
            assert oracle_searches(question, retriever) is not None, question.task_id
            assert 1 <= len(question.hops) <= 4
            assert len({normalise(answer) for answer in question.answers}) == len(question.answers)


def test_one_query_is_not_enough_for_the_hard_styles(questions, retriever):
    found: dict[str, list[bool]] = {}
    shown: dict[str, list[bool]] = {}
    for question in questions["test"]:
        hits = retriever.search([question.text], 3)[0]
        found.setdefault(question.data_source, []).append(all_hops_found(question, hits))
        shown.setdefault(question.data_source, []).append(answer_shown(question, hits))
    share = {name: sum(values) / len(values) for name, values in found.items()}
    assert share["nq"] > 0.9
    assert share["popqa"] > 0.9
    assert share["triviaqa"] > 0.8
    assert share["hotpotqa"] <= 0.4
    assert share["bamboogle"] <= 0.4
    assert share["2wikimultihopqa"] <= 0.05
    assert share["musique"] <= 0.05
    for name in ("2wikimultihopqa", "musique", "bamboogle"):
        assert sum(shown[name]) / len(shown[name]) <= 0.1


def test_splits_share_no_question_entity_and_no_text(questions):
    starts = {
        split: {
            chain.start for question in asked for chain in question.plan.chains if question.data_source != "triviaqa"
        }
        for split, asked in questions.items()
    }
    answers = {
        split: {question.answers[0] for question in asked if question.data_source == "triviaqa"}
        for split, asked in questions.items()
    }
    for one, two in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert not answers[one] & answers[two]
        shared = starts[one] & starts[two]
        # Works of different kinds may share a title; they are different entities.
        works = open_library("default", 0).world.kinds
        assert shared <= {work.name for kind in ("novel", "film", "album") for work in works[kind]}
        assert not {q.text for q in questions[one]} & {q.text for q in questions[two]}


def test_question_i_does_not_depend_on_how_many_are_asked():
    library = open_library("tiny", 0)
    retriever = BM25Retriever(library.corpus)
    for style in STYLES:
        few = list(published(library.maker, retriever, style, "train", 3))
        assert few == list(published(library.maker, retriever, style, "train", 6))[:3]


def test_shipped_manifests_are_what_the_generator_selects():
    for split in SPLITS:
        shipped = GeneratedQuestions("tiny", 0).manifest(split)
        assert make_manifest("tiny", 0, split).ids == shipped.ids
        assert shipped.name == f"search_qa/generated-tiny-0/{split}"
    assert make_manifest("default", 0, "dev").sha256 == GeneratedQuestions("default", 0).manifest("dev").sha256


def test_the_hops_panel_is_fixed_balanced_and_within_reach_of_the_oracle():
    source = GeneratedQuestions("default", 0)
    panel = source.manifest("hops")
    assert panel.sha256 == "081f2699e5ac66db1136052582be9f989bac3757ace42972c9947ff91b50ed73"
    asked = [source.question(task_id) for task_id in panel]
    assert [question.n_hops for question in asked] == [hops for hops in (1, 2, 3, 4) for _ in range(100)]
    tested = set(source.task_ids("test"))
    assert all(task_id.split("/")[1] == "test" for task_id in panel)
    assert sum(task_id in tested for task_id in panel) == 300, "the rest is of the two longest styles"
    env = SearchQAEnv(split="hops")
    for task_id in list(panel)[::25]:
        info = env.reset(options={"task_id": task_id})[1]
        assert info["search_qa"]["measures"] == {"answer shown": 0.0, "recall": 0.0}
        hops, ended = info["search_qa"]["by"]["hops"], False
        while not ended:
            _, _, ended, cut, info = env.step(env.oracle_action())
            assert not cut
        assert info["success"] and info["search_qa"]["measures"]["recall"] == 1.0
        assert len(info["search_qa"]["gold_found"]) == hops


def test_other_seeds_make_other_worlds_with_their_own_manifests(monkeypatch, tmp_path):
    monkeypatch.setenv("SEED_CACHE_DIR", str(tmp_path))
    source = GeneratedQuestions("tiny", 5)
    assert len(source.task_ids("test")) == COUNTS["tiny"]["test"] * len(STYLES)
    question = source.question(source.task_ids("test")[0])
    assert (
        question.text != GeneratedQuestions("tiny", 0).question(GeneratedQuestions("tiny", 0).task_ids("test")[0]).text
    )
    assert list(tmp_path.rglob("*-generated-tiny-5-test.txt"))


def test_sizes():
    assert set(SIZES) == {"tiny", "default", "large"}
    assert 250 <= len(open_library("tiny", 0).corpus) <= 350
