"""Plans: seeds by task and repeat, fixed samples, shards that cover everything once."""

from __future__ import annotations

from seed_benchmarks.plan import build_plan, episode_seed

IDS = [f"{family}/{number}" for family in ("clean", "cool", "heat") for number in range(40)]


def test_all_tasks_come_once_before_any_is_repeated():
    plan = build_plan(IDS, repeats=2)
    assert [planned.task_id for planned in plan] == IDS * 2
    assert [planned.index for planned in plan] == list(range(240))
    assert len({planned.key for planned in plan}) == 240


def test_seeds_depend_on_task_repeat_and_root_alone():
    assert episode_seed(0, "clean/1", 0) == 1989956947
    plan = build_plan(IDS, repeats=2, seed=5)
    assert len({planned.seed for planned in plan}) == 240
    part = build_plan(IDS[10:20], repeats=2, seed=5)
    assert {planned.key: planned.seed for planned in part}.items() <= {p.key: p.seed for p in plan}.items()


def test_shards_cover_the_plan_once():
    whole = build_plan(IDS, repeats=3, seed=1)
    parts = [build_plan(IDS, repeats=3, seed=1, shard=(index, 7)) for index in range(1, 8)]
    assert sorted((planned for part in parts for planned in part), key=lambda planned: planned.index) == whole
