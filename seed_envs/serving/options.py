"""How to serve: what a server is told once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seed_envs.loopback import is_loopback


@dataclass(frozen=True)
class ServeOptions:
    """How to serve.

    Attributes:
        env_ids: What is served; the first one also at the root.
        host: Address to listen on; anything but loopback needs a token.
        port: Port, 0 for a free one.
        token: Required as ``Authorization: Bearer TOKEN`` when set.
        anybody: Serve beyond this machine without a token.
        max_sessions: Most sessions at once, over all ids and over WebSocket and HTTP.
        idle_seconds: How long a session may say nothing.
        max_message: Longest message of a client, bytes.
        threads: Steps that run at once; environments that wait for a network need more.
        profile: Profile of sessions that name none; ``""`` takes bare actions and shows bare observations.
        env_kwargs: Constructor arguments of every environment. Clients cannot choose them.

    Raises:
        ValueError: For numbers below 1, or an address that others reach and no token.
    """

    env_ids: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    anybody: bool = False
    max_sessions: int = 4096
    idle_seconds: float = 600.0
    max_message: int = 1 << 18
    threads: int = 4
    profile: str = ""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.env_ids or len(set(self.env_ids)) != len(self.env_ids):
            raise ValueError(f"env_ids={self.env_ids}; expected at least one id, each once")
        for name in ("max_sessions", "max_message", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}; expected at least 1")
        if not 0 <= self.port < 1 << 16:
            raise ValueError(f"port={self.port}; expected 0 (a free one) to {(1 << 16) - 1}")
        if not self.idle_seconds > 0:
            raise ValueError(f"idle_seconds={self.idle_seconds}; expected seconds above 0")
        if not (self.token or self.anybody or is_loopback(self.host)):
            raise ValueError(
                f"host={self.host!r} is reachable by others; put a token into $SEED_SERVE_TOKEN, or say --no-token"
            )
