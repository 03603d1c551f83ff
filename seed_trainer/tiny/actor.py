"""A saved or freshly trained model that plays and writes skills outside any trainer, on the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from seed_envs import make_agent_env
from seed_envs.processors import load_processor
from seed_envs.profiles import get_profile
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.acting.generation import CachedSampler
from seed_trainer.acting.play import EpisodePlayer
from seed_trainer.acting.rollout import Layout, TokenPolicy
from seed_trainer.acting.sampling import Decoding
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.skills.analyzer import SkillWriter
from seed_trainer.skills.parsing import HindsightSkill
from seed_trainer.skills.prompts import get_analyzer, outcome_of

COMMAND_TOKENS = 10
SKILL_TOKENS = 48
PROMPT_TOKENS = 1000


class Actor:
    """A model with everything it needs to play and to write.

    Args:
        model: Causal or vision-language model.
        processing_class: Its tokenizer, or processor.
        env_id: Environment.
        profile_name: Profile; of style ``growing`` for a conversation, else every turn is a prompt of its own.
        seed: Seed of the sampling.
    """

    def __init__(self, model: Any, processing_class: Any, env_id: str, profile_name: str, seed: int = 0) -> None:
        import torch

        self.tokenizer = tokenizer = getattr(processing_class, "tokenizer", processing_class)
        self.profile = get_profile(env_id, profile_name)
        self.layout: Layout = "episode" if self.profile.style == "growing" else "turn"
        self.encoder = ChatEncoder(processing_class, tokenizer)
        self.generator = torch.Generator().manual_seed(seed)
        self.sampler = CachedSampler(
            lambda: contextlib.nullcontext(model),
            self.encoder.eos_token_ids,
            tokenizer.pad_token_id,
            torch.device("cpu"),
            self.generator,
            self.encoder.pictures,
        )
        self.player = EpisodePlayer(partial(make_agent_env, env_id, profile_name), env_id, self.profile)

    @classmethod
    def load(cls, folder: Path, env_id: str, profile_name: str, seed: int = 0) -> Actor:
        """Load model and tokenizer, or processor, from a folder."""
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer

        sees = getattr(AutoConfig.from_pretrained(folder), "vision_config", None) is not None
        model = (AutoModelForImageTextToText if sees else AutoModelForCausalLM).from_pretrained(folder, dtype="float32")
        processing_class = load_processor(str(folder)) if sees else AutoTokenizer.from_pretrained(folder)
        return cls(model.eval(), processing_class, env_id, profile_name, seed)

    def play(self, tasks: Sequence[str], temperature: float, skills: Sequence[str] = ()) -> list[Trajectory]:
        """Play one episode per task.

        Args:
            tasks: Task ids.
            temperature: 0 is greedy.
            skills: One per task, spliced into the prompt; empty plays without.
        """
        policy = TokenPolicy(
            self.encoder, self.sampler, self.profile, self.layout, Decoding(COMMAND_TOKENS, temperature), PROMPT_TOKENS
        )
        specs = [TaskSpec(task, group=index) for index, task in enumerate(tasks)]
        self.sampler.forget()
        skill_for = (lambda episode: skills[episode.group]) if skills else None
        return self.player.play(specs, policy, skill_for=skill_for)

    def write(self, episodes: Sequence[Trajectory]) -> list[HindsightSkill]:
        """Write a skill about each of this actor's own episodes, greedily."""
        options = SEEDOptions(max_skill_length=SKILL_TOKENS)
        analyzer = get_analyzer("turn" if self.layout == "episode" else "brief", self.profile.style)
        writer = SkillWriter(self.encoder, self.sampler, self.layout, analyzer, options)
        return writer.write(episodes, [outcome_of(episode) for episode in episodes])

    def close(self) -> None:
        """Close the environments."""
        self.player.close()
