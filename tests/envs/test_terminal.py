"""seed-play in a real terminal: single keys, pictures as half blocks, pictures in a file."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seed_envs.play import main
from seed_envs.registration import make
from seed_envs.terminal import half_blocks, keys_of

WAY = ("\x1b[B", "\x1b[C", "\x1b[C", "\x1bOC", "k", "\x1b[D")
"""Down, right three times, up and left, by arrows of both kinds and by letter: the solution of the level of seed 1."""


def play_in_terminal(*typed: str, env_id: str = "seed/Sokoban-v0", arguments: tuple[str, ...] = ()) -> tuple[int, str]:
    """Exit code and everything on the screen after some typing in a pseudo-terminal."""
    main_end, other_end = pty.openpty()
    command = [sys.executable, "-m", "seed_envs.play", env_id, "--seed", "1", *arguments]
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=other_end, stdout=other_end, stderr=other_end, env=env)
    os.close(other_end)
    shown, waiting = b"", "".join(typed).encode()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([main_end], [], [], 1)[0]:
            continue
        try:
            shown += os.read(main_end, 65536)
        except OSError:  # what a pseudo-terminal answers when its other end is closed
            break
        if waiting and b"q to leave" in shown:
            os.write(main_end, waiting)
            waiting = b""
    else:
        process.kill()
    os.close(main_end)
    return process.wait(timeout=60), shown.decode()


def test_arrow_keys_and_letters_solve_a_level() -> None:
    code, screen = play_in_terminal(*WAY)
    assert code == 0, screen
    assert "success: True" in screen
    assert re.findall(r"> (\w+)", screen) == ["down", "right", "right", "right", "up", "left"]
    assert "\x1b[48;2;" in screen and "\u2580" in screen, "on a terminal the picture is drawn"


@pytest.mark.parametrize("leaving", ["q", "\x04"])
def test_keys_without_a_move_play_nothing_and_leaving_leaves(leaving: str) -> None:
    code, screen = play_in_terminal("x", "?", leaving, arguments=("--picture", "none"))
    assert code == 1
    assert "> " not in screen and "\x1b[48;2;" not in screen
    assert screen.count("arrows, w up, s down") == 2


def test_keys_are_for_games_whose_every_action_has_one() -> None:
    assert keys_of(["up", "down", "left", "right", "still"])["."] == "still"
    assert keys_of(["3", "+"]) == {"3": "3", "+": "+"}
    assert keys_of(["3", "10"]) == {"3": "3", "0": "10"}
    assert keys_of(["0", "10"]) == keys_of(["10", "20"]) == keys_of(["up", "look"]) == keys_of(None) == {}


@pytest.mark.parametrize("rules", ["classic", "strict"])
def test_a_hand_with_a_ten_is_played_with_single_keys(rules: str) -> None:
    """Also where which tokens may come next changes from turn to turn."""
    arguments = ("--seed", "2", "--picture", "none", "--env-arg", f"rules={rules}")
    code, screen = play_in_terminal("0", "+", "2", "=", env_id="seed/EZPoints-v0", arguments=arguments)
    assert code == 0, screen
    assert "0 10" in screen and re.findall(r"> (\S+)", screen) == ["10", "+", "2", "="] and "success: True" in screen


def test_half_blocks_hold_the_colours_of_the_picture() -> None:
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[:2, :, 0], pixels[2:, :2, 1], pixels[2:, 2:, 2] = 200, 100, 50
    assert half_blocks(pixels, columns=2) == (
        "\x1b[38;2;200;0;0m\x1b[48;2;0;100;0m\u2580\x1b[38;2;200;0;0m\x1b[48;2;0;0;50m\u2580\x1b[0m"
    )
    assert [line.count("\u2580") for line in half_blocks(pixels).splitlines()] == [4, 4]


def test_the_picture_goes_to_a_file_where_wished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "room.png"
    assert main(["seed/Sokoban-v0", "--player", "oracle", "--seed", "1", "--picture", str(file)]) == 0
    env = make("seed/Sokoban-v0")
    env.reset(seed=1)
    for word in ("down", "right", "right", "right", "up", "left"):
        observation, *_ = env.step(word)
    assert np.array_equal(np.asarray(Image.open(file)), observation["image"])
    assert "\x1b[" not in capsys.readouterr().out
