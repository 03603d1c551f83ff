"""From trajectories to training rows: layouts, teacher prompts, padding and fillers.

A row is what TRL calls a sample. Student and teacher rows share their completion ids; only prompts differ. Axes: B
rows, P prompt positions, T completion positions.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any

import torch
from torch import Tensor

from seed_envs.chat import Message, build_messages
from seed_envs.profiles import Profile
from seed_envs.trajectory import Trajectory
from seed_trainer.acting.encoding import ChatEncoder, TokenIds
from seed_trainer.acting.rollout import Layout, TurnTokens, tokens_of


@dataclass
class Row:
    """One training row.

    Attributes:
        episode: Index of the episode in the local block.
        step: Turn of the row (``turn`` layout) or 0.
        prompt_ids: Context ids.
        completion_ids: Ids that are scored.
        mask: 1 where the policy sampled the token, 0 on environment text.
        turn_of: Turn that every completion token belongs to.
        messages: The prompt as messages, for logs and images.
        logprobs: Sampling log-probabilities, 0.0 on environment text, or None.
        images: Images of the prompt, or None.
        tokens: The token records behind the row.
        teacher_prompt_ids: Prompt with the skill spliced in, or None without a teacher.
        step_teacher_prompt_ids: Prompt with the skill of this very step, or None where it is not a critical step.
        filler: A copy that only completes the batch; its mask is 0.
    """

    episode: int
    step: int
    prompt_ids: TokenIds
    completion_ids: TokenIds
    mask: list[int]
    turn_of: list[int]
    messages: list[Message]
    tokens: list[TurnTokens]
    logprobs: list[float] | None = None
    images: list[Any] | None = None
    teacher_prompt_ids: TokenIds | None = None
    step_teacher_prompt_ids: TokenIds | None = None
    filler: bool = field(default=False)


def _turn_rows(episode: int, turns: list[TurnTokens]) -> list[Row]:
    return [
        Row(
            episode,
            step,
            turn.prompt_ids,
            turn.reply_ids,
            [1] * len(turn.reply_ids),
            [step] * len(turn.reply_ids),
            turn.messages,
            [turn],
            turn.logprobs,
            turn.images or None,
        )
        for step, turn in enumerate(turns)
        if turn.reply_ids
    ]


def _episode_row(episode: int, turns: list[TurnTokens]) -> list[Row]:
    turns = [turn for turn in turns if turn.reply_ids]
    if not turns:
        return []
    completion: TokenIds = []
    mask: list[int] = []
    turn_of: list[int] = []
    logprobs: list[float] = []
    for step, turn in enumerate(turns):
        # What stands between two replies (end of turn, observation, next header) is read and not written: mask 0.
        between = turn.forced_ids + turn.between_ids if step else []
        completion += between + turn.reply_ids
        mask += [0] * len(between) + [1] * len(turn.reply_ids)
        turn_of += [step] * (len(between) + len(turn.reply_ids))
        logprobs += [0.0] * len(between) + (turn.logprobs or [0.0] * len(turn.reply_ids))
    known = all(turn.logprobs is not None for turn in turns)
    first = turns[0]
    images = [image for turn in turns[-1:] for image in turn.images]
    return [
        Row(
            episode,
            0,
            first.prompt_ids,
            completion,
            mask,
            turn_of,
            first.messages,
            turns,
            logprobs if known else None,
            images or None,
        )
    ]


LAYOUTS: dict[Layout, Callable[[int, list[TurnTokens]], list[Row]]] = {"turn": _turn_rows, "episode": _episode_row}
"""How an episode becomes rows; nothing else depends on the layout."""


def build_rows(trajectories: Sequence[Trajectory], layout: Layout) -> list[Row]:
    """Return the rows of a block of episodes, in order.

    Raises:
        RuntimeError: If no episode has a single sampled token; says how they ended.
    """
    build = LAYOUTS[layout]
    rows = [row for index, episode in enumerate(trajectories) for row in build(index, tokens_of(episode))]
    if not rows:
        ends = Counter(episode.stop_reason.value for episode in trajectories)
        errors = [episode.error.message for episode in trajectories if episode.error is not None]
        raise RuntimeError(
            f"no episode of this round has a single sampled token; they ended by {dict(ends)}"
            + (f", the first with: {errors[0]}" if errors else "")
        )
    return rows


def teacher_messages(row: Row, profile: Profile, skill: str) -> list[Message]:
    """Return H(h, s): the row's own prompt, rendered again with the skill in the template's slot.

    History is the student's, already cut; the response tokens are not touched.
    """
    turn = row.tokens[0]
    return build_messages(profile, turn.turns, turn.replies, skill)


def add_teacher_prompts(
    rows: Sequence[Row], skills: Sequence[str], profile: Profile, encoder: ChatEncoder, max_length: int | None
) -> set[int]:
    """Give every row its teacher prompt.

    Args:
        rows: Rows to complete.
        skills: Skill of every episode; the empty string leaves the student's prompt as it is.
        profile: Profile that rendered the prompts.
        encoder: The model's encoder.
        max_length: Context of the model in tokens, or None.

    Returns:
        Episodes with a row that does not fit; their teacher prompts are the student's.
    """
    wanted = [row for row in rows if skills[row.episode]]
    encoded = encoder.prompts([teacher_messages(row, profile, skills[row.episode]) for row in wanted])
    too_long = {
        row.episode
        for row, ids in zip(wanted, encoded, strict=True)
        if max_length is not None and len(ids) + len(row.completion_ids) > max_length
    }
    for row in rows:
        row.teacher_prompt_ids = row.prompt_ids
    for row, ids in zip(wanted, encoded, strict=True):
        if row.episode not in too_long:
            row.teacher_prompt_ids = ids
    return too_long


def add_step_teacher_prompts(
    rows: Sequence[Row],
    step_skills: Sequence[dict[int, str]],
    profile: Profile,
    encoder: ChatEncoder,
    max_length: int | None,
) -> None:
    """Give rows of critical steps (``turn`` layout) a second teacher prompt with the skill of that step, if it fits."""
    wanted = [row for row in rows if row.step in step_skills[row.episode]]
    messages = [teacher_messages(row, profile, step_skills[row.episode][row.step]) for row in wanted]
    for row, ids in zip(wanted, encoder.prompts(messages), strict=True):
        if max_length is None or len(ids) + len(row.completion_ids) <= max_length:
            row.step_teacher_prompt_ids = ids


def filler_target(row_counts: Sequence[int], steps_per_generation: int, group_size: int) -> int:
    """Return the row count every process must reach: the maximum, rounded up to a common multiple.

    TRL splits rows into ``steps_per_generation`` chunks (losing a remainder in silence) and views gathered rows as
    groups of ``group_size``.
    """
    multiple = steps_per_generation * group_size // gcd(steps_per_generation, group_size)
    # -(-a // b) rounds up; every process pads to the fullest one, because collectives wait for all.
    return -(-max(max(row_counts), 1) // multiple) * multiple


def with_fillers(rows: list[Row], target: int) -> list[Row]:
    """Return the rows followed by copies without any loss token, ``target`` in all; there has to be a row to copy."""
    shortest = min(rows, key=lambda row: len(row.prompt_ids) + len(row.completion_ids))
    filler = dataclasses.replace(shortest, mask=[0] * len(shortest.mask), filler=True)
    return rows + [dataclasses.replace(filler) for _ in range(target - len(rows))]


def pad_left(sequences: Sequence[TokenIds], value: int, multiple: int | None = None) -> tuple[Tensor, Tensor]:
    """Return left-padded ids and mask, both (B, P)."""
    from trl.trainer.utils import pad

    ids = [torch.tensor(sequence, dtype=torch.long) for sequence in sequences]
    ones = [torch.ones_like(sequence) for sequence in ids]
    return (
        pad(ids, padding_value=value, padding_side="left", pad_to_multiple_of=multiple),
        pad(ones, padding_value=0, padding_side="left", pad_to_multiple_of=multiple),
    )


def pad_right(sequences: Sequence[Sequence[float]], width: int, dtype: torch.dtype) -> Tensor:
    """Return sequences padded with zeros on the right to (B, width)."""
    padded = torch.zeros(len(sequences), width, dtype=dtype)
    for index, sequence in enumerate(sequences):
        padded[index, : len(sequence)] = torch.tensor(list(sequence), dtype=dtype)
    return padded
