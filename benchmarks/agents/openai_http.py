"""``openai:MODEL@URL``: any OpenAI-compatible chat endpoint as an agent.

The client is ``seed_envs.endpoints``: it sends many requests at once and tries again what may pass. An episode whose
request fails for good ends as ``policy_error``; it is never scored. Keys are read from the environment and never
stored.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any

from seed_envs.endpoints.client import ChatClient, Delivery
from seed_envs.endpoints.fields import learn_arguments, with_arguments
from seed_envs.endpoints.probe import ollama_window, probe
from seed_envs.errors import ContextOverflow, EndpointFailed, EndpointRefused, PreflightFailed
from seed_envs.preflight import Contestant, Say
from seed_envs.profiles import Profile
from seed_envs.rollout import Reply, Request, failed_reply
from seed_envs.trajectory import StopReason

from ..config import AgentSettings
from ..errors import UnknownAgent
from .base import Placement, SkillFor
from .skills import load_skills

_SPEC = re.compile(r"(?P<model>.+?)@(?P<url>https?://\S+)")


class OpenAIAgent:
    """Sends every request to an endpoint.

    Args:
        settings: Sampling, limits, retries, prices, name of the key's environment variable.
        argument: ``MODEL@URL``, the URL up to ``/v1``; without ``@URL`` it is ``$OPENAI_BASE_URL``.
        profile: Not used.

    Raises:
        UnknownAgent: When no URL is known.
        DependencyMissing: Without httpx.
    """

    placement = Placement.CONCURRENT
    default_batch = 16

    def __init__(self, settings: AgentSettings, argument: str, profile: Profile) -> None:
        model, url = split_endpoint(argument)
        self._settings, self._url = settings, url
        self.skill_for: SkillFor | None = load_skills(settings.skill_prompt)
        #: Request arguments that the preflight found out.
        self.learned: dict[str, Any] = {}
        self._client = ChatClient(
            url,
            model,
            key_env=settings.api_key_env,
            timeout=settings.request_timeout,
            attempts=settings.retries + 1,
            first_pause=settings.retry_wait,
            requests_per_minute=settings.requests_per_minute,
        )

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """Ask for all requests at once; each succeeds or fails alone."""
        return [future.result() for future in [self.submit(request) for request in requests]]

    def submit(self, request: Request) -> Future[Reply]:
        """Ask for one request; what makes this agent an asynchronous policy of ``seed_envs.rollout``."""
        reply: Future[Reply] = Future()
        asked = self._client.submit(request.messages, self._parameters(_seed(request)))
        asked.add_done_callback(functools.partial(self._settle, reply))
        return reply

    def describe(self) -> Mapping[str, Any]:
        """Model and address (without anything secret), and what the server says of the model."""
        return {
            "kind": "OpenAIAgent",
            "model": self._client.model,
            "address": self._client.address,
            "identity": self._identity,
        }

    @functools.cached_property
    def _identity(self) -> dict[str, Any]:
        return {"model": self._client.model, **self._client.describe_model()}

    def contestant(self, say: Say) -> Contestant:
        """What the server says, and which fields of a request it takes; those are used from now on.

        Raises:
            PreflightFailed: When nothing answers, the model is not known there, its window is shorter than a reply, or
                a field is refused that only the user can decide about.
        """
        name, settings = f"openai:{self._client.model}", self._settings
        facts = probe(self._url, self._client.model, settings.api_key_env, say)
        room = self._room(facts.window)
        try:
            self.learned = learn_arguments(self._client, self._parameters(0))
        except (EndpointRefused, EndpointFailed, ContextOverflow) as error:
            raise PreflightFailed(str(error)) from error
        for field, value in self.learned.items():
            say(f"{name}: the server does not take the usual fields; from now on {field}={value}")
        self._settings = dataclasses.replace(settings, request_args={**settings.request_args, **self.learned})
        if room is None and (window := ollama_window(self._client)):  # known once the model is loaded
            room = self._room(window)
            say(
                f"{name}: Ollama cuts prompts that do not fit its {window} tokens and says nothing; if they may, raise "
                "OLLAMA_CONTEXT_LENGTH where it runs"
            )
        return Contestant(name, sees_pictures=facts.sees_pictures, longest_prompt=room, policy=self.act)

    def _room(self, window: int | None) -> int | None:
        """What a window leaves for prompts; None for no known window.

        Raises:
            PreflightFailed: When that is nothing.
        """
        longest = self._settings.max_new_tokens
        if window is not None and window <= longest:
            raise PreflightFailed(
                f"openai:{self._client.model} has a window of {window} tokens, and a reply may take {longest}; "
                "lower --max-new-tokens, or serve the model with a longer window"
            )
        return None if window is None else window - longest

    def close(self) -> None:
        """Give up what is waited for."""
        self._client.close()

    def _parameters(self, seed: int) -> dict[str, Any]:
        settings = self._settings
        parameters: dict[str, Any] = {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_new_tokens,
            "seed": seed,
        }
        if settings.thinking is not None:
            parameters["chat_template_kwargs"] = {"enable_thinking": settings.thinking}
        return with_arguments(parameters, settings.request_args)

    def _settle(self, reply: Future[Reply], asked: Future[Delivery]) -> None:
        if not reply.set_running_or_notify_cancel():
            return
        try:
            reply.set_result(self._reply(asked))
        except BaseException as error:  # handed to whoever waits
            reply.set_exception(error)

    def _reply(self, future: Future[Delivery]) -> Reply:
        try:
            delivery = future.result()
        except ContextOverflow as error:
            return failed_reply(error, StopReason.CONTEXT_OVERFLOW)
        except CancelledError:  # the agent was closed; nobody's fault
            raise
        except Exception as error:  # becomes the record of this episode
            return failed_reply(error)
        if misfit := self._misfit(delivery.answer.prompt_tokens):
            return misfit
        answer, prices = delivery.answer, (self._settings.price_prompt, self._settings.price_completion)
        usage = {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "cost": (answer.prompt_tokens * prices[0] + answer.completion_tokens * prices[1]) / 1e6,
        }
        meta = {
            "finish_reason": answer.finish_reason,
            "attempts": delivery.attempts,
            "seconds": round(delivery.seconds, 6),
        }
        return Reply(answer.whole, {"usage": usage, **meta})

    def _misfit(self, length: int) -> Reply | None:
        """The failed reply to a prompt that is longer than the user allows, as the endpoint counts its tokens."""
        longest = self._settings.max_prompt_tokens
        if longest is None or 0 < length <= longest:
            return None
        if not length:
            return failed_reply(EndpointRefused("the endpoint counts no prompt tokens; --max-prompt-tokens needs them"))
        told = f"the prompt has {length} tokens as the endpoint counts, at most {longest} are allowed"
        return failed_reply(ContextOverflow(told), StopReason.CONTEXT_OVERFLOW)


def _seed(request: Request) -> int:
    return ((request.task.seed or 0) + request.turn) % 2**31


def split_endpoint(argument: str) -> tuple[str, str]:
    """Model and base URL of ``MODEL@URL``.

    Raises:
        UnknownAgent: When there is no URL.
    """
    found = _SPEC.fullmatch(argument)
    if found:
        return found["model"], found["url"].rstrip("/")
    base = os.environ.get("OPENAI_BASE_URL", "")
    if "@" in argument or not base:
        raise UnknownAgent(
            f"agent 'openai:{argument}': expected openai:MODEL@URL, e.g. openai:qwen3@http://127.0.0.1:8000/v1 "
            "(or set OPENAI_BASE_URL)"
        )
    return argument, base.rstrip("/")
