"""What the policy that sees is taught: what a picture shows, moves, following and avoiding advice, writing advice.

Scripted players know the environment's oracle and follow it only now and then. In the clean lessons their own slips
move the game on and are not learned, so that the policy sees what it will get into; in the base lessons everything is
learned, which makes it as mediocre as its teacher. Skills are the terse rules' about another attempt at the same task.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from seed_envs import make_agent_env
from seed_envs.chat import Message, user_message
from seed_envs.errors import OracleUnavailable
from seed_envs.profiles import get_profile
from seed_envs.rollout import Reply, Request, rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_envs.vector import EnvPool
from seed_envs.vision.terse import annotate_terse, read_terse
from seed_trainer.skills.prompts import ANALYZERS, document_messages, outcome_of
from seed_trainer.tiny.corpus import Sample, SampleEncoder

PROFILE: Final = "compact"
GAMES_AT_A_TIME: Final = 32
SLIP: Final = 0.03
"""How often advice to repeat an action is not taken."""


@dataclass(frozen=True)
class Game:
    """One of the two games.

    Attributes:
        env_id: The environment.
        task: Its training tasks, with a field for the number.
        actions: What a player that slips chooses from.
        competence: How often the base lessons' player follows the oracle.
    """

    env_id: str
    task: str
    actions: tuple[str, ...]
    competence: float


_TOKENS = (*map(str, range(1, 11)), "+", "*", "=")
GAMES: Final = {
    "sokoban": Game("seed/Sokoban-v0", "retro-5x5-b1-s3-8/train/{}", ("up", "down", "left", "right"), 0.6),
    "ezpoints": Game("seed/EZPoints-v0", "uniform-12/train/{}", _TOKENS, 0.6),
}


@dataclass(frozen=True)
class Curriculum:
    """What each task gives.

    Attributes:
        attempts: Episodes without advice.
        advised: Episodes on the skill of another attempt.
        moves: Whether actions are learned at all.
        clean: The oracle's actions alone are learned.
        described: Share of the pictures that are also put into words.
        competence: How often the player follows the oracle; 0 is the game's own.
        analyses: Whether the skills are learned, too.
    """

    attempts: int
    advised: int = 0
    moves: bool = True
    clean: bool = False
    described: float = 0.0
    competence: float = 0.0
    analyses: bool = False


@dataclass(frozen=True)
class Part:
    """One scripted episode."""

    task_id: str
    competence: float
    skill: str = ""
    described: float = 0.0


class _Player:
    """Follows advice to repeat; else follows the oracle or slips, at first not into what the advice warns of."""

    def __init__(self, game: Game, part: Part, name: str) -> None:
        self._game, self._part, self._rng = game, part, random.Random(name)
        self._hint = read_terse(part.skill)
        self._on_path = True

    def act(self, request: Request) -> Reply:
        """The reply to a request; its meta says whether the action was meant."""
        action, meant = self._choose(request)
        hinted = self._hint.actions[request.turn : request.turn + 1]
        self._on_path = self._on_path and hinted == (action,)
        words = str(request.call("render")) if self._rng.random() < self._part.described else ""
        return Reply(action, meta={"meant": meant, "words": words})

    def _choose(self, request: Request) -> tuple[str, bool]:
        hinted = self._hint.actions[request.turn : request.turn + 1]
        if self._hint.repeat and hinted and self._rng.random() > SLIP:
            return hinted[0], True
        if self._rng.random() < self._part.competence:
            try:
                return str(request.call("oracle_action")), True
            except OracleUnavailable:
                pass  # a lost position: nothing is worth learning there
        avoided = set() if self._hint.repeat or not self._on_path else set(hinted)
        return self._rng.choice([action for action in self._game.actions if action not in avoided]), False


class Classroom:
    """Plays the lessons of one game and encodes them.

    Args:
        game: The game.
        encoder: Encodes conversations with pictures.
        seed: Names the random streams of all players.
    """

    def __init__(self, game: Game, encoder: SampleEncoder, seed: str) -> None:
        self.game, self.encoder, self.seed = game, encoder, seed
        self._profile = get_profile(game.env_id, PROFILE)
        make_env = partial(make_agent_env, game.env_id, self._profile, render_mode="ansi")
        self._pool = EnvPool(make_env, 2 * GAMES_AT_A_TIME)
        self._played = 0

    def play(self, parts: Sequence[Part]) -> list[Trajectory]:
        """Play one scripted episode per part."""
        first, players = self._played, dict[int, _Player]()
        self._played += len(parts)

        def policy(requests: Sequence[Request]) -> list[Reply]:
            for request in requests:
                if request.turn == 0:
                    name = f"{self.seed}/{first + request.episode}"
                    players[request.episode] = _Player(self.game, parts[request.episode], name)
            return [players[request.episode].act(request) for request in requests]

        tasks = [TaskSpec(part.task_id) for part in parts]
        skills = iter([part.skill for part in parts])
        return rollout(
            self._pool,
            policy,
            tasks,
            env_id=self.game.env_id,
            profile=self._profile,
            skill_for=lambda episode: next(skills),
        )

    def lessons(self, task_ids: Sequence[str], plan: Curriculum) -> Iterator[Sample]:
        """Play and encode all lessons of some tasks, a few tasks at a time."""
        for start in range(0, len(task_ids), GAMES_AT_A_TIME):
            yield from self._lessons(task_ids[start : start + GAMES_AT_A_TIME], plan)

    def _lessons(self, task_ids: Sequence[str], plan: Curriculum) -> Iterator[Sample]:
        competence = plan.competence or self.game.competence
        alone = [Part(task, competence, described=plan.described) for task in task_ids]
        attempts = self.play([part for part in alone for _ in range(plan.attempts)])
        skills = [annotate_terse(episode) for episode in attempts]
        advised = self.play(
            [
                Part(task, competence, skills[index * plan.attempts + number % plan.attempts])
                for index, task in enumerate(task_ids)
                for number in range(plan.advised)
            ]
        )
        for episode in (*attempts, *advised):
            for step in episode.steps:
                if plan.moves and (step.meta["meant"] or not plan.clean):
                    yield self._sample(step.messages, step.reply)
                if step.meta["words"]:
                    yield self._sample([user_message("Describe.", step.context.image)], step.meta["words"])
        if plan.analyses:
            for episode, skill in zip(attempts, skills, strict=True):
                yield self._analysis(episode, skill)

    def _analysis(self, episode: Trajectory, skill: str) -> Sample:
        return self._sample(document_messages(episode, ANALYZERS["brief"], outcome_of(episode)), skill)

    def _sample(self, request: Sequence[Message], reply: str) -> Sample:
        return self.encoder.encode([*request, {"role": "assistant", "content": reply}], [True] * (len(request) + 1))

    def close(self) -> None:
        """Close the environments."""
        self._pool.close()
