"""What the harness itself costs: time per step beyond environment and agent, and whole oracle runs.

The yardstick of the first is a bare loop over the same environment stack with the same agent; there is no original to
compare the others with.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from seed_envs.journal import Journal
from seed_envs.wrappers import make_agent_env

from ..agents.base import make_agent
from ..config import AgentSettings, RunConfig
from ..player import Player
from ..runner import start_run
from ..setup_run import prepare
from ..suites import find_suite
from .rows import SpeedRow

_SUITES = ("alfworld/mini", "sokoban/mini_text")
_EPISODES = 1_500


def measure() -> list[SpeedRow]:
    """Overhead per step of two suites, and ALFWorld mini episodes per second with two workers."""
    rows = [_overhead(name) for name in _SUITES]
    return [*rows, _episode_rate("alfworld/mini", workers=2)]


def _config(name: str, episodes: int, workers: int = 0) -> RunConfig:
    suite = find_suite(name)
    repeats = max(1, episodes // (suite.tasks or 1))
    return RunConfig(suite, AgentSettings("oracle"), repeats=repeats, profile=suite.profile, num_workers=workers)


def _overhead(name: str) -> SpeedRow:
    config = _config(name, 300)
    _bare(config)  # opens data and warms caches
    bare = [_bare(config) for _ in range(3)]
    played = [_played(config) for _ in range(3)]
    steps = bare[0][1]
    seconds = min(cpu for cpu, _ in played) - min(cpu for cpu, _ in bare)
    return SpeedRow(
        workload=f"overhead per step, {name}, oracle",
        ours=1000 * seconds / steps,
        original=None,
        unit="ms/step",
        how=f"CPU time of {steps:,} steps, messages and records written, less a bare loop; best of 3 each",
        higher_is_better=False,
        note=f"the bare loop takes {1000 * min(cpu for cpu, _ in bare) / steps:.3f} ms per step",
    )


def _bare(config: RunConfig) -> tuple[float, int]:
    """CPU seconds and steps of the same episodes without the harness."""
    suite, profile = config.suite, config.suite.find_profile(config.profile)
    env: Any = make_agent_env(suite.env_id, profile, **suite.arguments({}))
    plan, steps = prepare(config).plan, 0
    begin = time.process_time()
    for planned in plan:
        env.reset(seed=planned.seed, options={"task_id": planned.task_id})
        ended = False
        while not ended:
            reply = profile.action_format.format(env.unwrapped.oracle_action())
            _, _, terminated, truncated, _ = env.step(reply)
            ended, steps = terminated or truncated, steps + 1
    seconds = time.process_time() - begin
    env.close()
    return seconds, steps


def _played(config: RunConfig) -> tuple[float, int]:
    """CPU seconds and episodes with the harness."""
    plan = prepare(config).plan
    agent = make_agent(config.agent, config.suite.find_profile(config.profile))
    player, count = Player(config, agent), 0
    with tempfile.TemporaryDirectory() as scratch, Journal(Path(scratch) / "episodes.jsonl") as journal:
        begin = time.process_time()
        player.play(plan, lambda finished: journal.append(finished.line))
        seconds = time.process_time() - begin
        count = len(plan)
    player.close()
    return seconds, count


def _episode_rate(name: str, workers: int) -> SpeedRow:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "run"
        begin, cpu = time.perf_counter(), sum(os.times()[:4])
        result = start_run(_config(name, _EPISODES, workers), out)
        seconds, cpu = time.perf_counter() - begin, sum(os.times()[:4]) - cpu
    count = result.summary["counts"]["scored"]
    return SpeedRow(
        workload=f"oracle episodes, {name}, {workers} workers",
        ours=count / seconds,
        original=None,
        unit="episodes/s",
        how=f"wall time of {count:,} episodes, start of the workers and writing included",
        note=f"10,000 episodes at this rate: {10_000 * seconds / count:.0f} s, {10_000 * cpu / count:.0f} CPU seconds",
    )
