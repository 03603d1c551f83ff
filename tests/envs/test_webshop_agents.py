"""WebShop for agents: profiles, hindsight skills, recorded traces, many environments in little memory."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import seed_envs  # noqa: F401
from seed_envs.trajectory import Step, StopReason, Trajectory
from seed_envs.webshop.annotator import annotate
from seed_envs.webshop.env import WebShopEnv
from seed_envs.webshop.prompts import PROFILES
from seed_envs.wrappers import make_agent_env

#: SHA-256 of everything seen on 12 goals (oracle, then a random walk), by mode and observation form.
TRACES = {
    ("original", "text"): "ecf5531b0adc7a8128d899babd816919ff03293b7f95bc8213b1d0e65e70f965",
    ("original", "text_rich"): "3ff3b01c05ded8ee55df3e2209c860f31280132662e55b38065e175a0d9d86e6",
    ("original", "url"): "5e86f1f6282df136573eff517d561707e553d4f7d17f6a63ce6568c402b4be4a",
    ("fixed", "text"): "a8a4ed75934f5286234a75f5063debd3048fa9505a58f192352b933cd61bf137",
    ("fixed", "text_rich"): "6a431a0e8f2ae0df15c4e00187190fc95c625ed04fe35b6615ff22813ce016db",
    ("fixed", "json"): "08b17e78791329174f95d32735902955ceafdfd532377cf27398261693151525",
}


def trace(mode: str, obs_mode: str) -> str:
    env = WebShopEnv(mode=mode, obs_mode=obs_mode, num_products=100, split="all", show_attrs=True, reviews=True)
    digest = hashlib.sha256()
    rng = random.Random(9)
    for task_id in list(env.task_ids("all"))[:12]:
        for policy in ("oracle", "random"):
            observation, _ = env.reset(options={"task_id": task_id})
            digest.update(observation.encode())
            for _ in range(15):
                if policy == "oracle":
                    action = env.oracle_action()
                else:
                    action = rng.choice([f"search[{env.goal.product.query}]", *env.page.body.actions])
                observation, reward, done, _, info = env.step(action)
                digest.update(f"{action}\n{observation}\n{reward!r}\n{list(info['admissible_actions'])}".encode())
                if done:
                    break
    return digest.hexdigest()


@pytest.mark.parametrize(("mode", "obs_mode"), list(TRACES))
def test_recorded_traces_do_not_change(mode: str, obs_mode: str) -> None:
    assert trace(mode, obs_mode) == TRACES[mode, obs_mode]


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_oracle_wins_through_every_profile(name: str) -> None:
    env = make_agent_env("seed/WebShop-v0", name, split="all", num_products=100)
    form = PROFILES[name].action_format
    for seed in range(5):
        prompt, info = env.reset(seed=seed)
        assert info["goal"] in prompt
        done = False
        while not done:
            reply = form.format(env.unwrapped.oracle_action(), "buy what was asked for")  # type: ignore[attr-defined]
            prompt, reward, done, truncated, info = env.step(reply)
            assert info["action_valid"] and not truncated
        assert info["success"] and reward == PROFILES[name].reward_scale


def test_a_skill_stands_after_the_task_line() -> None:
    env = make_agent_env("seed/WebShop-v0", "paper", num_products=100)
    _, info = env.reset(seed=0)
    _, *_, info = env.step("<think>x</think><action>search[red]</action>")
    plain = PROFILES["paper"].template.render(info["turn"])
    skilled = PROFILES["paper"].template.render(info["turn"], skill="Check the size first.")
    task_line = f"Your task: {info['goal']}"
    assert task_line in plain and "Check the size first." not in plain
    assert skilled.index(task_line) < skilled.index("Check the size first.") < skilled.index("The page you see now")


def episode(env: WebShopEnv, task_id: str, policy: str, limit: int = 15) -> Trajectory:
    observation, info = env.reset(options={"task_id": task_id})
    steps: list[Step] = []
    done = False
    while not done and len(steps) < limit:
        action = getattr(env, policy)() if policy.endswith("_action") else policy
        after, reward, done, _, info = env.step(action)
        steps.append(Step(observation, [], action, action, info["action_valid"], info["invalid_reason"], reward))
        observation = after
    reason = StopReason(info["stop_reason"]) if done else StopReason.MAX_STEPS
    return Trajectory(
        "seed/WebShop-v0", task_id, goal=info["goal"], steps=steps, stop_reason=reason, success=info["success"]
    )


def test_skills_fit_the_outcome_and_name_no_target() -> None:
    env = WebShopEnv(num_products=100, split="all")
    task_id = next(g.task_id for g in env.shop.goals if len(g.options) == 2)
    goal = env.shop.tasks.goal(task_id)
    won = annotate(episode(env, task_id, "oracle_action"))
    assert won.startswith("This works: search") and "buy now" in won and goal.options[0][1] in won
    rule = episode(env, task_id, "rule_action")
    lost = annotate(rule)
    assert not rule.success
    assert "without choosing" in lost and goal.options[0][1] in lost and "then click buy now" in lost
    idle = annotate(episode(env, task_id, "dance", limit=3))
    assert "No search was made" in idle and "3 action(s) did nothing" in idle
    wandering = annotate(episode(env, task_id, "search[red]", limit=3))
    assert "Time ran out before a product was opened" in wandering
    for skill in (lost, idle, wandering):
        assert goal.product.asin not in skill and goal.product.asin.lower() not in skill
        assert 5 <= len(skill.split()) <= 120


def test_a_price_above_the_cap_is_named() -> None:
    steps = [
        Step("WebShop", [], "", "search[mugs]", True, "", 0.0),
        Step("Page 1", [], "", "click[za00000003]", True, "", 0.0),
        Step("Mug [SEP] Price: $31.5 [SEP] Rating", [], "", "click[buy now]", True, "", 0.0),
    ]
    goal = "Find me dishwasher safe mugs, and price lower than 30.00 dollars"
    skill = annotate(Trajectory("seed/WebShop-v0", "x", goal=goal, steps=steps, stop_reason=StopReason.FAILURE))
    assert "cost 31.50 dollars, not below 30.00" in skill


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux: reads resident memory from /proc")
def test_128_environments_and_20000_episodes_stay_small() -> None:
    code = (
        "import os\n"
        "from seed_envs.webshop.env import WebShopEnv\n"
        "def megabytes():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6\n"
        "envs = [WebShopEnv(split='all') for _ in range(128)]\n"
        "def play(count):\n"
        "    for number in range(count):\n"
        "        env = envs[number % 128]\n"
        "        env.reset(seed=number)\n"
        "        while not env.step(env.oracle_action())[2]:\n"
        "            pass\n"
        "play(4000)\n"
        "before = megabytes()\n"
        "play(20000)\n"
        "print(before, megabytes() - before)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    total, grown = map(float, done.stdout.split())
    assert total < 300.0
    assert grown < 10.0
