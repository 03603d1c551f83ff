"""From chat requests to token records: exact ids, history cut in both branches, overflow, and H in its place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pytest
from word_world import GROWING, WINDOW, make_word_env, word_tokenizer

from seed_envs.rollout import rollout
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import StopReason, Trajectory
from seed_envs.vector import EnvPool
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.acting.rollout import Layout, TokenPolicy, as_growing, tokens_of
from seed_trainer.acting.sampling import Decoding, Sampled
from seed_trainer.learning.batches import (
    add_step_teacher_prompts,
    add_teacher_prompts,
    build_rows,
    filler_target,
    with_fillers,
)

TOKENIZER = word_tokenizer()
ENCODER = ChatEncoder(TOKENIZER, TOKENIZER)


class Scripted:
    """A sampler that replies with fixed words, one list per turn, with or without an end token."""

    def __init__(self, turns: list[str]) -> None:
        self.turns, self.seen = turns, []  # type: ignore[var-annotated]

    def sample(
        self,
        keys: Sequence[Hashable],
        contexts: Sequence[list[int]],
        decoding: Decoding,
        images: Any = None,
        streams: Any = None,
    ) -> list[Sampled]:
        self.seen.append([list(context) for context in contexts])
        ids = TOKENIZER(self.turns[len(self.seen) - 1], add_special_tokens=False)["input_ids"]
        return [Sampled(list(ids), [-0.5] * len(ids)) for _ in keys]

    def forget(self) -> None:
        pass


def play(profile: Any, turns: list[str], limit: int = 200) -> tuple[Trajectory, Scripted]:
    sampler = Scripted(turns)
    layout: Layout = "episode" if profile.style == "growing" else "turn"
    policy = TokenPolicy(ENCODER, sampler, profile, layout, Decoding(4), limit)
    with EnvPool(lambda: make_word_env(profile), 1) as pool:
        (episode,) = rollout(pool, policy, [TaskSpec("gold")], env_id="words", profile=profile)
    return episode, sampler


def text(ids: list[int]) -> str:
    return str(TOKENIZER.decode(ids))


def test_episode_layout_extends_one_sequence_and_never_encodes_a_reply_again() -> None:
    episode, sampler = play(GROWING, ["red <eos>", "green blue", "gold <eos>"])
    assert [text(context[0]) for context in sampler.seen] == [
        "<user> say gold <bot>",
        "<user> say gold <bot> red <eos> <user> no <bot>",
        "<user> say gold <bot> red <eos> <user> no <bot> green blue <eos> <user> no <bot>",
    ]
    assert [step.action for step in episode.steps] == ["red", "green blue", "gold"]
    (row,) = build_rows([episode], "episode")
    assert text(row.prompt_ids) == "<user> say gold <bot>"
    assert text(row.completion_ids) == "red <eos> <user> no <bot> green blue <eos> <user> no <bot> gold <eos>"
    sampled = [word for word, flag in zip(text(row.completion_ids).split(), row.mask, strict=True) if flag]
    assert sampled == ["red", "<eos>", "green", "blue", "gold", "<eos>"], "a missing end token is added with mask 0"
    assert row.turn_of == [0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert row.logprobs == [-0.5 if flag else 0.0 for flag in row.mask]


def test_episode_row_is_exactly_what_the_policy_read_and_wrote() -> None:
    episode, sampler = play(GROWING, ["red", "green blue", "gold <eos>"])
    (row,) = build_rows([episode], "episode")
    assert row.prompt_ids + row.completion_ids == sampler.seen[-1][0] + tokens_of(episode)[-1].reply_ids


def test_turn_layout_gives_one_row_per_turn_with_all_tokens_sampled() -> None:
    episode, sampler = play(WINDOW, ["red <eos>", "green <eos>", "gold <eos>"])
    rows = build_rows([episode], "turn")
    assert [row.prompt_ids for row in rows] == [context[0] for context in sampler.seen]
    assert [text(row.completion_ids) for row in rows] == ["red <eos>", "green <eos>", "gold <eos>"]
    assert all(set(row.mask) == {1} for row in rows) and [row.step for row in rows] == [0, 1, 2]


@pytest.mark.parametrize("layout", ["turn", "episode"])
def test_rows_carry_images_and_log_probabilities_only_where_there_are_some(layout: Layout) -> None:
    episode, _ = play(GROWING, ["red <eos>", "gold <eos>"])
    first, last = tokens_of(episode)
    assert all(row.images is None and row.logprobs is not None for row in build_rows([episode], layout))
    first.logprobs = None
    picture = {"role": "user", "content": [{"type": "image", "image": "picture"}, {"type": "text", "text": "say"}]}
    last.messages = [picture, picture]
    rows = build_rows([episode], layout)
    assert rows[-1].images == ["picture", "picture"], "of the last prompt, which holds all of them"
    if layout == "turn":
        assert rows[0].images is None and rows[0].logprobs is None and rows[1].logprobs == [-0.5, -0.5]
    else:
        assert rows[0].logprobs is None, "unknown once, unknown for the row"


def test_history_is_cut_alike_for_student_and_teacher_and_never_the_skill() -> None:
    episode, sampler = play(WINDOW, ["red <eos>", "green <eos>", "gold <eos>"], limit=11)
    full, _ = play(WINDOW, ["red <eos>", "green <eos>", "gold <eos>"])
    assert text(tokens_of(full)[2].prompt_ids) == "<user> say gold seen say gold did red seen no did green no <bot>"
    assert text(sampler.seen[2][0]) == "<user> say gold seen no did green no <bot>", "the oldest pair went first"
    rows = build_rows([episode], "turn")
    assert add_teacher_prompts(rows, ["blue blue blue blue"], WINDOW, ENCODER, None) == set()
    assert [text(row.teacher_prompt_ids or []) for row in rows] == [
        "<user> say gold hint blue blue blue blue <bot>",
        "<user> say gold hint blue blue blue blue seen say gold did red no <bot>",
        "<user> say gold hint blue blue blue blue seen no did green no <bot>",
    ]


def test_teacher_prompt_beyond_the_context_disqualifies_the_skill() -> None:
    episode, _ = play(GROWING, ["red <eos>", "gold <eos>"])
    rows = build_rows([episode], "episode")
    assert add_teacher_prompts(rows, ["blue"], GROWING, ENCODER, max_length=8) == {0}
    assert rows[0].teacher_prompt_ids == rows[0].prompt_ids


def test_rows_of_critical_steps_get_a_second_teacher_prompt_where_it_fits() -> None:
    episode, _ = play(WINDOW, ["red <eos>", "gold <eos>"])
    for limit, given in ((None, True), (100, True), (8, True), (7, False)):
        rows = build_rows([episode], "turn")
        add_step_teacher_prompts(rows, [{0: "blue"}], WINDOW, ENCODER, limit)
        assert rows[1].step_teacher_prompt_ids is None
        found = rows[0].step_teacher_prompt_ids
        assert (found and text(found)) == ("<user> say gold hint blue <bot>" if given else None), limit


def test_prompt_that_cannot_fit_ends_the_episode_with_context_overflow() -> None:
    episode, _ = play(GROWING, ["red <eos>", "green <eos>", "gold <eos>"], limit=10)
    assert episode.stop_reason is StopReason.CONTEXT_OVERFLOW and episode.num_steps == 2
    assert episode.error is not None and "max_prompt_length is 10" in episode.error.message


def test_window_profile_becomes_a_growing_conversation() -> None:
    growing = as_growing(WINDOW)
    assert growing.style == "growing" and growing.template.turn == "{observation}"
    assert as_growing(GROWING) is GROWING
    episode, sampler = play(growing, ["red <eos>", "gold <eos>"])
    assert text(sampler.seen[1][0]) == "<user> say gold <bot> red <eos> <user> no <bot>"
    assert episode.success


def test_template_that_rewrites_turns_is_refused_for_growing_conversations() -> None:
    rewriting = "{% for m in messages %}{{ loop.length }} {{ m['content'] }} <eos>{% endfor %}"
    encoder = ChatEncoder(TOKENIZER, TOKENIZER, chat_template=rewriting)
    with pytest.raises(ValueError, match="rollout_layout=turn"):
        encoder.continuations([[{"role": "user", "content": "no"}]])


def test_tokenizer_without_chat_template_is_refused() -> None:
    bare = word_tokenizer()
    bare.chat_template = None
    with pytest.raises(ValueError, match="has no chat template"):
        ChatEncoder(bare, bare)


def test_fillers_are_masked_copies_and_fill_a_common_multiple() -> None:
    assert filler_target([60, 61], 4, 8) == 64
    assert filler_target([10], 4, 6) == 12
    assert filler_target([0], 2, 4) == 4
    episode, _ = play(WINDOW, ["red <eos>", "gold <eos>"])
    rows = with_fillers(build_rows([episode], "turn"), 4)
    assert [row.filler for row in rows] == [False, False, True, True]
    assert rows[2].completion_ids and not any(rows[2].mask)


def test_a_round_without_a_single_token_says_how_its_episodes_ended() -> None:
    episode, _ = play(WINDOW, ["red"], limit=2)
    with pytest.raises(RuntimeError, match="ended by {'context_overflow': 2}, the first with: the prompt has 4 tokens"):
        build_rows([episode, episode], "turn")


class Letters:
    """An encoder whose tokens are single characters."""

    @staticmethod
    def decode(ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))


def test_action_part_begins_with_its_tag() -> None:
    from seed_envs.profiles import ActionFormat
    from seed_trainer.learning.token_kinds import action_start

    encoder: Any = Letters()
    tags = ActionFormat(kind="tags")
    reply = [ord(char) for char in "<think>x</think><action>go</action>"]
    start = action_start(reply, tags, encoder)
    assert Letters.decode(reply[: start + 1]).endswith("<action>") and Letters.decode(reply[start + 1 :]).startswith(
        "go"
    )
    assert action_start([ord("x")] * 3, tags, encoder) == 3
    assert action_start([ord("x")] * 3, ActionFormat(kind="raw"), encoder) == 0
