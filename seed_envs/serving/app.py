"""The application: OpenEnv's server once for each id, side by side, behind one gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from openenv.core.env_server.http_server import create_fastapi_app

from seed_envs.base import SeedEnv
from seed_envs.registration import find_row, make
from seed_envs.serving.environment import Refused, SeedEnvironment
from seed_envs.serving.gate import App, Gate
from seed_envs.serving.house import EpisodeUnknown, House, SessionRefused
from seed_envs.serving.models import SeedAction, SeedObservation, SeedState
from seed_envs.serving.options import ServeOptions

_STATUS: dict[type[Exception], int] = {Refused: 400, EpisodeUnknown: 404, SessionRefused: 503}


def check_environments(options: ServeOptions) -> None:
    """Make every environment once, so that a server that starts can serve.

    Raises:
        SeedEnvsError: What an environment lacks: data, a package, a service, an argument, a profile.
    """
    from seed_envs.profiles import check_in_text, get_profile

    for env_id in options.env_ids:
        find_row(env_id)
        if options.profile:
            check_in_text(get_profile(env_id, options.profile), "seed-serve")
        env = make(env_id, **options.env_kwargs)
        try:
            if isinstance(env.unwrapped, SeedEnv):
                env.unwrapped.check_services()
        finally:
            env.close()


def create_app(options: ServeOptions) -> App:
    """The ASGI application.

    Paths: every id is a folder (``/seed/Sokoban-v0/ws``, ``/seed/Sokoban-v0/reset``, ...) with OpenEnv's routes; the
    first id has them at the root as well. ``/list_environments`` names all, ``/metrics`` counts.
    """
    house = House(options)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeping = asyncio.get_running_loop().create_task(house.sweep())
        yield
        sweeping.cancel()
        with suppress(asyncio.CancelledError):
            await sweeping

    root = FastAPI(title="seed-serve", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @root.get("/list_environments")
    async def list_environments() -> list[str]:
        return list(options.env_ids)

    @root.get("/metrics")
    async def metrics() -> PlainTextResponse:
        text = house.metrics.render(house.sessions, options.max_sessions)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    @root.get("/")
    async def front() -> dict[str, Any]:
        return {"environments": {env_id: f"/{env_id}" for env_id in options.env_ids}}

    apps = [_one(house, env_id) for env_id in options.env_ids]
    for env_id, app in zip(options.env_ids, apps, strict=True):
        root.mount(f"/{env_id}", app)
    root.mount("/", apps[0])
    return Gate(root, house)


def _one(house: House, env_id: str) -> FastAPI:
    app: FastAPI = create_fastapi_app(
        partial(SeedEnvironment, house, env_id),
        SeedAction,
        SeedObservation,
        max_concurrent_envs=house.options.max_sessions,
        env_name=env_id.rpartition("/")[2],
        state_cls=SeedState,
    )
    for kind in _STATUS:
        app.add_exception_handler(kind, _explain)
    return app


def _explain(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, _STATUS[type(error)])
