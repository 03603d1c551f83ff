"""A picture per turn, in both layouts: ids, grids, positions and scores agree with the model's own reading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from picture_world import GROWING, TASKS, WINDOW, make_picture_env
from tiny_vision import FAMILIES, UNITS, make_model, make_processor

from seed_envs.profiles import Profile
from seed_trainer.acting.rollout import tokens_of
from seed_trainer.learning.teacher import completion_logits, student_inputs
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.trainer import SEEDTrainer

LAYOUTS = pytest.mark.parametrize("profile", [GROWING, WINDOW], ids=["episode", "turn"])
ENGINES = pytest.mark.parametrize("engine", ["cached", "trl"])
Build = Callable[..., SEEDTrainer]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def build(family: str, tmp_path: Path) -> Build:
    """Return a factory of trainers on the picture world: 4 tasks x 2 episodes a round, two mini-batches."""

    def make(profile: Profile = GROWING, turns: int = 3, **options: Any) -> SEEDTrainer:
        processor = make_processor(family)
        make_model(family, processor.tokenizer, spread=5.0).save_pretrained(tmp_path / "model")
        settings: dict[str, Any] = {
            "output_dir": str(tmp_path / "run"), "use_cpu": True, "bf16": False, "gradient_checkpointing": False,
            "report_to": "none", "disable_tqdm": True, "per_device_train_batch_size": 4, "steps_per_generation": 2,
            "num_generations": 2, "max_turn_length": 5, "max_skill_length": 20, "max_analysis_length": 8, "rounds": 1,
            "learning_rate": 1e-3, "save_strategy": "no", "log_episodes": 0, "seed": 3, "skill_source": "generic",
            "rollout_layout": "episode" if profile.style == "growing" else "turn", "rollout_engine": "cached",
        }  # fmt: skip
        return SEEDTrainer(
            model=str(tmp_path / "model"),
            args=SEEDConfig(**{**settings, **options}),
            make_env=lambda: make_picture_env(profile, turns, UNITS[family]),
            profile=profile,
            train_dataset=Dataset.from_list([{"task_id": task} for task in TASKS]),
            processing_class=processor,
        )

    return make


def a_round(trainer: SEEDTrainer) -> dict[str, Any]:
    """Make one round's batch as training would."""
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"task_id": task} for task in TASKS for _ in range(2)])
    trainer._count([batch])
    return batch


def ids_of(batch: dict[str, Any], prefix: str, row: int) -> list[int]:
    found: list[int] = batch[f"{prefix}_ids"][row][batch[f"{prefix}_mask"][row].bool()].tolist()
    return found


