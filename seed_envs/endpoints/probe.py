"""Looks at an OpenAI-compatible server before a run: does it answer, does it know the model, how long is its window.

One short question, asked twice at most: ``/models``, and one token where that page does not name the model.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from seed_envs.endpoints.client import ChatClient, chat_address, sibling
from seed_envs.endpoints.refusals import refused_field
from seed_envs.errors import PreflightFailed, close_matches, require
from seed_envs.redaction import learn, learn_secret, redact

PROBE_SECONDS = 5.0
"""How long one attempt may take."""
PAUSE = 1.0
"""Seconds before the second attempt."""


@dataclass(frozen=True)
class ServerFacts:
    """What a server says about itself.

    Attributes:
        models: Names it knows; empty when it does not say.
        window: Tokens of prompt and answer together; None when it does not say.
        sees_pictures: Whether the model reads pictures; None when it does not say.
        owner: Who serves the model, ``""`` when it does not say.
    """

    models: tuple[str, ...] = ()
    window: int | None = None
    sees_pictures: bool | None = None
    owner: str = ""


def probe(base_url: str, model: str, key_env: str = "", say: Callable[[str], None] = lambda text: None) -> ServerFacts:
    """Ask a server about itself.

    Args:
        base_url: Address up to and including ``/v1``.
        model: The model that will be asked for.
        key_env: Variable that holds the key.
        say: Told that a second attempt is made.

    Raises:
        PreflightFailed: When nothing answers, the key is refused, or the model is not among those the server lists.
    """
    require("httpx", "bench", "an OpenAI-compatible endpoint")
    import httpx

    learn(base_url)
    learn_secret(os.environ.get(key_env))
    parts = urlsplit(base_url)
    address = urlunsplit(parts._replace(path=parts.path.rstrip("/") + "/models"))
    key = os.environ.get(key_env) if key_env else None
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    for last in (False, True):
        try:
            response = httpx.get(address, headers=headers, timeout=PROBE_SECONDS)
            break
        except (httpx.RequestError, httpx.InvalidURL) as error:
            reason = f"{type(error).__name__}: {error}"
            if last:
                raise PreflightFailed(
                    f"nothing answers at {redact(base_url)} ({redact(reason)}); start the server there, or correct "
                    "the address (up to /v1)"
                ) from None
            say(f"{redact(base_url)}: {redact(reason)}; retrying")
            time.sleep(PAUSE)
    if response.status_code in (401, 403):
        hint = f"${key_env} is {'refused' if key else 'not set'}" if key_env else "it wants a key"
        raise PreflightFailed(f"{redact(base_url)} answers HTTP {response.status_code}: {hint}")
    facts = _facts(response, model)
    if facts.window is None and facts.owner == "llamacpp":
        facts = _with_properties(facts, sibling(chat_address(base_url), "/props"), headers)
    if model not in facts.models:
        _try_model(base_url, model, headers, facts)
    return facts


def _try_model(base_url: str, model: str, headers: dict[str, str], facts: ServerFacts) -> None:
    """Ask for one token: a server need not list its models, and some answer to any name."""
    import httpx

    body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    try:
        response = httpx.post(chat_address(base_url), json=body, headers=headers, timeout=PROBE_SECONDS)
    except httpx.RequestError:  # it answered before: slow, not absent; the run has its own retries
        return
    if response.status_code not in (400, 404) or refused_field(response.text, {"max_tokens": 1}):
        return  # a field that is not taken is another matter, see ``fields``
    listed = f"it lists {', '.join(map(repr, facts.models[:5]))}" if facts.models else "it lists no models"
    raise PreflightFailed(
        f"{redact(base_url)} does not take the model {model!r} (HTTP {response.status_code}: "
        f"{redact(response.text[:200])}); {listed}.{close_matches(model, facts.models)}"
    )


def _facts(response: Any, model: str) -> ServerFacts:
    """What can be read off an answer, whatever it is."""
    try:
        rows = json.loads(response.content[:1_000_000])["data"] if response.status_code == 200 else []
        named = {str(row["id"]): row for row in rows}
    except (ValueError, KeyError, TypeError, RecursionError):
        return ServerFacts()
    row: dict[str, Any] = named.get(model) or (next(iter(named.values())) if len(named) == 1 else {})
    meta = row.get("meta")
    window = next((row[key] for key in _WINDOWS if key in row), meta.get("n_ctx") if isinstance(meta, dict) else None)
    return ServerFacts(tuple(named), _count(window), _sees(row.get("architecture")), str(row.get("owned_by", "")))


def _with_properties(facts: ServerFacts, address: str, headers: dict[str, str]) -> ServerFacts:
    """The same with what a llama.cpp server says on a page of its own."""
    import httpx

    try:
        record = httpx.get(address, headers=headers, timeout=PROBE_SECONDS).json()
        window = _count(record["default_generation_settings"]["n_ctx"])
        return ServerFacts(facts.models, window, record["modalities"].get("vision"), facts.owner)
    except (httpx.RequestError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return facts


def ollama_window(client: ChatClient) -> int | None:
    """Tokens that an Ollama server has set aside for a model it has loaded; None for every other server.

    What its list of models is silent about matters more than elsewhere: a longer prompt is cut without an error, and
    the model plays on half of it.
    """
    record = client.look(sibling(client.address, "/api/ps"))
    rows = record.get("models") if isinstance(record, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and client.model in (row.get("model"), row.get("name")):
            return _count(row.get("context_length"))
    return None


def _sees(architecture: Any) -> bool | None:
    kinds = architecture.get("input_modalities") if isinstance(architecture, dict) else None
    return "image" in kinds if isinstance(kinds, list) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


#: Where lists of models name a window: vLLM and SGLang, OpenRouter and Together, Groq, Mistral, LM Studio.
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length", "loaded_context_length")
