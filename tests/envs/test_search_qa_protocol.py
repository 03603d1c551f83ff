"""Search QA's wire formats and scores: every rule with its fixed example."""

from __future__ import annotations

import json
import random
import re
import string

import pytest

from seed_envs.errors import UnknownOption
from seed_envs.replies import cut_reply
from seed_envs.search_qa.answers import (
    contains_answer,
    exact_match,
    lenient_match,
    normalise,
    substring_match,
    token_f1,
)
from seed_envs.search_qa.protocol import (
    BLOCKS,
    DIALECTS,
    INVALID_TEXT,
    ask,
    defang,
    find_dialect,
    parse_search_r1,
    parse_verl_agent,
    search_query,
)
from seed_envs.search_qa.retrievers.base import Hit, make_hit
from seed_envs.search_qa.scoring import (
    NO_SCORES,
    Turn,
    answer_blocks,
    format_is_good,
    format_reward,
    judge,
    legacy_answer,
    turns_are_good,
)


@pytest.mark.parametrize(
    ("reply", "kind", "content"),
    [
        ("<search>a</search><search>b</search>", "search", "a"),
        ("<answer>A</answer> x <search>q</search>", "answer", "A"),
        ("<answer>A</answer><search>q", "answer", "A"),
        ("<search>a <answer>b</answer>", "answer", "b"),
        ("<think><search>x</search></think><answer>A</answer>", "search", "x"),
        ("<think>the <search> tag</think><search>b</search>", "search", "tag</think><search>b"),
        ("<search></search>", "search", ""),
        ("<answer></answer>", "answer", ""),
        ("<Search>q</Search>", "invalid", ""),
        ("<search >q</search>", "invalid", ""),
        ("<search>q</answer>", "invalid", ""),
        ("<search>q", "invalid", ""),
        ("plain text", "invalid", ""),
        ("</search><answer>A</answer>", "invalid", ""),
        ("<search>a<search>b</search>", "search", "a<search>b"),
        ("<search>\n two\nlines </search>", "search", "two\nlines"),
    ],
)
def test_search_r1_replies(reply, kind, content):
    parsed = parse_search_r1(reply)
    assert (parsed.kind, parsed.content, parsed.valid) == (kind, content, kind != "invalid")
    assert parsed.text == cut_reply(reply, BLOCKS)
    assert bool(parsed.reason) == (kind == "invalid")


@pytest.mark.parametrize(
    ("reply", "kind", "content", "valid"),
    [
        ("<answer>A</answer> x <search>q</search>", "search", "q", False),
        ("<SEARCH>q</Search>", "search", "q", True),
        ("<search>a</search><search>b</search>", "search", "a", False),
        ("<answer>A</answer>", "answer", "A", True),
        ("nothing", "invalid", "", False),
        ("İ<search>q</search>", "search", "q", True),
    ],
)
def test_verl_agent_replies(reply, kind, content, valid):
    parsed = parse_verl_agent(reply)
    assert (parsed.kind, parsed.content, parsed.valid) == (kind, content, valid)


