"""``seed-train make-tiny``: builds the embedded policy from nothing; a few minutes on one core."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path

from seed_envs.command_line import Parser
from seed_trainer.errors import UserError
from seed_trainer.tiny.recipe import Recipe

_FIELDS = ("seed", "width", "layers", "heads")
_SCHEDULE = ("epochs", "batch_tokens", "learning_rate", "matrix_learning_rate")


def build_parser() -> Parser:
    """The options: the recipe's fields, TRL style."""
    recipe = Recipe()
    parser = Parser(prog="seed-train make-tiny", description=__doc__)
    parser.add_argument("--output_dir", required=True, help="folder for model, tokenizer and recipe")
    for name in _FIELDS:
        parser.add_argument(f"--{name}", type=int, default=getattr(recipe, name), help="default: %(default)s")
    for name in _SCHEDULE:
        value = getattr(recipe.schedule, name)
        parser.add_argument(f"--{name}", type=type(value), default=value, help="default: %(default)s")
    parser.add_argument("--games", type=float, default=1.0, help="share of the recipe's games (default: 1.0)")
    parser.add_argument("--threads", type=int, default=1, help="threads; the weights depend on it (default: 1)")
    parser.add_argument("--probe", type=int, default=0, metavar="N", help="then measure the model on N panel tasks")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options = build_parser().parse_args(list(argv))
    recipe = Recipe(**{name: getattr(options, name) for name in _FIELDS})
    schedule = dataclasses.replace(recipe.schedule, **{name: getattr(options, name) for name in _SCHEDULE})
    recipe = dataclasses.replace(recipe, schedule=schedule).scaled(options.games)
    if recipe.width % (2 * recipe.heads):
        raise UserError(f"--width {recipe.width} must be a multiple of twice --heads {recipe.heads}")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from tqdm.auto import tqdm

    from seed_trainer.tiny.recipe import make

    torch.set_num_threads(options.threads)
    bars: dict[str, tqdm[object]] = {}

    def progress(stage: str, done: int, total: int, loss: float | None) -> None:
        if stage not in bars:
            bars[stage] = tqdm(total=total, desc=stage, unit="step" if loss is not None else "game")
        bar = bars[stage]
        bar.update(done - bar.n)
        if loss is not None:
            bar.set_postfix_str(f"loss {loss:.3f}", refresh=False)
        if done == total:
            bar.close()

    started, cpu = time.perf_counter(), time.process_time()
    facts = make(recipe, Path(options.output_dir), progress)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"{facts} in {seconds:.0f} s ({cpu:.0f} CPU seconds); saved to {options.output_dir}")
    if options.probe:
        from seed_trainer.tiny.probing import probe_folder, table

        print(table(probe_folder(Path(options.output_dir), options.probe)))
    return 0
