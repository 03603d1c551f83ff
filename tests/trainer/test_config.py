"""Configuration: arithmetic, layers of values with their origin, presets, and errors that teach."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trl import ModelConfig

from seed_trainer.cli import main
from seed_trainer.commands.data import DataArguments
from seed_trainer.commands.sft import SFTArguments
from seed_trainer.errors import UserError
from seed_trainer.settings import schedules
from seed_trainer.settings.arguments import SEEDScriptArguments
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.settings.presets import METHODS
from seed_trainer.settings.recipes import DATA_RECIPES, RECIPES, ROWS, SFT_RECIPES
from seed_trainer.settings.resolve import CPU_FLAGS, Resolved, config_names, load_config, resolve
from seed_trainer.stage1.sft import SEEDSFTConfig

PARTS = [SEEDScriptArguments, SEEDConfig, ModelConfig]
CPU = ["--use_cpu", "--bf16", "false"]


def config(**options: Any) -> SEEDConfig:
    return SEEDConfig(**{"output_dir": "x", "use_cpu": True, "bf16": False, **options})


def resolved(*flags: str) -> Resolved:
    return resolve([*CPU, *flags], PARTS)


def test_defaults_are_the_papers() -> None:
    args = config()
    expected = {
        "opd_coef": 0.01,
        "opd_gate_beta": 5.0,
        "beta": 0.01,
        "learning_rate": 1e-6,
        "epsilon": 0.2,
        "num_generations": 8,
        "rounds": 150,
        "adv_unit": "trajectory",
        "adv_std": "population",
        "teacher_policy": "live",
        "rollout_layout": "turn",
        "loss_type": "dapo",
        "use_bias_correction_kl": False,
        "disable_dropout": True,
    }
    assert {name: getattr(args, name) for name in expected} == expected


def test_rounds_decide_the_steps() -> None:
    args = config(per_device_train_batch_size=16, steps_per_generation=4, rounds=10, eval_rounds=2, save_rounds=5)
    assert (args.steps_per_round, args.max_steps, args.logging_steps) == (4, 40, 4)
    assert (args.eval_steps, args.save_steps) == (8, 20)
    assert config(per_device_train_batch_size=8, steps_per_generation=4, num_iterations=2).steps_per_round == 8
    half = config(per_device_train_batch_size=8, steps_per_generation=4, gradient_accumulation_steps=8, rounds=10)
    assert (half.steps_per_round, half.max_steps, half.logging_steps) == (0.5, 5, 1), "ten rounds make five steps"
    assert (half.steps_of(1), half.steps_of(3)) == (1, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gradient_accumulation_steps": 3, "steps_per_generation": 4}, "multiples of one another"),
        (
            {"per_device_train_batch_size": 6, "steps_per_generation": 2},
            "must be divisible by num_generations|multiple",
        ),
        ({"steps_per_generation": 3, "save_steps": 7}, "save_steps=7 must be a multiple of 3"),
        ({"opd_gate": "gapp"}, "Did you mean 'gap'"),
        ({"opd_coef": -1.0}, "opd_coef=-1.0 must be at least 0"),
        ({"opd_coef": float("nan")}, "opd_coef=nan must be at least 0"),
        ({"log_episodes_every": 0}, "log_episodes_every=0 must be at least 1"),
        ({"staleness_every": 0}, "staleness_every=0 must be at least 1"),
        ({"opd_jsd_mix": 1.5}, "opd_jsd_mix=1.5 must be between 0 and 1"),
        ({"staleness_ages": "1;5"}, "staleness_ages='1;5' must be numbers of rounds"),
        ({"staleness_ages": "1", "skill_source": "generic"}, "cannot be measured with skill_source=generic"),
        ({"adv_step_skill": "add"}, "Did you mean 'adds'"),
        ({"max_turn_length": 0}, "max_turn_length=0 must be at least 1"),
        ({"loss_type": "luspo"}, "loss_type='luspo' has no known normaliser"),
        ({"skill_source": "library"}, "need skill_library=FILE.json"),
        ({"opd_term": "jsd", "teacher_policy": "snapshot"}, "does not work with teacher_policy=snapshot"),
        ({"adv_unit": "step", "rollout_layout": "episode"}, "need rollout_layout=turn"),
        ({"adv_step_skill_coef": 0.1, "rollout_layout": "episode"}, "a step skill belongs to one turn"),
    ],
)
def test_impossible_configurations_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(**options)


def test_values_are_checked_as_before_after_a_command_line_was_read() -> None:
    resolved()  # transformers' parser changes the fields of the dataclasses it reads
    with pytest.raises(ValueError, match="opd_gate='gapp' is unknown"):
        config(opd_gate="gapp")


def test_filtered_sampling_warns() -> None:
    with pytest.warns(UserWarning, match="sampling distribution"):
        config(top_p=0.9)


def test_gate_schedule_and_distillation_window() -> None:
    options = SEEDOptions(opd_gate_schedule="linear", opd_gate_beta=10.0, opd_gate_beta_end=0.0)
    assert [schedules.gate_beta(options, r, 11) for r in (0, 5, 10, 99)] == [10.0, 5.0, 0.0, 0.0]
    options.opd_gate_schedule = "cosine"
    assert schedules.gate_beta(options, 5, 11) == pytest.approx(5.0)
    window = SEEDOptions(opd_start_round=2, opd_stop_round=4)
    assert [schedules.distills(window, r) for r in range(6)] == [False, False, True, True, False, False]
    rlsd = SEEDOptions(adv_shaping_coef=0.5, adv_shaping_rounds=100)
    assert [schedules.shaping_weight(rlsd, r) for r in (0, 50, 100, 200)] == [0.5, 0.25, 0.0, 0.0]


def test_later_layers_win_and_every_value_knows_its_origin(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "recipe: released/alfworld\nmethod: sdar\nskill_library: lib.json\nopd_coef: 0.3\nlearning_rate: 3e-4\n"
    )
    found = resolved("--config", str(path), "--learning_rate", "1e-3", "--method", "grpo")
    script, args, _ = found.parts
    assert (args.learning_rate, args.opd_coef, args.adv_unit) == (1e-3, 0.0, "step")
    assert (script.method, script.recipe, script.env_max_steps) == ("grpo", "released/alfworld", 30)
    origins = {name: found.origin[name] for name in ("learning_rate", "opd_coef", "adv_unit", "method", "recipe")}
    assert origins == {
        "learning_rate": "flag",
        "opd_coef": "method grpo",
        "adv_unit": "recipe released/alfworld",
        "method": "flag",
        "recipe": f"config {path}",
    }
    assert args.skill_source == "own" and "skill_source" not in found.origin, "nothing is left of the file's method"
    kept = resolved("--config", str(path), "--method", "seed").parts[1]
    assert kept.opd_coef == 0.3 and kept.skill_source == "own", "a method leaves the numbers of the file alone"


def test_a_method_flag_leaves_nothing_of_the_files_method(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("method: grpo\nlearning_rate: 3e-4\n")
    args = resolved("--config", str(path), "--method", "seed").parts[1]
    assert args.opd_coef == 0.01 and args.teaches and args.learning_rate == 3e-4


def test_warm_up_of_the_released_search_recipe_has_an_effect() -> None:
    import torch
    from transformers import get_scheduler

    args = resolved("--recipe", "released/search_qa").parts[1]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=args.learning_rate)
    warmup = args.get_warmup_steps(args.max_steps)
    schedule = get_scheduler(args.lr_scheduler_type, optimizer, warmup, args.max_steps)
    assert warmup == args.max_steps // 10 and schedule.get_last_lr() == [0.0]


@pytest.mark.parametrize(
    ("profile", "turns", "replies"), [("paper", None, 4), ("paper", 6, 6), ("search-r1", None, 5), ("search-r1", 6, 7)]
)
def test_the_released_search_recipe_leaves_the_turns_to_the_environment(
    profile: str, turns: int | None, replies: int
) -> None:
    from seed_trainer.commands.building import environment

    kwargs = {"collection": "tiny"} | ({} if turns is None else {"max_turns": turns})
    flags = ["--recipe", "released/search_qa", "--env_profile", profile, "--env_kwargs", json.dumps(kwargs)]
    env = environment(resolved(*flags).parts[0])[0]()
    env.reset(seed=0)
    ends: list[Any] = []
    while not any(ends):
        *_, terminated, truncated, info = env.step("<think>hm</think><search>river</search>")
        ends.append(terminated or truncated)
    env.close()
    assert (len(ends), truncated, info["stop_reason"]) == (replies, True, "turn_limit")


@pytest.mark.parametrize("env_id", ["seed/SearchQA-v0", "seed/ALFWorld-v0"])
def test_the_invalid_action_penalty_has_one_place(env_id: str) -> None:
    """The profiles of the released code hold it too; the trainer's own would come on top."""
    from seed_envs.wrappers import InvalidActionPenalty
    from seed_trainer.commands.building import environment

    make_env, profile = environment(resolved("--env_id", env_id, "--env_profile", "paper").parts[0])
    env, stack = make_env(), []
    while hasattr(env, "env"):
        stack.append(type(env))
        env = env.env
    env.close()
    assert profile.invalid_penalty == 0.0 and InvalidActionPenalty not in stack


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_generations: 4.5\n", "invalid int value"),
        ("opd_coef:\n", "opd_coef in config .* has no value"),
        ("opd_coef: [1, 2]\n", "opd_coef|list"),
        ("env: seed/ALFWorld-v0\n", "env must map environment variables"),
        ("7: 1\n", "unknown field '7'"),
    ],
)
def test_wrong_types_in_a_file_are_explained(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        resolved("--config", str(path))


@pytest.mark.parametrize("name", sorted(set(SFT_RECIPES) - set(ROWS)))
def test_stage_1_has_the_same_recipes(name: str) -> None:
    assert sorted(SFT_RECIPES) == sorted(DATA_RECIPES) == sorted(RECIPES)
    sft = resolve([*CPU, "--recipe", name], [SFTArguments, SEEDSFTConfig, ModelConfig], "", SFT_RECIPES)
    data = resolve(["--recipe", name], [DataArguments], "", DATA_RECIPES)
    for found, table in ((sft, SFT_RECIPES), (data, DATA_RECIPES)):
        values = {key: value for part in found.parts for key, value in vars(part).items()}
        assert {key: values[key] for key in table[name]} == table[name]


@pytest.mark.parametrize("variable", ["LD_PRELOAD", "ld_library_path", "PYTHONPATH", "PATH", "JAVA_TOOL_OPTIONS"])
def test_yaml_may_not_choose_the_code_that_programs_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("SEED_TEST_VARIABLE", raising=False)
    path, before = tmp_path / "run.yaml", os.environ.get(variable)
    path.write_text(f"env:\n  SEED_TEST_VARIABLE: 7\n  {variable}: /tmp/evil.so\n")
    with pytest.raises(UserError, match=f"env may not set {variable}, .* set it in the shell"):
        load_config(str(path))
    assert os.environ.get(variable) == before and "SEED_TEST_VARIABLE" not in os.environ


def test_yaml_sets_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEED_TEST_VARIABLE", raising=False)
    path = tmp_path / "run.yaml"
    path.write_text("env:\n  SEED_TEST_VARIABLE: 7\n")
    load_config(str(path))
    assert os.environ.pop("SEED_TEST_VARIABLE") == "7"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--learning_rat", "1"], "unknown field 'learning_rat' in the flags. Did you mean 'learning_rate'"),
        (["--method", "seeed"], "--method 'seeed' is unknown.*Did you mean 'seed'"),
        (["--recipe", "released/alfwrld"], "Did you mean 'released/alfworld'"),
        (["--config", "smoke_cp"], "neither a file nor one of.*Did you mean 'smoke_cpu'"),
        (["--num_generations", "many"], "invalid int value"),
        (["--opd_gate", "gapp"], "invalid choice: 'gapp'"),
        (["--config"], "--config needs a value"),
    ],
)
def test_bad_flags_are_one_clear_message(flags: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        resolved(*flags)


def test_a_refusal_for_want_of_a_gpu_names_the_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "Your setup doesn't support bf16/gpu. You need to assign use_cpu"
    monkeypatch.setattr(SEEDConfig, "check_options", lambda _: (_ for _ in ()).throw(ValueError(message)))
    with pytest.raises(UserError, match=f"{message}.*{CPU_FLAGS}"):
        resolved()


def test_unknown_yaml_key_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("opd_coeff: 0.1\n")
    with pytest.raises(UserError, match="unknown field 'opd_coeff' in config .*Did you mean 'opd_coef'"):
        resolved("--config", str(path))
    path.write_text("- a\n- b\n")
    with pytest.raises(UserError, match="must hold a mapping"):
        resolved("--config", str(path))
    path.write_text("a: [1\n")
    with pytest.raises(UserError, match="not valid YAML"):
        resolved("--config", str(path))


def test_bare_resume_flag_means_latest() -> None:
    assert resolved("--resume_from_checkpoint", "--seed", "1").parts[1].resume_from_checkpoint == "latest"


@pytest.mark.parametrize("name", sorted(METHODS))
def test_methods_name_only_known_fields(name: str, tmp_path: Path) -> None:
    known = {item.name for part in PARTS for item in dataclasses.fields(part)}
    assert set(METHODS[name].fields) <= known
    flags = ["--skill_library", "lib.json", "--method", name]
    assert resolved(*flags).parts[0].method == name


@pytest.mark.parametrize("name", sorted(set(RECIPES) - set(ROWS)))
def test_recipes_resolve(name: str) -> None:
    assert resolved("--recipe", name).parts[0].recipe == name


@pytest.mark.parametrize("name", config_names())
def test_shipped_configurations_resolve(name: str) -> None:
    values = load_config(name)
    rl = {item.name for part in PARTS for item in dataclasses.fields(part)} | {"recipe", "method"}
    sft = {item.name for part in (SFTArguments, SEEDSFTConfig, ModelConfig) for item in dataclasses.fields(part)}
    assert set(values) <= rl or set(values) <= sft, set(values) - rl


def test_help_is_quick_and_imports_no_torch() -> None:
    code = (
        "import sys; from seed_trainer.cli import main; main(['--help']); main(['rl', '--help']); "
        "assert not {'torch', 'transformers', 'trl'} & set(sys.modules), sorted(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert "--opd_coef (0.01)" in done.stdout and "--adv_unit (trajectory | step)" in done.stdout
    assert "seed-train COMMAND" in done.stdout


def test_importing_the_package_imports_no_torch() -> None:
    code = "import sys, seed_trainer; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], timeout=600, check=True)


def test_unknown_command_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rll"]) == 2
    assert "Did you mean 'rl'" in capsys.readouterr().err
