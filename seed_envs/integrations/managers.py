"""verl-agent's and SkyRL's shape of an environment: a batch of prompts out, a batch of replies in.

    envs = EnvironmentManager("seed/ALFWorld-v0", env_num=16, group_n=8, split="train", seed=1)
    observations, infos = envs.reset(kwargs={})
    observations, rewards, dones, infos = envs.step(replies)

Prompts, the way replies are read and rewards are the profile's; ``profile="verl-agent"``, where an environment has it,
is that project's own set-up. An episode that has ended repeats its last result without reward, as the loops of these
projects expect, which keep stepping the whole batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seed_envs.integrations.episode import Episode
from seed_envs.profiles import Profile, check_in_text

Observations = dict[str, Any]
Info = dict[str, Any]


class EnvironmentManager:
    """A batch of ``env_num`` tasks with ``group_n`` equal copies each.

    Args:
        env_id: A registered id.
        env_num: Tasks at a time.
        group_n: Copies of each task, next to each other.
        profile: How turns are shown and replies are read; of style ``window``.
        split: Where tasks are drawn from (None: the environment's own).
        seed: Draws the tasks of all resets.
        **env_kwargs: Constructor arguments of the environment.

    Raises:
        ValueError: For a profile that is one growing conversation: a batch of texts cannot hold it.
    """

    def __init__(
        self,
        env_id: str,
        env_num: int,
        group_n: int = 1,
        profile: str | Profile = "paper",
        *,
        split: str | None = None,
        seed: int = 0,
        **env_kwargs: Any,
    ) -> None:
        self.episodes = [Episode(env_id, profile, **env_kwargs) for _ in range(env_num * group_n)]
        check_in_text(self.episodes[0].profile, "EnvironmentManager")
        if self.episodes[0].profile.style != "window":
            name = self.episodes[0].profile.name
            raise ValueError(f"profile {name!r} of {env_id} is one growing conversation; choose one of style 'window'")
        self.env_num, self.group_n, self._split = env_num, group_n, split
        self._seeds = np.random.SeedSequence(seed)

    def reset(self, kwargs: Any = None) -> tuple[Observations, list[Info]]:
        """Start the next tasks.

        Args:
            kwargs: None, or one mapping per episode with ``task_id`` (and ``split``), to play exactly these.

        Returns:
            Observations and infos, see :meth:`step`.
        """
        drawn = np.repeat(self._seeds.spawn(1)[0].generate_state(self.env_num), self.group_n)
        rows: Sequence[Mapping[str, Any]] = kwargs or [{}] * len(self.episodes)
        for episode, row, seed in zip(self.episodes, rows, drawn, strict=True):
            episode.reset(row.get("task_id"), row.get("split", self._split), int(seed))
        return self._observe(), [self._info(episode) for episode in self.episodes]

    def step(
        self, text_actions: Sequence[str]
    ) -> tuple[Observations, NDArray[np.float64], NDArray[np.bool_], list[Info]]:
        """Play one whole reply per episode.

        Args:
            text_actions: The model's replies, B of them.

        Returns:
            Observations (``text``: the B prompts; ``image``: B pictures or None; ``anchor``: the B bare observations),
            rewards (B,), ends (B,) and infos, which hold ``won``, ``is_action_valid`` and the environment's own keys.
        """
        if len(text_actions) != len(self.episodes):
            raise ValueError(
                f"{len(text_actions)} replies for {len(self.episodes)} environments; expected one for each"
            )
        rewards = np.zeros(len(self.episodes))
        for index, (episode, text) in enumerate(zip(self.episodes, text_actions, strict=True)):
            if not episode.done:
                before = episode.total_reward
                episode.reply(text)
                rewards[index] = episode.total_reward - before
        dones = np.array([episode.done for episode in self.episodes])
        return self._observe(), rewards, dones, [self._info(episode) for episode in self.episodes]

    def success_evaluator(
        self,
        *,
        total_infos: Sequence[Sequence[Info]],
        total_batch_list: Sequence[Sequence[Mapping[str, Any]]],
        **_: Any,
    ) -> dict[str, NDArray[np.float64]]:
        """Success of each episode at its last active step, over all tasks and by task type."""
        found: dict[str, list[float]] = {"success_rate": []}
        for infos, batch in zip(total_infos, total_batch_list, strict=True):
            active = [info for info, item in zip(infos, batch, strict=False) if item["active_masks"]]
            found["success_rate"].append(float(active[-1]["won"]))
            found.setdefault(f"{active[-1]['task_type']}_success_rate", []).append(float(active[-1]["won"]))
        return {name: np.array(values) for name, values in found.items()}

    def close(self) -> None:
        """Release the environments."""
        for episode in self.episodes:
            episode.close()

    def _observe(self) -> Observations:
        turns = [episode.info["turn"] for episode in self.episodes]
        pictured = turns[0].image is not None
        return {
            "text": [episode.profile.template.render(turn) for episode, turn in zip(self.episodes, turns, strict=True)],
            "image": np.stack([turn.image for turn in turns]) if pictured else None,
            "anchor": [turn.observation for turn in turns],
        }

    def _info(self, episode: Episode) -> Info:
        valid = np.array(episode.info["format_valid"])
        return {**episode.info, "won": episode.success, "is_action_valid": valid, "task_score": episode.score}
