"""Two rounds of SEED from Python instead of the command line: environment, profile, tasks, trainer.

It shows the parts and learns nothing in two rounds; half a minute on a CPU. Run: python examples/04_train.py NEW_FOLDER
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

from datasets import Dataset

from seed_envs import get_profile, make_agent_env
from seed_trainer import SEEDConfig, SEEDTrainer
from seed_trainer.commands.building import resolve_model

ENV_ID = "seed/ALFWorld-v0"


def main() -> None:
    """Train and print what was measured."""
    profile = get_profile(ENV_ID, "compact")
    tasks = [{"task_id": f"compact/train/{number}", "split": "compact_train"} for number in range(8)]
    config = SEEDConfig(
        output_dir=sys.argv[1],
        rollout_layout="episode",
        rounds=2,
        num_generations=2,
        per_device_train_batch_size=4,
        steps_per_generation=2,
        max_turn_length=6,
        max_prompt_length=700,
        max_skill_length=12,
        opd_coef=0.3,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
    )
    trainer = SEEDTrainer(
        model=resolve_model("builtin/alfworld-tiny"),
        args=config,
        make_env=functools.partial(make_agent_env, ENV_ID, profile),
        profile=profile,
        train_dataset=Dataset.from_list(tasks),
        env_id=ENV_ID,
    )
    trainer.train()
    trainer.end()
    rounds = [json.loads(line) for line in (Path(sys.argv[1]) / "metrics.jsonl").read_text("utf-8").splitlines()]
    for number, metrics in enumerate((each for each in rounds if "env/success" in each), 1):
        shown = {name: round(metrics[name], 3) for name in ("env/success", "skill/valid", "opd/gate_mean", "loss")}
        print(f"round {number}: {shown}")


if __name__ == "__main__":
    main()
