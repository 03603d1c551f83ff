"""The original Porter stemmer with its author's later rules (bli to ble, logi to log), as Lucene's PorterStemFilter.

Not the "porter" of Snowball, which treats about 5 % of English passages differently. Words are expected in lower case;
every character outside a, e, i, o, u (and y after a consonant) counts as a consonant.

Reference: M.F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, and the author's later corrections.
"""

from __future__ import annotations

_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"), ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


def _shape(word: str) -> str:
    """The word with every character replaced by c (consonant) or v (vowel)."""
    shape = ""
    for character in word:
        if character in "aeiou" or (character == "y" and shape.endswith("c")):
            shape += "v"
        else:
            shape += "c"
    return shape


def _measure(shape: str) -> int:
    return shape.count("vc")


def _ends_cvc(word: str, shape: str) -> bool:
    return shape.endswith("cvc") and word[-1] not in "wxy"


def _step_1(word: str) -> str:
    """Plurals, -ed, -ing, and y to i."""
    if word.endswith("s"):
        if word.endswith(("sses", "ies")):
            word = word[:-2]
        elif not word.endswith("ss"):
            word = word[:-1]
    if word.endswith("eed"):
        if _measure(_shape(word[:-3])) > 0:
            word = word[:-1]
    else:
        for suffix in ("ed", "ing"):
            if word.endswith(suffix):
                stem = word[: -len(suffix)]
                if "v" in _shape(stem):
                    word = _repair(stem)
                break
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    return word


def _repair(stem: str) -> str:
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    shape = _shape(stem)
    if len(stem) > 1 and stem[-1] == stem[-2] and shape[-1] == "c":
        return stem if stem[-1] in "lsz" else stem[:-1]
    if _measure(shape) == 1 and _ends_cvc(stem, shape):
        return stem + "e"
    return stem


def _replace(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    for suffix, replacement in rules:
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            return stem + replacement if _measure(_shape(stem)) > 0 else word
    return word


def _step_4(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            if suffix in ("sion", "tion"):
                stem += suffix[0]
            return stem if _measure(_shape(stem)) > 1 else word
    return word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        stem = word[:-1]
        shape = _shape(stem)
        if _measure(shape) > 1 or (_measure(shape) == 1 and not _ends_cvc(stem, shape)):
            word = stem
    if word.endswith("ll") and _measure(_shape(word)) > 1:
        word = word[:-1]
    return word


def stem(word: str) -> str:
    """Stems one lower-case word.

    Args:
        word: the word; one of at most two UTF-16 units comes back unchanged.

    Returns:
        The stem.

    >>> [stem(w) for w in ("generalization", "apology", "dying", "at")]
    ['gener', 'apolog', 'dy', 'at']
    """
    if any(character > "\uffff" for character in word):
        units = word.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return _stem_surrogates(units)
    return _stem_units(word)


def _stem_units(word: str) -> str:
    if len(word) <= 2:
        return word
    word = _step_1(word)
    return _step_5(_step_4(_replace(_replace(word, _STEP_2), _STEP_3)))


def _stem_surrogates(word: str) -> str:
    """Stems a word with characters outside the basic plane as Java does, on UTF-16 units."""
    raw = word.encode("utf-16-le", "surrogatepass")
    units = "".join(chr(int.from_bytes(raw[i : i + 2], "little")) for i in range(0, len(raw), 2))
    stemmed = b"".join(ord(unit).to_bytes(2, "little") for unit in _stem_units(units))
    return stemmed.decode("utf-16-le", "surrogatepass")
