"""The resolved configuration of a run: plain data, enough to replay it, stored as ``config.json``.

It says what is evaluated (:class:`RunConfig`) and nothing about what came out. It holds no secret: keys of endpoints
are read from environment variables, of which only the name is stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from seed_envs.errors import close_matches

from .errors import ConfigInvalid
from .suite import Suite


@dataclass(frozen=True)
class AgentSettings:
    """Which agent, and how it answers.

    Attributes:
        spec: ``oracle``, ``random``, ``rule``, ``python:MODULE:FUNCTION``, ``hf:PATH`` or ``openai:MODEL@URL``.
        temperature: Sampling temperature; 0 is greedy. The paper evaluates at 0.4.
        top_p: Nucleus of the sampling distribution.
        max_new_tokens: Longest reply.
        max_prompt_tokens: Longest prompt (None: what the model takes); a longer one ends the episode as
            ``context_overflow``.
        thinking: Thinking switch of the chat template (None: the template's own default).
        skill_prompt: File with skills for the prompt (Skill-Prompt*), or None.
        device: Device of a local model, ``"auto"`` takes a GPU when there is one.
        dtype: Number format of a local model's weights.
        requests_per_minute: Rate limit of an endpoint (None: none).
        retries: Further attempts after a failure of an endpoint.
        retry_wait: Seconds before the first of them; doubled each time, with jitter.
        request_timeout: Seconds until an endpoint's answer is given up.
        price_prompt: Price of a million prompt tokens, for the cost count.
        price_completion: Price of a million completion tokens.
        api_key_env: Environment variable with the endpoint's key.
        request_args: Fields of an endpoint's requests by name; ``"drop"`` leaves one out.
    """

    spec: str
    temperature: float = 0.4
    top_p: float = 1.0
    max_new_tokens: int = 512
    max_prompt_tokens: int | None = None
    thinking: bool | None = None
    skill_prompt: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    requests_per_minute: float | None = None
    retries: int = 6
    retry_wait: float = 1.0
    request_timeout: float = 120.0
    price_prompt: float = 0.0
    price_completion: float = 0.0
    api_key_env: str = "OPENAI_API_KEY"
    request_args: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(0 <= self.temperature < math.inf, f"temperature={self.temperature}; expected 0 (greedy) or more")
        _check(0 < self.top_p <= 1, f"top_p={self.top_p}; expected above 0, at most 1")
        _check(self.max_new_tokens >= 1, f"max_new_tokens={self.max_new_tokens}; expected at least 1")
        _check(
            self.max_prompt_tokens is None or self.max_prompt_tokens >= 1,
            f"max_prompt_tokens={self.max_prompt_tokens}; expected at least 1",
        )
        _check(self.retries >= 0, f"retries={self.retries}; expected 0 or more")
        _check(0 < self.request_timeout < math.inf, f"request_timeout={self.request_timeout}; expected seconds above 0")
        _check(0 <= self.retry_wait < math.inf, f"retry_wait={self.retry_wait}; expected seconds")
        for name in ("price_prompt", "price_completion"):
            price = getattr(self, name)
            _check(0 <= price < math.inf, f"{name}={price}; expected 0 or more per million tokens")
        _check(
            self.requests_per_minute is None or self.requests_per_minute > 0,
            f"requests_per_minute={self.requests_per_minute}; expected a number above 0",
        )


@dataclass(frozen=True)
class RunConfig:
    """One evaluation.

    Attributes:
        suite: What is played.
        agent: Who plays.
        limit: Number (int) or share (float below 1) of tasks; None plays all. See
            :func:`seed_envs.statistics.panels.choose_tasks`.
        repeats: Episodes per task.
        seed: Root of every seed of the run.
        max_steps: Step limit; None takes the profile's.
        profile: Profile name; the suite's unless given.
        env_kwargs: Further constructor arguments of the environment.
        num_workers: Processes that isolate environments; 0 plays in this process.
        batch_size: Environments played at once by one agent (None: what suits the agent).
        timeout: Seconds one turn may take before its process is ended; needs ``num_workers``.
        executor: ``"local"`` or ``"ray"``.
        ray_address: Cluster to join; None starts a local one.
        ray_gpus: GPUs per Ray worker.
        shard: ``(i, n)``: the i-th of n parts, counted from 1.
        blind: ``"blank"`` or ``"shuffle"`` takes the pictures away (see ``blind``); ``""`` shows them.
        fail_on_error: Stop at this number (int) or share (float below 1) of failed episodes; None never stops.
        max_equal_failures: Stop when so many episodes in a row fail for the same reason; 0 never stops.
    """

    suite: Suite
    agent: AgentSettings
    limit: int | float | None = None
    repeats: int = 1
    seed: int = 0
    max_steps: int | None = None
    profile: str = "paper"
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    num_workers: int = 0
    batch_size: int | None = None
    timeout: float | None = None
    executor: str = "local"
    ray_address: str | None = None
    ray_gpus: float = 0.0
    shard: tuple[int, int] = (1, 1)
    blind: str = ""
    fail_on_error: int | float | None = None
    max_equal_failures: int = 20

    def __post_init__(self) -> None:
        _check(self.repeats >= 1, f"repeats={self.repeats}; expected at least 1")
        _check(self.num_workers >= 0, f"num_workers={self.num_workers}; expected 0 or more")
        _check(self.limit is None or self.limit > 0, f"limit={self.limit}; expected a count or a share above 0")
        _check(self.blind in ("", "blank", "shuffle"), f"blind={self.blind!r}; expected 'blank' or 'shuffle'")
        _check(self.executor in ("local", "ray"), f"executor={self.executor!r}; expected 'local' or 'ray'")
        _check(self.batch_size is None or self.batch_size >= 1, f"batch_size={self.batch_size}; expected at least 1")
        _check(self.max_steps is None or self.max_steps >= 1, f"max_steps={self.max_steps}; expected at least 1")
        _check(self.timeout is None or 0 < self.timeout < math.inf, f"timeout={self.timeout}; expected seconds above 0")
        _check(0 <= self.ray_gpus < math.inf, f"ray_gpus={self.ray_gpus}; expected 0 or more")
        _check(
            self.max_equal_failures >= 0, f"max_equal_failures={self.max_equal_failures}; expected 0 (never) or more"
        )
        index, count = self.shard
        _check(1 <= index <= count, f"shard={index}/{count}; expected i/n with 1 <= i <= n, e.g. 2/8")
        _check(
            self.timeout is None or self.num_workers > 0,
            f"timeout={self.timeout} needs processes that can be ended: add --num-workers 1 or more",
        )
        _check(
            self.executor != "ray" or self.num_workers > 0, "executor 'ray' needs to know how many: add --num-workers N"
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary."""
        return {**asdict(self), "env_kwargs": dict(self.env_kwargs), "shard": list(self.shard)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> RunConfig:
        """The inverse of :meth:`to_json`.

        Raises:
            ConfigInvalid: For a key that does not exist, and for a value of the wrong kind.
        """
        known = {item.name for item in fields(cls)}
        for key in record:
            _check(key in known, f"run configuration: unknown key {key!r}.{close_matches(key, known)}")
        values = dict(record)
        try:
            values["suite"] = Suite.from_json(record["suite"])
            values["agent"] = AgentSettings(**record["agent"])
            values["shard"] = tuple(record.get("shard", (1, 1)))
            return cls(**values)
        except ConfigInvalid:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ConfigInvalid(f"run configuration: {type(error).__name__}: {error}") from error


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigInvalid(message)
