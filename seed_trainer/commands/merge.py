"""``seed-train merge``: an adapter folder and its base model to one plain model folder, which every command takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seed_envs.command_line import Parser
from seed_trainer.errors import UserError


def build_parser() -> Parser:
    """The options."""
    parser = Parser(prog="seed-train merge", description=__doc__)
    parser.add_argument("adapter", help="run folder or checkpoint with adapter_config.json")
    parser.add_argument("--output_dir", required=True, help="new folder of the plain model")
    parser.add_argument("--base", default="", help="base model, where it lies elsewhere than when it was trained")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options = build_parser().parse_args(list(argv))
    adapter, folder = Path(options.adapter), Path(options.output_dir)
    if not (adapter / "adapter_config.json").is_file():
        raise UserError(
            f"{options.adapter!r} has no adapter_config.json; give the folder of a run with --use_peft true"
        )
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"--output_dir {options.output_dir!r} is not empty; choose another")
    from peft import PeftConfig, PeftModel
    from transformers import AutoModelForCausalLM

    from seed_envs.processors import load_encoder
    from seed_trainer.commands.checks import unloadable

    base = options.base or PeftConfig.from_pretrained(str(adapter)).base_model_name_or_path
    try:
        encoder = load_encoder(base)
        model = AutoModelForCausalLM.from_pretrained(base)
    except OSError as error:
        raise UserError(f"{unloadable(base, error)}; --base FOLDER names it") from None
    PeftModel.from_pretrained(model, str(adapter)).merge_and_unload().save_pretrained(folder)
    encoder.save_pretrained(folder)
    print(f"model in {folder}")
    return 0
