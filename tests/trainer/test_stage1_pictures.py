"""Stage 1 with pictures: collected as files, annotated by rules, endpoint or the model itself, trained, measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from chat_server import completion, serve
from PIL import Image
from tiny_vision import make_model, make_processor
from transformers import AutoModelForImageTextToText

from seed_envs.profiles import get_profile
from seed_trainer.acting.encoding import ChatEncoder, images_of
from seed_trainer.cli import main
from seed_trainer.errors import UserError
from seed_trainer.settings.options import SEEDOptions
from seed_trainer.skills.analyzer import SkillWriter
from seed_trainer.skills.prompts import ANALYZERS, outcome_of
from seed_trainer.stage1 import collect, dataset
from seed_trainer.stage1.pictures import PictureFiles, names_of
from seed_trainer.stage1.sft import as_dataset, split_by_length

COLLECT = ["--env_profile", "paper", "--tasks", "2", "--repeats", "2"]
CPU = "--use_cpu true --bf16 false --gradient_checkpointing false --report_to none".split()
CPU += ["--per_device_train_batch_size", "2"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    processor = make_processor("qwen2.5")
    made = make_model("qwen2.5", processor.tokenizer)
    made.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    made.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["Sokoban", "EZPoints"])
def collected(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "oracle"
    assert main(["data", "--env_id", f"seed/{request.param}-v0", *COLLECT, "--output_dir", str(folder)]) == 0
    return folder


def episodes_of(folder: Path) -> list[Any]:
    return [episode for _, episode in collect.read_trajectories(folder / collect.TRAJECTORIES_FILE)]


def test_every_picture_is_one_file_and_comes_back_as_it_was(collected: Path) -> None:
    steps = [step for episode in episodes_of(collected) for step in episode.steps]
    shown = [image for step in steps for image in images_of(step.messages)]
    assert len(shown) == len(steps)
    different = {image.tobytes() for image in shown}
    assert len(list((collected / "pictures").iterdir())) == len(different) < len(shown)
    analysed = 0
    for record in dataset.read_examples(collected / dataset.SFT_FILE):
        (message,) = PictureFiles(collected).unpacked(record["prompt"])
        pictures = images_of([message])
        assert all(image.tobytes() in different and image.dtype == np.uint8 and image.ndim == 3 for image in pictures)
        assert "Outcome: success" in message["content"][0]["text"]
        analysed += len(pictures)
    assert analysed == len(shown), "the oracle won every episode, and every one is an example"
    longest = max(map(len, (collected / collect.TRAJECTORIES_FILE).read_text().split("\n")))
    assert longest < 100_000, "pictures are not in the lines"


def test_a_collection_goes_on_with_the_pictures_it_has(collected: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(collected, tmp_path / "again")
    path = folder / collect.TRAJECTORIES_FILE
    whole, examples = path.read_text(), (folder / dataset.SFT_FILE).read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:1]))
    env_id = episodes_of(collected)[0].env_id
    assert main(["data", "--env_id", env_id, *COLLECT, "--output_dir", str(folder)]) == 0
    assert (folder / dataset.SFT_FILE).read_text() == examples
    assert len(path.read_text().splitlines()) == len(whole.splitlines())


def test_training_reads_the_pictures_and_moves_both_halves(collected: Path, model: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = ["sft", "--model_name_or_path", str(model), "--data", str(collected), "--output_dir", str(run), *CPU]
    assert main([*command, "--num_train_epochs", "1", "--learning_rate", "1e-3", "--max_length", "4000"]) == 0
    before, after = (AutoModelForImageTextToText.from_pretrained(folder) for folder in (model, run))
    new = dict(after.named_parameters())
    changed = {name for name, value in before.named_parameters() if not torch.equal(value, new[name])}
    assert any("visual" in name for name in changed) and any("language_model" in name for name in changed)


def test_lengths_are_those_of_the_collator(collected: Path, model: Path) -> None:
    from trl.trainer.sft_trainer import DataCollatorForVisionLanguageModeling

    from seed_envs.processors import load_encoder

    records, processor = dataset.read_examples(collected / dataset.SFT_FILE), load_encoder(str(model))
    _, too_long = split_by_length(records, processor, 1, collected)
    collate = DataCollatorForVisionLanguageModeling(processor, completion_only_loss=True)
    for row, (index, length) in zip(as_dataset(records, collected), too_long, strict=True):
        batch = collate([dict(row)])
        assert batch["input_ids"].shape[1] == length
        assert len(batch["image_grid_thw"]) == len(names_of(records[index]["prompt"]))
        answer = processor.tokenizer.decode(batch["labels"][0][batch["labels"][0] >= 0])
        assert answer.startswith('{"episode_summary"')


def test_an_endpoint_is_shown_every_picture_as_png(collected: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(collected, tmp_path / "asked")
    skill = json.dumps({"episode_summary": "It went well.", "episode_skill": "Push the box only where it can leave."})
    env_id = episodes_of(collected)[0].env_id
    with serve(lambda handler, body, attempt: handler.answer(completion(skill))) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        ask = ["--annotator", "endpoint", "--endpoint_url", url, "--endpoint_model", "eye", "--no_preflight"]
        assert main(["data", "--env_id", env_id, *COLLECT, "--output_dir", str(folder), *ask]) == 0
        asked = [body for _, _, _, body in server.seen if body is not None]
    sent = sorted(sum(part["type"] == "image_url" for part in body["messages"][0]["content"]) for body in asked)
    assert sent == sorted(episode.num_steps for episode in episodes_of(collected))
    addresses = [p["image_url"]["url"] for body in asked for p in body["messages"][0]["content"] if p["type"] != "text"]
    assert all(address.startswith("data:image/png;base64,") for address in addresses)


def test_the_model_itself_reads_whole_episodes_with_their_pictures(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    play = ["--policy", str(model), "--max_turn_length", "4", "--env_max_steps", "2", "--annotator", "policy"]
    command = ["data", "--env_id", "seed/EZPoints-v0", *COLLECT, *play, "--endpoint_max_tokens", "4"]
    assert main([*command, "--output_dir", str(folder)]) == 0
    assert "skills truncated: 1.000" in capsys.readouterr().out, "a random model writes no skill, and none is invented"
    profile = get_profile("seed/EZPoints-v0", "paper")
    policy: Any = collect.model_policy(str(model), profile, None, 1024, 0)
    encoder: ChatEncoder = policy.encoder
    writer = SkillWriter(encoder, policy.sampler, "turn", ANALYZERS["json"], SEEDOptions())
    episodes = episodes_of(folder)
    prompts, images = writer._prompts(episodes, [outcome_of(episode) for episode in episodes])
    assert encoder.pictures is not None
    for ids, pictures, episode in zip(prompts, images, episodes, strict=True):
        assert len(pictures) == episode.num_steps == 2
        assert sum(ids.count(token) for token in encoder.pictures.token_ids) == 121 * 2
    assert main(["data", "--env_id", "seed/EZPoints-v0", *COLLECT, "--annotator", "policy", "--output_dir", "x"]) == 2


def test_value_alignment_is_measured_on_pictures(model: Path, tmp_path: Path) -> None:
    sizes = "--env_max_steps 2 --train_split train --train_tasks 4 --states 2 --responses 2 --continuations 2"
    short = "--max_turn_length 4 --max_analysis_length 8 --num_generations 2 --steps_per_generation 1 --rounds 1"
    for layout, branch in (("turn", "responses"), ("episode", "tokens")):
        folder = tmp_path / branch
        command = ["align", "--model_name_or_path", str(model), "--env_id", "seed/Sokoban-v0", "--env_profile", "paper"]
        command += [*CPU, *sizes.split(), *short.split(), "--output_dir", str(folder)]
        assert main([*command, "--rollout_layout", layout, "--branch", branch]) == 0
        assert json.loads((folder / "alignment.json").read_text())["states"] == 2


def test_bad_pictures_and_text_models_are_refused(collected: Path, model_path: str, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = shutil.copytree(collected, tmp_path / "copy")
    records = dataset.read_examples(folder / dataset.SFT_FILE)
    with pytest.raises(UserError, match="reads text alone; train a vision-language model"):
        split_by_length(records, AutoTokenizer.from_pretrained(model_path), 4000, folder)
    name = names_of(records[0]["prompt"])[0]
    Image.new("RGB", (28, 28)).save(folder / name)
    with pytest.raises(UserError, match="not the picture that it is named after"):
        PictureFiles(folder).unpacked(records[0]["prompt"])
    (folder / name).write_bytes(b"no picture")
    with pytest.raises(UserError, match="cannot be read"):
        PictureFiles(folder).unpacked(records[0]["prompt"])
    (folder / name).unlink()
    for odd in (name, "../secret.png", "", "pictures/../sft.jsonl"):
        with pytest.raises(UserError, match="copy the whole folder"):
            PictureFiles(folder).path(odd)


def test_a_picture_profile_is_collected_by_the_shipped_configuration_of_stage_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Environment, profile and split come from the file; what only training knows is left out."""
    few = ["--tasks", "2", "--repeats", "1", "--output_dir", str(tmp_path)]
    assert main(["data", "--config", "quickstart_vision", "--annotator", "rules_terse", *few]) == 0
    arguments = json.loads((tmp_path / "summary.json").read_text())["arguments"]
    expected = {"env_id": "seed/EZPoints-v0", "env_profile": "compact", "split": "train", "analyzer": "brief"}
    assert {name: arguments[name] for name in expected} == expected and arguments["recipe"] == "paper"
    assert len(list(dataset.read_examples(tmp_path / dataset.SFT_FILE))) == 2
    odd = tmp_path / "odd.yaml"
    odd.write_text("train_splits: train\n")
    assert main(["data", "--config", str(odd), *few]) == 2
    assert "unknown field 'train_splits'" in capsys.readouterr().err
