"""Qdrant over its REST interface: vectors by inner product. Tested against the client's own models, not a cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.encoders import Encoder, open_encoder, record_as_json
from seed_envs.search_qa.retrievers.base import Capabilities, Hit, RetrievalRejected, check_k, fingerprint_of
from seed_envs.search_qa.retrievers.endpoints import BadAnswer, Endpoints
from seed_envs.search_qa.retrievers.ingest import ingest_in_order

_LOAD_SECONDS = 120.0


class QdrantRetriever:
    """A client of one collection.

    Args:
        base: Address of the server.
        collection: Collection name; a passage's position is its point id.
        encoder: Makes the vectors.
        api_key: Sent as `api-key` where given.
    """

    def __init__(self, base: str, collection: str, encoder: Encoder, api_key: str = "") -> None:
        self.collection, self.encoder = collection, encoder
        self.capabilities = Capabilities(vector=True, tie_stable=False)
        self._path = "/collections/" + quote(collection, safe="")
        self._endpoints = Endpoints([base], {"api-key": api_key} if api_key else {})

    @property
    def fingerprint(self) -> str:
        """Engine, collection name and encoder; the content of a remote collection is not hashed."""
        record = {"engine": "qdrant", "collection": self.collection, "encoder": record_as_json(self.encoder.record)}
        return fingerprint_of(record)

    def _call(self, method: str, path: str, payload: Any = None, deadline: float | None = None) -> Any:
        body = b"" if payload is None else json.dumps(payload).encode()
        return self._endpoints.call(method, self._path + path, body, "application/json", _read_result, deadline)

    def stored(self) -> int:
        """How many points the collection holds."""
        return int(self._call("POST", "/points/count", {"exact": True})["count"])

    def ingest(self, corpus: Corpus, progress: bool = False, batch: int = 256) -> int:
        """Creates the collection where it is missing and loads the passages; can be interrupted and run again."""
        size = self.encoder.record.dimension
        try:
            self._call("PUT", "", {"vectors": {"size": size, "distance": "Dot"}}, time.monotonic() + _LOAD_SECONDS)
        except RetrievalRejected as error:
            if "already exists" not in str(error):
                raise
        return ingest_in_order(corpus, self.stored, self._write, batch, progress)

    def _write(self, first: int, passages: list[Hit]) -> None:
        vectors = self.encoder.encode_passages([hit.contents for hit in passages])
        points = [
            {
                "id": first + number,
                "vector": vectors[number].tolist(),
                "payload": {"id": hit.id, "title": hit.title, "text": hit.text, "quoted": hit.quoted},
            }
            for number, hit in enumerate(passages)
        ]
        self._call("PUT", "/points?wait=true", {"points": points}, time.monotonic() + _LOAD_SECONDS)

    def search(self, queries: Sequence[str], k: int, deadline: float | None = None) -> list[list[Hit]]:
        """See `Retriever.search`; all queries go out in one call."""
        check_k(k)
        if not queries:
            return []
        vectors = self.encoder.encode_queries(list(queries)).tolist()
        searches = [{"query": vector, "limit": k, "with_payload": True} for vector in vectors]
        results = self._call("POST", "/points/query/batch", {"searches": searches}, deadline)
        return _read_searches(results, len(queries))

    def close(self) -> None:
        """Closes idle connections."""
        self._endpoints.close()


def _read_result(body: bytes, kind: str) -> Any:
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise BadAnswer(f"the answer is not JSON: {body[:80]!r}") from error
    if not isinstance(answer, dict) or "result" not in answer:
        raise BadAnswer(f'expected {{"result": ...}}, got {str(answer)[:120]!r}')
    return answer["result"]


def _read_searches(results: Any, count: int) -> list[list[Hit]]:
    from seed_envs.search_qa.retrievers.base import FailureDetails, RetrievalProtocolError

    if not isinstance(results, list) or len(results) != count:
        raise RetrievalProtocolError(f"expected {count} results, got {str(results)[:120]!r}", FailureDetails("qdrant"))
    try:
        return [[_hit(point) for point in found["points"]] for found in results]
    except (KeyError, TypeError) as error:
        raise RetrievalProtocolError(f"a point lacks {error}", FailureDetails("qdrant")) from error


def _hit(point: Mapping[str, Any]) -> Hit:
    payload = point["payload"]
    return Hit(str(payload["id"]), payload["title"], payload["text"], float(point["score"]), bool(payload["quoted"]))


def open_qdrant(
    name: str, corpus: Corpus | None, encoder: str | Encoder = "minilm", api_key: str = ""
) -> QdrantRetriever:
    """Opens `qdrant://HOST:6333/COLLECTION`."""
    parts = urlsplit(name)
    collection = parts.path.strip("/")
    if not parts.hostname or not collection:
        raise ValueError(f"retriever={name!r}: write qdrant://HOST:6333/COLLECTION, with ?tls=1 for https")
    scheme = "https" if parse_qs(parts.query).get("tls") == ["1"] else "http"
    chosen = open_encoder(encoder) if isinstance(encoder, str) else encoder
    return QdrantRetriever(f"{scheme}://{parts.netloc.split('@')[-1]}", collection, chosen, api_key)
