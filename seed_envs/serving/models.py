"""What travels: the typed action, observation and state of OpenEnv."""

from __future__ import annotations

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class SeedAction(Action):
    """One action; where the session has a profile, the model's whole reply."""

    text: str = Field(description="The action, or the whole reply of a model where the session has a profile")


class SeedObservation(Observation):
    """What the agent may know after a reset or a step; ``done`` and ``reward`` are OpenEnv's own fields."""

    text: str = Field(default="", description="The environment's own text")
    prompt: str = Field(default="", description="The prompt of the session's profile; empty without one")
    image: str | None = Field(default=None, description="A picture as a data: URL of its PNG")
    goal: str = Field(default="", description="The goal of the task")
    task_id: str = Field(default="", description="Which task this is")
    task_type: str = Field(default="", description="The family of the task")
    admissible_actions: list[str] | None = Field(default=None, description="What may be done; null without a list")
    format_valid: bool = Field(default=True, description="Whether the reply could be read")
    action_valid: bool = Field(default=True, description="Whether the environment accepted the action")
    invalid_reason: str = Field(default="", description="Why not")
    success: bool = Field(default=False, description="Whether the task is solved")
    score: float = Field(default=0.0, description="The environment's score, 0 to 1")
    stop_reason: str = Field(default="", description="Why the episode ended; empty while it runs")
    truncated: bool = Field(default=False, description="Whether a limit ended it, not the task")


class SeedState(State):
    """Where a session stands."""

    env_id: str = Field(default="", description="The environment")
    profile: str = Field(default="", description="The profile; empty for bare actions")
    task_id: str = Field(default="", description="Which task is played")
    done: bool = Field(default=False, description="Whether the episode is over")
    success: bool = Field(default=False, description="Whether the task is solved")
    score: float = Field(default=0.0, description="The score, 0 to 1")
    total_reward: float = Field(default=0.0, description="Sum of the rewards")
    stop_reason: str = Field(default="", description="Why the episode ended")
