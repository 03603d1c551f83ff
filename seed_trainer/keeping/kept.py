"""``KeptTrainer``: a transformers trainer whose run can be killed at any moment and goes on as if it had not been.

What it changes, for stage 1 and stage 2 alike:

1. A checkpoint is written to a staging folder, checked, listed in a manifest and renamed; so is the finished model.
2. A checkpoint also holds what transformers forgets: sums on their way to the next log line, and the length of every
   line file, so that a resumed run drops exactly the lines it is about to write again.
3. The order of tasks is a function of seed and epoch.
4. Training stops at the first loss, gradient or weight that is not a finite number, before anything is saved.
5. Another run's checkpoint is refused, and a finished run is left as it is.
"""

from __future__ import annotations

import errno
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import Trainer
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, TrainOutput

from seed_trainer.errors import UserError
from seed_trainer.keeping.folder import STAGING, publish, publish_files, rotate, saved, set_aside
from seed_trainer.keeping.manifest import MANIFEST, fault, write_manifest
from seed_trainer.keeping.order import set_epoch
from seed_trainer.keeping.start import Start, progress, starting_point
from seed_trainer.watching.callbacks import RunFiles

STATE_FOLDER = "seed_state"
_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


class RunStopped(UserError):
    """Training ended before its time; the message says why and what was saved last."""


class Diverged(RunStopped, FloatingPointError):
    """A loss, gradient or weight is not a finite number."""


class _NothingLeft(Exception):
    """Raised where transformers would train one step more of a finished run."""


