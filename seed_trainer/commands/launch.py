"""Several processes: the same command again, through ``accelerate launch``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from seed_trainer.errors import UserError


def launch(config: str, command: str, argv: Sequence[str]) -> int:
    """Run a command in several processes.

    Args:
        config: A configuration of accelerate: a file, or the name of one that TRL ships.
        command: Command of ``seed-train``.
        argv: Its arguments.

    Raises:
        UserError: When there is no such configuration.
    """
    from accelerate.commands.launch import launch_command, launch_command_parser

    shipped = resources.files("trl") / "accelerate_configs" / f"{config}.yaml"
    path = str(shipped) if shipped.is_file() else config
    if not Path(path).is_file():
        raise UserError(f"accelerate_config={config!r} is neither a file nor a configuration shipped with TRL")
    # The last one wins, also over a configuration file: the launched command must not launch again.
    rest = [*argv, "--accelerate_config="]
    launch_command(
        launch_command_parser().parse_args(["--config_file", path, "--module", "seed_trainer", command, *rest])
    )
    return 0
