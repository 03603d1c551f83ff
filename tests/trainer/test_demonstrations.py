"""Action cloning: demonstrations in the very tokens of a rollout, and a model that learns to act from them."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seed_envs import get_profile, make_agent_env
from seed_envs.rollout import Policy, Reply, Request
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import Trajectory
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.acting.play import EpisodePlayer
from seed_trainer.acting.rollout import TokenPolicy
from seed_trainer.acting.sampling import Decoding, Sampled
from seed_trainer.cli import main
from seed_trainer.learning.batches import build_rows
from seed_trainer.stage1.collect import collect, oracle_policy
from seed_trainer.stage1.dataset import read_examples, write_examples
from seed_trainer.stage1.demonstrations import SLIP, Slipping, action_examples, is_lesson, mixed
from seed_trainer.stage1.sft import as_dataset
from seed_trainer.tiny.model import build_model
from seed_trainer.tiny.tokenizer import build_tokenizer

GAMES = [
    ("seed/ALFWorld-v0", "compact", "compact/train/3"),
    ("seed/ALFWorld-v0", "compact-listed", "compact/train/3"),
    ("seed/EZPoints-v0", "compact-text", None),
    ("seed/EZPoints-v0", "strict-text", None),
]


class Dictated:
    """A sampler that "samples" the words of a scripted policy, so that a demonstration runs through the rollout."""

    def __init__(self, encoder: ChatEncoder) -> None:
        self.encoder, self.words = encoder, [""]

    def sample(self, keys: Any, contexts: Sequence[Any], *rest: Any) -> list[Sampled]:
        texts = [self.encoder.tokenizer(word, add_special_tokens=False)["input_ids"] for word in self.words]
        assert len(texts) == len(contexts)
        return [Sampled([*ids, self.encoder.eos_token_ids[0]]) for ids in texts]

    def forget(self) -> None:
        pass


def dictating(script: Policy, policy: TokenPolicy, sampler: Dictated) -> Policy:
    """What the script says, through the token policy; only replies that the model's words can spell come out equal."""

    def play(requests: Sequence[Request]) -> list[Reply]:
        said = script(requests)
        assert not any(reply.error for reply in said)
        sampler.words = [reply.text for reply in said]
        return [
            Reply(was.text, meta={**was.meta, **reply.meta}) for reply, was in zip(said, policy(requests), strict=True)
        ]

    return play


