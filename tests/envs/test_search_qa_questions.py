"""Real question and passage files open unchanged, and faulty ones are refused by name."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import gymnasium as gym
import pytest

from seed_envs.errors import DataInvalid, DataMissing, UnknownSplit, UnknownTask
from seed_envs.search_qa.__main__ import main
from seed_envs.search_qa.corpus import JsonlCorpus, ListCorpus
from seed_envs.search_qa.coverage import answer_coverage, covered
from seed_envs.search_qa.question_files import (
    EVALUATED,
    SETS,
    check_full_evaluation,
    evaluation_order,
    link_gold_passages,
    read_questions,
)
from seed_envs.search_qa.questions import Question
from seed_envs.search_qa.retrievers.base import Hit
from seed_envs.search_qa.retrievers.bm25 import BM25Retriever
from seed_envs.search_qa.tasks import ListedQuestions


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def search_r1_row(number, split="test", **changes):
    row = {
        "id": f"{split}_{number}",
        "question": "who wrote it?",
        "golden_answers": ["Mara Quill"],
        "data_source": "nq",
        "prompt": [{"role": "user", "content": "..."}],
        "ability": "fact-reasoning",
        "reward_model": {"style": "rule", "ground_truth": {"target": ["Mara Quill", "Quill"]}},
        "extra_info": {"split": split, "index": number},
        "metadata": None,
    }
    return {**row, **changes}


def write_parquet(path, rows):
    pa = pytest.importorskip("pyarrow", reason="packages: parquet files need pyarrow")
    import pyarrow.parquet as parquet

    parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_search_r1_parquet(tmp_path):
    path = write_parquet(tmp_path / "test.parquet", [search_r1_row(n) for n in range(3)])
    questions = read_questions(path)
    assert [question.task_id for question in questions] == [f"nq/test/test_{n}" for n in range(3)]
    assert questions[0].answers == ("Mara Quill", "Quill")
    assert questions[0].text == "who wrote it?"


def test_verl_agent_parquet(tmp_path):
    row = search_r1_row(0, env_kwargs={"ground_truth": {"target": ["X"]}, "question": "q?", "data_source": "nq"})
    for key in ("reward_model", "question", "id", "golden_answers"):
        del row[key]
    question = read_questions(write_parquet(tmp_path / "t.parquet", [row]))[0]
    assert (question.task_id, question.answers, question.text) == ("nq/test/0", ("X",), "q?")


def test_flashrag_lines_with_gold_titles_and_choices(tmp_path):
    rows = [
        {
            "id": "dev_0",
            "question": "a?",
            "golden_answers": ["x"],
            "metadata": {"supporting_facts": {"title": ["Velk River", "Ostara", "Velk River"], "sent_id": [0, 1, 2]}},
        },
        {"id": "dev_1", "question": "b?", "golden_answers": "bare"},
        {"id": "dev_2", "question": "c?", "golden_answers": [1], "choices": ["no", "yes"]},
    ]
    questions = read_questions(write_lines(tmp_path / "hotpotqa" / "dev.jsonl", rows))
    assert [question.task_id for question in questions] == [f"hotpotqa/dev/dev_{n}" for n in range(3)]
    assert [question.answers for question in questions] == [("x",), ("bare",), ("yes",)]
    passages = ListCorpus([Hit("7", "Velk River", "a"), Hit("8", "Velk River", "b"), Hit("9", "Other", "c")])
    linked = link_gold_passages(questions, passages)
    assert linked[0].hops == (frozenset({"7", "8"}), frozenset())
    assert linked[1].hops == ()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "1", "question": " ", "golden_answers": ["x"]}, "line 1: expected a question"),
        ({"id": "1", "question": "q", "golden_answers": []}, "line 1: expected a list of gold answers"),
        ({"id": "1", "question": "q", "golden_answers": None}, "gold answers"),
        ({"id": "1", "question": "q", "golden_answers": [None]}, "gold answers"),
        ({"id": "1", "question": "q", "golden_answers": [["x"]]}, "gold answers"),
        ({"id": "1", "question": "q", "golden_answers": {"a": 1}}, "gold answers"),
        ({"id": "1", "question": "q", "golden_answers": [0, 2], "choices": ["a", "b"]}, r"\[0, 2\] are no positions"),
        ({"id": "1", "question": ["q"], "golden_answers": ["x"]}, "line 1: expected a question"),
        ([1, 2], "expected an object"),
    ],
)
def test_faulty_rows_are_named(tmp_path, row, message):
    with pytest.raises(DataInvalid, match=message):
        read_questions(write_lines(tmp_path / "nq" / "test.jsonl", [row]))


def test_missing_empty_and_broken_files(tmp_path):
    with pytest.raises(DataMissing, match="no.jsonl"):
        read_questions(tmp_path / "no.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(DataInvalid, match="holds no question"):
        read_questions(tmp_path / "empty.jsonl")
    (tmp_path / "latin.jsonl").write_bytes('{"question": "é"}'.encode("latin-1"))
    with pytest.raises(DataInvalid, match="line 1: not JSON in UTF-8"):
        read_questions(tmp_path / "latin.jsonl")


def test_damaged_archives_and_tables_are_named(tmp_path):
    packed = gzip.compress(b'{"id": "0", "contents": "A", "question": "q", "golden_answers": ["a"]}\n' * 1000)
    for name, data in (("short", packed[:-9]), ("changed", packed[:20] + b"xx" + packed[22:]), ("plain", b"{}\n")):
        path = tmp_path / f"{name}.jsonl.gz"
        path.write_bytes(data)
        for read in (read_questions, JsonlCorpus):
            with pytest.raises(DataInvalid, match=f"{name}.jsonl.gz: a damaged .gz file"):
                read(path)
    pytest.importorskip("pyarrow", reason="packages: parquet needs pyarrow")
    for data in (b"", b"no table", b"PAR1 no table PAR1"):
        (tmp_path / "t.parquet").write_bytes(data)
        with pytest.raises(DataInvalid, match=r"t.parquet: not a readable parquet file"):
            read_questions(tmp_path / "t.parquet")


@pytest.mark.parametrize("key", ["extra_info", "reward_model", "env_kwargs"])
def test_parquet_rows_with_other_fields_are_named(tmp_path, key):
    with pytest.raises(DataInvalid, match=f"row 1: expected fields under '{key}', got 'text'"):
        read_questions(write_parquet(tmp_path / "t.parquet", [{**search_r1_row(0), key: "text"}]))


def test_odd_names_make_usable_ids(tmp_path, monkeypatch):
    row = {"id": None, "question": "q", "golden_answers": ["x"]}
    write_lines(tmp_path / "retrieval_test.jsonl", [row, {**row, "dataset": "owner/set", "id": "a/b"}])
    monkeypatch.chdir(tmp_path)
    questions = read_questions("retrieval_test.jsonl")
    assert [x.task_id for x in questions] == [f"{tmp_path.name}/test/retrieval_test_0", "owner_set/test/a/b"]
    source = ListedQuestions(questions, "odd")
    assert [source.question(task_id) for task_id in source.task_ids("test")] == questions
    assert [x.data_source for x in questions] == [tmp_path.name, "owner_set"]


def q(task_id):
    return Question(task_id, task_id.split("/")[0], "q", ("a",))


def test_hops_are_known_from_gold_passages_ids_and_sets():
    listed = [q("musique/dev/3hop1__1_2_3"), q("2wikimultihopqa/dev/9"), q("musique/dev/8"), q("hotpotqa/dev/1")]
    listed += [
        q("nq/test/2"),
        q("nq/train/1"),
        replace(q("2wikimultihopqa/dev/7"), gold_titles=("A", "B", "C", "B", "D")),
    ]
    assert [question.n_hops for question in listed] == [3, 0, 0, 2, 1, 1, 4]
    by_hops = ["nq/test/2", "hotpotqa/dev/1", "musique/dev/3hop1__1_2_3", "2wikimultihopqa/dev/7"]
    assert ListedQuestions(listed, "mine").task_ids("hops") == by_hops
    with pytest.raises(UnknownSplit, match="has no hops questions"):
        ListedQuestions([q("musique/dev/8")], "mine").task_ids("hops")


def test_the_evaluation_order_and_refusals():
    listed = [q("musique/dev/1"), q("nq/dev/1"), q("nq/test/2"), q("nq/test/1"), q("nq/train/1"), q("zz/test/1")]
    ordered = [question.task_id for question in evaluation_order(listed)]
    assert ordered == ["nq/test/2", "nq/test/1", "musique/dev/1", "zz/test/1"]
    with pytest.raises(DataInvalid, match="triviaqa: has only train"):
        evaluation_order([q("triviaqa/train/1")])
    source = ListedQuestions(listed, "mine")
    assert list(source.task_ids("eval")) == ordered
    with pytest.raises(UnknownTask, match="Did you mean"):
        source.question("nq/test/11")
    with pytest.raises(DataInvalid, match="occurs twice"):
        ListedQuestions([q("nq/test/1"), q("nq/test/1")], "twice")
    with pytest.raises(UnknownSplit, match="it has"):
        ListedQuestions([q("nq/test/1")], "one").task_ids("train")


def test_the_full_evaluation_has_51713_questions():
    assert sum(count for _, count in EVALUATED.values()) == 51_713
    full = [q(f"{name}/{split}/{n}") for name, (split, count) in EVALUATED.items() for n in range(count)]
    assert [question.data_source for question in evaluation_order(full)][:1] == ["nq"]
    check_full_evaluation(evaluation_order(full))
    with pytest.raises(DataInvalid, match="bamboogle: expected 125, found 124"):
        check_full_evaluation(full[:-1])


def test_wiki18_passages_with_doubled_quotation_marks(tmp_path):
    rows = [{"id": "0", "contents": '"Aaron"\nAaron is.'}, {"id": "1", "contents": '""Furious 7""\nA film.\nMore.'}]
    corpus = JsonlCorpus(write_lines(tmp_path / "wiki18.jsonl", rows))
    assert [corpus.passage(n).contents for n in (0, 1)] == [row["contents"] for row in rows]
    assert corpus.passage(1).title == '"Furious 7"'
    assert len(corpus) == 2
    with gzip.open(tmp_path / "wiki18.jsonl.gz", "wb") as stream:
        stream.write((tmp_path / "wiki18.jsonl").read_bytes())
    packed = JsonlCorpus(tmp_path / "wiki18.jsonl.gz")
    assert packed.fingerprint == corpus.fingerprint
    assert packed.passage(1) == corpus.passage(1)
    with pytest.raises(IndexError):
        corpus.passage(2)


def test_lines_without_a_last_newline_and_a_changed_file(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "0", "contents": "A\\na"}\n{"id": "1", "contents": "B\\nb"}')
    first = JsonlCorpus(path)
    assert (len(first), first.passage(1).text) == (2, "b")
    before, unread = first.fingerprint, JsonlCorpus(path)
    path.write_text('{"id": "0", "contents": "A\\na"}\n' * 3)
    assert len(JsonlCorpus(path)) == 3
    assert JsonlCorpus(path).fingerprint != first.fingerprint == before
    for use in (lambda: unread.fingerprint, lambda: unread.passage(0)):
        with pytest.raises(DataInvalid, match="has changed since it was opened"):
            use()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "1", "contents": "x\xff"}', "line 2: not UTF-8"),
        (b'{"id": "1"', "line 2: not JSON"),
        (b'{"contents": "x"}', "line 2: expected an object"),
        (b'{"id": "1", "title": "x"}', "line 2: expected an object"),
        (b'{"id": "0", "contents": "x"}', "'0' occurs twice"),
    ],
)
def test_faulty_passages_are_named(tmp_path, line, message):
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"id": "0", "contents": "A\\na"}\n' + line + b"\n")
    with pytest.raises(DataInvalid, match=message):
        BM25Retriever(JsonlCorpus(path), tmp_path / "index").search(["x"], 1)


def test_real_files_play_in_the_environment(tmp_path):
    passages = write_lines(
        tmp_path / "wiki.jsonl", [{"id": str(n), "contents": f'"T{n}"\nword{n} here'} for n in range(9)]
    )
    questions = write_parquet(tmp_path / "nq.parquet", [search_r1_row(n) for n in range(3)])
    engine = f"bm25:{tmp_path / 'index'}"
    env = gym.make(
        "seed/SearchQA-v0", collection=str(passages), questions=str(questions), split="eval", retriever=engine
    )
    env.reset(options={"task_id": "nq/test/test_1"})
    observation, *_ = env.step("<search>word7</search>")
    assert observation == '\n\n<information>Doc 1(Title: "T7") word7 here</information>\n\n'
    assert env.step(env.unwrapped.oracle_action())[1] == 1.0
    assert (tmp_path / "index" / "manifest.json").is_file()


def test_covered_questions_become_a_question_file(tmp_path, capsys):
    passages, questions, output = (tmp_path / name for name in ("passages.jsonl", "questions.jsonl", "covered.jsonl"))
    texts = ["Rome is the capital of Italy.", "Oslo lies on a fjord."]
    lines = [{"id": str(n), "contents": f'"T{n}"\n{text}'} for n, text in enumerate(texts)]
    passages.write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = {"nq/test/1": ("capital of Italy?", "Rome"), "musique/dev/2hop__1_2": ("what fjord?", "Bergen")}
    asked["hotpotqa/dev/5"] = ("which city lies on a fjord?", "Oslo")
    rows = []
    for task_id, (text, answer) in asked.items():
        dataset, split, name = task_id.split("/")
        rows.append({"dataset": dataset, "split": split, "id": name, "question": text, "golden_answers": [answer]})
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["coverage", "--questions", str(questions), "--collection", str(passages), "--output", str(output)]
    assert main(command) == 0
    assert "2 covered questions, sha256" in capsys.readouterr().out
    kept = read_questions(output)
    assert [question.task_id for question in kept] == ["nq/test/1", "hotpotqa/dev/5"]
    assert kept == [question for question in read_questions(questions) if question.data_source != "musique"]
    assert ListedQuestions(kept, "covered").task_ids("hops") == ["nq/test/1", "hotpotqa/dev/5"]


def test_coverage_of_the_real_questions(data_dir, capsys):
    """The shares that the data's description states, within sampling error: the files hold four fifths of each set."""
    folder = data_dir / "search_qa"
    if not (folder / "passages.jsonl.gz").is_file():
        pytest.skip(f"real data: {folder} is incomplete")
    stated = {
        ("nq", "oracle2655"): 0.83,
        ("nq", "dev3610"): 0.64,
        ("hotpotqa", "r1s"): 0.55,
        ("2wikimultihopqa", "r1s"): 0.43,
        ("bamboogle", "r1s"): 0.19,
        ("triviaqa", "dpr-test"): 0.18,
        ("popqa", "test512"): 0.12,
        ("musique", "test512"): 0.04,
    }
    questions = read_questions(folder / "questions.jsonl.gz")
    assert len(questions) == 38_636
    assert set(SETS) <= {question.data_source for question in questions}
    retriever = BM25Retriever(JsonlCorpus(folder / "passages.jsonl.gz"))
    shares = {}
    for (name, part), expected in stated.items():
        chosen = [q for q in questions if q.data_source == name and q.task_id.split("/")[2].rsplit("_", 1)[0] == part]
        row = answer_coverage(chosen, covered(chosen, retriever, 3), 3)[0]
        with capsys.disabled():
            print(f"\n{row}   stated {expected:.2f}", end="")
        shares[name, part] = (row.share, expected)
    assert all(abs(share - expected) < 0.05 for share, expected in shares.values()), shares
