"""The episode loop: groups, refilled slots, one stop reason each, faults as records."""

from __future__ import annotations

import functools
import json

import pytest
from corridor import GROWING, WINDOW, Corridor, make_corridor

from seed_envs.errors import PolicyError
from seed_envs.rollout import Reply, failed_reply, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Step, StopReason, Trajectory
from seed_envs.vector import EnvPool


def oracle(requests):
    return [Reply(WINDOW.action_format.format(request.call("oracle_action"))) for request in requests]


def always(action):
    return lambda requests: [Reply(f"<action>{action}</action>") for _ in requests]


def play(policy, tasks, size=2, profile=WINDOW, **kwargs):
    backend = {key: kwargs.pop(key) for key in ("backend", "timeout") if key in kwargs}
    with EnvPool(functools.partial(make_corridor, profile), size, **backend) as pool:
        return rollout(pool, policy, tasks, env_id="test/Corridor", profile=profile, **kwargs)


def tasks(*lengths):
    return [TaskSpec(task_id=f"length-{length}") for length in lengths]


def test_results_come_in_task_order_whatever_the_pool_size():
    specs = tasks(5, 1, 3, 2, 4)
    for size in (1, 2, 5, 8):
        found = play(oracle, specs, size)
        assert [trajectory.task_id for trajectory in found] == [spec.task_id for spec in specs]
        assert [trajectory.num_steps for trajectory in found] == [5, 1, 3, 2, 4]
        assert all(trajectory.stop_reason is StopReason.SUCCESS and trajectory.success for trajectory in found)


def test_finished_episodes_leave_the_batch_and_slots_are_refilled():
    sizes = []

    def policy(requests):
        sizes.append(len(requests))
        return oracle(requests)

    play(policy, tasks(1, 3, 1, 1), size=2)
    assert sum(sizes) == 6
    assert sizes == [2, 2, 2]


def test_a_group_shares_one_drawn_task():
    found = play(oracle, [TaskSpec(seed=11, group=0)] * 4 + [TaskSpec(seed=12, group=1)] * 4, size=3)
    assert len({trajectory.task_id for trajectory in found[:4]}) == 1
    assert [trajectory.group for trajectory in found] == [0] * 4 + [1] * 4


def test_the_step_limit_is_its_own_reason():
    (trajectory,) = play(always("left"), tasks(3))
    assert trajectory.stop_reason is StopReason.MAX_STEPS
    assert (trajectory.num_steps, trajectory.success, trajectory.score) == (6, False, 0.0)


def test_on_finish_sees_each_episode_once_as_it_ends():
    seen = []
    play(oracle, tasks(3, 1, 1), size=2, on_finish=lambda index, trajectory: seen.append((index, trajectory.num_steps)))
    assert seen == [(1, 1), (2, 1), (0, 3)] or seen == [(1, 1), (0, 3), (2, 1)]


@pytest.mark.parametrize("backend", ["inline", "thread", "process"])
def test_a_crash_costs_one_episode(backend):
    def policy(requests):
        return [Reply("<action>crash</action>") if r.episode == 1 else oracle([r])[0] for r in requests]

    found = play(policy, tasks(2, 3, 1), size=3, backend=backend)
    assert [trajectory.stop_reason.value for trajectory in found] == ["success", "env_error", "success"]
    assert "the corridor collapsed" in found[1].error.message + found[1].error.traceback
    assert found[1].num_steps == 1


@pytest.mark.parametrize("backend", ["inline", "thread", "process"])
def test_a_step_that_no_record_may_hold_is_a_typed_fault_of_the_environment(backend):
    words = {0: "nan", 1: "inf", 2: "odd end"}

    def policy(requests):
        return [Reply(f"<action>{words.get(request.episode, 'right')}</action>") for request in requests]

    *bad, good = play(policy, tasks(2, 2, 2, 1), size=2, backend=backend)
    for word, trajectory in zip(("reward nan", "reward inf", "'tired'"), bad, strict=True):
        assert (trajectory.stop_reason, trajectory.error.type) == (StopReason.ENV_ERROR, "InvalidStep")
        assert word in trajectory.error.message
        assert (trajectory.total_reward, [step.reward for step in trajectory.steps]) == (0.0, [0.0])
        json.dumps(trajectory.to_json(), allow_nan=False)
    assert good.success


def test_records_are_the_same_whatever_the_back_end():
    found = [play(oracle, tasks(2, 77), backend=backend) for backend in ("inline", "thread", "process")]
    for won, lost in found:
        record = won.to_json()
        assert record["extras"] == {"corridor": {"position": 2, "lazy": ("right",)}}
        assert (lost.error.type, lost.error.message) == ("UnknownTask", "task 'length-77' is unknown")


