"""The name under which verifiers finds ``seed_envs.integrations.verifiers``: ``vf-eval seed-verifiers ...``."""

from seed_envs.integrations.verifiers import SeedVerifiersEnv, SeedVerifiersTaskset

__all__ = ["SeedVerifiersEnv", "SeedVerifiersTaskset"]
