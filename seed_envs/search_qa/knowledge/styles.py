"""Questions about the invented world in the styles of seven public sets, with their decompositions and gold passages.

A question is a function of (seed, size, style, split, number) alone. Whether a number is published is decided by
`selection`; nothing here searches.
"""

from __future__ import annotations

from collections.abc import Callable

from seed_envs.search_qa.knowledge.integers import Stream
from seed_envs.search_qa.knowledge.passages import Sources
from seed_envs.search_qa.knowledge.world import Entity, World
from seed_envs.search_qa.questions import Chain, Plan, Question

SPLITS = ("train", "dev", "test")
_SHARES = ((12, "train"), (15, "dev"), (20, "test"))

KIND_OF_OBJECT = {
    "author": "person", "director": "person", "performer": "person", "father": "person", "founder": "person",
    "birth_city": "city", "capital": "city", "seat": "city", "university_city": "city", "country": "country",
    "university": "university", "river": "river",
}  # fmt: skip
_HINTS = {"novel": "novel", "film": "film", "album": "album", "company": "company"}
_MAKER = {"novel": "author", "film": "director", "album": "performer"}


def split_of(world: World, entity: Entity) -> str:
    """The split whose questions may ask about an entity."""
    draw = Stream(world.seed, "split", entity.kind, entity.name).below(20)
    return next(name for limit, name in _SHARES if draw < limit)


class QuestionMaker:
    """Makes candidate questions about a world.

    Args:
        world: The world.
        sources: Which passage states which fact.
    """

    def __init__(self, world: World, sources: Sources) -> None:
        self.world = world
        self.sources = sources
        self.made: dict[str, dict[str, list[Entity]]] = {}
        for kind in ("novel", "film", "album", "company"):
            table = self.made.setdefault(kind, {})
            for entity in world.kinds[kind]:
                table.setdefault(entity.facts[_MAKER.get(kind, "founder")], []).append(entity)
        self._subjects: dict[tuple[str, str], list[Entity]] = {}
        for kind, entities in world.kinds.items():
            for split in SPLITS:
                self._subjects[kind, split] = []
            for entity in entities:
                self._subjects[kind, split_of(world, entity)].append(entity)

    def question(self, style: str, split: str, number: int) -> Question | None:
        """Candidate `number` of a style; None where the drawn subject lacks a fact."""
        stream = Stream(self.world.seed, self.world.size, style, split, number)
        return STYLES[style](self, stream, f"{style}/{split}/{number}", split)

    def subject(self, stream: Stream, kind: str, split: str) -> Entity | None:
        """A random entity of a kind that belongs to the split."""
        subjects = self._subjects[kind, split]
        return stream.choice(subjects) if subjects else None

    def follow(self, start: Entity, relations: tuple[str, ...]) -> tuple[Entity | str, list[frozenset[str]]] | None:
        """Follows relations; returns the end and the gold passages, None where a fact is missing."""
        current: Entity | str = start
        hops = []
        for relation in relations:
            if isinstance(current, str) or relation not in current.facts:
                return None
            hops.append(frozenset({self.sources[current.kind, current.name, relation]}))
            value = current.facts[relation]
            kind = KIND_OF_OBJECT.get(relation)
            current = self.world.named(kind, value) if kind else value
        return current, hops

    def chain(
        self, stream: Stream, task_id: str, split: str, kind: str, relations: tuple[str, ...], text: str
    ) -> Question | None:
        """A question that follows relations from one subject; `{s}` in the text is its name."""
        subject = self.subject(stream, kind, split)
        found = subject and self.follow(subject, relations)
        if not subject or not found:
            return None
        end, hops = found
        answers = (end.name, *end.aliases) if isinstance(end, Entity) else (end,)
        plan = Plan((Chain(subject.name, relations, _HINTS.get(kind, "")),))
        return Question(task_id, task_id.split("/")[0], text.format(s=subject.name), answers, tuple(hops), plan)


Style = Callable[[QuestionMaker, Stream, str, str], "Question | None"]
_Form = tuple[str, tuple[str, ...], str]

