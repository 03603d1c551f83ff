"""Words of the generated catalogue: product types, attributes, option values, name syllables.

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


class ProductType(NamedTuple):
    """A kind of product.

    Attributes:
        category: One of the five top-level names.
        path: Category path; types that share two parts are siblings.
        query: Search category the goals name.
        heads: Names of the thing, interchangeable.
        materials: What it is made of or based on.
        extras: What it comes with.
        options: Option groups it may have.
        price_steps: Range of steps on the price ladder.
    """

    category: str
    path: str
    query: str
    heads: tuple[str, ...]
    materials: tuple[str, ...]
    extras: tuple[str, ...]
    options: tuple[str, ...]
    price_steps: tuple[int, int]


def _words(text: str) -> tuple[str, ...]:
    return tuple(" ".join(piece.split()) for piece in text.split(",") if piece.strip())


def _kind(name: str, values: str, others: str) -> OptionKind:
    return OptionKind(name, _words(values), _words(others))


OPTION_KINDS: dict[str, OptionKind] = {
    "color": _kind(
        "Color",
        "black, white, navy blue, forest green, dusty pink, burnt orange, deep purple, ivory, lilac, mocha, coral, maroon",
        "wine red, mustard yellow, smoky gray, teal, copper, beige, turquoise, olive, silver, bronze",
    ),
    "clothing": _kind(
        "Size", "small, medium, large, x-large, xx-large, 3x-large", "us 2, us 4, us 6, us 8, us 10, us 12"
    ),
    "shoe": _kind("Size", "6, 7, 8, 9, 10, 11, 12", "eu 37, eu 38, eu 40, eu 41, eu 43, eu 44"),
    "pack": _kind("Size", "4 ounce, 8 ounce, 12 ounce, 16 ounce, 24 ounce, 32 ounce", "sampler, refill pouch, family bag"),
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
    "beauty": _words(
        """cruelty free, paraben gone, dermatologist tested, vitamin rich, fast absorbing, sensitive skin, alcohol
        less, quick rinse, frizz control, split ends, deep moisture, vegan formula, leak sealed, pump dispenser, hand
        poured, fragrance neutral, dandruff relief, botanical extracts, anti wrinkle, keratin infused, silicone zero,
        glossy finish, scalp soothing, overnight repair, reef safe, ph balanced, refillable bottle, aloe based, collagen
        boost, sulfate null"""
    ),
    "fashion": _words(
        """water resistant, machine washable, padded straps, slim fit, moisture wicking, hidden pocket, reinforced
        seams, elastic waistband, breathable mesh, wrinkle defying, rubber sole, arch support, quick drying, zip closure,
        fleece lined, hand stitched, adjustable drawstring, reflective trim, tag less collar, stretch denim, raw hem,
        button front, vented back, sun protective, odor blocking, double layered, snap buckle, crew neck, rolled cuffs,
        packable design"""
    ),
    "electronics": _words(
        """noise cancelling, fast charging, gold plated, braided jacket, hands free, shock absorbing, wireless pairing,
        backlit keys, low latency, tangle proof, dust sealed, splash guard, voice assistant, plug play, overheat
        protection, magnetic mount, high resolution, power saving, quad core, scratch hardened, aluminum shell, long
        range, bass enhanced, touch controls, wide compatibility, led indicator, foldable arms, surge guarded, detachable
        strap, ergonomic grip"""
    ),
    "garden": _words(
        """easy assembly, solid wood, space saving, stain repellent, non slip, fade defying, hypoallergenic filling,
        hand woven, weather sealed, mid century, tempered glass, lead free, blackout lining, memory foam, invisible
        zipper, steel frame, rounded corners, stackable build, recycled fibers, scratch proof, brushed nickel, cord
        free, heat insulating, tassel fringe, reversible cover, soundless drawers, mildew averse, kiln dried, thermal
        weave, anti tip"""
    ),
    "grocery": _words(
        """gluten free, non gmo, kosher certified, low sodium, fair trade, no preservatives, small batch, keto friendly,
        plant protein, stone ground, dairy less, slow roasted, caffeine reduced, individually wrapped, resealable pouch,
        high fiber, artificial nothing, sun ripened, cold pressed, usda organic, soy excluded, shelf stable, zero sugar,
        single origin, whole grain, naturally fermented, kettle cooked, antioxidant packed, egg omitted, mineral dense"""
    ),
}


def _type(
    category: str, path: str, query: str, heads: str, materials: str, extras: str, options: str, steps: tuple[int, int]
) -> ProductType:
    return ProductType(
        category, path, query, _words(heads), _words(materials), _words(extras), tuple(options.split()), steps
    )


_B, _F, _E, _G, _R = "beauty", "fashion", "electronics", "garden", "grocery"
PRODUCT_TYPES: tuple[ProductType, ...] = (
    _type(_B, "Beauty & Personal Care › Skin Care › Serums", "face serums", "face serum, facial essence", "squalane, rosehip, niacinamide, peptide", "dropper, roller tip, gift tin", "volume scent", (2, 7)),
    _type(_B, "Beauty & Personal Care › Skin Care › Lotions", "body lotions", "body lotion, body cream", "shea, oat, cocoa, marula", "pump, travel tube, sample sachet", "volume scent", (1, 5)),
    _type(_B, "Beauty & Personal Care › Hair Care › Shampoos", "shampoos", "shampoo, hair cleanser", "biotin, argan, rosemary, coconut", "comb, refill pouch, scalp brush", "volume scent", (1, 6)),
    _type(_B, "Beauty & Personal Care › Hair Care › Masks", "hair masks", "hair mask, hair treatment", "avocado, honey, protein, olive oil", "spatula, shower cap, towel wrap", "volume scent", (2, 6)),
    _type(_B, "Beauty & Personal Care › Tools › Brushes", "makeup brushes", "makeup brush set, cosmetic brush kit", "bamboo, nylon, birch, acrylic", "pouch, stand, cleaning mat", "color model", (2, 7)),
    _type(_B, "Beauty & Personal Care › Makeup › Lips", "lip balms", "lip balm, lip conditioner", "beeswax, mango, jojoba, lanolin", "tin, mirror, lanyard", "scent model", (0, 3)),
    _type(_B, "Beauty & Personal Care › Fragrance › Sprays", "perfumes", "perfume, eau spray", "musk, citrus, orchid, resin", "atomizer, display box, funnel", "volume model", (4, 10)),
    _type(_F, "Luggage & Travel › Bags › Backpacks", "backpacks", "backpack, rucksack", "canvas, polyester, cordura, twill", "laptop sleeve, rain hood, key clip", "color model", (4, 9)),
    _type(_F, "Luggage & Travel › Bags › Totes", "tote bags", "tote bag, shopper", "jute, cotton, leather, felt", "inner pouch, luggage tag, coin purse", "color style", (2, 8)),
    _type(_F, "Clothing › Men › Shirts", "men's shirts", "shirt, overshirt", "linen, flannel, oxford, chambray", "spare buttons, collar stays, garment bag", "color clothing", (3, 7)),
    _type(_F, "Clothing › Men › Shorts", "men's shorts", "shorts, board shorts", "ripstop, jersey, corduroy, seersucker", "belt, key loop, liner", "color clothing", (3, 7)),
    _type(_F, "Clothing › Women › Dresses", "women's dresses", "dress, sundress", "viscose, satin, chiffon, poplin", "sash, slip, hanger", "color clothing special", (4, 9)),
    _type(_F, "Clothing › Women › Sweaters", "women's sweaters", "sweater, cardigan", "merino, cashmere, alpaca, mohair", "brooch, laundry bag, yarn sample", "color clothing special", (4, 9)),
    _type(_F, "Footwear › Athletic › Running", "running shoes", "running shoes, trail runners", "knit, suede, neoprene, nubuck", "insoles, laces, shoe bag", "color shoe", (6, 10)),
    _type(_F, "Footwear › Casual › Sandals", "sandals", "sandals, slides", "cork, foam, hemp, raffia", "dust bag, toe guards, heel pads", "color shoe", (3, 8)),
    _type(_F, "Accessories › Headwear › Hats", "hats", "hat, bucket hat", "straw, tweed, velour, wool", "chin cord, hat box, sweatband", "color fit", (2, 6)),
    _type(_E, "Electronics › Audio › Headphones", "headphones", "headphones, headset", "titanium, carbon, graphene, polycarbonate", "carry pouch, ear tips, splitter", "color model", (4, 11)),
    _type(_E, "Electronics › Audio › Speakers", "bluetooth speakers", "bluetooth speaker, soundbox", "walnut panel, fabric, rubber, mesh", "wall bracket, remote, dock", "color model", (4, 11)),
    _type(_E, "Electronics › Phones › Cases", "phone cases", "phone case, phone cover", "silicone, kevlar, resin, bamboo", "screen film, wrist loop, card slot", "color model", (2, 5)),
    _type(_E, "Electronics › Power › Chargers", "chargers", "wall charger, power adapter", "ceramic, gallium, polymer, alloy", "cable tie, plug kit, sleeve", "color model", (2, 7)),
    _type(_E, "Electronics › Cables › Video", "hdmi cables", "hdmi cable, video lead", "copper, fiber, nylon, silver", "cable clips, cap set, label sheet", "length color", (1, 6)),
    _type(_E, "Electronics › Computers › Keyboards", "keyboards", "keyboard, keypad", "aluminum, acrylic, beech, zinc", "keycap puller, wrist rest, usb hub", "color model", (4, 10)),
    _type(_E, "Electronics › Cameras › Tripods", "tripods", "tripod, camera stand", "magnesium, carbon, steel, basalt", "phone clamp, bubble level, bag hook", "color model", (4, 10)),
    _type(_G, "Home & Kitchen › Furniture › Tables", "console tables", "console table, hallway table", "oak, mango wood, marble, bamboo", "felt pads, cable hole, lower shelf", "color style", (7, 13)),
    _type(_G, "Home & Kitchen › Furniture › Shelves", "bookshelves", "bookshelf, bookcase", "pine, ash veneer, iron, plywood", "wall anchor, bookend, label holder", "color style", (6, 12)),
    _type(_G, "Home & Kitchen › Decor › Pillows", "throw pillows", "throw pillow, cushion", "velvet, boucle, linen, down", "insert, piping, gift bag", "color inches shape", (2, 6)),
    _type(_G, "Home & Kitchen › Windows › Curtains", "curtains", "curtain panel, drape", "voile, brocade, muslin, hessian", "tieback, rings, hem weights", "color inches", (3, 8)),
    _type(_G, "Home & Kitchen › Bedding › Sheets", "bed sheets", "bed sheet set, bed linen", "percale, sateen, eucalyptus, microfiber", "pillow shams, storage box, corner clips", "color bed", (4, 9)),
    _type(_G, "Home & Kitchen › Bedding › Blankets", "blankets", "blanket, bed throw", "sherpa, waffle, chenille, wool", "strap, duster bag, patch", "color bed", (4, 9)),
    _type(_G, "Home & Kitchen › Storage › Baskets", "storage baskets", "storage basket, hamper", "seagrass, rattan, rope, wicker", "lid, liner, chalk tag", "color shape", (3, 7)),
    _type(_R, "Grocery & Gourmet › Beverages › Tea", "tea", "loose leaf tea, tea blend", "oolong, rooibos, chamomile, assam", "infuser, tasting card, tea tin", "flavor pack", (1, 5)),
    _type(_R, "Grocery & Gourmet › Beverages › Coffee", "coffee", "coffee beans, ground coffee", "arabica, robusta, espresso roast, peaberry", "scoop, filter pack, brew guide", "flavor pack", (2, 6)),
    _type(_R, "Grocery & Gourmet › Snacks › Bars", "granola bars", "granola bar, cereal bar", "almond, quinoa, date, pumpkin seed", "lunch sleeve, sticker, coupon", "flavor pack", (1, 5)),
    _type(_R, "Grocery & Gourmet › Snacks › Nuts", "mixed nuts", "nut mix, trail mix", "cashew, pistachio, pecan, macadamia", "serving cup, jar, spice packet", "flavor pack", (2, 6)),
    _type(_R, "Grocery & Gourmet › Pantry › Sauces", "pasta sauces", "pasta sauce, marinara", "tomato, basil, truffle, porcini", "recipe leaflet, jar opener, ladle", "flavor pack", (1, 4)),
    _type(_R, "Grocery & Gourmet › Baking › Flour", "flour", "flour, baking mix", "spelt, rye, buckwheat, teff", "sieve, measuring cup, starter sachet", "pack model", (1, 5)),
)

#: Price ladder in cents; steps grow by about 1.4, so a uniform step is a log-uniform price.
PRICE_LADDER: tuple[int, ...] = (
    *(500, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000, 11200),
    *(16000, 22400, 32000, 45000, 63000),
)

BRAND_STARTS = _words(
    """or, ve, qui, bra, tul, mar, sel, kon, fen, lu, dar, pel, zor, nim, hal, cas, jov, wex, ril, tam, bel, gro, ysk, ond,
    pra, sov, lin, eth, uma, xan"""
)
BRAND_MIDDLES = _words("la, ve, ri, no, ta, mi, ra, lo, se, du, ka, fi, po, ny, be")
BRAND_ENDS = _words("lo, dane, ra, vik, nor, sa, quin, mel, thi, rova, bex, lis, dor, wen, tic")
