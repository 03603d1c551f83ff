"""``seed-train make-tiny``: builds a tiny policy from nothing; minutes on one core. ``--vision``: one that sees."""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seed_envs.command_line import Parser
from seed_trainer.errors import UserError
from seed_trainer.tiny import recipe as words
from seed_trainer.tiny.recipe import Recipe
from seed_trainer.tiny.sight import recipe as sight
from seed_trainer.tiny.sight.model import Shape
from seed_trainer.tiny.sight.recipe import SightRecipe

_SIZES = ("width", "layers", "heads")
_SCHEDULE = ("epochs", "batch_tokens", "learning_rate", "matrix_learning_rate")


def build_parser(vision: bool = False) -> Parser:
    """The options: the recipe's fields, TRL style."""
    recipe = SightRecipe() if vision else Recipe()
    sizes: Any = recipe.shape if isinstance(recipe, SightRecipe) else recipe
    parser = Parser(prog="seed-train make-tiny", description=__doc__)
    parser.add_argument("--output_dir", required=True, help="folder for model, tokenizer and recipe")
    parser.add_argument("--replace", action="store_true", help="also into a folder that holds something already")
    parser.add_argument("--vision", action="store_true", help="one that plays from pictures")
    parser.add_argument("--seed", type=int, default=recipe.seed, help="default: %(default)s")
    for name in (*_SIZES, *(["sight_layers"] if vision else [])):
        parser.add_argument(f"--{name}", type=int, default=getattr(sizes, name), help="default: %(default)s")
    for name in _SCHEDULE:
        value = getattr(recipe.schedule, name)
        parser.add_argument(f"--{name}", type=type(value), default=value, help="default: %(default)s")
    parser.add_argument("--games", type=float, default=1.0, help="share of the recipe's games (default: 1.0)")
    parser.add_argument("--threads", type=int, default=1, help="threads; the weights depend on it (default: 1)")
    if not vision:
        parser.add_argument("--probe", type=int, default=0, metavar="N", help="then measure the model on N panel tasks")
    return parser


def _recipe(options: argparse.Namespace) -> Recipe | SightRecipe:
    sizes = {name: getattr(options, name) for name in _SIZES}
    rates = {name: getattr(options, name) for name in _SCHEDULE}
    if not options.vision:
        made = Recipe(seed=options.seed, **sizes)
        return dataclasses.replace(made, schedule=dataclasses.replace(made.schedule, **rates)).scaled(options.games)
    shape = Shape(**sizes, sight_layers=options.sight_layers)
    seen = SightRecipe(seed=options.seed, shape=shape)
    return dataclasses.replace(seen, schedule=dataclasses.replace(seen.schedule, **rates)).scaled(options.games)


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options = build_parser("--vision" in argv).parse_args(list(argv))
    for name in ("epochs", "batch_tokens", "games"):
        if not getattr(options, name) > 0:
            raise UserError(f"--{name} {getattr(options, name)} must be above 0")
    if options.width % (2 * options.heads):
        raise UserError(f"--width {options.width} must be a multiple of twice --heads {options.heads}")
    folder = Path(options.output_dir)
    if not options.replace and folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty; choose another --output_dir, or add --replace to write over it")
    recipe = _recipe(options)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from tqdm.auto import tqdm

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
    if isinstance(recipe, SightRecipe):
        facts = sight.make(recipe, folder, progress)
    else:
        facts = words.make(recipe, folder, progress)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"{facts} in {seconds:.0f} s ({cpu:.0f} CPU seconds); saved to {options.output_dir}")
    if getattr(options, "probe", 0):
        from seed_trainer.tiny.probing import probe_folder, table

        print(table(probe_folder(folder, options.probe)))
    return 0
