"""Scores and ranking equal Lucene's: worked numbers, kernels, ties, files, resuming, and Lucene itself."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest
from search_qa_samples import TIDE_MILL, WORKED
from search_qa_witness import ask_java, require_java

from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.lucene import BM25Index, analyze, disk_builder, storage
from seed_envs.lucene.disk_builder import build_on_disk
from seed_envs.lucene.scoring import decode_lengths, encode_lengths, inverse_norms, printed_scores
from seed_envs.lucene.storage import MANIFEST

KERNELS = ["numpy", "numba"]


def bits(value: float) -> int:
    """The float32 bit pattern."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


def assert_hits(found, expected):
    assert [doc for doc, _ in found] == [doc for doc, _ in expected]
    for (_, score), (_, wanted) in zip(found, expected, strict=True):
        assert abs(bits(score) - bits(wanted)) <= 1, (score, wanted)


@pytest.fixture(params=KERNELS)
def kernel(request):
    if request.param == "numba":
        pytest.importorskip("numba", reason="packages: the compiled kernel needs numba")
    return request.param


@pytest.fixture
def index(kernel):
    return BM25Index.build(WORKED, ties="id", kernel=kernel)


def test_length_codes():
    lengths = {41: 40, 43: 42, 55: 54, 59: 56, 63: 60, 87: 84, 100: 96, 120: 120, 150: 144, 180: 168, 500: 472}
    lengths |= {1000: 984, 5000: 4632, 0: 0, 7: 7, 23: 23, 24: 24, 39: 39, 2**31 - 1: 2013265944}
    assert decode_lengths(encode_lengths(np.array(list(lengths)))).tolist() == list(lengths.values())
    assert encode_lengths(decode_lengths(np.arange(256, dtype=np.uint8))).tolist() == list(range(256))


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_length_codes_do_not_depend_on_the_type_of_the_lengths(kind):
    lengths = np.array([0, 7, 23, 24, 39, 41, 200, 255])
    assert encode_lengths(lengths.astype(kind)).tolist() == encode_lengths(lengths).tolist()


def test_statistics_and_norms(index):
    assert index.meta["n_with_tokens"] == 6
    assert index.meta["average_length"] == float(np.float32(16.666666))
    norms = inverse_norms(index.meta["average_length"], 0.9, 0.4)
    codes = encode_lengths(np.array([7, 10, 59]))
    assert [bits(x) for x in norms[codes]] == [bits(x) for x in (1.4467593, 1.3227514, 0.57155925)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("river", [("p1", 0.35290158), ("p2", 0.26125398), ("p4", 0.25161320), ("p5", 0.16068983)]),
        ("Mara Quill novelist", [("p10", 1.6390525), ("p3", 1.6390525), ("p4", 0.78946155)]),
        ("Ostara", [("p2", 0.32835370), ("p10", 0.26125398), ("p3", 0.26125398), ("p1", 0.25161320)]),
        ("harbor", [("p4", 0.74718392), ("p5", 0.37446153)]),
        ("the of", []),
        ("", []),
        ("unseen", []),
    ],
)
def test_worked_scores(index, query, expected):
    assert_hits(index.search(query, 10), expected)


def test_repeated_query_terms_and_printed_scores(index):
    assert_hits(index.search("river river", 1), [("p1", 0.70580316)])
    raw = [score for _, score in index.search("Mara Quill novelist", 10)]
    assert [round(score, 6) for score in printed_scores(raw)] == [1.6391, 1.639099, 0.7895]


def test_an_added_passage_changes_the_statistics(kernel):
    index = BM25Index.build([*WORKED, TIDE_MILL], ties="id", kernel=kernel)
    expected = [("p1", 0.29807025), ("p2", 0.22017027), ("p6", 0.21434651), ("p4", 0.21154867), ("p5", 0.13218196)]
    assert_hits(index.search("river", 10), expected)
    assert_hits(index.search("tide", 10), [("p6", 1.2182908)])
    assert (index.meta["n_with_tokens"], index.meta["total_tokens"]) == (7, 109)


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(index, k):
    with pytest.raises(ValueError, match="at least 1"):
        index.search("river", k)


