"""Lucene's own result lists, computed in a process of its own so that no test process holds a JVM.

Usage: python webshop_java.py WORK_DIR, with ``documents.json`` ((asin, text) pairs) and ``queries.json``; writes
``hits.json`` (50 asins per query).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from seed_envs.webshop.lucene_java import JavaLucene


def main(work: Path) -> None:
    documents = json.loads((work / "documents.json").read_text(encoding="utf-8"))
    engine = JavaLucene([(asin, text) for asin, text in documents], work)
    queries = json.loads((work / "queries.json").read_text(encoding="utf-8"))
    hits = [[asin for asin, _ in engine.search(query, 50)] for query in queries]
    (work / "hits.json").write_text(json.dumps(hits), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
