"""The closed vocabulary of the embedded policy: what the household texts can say, and a few words of advice.

Only data. Fixed phrases and the names of things ("mug 1") are one token each, so that an episode stays short and a name
is copied in one step; everything else, also a name with a large number, is one word or one number a token.
"""

from __future__ import annotations

from typing import Final

SPECIAL_TOKENS: Final = ("<|pad|>", "<|unk|>", "<|user|>", "<|agent|>", "<|end|>")
PAD, UNKNOWN, USER, AGENT, END = SPECIAL_TOKENS

RECEPTACLES: Final = """
    armchair bathtubbasin bed cabinet cart coffeemachine coffeetable countertop desk diningtable drawer dresser fridge
    garbagecan handtowelholder laundryhamper microwave ottoman safe shelf sidetable sinkbasin sofa stoveburner toaster
    toilet toiletpaperhanger towelholder tvstand
""".split()

OBJECTS: Final = """
    alarmclock apple baseballbat basketball bathtub blinds book boots bowl box bread butterknife candle cd cellphone
    chair cloth creditcard cup curtains desklamp dishsponge egg floorlamp footstool fork glassbottle handtowel
    houseplant kettle keychain knife ladle laptop laundryhamperlid lettuce lightswitch mirror mug newspaper painting
    pan papertowelroll pen pencil peppershaker pillow plate plunger poster pot potato remotecontrol saltshaker
    scrubbrush showerdoor showerglass sink soapbar soapbottle spatula spoon spraybottle statue stoveknob teddybear
    television tennisracket tissuebox toiletpaper tomato towel vase watch wateringcan window winebottle
""".split()

#: Articles carry nothing here and are not encoded.
DROPPED_WORDS: Final = ("a", "an", "the", "and")

#: Lower-case, without punctuation; the longest match wins.
PHRASES: Final = (
    "welcome to textworld alfred",
    "you are in the middle of a room looking quickly around you you see",
    "you are facing the",
    "next to it you see",
    "you arrive at",
    "on the",
    "is open in it you see",
    "in it you see",
    "you see",
    "is closed",
    "you open the",
    "you close the",
    "you pick up the",
    "from the",
    "you move the",
    "to the",
    "you turn on the",
    "you clean the",
    "you heat the",
    "you cool the",
    "you sliced the",
    "using the",
    "you are carrying",
    "you are not carrying anything",
    "nothing happens",
    "there s nothing special about",
    "this is a",
    "your task is to",
    "go to",
)

WORDS: Final = """
    put some in on clean hot cool heat look at under with examine two find it them
    take from move to use open close slice inventory help with
    nothing normal cold sliced this is off you
    success failure unknown
""".split()

#: Words of the hindsight skills; kept apart because only the annotator and the policy itself write them.
SKILL_WORDS: Final = """
    first then search not was were found no avoid again instead before after lies where only one each must
    next by empty place places held hand second
""".split()

LARGEST_NUMBER: Final = 40
LARGEST_NAMED_RECEPTACLE: Final = 8
LARGEST_NAMED_OBJECT: Final = 4


def names() -> list[str]:
    """The numbered names that are one token each."""
    places = [f"{kind} {number}" for kind in RECEPTACLES for number in range(1, LARGEST_NAMED_RECEPTACLE + 1)]
    return places + [f"{kind} {number}" for kind in OBJECTS for number in range(1, LARGEST_NAMED_OBJECT + 1)]


def vocabulary() -> list[str]:
    """All tokens in id order, each once."""
    numbers = [str(number) for number in range(LARGEST_NUMBER + 1)]
    words = [*PHRASES, *WORDS, *SKILL_WORDS, *RECEPTACLES, *OBJECTS, *numbers, *names()]
    return list(dict.fromkeys([*SPECIAL_TOKENS, *words]))