@LAYOUTS
@ENGINES
def test_every_picture_stands_in_its_row_with_as_many_tokens_as_the_processor_makes(
    build: Build, family: str, profile: Profile, engine: str
) -> None:
    trainer = build(profile, rollout_engine=engine)
    batch = a_round(trainer)
    token = trainer.encoder.processing_class.image_token_id
    pictures = iter(batch["image_grid_thw"].tolist())
    assert batch["num_images"] == [3 if profile is GROWING else 1] * len(batch["prompt_ids"])
    for row, count in enumerate(batch["num_images"]):
        ids = ids_of(batch, "prompt", row) + ids_of(batch, "completion", row)
        runs = [len(run) for run in "".join("x" if i == token else " " for i in ids).split()]
        grids = [next(pictures) for _ in range(count)]
        assert runs == [t * h * w // 4 for t, h, w in grids]
        assert len(set(map(tuple, grids))) == count, "the pictures of a row differ in size"
    assert len(batch["pixel_values"]) == int(batch["image_grid_thw"].prod(-1).sum())
    sampled = batch["completion_ids"][(batch["completion_mask"] * batch["tool_mask"]).bool()]
    assert not bool((sampled == token).any())


@LAYOUTS
def test_ids_of_a_row_are_those_of_the_processor(build: Build, profile: Profile) -> None:
    """What our reader assembles from pictures read one by one is what the processor makes of a whole prompt."""
    trainer = build(profile)
    for episode in trainer._play([{"task_id": task} for task in TASKS for _ in range(2)]):
        for turn in tokens_of(episode)[: 1 if profile is GROWING else None]:
            text = trainer.encoder._render([turn.messages[:1]], generation_prompt=True)[0]
            encoded = trainer.encoder.processing_class(text=[text], images=[turn.images[:1]])
            assert turn.prompt_ids == list(encoded["input_ids"][0])


@LAYOUTS
def test_scores_of_the_rollout_are_those_of_the_full_forward(build: Build, profile: Profile) -> None:
    trainer = build(profile)
    batch = a_round(trainer)
    model, mask = trainer.model, (batch["completion_mask"] * batch["tool_mask"]).bool()
    scored = trainer.scorer.behaviour(batch)
    sampled = torch.zeros_like(scored)
    rows = iter(range(len(scored)))
    episodes = trainer._play([{"task_id": task} for task in TASKS for _ in range(2)])  # the same round once more
    for turns in map(tokens_of, episodes):
        for parts in [turns] if profile is GROWING else [[turn] for turn in turns]:
            row = next(rows)
            values = torch.tensor([value for turn in parts for value in turn.logprobs or []])
            sampled[row, mask[row]] = values
    torch.testing.assert_close(sampled[mask], scored[mask], atol=2e-5, rtol=0)

    # The same by the model's own forward pass, with the token types of whole rows.
    inputs = student_inputs(batch)
    plain = completion_logits(model, trainer.scorer.seeing(inputs["input_ids"], inputs), 1.0).log_softmax(-1)
    plain = plain.gather(-1, batch["completion_ids"][..., None])[..., 0]
    torch.testing.assert_close(plain[mask], scored[mask], atol=2e-5, rtol=0)

    # And it sees: another picture, other scores.
    blanked = student_inputs({**batch, "pixel_values": torch.zeros_like(batch["pixel_values"])})
    blind = trainer.scorer.logps(model, blanked)
    assert float((blind - scored)[mask].abs().max()) > 0.1


def test_both_layouts_agree_where_an_episode_has_one_turn(build: Build) -> None:
    batches = [a_round(build(profile, turns=1)) for profile in (GROWING, WINDOW)]
    for name, value in batches[0].items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, batches[1][name], msg=name)
        else:
            assert value == batches[1][name], name


@LAYOUTS
def test_teacher_prompt_minus_skill_is_the_student_prompt(build: Build, profile: Profile) -> None:
    trainer = build(profile)
    inputs = [{"task_id": task} for task in TASKS for _ in range(2)]
    trainer.model.train()
    trainer._prepare_inputs(inputs)
    assert trainer._buffered_inputs is not None
    for part in trainer._buffered_inputs:  # after TRL's shuffle and split
        for row in range(len(part["prompt_ids"])):
            student, teacher = ids_of(part, "prompt", row), ids_of(part, "teacher_prompt", row)
            more = len(teacher) - len(student)
            (cut, *_) = [at for at in range(len(student)) if teacher[:at] + teacher[at + more :] == student]
            assert "Advice: Think" in trainer.encoder.decode(teacher[cut : cut + more])


@LAYOUTS
def test_an_update_trains_both_halves_with_a_teacher_that_sees(build: Build, profile: Profile) -> None:
    trainer = build(profile, opd_coef=0.5)
    before = {name: value.detach().clone() for name, value in trainer.model.named_parameters()}
    trainer.train()
    changed = {name for name, value in trainer.model.named_parameters() if not torch.equal(value, before[name])}
    assert any("visual" in name for name in changed) and any("language_model" in name for name in changed)
    metrics = {key: value for row in trainer.state.log_history for key, value in row.items()}
    assert metrics["opd/loss"] != 0 and metrics["opd/abs_delta_mean"] > 1e-4


def test_one_picture_goes_through_the_processor_once_a_round(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = build(WINDOW, beta=0.01)
    processor = type(trainer.encoder.processing_class.image_processor)
    seen: list[bytes] = []
    original = processor.preprocess

    def counting(self: Any, images: Any, *args: Any, **kwargs: Any) -> Any:
        seen.extend(picture.tobytes() for row in images for picture in (row if isinstance(row, list) else [row]))
        return original(self, images, *args, **kwargs)

    monkeypatch.setattr(processor, "preprocess", counting)
    trainer.train()
    assert sum(line.get("time/pictures", 0.0) for line in trainer.state.log_history) > 0
    # Two episodes of a task see the same three pictures; the analyzer reads no others.
    assert len(set(seen)) == 12
    assert len(seen) <= 12 + 2, "two pictures once more, to see whether several in one conversation are read alike"
