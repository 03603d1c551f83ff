"""``seed-train rl``: stage 2, with SEED or a relative."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from seed_envs.preflight import check_folder
from seed_envs.redaction import redact
from seed_trainer.commands.checks import check_play, model_contestant
from seed_trainer.commands.launch import launch
from seed_trainer.errors import UserError
from seed_trainer.keeping.start import starting_point
from seed_trainer.settings.arguments import SEEDScriptArguments
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.settings.presets import METHODS
from seed_trainer.settings.quick import GRPO_SOURCES, look
from seed_trainer.settings.recipes import RECIPES, ROWS
from seed_trainer.settings.resolve import Resolved, config_files, resolve

if TYPE_CHECKING:
    from seed_trainer.trainer import SEEDTrainer
from seed_trainer.commands.building import build_trainer, datasets, environment, model_name, resolve_model, start_model

RUN_FILE = "run.json"


def help_text() -> str:
    """Return the help: our fields; TRL's are all accepted too."""
    lines = [
        "usage: seed-train rl [--config FILE_OR_NAME] [--recipe NAME] [--method NAME] [--field value ...]",
        "",
        f"configs: {', '.join(config_files())}, and every row of the paper: seed-train configs",
        f"methods: {', '.join(METHODS)}",
        f"recipes: {', '.join(name for name in RECIPES if name not in ROWS)}",
        "",
        "Every field of TRL's GRPOConfig and ModelConfig is accepted too (learning_rate, use_vllm, use_peft, ...).",
        "Below: --field (default | other choices): what it is [who chose the default: paper, released code, or ours].",
        "",
    ]
    for part in (SEEDScriptArguments, SEEDOptions):
        hints = get_type_hints(part)
        lines.append(f"{part.__name__}:")
        for item in dataclasses.fields(part):
            default = item.default if item.default not in ("", None) else "-"
            lines.append(f"  --{item.name} ({default}{_choices(hints[item.name], default)}): {item.metadata['help']}")
        lines.append("")
    return "\n".join(lines)


def _choices(hint: Any, default: object) -> str:
    """Return the values of a field with a fixed set of them that are not its default, for the help."""
    others = [str(value) for value in get_args(hint) if value != default] if get_origin(hint) is Literal else []
    return "".join(f" | {value}" for value in others)


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    if any(argument in ("-h", "--help") for argument in argv):
        print(help_text())
        return 0
    glance = look(argv, [SEEDScriptArguments, SEEDOptions], GRPO_SOURCES)
    glance.require("output_dir", "runs/NAME")
    resolve_model(start_model(glance.parts[0], glance.value("model_name_or_path")))
    environment(glance.parts[0])
    from trl import ModelConfig

    from seed_trainer.settings.config import SEEDConfig

    resolved = resolve(argv, [SEEDScriptArguments, SEEDConfig, ModelConfig], "Stage 2: train on episodes.")
    script, args, _ = resolved.parts
    if script.accelerate_config and not script.dry_run:
        return launch(script.accelerate_config, "rl", argv)
    if not args.output_dir or args.output_dir == "trainer_output":
        raise UserError("set output_dir: --output_dir runs/NAME")
    return run(resolved)


def run(resolved: Resolved) -> int:
    """Train or evaluate what was resolved."""
    script, args, _ = resolved.parts
    if script.cpu_threads > 0:
        import torch

        torch.set_num_threads(script.cpu_threads)
    name = resolve_model(model_name(resolved))
    if not script.no_preflight:
        check_folder(Path(args.output_dir), "--output_dir")
    make_env, profile = environment(script)
    train, panel = datasets(script, make_env)
    if not script.no_preflight:
        _check(resolved, name, make_env, profile, train)
    if script.dry_run:
        _print_dry_run(resolved, len(train))
        return 0
    trains = METHODS.find(script.method).trains
    if panel is None and (args.eval_strategy != "no" or not trains):
        raise UserError("there is no panel to evaluate on: set eval_split or eval_manifest")
    identity = _identity(resolved, profile, train)
    start = starting_point(args.resume_from_checkpoint, args, identity) if trains else None
    if start is not None and start.finished:
        return already_finished(start)
    trainer = build_trainer(resolved, make_env, profile, train, panel)
    trainer.identity = identity
    if not script.no_preflight:
        _check_reply(script, name, make_env, trainer, train)
    if trainer.is_world_process_zero():
        write_run(resolved)
    if trains:
        _train(trainer, start, summary=panel is not None)
    else:
        metrics = trainer.evaluate()
        if trainer.is_world_process_zero():
            print(json.dumps(metrics, indent=2))
    trainer.player.close()
    # Without it the background threads of a process group can abort a finished run at exit.
    trainer.end()
    return 0


