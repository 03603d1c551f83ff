"""Every row of the paper: exactly the published numbers, from tables, as one command a stage."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from trl import ModelConfig

from benchmarks.cli import main as bench
from benchmarks.suites import find_suite
from seed_envs.profiles import get_profile
from seed_trainer.cli import main
from seed_trainer.commands.data import DataArguments
from seed_trainer.commands.sft import SFTArguments
from seed_trainer.errors import UserError
from seed_trainer.settings.arguments import SEEDScriptArguments
from seed_trainer.settings.config import SEEDConfig
from seed_trainer.settings.options import micro_batches
from seed_trainer.settings.presets import METHODS
from seed_trainer.settings.recipes import BACKBONES, BENCHMARKS, ROWS, STAGES
from seed_trainer.settings.resolve import resolve
from seed_trainer.stage1.sft import SEEDSFTConfig

CPU = ["--use_cpu", "--bf16", "false"]
PARTS: dict[str, list[Any]] = {
    "data": [DataArguments],
    "sft": [SFTArguments, SEEDSFTConfig, ModelConfig],
    "rl": [SEEDScriptArguments, SEEDConfig, ModelConfig],
}

TEXT, SEES = ("qwen2.5-3b", "qwen2.5-7b", "qwen3-1.7b"), ("qwen2.5-vl-3b",)
MODELS = {
    "qwen2.5-3b": "Qwen/Qwen2.5-3B-Instruct",
    "qwen2.5-7b": "Qwen/Qwen2.5-7B-Instruct",
    "qwen3-1.7b": "Qwen/Qwen3-1.7B",
    "qwen2.5-vl-3b": "Qwen/Qwen2.5-VL-3B-Instruct",
}

COLUMNS = ("alfworld", "webshop", "search_qa", "sokoban", "ezpoints")
BOTH: dict[str, tuple[Any, ...]] = {
    "tasks of a round": (16, 16, 128, 32, 16),
    "num_generations": (8, 8, 8, 8, 8),
    "learning_rate": (1e-6,) * 5,
    "epsilon": (0.2,) * 5,
    "opd_gate_beta": (5.0,) * 5,
    "opd_coef": (0.01,) * 5,
    "max_prompt_length": (2048, 4096, 4096, 1024, 1024),
    "max_turn_length": (512,) * 5,
    "environment steps": (30, 15, 4, 15, 8),
    "history": (5, 2, 4, 0, 0),
    "episodes of an update": (16, 8, 128, 8, 32),
    "num_iterations": (1,) * 5,
    "temperature": (1.0,) * 5,
    "eval_temperature": (0.4,) * 5,
    "max_analysis_length": (4096, 4096, 4096, 2048, 2048),
    "max_analysis_prompt_length": (16384, 16384, 16384, 24576, 16384),
    "skill_temperature": (0.0,) * 5,
    "sft learning_rate": (5e-6, 5e-6, 5e-6, 2e-6, 2e-6),
    "sft max_length": (8192, 12288, 12288, 4096, 4096),
    "sft num_train_epochs": (3,) * 5,
    "sft examples of an update": (8,) * 5,
    "sft validation_share": (0.1,) * 5,
    "data tasks": (180,) * 5,
    "data repeats": (8,) * 5,
    "data temperature": (0.4, 0.4, 0.4, 1.0, 1.0),
}
"""Rows of the table of hyper-parameters in which both recipes agree, or the paper is silent, by benchmark."""
OWN: dict[str, dict[str, tuple[Any, ...]]] = {
    "paper": {
        "rounds": (150, 150, 150, 150, 100),
        "warmup_steps": (0,) * 5,
        "delta": (None,) * 5,
        "beta": (0.01,) * 5,
        "adv_invalid_penalty": (0.0,) * 5,
        "entropy_coef": (0.0,) * 5,
        "adv_unit": ("trajectory",) * 5,
        "adv_std": ("population",) * 5,
        "teacher_policy": ("live",) * 5,
        "evaluation tasks": (0, 128, 0, 128, 128),
        "data endpoint_max_tokens": (4096,) * 5,
    },
    "released": {
        "rounds": (160, 160, 150, 150, 100),
        "warmup_steps": (0, 0, 0.1, 0, 0),
        "delta": (3.0,) * 5,
        "beta": (0.01, 0.01, 0.001, 0.01, 0.01),
        "adv_invalid_penalty": (0.1, 0.1, 0.01, 0.1, 0.1),
        "entropy_coef": (0.001, 0.001, 0.0, 0.001, 0.001),
        "adv_unit": ("step",) * 5,
        "adv_std": ("sample", "off", "sample", "sample", "sample"),
        "teacher_policy": ("snapshot",) * 5,
        "evaluation tasks": (128, 128, 0, 128, 128),
        "data endpoint_max_tokens": (1024, 1024, 1024, 8192, 8192),
    },
}
"""The rows in which they differ."""


def fields(stage: str, *flags: str) -> dict[str, Any]:
    """All fields of a stage as a command line resolves them."""
    cpu = [] if stage == "data" else CPU
    found = resolve([*cpu, *flags], PARTS[stage], recipes=STAGES[stage])
    return {key: value for part in found.parts for key, value in vars(part).items()}


def of_row(name: str) -> dict[str, Any]:
    """What a row comes to, under the names of the tables above."""
    data, sft, rl = (fields(stage, "--config", name) for stage in ("data", "sft", "rl"))
    assert rl["env_id"] == data["env_id"] and rl["env_max_steps"] == data["env_max_steps"]
    profile = get_profile(rl["env_id"], rl["env_profile"])
    rows = rl["per_device_train_batch_size"]
    return {
        **rl,
        **{f"data {key}": value for key, value in data.items()},
        **{f"sft {key}": value for key, value in sft.items()},
        "tasks of a round": rl["steps_per_generation"] * rows / rl["num_generations"],
        "episodes of an update": rl["gradient_accumulation_steps"] * rows,
        "sft examples of an update": sft["gradient_accumulation_steps"] * sft["per_device_train_batch_size"],
        "environment steps": rl["env_max_steps"] or profile.max_steps or profile.env_kwargs["max_turns"],
        "history": profile.history,
        "evaluation tasks": rl["eval_tasks"],
    }


def test_there_is_a_row_for_every_cell_of_the_papers_tables() -> None:
    expected = {
        f"{recipe}/{benchmark}-{backbone}"
        for recipe in OWN
        for benchmark in COLUMNS
        for backbone in (SEES if benchmark in ("sokoban", "ezpoints") else TEXT)
    }
    assert set(ROWS) == expected and len(expected) == 22
    assert {name: backbone.model for name, backbone in BACKBONES.items()} == MODELS
    assert tuple(BENCHMARKS) == COLUMNS


@pytest.mark.parametrize("name", list(ROWS))
def test_a_row_has_the_published_numbers(name: str) -> None:
    row = ROWS[name]
    column = COLUMNS.index(row.benchmark)
    expected = {key: values[column] for key, values in {**BOTH, **OWN[row.recipe]}.items()}
    found = of_row(name)
    assert {key: found[key] for key in expected} == expected
    model = MODELS[row.backbone]
    assert found["data policy"] == found["sft model_name_or_path"] == found["base_model"] == model
    assert found["data output_dir"] == found["sft data"] and found["sft output_dir"] == found["model_name_or_path"]
    assert found["opd_term"] == "gated" and found["opd_gate"] == "gap" and found["skill_source"] == "own"
    thinking = {"enable_thinking": False} if row.backbone == "qwen3-1.7b" else None
    assert found["chat_template_kwargs"] == thinking


@pytest.mark.parametrize("name", list(ROWS))
def test_the_evaluation_of_a_row_is_a_command_that_exists(name: str, tmp_path: Path) -> None:
    for command in ROWS[name].commands["evaluation"]:
        program, *arguments = shlex.split(command)
        assert program == "seed-bench"
        find_suite(arguments[arguments.index("--suite") + 1])
        with pytest.raises(SystemExit) as left:
            bench([*arguments, "--help"])  # reads what stands before it
        assert left.value.code == 0


@pytest.mark.parametrize("name", ["paper/alfworld-qwen3-1.7b", "released/sokoban-qwen2.5-vl-3b", "webshop_lora"])
def test_a_printed_configuration_is_the_configuration(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for stage in STAGES if name in ROWS else ["rl"]:
        options = ["--stage", stage] if name in ROWS else []
        assert main(["configs", name, *options]) == 0
        text = capsys.readouterr().out
        path = tmp_path / f"{stage}.yaml"
        path.write_text(text)
        ours, shipped = fields(stage, "--config", str(path)), fields(stage, "--config", name)
        differing = {key for key in ours if ours[key] != shipped[key]} - {"recipe", "distributed_state", "logging_dir"}
        assert not {key for key in differing if not key.startswith("_")}, differing
    if name in ROWS:
        assert main(["configs", name]) == 0
        printed = capsys.readouterr().out
        assert all(command in printed for commands in ROWS[name].commands.values() for command in commands)
        assert len(list(yaml.safe_load_all(printed))) == 4


def test_configurations_are_listed_and_mistyped_ones_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["configs"]) == 0
    listed = capsys.readouterr().out
    assert all(f"| {name} " in listed for name in (*ROWS, "quickstart"))
    assert main(["configs", "paper/alfworld-qwen2.5-3"]) == 2
    assert "Did you mean 'paper/alfworld-qwen2.5-3b'" in capsys.readouterr().err
    assert main(["configs", "quickstart", "--stage", "rl"]) == 2
    assert "leave --stage out" in capsys.readouterr().err


@pytest.mark.parametrize(("processes", "steps", "accumulation"), [(1, 128, 16), (2, 64, 8), (8, 16, 2)])
def test_the_sizes_of_a_round_do_not_depend_on_the_number_of_processes(
    processes: int, steps: int, accumulation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    assert micro_batches("episodes_per_round", 128, 1) == steps
    assert micro_batches("episodes_per_update", 16, 1) == accumulation
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(ValueError, match="episodes_per_round=128 must be a multiple of 6: .*=2 on 3 processes"):
        micro_batches("episodes_per_round", 128, 2)


def test_sizes_that_are_given_one_by_one_win() -> None:
    flags = ["--steps_per_generation", "8", "--gradient_accumulation_steps", "4"]
    found = fields("rl", "--config", "paper/alfworld-qwen2.5-3b", *flags)
    assert (found["steps_per_generation"], found["gradient_accumulation_steps"]) == (8, 4)
    with pytest.raises(UserError, match="examples_per_update=9 must be a multiple of 2"):
        fields("sft", "--examples_per_update", "9", "--per_device_train_batch_size", "2")


def test_real_data_is_looked_for_where_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = fields("rl", "--config", "paper/search_qa-qwen2.5-3b")
    script = SEEDScriptArguments(env_kwargs=arguments["env_kwargs"])
    monkeypatch.setenv("SEED_DATA_DIR", "/real")
    assert script.kwargs["questions"] == ["/real/search_qa/train.parquet", "/real/search_qa/test.parquet"]
    assert script.kwargs["collection"] == "/real/search_qa/wiki-18.jsonl"
    monkeypatch.delenv("SEED_DATA_DIR")
    with pytest.raises(UserError, match="export SEED_DATA_DIR=FOLDER"):
        _ = script.kwargs
    assert SEEDScriptArguments(env_kwargs='{"a": "x$SEED_DATA_DIR"}').kwargs == {"a": "x$SEED_DATA_DIR"}


def test_rows_go_with_every_method(tmp_path: Path) -> None:
    for method in METHODS:
        found = fields("rl", "--config", "paper/ezpoints-qwen2.5-vl-3b", "--method", method, "--skill_library", "l")
        assert {key: found[key] for key in METHODS[method].fields} == dict(METHODS[method].fields)


def test_recipes_name_only_known_fields() -> None:
    for stage, recipes in STAGES.items():
        known = {item.name for part in PARTS[stage] for item in dataclasses.fields(part)}
        for name, values in recipes.items():
            assert set(values) <= known, (stage, name, set(values) - known)
