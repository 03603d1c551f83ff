"""The episode loop with an asynchronous policy: the same episodes, nobody waits for another, faults as in the other."""

from __future__ import annotations

import functools
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from corridor import GROWING, WINDOW, make_corridor

from seed_envs.errors import PolicyError
from seed_envs.rollout import Reply, failed_reply, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import StopReason
from seed_envs.vector import EnvPool


def right(request):
    return Reply(WINDOW.action_format.format("right"), meta={"turn": request.turn})


class Threads:
    """Answers in threads of its own."""

    def __init__(self, answer=right, threads=8):
        self.answer, self.most, self.live, self.lock = answer, 0, 0, threading.Lock()
        self.pool = ThreadPoolExecutor(threads)

    def submit(self, request):
        return self.pool.submit(self.work, request)

    def work(self, request):
        with self.lock:
            self.live += 1
            self.most = max(self.most, self.live)
        try:
            return self.answer(request)
        finally:
            with self.lock:
                self.live -= 1


def play(policy, lengths, size=3, profile=WINDOW, backend="inline", **kwargs):
    specs = [TaskSpec(task_id=f"length-{length}", group=number) for number, length in enumerate(lengths)]
    with EnvPool(functools.partial(make_corridor, profile), size, backend) as pool:
        return rollout(pool, policy, specs, env_id="test/Corridor", profile=profile, **kwargs)


def record(trajectory):
    found = trajectory.to_json()
    for step in found["steps"]:
        assert set(step.pop("seconds")) == {"policy", "env"}
    return found


@pytest.mark.parametrize("backend", ["inline", "thread", "process"])
@pytest.mark.parametrize("profile", [WINDOW, GROWING], ids=["window", "growing"])
def test_the_episodes_are_those_of_the_synchronous_loop(backend, profile):
    def jittered(request):
        time.sleep((request.episode * 7 + request.turn * 3) % 5 / 500)
        return right(request)

    lengths = [5, 1, 3, 77, 2, 4, 1]
    together = play(lambda requests: [right(request) for request in requests], lengths, profile=profile)
    apart = play(Threads(jittered), lengths, profile=profile, backend=backend)
    assert [record(one)["task_id"] for one in apart][:3] == ["length-5", "length-1", "length-3"]
    for one, other in zip(apart, together, strict=True):
        one, other = record(one), record(other)
        assert (one.pop("error") is None) == (other.pop("error") is None)
        assert one == other


def test_nobody_waits_for_the_slowest_reply():
    released, finished = threading.Event(), []

    def answer(request):
        if request.episode == 0:
            assert released.wait(30)
        return right(request)

    def note(index, trajectory):
        finished.append(index)
        if len(finished) == 5:
            released.set()

    play(Threads(answer), [2, 3, 1, 2, 4, 1], size=3, on_finish=note)
    assert finished[-1] == 0 and sorted(finished) == list(range(6))


def test_there_are_never_more_requests_than_environments():
    def slow(request):
        time.sleep(0.005)
        return right(request)

    policy = Threads(slow)
    play(policy, [2] * 12, size=3)
    assert policy.most == 3


def test_a_failed_reply_ends_its_own_episode():
    def answer(request):
        return failed_reply(ValueError("no"), StopReason.CONTEXT_OVERFLOW) if request.episode == 1 else right(request)

    found = play(Threads(answer), [2, 2, 2], size=2)
    assert [one.stop_reason.value for one in found] == ["success", "context_overflow", "success"]


class Raises:
    def submit(self, request):
        raise OSError("no server")


def fails(request):
    raise OSError("no server")


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (Raises(), "raised OSError: no server"),
        (Threads(fails), "raised OSError: no server"),
        (Threads(lambda request: "right"), "returned str; expected seed_envs.Reply"),
        (Threads(lambda request: Reply(3)), "text is int"),  # type: ignore[arg-type]
    ],
)
def test_a_policy_that_breaks_its_promise_ends_the_rollout(policy, text):
    with pytest.raises(PolicyError, match=text):
        play(policy, [2, 2])


def test_what_is_waited_for_is_cancelled_when_the_rollout_ends_early():
    futures = []

    class Silent:
        def submit(self, request):
            futures.append(Future())
            if len(futures) == 3:
                futures[0].set_result("nonsense")
            return futures[-1]

    with pytest.raises(PolicyError, match="returned str"):
        play(Silent(), [2, 2, 2])
    assert [future.cancelled() for future in futures] == [False, True, True]
