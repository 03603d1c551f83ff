"""The embedded policy's words: whole vocabulary, stable conversations, saved and loaded like any tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="packages: needs transformers")

from transformers import AutoTokenizer

from seed_envs.alfworld.generator import compact, tables
from seed_envs.alfworld.texts import HELP
from seed_trainer.acting.encoding import ChatEncoder
from seed_trainer.tiny.corpus import SampleEncoder
from seed_trainer.tiny.tokenizer import build_tokenizer
from seed_trainer.tiny.words import END, OBJECTS, PHRASES, RECEPTACLES, UNKNOWN, vocabulary

CONVERSATION = [
    {
        "role": "user",
        "content": "Your task is to: put a clean mug in shelf.\ngo to desk 1, take mug 1\nYou are in a room.",
    },
    {"role": "assistant", "content": "go to desk 1"},
    {"role": "user", "content": "You arrive at desk 1. On the desk 1, you see a mug 1, and a pen 2."},
]


def test_every_word_of_the_compact_preset_is_known() -> None:
    tokenizer = build_tokenizer()
    in_phrases = {word for phrase in PHRASES for word in phrase.split()}
    # The long answer to "help" is the one text of the game that nobody is taught to read.
    unread = set(compact.words(HELP))
    for word in compact.vocabulary():
        if word.isalnum() and word not in in_phrases | unread:
            assert UNKNOWN not in tokenizer.tokenize(word), word


def test_every_kind_of_thing_of_the_game_is_a_word() -> None:
    assert set(tables.PICKUPABLE) <= set(OBJECTS)
    assert set(tables.CAN_CONTAIN) <= set(RECEPTACLES)


def test_names_and_phrases_are_single_tokens_and_articles_vanish() -> None:
    tokenizer = build_tokenizer()
    assert tokenizer.tokenize("You arrive at cabinet 1. On the cabinet 1, you see a mug 1, and a plate 12.") == [
        "you arrive at",
        "cabinet 1",
        "on the",
        "cabinet 1",
        "you see",
        "mug 1",
        "plate",
        "12",
    ]
    assert tokenizer.tokenize("take toiletpaper 2 from toiletpaperhanger 1")[1::2] == [
        "toiletpaper 2",
        "toiletpaperhanger 1",
    ]


def test_a_decoded_command_is_the_command() -> None:
    tokenizer = build_tokenizer()
    for command in ("go to drawer 12", "take mug 1 from cabinet 3", "heat apple 1 with microwave 1", "use desklamp 1"):
        ids = tokenizer(command + END, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids, skip_special_tokens=True) == command


def test_unknown_words_and_typed_markers_stay_harmless() -> None:
    tokenizer = build_tokenizer()
    assert tokenizer.tokenize("put the gizmo in shelf") == ["put", UNKNOWN, "in", "shelf"]
    assert len(set(vocabulary())) == len(vocabulary()) == len(tokenizer)


def test_saved_and_loaded_by_auto_tokenizer_it_is_the_same(tmp_path: Path) -> None:
    tokenizer = build_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    for add in (True, False):
        texts = [
            t.apply_chat_template(CONVERSATION, add_generation_prompt=add, tokenize=False) for t in (tokenizer, loaded)
        ]
        assert texts[0] == texts[1]
        assert tokenizer(texts[0])["input_ids"] == loaded(texts[1])["input_ids"]
    assert (loaded.eos_token, loaded.padding_side) == (END, "left")


def test_a_conversation_grows_token_by_token_and_equals_the_pretraining_encoding() -> None:
    tokenizer = build_tokenizer()
    encoder = ChatEncoder(tokenizer, tokenizer)
    first = encoder.prompts([CONVERSATION[:1]])[0]
    reply = tokenizer("go to desk 1" + END, add_special_tokens=False)["input_ids"]
    grown = first + reply + encoder.continuations([CONVERSATION[2:]])[0]
    assert grown == encoder.prompts([CONVERSATION])[0]
    answered = [*CONVERSATION, {"role": "assistant", "content": "take mug 1 from desk 1"}]
    sample = SampleEncoder(tokenizer).encode(answered, [True] * 4)
    assert sample.ids[: len(grown)] == grown
    assert [token for token, train in zip(sample.ids, sample.learned, strict=True) if train] == [
        *reply,
        *tokenizer("take mug 1 from desk 1" + END, add_special_tokens=False)["input_ids"],
    ]
