"""One SEED update with pictures on each vision id, in both layouts: a tiny random Qwen2.5-VL, without torchvision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from tiny_vision import ENV_IDS, make_model, make_processor
from transformers import PreTrainedTokenizerFast

import seed_envs
from seed_envs.profiles import get_profile
from seed_envs.registration import find_row, load_attribute
from seed_envs.trajectory import Trajectory
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.skills.analyzer import SkillWriter
from seed_trainer.skills.parsing import HindsightSkill
from seed_trainer.skills.prompts import Outcome
from seed_trainer.trainer import SEEDTrainer


@pytest.fixture(scope="module")
def processor() -> Any:
    return make_processor("qwen2.5")


@pytest.mark.parametrize(("env_id", "tokens"), list(zip(ENV_IDS, (36, 121, 121), strict=True)))
def test_one_tile_is_one_token_and_cards_are_not_resampled(processor: Any, env_id: str, tokens: int) -> None:
    observation, _ = seed_envs.make_agent_env(env_id, "paper").reset(seed=0)
    encoded = processor.image_processor(images=[observation["image"]], return_tensors="pt")
    assert int(encoded["image_grid_thw"].prod()) // 4 == tokens


@pytest.mark.parametrize(("env_id", "image_tokens"), list(zip(ENV_IDS, (36, 121, 121), strict=True)))
def test_paper_prompts_fit_1024_tokens_of_the_backbone(data_dir: Path, env_id: str, image_tokens: int) -> None:
    folders = sorted((data_dir / "tokenizers").glob("*2.5*"))
    if not folders:
        pytest.skip("real data: the Qwen2.5 tokenizer is missing")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folders[0] / "tokenizer.json"))
    env = seed_envs.make_agent_env(env_id, "paper")
    observation, info = env.reset(seed=0)
    longest = len(tokenizer(observation["text"])["input_ids"])
    for _ in range(5):
        observation, _, _, _, info = env.step("<image>" * 400)
        longest = max(longest, len(tokenizer(observation["text"])["input_ids"]))
        skilled = info["turn"]
    with_skill = get_profile(env_id, "paper").template.render(skilled, "Plan before you push or play. " * 30)
    assert longest + image_tokens < 700
    assert len(tokenizer(with_skill)["input_ids"]) + image_tokens < 1024


@pytest.mark.parametrize("layout", ["turn", "episode"])
@pytest.mark.parametrize("env_id", ENV_IDS)
def test_one_update_with_pictures_changes_language_and_vision_weights(
    env_id: str, layout: Any, processor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The random model reads every episode and its pictures but cannot write; the annotator writes for it."""
    annotate, write = load_attribute(find_row(env_id).annotator), SkillWriter.write
    asked: list[str] = []

    def write_for_it(
        self: SkillWriter, episodes: Sequence[Trajectory], outcomes: Sequence[Outcome], purpose: str
    ) -> list[HindsightSkill]:
        asked.extend(skill.reason for skill in write(self, episodes, outcomes, purpose))
        return [HindsightSkill(annotate(episode)) for episode in episodes]

    monkeypatch.setattr(SkillWriter, "write", write_for_it)
    profile = get_profile(env_id, "paper")
    make_model("qwen2.5", processor.tokenizer).save_pretrained(tmp_path / "model")
    args = SEEDConfig(
        output_dir=str(tmp_path / "run"), use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none",
        disable_tqdm=True, per_device_train_batch_size=4, steps_per_generation=1, num_generations=2, rounds=1,
        max_turn_length=4, max_skill_length=6, max_analysis_length=8, learning_rate=1e-3, save_strategy="no",
        log_episodes=0, rollout_layout=layout, seed=3,
    )  # fmt: skip
    trainer = SEEDTrainer(
        model=str(tmp_path / "model"),
        args=args,
        make_env=lambda: seed_envs.make_agent_env(env_id, "paper", max_steps=2),
        profile=profile,
        env_id=env_id,
        train_dataset=Dataset.from_list([{"seed": seed, "split": "train"} for seed in range(4)]),
        processing_class=processor,
    )
    model: Any = trainer.model
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    trainer.train()
    assert len(asked) == 4
    assert all(asked)
    changed = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert any("visual" in name for name in changed)
    assert any("language_model" in name for name in changed)
    metrics = {key: value for row in trainer.state.log_history for key, value in row.items()}
    assert metrics["opd/loss"] != 0
    assert torch.isfinite(torch.tensor(metrics["train_loss"]))