def test_a_megabyte_of_tags_is_read_in_linear_time():
    pieces = ("<search>", "<answer>", "<search><answer>", "</search>", "< /search >", "<", "<search>" + "a" * 9)
    for text in (*(piece * (1_000_000 // len(piece)) for piece in pieces), "<" + " " * 1_000_000):
        for parse in (parse_search_r1, parse_verl_agent, defang, format_is_good, answer_blocks, search_query):
            parse(text)  # anything slower would take hours


def test_blocks_are_found_as_the_plain_patterns_find_them():
    rng = random.Random(0)
    for _ in range(2_000):
        pieces = ["<answer>", "</answer>", "<search>", "</search>", "</SEARCH>", " a ", "\n"]
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(12)))
        assert answer_blocks(text) == re.findall("<answer>(.*?)</answer>", text, re.DOTALL)
        match = re.search("<search>(.*?)</search>", text, re.DOTALL | re.IGNORECASE)
        assert search_query(text) == (match and match.group(1).strip())


def test_passages_in_both_dialects():
    hits = [make_hit("1", '"Velk River"\nIt flows.\nFar.'), make_hit("2", '""Furious 7""\nA film.'), Hit("3", "T", "é")]
    plain = DIALECTS["search-r1"].information(hits)
    assert plain == (
        '\n\n<information>Doc 1(Title: "Velk River") It flows.\nFar.\n'
        'Doc 2(Title: ""Furious 7"") A film.\nDoc 3(Title: "T") é</information>\n\n'
    )
    assert DIALECTS["search-r1"].information([]) == "\n\n<information></information>\n\n"
    wrapped = DIALECTS["verl-agent"].information(hits[:1] + hits[2:])
    inner = json.loads(wrapped.removeprefix("<information>").removesuffix("</information>"))
    assert inner == {"result": 'Doc 1: "Velk River"\nIt flows.\nFar.\nDoc 2: "T"\né'}
    assert "\\u00e9" in wrapped


def test_a_title_without_quotation_marks_stays_without():
    hit = make_hit("1", "Plain title\ntext")
    assert (hit.shown_title, hit.contents) == ("Plain title", "Plain title\ntext")


def test_questions_end_in_a_question_mark():
    assert [ask(" who? "), ask("Name it."), ask("x")] == ["who?", "Name it.?", "x?"]


def test_tags_inside_passages_are_broken_and_nothing_else():
    text = "a<answer>b</ANSWER><b><  / information >c</ think><searching></search>"
    assert defang(text) == "a‹answer>b‹/ANSWER><b>‹  / information >c‹/ think><searching>‹/search>"


def test_dialects_read_by_their_own_rules_and_allow_their_own_number_of_turns():
    reply = "<SEARCH> a </SEARCH><answer> b </answer>"
    assert find_dialect("search-r1").parse(reply).content == "b"
    assert find_dialect("verl-agent").parse(reply).content == "a"
    assert {
        name: (d.name, d.max_turns, d.total_turns(d.max_turns), d.invalid_text) for name, d in DIALECTS.items()
    } == {
        "search-r1": ("search-r1", 4, 5, INVALID_TEXT),
        "verl-agent": ("verl-agent", 4, 4, ""),
    }


def test_an_episode_without_turns_or_without_an_answer_at_its_end_is_badly_formed():
    asked = Turn("<think>a</think><search>b</search>", "")
    told = Turn("<think>a</think><answer>b</answer>", "")
    assert not turns_are_good([], [])
    assert not turns_are_good([asked], ["search"]) and not turns_are_good([told, asked], ["answer", "search"])
    assert turns_are_good([asked, told], ["search", "answer"])


def test_a_verdict_holds_answer_scores_and_the_reward_asked_for():
    right, wrong, none = (judge(answer, ["Ostara"], "format", True, False) for answer in ("ostara", "Velk", None))
    assert (right.answer, right.scores.em, right.reward) == ("ostara", 1.0, 1.0)
    assert (wrong.answer, wrong.scores.em, wrong.reward) == ("Velk", 0.0, 0.2)
    assert (none.answer, none.scores, none.reward) == (None, NO_SCORES, 0.0)
    plain = judge("the Ostara river", ["Ostara"], "f1", False, False)
    assert (plain.answer, plain.reward) == ("the Ostara river", plain.scores.f1) and 0 < plain.reward < 1


def test_unknown_dialects_are_refused_with_a_suggestion():
    with pytest.raises(UnknownOption, match="search-r1"):
        find_dialect("search_r1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("U.S.A.", "usa"),
        ("1,000", "1000"),
        ("twenty-one", "twentyone"),
        ("the-an", "thean"),
        ("a\u00a0b", "b"),
        ("A.", ""),
        ("“Él–Niño”", "“él–niño”"),
        ("The  Velk\tRiver", "velk river"),
    ],
)
def test_normalised_text(text, expected):
    assert normalise(text) == expected


