"""``openai:MODEL@URL``: any OpenAI-compatible chat endpoint as an agent.

The client is ``seed_envs.endpoints``: it sends many requests at once and tries again what may pass. An episode whose
request fails for good ends as ``policy_error``; it is never scored. Keys are read from the environment and never
stored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any

from seed_envs.endpoints.client import ChatClient, Delivery
from seed_envs.endpoints.probe import probe
from seed_envs.errors import ContextOverflow
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
        futures = [self._client.submit(request.messages, self._parameters(request)) for request in requests]
        return [self._reply(future) for future in futures]

    def describe(self) -> Mapping[str, Any]:
        """Model and address (without anything secret)."""
        return {"kind": "OpenAIAgent", "model": self._client.model, "address": self._client.address}

    def contestant(self, say: Say) -> Contestant:
        """What the server says; whether the model reads pictures shows when it is asked.

        Raises:
            PreflightFailed: When nothing answers, or the model is not known there.
        """
        probe(self._url, self._client.model, self._settings.api_key_env, say)
        return Contestant(f"openai:{self._client.model}", policy=self.act)

    def close(self) -> None:
        """Give up what is waited for."""
        self._client.close()

    def _parameters(self, request: Request) -> dict[str, Any]:
        settings = self._settings
        parameters: dict[str, Any] = {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_new_tokens,
            "seed": ((request.task.seed or 0) + request.turn) % 2**31,
        }
        if settings.thinking is not None:
            parameters["chat_template_kwargs"] = {"enable_thinking": settings.thinking}
        return parameters

    def _reply(self, future: Future[Delivery]) -> Reply:
        try:
            delivery = future.result()
        except ContextOverflow as error:
            return failed_reply(error, StopReason.CONTEXT_OVERFLOW)
        except CancelledError:  # the agent was closed; nobody's fault
            raise
        except Exception as error:  # becomes the record of this episode
            return failed_reply(error)
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