def spelling() -> ChatEncoder:
    """An encoder that spells every game: its ids are bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["<pad>", "<eos>", "<user>", "<bot>", *alphabet]
    inner = Tokenizer(models.BPE({name: index for index, name in enumerate(names)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    inner.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    template = (
        "{% for m in messages %}{% if m['role'] == 'user' %}<user>{{ m['content'] }}\n{% else %}<bot>{{ m['content'] }}"
        "<eos>\n{% endif %}{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}"
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token="<eos>",
        additional_special_tokens=["<user>", "<bot>"],
        chat_template=template,
    )
    return ChatEncoder(tokenizer, tokenizer)


@pytest.mark.parametrize(("env_id", "profile_name", "task"), GAMES)
def test_a_demonstration_is_in_the_tokens_of_a_rollout(
    env_id: str, profile_name: str, task: str | None, tmp_path: Path
) -> None:
    profile, encoder = get_profile(env_id, profile_name), spelling()
    layout: Any = "episode" if profile.style == "growing" else "turn"
    sampler = Dictated(encoder)
    policy = TokenPolicy(encoder, sampler, profile, layout, Decoding(64), 100_000)
    script = Slipping(oracle_policy(profile), profile, 0.3 if task else 0.0, seed=1)
    player = EpisodePlayer(functools.partial(make_agent_env, env_id, profile), env_id, profile)
    tasks = [TaskSpec(task, seed=seed) for seed in range(4)]
    episodes = player.play(tasks, dictating(script, policy, sampler))
    player.close()
    records = list(action_examples(episodes, profile, "oracle", only_won=False))
    write_examples(tmp_path / "sft.jsonl", iter(records))
    read = read_examples(tmp_path / "sft.jsonl")
    rows = build_rows(episodes, layout)
    slipped = [step for episode in episodes for step in episode.steps if step.meta.get(SLIP)]
    assert bool(slipped) == bool(task)
    if layout == "turn":
        lessons = [row for row in rows if is_lesson(episodes[row.episode].steps[row.step])]
        assert len(read) == len(lessons)
        for record, row in zip(read, lessons, strict=True):
            assert encoder.prompts([record["prompt"]])[0] == row.prompt_ids
            assert encoder.decode(row.completion_ids) == record["completion"][0]["content"]
        return
    assert len(read) == len(rows) == len(tasks)
    for example, row in zip(as_dataset(read, tmp_path, encoder), rows, strict=True):
        length = len(example["input_ids"])
        assert example["input_ids"] == [*row.prompt_ids, *row.completion_ids][:length]
        steps = episodes[row.episode].steps
        wanted = [int(one and is_lesson(steps[turn])) for one, turn in zip(row.mask, row.turn_of, strict=True)]
        assert [int(label != -100) for label in example["labels"]] == [*(0 for _ in row.prompt_ids), *wanted][:length]
        assert not any([*(0 for _ in row.prompt_ids), *wanted][length:]), "what is cut off holds no lesson"


def test_slips_are_refused_or_random_and_never_learned(tmp_path: Path) -> None:
    profile = get_profile("seed/ALFWorld-v0", "compact")
    player = EpisodePlayer(functools.partial(make_agent_env, "seed/ALFWorld-v0", profile), "seed/ALFWorld-v0", profile)
    tasks = [TaskSpec(f"compact/train/{number}") for number in range(12)]
    episodes = collect(player, Slipping(oracle_policy(profile), profile, 0.3, seed=0), tasks, tmp_path)
    again = collect(player, Slipping(oracle_policy(profile), profile, 0.3, seed=0), tasks, tmp_path / "again")
    player.close()

    def said(played: Sequence[Trajectory]) -> list[list[str]]:
        return [[step.reply for step in episode.steps] for episode in played]

    assert said(episodes) == said(again)
    slips = [step for episode in episodes for step in episode.steps if step.meta.get(SLIP)]
    refused = sum(not step.action_valid for step in slips)
    assert 0 < refused < len(slips)
    kept = [step for episode in episodes for step in episode.steps if is_lesson(step)]
    learned = [
        message["content"]
        for record in action_examples(episodes, profile, "oracle", only_won=False)
        for message, flag in zip(record["completion"], record["learned"], strict=True)
        if flag
    ]
    assert learned == [step.reply for step in kept]
    won = {record["number"] for record in action_examples(episodes, profile, "oracle")}
    assert won == {number for number, episode in enumerate(episodes) if episode.success}


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_skills_have_their_stated_share(share: float) -> None:
    actions, skills = [{"kind": "action", "n": n} for n in range(300)], [{"kind": "skill", "n": n} for n in range(90)]
    chosen = mixed(actions, skills, share, seed=0)
    found = sum(record["kind"] == "skill" for record in chosen)
    assert found == round(share * len(chosen)) and chosen == mixed(actions, skills, share, seed=0)
    assert found == len(skills) or len(chosen) - found == len(actions), "no more is left out than the share demands"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--target", "action"], "did you mean"),
        (["--slips", "0.1"], "--target actions"),
        (["--target", "actions", "--slips", "1"], "below 1"),
        (["--target", "both", "--skill_share", "0"], "between 0 and 1"),
    ],
)
def test_bad_targets_are_named(
    flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "--env_profile", "compact", "--tasks", "2", "--output_dir", str(tmp_path), *flags]) == 2
    assert message.lower() in capsys.readouterr().err.lower()


def test_a_flag_on_an_observation_is_refused(tmp_path: Path) -> None:
    record = {
        "prompt": [{"role": "user", "content": "say red"}],
        "completion": [{"role": "assistant", "content": "red"}, {"role": "user", "content": "no"}],
        "learned": [True, True],
    }
    (tmp_path / "sft.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(Exception, match="true for replies alone"):
        read_examples(tmp_path / "sft.jsonl")


def test_a_random_model_learns_to_act(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line: a model without a valid action becomes one that has some, and writes skills as before."""
    tokenizer, model = build_tokenizer(), tmp_path / "random"
    build_model(tokenizer, width=64, layers=1, heads=2).save_pretrained(model)
    tokenizer.save_pretrained(model)
    common = ["--env_profile", "compact", "--split", "compact_train", "--tasks", "40", "--repeats", "1"]
    target = ["--target", "both", "--skill_share", "0.2", "--slips", "0.1", "--annotator", "rules_terse"]
    data, clone = tmp_path / "data", tmp_path / "clone"
    assert main(["data", *common, *target, "--output_dir", str(data)]) == 0
    records = [json.loads(line) for line in (data / "sft.jsonl").read_text().splitlines()]
    share = sum("learned" not in record for record in records) / len(records)
    assert share == pytest.approx(0.2, abs=0.03)
    cpu = ["--use_cpu", "--bf16", "false", "--gradient_checkpointing", "false", "--report_to", "none"]
    steps = ["--max_steps", "60", "--per_device_train_batch_size", "8", "--learning_rate", "1e-2"]
    start = ["--data", str(data), "--model_name_or_path", str(model), "--validation_share", "0.1"]
    assert main(["sft", *start, "--output_dir", str(clone), *cpu, *steps, "--max_length", "1000"]) == 0

    def valid_share(folder: Path) -> float:
        capsys.readouterr()
        run = tmp_path / f"look-{folder.name}"
        look = ["--method", "vanilla", "--eval_split", "compact_test", "--eval_tasks", "12", "--output_dir", str(run)]
        assert main(["rl", "--config", "quickstart", "--model_name_or_path", str(folder), *look]) == 0
        shown = capsys.readouterr().out
        metrics = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
        return 1.0 - float(metrics["eval_invalid_actions"])

    before, after = valid_share(model), valid_share(clone)
    assert before < 0.1 and after > before + 0.3, (before, after)
