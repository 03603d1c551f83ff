"""``Episode``: one episode as a conversation that somebody else's loop drives, by replies or by tool calls.

The other way round from ``seed_envs.rollout``, which drives a policy; both build their messages in ``seed_envs.chat``
and step the same wrapped environment, so a task played by the same actions ends with the same score.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from seed_envs.chat import Message, build_messages
from seed_envs.errors import UnboundedSplit
from seed_envs.profiles import Profile, TurnContext
from seed_envs.statistics.panels import choose_tasks
from seed_envs.tasks import TaskSpec
from seed_envs.tools import Tool, tools_of
from seed_envs.trajectory import StopReason
from seed_envs.wrappers import make_agent_env

ENDED = "The episode is over."


class Episode:
    """An environment with the agent's wrappers, played one episode after the other.

    Args:
        env_id: A registered id.
        profile: Name of a profile of that environment, or one of your own.
        max_steps: Step limit; None takes the profile's.
        env_kwargs: Constructor arguments of the environment, whatever their names.
        **kwargs: More of them.

    Attributes:
        done: Whether the episode is over.
        success: Whether the task is solved.
        score: From 0 to 1.
        total_reward: Sum of the profile's rewards so far.
        stop_reason: Why the episode ended, or ``""``.
        actions: What was sent to the environment.
        info: The last info of the environment.
    """

    def __init__(
        self,
        env_id: str,
        profile: str | Profile = "paper",
        max_steps: int | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.env_id = env_id
        self.env = make_agent_env(env_id, profile, max_steps, env_kwargs, **kwargs)
        self.profile: Profile = self.env.get_wrapper_attr("profile")
        self.tools: tuple[Tool, ...] = tools_of(env_id)
        self.done, self.success, self.score, self.total_reward, self.stop_reason = True, False, 0.0, 0.0, ""
        self.info: dict[str, Any] = {}
        self.actions: list[str] = []
        self._turns: list[TurnContext] = []
        self._replies: list[str] = []

    def reset(self, task_id: str | None = None, split: str | None = None, seed: int | None = None) -> list[Message]:
        """Start an episode; returns the first messages."""
        _, self.info = self.env.reset(**TaskSpec(task_id, split, seed).reset_arguments())
        self._turns, self._replies, self.actions = [self.info["turn"]], [], []
        self.done, self.total_reward, self.stop_reason = False, 0.0, ""
        self.success, self.score = bool(self.info["success"]), float(self.info["score"])
        return self.messages()

    def reply(self, text: str) -> list[Message]:
        """Play a model's whole reply, as the profile reads it; returns the next messages.

        Raises:
            EpisodeEnded: When there is no running episode.
        """
        _, reward, terminated, truncated, self.info = self.env.step(text)
        info = self.info
        self.actions.append(info["action"])
        self._replies.append(text)
        self._turns.append(info["turn"])
        self.done, self.total_reward = terminated or truncated, self.total_reward + float(reward)
        self.success, self.score = bool(info["success"]), float(info["score"])
        if self.done:
            derived = StopReason.SUCCESS if terminated else StopReason.MAX_STEPS
            self.stop_reason = info["stop_reason"] or derived.value
        return self.messages()

    def act(self, action: str) -> str:
        """Play an action and return what is seen then; after the end nothing is played any more."""
        if self.done:
            return ENDED
        self.reply(self.profile.action_format.format(action))
        return self.view()

    def call(self, name: str, arguments: Any) -> str:
        """Play a tool call; one that no tool answers is an unreadable reply, and says so.

        Args:
            name: The tool.
            arguments: An object, or the JSON text of one, as a model wrote it; whatever else it is, it cannot be read.
        """
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if isinstance(arguments, str):
            with contextlib.suppress(ValueError, RecursionError):
                arguments = json.loads(arguments)
        if tool is not None and isinstance(arguments, Mapping):
            return self.act(tool.action_of(arguments))
        self.done or self.reply("")
        if tool is not None:
            return f"The arguments of {name!r} are no JSON object with {tool.argument!r}. {self.view()}"
        return f"There is no tool {name!r}; there are: {', '.join(tool.name for tool in self.tools)}. {self.view()}"

    def messages(self) -> list[Message]:
        """What the model reads next, as the profile has it."""
        return build_messages(self.profile, self._turns, self._replies)

    def view(self) -> str:
        """What a model that plays by tools reads next: refusal, goal (at first), observation, possible actions."""
        turn = self._turns[-1]
        refusal = f"Not done: {self.info['invalid_reason']}." if self.info["invalid_reason"] else ""
        shown = [action for action in turn.admissible or () if action not in self.profile.template.hidden_actions]
        listed = f"Possible actions: {'; '.join(shown)}" if shown and not self.done else ""
        lines = [refusal, turn.goal if len(self._turns) == 1 else "", turn.observation, listed, ENDED * self.done]
        return "\n".join(dict.fromkeys(line for line in lines if line))

    def tasks(self, split: str | None = None, count: int | None = None) -> list[TaskSpec]:
        """Tasks of a split: a fixed mixed sample of a listed one, the first seeds of a procedural one.

        Args:
            split: None is the environment's own.
            count: How many; None takes all that are listed.

        Raises:
            UnboundedSplit: For a procedural split without a count.
        """
        env: Any = self.env.unwrapped
        chosen = split or env.split
        try:
            return [TaskSpec(task_id) for task_id in choose_tasks(env.task_ids(chosen), count)]
        except UnboundedSplit:
            if count is None:
                raise
            return [TaskSpec(None, chosen, seed) for seed in range(count)]

    def close(self) -> None:
        """Release the environment."""
        self.env.close()
