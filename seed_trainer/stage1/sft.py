"""Stage 1: supervised training on analysis requests, with TRL's ``SFTTrainer`` as it is.

The loss is on the answer only. Examples longer than the limit are named and left out, never cut in silence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
from datasets import Dataset
from transformers.trainer_utils import IntervalStrategy
from trl import SFTConfig, SFTTrainer

from seed_envs.chat import offered_tools
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.errors import UserError
from seed_trainer.keeping.identity import examples_fact, model_fact, run_identity
from seed_trainer.keeping.kept import KeptTrainer
from seed_trainer.settings.options import RESUME_ANYWAY, micro_batches, option
from seed_trainer.stage1.pictures import PictureFiles, names_of
from seed_trainer.watching.callbacks import RunFiles


@dataclass
class SEEDSFTConfig(SFTConfig):
    """TRL's configuration with the defaults of stage 1."""

    learning_rate: float = option(5e-6, "Learning rate.", "released")
    num_train_epochs: float = option(3.0, "Epochs.", "paper")
    per_device_train_batch_size: int = option(8, "Batch size.", "released")
    max_length: int | None = option(
        8192, "Longest example in tokens; longer ones are reported and left out.", "released"
    )
    completion_only_loss: bool | None = option(True, "Train on the answer only.", "paper")
    examples_per_update: int = option(
        0, "Examples of an optimiser step over all processes; sets gradient_accumulation_steps unless that is given."
    )
    resume_anyway: bool = option(False, RESUME_ANYWAY)

    def __post_init__(self) -> None:
        """Spread the examples of a step over processes.

        Raises:
            ValueError: When they do not come out even.
        """
        if self.gradient_accumulation_steps == 1 and self.examples_per_update:
            total, rows = self.examples_per_update, self.per_device_train_batch_size
            self.gradient_accumulation_steps = micro_batches("examples_per_update", total, rows)
        super().__post_init__()  # type: ignore[no-untyped-call]


def split_by_length(
    records: Sequence[dict[str, Any]], processing_class: Any, max_length: int | None, folder: Path = Path()
) -> tuple[list[dict[str, Any]], list[tuple[int, int]]]:
    """Return the examples that fit, and index and length of those that do not.

    Args:
        records: Examples.
        processing_class: Tokenizer, or processor of a model that sees.
        max_length: The limit in tokens.
        folder: Where the pictures of the examples are.

    Raises:
        UserError: If examples show pictures to a model that reads text alone.
    """
    encoder = ChatEncoder(processing_class, getattr(processing_class, "tokenizer", processing_class))
    pictures = PictureFiles(folder)
    if encoder.pictures is None and any(names_of(record["prompt"]) for record in records):
        raise UserError("the examples show pictures and the model reads text alone; train a vision-language model")
    kept, too_long = [], []
    for index, record in enumerate(records):
        if "learned" in record:
            length = len(_encoded(record, encoder)["input_ids"])
        else:
            messages = [*pictures.unpacked(record["prompt"]), *record["completion"]]
            length = encoder.length(messages, generation_prompt=False)
        if max_length is not None and length > max_length:
            too_long.append((index, length))
        else:
            kept.append(record)
    return kept, too_long


class SEEDSFTTrainer(KeptTrainer, SFTTrainer):
    """TRL's trainer, with runs that can be killed at any moment."""

    def _pending(self) -> dict[str, Any]:
        own = {"tokens": self._total_train_tokens, "metrics": dict(self._metrics["train"])}
        return {**super()._pending(), **own}

    def _restore_pending(self, pending: dict[str, Any]) -> None:
        super()._restore_pending(pending)
        self._total_train_tokens = pending["tokens"]
        self._metrics["train"].update(pending["metrics"])


def sft_identity(
    args: SEEDSFTConfig, model: Any, records: Sequence[dict[str, Any]], validation_share: float
) -> dict[str, Any]:
    """Return what makes a run of stage 1 the same run."""
    facts = {"data": examples_fact(records), "validation_share": validation_share}
    return run_identity(args, model=model_fact(model), **facts)


def as_dataset(records: Sequence[dict[str, Any]], folder: Path = Path(), encoder: ChatEncoder | None = None) -> Dataset:
    """Return examples as TRL reads them; pictures are a column of files, decoded batch by batch.

    Args:
        records: Examples.
        folder: Where their pictures are.
        encoder: Encodes them all where a conversation of several turns is among them, which TRL cannot mask.

    Raises:
        UserError: If such conversations and pictures are in one file.
    """
    if encoder is not None and any("learned" in record for record in records):
        if any(names_of(record["prompt"]) for record in records):
            raise UserError("one file holds pictures and conversations of text; train on them one after the other")
        return Dataset.from_list([_encoded(record, encoder) for record in records])
    if not any(names_of(record["prompt"]) for record in records):
        return Dataset.from_list([_as_text_row(record) for record in records])
    files = PictureFiles(folder)
    rows = [
        {
            # One type per column: what is a string in text data is a list of parts here.
            "prompt": [{**message, "content": _parts(message["content"])} for message in record["prompt"]],
            "completion": record["completion"],
            "images": [str(files.path(name)) for name in names_of(record["prompt"])],
        }
        for record in records
    ]
    return Dataset.from_list(rows).cast_column("images", datasets.List(datasets.Image()))


def _encoded(record: Mapping[str, Any], encoder: ChatEncoder) -> dict[str, list[int]]:
    """An example in tokens; what is not learned has the label -100."""
    learned = record.get("learned", [message["role"] == "assistant" for message in record["completion"]])
    ids, mask = encoder.conversation(record["prompt"], record["completion"], learned)
    return {"input_ids": ids, "labels": [token if one else -100 for token, one in zip(ids, mask, strict=True)]}


def _as_text_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """An example with the tools of its conversation, where it has any, in TRL's own column, as JSON text."""
    prompt, tools = offered_tools(record["prompt"])
    row = {"prompt": prompt, "completion": record["completion"]}
    return {**row, "tools": json.dumps(tools)} if tools else row


def _parts(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [{"type": part["type"], "text": part.get("text")} for part in parts]


def build_sft_trainer(
    model: Any,
    processing_class: Any,
    args: SEEDSFTConfig,
    records: Sequence[dict[str, Any]],
    validation_share: float = 0.1,
    peft_config: Any = None,
    folder: Path = Path(),
) -> SEEDSFTTrainer:
    """Return the trainer of stage 1.

    Args:
        model: Path or model.
        processing_class: Its tokenizer, or its processor if it sees.
        args: Configuration.
        records: Examples that fit.
        validation_share: Share held out for the evaluation loss; whole examples, drawn with ``args.seed``.
        peft_config: Adapter configuration.
        folder: Where the pictures of the examples are.
    """
    encoder = ChatEncoder(processing_class, getattr(processing_class, "tokenizer", processing_class))
    data = as_dataset(records, folder, encoder)
    held_out = None
    if validation_share > 0 and len(data) * validation_share >= 1:
        parts = data.train_test_split(test_size=validation_share, seed=args.seed)
        data, held_out = parts["train"], parts["test"]
        if args.eval_strategy == IntervalStrategy.NO:
            args.eval_strategy, args.do_eval = IntervalStrategy.EPOCH, True
    identity = sft_identity(args, model, records, validation_share)
    lines = RunFiles(str(args.output_dir))
    trainer = SEEDSFTTrainer(
        model=model,
        args=args,
        train_dataset=data,
        eval_dataset=held_out,
        processing_class=processing_class,
        peft_config=peft_config,
        callbacks=[lines],
    )
    trainer.lines, trainer.identity = lines, identity
    return trainer
