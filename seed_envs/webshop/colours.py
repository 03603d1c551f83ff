"""Colour normalisation of the original reward: an ordered list of colour names and a substring rule.

The list is an interface fact of WebShop (MIT): its order decides which name wins. Nothing here knows about products.
"""

from __future__ import annotations

from functools import lru_cache

COLOUR_NAMES: tuple[str, ...] = tuple(
    """alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel camo
    caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream crystal
    dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather indigo ivory
    ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor
    mushroom
    mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust sand sapphire
    seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut wheat white
    wine yellow""".split()
)


@lru_cache(maxsize=65536)
def normalise_colour(value: str) -> str:
    """Replaces a string by the first colour name it contains; other strings stay.

    >>> normalise_colour("navy blue"), normalise_colour("standard"), normalise_colour("Black")
    ('blue', 'tan', 'Black')
    """
    for name in COLOUR_NAMES:
        if name in value:
            return name
    return value


@lru_cache(maxsize=65536)
def normalise_pair(pair: tuple[str, str]) -> str:
    """Applies the rule to a (name, value) pair as the original does: membership, not substring.

    Returns:
        The colour name equal to one element, or the text of the pair as a Python tuple.
    """
    for name in COLOUR_NAMES:
        if name in pair:
            return name
    return str(pair)
