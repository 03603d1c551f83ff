"""Sokoban from pixels with PPO of RLlib on Ray.

Run: python examples/11_rllib.py [ITERATIONS]   (pip install "ray[rllib]" torch seed-envs)
In an environment of its own: RLlib 2.60 wants Gymnasium 1.2.
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env

import seed_envs
from seed_envs.wrappers import DiscreteActions, PixelObservation

LEVELS: dict[str, Any] = {"obs_mode": "image", "tile": 16, "size": 5, "min_steps": 1, "max_steps": 3, "rules": "strict"}


def make(config: dict[str, Any]) -> gym.Env:
    """Easy levels of 5x5, pixels from 0 to 1 (RLlib's networks take no bytes), four actions by number."""
    gym.register_envs(seed_envs)
    env = PixelObservation(gym.make("seed/Sokoban-v0", max_episode_steps=12, **LEVELS))
    space = gym.spaces.Box(0.0, 1.0, env.observation_space.shape, np.float32)
    return DiscreteActions(gym.wrappers.TransformObservation(env, lambda image: image.astype(np.float32) / 255, space))


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_env("sokoban", make)
    network = DefaultModelConfig(conv_filters=[[16, 8, 4], [32, 4, 2]], head_fcnet_hiddens=[128])  # type: ignore[list-item]
    config = (
        PPOConfig()
        .environment("sokoban")
        .env_runners(num_env_runners=1, num_envs_per_env_runner=4, rollout_fragment_length=128)
        .training(train_batch_size_per_learner=512, minibatch_size=128, num_epochs=4, lr=5e-4, gamma=0.9)
        .rl_module(model_config=network)
    )
    algorithm = config.build_algo()
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 2):
        found = algorithm.train()["env_runners"]
    print(f"{found['num_env_steps_sampled_lifetime']:.0f} steps, mean return {found['episode_return_mean']:.2f}")
    algorithm.stop()
    ray.shutdown()
