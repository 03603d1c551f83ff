"""Small trainers of the word world, in this process or on the processes of torchrun: cases in, records out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from word_world import GROWING, WINDOW, WORDS, make_word_env, word_tokenizer

from seed_envs.profiles import Profile
from seed_trainer.acting.rollout import tokens_of
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.trainer import SEEDTrainer

PROFILES = {"episode": GROWING, "turn": WINDOW}


def build_trainer(
    model: Any, folder: Path, profile: Profile = GROWING, tasks: int = 8, panel: bool = False, **options: Any
) -> SEEDTrainer:
    """Build a small trainer: 4 tasks x 4 episodes a round, two mini-batches.

    Args:
        model: Path or model.
        folder: Run folder.
        profile: How turns are shown.
        tasks: Number of training tasks.
        panel: Whether there is a panel to evaluate on.
        options: Override settings.
    """
    growing = profile.style == "growing"
    settings: dict[str, Any] = {
        "output_dir": str(folder),
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "report_to": "none",
        "disable_tqdm": True,
        "per_device_train_batch_size": 8,
        "steps_per_generation": 2,
        "num_generations": 4,
        "max_turn_length": 3,
        "max_skill_length": 6,
        "rounds": 2,
        "learning_rate": 1e-3,
        "save_strategy": "no",
        "log_episodes": 0,
        "rollout_layout": "episode" if growing else "turn",
        "skill_analyzer": "auto" if growing else "json",
        "max_analysis_length": 8,
        "seed": 3,
    }
    peft_config = options.pop("peft_config", None)
    turns, typed = options.pop("env_turns", 3), options.pop("env_typed", False)
    return SEEDTrainer(
        model=model,
        args=SEEDConfig(**{**settings, **options}),
        make_env=lambda: make_word_env(profile, turns, typed),
        profile=profile,
        env_id="words",
        train_dataset=Dataset.from_dict({"task_id": [WORDS[i % 4] for i in range(tasks)]}),
        eval_dataset=Dataset.from_dict({"task_id": WORDS}) if panel else None,
        processing_class=word_tokenizer(),
        peft_config=peft_config,
    )


def run_case(model: str, folder: Path, case: Mapping[str, Any]) -> dict[str, Any]:
    """Train and tell what this process saw: episodes by stream, skills, rows, log lines and the final weights."""
    options = dict(case)
    profile = PROFILES[options.pop("layout", "episode")]
    resume = options.pop("resume", None)
    trainer = build_trainer(model, folder, profile, **options)
    record: dict[str, Any] = {"episodes": {}, "skills": {}, "rows": [], "panel": {}}
    watch, play = trainer._watch, trainer.panels.actor.play

    def spy(block: Any, batch: Any, moment: Any) -> None:
        for index, episode in enumerate(block.episodes):
            stream = tokens_of(episode)[0].stream
            record["episodes"][stream] = [step.reply for step in episode.steps]
            record["skills"][stream] = [block.skills[index].text, block.skills[index].reason] if block.skills else []
        record["rows"].append([len(block.rows), sum(not row.filler for row in block.rows), len(batch["prompt_ids"])])
        watch(block, batch, moment)

    def spy_play(tasks: Any, *rest: Any, **more: Any) -> Any:
        episodes = play(tasks, *rest, **more)
        if tasks and "/evaluation/" in tasks[0].stream:
            for task, episode in zip(tasks, episodes, strict=True):
                record["panel"][task.stream] = [step.reply for step in episode.steps]
        return episodes

    trainer._watch = spy  # type: ignore[method-assign]
    trainer.panels.actor.play = spy_play  # type: ignore[method-assign]
    trainer.train(resume_from_checkpoint=resume)
    state = trainer.accelerator.get_state_dict(trainer.model)
    trainer.player.close()
    record["processes"] = trainer.accelerator.num_processes
    record["log"] = [{k: v for k, v in line.items() if not k.startswith("time/")} for line in trainer.state.log_history]
    if trainer.accelerator.is_main_process:
        torch.save({name: tensor.cpu().clone() for name, tensor in state.items()}, folder / "weights.pt")
    return record


def launch(model: str, folder: Path, cases: Mapping[str, Mapping[str, Any]], processes: int = 2) -> dict[str, Any]:
    """Run cases one after another on the processes of one torchrun.

    Args:
        model: Path of the model.
        folder: Each case has a folder of its name in it.
        cases: Settings by name.
        processes: How many.

    Returns:
        The records of every case, one per process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.json").write_text(json.dumps({"model": model, "cases": cases}))
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", f"--nproc_per_node={processes}"]
    # The launcher finds a free port.
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", __file__, str(folder)]
    repo = Path(__file__).parents[2]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(repo)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    if done.returncode and "Gloo" in done.stderr and "not" in done.stderr and "available" in done.stderr:
        import pytest

        pytest.skip("Linux: this build of PyTorch has no gloo back end")
    assert done.returncode == 0, done.stderr[-6000:]
    return {
        name: [json.loads((folder / name / f"rank{rank}.json").read_text()) for rank in range(processes)]
        for name in cases
    }


def union(records: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Join what the processes saw of a kind; no stream is played twice."""
    joined: dict[str, Any] = {}
    for record in records:
        assert not joined.keys() & record[name].keys()
        joined |= record[name]
    return joined


def apart(first: Path, second: Path) -> float:
    """Return the largest difference between the final weights of two runs."""
    one, other = (torch.load(folder / "weights.pt") for folder in (first, second))
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def main(folder: Path) -> None:
    """Run the cases of a folder on this process."""
    from accelerate.state import AcceleratorState

    plan, rank = json.loads((folder / "cases.json").read_text()), os.environ["RANK"]
    for name, case in plan["cases"].items():
        AcceleratorState._reset_state()
        (folder / name).mkdir(exist_ok=True)
        record = run_case(plan["model"], folder / name, case)
        (folder / name / f"rank{rank}.json").write_text(json.dumps(record))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
