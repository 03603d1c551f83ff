"""Whole rounds of updates, step by step, against plain PyTorch: loss and gradient of every micro-batch and step."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plain_update
import pytest
import torch
from plain_update import Recipe
from transformers import AutoModelForCausalLM
from trl.kernels import ChunkedLogProbFunction
from word_world import GROWING, WINDOW, WORDS

from seed_trainer.learning.aggregation import SUMS, aggregate
from seed_trainer.learning.rounds import Block
from seed_trainer.skills.parsing import HindsightSkill
from seed_trainer.trainer import SEEDTrainer

TrainerFactory = Callable[..., SEEDTrainer]
MICRO_BATCHES = 2
LOSS_TYPES = sorted(SUMS)
LAYOUTS = {"episode": GROWING, "turn": WINDOW}
EVERY = list(itertools.product(LAYOUTS, (1, 2, 4), (1, 2), ("live", "snapshot"), LOSS_TYPES))
"""Layout, accumulation below, equal to and above the micro-batches of a round, passes, teacher, loss type."""
SIZE = len(LOSS_TYPES)
SOME = [case for index, case in enumerate(EVERY) if index % SIZE == index // SIZE % SIZE]
"""Every combination of the others once, the loss types in turn."""
REST = [case for case in EVERY if case not in SOME]

ROUNDING = 1e-6
"""Largest difference of a gradient, times its largest entry if that is above 1."""


def some_skills(episodes: Any, *rest: Any) -> list[HindsightSkill]:
    """Two of three episodes get a skill, of different lengths."""
    return [
        HindsightSkill(" ".join([WORDS[index % 4]] * (1 + index % 2)), "" if index % 3 else "blank")
        for index in range(len(episodes))
    ]


def gradient(model: Any) -> torch.Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def play(trainer: SEEDTrainer, blocks: list[Block]) -> list[dict[str, Any]]:
    """Make one round as training does, with ragged episodes and eight fillers more than it needs."""
    trainer._buffered_inputs = None
    trainer._prepare_inputs([{"task_id": word} for word in WORDS[:2] for _ in range(4)])
    parts: Any = trainer._buffered_inputs
    assert sum(row.filler for row in blocks[-1].rows) >= 8
    assert len({len(episode.steps) for episode in blocks[-1].episodes}) > 1, "episodes differ in length"
    return list(parts)


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every part of a model keep its precision."""
    plain_update.keep_precision(monkeypatch.setattr)


