"""TRL: ``GRPOTrainer(environment_factory=...)``, its own multi-turn loop over tool calls.

    made = make_trl_env("seed/ALFWorld-v0", split="train", tasks=64)
    GRPOTrainer(model, train_dataset=made.dataset, environment_factory=made.factory, args=...)

The environment gives the reward itself: the sum of the profile's rewards. It shows observations as plain text, so that
the tags of a profile's prompt do not compete with the model's own way of calling tools.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seed_envs.errors import UnknownOption, require
from seed_envs.integrations.episode import Episode
from seed_envs.profiles import Profile
from seed_envs.tools import tools_of

if TYPE_CHECKING:
    from datasets import Dataset


class ToolEnv:
    """What TRL resets, calls and asks for a reward; the tools are methods of a subclass."""

    def __init__(self, make_episode: Callable[[], Episode]) -> None:
        self._episode = make_episode()

    def reset(self, **row: Any) -> str:
        """Start the task of a dataset row and return what is seen."""
        self._episode.reset(row.get("task_id"), row.get("split"), row.get("seed"))
        return self._episode.view()

    def get_reward(self) -> float:
        """The sum of the rewards so far."""
        return self._episode.total_reward

    def _act(self, action: str) -> str:
        return self._episode.act(action)


@dataclass(frozen=True)
class TrlEnv:
    """What ``GRPOTrainer`` takes.

    Attributes:
        factory: ``environment_factory``.
        tools: Schemas of the tools, in OpenAI's form.
        dataset: ``train_dataset``: an opening message and a task a row.
    """

    factory: Callable[[], ToolEnv]
    tools: list[dict[str, Any]]
    dataset: Dataset


def make_trl_env(
    env_id: str,
    profile: str | Profile = "paper",
    *,
    split: str | None = None,
    tasks: int | None = None,
    opening: str = "Solve the task by calling the tools.\n\n",
    **env_kwargs: Any,
) -> TrlEnv:
    """Factory, tools and dataset of an environment.

    Args:
        env_id: A registered id.
        profile: Decides step limit and rewards; it shows text.
        split: Where the tasks come from (None: the environment's own).
        tasks: How many, a fixed mixed sample (None or 0: all).
        opening: User message ahead of the first observation.
        **env_kwargs: Constructor arguments of the environment.

    Raises:
        UnknownOption: For a profile with pictures.
        DependencyMissing: Without the package ``datasets``.
    """
    require("datasets", "train", "a dataset for TRL")
    from datasets import Dataset

    probe = Episode(env_id, profile, **env_kwargs)
    if "image" in (getattr(probe.env.unwrapped.observation_space, "spaces", None) or {}):
        raise UnknownOption(f"profile {probe.profile.name!r} of {env_id} shows pictures; tools need one with text")
    listed = probe.tasks(split, tasks or None)
    probe.close()
    tools = tools_of(env_id)
    methods = {tool.name: tool.as_function(ToolEnv._act, "self") for tool in tools}
    kind = type("SeedToolEnv", (ToolEnv,), methods)
    rows = {name: [getattr(task, name) for task in listed] for name in ("task_id", "split", "seed")}
    prompts = [[{"role": "user", "content": opening}] for _ in listed]
    return TrlEnv(
        lambda: kind(lambda: Episode(env_id, profile, **env_kwargs)),
        [tool.schema() for tool in tools],
        Dataset.from_dict({"prompt": prompts, **rows}),
    )
