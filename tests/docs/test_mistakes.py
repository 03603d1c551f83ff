"""Typical mistakes of every command: one line that says what was wrong or what helps, exit code 2, no traceback.

In-process, where the commands meet each other's imports; those at the end run as a user runs them, and none of them may
have waited for PyTorch.
"""

from __future__ import annotations

import importlib
import shlex
import subprocess
import sys

import pytest

from seed_benchmarks.cli import main as bench
from seed_envs.play import main as play

RUN = "seed-bench run --suite alfworld/mini --agent oracle"
RL = "seed-train rl --config smoke_cpu --model_name_or_path builtin/alfworld-tiny --output_dir {folder}/run"
DATA = "seed-train data --output_dir {folder}/data --tasks 4"

MISTAKES = """
seed-bench => required: COMMAND
seed-bench rum => Did you mean 'run'
seed-bench run => --suite is missing
seed-bench run --suite alfworld/mini => --agent is missing
seed-bench run --suite alfword/mini --agent oracle => Did you mean 'alfworld/mini'
seed-bench run --suite nope.json --agent oracle => suite file nope.json does not exist
seed-bench run --suite alfworld/mini --agent oracel => Did you mean 'oracle'
seed-bench run --suite alfworld/mini --agent hf: => incomplete; expected hf:PATH
seed-bench run --suite alfworld/mini --agent hf:./no/such => there is no folder ./no/such
seed-bench run --suite alfworld/mini --agent openai:m@localhost:8000 => expected openai:MODEL@URL
seed-bench run --suite alfworld/mini --agent python:nowhere => expected python:MODULE:FUNCTION
seed-bench run --suite alfworld/mini --agent python:json:nothing => cannot be imported
{RUN} --temperature hot => invalid float value: 'hot'
{RUN} --temperature -1 => expected 0 (greedy) or more
{RUN} --limit 0 => expected a whole number above 0 or a share below 1
{RUN} --repeats 0 => expected at least 1
{RUN} --profile papr => Did you mean 'paper'
{RUN} --env-arg wording => expected KEY=VALUE
{RUN} --env-arg wordng=move => Did you mean 'wording'
{RUN} --timeout 5 => add --num-workers 1 or more
{RUN} --shard 3/2 => expected i/n with 1 <= i <= n
{RUN} --shard half => expected I/N, e.g. 2/8
{RUN} --executor ray => add --num-workers N
{RUN} --num-wokers 2 => Did you mean '--num-workers'
{RUN} --out /proc/none => choose another folder
{RUN} --max-steps 0 => expected at least 1
{RUN} --skill-prompt nowhere.txt => skill file nowhere.txt cannot be read
seed-bench run --suite sokoban/mini_text --agent oracle --env-arg boxes=two => boxes='two': expected a whole number
seed-bench run --suite sokoban/mini_text --agent oracle --env-arg boxes=99 => generated rooms have 1 to 4 boxes
seed-bench run --suite sokoban/mini_text --agent oracle --env-arg levels=no.txt => neither an existing file
seed-bench run --suite alfworld/valid_seen --agent oracle => python -m seed_envs.alfworld download
seed-bench run --suite webshop/test --agent oracle => setup script of princeton-nlp/WebShop
seed-bench run --suite search_qa/nq --agent oracle => $SEED_DATA_DIR
seed-bench run --suite search_qa/mini --agent oracle --env-arg retriever=bm26 => retriever='bm26' is unknown
seed-bench run --suite search_qa/mini --agent oracle --env-arg topk=0 => expected a whole number from 1 to 100
seed-bench run --suite search_qa/mini --agent oracle --env-arg collection=no.jsonl => expected one of ['tiny'
seed-bench run --config nowhere.json => configuration file nowhere.json
seed-bench run --resume nowhere => nowhere holds no run
seed-bench view nowhere => nowhere holds no run
seed-bench ls nowhere => nowhere is not a folder
seed-bench compare nowhere elsewhere => nowhere holds no run
seed-bench merge out nowhere => nowhere holds no run
seed-bench validate alfwrld => Did you mean 'alfworld/mini'
seed-bench view . --max-mb lots => 'lots' is no number
seed-play => name an environment, such as seed/ALFWorld-v0
seed-play seed/AlfWorld-v0 => expected one of seed/ALFWorld-v0
seed-play seed/Sokoban-v0 --player orcale => Did you mean 'oracle'
seed-play seed/Sokoban-v0 --seed one => invalid int value: 'one'
seed-play seed/Sokoban-v0 --task-id none/1 => levels are called like
seed-play seed/Sokoban-v0 --split tst => Did you mean 'test'
seed-play seed/Sokoban-v0 --env-arg box=2 => Did you mean 'boxes'
seed-play seed/Sokoban-v0 --env-arg boxes => expected KEY=VALUE
seed-play seed/Sokoban-v0 --payer oracle => Did you mean '--player'
seed-play seed/ALFWorld-v0 --task-id mini/train/1 => expected 'split/task/trial' (official), 'procedural/train/0'
seed-play seed/ALFWorld-v0 --split train => python -m seed_envs.alfworld download
seed-play seed/WebShop-v0 --env-arg catalogue=files => setup script of princeton-nlp/WebShop
seed-play seed/WebShop-v0 --env-arg search_engine=lucine => Did you mean 'lucene'
seed-play seed/WebShop-v0 --task-id goal/99999999 => is not in the manifest
seed-play seed/SearchQA-v0 --env-arg retriever=http://127.0.0.1:9 => 127.0.0.1:9
seed-play seed/SearchQA-v0 --env-arg questions=nowhere.parquet => 'nowhere.parquet', found none
seed-play seed/EZPoints-v0 --env-arg rules=clasic => Did you mean 'classic'
seed-play seed/EZPoints-v0 --task-id 1-2-3 => ids look like 'deal/0'
seed-play seed/Points24-v0 --env-arg target=twentyfour => expected a whole number, got str
search_qa serv => Did you mean 'serve'
search_qa serve --host 0.0.0.0 => needs a token
search_qa serve --retriever bm26 => retriever='bm26' is unknown
search_qa serve --port many => invalid int value: 'many'
search_qa index --option k1 => expected NAME=VALUE
search_qa coverage --questions nowhere.jsonl => 'nowhere.jsonl', found none
search_qa index --retriever http:/127.0.0.1 => expected http://HOST:PORT
alfworld import /nowhere => which is not a folder
alfworld lst => Did you mean 'list'
webshop serve --prot 1 => Did you mean '--port'
webshop generate => required: folder
vision.sokoban show --level nowhere => Did you mean '--levels'
vision.ezpoints cards => is not one of gif, sheet, panels
seed-train rum => unknown command 'rum', expected one of
seed-train rl => set output_dir: --output_dir runs/NAME
seed-train rl --config smoke_cp => Did you mean 'smoke_cpu'
seed-train rl --config smoke_cpu --output_dir {folder}/run => set model_name_or_path
seed-train rl --config smoke_cpu --output_dir x --model_name_or_path builtin/x => is not shipped, expected one of
{RL} --rounds 0 => rounds=0 trains nothing
{RL} --metod grpo => Did you mean 'method'
{RL} --method grop => --method 'grop' is unknown
{RL} --recipe papers => Did you mean 'paper'
{RL} --learning_rat 1 => Did you mean 'learning_rate'
{RL} --env_kwargs {boxes} => is not JSON
{RL} --env_kwargs '{"wordng": "put"}' => Did you mean 'wording'
{RL} --env_id seed/ALFWrld-v0 => expected one of seed/ALFWorld-v0
{RL} --env_profile papr => Did you mean 'paper'
{RL} --skill_source owm => Did you mean 'own'
{RL} --opd_coef -1 => opd_coef=-1.0 must be at least 0
{RL} --opd_coef big => invalid float value: 'big'
{RL} --skill_source library => need skill_library=FILE.json
{RL} --start_from basis => expected sft or base
seed-train sft => set output_dir
seed-train sft --output_dir {folder}/run => set data: --data FOLDER
seed-train sft --output_dir {folder}/run --dat x => Did you mean 'data'
seed-train data => set output_dir
seed-train data --output_dir {folder}/data --tasks 9999 => tasks were asked for
{DATA} --policy oracl => Did you mean 'oracle'
{DATA} --annotator rule => expected one of
{DATA} --annotator endpoint => needs endpoint_url and endpoint_model
{DATA} --analyzer jsn => jsn
{DATA} --repeats 0 => repeats=0 must be at least 1
seed-train report => required: runs
seed-train report nowhere => has no metrics.jsonl
seed-train align => set output_dir
seed-train doctor now => unknown argument 'now'
seed-train make-tiny => required: --output_dir
seed-train quickstart --seeds none => invalid int value: 'none'
"""
ROWS = [line.split(" => ") for line in MISTAKES.strip().splitlines()]
QUICK = [
    *("seed-train rl --config nope", "seed-train rl", "seed-train rl --lerning_rate 1 --output_dir x"),
    *(
        "seed-train sft",
        "seed-bench run --suite alfworld/mini --agent hf:./no/such",
        "seed-play seed/Sokoban-v0 --sed 1",
    ),
]

