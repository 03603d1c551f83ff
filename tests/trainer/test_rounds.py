"""Advantages of a round: steps and rows, episodes ended by faults, states told apart, share of tokens without any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from seed_envs.trajectory import Step, StopReason, Trajectory
from seed_trainer.learning.batches import Row
from seed_trainer.learning.rounds import Block, episode_advantages_N, row_advantages_B
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.skills.parsing import HindsightSkill
from seed_trainer.watching.measures import outcome_metrics, outcomes, skill_metrics, token_metrics
from seed_trainer.watching.records import EpisodeRecorder


class Picture:
    """A turn context with a picture."""

    def __init__(self, image: Any) -> None:
        self.image = image


def episode(
    rewards: list[float],
    stop: StopReason = StopReason.MAX_STEPS,
    refused: int = 0,
    unreadable: int = 0,
    images: Any = None,
) -> Trajectory:
    steps = [
        Step(
            f"seen {index}" if images is None else "a picture",
            [],
            "go",
            "go",
            index >= refused,
            "",
            reward,
            context=None if images is None else Picture(images[index]),
            format_valid=index >= unreadable,
        )
        for index, reward in enumerate(rewards)
    ]
    return Trajectory("env", "t", steps=steps, stop_reason=stop, total_reward=sum(rewards), success=sum(rewards) > 0)


def block(episodes: list[Trajectory], options: SEEDOptions, group_size: int) -> Block:
    made = Block(episodes, group_size)
    made.advantages_N = episode_advantages_N(made, options)
    made.rows = [
        Row(index, step, [1, 2], [3], [1], [step], [], [])
        for index, played in enumerate(episodes)
        for step in range(played.num_steps)
    ]
    return made


FAULT = StopReason.ENV_ERROR


@pytest.mark.parametrize("options", [{"adv_unit": "trajectory"}, {"adv_unit": "step"}, {"gigpo_coef": 1.0}])
def test_an_episode_ended_by_a_fault_counts_for_nobody(options: dict[str, Any]) -> None:
    settings = SEEDOptions(**options)
    sound = [episode([0.0, 1.0]), episode([0.0, 0.0]), episode([0.0])]
    fault = episode([0.0, 0.0, 0.0], FAULT)
    with_fault = row_advantages_B(block([*sound, fault], settings, 4), settings)
    without = row_advantages_B(block(sound, settings, 3), settings)
    torch.testing.assert_close(with_fault[:5], without)
    assert with_fault[5:].tolist() == [0.0, 0.0, 0.0]
    everything_failed = row_advantages_B(block([fault] * 4, settings, 4), settings)
    assert not everything_failed.any()


def test_all_tied_groups_give_exactly_zero_and_the_step_penalty_breaks_the_tie() -> None:
    won = [episode([1.0], StopReason.SUCCESS), episode([0.0, 1.0], StopReason.SUCCESS, unreadable=1)]
    tied = block(won, SEEDOptions(), 2)
    assert row_advantages_B(tied, SEEDOptions()).tolist() == [0.0, 0.0, 0.0]
    penalised = SEEDOptions(adv_unit="step", adv_invalid_penalty=0.1, adv_std="sample")
    values = row_advantages_B(block(won, penalised, 2), penalised)
    assert values[1] < 0 < values[0] == values[2]


@pytest.mark.parametrize("unit", ["trajectory", "step"])
def test_a_method_penalises_what_it_names(unit: Any) -> None:
    """The papers penalise replies that cannot be read; a command that the game refuses costs nothing there."""
    turns: dict[Any, dict[str, int]] = {"format": {"unreadable": 1}, "action": {"refused": 1}}
    for penalised in turns:
        options = SEEDOptions(adv_unit=unit, adv_invalid_penalty=0.1, adv_penalised=penalised)
        for fault, numbers in turns.items():
            played = [episode([1.0], StopReason.SUCCESS), episode([0.0, 1.0], StopReason.SUCCESS, **numbers)]
            values = row_advantages_B(block(played, options, 2), options)
            assert bool(values.any()) == (fault == penalised)
    assert SEEDOptions().adv_penalised == "format"


@pytest.mark.parametrize(("unit", "share"), [("trajectory", 1.0), ("step", 0.0)])
def test_tokens_without_advantage_are_counted_by_what_is_trained(unit: Any, share: float) -> None:
    options = SEEDOptions(adv_unit=unit, adv_invalid_penalty=0.1 if unit == "step" else 0.0)
    won = [episode([1.0], StopReason.SUCCESS), episode([0.0, 1.0], StopReason.SUCCESS, unreadable=1)]
    made = block(won, options, 2)
    batch = {"completion_mask": torch.ones(3, 1), "advantages": row_advantages_B(made, options)}
    assert token_metrics(made, batch)["ties/tokens_without_advantage"] == share
    batch["advantages"] = batch["advantages"][:, None].expand(3, 1)
    assert token_metrics(made, batch)["ties/tokens_without_advantage"] == share


def test_gigpo_tells_states_apart_by_their_pictures() -> None:
    """The text beside a picture is the same in every state."""
    black, white = np.zeros((2, 2, 3), np.uint8), np.full((2, 2, 3), 255, np.uint8)
    options = SEEDOptions(gigpo_coef=1.0, rl_coef=1.0, adv_std="off")
    won = episode([0.0, 1.0], StopReason.SUCCESS, images=[black, white])
    lost = episode([0.0, 0.0], images=[black, black])
    made = block([won, lost], options, 2)
    values = row_advantages_B(made, options) - torch.tensor([0.5, 0.5, -0.5, -0.5])
    assert values[1] == 0.0, "nobody else saw the white picture"
    assert values[0] > 0 > values[2] and values[2] == pytest.approx(values[3].item())


def test_one_turn_episodes_have_one_advantage_in_either_unit() -> None:
    episodes = [episode([1.0], StopReason.SUCCESS), episode([0.0])]
    units: tuple[Any, Any] = ("trajectory", "step")
    values = [
        row_advantages_B(block(episodes, SEEDOptions(adv_unit=unit), 2), SEEDOptions(adv_unit=unit)) for unit in units
    ]
    torch.testing.assert_close(values[0], values[1])


def test_faults_enter_no_rate_of_a_round_and_are_counted_beside_it() -> None:
    won, lost, fault = episode([1.0], StopReason.SUCCESS), episode([0.0]), episode([0.0, 0.0], FAULT)
    found = outcome_metrics(outcomes(Block([won, fault, fault, fault, fault, fault, fault, fault], 4)), 4)
    assert (found["env/success"], found["env/faults"], found["env/turns"]) == (1.0, 7.0, 1.0)
    assert (found["env/return"], found["env/success/all"], found["env/episodes/all"]) == (1.0, 1.0, 1.0)
    assert (found["ties/groups"], found["ties/all_won"], found["ties/all_lost"]) == (1.0, 1.0, 0.0)
    assert found["stop/env_error"] == 7 / 8
    mixed = outcome_metrics(outcomes(Block([won, lost, fault, fault], 4)), 4)
    assert (mixed["reward"], mixed["reward_std"], mixed["frac_reward_zero_std"]) == (0.5, 0.5, 0.0)
    nothing = outcome_metrics(outcomes(Block([fault] * 4, 4)), 4)
    assert {name: value for name, value in nothing.items() if value is not None} == {
        "env/faults": 4.0,
        "stop/env_error": 1.0,
    }


@pytest.mark.parametrize("which", ["all", "success", "failure"])
def test_no_skill_of_whatever_source_teaches_about_a_fault(which: str) -> None:
    episodes = [episode([1.0], StopReason.SUCCESS), episode([0.0]), episode([0.0], FAULT), episode([1.0], FAULT)]
    made = Block(episodes, 4, [HindsightSkill("look there", origin="library")] * 4)
    assert made.teaches(which) == [which != "failure", which != "success", False, False]
    assert skill_metrics(Block(episodes[2:], 2, made.skills[2:])) == {"skill/valid": None}
    assert skill_metrics(Block([*episodes[:2], *episodes[2:]], 4, made.skills))["skill/valid"] == 1.0


def test_a_fault_is_not_shown_as_a_failure_beside_a_success() -> None:
    options = SEEDOptions(log_episodes=2)
    recorder = EpisodeRecorder(options, None, None)  # type: ignore[arg-type]
    won, lost, fault = episode([1.0], StopReason.SUCCESS), episode([0.0]), episode([0.0], FAULT)
    assert recorder._choose(Block([fault, fault, lost, won], 4)) == [3, 2]