def test_ties_by_insertion_or_by_id(kernel):
    docs = [(name, "red mug") for name in ("b2", "é", "a9", "Z", "10", "2", "01", "a")]
    inserted = BM25Index.build(docs, kernel=kernel).search("mug", 8)
    assert [doc for doc, _ in inserted] == [doc for doc, _ in docs]
    by_id = BM25Index.build(docs, ties="id", kernel=kernel).search("mug", 8)
    assert [doc for doc, _ in by_id] == ["01", "10", "2", "Z", "a", "a9", "b2", "é"]
    assert [doc for doc, _ in BM25Index.build(docs, ties="id", kernel=kernel).search("mug", 3)] == ["01", "10", "2"]


def test_thirty_equal_passages_and_k_beyond_the_hits(kernel):
    index = BM25Index.build([(f"d{n:02d}", "same words here") for n in range(30)], kernel=kernel)
    assert [doc for doc, _ in index.search("words", 7)] == [f"d{n:02d}" for n in range(7)]
    assert len(index.search("words", 100)) == 30


def test_an_empty_index_and_passages_without_tokens(kernel):
    assert BM25Index.build([], kernel=kernel).search("x", 3) == []
    with_empty = BM25Index.build([*WORKED, ("p7", "the of"), ("p8", "")], ties="id", kernel=kernel)
    assert with_empty.search("river", 10) == BM25Index.build(WORKED, ties="id", kernel=kernel).search("river", 10)


def random_collection(seed, count):
    rng = random.Random(seed)
    words = [f"w{n}" for n in range(400)]
    return [
        (f"{n}", " ".join(rng.choices(words, weights=range(400, 0, -1), k=rng.randint(0, 90)))) for n in range(count)
    ]


def test_kernels_agree_to_the_bit():
    pytest.importorskip("numba", reason="packages: the compiled kernel needs numba")
    docs = random_collection(1, 3000)
    one, two = (BM25Index.build(docs, ties="id", kernel=kernel) for kernel in KERNELS)
    rng = random.Random(2)
    for _ in range(300):
        query = " ".join(f"w{rng.randrange(400)}" for _ in range(rng.randint(1, 9)))
        query += " " + query if rng.random() < 0.2 else ""
        for k in (1, 3, 10, 100):
            assert one.search(query, k) == two.search(query, k)


def test_many_queries_at_once_give_what_single_ones_give(kernel):
    index = BM25Index.build(random_collection(5, 400), ties="id", kernel=kernel)
    rng = random.Random(6)
    queries = [[f"w{rng.randrange(450)}" for _ in range(rng.randint(0, 9))] for _ in range(60)]
    queries += [[], ["unknown"], ["w1"] * 5, []]
    for k in (1, 3, 500):
        batch = index.search_batch(queries, k)
        assert batch == [index.search_terms(query, k) for query in queries]
        assert batch[-4:-2] == [[], []]
        assert batch[-2]
    assert index.search_batch([], 3) == []
    assert BM25Index.build([], kernel=kernel).search_batch([["x"], []], 3) == [[], []]


def test_kernels_agree_where_searches_end_early():
    pytest.importorskip("numba", reason="packages: the compiled kernel needs numba")
    rng = random.Random(4)
    docs = [
        (
            f"{n}",
            "common " * rng.randint(1, 4)
            + " ".join(rng.choice(["often", f"rare{n % 97}", f"once{n}"]) for _ in range(8)),
        )
        for n in range(12_000)
    ]
    one, two = (BM25Index.build(docs, ties="id", kernel=kernel) for kernel in KERNELS)
    for _ in range(400):
        words = [f"rare{rng.randrange(97)}", f"once{rng.randrange(12_000)}", "common", "often", "common"]
        query = " ".join(rng.sample(words, rng.randint(1, 5)))
        for k in (1, 3, 50):
            assert one.search(query, k) == two.search(query, k), query


