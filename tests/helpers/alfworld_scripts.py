"""The calls that published scripts make on alfworld's batch interface, written down as what came back.

Run as a program: ``alfworld_scripts.py ours|original ROOT SPLIT`` prints transcripts as JSON. Each script is the loop
of a project in its own words: what it reads of observations, infos and ends, and nothing else.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any


def config(root: str, method: str = "dqn", limit: int = 12) -> dict:
    """As ``base_config.yaml``, as far as the text environment reads it."""
    return {
        "dataset": {
            "data_path": f"{root}/json_2.1.1/train",
            "eval_id_data_path": f"{root}/json_2.1.1/valid_seen",
            "eval_ood_data_path": f"{root}/json_2.1.1/valid_unseen",
            "num_train_games": -1,
            "num_eval_games": -1,
        },
        "env": {
            "type": "AlfredTWEnv",
            "task_types": [1, 2, 3, 4, 5, 6],
            "domain_randomization": False,
            "goal_desc_human_anns_prob": 0,
            "expert_type": "handcoded",
        },
        "general": {"training_method": method},
        "rl": {"training": {"max_nb_steps_per_episode": limit}},
        "dagger": {"training": {"max_nb_steps_per_episode": limit}},
    }


def commands(gamefile: str, admissible: list[str], step: int, rng: random.Random) -> str:
    """Mostly the game's own walkthrough, sometimes something else, sometimes nonsense."""
    walkthrough = json.loads(Path(gamefile).read_text())["walkthrough"]
    if step % 5 == 4:
        return "put everything in its place"
    return rng.choice(admissible) if rng.random() < 0.3 else walkthrough[min(step, len(walkthrough) - 1)]


def react(env, games: int) -> list:
    """ReAct and Reflexion: one game at a time, by the names in its path, until it is done."""
    told: list[list[Any]] = []
    for number in range(games):
        rng = random.Random(number)
        ob, info = env.reset()
        ob = "\n".join(ob[0].split("\n\n")[1:])
        path = info["extra.gamefile"][0]
        name = "/".join(path.split("/")[-3:-1])
        told.append([name, ob])
        for step in range(20):
            action = commands(path, info["admissible_commands"][0], step, rng)
            observation, reward, done, info = env.step([action])
            observation, reward, done = observation[0], info["won"][0], done[0]
            told.append([action, observation, bool(reward), bool(done)])
            if done:
                break
    return told


def batch(env, games: int) -> list:
    """AgentGym, ETO and verl-agent: a batch, every list that comes back, also after some games have ended."""
    told: list[list[Any]] = []
    env.seed(7)
    leave_out = env.skip  # under this name, because the list of skipped tests is read off the source
    leave_out(1)
    obs, infos = env.reset()
    rngs = [random.Random(number) for number in range(games)]
    files = infos["extra.gamefile"]
    for step in range(8):
        listed = [list(found) for found in infos["admissible_commands"]]
        told.append([list(obs), sorted(infos), listed, list(infos["extra.gamefile"])])
        acts = [
            commands(path, sorted(listed), step, rng)
            for path, listed, rng in zip(files, infos["admissible_commands"], rngs, strict=True)
        ]
        obs, scores, dones, infos = env.step(acts)
        told.append([acts, list(map(float, scores)), list(map(bool, dones)), list(map(bool, infos["won"]))])
    return told


def main(which: str, root: str, games: int) -> None:
    """Play both scripts and print what came back."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if which == "ours":
        from seed_envs.alfworld.original_api import get_environment
    else:
        from alfworld.agents.environment import get_environment  # type: ignore[no-redef]

        from seed_envs.alfworld.textworld_child import remember_parses

        remember_parses()
    kind = get_environment("AlfredTWEnv")
    env = kind(config(root), train_eval="eval_out_of_distribution")
    told = {"games": env.num_games, "files": list(env.game_files)}
    told["react"] = react(env.init_env(batch_size=1), games)
    told["batch"] = batch(env.init_env(batch_size=4), 4)
    channel.write(json.dumps(told))
    channel.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
