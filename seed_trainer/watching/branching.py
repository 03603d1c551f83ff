"""The Monte-Carlo estimate of value alignment (Eq. 8): branch at states of real episodes and play on.

A state is a task and the replies before it, restored by playing those replies again. There, either K whole responses
are sampled, or each of the likeliest tokens of one decision inside a reply is forced and weighed by its probability.
Every branch is continued M times to the end; every continuation has its own outcome, its own skill and so its own gate
of the branch. An unusable skill pushes nothing, so its gate counts as 0. For text models. Measures only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_trainer.acting.actor import Actor
from seed_trainer.acting.encoding import TokenIds
from seed_trainer.acting.pictures import COUNTS
from seed_trainer.acting.rollout import TurnTokens, tokens_of
from seed_trainer.acting.sampling import Decoding, Sampled, Sampler
from seed_trainer.learning.analyst import Analyst
from seed_trainer.learning.batches import build_rows
from seed_trainer.learning.scorer import Scorer
from seed_trainer.learning.scores import GateRule
from seed_trainer.learning.teaching import Teaching
from seed_trainer.watching.value_alignment import (
    Alignment,
    Array,
    estimate,
    mean_scored,
    state_covariances,
    weighted_covariance,
)

MAX_CANDIDATES = 6
COVERED = 0.98
"""Share of probability after which no further candidate token is forced."""


class Measured(Protocol):
    """What is measured: a policy in the hands of those who play, write, score and teach it, such as a trainer."""

    actor: Actor
    analyst: Analyst
    scorer: Scorer
    teaching: Teaching

    @property
    def gate_rule(self) -> GateRule:
        """The gate."""
        ...


@dataclass(frozen=True)
class Script:
    """What is played before sampling begins: whole replies, then the first tokens of the next one."""

    replies: Sequence[TokenIds] = ()
    opening: TokenIds = field(default_factory=list)


class ForcedSampler:
    """Plays scripts first and samples from then on.

    Args:
        inner: Samples.
        scripts: One per episode.
        eos_token_ids: Ids that end a reply; an opening that ends with one is a whole reply.
    """

    def __init__(self, inner: Sampler, scripts: Sequence[Script], eos_token_ids: Sequence[int]) -> None:
        self.inner = inner
        self.scripts = scripts
        self.eos_token_ids = eos_token_ids
        self._turns: Counter[Hashable] = Counter()

    def sample(
        self,
        keys: Sequence[Hashable],
        contexts: Sequence[list[int]],
        decoding: Decoding,
        images: Sequence[list[Any]] | None = None,
        streams: Sequence[str] | None = None,
    ) -> list[Sampled]:
        """Return the scripted reply of an episode's turn, or a sampled one, which may have to begin as scripted."""
        starts = [self._start(key) for key in keys]
        self._turns.update(keys)
        free = [index for index, (_, whole) in enumerate(starts) if not whole]
        sampled = self.inner.sample(
            [keys[index] for index in free],
            [contexts[index] + starts[index][0] for index in free],
            decoding,
            [images[index] for index in free] if images else None,
            [streams[index] for index in free] if streams else None,
        )
        replies = {
            index: (starts[index][0] + result.ids)[: decoding.max_new_tokens]
            for index, result in zip(free, sampled, strict=True)
        }
        return [Sampled(replies.get(index, list(start))) for index, (start, _) in enumerate(starts)]

    def _start(self, key: Hashable) -> tuple[TokenIds, bool]:
        """Return the scripted beginning of the next reply, and whether it is all of it."""
        script, turn = self.scripts[int(str(key))], self._turns[key]
        if turn < len(script.replies):
            return list(script.replies[turn]), True
        opening = list(script.opening) if turn == len(script.replies) else []
        return opening, bool(opening) and opening[-1] in self.eos_token_ids

    def forget(self) -> None:
        """Drop caches."""
        self.inner.forget()


@dataclass(frozen=True)
class State:
    """One state: a finished episode and the turn at which it is branched."""

    episode: Trajectory
    turn: int

    @property
    def task(self) -> TaskSpec:
        """The task, by its id."""
        return TaskSpec(self.episode.task_id)

    @property
    def replies(self) -> list[TokenIds]:
        """The replies before the state."""
        return [tokens.reply_ids for tokens in tokens_of(self.episode)[: self.turn]]

    @property
    def tokens(self) -> TurnTokens:
        """The branched turn as it was played."""
        return tokens_of(self.episode)[self.turn]


