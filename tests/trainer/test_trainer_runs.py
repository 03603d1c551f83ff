"""Whole training runs on the word world: learning, resuming, evaluating, and every method and control."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from word_world import GROWING, WINDOW, WORDS, WordEnv, small_model

from seed_envs.rollout import Request
from seed_envs.tasks import TaskSpec
from seed_trainer.acting.rollout import TokenPolicy
from seed_trainer.learning.scores import distilled_mask
from seed_trainer.settings.presets import METHODS
from seed_trainer.skills.library import SkillLibrary
from seed_trainer.trainer import SEEDTrainer

TrainerFactory = Callable[..., SEEDTrainer]


def metrics(trainer: SEEDTrainer) -> list[dict[str, Any]]:
    path = Path(str(trainer.args.output_dir)) / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def parameters(trainer: SEEDTrainer) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


@pytest.fixture
def library(tmp_path: Path) -> str:
    SkillLibrary("", {"say": "gold"}).save(tmp_path / "library.json")
    return str(tmp_path / "library.json")


@pytest.mark.parametrize(
    "options",
    [{"opd_coef": 0.0}, {"opd_coef": 0.1}, {"opd_coef": 0.1, "rollout_layout": "turn"}],
    ids=["grpo", "seed", "seed turn layout"],
)
def test_training_solves_the_word_world(make_trainer: TrainerFactory, options: dict[str, Any]) -> None:
    # Groups of 8, because smaller ones tie so often that success may stay at 75 % for long.
    options |= {"num_generations": 8, "per_device_train_batch_size": 16}
    trainer = make_trainer(rounds=40, learning_rate=2e-3, tasks=64, panel=True, eval_repeats=8, **options)
    before = trainer.evaluate()["eval_success"]
    trainer.train()
    after = trainer.evaluate()["eval_success"]
    assert before < 0.75 and after >= 0.85, (before, after)


@pytest.mark.parametrize(
    ("profile", "analyzer", "longest_answer", "decoded"),
    [(GROWING, "turn", 4096, 3), (WINDOW, "json", 4096, 32), (WINDOW, "json", 20, 20)],
    ids=["plain", "json", "json, longest answer"],
)
def test_max_skill_length_bounds_what_is_decoded(
    make_trainer: TrainerFactory, profile: Any, analyzer: str, longest_answer: int, decoded: int
) -> None:
    lengths = {"max_skill_length": 2, "max_analysis_length": longest_answer, "skill_temperature": 0.0}
    endless = small_model()  # untaught: it says one word for ever
    trainer = make_trainer(profile, model=endless, beta=0.0, skill_analyzer=analyzer, **lengths)
    episodes = trainer.actor.play([TaskSpec(word) for word in WORDS], trainer.actor.decoding(1.0))
    passes: list[object] = []
    endless.register_forward_hook(lambda *call: passes.append(call))
    skills = trainer.analyst.write(episodes)
    assert [len(skill.answer_ids) for skill in skills] == [decoded] * len(WORDS)
    assert len(passes) == decoded
    assert {skill.reason for skill in skills} <= {"truncated", "loop"}


@pytest.mark.parametrize("profile", [GROWING, WINDOW], ids=["episode", "turn"])
def test_resumed_run_equals_the_uninterrupted_one(make_trainer: TrainerFactory, profile: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"rounds": 4, "save_strategy": "steps", "save_rounds": 2, "tasks": 16, "opd_coef": 0.3}
    options["skill_source"] = "own" if profile is GROWING else "generic"
    whole = make_trainer(profile, output_dir=str(tmp_path / "whole"), **options)
    whole.train()
    first = make_trainer(profile, output_dir=str(tmp_path / "parts"), **{**options, "max_steps": 4})
    first.train()
    second = make_trainer(profile, output_dir=str(tmp_path / "parts"), **options)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-4"))
    torch.testing.assert_close(parameters(second), parameters(whole), atol=0, rtol=0)
    volatile = ("time/", "step_time", "train_", "total_flos")
    kept = [
        [{k: v for k, v in line.items() if not k.startswith(volatile)} for line in metrics(run) if "loss" in line]
        for run in (second, whole)
    ]
    assert kept[0] == kept[1] and [line["step"] for line in kept[0]] == [2, 4, 6, 8]


def test_stale_analyzer_survives_a_resume(make_trainer: TrainerFactory, tmp_path: Path) -> None:
    options: dict[str, Any] = {"rounds": 4, "save_strategy": "steps", "save_rounds": 2, "tasks": 16, "opd_coef": 0.3}
    options |= {"skill_source": "stale(2)", "learning_rate": 1e-2}
    whole = make_trainer(output_dir=str(tmp_path / "whole"), **options)
    whole.train()
    make_trainer(output_dir=str(tmp_path / "parts"), **{**options, "max_steps": 4}).train()
    second = make_trainer(output_dir=str(tmp_path / "parts"), **options)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-4"))
    assert sorted(second.analyst.weights.rounds) == [1, 2, 3], "as many rounds back as the age asks for"
    torch.testing.assert_close(parameters(second), parameters(whole), atol=0, rtol=0)


@pytest.mark.parametrize("profile", [GROWING, WINDOW], ids=["episode", "turn"])
def test_evaluation_prompts_contain_no_skill(make_trainer: TrainerFactory, profile: Any) -> None:
    trainer = make_trainer(profile, panel=True, skill_source="generic", opd_coef=0.5)
    seen: list[list[int]] = []
    original = TokenPolicy.__call__

    def spy(self: TokenPolicy, requests: list[Request]) -> Any:
        replies = original(self, requests)
        seen.extend(reply.meta["tokens"].prompt_ids for reply in replies if "tokens" in reply.meta)
        return replies

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TokenPolicy, "__call__", spy)
        trainer.train()
        trained, seen[:] = list(seen), []
        trainer.evaluate()
    hint = trainer._tokenizer.convert_tokens_to_ids("hint")
    assert trained and seen
    assert not any(hint in ids for ids in trained), "actors never read the teacher's skill either"
    assert not any(hint in ids for ids in seen)


@pytest.mark.parametrize(("actor_skill", "training", "panel"), [("train", True, False), ("always", True, True)])
def test_actor_skill_is_shown_where_it_should_be(
    make_trainer: TrainerFactory, library: str, actor_skill: str, training: bool, panel: bool
) -> None:
    trainer = make_trainer(panel=True, actor_skill=actor_skill, skill_library=library, opd_coef=0.0)
    hint = trainer._tokenizer.convert_tokens_to_ids("hint")
    shown: list[bool] = []
    original = TokenPolicy.__call__

    def spy(self: TokenPolicy, requests: list[Request]) -> Any:
        replies = original(self, requests)
        shown.extend(hint in reply.meta["tokens"].prompt_ids for reply in replies)
        return replies

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TokenPolicy, "__call__", spy)
        trainer.model.train()
        trainer._generate_and_score_completions([{"task_id": word} for word in WORDS for _ in range(4)])
        assert set(shown) == {training}
        shown.clear()
        trainer.evaluate()
        assert set(shown) == {panel}


def test_evaluation_does_not_disturb_training(make_trainer: TrainerFactory, tmp_path: Path) -> None:
    """Adding evaluations changes no weight: they use their own randomness."""
    plain = make_trainer(output_dir=str(tmp_path / "plain"), panel=True, opd_coef=0.3)
    plain.train()
    watched = make_trainer(output_dir=str(tmp_path / "watched"), panel=True, opd_coef=0.3, eval_rounds=1)
    watched.train()
    torch.testing.assert_close(parameters(plain), parameters(watched), atol=0, rtol=0)
    assert [line["step"] for line in metrics(watched) if "eval_success" in line] == [2, 4]


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.trains])
def test_every_method_trains(make_trainer: TrainerFactory, library: str, name: str) -> None:
    fields = {key: value for key, value in METHODS[name].fields.items() if key != "start_from"}
    turn = name in ("gigpo", "opid")
    if fields.get("actor_skill", "none") != "none":
        fields["temperature"] = 3.0  # this model follows every hint, so without noise each group would be tied
    options = {"rollout_layout": "turn" if turn else "episode", "skill_library": library, **fields}
    trainer = make_trainer(**options)
    before = parameters(trainer)
    trainer.train()
    assert not torch.equal(parameters(trainer), before)
    assert all(torch.isfinite(torch.tensor(line["loss"])) for line in metrics(trainer) if "loss" in line)


@pytest.mark.parametrize(
    "source",
    [
        "own",
        "library",
        "shuffled_group",
        "shuffled_batch",
        "random_text",
        "generic",
        "stale(1)",
        "stale(inf)",
        "stale_text(1)",
        "shuffled_family",
        "sibling_won",
        "sibling_lost",
        "own_goal_names",
        "own_unnamed",
        "wrong_outcome",
        "none",
    ],
)
def test_every_skill_source_trains(make_trainer: TrainerFactory, library: str, source: str) -> None:
    trainer = make_trainer(skill_source=source, skill_library=library, opd_coef=0.3, rounds=3, tasks=16)
    trainer.train()
    last = [line for line in metrics(trainer) if "skill/valid" in line][-1]
    assert last["skill/valid"] > 0


@pytest.mark.parametrize(
    "options",
    [
        {"opd_gate": "centered"},
        {"opd_gate": "constant"},
        {"opd_gate": "permuted"},
        {"opd_gate": "typical"},
        {"opd_gate_schedule": "cosine"},
        {"opd_norm": "all_tokens"},
        {"opd_outcomes": "failure"},
        {"opd_start_round": 1},
        {"opd_stop_round": 1},
        {"teacher_policy": "snapshot"},
        {"loss_type": "grpo"},
        {"loss_type": "dr_grpo"},
        {"loss_type": "bnpo"},
        {"gradient_accumulation_steps": 2},
        {"num_iterations": 2},
        {"adv_std": "off", "adv_invalid_penalty": 0.1},
        {"rollout_engine": "trl"},
        {"beta": 0.0},
    ],
    ids=lambda options: "-".join(f"{key}={value}" for key, value in options.items()),
)
def test_every_control_trains(make_trainer: TrainerFactory, options: dict[str, Any]) -> None:
    trainer = make_trainer(**{"opd_coef": 0.3, "skill_source": "generic", "save_strategy": "no", **options})
    before = parameters(trainer)
    trainer.train()
    assert not torch.equal(parameters(trainer), before)
    lines = [line for line in metrics(trainer) if "env/success" in line]
    assert len(lines) == 2
    distilled = ["opd/tokens" in line for line in lines]
    assert distilled == [options.get("opd_start_round", 0) == 0, options.get("opd_stop_round", -1) != 1]


def test_lora_trains_only_the_adapter(make_trainer: TrainerFactory) -> None:
    from peft import LoraConfig

    trainer = make_trainer(
        opd_coef=0.3, skill_source="generic", peft_config=LoraConfig(r=2, target_modules=["q_proj"], lora_dropout=0.05)
    )
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    trainer.train()
    changed = {name for name, p in trainer.model.named_parameters() if not torch.equal(p, before[name])}
    assert changed and all("lora" in name for name in changed)


def test_completions_table_has_one_row_per_episode(make_trainer: TrainerFactory) -> None:
    import pandas as pd

    trainer = make_trainer(rollout_layout="turn", log_completions=True, skill_source="generic", opd_coef=0.3, rounds=1)
    trainer.train()
    (path,) = (Path(str(trainer.args.output_dir)) / "completions").glob("*.parquet")
    table = pd.read_parquet(path)
    assert len(table) == 16 and set(table["skill"]) != {""} and table["advantage"].abs().max() > 0


def test_episode_records_hold_tokens_and_gates(make_trainer: TrainerFactory) -> None:
    trainer = make_trainer(log_episodes=2, log_episodes_every=1, skill_source="generic", opd_coef=0.3)
    trainer.train()
    path = Path(str(trainer.args.output_dir)) / "episodes.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [record["round"] for record in records] == [0, 0, 1, 1]
    (row,) = records[0]["rows"]
    assert len(row["tokens"]) == len(row["mask"]) == len(row["student"]) == len(row["teacher"]) == len(row["gate"])
    sigmoid = torch.sigmoid(5 * (torch.tensor(row["teacher"]) - torch.tensor(row["student"])))
    torch.testing.assert_close(torch.tensor(row["gate"]), sigmoid, atol=1e-3, rtol=0)


def test_too_few_tasks_is_a_clear_error(make_trainer: TrainerFactory) -> None:
    with pytest.raises(ValueError, match="3 training tasks are fewer than the 4 of one round"):
        make_trainer(tasks=3)


def test_every_logged_metric_of_ours_is_explained(make_trainer: TrainerFactory) -> None:
    from seed_trainer.watching.diagnostics import explains

    trainer = make_trainer(
        panel=True,
        eval_rounds=1,
        opd_coef=0.3,
        rounds=4,
        tasks=16,
        staleness_ages="0,1,2",
        staleness_every=1,
        staleness_gradients=True,
        gradient_every=1,
    )
    trainer.train()
    ours = ("env/", "stop/", "ties/", "skill/", "opd/", "align/", "stale/", "tokens/", "rows/", "time/", "eval_")
    names = {name for line in metrics(trainer) for name in line if name.startswith(ours)}
    assert not [name for name in sorted(names) if not explains(name)]
    assert {"stale/gate_gap/1", "stale/gate_gap/2", "time/overhead", "time/staleness", "time/update"} <= names
    assert {"stale/gate_gap/noise", "align/auc", "align/correlation", "opd/gate_p30"} <= names
    zero = [line["stale/gate_gap/0"] for line in metrics(trainer) if "stale/gate_gap/0" in line]
    assert zero and set(zero) == {0.0}, "today's analyzer asked again says the same"
    assert {"opd/grad_ratio", "opd/grad_cosine", "stale/grad_cosine/1"} <= names
    ratios = [line["opd/grad_ratio"] for line in metrics(trainer) if "opd/grad_ratio" in line]
    assert min(ratios) >= 0  # 0 where a mini-batch has no usable skill
    assert max(ratios) > 0
    cosines = [line["stale/grad_cosine/1"] for line in metrics(trainer) if "stale/grad_cosine/1" in line]
    assert all(-1 - 1e-6 <= cosine <= 1 + 1e-6 for cosine in cosines)
    for line in metrics(trainer):
        for age in ("1", "2"):
            if f"stale/gate_gap/{age}" in line:
                assert line[f"stale/gate_gap/{age}"] <= line[f"stale/bound/{age}"] + 1e-9
                assert line[f"stale/violations/{age}"] == 0.0


@pytest.mark.parametrize("source", ["own", "generic", "none", "library", "stale_text(1)"])
def test_faults_of_a_flaky_environment_are_never_scored(
    make_trainer: TrainerFactory, library: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Episodes about "red" fault at once, all others in the second round; a healthy run would count them as lost."""
    act = WordEnv._act

    def flaky(env: WordEnv, action: str) -> Any:
        if env.word == "red" or down:
            raise RuntimeError("the back end is gone")
        return act(env, action)

    down: list[int] = []
    monkeypatch.setattr(WordEnv, "_act", flaky)
    trainer = make_trainer(opd_coef=0.3, skill_source=source, skill_library=library, panel=True, logging_steps=2)
    panel = trainer.evaluate()
    assert (panel["eval_faults"], panel["eval_episodes"]) == (1.0, 3.0)
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"task_id": word} for word in WORDS for _ in range(4)])
    faulted = batch["episode"] < 4  # the group of "red"
    assert not distilled_mask(batch)[faulted].any() and not batch["advantages"][faulted].any()
    assert source in ("own", "stale_text(1)") or bool(batch["opd_mask"][~faulted].all())
    trainer._metrics["train"].clear()
    down.append(1)
    trainer.train()
    line = next(line for line in metrics(trainer) if "env/faults" in line)
    assert line["env/faults"] == 16.0 and line["stop/env_error"] == 1.0
    rates = ("env/success", "env/success_macro", "env/return", "ties/all_lost", "skill/valid", "reward")
    assert [line[name] for name in rates] == [None] * len(rates)
    assert trainer.evaluate()["eval_success"] is None


