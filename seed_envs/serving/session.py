"""One episode after the other, played from afar: strings and plain values in, a dictionary out. Knows no server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from seed_envs.base import SeedEnv
from seed_envs.chat import split_observation
from seed_envs.endpoints.wire import image_url
from seed_envs.errors import EpisodeEnded, UnknownOption
from seed_envs.profiles import check_in_text, get_profile
from seed_envs.registration import make
from seed_envs.slots import SlotResult, serve
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import StopReason
from seed_envs.wrappers import make_agent_env

_SHOWN = ("goal", "task_id", "task_type", "format_valid", "action_valid", "invalid_reason", "success", "score")


class Session:
    """A client's environment, made at its first reset.

    Args:
        env_id: Registered id.
        profile: Profile where the client names none; ``""`` is the bare environment.
        env_kwargs: Constructor arguments.
    """

    def __init__(self, env_id: str, profile: str = "", env_kwargs: Mapping[str, Any] | None = None) -> None:
        self.env_id, self._profile, self._env_kwargs = env_id, profile, dict(env_kwargs or {})
        self._env: gym.Env[Any, str] | None = None
        self._made_for: str | None = None
        self.running = False
        self.episode: dict[str, Any] = {"env_id": env_id, "profile": profile, "step_count": 0, "done": False}

    def reset(
        self, seed: int | None = None, profile: str | None = None, index: int | None = None, **options: Any
    ) -> dict[str, Any]:
        """Start an episode.

        Args:
            seed: As of ``reset``; draws the task unless the options name one.
            profile: A profile of the environment; ``""`` for the bare one, None for the server's choice.
            index: Number of the task in the list of its split.
            **options: Reset options of the environment (``task_id``, ``split``, ...).

        Returns:
            What the client sees.

        Raises:
            SeedEnvsError, gymnasium.error.Error: For what the environment does not know.
        """
        if profile is not None and not isinstance(profile, str):
            raise UnknownOption(f"profile is the name of one; got {type(profile).__name__}: {profile!r}")
        self.running = False
        env = self._open(self._profile if profile is None else profile)
        if index is not None:
            options["task_id"] = self.task_at(options.get("split"), index)
        result = serve(env, "reset", TaskSpec(seed=seed, options=options))
        self.running = True
        self.episode = {
            "env_id": self.env_id,
            "profile": self._made_for,
            "task_id": result.info["task_id"],
            "step_count": 0,
            "done": False,
            "success": False,
            "score": 0.0,
            "total_reward": 0.0,
        }
        about = {"data": result.info.get("data", {}), **self._prompting(env)}
        return {**self._show(result), "reward": None, "metadata": about}

    def step(self, text: str) -> dict[str, Any]:
        """Play an action, or a model's whole reply where the session has a profile.

        Raises:
            EpisodeEnded: When no episode is running.
        """
        if not self.running or self._env is None:
            raise EpisodeEnded("this episode is over (or none was started); reset first")
        self.running = False  # also when the environment raises
        result = serve(self._env, "step", text)
        shown = self._show(result)
        self.running = not shown["done"]
        self.episode["step_count"] += 1
        self.episode["total_reward"] += result.reward
        self.episode |= {name: shown[name] for name in ("done", "success", "score", "stop_reason")}
        return {**shown, "reward": result.reward}

    def task_ids(self, split: str | None) -> Any:
        """The task ids of a split (None: the environment's own) in listed order."""
        env = self._open(self._profile).unwrapped
        if not isinstance(env, SeedEnv):
            raise UnknownOption(f"{self.env_id} lists no tasks")
        return env.task_ids(env.split if split is None else env.check_split(split))

    def splits(self) -> tuple[str, ...]:
        """The splits there are."""
        return tuple(getattr(self._open(self._profile).unwrapped, "splits", ()))

    def task_at(self, split: str | None, index: int) -> str:
        """A task by its number."""
        ids = self.task_ids(split)
        if type(index) is not int or not 0 <= index < len(ids):
            raise UnknownOption(f"index={index!r}; the split has the tasks 0 to {len(ids) - 1}")
        return str(ids[index])

    def abandon(self) -> None:
        """Forget the environment without closing it, because a step of it never came back."""
        self._env, self.running = None, False

    def close(self) -> None:
        """Release the environment; calling it twice is fine."""
        env = self._env
        self.abandon()
        if env is not None:
            env.close()

    def _open(self, profile: str) -> gym.Env[Any, str]:
        if self._env is None or profile != self._made_for:
            if profile:
                check_in_text(get_profile(self.env_id, profile), "seed-serve")
            made = (
                make_agent_env(self.env_id, profile, env_kwargs=self._env_kwargs)
                if profile
                else make(self.env_id, **self._env_kwargs)
            )
            self.close()
            self._env, self._made_for = made, profile
        return self._env

    def _prompting(self, env: gym.Env[Any, str]) -> dict[str, str]:
        """How the client builds messages from prompts: ``window`` asks with the last one alone."""
        if not self._made_for:
            return {}
        profile = env.get_wrapper_attr("profile")
        return {"profile": profile.name, "style": profile.style, "system": profile.system}

    def _show(self, result: SlotResult) -> dict[str, Any]:
        info, done = result.info, result.terminated or result.truncated
        prompt, image = split_observation(result.observation)
        reason = info["stop_reason"] or (StopReason.SUCCESS if result.terminated else StopReason.MAX_STEPS).value
        actions = info["admissible_actions"]
        return {
            "text": info["turn"].observation if self._made_for else prompt,
            "prompt": prompt if self._made_for else "",
            "image": None if image is None else image_url(image, effort=1),
            "admissible_actions": None if actions is None else list(actions),
            "stop_reason": reason if done else "",
            "truncated": result.truncated,
            "done": done,
            **{name: info[name] for name in _SHOWN},
        }
