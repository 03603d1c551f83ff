"""Sokoban as text and as pictures."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seed_envs.vision.sokoban.classic import generate
from seed_envs.vision.sokoban.levels import BOX, BOX_ON_TARGET, FLOOR, PLAYER, PLAYER_ON_TARGET, TARGET, WALL
from seed_envs.vision.sokoban.render import TILE_SIZES, Canvas, frame, tile_atlas
from seed_envs.vision.sokoban.rules import Game
from seed_envs.vision.sokoban.text import TEXT_FORMATS, visible_cells
from seed_envs.vision.sokoban.xsb import parse_level, parse_levels


@pytest.fixture
def game() -> Game:
    rows = ["######", "#+$* #", "# $ .#", "#    #", "######"]
    return Game(parse_level(rows, "picture"))


def test_grids_use_the_documented_symbols(game: Game) -> None:
    write = TEXT_FORMATS
    assert write["plain"](game).splitlines()[1:3] == ["# S X √ _ #", "# _ X _ O #"]
    assert write["tab"](game).splitlines()[1] == " # \t S \t X \t √ \t _ \t # \t"
    assert not write["tab"](game).endswith("\n")
    assert write["xsb"](game).splitlines()[1] == "#+$* #"
    assert parse_levels(write["xsb"](game), "again")[0] == game.level
    game.step(2)
    assert write["plain"](game).splitlines()[1:3] == ["# O X √ _ #", "# P X _ O #"]


def test_words_name_every_place_from_one(game: Game) -> None:
    lines = dict(line.split(": ") for line in TEXT_FORMATS["coordinates"](game).splitlines())
    assert lines["Player"] == "(2, 2)"
    assert lines["Boxes off target"] == "(2, 3), (3, 3)"
    assert lines["Boxes on target"] == "(2, 4)"
    assert lines["Targets without a box"] == "(2, 2), (3, 5)"
    assert lines["Walls inside"] == "none"
    assert "boxes at (2, 3), (2, 4), (3, 3), targets at (2, 2), (2, 4), (3, 5)" in TEXT_FORMATS["caption"](game)


@pytest.mark.parametrize("tile", TILE_SIZES)
def test_tiles_are_distinct_and_coloured_as_described(tile: int) -> None:
    atlas = tile_atlas(tile).astype(int)
    assert atlas.shape == (7, tile, tile, 3)
    for one in range(7):
        for other in range(one):
            assert np.abs(atlas[one] - atlas[other]).mean() > 5
    middle, edge = tile // 2, round(tile * 0.21)
    red, green, blue = range(3)
    assert atlas[FLOOR, middle, middle].min() > 180
    assert atlas[WALL, :, :, red].mean() > atlas[WALL, :, :, blue].mean() + 40
    ring = atlas[TARGET, middle, edge]
    assert ring[red] > ring[green] + 80
    assert atlas[BOX_ON_TARGET, middle, edge][green] > atlas[BOX_ON_TARGET, middle, edge][red] + 40
    assert atlas[BOX, middle, edge][red] > atlas[BOX, middle, edge][blue] + 60
    body = atlas[PLAYER, round(tile * 0.6), middle]
    assert body[blue] > body[red] + 60
    assert np.abs(atlas[PLAYER_ON_TARGET] - atlas[PLAYER]).mean() > 5


@pytest.mark.parametrize("tile", TILE_SIZES)
def test_incremental_pictures_equal_full_ones(tile: int) -> None:
    rng = random.Random(tile)
    for seed in range(12):
        level = generate(seed, 6, 7, 1 + seed % 2)
        game = Game(level)
        canvas = Canvas(game, tile)
        for _ in range(60):
            before = game.player
            game.step(rng.randrange(9))
            canvas.update(before)
            full = frame(visible_cells(game), level.height, level.width, tile)
            assert full.shape == (6 * tile, 7 * tile, 3)
            assert full.dtype == np.uint8
            assert np.array_equal(canvas.pixels, full)
