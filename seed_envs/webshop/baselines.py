"""Scores of policies without a model: oracle, rule baseline, careful reader, random clicker, on the engine itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import NamedTuple

from seed_envs.errors import UnknownOption
from seed_envs.webshop.actions import Command
from seed_envs.webshop.careful import careful_action
from seed_envs.webshop.goals import Goal
from seed_envs.webshop.oracle import instruction_search, oracle_action, rule_action
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.state import State

Policy = Callable[[Shop, State, Goal], str]


class BaselineResult(NamedTuple):
    """Mean score and share of full scores over a list of goals; episodes without a purchase count 0."""

    goals: int
    score: float
    success: float


def random_policy(seed: int = 0) -> Policy:
    """A policy that searches the instruction and then presses anything on the page.

    Args:
        seed: Seed of its choices.
    """
    rng = Random(seed)

    def choose(shop: Shop, state: State, goal: Goal) -> str:
        if state.view == "index":
            return instruction_search(goal)
        return f"click[{rng.choice([key for key in shop.clicks(state) if key != 'search'])}]"

    return choose


def evaluate(shop: Shop, policy: str, task_ids: Iterable[str], max_steps: int = 15) -> BaselineResult:
    """Plays a list of goals.

    Args:
        shop: The shop.
        policy: ``oracle``, ``careful``, ``rule`` or ``random``.
        task_ids: Which goals.
        max_steps: Step limit per episode.

    Raises:
        UnknownOption: If there is no such policy.
    """
    policies: dict[str, Policy] = {
        "oracle": oracle_action,
        "careful": careful_action,
        "rule": rule_action,
        "random": random_policy(),
    }
    if policy not in policies:
        raise UnknownOption(f"unknown policy {policy!r}; expected one of {sorted(policies)}")
    scores = [_play(shop, policies[policy], shop.tasks.goal(task_id), max_steps) for task_id in task_ids]
    count = max(len(scores), 1)
    return BaselineResult(len(scores), sum(scores) / count, sum(score == 1.0 for score in scores) / count)


def _play(shop: Shop, policy: Policy, goal: Goal, max_steps: int) -> float:
    state = State(str(goal.index))
    for _ in range(max_steps):
        kind, _, argument = policy(shop, state, goal)[:-1].partition("[")
        state = shop.apply(state, Command(kind, argument.lower()), goal).state
        score = shop.score(state)
        if score is not None:
            return score.total
    return 0.0
