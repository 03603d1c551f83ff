"""The preflight of ``seed-train``: ``seed_envs.preflight`` for a configuration, before any weights are loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from seed_envs.errors import DependencyMissing
from seed_envs.preflight import Contestant, Say, Words, preflight
from seed_envs.profiles import Profile, profile_table
from seed_envs.rollout import Policy, Reply, Request
from seed_envs.tasks import TaskSpec
from seed_trainer.errors import UserError

if TYPE_CHECKING:
    import torch

    from seed_trainer.acting.rollout import TokenPolicy

WORDS = Words("--env_profile", "--max_prompt_length")


def tell(text: str) -> None:
    """Say something on standard error."""
    print(f"preflight: {text}", file=sys.stderr, flush=True)


def check_play(
    args: Any, make_env: Callable[[], Any], profile: Profile, row: TaskSpec, contestant: Contestant, say: Say = tell
) -> None:
    """Look whether a contestant can play a task under the arguments of an environment.

    Raises:
        UserError: Naming what is wrong and what helps.
    """
    preflight(make_env, profile, row, contestant, profiles=profile_table(args.env_id), say=say, words=WORDS)


def model_contestant(
    name: str, revision: str | None, max_prompt_length: int, max_turn_length: int, policy: Policy | None = None
) -> Contestant:
    """What a model's configuration and tokenizer say; no weights are read.

    Args:
        name: Folder or hub name.
        revision: Revision on the hub.
        max_prompt_length: The configured limit.
        max_turn_length: The configured length of a reply.
        policy: Asked for one reply.

    Raises:
        UserError: When they cannot be loaded, or the tokenizer has no chat template.
    """
    from transformers import AutoConfig

    from seed_envs.processors import load_encoder, sees
    from seed_trainer.acting.encoding import ChatEncoder

    try:
        config = AutoConfig.from_pretrained(name, revision=revision)
        processor = load_encoder(name, revision)
        encoder = ChatEncoder(processor, getattr(processor, "tokenizer", processor))
    except OSError as error:
        raise UserError(unloadable(name, error)) from None
    except (ValueError, DependencyMissing) as error:
        raise UserError(f"model {name!r}: {' '.join(str(error).split())}") from None
    window = getattr(config.get_text_config(), "max_position_embeddings", None)
    room = max_prompt_length if window is None else min(max_prompt_length, int(window) - max_turn_length)
    if room < 1:
        raise UserError(f"max_turn_length={max_turn_length} leaves no room for a prompt: {name} reads {window} tokens")
    return Contestant(name, sees(config), room, encoder.length, policy)


def unloadable(name: str | None, error: OSError) -> str:
    """Return why a model could not be loaded, without the traceback of the libraries that tried."""
    return f"model {name!r} cannot be loaded: {str(error).strip().splitlines()[0]}"


def unchanged(policy: TokenPolicy, generator: torch.Generator) -> Policy:
    """A policy that samples without changing what is sampled next.

    Args:
        policy: The policy.
        generator: What its sampler draws from, unless that is torch's global one.

    Raises:
        UserError: When it is asked and the model's weights are not numbers.
    """
    from seed_trainer.acting.sampling import own_randomness

    def ask(requests: Sequence[Request]) -> list[Reply]:
        try:
            with own_randomness(generator):
                return policy(requests)
        except FloatingPointError as error:
            raise UserError(str(error)) from None
        finally:
            policy.sampler.forget()

    return ask
