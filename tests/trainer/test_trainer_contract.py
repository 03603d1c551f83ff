"""The private TRL hooks this trainer stands on, and the invariances of one SEED step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import trl
from trl import GRPOTrainer
from trl.trainer.utils import shuffle_sequence_dict, split_tensor_dict
from word_world import GROWING, WINDOW, WORDS

from seed_trainer.learning.aggregation import SUMS, UNITS
from seed_trainer.settings.schedules import Moment
from seed_trainer.skills.parsing import HindsightSkill
from seed_trainer.trainer import SEEDTrainer

TrainerFactory = Callable[..., SEEDTrainer]
LAYOUTS = pytest.mark.parametrize("profile", [GROWING, WINDOW], ids=["episode", "turn"])
SKILL_OPTIONS: dict[str, Any] = {"skill_source": "generic", "opd_coef": 0.5}
"""A fixed sentence as skill: valid in every episode, so every token is distilled."""


def hook(name: str) -> inspect.Signature:
    function = getattr(GRPOTrainer, name, None)
    assert function is not None, f"trl {trl.__version__} has no GRPOTrainer.{name}; seed_trainer needs trl>=1.16,<1.17"
    return inspect.signature(inspect.unwrap(function))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("_generate_and_score_completions", ["self", "inputs"]),
        ("_generate", ["self", "prompts"]),
        ("_calculate_rewards", ["self", "inputs", "prompts", "completions", "completion_ids_list"]),
        ("_compute_loss", ["self", "model", "inputs"]),
        ("_prepare_inputs", ["self", "generation_batch"]),
        ("log", ["self", "logs", "start_time"]),
        ("_save_checkpoint", ["self", "model", "trial"]),
        ("_load_optimizer_and_scheduler", ["self", "checkpoint"]),
    ],
)
def test_hook_signature(name: str, parameters: list[str]) -> None:
    found = list(hook(name).parameters)
    assert found == parameters, f"trl {trl.__version__} changed GRPOTrainer.{name}{tuple(found)}, expected {parameters}"


def test_scoring_hook_takes_the_arguments_we_pass() -> None:
    found = list(hook("_get_per_token_logps_and_entropies").parameters)
    assert found[:6] == ["self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size"]
    assert {"compute_entropy", "compute_aux_loss", "pixel_values", "image_grid_thw", "num_images"} <= set(found)


def test_generation_hook_takes_the_arguments_we_pass() -> None:
    found = list(hook("_generate_single_turn").parameters)
    assert found[1:5] == ["prompt_ids", "images", "multimodal_fields", "num_generations"]


def block(trainer: SEEDTrainer) -> dict[str, Any]:
    """Make one round's batch as training would."""
    trainer.model.train()
    inputs = [{"task_id": word} for word in WORDS for _ in range(4)]
    batch = trainer._generate_and_score_completions(inputs)
    trainer._count([batch])
    return batch


def buffered(trainer: SEEDTrainer) -> list[dict[str, Any]]:
    """Make one round and split it as training would, without the shuffle."""
    parts: list[dict[str, Any]] = split_tensor_dict(block(trainer), trainer.args.steps_per_generation)
    trainer._count(parts)
    return parts


@LAYOUTS
def test_batch_has_what_the_hooks_promise(make_trainer: TrainerFactory, profile: Any) -> None:
    trainer = make_trainer(profile, **SKILL_OPTIONS)
    batch = block(trainer)
    rows = len(batch["prompt_ids"])
    assert rows % trainer.args.steps_per_generation == 0 and rows % trainer.args.num_generations == 0
    for name in ("completion_ids", "tool_mask", "advantages", "teacher_prompt_ids", "opd_mask", "episode", "success"):
        assert len(batch[name]) == rows, name
    assert batch["opd_units"].ndim == 0 and batch["num_items_in_batch"].ndim == 0
    assert batch["num_items_in_batch"] == (batch["completion_mask"] * batch["tool_mask"]).sum()


@LAYOUTS
def test_loss_scores_the_student_exactly_once(make_trainer: TrainerFactory, profile: Any) -> None:
    trainer = make_trainer(profile, **SKILL_OPTIONS)
    micro = buffered(trainer)[0]
    calls = []
    original = GRPOTrainer._get_per_token_logps_and_entropies

    def counting(self: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, model, *args, **kwargs)
        calls.append(result[0].requires_grad)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GRPOTrainer, "_get_per_token_logps_and_entropies", counting)
        trainer.current_gradient_accumulation_steps = 1
        trainer._compute_loss(trainer.model, micro)
    assert calls == [False, True], "teacher first without gradient, then the student once"


