"""The episode loop against a server with 64 slots whose replies differ in length: all together, and each when ready.

The server is a program of its own on the loopback interface; a reply takes as long as its tokens, at 250 a second in
each slot. There is no original: the second column is this project's own synchronous loop.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import multiprocessing
import random
import time
from multiprocessing.connection import Connection

from seed_envs.profiles import get_profile
from seed_envs.rollout import AsyncPolicy, Policy, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.vector import EnvPool
from seed_envs.wrappers import make_agent_env

from ..agents.openai_http import OpenAIAgent
from ..config import AgentSettings
from .rows import SpeedRow

ENV_ID = "seed/ALFWorld-v0"
SLOTS, EPISODES, TURNS = 64, 128, 6
TOKENS, TOKEN_SECONDS = (32, 512), 0.004
"""Shortest and longest reply, and the time of a token."""


def measure() -> list[SpeedRow]:
    """Plays the same episodes both ways."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    profile = get_profile(ENV_ID, "compact")
    endpoint = f"model@http://127.0.0.1:{ours.recv()}/v1"
    agent = OpenAIAgent(AgentSettings(f"openai:{endpoint}"), endpoint, profile)
    try:
        apart, together = _rate(agent), _rate(agent.act)
    finally:
        agent.close()
        server.terminate()
        server.join()
    how = f"wall clock, once; {EPISODES} episodes of {TURNS} turns in {SLOTS} environments, the same replies both ways"
    workload, name = f"turns against {SLOTS} slots, replies of 32 to 512 tokens", "this project's synchronous loop"
    return [SpeedRow(workload, apart, together, "turns/s", name, how)]


def _rate(policy: Policy | AsyncPolicy) -> float:
    profile = get_profile(ENV_ID, "compact")
    tasks = [TaskSpec(f"compact/train/{number}", "compact_train", seed=number) for number in range(EPISODES)]
    with EnvPool(functools.partial(make_agent_env, ENV_ID, profile, TURNS), SLOTS) as pool:
        started = time.perf_counter()
        episodes = rollout(pool, policy, tasks, env_id=ENV_ID, profile=profile)
        seconds = time.perf_counter() - started
    if any(episode.error for episode in episodes):
        raise RuntimeError(f"episodes failed: {[episode.error for episode in episodes if episode.error][:3]}")
    return sum(episode.num_steps for episode in episodes) / seconds


def _serve(pipe: Connection) -> None:
    """Answers chat requests; how long a reply is follows from the request's seed."""
    slots = asyncio.Semaphore(SLOTS)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.partition(b"content-length:")[2].split()[0]) if b"content-length:" in head else 0
                request = json.loads(await reader.readexactly(size) or b"{}")
                tokens = round(math.exp(random.Random(request.get("seed")).uniform(*map(math.log, TOKENS))))
                async with slots:
                    await asyncio.sleep(tokens * TOKEN_SECONDS)
                message = {"role": "assistant", "content": "look"}
                usage = {"prompt_tokens": 1, "completion_tokens": tokens}
                body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()
                kind = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                writer.write(kind + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        except (asyncio.IncompleteReadError, ConnectionError):  # the client is done
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())
