"""Writes the world down as passages of 60 to 100 words: facts in fixed wordings among padding that states none.

The facts of an entity are spread over several passages. Padding mentions other entities, so that a passage about one
thing holds the names of others, but never in the wording of a relation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seed_envs.search_qa.knowledge.integers import Stream
from seed_envs.search_qa.knowledge.relations import state
from seed_envs.search_qa.knowledge.world import Entity, World
from seed_envs.search_qa.retrievers.base import Hit

PARTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "country": (("capital",), ("currency", "language")),
    "city": (("country", "river"), ("city_founded",)),
    "river": ((),),
    "university": (("university_city", "university_year"),),
    "person": (("occupation", "birth_city"), ("birth_year", "father", "university")),
    "novel": (("author", "year"),),
    "film": (("director", "year"),),
    "album": (("performer", "year"),),
    "company": (("founder", "industry"), ("seat", "company_year")),
}
"""Which facts each passage about an entity states."""

_PADDING = (
    "Guides often mention {s} in one breath with {x}, although the two have little in common.",
    "An old travel account compares {s} with {x} and prefers the former.",
    "A radio series devoted an evening to {s}, followed by a discussion of {x}.",
    "School books treat {s} briefly and send the curious reader to {x}.",
    "Letters kept in a private collection speak of {s} with warmth and of {x} with caution.",
    "In a survey of readers {s} was remembered more often than {x}.",
    "Some writers have confused {s} with {x}, and later editions corrected the mistake.",
    "A stamp issued years ago shows {s} beside a drawing inspired by {x}.",
    "The exhibition that made {s} popular also had a small room about {x}.",
    "Those who know {x} well tend to speak kindly of {s}.",
    "A pamphlet about {s} was printed together with one about {x}.",
    "Nobody has yet explained why {s} and {x} appear in the same diary.",
    "Few visitors who ask about {x} leave without hearing of {s}.",
    "A song that was popular for a summer rhymes {s} with {x}.",
)
_FIRST = (
    "{s} is the subject of this entry.",
    "{s} has been described many times.",
    "{s} is known well beyond the region.",
    "{s} figures in several reference books.",
)
_MIN_WORDS = 60


Sources = dict[tuple[str, str, str], str]
"""(kind, entity name, relation) to the id of the passage that states the fact."""


def _plan(world: World) -> Iterator[tuple[Entity, list[str]]]:
    """Entity and stated relations of every passage, in order; a passage's id is its position."""
    for entity in world.entities():
        for part in PARTS[entity.kind]:
            yield entity, [relation for relation in part if relation in entity.facts]


def locate_facts(world: World) -> Sources:
    """Which passage states which fact, without writing the passages."""
    return {
        (entity.kind, entity.name, relation): str(position)
        for position, (entity, relations) in enumerate(_plan(world))
        for relation in relations
    }


def write_passages(world: World) -> list[Hit]:
    """Writes every entity of the world down; the id of a passage is its position."""
    mentions = [_mention(entity) for entity in world.entities()]
    passages: list[Hit] = []
    current, stream = None, Stream()
    for entity, relations in _plan(world):
        if entity is not current:
            current, stream = entity, Stream(world.seed, world.size, "text", entity.kind, entity.name)
        passages.append(Hit(str(len(passages)), entity.title, _text(entity, relations, mentions, stream)))
    return passages


def _mention(entity: Entity) -> str:
    return f"the {entity.name}" if entity.kind in ("river", "university") else entity.name


def _text(entity: Entity, relations: Sequence[str], mentions: Sequence[str], stream: Stream) -> str:
    subject = _mention(entity)
    facts = [state(relation, entity.name, entity.facts[relation], stream.below(2)) for relation in relations]
    filler: list[str] = []
    words = sum(len(fact.split()) for fact in facts)
    while words < _MIN_WORDS:
        sentence = stream.choice(_PADDING).format(s=subject, x=stream.choice(mentions))
        if sentence.split(" ", 3)[:3] in [other.split(" ", 3)[:3] for other in filler]:
            continue
        filler.append(sentence[0].upper() + sentence[1:])
        words += len(sentence.split())
    if not facts:
        opening = stream.choice(_FIRST).format(s=subject)
        return " ".join([opening[0].upper() + opening[1:], *filler])
    # The first fact opens the passage; the others stand among the padding.
    body = filler
    for fact in facts[1:]:
        body.insert(stream.below(len(body) + 1), fact)
    return " ".join([facts[0], *body])
