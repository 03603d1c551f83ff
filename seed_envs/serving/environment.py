"""The environments as OpenEnv's server knows them."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import gymnasium as gym
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata

from seed_envs import __version__
from seed_envs.base import MAX_ACTION_LENGTH
from seed_envs.errors import SeedEnvsError, UnboundedSplit
from seed_envs.redaction import redact
from seed_envs.registration import find_row
from seed_envs.serving.house import House, Seat
from seed_envs.serving.models import SeedAction, SeedObservation, SeedState

#: The ``episode_id`` of the query while a plain HTTP request is answered; None inside a WebSocket session.
HTTP_EPISODE: ContextVar[str | None] = ContextVar("HTTP_EPISODE", default=None)

LISTED_TASKS = 1000
"""Most tasks that one answer lists; ``task_range`` gets at the others."""


class Refused(SeedEnvsError, ValueError):
    """A request that cannot be carried out; the message is for the client."""


class SeedEnvironment(Environment[SeedAction, SeedObservation, SeedState]):
    """One session, or one HTTP request, of a served environment.

    OpenEnv makes an object for each WebSocket session and for each HTTP request. The episode of a session lives and
    dies with it; over HTTP it is found again by its ``episode_id``.

    Args:
        house: What the sessions share.
        env_id: Registered id.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True
    REQUIRES_SINGLE_THREAD_EXECUTOR = True  # otherwise OpenEnv gives every session a thread of its own

    def __init__(self, house: House, env_id: str) -> None:
        super().__init__()
        self._house, self._env_id = house, env_id
        self._asked_for = HTTP_EPISODE.get()
        self._own = house.seat(env_id) if self._asked_for is None else None
        self._episode_id = ""

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> SeedObservation:
        """Unused: the server awaits :meth:`reset_async`."""
        raise NotImplementedError("use reset_async")

    def step(self, action: SeedAction, timeout_s: float | None = None, **kwargs: Any) -> SeedObservation:
        """Unused: the server awaits :meth:`step_async`."""
        raise NotImplementedError("use step_async")

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> SeedObservation:
        """Start an episode; see ``Session.reset`` for the further arguments.

        Raises:
            Refused: For what the environment does not know.
        """
        if episode_id is not None and (not isinstance(episode_id, str) or not 0 < len(episode_id) <= 255):
            raise Refused("episode_id is a text of 1 to 255 characters")
        name = episode_id or str(uuid.uuid4())
        seat = self._own or self._house.keep(self._env_id, name)
        shown = await self._run(seat, lambda: seat.session.reset(seed=seed, **kwargs))
        self._episode_id = name
        self._house.metrics.add("seed_episodes_started_total", env=self._env_id)
        shown["metadata"]["episode_id"] = name
        return SeedObservation(**shown)

    async def step_async(
        self, action: SeedAction, timeout_s: float | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> SeedObservation:
        """Play one action.

        Args:
            action: The action.
            timeout_s: Longest time the step may take.
            episode_id: Which episode, over HTTP.
            **kwargs: Nothing.

        Raises:
            Refused: When no episode is running.
        """
        name = episode_id or self._asked_for or ""
        seat = self._own or self._house.find(self._env_id, name)
        text, started = action.text[: MAX_ACTION_LENGTH + 1], time.perf_counter()
        shown = await self._run(seat, lambda: seat.session.step(text), timeout_s)
        metrics = self._house.metrics
        metrics.add("seed_steps_total", env=self._env_id)
        metrics.add("seed_step_seconds_total", time.perf_counter() - started, env=self._env_id)
        if shown["done"]:
            metrics.add("seed_episodes_ended_total", env=self._env_id, reason=shown["stop_reason"])
            if not self._own:
                await self._house.drop(self._env_id, name)
        return SeedObservation(**shown)

    @property
    def state(self) -> SeedState:
        """Where the session stands."""
        seat = self._own or self._house.find(self._env_id, self._asked_for)
        return SeedState(episode_id=self._episode_id or self._asked_for, **seat.session.episode)

    def close(self) -> None:
        """End the session; an HTTP episode stays."""
        if self._own:
            self._own.session.close()

    def get_metadata(self) -> EnvironmentMetadata:
        """What this environment is."""
        limit = find_row(self._env_id).max_episode_steps
        description = f"{self._env_id}, {limit or 'as many as its protocol has'} steps at most"
        return EnvironmentMetadata(name=self._env_id, description=description, version=__version__)

    # -- OpenEnv's task API ----------------------------------------------------------------------------------------

    async def list_splits(self) -> list[str]:
        """The splits."""
        return list(await self._ask(lambda seat: seat.session.splits()))

    async def num_tasks(self, split: str) -> int:
        """Number of tasks of a split."""
        return len(await self._ask(lambda seat: seat.session.task_ids(split)))

    async def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """The first tasks of a split."""
        return await self.get_task_range(split, 0, LISTED_TASKS)

    async def get_task(self, split: str, index: int) -> dict[str, Any]:
        """A task by its number; an IndexError becomes OpenEnv's own answer."""
        found = await self.get_task_range(split, index, index + 1) if index >= 0 else []
        if not found:
            raise IndexError(index)
        return found[0]

    async def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        """Some tasks of a split, at most a thousand."""
        ids = await self._ask(lambda seat: seat.session.task_ids(split))
        numbers = range(*slice(start, stop).indices(len(ids)))[:LISTED_TASKS]
        return [{"id": ids[number], "index": number} for number in numbers]

    async def _ask(self, question: Callable[[Seat], Any]) -> Any:
        seat = self._house.seat(self._env_id)
        try:
            return await self._run(seat, lambda: question(seat))
        except UnboundedSplit as error:
            raise NotImplementedError from error
        finally:
            seat.session.close()

    async def _run(self, seat: Seat, work: Callable[[], Any], timeout: float | None = None) -> Any:
        """Do something in a thread, one thing at a time for a session; faults leave it without an episode."""
        async with seat.lock:
            try:
                return await asyncio.wait_for(
                    asyncio.get_running_loop().run_in_executor(self._house.threads, work), timeout
                )
            except UnboundedSplit:
                raise
            except (SeedEnvsError, gym.error.Error) as error:
                raise Refused(redact(str(error))) from error
            except Exception as error:
                # Its text may hold paths and secrets: the client learns the type, the log the rest.
                kind = type(error).__name__
                seat.session.abandon()
                self._house.metrics.add("seed_faults_total", env=self._env_id, type=kind)
                logging.getLogger(__name__).error("%s raised %s", self._env_id, redact(repr(error)))
                raise Refused(f"the environment raised {kind}; reset starts another episode") from error
