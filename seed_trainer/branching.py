"""The Monte-Carlo estimate of value alignment (Eq. 8): branch at states of real episodes and play on.

A state is a task and the replies before it, restored by playing those replies again. At every state K responses are
sampled and each is continued M times to the end; every continuation has its own outcome, its own skill and so its own
gate of the branch response. An unusable skill pushes nothing, so its gate counts as 0. Measures only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import torch

from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_trainer import losses
from seed_trainer.batches import Row, add_teacher_prompts, build_rows, pad_left, pad_right
from seed_trainer.encoding import TokenIds
from seed_trainer.generation import Decoding, Sampled, Sampler
from seed_trainer.rollout import tokens_of
from seed_trainer.skills.prompts import outcome_of
from seed_trainer.value_alignment import Alignment, estimate


class ForcedSampler:
    """Plays given replies first and samples from then on.

    Args:
        inner: Samples.
        scripts: Replies to play, by episode; episodes without a script are sampled from the start.
    """

    def __init__(self, inner: Sampler, scripts: Sequence[Sequence[TokenIds]]) -> None:
        self.inner = inner
        self.scripts = scripts
        self._turns: Counter[Hashable] = Counter()

    def sample(
        self,
        keys: Sequence[Hashable],
        contexts: Sequence[list[int]],
        decoding: Decoding,
        images: Sequence[list[Any]] | None = None,
    ) -> list[Sampled]:
        """Return the scripted reply of an episode's turn, or a sampled one."""
        turns = [self._turns[key] for key in keys]
        self._turns.update(keys)
        forced = [turn < len(self.scripts[int(str(key))]) for key, turn in zip(keys, turns, strict=True)]
        free = [index for index, flag in enumerate(forced) if not flag]
        sampled = iter(
            self.inner.sample(
                [keys[index] for index in free],
                [contexts[index] for index in free],
                decoding,
                None if images is None else [images[index] for index in free],
            )
        )
        return [
            Sampled(list(self.scripts[int(str(key))][turn])) if flag else next(sampled)
            for key, turn, flag in zip(keys, turns, forced, strict=True)
        ]

    def forget(self) -> None:
        """Drop caches."""
        self.inner.forget()


def measure_alignment(
    trainer: Any, tasks: Sequence[TaskSpec], responses: int, continuations: int, seed: int
) -> Alignment:
    """Estimate value alignment of the trainer's current policy and analyzer.

    Args:
        trainer: A :class:`~seed_trainer.trainer.SEEDTrainer`.
        tasks: One state is drawn from an episode of each.
        responses: K, sampled responses per state; at least 2.
        continuations: M, continuations per response; at least 2.
        seed: Seed of states and samples.
    """
    rng = np.random.default_rng(seed)
    trainer.generator.manual_seed(int(rng.integers(2**62)))
    bases = [episode for episode in _play(trainer, tasks, [[] for _ in tasks]) if tokens_of(episode)]
    turns = [int(rng.integers(len(tokens_of(episode)))) for episode in bases]
    branched = [TaskSpec(episode.task_id) for episode in bases for _ in range(responses)]
    prefix = [
        [turn.reply_ids for turn in tokens_of(episode)[:at]]
        for episode, at in zip(bases, turns, strict=True)
        for _ in range(responses)
    ]
    first = _play(trainer, branched, prefix)
    at = [turn for turn in turns for _ in range(responses)]
    scripts = [
        [turn.reply_ids for turn in tokens_of(episode)[: turn_index + 1]]
        for episode, turn_index in zip(first, at, strict=True)
    ]
    more = continuations - 1
    rest = _play(trainer, [task for task in branched for _ in range(more)], [s for s in scripts for _ in range(more)])
    episodes = [
        episode
        for index, started in enumerate(first)
        for episode in (started, *rest[index * more : (index + 1) * more])
    ]
    gates = branch_gates(trainer, episodes, [turn for turn in at for _ in range(continuations)])
    shape = (len(bases), responses, continuations)
    outcomes = np.array([float(episode.success) for episode in episodes]).reshape(shape)
    return estimate(outcomes, np.array(gates).reshape(shape), rng)


def _play(trainer: Any, tasks: Sequence[TaskSpec], scripts: Sequence[Sequence[TokenIds]]) -> list[Trajectory]:
    args = trainer.args
    episodes: list[Trajectory] = []
    size = args.max_concurrent_episodes or 64
    for start in range(0, len(tasks), size):
        policy = trainer._policy(Decoding(args.max_turn_length, trainer.temperature))
        policy.sampler = ForcedSampler(trainer.sampler, scripts[start : start + size])
        episodes += trainer.player.play(tasks[start : start + size], policy)
    trainer.sampler.forget()
    return episodes


def branch_gates(trainer: Any, episodes: Sequence[Trajectory], turns: Sequence[int], batch: int = 32) -> list[float]:
    """Return the mean gate of one turn's tokens in every episode, under the episode's own skill."""
    skills = trainer._writer().write(episodes, [outcome_of(episode) for episode in episodes])
    rows = [row for row in build_rows(episodes, trainer.args.rollout_layout) if turns[row.episode] in row.turn_of]
    texts = [skill.text if skill.valid else "" for skill in skills]
    too_long = add_teacher_prompts(rows, texts, trainer.profile, trainer.encoder, None)
    gates = [0.0] * len(episodes)
    for start in range(0, len(rows), batch):
        part = rows[start : start + batch]
        values = _row_gates(trainer, part, turns)
        for row, value in zip(part, values, strict=True):
            if skills[row.episode].valid and row.episode not in too_long:
                gates[row.episode] = value
    return gates


def _row_gates(trainer: Any, rows: Sequence[Row], turns: Sequence[int]) -> list[float]:
    device, pad = trainer.accelerator.device, trainer._tokenizer.pad_token_id
    width = max(len(row.completion_ids) for row in rows)
    completion = pad_right([row.completion_ids for row in rows], width, torch.long).to(device)
    present = pad_right([[1] * len(row.completion_ids) for row in rows], width, torch.long).to(device)
    scores = []
    for prompts in ([row.prompt_ids for row in rows], [row.teacher_prompt_ids or row.prompt_ids for row in rows]):
        ids, mask = (tensor.to(device) for tensor in pad_left(prompts, pad))
        arguments = {
            "input_ids": torch.cat([ids, completion], 1),
            "attention_mask": torch.cat([mask, present], 1),
            "logits_to_keep": width,
        }
        scores.append(trainer._score_chunks(trainer.model, arguments, 1))
    gates = losses.gate_BT(losses.shift_BT(scores[1], scores[0]), trainer.gate_beta).cpu()
    result = []
    for index, row in enumerate(rows):
        chosen = [i for i, turn in enumerate(row.turn_of) if turn == turns[row.episode] and row.mask[i]]
        result.append(float(gates[index, chosen].mean()))
    return result
