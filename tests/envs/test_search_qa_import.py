"""Question and passage files in the forms in which they are published, written here in small, become our files."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest

from seed_envs.errors import DataInvalid, DataMissing
from seed_envs.search_qa.__main__ import main
from seed_envs.search_qa.corpus import JsonlCorpus
from seed_envs.search_qa.importing.collect import import_files
from seed_envs.search_qa.importing.containers import _BLOCK
from seed_envs.search_qa.importing.published import FILES, QUESTIONS
from seed_envs.search_qa.question_files import EVALUATED, read_questions
from seed_envs.search_qa.retrievers.bm25 import BM25Retriever


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def array(*rows):
    return json.dumps(rows, indent=2).encode()


def parquet(*rows):
    pa = pytest.importorskip("pyarrow", reason="packages: parquet files need pyarrow")
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue().to_pybytes()


def place(tmp_path, name, content):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content() if callable(content) else content)
    return path


def later(make, *rows):
    """A file that is made when the test runs, so that a missing package skips the test and not all of them."""
    return lambda: make(*rows)


NQ = {"question": "who wrote glass harbor", "answer": ["Mara Quill", "Quill"]}
HOTPOT = {
    "_id": "5a7", "question": "Who wrote it?", "answer": "Mara Quill", "type": "bridge", "level": "hard",
    "supporting_facts": [["Glass Harbor", 0], ["Mara Quill", 1]], "context": [["Glass Harbor", ["A novel."]]],
}  # fmt: skip
TRIVIA = {
    "Question": "Who wrote it?", "QuestionId": "tc_1", "EntityPages": [],
    "Answer": {"Value": "Mara Quill", "Aliases": ["Quill", "Mara Quill"], "NormalizedAliases": ["quill"]},
}  # fmt: skip
MUSIQUE = {
    "id": "2hop__1_2", "question": "Who wrote it?", "answer": "Mara Quill", "answer_aliases": ["Quill"],
    "answerable": True, "paragraphs": [
        {"idx": 0, "title": "Ostara", "paragraph_text": "A town.", "is_supporting": False},
        {"idx": 1, "title": "Glass Harbor", "paragraph_text": "A novel.", "is_supporting": True},
    ],
}  # fmt: skip
SEARCH_R1 = {
    "id": "train_0", "question": "Who wrote it?", "golden_answers": ["Mara Quill"], "data_source": "nq",
    "prompt": [{"role": "user", "content": "Answer the given question. Question: Who wrote it?\n"}],
    "ability": "fact-reasoning", "extra_info": {"index": 0, "split": "train"},
    "reward_model": {"ground_truth": {"target": ["Mara Quill"]}, "style": "rule"},
}  # fmt: skip
VERL = {
    "data_source": "searchR1_nq", "prompt": [{"role": "system", "content": "."}, {"role": "user", "content": "."}],
    "reward_model": {"ground_truth": {"target": ["Mara Quill"]}, "style": "rule"},
    "extra_info": {"index": 7, "need_tools_kwargs": True, "question": "Who wrote it?", "split": "test"},
}  # fmt: skip
DEEP_RESEARCHER = {
    "data_source": "Bamboogle", "prompt": [{"role": "user", "content": "Who wrote it?"}], "ability": "search",
    "reward_model": {"ground_truth": "Mara Quill<|answer_split|>Quill", "style": "unknown"},
    "extra_info": {"index": "bamboogle_4", "split": "dev"},
}  # fmt: skip
KILT_TASK = {
    "id": "k1", "input": "Who wrote it?", "output": [
        {"answer": "Mara Quill", "provenance": [{"title": "Glass Harbor", "wikipedia_id": "12"}]},
        {"provenance": [{"title": "Mara Quill", "wikipedia_id": "13"}]},
    ],
}  # fmt: skip
BROWSECOMP = {
    "query_id": "9",
    "query": "Who wrote it?",
    "answer": "Mara Quill",
    "gold_docs": [{"docid": "4", "text": "."}],
}
TWO = ("Mara Quill", "Quill")
ONE = ("Mara Quill",)

QUESTION_FILES = [
    # file, content, task id, answers, gold titles
    ("NQ-open.dev.jsonl", lines(NQ), "nq/dev/NQ-open.dev_0", TWO, ()),
    ("nq_open/validation.parquet", later(parquet, NQ), "nq/dev/validation_0", TWO, ()),
    ("unfiltered-web-dev.json", json.dumps({"Data": [TRIVIA], "Version": 1.0}, indent=4).encode(),
     "triviaqa/dev/tc_1", TWO, ()),
    ("trivia_qa/validation.parquet", later(parquet, {"question": "Who wrote it?", "question_id": "tc_1",
     "answer": {"value": "Mara Quill", "aliases": ["Quill"]}}), "triviaqa/dev/tc_1", TWO, ()),
    ("triviaqa-test.qa.csv", b"Who wrote it?\t['Mara Quill', \"Quill\"]\n", "triviaqa/test/triviaqa-test_0", TWO, ()),
    ("popQA.tsv", b'id\tsubj\tprop\tobj\tquestion\tpossible_answers\n'
     b'42\tGlass Harbor\tauthor\tMara\tWho wrote it?\t"[""Mara Quill"", ""Quill""]"\n', "popqa/test/42", TWO, ()),
    ("hotpot_dev_distractor_v1.json", array(HOTPOT), "hotpotqa/dev/5a7", ONE, ("Glass Harbor", "Mara Quill")),
    ("hotpot_qa/validation.parquet", later(parquet, {**{k: v for k, v in HOTPOT.items() if k != "_id"}, "id": "5a7",
     "supporting_facts": {"title": ["Glass Harbor"], "sent_id": [0]}, "context": {"title": ["x"]}}),
     "hotpotqa/dev/5a7", ONE, ("Glass Harbor",)),
    ("2wiki/dev.json", array({**HOTPOT, "evidences": [], "level": None}), "2wikimultihopqa/dev/5a7", ONE,
     ("Glass Harbor", "Mara Quill")),
    ("musique_ans_v1.0_dev.jsonl", lines(MUSIQUE), "musique/dev/2hop__1_2", TWO, ("Glass Harbor",)),
    ("Bamboogle Prerelease.csv", b'Question,Answer\n"Who wrote it, and when?",Mara Quill\n',
     "bamboogle/test/Bamboogle_Prerelease_0", ONE, ()),
    ("simple_qa_test_set.csv", b'metadata,problem,answer\n"{\'topic\': \'Art\', \'u\': 1}",Who?,"Mara Quill"\n',
     "simpleqa/test/simple_qa_test_set_0", ONE, ()),
    ("nq/test.jsonl", lines({"id": "test_0", "question": "Who?", "golden_answers": ["Mara Quill"], "metadata": {}}),
     "nq/test/test_0", ONE, ()),
    ("popqa/test.parquet", later(parquet, {"id": "test_0", "question": "Who?", "golden_answers": ["Mara Quill"]}),
     "popqa/test/test_0", ONE, ()),
    ("train.parquet", later(parquet, SEARCH_R1), "nq/train/train_0", ONE, ()),
    ("verl.parquet", later(parquet, VERL), "nq/test/7", ONE, ()),
    ("deep.parquet", later(parquet, DEEP_RESEARCHER), "bamboogle/dev/bamboogle_4", TWO, ()),
    ("eval_set/2wiki_500.jsonl", lines({"idx": 1, "question": "Who?", "answer": "Mara Quill", "gen_text_store": ""}),
     "2wikimultihopqa/test/1", ONE, ()),
    ("training_set/stage_1.jsonl", lines({"idx": 3, "question": "Who?", "answer": "Mara Quill", "pred_anses": []}),
     "training_set/train/3", ONE, ()),
    ("nq-dev-kilt.jsonl", lines(KILT_TASK), "nq/dev/k1", ONE, ("Glass Harbor", "Mara Quill")),
    ("browsecomp_plus_decrypted.jsonl", lines(BROWSECOMP), "browsecomp-plus/test/9", ONE, ()),
    ("hotpotqa/queries.jsonl", lines({"_id": "q1", "text": "Who?", "metadata": {"answer": "Mara Quill",
     "supporting_facts": [["Glass Harbor", 0]]}}), "hotpotqa/test/q1", ONE, ("Glass Harbor",)),
    ("packed/nq_test.jsonl.gz", gzip.compress(lines(NQ)), "nq/test/nq_test_0", TWO, ()),
    ("trainspotting_test.jsonl", lines({"id": "1", "question": "Who?", "answers": ONE, "dataset": "films"}),
     "films/test/1", ONE, ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "task_id", "answers", "titles"), QUESTION_FILES, ids=[row[0] for row in QUESTION_FILES]
)
def test_published_questions(tmp_path, name, content, task_id, answers, titles):
    path = place(tmp_path, name, content)
    (question,) = read_questions(path)
    assert (question.task_id, question.answers, question.gold_titles) == (task_id, answers, titles)
    receipt = import_files([path], tmp_path / "out")
    assert receipt.files[0].name == path.name
    assert (receipt.files[0].read, receipt.files[0].written, receipt.files[0].left_out) == (1, 1, [])
    assert read_questions(tmp_path / "out" / "questions.jsonl") == [question]
    with pytest.raises(DataInvalid, match="line 1: ") as refused:
        JsonlCorpus(path).passage(0)
    if not name.endswith(".csv"):
        assert "give it as questions=" in str(refused.value)


PAGE = {"_id": "12", "wikipedia_id": "12", "wikipedia_title": "Glass Harbor", "categories": "", "text": [
    "Glass Harbor\n", "A novel.\n", "Section::::Plot.\n", "A pilot.\n"]}  # fmt: skip
DOCUMENT = "---\ntitle: Glass Harbor\nauthor: x\n---\nA novel.\n"
NOVEL = [("7", "Glass Harbor", "A novel.")]
BARE = [("7", "", "A novel.")]
PASSAGE_FILES = [
    # file, content, passages as id, title, text
    ("beir/corpus.jsonl", lines({"_id": "7", "title": "Glass Harbor", "text": "A novel.", "metadata": {}}), NOVEL),
    ("anserini/a.jsonl", lines({"id": "7", "contents": "Glass Harbor\nA novel."}), NOVEL),
    ("anserini/array.json", array({"id": "7", "contents": '"Glass Harbor"\nA novel.'}), NOVEL),
    ("anserini/one.json", json.dumps({"id": "7", "contents": "Glass Harbor\nA novel."}, indent=1).encode(), NOVEL),
    ("psgs_w100.tsv", b'id\ttext\ttitle\n7\t"A novel."\tGlass Harbor\n', NOVEL),
    ("psgs_w100.tsv.gz", gzip.compress(b"id\ttext\ttitle\n7\tA novel.\tGlass Harbor\n"), NOVEL),
    ("collection.tsv", b"7\tA novel.\n", BARE),
    ("colbert.tsv", b"7\tA novel.\tGlass Harbor\n", NOVEL),
    ("msmarco-docs.tsv", b"7\thttp://x\tGlass Harbor\tA novel.\n", NOVEL),
    ("msmarco_passage_01.gz", gzip.compress(lines({"pid": "7", "passage": "A novel.", "docid": "d"})), BARE),
    ("msmarco_doc.jsonl", lines({"docid": "7", "url": "u", "title": "Glass Harbor", "body": "A novel."}), NOVEL),
    ("msmarco_v2.1.json", lines({"docid": "7", "title": "Glass Harbor", "segment": "A novel.", "url": "u"}), NOVEL),
    ("wiki.parquet", later(parquet, {"id": "7", "title": "Glass Harbor", "text": "A novel.", "vector": [0.1]}), NOVEL),
    ("kilt.json", lines(PAGE), [("12:1", "Glass Harbor", "A novel."), ("12:3", "Glass Harbor", "A pilot.")]),
    ("text.jsonl", lines({"id": 7, "text": "A novel."}), BARE),
    ("null.jsonl", lines({"id": "7", "title": None, "text": "A novel."}), BARE),
    ("corpus.json", array({"title": "Glass Harbor", "text": "A novel."}), [("0", "Glass Harbor", "A novel.")]),
    ("bc.parquet", later(parquet, {"docid": "7", "text": DOCUMENT, "url": "u"}), [("7", "Glass Harbor", DOCUMENT)]),
    ("blank.jsonl", lines({"id": "7", "title": "Glass Harbor", "text": "A novel."}) + b"\n \n\n", NOVEL),
    ("quoted.jsonl", lines({"id": "7", "title": '"Glass Harbor"', "text": "A novel."}), NOVEL),
    ("marked.tsv", b"\xef\xbb\xbf7\tA novel.\r\n", BARE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "passages"), PASSAGE_FILES, ids=[row[0] for row in PASSAGE_FILES])
def test_published_passages(tmp_path, name, content, passages):
    path = place(tmp_path, name, content)
    receipt = import_files([path], tmp_path / "out")
    assert (receipt.files[0].written, receipt.files[0].left_out) == (len(passages), [])
    corpus = JsonlCorpus(tmp_path / "out" / "passages.jsonl")
    assert [corpus.passage(n)[:3] for n in range(len(corpus))] == passages
    assert receipt.written["passages.jsonl"] == {"records": len(passages), "sha256": corpus.fingerprint}
    with pytest.raises(DataInvalid, match="passages are given as collection="):
        read_questions(path)
    hit = BM25Retriever(corpus, tmp_path / "index").search(["novel"], 1)[0][0]
    assert hit.text in {text for _, _, text in passages}
    if path.suffix == ".jsonl" and json.loads(content.splitlines()[0]).keys() <= {"id", "title", "text", "contents"}:
        # What needs no import opens as it is.
        assert JsonlCorpus(path).passage(0) == corpus.passage(0)


FAULTS = [
    ("q.jsonl", lines(NQ) + b'{"question": "x"\n', "q.jsonl, line 2: not JSON"),
    ("q.jsonl", lines(NQ, {"question": " ", "answer": ["x"]}), "q.jsonl, line 2: expected a question"),
    ("q.jsonl", lines(NQ, {"question": "x", "answer": {"a": 1}}), "q.jsonl, line 2: expected a list of gold answers"),
    ("q.jsonl", lines(NQ, [1]), "q.jsonl, line 2: expected an object"),
    ("q.jsonl", lines(NQ) + b"\xff\n", "q.jsonl, line 2: not JSON in UTF-8"),
    ("a.json", b'[\n{"id": "1", "contents": "x"},\n{"id": "2" "contents": "y"}\n]', "a.json, line 3: not JSON"),
    ("a.json", b'[{"id": "1", "contents": "x"},\n\n', "a.json, line 3: the array does not end"),
    ("a.json", b'[{"id": "1", "contents": "x"}\n{"id": "2"}]', "a.json, line 2: expected , or ]"),
    ("a.json", b'[{"id": "1", "contents": "x"}]\n[]', "a.json, line 2: expected the end of the file"),
    ("o.json", b'{\n"id": "1",\n"contents" "x"}', "o.json, line 3: not JSON"),
    ("p.tsv", b"id\ttext\ttitle\n1\tx\ty\n2\tx\n", "p.tsv, line 3: expected 3 columns"),
    ("p.jsonl", lines({"id": "1", "contents": "x"}, {"id": ["2"], "contents": "y"}), "p.jsonl, line 2: expected an id"),
    ("p.jsonl", lines({"id": "1", "contents": "x"}, {"id": "1", "contents": "y"}), "line 2: the id '1' stands"),
    ("p.jsonl", lines({"id": "0", "contents": "x"}, {"id": "0", "contents": "y"}), "line 2: the id '0' stands"),
    ("p.jsonl", lines({"id": "1", "title": 7, "text": "y"}), "p.jsonl, line 1: expected text under 'title'"),
    ("k.jsonl", lines({**PAGE, "text": [1]}), "line 1: expected a list of paragraphs"),
    ("d.csv", b"Who?\t[Mara]\n", "d.csv, line 1: expected a list of quoted answers"),
    ("c.csv", b'Question,Answer\n"Who,x\n', "c.csv, line 2: not a table of commas"),
    ("s.jsonl", lines({"colour": "red"}), r"line 1: fields \['colour'\] fit no known form"),
    ("b.jsonl", lines({"query_id": "1", "query": "QUJD" * 20, "answer": "QUJD"}), "line 1: the query is encrypted"),
    ("p.tsv", b"id\tquestion\tpossible_answers\n1\tWho?\t[oops\n", "p.tsv, line 2: possible_answers is no JSON list"),
    ("e.jsonl", b"\n\n", "e.jsonl: is empty"),
    ("n.jsonl", lines({"id": 1, "question": "x"}), "nothing to write: .*no answer is published with the question"),
    ("g.jsonl.gz", gzip.compress(lines(NQ))[:-9], "g.jsonl.gz: a damaged .gz file"),
    ("t.parquet", b"PAR1 no table PAR1", "t.parquet: not a readable parquet file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), FAULTS, ids=[f"{n}-{row[0]}" for n, row in enumerate(FAULTS)])
def test_malformed_files_are_refused_by_file_line_and_reason(tmp_path, name, content, message):
    path = place(tmp_path, name, content)
    with pytest.raises(DataInvalid, match=message):
        import_files([path], tmp_path / "out")
    assert not list((tmp_path / "out").glob("*"))


def test_what_is_left_out_is_counted(tmp_path, capsys):
    rows = [{**MUSIQUE, "id": str(n), "answerable": n > 1} for n in range(4)]
    place(
        tmp_path,
        "in/musique_full_dev.jsonl",
        lines(*rows, rows[3], {**MUSIQUE, "id": "e", "answer": " ", "answer_aliases": []}),
    )
    place(tmp_path, "in/README.md", b"# words")
    place(tmp_path, "in/empty.jsonl", b"")
    assert main(["import", str(tmp_path / "in"), "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "musique_full_dev.jsonl: MuSiQue, 6 read, 2 written" in printed
    assert "left out 2: the question is marked as not answerable (first: line 1)" in printed
    assert "left out 1: the same question again (first: line 5)" in printed
    assert "left out 1: no gold answer (first: line 6)" in printed
    assert "README.md: not read" in printed
    assert "musique/dev: 2 questions, 2,417 are published" in printed
    receipt = json.loads((tmp_path / "out" / "receipt.json").read_text())
    assert [file["name"] for file in receipt["files"]] == ["README.md", "empty.jsonl", "musique_full_dev.jsonl"]
    assert receipt["sets"][0]["sha256"]
    assert main(["import", str(tmp_path / "none"), "--output", str(tmp_path / "out")]) == 2
    with pytest.raises(DataMissing, match="none"):
        import_files([tmp_path / "none"], tmp_path / "out")


def test_a_file_of_known_content_is_named(tmp_path, monkeypatch):
    path = place(tmp_path, "renamed.jsonl", lines(NQ))
    assert import_files([path], tmp_path / "out").files[0].published == ""
    monkeypatch.setitem(FILES, hashlib.sha256(path.read_bytes()).hexdigest(), "somebody/somewhere@1 nq.jsonl")
    receipt = import_files([path], tmp_path / "out")
    assert "  as published: somebody/somewhere@1 nq.jsonl" in list(receipt.lines())
    assert all(len(digest) == 64 for digest in FILES)


def test_a_beir_folder_and_shards_become_one_collection(tmp_path):
    place(
        tmp_path, "scifact/corpus.jsonl", lines(*({"_id": str(n), "title": None, "text": f"word{n}"} for n in range(3)))
    )
    place(tmp_path, "scifact/queries.jsonl", lines({"_id": "1", "text": "a claim", "metadata": {}}))
    place(tmp_path, "scifact/qrels/test.tsv", b"query-id\tcorpus-id\tscore\n1\t2\t1\n")
    receipt = import_files([tmp_path / "scifact"], tmp_path / "out")
    assert [(f.name, f.written, [left.reason for left in f.left_out]) for f in receipt.files] == [
        ("corpus.jsonl", 3, []),
        ("test.tsv", 0, ["relevance judgements"]),
        ("queries.jsonl", 0, ["no answer is published with the question"]),
    ]
    shards = [place(tmp_path, f"shard-{n}.jsonl", lines({"id": f"d{n}", "contents": f"T\nword{n}"})) for n in range(3)]
    import_files(shards, tmp_path / "out")
    corpus = JsonlCorpus(tmp_path / "out" / "passages.jsonl")
    assert [corpus.passage(n).id for n in range(3)] == ["d0", "d1", "d2"]
    place(tmp_path, "queries.dev.tsv", b"1\twho wrote it\n")
    with pytest.raises(DataInvalid, match="queries without answers"):
        import_files([tmp_path / "queries.dev.tsv"], tmp_path / "out")


def test_colliding_ids_are_renumbered_on_request(tmp_path):
    paths = [place(tmp_path, f"{n}.jsonl", lines({"id": "0", "contents": f"T\nword{n}"})) for n in range(2)]
    with pytest.raises(DataInvalid, match="--renumber"):
        import_files(paths, tmp_path / "out")
    import_files(paths, tmp_path / "out", renumber=True)
    corpus = JsonlCorpus(tmp_path / "out" / "passages.jsonl")
    assert [corpus.passage(n).text for n in range(2)] == ["word0", "word1"]


def test_characters_that_no_service_stores_are_replaced_and_counted(tmp_path):
    rows = [
        {"id": "1", "contents": "A\nnul \0"},
        {"id": "2", "contents": "B\nhalf \ud800"},
        {"id": "3", "contents": "C\nc"},
    ]
    receipt = import_files([place(tmp_path, "p.jsonl", lines(*rows))], tmp_path / "out")
    assert receipt.files[0].repaired == 2
    corpus = JsonlCorpus(tmp_path / "out" / "passages.jsonl")
    assert [corpus.passage(n).text for n in range(3)] == ["nul \ufffd", "half \ufffd", "c"]


def test_arrays_longer_than_the_window(tmp_path):
    rows = [{"id": str(n), "contents": f"T{n}\n" + "é" * (_BLOCK // 3)} for n in range(8)]
    for number, text in enumerate((json.dumps(rows), json.dumps(rows, indent=1, ensure_ascii=False))):
        path = place(tmp_path, f"{number}.json", text.encode())
        assert import_files([path], tmp_path / "out").files[0].written == 8
    place(tmp_path, "numbers.json", b"[" + b" " * (_BLOCK - 3) + b"12345]")
    with pytest.raises(DataInvalid, match=r"line 1: expected an object, got int"):
        import_files([tmp_path / "numbers.json"], tmp_path / "out")


def test_the_seven_sets_give_51713(tmp_path, capsys):
    """Files with as many rows as are published, in the form of each set."""
    for name, (split, count) in EVALUATED.items():
        assert count in QUESTIONS[name, split]
        rows = ({"id": f"{split}_{n}", "question": f"q{n}", "golden_answers": ["a"]} for n in range(count))
        place(tmp_path, f"all/{name}/{split}.jsonl", lines(*rows))
    assert main(["import", str(tmp_path / "all"), "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "full evaluation of 51,713: complete" in printed
    assert printed.count(", complete, sha256") == 7
    (tmp_path / "all" / "bamboogle" / "test.jsonl").write_bytes(
        lines({"id": "1", "question": "q", "golden_answers": ["a"]})
    )
    main(["import", str(tmp_path / "all"), "--output", str(tmp_path / "out")])
    assert "bamboogle: expected 125, found 1" in capsys.readouterr().out


def test_empty_collections_and_golds_are_refused(tmp_path):
    for content in (b"", b"\n\n \n"):
        with pytest.raises(DataInvalid, match="holds no passage"):
            JsonlCorpus(place(tmp_path, "p.jsonl", content))
    for golds in ([], [""], ["", "  "], "", None):
        with pytest.raises(DataInvalid, match="line 1: expected a list of gold answers"):
            read_questions(place(tmp_path, "q.jsonl", lines({"id": "1", "question": "q", "golden_answers": golds})))
    assert read_questions(place(tmp_path, "q.jsonl", lines({"id": "1", "question": "q", "golden_answers": ["", "x"]})))
