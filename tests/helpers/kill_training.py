"""Kills training runs at random moments and compares what they end with to a run that nobody killed.

``python tests/helpers/kill_training.py 100`` kills a hundred times. Every child is forked from this process and runs
the whole trainer on the word world; it tells through a pipe which phase it is in, and gets SIGKILL (or another signal)
a random moment after a phase has begun.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset
from transformers import TrainerCallback
from transformers.utils.logging import disable_progress_bar
from word_world import GROWING, WINDOW, WORDS, make_word_env, small_model, teach_model, word_tokenizer

from seed_trainer.errors import UserError
from seed_trainer.keeping.folder import newest
from seed_trainer.keeping.kept import KeptTrainer
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.trainer import SEEDTrainer
from seed_trainer.watching.clock import Clock
from seed_trainer.watching.diagnostics import is_timing

PHASES = ("rollout", "skills", "scoring", "update", "evaluation", "saving")
ROUNDS = 7
"""Two rounds are one epoch: three epochs and a half."""
SETTINGS: dict[str, Any] = {
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "report_to": "none",
    "disable_tqdm": True,
    "seed": 3,
    "learning_rate": 1e-3,
    "temperature": 2.0,  # The model plays too well for groups that differ.
    "opd_coef": 0.3,
    "rounds": ROUNDS,
    "per_device_train_batch_size": 4,
    "steps_per_generation": 2,
    "num_generations": 2,
    "max_turn_length": 3,
    "max_skill_length": 6,
    "max_analysis_length": 8,
    "save_rounds": 1,
    "save_total_limit": 2,
    "eval_rounds": 2,
    "eval_on_start": True,
    "log_episodes": 1,
    "log_episodes_every": 1,
}
CASES: dict[str, dict[str, Any]] = {
    "episode-ema": {"profile": GROWING, "skill_source": "stale(1)", "teacher_policy": "ema", "teacher_ema_decay": 0.8},
    "turn-snapshot": {"profile": WINDOW, "teacher_policy": "snapshot", "skill_source": "generic"},
    # Lines of three steps, rounds of two: what is added up for a line is in a checkpoint.
    "episode-snapshot": {"profile": GROWING, "teacher_policy": "snapshot", "logging_steps": 3, "env_typed": True},
    "turn-ema": {"profile": WINDOW, "teacher_policy": "ema", "skill_source": "generic", "save_rounds": 2},
}


def build(model: str, folder: Path, **options: Any) -> SEEDTrainer:
    """Return a trainer of seven short rounds with evaluations, records and checkpoints."""
    profile, typed = options.pop("profile", GROWING), options.pop("env_typed", False)
    callbacks, tasks = options.pop("callbacks", []), options.pop("train_tasks", 8)
    settings = {
        **SETTINGS,
        "output_dir": str(folder),
        "rollout_layout": "episode" if profile is GROWING else "turn",
        "skill_analyzer": "auto" if profile is GROWING else "json",
    }
    return SEEDTrainer(
        model=model,
        args=SEEDConfig(**{**settings, **options}),
        make_env=lambda: make_word_env(profile, 3, typed),
        profile=profile,
        env_id="words",
        train_dataset=Dataset.from_dict({"task_id": [WORDS[i % 4] for i in range(tasks)]}),
        eval_dataset=Dataset.from_dict({"task_id": WORDS}),
        processing_class=word_tokenizer(),
        callbacks=callbacks,
    )


def run_to_the_end(model: str, folder: Path, **options: Any) -> None:
    """Train, from the newest complete checkpoint if there is one, and save the model: what the command does."""
    trainer = build(model, folder, **options)
    trainer.train(resume_from_checkpoint="latest" if newest(folder)[0] else None)
    trainer.export()
    trainer.player.close()


def what_remains(folder: Path) -> dict[str, Any]:
    """Return everything of a run folder that must not depend on interruptions.

    Line by line all of the line files but what the clock says; byte by byte model, optimiser and teacher.
    """
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        kept = [{name: value for name, value in line.items() if not is_timing(name)} for line in lines]
        found[path.name] = "\n".join(json.dumps(line) for line in kept)
        if path.name != "metrics.jsonl":
            found[f"{path.name}, raw"] = path.read_bytes()
    last = max(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    wanted = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "seed_state/teacher.safetensors")
    for path in [folder / "model.safetensors", *(last / name for name in wanted)]:
        found[str(path.relative_to(folder))] = path.read_bytes() if path.exists() else None
    found["checkpoints"] = sorted(path.name for path in folder.glob("checkpoint-*"))
    return found


@contextmanager
def telling(tell: Callable[[str], None]) -> Iterator[None]:
    """Call back with the name of every phase that begins. For a child that ends soon: nothing is put back."""
    timed, saved, exported = Clock.__call__, KeptTrainer._save_checkpoint, KeptTrainer.save_model

    def clock(self: Clock, name: str) -> Any:
        tell(name)
        return timed(self, name)

    def save(self: Any, *args: Any) -> None:
        tell("saving")
        saved(self, *args)
        tell("saved")

    def export(self: Any, *args: Any, **kwargs: Any) -> None:
        tell("saving")
        exported(self, *args, **kwargs)

    class Updates(TrainerCallback):
        def on_pre_optimizer_step(self, *args: Any, **kwargs: Any) -> None:
            tell("update")

    begun = SEEDTrainer.__init__

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        begun(self, *args, **{**kwargs, "callbacks": [Updates(), *kwargs.get("callbacks", [])]})

    Clock.__call__, KeptTrainer._save_checkpoint = clock, save  # type: ignore
    KeptTrainer.save_model, SEEDTrainer.__init__ = export, begin  # type: ignore
    yield


@dataclass
class Tally:
    """What the kills did: how many, in which phase, and how many runs were finished."""

    kills: int = 0
    runs: int = 0
    phases: Counter[str] = field(default_factory=Counter)


class Died(NamedTuple):
    """The end of a child: the phase a signal met it in, if one did; exit code, or minus the signal; its words."""

    phase: str
    code: int
    words: str


def fork(work: Callable[[], None]) -> tuple[int, dict[str, int]]:
    """Run something in a child; return its process id, and where it tells its phases and what it says on its errors.

    The child ends with code 0, with 130 if it was interrupted, 2 for a user's error, else 1.
    """
    phases, errors = os.pipe(), os.pipe()
    child = os.fork()
    if child:
        os.close(phases[1])
        os.close(errors[1])
        return child, {"phases": phases[0], "errors": errors[0]}
    code = 1
    try:
        sys.stdout, sys.stderr = (
            os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"),
            os.fdopen(errors[1], "w", buffering=1),
        )
        disable_progress_bar()
        with telling(lambda name: void(os.write(phases[1], f"{name}\n".encode()))):
            work()
        code = 0
    except KeyboardInterrupt:
        code = 130
    except UserError as error:
        print(error, file=sys.stderr)
        code = 2
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def void(_: object) -> None:
    """Return nothing."""


def listen(pipes: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Yield what comes out of pipes, with their names, until all are closed."""
    names = {pipe: name for name, pipe in pipes.items()}
    while names:
        for pipe in select.select(list(names), [], [])[0]:
            told = os.read(pipe, 65536)
            if told:
                yield names[pipe], told.decode(errors="replace")
            else:
                os.close(pipe)
                del names[pipe]