@LAYOUTS
def test_empty_skill_gives_gate_of_exactly_one_half(make_trainer: TrainerFactory, profile: Any) -> None:
    trainer = make_trainer(profile, skill_source="none", opd_coef=0.5)
    trainer.current_gradient_accumulation_steps = 1
    for micro in buffered(trainer):
        trainer._compute_loss(trainer.model, micro)
    metrics = trainer._metrics["train"]
    assert set(metrics["opd/gate_p10"] + metrics["opd/gate_mean"] + metrics["opd/gate_p90"]) == {0.5}
    assert set(metrics["opd/abs_delta_mean"]) == {0.0}


@LAYOUTS
@pytest.mark.parametrize("policy", ["live", "snapshot"])
def test_live_equals_snapshot_on_the_first_mini_batch(make_trainer: TrainerFactory, profile: Any, policy: str) -> None:
    trainer = make_trainer(profile, teacher_policy=policy, **SKILL_OPTIONS)
    trainer.current_gradient_accumulation_steps = 1
    micro = buffered(trainer)[0]
    assert ("teacher_logps" in micro) == (policy == "snapshot")
    live = trainer.scorer.teacher(trainer.model, {k: v for k, v in micro.items() if k != "teacher_logps"})
    stored = trainer.scorer.teacher(trainer.model, micro)
    mask = (micro["completion_mask"] * micro["tool_mask"]).bool()
    torch.testing.assert_close(stored[mask], live[mask], atol=2e-6, rtol=0)


@LAYOUTS
def test_distillation_gradient_matches_plain_logits(make_trainer: TrainerFactory, profile: Any) -> None:
    """The whole gradient difference between lambda and 0 is -lambda/n sum g grad l, computed from ordinary logits."""
    trainer = make_trainer(profile, beta=0.0, **SKILL_OPTIONS)
    trainer.current_gradient_accumulation_steps = 1
    micro = buffered(trainer)[0]

    def gradient(loss: torch.Tensor) -> torch.Tensor:
        trainer.model.zero_grad()
        loss.backward()
        return torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])

    ours = gradient(trainer._compute_loss(trainer.model, micro))
    trainer.args.opd_coef = 0.0
    plain = gradient(trainer._compute_loss(trainer.model, micro))

    def logps(prefix: str) -> torch.Tensor:
        ids = torch.cat([micro[f"{prefix}prompt_ids"], micro["completion_ids"]], 1)
        mask = torch.cat([micro[f"{prefix}prompt_mask"], micro["completion_mask"]], 1)
        keep = micro["completion_ids"].size(1)
        logits = trainer.model(input_ids=ids, attention_mask=mask).logits[:, -keep - 1 : -1]
        return torch.log_softmax(logits, -1).gather(-1, micro["completion_ids"][..., None]).squeeze(-1)

    mask = micro["completion_mask"] * micro["tool_mask"] * micro["opd_mask"][:, None]
    student, teacher = logps(""), logps("teacher_").detach()
    gates = torch.sigmoid(5.0 * (teacher - student)).detach()
    normaliser = micro["opd_units"] / trainer.args.steps_per_generation
    expected = gradient(0.5 * (gates * (teacher - student) * mask).sum() / normaliser)
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(ours - plain, expected, atol=2e-6, rtol=0)


@LAYOUTS
def test_teacher_prompt_minus_skill_is_student_prompt_after_shuffle_and_split(
    make_trainer: TrainerFactory, profile: Any
) -> None:
    trainer = make_trainer(profile, opd_coef=0.5)

    def numbered(episodes: Sequence[Any], group_size: int, moment: Moment) -> list[HindsightSkill]:
        return [HindsightSkill(f"{WORDS[i // 4]} {WORDS[i % 4]}") for i in range(len(episodes))]

    trainer.analyst.teaching_skills = numbered  # type: ignore[method-assign]
    torch.manual_seed(11)
    shuffled: dict[str, Any] = shuffle_sequence_dict(block(trainer))
    micros: list[dict[str, Any]] = split_tensor_dict(shuffled, trainer.args.steps_per_generation)
    hint = trainer._tokenizer.convert_tokens_to_ids("hint")
    compared = 0
    for micro in micros:
        for row in range(len(micro["prompt_ids"])):
            student = micro["prompt_ids"][row][micro["prompt_mask"][row].bool()].tolist()
            teacher = micro["teacher_prompt_ids"][row][micro["teacher_prompt_mask"][row].bool()].tolist()
            start = teacher.index(hint)
            assert teacher[:start] + teacher[start + 3 :] == student
            first, second = trainer._tokenizer.convert_ids_to_tokens(teacher[start + 1 : start + 3])
            assert WORDS.index(first) * 4 + WORDS.index(second) == int(micro["episode"][row])
            compared += 1
    assert compared >= 16


