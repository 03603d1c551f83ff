"""The transformers agent on tiny random models made here: batches, chat template, seeds, overflow, pictures."""

# ruff: noqa: E402

from __future__ import annotations

import json

import numpy as np
import pytest
from ladder_env import PROFILES, suite_record

torch = pytest.importorskip("torch", reason="packages: the agent needs torch")
transformers = pytest.importorskip("transformers", reason="packages: the agent needs transformers")

from published_layouts import CONVERSATIONS, COUNTS, NEEDS, PICTURES, REPOSITORIES, readable, write_repository

from seed_benchmarks.agents.sampling import SeededSampler, keep_nucleus
from seed_benchmarks.agents.transformers_model import TransformersAgent
from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.errors import UnknownAgent
from seed_benchmarks.records import read_transcripts
from seed_benchmarks.runner import start_run
from seed_benchmarks.suite import Suite
from seed_envs.errors import DependencyMissing
from seed_envs.profiles import TurnContext
from seed_envs.rollout import Request
from seed_envs.tasks import TaskSpec
from seed_envs.trajectory import StopReason

WORDS = (
    "up red green blue Task : Reach the top . You stand below ladder The next rung is Actions climb fall Step Before"
)
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|> {% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{% if p.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %} <|end|> {% endfor %}"
    "{% if add_generation_prompt %}<|assistant|> {% if enable_thinking is defined and enable_thinking %}<think>"
    "{% endif %}{% endif %}"
)
SPECIALS = ["<|end|>", "<|pad|>", "<unk>", "<|user|>", "<|assistant|>", "<|system|>"]
VISION = ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>", "<|video_pad|>"]


def make_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = [*SPECIALS, *VISION, "<think>", *WORDS.split(), *(chr(code) for code in range(33, 127))]
    core = Tokenizer(models.WordLevel({word: number for number, word in enumerate(dict.fromkeys(words))}, "<unk>"))
    core.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|end|>", pad_token="<|pad|>", unk_token="<unk>", chat_template=TEMPLATE
    )
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIALS[3:] + VISION})
    return tokenizer


@pytest.fixture(scope="module")
def text_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=256, eos_token_id=0, pad_token_id=1, bos_token_id=None,
        initializer_range=0.5,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def request(text, number=0, turn=0, image=None):
    content = text if image is None else [{"type": "image", "image": image}, {"type": "text", "text": text}]
    messages = [{"role": "user", "content": content}]
    return Request(number, turn, messages, TurnContext("", ""), TaskSpec("task", seed=number), lambda method: None)


def make(folder, **options):
    settings = AgentSettings(f"hf:{folder}", **{"max_new_tokens": 12, "device": "cpu", **options})
    return TransformersAgent(settings, str(folder), PROFILES["paper"])


PROMPTS = ["red", "You stand below the ladder . The next rung is green .", "up up up", "Task : climb the ladder"]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_reply_does_not_depend_on_its_batch(text_model, temperature):
    agent = make(text_model, temperature=temperature)
    requests = [request(text, number) for number, text in enumerate(PROMPTS)]
    together = [reply.text for reply in agent.act(requests)]
    alone = [agent.act([one])[0].text for one in requests]
    backwards = [reply.text for reply in agent.act(requests[::-1])][::-1]
    assert together == alone == backwards
    assert len(set(together)) > 1


