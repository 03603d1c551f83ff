"""Checkpoints that are whole or absent, the order of tasks, and whose checkpoint is resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import skip_first_batches
from accelerate.data_loader import prepare_data_loader
from datasets import Dataset
from kill_training import build, run_to_the_end, what_remains
from safetensors.torch import load_file
from torch.utils.data import DataLoader
from transformers import TrainerCallback
from trl.trainer.utils import RepeatSampler
from word_world import WINDOW

from seed_trainer.errors import UserError
from seed_trainer.keeping.folder import STAGING, checkpoints, newest, publish_files, rotate
from seed_trainer.keeping.identity import differences, run_identity
from seed_trainer.keeping.kept import Diverged
from seed_trainer.keeping.manifest import MANIFEST, fault, read_manifest, write_manifest
from seed_trainer.keeping.order import TaskOrder, set_epoch
from seed_trainer.keeping.start import starting_point
from seed_trainer.settings.config import SEEDConfig

QUICK: dict[str, Any] = {"rounds": 4, "eval_rounds": 0, "eval_on_start": False, "skill_source": "generic"}


@pytest.fixture(scope="module")
def whole(model_path: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of four rounds, two per epoch, with a checkpoint after each."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    run_to_the_end(model_path, folder, save_total_limit=10, **QUICK)
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A copy of it to break."""
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def go_on(model: str, folder: Path, wanted: Any = "latest", **options: Any) -> None:
    trainer = build(model, folder, **{**QUICK, "save_total_limit": 10, **options})
    trainer.train(resume_from_checkpoint=wanted)
    trainer.export()


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


# --------------------------------------------------------------------------------------------------- the order of tasks


def test_epochs_are_those_of_an_uninterrupted_run_in_any_order() -> None:
    settings: dict[str, Any] = {"mini_repeat_count": 2, "batch_size": 3, "repeat_count": 2, "seed": 7}
    original = RepeatSampler(range(10), **settings)
    uninterrupted = [list(original) for _ in range(5)]
    order = TaskOrder.like(RepeatSampler(range(10), **settings))
    for epoch in (3, 0, 4, 4, 1, 2):
        order.set_epoch(epoch)
        assert list(order) == uninterrupted[epoch]
    assert len(set(map(tuple, uninterrupted))) == 5


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("skipped", [0, 1])
def test_the_epoch_reaches_the_sampler_through_every_wrapper(processes: int, skipped: int) -> None:
    def batches(epoch: int) -> list[list[int]]:
        order = TaskOrder(range(12), 1, 2, 1, True, 5)
        loader: Any = DataLoader(list(range(12)), batch_size=2, sampler=order)  # type: ignore[arg-type]
        parts = []
        for index in range(processes):
            prepared = prepare_data_loader(loader, num_processes=processes, process_index=index, put_on_device=False)
            set_epoch(prepared, epoch)
            if skipped:
                prepared = skip_first_batches(prepared, skipped)
            prepared.set_epoch(epoch)  # transformers' own call, which does not reach the sampler in every case
            parts += [batch.tolist() for batch in prepared]
        return parts

    assert batches(0) != batches(2) and batches(2) == batches(2)
    assert len(batches(2)) == 6 - skipped * processes


@pytest.mark.parametrize("step", [2, 4, 6])
def test_resuming_anywhere_repeats_the_rest_to_the_byte(model_path: str, whole: Path, copy: Path, step: int) -> None:
    go_on(model_path, copy, str(copy / f"checkpoint-{step}"))
    assert what_remains(copy) == what_remains(whole)
    assert len(list((copy / "earlier-1").glob("checkpoint-*"))) == 4 - step // 2, "the first attempt is kept apart"


