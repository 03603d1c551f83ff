"""What a terminal can do beyond lines: single keys, and pictures as half blocks in true colour."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from seed_envs.chat import split_observation
from seed_envs.errors import UnknownOption

ARROWS: Final = {"A": "up", "B": "down", "C": "right", "D": "left"}
LETTERS: Final = dict(zip("wsadkjhl", ("up", "down", "left", "right") * 2, strict=True)) | {".": "still"}
WIDEST: Final = 96
"""Columns of a picture, at most; one column is one pixel wide and one line two pixels tall."""


def keys_of(actions: Sequence[str] | None) -> dict[str, str]:
    """Which key plays which action.

    Args:
        actions: The actions there are, or None.

    Returns:
        Key to action, arrow keys under the name of their direction; empty unless every action has a key. A number of
        two digits is played by the second one if nothing else is (``0`` for ``10``).
    """
    wanted = set(actions or ())
    keys = {action[1]: action for action in actions or () if len(action) == 2 and action.isdigit()}
    keys |= {direction: direction for direction in ARROWS.values()} | LETTERS
    keys |= {action: action for action in wanted if len(action) == 1}
    found = {key: action for key, action in keys.items() if action in wanted}
    return found if wanted and set(found.values()) == wanted else {}


def plain(text: str) -> str:
    """A text whose control characters a terminal shows and does not obey; line feeds and tabs stay.

    What models and shops write is not trusted: an escape sequence can clear the screen, or change its title.
    """
    return "".join(sign if sign.isprintable() or sign in "\n\t" else repr(sign)[1:-1] for sign in text)


def has_keys() -> bool:
    """Whether single keys can be read: standard input is a terminal of the POSIX kind."""
    try:
        import termios  # noqa: F401
    except ImportError:
        return False
    return sys.stdin.isatty()


@contextlib.contextmanager
def single_keys() -> Iterator[Iterator[str]]:
    """Lend an iterator over the keys that are pressed, up to Ctrl+D; the terminal is as before afterwards."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSADRAIN)  # what was typed ahead is played
    try:
        yield _keys(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _keys(descriptor: int) -> Iterator[str]:
    while True:
        typed = os.read(descriptor, 64).decode("utf-8", "replace")
        if not typed:
            return
        while typed:
            if typed.startswith(("\x1b[", "\x1bO")) and typed[2:3] in ARROWS:
                key, typed = ARROWS[typed[2]], typed[3:]
            else:
                key, typed = typed[0], typed[1:]
            if key in ("\x04", "\0"):  # Linux keeps a Ctrl+D that was typed ahead, to a terminal in lines, as a zero
                return
            yield key


def half_blocks(pixels: NDArray[np.uint8], columns: int = WIDEST) -> str:
    """A picture as text: every character shows two pixels, one above the other.

    Args:
        pixels: RGB, shape (height, width, 3).
        columns: Room for it; a larger picture is shrunk by a whole factor, so that tiles stay alike.

    Returns:
        Lines with ANSI true colours, each reset at its end.
    """
    factor = max(1, -(-pixels.shape[1] // max(1, min(columns, WIDEST))))
    height, width = (pixels.shape[0] // (2 * factor)) * 2, pixels.shape[1] // factor
    cut = pixels[: height * factor, : width * factor].astype(np.float32)
    small = cut.reshape(height, factor, width, factor, 3).mean(axis=(1, 3)).round().astype(int)
    return "\n".join(
        "".join(_block(top, bottom) for top, bottom in zip(upper, lower, strict=True)) + "\x1b[0m"
        for upper, lower in zip(small[::2].tolist(), small[1::2].tolist(), strict=True)
    )


def _block(top: list[int], bottom: list[int]) -> str:
    colours = [";".join(map(str, colour)) for colour in (top, bottom)]
    return f"\x1b[38;2;{colours[0]}m\x1b[48;2;{colours[1]}m\u2580"


class Screen:
    """Shows observations on standard output.

    Args:
        picture: ``"blocks"``, ``"none"``, ``"auto"`` (blocks on a terminal that has colours), or a ``.png`` file that
            is written anew with every observation.

    Raises:
        UnknownOption: For anything else.
        OSError: When the file cannot be written.
    """

    def __init__(self, picture: str = "auto") -> None:
        colourful = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self._blocks = picture == "blocks" or (picture == "auto" and colourful)
        self._file = None if picture in ("auto", "blocks", "none") else Path(picture)
        if self._file is not None and self._file.suffix != ".png":
            raise UnknownOption(f"--picture {picture}; expected auto, blocks, none, or a file that ends in .png")

    def show(self, observation: Any, refusal: str) -> None:
        """Print an observation, and why the last action was refused unless the observation says so itself."""
        text, pixels = split_observation(observation)
        if pixels is not None and self._blocks:
            print(half_blocks(pixels, shutil.get_terminal_size().columns))
        if pixels is not None and self._file is not None:
            from PIL import Image

            Image.fromarray(pixels).save(self._file)
        print(plain(text))
        if refusal and refusal not in text:
            print(f"[invalid: {plain(refusal)}]")
