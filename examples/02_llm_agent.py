"""A language model plays one episode through the shared loop.

Run: python examples/02_llm_agent.py PATH_OR_HUB_ID [ENV_ID [PROFILE]]
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from typing import Any

from seed_envs import EnvPool, Reply, Request, TaskSpec, get_profile, make_agent_env
from seed_envs.rollout import rollout


class TransformersPolicy:
    """The plainest possible policy: one generate call per batch."""

    def __init__(self, model: str) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
        self.model = AutoModelForCausalLM.from_pretrained(model).eval()

    def __call__(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer every request."""
        chats = [request.messages for request in requests]
        batch: Any = self.tokenizer.apply_chat_template(
            chats, add_generation_prompt=True, return_tensors="pt", return_dict=True, padding=True
        )
        output = self.model.generate(**batch, max_new_tokens=128, do_sample=False)
        texts = self.tokenizer.batch_decode(output[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
        return [Reply(text) for text in texts]


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="folder or hub name")
    parser.add_argument("env_id", nargs="?", default="seed/ALFWorld-v0")
    parser.add_argument("profile", nargs="?", default="paper")
    args = parser.parse_args()
    profile = get_profile(args.env_id, args.profile)
    policy = TransformersPolicy(args.model)
    with EnvPool(functools.partial(make_agent_env, args.env_id, profile, max_steps=5), size=1) as pool:
        (episode,) = rollout(pool, policy, [TaskSpec(seed=0)], env_id=args.env_id, profile=profile)
    for step in episode.steps:
        print(f"{step.observation}\n> {step.action}   (valid: {step.action_valid} {step.invalid_reason})\n")
    print(f"{episode.stop_reason.value}, success {episode.success}")


if __name__ == "__main__":
    main()
