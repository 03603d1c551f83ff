"""``seed-train doctor``: what is installed, what is missing, and what to run."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

from seed_envs.command_line import Parser
from seed_trainer.settings.resolve import CPU_FLAGS

NEEDED = ("torch", "transformers", "trl", "accelerate", "datasets", "gymnasium", "numpy")
OPTIONAL = ("peft", "vllm", "deepspeed", "bitsandbytes", "trackio", "wandb", "torchvision", "num2words")
SUPPORTED_TRL = ("1.16", "1.17")


def main(argv: Sequence[str]) -> int:
    """Run the command; exit code 1 if something needed is missing or does not work."""
    Parser(prog="seed-train doctor", description="Check this installation.").parse_args(list(argv))
    print(f"Python {platform.python_version()} on {platform.platform()}")
    good = _needed()
    for name in OPTIONAL:
        print(f"  {name:<14} {_version(name) or 'not installed (optional)'}")
    for title, check in (("TRL hooks", _hooks), ("devices", _devices), ("environments", _environments)):
        try:
            print(f"{title}: {check()}")
        except Exception as error:  # the point of a doctor: report whatever is wrong and go on
            good = False
            print(f"{title}: FAILED, {type(error).__name__}: {error}")
    print("all well" if good else "something is wrong; run: pip install 'seed-envs[train]'")
    return 0 if good else 1


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _needed() -> bool:
    good = sys.version_info >= (3, 11)
    if not good:
        print("  Python 3.11 or newer is needed by TRL")
    for name in NEEDED:
        found = _version(name)
        good = good and bool(found)
        print(f"  {name:<14} {found or 'MISSING'}")
    return good


def _hooks() -> str:
    from trl import GRPOTrainer

    names = ("_generate_and_score_completions", "_generate", "_calculate_rewards", "_compute_loss")
    missing = [name for name in names if not hasattr(GRPOTrainer, name)]
    found = tuple(map(int, version("trl").split(".")[:2]))
    low, high = (tuple(map(int, bound.split("."))) for bound in SUPPORTED_TRL)
    if missing or not low <= found < high:
        raise RuntimeError(
            f"trl {version('trl')} is not supported (>={SUPPORTED_TRL[0]},<{SUPPORTED_TRL[1]}) {missing}"
        )
    return f"trl {version('trl')} has the methods this trainer overrides"


def _devices() -> str:
    import torch

    if torch.cuda.is_available():
        return ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
    return f"CPU only, {torch.get_num_threads()} thread(s); add {CPU_FLAGS}"


def _environments() -> str:
    import seed_envs

    def plays(env_id: str, profile: str) -> str:
        env = seed_envs.make_agent_env(env_id, profile)
        env.reset(seed=0)
        env.close()
        return env_id

    checks: list[Callable[[], str]] = [lambda: plays("seed/ALFWorld-v0", "compact")]
    return ", ".join(check() for check in checks) + " starts"
