"""Qdrant over its REST interface: vectors by inner product. Tested against the client's own models, not a cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from seed_envs.errors import UnknownOption
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.encoders import Encoder, open_encoder
from seed_envs.search_qa.retrievers.base import Capabilities, Hit, RetrievalRejected
from seed_envs.search_qa.retrievers.endpoints import BadAnswer, Endpoints
from seed_envs.search_qa.retrievers.holding import NO_LABEL, HoldingRetriever, Label

_LOAD_SECONDS = 120.0


class QdrantRetriever(HoldingRetriever):
    """A client of one collection.

    Args:
        base: Address of the server.
        collection: Collection name; a passage's position is its point id.
        encoder: Makes the vectors.
        api_key: Sent as `api-key` where given.
        corpus: The passages that the collection must hold; None takes what is there.
    """

    engine = "qdrant"
    batch = 256

    def __init__(
        self, base: str, collection: str, encoder: Encoder, api_key: str = "", corpus: Corpus | None = None
    ) -> None:
        super().__init__(f"qdrant://{base.partition('://')[2]}/{collection}", encoder, corpus)
        self.collection, self._encoder = collection, encoder
        self.capabilities = Capabilities(vector=True)
        self._path = "/collections/" + quote(collection, safe="")
        self._endpoints = Endpoints([base], {"api-key": api_key} if api_key else {})
        self._loading = NO_LABEL

    def _call(self, method: str, path: str, payload: Any = None, deadline: float | None = None) -> Any:
        body = b"" if payload is None else json.dumps(payload).encode()
        return self._endpoints.call(method, self._path + path, body, "application/json", _read_result, deadline)

    def read_label(self, deadline: float | None = None) -> Label | None:
        """See `HoldingRetriever.read_label`; every point carries the label, and all must carry the same."""
        first = {"limit": 1, "with_payload": ["label"], "with_vector": False}
        try:
            points = self._call("POST", "/points/scroll", first, deadline)["points"]
        except RetrievalRejected as error:
            if error.details.status == 404:
                return None
            raise
        label = Label.parse(points[0]["payload"].get("label")) if points else self._loading
        return label if label == NO_LABEL or self._count(label) == self._count(None) else NO_LABEL

    def _count(self, label: Label | None) -> int:
        wanted: dict[str, Any] = {"exact": True}
        if label is not None:
            wanted["filter"] = {"must": [{"key": "label", "match": {"value": label.text()}}]}
        return int(self._call("POST", "/points/count", wanted)["count"])

    def stored(self) -> int:
        """How many points the collection holds."""
        return self._count(None)

    def _create(self, label: Label) -> None:
        vectors = {"size": self._encoder.record.dimension, "distance": "Dot"}
        self._call("PUT", "", {"vectors": vectors}, time.monotonic() + _LOAD_SECONDS)

    def _drop(self) -> None:
        self._call("DELETE", "", None, time.monotonic() + _LOAD_SECONDS)

    def ingest(self, corpus: Corpus, progress: bool = False, batch: int | None = None, replace: bool = False) -> int:
        """See `HoldingRetriever.ingest`."""
        self._loading = self._label_of(corpus)
        return super().ingest(corpus, progress, batch, replace)

    def _write(self, first: int, passages: list[Hit]) -> None:
        vectors = self._encoder.encode_passages([hit.contents for hit in passages])
        points = [
            {
                "id": first + number,
                "vector": vectors[number].tolist(),
                "payload": {
                    "id": hit.id,
                    "title": hit.title,
                    "text": hit.text,
                    "quoted": hit.quoted,
                    "label": self._loading.text(),
                },
            }
            for number, hit in enumerate(passages)
        ]
        self._call("PUT", "/points?wait=true", {"points": points}, time.monotonic() + _LOAD_SECONDS)

    def _search(self, queries: list[str], k: int, deadline: float | None) -> list[list[Hit]]:
        """All queries go out in one call."""
        vectors = self._encoder.encode_queries(queries).tolist()
        searches = [{"query": vector, "limit": k, "with_payload": True} for vector in vectors]
        with self._missing_if_404():
            results = self._call("POST", "/points/query/batch", {"searches": searches}, deadline)
        return _read_searches(results, len(queries))

    def close(self) -> None:
        """Closes idle connections."""
        self._endpoints.close()


def _read_result(body: bytes, headers: Mapping[str, str]) -> Any:
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
        raise UnknownOption(f"retriever={name!r}: write qdrant://HOST:6333/COLLECTION, with ?tls=1 for https")
    scheme = "https" if parse_qs(parts.query).get("tls") == ["1"] else "http"
    chosen = open_encoder(encoder) if isinstance(encoder, str) else encoder
    return QdrantRetriever(f"{scheme}://{parts.netloc.split('@')[-1]}", collection, chosen, api_key, corpus)
