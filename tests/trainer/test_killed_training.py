"""A training run that is killed, interrupted or runs out of disk ends, when it is resumed, with the same bytes."""

from __future__ import annotations

import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kill_training import CASES, PHASES, kill_many, kill_once, run_to_the_end, untouched, what_remains
from transformers import TrainerCallback
from word_world import WORDS, word_tokenizer

from seed_envs.command_line import stoppable
from seed_trainer.keeping.folder import STAGING, checkpoints, newest
from seed_trainer.keeping.manifest import fault
from seed_trainer.stage1.sft import SEEDSFTConfig, build_sft_trainer

OPTIONS = CASES["episode-ema"]


@pytest.fixture(scope="module")
def whole(model_path: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What remains of a run that nobody disturbs."""
    return untouched(model_path, tmp_path_factory.mktemp("undisturbed") / "run", OPTIONS)


def test_ten_kills_change_nothing(model_path: str, tmp_path: Path) -> None:
    tally = kill_many(model_path, tmp_path, 10, 5, ["episode-snapshot", "turn-ema"], print)
    assert tally.kills == 10 and len(tally.phases) > len(PHASES) / 2, tally


@pytest.mark.slow
def test_forty_kills_in_every_phase_layout_and_teacher_change_nothing(model_path: str, tmp_path: Path) -> None:
    tally = kill_many(model_path, tmp_path, 40, 6, list(CASES), print)
    assert tally.kills == 40 and set(PHASES) <= set(tally.phases), tally


@pytest.mark.parametrize(("sign", "phase"), [(signal.SIGTERM, "rollout"), (signal.SIGINT, "saving")])
def test_a_signal_ends_the_run_in_one_line_and_changes_nothing(
    model_path: str, whole: dict[str, Any], tmp_path: Path, sign: int, phase: str
) -> None:
    def work() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell inherit "ignore"
        with stoppable():
            run_to_the_end(model_path, tmp_path / "run", **OPTIONS)

    died = kill_once(work, phase, 3, 0.0, sign)
    assert died.phase and died.code == 130 and "Traceback" not in died.words
    assert "Interrupted at step " in died.words and "goes on from it" in died.words
    assert not (tmp_path / "run" / STAGING).exists()
    assert kill_once(lambda: run_to_the_end(model_path, tmp_path / "run", **OPTIONS)).code == 0
    assert what_remains(tmp_path / "run") == whole


def sft(model: str, folder: Path) -> None:
    """Stage 1 on twenty sentences, three epochs of five steps, a checkpoint every two."""
    said = [WORDS[i % 4] for i in range(20)]
    records = [{"prompt": [user(f"say {w}")], "completion": [{"role": "assistant", "content": w}]} for w in said]
    common: dict[str, Any] = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": "none"}
    common |= {"per_device_train_batch_size": 4, "save_steps": 2, "logging_steps": 3, "disable_tqdm": True}
    args = SEEDSFTConfig(output_dir=str(folder), learning_rate=1e-2, max_length=64, **common)
    trainer = build_sft_trainer(model, word_tokenizer(), args, records, 0.1)
    trainer.train(resume_from_checkpoint="latest" if newest(folder)[0] else None)
    trainer.export()


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_stage_1_killed_in_every_epoch_ends_with_the_same_bytes(model_path: str, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert kill_once(lambda: sft(model_path, whole)).code == 0
    for occurrence, delay in ((2, 0.0), (3, 0.02), (2, 0.005)):
        assert kill_once(lambda: sft(model_path, parts), "saving", occurrence, delay).code == -signal.SIGKILL
    assert kill_once(lambda: sft(model_path, parts)).code == 0
    assert what_remains(parts) == what_remains(whole)
    again = kill_once(lambda: sft(model_path, parts))
    assert again.code == 0 and "already finished" in again.words


class FullDisk(TrainerCallback):
    """From a step on, no file of this process may grow beyond so many bytes."""

    def __init__(self, step: int, most: int) -> None:
        self.step, self.most = step, most

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == self.step:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.most, self.most))


@pytest.mark.parametrize("most", [0, 6_000, 60_000], ids=["no line", "no rng state", "no weights"])
def test_a_full_disk_ends_the_run_in_one_line_and_changes_nothing(
    model_path: str, whole: dict[str, Any], tmp_path: Path, most: int
) -> None:
    folder, disk = tmp_path / "run", FullDisk(8, most)
    died = kill_once(lambda: run_to_the_end(model_path, folder, **OPTIONS, callbacks=[disk]))
    assert died.code == 2, died.words
    told = died.words.splitlines()[-1]
    assert "cannot be" in told and f"The last checkpoint is {folder / 'checkpoint-8'}" in told
    assert not (folder / STAGING).exists()
    assert len(checkpoints(folder)) >= 2 and all(not fault(path) for _, path in checkpoints(folder))
    assert kill_once(lambda: run_to_the_end(model_path, folder, **OPTIONS)).code == 0
    assert what_remains(folder) == whole


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 600 kB: two checkpoints and a half."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("small disk: this user may not mount a tmpfs")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_small_disk_that_is_made_larger_changes_nothing(
    model_path: str, whole: dict[str, Any], small_disk: Path
) -> None:
    folder = small_disk / "run"
    died = kill_once(lambda: run_to_the_end(model_path, folder, **OPTIONS))
    assert died.code == 2, died.words
    told = died.words.splitlines()[-1]
    assert "cannot be" in told and "The last checkpoint is " in told
    assert all(not fault(path) for _, path in checkpoints(folder)) and not (folder / STAGING).exists()
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    assert kill_once(lambda: run_to_the_end(model_path, folder, **OPTIONS)).code == 0
    assert what_remains(folder) == whole