class KeptTrainer(Trainer):
    """See the module; a class that mixes it in sets ``lines`` (and ``identity``, for what its arguments do not say)."""

    args: Any
    model: Any
    lines: RunFiles
    identity: dict[str, Any]
    _staging: Path | None = None
    _unproven: bool = False
    _waiting: dict[str, Any] | None = None

    # ------------------------------------------------------------------------------------------------------- the whole

    def train(self, resume_from_checkpoint: str | bool | Start | None = None, *args: Any, **kwargs: Any) -> TrainOutput:
        """Train as transformers does, from a checkpoint that is complete and this run's own, or from the start.

        Args:
            resume_from_checkpoint: A folder, ``latest`` or True, or a start that was looked up before.
            args: As for transformers.
            kwargs: As for transformers.

        Raises:
            UserError: If there is no such checkpoint, or it is another run's.
            RunStopped: If training diverges or the run folder can no longer be written.
        """
        start = resume_from_checkpoint
        if not isinstance(start, Start):
            start = starting_point(start, self.args, self.identity)
        # An evaluation before the first step belongs to a fresh run; a checkpoint was judged when it was made.
        self.args.eval_on_start = self.args.eval_on_start and start is None
        self._unproven = start is not None
        if start is not None and start.finished:
            self._load_from_checkpoint(str(start.folder))
            self.state.global_step = start.step
            return self._finished()
        try:
            return super().train(str(start.folder) if start else None, *args, **kwargs)
        except _NothingLeft:
            return self._finished()
        except FloatingPointError as error:
            raise Diverged(f"{error}. {self._where(good=True)}") from error
        except OSError as error:
            if error.errno not in _UNWRITABLE:
                raise
            raise RunStopped(f"{self.args.output_dir} cannot be written: {error.strerror}. {self._where()}") from error
        except KeyboardInterrupt:
            self._say(f"\nInterrupted at step {self.state.global_step}. {self._where()}")
            raise

    def export(self) -> None:
        """Save the model into the run folder, unless it lies there complete because the run was finished before."""
        if fault(Path(self.args.output_dir)):
            self.save_model()

    def _finished(self) -> TrainOutput:
        self._say(f"already finished: all {self.state.global_step} steps are done")
        return TrainOutput(self.state.global_step, 0.0, {})

    def _where(self, good: bool = False) -> str:
        """Say where to go on from; if the first step from the newest checkpoint diverged, the one before is good."""
        last = saved(Path(self.args.output_dir))
        if not last:
            return "Nothing was saved before; start anew"
        if not good:
            return f"The last checkpoint is {last[-1]}; the same command with --resume_from_checkpoint goes on from it"
        path = last[-2] if self._unproven and len(last) > 1 else last[-1]
        return f"The last good checkpoint is {path}; --resume_from_checkpoint {path} --resume_anyway takes new settings"

    def _say(self, text: str) -> None:
        if self.is_world_process_zero():
            print(text, file=sys.stderr, flush=True)

    # -------------------------------------------------------------------------------------------------------- starting

    def _init_training_state(self, max_steps: int, *args: Any, **kwargs: Any) -> tuple[int, int]:
        found: tuple[int, int] = super()._init_training_state(max_steps, *args, **kwargs)
        if self.state.global_step >= max_steps:
            raise _NothingLeft
        if self.args.should_save:
            folder = Path(self.args.output_dir)
            place = set_aside(folder, self.state.global_step, [log.path for log in self.lines.logs if not log.begun])
            if place is not None:
                self._say(f"what an earlier attempt saved after step {self.state.global_step} is now in {place}")
        self.accelerator.wait_for_everyone()
        return found

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            self._load_kept(Path(checkpoint))

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        set_epoch(kwargs["train_dataloader"], kwargs["epoch"])
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._tr_loss += waiting["loss"]
            self._globalstep_last_logged = waiting["last_logged"]
        super()._run_epoch(*args, **kwargs)  # type: ignore[no-untyped-call]

    # ------------------------------------------------------------------------------------------------------ every step

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """Train on one micro-batch.

        Raises:
            Diverged: If the loss is not a finite number.
        """
        loss: Tensor = super().training_step(*args, **kwargs)
        if not bool(torch.isfinite(loss).all()):
            raise FloatingPointError(self._diverged("loss", float(loss)))
        return loss

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        norm = super()._get_grad_norm(model, grad_norm)  # type: ignore[no-untyped-call]
        scaled = self.accelerator.scaler is not None  # Its scale is still being looked for; it leaves such steps out.
        if norm is not None and not scaled and not bool(torch.isfinite(torch.as_tensor(norm)).all()):
            raise FloatingPointError(self._diverged("gradient", float(norm)))
        self._let_old_ones_go()
        return norm

    def _diverged(self, what: str, value: float) -> str:
        return (
            f"training has diverged: the {what} of step {self.state.global_step + 1} is {value}; lower learning_rate "
            "or opd_coef, or raise beta"
        )

    # ---------------------------------------------------------------------------------------------------------- saving

    def _get_output_dir(self, trial: Any) -> str:
        return str(self._staging) if self._staging is not None else super()._get_output_dir(trial)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self._check_weights()
        name = f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        final = Path(self.args.output_dir) / name
        with self._stage(name) as staged:
            super()._save_checkpoint(model, trial)
            self._save_kept(staged)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                if self.state.best_model_checkpoint == str(staged):
                    self.state.best_model_checkpoint = str(final)
                    self.state.save_to_json(str(staged / TRAINER_STATE_NAME))
                write_manifest(staged, {**progress(self.state, self.args), "run": self.identity})
                publish(staged, final)
        self._unproven = True
        self.accelerator.wait_for_everyone()
        if self.args.push_to_hub:
            super()._push_from_checkpoint(str(final))

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        """Wait: what transformers would upload here has not its final name yet."""

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model; into the run folder file by file, so that a kill leaves the old file or the new one."""
        folder = Path(self.args.output_dir)
        if self._staging is not None or (output_dir is not None and Path(output_dir) != folder):
            super().save_model(output_dir, _internal_call)
            return
        self._check_weights()
        with self._stage("model") as staged:
            super().save_model(str(staged), _internal_call=True)
            self.accelerator.wait_for_everyone()
            if self.args.should_save:
                (folder / MANIFEST).unlink(missing_ok=True)
                names = publish_files(staged, folder)
                write_manifest(folder, {**progress(self.state, self.args), "run": self.identity}, names)
        self.accelerator.wait_for_everyone()
        if self.args.push_to_hub and not _internal_call:
            self.push_to_hub(commit_message="Model save", revision=self.args.hub_revision)

    @contextmanager
    def _stage(self, name: str) -> Iterator[Path]:
        """Let everything that transformers saves within the block go to a staging folder; leave nothing of it there.

        Raises:
            RunStopped: If it cannot be written, as on a full disk.
        """
        self._staging = Path(self.args.output_dir) / STAGING
        try:
            yield self._staging / name
        except (OSError, RuntimeError, SafetensorError) as error:
            raise RunStopped(f"{name} of {self.args.output_dir} cannot be saved: {error}. {self._where()}") from error
        finally:
            staging, self._staging = self._staging, None
            if self.args.should_save:
                shutil.rmtree(staging, ignore_errors=True)

    def _check_weights(self) -> None:
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad and not bool(torch.isfinite(parameter).all()):
                raise FloatingPointError(
                    f"training has diverged: weight {name} is not finite after step {self.state.global_step}, and is "
                    "not saved; lower learning_rate or opd_coef, or raise beta"
                )

    def _let_old_ones_go(self) -> None:
        """Rotate once a step from the newest checkpoint was finite: until then the one before may be the last good."""
        if self._unproven and self.args.should_save:
            best = self.state.best_model_checkpoint
            rotate(Path(self.args.output_dir), self.args.save_total_limit, [Path(best)] if best else [])
        self._unproven = False

    def _finalize_training(self, *args: Any, **kwargs: Any) -> TrainOutput:
        self._let_old_ones_go()
        output: TrainOutput = super()._finalize_training(*args, **kwargs)  # type: ignore[no-untyped-call]
        return output

    # ------------------------------------------------------------------------------------- what transformers forgets

    def _pending(self) -> dict[str, Any]:
        """Return what this process has added up since the last log line; JSON."""
        return {"loss": float(self._tr_loss), "last_logged": self._globalstep_last_logged}

    def _restore_pending(self, pending: dict[str, Any]) -> None:
        """Take back what :meth:`_pending` returned."""
        self._waiting = pending

    def _save_kept(self, folder: Path) -> None:
        """Write into a checkpoint what transformers does not."""
        place = folder / STATE_FOLDER
        place.mkdir(parents=True, exist_ok=True)
        record = {"pending": self._pending(), "lines": self.lines.lengths()}
        (place / f"process-{self.args.process_index}.json").write_text(json.dumps(record), encoding="utf-8")

    def _load_kept(self, folder: Path) -> None:
        """Read what :meth:`_save_kept` wrote; a checkpoint of an earlier version has nothing."""
        path = folder / STATE_FOLDER / f"process-{self.args.process_index}.json"
        if not path.is_file():
            return
        record = json.loads(path.read_text(encoding="utf-8"))
        self._restore_pending(record["pending"])
        if folder.resolve().parent == Path(self.args.output_dir).resolve():
            self.lines.kept = record["lines"]
