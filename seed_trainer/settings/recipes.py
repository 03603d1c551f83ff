"""Recipes as data: the numbers of the paper and of the authors' published scripts, and every row of the paper's tables.

``--recipe paper/<benchmark>`` and ``--recipe released/<benchmark>`` set numbers for ``data``, ``sft`` and ``rl``. A
*row* adds a backbone: ``--config paper/alfworld-qwen2.5-3b`` is ``recipe: paper/alfworld-qwen2.5-3b`` and nothing more.
Where the paper is silent the released value holds in both; what the paper says and the defaults already are is not
repeated here. All tables are made of three factors, so that no number stands twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Fields = dict[str, Any]
Recipes = dict[str, Fields]


@dataclass(frozen=True)
class Backbone:
    """A model of the paper.

    Attributes:
        model: Its hub name.
        accelerate_config: How its training is spread over several GPUs.
        template: Variables of its chat template.
    """

    model: str
    accelerate_config: str = "zero2"
    template: tuple[tuple[str, Any], ...] = ()


BACKBONES: dict[str, Backbone] = {
    "qwen2.5-3b": Backbone("Qwen/Qwen2.5-3B-Instruct"),
    "qwen2.5-7b": Backbone("Qwen/Qwen2.5-7B-Instruct"),
    "qwen3-1.7b": Backbone("Qwen/Qwen3-1.7B", "multi_gpu", (("enable_thinking", False),)),
    "qwen2.5-vl-3b": Backbone("Qwen/Qwen2.5-VL-3B-Instruct"),
}
"""Every backbone of the paper."""

_TEXT = ("qwen2.5-3b", "qwen2.5-7b", "qwen3-1.7b")
_SEES = ("qwen2.5-vl-3b",)
_SEEDS = 2**16 - 1
"""Training levels and hands of the published scripts: seeds 0 to 2^16 - 2."""

_SHOP = '{"catalogue": "files"}'
_WIKIPEDIA = (
    '{"questions": ["$SEED_DATA_DIR/search_qa/train.parquet", "$SEED_DATA_DIR/search_qa/test.parquet"], '
    '"collection": "$SEED_DATA_DIR/search_qa/wiki-18.jsonl", "retriever": "http://127.0.0.1:8000"}'
)


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of the paper: what both recipes share.

    Attributes:
        backbones: Models that the paper trains on it.
        suites: Panels of the evaluation, as ``seed-bench`` names them.
        env: Environment: fields of ``data`` and ``rl``.
        rl: Fields of ``rl``.
        sft: Fields of ``sft``.
        data: Fields of ``data``.
        env_kwargs: Real data in place of generated tasks; a row has them, a recipe leaves them to its user.
        eval_rounds: Rounds between evaluations while a row trains; 0 where the panel takes longer than many rounds.
    """

    backbones: tuple[str, ...]
    suites: tuple[str, ...]
    env: Fields
    rl: Fields
    sft: Fields
    data: Fields
    env_kwargs: str = ""
    eval_rounds: int = 10


def _sizes(per_round: int, per_update: int, prompt: int, answer: int = 4096, context: int = 16384) -> Fields:
    return {
        "per_device_train_batch_size": 1,
        "episodes_per_round": per_round,
        "episodes_per_update": per_update,
        "num_generations": 8,
        "max_turn_length": 512,
        "max_prompt_length": prompt,
        "max_analysis_length": answer,
        "max_analysis_prompt_length": context,
    }


def _stage_1(rate: float, length: int) -> Fields:
    sizes = {"per_device_train_batch_size": 1, "examples_per_update": 8}
    return {**sizes, "num_train_epochs": 3, "learning_rate": rate, "max_length": length, "validation_share": 0.1}


def _rollouts(prompt: int, temperature: float, **more: Any) -> Fields:
    lengths = {"max_prompt_length": prompt, "max_turn_length": 512}
    return {"tasks": 180, "repeats": 8, "temperature": temperature, **lengths, **more}


