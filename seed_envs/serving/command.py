"""``seed-serve``: serve environments to agents and trainers elsewhere, in OpenEnv's protocol."""

from __future__ import annotations

import argparse
import os
import resource
import socket
import sys
from collections.abc import Sequence

from seed_envs.command_line import Parser, add_env_arg, add_version, find_own_modules, run
from seed_envs.errors import DependencyMissing
from seed_envs.registration import find_row
from seed_envs.serving.options import ServeOptions


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line entry point; returns 0 after an orderly stop, 2 for what cannot be served."""
    find_own_modules(arguments)
    return run(_parser(), arguments, _serve, user_errors=(ValueError,))


def _parser() -> Parser:
    defaults = ServeOptions(("",))
    parser = Parser(prog="seed-serve", description=__doc__)
    parser.add_argument("envs", nargs="+", metavar="ENV_ID", help="what to serve; the first one also at the root")
    parser.add_argument("--host", default=defaults.host, help="others than loopback need a token in $SEED_SERVE_TOKEN")
    parser.add_argument("--port", type=int, default=defaults.port, help="0 takes a free one")
    parser.add_argument("--no-token", action="store_true", help="let anybody who reaches the port play")
    parser.add_argument("--profile", default="", help="profile of sessions that name none; without it, bare actions")
    add_env_arg(parser, "clients cannot choose them")
    parser.add_argument("--max-sessions", type=int, default=defaults.max_sessions, help="most sessions at once")
    parser.add_argument("--idle-seconds", type=float, default=defaults.idle_seconds, help="how long one may be silent")
    parser.add_argument("--max-message", type=int, default=defaults.max_message, help="longest message, bytes")
    parser.add_argument("--threads", type=int, default=defaults.threads, help="steps that run at once")
    parser.add_argument("--write-space", metavar="FOLDER", help="write what a Hugging Face Space needs, and stop")
    add_version(parser)
    return parser


def _serve(args: argparse.Namespace) -> int:
    options = ServeOptions(
        env_ids=tuple(args.envs) if args.write_space else tuple(find_row(name).id for name in args.envs),
        host=args.host,
        port=args.port,
        token=os.environ.get("SEED_SERVE_TOKEN", ""),
        anybody=args.no_token,
        max_sessions=args.max_sessions,
        idle_seconds=args.idle_seconds,
        max_message=args.max_message,
        threads=args.threads,
        profile=args.profile,
        env_kwargs=dict(args.env_arg),
    )
    if args.write_space:
        from seed_envs.serving.space import write_space

        for path in write_space(options, args.write_space):
            print(path)
        return 0
    try:
        from seed_envs.serving import server
    except ModuleNotFoundError as error:
        if error.name not in ("openenv", "fastapi", "uvicorn"):
            raise
        raise DependencyMissing(f"seed-serve needs {error.name}: pip install 'seed-envs[serve]'") from error
    _allow_files(options.max_sessions + 128)
    with socket.create_server(
        (options.host, options.port), family=socket.AF_INET6 if ":" in options.host else socket.AF_INET, backlog=2048
    ) as listening:
        server.serve(options, listening, lambda text: print(text, flush=True))
    return 0


def _allow_files(wanted: int) -> None:
    """Let this process hold as many connections as sessions are allowed.

    Raises:
        ValueError: When the system does not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise ValueError(f"--max-sessions needs {wanted} open files, the system allows {hard}; raise `ulimit -n`")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    sys.exit(main())
