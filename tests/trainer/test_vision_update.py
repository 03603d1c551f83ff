"""One SEED update with pictures on each vision id: a tiny random Qwen2.5-VL, without downloads or torchvision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

import seed_envs
from seed_envs.profiles import get_profile
from seed_envs.registration import find_row, load_attribute
from seed_envs.trajectory import Trajectory
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.skills.analyzer import SkillWriter
from seed_trainer.skills.parsing import HindsightSkill
from seed_trainer.skills.prompts import Outcome
from seed_trainer.trainer import SEEDTrainer

SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ENV_IDS = ("seed/Sokoban-v0", "seed/EZPoints-v0", "seed/Points24-v0")


class ImageProcessor(Qwen2_5_VLProcessor):
    """Qwen2.5-VL's processor without its video half, which alone needs torchvision."""

    def __init__(self, image_processor: Any = None, tokenizer: Any = None, chat_template: Any = None) -> None:
        super().__init__(image_processor, tokenizer, chat_template=chat_template)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer trained on the environments' own prompts."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    texts = [get_profile(env_id, "paper").template.first for env_id in ENV_IDS]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=800, min_frequency=1, initial_alphabet=alphabet, special_tokens=SPECIAL, show_progress=False
    )
    core.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<|endoftext|>", eos_token="<|im_end|>", padding_side="left"
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2_5_VLForConditionalGeneration:
    """About 100,000 random parameters."""
    ids: dict[str, Any] = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL}
    torch.manual_seed(0)
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 2048,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3]},
            "pad_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"], "bos_token_id": None,
        },
        vision_config={
            "depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32,
            "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "fullatt_block_indexes": [0],
            "window_size": 112, "tokens_per_second": 2,
        },
        image_token_id=ids["<|image_pad|>"], video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"], vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=True,
    )  # fmt: skip
    return Qwen2_5_VLForConditionalGeneration(config)


@pytest.fixture(scope="module")
def processor() -> Iterator[ImageProcessor]:
    yield ImageProcessor(Qwen2VLImageProcessorPil(min_pixels=28 * 28), make_tokenizer(), chat_template=CHAT_TEMPLATE)


@pytest.mark.parametrize(("env_id", "tokens"), list(zip(ENV_IDS, (36, 121, 121), strict=True)))
def test_one_tile_is_one_token_and_cards_are_not_resampled(processor: ImageProcessor, env_id: str, tokens: int) -> None:
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


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_one_update_with_pictures_changes_language_and_vision_weights(
    env_id: str, processor: ImageProcessor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The random model reads every episode and its pictures but cannot write; the annotator writes for it."""
    annotate, write = load_attribute(find_row(env_id).annotator), SkillWriter.write
    asked: list[str] = []

    def write_for_it(
        self: SkillWriter, episodes: Sequence[Trajectory], outcomes: Sequence[Outcome]
    ) -> list[HindsightSkill]:
        asked.extend(skill.reason for skill in write(self, episodes, outcomes))
        return [HindsightSkill(annotate(episode)) for episode in episodes]

    monkeypatch.setattr(SkillWriter, "write", write_for_it)
    profile = get_profile(env_id, "paper")
    make_model(processor.tokenizer).save_pretrained(tmp_path / "model")
    args = SEEDConfig(
        output_dir=str(tmp_path / "run"), use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none",
        disable_tqdm=True, per_device_train_batch_size=4, steps_per_generation=1, num_generations=2, rounds=1,
        max_turn_length=4, max_skill_length=6, max_analysis_length=8, learning_rate=1e-3, save_strategy="no",
        log_episodes=0, rollout_layout="turn", rollout_engine="trl", seed=3,
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
