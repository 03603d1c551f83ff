"""The command line: what it says, what it refuses, and its exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from ladder_env import suite_record

from seed_benchmarks.cli import main
from seed_benchmarks.records import read_heads
from seed_envs.errors import SeedEnvsError


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "ladder.json"
    path.write_text(json.dumps(suite_record()))
    return str(path)


@pytest.fixture
def bad_suite(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(suite_record("bad", env_kwargs={"hang_seconds": 0})))
    return str(path)


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_complete_run_prints_its_table_and_exits_with_0(capsys, suite, tmp_path):
    out = tmp_path / "run"
    code, printed, _ = run(capsys, "run", "--suite", suite, "--agent", "oracle", "--out", out, "--quiet")
    assert code == 0
    assert "24 of 24 episodes scored" in printed
    assert "| success, micro (per episode) | 100.0 % [85.8, 100.0] |" in printed
    assert f"report: seed-bench view {out}" in printed


def test_an_argument_called_as_the_step_limit_is_the_environments(capsys, tmp_path):
    arguments = ("--suite", "sokoban/mini_text", "--agent", "oracle", "--limit", 2, "--max-steps", 30)
    assert run(capsys, "run", *arguments, "--env-arg", "max_steps=14", "--out", tmp_path / "run", "--quiet")[0] == 0
    spec = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))["environment"]["spec"]
    assert spec["kwargs"]["max_steps"] == 14 and spec["max_episode_steps"] == 30


def test_the_command_runs_off_the_main_thread(capsys, suite, tmp_path):
    call = ("run", "--suite", suite, "--agent", "oracle", "--out", tmp_path / "run", "--quiet")
    with ThreadPoolExecutor(1) as threads:
        code, printed, _ = threads.submit(run, capsys, *call).result()
    assert code == 0 and (tmp_path / "run" / "summary.json").exists(), printed


def test_faults_give_exit_code_1_and_the_command_to_go_on(capsys, bad_suite, tmp_path):
    out = tmp_path / "run"
    arguments = ["run", "--suite", bad_suite, "--agent", "oracle", "--out", out, "--quiet", "--num-workers", 1]
    code, printed, _ = run(capsys, *arguments)
    assert code == 1
    assert "failed episodes enter no average (RuntimeError 1, WorkerDied 1)" in printed
    assert f"continue: seed-bench run --resume {out}" in printed
    assert "\nfirst failure: " in printed and f"(traceback: {out / 'episodes.jsonl'})" in printed
    code, printed, _ = run(capsys, "run", "--resume", out)
    assert code == 1
    assert len(list(read_heads(out / "episodes.jsonl"))) == 9


def test_resume_takes_only_options_that_change_no_score(capsys, suite, tmp_path):
    out = tmp_path / "run"
    run(capsys, "run", "--suite", suite, "--agent", "oracle", "--out", out, "--limit", 2)
    assert run(capsys, "run", "--resume", out)[0] == 0
    code, _, complaint = run(capsys, "run", "--resume", out, "--seed", 3, "--temperature", 1)
    assert code == 2
    assert "--seed, --temperature could change its scores" in complaint and "--num-workers" in complaint
    code, _, complaint = run(capsys, "run", "--resume", out, "--url", "http://127.0.0.1:1/v1")
    assert code == 2 and "agent 'oracle' has no address" in complaint
    assert run(capsys, "run", "--resume", out, "--retries", 9, "--num-workers", 1)[0] == 0
    code, _, complaint = run(capsys, "run", "--resume", out, "--agent", "random")
    assert code == 2 and "only give back what its folder hides" in complaint


def test_dry_run_plays_nothing(capsys, suite, tmp_path):
    out = tmp_path / "run"
    code, printed, _ = run(
        capsys, "run", "--suite", suite, "--agent", "oracle", "--limit", 0.5, "--dry-run", "--out", out
    )
    assert code == 0
    assert '"planned": 12' in printed and "... 7 more" in printed
    assert not out.exists()


@pytest.mark.parametrize("kind", ["json", "yaml", "toml"])
def test_a_file_gives_options_and_flags_override_it(capsys, suite, tmp_path, kind):
    values = {
        "suite": suite,
        "agent": "random",
        "limit": 0.5,
        "num-workers": 0,
        "thinking": True,
        "env-arg": {"pause": 0.0},
    }
    path = tmp_path / f"run.{kind}"
    if kind == "yaml":
        path.write_text(pytest.importorskip("yaml", reason="packages: YAML files need PyYAML").safe_dump(values))
    elif kind == "toml":
        path.write_text("\n".join(f"{key} = {_toml(value)}" for key, value in values.items()))
    else:
        path.write_text(json.dumps(values))
    out = tmp_path / "run"
    assert run(capsys, "run", "--config", path, "--seed", 5, "--agent", "oracle", "--out", out)[0] == 0
    saved = json.loads((out / "config.json").read_text())["run"]
    assert (saved["agent"]["spec"], saved["seed"], saved["limit"]) == ("oracle", 5, 0.5)
    assert (saved["agent"]["thinking"], saved["env_kwargs"]) == (True, {"pause": 0.0})


def _toml(value):
    return "{ pause = 0.0 }" if isinstance(value, dict) else json.dumps(value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"suit": "x"}', "unknown option 'suit'. Did you mean 'suite'"),
        ('{"repeats": "many"}', "'many' is not accepted"),
        ('{"executor": "slurm"}', "not one of"),
        ('{"dry-run": "yes"}', "expected true or false"),
        ("[1]", "expected options as keys"),
        ("{", "configuration file"),
    ],
)
def test_a_file_with_faults_is_refused(capsys, tmp_path, content, message):
    path = tmp_path / "run.json"
    path.write_text(content)
    code, _, complaint = run(capsys, "run", "--config", path, "--suite", "a", "--agent", "oracle")
    assert code == 2
    assert message in complaint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "--suite is missing"),
        (["run", "--suite", "alfworld/mini"], "--agent is missing"),
        (["run", "--suite", "alfword/mini", "--agent", "oracle"], "Did you mean 'alfworld/mini'"),
        (["run", "--suite", "none.json", "--agent", "oracle"], "does not exist"),
        (["run", "--suite", "alfworld/mini", "--agent", "oracel"], "Did you mean 'oracle'"),
        (["run", "--suite", "alfworld/mini", "--agent", "oracle", "--profile", "papr"], "Did you mean 'paper'"),
        (["run", "--suite", "alfworld/mini", "--agent", "oracle", "--timeout", "3"], "--num-workers"),
        (["run", "--suite", "alfworld/mini", "--agent", "oracle", "--env-arg", "x"], "KEY=VALUE"),
        (
            ["run", "--suite", "sokoban/mini", "--agent", "oracle", "--env-arg", "tyle=9"],
            "no argument 'tyle'; it takes",
        ),
        (["run", "--resume", "nowhere"], "holds no run"),
        (["view", "nowhere"], "holds no run"),
        (["ls", "nowhere"], "not a folder"),
        (["compare", "nowhere", "nowhere"], "holds no run"),
        (["validate", "alfwrld"], "unknown"),
        (["merge", "out", "nowhere"], "holds no run"),
    ],
)
def test_requests_that_cannot_be_carried_out_are_explained(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, complaint = run(capsys, *arguments)
    assert code == 2
    assert complaint.startswith("seed-bench: ") and message in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--out", "file/run"], "file/run"),
        (["run", "--out", "file"], "'file'"),
        (["run", "--resume", "file"], "file/config.json"),
        (["view", "file"], "file/config.json"),
        (["view", "done", "--out", "nowhere/report.html"], "nowhere"),
        (["compare", "done", "file"], "file/config.json"),
        (["merge", "file", "done"], "'file'"),
        (["merge", "file/part", "done"], "file/part"),
    ],
)
def test_places_that_cannot_be_read_or_written_are_one_line(capsys, suite, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    play = ["--suite", suite, "--agent", "oracle", "--quiet"]
    run(capsys, "run", *play, "--out", "done")
    new_run = arguments[0] == "run" and "--out" in arguments
    code, _, complaint = run(capsys, *arguments, *(play if new_run else []))
    assert code == 2
    assert message in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--repeats", "0", "repeats=0"),
        ("--max-steps", "0", "max_steps=0"),
        ("--num-workers", "-1", "num_workers=-1"),
        ("--batch-size", "0", "batch_size=0"),
        ("--timeout", "-3", "timeout=-3"),
        ("--temperature", "-1", "temperature=-1"),
        ("--top-p", "0", "top_p=0"),
        ("--top-p", "nan", "top_p=nan"),
        ("--max-new-tokens", "0", "max_new_tokens=0"),
        ("--max-prompt-tokens", "0", "max_prompt_tokens=0"),
        ("--retries", "-1", "retries=-1"),
        ("--request-timeout", "0", "request_timeout=0"),
        ("--requests-per-minute", "0", "requests_per_minute=0"),
        ("--temperature", "inf", "temperature=inf"),
        ("--timeout", "inf", "timeout=inf"),
        ("--price-prompt", "nan", "price_prompt=nan"),
        ("--price-completion", "-1", "price_completion=-1"),
        ("--ray-gpus", "-1", "ray_gpus=-1"),
        ("--env-arg", "no_such_argument=1", "no_such_argument"),
    ],
)
def test_numbers_out_of_range_and_unknown_arguments_are_named(capsys, suite, tmp_path, flag, value, message):
    out = tmp_path / "run"
    workers = ["--num-workers", 1] if flag == "--timeout" else []
    code, _, complaint = run(capsys, "run", "--suite", suite, "--agent", "oracle", "--out", out, *workers, flag, value)
    assert code == 2
    assert message in complaint
    assert complaint.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    "flag", [["--limit", "0"], ["--limit", "2.5"], ["--shard", "1"], ["--thinking", "maybe"], ["--nope"]]
)
def test_flags_that_cannot_be_read_are_refused_by_the_parser(flag):
    with pytest.raises(SystemExit) as left:
        main(["run", "--suite", "alfworld/mini", "--agent", "oracle", *flag])
    assert left.value.code == 2


def test_a_misspelt_command_or_flag_is_one_line_with_the_right_name(capsys):
    for arguments, said in ((["rnu"], "Did you mean 'run'?"), (["run", "--suit", "x"], "Did you mean '--suite'")):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        complaint = capsys.readouterr().err
        assert left.value.code == 2
        assert complaint.startswith("seed-bench") and said in complaint and complaint.count("\n") == 1


def test_help_is_grouped_and_ends_with_examples(capsys):
    with pytest.raises(SystemExit) as left:
        main(["run", "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    groups = ["what is played:", "who plays:", "endpoint (openai:):", "how it runs:", "folders and files:", "examples:"]
    places = [text.index(group) for group in groups]
    assert places == sorted(places)


@pytest.mark.parametrize("size", ["nan", "inf", "-5", "big"])
def test_a_report_needs_a_size_that_exists(capsys, size):
    with pytest.raises(SystemExit) as left:
        main(["view", "run", f"--max-mb={size}"])
    assert left.value.code == 2
    assert size in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["run"], ["ls"], ["view"], ["compare"], ["validate"], ["merge"]])
def test_every_help_ends_with_examples(capsys, command):
    with pytest.raises(SystemExit) as left:
        main([*command, "--help"])
    assert left.value.code == 0
    examples = capsys.readouterr().out.rpartition("examples:\n")[2]
    assert examples.startswith(f"  seed-bench {' '.join(command)}")


def test_ls_lists_suites_agents_and_runs(capsys, suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, printed, _ = run(capsys, "ls")
    assert code == 0
    for name in ("alfworld/valid_seen", "search_qa/all", "51,713", "webshop/test_128", "ezpoints/mini", "hf:PATH"):
        assert name in printed
    run(capsys, "run", "--suite", suite, "--agent", "oracle", "--limit", 3, "--quiet")
    code, printed, _ = run(capsys, "ls", "runs")
    assert "3 / 3" in printed and "complete" in printed and "ladder_good--oracle--" in printed


def test_view_prints_and_writes(capsys, suite, tmp_path):
    out = tmp_path / "run"
    run(capsys, "run", "--suite", suite, "--agent", "oracle", "--out", out, "--quiet")
    code, printed, _ = run(capsys, "view", out)
    assert code == 0
    assert "24 of 24" in printed and (out / "report.html").is_file()
    run(capsys, "view", out, "--no-html", "--out", tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()


def test_shards_merge_to_the_same_run(capsys, suite, tmp_path):
    def play(out, *more):
        agent = ["--agent", "random", "--repeats", 2, "--seed", 4, "--quiet"]
        return run(capsys, "run", "--suite", suite, *agent, "--out", out, *more)[0]

    assert play(tmp_path / "whole") == 0
    for index in (1, 2, 3):
        assert play(tmp_path / f"part{index}", "--shard", f"{index}/3") == 0
    parts = [tmp_path / f"part{index}" for index in (3, 1, 2)]
    code, printed, _ = run(capsys, "merge", tmp_path / "joined", *parts)
    assert code == 0 and "48 of 48" in printed

    def facts(folder):
        keep = ("index", "task_id", "repeat", "seed", "success", "score", "reward", "steps", "stop_reason")
        return [tuple(getattr(record, name) for name in keep) for record in read_heads(folder / "episodes.jsonl")]

    assert facts(tmp_path / "joined") == facts(tmp_path / "whole")
    numbers = [json.loads((tmp_path / name / "summary.json").read_text()) for name in ("whole", "joined")]
    for key in ("counts", "success", "macro", "score", "families", "stop_reasons", "manifest", "prompt"):
        assert numbers[0][key] == numbers[1][key]
    code, printed, _ = run(capsys, "merge", tmp_path / "two", *parts[:2])
    assert code == 1 and "16 missing" in printed
    assert run(capsys, "merge", tmp_path / "again", *parts, tmp_path / "part1")[0] == 0


def test_parts_of_different_plans_do_not_merge(capsys, suite, tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        out = tmp_path / name
        run(capsys, "run", "--suite", suite, "--agent", "random", "--seed", seed, "--out", out, "--quiet")
    code, _, complaint = run(capsys, "merge", tmp_path / "joined", tmp_path / "a", tmp_path / "b")
    assert code == 2 and "differ in 'seed': 1 against 2" in complaint
    saved = json.loads((tmp_path / "b" / "config.json").read_text())
    saved["run"]["seed"] = 1
    (tmp_path / "b" / "config.json").write_text(json.dumps(saved))
    code, _, complaint = run(capsys, "merge", tmp_path / "joined", tmp_path / "a", tmp_path / "b")
    assert code == 2 and "line 1: not an episode of this run (task_id: " in complaint
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    lines = (tmp_path / "c" / "episodes.jsonl").read_text().splitlines(keepends=True)
    lines[0] = json.dumps({**json.loads(lines[0]), "steps": 99}) + "\n"
    (tmp_path / "c" / "episodes.jsonl").write_text("".join(lines))
    code, _, complaint = run(capsys, "merge", tmp_path / "joined", tmp_path / "a", tmp_path / "c")
    assert code == 2 and "has two outcomes" in complaint


def test_compare_says_difference_interval_and_p(capsys, suite, tmp_path):
    for name, agent in (("a", "rule"), ("b", "oracle"), ("c", "rule")):
        run(capsys, "run", "--suite", suite, "--agent", agent, "--out", tmp_path / name, "--quiet")
    code, printed, _ = run(capsys, "compare", tmp_path / "a", tmp_path / "b")
    assert code == 0
    assert "24 common tasks" in printed and "McNemar, exact" in printed and "< 0.0001" in printed
    code, printed, _ = run(capsys, "compare", tmp_path / "a", tmp_path / "c", "--json")
    result = json.loads(printed)
    assert result["measures"]["success"]["difference"] == 0.0
    assert result["measures"]["success"]["p_value"] == 1.0


def test_compare_refuses_other_tasks_and_counts_what_is_left_out(capsys, suite, bad_suite, tmp_path):
    run(capsys, "run", "--suite", suite, "--agent", "oracle", "--out", tmp_path / "a", "--quiet")
    stumble = "python:ladder_env:stumble"
    run(capsys, "run", "--suite", suite, "--agent", stumble, "--repeats", 2, "--out", tmp_path / "b", "--quiet")
    run(capsys, "run", "--suite", bad_suite, "--agent", "oracle", "--limit", 1, "--out", tmp_path / "c", "--quiet")
    code, _, complaint = run(capsys, "compare", tmp_path / "a", tmp_path / "c")
    assert code == 2 and "not on the same tasks" in complaint
    code, printed, _ = run(capsys, "compare", tmp_path / "a", tmp_path / "b")
    left = 24 - len({record.task_id for record in read_heads(tmp_path / "b" / "episodes.jsonl") if record.scored})
    assert f"no scored episode: {left}." in printed and code == (1 if left else 0)
    assert "sign-flip permutation" in printed
    assert "note: repeats differs (1 against 2)" in printed


def test_validate_reports_every_suite(capsys, suite, bad_suite, tmp_path):
    code, printed, _ = run(capsys, "validate", suite, "--all")
    assert code == 0 and "24 / 24" in printed
    code, printed, _ = run(capsys, "validate", suite, "--sample", 5)
    assert "5 / 5" in printed
    code, printed, _ = run(capsys, "validate", bad_suite, "--all", "--num-workers", 1)
    assert code == 1
    assert "NOT SOLVED" in printed and "crash/0: env_error" in printed
    missing = tmp_path / "missing.json"
    missing.write_text(json.dumps(suite_record(data={"pause": "nowhere_at_all/file.txt"})))
    code, printed, _ = run(capsys, "validate", str(missing))
    assert code == 1 and "skipped" in printed and "--env-arg pause=PATH" in printed


def test_an_interrupt_leaves_a_summary_and_a_run_to_go_on_with(suite, tmp_path, repo):
    out = tmp_path / "run"
    path = os.pathsep.join([str(repo), str(repo / "tests" / "helpers"), *sys.path])
    command = [
        sys.executable,
        "-m",
        "seed_benchmarks",
        "run",
        "--suite",
        suite,
        "--agent",
        "oracle",
        "--repeats",
        "200",
    ]
    command += ["--env-arg", "pause=0.005", "--out", str(out)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not (out / "episodes.jsonl").exists() or (out / "episodes.jsonl").stat().st_size == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert f"interrupted: {out}" in printed
    summary = json.loads((out / "summary.json").read_text())
    assert summary["attempts"][0]["outcome"] == "interrupted"
    assert summary["counts"]["scored"] == len(list(read_heads(out / "episodes.jsonl"))) > 0


@pytest.mark.parametrize("workers", ["0", "1"])
def test_modules_of_the_current_folder_are_found(tmp_path, repo, workers):
    """As the installed command is started: without the current folder on the path."""
    (tmp_path / "mine.py").write_text(
        'def agent(request):\n    return f"<think></think><action>{request.context.admissible[0]}</action>"\n'
    )
    (tmp_path / "json.py").write_text("raise RuntimeError('hides a module of Python')\n")
    start = "import sys; sys.path.remove(''); from seed_benchmarks.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "run", "--suite", "alfworld/mini", "--agent", "python:mine:agent"]
    command += ["--limit", "2", "--max-steps", "2", "--num-workers", workers, "--out", "run", "--quiet"]
    path = os.pathsep.join([str(repo), *(entry for entry in sys.path if entry)])
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 episodes scored" in done.stdout


def test_every_user_error_is_one_of_the_projects_own():
    import seed_benchmarks.errors as errors

    for name in dir(errors):
        found = getattr(errors, name)
        if isinstance(found, type) and found.__module__ == errors.__name__:
            assert issubclass(found, SeedEnvsError)
            assert issubclass(found, (ValueError, RuntimeError))
