"""Tools: what a model may do in an environment, as functions that its chat template or an agent library shows it.

A tool is data: a name, one argument, and how a call is written as an action. An environment without tools of its own
has the single tool ``act``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seed_envs.registration import find_row, load_attribute


@dataclass(frozen=True)
class Tool:
    """One function.

    Attributes:
        name: Its name.
        about: What it does, one sentence.
        argument: Name of its only argument, a text.
        meaning: What the argument is.
        action: The action that a call stands for, a format string over the argument.
    """

    name: str = "act"
    about: str = "Take one action and see what happens."
    argument: str = "action"
    meaning: str = "The action, written as the list of possible actions has it, or as the instructions say."
    action: str = "{action}"

    def schema(self) -> dict[str, Any]:
        """The function as JSON, in OpenAI's form, which chat templates read too."""
        properties = {self.argument: {"type": "string", "description": self.meaning}}
        parameters = {"type": "object", "properties": properties, "required": [self.argument]}
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.about, "parameters": parameters},
        }

    def action_of(self, arguments: Mapping[str, Any]) -> str:
        """The action of a call; arguments that are missing or no text count as empty."""
        value = arguments.get(self.argument)
        return self.action.format(**{self.argument: value if isinstance(value, str) else ""})

    def arguments_of(self, action: str) -> dict[str, str] | None:
        """The arguments of the call that stands for an action; None where no call of this tool does."""
        before, after = (part.format() for part in self.action.split(f"{{{self.argument}}}"))
        if len(action) < len(before) + len(after) or not (action.startswith(before) and action.endswith(after)):
            return None
        return {self.argument: action[len(before) : len(action) - len(after)]}

    def as_function(self, act: Callable[..., Any], *before: str) -> Callable[..., Any]:
        """A Python function with this name, signature and docstring, for libraries that read those.

        Args:
            act: Called with whatever the names of ``before`` hold, then the action; its result is returned.
            *before: Parameters ahead of the argument, such as ``self`` for a method.
        """

        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs).arguments
            return act(*(bound[name] for name in before), self.action_of(bound))

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        leading = [inspect.Parameter(name, kind) for name in before]
        signature = inspect.Signature([*leading, inspect.Parameter(self.argument, kind, annotation=str)])
        call.__name__ = call.__qualname__ = self.name
        call.__signature__ = signature.replace(return_annotation=str)  # type: ignore[attr-defined]
        call.__annotations__ = {self.argument: str, "return": str}
        call.__doc__ = (
            f"{self.about}\n\nArgs:\n    {self.argument}: {self.meaning}\n\nReturns:\n    What the environment says."
        )
        return call


def tools_of(env_id: str) -> tuple[Tool, ...]:
    """The tools of a registered environment.

    Raises:
        UnknownEnvironment: For an id that is not in the table.
    """
    reference = find_row(env_id).tools
    found: tuple[Tool, ...] = load_attribute(reference) if reference else (Tool(),)
    return found
