"""Words of the generated catalogue: attributes, option values, price ladder, name syllables.

All invented for this package. The lists obey the limits that the tests check: no two attributes are within the fuzzy
limit of the reward, no option value hides a colour name inside another word, none looks like a button.
"""

from __future__ import annotations

from typing import NamedTuple


class OptionKind(NamedTuple):
    """An option group: its name and two pools of values that no matching rule confuses with each other."""

    name: str
    values: tuple[str, ...]
    others: tuple[str, ...]


def words(text: str) -> tuple[str, ...]:
    """A comma-separated list as a tuple; line breaks count as blanks."""
    return tuple(" ".join(piece.split()) for piece in text.split(",") if piece.strip())


def _kind(name: str, values: str, others: str) -> OptionKind:
    return OptionKind(name, words(values), words(others))


OPTION_KINDS: dict[str, OptionKind] = {
    "color": _kind(
        "Color",
        "black, white, navy blue, forest green, dusty pink, burnt orange, deep purple, ivory, lilac, mocha, coral, "
        "maroon",
        "wine red, mustard yellow, smoky gray, teal, copper, beige, turquoise, olive, silver, bronze",
    ),
    "clothing": _kind(
        "Size", "small, medium, large, x-large, xx-large, 3x-large", "us 2, us 4, us 6, us 8, us 10, us 12"
    ),
    "shoe": _kind("Size", "6, 7, 8, 9, 10, 11, 12", "eu 37, eu 38, eu 40, eu 41, eu 43, eu 44"),
    "pack": _kind(
        "Size", "4 ounce, 8 ounce, 12 ounce, 16 ounce, 24 ounce, 32 ounce", "sampler, refill pouch, family bag"
    ),
    "volume": _kind("Size", "50 ml, 75 ml, 120 ml, 200 ml, 350 ml, 500 ml", "travel kit, mini duo, salon jug"),
    "bed": _kind("Size", "twin, full, queen, king", "crib, cot, daybed"),
    "length": _kind("Size", "3 feet, 6 feet, 10 feet, 15 feet, 25 feet", "half meter, two meters, four meters"),
    "inches": _kind("Size", "12 inches, 18 inches, 24 inches, 36 inches, 48 inches", "compact, oversized, extra wide"),
    "flavor": _kind(
        "Flavor Name",
        "vanilla bean, sea salt, honey, cinnamon, hazelnut, ginger, maple pecan, raspberry",
        "black cherry, peanut butter, lemon zest, cardamom, smoked paprika",
    ),
    "scent": _kind(
        "Scent", "jasmine, bergamot, cedar, eucalyptus, vetiver, fig leaf, neroli", "unscented, amber, pine, clove"
    ),
    "fit": _kind("Fit Type", "men, women, youth", "toddler, maternity"),
    "special": _kind("Special Size", "petite, plus, tall, regular", "husky, junior"),
    "shape": _kind("Shape", "round, square, oval, octagon", "hexagon, runner"),
    "style": _kind("Style", "classic, farmhouse, nordic, industrial", "baroque, coastal, minimal"),
    "model": _kind("Style", "with case, bare unit, starter kit, twin bundle", "refurbished, demo edition"),
}

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "beauty": words(
        """cruelty free, paraben free, dermatologist tested, vitamin rich, fast absorbing, sensitive skin, alcohol
        free, quick rinse, frizz control, split ends, deep moisture, vegan formula, leak sealed, pump dispenser, hand
        poured, fragrance free, dandruff relief, botanical extracts, anti wrinkle, keratin infused, silicone free,
        glossy finish, scalp soothing, overnight repair, reef safe, ph balanced, refillable bottle, aloe based, collagen
        boost, sulfate free"""
    ),
    "fashion": words(
        """water resistant, machine washable, padded straps, slim fit, moisture wicking, hidden pocket, reinforced
        seams, elastic waistband, breathable mesh, wrinkle resistant, rubber sole, arch support, quick drying, zip
        closure, fleece lined, hand stitched, adjustable drawstring, reflective trim, soft collar, stretch denim, raw
        hem,
        button front, vented back, sun protective, odor blocking, double layered, snap buckle, crew neck, rolled cuffs,
        packable design"""
    ),
    "electronics": words(
        """noise cancelling, fast charging, gold plated, braided jacket, hands free, shock absorbing, wireless pairing,
        backlit keys, low latency, tangle proof, dust sealed, splash guard, voice assistant, plug play, overheat
        protection, magnetic mount, high resolution, power saving, quad core, scratch hardened, aluminum shell, long
        range, bass enhanced, touch controls, wide compatibility, led indicator, foldable arms, surge guarded,
        detachable strap, ergonomic grip"""
    ),
    "garden": words(
        """easy assembly, solid wood, space saving, stain repellent, non slip, fade resistant, hypoallergenic filling,
        hand woven, weather sealed, mid century, tempered glass, lead free, blackout lining, memory foam, invisible
        zipper, steel frame, rounded corners, stackable build, recycled fibers, scratch proof, brushed nickel, cord
        free, heat insulating, tassel fringe, reversible cover, soundless drawers, mildew proof, kiln dried, thermal
        weave, anti tip"""
    ),
    "grocery": words(
        """gluten free, non gmo, kosher certified, low sodium, fair trade, no preservatives, small batch, keto friendly,
        plant protein, stone ground, dairy free, slow roasted, caffeine reduced, individually wrapped, resealable
        pouch,
        high fiber, naturally colored, sun ripened, cold pressed, usda organic, soy free, shelf stable, zero sugar,
        single origin, whole grain, naturally fermented, kettle cooked, antioxidant packed, egg free, mineral dense"""
    ),
}


#: Price ladder in cents; steps grow by about 1.4, so a uniform step is a log-uniform price.
PRICE_LADDER: tuple[int, ...] = (
    *(500, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000, 11200),
    *(16000, 22400, 32000, 45000, 63000),
)

BRAND_STARTS = words(
    """or, ve, qui, bra, tul, mar, sel, kon, fen, lu, dar, pel, zor, nim, hal, cas, jov, wex, ril, tam, bel, gro, ysk,
    ond, pra, sov, lin, eth, uma, xan"""
)
BRAND_MIDDLES = words("la, ve, ri, no, ta, mi, ra, lo, se, du, ka, fi, po, ny, be")
BRAND_ENDS = words("lo, dane, ra, vik, nor, sa, quin, mel, thi, rova, bex, lis, dor, wen, tic")
