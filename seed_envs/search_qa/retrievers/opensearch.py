"""OpenSearch and Elasticsearch over their REST interface: BM25 or vectors, for collections of any size.

The index uses BM25 with k1 0.9 and b 0.4 and the built-in `english` analyzer, which is Lucene's chain; with more than
one shard, statistics are made global per query (`dfs_query_then_fetch`). Queries are bags of words (`match`), never
query syntax. Tested against the documented wire format, not against a running cluster.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np

from seed_envs.errors import UnknownOption
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.encoders import Encoder, open_encoder
from seed_envs.search_qa.retrievers.base import Capabilities, Hit, RetrievalRejected
from seed_envs.search_qa.retrievers.clauses import within_clauses
from seed_envs.search_qa.retrievers.endpoints import BadAnswer, Endpoints
from seed_envs.search_qa.retrievers.holding import HoldingRetriever, Label

_NDJSON = "application/x-ndjson"
_JSON = "application/json"
_LOAD_SECONDS = 120.0


class OpenSearchRetriever(HoldingRetriever):
    """A client of one index.

    Args:
        bases: Addresses of the cluster's nodes.
        index: Index name.
        encoder: Search by vectors of this encoder instead of words.
        flavour: "opensearch" or "elasticsearch"; they differ in how vectors are declared and asked for.
        headers: For example `Authorization`.
        shards: Shards of a new index.
        corpus: The collection that the index must hold; None takes what is there.
    """

    batch = 1000

    def __init__(
        self,
        bases: Sequence[str],
        index: str,
        encoder: Encoder | None = None,
        flavour: str = "opensearch",
        headers: Mapping[str, str] | None = None,
        shards: int = 1,
        corpus: Corpus | None = None,
    ) -> None:
        hosts = ",".join(base.partition("://")[2].rpartition("@")[2] for base in bases)
        super().__init__(f"{flavour}://{hosts}/{index}", encoder, corpus)
        self.index, self.flavour, self.shards = index, flavour, shards
        self.capabilities = Capabilities(vector=encoder is not None)
        self._path = "/" + quote(index, safe="")
        self._endpoints = Endpoints(bases, headers)

    @property
    def engine(self) -> str:  # type: ignore[override]
        """The flavour."""
        return self.flavour

    def _parameters(self) -> dict[str, object]:
        return {"k1": 0.9, "b": 0.4}

    def _call(
        self, method: str, path: str, body: bytes, kind: str = _JSON, deadline: float | None = None
    ) -> Mapping[str, Any]:
        return self._endpoints.call(method, path, body, kind, _read_object, deadline)

    def settings(self) -> dict[str, Any]:
        """Settings and mapping of the index."""
        fields: dict[str, Any] = {
            "docid": {"type": "keyword"},
            "title": {"type": "keyword", "index": False, "doc_values": False},
            "text": {"type": "keyword", "index": False, "doc_values": False},
            "quoted": {"type": "boolean", "index": False},
            "contents": {"type": "text", "analyzer": "english"},
        }
        settings: dict[str, Any] = {
            "number_of_shards": self.shards,
            "similarity": {"default": {"type": "BM25", "k1": 0.9, "b": 0.4}},
        }
        if self.encoder is not None:
            size = self.encoder.record.dimension
            if self.flavour == "opensearch":
                settings["knn"] = True
                method = {"name": "hnsw", "engine": "faiss", "space_type": "innerproduct"}
                fields["vector"] = {"type": "knn_vector", "dimension": size, "method": method}
            else:
                fields["vector"] = {"type": "dense_vector", "dims": size, "similarity": "max_inner_product"}
        return {"settings": {"index": settings}, "mappings": {"properties": fields, "dynamic": False}}

    def stored(self) -> int:
        """How many passages the index holds."""
        self._call("POST", f"{self._path}/_refresh", b"", deadline=time.monotonic() + _LOAD_SECONDS)
        return int(self._call("GET", f"{self._path}/_count", b"")["count"])

    def read_label(self, deadline: float | None = None) -> Label | None:
        """See `HoldingRetriever.read_label`; the label stands in the mapping."""
        try:
            answer = self._call("GET", f"{self._path}/_mapping", b"", deadline=deadline)
        except RetrievalRejected as error:
            if error.details.status == 404:
                return None
            raise
        found = next(iter(answer.values()), None)  # under the index's own name where this one is an alias
        meta = found.get("mappings", {}).get("_meta", {}) if isinstance(found, dict) else {}
        return Label.parse(meta.get("seed_collection"))

    def _create(self, label: Label) -> None:
        settings = self.settings()
        settings["mappings"]["_meta"] = {"seed_collection": label.text()}
        self._call("PUT", self._path, json.dumps(settings).encode())

    def _drop(self) -> None:
        self._call("DELETE", self._path, b"", deadline=time.monotonic() + _LOAD_SECONDS)

    def _write(self, first: int, passages: list[Hit]) -> None:
        vectors = None
        if self.encoder is not None:
            vectors = self.encoder.encode_passages([hit.contents for hit in passages])
        lines = []
        for number, hit in enumerate(passages):
            document = {**hit._asdict(), "docid": hit.id, "contents": hit.contents}
            del document["id"], document["score"]
            if vectors is not None:
                document["vector"] = vectors[number].tolist()
            lines += [json.dumps({"index": {"_id": hit.id}}), json.dumps(document)]
        body = ("\n".join(lines) + "\n").encode()
        answer = self._call("POST", f"{self._path}/_bulk", body, _NDJSON, time.monotonic() + _LOAD_SECONDS)
        if answer.get("errors"):
            failed = next((item for item in answer["items"] if "error" in item["index"]), None)
            raise RetrievalRejected(f"passages from {first} on were refused: {str(failed)[:300]}")

    def _search(self, queries: list[str], k: int, deadline: float | None) -> list[list[Hit]]:
        """All queries go out in one `_msearch`."""
        lines = []
        for body in self._bodies(queries, k):
            lines += [json.dumps({"index": self.index, "search_type": "dfs_query_then_fetch"}), json.dumps(body)]
        data = ("\n".join(lines) + "\n").encode()

        def read(answer: bytes, headers: Mapping[str, str]) -> list[list[Hit]]:
            return self._read_searches(_read_object(answer, headers), len(queries))

        with self._missing_if_404():
            return self._endpoints.call("POST", "/_msearch", data, _NDJSON, read, deadline)

    def _bodies(self, queries: list[str], k: int) -> list[dict[str, Any]]:
        common = {"size": k, "_source": ["title", "text", "quoted"], "sort": ["_score", {"docid": "asc"}]}
        if self.encoder is None:
            return [
                {"query": {"match": {"contents": {"query": query}}}, **common} for query in map(within_clauses, queries)
            ]
        vectors = np.asarray(self.encoder.encode_queries(queries)).tolist()
        if self.flavour == "opensearch":
            return [{"query": {"knn": {"vector": {"vector": vector, "k": k}}}, **common} for vector in vectors]
        return [
            {"knn": {"field": "vector", "query_vector": vector, "k": k, "num_candidates": max(100, 10 * k)}, **common}
            for vector in vectors
        ]

    def _read_searches(self, answer: Mapping[str, Any], count: int) -> list[list[Hit]]:
        responses = answer.get("responses")
        if not isinstance(responses, list) or len(responses) != count:
            raise BadAnswer(f"expected {count} responses, got {str(answer)[:120]!r}")
        results = []
        for response in responses:
            if "error" in response:
                if "index_not_found" in str(response["error"]):
                    raise self._missing()
                raise BadAnswer(f"a search failed: {str(response['error'])[:200]}")
            if response.get("timed_out") or response.get("_shards", {}).get("failed"):
                raise BadAnswer("a search is incomplete: shards failed or timed out")
            try:
                found = response["hits"]["hits"]
                results.append([_hit(item) for item in found])
            except (KeyError, TypeError) as error:
                raise BadAnswer(f"a hit lacks {error}") from error
        return results

    def close(self) -> None:
        """Closes idle connections."""
        self._endpoints.close()


def _read_object(body: bytes, headers: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise BadAnswer(f"the answer is not JSON: {body[:80]!r}") from error
    if not isinstance(answer, dict):
        raise BadAnswer(f"expected an object, got {type(answer).__name__}")
    return answer


def _hit(item: Mapping[str, Any]) -> Hit:
    source = item["_source"]
    return Hit(str(item["_id"]), source["title"], source["text"], float(item["_score"]), bool(source["quoted"]))


def _open(
    name: str, flavour: str, corpus: Corpus | None, encoder: str | Encoder | None, **options: Any
) -> OpenSearchRetriever:
    parts = urlsplit(name)
    index = parts.path.strip("/")
    if not parts.hostname or not index:
        raise UnknownOption(f"retriever={name!r}: write {flavour}://HOST:9200/INDEX, with ?tls=1 for https")
    scheme = "https" if parse_qs(parts.query).get("tls") == ["1"] else "http"
    bases = [f"{scheme}://{host}" for host in parts.netloc.split("@")[-1].split(",")]
    chosen = open_encoder(encoder) if isinstance(encoder, str) else encoder
    return OpenSearchRetriever(bases, index, chosen, flavour, corpus=corpus, **options)


def open_opensearch(
    name: str, corpus: Corpus | None, encoder: str | Encoder | None = None, **options: Any
) -> OpenSearchRetriever:
    """Opens `opensearch://HOST:9200[,HOST:9200]/INDEX`."""
    return _open(name, "opensearch", corpus, encoder, **options)


def open_elasticsearch(
    name: str, corpus: Corpus | None, encoder: str | Encoder | None = None, **options: Any
) -> OpenSearchRetriever:
    """Opens `elasticsearch://HOST:9200[,HOST:9200]/INDEX`."""
    return _open(name, "elasticsearch", corpus, encoder, **options)