def _check(resolved: Resolved, name: str, make_env: Any, profile: Any, train: Any) -> None:
    from seed_trainer.acting.play import block_tasks

    script, args, model_args = resolved.parts
    contestant = model_contestant(name, model_args.model_revision, args.max_prompt_length, args.max_turn_length)
    check_play(script, make_env, profile, block_tasks([train[0]], 1)[0], contestant)


def _check_reply(script: Any, name: str, make_env: Any, trainer: SEEDTrainer, train: Any) -> None:
    """Ask the loaded model for one reply; every process asks, because an engine may need them all, and one speaks."""
    from seed_envs.preflight import Contestant
    from seed_trainer.acting.play import block_tasks
    from seed_trainer.commands.checks import tell, unchanged

    policy = trainer.actor.policy(trainer.actor.decoding(trainer.args.temperature))
    say = tell if trainer.is_world_process_zero() else lambda text: None
    contestant = Contestant(name, policy=unchanged(policy, trainer.generator))
    check_play(script, make_env, trainer.profile, block_tasks([train[0]], 1)[0], contestant, say)


def _identity(resolved: Resolved, profile: Any, train: Any) -> dict[str, Any]:
    from seed_trainer.keeping.identity import fingerprint, run_facts, run_identity

    script, args, model_args = resolved.parts
    # By the name of a shipped model, not by where this installation has it.
    facts = run_facts(model_name(resolved) or "", script.env_id, profile, train)
    # Without secrets, whose hash could be guessed: a run may go on with a new password.
    own = {
        "method": script.method,
        "env_kwargs": fingerprint(redact(script.kwargs)),
        "env_max_steps": script.env_max_steps,
        "env_blind": script.env_blind,
    }
    peft = {name: value for name, value in vars(model_args).items() if name.startswith(("use_", "lora_", "load_in"))}
    return run_identity(args, **facts, **own, **peft)


def already_finished(start: Any) -> int:
    """Say that there is nothing to do."""
    print(f"already finished: {start.folder} has all {start.step} steps; nothing was changed, more rounds go on")
    return 0


def _train(trainer: SEEDTrainer, start: Any, *, summary: bool) -> None:
    args = trainer.args
    trainer.train(resume_from_checkpoint=start)
    trainer.export()
    if summary and trainer.is_world_process_zero():
        print(_summary(Path(args.output_dir)))
    if args.push_to_hub:
        trainer.push_to_hub()


def write_run(resolved: Resolved) -> None:
    """Write ``run.json``: every resolved value, its origin, and the versions it ran with."""
    from importlib.metadata import version

    script, args, model_args = resolved.parts
    names = ("seed-envs", "torch", "transformers", "trl", "gymnasium")
    record = {
        "command": ["seed-train", "rl", *sys.argv[2:]] if "seed-train" in sys.argv[0] else sys.argv,
        "script": dataclasses.asdict(script),
        "training": args.to_dict(),
        "model": {key: str(value) for key, value in vars(model_args).items()},
        "origin": resolved.origin,
        "versions": {name: _version(version, name) for name in names},
    }
    folder = Path(args.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUN_FILE).write_text(json.dumps(redact(record), indent=2, default=str) + "\n", encoding="utf-8")


def _version(version: Any, name: str) -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return str(version(name))
    except PackageNotFoundError:
        return "not installed"


def _print_dry_run(resolved: Resolved, tasks: int) -> None:
    from seed_envs.tables import table
    from seed_trainer.settings.dry_run import arithmetic, resolved_rows

    print(table(("field", "value", "from"), resolved_rows(resolved)))
    print()
    print(table(("quantity", "value"), arithmetic(resolved.parts[1], tasks)))


def _summary(folder: Path) -> str:
    from seed_envs.tables import number, table
    from seed_trainer.watching.panels import read_evaluations

    rows = []
    for step, metrics in read_evaluations(folder):
        share, low, high = (number(metrics[f"eval_success{end}"]) for end in ("", "_low", "_high"))
        turns = number(metrics["eval_turns"], 1)
        rows.append((step, share, f"{low} to {high}", turns, f"{metrics['eval_episodes']:.0f}"))
    shown = table(("step", "success", "95 % interval", "turns", "episodes"), rows) if rows else "no evaluation was run"
    return f"\n{shown}\n\nrun folder: {folder}"
