"""Advantages against the table of group outcomes, the step unit, and GiGPO's step part."""

from __future__ import annotations

import pytest
import torch

from seed_trainer.learning import advantages
from seed_trainer.learning.advantages import AdvantageStd


@pytest.mark.parametrize(
    ("wins", "std", "won", "lost"),
    [
        (1, "population", 2.6457, -0.3780),
        (2, "population", 1.7320, -0.5773),
        (4, "population", 1.0, -1.0),
        (7, "population", 0.3780, -2.6457),
        (1, "sample", 2.4749, -0.3536),
        (2, "sample", 1.6202, -0.5401),
        (4, "sample", 0.9354, -0.9354),
        (7, "sample", 0.3536, -2.4749),
        (1, "off", 0.875, -0.125),
        (2, "off", 0.75, -0.25),
        (4, "off", 0.5, -0.5),
        (7, "off", 0.125, -0.875),
    ],
)
def test_group_of_eight(wins: int, std: AdvantageStd, won: float, lost: float) -> None:
    returns = torch.tensor([1.0] * wins + [0.0] * (8 - wins))
    result = advantages.group_advantages_N(returns, 8, std)
    torch.testing.assert_close(result[0], torch.tensor(won), atol=1e-4, rtol=0)
    torch.testing.assert_close(result[-1], torch.tensor(lost), atol=1e-4, rtol=0)


@pytest.mark.parametrize(("std", "value"), [("population", 1.0), ("sample", 0.7071), ("off", 0.5)])
def test_pair(std: AdvantageStd, value: float) -> None:
    result = advantages.group_advantages_N(torch.tensor([1.0, 0.0]), 2, std)
    torch.testing.assert_close(result, torch.tensor([value, -value]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("std", ["population", "sample", "off"])
def test_tied_group_is_exactly_zero(std: AdvantageStd) -> None:
    result = advantages.group_advantages_N(torch.tensor([0.1] * 8 + [1.0, 0.0] * 4), 8, std)
    assert result[:8].tolist() == [0.0] * 8
    assert result[8:].abs().min() > 0.4


def test_groups_must_be_complete() -> None:
    with pytest.raises(ValueError, match="7 returns cannot be split into groups of 4"):
        advantages.group_advantages_N(torch.zeros(7), 4)


def test_step_unit_long_loss_against_short_win() -> None:
    scores = torch.tensor([10.0] * 5 + [0.0] * 30)
    result = advantages.step_advantages_S(scores, [0] * 35, "sample")
    torch.testing.assert_close(result[[0, -1]], torch.tensor([2.4142, -0.4024]), atol=2e-4, rtol=0)


def test_step_unit_penalty_breaks_a_tie() -> None:
    scores = torch.tensor([10.0] * 34 + [9.9], dtype=torch.float64)
    result = advantages.step_advantages_S(scores, [0] * 35, "sample")
    torch.testing.assert_close(result[[-1, 0]], torch.tensor([-5.7467, 0.1690]), atol=1e-3, rtol=0)


def test_step_unit_lone_sample_keeps_its_score() -> None:
    result = advantages.step_advantages_S(torch.tensor([10.0, 1.0, 0.0]), [0, 1, 1])
    assert result[0] == 10.0


def test_discounted_returns() -> None:
    assert advantages.discounted_returns([0.0, 0.0, 10.0], 0.95) == pytest.approx([9.025, 9.5, 10.0])


@pytest.mark.parametrize(("std", "value"), [("sample", 0.7071), ("off", 4.5125)])
def test_gigpo_shared_first_observation(std: AdvantageStd, value: float) -> None:
    won, lost = advantages.discounted_returns([0, 0, 10], 0.95), [0.0, 0.0, 0.0]
    anchors = ["kitchen", "a", "b", "kitchen", "c", "d"]
    result = advantages.gigpo_step_advantages_S(torch.tensor(won + lost), [0] * 6, anchors, std)
    torch.testing.assert_close(result[[0, 3]], torch.tensor([value, -value]), atol=1e-4, rtol=0)
    assert result[[1, 2, 4, 5]].tolist() == [0.0] * 4


def test_gigpo_puts_every_visit_of_a_state_into_one_comparison() -> None:
    returns = torch.tensor([3.0, 1.0, 2.0, 7.0], dtype=torch.float64)
    result = advantages.gigpo_step_advantages_S(returns, [0] * 4, ["hall", "hall", "hall", "yard"], "off")
    assert result.tolist() == [1.0, -1.0, 0.0, 0.0] and result.dtype == torch.float32


def test_the_divisor_has_a_small_summand_so_that_tiny_spreads_teach_less() -> None:
    returns = torch.tensor([0.0, 2e-6])
    result = advantages.group_advantages_N(returns, 2)
    torch.testing.assert_close(result, torch.tensor([-0.5, 0.5]), atol=1e-4, rtol=0)


def test_gigpo_never_compares_across_tasks_and_can_use_similarity() -> None:
    returns = torch.tensor([1.0, 0.0, 0.0])
    assert advantages.gigpo_step_advantages_S(returns, [0, 1, 2], ["x", "x", "x"]).tolist() == [0.0] * 3
    anchors = ["you see a mug on the shelf.", "you see a mug on the shelf!", "another room"]
    assert advantages.gigpo_step_advantages_S(returns, [0, 0, 0], anchors).tolist() == [0.0] * 3
    similar = advantages.gigpo_step_advantages_S(returns, [0, 0, 0], anchors, similarity=0.95)
    assert similar[0] > 0 > similar[1] and similar[2] == 0.0


def test_penalised_return_uses_share_of_invalid_steps() -> None:
    assert advantages.penalised_return(1.0, 2, 10, 0.1) == pytest.approx(0.98)
    assert advantages.penalised_return(1.0, 0, 0, 0.1) == 1.0