BENCHMARKS: dict[str, Benchmark] = {
    "alfworld": Benchmark(
        _TEXT,
        ("alfworld/valid_seen", "alfworld/valid_unseen"),
        env={"env_id": "seed/ALFWorld-v0", "env_max_steps": 30},
        rl={**_sizes(128, 16, 2048), "train_split": "train", "eval_split": "valid_seen"},
        sft=_stage_1(5e-6, 8192),
        data=_rollouts(2048, 0.4, split="train"),
    ),
    "webshop": Benchmark(
        _TEXT,
        ("webshop/test_128",),
        env={"env_id": "seed/WebShop-v0", "env_max_steps": 15},
        rl={**_sizes(128, 8, 4096), "train_split": "verl-train", "eval_split": "verl-test", "eval_tasks": 128},
        sft=_stage_1(5e-6, 12288),
        data=_rollouts(4096, 0.4, split="verl-train"),
        env_kwargs=_SHOP,
    ),
    # The environment counts the turns here: a step limit of 4 would cut Search-R1's last answer.
    "search_qa": Benchmark(
        _TEXT,
        ("search_qa/all",),
        env={"env_id": "seed/SearchQA-v0"},
        rl={**_sizes(1024, 128, 4096), "train_split": "train", "eval_split": "eval"},
        sft=_stage_1(5e-6, 12288),
        data=_rollouts(4096, 0.4, split="train"),
        env_kwargs=_WIKIPEDIA,
        eval_rounds=0,
    ),
    "sokoban": Benchmark(
        _SEES,
        ("sokoban/paper",),
        env={"env_id": "seed/Sokoban-v0", "env_max_steps": 15},
        rl={**_sizes(256, 8, 1024, 2048, 24576), "train_tasks": _SEEDS, "eval_split": "test", "eval_tasks": 128},
        sft=_stage_1(2e-6, 4096),
        data=_rollouts(1024, 1.0),
    ),
    "ezpoints": Benchmark(
        _SEES,
        ("ezpoints/paper",),
        env={"env_id": "seed/EZPoints-v0", "env_max_steps": 8},
        rl={**_sizes(128, 32, 1024, 2048), "train_tasks": _SEEDS, "eval_split": "test", "eval_tasks": 128},
        sft=_stage_1(2e-6, 4096),
        data=_rollouts(1024, 1.0),
    ),
}
"""Every benchmark of the paper. The published mini-batches count step samples (256, 64, 512, 64, 128); here an update
takes a number of episodes that gives about as many. The released ALFWorld data of stage 1 has 30 tasks of each of the
six families; here 180 are drawn from all."""

_RELEASED: Fields = {
    "delta": 3.0,
    "entropy_coef": 0.001,
    "adv_unit": "step",
    "adv_std": "sample",
    "adv_invalid_penalty": 0.1,
    "adv_penalised": "format",
    "teacher_policy": "snapshot",
    "max_grad_norm": 1.0,
}

RL: dict[str, tuple[Fields, dict[str, Fields]]] = {
    "paper": ({"rounds": 150}, {"ezpoints": {"rounds": 100}}),
    "released": (
        _RELEASED,
        {
            "alfworld": {"rounds": 160, "eval_tasks": 128},
            "webshop": {"rounds": 160, "adv_std": "off"},
            "search_qa": {
                "rounds": 150,
                "beta": 0.001,
                "entropy_coef": 0.0,
                "adv_invalid_penalty": 0.01,
                "lr_scheduler_type": "constant_with_warmup",
                "warmup_steps": 0.1,
            },
            "sokoban": {"rounds": 150},
            "ezpoints": {"rounds": 100},
        },
    ),
}
"""What a recipe changes in stage 2: for every benchmark, and for one."""

_ANNOTATOR: dict[str, tuple[int, int]] = {"paper": (4096, 4096), "released": (1024, 8192)}
"""Longest answer of the annotator of stage 1: for text, and for pictures."""


