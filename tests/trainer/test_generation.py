"""The cached sampler against plain scoring, and the decoding rules."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM
from word_world import word_tokenizer

from seed_trainer.acting.caches import GrowableLayer, make_cache
from seed_trainer.acting.generation import CachedSampler
from seed_trainer.acting.picking import pick_tokens
from seed_trainer.acting.sampling import Decoding, EngineSampler


@pytest.fixture(scope="module")
def model(model_path: str) -> LlamaForCausalLM:
    return LlamaForCausalLM.from_pretrained(model_path).eval()


def sampler(model: Any, seed: int = 0) -> CachedSampler:
    generator = torch.Generator().manual_seed(seed)
    return CachedSampler(lambda: nullcontext(model), [1], 0, torch.device("cpu"), generator)


def encode(*texts: str) -> list[list[int]]:
    return [list(ids) for ids in word_tokenizer()(list(texts), add_special_tokens=False)["input_ids"]]


def score(model: Any, context: list[int], ids: list[int]) -> list[float]:
    logits = model(input_ids=torch.tensor([context + ids])).logits[0, len(context) - 1 : -1]
    return torch.log_softmax(logits, -1).gather(-1, torch.tensor(ids)[:, None]).squeeze(-1).tolist()


def test_greedy_equals_generate_of_transformers(model: LlamaForCausalLM) -> None:
    contexts = encode("<user> say red <bot>", "<user> say blue hint gold gold gold <bot>", "<bot>")
    ours = sampler(model).sample("abc", contexts, Decoding(6, temperature=0))
    for context, sampled in zip(contexts, ours, strict=True):
        output = model.generate(
            input_ids=torch.tensor([context]), max_new_tokens=6, do_sample=False, eos_token_id=1, pad_token_id=0
        )
        assert sampled.ids == output[0, len(context) :].tolist()


def test_log_probabilities_are_those_of_a_plain_forward(model: LlamaForCausalLM) -> None:
    contexts = encode("<user> say red <bot>", "<user> say blue hint gold gold gold <bot>")
    for context, sampled in zip(contexts, sampler(model).sample("ab", contexts, Decoding(5)), strict=True):
        assert sampled.logprobs == pytest.approx(score(model, context, sampled.ids), abs=1e-5)


def test_cache_kept_across_turns_equals_a_fresh_prefill(model: LlamaForCausalLM) -> None:
    cached = sampler(model, 1)
    contexts = encode("<user> say red <bot>", "<user> say blue hint gold <bot>", "<user> say gold <bot>")
    keys = ["a", "b", "c"]
    for turn in range(4):
        results = cached.sample(keys, contexts, Decoding(4))
        for context, sampled in zip(contexts, results, strict=True):
            assert sampled.logprobs == pytest.approx(score(model, context, sampled.ids), abs=1e-5)
        later = encode("<user> no no no <bot>", "<user> no <bot>", "<user> <bot>")
        contexts = [c + s.ids + extra for c, s, extra in zip(contexts, results, later, strict=False)]
        if turn == 1:  # an episode ends, the others keep their cache in another order
            keys, contexts = ["c", "a"], [contexts[2], contexts[0]]
    assert cached._state is not None and cached._state.keys == ["c", "a"]


def test_rewritten_context_is_not_served_from_the_cache(model: LlamaForCausalLM) -> None:
    cached = sampler(model, 2)
    first, other = encode("<user> say red <bot>", "<user> say blue no no <bot>")
    cached.sample(["a"], [first], Decoding(2))
    (sampled,) = cached.sample(["a"], [other], Decoding(4))
    assert sampled.logprobs == pytest.approx(score(model, other, sampled.ids), abs=1e-5)


def test_sampling_repeats_with_the_seed(model: LlamaForCausalLM) -> None:
    contexts = encode("<user> say red <bot>") * 8
    first, again, other = (
        [s.ids for s in sampler(model, seed).sample(range(8), contexts, Decoding(4))] for seed in (5, 5, 6)
    )
    assert first == again and first != other


def test_reply_stops_at_the_end_token_and_at_the_limit(model: LlamaForCausalLM) -> None:
    for sampled in sampler(model, 3).sample(range(16), encode("<user> say red <bot>") * 16, Decoding(3)):
        assert 1 not in sampled.ids[:-1] and (sampled.ids[-1] == 1 or len(sampled.ids) == 3)


def test_growable_layer_equals_concatenation() -> None:
    layer, parts = GrowableLayer(), []
    for width in (5, 1, 1, 90, 1):
        part = torch.randn(3, 2, width, 4)
        parts.append(part)
        keys, values = layer.update(part, part + 1)
        torch.testing.assert_close(keys, torch.cat(parts, dim=2))
        torch.testing.assert_close(values, keys + 1)
    layer.batch_select_indices(torch.tensor([2, 0]))
    torch.testing.assert_close(layer.keys, torch.cat(parts, dim=2)[[2, 0]])
    assert layer.get_seq_length() == 98


def test_every_layer_of_a_full_attention_model_can_grow(model: LlamaForCausalLM) -> None:
    assert {type(layer) for layer in make_cache(model.config).layers} == {GrowableLayer}


def test_top_k_and_top_p_keep_only_likely_tokens() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().repeat(200, 1)
    generator = torch.Generator().manual_seed(0)
    ids, logps = pick_tokens(logits, Decoding(1, top_k=2), generator)
    assert set(ids.tolist()) == {0, 1}
    assert logps[ids == 0][0].exp() == pytest.approx(0.5 / 0.8, abs=1e-6)
    assert set(pick_tokens(logits, Decoding(1, top_p=0.6), generator)[0].tolist()) == {0, 1}
    assert set(pick_tokens(logits, Decoding(1, top_p=0.4), generator)[0].tolist()) == {0}


def test_the_nucleus_is_the_smallest_set_that_reaches_top_p() -> None:
    probabilities = torch.tensor([0.05, 0.5, 0.15, 0.3])
    logits, generator = probabilities.log().repeat(400, 1), torch.Generator().manual_seed(0)
    for top_p, kept in ((0.49, {1}), (0.51, {1, 3}), (0.79, {1, 3}), (0.81, {1, 2, 3}), (0.94, {1, 2, 3})):
        ids, logps = pick_tokens(logits, Decoding(1, top_p=top_p), generator)
        assert set(ids.tolist()) == kept
        shares = probabilities[sorted(kept)] / probabilities[sorted(kept)].sum()
        for token, share in zip(sorted(kept), shares, strict=True):
            assert logps[ids == token][0].exp() == pytest.approx(float(share), abs=1e-6)


def test_cached_sampler_of_a_text_model_refuses_pictures(model: LlamaForCausalLM) -> None:
    with pytest.raises(ValueError, match="vision-language model"):
        sampler(model).sample(["a"], [[3]], Decoding(1), [["picture"]])


@pytest.mark.parametrize(
    "decoding", [Decoding(1), Decoding(1, temperature=0.0), Decoding(1, top_k=1), Decoding(1, top_p=0.1)]
)
def test_a_placeholder_is_never_picked_and_scored_tokens_keep_its_weight(decoding: Decoding) -> None:
    logits = torch.tensor([[9.0, 2.0, 1.0], [0.0, 5.0, 1.0]])
    ids, logps = pick_tokens(logits, decoding, torch.Generator().manual_seed(0), [0])
    assert 0 not in ids.tolist()
    if decoding.top_p == 1.0 and not decoding.top_k:
        torch.testing.assert_close(logps, logits.log_softmax(-1).gather(1, ids[:, None])[:, 0])


def test_engine_sampler_passes_log_probabilities_through() -> None:
    engine = EngineSampler(lambda contexts, images, decoding: ([[7, 1]], [[-0.5, -0.1]]))
    (sampled,) = engine.sample(["a"], [[3]], Decoding(2))
    assert sampled.ids == [7, 1] and sampled.logprobs == [-0.5, -0.1]