MAINS = {"seed-bench": bench, "seed-play": play}


def _main(name):
    if name == "seed-train":
        pytest.importorskip("transformers", reason="packages: seed-train needs transformers")
        return importlib.import_module("seed_trainer.cli").main
    return MAINS.get(name) or importlib.import_module(f"seed_envs.{name}.__main__").main


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    for name in ("SEED_DATA_DIR", "ALFWORLD_DATA", "WEBSHOP_DATA", "OPENAI_BASE_URL", "SEED_SEARCHQA_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_there_are_enough():
    assert len(ROWS) >= 80 and len({command for command, _ in ROWS}) == len(ROWS)
    assert all(len(row) == 2 for row in ROWS)


@pytest.mark.parametrize(("command", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_a_mistake(command, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for short, long in {"{RUN}": RUN, "{RL}": RL, "{DATA}": DATA, "{folder}": str(tmp_path)}.items():
        command = command.replace(short, long)
    name, *words = shlex.split(command)
    try:
        code = _main(name)(words)
    except SystemExit as leaving:
        code = leaving.code
    captured = capsys.readouterr()
    (line,) = captured.err.strip().splitlines()
    assert code == 2 and expected in line, line
    assert "Traceback" not in line and captured.out == ""
    assert not [path for path in tmp_path.iterdir() if path.name not in ("home", "cache")], "nothing was begun"


@pytest.mark.parametrize("command", QUICK)
def test_an_answer_does_not_wait_for_torch(command, tmp_path):
    pytest.importorskip("transformers", reason="packages: seed-train needs transformers")
    modules = {"seed-train": "seed_trainer.cli", "seed-bench": "seed_benchmarks.cli", "seed-play": "seed_envs.play"}
    name, *words = shlex.split(command)
    code = (
        f"import sys; from {modules[name]} import main\n"
        f"try: code = main({words!r})\nexcept SystemExit as leaving: code = leaving.code\n"
        "assert 'torch' not in sys.modules, 'PyTorch was imported'\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["seed/Sokoban-v0", {"box": 2}], "Did you mean 'boxes'"),
        (["seed/Sokoban-v0", {"boxes": "two"}], "expected a whole number"),
        (["seed/ALFWorld-v0", {"split": "tran"}], "Did you mean"),
        (["seed/WebShop-v0", {"num_products": "100"}], "expected a whole number or none"),
        (["seed/SearchQA-v0", {"retriever_options": "k1=2"}], "expected a mapping or none"),
    ],
    ids=str,
)
def test_gym_make(arguments, expected):
    import gymnasium as gym

    from seed_envs.errors import SeedEnvsError

    env_id, kwargs = arguments
    with pytest.raises(SeedEnvsError) as caught:
        gym.make(env_id, **kwargs)
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_the_quick_look_knows_every_field_of_the_libraries():
    pytest.importorskip("trl", reason="packages: seed-train needs trl")
    import dataclasses

    from trl import GRPOConfig, ModelConfig, SFTConfig

    from seed_trainer.settings.quick import GRPO_SOURCES, MODEL_SOURCE, SFT_SOURCES, library_fields

    for config, sources in ((GRPOConfig, GRPO_SOURCES), (SFTConfig, SFT_SOURCES)):
        fields = {item.name for part in (config, ModelConfig) for item in dataclasses.fields(part) if item.init}
        assert fields - library_fields((*sources, MODEL_SOURCE)) == set()
