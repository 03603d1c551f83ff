"""The server's API as pure functions: bytes of a request to a checked query, hits to bytes of an answer.

Compatible with Search-R1's `POST /retrieve`; every faulty input gets a client error, never a 500. No socket is touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

from seed_envs.search_qa.retrievers.base import MAX_K, Hit

DEFAULT_TOPK = 3


class Limits(NamedTuple):
    """What a request may hold.

    Attributes:
        body: Bytes of a body.
        queries: Queries of a request; None leaves it to the size of the body.
        query_characters: Where longer queries are cut, as a search over their first words.
    """

    body: int = 64 << 20
    queries: int | None = None
    query_characters: int = 1 << 16


NO_MORE = Limits()
"""The limits of a server whose user names none."""


class ApiError(Exception):
    """An answer that is no result.

    Args:
        status: HTTP status.
        code: Short name.
        message: What was expected and what came.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Query(NamedTuple):
    """A checked request."""

    queries: list[str]
    topk: int
    return_scores: bool


def parse_request(body: bytes, default_topk: int = DEFAULT_TOPK, limits: Limits = NO_MORE) -> Query:
    """Reads and checks the body of `POST /retrieve`; fields are taken and refused as the original server does.

    Args:
        body: The body.
        default_topk: For requests that name none, or 0.
        limits: See there.

    Raises:
        ApiError: 400 not JSON, 413 too much, 422 another shape.
    """
    if len(body) > limits.body:
        raise ApiError(413, "body_too_large", f"the body may have {limits.body} bytes")
    try:
        payload = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "bad_json", f"the body is not JSON in UTF-8: {error}") from None
    if not isinstance(payload, dict):
        raise ApiError(422, "schema", f"expected an object, got {type(payload).__name__}")
    queries = [query[: limits.query_characters] for query in _queries(payload)]
    if limits.queries is not None and len(queries) > limits.queries:
        raise ApiError(413, "too_many_queries", f"{len(queries)} queries; at most {limits.queries} a request")
    return Query(queries, _topk(payload.get("topk"), default_topk), _flag(payload.get("return_scores", False)))


def _queries(payload: dict[str, Any]) -> list[str]:
    if "queries" in payload:
        queries = payload["queries"]
    elif "query" in payload:
        queries = [payload["query"]]
    else:
        raise ApiError(422, "schema", 'expected "queries" (a list of strings) or "query" (a string)')
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise ApiError(422, "schema", '"queries" must be a list of strings')
    return queries


def whole_number(text: str) -> int | None:
    """The number that up to 18 ASCII digits with an optional sign write; huge ones are cut short; None for other text.

    >>> [whole_number(text) for text in ("5", " -5 ", "5.0", "²", "+-5")]
    [5, -5, None, None, None]
    """
    found = re.fullmatch(r"\s*([+-]?[0-9]{1,18})[0-9]*\s*", text)
    return int(found[1]) if found else None


def _topk(value: Any, default: int) -> int:
    number = _as_whole(value)
    if value is None or number == 0:
        return default
    if number is None or not 1 <= number <= MAX_K:
        raise ApiError(
            422, "schema", f'"topk" must be a whole number from 1 to {MAX_K}, or 0 or null, got {_short(value)}'
        )
    return number


def _as_whole(value: Any) -> int | None:
    if isinstance(value, str):
        # The original's reader lets a string end in ".0".
        return whole_number(re.sub(r"\.0+(?=\s*\Z)", "", value))
    if isinstance(value, (bool, int)):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _short(value: Any) -> str:
    return repr(value if not isinstance(value, (str, list, dict)) else str(value)[:80])


_FLAGS: dict[Any, bool] = {
    **dict.fromkeys((True, "true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys((False, "false", "f", "no", "n", "off", "0"), False),
}
"""What the original's reader takes for a boolean; the numbers 1 and 0 are equal to true and false here."""


def _flag(value: Any) -> bool:
    key = value.lower() if isinstance(value, str) else value
    if isinstance(key, (dict, list)) or key not in _FLAGS:
        raise ApiError(422, "schema", f'"return_scores" must be true or false, got {_short(value)}')
    return _FLAGS[key]


@lru_cache(maxsize=16384)
def _document(identifier: str, title: str, text: str, quoted: bool) -> str:
    """A document as JSON, kept ready for the next time."""
    hit = Hit(identifier, title, text, quoted=quoted)
    return json.dumps({"id": identifier, "title": title, "text": text, "contents": hit.contents})


def _scored(hit: Hit) -> str:
    identifier, title, text, score, quoted = hit
    # json writes a finite float as its repr, but takes ten times as long for a single number.
    number = repr(score) if type(score) is float and isfinite(score) else json.dumps(score)
    return f'{{"document": {_document(identifier, title, text, quoted)}, "score": {number}}}'


def _bare(hit: Hit) -> str:
    return _document(hit.id, hit.title, hit.text, hit.quoted)


def render_result(results: Sequence[Sequence[Hit]], return_scores: bool) -> bytes:
    """The body of a 200: nested lists, one per query; bare documents without scores."""
    render = _scored if return_scores else _bare
    lists = ", ".join([f"[{', '.join(map(render, hits))}]" for hits in results])
    return f'{{"result": [{lists}]}}'.encode()


def render_error(error: ApiError, fastapi_style: bool = False) -> bytes:
    """The body of an error; 422 in FastAPI's shape for clients that read `detail`."""
    if fastapi_style and error.status == 422:
        return json.dumps({"detail": [{"loc": ["body"], "msg": error.message, "type": error.code}]}).encode()
    return json.dumps({"error": {"code": error.code, "message": error.message}}).encode()
