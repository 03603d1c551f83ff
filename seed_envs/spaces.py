"""``UnicodeText``: a text space for real text.

``gymnasium.spaces.Text`` checks every character against a charset and has no use for newlines or other scripts. This
space accepts any ``str`` up to a length. It does not support shared memory: Gymnasium's asynchronous vector
environment would silently return blank observations, so it is made to fail loudly instead; so is its flat form.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory

#: Longest text, in characters, that an environment of this package may observe or accept.
MAX_TEXT_LENGTH = 1_000_000


class UnicodeText(spaces.Text):
    """Any Unicode string of at most ``max_length`` characters.

    Args:
        max_length: Upper bound of the length, in characters.
        seed: Seed of the space's own random generator (samples are ASCII letters and digits).
    """

    def __init__(self, max_length: int = MAX_TEXT_LENGTH, seed: int | None = None) -> None:
        super().__init__(max_length=max_length, min_length=0, seed=seed)

    def contains(self, x: Any) -> bool:
        """True for any ``str`` that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short random string; a sample of full length would be megabytes of noise."""
        if mask is not None or probability is not None:
            return super().sample(mask, probability)
        length = int(self.np_random.integers(0, min(self.max_length, 32) + 1))
        letters = self.np_random.choice(self.character_list, size=length)
        return "".join(letters.tolist())

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return self.max_length


def picture_space(height: int, width: int) -> spaces.Box:
    """RGB pictures, uint8, height x width x 3.

    A ``Box`` keeps four arrays of its own shape, here a megabyte of equal numbers for every environment; these are
    views of single numbers.
    """
    box = spaces.Box(0, 255, (height, width, 3), np.uint8)
    for name in ("low", "high", "bounded_below", "bounded_above"):
        bounds = getattr(box, name)
        setattr(box, name, np.broadcast_to(bounds[0, 0, 0].copy(), bounds.shape))
    return box


def _refuse_flat_form(space: Any, x: Any = None) -> Any:
    raise gym.error.CustomSpaceError(
        "text of any script has no flat form (FlattenObservation, TimeAwareObservation): encode it with a tokenizer of "
        "your own, or pass flatten=False to TimeAwareObservation."
    )


for _flat in (spaces.utils.flatdim, spaces.utils.flatten, spaces.utils.flatten_space):
    _flat.register(UnicodeText, _refuse_flat_form)


@create_shared_memory.register(UnicodeText)
def _refuse_shared_memory(space: UnicodeText, n: int = 1, ctx: Any = None) -> Any:
    raise gym.error.CustomSpaceError(
        "UnicodeText has no shared-memory form; pass vector_kwargs={'shared_memory': False} to gym.make_vec "
        "(or shared_memory=False to AsyncVectorEnv)."
    )
