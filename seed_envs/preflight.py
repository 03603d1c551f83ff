"""Before the first episode: what every command checks, so that a mistake costs seconds and not a night.

Can the output folder be written, does the first task start, does what the environment talks to answer, does the model
read pictures where the profile shows them, does the first prompt fit, does the first reply read. A mistake is raised as
:class:`~seed_envs.errors.PreflightFailed`; what may be as it was meant is said and the run goes on. Nothing here
changes what is played afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym

from seed_envs.base import SeedEnv
from seed_envs.chat import Message, build_messages, picture_parts
from seed_envs.errors import DataMissing, DependencyMissing, PreflightFailed, RetrievalError, UnknownOption
from seed_envs.profiles import Profile, shows_pictures
from seed_envs.rollout import Policy, Request
from seed_envs.tasks import TaskSpec

Say = Callable[[str], None]

_REFUSED = (DataMissing, DependencyMissing, RetrievalError, UnknownOption)
"""What no later task would escape either; any other fault of one task is data, and the run records it."""


@dataclass(frozen=True)
class Contestant:
    """Who is going to play, as far as that is known.

    Attributes:
        name: For messages.
        sees_pictures: None where nobody knows before it is tried.
        longest_prompt: In tokens; None for no known limit.
        count_tokens: Tokens of a conversation as the model reads it; None where only the model can tell.
        policy: Answers requests; asked once, for the first turn of the first task. None asks nothing.
    """

    name: str
    sees_pictures: bool | None = None
    longest_prompt: int | None = None
    count_tokens: Callable[[Sequence[Message]], int] | None = None
    policy: Policy | None = None


@dataclass(frozen=True)
class Words:
    """What the options are called in the command that checks.

    Attributes:
        profile: The option that names a profile.
        longest_prompt: The option that limits prompts.
    """

    profile: str = "--profile"
    longest_prompt: str = "--max-prompt-tokens"


def check_folder(folder: Path, option: str) -> None:
    """Make sure that files can be written where a folder is, or is going to be; leaves nothing behind.

    Args:
        folder: The folder.
        option: What named it, for the message.

    Raises:
        PreflightFailed: When they cannot.
    """
    place = folder.expanduser().absolute()
    while not place.exists() and not place.is_symlink():
        place = place.parent
    try:
        if not place.is_dir():
            raise NotADirectoryError(20, "not a folder")
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as error:
        raise PreflightFailed(
            f"{option} {str(folder)!r} cannot be written: {place}: {error.strerror or error}; choose another folder"
        ) from None


def preflight(
    make_env: Callable[[], gym.Env[Any, Any]],
    profile: Profile,
    task: TaskSpec,
    contestant: Contestant,
    *,
    profiles: Mapping[str, Profile],
    say: Say,
    words: Words = Words(),
) -> None:
    """Start the first task and look whether this contestant can play it.

    Args:
        make_env: Makes the agent environment of the run.
        profile: Its profile.
        task: The first task.
        contestant: Who plays.
        profiles: All profiles of the environment by name, for advice.
        say: Told what may be a mistake but need not.
        words: Names of options, for advice.

    Raises:
        PreflightFailed: Naming what is wrong and what helps.
        DataMissing, DependencyMissing, UnknownOption: When the first task lacks data or a package, or shows that an
            argument of the environment is wrong.
    """
    env = make_env()
    try:
        if isinstance(env.unwrapped, SeedEnv):
            env.unwrapped.check_services()
        request = first_request(env, profile, task)
        _check_pictures(request.messages, profile, contestant, profiles, words)
        _check_length(request.messages, contestant, words)
        _check_reply(request, profile, contestant, say)
    except RetrievalError as error:
        raise PreflightFailed(f"the search engine does not answer: {error}") from error
    except _Faulty as fault:
        say(f"the first task cannot start ({fault}); the run records it as a fault")
    finally:
        env.close()


class _Faulty(Exception):
    """One task could not start, for a reason that need not hold for the others."""


def first_request(env: gym.Env[Any, Any], profile: Profile, task: TaskSpec) -> Request:
    """What a policy is asked first: the first turn of a task."""
    try:
        _, info = env.reset(**task.reset_arguments())
    except _REFUSED:
        raise
    except Exception as error:
        raise _Faulty(f"{task.task_id}: {type(error).__name__}: {error}") from error
    turn = info["turn"]
    messages = build_messages(profile, [turn], [])
    return Request(0, 0, messages, turn, task, lambda method: getattr(env.unwrapped, method)())


def text_profiles(profile: Profile, profiles: Mapping[str, Profile]) -> list[str]:
    """The profiles without pictures, those of the same family first."""
    names = [name for name, known in profiles.items() if not shows_pictures(known)]
    return sorted(names, key=lambda name: (not name.startswith(profile.name), name))


def advise_text(profile: Profile, profiles: Mapping[str, Profile], option: str) -> str:
    """What to do about pictures that nobody can look at."""
    names = text_profiles(profile, profiles)
    return f"use {option} {' or '.join(names)}" if names else "this environment has no profile in text"


def _check_pictures(
    messages: Sequence[Message],
    profile: Profile,
    contestant: Contestant,
    profiles: Mapping[str, Profile],
    words: Words,
) -> None:
    if picture_parts(messages) and contestant.sees_pictures is False:
        raise PreflightFailed(
            f"{contestant.name} reads text alone, and profile {profile.name!r} shows pictures: "
            f"{advise_text(profile, profiles, words.profile)}, or a model that reads pictures"
        )


def _check_length(messages: Sequence[Message], contestant: Contestant, words: Words) -> None:
    if contestant.count_tokens is None or contestant.longest_prompt is None:
        return
    length = contestant.count_tokens(messages)
    if length > contestant.longest_prompt:
        raise PreflightFailed(
            f"the first prompt has {length} tokens, and at most {contestant.longest_prompt} fit {contestant.name}; "
            f"raise {words.longest_prompt} as far as the model goes, or shorten its replies"
        )


def _check_reply(request: Request, profile: Profile, contestant: Contestant, say: Say) -> None:
    if contestant.policy is None:
        return
    (reply,) = contestant.policy([request])
    if reply.error is not None:
        raise PreflightFailed(f"{contestant.name} does not answer: {reply.error.message}")
    parsed = profile.action_format.parse(reply.text)
    if not parsed.valid:
        say(f"the first reply of {contestant.name} cannot be read: {parsed.reason}; it was: {_short(reply.text)}")


def _short(text: str, longest: int = 200) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= longest else f"{text[: longest // 2]} ... {text[-longest // 2 :]}")
