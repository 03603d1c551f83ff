"""Animated pictures of the oracle playing an environment, written as GIF with Pillow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray


def record_oracle(
    env: gym.Env[Any, Any], seeds: Sequence[int], options: dict[str, Any] | None = None
) -> list[NDArray[np.uint8]]:
    """Lets the oracle play and collects the frames.

    Args:
        env: An environment with ``render_mode="rgb_array"`` and an oracle.
        seeds: One episode is played per seed.
        options: Reset options of every episode.

    Returns:
        One RGB array per position; the last position of every episode is repeated, so that it is seen longer.
    """
    frames: list[NDArray[np.uint8]] = []
    for seed in seeds:
        env.reset(seed=seed, options=options)
        frames.append(np.asarray(env.render()))
        ended = False
        while not ended:
            _, _, terminated, truncated, _ = env.step(env.unwrapped.oracle_action())  # type: ignore[attr-defined]
            frames.append(np.asarray(env.render()))
            ended = terminated or truncated
        frames.extend([frames[-1]] * 2)
    return frames


def save_gif(frames: Sequence[NDArray[np.uint8]], path: str | os.PathLike[str], seconds: float = 0.45) -> None:
    """Writes an endless GIF with one palette for all frames.

    Args:
        frames: RGB arrays of one shape, at least one.
        path: File to write; its folder is made.
        seconds: How long a frame is shown.
    """
    from PIL import Image

    if not frames:
        raise ValueError("a GIF needs at least one frame")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    palette = Image.fromarray(np.concatenate([frames[0], frames[-1]])).quantize(128)
    images = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    images[0].save(
        path, "GIF", save_all=True, append_images=images[1:], duration=round(seconds * 1000), loop=0, optimize=True
    )
