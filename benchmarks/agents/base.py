"""What an agent is to the harness: a batch of requests in, a batch of replies out.

The same protocol as a policy of ``seed_envs.rollout``, with what the harness must know to place it well. Agents know
no run folder and no statistics.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from seed_envs.errors import close_matches
from seed_envs.plugins import OpenTable
from seed_envs.profiles import Profile
from seed_envs.registration import load_attribute
from seed_envs.rollout import Reply, Request, failed_reply
from seed_envs.trajectory import Trajectory

from ..config import AgentSettings
from ..errors import UnknownAgent
from ..fields import USAGE, find_fault

SkillFor = Callable[[Trajectory], str]


class Placement(enum.Enum):
    """Where an agent is at its best."""

    WORKER = "worker"  #: cheap: a copy in every worker process, whole episodes there
    BATCH = "batch"  #: one copy that answers many environments at once
    CONCURRENT = "concurrent"  #: waits for a network: many independent episodes, one request each


class Agent(Protocol):
    """Answers requests.

    Attributes:
        placement: See :class:`Placement`.
        default_batch: Environments at once unless the user says otherwise.
        skill_for: Skill for the prompt by trajectory, or None.
    """

    placement: Placement
    default_batch: int
    skill_for: SkillFor | None

    def act(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """One reply per request, in order. An exception fails all of them."""

    def describe(self) -> Mapping[str, Any]:
        """What a reader of the result must know, JSON-ready."""

    def close(self) -> None:
        """Release what the agent holds."""


def vet_replies(replies: Sequence[Reply], expected: int) -> list[Reply]:
    """Replies that can be sent and counted; one that cannot becomes a failed one, which ends its own episode.

    Args:
        replies: What an agent returned.
        expected: How many it was asked for.

    Raises:
        ValueError: For another number of replies; nobody knows whose they are.
    """
    if len(replies) != expected:
        raise ValueError(f"the agent returned {len(replies)} replies to {expected} requests")
    return [_vet(reply) for reply in replies]


def _vet(reply: Any) -> Reply:
    if not isinstance(reply, Reply):
        return failed_reply(TypeError(f"the agent returned {type(reply).__name__}; expected seed_envs.Reply"))
    usage = reply.meta.get("usage") or {}
    fault = ""
    if not isinstance(reply.text, str):
        fault = f"text: {type(reply.text).__name__}, expected str"
    elif not isinstance(usage, Mapping):
        fault = f"meta['usage']: {usage!r:.80}, expected a mapping"
    elif found := find_fault({key: usage[key] for key in USAGE if key in usage}):
        fault = f"meta['usage'], {found}"
    return failed_reply(ValueError(f"the agent returned a reply with {fault}")) if fault else reply


@dataclass(frozen=True)
class AgentRow:
    """One kind of agent.

    Attributes:
        factory: ``module:class``, called with ``(settings, argument, profile)``; the argument is what stands after the
            colon of ``--agent KIND:ARGUMENT``.
        about: One line for the listing; begins with how the spec is written, where it takes an argument.
        takes_argument: False for agents that are named by their kind alone.
        sees: False for an agent that asks the environment and looks at nothing.
    """

    factory: str
    about: str
    takes_argument: bool = True
    sees: bool = True


def _scripted(name: str, about: str) -> AgentRow:
    return AgentRow(f"{__package__}.scripted:{name}", about, takes_argument=False, sees=False)


AGENTS: OpenTable[AgentRow] = OpenTable(
    "agent",
    "agents",
    AgentRow,
    {
        "oracle": _scripted("OracleAgent", "knows the answer: an upper bound"),
        "random": _scripted("RandomAgent", "the environment's random player: draws from the admissible actions"),
        "rule": _scripted("RuleAgent", "the environment's hand-written player"),
        "python": AgentRow(
            f"{__package__}.functions:FunctionAgent",
            "python:MODULE:FUNCTION, called with a Request, returns a str or Reply",
        ),
        "hf": AgentRow(
            f"{__package__}.transformers_model:TransformersAgent",
            "hf:PATH, a model folder, .gguf file or hub name, batched",
        ),
        "openai": AgentRow(
            f"{__package__}.openai_http:OpenAIAgent", "openai:MODEL@URL, any OpenAI-compatible endpoint"
        ),
    },
    UnknownAgent,
)
"""Every kind of agent; an installed package adds its own as an entry point of ``seed_envs.agents``."""


def split_spec(spec: str) -> tuple[str, str]:
    """Kind and argument of an agent's spec.

    Raises:
        UnknownAgent: With what is accepted.
    """
    kind, colon, argument = spec.partition(":")
    if kind not in list(AGENTS):
        raise UnknownAgent(
            f"agent {spec!r} is unknown; expected one of {sorted(AGENTS)}, e.g. 'oracle' or 'hf:PATH'."
            f"{close_matches(kind, AGENTS)}"
        )
    row = AGENTS.find(kind)
    if row.takes_argument and not argument:
        raise UnknownAgent(f"agent {spec!r} is incomplete; expected {row.about.split(',')[0]}")
    if colon and not row.takes_argument:
        raise UnknownAgent(f"agent {spec!r}: {kind!r} takes nothing after the colon")
    return kind, argument


def make_agent(settings: AgentSettings, profile: Profile) -> Agent:
    """Build the agent a configuration names.

    Args:
        settings: Its spec and options.
        profile: How replies are read, for agents that write actions themselves.
    """
    kind, argument = split_spec(settings.spec)
    agent: Agent = load_attribute(AGENTS.find(kind).factory)(settings, argument, profile)
    return agent
