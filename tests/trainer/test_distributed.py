"""Two processes over gloo: equal rows, equal weights, every episode played once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
sys.path[:0] = {paths!r}
import torch
from datasets import Dataset
from word_world import GROWING, WORDS, make_word_env, word_tokenizer
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.trainer import SEEDTrainer

args = SEEDConfig(
    output_dir={folder!r}, use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none",
    disable_tqdm=True, per_device_train_batch_size=4, steps_per_generation=2, num_generations=4, max_turn_length=3,
    rounds=2, learning_rate=1e-3, save_strategy="no", opd_coef=0.3, log_episodes=0, max_skill_length=2,
    eval_rounds=1, eval_repeats=2, staleness_ages="0,1", staleness_every=1, gradient_every=1, staleness_gradients=True,
)
trainer = SEEDTrainer(
    model={model!r}, args=args, make_env=lambda: make_word_env(GROWING), profile=GROWING, env_id="words",
    train_dataset=Dataset.from_dict({{"task_id": WORDS * 4}}), eval_dataset=Dataset.from_dict({{"task_id": WORDS}}),
    processing_class=word_tokenizer(),
)
shapes = []
score = trainer._score
def spy(block):
    batch = score(block)
    shapes.append([len(block.rows), sum(not row.filler for row in block.rows), len(batch["prompt_ids"])])
    return batch
trainer._score = spy
splice = trainer._splice
def only_the_first_process_has_skills(block):
    if trainer.accelerator.process_index:
        for skill in block.skills:
            skill.reason = "blank"
    splice(block)
trainer._splice = only_the_first_process_has_skills
trainer.train()
weights = torch.cat([p.detach().flatten() for p in trainer.accelerator.unwrap_model(trainer.model).parameters()])
rank = trainer.accelerator.process_index
record = {{"shapes": shapes, "sum": weights.double().sum().item(), "processes": trainer.accelerator.num_processes}}
open({folder!r} + f"/rank{{rank}}.json", "w").write(json.dumps(record))
trainer.player.close()
trainer.end()
"""


def test_two_processes_hold_equal_rows_and_end_with_equal_weights(model_path: str, tmp_path: Path, repo: Path) -> None:
    script = tmp_path / "run.py"
    paths = [str(repo), str(repo / "tests" / "helpers")]
    script.write_text(SCRIPT.format(paths=paths, folder=str(tmp_path), model=model_path))
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc_per_node=2"]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", str(script)]  # the launcher finds a free port
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    if done.returncode and "Gloo" in done.stderr and "not" in done.stderr and "available" in done.stderr:
        pytest.skip("Linux: this build of PyTorch has no gloo back end")
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    assert first["processes"] == 2 and first["sum"] == second["sum"]
    for (rows, real, padded), (other_rows, other_real, other_padded) in zip(
        first["shapes"], second["shapes"], strict=True
    ):
        assert rows == other_rows == padded == other_padded >= max(real, other_real)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["eval_episodes"] for line in lines if "eval_episodes" in line] == [8.0, 8.0]
    assert [line["skill/valid"] <= 0.5 for line in lines if "skill/valid" in line] == [True, True]
    assert all(
        {"stale/gate_gap/0", "stale/gate_gap/noise", "opd/grad_ratio"} <= set(line) for line in lines if "loss" in line
    )


ACCELERATE = """
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_CPU
use_cpu: true
num_machines: 1
num_processes: 2
machine_rank: 0
mixed_precision: "no"
main_process_port: 0
"""


@pytest.mark.parametrize("method", ["seed", "vanilla"])
def test_the_command_launches_itself_over_two_processes(method: str, tmp_path: Path, repo: Path) -> None:
    (tmp_path / "two.yaml").write_text(ACCELERATE)
    command = [sys.executable, "-m", "seed_trainer", "rl", "--config", "smoke_cpu", "--method", method]
    command += ["--model_name_or_path", "builtin/alfworld-tiny", "--output_dir", str(tmp_path / "run")]
    command += ["--accelerate_config", str(tmp_path / "two.yaml")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, cwd=repo, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    if method == "vanilla":
        assert done.stdout.count('"eval_success"') == 1, "one process reports"
    else:
        assert done.stdout.count("95 % interval") == 1, "one process reports"
        lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines if "env/success" in line] == [2, 4]
