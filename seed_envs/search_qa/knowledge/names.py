"""Invented names of people, places, works and companies. Invented, so that no model remembers a fact about them."""

from __future__ import annotations

from seed_envs.search_qa.knowledge.integers import Stream


def _words(text: str) -> list[str]:
    return text.split()


_ONSETS = _words("b br c d dr f g gr h j k kl l m n p pr qu r s sk st t tr v w z")
_VOWELS = _words("a e i o u ae ei ou")
_CODAS = _words("l n r s th nd rn lt m k v sh")
_CITY_ENDINGS = _words("ara burg dale en ford holm ia mere mouth or stad ton um wick")
_COUNTRY_ENDINGS = _words("avia ania eria istan land ora undia ysia")
_FIRST_NAMES = _words(
    "Adrel Alba Anso Aurin Bela Benno Brisa Calix Cora Corin Dara Delfin Dorin Edda Elio Elsin Emra Esben Fay "
    "Ferro Fiora Galen Gerta Gilon Halda Haro Ilsa Imre Iona Jarek Jolan Juna Kalle Kerin Kira Lasse Leda "
    "Liro Lorin Mabel Maro Mira Nadir Nela Nevin Odo Olia Oren Osric Pavo Perla Piet Quila Quent Rafe Rhea "
    "Runa Sabin Selma Silas Tamsin Tavi Teo Ulla Urban Vada Vesna Viggo Wanda Wilm Xenia Yara Yorick Zeno "
    "Zora"
)
_ADJECTIVES = _words(
    "Amber Ashen Bitter Borrowed Bright Broken Burning Captive Careful Copper Crooked Distant Drowned Empty "
    "Faithful Fallen Feathered Forgotten Frozen Gentle Gilded Glass Golden Hidden Hollow Idle Iron Ivory Last "
    "Lonely Lost Midnight Narrow Northern Painted Pale Paper Patient Quiet Restless Salted Scarlet Second "
    "Secret Silent Silver Singing Sleeping Stolen Stubborn Sunken Tender Timid Twisted Unfinished Velvet "
    "Wandering Wicked Winter Wooden"
)
_NOUNS = _words(
    "Anchor Archive Arrow Balcony Bell Bridge Cabin Candle Canyon Carriage Cathedral Clock Compass Corridor "
    "Crown Curtain Desert Door Drum Engine Feather Ferry Fountain Garden Gate Glacier Harbor Hotel Island "
    "Kitchen Ladder Lantern Letter Library Lighthouse Machine Map Market Meadow Mirror Mountain Needle "
    "Orchard Palace Parade Passenger Pilot Prairie Promise Quarry Rain Ribbon Season Shadow Ship Shore "
    "Station Stranger Telegram Theater Thunder Tower Valley Voyage Waltz Window"
)
_COMPANY_ENDINGS = _words("Works Industries Group Company Brothers Laboratories Systems Holdings")


def syllables(stream: Stream, count: int) -> str:
    """An invented word of that many syllables, in lower case."""
    parts = []
    for index in range(count):
        coda = stream.choice(_CODAS) if index == count - 1 or stream.below(3) == 0 else ""
        parts.append(stream.choice(_ONSETS) + stream.choice(_VOWELS) + coda)
    return "".join(parts)


def first_name(stream: Stream) -> str:
    """A first name."""
    return stream.choice(_FIRST_NAMES)


def surname(stream: Stream) -> str:
    """A surname."""
    return syllables(stream, 2).capitalize()


def city_name(stream: Stream) -> str:
    """The name of a city."""
    return (syllables(stream, 1) + stream.choice(_CITY_ENDINGS)).capitalize()


def country_name(stream: Stream) -> str:
    """The name of a country."""
    return (syllables(stream, 1) + stream.choice(_COUNTRY_ENDINGS)).capitalize()


def river_name(stream: Stream) -> str:
    """The name of a river."""
    return syllables(stream, 1).capitalize() + " River"


def currency_name(stream: Stream) -> str:
    """The name of a currency, in lower case."""
    return syllables(stream, 2)


def language_name(stream: Stream) -> str:
    """The name of a language."""
    return syllables(stream, 1).capitalize() + "ish"


def work_title(stream: Stream) -> str:
    """The title of a film, novel or album."""
    return f"{stream.choice(_ADJECTIVES)} {stream.choice(_NOUNS)}"


def company_name(stream: Stream) -> str:
    """The name of a company."""
    return f"{syllables(stream, 2).capitalize()} {stream.choice(_COMPANY_ENDINGS)}"