def check(make_trainer: TrainerFactory, case: tuple[str, int, int, str, str]) -> None:
    layout, accumulation, iterations, policy, loss_type = case
    trainer = make_trainer(
        LAYOUTS[layout], per_device_train_batch_size=4, gradient_accumulation_steps=accumulation, beta=0.05,
        num_iterations=iterations, teacher_policy=policy, loss_type=loss_type, opd_coef=0.3, env_turns=4,
    )  # fmt: skip
    trainer.model.double().train()
    assert trainer.ref_model is not None
    trainer.ref_model.double()
    trainer.current_gradient_accumulation_steps = accumulation
    trainer.analyst.teaching_skills = some_skills  # type: ignore[method-assign, assignment]
    target, watch, blocks = trainer._filler_target, trainer._watch, []
    trainer._filler_target = lambda rows: target(rows) + 8  # type: ignore[method-assign]
    trainer._watch = lambda block, *rest: (blocks.append(block), watch(block, *rest))  # type: ignore
    plain = AutoModelForCausalLM.from_pretrained(trainer.model.config._name_or_path, dtype=torch.float64)
    start = AutoModelForCausalLM.from_pretrained(trainer.model.config._name_or_path, dtype=torch.float64)
    max_length = trainer.args.max_completion_length
    recipe = Recipe(loss_type, MICRO_BATCHES, accumulation, max_length=max_length)
    steps = [torch.optim.SGD(model.parameters(), lr=0.03) for model in (trainer.model, plain)]
    done = 0
    for _ in range(max(1, accumulation // (MICRO_BATCHES * iterations))):
        parts = play(trainer, blocks)
        returns = [sum(step.reward for step in episode.steps) for episode in blocks[-1].episodes]
        taught = [skill.valid for skill in blocks[-1].skills]
        rows = [plain_update.plain_rows(part, plain_update.advantages(returns, 4), taught) for part in parts]
        for part in rows:
            plain_update.freeze(part, plain, start)
        for at in range(MICRO_BATCHES * iterations):
            loss = trainer._compute_loss(trainer.model, parts[at % MICRO_BATCHES])
            expected = plain_update.micro_loss(recipe, plain, rows[at % MICRO_BATCHES], rows, policy == "live")
            torch.testing.assert_close(loss.double(), expected, atol=1e-6, rtol=1e-6)
            loss.backward()
            expected.backward()
            done += 1
            if done % accumulation == 0:
                found, wanted = gradient(trainer.model), gradient(plain)
                scale = float(wanted.abs().max())
                assert scale > 1e-3 and float((found - wanted).abs().max()) <= ROUNDING * max(1.0, scale)
                for step in steps:
                    step.step()
                    step.zero_grad()


@pytest.mark.parametrize("case", SOME, ids=lambda case: "-".join(map(str, case)))
def test_updates_equal_plain_pytorch(make_trainer: TrainerFactory, double: None, case: Any) -> None:
    check(make_trainer, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", REST, ids=lambda case: "-".join(map(str, case)))
def test_updates_equal_plain_pytorch_everywhere(make_trainer: TrainerFactory, double: None, case: Any) -> None:
    check(make_trainer, case)


def test_the_head_in_double_is_the_head_of_trl() -> None:
    """Log-probabilities, entropies and gradients are TRL's to single precision, and more exact than these."""
    generator = torch.Generator().manual_seed(0)
    hidden, weight, weights = (torch.randn(size, generator=generator) for size in ((5, 8), (11, 8), (2, 5)))
    targets = torch.tensor([0, 10, 3, 3, 7])
    found = []
    for head, dtype in ((ChunkedLogProbFunction, torch.float32), (plain_update.Head, torch.float64)):
        inputs = [tensor.to(dtype, copy=True).requires_grad_() for tensor in (hidden, weight)]
        logps, entropy, *rest = head.apply(*inputs, None, targets, 0.7, 4, None, 1.0, ("log_probs", "entropy"))
        assert logps.dtype == dtype and rest == [None] * 3
        (weights[0].to(dtype) @ logps + weights[1].to(dtype) @ entropy).backward()
        found.append([logps, entropy, *(tensor.grad for tensor in inputs)])
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(theirs.double(), ours, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_a_micro_batch_without_a_token_adds_nothing(loss_type: str) -> None:
    nothing = aggregate(loss_type, torch.ones(2, 3), torch.zeros(2, 3), torch.tensor(0.0), 1.0, max_length=3)
    assert float(nothing) == 0.0


TWO_PROCESSES = """
import sys
sys.path[:0] = {paths!r}
import os, torch
from datasets import Dataset
from transformers import TrainerCallback
from word_world import WINDOW, WORDS, make_word_env, word_tokenizer
import plain_update
import seed_trainer.trainer as module
from seed_trainer.settings.config import SEEDConfig
from test_reference_update import some_skills

plain_update.keep_precision(setattr)
rank, build = int(os.environ["RANK"]), module.build_rows
module.build_rows = lambda episodes, layout: build(episodes, layout)[: (14, 22)[rank]]

class Keep(TrainerCallback):
    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        self.gradient = torch.cat([p.grad.flatten() for p in kwargs["model"].parameters()])

for loss_type in {loss_types!r}:
    args = SEEDConfig(
        output_dir={folder!r}, use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none",
        disable_tqdm=True, per_device_train_batch_size=8, steps_per_generation=2, gradient_accumulation_steps=2,
        num_generations=4, max_turn_length=3, rounds=1, learning_rate=1e-3, save_strategy="no", opd_coef=0.3,
        log_episodes=0, beta=0.05, loss_type=loss_type, rollout_layout="turn", max_grad_norm=0.0, seed=3,
    )
    keep = Keep()
    trainer = module.SEEDTrainer(
        model={model!r}, args=args, make_env=lambda: make_word_env(WINDOW, 4), profile=WINDOW, env_id="words",
        train_dataset=Dataset.from_dict({{"task_id": WORDS * 2}}), processing_class=word_tokenizer(), callbacks=[keep],
    )
    trainer.model.double(), trainer.ref_model.double()
    trainer.analyst.teaching_skills = some_skills
    blocks, watch = [], trainer._watch
    trainer._watch = lambda block, *rest: (blocks.append(block), watch(block, *rest))
    trainer.train()
    returns = [episode.total_reward for episode in blocks[0].episodes]
    taught = [skill.valid for skill in blocks[0].skills]
    rows = [len(blocks[0].rows), sum(not row.filler for row in blocks[0].rows)]
    parts = [{{k: v for k, v in part.items() if isinstance(v, torch.Tensor)}} for part in trainer._buffered_inputs]
    kept = {{"parts": parts, "returns": returns, "taught": taught, "gradient": keep.gradient, "rows": rows}}
    torch.save(kept, {folder!r} + f"/{{loss_type}}-{{rank}}.pt")
    trainer.player.close()
trainer.end()
"""


def test_two_processes_with_14_and_22_real_rows_of_24_make_the_update_of_their_36_rows(
    model_path: str, double: None, tmp_path: Path, repo: Path
) -> None:
    """Every row weighs the same on whatever process it is, and fillers weigh nothing, for every loss type."""
    paths = [str(repo), str(repo / "tests" / "helpers"), str(repo / "tests" / "trainer")]
    script = tmp_path / "run.py"
    script.write_text(TWO_PROCESSES.format(paths=paths, folder=str(tmp_path), model=model_path, loss_types=LOSS_TYPES))
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc_per_node=2"]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    if done.returncode and "Gloo" in done.stderr and "not" in done.stderr and "available" in done.stderr:
        pytest.skip("Linux: this build of PyTorch has no gloo back end")
    assert done.returncode == 0, done.stderr[-3000:]
    for loss_type in LOSS_TYPES:
        kept = [torch.load(tmp_path / f"{loss_type}-{rank}.pt") for rank in (0, 1)]
        assert [process["rows"] for process in kept] == [[24, 14], [24, 22]]
        plain = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float64)
        rows = [
            plain_update.plain_rows(part, plain_update.advantages(process["returns"], 4), process["taught"])
            for process in kept
            for part in process["parts"]
        ]
        for part in rows:
            plain_update.freeze(part, plain, plain)
        recipe = Recipe(loss_type, micro_batches=2, accumulation=2, processes=2, max_length=3)
        total = sum(plain_update.micro_loss(recipe, plain, part, rows, live=True) for part in rows) / 2
        total.backward()  # type: ignore[union-attr]
        torch.testing.assert_close(kept[0]["gradient"], kept[1]["gradient"])
        wanted = gradient(plain)
        atol = ROUNDING * float(wanted.abs().max())
        torch.testing.assert_close(kept[0]["gradient"], wanted, atol=atol, rtol=0)