@pytest.mark.parametrize("loss_type", sorted(UNITS))
def test_fillers_change_neither_loss_nor_gradient(make_trainer: TrainerFactory, loss_type: str) -> None:
    trainer = make_trainer(WINDOW, loss_type=loss_type, **(SKILL_OPTIONS if loss_type in SUMS else {"opd_coef": 0.0}))
    trainer.current_gradient_accumulation_steps = 1
    batch = block(trainer)
    sampled = (batch["completion_mask"] * batch["tool_mask"]).sum(1) > 0
    real = {k: v[sampled] if v.ndim else v for k, v in batch.items()}
    extra = {k: torch.cat([v, v[-1:], v[-1:]]) if v.ndim else v for k, v in real.items()}
    extra["tool_mask"] = extra["tool_mask"].clone()
    extra["tool_mask"][-2:] = 0
    losses, gradients = [], []
    for rows in (real, extra):
        trainer._count([rows])
        trainer.model.zero_grad()
        loss = trainer._compute_loss(trainer.model, rows)
        loss.backward()
        losses.append(loss.detach())
        gradients.append(torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None]))
    torch.testing.assert_close(losses[0], losses[1], atol=1e-7, rtol=1e-6)
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-6, rtol=1e-5)


@LAYOUTS
def test_opd_coef_zero_equals_grpo_trainer_on_the_same_rows(make_trainer: TrainerFactory, profile: Any) -> None:
    """Feed the rows our trainer made to TRL's own generation hook and compare advantages, loss and gradient."""
    trainer = make_trainer(profile, opd_coef=0.0, adv_std="sample")
    trainer.current_gradient_accumulation_steps = 1
    rows: dict[str, Any] = {}
    generate: Callable[..., Any] = trainer._generate

    def remember(prompts: list[Any]) -> Any:
        rows["result"] = generate(prompts)
        rows["returns"] = trainer._current.returns_N[[row.episode for row in trainer._current.rows]]
        return rows["result"]

    trainer._generate = remember  # type: ignore[method-assign]
    ours = block(trainer)

    class Plain(GRPOTrainer):
        _generate = lambda self, prompts: rows["result"]
        _calculate_rewards = lambda self, *args: rows["returns"][:, None]

    trainer.__class__ = Plain  # type: ignore[assignment]
    del trainer._generate
    blank = [{"prompt": [{"role": "user", "content": ""}]} for _ in ours["prompt_ids"]]
    plain = trainer._generate_and_score_completions(blank)
    if profile is GROWING:  # one row is one episode, so TRL's groups are ours; only its epsilon differs
        torch.testing.assert_close(ours["advantages"], plain["advantages"], atol=5e-4, rtol=0)
    plain["advantages"] = ours["advantages"]
    assert set(plain) <= set(ours) and ours["filler_factor"] == 1.0
    results = []
    for kind, batch in ((SEEDTrainer, ours), (Plain, plain)):
        trainer.__class__ = kind  # type: ignore[assignment]
        trainer.model.zero_grad()
        loss = trainer._compute_loss(trainer.model, batch)
        loss.backward()
        results.append((loss.detach(), [p.grad.clone() for p in trainer.model.parameters() if p.grad is not None]))
    torch.testing.assert_close(results[0][0], results[1][0], atol=1e-6, rtol=0)
    torch.testing.assert_close(results[0][1], results[1][1], atol=1e-6, rtol=0)


def test_one_step_raises_the_log_probability_of_better_episodes(make_trainer: TrainerFactory) -> None:
    trainer = make_trainer(opd_coef=0.0, beta=0.0)
    trainer.current_gradient_accumulation_steps = 1
    batch = block(trainer)
    arguments = {
        "input_ids": torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1),
        "attention_mask": torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1),
        "logits_to_keep": batch["completion_ids"].size(1),
    }
    mask = batch["completion_mask"] * batch["tool_mask"]
    before = (trainer.scorer.logps(trainer.model, arguments) * mask).sum(1)
    optimizer = torch.optim.SGD(trainer.model.parameters(), lr=0.05)
    trainer._compute_loss(trainer.model, batch).backward()
    optimizer.step()
    change = (trainer.scorer.logps(trainer.model, arguments) * mask).sum(1) - before
    # A small step along the gradient raises sum A log pi by its squared norm, whatever was sampled.
    assert (batch["advantages"] * change).sum() > 0 and change.abs().max() > 1e-4


def test_layouts_agree_where_an_episode_has_one_turn(make_trainer: TrainerFactory) -> None:
    """With a limit of one turn both layouts give the same rows, batch and loss."""
    results = []
    for layout in ("turn", "episode"):
        trainer = make_trainer(GROWING, rollout_layout=layout, env_turns=1, **SKILL_OPTIONS)
        trainer.current_gradient_accumulation_steps = 1
        batch = block(trainer)
        results.append((batch, trainer._compute_loss(trainer.model, batch).detach()))
    (turn, turn_loss), (episode, episode_loss) = results
    for name in ("prompt_ids", "completion_ids", "teacher_prompt_ids", "advantages"):
        torch.testing.assert_close(turn[name], episode[name])
    torch.testing.assert_close(turn_loss, episode_loss, atol=1e-6, rtol=0)
