"""WebShop's result lists equal Lucene's on the real products: by a witness run, else by the hash of such a run."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seed_envs.errors import DependencyMissing
from seed_envs.webshop import lucene_java
from seed_envs.webshop.modes import resolve_rules
from seed_envs.webshop.search import documents
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.store import ShopSpec, get_shop

#: SHA-256 of the 500 lists as Anserini 0.25.0 (Lucene 9.9.1) gave them.
EXPECTED = "263ec84cb1a8eacb902352b49412219e0f8c591a563c780798801694d7d89e9e"


@pytest.fixture(scope="module")
def shop(data_dir: Path) -> Shop:
    folder = data_dir / "webshop"
    if not (folder / "items_shuffle_1000.json.gz").is_file():
        pytest.skip(f"real data: {folder}/items_shuffle_1000.json.gz is missing")
    return get_shop(ShopSpec(resolve_rules("original"), catalogue="files", folder=str(folder)))


@pytest.fixture(scope="module")
def queries(shop: Shop) -> list[str]:
    rng = random.Random(17)
    goals = rng.sample(shop.goals, 200)
    words = [product.document.split() for product in rng.sample(shop.products, 250)]
    snippets = [" ".join(rng.sample(text, min(len(text), rng.randrange(1, 7)))) for text in words]
    odd = [
        "",
        "the of and",
        "black black black shirt",
        "3.5mm 1,000.50",
        "★ ® 中文",
        '"a" AND b^2 *',
        "don't l'oréal’s",
        "foo_bar __ x_",
    ]
    titles = [goal.product.title.lower() for goal in goals[:42]]
    return [goal.instruction.lower() for goal in goals] + snippets + titles + odd


@pytest.fixture(scope="module")
def lists(shop: Shop, queries: list[str]) -> list[list[str]]:
    return [[asin for asin, _ in shop.engine.search(query, 50)] for query in queries]


def test_lists_have_the_hash_of_lucenes(lists: list[list[str]]) -> None:
    assert len(lists) == 500
    assert hashlib.sha256(json.dumps(lists).encode()).hexdigest() == EXPECTED


def test_lists_equal_lucenes(shop: Shop, queries: list[str], lists: list[list[str]], tmp_path: Path) -> None:
    if shutil.which("java") is None or not all(map(importlib.util.find_spec, ("jnius_config", "pyserini"))):
        pytest.skip("Java: a Java runtime, pyjnius or pyserini is missing")
    (tmp_path / "documents.json").write_text(json.dumps(documents(shop.products)), encoding="utf-8")
    (tmp_path / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    script = Path(__file__).parent.parent / "helpers" / "webshop_java.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    expected = json.loads((tmp_path / "hits.json").read_text(encoding="utf-8"))
    different = [query for query, ours, theirs in zip(queries, lists, expected, strict=True) if ours != theirs]
    assert not different


def test_missing_java_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DependencyMissing, match=r"pip install --no-deps pyserini"):
        lucene_java.JavaLucene([("A", "b")])