@pytest.mark.parametrize(("limit", "together"), [(0, 128), (48, 48)])
def test_a_block_is_played_at_once_unless_limited(
    make_trainer: TrainerFactory, limit: int, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(
        per_device_train_batch_size=64, num_generations=32, max_concurrent_episodes=limit, tasks=8, max_turn_length=1
    )
    asked: list[int] = []
    act = TokenPolicy.__call__

    def counted(policy: TokenPolicy, turn: Any) -> Any:
        asked.append(len(turn))
        return act(policy, turn)

    monkeypatch.setattr(TokenPolicy, "__call__", counted)
    trainer._play([{"task_id": word} for word in WORDS for _ in range(32)])
    assert max(asked) == together and asked[0] == together


def test_opid_step_skills_move_only_the_tokens_of_their_step(make_trainer: TrainerFactory) -> None:
    from seed_trainer.settings.schedules import Moment
    from seed_trainer.skills.parsing import HindsightSkill

    options: dict[str, Any] = {"rollout_layout": "turn", "adv_shaping": "opid", "opd_coef": 0.0}
    trainer = make_trainer(adv_shaping_coef=0.0, adv_step_skill_coef=1.0, **options)

    def critical_first_step(episodes: Sequence[Any], group_size: int, moment: Moment) -> list[HindsightSkill]:
        return [HindsightSkill("gold", step_skills={0: "gold gold"}) for _ in episodes]

    trainer.analyst.teaching_skills = critical_first_step  # type: ignore[method-assign]
    trainer.model.train()
    batch = trainer._generate_and_score_completions([{"task_id": word} for word in WORDS for _ in range(4)])
    spread = batch["advantages"].max(1).values - batch["advantages"].min(1).values
    rows = [len(ids[mask.bool()]) for ids, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)]
    opening = torch.tensor([length == min(rows) for length in rows]) & (
        (batch["completion_mask"] * batch["tool_mask"]).sum(1) > 0
    )
    assert (spread[opening] > 0).all() and (spread[~opening] == 0).all() and opening.sum() == 16


