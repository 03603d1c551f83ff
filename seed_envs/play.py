"""``seed-play``: play an environment in a terminal, by hand or by a built-in player."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym

import seed_envs
from seed_envs.base import SeedEnv
from seed_envs.chat import split_observation
from seed_envs.command_line import INCOMPLETE, Parser, add_version, find_own_modules, key_and_value, run
from seed_envs.registration import TABLE, find_row, make
from seed_envs.trajectory import StopReason

Player = Callable[[gym.Env[Any, str], dict[str, Any]], str | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line entry point.

    Returns:
        0 after a finished episode, 1 when the player left or a fault ended it, 2 for a wrong id, task or option, 130
        when interrupted.
    """
    find_own_modules(arguments)
    return run(_parser(), arguments, _play, user_errors=(gym.error.Error,))


def _parser() -> Parser:
    parser = Parser(
        prog="seed-play",
        description="Play an environment in the terminal.",
        epilog=(
            "examples:\n  seed-play seed/ALFWorld-v0\n  seed-play seed/Sokoban-v0 --player oracle --seed 7\n"
            "  seed-play seed/Sokoban-v0 --env-arg levels=classic"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("env", help=f"one of: {', '.join(TABLE)}; module:ID for one of your own")
    parser.add_argument(
        "--player",
        choices=["human", "random", "rule", "oracle"],
        default="human",
        help="who acts; in human play '?' lists the possible actions and Ctrl+D leaves (default human)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="chooses the task and the random player's moves (default 0)"
    )
    parser.add_argument("--task-id", "--task_id", help="play exactly this task")
    parser.add_argument("--split", help="draw the task from this split")
    parser.add_argument(
        "--env-arg",
        type=key_and_value,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="argument of the environment, JSON value; the environment's page lists them",
    )
    parser.add_argument("--no-preflight", action="store_true", help="skip the check that everything needed answers")
    parser.add_argument("--dry-run", action="store_true", help="check, start the task, then stop")
    add_version(parser)
    return parser


def _play(args: argparse.Namespace) -> int:
    find_row(args.env)
    env = make(args.env, **dict(args.env_arg))
    if not args.no_preflight and isinstance(env.unwrapped, SeedEnv):
        env.unwrapped.check_services()
    options = {key: value for key in ("task_id", "split") if (value := getattr(args, key)) is not None}
    observation, info = env.reset(seed=args.seed, options=options)
    player = _PLAYERS[args.player]
    print(f"task: {info['task_id']}\ngoal: {info['goal']}\n")
    if args.dry_run:
        env.close()
        return 0
    total, ended = 0.0, False
    while not ended:
        print(split_observation(observation)[0])
        action = player(env, info)
        if action is None:
            env.close()
            return INCOMPLETE
        observation, reward, terminated, truncated, info = env.step(action)
        total, ended = total + float(reward), terminated or truncated
        if info["invalid_reason"]:
            print(f"[invalid: {info['invalid_reason']}]")
    print(split_observation(observation)[0])
    env.close()
    stop = StopReason(info["stop_reason"] or "max_steps")
    if not stop.scored:
        print(f"\nended by a fault, not scored: {stop.value}", file=sys.stderr)
        return INCOMPLETE
    print(f"\nsuccess: {info['success']}   score: {info['score']:.2f}   reward: {total:.2f}")
    return 0


def _human(env: gym.Env[Any, str], info: dict[str, Any]) -> str | None:
    """Asks the person; None when there is no more input."""
    while True:
        try:
            line = input("> ")
        except (EOFError, KeyboardInterrupt):
            print()
            return None
        if line != "?":
            return line
        print("\n".join(info["admissible_actions"] or ["(this environment has no list of actions)"]))


def _built_in(method: str) -> Player:
    """A player that is a method of the environment."""

    def choose(env: gym.Env[Any, str], info: dict[str, Any]) -> str:
        action = str(getattr(env.unwrapped, method)())
        print(f"> {action}")
        return action

    return choose


_PLAYERS: dict[str, Player] = {
    "human": _human,
    "random": _built_in("random_action"),
    "rule": _built_in("rule_action"),
    "oracle": _built_in("oracle_action"),
}
gym.register_envs(seed_envs)  # keeps the import that registers the ids

if __name__ == "__main__":
    sys.exit(main())