def test_rounds_are_counted_right_when_an_epoch_ends_in_the_middle_of_a_step(model_path: str, tmp_path: Path) -> None:
    """Three rounds an epoch, two rounds a step: the second step of an epoch has one round."""
    options = {**QUICK, "gradient_accumulation_steps": 4, "train_tasks": 12, "rounds": -1, "max_steps": 4}
    options |= {"save_rounds": 0, "save_steps": 1, "logging_steps": 1, "save_total_limit": 10}
    run_to_the_end(model_path, tmp_path / "whole", **options)
    rounds = [json.loads(line)["round"] for line in (tmp_path / "whole" / "episodes.jsonl").read_text().splitlines()]
    assert rounds == [0, 1, 2, 3, 4, 5]
    shutil.copytree(tmp_path / "whole", tmp_path / "part")
    go_on(model_path, tmp_path / "part", str(tmp_path / "part" / "checkpoint-2"), **options)
    assert what_remains(tmp_path / "part") == what_remains(tmp_path / "whole")


# --------------------------------------------------------------------------------------------------- finished, and more


@pytest.mark.parametrize("wanted", ["latest", "checkpoint-8"])
def test_a_finished_run_is_left_as_it_is(
    model_path: str, copy: Path, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(copy)
    go_on(model_path, copy, wanted if wanted == "latest" else str(copy / wanted))
    assert contents(copy) == before and "already finished: all 8 steps" in capsys.readouterr().err


def test_more_rounds_go_on_as_if_they_had_been_asked_for_at_once(model_path: str, copy: Path, tmp_path: Path) -> None:
    run_to_the_end(model_path, tmp_path / "longer", **{**QUICK, "rounds": 6, "save_total_limit": 10})
    go_on(model_path, copy, rounds=6)
    assert what_remains(copy) == what_remains(tmp_path / "longer")


def test_a_run_killed_between_its_last_checkpoint_and_its_model_saves_the_model(
    model_path: str, whole: Path, copy: Path
) -> None:
    (copy / MANIFEST).unlink()
    (copy / "model.safetensors").write_bytes(b"half")
    go_on(model_path, copy)
    assert fault(copy) == "" and (copy / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_a_fresh_run_in_a_used_folder_does_not_resume_the_older_one(model_path: str, copy: Path) -> None:
    run_to_the_end_anew = build(model_path, copy, **{**QUICK, "rounds": 1, "seed": 9})
    run_to_the_end_anew.train()
    assert [step for step, _ in checkpoints(copy)] == [2]
    kept = copy / "earlier-1"
    assert len(checkpoints(kept)) == 4 and (kept / "metrics.jsonl").exists() and (kept / "episodes.jsonl").exists()


# ---------------------------------------------------------------------------------------------------------- broken ones


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "harm", "message"),
    [
        ("trainer_state.json", Path.unlink, "trainer_state.json is missing"),
        ("optimizer.pt", truncate, "optimizer.pt has 100 bytes, "),
        ("model.safetensors", flip, "model.safetensors is not what was saved"),
        (MANIFEST, Path.unlink, "no manifest.json"),
        (MANIFEST, truncate, "no manifest.json"),
        ("seed_state/process-0.json", Path.unlink, "seed_state/process-0.json is missing"),
    ],
)
def test_latest_is_the_newest_complete_one_and_a_broken_one_is_named(
    model_path: str, copy: Path, name: str, harm: Callable[[Path], None], message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for path in (copy / MANIFEST, copy / "checkpoint-8" / MANIFEST):
        path.unlink()
    harm(copy / "checkpoint-6" / name)
    trainer = build(model_path, copy, **QUICK)
    start = starting_point("latest", trainer.args, trainer.identity)
    assert start is not None and start.folder.name == "checkpoint-4" and start.step == 4 and not start.finished
    told = capsys.readouterr().err
    assert "skipped checkpoint-8: no manifest.json" in told and f"skipped checkpoint-6: {message}" in told
    with pytest.raises(UserError, match="checkpoint-6' is not complete: "):
        trainer.train(resume_from_checkpoint=str(copy / "checkpoint-6"))


def test_a_folder_without_a_complete_checkpoint_says_why(model_path: str, copy: Path) -> None:
    for path in copy.rglob(MANIFEST):
        path.unlink()
    trainer = build(model_path, copy, **QUICK)
    with pytest.raises(UserError, match=r"no checkpoint to resume from in .*checkpoint-2: no manifest"):
        trainer.train(resume_from_checkpoint="latest")


def test_a_checkpoint_of_an_earlier_version_is_taken_if_one_means_it(model_path: str, copy: Path) -> None:
    shutil.rmtree(copy / "checkpoint-4" / "seed_state")
    (copy / "checkpoint-4" / MANIFEST).unlink()
    with pytest.raises(UserError, match="--resume_anyway tries it all the same"):
        go_on(model_path, copy, str(copy / "checkpoint-4"))
    go_on(model_path, copy, str(copy / "checkpoint-4"), resume_anyway=True)
    lines = (copy / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines if "loss" in json.loads(line)] == [2, 4, 6, 8]
    (copy / "checkpoint-2" / MANIFEST).unlink()
    (copy / "checkpoint-2" / "trainer_state.json").unlink()
    with pytest.raises(UserError, match="trainer_state.json is not readable"):
        go_on(model_path, copy, str(copy / "checkpoint-2"), resume_anyway=True)


def test_a_checkpoint_of_weights_alone_is_not_resumed_in_silence(model_path: str, tmp_path: Path) -> None:
    options = {**QUICK, "save_only_model": True, "rounds": 2}
    run_to_the_end(model_path, tmp_path / "run", **options)
    with pytest.raises(UserError, match="saved with save_only_model"):
        go_on(model_path, tmp_path / "run", rounds=4)


# ------------------------------------------------------------------------------------------------------- another run's


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 1e-2}, "learning_rate is 0.01 here and 0.001 there"),
        ({"seed": 4}, "seed is 4 here and 3 there"),
        ({"opd_coef": 0.0}, "opd_coef is 0.0 here and 0.3 there"),
        ({"profile": WINDOW}, "env_profile is 'words-window' here and 'words' there"),
        ({"train_tasks": 16}, "tasks is '16, sha256 "),
        ({"seed": 4, "beta": 0.5}, "beta is 0.5 here and 0.01 there"),
    ],
)
def test_another_runs_checkpoint_is_refused_by_name(
    model_path: str, copy: Path, options: dict[str, Any], message: str
) -> None:
    before = contents(copy)
    for wanted in ("latest", str(copy / "checkpoint-4")):
        with pytest.raises(UserError, match="belongs to another run: ") as caught:
            go_on(model_path, copy, wanted, **options)
        assert message in str(caught.value) and "--resume_anyway" in str(caught.value)
    assert contents(copy) == before


