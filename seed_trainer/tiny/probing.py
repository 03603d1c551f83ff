"""What a base model can do before RL: without a skill, with its own, and with one that belongs to another thing.

A base whose success does not rise with its own skills cannot be taught by SEED; one whose success rises with foreign
skills as well is being told "be careful", not "look there". Measured on the validation panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seed_envs.alfworld.annotator import annotate_terse
from seed_envs.statistics.intervals import wilson
from seed_envs.tables import table as markdown
from seed_envs.trajectory import Trajectory
from seed_trainer.tiny.actor import Actor
from seed_trainer.tiny.lessons import ENV_ID, thing_of


@dataclass(frozen=True)
class Measured:
    """One line of the table: what was measured, how often it happened, out of how many, mean turns (0: none)."""

    name: str
    count: int
    total: int
    turns: float = 0.0


def probe(actor: Actor, tasks: Sequence[str]) -> list[Measured]:
    """Measure a base model.

    Args:
        actor: The model.
        tasks: Task ids.

    Returns:
        Success without a skill (greedy and sampled), with the own skill about another attempt, with the annotator's
        and with a foreign one; and how often the own skill is exactly the annotator's.
    """
    greedy, sampled = actor.play(tasks, 0.0), actor.play(tasks, 1.0)
    own = [skill.text if skill.valid else "" for skill in actor.write(sampled)]
    ruled = [annotate_terse(episode) for episode in sampled]
    lines = [_success("no skill, greedy", greedy), _success("no skill, sampled", sampled)]
    for name, skills in (("own", own), ("annotator's", ruled), ("foreign", foreign_skills(sampled, own))):
        lines.append(_success(f"{name} skill, sampled", actor.play(tasks, 1.0, skills)))
    lines.append(Measured("own skill valid", sum(map(bool, own)), len(own)))
    split = actor.tokenizer.tokenize
    for won in (True, False):
        same = [
            split(mine) == split(rule)
            for mine, rule, episode in zip(own, ruled, sampled, strict=True)
            if episode.success is won
        ]
        lines.append(Measured(f"own skill as the annotator's, {'won' if won else 'lost'}", sum(same), len(same)))
    return lines


def foreign_skills(episodes: Sequence[Trajectory], skills: Sequence[str]) -> list[str]:
    """For every episode the next episode's skill that is about another kind of thing."""
    things = [thing_of(episode) for episode in episodes]
    chosen = []
    for index, thing in enumerate(things):
        others = [*range(index + 1, len(things)), *range(index)]
        chosen.append(next((skills[other] for other in others if things[other] != thing and skills[other]), ""))
    return chosen


def _success(name: str, episodes: Sequence[Trajectory]) -> Measured:
    scored = [episode for episode in episodes if episode.stop_reason.scored]
    turns = sum(episode.num_steps for episode in scored) / max(1, len(scored))
    return Measured(name, sum(episode.success for episode in scored), len(scored), turns)


def probe_folder(folder: Path, count: int, profile: str = "compact", seed: int = 0) -> list[Measured]:
    """Measure a saved model on the first ``count`` tasks of the validation panel."""
    actor = Actor.load(folder, ENV_ID, profile, seed)
    try:
        return probe(actor, [f"compact/validation/{number}" for number in range(count)])
    finally:
        actor.close()


def table(lines: Sequence[Measured]) -> str:
    """The measurements as a Markdown table with Wilson intervals."""
    rows = []
    for line in lines:
        low, high = wilson(line.count, line.total)
        share = line.count / max(1, line.total)
        turns = f"{line.turns:.1f}" if line.turns else "-"
        rows.append((line.name, f"{share:.3f}", f"{low:.3f} to {high:.3f}", f"{line.count}/{line.total}", turns))
    return markdown(("measured", "share", "95 % interval", "count", "turns"), rows)
