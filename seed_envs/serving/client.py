"""The typed client of a served environment.

with SeedClient("http://127.0.0.1:8000/seed/Sokoban-v0").sync() as env:
    result = env.reset(split="test", index=0)
    result = env.step(SeedAction(text="up"))
"""

from __future__ import annotations

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient

from seed_envs.serving.models import SeedAction, SeedObservation, SeedState


class SeedClient(EnvClient[SeedAction, SeedObservation, SeedState]):
    """Talks to one environment of ``seed-serve``; the arguments are those of OpenEnv's ``EnvClient``."""

    def _step_payload(self, action: SeedAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[SeedObservation]:
        reward, done = payload.get("reward"), payload.get("done", False)
        observation = SeedObservation(**payload["observation"], reward=reward, done=done)
        return StepResult(observation, reward, done, payload.get("metadata"))

    def _parse_state(self, payload: dict[str, Any]) -> SeedState:
        return SeedState(**payload)