def test_greedy_replies_equal_plain_generation(text_model):
    (reply,) = make(text_model, temperature=0.0).act([request(PROMPTS[1])])
    tokenizer = transformers.AutoTokenizer.from_pretrained(text_model)
    model = transformers.AutoModelForCausalLM.from_pretrained(text_model)
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPTS[1]}], tokenize=False, add_generation_prompt=True
    )
    inputs = tokenizer(text, return_tensors="pt", add_special_tokens=False)
    output = model.generate(**inputs, max_new_tokens=12, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    assert reply.text == tokenizer.decode(output, skip_special_tokens=True)
    assert reply.meta["usage"] == {"prompt_tokens": inputs["input_ids"].shape[1], "completion_tokens": len(output)}


def test_seeds_turns_and_temperature_change_what_is_said(text_model):
    agent = make(text_model, temperature=1.0)
    said = {agent.act([request("red", number, turn)])[0].text for number in range(3) for turn in range(3)}
    assert len(said) >= 8
    assert agent.act([request("red", 1, 1)])[0].text == agent.act([request("red", 1, 1)])[0].text


def test_the_sampler_draws_from_the_softmax():
    scores = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).repeat(20_000, 1)
    sampler = SeededSampler([(0, row) for row in range(20_000)], 0.7, 1.0, torch.device("cpu"))
    drawn = sampler(None, scores).argmax(dim=-1)
    found = torch.bincount(drawn, minlength=4) / 20_000
    assert torch.allclose(found, (scores[0] / 0.7).softmax(dim=-1), atol=0.012)


def test_the_nucleus_keeps_the_smallest_sufficient_set():
    scores = torch.log(torch.tensor([[0.1, 0.5, 0.15, 0.25]]))
    kept = torch.isfinite(keep_nucleus(scores, 0.7))
    assert kept.tolist() == [[False, True, False, True]]
    assert torch.isfinite(keep_nucleus(scores, 0.5)).tolist() == [[False, True, False, False]]
    for top_p, kept in ((0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (0.89, 3), (0.91, 4)):
        assert int(torch.isfinite(keep_nucleus(scores, top_p)).sum()) == kept, top_p


def test_a_prompt_that_does_not_fit_ends_its_episode_alone(text_model):
    agent = make(text_model, max_prompt_tokens=30)
    long, short = agent.act([request("red " * 40), request("red")])
    assert long.stop_reason is StopReason.CONTEXT_OVERFLOW
    assert long.error is not None and "at most 30" in long.error.message
    assert short.error is None


def test_the_thinking_switch_reaches_the_template(text_model):
    assert make(text_model, thinking=True).act([request("red")])[0].text.startswith("<think>")
    assert not make(text_model).act([request("red")])[0].text.startswith("<think>")


def test_a_whole_run_is_the_same_in_any_batch(text_model, tmp_path):
    found = []
    for size in (1, 7):
        settings = AgentSettings(f"hf:{text_model}", temperature=1.0, max_new_tokens=6, device="cpu")
        run = RunConfig(Suite.from_json(suite_record()), settings, batch_size=size, limit=8, max_steps=3)
        result = start_run(run, tmp_path / str(size))
        assert result.outcome == "complete"
        episodes = read_transcripts(tmp_path / str(size) / "episodes.jsonl")
        found.append({record.key: [step["reply"] for step in transcript["steps"]] for record, transcript in episodes})
    assert found[0] == found[1]
    saved = json.loads((tmp_path / "7" / "config.json").read_text())["agent"]
    assert saved["class"] == "LlamaForCausalLM" and saved["parameters"] > 1000


def test_models_that_cannot_be_used_are_explained(tmp_path, text_model):
    with pytest.raises(UnknownAgent, match=r"no config\.json"):
        make(tmp_path)
    with pytest.raises(UnknownAgent, match="window is 256"):
        make(text_model, max_new_tokens=256)


def write_gguf(path):
    """A tiny llama with one letter a token, in one file."""
    gguf = pytest.importorskip("gguf", reason="packages: models in one file need gguf")
    letters = [chr(code) for code in (*range(33, 127), *range(161, 256), 0x120, 0x10A)]
    letters.append("ab")
    tokens = [*letters, "<|im_start|>", "<|im_end|>"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(32)
    writer.add_block_count(1)
    writer.add_feed_forward_length(48)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(16)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(letters) + [3, 3])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(len(letters))
    writer.add_eos_token_id(len(letters) + 1)
    writer.add_chat_template(TEMPLATE)
    draw = np.random.default_rng(0)
    shapes = {"token_embd": (len(tokens), 32), "blk.0.ffn_gate": (48, 32), "blk.0.ffn_up": (48, 32)}
    shapes |= {f"blk.0.attn_{name}": (32, 32) for name in ("q", "k", "v", "output")} | {"blk.0.ffn_down": (32, 48)}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", draw.normal(0, 0.5, shape).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_model_in_one_file_is_loaded_and_named(tmp_path):
    write_gguf(tmp_path / "tiny.gguf")
    agent = make(tmp_path / "tiny.gguf", temperature=0.0)
    one, other = agent.act([request("red"), request("green")])
    assert one.error is None and one.meta["usage"]["completion_tokens"] > 0
    assert one.text != other.text
    assert agent.describe()["class"] == "LlamaForCausalLM"
    with pytest.raises(UnknownAgent, match=r"it holds \['tiny.gguf'\], name one of them"):
        make(tmp_path)
    with pytest.raises(UnknownAgent, match=r"there is no file .*none\.gguf"):
        make(tmp_path / "none.gguf")


@pytest.fixture(scope="module")
def vision_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vision")
    tokenizer = make_tokenizer()
    number = tokenizer.convert_tokens_to_ids
    torch.manual_seed(0)
    config = transformers.Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 512, "eos_token_id": 0,
            "pad_token_id": 1, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}, "initializer_range": 0.5,
        },
        vision_config={
            "depth": 1, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 32,
            "fullatt_block_indexes": [0],
        },
        image_token_id=number("<|image_pad|>"), video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"), vision_end_token_id=number("<|vision_end|>"),
    )  # fmt: skip
    transformers.Qwen2_5_VLForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    sizes = {"min_pixels": 28 * 28, "max_pixels": 28 * 28 * 16}
    transformers.Qwen2VLImageProcessorPil(**sizes).save_pretrained(folder)
    return folder


