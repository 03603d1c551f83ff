"""Agents without a model: the oracle, the random player and the environment's own rule-based player."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seed_envs.profiles import Profile
from seed_envs.rollout import Reply, Request, failed_reply

from ..config import AgentSettings
from .base import Placement, SkillFor
from .skills import load_skills


class _Scripted:
    """Chooses an action per request and writes it in the profile's format."""

    placement = Placement.WORKER
    default_batch = 1

    def __init__(self, settings: AgentSettings, argument: str, profile: Profile) -> None:
        self._format = profile.action_format
        self.skill_for: SkillFor | None = load_skills(settings.skill_prompt)

    def choose(self, request: Request) -> str:
        """The action for one request."""
        raise NotImplementedError

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """Choose for every request; one that fails ends its own episode."""
        return [self._answer(request) for request in requests]

    def describe(self) -> Mapping[str, Any]:
        """Nothing beyond the class."""
        return {"kind": type(self).__name__}

    def close(self) -> None:
        """Nothing to release."""

    def _answer(self, request: Request) -> Reply:
        try:
            return Reply(self._format.format(self.choose(request)))
        except Exception as error:  # becomes the record of this episode
            return failed_reply(error)


class OracleAgent(_Scripted):
    """Asks the environment for the best action."""

    def choose(self, request: Request) -> str:
        """The oracle's action."""
        return str(request.call("oracle_action"))


class RuleAgent(_Scripted):
    """Asks the environment's rule-based player, which knows only what an agent is shown."""

    def choose(self, request: Request) -> str:
        """The rule's action."""
        return str(request.call("rule_action"))


class RandomAgent(_Scripted):
    """Asks the environment for a random action, which it draws with the generator that the episode's seed started."""

    def choose(self, request: Request) -> str:
        """A random action."""
        return str(request.call("random_action"))
