"""Lets one saved policy play held-out games once and write about each attempt; a process of its own.

    python -m seed_trainer.quickstart.attempts --model runs/quickstart/stage1 --tasks 48 --output_dir attempts/stage1

What is shown of the attempts is decided in :mod:`seed_trainer.quickstart.transcripts`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from seed_trainer.quickstart.transcripts import Attempt, write_attempts

ENV_ID = "seed/ALFWorld-v0"
PROFILE = "compact"
SPLIT = "compact/test"


def play(folder: Path, tasks: Sequence[str], seed: int) -> list[Attempt]:
    """Play tasks once each, sampled as in training.

    Args:
        folder: Model and tokenizer.
        tasks: Task ids.
        seed: Seed of the sampling.
    """
    from contextlib import closing

    from seed_envs.alfworld.annotator import annotate_terse
    from seed_trainer.tiny.actor import Actor

    with closing(Actor.load(folder, ENV_ID, PROFILE, seed)) as actor:
        episodes = actor.play(tasks, 1.0)
        skills = actor.write(episodes)
    attempts = []
    for episode, skill in zip(episodes, skills, strict=True):
        answers = [step.observation for step in episode.steps[1:]] + [episode.final_observation]
        attempts.append(
            Attempt(
                task_id=episode.task_id,
                goal=episode.goal,
                success=episode.success,
                stop_reason=episode.stop_reason.value,
                exchanges=[(step.action, str(answer)) for step, answer in zip(episode.steps, answers, strict=True)],
                skill=skill.text,
                reason=skill.reason,
                ruled=annotate_terse(episode),
            )
        )
    return attempts


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m seed_trainer.quickstart.attempts", description=__doc__)
    parser.add_argument("--model", required=True, help="folder of a model, or builtin/NAME")
    parser.add_argument("--tasks", type=int, default=48, help="the first tasks of the panel (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sampling (default: %(default)s)")
    parser.add_argument("--output_dir", type=Path, required=True, help="where the attempts are written")
    options = parser.parse_args(list(argv))
    from seed_trainer.commands.building import resolve_model

    tasks = [f"{SPLIT}/{number}" for number in range(options.tasks)]
    write_attempts(options.output_dir, play(Path(resolve_model(options.model)), tasks, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