def test_alignment_is_measured_by_branching(make_trainer: TrainerFactory) -> None:
    from seed_envs.tasks import TaskSpec
    from seed_trainer.watching.branching import measure_alignment

    trainer = make_trainer(opd_coef=0.3)
    result = measure_alignment(trainer, [TaskSpec(word) for word in WORDS * 2], responses=2, continuations=2, seed=1)
    again = measure_alignment(trainer, [TaskSpec(word) for word in WORDS * 2], responses=2, continuations=2, seed=1)
    assert result == again and result.states == 8
    assert 0.0 < result.mean_gate < 1.0 and result.low <= result.covariance <= result.high


def test_token_level_alignment_forces_the_likeliest_tokens(make_trainer: TrainerFactory) -> None:
    from seed_envs.tasks import TaskSpec
    from seed_trainer.watching import branching

    trainer = make_trainer(opd_coef=0.3)
    played: list[Any] = []
    original = branching._play

    def spy(trainer: Any, tasks: Any, scripts: Any) -> Any:
        episodes = original(trainer, tasks, scripts)
        played.extend(zip(scripts, episodes, strict=True))
        return episodes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branching, "_play", spy)
        result = branching.measure_token_alignment(trainer, [TaskSpec(word) for word in WORDS], 2, seed=1)
    assert result.states == 4 and 0.0 < result.mean_gate < 1.0 and result.low <= result.covariance <= result.high
    branched = [(script, episode) for script, episode in played if script.opening]
    assert len(branched) >= 2 * 2 * 4
    for script, episode in branched:
        replies = [turn.reply_ids for turn in branching.tokens_of(episode)]
        at = len(script.replies)
        assert replies[:at] == list(script.replies)
        assert replies[at][: len(script.opening)] == script.opening and len(replies[at]) <= 3
    assert len({tuple(script.opening) for script, _ in branched}) >= 2
    again = branching.measure_token_alignment(trainer, [TaskSpec(word) for word in WORDS], 2, seed=1)
    assert again == result


