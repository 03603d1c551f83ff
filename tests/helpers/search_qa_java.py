"""Lucene's own answers, computed in a process of its own so that no test process holds a JVM.

Usage: python search_qa_java.py WORK_DIR, with `texts.json` (list of strings), and optionally `passages/*.jsonl` and
`queries.json`; writes `tokens.json` and `hits.json` (ten (id, raw score, printed score) per query).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from seed_envs.lucene.java import java_class, java_string
from seed_envs.search_qa.retrievers.lucene import build_lucene_index


def main(work: Path) -> None:
    analyze = java_class("io.anserini.analysis.AnalyzerUtils").analyze
    analyzer = java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    texts = json.loads((work / "texts.json").read_text(encoding="utf-8"))
    tokens = [list(analyze(analyzer, java_string(text)).toArray()) for text in texts]
    (work / "tokens.json").write_text(json.dumps(tokens), encoding="utf-8")
    if not (work / "queries.json").is_file():
        return
    build_lucene_index(work / "passages", work / "index")
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(work / "index"))
    searcher.set_bm25(0.9, 0.4)
    from jnius import cast

    folder = java_class("java.nio.file.Paths").get(str(work / "index"))
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(
        java_class("org.apache.lucene.store.FSDirectory").open(folder)
    )
    raw = java_class("org.apache.lucene.search.IndexSearcher")(cast("org.apache.lucene.index.IndexReader", reader))
    raw.setSimilarity(java_class("org.apache.lucene.search.similarities.BM25Similarity")(0.9, 0.4))
    generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
    hits = []
    for query in json.loads((work / "queries.json").read_text(encoding="utf-8")):
        text = java_string(query)
        printed = [(hit.docid, float(hit.score)) for hit in searcher.search(text, 10)]
        top = raw.search(generator.buildQuery("contents", analyzer, text), 10)
        hits.append([printed, sorted((float(doc.score) for doc in top.scoreDocs), reverse=True)])
    (work / "hits.json").write_text(json.dumps(hits), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
