"""What is sampled depends on seed, round, task, repeat and turn: 1, 2 and 4 processes train the same model."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM
from word_trainer import apart, launch, run_case, union
from word_world import word_tokenizer

from seed_envs.tasks import TaskSpec
from seed_trainer.acting.generation import CachedSampler
from seed_trainer.acting.play import with_streams
from seed_trainer.acting.sampling import Decoding
from seed_trainer.acting.streams import draws_BL, inverse_cdf_B

CPU = torch.device("cpu")
COMMON: dict[str, Any] = {
    "tasks": 8,
    "panel": True,
    "eval_rounds": 1,
    "eval_repeats": 2,
    "eval_temperature": 1.0,
    "skill_temperature": 1.0,
    "beta": 0.05,
    "opd_coef": 0.3,
    "per_device_train_batch_size": 4,
}


def split(processes: int, **more: Any) -> dict[str, Any]:
    """One update per round of 16 episodes, whatever the number of processes."""
    return {**COMMON, "steps_per_generation": 4 // processes, "gradient_accumulation_steps": 4 // processes, **more}


CASES: dict[str, dict[str, Any]] = {
    "episode": {},
    "turn": {"layout": "turn"},
    "shuffled": {"skill_source": "shuffled_batch"},
}


def compare(model_path: str, folder: Path, processes: int) -> None:
    cases = {name: split(processes, **case) for name, case in CASES.items()}
    several = launch(model_path, folder / "several", cases, processes)
    for name, case in CASES.items():
        (folder / name).mkdir()
        one = run_case(model_path, folder / name, split(1, **case))
        assert len(several[name]) == processes and len(one["episodes"]) == 32 and len(one["panel"]) == 16
        for kind in ("episodes", "skills", "panel"):
            assert union(several[name], kind) == one[kind], (name, kind)
        assert apart(folder / name, folder / "several" / name) < 1e-5, name
        lines = [[line for line in log if "grad_norm" in line] for log in (several[name][0]["log"], one["log"])]
        assert len(lines[0]) == len(lines[1]) == 2
        for theirs, ours in zip(*lines, strict=True):
            for key in ("loss", "grad_norm", "env/success"):
                assert theirs[key] == pytest.approx(ours[key], abs=1e-5), (name, key)


def test_two_processes_play_the_same_episodes_and_make_the_same_updates(model_path: str, tmp_path: Path) -> None:
    compare(model_path, tmp_path, 2)


@pytest.mark.slow
def test_four_processes_do_too(model_path: str, tmp_path: Path) -> None:
    compare(model_path, tmp_path, 4)


def test_a_continuation_does_not_depend_on_those_beside_it(model_path: str) -> None:
    model = LlamaForCausalLM.from_pretrained(model_path).eval()
    contexts = [
        list(ids) for ids in word_tokenizer()(["<user> say red <bot>"] * 8, add_special_tokens=False)["input_ids"]
    ]
    streams = [f"0/0/play/red/{repeat}" for repeat in range(8)]

    def sample(rows: list[int]) -> list[list[int]]:
        sampler = CachedSampler(lambda: nullcontext(model), [1], 0, CPU)
        chosen = [streams[row] for row in rows]
        return [s.ids for s in sampler.sample(rows, [contexts[row] for row in rows], Decoding(4, 2.0), streams=chosen)]

    together = sample(list(range(8)))
    assert len({tuple(ids) for ids in together}) > 2
    assert sample([5, 2]) == [together[5], together[2]]


def test_equal_tasks_are_numbered_across_processes() -> None:
    tasks = [TaskSpec(name) for name in ("a", "a", "b", "a", "b", "b")]
    whole = [task.stream for task in with_streams(tasks, "0/3/play")]
    assert whole[0] == "0/3/play/None/a/None/0" and len(set(whole)) == 6
    later = with_streams(tasks[4:], "0/3/play", ["None/a/None", "None/a/None", "None/b/None", "None/a/None"])
    assert [task.stream for task in later] == whole[4:]


def test_draws_follow_the_probabilities_and_never_pick_what_has_none() -> None:
    probabilities = torch.tensor([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    draws = draws_BL([f"stream {i}" for i in range(4000)], 2, CPU)
    assert bool(((draws >= 0) & (draws < 1)).all())
    torch.testing.assert_close(draws_BL(["stream 7"], 1, CPU)[0], draws[7, :1])
    counts = inverse_cdf_B(probabilities.expand(4000, -1), draws[:, 0]).bincount(minlength=6) / 4000
    torch.testing.assert_close(counts, probabilities, atol=0.03, rtol=0)
    edges = torch.tensor([0.0, 0.25, 0.5, 1 - 2.0**-24], dtype=torch.float64)
    assert inverse_cdf_B(probabilities.expand(4, -1), edges).tolist() == [1, 3, 3, 4]
