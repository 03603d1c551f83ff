"""The curriculum of the embedded policy: which episodes are played, and what is learned from each.

Five lessons, all needed: fumbling without advice (the starting point of RL), skilful play on a skill that was written
about *another* attempt at the same game (so that skills can teach), fumbling on in spite of a skill that belongs to
another thing (so that a skill as such is no signal to be careful), and analyses of fumbling and of skilful episodes
(so that the policy can write skills now and when it has become better). Players see what a policy sees; skills come
from the environment's rule-based annotator, which sees only the trajectory and its outcome.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from seed_envs import make_agent_env
from seed_envs.alfworld.annotator import annotate_terse, read_terse
from seed_envs.alfworld.explorer import Explorer, Habits, Hint
from seed_envs.alfworld.reading import read_goal_line
from seed_envs.profiles import Profile, TurnContext
from seed_envs.rollout import Reply, Request, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_envs.vector import EnvPool
from seed_trainer.tiny.corpus import Sample, SampleEncoder, analysis_messages, episode_messages

ENV_ID: Final = "seed/ALFWorld-v0"
GAMES_AT_A_TIME: Final = 16
FOREIGN_MEMORY: Final = 400

#: Fluent, and bad at it: random search with repeats, forgotten and confused stations, random commands.
FUMBLING: Final = Habits(prior="none", noise=0.3, skip_station=0.6, confuse_station=0.3, overlook=0.4, wander=1.0)
#: Does what the skill says and what the goal asks; knows nothing about usual places.
SKILFUL: Final = Habits(prior="none", noise=0.02)


@dataclass(frozen=True)
class Curriculum:
    """How many lessons each game gives.

    Attributes:
        attempts: Fumbling episodes without advice, each followed by its analysis.
        advised: Skilful episodes on the skill of another attempt.
        misadvised: Fumbling episodes under a skill for another kind of thing.
        alone: Habits without advice, or under advice that does not fit.
        with_advice: Habits with fitting advice.
        slips: Probability that a step without fitting advice is a command that is not admissible.
    """

    attempts: int = 3
    advised: int = 2
    misadvised: int = 3
    alone: Habits = FUMBLING
    with_advice: Habits = SKILFUL
    slips: float = 0.03


#: Learned first: how the world works, from players that do not fumble.
MECHANICS: Final = Curriculum(attempts=2, advised=2, misadvised=0, alone=SKILFUL, slips=0.0)
#: Learned last: what the base policy shall be like.
BASE: Final = Curriculum()


@dataclass(frozen=True)
class Part:
    """One scripted episode: the task, the habits, the skill in the prompt, whether it is followed, and slips."""

    task_id: str
    habits: Habits
    skill: str = ""
    followed: bool = False
    slips: float = 0.0


class _Player:
    """An explorer that now and then slips: it sends a command that its place does not admit."""

    def __init__(self, part: Part, goal: str, name: str) -> None:
        hint = read_terse(part.skill) if part.followed else Hint()
        self._explorer = Explorer(goal, part.habits, hint, name)
        self._rng = random.Random(name)
        self._slips = part.slips

    def act(self, turn: TurnContext) -> str:
        """The command for a turn."""
        admissible = [action for action in turn.admissible or () if action != "help"]
        command = self._explorer.act(turn.observation, admissible)
        if self._slips and self._rng.random() < self._slips:
            return self._slip(admissible)
        return command

    def _slip(self, admissible: Sequence[str]) -> str:
        """A command made of a fitting verb and a place that is elsewhere."""
        elsewhere = [action.removeprefix("go to ") for action in admissible if action.startswith("go to ")]
        places = elsewhere or ["drawer 1"]
        memory, thing = self._explorer.memory, f"{self._explorer.goal.object_type} 1"
        choices = [f"take {thing} from {self._rng.choice(places)}", f"open {self._rng.choice(places)}"]
        if memory.here:
            choices.append(f"go to {memory.here}")
        if memory.held:
            choices.append(f"move {memory.held} to {self._rng.choice(places)}")
        return self._rng.choice(choices)


class Classroom:
    """Plays scripted episodes and turns them into samples.

    Args:
        profile: Profile of the household game, of style ``growing``.
        encoder: Encodes conversations.
        seed: Names the random streams of all players.
    """

    def __init__(self, profile: Profile, encoder: SampleEncoder, seed: str = "0") -> None:
        self.profile, self.encoder, self.seed = profile, encoder, seed
        self._pool = EnvPool(partial(make_agent_env, ENV_ID, profile), 2 * GAMES_AT_A_TIME)
        self._played = 0
        self._skills: deque[tuple[str, str]] = deque(maxlen=FOREIGN_MEMORY)

    def play(self, parts: Sequence[Part]) -> list[Trajectory]:
        """Play one scripted episode per part."""
        players: dict[int, _Player] = {}
        first = self._played
        self._played += len(parts)

        def policy(requests: Sequence[Request]) -> list[Reply]:
            replies = []
            for request in requests:
                if request.turn == 0:
                    name = f"{self.seed}/{first + request.episode}"
                    players[request.episode] = _Player(parts[request.episode], request.context.goal, name)
                command = players[request.episode].act(request.context)
                replies.append(Reply(self.profile.action_format.format(command)))
            return replies

        tasks = [TaskSpec(part.task_id) for part in parts]
        return rollout(self._pool, policy, tasks, env_id=ENV_ID, profile=self.profile)

    def lessons(self, task_ids: Sequence[str], curriculum: Curriculum) -> Iterator[Sample]:
        """Play and encode all lessons of some games, a few games at a time."""
        for start in range(0, len(task_ids), GAMES_AT_A_TIME):
            yield from self._lessons(task_ids[start : start + GAMES_AT_A_TIME], curriculum)

    def _lessons(self, task_ids: Sequence[str], plan: Curriculum) -> Iterator[Sample]:
        alone = [Part(task, plan.alone, slips=plan.slips) for task in task_ids]
        attempts = self.play([part for part in alone for _ in range(plan.attempts)])
        skills = [annotate_terse(episode) for episode in attempts]
        for episode, skill in zip(attempts, skills, strict=True):
            yield self._analysis(episode, skill, learn_actions=True)
        advised, misadvised = self._parts_with_skills(task_ids, attempts, skills, plan)
        episodes = self.play([*advised, *misadvised])
        for part, episode in zip([*advised, *misadvised], episodes, strict=True):
            messages = episode_messages(self.profile, episode, part.skill)
            yield self.encoder.encode(messages, [True] * len(messages))
        for episode in episodes[: len(advised) : max(1, plan.advised)]:
            yield self._analysis(episode, annotate_terse(episode), learn_actions=False)

    def _parts_with_skills(
        self, task_ids: Sequence[str], attempts: Sequence[Trajectory], skills: Sequence[str], plan: Curriculum
    ) -> tuple[list[Part], list[Part]]:
        """Episodes on a skill of the same game, and episodes under a skill for another kind of thing."""
        advised: list[Part] = []
        misadvised: list[Part] = []
        rng = random.Random(f"{self.seed}/{self._played}")
        for index, task in enumerate(task_ids):
            own = skills[index * plan.attempts : (index + 1) * plan.attempts]
            advised += [Part(task, plan.with_advice, own[k % len(own)], followed=True) for k in range(plan.advised)]
            thing = thing_of(attempts[index * plan.attempts])
            foreign = [skill for other, skill in self._skills if other != thing]
            lent = [rng.choice(foreign) for _ in range(plan.misadvised)] if foreign else []
            misadvised += [Part(task, plan.alone, skill, slips=plan.slips) for skill in lent]
            self._skills.append((thing, own[-1]))
        return advised, misadvised

    def _analysis(self, episode: Trajectory, skill: str, learn_actions: bool) -> Sample:
        messages = analysis_messages(self.profile, episode, skill)
        return self.encoder.encode(messages, [learn_actions] * (len(messages) - 1) + [True])

    def close(self) -> None:
        """Close the environments."""
        self._pool.close()


def thing_of(episode: Trajectory) -> str:
    """The kind of thing the goal asks for, or "" for goals in free words."""
    goal = read_goal_line(episode.goal)
    return goal.object_type if goal is not None else ""
