"""Scores of a random policy and of the oracle on the fixed test panels: ``python -m seed_envs.vision.baselines``.

A number of a trained model means little without them: a random policy solves a fifth of the classic Sokoban levels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from seed_envs.command_line import Parser
from seed_envs.intervals import wilson

SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("seed/Sokoban-v0", {"levels": "classic"}),
    ("seed/Sokoban-v0", {}),
    ("seed/Sokoban-v0", {"boxes": 2}),
    ("seed/EZPoints-v0", {}),
    ("seed/Points24-v0", {}),
)
Choose = Callable[[gym.Env[Any, Any], dict[str, Any]], str]


def play(env: gym.Env[Any, Any], task_id: str, choose: Choose) -> bool:
    """Plays one episode and returns whether it was won."""
    _, info = env.reset(options={"task_id": task_id})
    ended = False
    while not ended:
        _, _, terminated, truncated, info = env.step(choose(env, info))
        ended = terminated or truncated
    return bool(info["success"])


def measure(env_id: str, arguments: dict[str, Any], repeats: int, seed: int = 0) -> str:
    """Plays the whole test panel and returns a table row.

    Args:
        env_id: A vision environment.
        arguments: Its constructor arguments.
        repeats: Episodes of the random policy per task.
        seed: Seed of the random policy.
    """
    env = gym.make(env_id, obs_mode="text", **arguments)
    rng = np.random.default_rng(seed)
    tokens = getattr(getattr(env.unwrapped, "puzzle", None), "tokens", None)

    def at_random(_: gym.Env[Any, Any], info: dict[str, Any]) -> str:
        actions = tokens or info["admissible_actions"]
        return str(actions[int(rng.integers(len(actions)))])

    def by_oracle(env: gym.Env[Any, Any], _: dict[str, Any]) -> str:
        return str(env.unwrapped.oracle_action())  # type: ignore[attr-defined]

    tasks = env.unwrapped.task_ids("test")  # type: ignore[attr-defined]
    won = sum(play(env, task_id, at_random) for task_id in tasks for _ in range(repeats))
    solved = sum(play(env, task_id, by_oracle) for task_id in tasks)
    episodes = repeats * len(tasks)
    low, high = wilson(won, episodes)
    setting = ", ".join(f"{key}={value!r}" for key, value in arguments.items()) or "defaults"
    random_score = f"{won / episodes:.1%} ({low:.1%} to {high:.1%}, n = {episodes})"
    return f"| `{env_id}` | {setting} | {random_score} | {solved / len(tasks):.0%} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table."""
    import seed_envs

    parser = Parser(prog="python -m seed_envs.vision.baselines", description="Random and oracle scores.")
    parser.add_argument("--repeats", type=int, default=4, help="random episodes per task (default: 4)")
    arguments = parser.parse_args(argv)
    gym.register_envs(seed_envs)
    print(
        "| environment | setting | random policy: test panel won (95 % Wilson interval) | oracle |\n|---|---|---|---|"
    )
    for env_id, settings in SETTINGS:
        print(measure(env_id, settings, arguments.repeats), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