def test_scores_of_fixed_examples():
    assert token_f1("the Velk River bridge", ["Velk River"]) == 0.8
    assert token_f1("yes it is", ["yes"]) == 0.0
    assert token_f1("no", ["no"]) == 1.0
    assert exact_match("Velk river.", ["x", "The Velk River"]) == 1.0
    assert substring_match("It is the Velk River today", ["Velk River"]) == 1.0
    assert exact_match("Élan – vital", ["Elan vital"]) == 0.0
    assert lenient_match("Élan – vital", ["Elan vital"]) == 1.0
    assert lenient_match("twenty one", ["twenty-one"]) == 1.0


def test_golds_that_normalise_to_nothing():
    assert exact_match("a", ["The"], legacy=True) == 1.0
    assert substring_match("anything", ["The"], legacy=True) == 1.0
    assert exact_match("a", ["The"]) == 0.0
    assert exact_match("the", ["The"]) == 1.0
    assert exact_match("!", ["?"]) == 0.0
    assert exact_match("?", ["?"]) == 1.0
    assert substring_match("anything", ["The"]) == 0.0


def plainly_normalised(text):
    """The published rule, step by step."""
    lowered = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", lowered).split())


def test_normalisation_and_answers_in_passages_agree_with_the_plain_rule():
    passage = 'The "U.S.A." and a Velk-River; the  old   mill'
    for gold in ("usa", "velkriver", "old mill", "and velkriver", "mill old", "us"):
        expected = f" {gold} " in f" {plainly_normalised(passage)} "
        assert contains_answer([passage], [gold]) == contains_answer(["x", passage], ["y", gold]) == expected
    assert not contains_answer(["the old", "mill"], ["old mill"])
    assert not contains_answer([], ["old mill"])
    assert not contains_answer(["old mill"], [])
    rng = random.Random(4)
    pieces = [*"_-.'é\u0301 \n\x00\x1c\u00a0\u2013\u2019²", "a", "an", "The", "mill", "Velk", "İ", "ß", "\ud800", "12"]
    for _ in range(5000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(0, 14)))
        plain = plainly_normalised(text)
        assert normalise(text) == plain, repr(text)
        for gold in ("mill", "velk mill", "12 velk"):
            assert contains_answer([text], [gold]) == (f" {gold} " in f" {plain} "), repr(text)


GOOD = [Turn("<think>a</think><search>q</search>", "\n\n<information>x</information>\n\n")]
END = Turn("<think>b</think> <answer>A</answer>", "")


def test_format_checks_and_rewards():
    text = "".join(turn.reply + turn.observation for turn in [*GOOD, END])
    assert format_is_good(text)
    assert not format_is_good(text + "<|im_end|>")
    assert not format_is_good(text.replace("<think>a", "<think>a <search>"))
    assert turns_are_good([*GOOD, END], ["search", "answer"])
    # A tag that is only mentioned in a thought is no fault when the recorded turns decide.
    assert turns_are_good([Turn("<think>a <search> b</think><answer>A</answer>", "")], ["answer"])
    assert not turns_are_good([Turn("<answer>A</answer>", "")], ["answer"])
    rewards = [format_reward(a, c, g) for a, c, g in [("x", 1, 1), ("x", 1, 0), ("x", 0, 1), ("x", 0, 0), (None, 0, 1)]]
    assert rewards == [1.0, 0.8, 0.2, 0.1, 0.0]


def test_legacy_takes_the_last_answer_of_prompt_and_transcript():
    prompt = "put it inside <answer> and </answer>. For example, <answer> Beijing </answer>."
    assert legacy_answer(prompt, [Turn("no answer", "")], 2) == "Beijing"
    assert legacy_answer(prompt, [Turn("<answer>X", "")], 2) == "Beijing"
    assert legacy_answer("", [Turn("<answer>right</answer>", "")], 2) is None
    assert legacy_answer(prompt, [Turn("s", "<answer>from a passage</answer>"), END], 2) == "A"
    assert legacy_answer(prompt, [Turn("s", "<answer>from a passage</answer>")], 2) == "from a passage"
