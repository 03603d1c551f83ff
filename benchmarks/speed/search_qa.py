"""Search QA beside Lucene (Anserini through the JVM) and beside a Search-R1-style server, on 51,020 generated passages.

The rival server does what Search-R1's does: one process, FastAPI and uvicorn, Lucene queries one by one, documents
parsed from their stored JSON. It runs as a child process like ours; both are asked by the same client over kept
connections, and the processor time of both is read from ``/proc``. Needs the extra ``lucene``, a Java runtime, and
the packages ``fastapi`` and ``uvicorn``.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import seed_envs
from seed_envs.errors import require
from seed_envs.lucene import BM25Index
from seed_envs.lucene.java import anserini_jar
from seed_envs.lucene.storage import MANIFEST, ArrayWriter
from seed_envs.search_qa.corpus import iterate
from seed_envs.search_qa.knowledge.library import open_library
from seed_envs.search_qa.knowledge.styles import STYLES
from seed_envs.search_qa.retrievers.bm25 import BM25Retriever
from seed_envs.search_qa.retrievers.lucene import LuceneRetriever
from seed_envs.search_qa.vectors import BLOCK_ROWS, VectorMatrix

from .rows import SpeedRow, compare_rates, measure_rate

LUCENE = "Lucene 9.9.1 (Anserini, JVM)"
RIVAL = "Search-R1-style server (FastAPI, Lucene)"
TOP_K = 3
QUERIES = 1000
BATCH = 64
_CPU = "CPU time, 51,020 passages, 1,000 generated questions, top 3"


def measure() -> list[SpeedRow]:
    """Run the comparison.

    Raises:
        DependencyMissing: without pyjnius and the Anserini jar, Java, FastAPI or uvicorn.
    """
    anserini_jar()
    for package in ("fastapi", "uvicorn"):
        require(package, "services", "the Search-R1-style server")
    gym.register_envs(seed_envs)
    library = open_library("large", 0)
    ours = BM25Retriever(library.corpus, kernel="numba")
    ours.open()
    queries = _questions(library.maker)
    with tempfile.TemporaryDirectory() as folder:
        _lucene_index(library.corpus, Path(folder))
        rows = [*_servers(Path(folder) / "index", queries), *_index_alone(ours.open(), queries)]
        rows += [_env_steps(cached=False), _env_steps(cached=True), *_dense(Path(folder))]
        # Last, because the threads of the JVM that it starts would count as CPU time of everything after it.
        rows.append(_beside_lucene(ours, LuceneRetriever(Path(folder) / "index"), queries))
    return rows


def _questions(maker: Any) -> list[str]:
    """Texts of candidate questions, all styles in turn."""
    found: list[str] = []
    number = 0
    while len(found) < QUERIES:
        for style in STYLES:
            question = maker.question(style, "test", number)
            if question is not None:
                found.append(question.text)
        number += 1
    return found[:QUERIES]


def _lucene_index(corpus: Any, folder: Path) -> None:
    (folder / "passages").mkdir()
    with (folder / "passages" / "passages.jsonl").open("w", encoding="utf-8") as stream:
        for hit in iterate(corpus):
            stream.write(json.dumps({"id": hit.id, "contents": hit.contents}) + "\n")
    # In a process of its own: indexing threads must not count as search time.
    code = "import sys; from seed_envs.search_qa.retrievers.lucene import build_lucene_index as b; b(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(folder / "passages"), str(folder / "index")]
    subprocess.run(command, check=True, capture_output=True)


def _index_alone(index: BM25Index, queries: list[str]) -> list[SpeedRow]:
    def bare(kernel: str) -> SpeedRow:
        which = BM25Index(index.arrays, index.meta, kernel=kernel)

        def run() -> int:
            for query in queries:
                which.search(query, TOP_K)
            return len(queries)

        run()
        name = {"numba": "compiled", "numpy": "NumPy"}[kernel]
        return SpeedRow(f"BM25 index alone, {name} kernel", measure_rate(run), None, "searches/s", how=_CPU)

    return [bare("numba"), bare("numpy")]


def _beside_lucene(ours: BM25Retriever, lucene: LuceneRetriever, queries: list[str]) -> SpeedRow:
    expected = [[hit.id for hit in hits] for hits in lucene.search(queries, TOP_K)]
    found = [[hit.id for hit in hits] for hits in ours.search(queries, TOP_K)]
    agreement = sum(a == b for a, b in zip(expected, found, strict=True)) / len(queries)

    def work(retriever: Any) -> Callable[[], int]:
        def run() -> int:
            for query in queries:
                retriever.search([query], TOP_K)
            return len(queries)

        return run

    mine, theirs = compare_rates(work(ours), work(lucene), clock=time.thread_time)
    how = f"{_CPU}, of the searching thread alone (the JVM compiles and collects in others)"
    note = f"ordered top {TOP_K} equal on {agreement:.1%} of the queries"
    return SpeedRow("BM25 searches, single calls, compiled kernel", mine, theirs, "searches/s", LUCENE, how, note=note)


def _env_steps(cached: bool) -> SpeedRow:
    kwargs: dict[str, Any] = {} if cached else {"cache_bytes": 0}
    env: Any = gym.make("seed/SearchQA-v0", split="test", **kwargs).unwrapped
    ids = list(env.task_ids("test"))
    episodes = []
    for task_id in ids:
        env.reset(options={"task_id": task_id})
        query = env.episode.question.text
        episodes.append((task_id, [f"<search>{query} {word}</search>" for word in ("born", "city", "")]))

    def work() -> int:
        for task_id, searches in episodes:
            env.reset(options={"task_id": task_id})
            for action in searches:
                env.step(action)
            env.step("<answer>unknown</answer>")
        return 4 * len(episodes)

    work()
    cache = "default result cache, every query asked before" if cached else "no cache"
    how = f"CPU time with resets, 75 % searches, {cache}, 10,140 passages, scoring and evidence metrics included"
    name = "environment steps, cached" if cached else "environment steps, every query new"
    return SpeedRow(name, measure_rate(work), None, "steps/s", how=how)


def _dense(folder: Path) -> list[SpeedRow]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((100_000, 384), dtype=np.float32)
    queries = rng.standard_normal((BATCH, 384), dtype=np.float32)
    matrix = VectorMatrix(rows)
    matrix.search(queries, TOP_K)
    single = _best_ms(lambda: matrix.search(queries[:1], TOP_K))
    read = _best_ms(lambda: float(rows.sum(dtype=np.float32)))
    batch = _best_ms(lambda: matrix.search(queries, TOP_K)) / BATCH
    out = np.empty((BATCH, BLOCK_ROWS), dtype=np.float32)

    def products() -> None:
        for start in range(0, len(rows), BLOCK_ROWS):
            block = rows[start : start + BLOCK_ROWS]
            np.matmul(queries, block.T, out=out[:, : len(block)])

    product = _best_ms(products) / BATCH
    how = "best of 7, CPU time, 100,000 x 384 float32"
    return [
        SpeedRow("flat search, one query", single, read, "ms/query", "reading the matrix once (sum)", how, False),
        SpeedRow("flat search, batch of 64", batch, product, "ms/query", "the matrix product alone", how, False),
        _opening(folder),
    ]


def _best_ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(7):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return 1000 * min(times)


def _opening(folder: Path) -> SpeedRow:
    writer = ArrayWriter(folder / "million")
    writer.create("vectors", np.float32, 1_000_000, 384)
    manifest = writer.manifest_text({"format": "seed-vectors/1"}, hashes=False)
    (writer.temporary / MANIFEST).write_text(manifest, encoding="utf-8")
    writer.temporary.rename(folder / "million")
    best = _best_ms(lambda: VectorMatrix.load(folder / "million"))
    return SpeedRow(
        "opening 1,000,000 x 384 vectors", best, None, "ms", how="best of 7, memory map", higher_is_better=False
    )


RIVAL_CODE = """
import json, sys, uvicorn
from typing import List, Optional
from fastapi import FastAPI
from pydantic import BaseModel
from seed_envs.lucene.java import java_class, java_string
searcher = java_class("io.anserini.search.SimpleSearcher")(sys.argv[1])
searcher.set_bm25(0.9, 0.4)
class Request(BaseModel):
    queries: List[str]
    topk: Optional[int] = None
    return_scores: bool = False