def test_pictures_reach_a_vision_model(vision_model):
    agent = make(vision_model, temperature=0.0)
    dark, bright = (np.full((56, 56, 3), value, np.uint8) for value in (10, 240))
    replies = agent.act([request("red", image=dark), request("red", image=bright), request("no picture")])
    assert [reply.error for reply in replies] == [None] * 3
    assert replies[0].text != replies[1].text
    assert replies[0].text == agent.act([request("red", image=dark)])[0].text
    assert replies[0].meta["usage"]["prompt_tokens"] == replies[1].meta["usage"]["prompt_tokens"]


@pytest.mark.parametrize(
    ("thinking", "ending"), [(True, "<|im_start|>assistant\n"), (False, "<think>\n\n</think>\n\n")]
)
def test_the_real_qwen3_template_obeys_the_switch(tmp_path, data_dir, thinking, ending):
    source = data_dir / "tokenizers" / "qwen3"
    if not source.is_dir():
        pytest.skip("real data: tokenizers/qwen3 is not there")
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    tokenizer.save_pretrained(tmp_path)
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=512,
    )  # fmt: skip
    transformers.Qwen3ForCausalLM(config).save_pretrained(tmp_path)
    agent = make(tmp_path, thinking=False, max_new_tokens=4)
    prompt = agent._render([{"role": "user", "content": "Go left."}])
    assert prompt.endswith("<think>\n\n</think>\n\n")
    (reply,) = agent.act([request("Go left.")])
    assert reply.error is None
    assert reply.meta["usage"]["prompt_tokens"] == len(tokenizer(prompt, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize("name", REPOSITORIES)
def test_published_layouts_are_read_as_auto_processor_reads_them(tmp_path, name):
    """A batch of two pictures; the counts are those of the trainer's reading too."""
    folder = write_repository(name, tmp_path)
    if not readable(name):
        with pytest.raises(DependencyMissing, match=f"pip install {NEEDS[name]}"):
            make(folder)
        return
    agent = make(folder, temperature=0.0, max_new_tokens=2)
    count = agent.contestant(print).count_tokens
    assert tuple(map(count, CONVERSATIONS)) == COUNTS[name]
    requests = [request("Which way?", number, image=picture) for number, picture in enumerate(PICTURES)]
    replies = agent.act(requests)
    assert [reply.meta["usage"]["prompt_tokens"] for reply in replies] == list(COUNTS[name])
