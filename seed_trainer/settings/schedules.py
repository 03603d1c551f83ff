"""What changes over rounds: sharpness of the gate, whether distillation is on, weight of shaped advantages."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seed_trainer.settings.options import SEEDOptions


@dataclass(frozen=True)
class Moment:
    """Where training stands, for the parts of a round, which know no trainer.

    Attributes:
        round_index: Number of the round, counted over the whole run.
        step: Optimiser steps made.
        gate_beta: Sharpness of the gate.
        seed: Seed of the run.
        process: Number of this process.
    """

    round_index: int
    step: int
    gate_beta: float
    seed: int
    process: int

    def rng(self, purpose: int) -> np.random.Generator:
        """Return the randomness of one purpose in this round, the same on every process and after resuming."""
        return np.random.default_rng([self.seed, self.round_index, purpose])

    def stream(self, purpose: str) -> str:
        """Return the root of the streams of one purpose in this round."""
        return f"{self.seed}/{self.round_index}/{purpose}"


def gate_beta(options: SEEDOptions, round_index: int, total_rounds: int) -> float:
    """Return beta of this round; a schedule runs from ``opd_gate_beta`` to ``opd_gate_beta_end`` over all rounds."""
    if options.opd_gate_schedule == "constant":
        return options.opd_gate_beta
    done = min(1.0, round_index / max(1, total_rounds - 1))
    if options.opd_gate_schedule == "cosine":
        done = (1 - math.cos(math.pi * done)) / 2
    return options.opd_gate_beta + done * (options.opd_gate_beta_end - options.opd_gate_beta)


def distills(options: SEEDOptions, round_index: int) -> bool:
    """Return whether the distillation term is on in this round."""
    stopped = 0 <= options.opd_stop_round <= round_index
    return options.opd_coef > 0 and round_index >= options.opd_start_round and not stopped


def shaping_weight(options: SEEDOptions, round_index: int) -> float:
    """Return the weight of shaped advantages: ``adv_shaping_coef``, falling linearly to 0 if rounds are given."""
    if options.adv_shaping_rounds <= 0:
        return options.adv_shaping_coef
    return options.adv_shaping_coef * max(0.0, 1.0 - round_index / options.adv_shaping_rounds)


def compares_gradients(options: SEEDOptions, round_index: int) -> bool:
    """Return whether the gradients of the two loss terms are compared in this round."""
    return options.gradient_every > 0 and round_index % options.gradient_every == 0
