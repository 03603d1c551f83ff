"""One held-out game played before and after training, with the skill each policy writes about its own attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seed_envs.alfworld.annotator import annotate_terse
from seed_envs.trajectory import Trajectory
from seed_trainer.tiny.actor import Actor


@dataclass(frozen=True)
class Attempt:
    """One episode and what the policy wrote about it; ``reason`` says why it is no usable skill, if so."""

    episode: Trajectory
    skill: str
    reason: str


def attempts(folder: Path | str, env_id: str, profile: str, tasks: Sequence[str], seed: int) -> list[Attempt]:
    """Let a saved policy play tasks once, sampled as in training, and write about each attempt."""
    actor = Actor.load(Path(folder), env_id, profile, seed)
    try:
        episodes = actor.play(tasks, 1.0)
        skills = actor.write(episodes)
    finally:
        actor.close()
    return [Attempt(e, s.text, s.reason) for e, s in zip(episodes, skills, strict=True)]


def agreement(attempts: Sequence[Attempt]) -> tuple[int, int]:
    """How many skills are word for word what the rules would have written about the same attempt, out of how many."""
    same = 0
    for attempt in attempts:
        ruled = annotate_terse(attempt.episode)
        same += not attempt.reason and attempt.skill.split() == ruled.replace(",", " ").split()
    return same, len(attempts)


def telling_pair(before: Sequence[Attempt], after: Sequence[Attempt]) -> int:
    """Index of a game worth showing: lost before and won after if there is one, the shortest such; else the first."""
    turned = [
        index
        for index, (old, new) in enumerate(zip(before, after, strict=True))
        if not old.episode.success and new.episode.success and not old.reason
    ]
    return min(turned, key=lambda index: after[index].episode.num_steps) if turned else 0


def show(title: str, attempt: Attempt) -> str:
    """An attempt as text: goal, commands with answers, outcome, skill."""
    episode = attempt.episode
    lines = [f"--- {title}: {episode.task_id} ---", episode.goal]
    answers = [step.observation for step in episode.steps[1:]] + [episode.final_observation]
    lines += [f"  > {step.action:<36} {answer}" for step, answer in zip(episode.steps, answers, strict=True)]
    outcome = "solved" if episode.success else f"not solved ({episode.stop_reason.value})"
    skill = attempt.skill if not attempt.reason else f"(unusable: {attempt.reason}) {attempt.skill}"
    return "\n".join([*lines, f"  {outcome} after {episode.num_steps} turns", f"  skill: {skill}"])