_NQ: tuple[_Form, ...] = (
    ("novel", ("author",), "who wrote the novel {s}"),
    ("film", ("director",), "who directed the film {s}"),
    ("album", ("performer",), "who recorded the album {s}"),
    ("city", ("city_founded",), "when was the city of {s} settled"),
    ("company", ("founder",), "who founded {s}"),
    ("country", ("capital",), "what is the capital of {s}"),
)
_POPQA: tuple[_Form, ...] = (
    ("person", ("occupation",), "What is {s}'s occupation?"),
    ("person", ("birth_city",), "In what city was {s} born?"),
    ("person", ("father",), "Who is the father of {s}?"),
    ("country", ("currency",), "What is the currency of {s}?"),
    ("film", ("director",), "Who was the director of {s}?"),
    ("company", ("seat",), "Where is the head office of {s}?"),
)
_BRIDGE: tuple[_Form, ...] = (
    ("novel", ("author", "birth_city"), "In which city was the author of the novel {s} born?"),
    ("film", ("director", "university"), "At which university did the director of the film {s} study?"),
    ("album", ("performer", "birth_city"), "What is the birthplace of the musician who recorded the album {s}?"),
    ("company", ("founder", "occupation"), "What was the profession of the person who founded {s}?"),
)
_THREE: tuple[_Form, ...] = (
    ("film", ("director", "father", "birth_city"), "Where was the father of the director of the film {s} born?"),
    ("novel", ("author", "birth_city", "country"), "In which country was the author of the novel {s} born?"),
    (
        "album",
        ("performer", "birth_city", "river"),
        "Which river runs through the birthplace of the performer of the album {s}?",
    ),
    (
        "company",
        ("founder", "university", "university_year"),
        "When did the university of the founder of {s} take in its first class?",
    ),
)
_FOUR: tuple[_Form, ...] = (
    (
        "company",
        ("founder", "birth_city", "country", "currency"),
        "What money is used in the country where the founder of {s} was born?",
    ),
    (
        "novel",
        ("author", "birth_city", "country", "capital"),
        "What is the seat of government of the country in which the writer of {s} was born?",
    ),
    (
        "film",
        ("director", "birth_city", "country", "language"),
        "Which language is official in the native country of the director of {s}?",
    ),
)
_BAMBOOGLE: tuple[_Form, ...] = (
    ("company", ("seat", "city_founded"), "In what year was the city settled where {s} keeps its headquarters?"),
    ("country", ("capital", "city_founded"), "In what year was the town settled from which {s} is ruled?"),
    ("university", ("university_city", "river"), "Which river passes the place where the {s} teaches?"),
    ("person", ("birth_city", "city_founded"), "In what year was the town in which {s} first saw daylight settled?"),
)


def _forms(forms: tuple[_Form, ...]) -> Style:
    def make(maker: QuestionMaker, stream: Stream, task_id: str, split: str) -> Question | None:
        kind, relations, text = stream.choice(forms)
        return maker.chain(stream, task_id, split, kind, relations, text)

    return make


def _nq(maker: QuestionMaker, stream: Stream, task_id: str, split: str) -> Question | None:
    kind, relations, text = stream.choice(_NQ)
    question = maker.chain(stream, task_id, split, kind, relations, text)
    if question is None:
        return None
    return Question(task_id, "nq", question.text.lower(), question.answers, question.hops, question.plan)


def _triviaqa(maker: QuestionMaker, stream: Stream, task_id: str, split: str) -> Question | None:
    """From a description to a name: the relation is read backwards, and a second fact may narrow it down."""
    kind = stream.choice(("novel", "film", "album", "company"))
    subject = maker.subject(stream, kind, split)
    if subject is None:
        return None
    relation = _MAKER.get(kind, "founder")
    maker_name = subject.facts[relation]
    if len(maker.made[kind][maker_name]) > 1:
        return None
    text = {
        "novel": "Which novel came from the pen of {m}?",
        "film": "For which film did {m} sit in the director's chair?",
        "album": "Which album did {m} record?",
        "company": "Which company did {m} found?",
    }[kind].format(m=maker_name)
    source = maker.sources[subject.kind, subject.name, relation]
    plan = Plan((Chain(maker_name, (f"~{relation}",), _HINTS[kind]),))
    return Question(task_id, "triviaqa", text, (subject.name,), (frozenset({source}),), plan)


def _hotpotqa(maker: QuestionMaker, stream: Stream, task_id: str, split: str) -> Question | None:
    if stream.below(4):
        return _forms(_BRIDGE)(maker, stream, task_id, split)
    first, second = maker.subject(stream, "person", split), maker.subject(stream, "person", split)
    if first is None or second is None or first.facts["birth_year"] == second.facts["birth_year"]:
        return None
    elder = min(first, second, key=lambda person: person.facts["birth_year"])
    hops = tuple(frozenset({maker.sources["person", p.name, "birth_year"]}) for p in (first, second))
    plan = Plan(tuple(Chain(person.name, ("birth_year",)) for person in (first, second)), "smaller")
    text = f"Who was born first, {first.name} or {second.name}?"
    return Question(task_id, "hotpotqa", text, (elder.name, *elder.aliases), hops, plan)


STYLES: dict[str, Style] = {
    "nq": _nq,
    "triviaqa": _triviaqa,
    "popqa": _forms(_POPQA),
    "hotpotqa": _hotpotqa,
    "2wikimultihopqa": _forms(_THREE),
    "musique": _forms(_FOUR),
    "bamboogle": _forms(_BAMBOOGLE),
}