def test_saved_indices_are_mapped_and_equal(tmp_path, kernel):
    built = BM25Index.build(WORKED, ties="id", kernel=kernel)
    fingerprint = built.save(tmp_path / "index")
    loaded = BM25Index.load(tmp_path / "index", kernel=kernel, verify=True)
    assert loaded.fingerprint == fingerprint
    assert isinstance(loaded.arrays["documents"].base, np.memmap)
    for query in ("river", "Mara Quill novelist", "Ostara"):
        assert loaded.search(query, 10) == built.search(query, 10)
    assert {path.suffix for path in (tmp_path / "index").iterdir()} == {".npy", ".json"}


def test_damaged_and_foreign_indices_are_refused(tmp_path):
    BM25Index.build(WORKED).save(tmp_path / "index")
    with pytest.raises(DataMissing, match="found none"):
        BM25Index.load(tmp_path / "nothing")
    manifest = json.loads((tmp_path / "index" / MANIFEST).read_text())
    for key, value, message in (("format", "other/1", "expected format"), ("analyzer", "old", "analyzer")):
        (tmp_path / "index" / MANIFEST).write_text(json.dumps({**manifest, key: value}))
        with pytest.raises(DataInvalid, match=message):
            BM25Index.load(tmp_path / "index")
    (tmp_path / "index" / MANIFEST).write_text(json.dumps(manifest))
    path = tmp_path / "index" / "documents.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataInvalid, match="sha256"):
        BM25Index.load(tmp_path / "index", verify=True)
    path.write_bytes(data[:-4])
    with pytest.raises(DataInvalid, match="bytes"):
        BM25Index.load(tmp_path / "index")


