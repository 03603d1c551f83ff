"""Gradients of the loss terms: the vector equals a backward pass, ratio and cosine follow their definitions."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from seed_trainer.watching.gradients import gradient_vector, ratio_and_cosine


def test_the_vector_equals_a_backward_pass_and_leaves_no_trace() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    unused = nn.Parameter(torch.ones(2))
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    term = model(torch.randn(5, 3)).square().mean()
    vector = gradient_vector(term, [*model.parameters(), unused, frozen])
    assert all(parameter.grad is None for parameter in model.parameters())
    term.backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])
    torch.testing.assert_close(vector, torch.cat([expected, torch.zeros(2)]))


def test_ratio_and_cosine_follow_their_definitions() -> None:
    ratio, cosine = ratio_and_cosine(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0]))
    assert ratio == pytest.approx(2.5)
    assert cosine == pytest.approx(0.8)
    assert all(math.isnan(value) for value in ratio_and_cosine(torch.ones(2), torch.zeros(2)))
    assert ratio_and_cosine(torch.zeros(2), torch.ones(2))[0] == 0.0


def test_comparing_gradients_does_not_change_training(make_trainer: Any) -> None:
    weights = []
    for every in (0, 1):
        trainer = make_trainer(opd_coef=0.3, rounds=2, gradient_every=every)
        trainer.train()
        weights.append(torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()]))
    assert torch.equal(weights[0], weights[1])
