"""Sentences of the generated catalogue: titles, bullets, descriptions, reviews, instructions.

A small grammar with interchangeable words; it never writes an attribute phrase it was not asked to write.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from string import Formatter

from seed_envs.webshop.generator.product_types import ProductType
from seed_envs.webshop.generator.vocabulary import BRAND_ENDS, BRAND_MIDDLES, BRAND_STARTS, words

_OPENERS = (
    "We made {this} {head} for {people} who {wish}.",
    "{this} {head} {is} built around {material} and {virtue}.",
    "{a_head} with {virtue}, meant for {place}.",
    "{people_cap} reach for {this} {head} in {place}.",
    "{every} {head} {leaves} our workshop after {care}.",
    "Think of {place}: {this} {head} {belongs} there.",
)
_ONE = {"this": "this", "is": "is", "every": "every", "leaves": "leaves", "belongs": "belongs"}
_MANY = {"this": "these", "is": "are", "every": "all", "leaves": "leave", "belongs": "belong"}
_CLAIMS = (
    "{attr_cap}: {why}.",
    "{attr_cap} by design, so {why}.",
    "Because it is {attr}, {why}.",
    "Counted among the {attr} picks of the season, {why}.",
    "You get {attr} quality, and {why}.",
    "{attr_cap} - {why}.",
)
_PLAIN = (
    "Comes with {extra} and a short guide.",
    "The {material} was chosen for {virtue}.",
    "Goes well with {place}.",
    "{people_cap} told us they {wish}, and we listened.",
    "Packed after {care}.",
    "Good to know: {why}.",
    "Suits {people} and anyone who wants {virtue}.",
    "Keep it in {place}; {why}.",
)
_SLOTS = {
    "people": words(
        "students, commuters, new parents, careful buyers, busy households, weekend travelers, neighbors, night "
        "owls, hosts, beginners, collectors, grandparents"
    ),
    "wish": words(
        "hate clutter, plan ahead, like simple things, share a home, start early, give presents often, count every "
        "minute, want no fuss, prefer buying once, care about detail"
    ),
    "virtue": words(
        "a calm look, honest value, a steady feel, a light touch, lasting comfort, careful detail, a tidy outline, "
        "plain good sense, a generous size, a friendly price, even quality, a pleasant weight"
    ),
    "place": words(
        "small apartments, a busy morning, long trips, the office, rainy weekends, the guest room, shared studios, "
        "family evenings, a picnic, the gym locker, summer camps, late hours"
    ),
    "care": words(
        "three checks by hand, a full day of testing, a slow final review, two rounds of sorting, a close look at "
        "every edge, a week of rest, one last inspection"
    ),
    "why": words(
        "it holds up day after day, you can forget about it, nothing gets in your way, it stays the way you left "
        "it, one purchase is enough, it keeps its promise for years, guests will ask where you found it, there is "
        "less to worry about, mornings run smoother, it feels right at once, care takes a minute, it works the "
        "first time"
    ),
}
_REVIEW_TITLES = words(
    "Just right, Does the job, Better than hoped, Fine for the money, Would buy again, Mixed feelings"
)
_REVIEW_BODIES = (
    "Used it in {place} and {why}.",
    "My family are {people}; all of us noticed {virtue}.",
    "Arrived after {care}, it seems.",
    "I {wish}, so this was for me.",
    "Expected more than {virtue}, yet {why}.",
)
_HUMAN = (
    "i need {attrs} {thing}{options}",
    "looking for {thing}{options} that is {attrs}",
    "i would like to buy {attrs} {thing}{options}.",
    "can you find me {thing}{options}? it should be {attrs}",
    "show me {attrs} {thing}{options}..",
    "please order {thing}{options}, {attrs} if possible",
    "i'm after {attrs} {thing}{options} for my sister",
)


@cache
def _fields(template: str) -> tuple[str, ...]:
    """Slots that a template draws, in order of appearance."""
    names = [name for _, name, _, _ in Formatter().parse(template) if name]
    return tuple(dict.fromkeys(name.removesuffix("_cap") for name in names if name.removesuffix("_cap") in _SLOTS))


def _fill(template: str, rng: Random, **fields: str) -> str:
    for name in _fields(template):
        fields[name] = _SLOTS[name][int(rng.random() * len(_SLOTS[name]))]
        fields[f"{name}_cap"] = fields[name].capitalize()
    sentence = template.format(**fields)
    return sentence[0].upper() + sentence[1:]


def is_plural(noun: str) -> bool:
    """Whether an English noun of the product types names several things.

    >>> is_plural("sandals"), is_plural("dress")
    (True, False)
    """
    return noun.endswith("s") and not noun.endswith("ss")


def with_article(noun: str) -> str:
    """A noun with "a" or "an" where it takes one.

    >>> with_article("apron"), with_article("sandals")
    ('an apron', 'sandals')
    """
    if is_plural(noun):
        return noun
    vowel = noun.startswith("hdmi") or (noun[0] in "aeiou" and not noun.startswith("usb"))  # as one says them
    return f"{'an' if vowel else 'a'} {noun}"


def brand(rng: Random) -> str:
    """An invented brand name."""
    middle = rng.choice(BRAND_MIDDLES) if rng.random() < 0.7 else ""
    return (rng.choice(BRAND_STARTS) + middle + rng.choice(BRAND_ENDS)).capitalize()


def title(
    kind: ProductType, name: str, head: str, material: str, extra: str, shown: Sequence[str], code: str
) -> tuple[str, list[str]]:
    """A product title and its nouns.

    Args:
        kind: The product type.
        name: Brand.
        head: What it is called.
        material: Material word.
        extra: What comes with it.
        shown: Attributes that the title names.
        code: Model code.
    """
    parts = [name, *(attribute.title() for attribute in shown), material.title(), head.title()]
    text = f"{' '.join(parts)} with {extra.title()}, {code}"
    nouns = [name, *material.split(), *head.split(), *extra.split(), code]
    return text, [word.lower() for word in nouns]


def bullet(rng: Random, head: str, material: str, extra: str, attribute: str | None) -> str:
    """One bullet, about an attribute or about nothing the reward knows."""
    fields = {"head": head, "material": material, "extra": with_article(extra)}
    if attribute is None:
        return _fill(rng.choice(_PLAIN), rng, **fields)
    return _fill(rng.choice(_CLAIMS), rng, attr=attribute, attr_cap=attribute.capitalize(), **fields)


def description(rng: Random, head: str, material: str, extra: str, attributes: Sequence[str]) -> str:
    """A paragraph that opens, mentions the given attributes and closes."""
    fields = {"head": head, "material": material, "extra": with_article(extra)}
    number = _MANY if is_plural(head) else _ONE
    sentences = [_fill(rng.choice(_OPENERS), rng, **fields, **number, a_head=with_article(head))]
    sentences += [bullet(rng, head, material, extra, attribute) for attribute in attributes]
    sentences += [bullet(rng, head, material, extra, None) for _ in range(rng.randrange(1, 3))]
    return " ".join(sentences)


def reviews(rng: Random) -> list[dict[str, str]]:
    """Up to three short reviews."""
    return [
        {
            "title": rng.choice(_REVIEW_TITLES),
            "score": str(rng.randrange(2, 6)),
            "body": _fill(rng.choice(_REVIEW_BODIES), rng),
        }
        for _ in range(rng.randrange(0, 4))
    ]


def instruction(kind: ProductType, attributes: Sequence[str]) -> str:
    """The synthetic instruction, in the style of the original's."""
    front, back = attributes[:-1], attributes[-1:]
    if len(attributes) > 2:
        return f"Find me {', '.join(front)} {kind.query} with {', '.join(back)}"
    return f"Find me {', '.join(attributes)} {kind.query}"


def human_instruction(
    rng: Random, kind: ProductType, attributes: Sequence[str], options: Sequence[tuple[str, str]]
) -> str:
    """A free-form instruction that states the same wishes."""
    shuffled = rng.sample(list(attributes), len(attributes))
    wished = ", ".join(f"{name.lower()} {value}" if rng.random() < 0.6 else value for name, value in options)
    link = rng.choice((" in ", " with ", ", "))
    return rng.choice(_HUMAN).format(
        attrs=" and ".join(shuffled), thing=kind.query, options=f"{link}{wished}" if wished else ""
    )
