"""Which fields of a request a server takes: what the user says of them, and what one short question shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seed_envs.endpoints.client import ChatClient
from seed_envs.endpoints.refusals import refused_field
from seed_envs.errors import EndpointRefused

#: Instead of a value: leave the field out.
DROP = "drop"
#: Newer names of fields; giving one leaves the older out.
RENAMED = {"max_tokens": "max_completion_tokens"}
#: Fields that may be left out without changing what is asked for, unless they have another value than this.
_DISPENSABLE: Mapping[str, Any] = {"seed": None, "top_p": 1.0}
#: Longest answer to the question.
_SHORT = 16


def with_arguments(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a request, changed as the user or a server wants.

    Args:
        parameters: The usual fields.
        arguments: Values by name; :data:`DROP` leaves a field out.
    """
    replaced = {old for old, new in RENAMED.items() if new in arguments}
    merged = {**{name: value for name, value in parameters.items() if name not in replaced}, **arguments}
    return {name: value for name, value in merged.items() if value != DROP}


def learn_arguments(client: ChatClient, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Ask one short question with every field, and find out which to rename or leave out.

    A field that changes how replies are drawn is never left out silently.

    Args:
        client: The endpoint.
        parameters: The fields of a request.

    Returns:
        Arguments for :func:`with_arguments`.

    Raises:
        EndpointRefused: When the server refuses something that only the user can decide; the message says how.
        EndpointFailed: When it does not answer.
    """
    learned: dict[str, Any] = {}
    while True:
        sent = with_arguments(parameters, learned)
        short = {name: min(value, _SHORT) if name in _LENGTHS else value for name, value in sent.items()}
        try:
            client.ask([{"role": "user", "content": "Say yes."}], short)
            return learned
        except EndpointRefused as error:
            field = "" if error.hopeless else refused_field(error.body, sent)
            if field in RENAMED:
                learned[RENAMED[field]] = sent[field]
            elif field in _DISPENSABLE and _DISPENSABLE[field] in (None, sent[field]):
                learned[field] = DROP
            elif field:
                raise EndpointRefused(
                    f"{error}; leave the field out with --request-arg {field}=drop, or give a value that the server "
                    f"takes with --request-arg {field}=VALUE"
                ) from error
            else:
                raise


_LENGTHS = frozenset({*RENAMED, *RENAMED.values()})