app = FastAPI()
def search(query, k):
    hits = searcher.search(java_string(query), k)
    scores = [hit.score for hit in hits]
    contents = [json.loads(searcher.doc_raw(hit.docid))["contents"] for hit in hits]
    parts = [c.partition("\\n") for c in contents]
    docs = [{"title": t.strip('"'), "text": x, "contents": c} for (t, _, x), c in zip(parts, contents)]
    return docs, scores
@app.post("/retrieve")
def retrieve(request: Request):
    found = [search(query, request.topk or 3) for query in request.queries]
    if request.return_scores:
        return {"result": [[{"document": d, "score": s} for d, s in zip(*one)] for one in found]}
    return {"result": [docs for docs, _ in found]}
print("ready", flush=True)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
"""


@contextmanager
def _child(command: Sequence[str]) -> Iterator[tuple[int, str]]:
    """A server process; yields its id and first line."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield process.pid, line
        finally:
            process.terminate()
            process.wait(20)


def _servers(index: Path, queries: list[str]) -> list[SpeedRow]:
    port = _free_port()
    options = "-m seed_envs.search_qa serve --collection large --port 0 --cache-mib 0".split()
    serve = [sys.executable, *options]
    rival = [sys.executable, "-c", RIVAL_CODE, str(index), str(port)]
    with _child(serve) as (ours, line), _child(rival) as (theirs, _):
        address = int(re.findall(r":(\d+)", line)[0])
        _wait(address)
        _wait(port)
        for target in (address, port):
            _ask(target, queries, BATCH)
        rates: dict[int, list[tuple[float, float]]] = {address: [], port: []}
        for _ in range(5):
            for target, pid in ((address, ours), (port, theirs)):
                rates[target].append(_timed(target, pid, queries, BATCH))
        wall = "best of 5 interleaved rounds, one client, kept connection, wall time; server's own CPU time beside it"
        mine, other = (max(rate for rate, _ in rates[target]) for target in (address, port))
        cpu_mine, cpu_other = (min(cpu for _, cpu in rates[target]) for target in (address, port))
        p99, other_p99 = _p99(address, queries), _p99(port, queries)
    return [
        SpeedRow("server, 64 queries a request", mine, other, "queries/s", RIVAL, wall),
        SpeedRow("server CPU, 64 queries a request", cpu_mine, cpu_other, "ms/query", RIVAL, wall, False),
        SpeedRow(
            "server p99, 64 clients, 1 query a request", p99, other_p99, "ms", RIVAL, "wall time, 1,280 requests", False
        ),
    ]


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int) -> None:
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("POST", "/retrieve", b'{"queries": ["x"]}', {"Content-Type": "application/json"})
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise RuntimeError(f"no server answers at port {port}")


def _ask(port: int, queries: Sequence[str], size: int) -> list[float]:
    """Sends all queries over one connection; returns the time of each request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    times = []
    for start in range(0, len(queries), size):
        body = json.dumps({"queries": queries[start : start + size], "topk": TOP_K, "return_scores": True}).encode()
        started = time.perf_counter()
        connection.request("POST", "/retrieve", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        times.append(time.perf_counter() - started)
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {data[:200]!r}")
    connection.close()
    return times


def _timed(port: int, pid: int, queries: list[str], size: int) -> tuple[float, float]:
    """Queries per second of wall time, and the server's CPU milliseconds per query."""
    before, started = _cpu_seconds(pid), time.perf_counter()
    _ask(port, queries, size)
    wall = time.perf_counter() - started
    return len(queries) / wall, 1000 * (_cpu_seconds(pid) - before) / len(queries)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _p99(port: int, queries: list[str]) -> float:
    """99th percentile in milliseconds of 64 clients that send 20 single queries each."""
    times: list[float] = []
    lock = threading.Lock()

    def client(number: int) -> None:
        found = _ask(port, queries[number * 15 : number * 15 + 20], 1)
        with lock:
            times.extend(found)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 1000 * float(np.percentile(times, 99))
