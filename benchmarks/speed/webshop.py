"""WebShop beside the original: steps, searches, memory, start-up, and what only this project has.

Searches are measured against Apache Lucene itself, through Anserini's jar, where Java and the jar are installed. The
original environment needs a tool chain of its time (Python 3.8, spaCy 3.3, Werkzeug 2, a JVM), so its steps are
figures measured once on another machine, and the rows say so.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence

from seed_envs.errors import DataMissing, DependencyMissing
from seed_envs.webshop.env import WebShopEnv
from seed_envs.webshop.generator import generate
from seed_envs.webshop.goals import Goal
from seed_envs.webshop.search import documents

from .rows import SpeedRow, compare_rates, measure_rate

ORIGINAL = "princeton-nlp/WebShop@64fa2a5 (quoted)"
QUOTED_NOTE = "the original's figure was measured on another machine, not in this run"
QUOTED_STEPS = 40.0
"""Steps per CPU second on the real 1,000 products (CPython 3.8, one core)."""
QUOTED_BROWSER_STEPS = 3.7
"""Steps per second of its browser environment, with the site's remote libraries stored locally."""
QUOTED_IMPORT_SECONDS = 8.0
QUOTED_MEGABYTES = 950.0
_EPISODES = 150
_ENVIRONMENTS = 100


def measure() -> list[SpeedRow]:
    """Runs the comparison; without the real data the rows of the generated catalogue remain."""
    rows = _steps(WebShopEnv(), "1,000 generated products")
    try:
        real = WebShopEnv(catalogue="files")
    except DataMissing:
        real = None
    if real is not None:
        rows = [*_steps(real, "the real 1,000 products"), *rows, *_searches(real)]
    return [*rows, *_browser(), *_start_up(), *_memory(), *_alone()]


def script(goal: Goal) -> Iterator[str]:
    """The actions of an episode: search the title, page forth and back, read, choose the options, buy."""
    title = " ".join(goal.product.title.replace("[", " ").replace("]", " ").split()) or goal.product.query
    yield f"search[{title}]"
    yield from ("click[next >]", "click[< prev]", f"click[{goal.product.asin.lower()}]", "click[description]")
    yield from ("click[< prev]", "click[features]", "click[< prev]")
    yield from (f"click[{value}]" for _, value in goal.options)
    yield "click[buy now]"


def episodes(env: WebShopEnv, count: int) -> list[tuple[str, list[str]]]:
    """Task ids and action lists of goals on different products, so that no query repeats."""
    goals: dict[str, Goal] = {}
    for goal in env.shop.goals:
        goals.setdefault(goal.product.title, goal)
    return [(goal.task_id, list(script(goal))) for goal in list(goals.values())[:count]]


def _player(env: WebShopEnv, played: Sequence[tuple[str, list[str]]], forget: bool) -> Callable[[], int]:
    def work() -> int:
        if forget:
            env.shop.forget_searches()
        steps = 0
        for task_id, actions in played:
            env.reset(options={"task_id": task_id})
            for action in actions:
                env.step(action)
            steps += len(actions)
        return steps

    return work


def _steps(env: WebShopEnv, where: str) -> list[SpeedRow]:
    played = episodes(env, _EPISODES)
    rows = []
    for forget, what in ((True, "every query new"), (False, "queries seen before")):
        work = _player(env, played, forget)
        work()
        rows.append(
            SpeedRow(
                workload=f"steps on {where}, {what}",
                ours=max(measure_rate(work) for _ in range(3)),
                original=QUOTED_STEPS,
                unit="steps/s",
                original_name=ORIGINAL,
                how="CPU time (time.process_time), best of 3, 11-step episodes with resets, product pages warm",
                note=QUOTED_NOTE,
            )
        )
    return rows


def _searches(env: WebShopEnv) -> list[SpeedRow]:
    from seed_envs.webshop.lucene_java import JavaLucene

    queries = [goal.instruction.lower() for goal in env.shop.goals[:200]]
    try:
        lucene = JavaLucene(documents(env.shop.products))
    except DependencyMissing:
        return []

    def ours() -> int:
        for query in queries:
            env.shop.engine.search(query, 50)
        return len(queries)

    def theirs() -> int:
        for query in queries:
            lucene.search(query, 50)
        return len(queries)

    mine, original = compare_rates(ours, theirs)
    name = "Anserini 0.25.0 (Lucene 9.9.1) through pyjnius"
    return [SpeedRow("searches of instructions, top 50, real 1,000 products", mine, original, "queries/s", name)]


def _browser() -> list[SpeedRow]:
    """Steps through headless Chromium, by the clock, since most of the work is the browser's."""
    from seed_envs.webshop.browser import WebShopBrowserEnv

    try:
        with contextlib.closing(WebShopBrowserEnv(num_products=100, no_sandbox=os.geteuid() == 0)) as env:
            work = _player(env, episodes(env, 4), forget=False)
            work()
            started = time.perf_counter()
            steps = work()
            seconds = time.perf_counter() - started
    except DependencyMissing:
        return []
    return [
        SpeedRow(
            workload="steps through a headless browser",
            ours=steps / seconds,
            original=QUOTED_BROWSER_STEPS,
            unit="steps/s",
            original_name=ORIGINAL,
            how=f"wall time of {steps} steps with resets, 1 run after a warm-up, {_load()}",
            note=QUOTED_NOTE,
        )
    ]


def _load() -> str:
    return f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"


def _start_up() -> list[SpeedRow]:
    code = "import time; t = time.process_time(); import seed_envs.webshop.env; print(time.process_time() - t)"
    seconds = min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )
    return [
        SpeedRow(
            workload="importing the environment",
            ours=seconds,
            original=QUOTED_IMPORT_SECONDS,
            unit="s",
            original_name=ORIGINAL,
            how="CPU time of a fresh process, best of 3",
            higher_is_better=False,
            note=QUOTED_NOTE,
        )
    ]


def _memory() -> list[SpeedRow]:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    envs = [WebShopEnv() for _ in range(_ENVIRONMENTS)]
    for number, env in enumerate(envs):
        env.reset(seed=number)
        env.step("search[shoes]")
    each = (tracemalloc.get_traced_memory()[0] - before) / _ENVIRONMENTS / 1e6
    tracemalloc.stop()
    total = _resident_megabytes()
    return [
        SpeedRow(
            workload="memory of one further environment",
            ours=each,
            original=QUOTED_MEGABYTES,
            unit="MB",
            original_name=ORIGINAL,
            how=f"tracemalloc over {_ENVIRONMENTS} environments in use; process: {total:.0f} MB resident",
            higher_is_better=False,
            note="the original loads its catalogue once per environment; " + QUOTED_NOTE,
        )
    ]


def _resident_megabytes() -> float:
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return float("nan")


def _alone() -> list[SpeedRow]:
    started = time.process_time()
    generate(10_000, 1)
    generated = time.process_time() - started
    env = WebShopEnv()
    env.reset(seed=0)
    env.step("search[shoes]")

    def snapshots() -> int:
        for _ in range(1000):
            env.set_state(env.get_state())
        return 1000

    return [
        SpeedRow("generating 10,000 products", generated, None, "s", how="CPU time, once", higher_is_better=False),
        SpeedRow("snapshot and restore", 1e6 / measure_rate(snapshots), None, "us", higher_is_better=False),
    ]
