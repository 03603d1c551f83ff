"""The policy as a player: prompts, sampling and environments behind one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.acting.play import EpisodePlayer
from seed_trainer.acting.rollout import TokenPolicy
from seed_trainer.acting.sampling import Decoding, Sampler
from seed_trainer.settings.config import SEEDConfig


class Actor:
    """Plays with whatever weights the model holds right now.

    Args:
        args: Configuration.
        encoder: The model's encoder.
        sampler: The model's sampler.
        player: The environments.
        generator: Source of the sampler's randomness.
    """

    def __init__(
        self,
        args: SEEDConfig,
        encoder: ChatEncoder,
        sampler: Sampler,
        player: EpisodePlayer,
        generator: torch.Generator,
    ) -> None:
        self.args = args
        self.encoder = encoder
        self.sampler = sampler
        self.player = player
        self.generator = generator

    def decoding(self, temperature: float) -> Decoding:
        """Return how replies are sampled at a temperature."""
        return Decoding(self.args.max_turn_length, temperature, self.args.top_p, self.args.top_k)

    def policy(self, decoding: Decoding, sampler: Sampler | None = None) -> TokenPolicy:
        """Return a policy that answers requests with the weights of the moment.

        Args:
            decoding: How replies are sampled.
            sampler: Samples in place of the model's own sampler.
        """
        return TokenPolicy(
            self.encoder,
            sampler or self.sampler,
            self.player.profile,
            self.args.rollout_layout,
            decoding,
            self.args.max_prompt_length,
        )

    def play(
        self,
        tasks: Sequence[TaskSpec],
        decoding: Decoding,
        skill_for: Callable[[Trajectory], str] | None = None,
        sampler: Sampler | None = None,
    ) -> list[Trajectory]:
        """Play one episode per task.

        Args:
            tasks: Tasks, in the order of the episodes.
            decoding: How replies are sampled.
            skill_for: Gives the skill to show in the actor's own prompts.
            sampler: Samples in place of the model's own sampler.
        """
        self.sampler.forget()
        return self.player.play(tasks, self.policy(decoding, sampler), skill_for=skill_for)
