"""Level files, pools, identities, splits and task ids of Sokoban."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from seed_envs.errors import (
    DataInvalid,
    DataMissing,
    NoTaskMatches,
    UnboundedSplit,
    UnknownOption,
    UnknownSplit,
    UnknownTask,
)
from seed_envs.vision.sokoban.classic import generate as generate_classic
from seed_envs.vision.sokoban.files import LONGEST, PACKS, BoxobanSource, FileSource, pack_names, pad
from seed_envs.vision.sokoban.generator import Difficulty, split_of
from seed_envs.vision.sokoban.levels import Level, canonical_bytes, level_hash
from seed_envs.vision.sokoban.oracle import Oracle
from seed_envs.vision.sokoban.pools import Pool
from seed_envs.vision.sokoban.sources import MANIFESTS, ClassicSource, RetrogradeSource, panel_hash
from seed_envs.vision.sokoban.tasks import make_source
from seed_envs.vision.sokoban.xsb import MAX_FILE_BYTES, format_level, load_levels, parse_level, parse_levels

GOOD = "#####\n#@$.#\n#####"


def test_2000_boxoban_levels_are_read_and_written_back(data_dir: Path) -> None:
    source = BoxobanSource(data_dir / "boxoban")
    assert {split: len(source.task_ids(split)) for split in source.splits} == {
        "train": 0, "validation": 1000, "test": 1000, "all": 2000,
    }  # fmt: skip
    hashes = set()
    for name in ("unfiltered_test/000", "medium_valid/000"):
        levels = load_levels(data_dir / "boxoban" / f"{name}.txt")
        assert len(levels) == 1000
        for level in levels:
            assert (level.height, level.width, len(level.boxes)) == (10, 10, 4)
            assert parse_levels(format_level(level), "again") == [level]
            hashes.add(level_hash(level))
    assert len(hashes) == 2000
    loaded = source.load("boxoban/medium_valid/000/17").level
    assert loaded == load_levels(data_dir / "boxoban" / "medium_valid" / "000.txt")[17]


def test_boxoban_ids_are_checked_and_empty_splits_named(data_dir: Path) -> None:
    source = BoxobanSource(data_dir / "boxoban")
    for task_id in ("boxoban/medium_valid/000/1000", "boxoban/medium_valid/000/-1", "boxoban/medium_valid/001/0", "x"):
        with pytest.raises(UnknownTask):
            source.load(task_id)
    with pytest.raises(UnknownTask):
        source.load("boxoban/../../../etc/passwd/0")
    with pytest.raises(NoTaskMatches, match="split='all'"):
        source.choose(np.random.default_rng(0), "train")


def test_packed_boxoban_levels_survive(data_dir: Path, tmp_path: Path) -> None:
    levels = load_levels(data_dir / "boxoban" / "medium_valid" / "000.txt")
    Pool.pack(levels).save(tmp_path / "b.pool")
    assert list(Pool.load(tmp_path / "b.pool")) == levels
    assert (tmp_path / "b.pool").stat().st_size == 20 + 22 * len(levels)


BAD = {
    "no player": "#####\n# $.#\n#####",
    "two players": "######\n#@@$.#\n######",
    "boxes and targets differ": "######\n#@$$.#\n######",
    "no box": "#####\n#@  #\n#####",
    "open at the side": "#####\n#@$. \n#####",
    "open below": "#####\n#@$.#\n## ##",
    "ragged so that it is open": "######\n#@$. #\n####",
    "box outside": "#####  #\n#@$.#$.\n#####  #",
    "unknown symbol": "#####\n#@$?#\n#####",
    "solved": "#####\n#@ *#\n#####",
    "too small": "##\n##",
    "too wide": "#" * 70 + "\n#@$." + " " * 65 + "#\n" + "#" * 70,
    "no level": "hello\nworld\n",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_faulty_maps_are_refused_with_the_place(text: str) -> None:
    with pytest.raises(DataInvalid, match="my.xsb"):
        parse_levels(text, "my.xsb")


def test_files_with_titles_comments_and_outside_blanks_are_read() -> None:
    text = "Title: two rooms\n; 1\n  #####\n###   #\n#@$ . #\n#######\nAuthor: me\n\n; 2\n#####\n#+$*#\n#####\n"
    first, second = parse_levels(text, "two")
    assert (first.height, first.width) == (4, 7)
    assert first.fixed[0] == 0
    assert format_level(second) == "#####\n#+$*#\n#####"


@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbf#####\n#@$.#\n#####", b"#####\r\n#@$.#\r\n#####\r\n\r\n; 2", b"#####\r#@$.#\r#####"]
)
def test_files_of_other_systems_are_read(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "one.xsb").write_bytes(data)
    assert [format_level(level) for level in load_levels(tmp_path / "one.xsb")] == ["#####\n#@$.#\n#####"]


def test_boxoban_files_without_numbered_levels_are_named(tmp_path: Path) -> None:
    (tmp_path / "000.txt").write_text("#####\n#@$.#\n#####\n")
    with pytest.raises(DataInvalid, match=r"000\.txt: holds no level"):
        BoxobanSource(tmp_path).task_ids("all")


def test_missing_large_and_binary_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataMissing):
        load_levels(tmp_path / "none.xsb")
    (tmp_path / "large.xsb").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(DataInvalid, match="bytes"):
        load_levels(tmp_path / "large.xsb")
    (tmp_path / "binary.xsb").write_bytes(b"\xff\xfe\x00#")
    with pytest.raises(DataInvalid, match="UTF-8"):
        load_levels(tmp_path / "binary.xsb")


def test_random_text_never_hangs_or_raises_anything_else() -> None:
    rng = random.Random(0)
    for _ in range(2_000):
        text = "".join(rng.choice("##### @$.*+_-\n\n;x") for _ in range(rng.randrange(120)))
        try:
            levels = parse_levels(text, "fuzz")
        except DataInvalid:
            continue
        assert all(level.validate() for level in levels)


def test_damaged_pools_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.pool"
    Pool.pack([generate_classic(seed) for seed in range(5)]).save(path)
    data = path.read_bytes()
    for damaged in (data[:-1], data[:30] + b"\x00" + data[31:], b"X" + data[1:], data[:10], data + data[20:]):
        path.write_bytes(damaged)
        with pytest.raises(DataInvalid, match=r"p\.pool"):
            Pool.load(path)[0]
    path.write_bytes(data[:12] + bytes(8))
    with pytest.raises(DataInvalid, match="holds no level"):
        FileSource(path)
    with pytest.raises(DataMissing, match="python -m seed_envs"):
        Pool.load(tmp_path / "none.pool")
    with pytest.raises(DataInvalid, match="one shape"):
        Pool.pack([generate_classic(0), generate_classic(0, boxes=2)])
    with pytest.raises(IndexError):
        Pool.pack([generate_classic(0)])[1]


def turned(level: Level) -> Level:
    """The level rotated by a quarter turn."""
    height, width = level.width, level.height

    def moved(cell: int) -> int:
        row, column = divmod(cell, level.width)
        return column * width + (level.height - 1 - row)

    fixed = bytearray(height * width)
    for cell, code in enumerate(level.fixed):
        fixed[moved(cell)] = code
    return Level(height, width, bytes(fixed), tuple(sorted(map(moved, level.boxes))), moved(level.player))


def mirrored(level: Level) -> Level:
    """The level seen in a mirror."""

    def moved(cell: int) -> int:
        row, column = divmod(cell, level.width)
        return row * level.width + (level.width - 1 - column)

    fixed = bytearray(len(level.fixed))
    for cell, code in enumerate(level.fixed):
        fixed[moved(cell)] = code
    return Level(level.height, level.width, bytes(fixed), tuple(sorted(map(moved, level.boxes))), moved(level.player))


def test_identity_ignores_the_eight_symmetries_and_nothing_else() -> None:
    hashes = set()
    for seed in range(60):
        level = generate_classic(seed, 6, 8, 2)
        images = [level]
        for _ in range(3):
            images.append(turned(images[-1]))
        images += [mirrored(image) for image in images]
        assert len({level_hash(image) for image in images}) == 1
        assert len({split_of(image.height, image.width, image.fixed) for image in images}) == 1
        hashes.add(level_hash(level))
        free = [cell for cell, code in enumerate(level.fixed) if code and cell not in level.boxes]
        others = {level_hash(Level(6, 8, level.fixed, level.boxes, cell)) for cell in free}
        assert len(others) >= len(free) / 8
    assert len(hashes) > 50
    assert canonical_bytes(2, 3, b"abcdef") == canonical_bytes(2, 3, b"fedcba") == canonical_bytes(3, 2, b"daebfc")


def test_generated_splits_never_share_a_room_or_a_level() -> None:
    source = RetrogradeSource(Difficulty())
    rooms: dict[str, set[bytes]] = {}
    levels: dict[str, set[str]] = {}
    for split in ("train", "validation", "test"):
        ids = [f"retro-6x6-b1-s4-15/{split}/{number}" for number in range(500 if split == "train" else 256)]
        loaded = [source.load(task_id).level for task_id in ids]
        rooms[split] = {canonical_bytes(6, 6, level.fixed) for level in loaded}
        levels[split] = {level_hash(level) for level in loaded}
    for one, other in (("train", "test"), ("train", "validation"), ("validation", "test")):
        assert not rooms[one] & rooms[other]
        assert not levels[one] & levels[other]


@pytest.mark.parametrize("name", ["retro-6x6-b1-s4-15", "classic-6x6-b1-d30"])
@pytest.mark.parametrize("split", ["validation", "test"])
def test_checked_in_panels_still_give_the_levels_they_were_made_with(name: str, split: str) -> None:
    source = RetrogradeSource(Difficulty()) if name.startswith("retro") else ClassicSource(6, 6, 1)
    panel = source.task_ids(split)
    assert len(panel) == 256
    text = (MANIFESTS / f"{name}-{split}.txt").read_text()
    assert f"# levels: {panel_hash(source, panel)}\n" in text


@pytest.mark.parametrize("split", ["validation", "test"])
def test_retrograde_panels_list_every_level_once_in_order(split: str) -> None:
    shipped = sorted(MANIFESTS.glob(f"retro-*-{split}.txt"))
    assert [path.name for path in shipped] == [f"retro-6x6-b1-s4-15-{split}.txt"]
    for kind, size in ((Difficulty(), 256), (Difficulty(6, 6, 2, 12, 30), 256)):
        source = RetrogradeSource(kind)
        panel = source.task_ids(split)
        assert len({level_hash(source.load(task_id).level) for task_id in panel}) == len(panel) == size
        assert list(panel) == source.make_panel(split)
        numbers = [int(task_id.rpartition("/")[2]) for task_id in panel]
        assert numbers == sorted(numbers)
        listed = {level_hash(source.load(task_id).level) for task_id in panel}
        left_out = sorted(set(range(numbers[-1])) - set(numbers))
        assert left_out
        assert all(level_hash(source.load(f"{source.name}/{split}/{number}").level) in listed for number in left_out)


def test_kinds_with_few_levels_have_small_panels_and_draws_stay_in_them() -> None:
    source, rng = RetrogradeSource(Difficulty(5, 5, 1, 4, 15)), np.random.default_rng(0)
    panel = source.task_ids("validation")
    assert 1 < len(panel) < 256
    assert len({level_hash(source.load(task_id).level) for task_id in panel}) == len(panel)
    assert {source.choose(rng, "validation") for _ in range(400)} == set(panel)
    default = RetrogradeSource(Difficulty())
    drawn = {default.choose(rng, "test") for _ in range(400)}
    assert drawn <= set(default.task_ids("test"))
    assert max(int(task_id.rpartition("/")[2]) for task_id in drawn) >= 256


def test_training_ids_are_unbounded_and_unknown_ids_and_splits_named() -> None:
    for source in (RetrogradeSource(Difficulty()), ClassicSource(6, 6, 1)):
        with pytest.raises(UnboundedSplit):
            source.task_ids("train")
        with pytest.raises(UnknownSplit, match="validation"):
            source.task_ids("valid")
        for task_id in ("", "nonsense", "retro-6x6-b1-s4-15/test/-1", "retro-6x6-b1-s4-15/test/99999999999",
                        "retro-6x6-b9-s4-15/test/0", "retro-8x8-b1-s4-15/test/0", "retro-6x6-b1-s9-4/test/0",
                        "classic-6x6-b1-d30/4294967295", "classic-6x6-b2-d30/1",
                        "retro-6x6-b1-s4-15/test/١"):  # fmt: skip
            with pytest.raises(UnknownTask):
                source.load(task_id)


def test_training_draws_stay_in_the_frameworks_seed_range() -> None:
    source, rng = ClassicSource(6, 6, 1), np.random.default_rng(0)
    seeds = [int(source.choose(rng, "train").rpartition("/")[2]) for _ in range(300)]
    assert all(0 <= seed <= 2**16 - 2 for seed in seeds)
    assert int(source.task_ids("validation")[0].rpartition("/")[2]) == 2**16


@pytest.mark.parametrize("name", ["pack-6x6-b1", "pack-6x6-b2", "pack-8x8-b2"])
def test_shipped_packs_hold_distinct_solvable_levels(name: str) -> None:
    assert name in pack_names()
    pool = Pool.load(PACKS / f"{name}.pool")
    assert len({level_hash(level) for level in pool}) == len(pool) == 1000
    source = make_source(name, Difficulty())
    sizes = {split: len(source.task_ids(split)) for split in source.splits}
    assert sizes["train"] + sizes["validation"] + sizes["test"] == sizes["all"] == 1000
    assert min(sizes.values()) > 50
    assert all(Oracle.of(pool[index]).optimal_steps for index in range(0, 1000, 20))


def test_a_file_of_several_sizes_is_padded_and_split(tmp_path: Path) -> None:
    path = tmp_path / "mine.xsb"
    path.write_text(f"{GOOD}\n\n#######\n#  .  #\n#  $  #\n#  @  #\n#######\n")
    source = make_source(path, Difficulty())
    assert (source.height, source.width, source.default_split) == (5, 7, "all")
    small = source.load("mine/0").level.validate()
    assert (small.height, small.width) == (5, 7)
    assert Oracle.of(small).optimal_steps == 1
    assert sorted([*source.task_ids("train"), *source.task_ids("validation"), *source.task_ids("test")]) == [
        "mine/0",
        "mine/1",
    ]
    with pytest.raises(UnknownTask, match="mine/1"):
        FileSource(path).load("mine/2")
    level = parse_level(GOOD.splitlines(), "good")
    assert pad(level, 3, 5) is level


def test_unknown_level_sources_are_named() -> None:
    with pytest.raises(UnknownOption, match="Did you mean 'retrograde'"):
        make_source("retrogade", Difficulty())
    with pytest.raises(ValueError, match="classic generator"):
        ClassicSource(3, 3, 1)


def test_the_packs_longest_solutions_are_as_stated() -> None:
    assert sorted(LONGEST) == pack_names()
    for name, longest in LONGEST.items():
        levels = [Oracle.of(level) for level in Pool.load(PACKS / f"{name}.pool")]
        assert max(oracle.optimal_steps or 0 for oracle in levels) == longest
