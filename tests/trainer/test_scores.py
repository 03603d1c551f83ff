"""One truth about gates: what is recorded, and measured by branching, is what the loss was trained with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from word_world import GROWING, WINDOW, WORDS

from seed_envs.tasks import TaskSpec
from seed_trainer.learning import losses
from seed_trainer.learning.scores import GATES, GateRule, Scores, loss_mask
from seed_trainer.trainer import SEEDTrainer
from seed_trainer.watching import branching
from seed_trainer.watching.staleness import staleness_metrics

TrainerFactory = Callable[..., SEEDTrainer]
POLICIES = ("live", "snapshot", "initial", "ema")


def own_gate(kind: str, student: torch.Tensor, teacher: torch.Tensor, entropy: torch.Tensor) -> torch.Tensor:
    shift = teacher - student
    inside = {
        "gap": shift,
        "entropy": entropy,
        "soft_or": 1 - (1 - entropy) * (1 - shift),
        "typical": student + entropy,
    }
    inside |= dict.fromkeys(("centered", "permuted"), shift)
    return torch.full_like(student, 0.5) if kind == "constant" else torch.sigmoid(5.0 * inside[kind])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", sorted(GATES))
def test_the_recorded_gate_is_the_trained_one(
    make_trainer: TrainerFactory, tmp_path: Path, kind: str, policy: str
) -> None:
    """The gate is read off the gradient of the loss in the student's log-probabilities, for every row of a run."""
    profile = WINDOW if kind in ("gap", "centered") else GROWING
    trainer = make_trainer(
        profile, opd_gate=kind, teacher_policy=policy, teacher_ema_decay=0.5, opd_coef=1.0, beta=0.0, rl_coef=0.0,
        skill_source="generic", log_episodes=16, log_episodes_every=1, rounds=2,
    )  # fmt: skip
    original, trained = trainer.teaching.loss, {}

    def read_off(model: Any, scores: Scores, inputs: Any) -> torch.Tensor:
        loss = original(model, scores, inputs)
        push = -torch.autograd.grad(loss, scores.student, retain_graph=True)[0] * inputs["opd_units"]
        push *= trainer.args.gradient_accumulation_steps / trainer.args.steps_per_generation
        for at, row in enumerate(inputs["row"].tolist()):
            chosen = scores.mask[at].bool()
            if chosen.any():
                numbers = (scores.student, scores.teacher, scores.entropies)
                trained[trainer.round_index, row] = [values[at][chosen].detach() for values in (push, *numbers)]
        return loss

    trainer.teaching.loss = read_off  # type: ignore[method-assign]
    trainer.train()
    lines = [json.loads(line) for line in (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()]
    recorded: dict[int, list[Any]] = {0: [], 1: []}
    for line in lines:
        recorded[line["round"]] += [row for row in line["rows"] if "gate" in row]
    assert len(lines) == 32
    for number, rows in recorded.items():
        known = [values for (round_index, _), values in trained.items() if round_index == number]
        assert len(rows) == len(known) >= 16
        left = [values[0].tolist() for values in known]
        for row in rows:
            gates = [gate for gate, sampled in zip(row["gate"], row["mask"], strict=True) if sampled]
            alike = [other for other in left if len(other) == len(gates)]
            nearest = min(alike, key=lambda other: max(abs(a - b) for a, b in zip(gates, other, strict=True)))
            assert gates == pytest.approx(nearest, abs=1e-4), "a recorded gate was not trained"
            left.remove(nearest)
    if kind == "permuted":
        for push, student, teacher, entropy in trained.values():
            asked = own_gate(kind, student, teacher, entropy)
            torch.testing.assert_close(push, asked.roll(len(asked) // 2), atol=1e-5, rtol=0)
    elif kind != "centered":
        for push, student, teacher, entropy in trained.values():
            torch.testing.assert_close(push, own_gate(kind, student, teacher, entropy), atol=1e-5, rtol=0)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", sorted(GATES))
def test_branching_measures_the_configured_gate_and_teacher(
    make_trainer: TrainerFactory, kind: str, policy: str
) -> None:
    trainer = make_trainer(opd_gate=kind, teacher_policy=policy)
    trainer.teacher_weights.begin(trainer.model)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter.mul_(0.9)  # a teacher with weights of its own is another network from here on
    episodes = branching._play(trainer, [TaskSpec(word) for word in WORDS], [branching.Script() for _ in WORDS])
    found = branching.branch_gates(trainer, episodes, [0] * 4, lambda index, tokens: tokens[:1])
    skills = trainer.analyst.write(episodes)
    taught = [index for index, skill in enumerate(skills) if skill.valid]
    assert taught
    rows = branching.build_rows(episodes, "episode")
    trainer.teaching.splice(rows, skills)

    def logits(prompt: list[int], row: Any) -> torch.Tensor:
        ids = torch.tensor([prompt + row.completion_ids])
        return torch.log_softmax(trainer.model(input_ids=ids).logits[0, len(prompt) - 1], -1).detach()

    expected = []
    for row in rows:
        student = logits(row.prompt_ids, row)
        with trainer.teacher_weights.lent(trainer.model):
            teacher = logits(row.teacher_prompt_ids or [], row)
        token = row.completion_ids[0]
        entropy = -(student.exp() * student).sum()
        expected.append(own_gate(kind, student[token], teacher[token], entropy))
    for index in taught:
        if kind not in ("centered", "permuted"):  # these depend on other tokens
            assert found[index] == pytest.approx(float(expected[index]), abs=1e-5)
    if kind == "centered":
        assert min(found) < 0 or max(found) < 0.5, "a centered gate has its baseline taken off"
    assert all(found[index] == 0.0 for index in range(4) if index not in taught)


def scores(kind: str, student: torch.Tensor, teacher: torch.Tensor) -> Scores:
    ones = torch.ones_like(student)
    return Scores(student, ones, student, None, teacher, ones, torch.arange(len(student)), GateRule(kind, 5.0))


def test_staleness_compares_the_trained_gate_and_bounds_the_gap_gate_alone() -> None:
    student, fresh, stale = torch.zeros(2, 3), torch.full((2, 3), 0.2), torch.full((2, 3), -0.1)
    metrics = staleness_metrics(scores("gap", student, fresh), scores("gap", student, stale), "1")
    gap = float(losses.gate_BT(fresh, 5.0)[0, 0] - losses.gate_BT(stale, 5.0)[0, 0])
    assert metrics["stale/gate_gap/1"] == pytest.approx(gap) and metrics["stale/violations/1"] == 0.0
    assert metrics["stale/bound/1"] == pytest.approx(5.0 / 4 * 0.3)
    flat = staleness_metrics(scores("entropy", student, fresh), scores("entropy", student, stale), "1")
    assert flat == {"stale/gate_gap/1": 0.0}, "no skill moves this gate, and the proposition is not about it"


@pytest.mark.parametrize("profile", [GROWING, WINDOW], ids=["episode", "turn"])
def test_work_that_is_zero_is_left_out_and_weights_are_the_same(
    make_trainer: TrainerFactory, tmp_path: Path, profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tied returns from the second round on and no valid skill: no scoring of student or teacher, the same weights."""
    results, scored = [], []
    for skips in (True, False):
        options: dict[str, Any] = {"beta": 0.0, "rounds": 4, "max_skill_length": 1, "log_episodes_every": 1}
        trainer = make_trainer(profile, log_episodes=2, weight_decay=0.1, **options)
        calls: list[Any] = []
        play, live = trainer._play, trainer.scorer.live

        def tied(inputs: Any, trainer: Any = trainer, play: Any = play) -> Any:
            episodes = play(inputs)
            for index, episode in enumerate(episodes):
                episode.total_reward = 0.0 if trainer.round_index else float(index % 2)
            return episodes

        def counted(*args: Any, live: Any = live, calls: Any = calls, **kwargs: Any) -> Any:
            calls.append(1)
            return live(*args, **kwargs)

        monkeypatch.setattr(trainer, "_play", tied)
        monkeypatch.setattr(trainer.scorer, "live", counted)
        if not skips:
            monkeypatch.setattr(trainer, "_idle", lambda *args: False)
        trainer.train()
        results.append(torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()]))
        lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
        scored.append(["entropy" in line for line in lines if "loss" in line])
        assert [line["ties/idle"] for line in lines if "loss" in line] == ([0, 1, 1, 1] if skips else [0] * 4)
        assert all(line["tokens/teacher"] == 0.0 and line["opd/tokens"] == 0.0 for line in lines if "loss" in line)
        assert not calls, "no skill is valid: nobody teaches"
        records = (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()
        assert len(records) == 8, "episodes of such a round are recorded too"
    assert torch.equal(results[0], results[1])
    assert scored == [[True, False, False, False], [True] * 4]


def test_environment_text_is_in_no_loss() -> None:
    policy, ours = torch.tensor([[1, 1, 1, 0]]), torch.tensor([[1, 0, 1, 1]])
    assert loss_mask({"completion_mask": policy}).tolist() == [[1, 1, 1, 0]]
    assert loss_mask({"completion_mask": policy, "tool_mask": ours}).tolist() == [[1, 0, 1, 0]]
