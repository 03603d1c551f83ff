"""Action cloning: from played episodes to examples of acting, with the prompts that stage 2 shows.

A demonstration may slip: now and then somebody else's command is sent in the player's place. The slip stays in the
conversation and is never learned; what the player does about it is. Without slips a clone has never seen a refused
command and repeats its first one for ever (the drift of behavioural cloning; DART, arXiv 1703.09327).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from seed_envs.chat import Message, picture_parts
from seed_envs.profiles import Profile
from seed_envs.rollout import Policy, Reply, Request
from seed_envs.trajectory import Step, Trajectory
from seed_trainer.stage1.dataset import SCHEMA_VERSION

SLIP = "slip"
"""Key in ``Step.meta`` of a turn that was not the player's own."""
_REMEMBERED = 200


class Slipping:
    """A policy that now and then sends a command that the player did not choose.

    Half of these are random commands of the environment, half are commands that were possible at another turn and are
    not now, which the environment refuses; where it lists no commands, all are random.

    Args:
        policy: The player.
        profile: How commands are written.
        share: Probability of a slip, per turn.
        seed: Of the choice.
    """

    def __init__(self, policy: Policy, profile: Profile, share: float, seed: int) -> None:
        self._policy, self._format, self._share, self._seed = policy, profile.action_format, share, seed
        self._elsewhere: deque[str] = deque(maxlen=_REMEMBERED)

    def __call__(self, requests: Sequence[Request]) -> list[Reply]:
        """Ask the player about the turns that do not slip."""
        slips = [self._slip(request) for request in requests]
        asked = [request for request, slip in zip(requests, slips, strict=True) if slip is None]
        answers = iter(self._policy(asked)) if asked else iter(())
        return [next(answers) if slip is None else slip for slip in slips]

    def _slip(self, request: Request) -> Reply | None:
        rng = random.Random(f"{self._seed}/{request.task.task_id}/{request.task.seed}/{request.episode}/{request.turn}")
        possible = list(request.context.admissible or ())
        foreign = [command for command in self._elsewhere if command not in possible]
        self._elsewhere.extend(command for command in possible if command not in self._elsewhere)
        if rng.random() >= self._share:
            return None
        if foreign and rng.random() < 0.5:
            command = rng.choice(foreign)
        else:
            command = rng.choice(possible) if possible else str(request.call("random_action"))
        return Reply(self._format.format(command), meta={SLIP: True})


def is_lesson(step: Step) -> bool:
    """Whether a turn is worth imitating: the player's own, readable and accepted."""
    return step.format_valid and step.action_valid and not step.meta.get(SLIP)


def action_examples(
    episodes: Sequence[Trajectory], profile: Profile, policy: str, only_won: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the records of acting.

    A window profile gives one record per turn. A growing one gives one record per episode, whose ``completion`` is the
    rest of the conversation and whose ``learned`` says which of its messages the loss is on; with pictures it gives one
    record per turn, too.

    Args:
        episodes: What was played.
        profile: How it was shown.
        policy: Who played, for the record.
        only_won: Leave lost episodes out. Episodes that a fault ended are always left out.
    """
    for number, episode in enumerate(episodes):
        steps = [step for step in episode.steps if step.messages]
        if episode.error is not None or (only_won and not episode.success) or not any(map(is_lesson, steps)):
            continue
        source = {
            "schema_version": SCHEMA_VERSION,
            "number": number,
            "env_id": episode.env_id,
            "task_id": episode.task_id,
            "task_type": episode.task_type,
            "policy": policy,
        }
        if profile.style == "growing" and not picture_parts(steps[-1].messages):
            yield {**source, **_conversation(steps)}
            continue
        for step in filter(is_lesson, steps):
            yield {**source, "prompt": step.messages, "completion": [_answer(step)]}


def _conversation(steps: Sequence[Step]) -> dict[str, Any]:
    prompt = steps[0].messages
    later: list[Message] = []
    learned: list[bool] = []
    for index, step in enumerate(steps):
        news = step.messages[-1:] if index else []
        later += [*news, _answer(step)]
        learned += [*(False for _ in news), is_lesson(step)]
    while not learned[-1]:  # What follows the last lesson teaches nothing and would only be computed.
        later.pop(), learned.pop()
    return {"prompt": prompt, "completion": later, "learned": learned}


def _answer(step: Step) -> Message:
    return {"role": "assistant", "content": step.reply}


def mixed(
    actions: Sequence[dict[str, Any]], skills: Sequence[dict[str, Any]], share: float, seed: int
) -> list[dict[str, Any]]:
    """Return examples of both kinds, shuffled, with ``share`` of them skills; of the kind there is too much of, a draw.

    Args:
        actions: Examples of acting.
        skills: Examples of analysing.
        share: Share of skills, between 0 and 1 (both excluded).
        seed: Of the draw and the order.
    """
    total = min(len(actions) / (1 - share), len(skills) / share)
    wanted = round(total * (1 - share)), round(total * share)
    rng = random.Random(f"{seed}/mixed")
    chosen = [
        record
        for records, count in zip((actions, skills), wanted, strict=True)
        for record in rng.sample(list(records), min(count, len(records)))
    ]
    rng.shuffle(chosen)
    return chosen