def kill_once(
    work: Callable[[], None],
    phase: str = "never",
    occurrence: int = 1,
    delay: float = 0.0,
    sign: int = signal.SIGKILL,
) -> Died:
    """Run something and kill it a moment after a phase has begun for the n-th time."""
    child, pipes = fork(work)
    last, seen, sent, words = "start", 0, False, ""
    for name, told in listen(pipes):
        if name == "errors":
            words += told
            continue
        last, seen = told.split()[-1], seen + told.split().count(phase)
        if seen >= occurrence and not sent:
            time.sleep(delay)
            os.kill(child, sign)
            sent = True
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Died(last if sent and code in (-sign, 130) else "", code, words)


def kill_until_done(
    model: str,
    folder: Path,
    whole: dict[str, Any],
    options: dict[str, Any],
    draw: random.Random,
    tally: Tally,
    limit: int,
) -> None:
    """Kill one run again and again until it is done or the limit is reached; then let it end and compare."""
    work: Callable[[], None] = lambda: run_to_the_end(model, folder, **options)
    while tally.kills < limit:
        phase = PHASES[tally.kills % len(PHASES)]
        died = kill_once(work, phase, draw.randint(1, 3), draw.choice([0.0, 0.0, 0.002, 0.01]))
        if died.phase:
            tally.kills += 1
            tally.phases[died.phase] += 1
        elif died.code:
            raise AssertionError(died.words)
        else:
            break
    died = kill_once(work)
    assert died.code == 0, died.words
    tally.runs += 1
    found = what_remains(folder)
    different = [name for name in whole if found.get(name) != whole[name]]
    assert not different and set(found) == set(whole), f"after {tally.kills} kills these differ: {different}"


def untouched(model: str, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return what remains of a run that nobody kills."""
    died = kill_once(lambda: run_to_the_end(model, folder, **options))
    assert died.code == 0, died.words
    return what_remains(folder)


def kill_many(model: str, place: Path, kills: int, seed: int, cases: list[str], note: Callable[[str], None]) -> Tally:
    """Kill runs of several cases in turn, until there were so many kills.

    Raises:
        AssertionError: If a run ends with something else than one that nobody killed.
    """
    draw, tally = random.Random(seed), Tally()
    for number, name in enumerate(cases, start=1):
        whole = untouched(model, place / name, CASES[name])
        while tally.kills < kills * number // len(cases):
            limit = kills * number // len(cases)
            kill_until_done(model, place / f"{name}-{tally.runs}", whole, CASES[name], draw, tally, limit)
            note(f"{name}: {tally.kills} kills, {tally.runs} runs finished, all equal")
    return tally


def save_model(folder: Path) -> str:
    """Save the model that the runs start from."""
    model = small_model()
    teach_model(model)
    model.save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    return str(folder)


def main() -> None:
    """Kill as often as the first argument says, with the seed of the second."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as place:
        model = save_model(Path(place) / "model")
        tally = kill_many(model, Path(place), kills, seed, list(CASES), lambda text: print(text, flush=True))
    print(f"{tally.kills} kills, {tally.runs} runs, phases: {dict(tally.phases)}")


if __name__ == "__main__":
    main()
