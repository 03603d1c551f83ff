"""What an episode shows when its task is stated in words that no rule reads: the deeds that won, or what is where.

The annotator's fallback for tasks in people's own words.  It knows as little
as the player did.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from seed_envs.alfworld.memory import Memory
from seed_envs.trajectory import Step, Trajectory

_DEEDS: Final = frozenset({"go", "open", "take", "move", "put", "use", "clean", "heat", "cool"})
_MAX_SEEN: Final = 12


def turns(trajectory: Trajectory, memory: Memory) -> Iterator[tuple[Step, str]]:
    """Every step with the answer to it.

    Args:
        trajectory: a finished episode.
        memory: reads the opening before the first pair is given.

    Yields:
        (step, answer) pairs in order.
    """
    if not trajectory.steps:
        return
    memory.update(trajectory.steps[0].observation)
    answers = [step.observation for step in trajectory.steps[1:]] + [trajectory.final_observation]
    yield from zip(trajectory.steps, answers, strict=True)


def retold(trajectory: Trajectory) -> str:
    """A skill in sentences: the commands that won, or what was seen where.

    Args:
        trajectory: a finished episode.
    """
    if trajectory.success:
        return f"This order of actions works: {', then '.join(_deeds(trajectory))}. Do not search anywhere else."
    memory = _remember(trajectory)
    seen = [f"{item} in {place}" for item, place in memory.first_seen.items()]
    left = _unsearched(memory)
    parts = [f"The task was not met. It was seen that there is {', '.join(seen[:_MAX_SEEN])}."] if seen else []
    parts += [f"Places not yet looked into: {', '.join(left[:5])}; open closed ones."] if left else []
    return " ".join(parts or ["The task was not met: visit more places, and open closed ones."])


def retold_terse(trajectory: Trajectory) -> list[str]:
    """The same as the steps of a terse skill: the commands that won, or the places left to search.

    Args:
        trajectory: a finished episode.
    """
    if trajectory.success:
        return _deeds(trajectory)
    return [f"search {name}" for name in _unsearched(_remember(trajectory))[:4]] or ["search each place"]


def _remember(trajectory: Trajectory) -> Memory:
    memory = Memory()
    for _, answer in turns(trajectory, memory):
        memory.update(answer)
    return memory


def _unsearched(memory: Memory) -> list[str]:
    return [name for name in memory.places if name not in memory.contents]


def _deeds(trajectory: Trajectory) -> list[str]:
    """The commands that changed something, without ways that led on to nothing."""
    done = [step.action for step in trajectory.steps if step.action_valid and step.action.split(" ")[0] in _DEEDS]
    return [
        command
        for command, following in zip(done, [*done[1:], ""], strict=True)
        if not (command.startswith("go ") and following.startswith("go "))
    ]