def test_staleness_diagnostic_does_not_disturb_training(make_trainer: TrainerFactory, tmp_path: Path) -> None:
    plain = make_trainer(output_dir=str(tmp_path / "plain"), opd_coef=0.3, rounds=3, tasks=16)
    plain.train()
    options: dict[str, Any] = {"staleness_ages": "0,1", "staleness_every": 1}
    watched = make_trainer(output_dir=str(tmp_path / "watched"), opd_coef=0.3, rounds=3, tasks=16, **options)
    watched.train()
    torch.testing.assert_close(parameters(plain), parameters(watched), atol=0, rtol=0)


def test_diverged_weights_end_the_run_with_a_clear_message(make_trainer: TrainerFactory) -> None:
    trainer = make_trainer(opd_coef=0.0)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter.fill_(torch.nan)
    with pytest.raises(Exception, match="logits are not numbers: its weights have diverged"):
        trainer.train()


def test_gate_is_split_by_task_type(make_trainer: TrainerFactory) -> None:
    trainer = make_trainer(skill_source="generic", opd_coef=0.3)
    trainer.train()
    lines = [line for line in metrics(trainer) if "opd/gate_mean" in line]
    assert lines and all(line["opd/gate_type/say"] == pytest.approx(line["opd/gate_mean"], abs=1e-6) for line in lines)


def test_distilling_action_tokens_only(make_trainer: TrainerFactory) -> None:
    """Replies without tags are all action: distilling actions equals distilling everything, thinking is nothing."""
    counts = {}
    for kind in ("all", "action", "think"):
        trainer = make_trainer(skill_source="generic", opd_coef=0.3, opd_tokens=kind, rounds=1)
        trainer.train()
        counts[kind] = [line["opd/tokens"] for line in metrics(trainer) if "opd/tokens" in line][-1]
    assert counts["all"] == counts["action"] > 0 == counts["think"]
