"""The invented world: entities and the facts about them, as a graph. No sentence is written here.

Names are unique within a kind; a film may carry the title of a novel, and universities the name of their city.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from seed_envs.search_qa.knowledge import names
from seed_envs.search_qa.knowledge.integers import Stream

_OCCUPATIONS = tuple(
    (
        "astronomer botanist cellist chemist composer engineer historian judge mathematician painter physician "
        "playwright poet sculptor surveyor translator"
    ).split()
)
_INDUSTRIES = tuple(
    (
        "bicycles, clocks, cranes, dyes, elevators, ferries, furniture, glassware, harvesters, instruments, locks, "
        "paints, pianos, printing presses, pumps, radios, sewing machines, steel cables, telescopes, turbines"
    ).split(", ")
)


@dataclass(frozen=True)
class Size:
    """How many entities of each kind."""

    countries: int
    cities: int
    rivers: int
    universities: int
    people: int
    works: int
    companies: int


SIZES = {
    "tiny": Size(5, 16, 5, 6, 84, 48, 18),
    "default": Size(40, 440, 60, 120, 3000, 2000, 500),
    "large": Size(90, 2200, 240, 600, 15200, 10200, 2500),
}


@dataclass
class Entity:
    """One thing with a name.

    Attributes:
        kind: country, city, river, university, person, novel, film, album or company.
        name: As sentences write it.
        title: As its passages are titled.
        facts: Relation to object.
        aliases: Other accepted spellings.
    """

    kind: str
    name: str
    title: str
    facts: dict[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


@dataclass
class World:
    """All entities, by kind and in order of creation."""

    seed: int
    size: str
    kinds: dict[str, list[Entity]]

    def entities(self) -> list[Entity]:
        """All entities, kind after kind."""
        return [entity for found in self.kinds.values() for entity in found]

    def named(self, kind: str, name: str) -> Entity:
        """The entity of a kind with a name."""
        if not hasattr(self, "_index"):
            self._index = {(entity.kind, entity.name): entity for entity in self.entities()}
        return self._index[kind, name]


def _unique(make: Callable[[Stream], str], stream: Stream, taken: set[str]) -> str:
    """A new name; after many collisions a second word makes it one."""
    for attempt in range(1000):
        name = make(stream)
        if attempt > 200:
            name = f"{name} {make(stream)}"
        if name.lower() not in taken:
            taken.add(name.lower())
            return name
    raise RuntimeError("the name generator ran out of names")


def build_world(seed: int, size: str) -> World:
    """Makes the world of a seed.

    Args:
        seed: Any integer.
        size: "tiny", "default" or "large".
    """
    numbers = SIZES[size]
    words: set[str] = set()
    rivers = _places(seed, "river", names.river_name, numbers.rivers, words)
    countries = _places(seed, "country", names.country_name, numbers.countries, words)
    cities = _places(seed, "city", names.city_name, numbers.cities, words)
    stream = Stream(seed, size, "places")
    for index, city in enumerate(cities):
        country = countries[index] if index < len(countries) else stream.choice(countries)
        city.facts = {"country": country.name, "river": stream.choice(rivers).name}
        city.facts["city_founded"] = str(1102 + stream.below(700))
    for index, country in enumerate(countries):
        country.facts = {"capital": cities[index].name}
        country.facts["currency"] = _unique(names.currency_name, stream, words)
        country.facts["language"] = _unique(names.language_name, stream, words)
    universities = []
    for index in range(numbers.universities):
        city = cities[index]
        name = f"University of {city.name}"
        facts = {"university_city": city.name, "university_year": str(1810 + stream.below(150))}
        universities.append(Entity("university", name, name, facts))
    people = _people(seed, size, numbers.people, cities, universities)
    kinds = {"country": countries, "city": cities, "river": rivers, "university": universities, "person": people}
    kinds.update(_works(seed, size, numbers.works, people))
    kinds["company"] = _companies(seed, size, numbers.companies, people, cities)
    return World(seed, size, kinds)


def _places(seed: int, kind: str, make: Callable[[Stream], str], count: int, words: set[str]) -> list[Entity]:
    stream = Stream(seed, kind)
    made: list[Entity] = []
    for _ in range(count):
        name = _unique(make, stream, words)
        made.append(Entity(kind, name, name))
    return made


def _people(seed: int, size: str, count: int, cities: list[Entity], universities: list[Entity]) -> list[Entity]:
    stream = Stream(seed, size, "people")
    people: list[Entity] = []
    taken: set[tuple[str, str]] = set()
    # Fathers share a surname with their children, so surnames are drawn from families.
    families = [names.surname(stream) for _ in range(max(8, count // 3))]
    while len(people) < count:
        first, last = names.first_name(stream), stream.choice(families)
        if (first[0], last) in taken:
            continue
        taken.add((first[0], last))
        facts = {
            "occupation": stream.choice(_OCCUPATIONS),
            "birth_city": stream.choice(cities).name,
            "birth_year": str(1840 + stream.below(150)),
            "university": stream.choice(universities).name,
        }
        name = f"{first} {last}"
        people.append(Entity("person", name, name, facts, (f"{first[0]}. {last}",)))
    _add_fathers(people)
    return people


def _add_fathers(people: list[Entity]) -> None:
    """Gives a person the oldest namesake of the family who is 20 to 60 years older, if there is one."""
    families: dict[str, list[Entity]] = {}
    for person in people:
        families.setdefault(person.name.rpartition(" ")[2], []).append(person)
    for person in people:
        born = int(person.facts["birth_year"])
        family = families[person.name.rpartition(" ")[2]]
        fathers = [other for other in family if 20 <= born - int(other.facts["birth_year"]) <= 60]
        if fathers:
            person.facts["father"] = min(fathers, key=lambda other: other.facts["birth_year"]).name


_WORK_KINDS = (("novel", "author"), ("film", "director"), ("album", "performer"))


def _works(seed: int, size: str, count: int, people: list[Entity]) -> dict[str, list[Entity]]:
    stream = Stream(seed, size, "works")
    made: dict[str, list[Entity]] = {kind: [] for kind, _ in _WORK_KINDS}
    titles: dict[str, set[str]] = {kind: set() for kind, _ in _WORK_KINDS}
    for index in range(count):
        kind, relation = _WORK_KINDS[index % len(_WORK_KINDS)]
        if kind == "film" and stream.below(8) == 0 and made["novel"][-1].name.lower() not in titles["film"]:
            name = made["novel"][-1].name
            titles["film"].add(name.lower())
        else:
            name = _unique(names.work_title, stream, titles[kind])
        shared = kind == "film" and name.lower() in titles["novel"]
        facts = {relation: stream.choice(people).name, "year": str(1900 + stream.below(120))}
        made[kind].append(Entity(kind, name, f"{name} ({kind})" if shared else name, facts))
    return made


def _companies(seed: int, size: str, count: int, people: list[Entity], cities: list[Entity]) -> list[Entity]:
    stream = Stream(seed, size, "companies")
    made: list[Entity] = []
    taken: set[str] = set()
    founders: set[str] = set()
    while len(made) < count:
        founder = stream.choice(people)
        if founder.name in founders:
            continue
        founders.add(founder.name)
        name = _unique(names.company_name, stream, taken)
        facts = {
            "founder": founder.name,
            "industry": stream.choice(_INDUSTRIES),
            "seat": stream.choice(cities).name,
            "company_year": str(1860 + stream.below(150)),
        }
        made.append(Entity("company", name, name, facts))
    return made
