"""``seed-play``: play an environment, or look at stored episodes, in the terminal or in a browser."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import seed_envs
from seed_envs.command_line import INCOMPLETE, Parser, add_env_arg, add_version, find_own_modules, run
from seed_envs.errors import UnknownOption
from seed_envs.playing.game import Game
from seed_envs.playing.stored import Episodes, find_file
from seed_envs.registration import TABLE, find_row
from seed_envs.terminal import ARROWS, Screen, has_keys, keys_of, plain, single_keys
from seed_envs.trajectory import StopReason

Player = Callable[[Game], "str | None"]
LIST, HINT, UNDO = "?", "!", "<"
"""What a person may type instead of an action; no environment has an action of that name."""
BACKSPACE = "\x7f"


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
        description="Play an environment, or look at stored episodes, in the terminal or in a browser.",
        epilog=(
            "examples:\n  seed-play seed/ALFWorld-v0\n  seed-play seed/Sokoban-v0 --player oracle --seed 7\n"
            "  seed-play seed/Sokoban-v0 --env-arg levels=classic\n"
            "  seed-play --replay runs/oracle --episode 3\n  seed-play --web --replay runs/seed"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("env", nargs="?", help=f"one of: {', '.join(TABLE)}; module:ID for one of your own")
    parser.add_argument(
        "--player",
        choices=["human", "random", "rule", "oracle"],
        default="human",
        help="who acts; a person plays with single keys where every action has one, else in lines; '?' lists the "
        "possible actions, '!' asks the oracle, '<' takes the last action back, Ctrl+D leaves (default human)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="chooses the task and the random player's moves (default 0)"
    )
    parser.add_argument("--task-id", "--task_id", help="play exactly this task")
    parser.add_argument("--split", help="draw the task from this split")
    add_env_arg(parser, "the environment's page lists them")
    parser.add_argument("--replay", type=Path, metavar="PATH", help="show stored episodes: a file, or a run's folder")
    parser.add_argument("--episode", type=int, default=0, metavar="N", help="which of them, from 0 (default 0)")
    parser.add_argument("--web", action="store_true", help="a page in the browser instead, for this machine alone")
    parser.add_argument("--port", type=int, default=0, help="of the page (default: a free one)")
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
    replay = None if args.replay is None else find_file(args.replay)
    if args.env is None and not args.web and replay is None:
        raise UnknownOption(f"name an environment, such as {next(iter(TABLE))}; or --web, or --replay FILE")
    if args.web:
        return _serve(args, replay)
    if replay is not None:
        return _replay(args, replay)
    find_row(args.env)
    screen = Screen(args.picture)
    options = {"task_id": args.task_id, "split": args.split}
    game = Game(args.env, args.seed, options, dict(args.env_arg), not args.no_preflight)
    with contextlib.closing(game):
        print(plain(f"task: {game.now.info['task_id']}\ngoal: {game.now.info['goal']}\n"))
        return 0 if args.dry_run else _turns(game, screen, args.player)


def _serve(args: argparse.Namespace, replay: Path | None) -> int:
    from seed_envs.playing.table import Table
    from seed_envs.playing.web import serve

    env_id = next(iter(TABLE)) if args.env is None else find_row(args.env).id
    table = Table(env_id, dict(args.env_arg), replay, not args.no_preflight)
    if not args.dry_run:
        serve(table, args.port, lambda text: print(text, flush=True))
    return 0


def _replay(args: argparse.Namespace, file: Path) -> int:
    """Shows a stored episode; a person turns the pages with Enter, "<" goes back."""
    episode, screen = Episodes(file)[args.episode], Screen(args.picture)
    print(plain(f"{episode.title}\ngoal: {episode.goal}\n"))
    at, asked = 0, sys.stdin.isatty() and sys.stdout.isatty()
    while at < len(episode.turns):
        turn = episode.turns[at]
        print(f"-- turn {at + 1} of {len(episode.turns)}")
        screen.show({"text": turn.observation, "image": None if turn.picture is None else _pixels(turn.picture)}, "")
        if turn.reply:
            print(plain(f"reply: {turn.reply}\n> {turn.action or '(none)'}"))
        if turn.refusal:
            print(plain(f"[invalid: {turn.refusal}]"))
        word = _line("Enter goes on, < back, q leaves: ") if asked and at + 1 < len(episode.turns) else ""
        if word is None or word == "q":
            return INCOMPLETE
        at = max(0, at - 1) if word == UNDO else at + 1
    skill = f"; skill: {episode.skill}" if episode.skill else ""
    print(plain(f"\n{'solved' if episode.success else 'not solved'}{skill}"))
    return 0


def _pixels(path: Path) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def _turns(game: Game, screen: Screen, player: str) -> int:
    with _player(player, game, screen) as choose:
        while not game.now.ended:
            _show(game, screen)
            action = choose(game)
            if action is None:
                return INCOMPLETE
            game.act(action)
    _show(game, screen)
    info = game.now.info
    stop = StopReason(info["stop_reason"] or "max_steps")
    if not stop.scored:
        print(f"\nended by a fault, not scored: {stop.value}", file=sys.stderr)
        return INCOMPLETE
    print(f"\nsuccess: {info['success']}   score: {info['score']:.2f}   reward: {game.now.total:.2f}")
    return 0


def _show(game: Game, screen: Screen) -> None:
    screen.show(game.now.observation, game.now.info.get("invalid_reason", ""))


@contextlib.contextmanager
def _player(name: str, game: Game, screen: Screen) -> Iterator[Player]:
    """Lend a player; a person gets single keys where every action has one and the terminal can read them."""
    actions = game.now.info["admissible_actions"]
    keys = keys_of(actions) if name == "human" and has_keys() else {}
    if keys:
        print(f"keys: {_shown(keys)}, ? for this list, {HINT} a hint, {UNDO} or Backspace takes back, q to leave\n")
        with single_keys() as pressed:
            yield partial(_press, keys, pressed, screen)
    else:
        yield partial(_human, screen) if name == "human" else _built_in(f"{name}_action")


def _shown(keys: dict[str, str]) -> str:
    arrows = [name for name in ARROWS.values() if name in keys]
    others = [f"{key} {action}" for key, action in keys.items() if key not in arrows]
    return ", ".join([*(["arrows"] if arrows else []), *others])


def _press(keys: dict[str, str], pressed: Iterator[str], screen: Screen, game: Game) -> str | None:
    """Waits for a key that plays; None when the person leaves."""
    for key in pressed:
        # Which actions there are may change from turn to turn, and with what is taken back.
        keys = keys_of(game.now.info["admissible_actions"]) or keys
        if key in keys:
            print(f"> {keys[key]}")
            return keys[key]
        if key == "q":
            return None
        if key == LIST:
            print(_shown(keys))
        else:
            _helped(UNDO if key == BACKSPACE else key, game, screen)
    return None


def _human(screen: Screen, game: Game) -> str | None:
    """Asks the person; None when there is no more input."""
    while True:
        line = _line("> ")
        if line == LIST:
            actions = game.now.info["admissible_actions"] or ["(this environment has no list of actions)"]
            print(plain("\n".join(actions)))
        elif line is None or not _helped(line, game, screen):
            return line


def _line(prompt: str) -> str | None:
    try:
        return input(prompt)
    except (EOFError, KeyboardInterrupt):
        print()
        return None


def _helped(word: str, game: Game, screen: Screen) -> bool:
    """Gives a hint or takes the last action back, if that is what the person wants."""
    if word == HINT:
        action, reason = game.hint()
        print(plain(f"hint: {action}" if action else f"no hint: {reason}"))
    elif word == UNDO:
        reason = game.undo()
        print(f"[{reason or 'taken back'}]")
        if not reason:
            _show(game, screen)
    return word in (HINT, UNDO)


def _built_in(method: str) -> Player:
    """A player that is a method of the environment."""

    def choose(game: Game) -> str:
        action = str(getattr(game.env.unwrapped, method)())
        print(f"> {action}")
        return action

    return choose


gym.register_envs(seed_envs)  # keeps the import that registers the ids

if __name__ == "__main__":
    sys.exit(main())
