"""The file stage 1 trains on: analysis requests and the answers to learn, as JSON lines that name their sources."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seed_envs.data import replacing
from seed_envs.redaction import conceal
from seed_envs.trajectory import Trajectory
from seed_trainer.errors import UserError
from seed_trainer.skills.analyzer import analysis_messages
from seed_trainer.skills.library import SkillLibrary
from seed_trainer.skills.prompts import Analyzer, outcome_of, training_answer
from seed_trainer.stage1.annotators import Annotation
from seed_trainer.stage1.pictures import PictureFiles

SFT_FILE = "sft.jsonl"
SCHEMA_VERSION = 1


def examples(
    episodes: Sequence[Trajectory],
    annotations: Sequence[Annotation | None],
    analyzer: Analyzer,
    policy: str,
) -> Iterator[dict[str, Any]]:
    """Yield one record per accepted skill: ``prompt`` and ``completion`` messages, and where they come from."""
    for number, (episode, annotation) in enumerate(zip(episodes, annotations, strict=True)):
        if annotation is None or not annotation.skill.valid:
            continue
        outcome = outcome_of(episode)
        answer = training_answer(analyzer, annotation.skill, annotation.skill.summary or plain_summary(episode))
        yield {
            "schema_version": SCHEMA_VERSION,
            "prompt": analysis_messages(episode, outcome, analyzer),
            "completion": [{"role": "assistant", "content": answer}],
            "number": number,
            "env_id": episode.env_id,
            "task_id": episode.task_id,
            "task_type": episode.task_type,
            "outcome": outcome,
            "skill": annotation.skill.text,
            "analyzer": analyzer.name,
            "annotator": annotation.annotator,
            "policy": policy,
        }


def plain_summary(episode: Trajectory) -> str:
    """Return one true sentence about an episode, for annotators that write no summary of their own."""
    turns = f"{episode.num_steps} turn{'' if episode.num_steps == 1 else 's'}"
    invalid = sum(not (step.format_valid and step.action_valid) for step in episode.steps)
    ended = "solved its task" if episode.success else f"did not solve its task ({episode.stop_reason.value})"
    return f"The attempt {ended} in {turns}, {invalid or 'none'} of them invalid."


def write_examples(path: Path, records: Iterator[dict[str, Any]]) -> int:
    """Write records in place of what the file held, all or nothing, and return their number; pictures lie beside it."""
    count, pictures = 0, PictureFiles(path.parent)
    with replacing(path) as file:
        for record in records:
            shown = {**record, "prompt": pictures.packed(record["prompt"])} if "prompt" in record else record
            file.write(json.dumps(conceal(shown), ensure_ascii=False) + "\n")
            count += 1
    return count


def read_examples(path: Path) -> list[dict[str, Any]]:
    """Read records.

    Raises:
        UserError: If the file is missing or a line is not such a record.
    """
    if not path.is_file():
        raise UserError(f"data={str(path)!r} does not exist; `seed-train data --output_dir DIR` writes DIR/{SFT_FILE}")
    records = []
    # Only a line feed ends a line; other Unicode line separators may occur inside a message.
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    for number, line in enumerate(text.split("\n") if text else [], start=1):
        try:
            record = json.loads(line)
            records.append({"prompt": record["prompt"], "completion": record["completion"], **_learned(record)})
        except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path}, line {number}: not a stage 1 record ({type(error).__name__}: {error})") from None
    if not records:
        raise UserError(f"{path} holds no example")
    return records


def _learned(record: dict[str, Any]) -> dict[str, Any]:
    """Return which messages of a completion the loss is on, where a record says so."""
    if "learned" not in record:
        return {}
    learned, completion = record["learned"], record["completion"]
    replies = [message["role"] == "assistant" for message in completion]
    if len(learned) != len(completion) or any(one and not reply for one, reply in zip(learned, replies, strict=True)):
        raise ValueError("'learned' must hold one flag per message of 'completion', true for replies alone")
    return {"learned": [bool(one) for one in learned]}


def build_library(episodes: Sequence[Trajectory], annotations: Sequence[Annotation | None]) -> SkillLibrary:
    """Return a static library: for every task type the most typical accepted skill, successes preferred.

    Typical means the largest mean word overlap with the other skills of the type.
    """
    by_type: dict[str, list[tuple[bool, str]]] = {}
    for episode, annotation in zip(episodes, annotations, strict=True):
        if annotation is not None and annotation.skill.valid:
            by_type.setdefault(episode.task_type, []).append((episode.success, annotation.skill.text))
    chosen = {}
    for task_type, known in sorted(by_type.items()):
        texts = [text for won, text in known if won] or [text for _, text in known]
        chosen[task_type] = max(texts, key=lambda text: (_typicality(text, texts), text))
    return SkillLibrary("", chosen)


def _typicality(text: str, others: Sequence[str]) -> float:
    words = set(text.split())
    return sum(len(words & set(o.split())) / max(1, len(words | set(o.split()))) for o in others)
