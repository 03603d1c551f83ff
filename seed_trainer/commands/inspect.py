"""``seed-train inspect``: the texts of a configuration, without a model: student, teacher, analyzer, answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seed_envs.terminal import plain
from seed_trainer.errors import UserError
from seed_trainer.settings.arguments import EnvArguments
from seed_trainer.settings.options import option
from seed_trainer.settings.quick import fields_of_rl
from seed_trainer.settings.resolve import resolve


@dataclass
class InspectArguments(EnvArguments):
    """What to look at."""

    task_id: str = option("", "Task to play; empty lets the environment choose with seed.")
    split: str = option("", "Split to choose from.")
    turn: int = option(
        -1, "Turn whose prompts are shown, from 0; -1: the second, which shows history, or the only one."
    )
    skill: str = option("", "Skill to splice in; empty asks the environment's annotator.")
    analyzer: str = option("auto", "How the policy is asked: auto, json, json_skill_only, json_steps, brief or turn.")
    seed: int = option(0, "Seed of the environment.")


def main(argv: Sequence[str]) -> int:
    """Run the command: the oracle plays one episode, whose texts are printed."""
    args = resolve(
        argv,
        [InspectArguments],
        "Show the texts of a configuration; --config takes those of `seed-train rl` too.",
        prog="seed-train inspect",
        foreign=fields_of_rl(),
        renamed={"train_split": "split", "skill_analyzer": "analyzer"},
    ).parts[0]
    for title, text in sections(args):
        print(plain(f"===== {title}\n{text}\n"))
    return 0


def sections(args: InspectArguments) -> list[tuple[str, str]]:
    """Return titles and texts.

    Raises:
        UserError: For unknown names, or a turn the episode does not have.
    """
    from seed_envs.chat import build_messages
    from seed_envs.errors import SeedEnvsError
    from seed_envs.tasks import TaskSpec
    from seed_trainer.acting.play import EpisodePlayer
    from seed_trainer.commands.building import environment
    from seed_trainer.skills.analyzer import analysis_messages
    from seed_trainer.skills.parsing import HindsightSkill
    from seed_trainer.skills.prompts import get_analyzer, outcome_of, training_answer
    from seed_trainer.skills.rules import rules_of
    from seed_trainer.stage1.collect import oracle_policy
    from seed_trainer.stage1.dataset import plain_summary

    make_env, profile = environment(args)
    player = EpisodePlayer(make_env, args.env_id, profile, max_concurrent=1)
    try:
        analyzer = get_analyzer(args.analyzer, profile.style)
        task = TaskSpec(args.task_id or None, args.split or None, args.seed)
        (episode,) = player.play([task], oracle_policy(profile))
    except (SeedEnvsError, ValueError) as error:
        raise UserError(str(error)) from None
    finally:
        player.close()
    if episode.error is not None or not episode.stop_reason.scored:
        why = episode.stop_reason.value if episode.error is None else episode.error.message
        raise UserError(f"the oracle's episode ended: {why}; try another --seed or --task_id")
    turn = min(1, episode.num_steps - 1) if args.turn == -1 else args.turn
    if not 0 <= turn < episode.num_steps:
        raise UserError(f"turn={turn}, but the oracle's episode has {episode.num_steps} turn(s), counted from 0")
    skill = args.skill or rules_of(args.env_id)(episode)
    turns = [step.context for step in episode.steps[: turn + 1]]
    replies = [step.reply for step in episode.steps[:turn]]
    outcome = outcome_of(episode)
    answer = training_answer(analyzer, HindsightSkill(skill), plain_summary(episode))
    return [
        ("task", f"{episode.task_id} ({episode.task_type}): {episode.goal}"),
        (f"student prompt, turn {turn}", _show(build_messages(profile, turns, replies))),
        (f"teacher prompt, turn {turn}", _show(build_messages(profile, turns, replies, skill))),
        ("reply", episode.steps[turn].reply),
        (f"analysis request, outcome {outcome}", _show(analysis_messages(episode, outcome, analyzer))),
        ("analysis answer as trained in stage 1", answer),
    ]


def _show(messages: Sequence[dict[str, Any]]) -> str:
    lines = []
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "".join(part["text"] if part["type"] == "text" else "(image)" for part in parts)
        lines.append(f"[{message['role']}] {text}")
    return "\n".join(lines)