def test_another_model_is_another_run(model_path: str, copy: Path, tmp_path: Path) -> None:
    shutil.copytree(model_path, tmp_path / "model")
    flip(tmp_path / "model" / "model.safetensors")
    with pytest.raises(UserError, match="model is .*here and .*there"):
        go_on(str(tmp_path / "model"), copy)


def test_one_may_mean_it(model_path: str, copy: Path) -> None:
    go_on(model_path, copy, str(copy / "checkpoint-4"), learning_rate=1e-2, resume_anyway=True)
    record = read_manifest(copy / "checkpoint-8")
    assert record is not None and record["run"]["learning_rate"] == 1e-2


def test_what_is_watched_and_where_it_goes_is_not_the_run(tmp_path: Path) -> None:
    common: dict[str, Any] = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    one = SEEDConfig(output_dir=str(tmp_path / "a"), rounds=3, save_rounds=1, **common)
    two = SEEDConfig(output_dir=str(tmp_path / "b"), rounds=9, eval_rounds=2, logging_steps=4, run_name="x", **common)
    assert differences(run_identity(one), run_identity(two)) == []
    assert "hub_token" not in run_identity(one)


# -------------------------------------------------------------------------------------------------------- divergence


class Poison(TrainerCallback):
    """Makes something not finite at a step: the weights after it, or the gradient of it."""

    def __init__(self, what: str, step: int) -> None:
        self.what, self.step = what, step

    def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        if self.what == "gradient" and state.global_step == self.step:
            next(model.parameters()).register_hook(lambda gradient: gradient * torch.inf)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        if self.what == "weights" and state.global_step == self.step:
            with torch.no_grad():
                next(model.parameters()).fill_(torch.nan)


