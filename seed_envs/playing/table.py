"""What the page shows and what it may ask for: the game and the stored episodes as plain data. Knows no HTTP."""

from __future__ import annotations

import base64
import io
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seed_envs.chat import split_observation
from seed_envs.errors import SeedEnvsError
from seed_envs.playing.game import Game
from seed_envs.playing.stored import Episodes, picture_source
from seed_envs.registration import TABLE

MOST_BUTTONS = 300
"""Actions that get a button; others are typed."""

Request = Mapping[str, Any]


class Refused(SeedEnvsError, ValueError):
    """A request that cannot be carried out: an action of an earlier turn, a field of the wrong type."""


class Table:
    """One game at a time, and the episodes of one file.

    Args:
        env_id: What the page offers first.
        env_kwargs: Arguments of that environment.
        replay: File or folder of stored episodes.
        check_services: Whether an environment's services are asked before a game.
    """

    def __init__(
        self,
        env_id: str,
        env_kwargs: Mapping[str, Any] | None = None,
        replay: Path | None = None,
        check_services: bool = True,
    ) -> None:
        self._env_id, self._kwargs, self._check = env_id, dict(env_kwargs or {}), check_services
        self._game: Game | None = None
        self._episodes = None if replay is None else Episodes(replay)
        self._lock = threading.Lock()
        self.calls: dict[str, Callable[[Request], dict[str, Any]]] = {
            name: getattr(self, f"_{name}") for name in ("offer", "new", "act", "undo", "hint", "episode")
        }

    def answer(self, name: str, request: Request) -> dict[str, Any]:
        """Carry out one of ``calls``; one at a time, because environments are not made for threads.

        Raises:
            SeedEnvsError: What is to be told to the person.
        """
        with self._lock:
            return self.calls[name](request)

    def close(self) -> None:
        """End the game."""
        with self._lock:
            if self._game is not None:
                self._game.close()

    def _offer(self, request: Request) -> dict[str, Any]:
        return {
            "envs": list(dict.fromkeys([self._env_id, *(name for name in TABLE if not TABLE[name].needs_browser)])),
            "episodes": [] if self._episodes is None else self._episodes.titles,
            "game": None if self._game is None else self._shown(),
        }

    def _new(self, request: Request) -> dict[str, Any]:
        env_id, seed = _text(request, "env"), request.get("seed", 0)
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise Refused(f"seed {seed!r}; expected a whole number from 0")
        options = {name: _text(request, name) for name in ("task_id", "split")}
        kwargs = self._kwargs if env_id == self._env_id else {}
        fresh = Game(env_id, seed, options, kwargs, self._check)  # a refused one leaves the game that there is
        if self._game is not None:
            self._game.close()
        self._game = fresh
        return self._shown()

    def _act(self, request: Request) -> dict[str, Any]:
        self._at(request).act(_text(request, "action"))
        return self._shown()

    def _undo(self, request: Request) -> dict[str, Any]:
        note = self._at(request).undo()
        return {**self._shown(), "note": note}

    def _hint(self, request: Request) -> dict[str, Any]:
        action, note = self._at(request).hint()
        return {**self._shown(), "hint": action, "note": note and f"no hint: {note}"}

    def _episode(self, request: Request) -> dict[str, Any]:
        if self._episodes is None:
            raise Refused("no stored episodes; start seed-play --web with --replay FILE")
        number = request.get("number", 0)
        if not isinstance(number, int):
            raise Refused(f"number {number!r}; expected a whole number")
        stored = self._episodes[number]
        turns = [{**vars(turn), "picture": picture_source(turn.picture)} for turn in stored.turns]
        return {**asdict(stored), "turns": turns}

    def _at(self, request: Request) -> Game:
        """The game, if the request was made where it stands."""
        if self._game is None:
            raise Refused("no game has begun")
        if request.get("turn") != len(self._game.moments) - 1:
            raise Refused("the game has gone on in another window; reload this page")
        return self._game

    def _shown(self) -> dict[str, Any]:
        assert self._game is not None
        game, now = self._game, self._game.now
        text, pixels = split_observation(now.observation)
        listed = [] if now.ended else list(now.info.get("admissible_actions") or ())
        return {
            "env": game.env_id,
            "turn": len(game.moments) - 1,
            "task_id": now.info.get("task_id", ""),
            "goal": now.info.get("goal", ""),
            "observation": text,
            "picture": _png(pixels),
            "actions": listed[:MOST_BUTTONS],
            "more": max(0, len(listed) - MOST_BUTTONS),
            "refusal": now.info.get("invalid_reason", ""),
            "total": now.total,
            "ended": now.ended,
            "success": bool(now.info.get("success")),
            "score": now.info.get("score"),
            "stop_reason": now.info.get("stop_reason", ""),
            "past": [
                {"action": moment.action, "reward": moment.reward, "refusal": moment.info.get("invalid_reason", "")}
                for moment in game.moments[1:]
            ],
            "hint": "",
            "note": "",
        }


def _text(request: Request, name: str) -> str:
    value = request.get(name, "")
    if not isinstance(value, str):
        raise Refused(f"{name} is text; got {value!r}")
    return value


def _png(pixels: Any) -> str:
    if pixels is None:
        return ""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
