"""Inspect AI: every suite as a task, played and scored as the harness does it.

    inspect eval seed_benchmarks/alfworld_mini --model openai/gpt-5 --limit 20
    inspect eval seed_benchmarks/sokoban_paper_text -T profile=strict-text --model hf/MODEL

Each turn is one request with the messages of the profile. ``success`` and ``score`` are those of ``seed-bench``; their
errors are Inspect's. An episode that a fault ended is an error of its sample, never a zero.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    ContentText,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import registry_info

from seed_envs.chat import Message
from seed_envs.endpoints.wire import image_url
from seed_envs.integrations.episode import Episode
from seed_envs.profiles import check_in_text
from seed_envs.trajectory import StopReason

from .suite import Suite
from .suites import TABLE, find_suite

ROLES = {"user": ChatMessageUser, "assistant": ChatMessageAssistant, "system": ChatMessageSystem}


def suite_task(suite: str, profile: str = "", max_steps: int | None = None) -> Task:
    """A suite as a task.

    Args:
        suite: As for ``seed-bench run --suite``.
        profile: Prompt profile (empty: the suite's).
        max_steps: Step limit (None: the profile's).
    """
    found = find_suite(suite)
    chosen = profile or found.profile
    check_in_text(found.find_profile(chosen), "the Inspect task")
    samples = [Sample(id=task_id, input=task_id) for task_id in found.load_tasks(chosen)]
    make = partial(_episode, found, chosen, max_steps)
    return Task(dataset=MemoryDataset(samples, name=suite), solver=play(make), scorer=outcome(), name=suite)


def _episode(suite: Suite, profile: str, max_steps: int | None) -> Episode:
    return Episode(suite.env_id, suite.find_profile(profile), max_steps, suite.arguments({}))


@solver
def play(make: Any) -> Solver:
    """Ask the model turn by turn until the episode ends.

    Args:
        make: Makes an :class:`~seed_envs.integrations.episode.Episode`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        episode: Episode = await anyio.to_thread.run_sync(make)
        try:
            messages = await anyio.to_thread.run_sync(episode.reset, str(state.sample_id))
            state.messages = []
            while not episode.done:
                asked = [as_message(message) for message in messages]
                output = await get_model().generate(asked)
                state.messages += [asked[-1], output.message]
                messages = await anyio.to_thread.run_sync(episode.reply, output.completion)
            state.output = output
        finally:
            episode.close()
        if not StopReason(episode.stop_reason).scored:
            raise RuntimeError(f"the episode was ended by a fault: {episode.stop_reason}")
        told = ("success", "score", "stop_reason", "total_reward", "actions")
        state.metadata.update({name: getattr(episode, name) for name in told})
        return state

    return solve


@scorer(metrics={"success": [mean(), stderr()], "score": [mean(), stderr()]})
def outcome() -> Scorer:
    """Success and score as the environment has them."""

    async def score(state: TaskState, target: Target) -> Score:
        found = state.metadata
        values = {"success": float(found["success"]), "score": found["score"]}
        return Score(value=values, explanation=f"{found['stop_reason']} after {len(found['actions'])} turns")

    return score


def as_message(message: Message) -> ChatMessage:
    """A message of ours as Inspect's."""
    content = message["content"]
    if not isinstance(content, str):
        content = [
            ContentText(text=part["text"]) if part["type"] == "text" else ContentImage(image=image_url(part["image"]))
            for part in content
        ]
    made: ChatMessage = ROLES[message["role"]](content=content)
    return made


def _register(suite: str) -> None:
    def of_suite(profile: str = "", max_steps: int | None = None) -> Task:
        return suite_task(suite, profile, max_steps)

    name = suite.replace("/", "_")
    made = task(name=name)(of_suite)
    if "/" not in registry_info(made).name:  # an editable installation, which Inspect does not take for a package
        task(name=f"{__package__}/{name}")(of_suite)


for _name in TABLE:
    _register(_name)