@pytest.mark.parametrize(
    ("what", "step", "message"),
    [
        ("weights", 5, "the loss of step 6 is nan"),
        ("weights", 6, r"weight .* is not finite after step 6, and is not saved"),
        ("gradient", 5, "the gradient of step 6 is "),
    ],
)
def test_a_diverged_run_stops_before_it_saves(
    model_path: str, tmp_path: Path, what: str, step: int, message: str
) -> None:
    trainer = build(model_path, tmp_path, **QUICK, save_total_limit=1, callbacks=[Poison(what, step)])
    with pytest.raises(Diverged, match=message) as caught:
        trainer.train()
    assert f"The last good checkpoint is {tmp_path / 'checkpoint-4'}" in str(caught.value)
    last, skipped = newest(tmp_path)
    assert last == tmp_path / "checkpoint-4" and not skipped and not (tmp_path / STAGING).exists()
    assert all(bool(value.isfinite().all()) for value in load_file(last / "model.safetensors").values())


def test_the_checkpoint_before_stays_until_the_next_one_has_proved_good(model_path: str, tmp_path: Path) -> None:
    """Weights that are finite but absurd pass into a checkpoint; the one before is what one goes back to."""

    class Absurd(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
            if state.global_step == 6:
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.mul_(1e30)

    trainer = build(model_path, tmp_path, **QUICK, save_total_limit=1, callbacks=[Absurd()])
    with pytest.raises(Diverged, match="has diverged") as caught:
        trainer.train()
    assert [step for step, _ in checkpoints(tmp_path)] == [4, 6]
    assert f"The last good checkpoint is {tmp_path / 'checkpoint-4'}; --resume_from" in str(caught.value)


# ----------------------------------------------------------------------------------------------------------- the folder


def saved(folder: Path, step: int) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "weights").write_text(str(step))
    write_manifest(path, {"step": step})
    return path


def test_rotation_counts_complete_checkpoints_and_keeps_the_newest(tmp_path: Path) -> None:
    paths = [saved(tmp_path, step) for step in (2, 4, 10, 12)]
    (paths[3] / MANIFEST).unlink()
    rotate(tmp_path, 1)
    assert [step for step, _ in checkpoints(tmp_path)] == [10, 12]
    saved(tmp_path, 14)
    rotate(tmp_path, 1, [paths[2]])
    assert [step for step, _ in checkpoints(tmp_path)] == [10, 12, 14]
    rotate(tmp_path, None)
    assert len(checkpoints(tmp_path)) == 3


def test_limits_hold_in_a_run(model_path: str, tmp_path: Path) -> None:
    run_to_the_end(model_path, tmp_path, **QUICK, save_total_limit=2)
    assert [step for step, _ in checkpoints(tmp_path)] == [6, 8]


def test_files_replace_older_ones(tmp_path: Path) -> None:
    (tmp_path / "new" / "part").mkdir(parents=True)
    (tmp_path / "old").mkdir()
    (tmp_path / "new" / "part" / "b").write_text("2")
    (tmp_path / "new" / "a").write_text("1")
    (tmp_path / "old" / "a").write_text("0")
    assert publish_files(tmp_path / "new", tmp_path / "old") == ["a", "part/b"]
    assert (tmp_path / "old" / "a").read_text() == "1" and (tmp_path / "old" / "part" / "b").read_text() == "2"


def test_the_best_checkpoint_is_known_by_its_final_name(model_path: str, tmp_path: Path) -> None:
    options = {**QUICK, "load_best_model_at_end": True, "metric_for_best_model": "eval_success"}
    options |= {"eval_strategy": "steps", "eval_steps": 2, "save_steps": 2}
    trainer = build(model_path, tmp_path, **options, save_total_limit=1)
    trainer.train()
    best = trainer.state.best_model_checkpoint
    assert best is not None and Path(best).parent == tmp_path and fault(Path(best)) == ""


def test_the_order_of_tasks_changes_the_fact_of_a_dataset() -> None:
    from seed_trainer.keeping.identity import fingerprint

    one, two = Dataset.from_dict({"task_id": ["a", "b"]}), Dataset.from_dict({"task_id": ["b", "a"]})
    assert fingerprint(one.to_dict()) != fingerprint(two.to_dict())
