"""``seed-play``: play an environment in a terminal, by hand or by a built-in player."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import gymnasium as gym

import seed_envs
from seed_envs.base import SeedEnv
from seed_envs.command_line import INCOMPLETE, Parser, add_env_arg, add_version, find_own_modules, run
from seed_envs.registration import TABLE, find_row, make
from seed_envs.terminal import ARROWS, Screen, has_keys, keys_of, single_keys
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
        help="who acts; a person plays with single keys where every action has one, else in lines; '?' lists the "
        "possible actions and Ctrl+D leaves (default human)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="chooses the task and the random player's moves (default 0)"
    )
    parser.add_argument("--task-id", "--task_id", help="play exactly this task")
    parser.add_argument("--split", help="draw the task from this split")
    add_env_arg(parser, "the environment's page lists them")
    parser.add_argument("--no-preflight", action="store_true", help="skip the check that everything needed answers")
    parser.add_argument("--dry-run", action="store_true", help="check, start the task, then stop")
    parser.add_argument(
        "--picture",
        default="auto",
        metavar="auto|blocks|none|FILE.png",
        help="pictures as half blocks in true colour (auto: on a terminal), not at all, or into a file at every turn",
    )
    add_version(parser)
    return parser


def _play(args: argparse.Namespace) -> int:
    find_row(args.env)
    screen = Screen(args.picture)
    env = make(args.env, **dict(args.env_arg))
    if not args.no_preflight and isinstance(env.unwrapped, SeedEnv):
        env.unwrapped.check_services()
    options = {key: value for key in ("task_id", "split") if (value := getattr(args, key)) is not None}
    observation, info = env.reset(seed=args.seed, options=options)
    print(f"task: {info['task_id']}\ngoal: {info['goal']}\n")
    if args.dry_run:
        env.close()
        return 0
    total, ended = 0.0, False
    with _player(args.player, info) as player:
        while not ended:
            screen.show(observation, info.get("invalid_reason", ""))
            action = player(env, info)
            if action is None:
                env.close()
                return INCOMPLETE
            observation, reward, terminated, truncated, info = env.step(action)
            total, ended = total + float(reward), terminated or truncated
    screen.show(observation, info["invalid_reason"])
    env.close()
    stop = StopReason(info["stop_reason"] or "max_steps")
    if not stop.scored:
        print(f"\nended by a fault, not scored: {stop.value}", file=sys.stderr)
        return INCOMPLETE
    print(f"\nsuccess: {info['success']}   score: {info['score']:.2f}   reward: {total:.2f}")
    return 0


@contextlib.contextmanager
def _player(name: str, info: dict[str, Any]) -> Iterator[Player]:
    """Lend a player; a person gets single keys where every action has one and the terminal can read them."""
    keys = keys_of(info["admissible_actions"]) if name == "human" and has_keys() else {}
    if not keys:
        yield _PLAYERS[name]
        return
    print(f"keys: {_shown(keys)}, ? for this list, q to leave\n")
    with single_keys() as pressed:
        yield partial(_press, keys, pressed)


def _shown(keys: dict[str, str]) -> str:
    arrows = [name for name in ARROWS.values() if name in keys]
    others = [f"{key} {action}" for key, action in keys.items() if key not in arrows]
    return ", ".join([*(["arrows"] if arrows else []), *others])


def _press(keys: dict[str, str], pressed: Iterator[str], env: gym.Env[Any, str], info: dict[str, Any]) -> str | None:
    """Waits for a key that plays; None when the person leaves."""
    keys = keys_of(info["admissible_actions"]) or keys  # which actions there are may change from turn to turn
    for key in pressed:
        if key in keys:
            print(f"> {keys[key]}")
            return keys[key]
        if key == "q":
            return None
        if key == "?":
            print(_shown(keys))
    return None


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
