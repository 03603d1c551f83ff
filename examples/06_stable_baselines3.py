"""Sokoban from pixels with PPO of Stable-Baselines3.

Run: python examples/06_stable_baselines3.py [STEPS]   (pip install 'seed-envs[sb3]')
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import seed_envs
from seed_envs.wrappers import DiscreteActions, PixelObservation

gym.register_envs(seed_envs)  # keeps the import that registers the ids
LEVELS: dict[str, Any] = {"obs_mode": "image", "tile": 16, "size": 5, "min_steps": 1, "max_steps": 3, "rules": "strict"}


def make(split: str = "train") -> gym.Env:
    """Easy levels of 5x5, 80x80 pixels, four actions by number."""
    return DiscreteActions(PixelObservation(gym.make("seed/Sokoban-v0", split=split, max_episode_steps=12, **LEVELS)))


def success(model: PPO) -> float:
    """Share of 100 validation levels that are solved; the last push of a one-box level pays more than 10."""
    returns, _ = evaluate_policy(
        model, make_vec_env(lambda: make("validation"), seed=7), 100, return_episode_rewards=True, deterministic=False
    )
    return sum(total > 0 for total in returns) / len(returns)


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = PPO(
        "CnnPolicy",
        make_vec_env(make, 8, seed=0),
        n_steps=64,
        batch_size=128,
        n_epochs=4,
        learning_rate=5e-4,
        gamma=0.9,
        ent_coef=0.01,
        seed=0,
    )
    before = success(model)
    model.learn(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
    print(f"solved before {before:.2f}, after {success(model):.2f}")
