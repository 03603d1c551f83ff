"""The framework generator's contract: golden levels, retries, and independence of process, hash seed and threads.

The digests were computed with gym-sokoban 0.0.6's generator changed to what RAGEN and verl-agent made of it, run on the
global generators, for the seeds 0 to 199; seeds that give no level count as the word ``retry``.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from seed_envs.vision.sokoban.classic import NoLevel, generate, generate_once, next_seed
from seed_envs.vision.sokoban.xsb import format_level

GOLDEN = {
    1: (0, "89f008e30bf1011e56e7e2fda643d399b2b59dd1d121cb251bd38fa379242717"),
    2: (19, "b33eeb54bb000b117634526d6730eb8feec6b1a39c19253d494de0bf201dcae9"),
    3: (83, "376592d4f8cf22c976dd50fbefe67147cd276efe825e06607d626c0b76ca6bff"),
}


@pytest.mark.parametrize("boxes", [1, 2, 3])
def test_200_levels_equal_those_of_the_frameworks(boxes: int) -> None:
    digest, retries = hashlib.sha256(), 0
    for seed in range(200):
        try:
            level = generate_once(seed, 6, 6, boxes)
        except NoLevel:
            retries += 1
            digest.update(b"retry")
        else:
            digest.update(level.validate().fixed + bytes(level.room()))
    assert (retries, digest.hexdigest()) == GOLDEN[boxes]


def test_two_levels_written_out() -> None:
    assert format_level(generate_once(0, 6, 6, 1)) == "######\n#    #\n##. @#\n###$ #\n###  #\n######"
    assert format_level(generate_once(7, 6, 6, 2)) == "######\n##  @#\n##.$$#\n### .#\n###  #\n######"


def test_a_seed_without_a_level_moves_on_to_a_fixed_other_seed() -> None:
    failing = next(seed for seed in range(200) if _fails(seed))
    assert next_seed(failing) == int(hashlib.sha256(str(failing).encode()).hexdigest()[:8], 16)
    assert generate(failing, 6, 6, 3) == generate(next_seed(failing), 6, 6, 3)


def _fails(seed: int) -> bool:
    try:
        generate_once(seed, 6, 6, 3)
    except NoLevel:
        return True
    return False


def test_boxes_that_never_fit_end_in_an_error() -> None:
    with pytest.raises(NoLevel, match="1000 seeds"):
        generate(0, 4, 4, 4)


_PROGRAM = """
import random
from seed_envs.vision.sokoban.classic import generate
before = random.getstate()
print([(level.fixed.hex(), level.boxes, level.player) for level in (generate(seed, 6, 6, 3) for seed in range(20))])
assert random.getstate() == before
"""


def test_levels_do_not_depend_on_the_hash_seed() -> None:
    outputs = set()
    for hash_seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1


def test_threads_do_not_disturb_each_other() -> None:
    alone = [generate(seed, 6, 6, 2) for seed in range(80)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: generate(seed, 6, 6, 2), range(80)))
    assert alone == together