def _recipes(stage: str) -> Recipes:
    found: Recipes = {"paper": {}}
    for recipe, (common, own) in RL.items():
        for name, benchmark in BENCHMARKS.items():
            answer = _ANNOTATOR[recipe][benchmark.backbones == _SEES]
            found[f"{recipe}/{name}"] = {
                "data": {**benchmark.env, **benchmark.data, "endpoint_max_tokens": answer},
                "sft": benchmark.sft,
                "rl": {**benchmark.env, **benchmark.rl, **common, **own.get(name, {})},
            }[stage]
    return found


@dataclass(frozen=True)
class Row:
    """One row of the paper: a recipe, a benchmark and a backbone.

    Attributes:
        recipe: ``paper`` or ``released``.
        benchmark: Key of :data:`BENCHMARKS`.
        backbone: Key of :data:`BACKBONES`.
    """

    recipe: str
    benchmark: str
    backbone: str

    @property
    def name(self) -> str:
        """What ``--config`` takes."""
        return f"{self.recipe}/{self.benchmark}-{self.backbone}"

    def folder(self, stage: str) -> str:
        """Where a stage writes and the next one reads."""
        return f"runs/{self.name}/{stage}"

    def fields(self, stage: str) -> Fields:
        """What this row adds to its recipe in a stage."""
        model, benchmark = BACKBONES[self.backbone], BENCHMARKS[self.benchmark]
        real = {"env_kwargs": benchmark.env_kwargs} if benchmark.env_kwargs else {}
        template = {"chat_template_kwargs": dict(model.template)} if model.template else {}
        added: dict[str, Fields] = {
            "data": {**real, **template, "policy": model.model, "annotator": "endpoint"},
            "sft": {
                "data": self.folder("data"),
                "model_name_or_path": model.model,
                "accelerate_config": model.accelerate_config,
            },
            "rl": {
                **real,
                **template,
                "model_name_or_path": self.folder("sft"),
                "base_model": model.model,
                "use_vllm": True,
                "vllm_mode": "colocate",
                "vllm_gpu_memory_utilization": 0.35,
                "vllm_enable_sleep_mode": True,
                "accelerate_config": model.accelerate_config,
                "eval_rounds": benchmark.eval_rounds,
                "save_rounds": 10,
            },
        }
        return {**added[stage], "output_dir": self.folder(stage)}

    @property
    def commands(self) -> dict[str, list[str]]:
        """The commands of this row in their order, by stage; stage 1 asks an annotator that its user names."""
        benchmark, backbone = BENCHMARKS[self.benchmark], BACKBONES[self.backbone]
        tasks = RECIPES[self.name].get("eval_tasks", 0)
        limit = f" --limit {tasks}" if tasks else ""
        thinking = " --thinking off" if backbone.template else ""
        prompt = benchmark.rl["max_prompt_length"]
        play = f"--profile paper --agent hf:{self.folder('rl')} --max-prompt-tokens {prompt}{thinking}{limit}"
        return {
            "data": [f"seed-train data --config {self.name} --endpoint_url URL --endpoint_model NAME"],
            "sft": [f"seed-train sft --config {self.name}"],
            "rl": [f"seed-train rl --config {self.name}"],
            "evaluation": [f"seed-bench run --suite {suite} {play}" for suite in benchmark.suites],
        }


ROWS: dict[str, Row] = {
    row.name: row
    for recipe in RL
    for name, benchmark in BENCHMARKS.items()
    for row in (Row(recipe, name, backbone) for backbone in benchmark.backbones)
}
"""Every row of the paper in both recipes, by the name that ``--config`` takes."""


def _with_rows(stage: str) -> Recipes:
    recipes = _recipes(stage)
    rows = {name: {**recipes[f"{row.recipe}/{row.benchmark}"], **row.fields(stage)} for name, row in ROWS.items()}
    return {**recipes, **rows}


DATA_RECIPES = _with_rows("data")
"""Every recipe of the data of stage 1."""
SFT_RECIPES = _with_rows("sft")
"""Every recipe of supervised training (stage 1)."""
RECIPES = _with_rows("rl")
"""Every recipe of stage 2."""
STAGES: dict[str, Recipes] = {"data": DATA_RECIPES, "sft": SFT_RECIPES, "rl": RECIPES}
"""The recipes of every command that has some."""
