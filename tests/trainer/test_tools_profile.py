"""``seed-train`` with the profile ``tools``: a model with Qwen2.5's tokenizer and random weights, and a refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

from seed_envs import get_profile
from seed_envs.chat import build_messages
from seed_envs.profiles import TurnContext
from seed_trainer.cli import main
from seed_trainer.stage1.sft import as_dataset

SHORT = ["--env_id", "seed/EZPoints-v0", "--env_profile", "tools", "--train_split", "train", "--eval_split", ""]
ROUND = [
    "--eval_rounds",
    "0",
    "--rounds",
    "1",
    "--env_max_steps",
    "2",
    "--max_prompt_length",
    "1500",
    "--steps_per_generation",
    "1",
]


@pytest.fixture
def model(tmp_path: Path, data_dir: Path) -> Path:
    folder = data_dir / "tokenizers" / "qwen2.5"
    if not folder.is_dir():
        pytest.skip(f"real data: {folder} is missing")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=4096, eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["turn", "episode"])
def test_a_round_of_training(model: Path, tmp_path: Path, layout: str) -> None:
    run = tmp_path / "run"
    options = ["rl", "--config", "smoke_cpu", "--model_name_or_path", str(model), "--output_dir", str(run)]
    assert main([*options, *SHORT, *ROUND, "--steps_per_generation", "1", "--rollout_layout", layout]) == 0
    episodes = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    turns = [turn for episode in episodes for turn in episode["turns"]]
    assert turns and all(not turn["readable"] and "tool call" in turn["reason"] for turn in turns)  # random weights


def test_a_template_without_tools_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["rl", "--config", "smoke_cpu", "--model_name_or_path", "builtin/alfworld-tiny", "--output_dir"]
    assert main([*options, str(tmp_path / "run"), *SHORT, *ROUND]) == 2
    assert "this chat template does not show the tools ['act']" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_stage_1_trains_on_conversations_with_their_tools() -> None:
    prompt = build_messages(get_profile("seed/Sokoban-v0", "tools"), [TurnContext("g", "o")], [])
    (row,) = as_dataset([{"prompt": prompt, "completion": [{"role": "assistant", "content": "a"}]}])
    assert json.loads(row["tools"])[0]["function"]["name"] == "act"
    assert [set(message) for message in row["prompt"]] == [{"role", "content"}] * 2
