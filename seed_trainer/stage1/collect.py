"""Playing the episodes that stage 1 learns from, one JSON line per finished episode, resumable.

Policies: a language model, the environment's oracle, or random admissible actions. An interrupted collection goes on
where it stopped; finished episodes are never played again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from seed_envs.errors import SeedEnvsError
from seed_envs.journal import Journal, read_records
from seed_envs.profiles import Profile
from seed_envs.redaction import redact
from seed_envs.rollout import Policy, Reply, Request
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import EpisodeError, Trajectory
from seed_trainer.acting.play import EpisodePlayer
from seed_trainer.errors import UserError
from seed_trainer.stage1.pictures import PictureFiles

TRAJECTORIES_FILE = "trajectories.jsonl"
COLLECTION_FILE = "collection.json"


def oracle_policy(profile: Profile) -> Policy:
    """Return the policy that plays the environment's oracle; where it knows no action, that episode ends as a fault."""
    return _scripted(profile, "oracle_action")


def rule_policy(profile: Profile) -> Policy:
    """Return the policy that plays the environment's rules, which know only what a player is shown."""
    return _scripted(profile, "rule_action")


def _scripted(profile: Profile, question: str) -> Policy:
    def reply(request: Request) -> Reply:
        try:
            action = str(request.call(question))
        except SeedEnvsError as error:
            return Reply(error=EpisodeError(type(error).__name__, str(error)))
        return Reply(profile.action_format.format(action))

    return lambda requests: [reply(request) for request in requests]


def random_policy(profile: Profile, seed: int) -> Policy:
    """Return the policy that picks random admissible actions; needs an environment that lists them."""

    def policy(requests: Sequence[Request]) -> list[Reply]:
        replies = []
        for request in requests:
            actions = list(request.context.admissible or ())
            if not actions:
                raise UserError("policy=random needs an environment with a list of admissible actions")
            chooser = random.Random(f"{seed}/{request.episode}/{request.turn}")
            replies.append(Reply(profile.action_format.format(chooser.choice(actions))))
        return replies

    return policy


def model_policy(
    path: str,
    profile: Profile,
    decoding: Any,
    max_prompt_length: int,
    seed: int,
    template: Mapping[str, Any] | None = None,
) -> Policy:
    """Return the policy of a model; replies are sampled with the cached sampler.

    Args:
        path: Folder or hub name.
        profile: How it is put before the environment.
        decoding: How replies are sampled.
        max_prompt_length: In tokens.
        seed: Of the sampling.
        template: Variables of the chat template.

    Raises:
        UserError: If it cannot be loaded, or sees and cannot be sampled so.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    from seed_envs.processors import load_encoder
    from seed_trainer.acting.caches import uncached
    from seed_trainer.acting.encoding import ChatEncoder
    from seed_trainer.acting.generation import CachedSampler
    from seed_trainer.acting.rollout import Layout, TokenPolicy

    try:
        processing_class = load_encoder(path)
        tokenizer = getattr(processing_class, "tokenizer", processing_class)
        factory = AutoModelForCausalLM if processing_class is tokenizer else AutoModelForImageTextToText
        model = factory.from_pretrained(path).eval()
    except OSError as error:
        raise UserError(f"policy={path!r} cannot be loaded: {str(error).strip().splitlines()[0]}") from None
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    ends = model.generation_config.eos_token_id
    eos = sorted({tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None})
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    encoder = ChatEncoder(processing_class, tokenizer, template_kwargs=dict(template or {}), eos_token_ids=eos)
    if obstacle := uncached(model, encoder.pictures):
        raise UserError(f"policy={path!r} cannot play here: {obstacle}; use a model like Qwen2.5-VL, or policy=oracle")
    sampler = CachedSampler(lambda: nullcontext(model), eos, pad, device, generator, encoder.pictures)
    layout: Layout = "episode" if profile.style == "growing" else "turn"
    return TokenPolicy(encoder, sampler, profile, layout, decoding, max_prompt_length)


def claim(folder: Path, identity: Mapping[str, Any]) -> None:
    """Note in the folder what is collected there, or check that it is the same as before.

    Args:
        folder: Folder of the collection, already there.
        identity: Everything that decides which episodes are played, and how.

    Raises:
        UserError: If the folder holds another collection, naming what differs.
    """
    path, identity = folder / COLLECTION_FILE, redact(identity)
    if not path.exists():
        path.write_text(json.dumps(identity, indent=2) + "\n", encoding="utf-8")
        return
    found = json.loads(path.read_text(encoding="utf-8"))
    for name, value in identity.items():
        if found.get(name) != value:
            raise UserError(
                f"{str(folder)!r} holds a collection with {name}={found.get(name)!r}, not {value!r}; choose another "
                "--output_dir, or repeat the command that began it"
            )


def read_trajectories(path: Path) -> Iterator[tuple[int, Trajectory]]:
    """Yield number and trajectory of every finished episode of a file, with its pictures; a torn line is ignored."""
    pictures = PictureFiles(path.parent)
    for record in read_records(path):
        episode = Trajectory.from_json(record["trajectory"])
        for step in episode.steps:
            step.messages = pictures.unpacked(step.messages)
        yield int(record["number"]), episode


def _as_json(episode: Trajectory, pictures: PictureFiles) -> dict[str, Any]:
    record = episode.to_json()
    for line, step in zip(record["steps"], episode.steps, strict=True):
        line["messages"] = pictures.packed(step.messages)
    return record


def collect(
    player: EpisodePlayer,
    policy: Policy,
    tasks: Sequence[TaskSpec],
    folder: Path,
    progress: Callable[[], None] = lambda: None,
) -> list[Trajectory]:
    """Play every task that has no finished episode in the folder yet and return all trajectories in order.

    Args:
        player: Plays episodes.
        policy: Who plays.
        tasks: All tasks of the collection, in its fixed order.
        folder: Where ``trajectories.jsonl`` is.
        progress: Called after every finished episode.

    Raises:
        UserError: If the folder holds episodes of another collection.
    """
    path = folder / TRAJECTORIES_FILE
    done = dict(read_trajectories(path))
    for number, episode in done.items():
        if number >= len(tasks) or (tasks[number].task_id or episode.task_id) != episode.task_id:
            raise UserError(f"{path} holds episodes of another collection; choose another --output_dir")
    pictures = PictureFiles(folder)
    missing = [number for number in range(len(tasks)) if number not in done]
    folder.mkdir(parents=True, exist_ok=True)
    with Journal(path, shared=True) as journal:

        def finish(index: int, episode: Trajectory) -> None:
            journal.append_record({"number": missing[index], "trajectory": _as_json(episode, pictures)})
            done[missing[index]] = episode
            progress()

        player.play([tasks[number] for number in missing], policy, finish)
    return [done[number] for number in range(len(tasks))]
