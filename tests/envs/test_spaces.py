"""UnicodeText behaves as a text space, and refuses the one vector mode that would lose the text."""

from __future__ import annotations

import gymnasium as gym
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory

from seed_envs.spaces import UnicodeText


def test_any_text_up_to_the_length_is_contained():
    space = UnicodeText(10)
    assert isinstance(space, spaces.Text)
    assert all(text in space for text in ["", "a\nb\t", "Ünïcode", "中文字符", "\x00\u202e"])
    assert "x" * 11 not in space
    assert 5 not in space


def test_samples_are_contained_and_seeded():
    first, second = UnicodeText(1000, seed=3), UnicodeText(1000, seed=3)
    samples = [first.sample() for _ in range(50)]
    assert samples == [second.sample() for _ in range(50)]
    assert all(sample in first for sample in samples)
    assert len(set(samples)) > 40


def test_equality_is_by_length_and_repr_is_short():
    assert UnicodeText(5) == UnicodeText(5) != UnicodeText(6)
    assert UnicodeText(5) != spaces.Text(5)
    assert repr(UnicodeText(5)) == "UnicodeText(5)"


@pytest.mark.parametrize("space", [UnicodeText(5), spaces.Dict(text=UnicodeText(5), number=spaces.Discrete(2))])
def test_shared_memory_is_refused_with_the_remedy(space):
    with pytest.raises(gym.error.CustomSpaceError, match="shared_memory"):
        create_shared_memory(space, 2)
