"""A word world for trainer tests: the goal names the winning word, and a tiny model that can say it."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium as gym
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from seed_envs.base import SeedEnv
from seed_envs.outcomes import Outcome, TaskStatus
from seed_envs.profiles import Profile, PromptTemplate
from seed_envs.wrappers import HistoryWindow, Prompt
from seed_envs.wrappers.actions import ParseAction

warnings.filterwarnings("ignore", category=FutureWarning)
torch.set_num_threads(1)

WORDS = ["red", "green", "blue", "gold"]
VOCABULARY = ["<pad>", "<eos>", "<unk>", "<user>", "<bot>", *WORDS]
VOCABULARY += ["say", "no", "hint", "success", "failure", "unknown", "seen", "did", "turn"]
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'user' %}<user> {{ m['content'] }} "
    "{% else %}<bot> {{ m['content'] }} <eos> {% endif %}{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}"
)
GROWING = Profile(
    "words",
    PromptTemplate(first="{observation} {skill}", turn="{observation}", skill_block="hint {skill}"),
    history=0,
    style="growing",
    max_steps=3,
)
WINDOW = Profile(
    "words-window",
    PromptTemplate(
        first="{observation} {skill}",
        turn="say {goal} {skill} {history} {observation}",
        skill_block="hint {skill}",
        history_item="seen {observation} did {action}",
        history_separator=" ",
    ),
    history=2,
    max_steps=3,
)


class WordEnv(SeedEnv[str]):
    """Say the goal word within three turns.

    Args:
        split: Where tasks are drawn from.
        typed: Make every word its own task type, so that a library of advice by type can know the winning word.
    """

    name: ClassVar[str] = "words"
    splits: ClassVar[tuple[str, ...]] = ("train", "test")

    def __init__(self, split: str = "train", typed: bool = False) -> None:
        super().__init__(split=split)
        self.word, self.won, self.typed = "red", False, typed

    def task_ids(self, split: str) -> Sequence[str]:
        return WORDS

    def _begin(self, task_id: str, options: dict[str, Any]) -> str:
        self.word, self.won = task_id, False
        return f"say {task_id}"

    def _act(self, action: str) -> Outcome:
        self.won = action == self.word
        known = action in WORDS
        reason = "" if known else "not a word of this world"
        return Outcome("no", float(self.won), terminated=self.won, action_valid=known, invalid_reason=reason)

    def _status(self) -> TaskStatus:
        return TaskStatus(self.word if self.typed else "say", self.word, self.won, float(self.won))

    def oracle_action(self) -> str:
        return self.word

    def get_state(self) -> Any:
        return (self.word, self.won)

    def set_state(self, state: Any) -> None:
        self.word, self.won = state


def make_word_env(profile: Profile = GROWING, turns: int = 3, typed: bool = False) -> gym.Env[Any, str]:
    """Build the agent stack around the word world."""
    env: gym.Env[Any, Any] = gym.wrappers.TimeLimit(WordEnv(typed=typed), max_episode_steps=turns)
    return Prompt(HistoryWindow(ParseAction(env, profile.action_format), profile.history), profile, turns)


def word_tokenizer() -> PreTrainedTokenizerFast:
    """Build a word-level tokenizer with a chat template."""
    inner = Tokenizer(models.WordLevel({word: index for index, word in enumerate(VOCABULARY)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # type: ignore[assignment]
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
    )


def small_model() -> LlamaForCausalLM:
    """Build an untaught model of 20,000 parameters, always the same."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


def teach_model(model: LlamaForCausalLM, steps: int = 300, misleading: bool = False) -> None:
    """Teach the model to answer with random words without a hint, with the hinted word, and to write hints.

    Args:
        model: Taught in place.
        steps: Batches of 32 conversations.
        misleading: Hint any word, not always the goal's: the model then reads the hint and never looks at the goal.
    """
    tokenizer, chooser = word_tokenizer(), random.Random(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 3e-3 * (1 - step / steps)
        prompts, answers = [], []
        for _ in range(32):
            goal, kind = chooser.choice(WORDS), chooser.randrange(3)
            said = chooser.choice(WORDS)
            hinted = chooser.choice(WORDS) if misleading else goal
            first = f"<user> say {goal} {f'hint {hinted}' if kind == 1 else ''} <bot>"
            if kind == 2:
                first += f" {said} <eos> <user> {'success' if said == goal else 'failure'} <bot>"
            elif chooser.random() < 0.5:
                first += f" {said} <eos> <user> no <bot>"
            prompts.append(first)
            answers.append(f"{[said, hinted, goal][kind]} <eos>")
        full = tokenizer([f"{p} {a}" for p, a in zip(prompts, answers, strict=True)], return_tensors="pt", padding=True)
        labels = full["input_ids"].clone()
        labels[:, :-2] = -100
        loss = model(input_ids=full["input_ids"], attention_mask=full["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
