"""What is constant in every game: which receptacle takes what, and what can be done with which kind of thing.

Data only.  Type names are lower case.  The same facts are found in every
official game, cut down to the types that occur there.
"""

from __future__ import annotations

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CLEANABLE: Final = _names(
    "apple bowl butterknife cloth cup dishsponge egg fork kettle knife ladle lettuce mug pan plate pot potato soapbar "
    "spatula spoon tomato"
)
HEATABLE: Final = _names("apple bread cup egg mug plate potato tomato")
COOLABLE: Final = HEATABLE | _names("bowl lettuce pan pot winebottle")
SLICEABLE: Final = _names("apple bread egg lettuce potato tomato")
VESSELS: Final = _names("bowl box cup mug pan plate pot")
TOGGLEABLE: Final = frozenset({"desklamp", "floorlamp"})
NEVER_PLACEABLE: Final = _names("boots footstool papertowelroll scrubbrush teddybear")

PICKUPABLE: Final = _names(
    "alarmclock apple baseballbat basketball book boots bowl box bread butterknife candle cd cellphone cloth "
    "creditcard "
    "cup dishsponge egg footstool fork glassbottle handtowel kettle keychain knife ladle laptop lettuce mug newspaper "
    "pan papertowelroll pen pencil peppershaker pillow plate plunger pot potato remotecontrol saltshaker scrubbrush "
    "soapbar soapbottle spatula spoon spraybottle statue teddybear tennisracket tissuebox toiletpaper tomato "
    "towel vase "
    "watch wateringcan winebottle"
)

_OPEN_TOPS = PICKUPABLE - NEVER_PLACEABLE - frozenset({"pillow", "plunger", "towel"})
_DRESSER = _names(
    "alarmclock basketball book bowl box cd candle cellphone cloth creditcard cup glassbottle keychain laptop mug "
    "newspaper pen pencil plate remotecontrol spraybottle statue tennisracket tissuebox toiletpaper vase watch "
    "wateringcan winebottle"
)
_SHELF = (_DRESSER - {"basketball", "laptop", "tennisracket"}) | _names(
    "dishsponge handtowel kettle peppershaker pot saltshaker soapbar soapbottle"
)
_SEAT = _names("basketball book box cellphone cloth creditcard keychain laptop newspaper pillow remotecontrol")

CAN_CONTAIN: Final[dict[str, frozenset[str]]] = {
    "countertop": _OPEN_TOPS,
    "diningtable": _OPEN_TOPS,
    "sidetable": _OPEN_TOPS,
    "coffeetable": _OPEN_TOPS,
    "dresser": _DRESSER,
    "desk": _DRESSER | {"soapbottle"},
    "shelf": _SHELF,
    "cabinet": _names(
        "book bowl box cd candle cloth cup dishsponge glassbottle handtowel kettle ladle mug newspaper pan "
        "peppershaker plate plunger pot saltshaker soapbar soapbottle spraybottle tissuebox toiletpaper vase "
        "wateringcan winebottle"
    ),
    "drawer": _names(
        "book butterknife cd candle cellphone cloth creditcard dishsponge fork handtowel keychain knife ladle "
        "newspaper "
        "pen pencil peppershaker remotecontrol saltshaker soapbar soapbottle spatula spoon spraybottle tissuebox "
        "toiletpaper watch wateringcan"
    ),
    "sinkbasin": CLEANABLE | {"glassbottle", "handtowel"},
    "garbagecan": _names(
        "apple bread cd cloth dishsponge egg handtowel lettuce newspaper pen pencil potato soapbar soapbottle "
        "spraybottle tissuebox toiletpaper tomato winebottle"
    ),
    "fridge": COOLABLE | {"glassbottle"},
    "microwave": HEATABLE | {"bowl", "glassbottle"},
    "cart": _names(
        "candle cloth dishsponge handtowel mug plunger soapbar soapbottle spraybottle statue tissuebox toiletpaper vase"
    ),
    "toilet": _names(
        "candle cloth dishsponge handtowel newspaper soapbar soapbottle spraybottle tissuebox toiletpaper"
    ),
    "armchair": _SEAT,
    "sofa": _SEAT,
    "ottoman": _SEAT,
    "bed": _names("baseballbat basketball book cellphone laptop newspaper pillow tennisracket"),
    "safe": _names("cd cellphone creditcard keychain statue vase watch"),
    "bathtubbasin": _names("cloth dishsponge handtowel soapbar"),
    "stoveburner": _names("kettle pan pot"),
    "coffeemachine": frozenset({"mug"}),
    "tvstand": frozenset({"tissuebox"}),
    "toiletpaperhanger": frozenset({"toiletpaper"}),
    "towelholder": frozenset({"towel"}),
    "handtowelholder": frozenset({"handtowel"}),
    "laundryhamper": frozenset({"cloth"}),
    "toaster": frozenset(),
}
"""Receptacle type -> object types it accepts."""
