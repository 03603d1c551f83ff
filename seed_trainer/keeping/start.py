"""Where a command that is given again starts: nowhere (finished), at a checkpoint, or not at all (another run's)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seed_trainer.errors import UserError
from seed_trainer.keeping.folder import newest
from seed_trainer.keeping.identity import differences
from seed_trainer.keeping.manifest import NO_MANIFEST, fault, read_manifest
from seed_trainer.settings.resolve import LATEST

_NOTHING = (None, False, "", "false", "False")
TRAINER_STATE_NAME = "trainer_state.json"
_LATEST = (True, LATEST, "true", "True")


@dataclass(frozen=True)
class Start:
    """A verified place to start from.

    Attributes:
        folder: The checkpoint, or the run folder of a finished run.
        step: Optimiser steps done there.
        finished: Whether there is nothing left to do.
    """

    folder: Path
    step: int
    finished: bool = False


def starting_point(wanted: str | bool | None, args: Any, identity: Mapping[str, Any]) -> Start | None:
    """Return where to start; None for a fresh run. Says on the error stream which checkpoints were skipped.

    Args:
        wanted: A checkpoint folder, or ``latest``.
        args: Training arguments: ``output_dir``, how far to train, ``resume_anyway``.
        identity: What makes this run, from :func:`~seed_trainer.keeping.identity.run_identity`.

    Raises:
        UserError: If there is no complete checkpoint, or it is another run's and ``resume_anyway`` is not given.
    """
    if wanted in _NOTHING:
        return None
    folder = Path(args.output_dir)
    exported = read_manifest(folder) if not fault(folder) else None
    if wanted in _LATEST:
        if exported is not None and _reached(exported, args):
            _same_run(folder, exported, identity, args.resume_anyway)
            return Start(folder, exported["step"], finished=True)
        checkpoint = _latest(folder, args.process_index == 0)
    else:
        checkpoint = _named(Path(str(wanted)), args.resume_anyway)
    record = read_manifest(checkpoint)
    if record is None:  # Only with resume_anyway: an older version's, of which no more is known.
        return Start(checkpoint, _saved_step(checkpoint))
    _same_run(checkpoint, record, identity, args.resume_anyway)
    if not record.get("optimizer") and not args.resume_anyway:
        raise UserError(
            f"{checkpoint} was saved with save_only_model, without the optimiser's state: training would go another "
            "way; --resume_anyway goes on with a new optimiser"
        )
    here = checkpoint.resolve().parent == folder.resolve()
    return Start(checkpoint, record["step"], finished=here and exported is not None and _reached(record, args))


def progress(state: Any, args: Any) -> dict[str, Any]:
    """Return what a manifest says about how far a run has come."""
    reach = {"step": state.global_step, "of": state.max_steps, "epochs": args.num_train_epochs}
    return {**reach, "optimizer": not args.save_only_model}


def _reached(record: Mapping[str, Any], args: Any) -> bool:
    """Whether a saved state is as far as this command would train."""
    if args.max_steps > 0:
        return bool(record["step"] >= args.max_steps)
    return bool(
        record.get("epochs") == args.num_train_epochs and record["step"] >= record.get("of", record["step"] + 1)
    )


def _latest(folder: Path, speaks: bool) -> Path:
    checkpoint, skipped = newest(folder)
    if checkpoint is None:
        found = f" ({'; '.join(skipped)})" if skipped else ""
        raise UserError(
            f"no checkpoint to resume from in {str(folder)!r}{found}; the command without --resume_from_checkpoint "
            "starts anew"
        )
    for reason in skipped if speaks else ():
        print(f"skipped {reason}", file=sys.stderr)
    if speaks:
        print(f"going on from {checkpoint}", file=sys.stderr)
    return checkpoint


def _named(checkpoint: Path, anyway: bool) -> Path:
    if not checkpoint.is_dir():
        raise UserError(f"resume_from_checkpoint={str(checkpoint)!r} is not a folder")
    wrong = fault(checkpoint)
    if wrong and not (anyway and wrong == NO_MANIFEST):
        hint = "; --resume_anyway tries it all the same" if wrong == NO_MANIFEST else ""
        raise UserError(
            f"resume_from_checkpoint={str(checkpoint)!r} is not complete: {wrong}{hint}; "
            "--resume_from_checkpoint latest takes the newest complete one"
        )
    return checkpoint


def _saved_step(checkpoint: Path) -> int:
    try:
        return int(json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))["global_step"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{checkpoint} cannot be resumed from: {TRAINER_STATE_NAME} is not readable ({error})"
        ) from None


def _same_run(folder: Path, record: Mapping[str, Any], identity: Mapping[str, Any], anyway: bool) -> None:
    different = differences(record.get("run", {}), identity)
    if different and not anyway:
        raise UserError(
            f"{folder} belongs to another run: {'; '.join(different)}. Give that run's settings, name another "
            "output_dir or checkpoint, or add --resume_anyway if you mean it"
        )
