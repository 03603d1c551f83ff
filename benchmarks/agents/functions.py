"""``python:MODULE:FUNCTION``: a function of yours as an agent."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seed_envs.profiles import Profile
from seed_envs.rollout import Reply, Request, failed_reply

from ..config import AgentSettings
from ..errors import UnknownAgent
from ..identity import hash_files
from .base import Placement, SkillFor
from .skills import load_skills


class FunctionAgent:
    """Calls ``function(request)``, which returns the reply as ``str`` (with action tags, like a model) or ``Reply``.

    The function runs in every worker process and should keep no state between calls; ``request.task.seed`` and
    ``request.turn`` seed whatever it draws.

    Args:
        settings: Options.
        argument: ``MODULE:FUNCTION``.
        profile: Not used.

    Raises:
        UnknownAgent: When the function cannot be imported.
    """

    placement = Placement.WORKER
    default_batch = 1

    def __init__(self, settings: AgentSettings, argument: str, profile: Profile) -> None:
        module, _, name = argument.rpartition(":")
        if not module or not name:
            raise UnknownAgent(f"agent 'python:{argument}': expected python:MODULE:FUNCTION")
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise UnknownAgent(
                f"agent 'python:{argument}' cannot be imported: {error} (MODULE is an installed one, or a file of the "
                "current folder without .py)"
            ) from error
        if not callable(function):
            raise UnknownAgent(f"agent 'python:{argument}': {name!r} is a {type(function).__name__}, not a function")
        self._name = argument
        self._function: Callable[[Request], str | Reply] = function
        self.skill_for: SkillFor | None = load_skills(settings.skill_prompt)

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """Call the function for every request; an exception ends its own episode."""
        return [self._answer(request) for request in requests]

    def describe(self) -> Mapping[str, Any]:
        """The function's name, and the hash of the file that holds it."""
        source = inspect.getsourcefile(inspect.unwrap(self._function)) if inspect.isfunction(self._function) else None
        known = {"source": hash_files([Path(source)])} if source and Path(source).is_file() else {}
        return {"kind": "FunctionAgent", "function": self._name, "identity": known}

    def close(self) -> None:
        """Nothing to release."""

    def _answer(self, request: Request) -> Reply:
        try:
            reply = self._function(request)
        except (Exception, SystemExit) as error:  # becomes the record of this episode
            return failed_reply(error)
        if isinstance(reply, Reply):
            return reply
        if isinstance(reply, str):
            return Reply(reply)
        return failed_reply(TypeError(f"python:{self._name} returned {type(reply).__name__}; expected str or Reply"))
