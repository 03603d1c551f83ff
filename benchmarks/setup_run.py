"""Before the first episode: tasks, plan and agent of a configuration, and what a reader must know about them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from seed_envs.profiles import Profile
from seed_envs.statistics.panels import choose_tasks
from seed_envs.tasks import Manifest

from .agents.base import AGENTS, Agent, make_agent, split_spec
from .blind import check_pictures, donors_of
from .config import RunConfig
from .errors import ConfigInvalid
from .plan import Planned, build_plan
from .versions import describe_hardware, describe_software


@dataclass(frozen=True)
class Prepared:
    """A run that can start.

    Attributes:
        config: Its configuration.
        manifest: All tasks of the suite.
        plan: The episodes of this shard.
    """

    config: RunConfig
    manifest: Manifest
    plan: list[Planned]

    def identity(self) -> dict[str, Any]:
        """What must not change between attempts: the hashes of tasks and prompt."""
        chosen = choose_tasks(self.manifest.ids, self.config.limit)
        profile = self.config.suite.find_profile(self.config.profile)
        return {
            "manifest": {
                "name": self.manifest.name,
                "sha256": self.manifest.sha256,
                "tasks": len(self.manifest),
                "chosen": len(chosen),
                "chosen_sha256": Manifest(self.manifest.name, tuple(chosen)).sha256,
            },
            "prompt": {"profile": profile.name, "sha256": prompt_hash(profile), "source": profile.source},
        }

    def with_learned(self, agent: Agent) -> Prepared:
        """The same with what the agent has learned of its server, so that workers and later attempts know it too."""
        learned = getattr(agent, "learned", {})
        if not learned:
            return self
        settings = self.config.agent
        settings = dataclasses.replace(settings, request_args={**settings.request_args, **learned})
        return dataclasses.replace(self, config=dataclasses.replace(self.config, agent=settings))

    def describe(self, agent: Agent, command: list[str]) -> dict[str, Any]:
        """The content of ``config.json``."""
        return {
            "run": self.config.to_json(),
            **self.identity(),
            "planned": len(self.plan),
            "environment": {"id": self.config.suite.env_id, "spec": _spec(self.config)},
            "agent": dict(agent.describe()),
            "software": describe_software(),
            "hardware": describe_hardware(),
            "command": command,
        }


def prepare(config: RunConfig) -> Prepared:
    """Load the tasks and make the plan.

    Raises:
        DataMissing: When the environment's data is not there.
        ConfigInvalid: When nothing is left to play.
    """
    manifest = config.suite.load_tasks(config.profile, config.env_kwargs)
    plan = build_plan(manifest.ids, repeats=config.repeats, seed=config.seed, limit=config.limit, shard=config.shard)
    if not plan:
        raise ConfigInvalid(f"nothing to play: {len(manifest)} tasks, limit {config.limit}, shard {config.shard}")
    if config.blind:
        _check_blind(config, manifest)
    return Prepared(config, manifest, plan)


def _check_blind(config: RunConfig, manifest: Manifest) -> None:
    """Refuse to blind an agent without eyes, and a suite without pictures."""
    if not AGENTS.find(split_spec(config.agent.spec)[0]).sees:
        raise ConfigInvalid(
            f"--blind {config.blind}: agent {config.agent.spec!r} asks the environment and looks at no picture; "
            "blind a model, or a player of seed_benchmarks.text_only"
        )
    suite, profile = config.suite, config.suite.find_profile(config.profile)
    check_pictures(suite.env_id, profile, manifest.ids[0], suite.arguments(config.env_kwargs))
    if config.blind == "shuffle":
        donors_of(manifest.ids, config.seed)


def build_agent(config: RunConfig) -> Agent:
    """The configuration's agent."""
    return make_agent(config.agent, config.suite.find_profile(config.profile))


def prompt_hash(profile: Profile) -> str:
    """SHA-256 of everything in a profile that decides what an agent reads and how it is read."""
    values = {key: value for key, value in dataclasses.asdict(profile).items() if key not in ("name", "source")}
    if not profile.action_format.tools:
        del values["action_format"]["tools"]  # the hashes of profiles without tools stay those of earlier runs
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=_stable).encode()).hexdigest()


def _stable(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a profile holds data only; got {type(value).__name__}")


def _spec(config: RunConfig) -> dict[str, Any] | None:
    """The environment's specification with all arguments, as Gymnasium writes it."""
    suite = config.suite
    profile = suite.find_profile(config.profile)
    kwargs = {**profile.env_kwargs, **suite.arguments(config.env_kwargs)}
    limit = config.max_steps or profile.max_steps
    env = gym.make(suite.env_id, max_episode_steps=limit, **kwargs)
    try:
        spec: dict[str, Any] | None = json.loads(env.spec.to_json()) if env.spec is not None else None
    except ValueError:
        spec = None
    env.close()
    return spec
