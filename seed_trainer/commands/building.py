"""From a resolved configuration to its parts: environment, tasks, model and trainer."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seed_trainer.commands.checks import unloadable
from seed_trainer.errors import UserError
from seed_trainer.settings.arguments import SEEDScriptArguments
from seed_trainer.settings.resolve import Resolved

if TYPE_CHECKING:
    pass


BUILTIN = "builtin/"
BLIND: dict[str, dict[str, str] | None] = {"blank": None, "shuffle": {}}
"""``env_blind`` -> the donors of pictures."""


def environment(script: Any) -> tuple[Any, Any]:
    """Return the factory of agent environments and their profile.

    The penalty of invalid actions is taken out of the profile: here it is ``adv_invalid_penalty``, and it would count
    twice.

    Raises:
        UserError: For unknown ids, profiles or arguments, and missing data.
    """
    import seed_envs
    from seed_envs.errors import SeedEnvsError
    from seed_envs.wrappers.blind import make_blind_env

    kwargs, limit = script.kwargs, script.env_max_steps or None
    try:
        profile = seed_envs.get_profile(script.env_id, script.env_profile)
        profile = dataclasses.replace(profile, invalid_penalty=0.0)
        blind = script.env_blind in BLIND
        build = functools.partial(make_blind_env, BLIND[script.env_blind]) if blind else seed_envs.make_agent_env
        make_env = functools.partial(build, script.env_id, profile, limit, kwargs)
        make_env().close()
    except (SeedEnvsError, TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    return make_env, profile


def datasets(script: Any, make_env: Any) -> tuple[Any, Any]:
    """Return the training tasks and the evaluation panel (or None)."""
    from seed_trainer.settings.tasks import as_dataset, manifest_rows, split_rows

    env = make_env()
    try:
        split = script.train_split or env.unwrapped.split
        train = as_dataset(split_rows(env, split, script.train_tasks, "train_tasks"))
        panel = None
        if script.eval_manifest:
            panel = as_dataset(manifest_rows(script.eval_manifest, script.eval_split))
        elif script.eval_split:
            panel = as_dataset(split_rows(env, script.eval_split, script.eval_tasks, "eval_tasks"))
    finally:
        env.close()
    return train, panel


def resolve_model(name: str | None) -> str:
    """Return the path or hub name of a model; ``builtin/NAME`` is a model shipped with this package.

    Raises:
        UserError: If no model is given or a shipped one does not exist.
    """
    if not name:
        raise UserError("set model_name_or_path: a folder, a hub name, or builtin/NAME for a shipped model")
    if not name.startswith(BUILTIN):
        if name.startswith(("/", ".", "~")) and not Path(name).is_dir():
            raise UserError(f"model {name!r} is not a folder")
        return name
    folder = Path(__file__).parent.parent / "tiny" / "models"
    path = folder / name.removeprefix(BUILTIN)
    if not path.is_dir():
        known = sorted(f"{BUILTIN}{item.name}" for item in folder.iterdir() if item.is_dir()) if folder.is_dir() else []
        raise UserError(f"model {name!r} is not shipped, expected one of {known}")
    return str(path)


def model_name(resolved: Resolved) -> str | None:
    """Return the name of the model that training starts from.

    Raises:
        UserError: If ``start_from`` is unknown.
    """
    script, _, model_args = resolved.parts
    return start_model(script, model_args.model_name_or_path)


def start_model(script: SEEDScriptArguments, given: str | None) -> str | None:
    """Return ``given`` or the base model, as ``start_from`` says.

    Raises:
        UserError: If ``start_from`` is unknown.
    """
    if script.start_from not in ("sft", "base"):
        raise UserError(f"start_from={script.start_from!r}, expected sft or base")
    return script.base_model if script.start_from == "base" else given


def build_trainer(resolved: Resolved, make_env: Any, profile: Any, train: Any, panel: Any) -> Any:
    """Return the trainer of a resolved configuration."""
    from trl import get_peft_config, get_quantization_config

    from seed_envs.errors import DependencyMissing
    from seed_trainer.trainer import SEEDTrainer

    script, args, model_args = resolved.parts
    name = model_name(resolved)
    args.model_init_kwargs = {
        **(args.model_init_kwargs or {}),
        "revision": model_args.model_revision,
        "attn_implementation": model_args.attn_implementation,
        "dtype": model_args.dtype,
    }
    try:
        return SEEDTrainer(
            model=resolve_model(name),
            args=args,
            make_env=make_env,
            profile=profile,
            env_id=script.env_id,
            train_dataset=train,
            eval_dataset=panel,
            peft_config=get_peft_config(model_args),
            quantization_config=get_quantization_config(model_args),
        )
    except (
        ValueError,
        ImportError,
        DependencyMissing,
    ) as error:  # an optional package such as vllm: the message names it
        raise UserError(str(error)) from error
    except OSError as error:
        raise UserError(unloadable(name, error)) from error
