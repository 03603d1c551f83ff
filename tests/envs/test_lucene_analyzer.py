"""Tokens equal Lucene's: fixed examples, and everything against the real analyzer where Java is installed."""

from __future__ import annotations

import gzip
import json
import random

import pytest
from search_qa_witness import ask_java, require_java

from seed_envs.lucene import analyze
from seed_envs.lucene.porter import stem
from seed_envs.lucene.tokenizer import MAX_TOKEN_UNITS, _scan, _tables, tokenize


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("O’Neil’s mills", "o’neil mill"),
        ("QUILL'S", "quill"),
        ("A's", ""),
        ("'s", "s"),
        ("1,742.5 tons", "1,742.5 ton"),
        ("U.S.A.", "u.s.a"),
        ("e-mail", "e mail"),
        ("AT&T", "t"),
        ("C++", "c"),
        ("rock'n'roll", "rock'n'rol"),
        ("they're", "they'r"),
        ("snake_case", "snake_cas"),
        ("_x_", "_x_"),
        ("_", ""),
        (".5", "5"),
        ("a,b", "b"),
        ("x:y", "x:y"),
        ("1:2", "1 2"),
        ("İstanbul", "istanbul"),
        ("ΟΔΟΣ", "οδοσ"),
        ("Straße", "straße"),
        ("ﬁre", "ﬁre"),
        ("km²", "km"),
        ("Ⅳ", "ⅳ"),
        ("東京タワー", "東 京 タワー"),
        ("😀 smile", "😀 smile"),
        ("generalization apology possibly dying news", "gener apolog possibl dy new"),
        ("the of", ""),
        ("", ""),
    ],
)
def test_terms_of_fixed_examples(text, terms):
    assert analyze(text) == terms.split()


def test_the_short_cut_for_ascii_gives_what_the_automaton_gives():
    rng = random.Random(8)
    for _ in range(3000):
        text = "".join(rng.choice("abZ019__'.:,; -\n\x00") for _ in range(rng.randint(0, 40)))
        assert tokenize(text) == _scan(text), repr(text)


def test_long_tokens_are_split_and_soft_hyphens_stay_inside():
    assert [len(token) for token in tokenize("x" * 300)] == [255, 45]
    assert [len(token) for token in tokenize("é" * 300)] == [255, 45]
    assert [len(token) for token in tokenize("𝒜" * 200)] == [127, 73]
    assert analyze("co\u00adoperate") == ["co\u00adoper"]


def test_lone_surrogates_and_control_characters_separate():
    assert tokenize("a\ud800b \x00c") == ["a", "b", "c"]


def test_tokenizing_a_megabyte_of_anything_takes_linear_time():
    for text in ("<search>" * 125_000, "_" * 1_000_000, "a." * 500_000, "é_" * 100_000):
        assert sum(map(len, tokenize(text))) <= len(text)


def test_stems_of_short_words_are_unchanged():
    assert [stem(word) for word in ("as", "is", "be")] == ["as", "is", "be"]


def test_no_token_is_longer_than_the_limit():
    rng = random.Random(3)
    alphabet = "aA1_.',:-é東😀\u200d\u0301\ufe0f "
    for _ in range(300):
        text = "".join(rng.choice(alphabet) for _ in range(600))
        for token in tokenize(text):
            assert len(token.encode("utf-16-le")) // 2 <= MAX_TOKEN_UNITS


def test_every_code_point_and_random_mixtures_equal_lucene(tmp_path):
    require_java()
    class_of = _tables().class_of
    points = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    # Assigned areas one by one; in the long unassigned stretches a sample does.
    points = [code for code in points if code < 0x32000 or 0xE0000 <= code < 0xE0200 or code % 257 == 0]
    texts = [
        " | ".join(f"{chr(code)} Ab{chr(code)}cs 1{chr(code)}2" for code in points[start : start + 64])
        for start in range(0, len(points), 64)
    ]
    pools: dict[int, list[str]] = {}
    for code in points:
        pools.setdefault(class_of[code], []).append(chr(code))
    rng, kinds = random.Random(7), sorted(pools)
    for _ in range(4000):
        chosen = rng.sample(kinds, rng.randint(2, 8))
        size = rng.choice([3, 6, 12, 40, 400])
        texts.append("".join(rng.choice(pools[rng.choice(chosen)]) for _ in range(size)))
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    ask_java(tmp_path)
    expected = json.loads((tmp_path / "tokens.json").read_text())
    wrong = [text for text, tokens in zip(texts, expected, strict=True) if analyze(text) != tokens]
    assert not wrong, f"{len(wrong)} of {len(texts)} differ, first {wrong[0]!a}"


def test_every_real_passage_equals_lucene(data_dir, tmp_path):
    require_java()
    path = data_dir / "search_qa" / "passages.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"real data: {path} is missing")
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    texts = [f'"{row["title"]}"\n{row["text"]}' for row in rows]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    ask_java(tmp_path)
    expected = json.loads((tmp_path / "tokens.json").read_text())
    wrong = [text for text, tokens in zip(texts, expected, strict=True) if analyze(text) != tokens]
    assert len(texts) > 30_000
    assert not wrong, wrong[0]
