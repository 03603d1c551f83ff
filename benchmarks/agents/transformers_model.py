"""``hf:PATH``: a transformers model as an agent, answering all live episodes in one batch.

Text and vision-language models through transformers' ordinary classes and the model's own chat template. Sampling is
seeded per episode and turn (see ``sampling``); generation settings that a model folder brings along (penalties, top-k)
are not used. A path that ends in ``.gguf`` is one file with quantised weights and tokenizer, which transformers unpacks
when it loads them. No code from a model folder is ever run.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seed_envs.chat import Message
from seed_envs.errors import ContextOverflow, require
from seed_envs.preflight import Contestant, Say
from seed_envs.processors import load_processor, sees
from seed_envs.profiles import Profile
from seed_envs.rollout import Reply, Request, failed_reply
from seed_envs.tool_templates import render_chats
from seed_envs.trajectory import StopReason

from ..config import AgentSettings
from ..errors import UnknownAgent
from ..identity import hash_files
from .base import Placement, SkillFor
from .skills import load_skills

#: Files of a model folder, by what they hold.
_WEIGHTS = (".safetensors", ".bin", ".gguf", ".pt")
_TOKENIZER = ("tokenizer", "vocab", "merges", "special_tokens", "added_tokens", "spiece", "chat_template", "processor")
_SETTINGS = ("config.json", "generation_config.json", "preprocessor_config.json")


class TransformersAgent:
    """Generates with a local model.

    Args:
        settings: Sampling, lengths, device, number format, thinking switch.
        argument: A model folder, a ``.gguf`` file, or a name that transformers can resolve.
        profile: Not used.

    Raises:
        DependencyMissing: Without torch and transformers, or without gguf for such a file.
        UnknownAgent: When the model cannot be loaded or has no chat template.
    """

    placement = Placement.BATCH
    default_batch = 16

    def __init__(self, settings: AgentSettings, argument: str, profile: Profile) -> None:
        try:
            source = _find_source(argument)
        except ValueError as error:
            raise UnknownAgent(f"agent 'hf:{argument}' cannot be loaded: {error}") from error
        require("torch", "train", "a transformers model")
        require("transformers", "train", "a transformers model")
        if argument.startswith("builtin/"):
            raise UnknownAgent(
                f"agent 'hf:{argument}': builtin/ is a prefix of seed-train alone; give a folder, such as that "
                f"of a training run; in a checkout this one is hf:seed_trainer/tiny/models/{argument.partition('/')[2]}"
            )
        self._name, self._settings = argument, settings
        self.skill_for: SkillFor | None = load_skills(settings.skill_prompt)
        try:
            self._load(source)
        except (OSError, ValueError, KeyError) as error:
            reason = " ".join(str(error).split())  # transformers explains itself over several lines
            raise UnknownAgent(f"agent 'hf:{argument}' cannot be loaded: {reason}") from error
        if not getattr(self._processor, "chat_template", None):
            raise UnknownAgent(f"agent 'hf:{argument}' has no chat template; only chat models can be evaluated")

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """One batch; prompts that do not fit end their episode as ``context_overflow``."""
        prompts = [self._render(request.messages) for request in requests]
        replies: dict[int, Reply] = {}
        for number, (prompt, request) in enumerate(zip(prompts, requests, strict=True)):
            # A picture is one token in the text and many in the model: those are counted by the processor.
            length = self._encode([prompt], [request.messages])["input_ids"].shape[1]
            if length > self._longest_prompt:
                error = ContextOverflow(f"the prompt has {length} tokens, at most {self._longest_prompt} fit")
                replies[number] = failed_reply(error, StopReason.CONTEXT_OVERFLOW)
        fitting = [number for number in range(len(requests)) if number not in replies]
        if fitting:
            chosen = [requests[number] for number in fitting]
            made = self._generate([prompts[number] for number in fitting], chosen)
            replies.update(zip(fitting, made, strict=True))
        return [replies[number] for number in range(len(requests))]

    def describe(self) -> Mapping[str, Any]:
        """What was loaded and where it runs."""
        template = str(self._processor.chat_template)
        return {
            "kind": "TransformersAgent",
            "model": self._name,
            "class": type(self._model).__name__,
            "parameters": self._model.num_parameters(),
            "dtype": str(self._model.dtype),
            "device": str(self._model.device),
            "chat_template_sha256": hashlib.sha256(template.encode()).hexdigest(),
            "longest_prompt": self._longest_prompt,
            "commit": getattr(self._model.config, "_commit_hash", None),
            "identity": self._identity,
        }

    @functools.cached_property
    def _identity(self) -> dict[str, str]:
        """Hashes of the files behind the model; of a hub name its commit, which stands for them."""
        template = hashlib.sha256(str(self._processor.chat_template).encode()).hexdigest()
        path = Path(self._name)
        if not path.exists():
            return {"chat_template": template, "commit": str(getattr(self._model.config, "_commit_hash", None))}
        files = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
        weights = [file for file in files if file.suffix in _WEIGHTS]
        others = [
            file for file in files if file.suffix in (".json", ".jinja", ".model", ".txt") and file not in weights
        ]
        tokenizer = [file for file in others if file.name.startswith(_TOKENIZER)]
        return {
            "chat_template": template,
            "weights": hash_files(weights),
            "tokenizer": hash_files(tokenizer),
            "settings": hash_files(file for file in others if file.name in _SETTINGS),
        }

    def contestant(self, say: Say) -> Contestant:
        """Everything is known: the model is here. Weights that are not float32 get a remark about batches."""
        dtype = str(self._model.dtype).removeprefix("torch.")
        if dtype != "float32":
            say(
                f"the weights are {dtype}: which replies come out depends a little on the batch; --batch-size 1 or "
                "--dtype float32 plays the same way every time"
            )

        def count(messages: Sequence[Message]) -> int:
            return int(self._encode([self._render(messages)], [messages])["input_ids"].shape[1])

        return Contestant(f"hf:{self._name}", self._sees, self._longest_prompt, count, self.act)

    def close(self) -> None:
        """Drop the model."""
        del self._model

    def _load(self, source: dict[str, str]) -> None:
        import torch
        from transformers import (
            AutoConfig,
            AutoModelForCausalLM,
            AutoModelForImageTextToText,
            AutoTokenizer,
        )
        from transformers.utils.logging import disable_progress_bar

        if not sys.stderr.isatty():
            disable_progress_bar()  # a log is no place for a bar
        config = AutoConfig.from_pretrained(**source)
        self._sees = sees(config)
        wanted = self._settings.device
        device = ("cuda" if torch.cuda.is_available() else "cpu") if wanted == "auto" else wanted
        dtype = self._settings.dtype if self._settings.dtype != "auto" or device != "cpu" else "float32"
        factory = AutoModelForImageTextToText if self._sees else AutoModelForCausalLM
        model: Any = factory.from_pretrained(**source, dtype=dtype)
        self._model = model.to(device).eval()
        self._processor: Any = load_processor(self._name) if self._sees else AutoTokenizer.from_pretrained(**source)
        self._tokenizer: Any = getattr(self._processor, "tokenizer", self._processor)
        self._tokenizer.padding_side = "left"
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        text_config = config.get_text_config()
        window = int(getattr(text_config, "max_position_embeddings", 1 << 20))
        room = window - self._settings.max_new_tokens
        if room < 1:
            raise ValueError(f"max_new_tokens={self._settings.max_new_tokens}, but the model's window is {window}")
        self._longest_prompt = min(room, self._settings.max_prompt_tokens or room)
        ends = self._model.generation_config.eos_token_id
        known = ends if isinstance(ends, list) else [ends]
        self._ends = sorted({end for end in [*known, self._tokenizer.eos_token_id] if end is not None})

    def _render(self, messages: Sequence[Message]) -> str:
        switch = {} if self._settings.thinking is None else {"enable_thinking": self._settings.thinking}
        (text,) = render_chats(self._processor, [[_for_template(message) for message in messages]], True, **switch)
        return text

    def _encode(self, prompts: Sequence[str], conversations: Sequence[Sequence[Message]]) -> Any:
        if not self._sees:
            return self._tokenizer(list(prompts), padding=True, add_special_tokens=False, return_tensors="pt")
        # One list per prompt: some processors refuse a flat list where prompts are several.
        images = [_images(messages) for messages in conversations]
        return self._processor(
            text=list(prompts),
            images=images if any(images) else None,
            padding=True,
            add_special_tokens=False,
            return_tensors="pt",
        )

    def _generate(self, prompts: Sequence[str], requests: Sequence[Request]) -> list[Reply]:
        import torch
        from transformers import GenerationConfig, LogitsProcessorList

        from .sampling import SeededSampler

        inputs = self._encode(prompts, [request.messages for request in requests]).to(self._model.device)
        processors = LogitsProcessorList()
        if self._settings.temperature > 0:
            seeds = [(request.task.seed or 0, request.turn) for request in requests]
            device = self._model.device
            processors.append(SeededSampler(seeds, self._settings.temperature, self._settings.top_p, device))
        settings = GenerationConfig(
            max_new_tokens=self._settings.max_new_tokens,
            do_sample=False,
            eos_token_id=self._ends,
            pad_token_id=self._tokenizer.pad_token_id,
        )
        with torch.inference_mode():
            output = self._model.generate(**inputs, generation_config=settings, logits_processor=processors)
        width = inputs["input_ids"].shape[1]
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        rows = output[:, width:].tolist()
        # Some templates open the thinking block in the prompt; the reply is to be whole.
        begins = ["<think>" if prompt.rstrip().endswith("<think>") else "" for prompt in prompts]
        return [self._reply(*parts) for parts in zip(rows, lengths, begins, strict=True)]

    def _reply(self, row: list[int], prompt_tokens: int, begin: str) -> Reply:
        stop = next((place for place, token in enumerate(row) if token in self._ends), None)
        kept = row if stop is None else row[:stop]
        text = begin + self._tokenizer.decode(kept, skip_special_tokens=True)
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": len(kept) + (stop is not None)}
        return Reply(text, {"usage": usage, "finish_reason": "length" if stop is None else "stop"})


def _for_template(message: Message) -> Message:
    """The message as chat templates expect it: pictures as placeholders."""
    content = message["content"]
    if isinstance(content, str):
        return message
    return {**message, "content": [{"type": "image"} if part["type"] == "image" else part for part in content]}


def _images(messages: Sequence[Message]) -> list[Any]:
    from PIL import Image

    found = []
    for message in messages:
        if isinstance(message["content"], str):
            continue
        for part in message["content"]:
            if part["type"] == "image":
                image = part["image"]
                found.append(image if isinstance(image, Image.Image) else Image.fromarray(image))
    return found


def _find_source(name: str) -> dict[str, str]:
    """Arguments of transformers' ``from_pretrained`` for a folder, a ``.gguf`` file or a name.

    Raises:
        ValueError: For a path with no model behind it.
        DependencyMissing: For a ``.gguf`` file without the package gguf.
    """
    path = Path(name)
    if name.endswith(".gguf"):
        if not path.is_file():
            raise ValueError(f"there is no file {name}")
        require("gguf", "gguf", "a .gguf file")
        return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    if _is_path(name) and not path.is_dir():
        raise ValueError(f"there is no folder {name}")
    if path.exists() and not (path / "config.json").is_file():
        files = sorted(found.name for found in path.glob("*.gguf"))
        raise ValueError(f"{name} holds no config.json" + (f"; it holds {files}, name one of them" if files else ""))
    return {"pretrained_model_name_or_path": name}


def _is_path(name: str) -> bool:
    """Whether a name can only be meant as a path: a hub name is NAME or OWNER/NAME, with no dot or tilde in front."""
    return name.startswith(("/", ".", "~")) or name.count("/") > 1 or "\\" in name or name.endswith("/")
