"""Options of the episode loop for evaluation: skills in prompts, nothing kept, children that end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import pytest
from corridor import GROWING, WINDOW, Corridor

from seed_envs.errors import BaselineUnavailable
from seed_envs.rollout import Reply, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.vector import EnvPool
from seed_envs.workers import ProcessSlot
from seed_envs.wrappers import HistoryWindow, ParseAction, Prompt


def make_corridor(profile=WINDOW):
    env = ParseAction(gym.wrappers.TimeLimit(Corridor(), 6), profile.action_format)
    return Prompt(HistoryWindow(env, profile.history), profile, 6)


def play(policy, profile=WINDOW, **options):
    with EnvPool(lambda: make_corridor(profile), 2) as pool:
        tasks = [TaskSpec(task_id=f"length-{length}") for length in (1, 2)]
        return rollout(pool, policy, tasks, env_id="test/Corridor", profile=profile, **options)


def right(requests):
    return [Reply("<action>right</action>") for _ in requests]


def test_nothing_is_kept_when_asked():
    seen = []
    assert play(right, keep=False, on_finish=lambda index, trajectory: seen.append((index, trajectory.success))) == []
    assert sorted(seen) == [(0, True), (1, True)]


@pytest.mark.parametrize("profile", [WINDOW, GROWING])
def test_a_skill_is_asked_once_an_episode_and_shown_in_every_prompt(profile):
    asked, prompts = [], []

    def skill_for(trajectory):
        asked.append(trajectory.task_id)
        return f"Advice for {trajectory.goal}."

    def policy(requests):
        prompts.extend(request.messages[0]["content"] for request in requests)
        return [Reply("<action>right</action>" if profile is WINDOW else "right") for _ in requests]

    play(policy, profile, skill_for=skill_for)
    assert sorted(asked) == ["length-1", "length-2"]
    assert len(prompts) == 3
    assert all("Advice for reach" in prompt for prompt in prompts)
    assert "Advice" not in str(play(right)[0].steps[0].messages)


def test_random_and_rule_players():
    env = Corridor()
    env.reset(seed=3, options={"task_id": "length-3"})
    actions = [env.random_action() for _ in range(20)]
    assert set(actions) == {"left", "right"}
    env.reset(seed=3, options={"task_id": "length-3"})
    assert [env.random_action() for _ in range(20)] == actions
    with pytest.raises(BaselineUnavailable, match="corridor"):
        env.rule_action()


PARENT = """
import sys, time
from test_rollout_children import make_env
from seed_envs.tasks import TaskSpec
from seed_envs.workers import ProcessSlot

if __name__ == "__main__":
    slot = ProcessSlot(make_env, None)
    slot.send("reset", TaskSpec(task_id="length-1"))
    print(slot._child.pid, flush=True)
    slot.send("step", "hang")
"""


def test_children_do_not_outlive_a_killed_parent(tmp_path, repo):
    (tmp_path / "test_rollout_children.py").write_text("from corridor import Corridor as make_env\n")
    (tmp_path / "parent.py").write_text(PARENT)
    path = os.pathsep.join([str(tmp_path), str(repo), str(repo / "tests" / "helpers")])
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    child = int(parent.stdout.readline())
    time.sleep(0.3)
    assert _runs(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 60
    while _runs(child):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            pytest.fail("the hanging child outlived its parent")
        time.sleep(0.05)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_interrupted_request_leaves_no_answer_behind_for_the_next():
    slot = ProcessSlot(Corridor, None)
    slot.send("reset", TaskSpec(task_id="length-2"))
    first = slot._child
    assert first is not None
    connection = first.connection

    class Interrupted:
        def __getattr__(self, name):
            return getattr(connection, name)

        def poll(self, timeout):
            raise KeyboardInterrupt

    first.connection = Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        slot.send("step", "right")
    assert not _runs(first.pid)
    assert slot.send("reset", TaskSpec(task_id="length-3")).info["task_id"] == "length-3"
    slot.close()