def damaged(folder, name, array):
    """Replaces an array, with a manifest that fits its size."""
    with (folder / f"{name}.npy").open("wb") as stream:
        np.save(stream, array, allow_pickle=True)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["arrays"][name]["bytes"] = (folder / f"{name}.npy").stat().st_size
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_arrays_that_do_not_fit_are_refused_before_any_kernel_follows_them(tmp_path, kernel):
    good = BM25Index.build(random_collection(9, 60), ties="id")
    good.save(tmp_path / "good")
    for name, array in good.arrays.items():
        odd = [array[:0], array[: len(array) // 2], array.astype(np.float64), array[None], np.array([{}] * len(array))]
        if name in ("documents", "positions", "posting_offsets"):
            odd += [np.full_like(array, np.iinfo(array.dtype).max), -abs(array) - 1]
        for number, changed in enumerate(odd):
            folder = tmp_path / f"{name}-{number}"
            shutil.copytree(tmp_path / "good", folder)
            damaged(folder, name, changed)
            with pytest.raises(DataInvalid, match="again"):
                BM25Index.load(folder, kernel=kernel).search("w1 w2 w3", 3)
        path = folder / f"{name}.npy"
        path.write_bytes(b"garbage!!!" + path.read_bytes()[10:])
        with pytest.raises(DataInvalid, match="not an array file"):
            BM25Index.load(folder)


@pytest.mark.parametrize("key", ["analyzer", "arrays", "average_length", "b", "k1", "n_documents", "n_with_tokens"])
def test_manifests_that_do_not_fit_are_refused(tmp_path, key):
    BM25Index.build(WORKED).save(tmp_path / "index")
    path = tmp_path / "index" / MANIFEST
    manifest = json.loads(path.read_text())
    for value in (None, "x", [], {}, {"documents": 1}, {"documents": {}}, float("nan"), -1):
        path.write_text(json.dumps({**manifest, key: value}))
        with pytest.raises(DataInvalid, match="again"):
            BM25Index.load(tmp_path / "index")
    for text in (b"[]", b"\xff\xfe\x00", b"[" * 100_000, b""):
        path.write_bytes(text)
        with pytest.raises(DataInvalid, match="again"):
            BM25Index.load(tmp_path / "index")


def test_equal_ids_are_refused_and_named():
    with pytest.raises(DataInvalid, match="'p1' occurs twice"):
        BM25Index.build([("p1", "a"), ("p1", "b")])


@pytest.mark.parametrize("ties", ["id", "insertion"])
def test_building_in_pieces_gives_the_same_bytes(tmp_path, ties):
    docs = random_collection(5, 700)
    whole = BM25Index.build(docs, ties=ties).save(tmp_path / "whole")
    pieces = build_on_disk(lambda start: docs[start:], len(docs), tmp_path / "pieces", ties=ties, piece=90)
    assert pieces == whole
    assert not list(tmp_path.glob(".pieces*"))


def test_a_stopped_build_goes_on_and_never_shows_half_an_index(tmp_path):
    docs = random_collection(6, 500)
    reads = []

    def passages(start):
        reads.append(start)
        for position in range(start, len(docs)):
            if position == 370 and len(reads) < 5:
                raise KeyboardInterrupt
            yield docs[position]

    with pytest.raises(KeyboardInterrupt):
        build_on_disk(passages, len(docs), tmp_path / "index", piece=100)
    with pytest.raises(DataMissing):
        BM25Index.load(tmp_path / "index")
    reads[:] = [0] * 5
    fingerprint = build_on_disk(passages, len(docs), tmp_path / "index", piece=100)
    assert reads[5:] == [300, 400]
    assert fingerprint == BM25Index.build(docs).save(tmp_path / "whole")


def test_a_killed_builder_is_succeeded_by_the_next_one(tmp_path):
    """SIGKILL at passage 350, then in the middle of merging; the third builder finishes and leaves no litter."""
    docs = random_collection(6, 500)
    target = tmp_path / "index"

    def build(kill_at=None, kill_in=None):
        def passages(start):
            for position in range(start, len(docs)):
                if position == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield docs[position]

        if kill_in is not None:
            setattr(disk_builder, kill_in, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        build_on_disk(passages, len(docs), target, piece=100)

    for arguments in ({"kill_at": 350}, {"kill_in": "_gather"}):
        process = multiprocessing.get_context("fork").Process(target=build, kwargs=arguments)
        process.start()
        process.join(120)
        assert process.exitcode == -signal.SIGKILL
        assert not target.exists()
    build()
    assert BM25Index.load(target, verify=True).fingerprint == BM25Index.build(docs).save(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "whole"]


@pytest.mark.parametrize("piece", [50, 1000])
def test_several_processes_and_threads_may_build_the_same_index(tmp_path, piece):
    docs = random_collection(7, 200)
    expected = BM25Index.build(docs).save(tmp_path / "whole")
    context = multiprocessing.get_context("fork")
    barrier, found = context.Barrier(6), context.Queue()

    def build():
        barrier.wait(60)
        build_on_disk(lambda start: docs[start:], len(docs), tmp_path / "index", piece=piece)
        found.put(BM25Index.load(tmp_path / "index", verify=True).fingerprint)

    workers = [context.Process(target=build) for _ in range(3)]
    workers += [threading.Thread(target=build, daemon=True) for _ in range(3)]
    for worker in workers:
        worker.start()
    assert [found.get(timeout=120) for _ in workers] == [expected] * 6
    for worker in workers:
        worker.join(120)


def test_the_lock_of_a_directory_is_held_by_one_process_or_thread_at_a_time(tmp_path):
    """Often taken and given back, since the file that holds the lock is made and removed each time."""
    counter, rounds = tmp_path / "count", 200
    counter.write_text("0")
    context = multiprocessing.get_context("fork")
    faults = context.SimpleQueue()

    def count():
        try:
            for _ in range(rounds):
                with storage.exclusive(tmp_path / "index"):
                    counter.write_text(str(int(counter.read_text()) + 1))
            faults.put(None)
        except Exception as error:
            faults.put(repr(error))

    workers = [context.Process(target=count) for _ in range(4)] + [threading.Thread(target=count) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
    assert [faults.get() for _ in workers] == [None] * 8
    assert int(counter.read_text()) == 8 * rounds and [path.name for path in tmp_path.iterdir()] == ["count"]


def test_a_killed_build_process_leaves_the_old_index_readable(tmp_path):
    BM25Index.build(WORKED).save(tmp_path / "index")
    code = (
        "import os, sys\n"
        "from seed_envs.lucene import BM25Index, storage\n"
        "steps = int(sys.argv[2]); count = [0]\n"
        "def trace(frame, event, arg):\n"
        "    if frame.f_code.co_filename.endswith('storage.py'):\n"
        "        count[0] += 1\n"
        "        if count[0] == steps: os._exit(9)\n"
        "    return trace\n"
        "index = BM25Index.build([('n', 'new words')])\n"
        "sys.settrace(trace)\n"
        "index.save(sys.argv[1])\n"
    )
    ended = []
    for steps in (1, 15, 60, 110, 100_000):
        run = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "index"), str(steps)], check=False, timeout=600,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )  # fmt: skip
        ended.append(run.returncode)
        found = BM25Index.load(tmp_path / "index", verify=True).search("river words", 1)
        assert found[0][0] == ("n" if run.returncode == 0 else "p1")
    assert ended == [9, 9, 9, 9, 0]


def test_sixteen_threads_agree_with_one(kernel):
    docs = random_collection(8, 2500)
    index = BM25Index.build(docs, ties="id", kernel=kernel)
    queries = [f"w{n} w{(7 * n) % 400} w{(3 * n) % 400}" for n in range(60)]
    expected = [index.search(query, 5) for query in queries]
    results: list[list] = [[] for _ in range(16)]

    def work(slot):
        results[slot] = [index.search(query, 5) for query in queries]

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600)
    assert all(found == expected for found in results)


