"""What all sessions of a server share: options, threads, counters, a limit, and the episodes played over plain HTTP."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from seed_envs.errors import SeedEnvsError
from seed_envs.serving.metrics import Metrics
from seed_envs.serving.options import ServeOptions
from seed_envs.serving.session import Session


class SessionRefused(SeedEnvsError, RuntimeError):
    """There are as many sessions as the server allows."""


class EpisodeUnknown(SeedEnvsError, KeyError):
    """No episode of that id is being played over HTTP."""

    __str__ = Exception.__str__


class Seat:
    """A session, and what keeps two requests out of it at once."""

    def __init__(self, session: Session) -> None:
        self.session, self.lock, self.used = session, asyncio.Lock(), time.monotonic()


class House:
    """One per server.

    Args:
        options: How to serve.
    """

    def __init__(self, options: ServeOptions) -> None:
        self.options, self.metrics = options, Metrics()
        self.threads = ThreadPoolExecutor(options.threads, "seed-serve")
        self.sessions = 0
        self._kept: dict[tuple[str, str], Seat] = {}

    def seat(self, env_id: str) -> Seat:
        """A seat for a new session of an environment; taking one is not entering."""
        return Seat(Session(env_id, self.options.profile, self.options.env_kwargs))

    def enter(self) -> None:
        """Count one more session.

        Raises:
            SessionRefused: When there are enough.
        """
        if self.sessions >= self.options.max_sessions:
            self.metrics.add("seed_refused_total", reason="sessions")
            raise SessionRefused(f"all {self.options.max_sessions} sessions are taken; close one, or try again later")
        self.sessions += 1

    def leave(self) -> None:
        """Count one session less."""
        self.sessions -= 1

    def keep(self, env_id: str, episode_id: str) -> Seat:
        """The seat of an episode over HTTP, a new one for an id that is unknown.

        Raises:
            SessionRefused: When a new one is one too many.
        """
        if (env_id, episode_id) not in self._kept:
            self.enter()
            self._kept[env_id, episode_id] = self.seat(env_id)
        return self.find(env_id, episode_id)

    def find(self, env_id: str, episode_id: str | None) -> Seat:
        """The seat of an episode over HTTP.

        Raises:
            EpisodeUnknown: When there is none, with what to do.
        """
        seat = self._kept.get((env_id, episode_id or ""))
        if seat is None:
            raise EpisodeUnknown(
                f"episode_id={episode_id!r} is not being played here; POST reset gives an episode_id in its metadata, "
                'which belongs into {"action": ..., "episode_id": ...} and ?episode_id='
            )
        seat.used = time.monotonic()
        return seat

    async def drop(self, env_id: str, episode_id: str) -> None:
        """End an episode over HTTP and free its session."""
        seat = self._kept.pop((env_id, episode_id), None)
        if seat is not None:
            self.leave()
            async with seat.lock:
                seat.session.close()

    async def sweep(self) -> None:
        """End the HTTP episodes that nobody has played for too long, for as long as the server runs."""
        patience = self.options.idle_seconds
        while True:
            await asyncio.sleep(min(patience / 4, 5.0))
            for (env_id, name), seat in list(self._kept.items()):
                if not seat.lock.locked() and time.monotonic() - seat.used > patience:
                    self.metrics.add("seed_refused_total", reason="idle")
                    await self.drop(env_id, name)