def test_a_result_that_cannot_leave_its_process_is_named():
    (trajectory,) = play(always("secret"), tasks(2), backend="process")
    assert trajectory.stop_reason is StopReason.ENV_ERROR
    assert "pickle" in trajectory.error.message


def test_a_pool_closes_every_environment_even_when_making_or_closing_one_fails():
    closed = []

    class Stubborn(Corridor):
        def close(self):
            closed.append(self)
            raise RuntimeError("stuck")

    with pytest.raises(RuntimeError, match="stuck"):
        EnvPool(Stubborn, 3, "thread").close()
    assert len(closed) == 3
    made = []

    def make():
        if len(made) == 2:
            raise FileNotFoundError("no data")
        made.append(Corridor())
        made[-1].close = lambda: closed.append("made")
        return made[-1]

    with pytest.raises(FileNotFoundError, match="no data"):
        EnvPool(make, 4)
    assert closed[3:] == ["made", "made"]


def test_a_task_that_cannot_start_is_a_record_and_the_rest_goes_on():
    found = play(oracle, [*tasks(1), TaskSpec(task_id="length-77"), *tasks(2)], size=1)
    assert [trajectory.stop_reason.value for trajectory in found] == ["success", "env_error", "success"]
    assert found[1].error.type == "UnknownTask"
    assert not StopReason.ENV_ERROR.scored


def test_a_dead_or_hanging_process_costs_one_episode_and_is_replaced():
    def policy(requests):
        bad = {0: "exit", 1: "hang"}
        return [Reply(f"<action>{bad.get(request.episode, 'right')}</action>") for request in requests]

    found = play(policy, tasks(3, 3, 1, 2), size=2, backend="process", timeout=8.0)
    assert [trajectory.stop_reason.value for trajectory in found] == ["env_error", "timeout", "success", "success"]
    assert "exit code 3" in found[0].error.message


def test_a_reply_error_ends_its_episode_alone():
    def policy(requests):
        return [
            failed_reply(TimeoutError("slow"), StopReason.TIMEOUT) if request.episode == 0 else oracle([request])[0]
            for request in requests
        ]

    first, second = play(policy, tasks(2, 2))
    assert (first.stop_reason, first.num_steps, first.error.type) == (StopReason.TIMEOUT, 0, "TimeoutError")
    assert second.success


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (lambda requests: [], "0 replies to 1"),
        (lambda requests: ["text"], "str"),
        (lambda requests: [Reply(b"bytes")], "text is bytes"),  # type: ignore[arg-type]
        (lambda requests: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_broken_policy_is_an_error_not_a_result(policy, words):
    with pytest.raises(PolicyError, match=words):
        play(policy, tasks(1))


def test_messages_of_both_styles():
    seen = []

    def policy(requests):
        seen.append(requests[0].messages)
        return [Reply("right", meta={"ids": [1, 2]})]

    (trajectory,) = play(policy, tasks(2), profile=GROWING)
    assert [len(messages) for messages in seen] == [1, 3]
    assert seen[1][1] == {"role": "assistant", "content": "right"}
    assert trajectory.steps[0].meta == {"ids": [1, 2]}
    assert trajectory.steps[1].context.history == (("You are at 0 of 2.", "right"),)
    assert trajectory.steps[0].observation == "You are at 0 of 2."
    assert trajectory.final_observation == "You are at 2 of 2."


def test_json_round_trip_drops_only_what_is_not_json():
    (trajectory,) = play(lambda requests: [Reply("<action>right</action>", {"n": 1, "tensor": object()})], tasks(1))
    record = json.loads(json.dumps(trajectory.to_json()))
    again = Trajectory.from_json(record)
    assert again.to_json() == record
    assert again.steps[0].meta == {"n": 1}
    assert isinstance(again.steps[0], Step)
    with pytest.raises(ValueError, match="schema_version"):
        Trajectory.from_json({**record, "schema_version": 99})


def test_pools_refuse_settings_they_cannot_keep():
    with pytest.raises(ValueError, match="size"):
        EnvPool(make_corridor, 0)
    with pytest.raises(ValueError, match="timeout"):
        EnvPool(make_corridor, 1, timeout=1.0)
    for timeout in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=f"timeout={timeout}"):
            EnvPool(make_corridor, 1, "process", timeout)
    with pytest.raises(ValueError, match="backend"):
        EnvPool(make_corridor, 1, backend="fork")
    pool = EnvPool(make_corridor, 1)
    pool.close()
    pool.close()
