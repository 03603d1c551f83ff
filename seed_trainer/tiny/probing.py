"""What a base model can do before RL: without a skill, with its own, and with one that belongs to another thing.

A base whose success does not rise with its own skills cannot be taught by SEED; one that also rises with foreign
skills is being told "be careful", not "look there". Measured on the validation panel, never used for choosing tasks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from seed_envs import make_agent_env
from seed_envs.alfworld.annotator import annotate_terse
from seed_envs.profiles import get_profile
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_trainer.dry_run import table as markdown
from seed_trainer.encoding import ChatEncoder
from seed_trainer.evaluation import wilson
from seed_trainer.generation import CachedSampler, Decoding
from seed_trainer.options import SEEDOptions
from seed_trainer.play import EpisodePlayer
from seed_trainer.rollout import TokenPolicy
from seed_trainer.skills.analyzer import SkillWriter
from seed_trainer.skills.prompts import get_analyzer, outcome_of
from seed_trainer.tiny.lessons import ENV_ID

COMMAND_TOKENS = 12
SKILL_TOKENS = 64


@dataclass(frozen=True)
class Measured:
    """One line of the table: how it was played, episodes won, episodes, mean turns."""

    name: str
    won: int
    played: int
    turns: float


class Bench:
    """A model with everything needed to let it play and write.

    Args:
        model: Causal language model.
        tokenizer: Its tokenizer.
        profile_name: Profile of the household game.
        seed: Seed of the sampling.
    """

    def __init__(self, model: Any, tokenizer: Any, profile_name: str = "compact", seed: int = 0) -> None:
        import torch

        self.profile = get_profile(ENV_ID, profile_name)
        self.encoder = ChatEncoder(tokenizer, tokenizer)
        self.generator = torch.Generator().manual_seed(seed)
        self.sampler = CachedSampler(
            lambda: contextlib.nullcontext(model),
            self.encoder.eos_token_ids,
            tokenizer.pad_token_id,
            torch.device("cpu"),
            self.generator,
        )
        self.player = EpisodePlayer(partial(make_agent_env, ENV_ID, profile_name), ENV_ID, self.profile)

    def play(self, tasks: Sequence[str], temperature: float, skills: Sequence[str] = ()) -> list[Trajectory]:
        """Play one episode per task, with a skill each if there are any."""
        decoding = Decoding(COMMAND_TOKENS, temperature)
        policy = TokenPolicy(self.encoder, self.sampler, self.profile, "episode", decoding, 1024)
        specs = [TaskSpec(task, group=index) for index, task in enumerate(tasks)]
        skill_for = (lambda episode: skills[episode.group]) if skills else None
        self.sampler.forget()
        return self.player.play(specs, policy, skill_for=skill_for)

    def write(self, episodes: Sequence[Trajectory]) -> list[str]:
        """Let the model write a skill about each episode; unusable ones are empty."""
        options = SEEDOptions(max_skill_length=SKILL_TOKENS)
        analyzer = get_analyzer("turn", self.profile.style)
        writer = SkillWriter(self.encoder, self.sampler, self.profile, "episode", analyzer, options)
        skills = writer.write(episodes, [outcome_of(episode) for episode in episodes])
        return [skill.text if skill.valid else "" for skill in skills]


def probe(model: Any, tokenizer: Any, tasks: Sequence[str], seed: int = 0) -> list[Measured]:
    """Measure a base model.

    Args:
        model: Causal language model.
        tokenizer: Its tokenizer.
        tasks: Task ids of the compact preset, in which neighbours ask for different things.
        seed: Seed of the sampling.

    Returns:
        Success without a skill (greedy and sampled), with the own skill about another attempt, with the annotator's,
        with a foreign one, and how often the own skill says what the annotator says.
    """
    bench = Bench(model, tokenizer, seed=seed)
    greedy = bench.play(tasks, 0.0)
    sampled = bench.play(tasks, 1.0)
    own = bench.write(sampled)
    ruled = [annotate_terse(episode) for episode in sampled]
    shift = max(1, len(tasks) // 3 + 1)
    lines = [_line("no skill, greedy", greedy), _line("no skill, sampled", sampled)]
    for name, skills in (("own skill", own), ("annotator's skill", ruled), ("foreign skill", own[shift:] + own[:shift])):
        lines.append(_line(f"{name}, sampled", bench.play(tasks, 1.0, skills)))
    for won in (True, False):
        same = [
            bench.encoder.tokenizer.tokenize(mine) == bench.encoder.tokenizer.tokenize(rule)
            for mine, rule, episode in zip(own, ruled, sampled, strict=True)
            if episode.success is won
        ]
        lines.append(Measured(f"own skill equals the annotator's, {'won' if won else 'lost'}", sum(same), len(same), 0))
    bench.player.close()
    return lines


def _line(name: str, episodes: Sequence[Trajectory]) -> Measured:
    turns = sum(episode.num_steps for episode in episodes) / max(1, len(episodes))
    return Measured(name, sum(episode.success for episode in episodes), len(episodes), turns)


def probe_folder(folder: Path, count: int, seed: int = 0) -> list[Measured]:
    """Measure a saved model on the first tasks of the validation panel."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    tasks = [f"compact/validation/{number}" for number in range(count)]
    return probe(model.eval(), AutoTokenizer.from_pretrained(folder), tasks, seed)


def table(lines: Sequence[Measured]) -> str:
    """The measurements as a Markdown table with Wilson intervals."""
    rows = []
    for line in lines:
        low, high = wilson(line.won, line.played)
        share = line.won / max(1, line.played)
        turns = f"{line.turns:.1f}" if line.turns else "-"
        rows.append((line.name, f"{share:.3f}", f"{low:.3f} to {high:.3f}", f"{line.won}/{line.played}", turns))
    return markdown(rows, ("played with", "share", "95 % interval", "count", "turns"))
