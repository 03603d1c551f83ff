"""``seed-train sft``: stage 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seed_envs.preflight import check_folder
from seed_trainer.commands.launch import launch
from seed_trainer.errors import UserError
from seed_trainer.settings.arguments import ACCELERATE, RECIPE_HELP, CheckArguments
from seed_trainer.settings.options import option
from seed_trainer.settings.quick import SFT_SOURCES, look
from seed_trainer.settings.recipes import SFT_RECIPES
from seed_trainer.settings.resolve import resolve


@dataclass
class SFTArguments(CheckArguments):
    """What to train on."""

    recipe: str = option("paper", RECIPE_HELP, "paper")
    data: str = option("", "File written by `seed-train data` (sft.jsonl), or its folder.")
    validation_share: float = option(0.1, "Share of the examples held out for the evaluation loss.", "released")
    accelerate_config: str = option("", ACCELERATE)
    cpu_threads: int = option(0, "Threads of PyTorch on a CPU; 0 leaves its default.")


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    glance = look(argv, [SFTArguments], SFT_SOURCES, SFT_RECIPES)
    glance.require("output_dir", "runs/NAME")
    if not glance.parts[0].data:
        raise UserError("set data: --data FOLDER (written by `seed-train data --output_dir FOLDER`)")
    from trl import ModelConfig, get_peft_config

    from seed_envs.processors import load_encoder
    from seed_trainer.commands.building import resolve_model
    from seed_trainer.commands.checks import unloadable
    from seed_trainer.commands.rl import already_finished
    from seed_trainer.keeping.start import starting_point
    from seed_trainer.stage1.dataset import SFT_FILE, read_examples
    from seed_trainer.stage1.sft import SEEDSFTConfig, build_sft_trainer, sft_identity, split_by_length

    known = [SFTArguments, SEEDSFTConfig, ModelConfig]
    script, args, model_args = resolve(argv, known, "Stage 1.", SFT_RECIPES, "seed-train sft").parts
    if script.accelerate_config and not script.dry_run:
        return launch(script.accelerate_config, "sft", argv)
    if not args.output_dir or args.output_dir == "trainer_output":
        raise UserError("set output_dir: --output_dir runs/NAME")
    if script.cpu_threads > 0:
        import torch

        torch.set_num_threads(script.cpu_threads)
    if not script.no_preflight:
        check_folder(Path(args.output_dir), "--output_dir")
    path = Path(script.data)
    path = path / SFT_FILE if path.is_dir() else path
    records = read_examples(path)
    model = resolve_model(model_args.model_name_or_path)
    try:
        processing_class = load_encoder(model, model_args.model_revision)
    except OSError as error:
        raise UserError(unloadable(model, error)) from None
    kept, too_long = split_by_length(records, processing_class, args.max_length, path.parent)
    if too_long:
        longest = max(length for _, length in too_long)
        lines = ", ".join(str(index + 1) for index, _ in too_long[:10])
        limit = f"max_length={args.max_length} (longest {longest})"
        print(f"{len(too_long)} of {len(records)} examples exceed {limit} and are left out; lines {lines}")
    if not kept:
        raise UserError(f"no example fits max_length={args.max_length}; raise it")
    if script.dry_run:
        print(f"{len(kept)} examples would train {model} in {args.output_dir}")
        return 0
    args.model_init_kwargs = {
        **(args.model_init_kwargs or {}),
        "revision": model_args.model_revision,
        "dtype": model_args.dtype,
    }
    identity = sft_identity(args, model_args.model_name_or_path, kept, script.validation_share)
    start = starting_point(args.resume_from_checkpoint, args, identity)
    if start is not None and start.finished:
        return already_finished(start)
    peft_config = get_peft_config(model_args)
    trainer = build_sft_trainer(model, processing_class, args, kept, script.validation_share, peft_config, path.parent)
    trainer.identity = identity
    trainer.train(resume_from_checkpoint=start)
    trainer.export()
    print(f"model in {args.output_dir}")
    trainer.end()  # type: ignore[no-untyped-call]
    return 0