def measure_alignment(
    trainer: Measured, tasks: Sequence[TaskSpec], responses: int, continuations: int, seed: int
) -> Alignment:
    """Estimate value alignment of the trainer's current policy and analyzer over sampled responses.

    Args:
        trainer: A :class:`~seed_trainer.trainer.SEEDTrainer`.
        tasks: One state is drawn from an episode of each.
        responses: K, sampled responses per state; at least 2.
        continuations: M, continuations per response; at least 2.
        seed: Seed of states and samples.
    """
    rng = np.random.default_rng(seed)
    states = [state for state in _states(trainer, tasks, rng) for _ in range(responses)]
    first = _play(trainer, [state.task for state in states], [Script(state.replies) for state in states])
    scripts = [
        Script([tokens.reply_ids for tokens in tokens_of(episode)[: state.turn + 1]])
        for episode, state in zip(first, states, strict=True)
    ]
    more = continuations - 1
    rest = _play(
        trainer,
        [state.task for state in states for _ in range(more)],
        [script for script in scripts for _ in range(more)],
    )
    episodes = [
        episode
        for index, started in enumerate(first)
        for episode in (started, *rest[index * more : (index + 1) * more])
    ]
    turns = [state.turn for state in states for _ in range(continuations)]
    gates = branch_gates(trainer, episodes, turns, lambda index, tokens: tokens)
    shape = (len(states) // responses, responses, continuations)
    outcomes = _outcomes(episodes)
    gates_SKM = np.where(np.isnan(outcomes), np.nan, gates).reshape(shape)
    mean_gates_S = mean_scored(gates_SKM.reshape(shape[0], -1))
    found = state_covariances(outcomes.reshape(shape), gates_SKM)
    return estimate(*found, mean_gates_S, rng, faults=int(np.isnan(outcomes).sum()))


def measure_token_alignment(trainer: Measured, tasks: Sequence[TaskSpec], continuations: int, seed: int) -> Alignment:
    """Estimate value alignment over the likeliest tokens of one decision per state.

    The decision is the most uncertain token of the branched reply. The 2 to 6 likeliest tokens there are forced in
    turn, and weighed by the policy's own probabilities, renormalised.

    Args:
        trainer: A :class:`~seed_trainer.trainer.SEEDTrainer`.
        tasks: One state is drawn from an episode of each.
        continuations: M, continuations per token; at least 2.
        seed: Seed of states and samples.
    """
    rng = np.random.default_rng(seed)
    states = _states(trainer, tasks, rng)
    decisions = [_decision(trainer, state.tokens) for state in states]
    branches = [
        (state, at, token) for state, (at, tokens, _) in zip(states, decisions, strict=True) for token in tokens
    ]
    repeated = [branch for branch in branches for _ in range(continuations)]
    scripts = [Script(state.replies, [*state.tokens.reply_ids[:at], token]) for state, at, token in repeated]
    episodes = _play(trainer, [state.task for state, _, _ in repeated], scripts)
    places = [at for _, at, _ in repeated]
    turns = [state.turn for state, _, _ in repeated]
    gates = branch_gates(trainer, episodes, turns, lambda index, tokens: tokens[places[index] : places[index] + 1])
    outcomes = _outcomes(episodes)
    outcomes_BM = outcomes.reshape(len(branches), continuations)
    gates_BM = np.where(np.isnan(outcomes), np.nan, gates).reshape(len(branches), continuations)
    crossed, naive, mean_gates, start = [], [], [], 0
    for _, tokens, weights in decisions:
        part = slice(start, start + len(tokens))
        found = weighted_covariance(outcomes_BM[part], gates_BM[part], weights)
        crossed.append(found[0])
        naive.append(found[1])
        mean_gates.append(float(weights @ mean_scored(gates_BM[part])))
        start += len(tokens)
    faults = int(np.isnan(outcomes).sum())
    return estimate(np.array(crossed), np.array(naive), np.array(mean_gates), rng, faults=faults)


def _outcomes(episodes: Sequence[Trajectory]) -> Array:
    """Return 1 for every solved episode, 0 for every other scored one, and NaN after a fault."""
    return np.array([float(episode.success) if episode.stop_reason.scored else np.nan for episode in episodes])


def _states(trainer: Measured, tasks: Sequence[TaskSpec], rng: np.random.Generator) -> list[State]:
    """Play one episode per task and draw one of its turns."""
    trainer.actor.generator.manual_seed(int(rng.integers(2**62)))
    played = _play(trainer, tasks, [Script() for _ in tasks])
    episodes = [episode for episode in played if tokens_of(episode) and episode.stop_reason.scored]
    if not episodes:
        raise RuntimeError("no episode without a fault has a turn to branch at; look at its error with `seed-train rl`")
    return [State(episode, int(rng.integers(len(tokens_of(episode))))) for episode in episodes]


@torch.no_grad()
def _decision(trainer: Measured, tokens: TurnTokens) -> tuple[int, TokenIds, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return place, candidate tokens and renormalised probabilities of the most uncertain token of a reply."""
    ids = torch.tensor([tokens.prompt_ids + tokens.reply_ids], device=trainer.teaching.accelerator.device)
    pictures = trainer.actor.encoder.picture_fields([tokens.images], ids.device)
    seen = {name: value for name, value in trainer.scorer.seeing(ids, pictures).items() if name not in COUNTS}
    logits: Tensor = trainer.scorer.unwrapped(input_ids=ids, **seen).logits[0, len(tokens.prompt_ids) - 1 : -1]
    logps_TV = torch.log_softmax(logits.float() / (trainer.actor.args.temperature or 1.0), dim=-1)
    at = int((-(logps_TV.exp() * logps_TV).sum(-1)).argmax())
    probabilities, candidates = logps_TV[at].exp().sort(descending=True)
    covered = int((probabilities.cumsum(0) < COVERED).sum()) + 1
    count = min(max(covered, 2), MAX_CANDIDATES, len(candidates))
    weights = probabilities[:count].double().cpu().numpy()
    return at, candidates[:count].tolist(), weights / weights.sum()


def _play(trainer: Measured, tasks: Sequence[TaskSpec], scripts: Sequence[Script]) -> list[Trajectory]:
    actor, args = trainer.actor, trainer.actor.args
    episodes: list[Trajectory] = []
    size = args.concurrent_episodes
    decoding = Decoding(args.max_turn_length, args.temperature)
    for start in range(0, len(tasks), size):
        sampler = ForcedSampler(actor.sampler, scripts[start : start + size], actor.encoder.eos_token_ids)
        episodes += actor.play(tasks[start : start + size], decoding, sampler=sampler)
    actor.sampler.forget()
    return episodes


def branch_gates(
    trainer: Measured,
    episodes: Sequence[Trajectory],
    turns: Sequence[int],
    choose: Callable[[int, list[int]], list[int]],
    batch: int = 32,
) -> list[float]:
    """Return the mean gate of tokens of one turn in every episode, under the episode's own skill.

    The gate is the configured one, under the configured teacher. The baseline of a centered gate is that of the rows
    scored at once.

    Args:
        trainer: A :class:`~seed_trainer.trainer.SEEDTrainer`.
        episodes: Finished episodes.
        turns: The turn of each.
        choose: Given an episode's index and the positions of the turn's sampled tokens, returns those that count.
        batch: Rows scored at once.
    """
    skills = trainer.analyst.write(episodes)
    rows = [row for row in build_rows(episodes, trainer.actor.args.rollout_layout) if turns[row.episode] in row.turn_of]
    too_long = trainer.teaching.splice(rows, skills)
    teaches = [skill.valid and index not in too_long for index, skill in enumerate(skills)]
    gates = [0.0] * len(episodes)
    for start in range(0, len(rows), batch):
        part = rows[start : start + batch]
        scores = trainer.scorer.scores(trainer.teaching.batch(part, teaches), trainer.gate_rule)
        for at, row in enumerate(part):
            if teaches[row.episode]:
                sampled = [i for i, turn in enumerate(row.turn_of) if turn == turns[row.episode] and row.mask[i]]
                gates[row.episode] = float(scores.gates[at, choose(row.episode, sampled)].mean())
    return gates
