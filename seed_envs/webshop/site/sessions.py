"""Shopping sessions of the site: random names, a cap, expiry. Thread-safe; holds no shop logic."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from seed_envs.webshop.goals import Goal
from seed_envs.webshop.state import State

MAX_SESSIONS = 1000
IDLE_SECONDS = 30 * 60.0
DONE_SECONDS = 5 * 60.0


@dataclass
class Session:
    """One visitor's episode.

    Attributes:
        sid: Random public name, part of the address.
        goal: What the visitor is asked to buy.
        state: Where the session is.
        step: Number of accepted actions; forms carry it, so a stale form is noticed.
        token: Secret of the forms.
        cookie: Secret of the visitor's browser.
        used: Time of the last request, seconds.
        lock: Held while an action is applied.
    """

    sid: str
    goal: Goal
    state: State
    step: int = 0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    used: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class SessionStore:
    """Sessions by name; the least recently used one goes first when there are too many.

    Args:
        cap: Most sessions at a time.
        idle: Seconds after which an unused session is dropped.
        clock: Source of time, seconds.
    """

    def __init__(
        self, cap: int = MAX_SESSIONS, idle: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cap, self._idle, self._clock = cap, idle, clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._sessions)

    def start(self, goal: Goal) -> Session:
        """Opens a session on a goal."""
        session = Session(secrets.token_urlsafe(16), goal, State(str(goal.index)), used=self._clock())
        with self._lock:
            self._expire()
            self._sessions[session.sid] = session
            while len(self._sessions) > self._cap:
                self._sessions.popitem(last=False)
        return session

    def get(self, sid: str) -> Session | None:
        """The session of a name, if it is alive; counts as use."""
        with self._lock:
            session = self._sessions.get(sid)
            if session is None or self._is_old(session):
                self._sessions.pop(sid, None)
                return None
            session.used = self._clock()
            self._sessions.move_to_end(sid)
            return session

    def close(self, sid: str) -> None:
        """Forgets a session."""
        with self._lock:
            self._sessions.pop(sid, None)

    def _is_old(self, session: Session) -> bool:
        limit = DONE_SECONDS if session.state.view == "done" else self._idle
        return self._clock() - session.used > min(limit, self._idle)

    def _expire(self) -> None:
        # Ordered by last use, so the old ones are in front; done sessions in between go when they are asked for.
        while self._sessions:
            first = next(iter(self._sessions.values()))
            if not self._is_old(first):
                break
            del self._sessions[first.sid]
