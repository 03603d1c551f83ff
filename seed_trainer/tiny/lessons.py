"""The curriculum of the embedded policy: which episodes are played, and what is learned from each.

Five lessons, all needed: fumbling without advice (the starting point of RL), skilful play on a skill that was written
about *another* attempt at the same game (so that skills can teach), fumbling on in spite of a skill that belongs to
another thing (so that a skill as such is no signal to be careful), and analyses of fumbling and of skilful episodes
(so that the policy can write skills now and when it has become better). Skills come from the environment's rule-based
annotator, which sees only the trajectory and its outcome.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from seed_envs import make_agent_env
from seed_envs.profiles import Profile
from seed_envs.rollout import Reply, Request, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_envs.vector import EnvPool
from seed_trainer.tiny.corpus import Sample, SampleEncoder, analysis_messages, episode_messages
from seed_trainer.tiny.demonstrator import FUMBLING, SKILFUL, Advice, Demonstrator, Habits, read_advice, read_goal

Annotator = Callable[[Trajectory], str]
POOL = 32
FOREIGN_MEMORY = 400


@dataclass(frozen=True)
class Curriculum:
    """How many lessons each game gives.

    Attributes:
        attempts: Fumbling episodes without advice, each followed by its analysis.
        advised: Skilful episodes on the skill of another attempt.
        misadvised: Fumbling episodes under a skill for another kind of thing.
        fumbling: Habits without advice.
        skilful: Habits with advice.
    """

    attempts: int = 3
    advised: int = 2
    misadvised: int = 2
    fumbling: Habits = FUMBLING
    skilful: Habits = SKILFUL


@dataclass(frozen=True)
class Part:
    """One episode to be played: task, habits, and the skill in the prompt (whether it is followed or not)."""

    task_id: str
    habits: Habits
    skill: str = ""


class Classroom:
    """Plays scripted episodes and turns them into samples.

    Args:
        env_id: Environment.
        profile: Profile of style ``growing``.
        annotate: The rule-based skill writer.
        encoder: Encodes conversations.
        places: Furniture that every game of the profile has, where its first observation does not list it.
        seed: Seed of all demonstrators.
    """

    def __init__(
        self,
        env_id: str,
        profile: Profile,
        annotate: Annotator,
        encoder: SampleEncoder,
        places: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        self.env_id, self.profile, self.annotate, self.encoder = env_id, profile, annotate, encoder
        self.places, self.seed = tuple(places), seed
        self._pool = EnvPool(partial(make_agent_env, env_id, profile), POOL)
        self._played = 0
        self._skills: deque[tuple[str, str]] = deque(maxlen=FOREIGN_MEMORY)

    def play(self, parts: Sequence[Part]) -> list[Trajectory]:
        """Play one scripted episode per part."""
        players: dict[int, Demonstrator] = {}
        first = self._played
        self._played += len(parts)

        def policy(requests: Sequence[Request]) -> list[Reply]:
            replies = []
            for request in requests:
                if request.turn == 0:
                    part = parts[request.episode]
                    rng = random.Random(f"{self.seed}/{first + request.episode}")
                    goal, advice = read_goal(request.context.goal), read_advice(part.skill)
                    players[request.episode] = Demonstrator(goal, part.habits, advice, rng, self.places)
                command = players[request.episode].act(request.context.observation)
                replies.append(Reply(self.profile.action_format.format(command)))
            return replies

        tasks = [TaskSpec(part.task_id) for part in parts]
        return rollout(self._pool, policy, tasks, env_id=self.env_id, profile=self.profile)

    def lessons(self, task_ids: Sequence[str], curriculum: Curriculum) -> Iterator[Sample]:
        """Play and encode all lessons of some games, a few games at a time."""
        for start in range(0, len(task_ids), POOL):
            yield from self._lessons(task_ids[start : start + POOL], curriculum)

    def _lessons(self, task_ids: Sequence[str], plan: Curriculum) -> Iterator[Sample]:
        attempts = self.play([Part(task, plan.fumbling) for task in task_ids for _ in range(plan.attempts)])
        skills = [self.annotate(episode) for episode in attempts]
        for episode, skill in zip(attempts, skills, strict=True):
            yield self._analysis(episode, skill, learn_actions=True)
        advised, misadvised = [], []
        rng = random.Random(f"{self.seed}/{self._played}/foreign")
        for index, task in enumerate(task_ids):
            own = skills[index * plan.attempts : (index + 1) * plan.attempts]
            advised += [Part(task, plan.skilful, own[k % len(own)]) for k in range(plan.advised)]
            thing = read_goal(attempts[index * plan.attempts].goal).object_type
            foreign = [skill for other, skill in self._skills if other != thing]
            if foreign:
                misadvised += [Part(task, plan.fumbling, rng.choice(foreign)) for _ in range(plan.misadvised)]
            self._skills.append((thing, own[-1]))
        parts = [*advised, *misadvised]
        episodes = self.play(parts)
        for part, episode in zip(parts, episodes, strict=True):
            messages = episode_messages(self.profile, episode, part.skill)
            yield self.encoder.encode(messages, [True] * len(messages))
        for episode in episodes[: len(advised) : max(1, plan.advised)]:
            yield self._analysis(episode, self.annotate(episode), learn_actions=False)

    def _analysis(self, episode: Trajectory, skill: str, learn_actions: bool) -> Sample:
        messages = analysis_messages(self.profile, episode, skill)
        return self.encoder.encode(messages, [learn_actions] * (len(messages) - 1) + [True])

    def close(self) -> None:
        """Close the environments."""
        self._pool.close()
