"""verifiers 0.4: a taskset of any environment, and the ``Env`` that plays it.

    vf-eval seed-verifiers --env.taskset.env-id seed/WebShop-v0 --env.taskset.split test --model MODEL

verifiers finds packages by the name of a top-level module, here ``seed_verifiers``. A rollout is one conversation:
each user turn is the prompt that the profile renders for that turn, and the reply is read as the profile reads it. The
reward is the sum of the profile's rewards; ``success`` and ``score`` are metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf

from seed_envs.integrations.episode import Episode
from seed_envs.profiles import check_in_text

__all__ = ["SeedVerifiersEnv", "SeedVerifiersTaskset"]


class SeedTasksetConfig(vf.TasksetConfig):
    """Which tasks of which environment, with which prompt.

    ``tasks`` is how many: a fixed mixed sample of a listed split, the first seeds of a procedural one.
    """

    env_id: str = "seed/ALFWorld-v0"
    profile: str = "paper"
    split: str | None = None
    tasks: int | None = None
    max_steps: int | None = None
    env_kwargs: dict[str, Any] = {}

    def make(self) -> Episode:
        """An environment of these settings."""
        episode = Episode(self.env_id, self.profile, self.max_steps, self.env_kwargs)
        check_in_text(episode.profile, "verifiers")
        return episode


class SeedData(vf.TaskData):
    """A task as ``Episode.reset`` takes it."""

    reset: dict[str, Any]


class SeedTask(vf.Task[SeedData, vf.State, vf.TaskConfig]):
    """A task; it is scored by the environment."""


class SeedVerifiersTaskset(vf.Taskset[SeedTask, SeedTasksetConfig]):
    """The tasks of a split with the first prompt of each."""

    def load(self) -> Iterator[SeedTask]:
        """Yield the tasks in listed order."""
        episode = self.config.make()
        for task in episode.tasks(self.config.split, self.config.tasks):
            reset = {"task_id": task.task_id, "split": task.split, "seed": task.seed}
            prompt = episode.reset(**reset)[-1]["content"]
            data = SeedData(name=episode.info["task_id"], prompt=prompt, reset=reset)
            if episode.profile.system:
                data = data.model_copy(update={"system_prompt": episode.profile.system})
            yield SeedTask(data, self.config.task)
        episode.close()


class SeedEnvConfig(vf.EnvConfig):
    """Who plays: a plain chat loop unless another harness is named."""

    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})


class SeedVerifiersEnv(vf.Env[SeedEnvConfig]):
    """Plays one episode as the user of the model under evaluation or training."""

    async def run(self, task: SeedTask, agents: Any) -> None:
        """Exchange prompts and replies until the episode or the rollout ends, then record the outcome."""
        episode: Episode = self.taskset.config.make()
        episode.reset(**task.data.reset)
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                messages = episode.reply(segment.last_reply)
                if episode.done:
                    break
                segment = await interaction.turn(messages[-1]["content"])
        interaction.trace.record_reward("environment", episode.total_reward, 1.0)
        interaction.trace.record_metric("success", float(episode.success))
        interaction.trace.record_metric("score", episode.score)
        interaction.trace.info["stop_reason"] = episode.stop_reason
        episode.close()
