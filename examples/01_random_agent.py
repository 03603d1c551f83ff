"""The smallest loop: a random agent in a household. Run: python examples/01_random_agent.py"""

import gymnasium as gym
import numpy as np

import seed_envs

gym.register_envs(seed_envs)
env = gym.make("seed/ALFWorld-v0")
rng = np.random.default_rng(0)
observation, info = env.reset(seed=0)
print(observation)
ended, steps = False, 0
while not ended:
    actions = info["admissible_actions"]
    observation, reward, terminated, truncated, info = env.step(actions[int(rng.integers(len(actions)))])
    ended, steps = terminated or truncated, steps + 1
print(f"\n{steps} steps, success {info['success']}, task {info['task_id']}")
