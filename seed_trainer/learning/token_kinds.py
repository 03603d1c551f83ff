"""Which tokens of a reply are thinking and which are the action."""

from __future__ import annotations

from collections.abc import Sequence

from seed_envs.profiles import ActionFormat
from seed_trainer.acting.encoding import ChatEncoder, TokenIds
from seed_trainer.learning.batches import Row


def action_start(ids: TokenIds, form: ActionFormat, encoder: ChatEncoder) -> int:
    """Return the index of the first token of the action part; ``len(ids)`` if the reply has none.

    A reply format without tags is all action.
    """
    if form.kind != "tags":
        return 0
    opening = f"<{form.tag}>"
    if opening not in encoder.decode(ids):
        return len(ids)
    low, high = 0, len(ids)
    while low < high:  # the shortest prefix that contains the opening tag
        middle = (low + high) // 2
        if opening in encoder.decode(ids[:middle]):
            high = middle
        else:
            low = middle + 1
    return max(low - 1, 0)


def token_flags(rows: Sequence[Row], form: ActionFormat, encoder: ChatEncoder, kind: str) -> list[list[int]]:
    """Return 1 for every completion token of a kind (``think``: before the action part; ``action``: from it on)."""
    flags = []
    for row in rows:
        flag = [0] * len(row.completion_ids)
        for step in sorted(set(row.turn_of)):
            where = [
                i
                for i, (turn, sampled) in enumerate(zip(row.turn_of, row.mask, strict=True))
                if turn == step and sampled
            ]
            start = action_start([row.completion_ids[i] for i in where], form, encoder)
            chosen = where[start:] if kind == "action" else where[:start]
            for index in chosen:
                flag[index] = 1
        flags.append(flag)
    return flags
