"""GRPO with TRL's own trainer on games that a server plays: strings cross the wire, tokens stay here.

Start the server, which may run on another machine:
    seed-serve seed/ALFWorld-v0 --profile compact
Then run (half a minute on a CPU): python examples/10_train_over_a_server.py http://127.0.0.1:8000 NEW_FOLDER
"""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from seed_envs.serving.client import SeedClient
from seed_envs.serving.models import SeedAction
from seed_trainer.commands.building import resolve_model

TURNS = 8


class Rollouts:
    """TRL's ``rollout_func``: one episode for each prompt, which holds the number of a task.

    Args:
        address: Address of the environment on the server.
    """

    def __init__(self, address: str) -> None:
        self._env = SeedClient(address).sync()

    def __call__(self, prompts: list[Any], trainer: GRPOTrainer) -> dict[str, list[Any]]:
        """Play; the environment's words are in the completion and masked out of the loss."""
        episodes = [self._play(int(prompt[0]["content"]), trainer) for prompt in prompts]
        return {key: [episode[key] for episode in episodes] for key in episodes[0]}

    def _play(self, task: int, trainer: GRPOTrainer) -> dict[str, Any]:
        tokenizer: Any = trainer.processing_class
        result = self._env.reset(split="compact_train", index=task)
        accepted = 0
        messages: list[dict[str, str]] = []
        prompt: list[int] = []
        ids: list[int] = []
        logprobs: list[float] = []
        mask: list[int] = []
        for turn in range(TURNS):
            messages.append({"role": "user", "content": result.observation.prompt})
            seen = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
            if turn == 0:
                prompt = seen
            if seen[: len(prompt) + len(ids)] != prompt + ids:
                raise ValueError("the chat template writes earlier turns anew; training needs one that only appends")
            new = seen[len(prompt) + len(ids) :]
            ids, logprobs, mask = ids + new, logprobs + [0.0] * len(new), mask + [0] * len(new)
            written, scores = _write(trainer.model, prompt + ids, tokenizer.eos_token_id)
            ids, logprobs, mask = ids + written, logprobs + scores, mask + [1] * len(written)
            reply = tokenizer.decode(written, skip_special_tokens=True)
            messages.append({"role": "assistant", "content": reply.strip()})
            result = self._env.step(SeedAction(text=reply))
            accepted += result.observation.action_valid
            if result.done:
                break
        score = result.observation.score + accepted / TURNS
        return {"prompt_ids": prompt, "completion_ids": ids, "logprobs": logprobs, "env_mask": mask, "score": score}


def _write(model: Any, ids: list[int], end: int) -> tuple[list[int], list[float]]:
    """Sample a reply of at most 8 tokens, with the log-probability of each."""
    given = torch.tensor([ids])
    with torch.no_grad():
        made = model.generate(
            given, attention_mask=torch.ones_like(given), do_sample=True, max_new_tokens=8, eos_token_id=end,
            pad_token_id=end, output_logits=True, return_dict_in_generate=True,
        )  # fmt: skip
    written = made.sequences[0, len(ids) :].tolist()
    scores = [logits[0].log_softmax(-1)[token].item() for logits, token in zip(made.logits, written, strict=True)]
    return written, scores


def reward(completions: list[Any], score: list[float], **rest: Any) -> list[float | None]:
    """What the episodes were worth."""
    return list(score)


def main() -> None:
    """Train two steps and print what was measured."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    address, folder = sys.argv[1:]
    config = GRPOConfig(
        output_dir=folder, max_steps=2, num_generations=4, per_device_train_batch_size=4, logging_steps=1,
        learning_rate=1e-4, use_cpu=True, bf16=False, report_to=[], disable_tqdm=True, save_strategy="no",
    )  # fmt: skip
    tasks = Dataset.from_list([{"prompt": [{"role": "user", "content": str(index)}]} for index in range(8)])
    model = resolve_model("builtin/alfworld-tiny")
    rollouts = Rollouts(f"{address}/seed/ALFWorld-v0")
    trainer = GRPOTrainer(model, reward, args=config, train_dataset=tasks, rollout_func=rollouts)
    trainer.train()
    for record in trainer.state.log_history[:2]:
        print(f"step {record['step']}: reward {record['reward']:.2f}, gradient {record['grad_norm']:.2f}")


if __name__ == "__main__":
    main()