def test_a_thousand_real_queries_equal_lucene_including_ties(data_dir, tmp_path):
    require_java()
    folder = data_dir / "search_qa"
    if not (folder / "passages.jsonl.gz").is_file():
        pytest.skip(f"real data: {folder} is incomplete")
    with gzip.open(folder / "passages.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    docs = [(row["id"], f'"{row["title"]}"\n{row["text"]}') for row in rows]
    # Copies of every fiftieth passage under another id make ties that only the order of ids can decide.
    docs += [(f"copy-{doc_id}", text) for doc_id, text in docs[::50]]
    with gzip.open(folder / "questions.jsonl.gz", "rt", encoding="utf-8") as stream:
        questions = [json.loads(line)["question"] for line in stream]
    rng = random.Random(0)
    queries = rng.sample(questions, 900) + [text.split("\n", 1)[1][:120] for _, text in rng.sample(docs[::50], 100)]
    (tmp_path / "passages").mkdir()
    with (tmp_path / "passages" / "p.jsonl").open("w") as stream:
        stream.writelines(json.dumps({"id": doc_id, "contents": text}) + "\n" for doc_id, text in docs)
    (tmp_path / "texts.json").write_text("[]")
    (tmp_path / "queries.json").write_text(json.dumps(queries))
    ask_java(tmp_path)
    index = BM25Index.build(docs, ties="id")
    ties = 0
    for query, (printed, raw) in zip(queries, json.loads((tmp_path / "hits.json").read_text()), strict=True):
        found = index.search(query, 10)
        scores = [score for _, score in found]
        assert [doc for doc, _ in found] == [doc for doc, _ in printed], query
        assert scores == raw, query
        assert printed_scores(scores) == [score for _, score in printed], query
        ties += len(set(scores)) < len(scores)
    assert ties > 50
    assert analyze("ties") == ["ti"]
