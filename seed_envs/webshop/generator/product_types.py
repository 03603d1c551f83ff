"""Product types of the generated catalogue: five categories, 36 kinds of things, all invented for this package."""

from __future__ import annotations

from typing import NamedTuple

from seed_envs.webshop.generator.vocabulary import words


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


def _type(
    category: str, path: str, query: str, heads: str, materials: str, extras: str, options: str, steps: tuple[int, int]
) -> ProductType:
    return ProductType(
        category, path, query, words(heads), words(materials), words(extras), tuple(options.split()), steps
    )


_B, _F, _E, _G, _R = "beauty", "fashion", "electronics", "garden", "grocery"
PRODUCT_TYPES: tuple[ProductType, ...] = (
    _type(
        _B,
        "Beauty & Personal Care › Skin Care › Serums",
        "face serums",
        "face serum, facial essence",
        "squalane, rosehip, niacinamide, peptide",
        "dropper, roller tip, gift tin",
        "volume scent",
        (2, 7),
    ),
    _type(
        _B,
        "Beauty & Personal Care › Skin Care › Lotions",
        "body lotions",
        "body lotion, body cream",
        "shea, oat, cocoa, marula",
        "pump, travel tube, sample sachet",
        "volume scent",
        (1, 5),
    ),
    _type(
        _B,
        "Beauty & Personal Care › Hair Care › Shampoos",
        "shampoos",
        "shampoo, hair cleanser",
        "biotin, argan, rosemary, coconut",
        "comb, refill pouch, scalp brush",
        "volume scent",
        (1, 6),
    ),
    _type(
        _B,
        "Beauty & Personal Care › Hair Care › Masks",
        "hair masks",
        "hair mask, hair treatment",
        "avocado, honey, protein, olive oil",
        "spatula, shower cap, towel wrap",
        "volume scent",
        (2, 6),
    ),
    _type(
        _B,
        "Beauty & Personal Care › Tools › Brushes",
        "makeup brushes",
        "makeup brush set, cosmetic brush kit",
        "bamboo, nylon, birch, acrylic",
        "pouch, stand, cleaning mat",
        "color model",
        (2, 7),
    ),
    _type(
        _B,
        "Beauty & Personal Care › Makeup › Lips",
        "lip balms",
        "lip balm, lip conditioner",
        "beeswax, mango, jojoba, lanolin",
        "tin, mirror, lanyard",
        "scent model",
        (0, 3),
    ),
    _type(
        _B,
        "Beauty & Personal Care › Fragrance › Sprays",
        "perfumes",
        "perfume, eau spray",
        "musk, citrus, orchid, resin",
        "atomizer, display box, funnel",
        "volume model",
        (4, 10),
    ),
    _type(
        _F,
        "Luggage & Travel › Bags › Backpacks",
        "backpacks",
        "backpack, rucksack",
        "canvas, polyester, cordura, twill",
        "laptop sleeve, rain hood, key clip",
        "color model",
        (4, 9),
    ),
    _type(
        _F,
        "Luggage & Travel › Bags › Totes",
        "tote bags",
        "tote bag, shopper",
        "jute, cotton, leather, felt",
        "inner pouch, luggage tag, coin purse",
        "color style",
        (2, 8),
    ),
    _type(
        _F,
        "Clothing › Men › Shirts",
        "men's shirts",
        "shirt, overshirt",
        "linen, flannel, oxford, chambray",
        "spare buttons, collar stays, garment bag",
        "color clothing",
        (3, 7),
    ),
    _type(
        _F,
        "Clothing › Men › Shorts",
        "men's shorts",
        "shorts, board shorts",
        "ripstop, jersey, corduroy, seersucker",
        "belt, key loop, liner",
        "color clothing",
        (3, 7),
    ),
    _type(
        _F,
        "Clothing › Women › Dresses",
        "women's dresses",
        "dress, sundress",
        "viscose, satin, chiffon, poplin",
        "sash, slip, hanger",
        "color clothing special",
        (4, 9),
    ),
    _type(
        _F,
        "Clothing › Women › Sweaters",
        "women's sweaters",
        "sweater, cardigan",
        "merino, cashmere, alpaca, mohair",
        "brooch, laundry bag, yarn sample",
        "color clothing special",
        (4, 9),
    ),
    _type(
        _F,
        "Footwear › Athletic › Running",
        "running shoes",
        "running shoes, trail runners",
        "knit, suede, neoprene, nubuck",
        "insoles, laces, shoe bag",
        "color shoe",
        (6, 10),
    ),
    _type(
        _F,
        "Footwear › Casual › Sandals",
        "sandals",
        "sandals, slides",
        "cork, foam, hemp, raffia",
        "dust bag, toe guards, heel pads",
        "color shoe",
        (3, 8),
    ),
    _type(
        _F,
        "Accessories › Headwear › Hats",
        "hats",
        "hat, bucket hat",
        "straw, tweed, velour, wool",
        "chin cord, hat box, sweatband",
        "color fit",
        (2, 6),
    ),
    _type(
        _E,
        "Electronics › Audio › Headphones",
        "headphones",
        "headphones, headset",
        "titanium, carbon, graphene, polycarbonate",
        "carry pouch, ear tips, splitter",
        "color model",
        (4, 11),
    ),
    _type(
        _E,
        "Electronics › Audio › Speakers",
        "bluetooth speakers",
        "bluetooth speaker, soundbox",
        "walnut panel, fabric, rubber, mesh",
        "wall bracket, remote, dock",
        "color model",
        (4, 11),
    ),
    _type(
        _E,
        "Electronics › Phones › Cases",
        "phone cases",
        "phone case, phone cover",
        "silicone, kevlar, resin, bamboo",
        "screen film, wrist loop, card slot",
        "color model",
        (2, 5),
    ),
    _type(
        _E,
        "Electronics › Power › Chargers",
        "chargers",
        "wall charger, power adapter",
        "ceramic, gallium, polymer, alloy",
        "cable tie, plug kit, sleeve",
        "color model",
        (2, 7),
    ),
    _type(
        _E,
        "Electronics › Cables › Video",
        "hdmi cables",
        "hdmi cable, video lead",
        "copper, fiber, nylon, silver",
        "cable clips, cap set, label sheet",
        "length color",
        (1, 6),
    ),
    _type(
        _E,
        "Electronics › Computers › Keyboards",
        "keyboards",
        "keyboard, keypad",
        "aluminum, acrylic, beech, zinc",
        "keycap puller, wrist rest, usb hub",
        "color model",
        (4, 10),
    ),
    _type(
        _E,
        "Electronics › Cameras › Tripods",
        "tripods",
        "tripod, camera stand",
        "magnesium, carbon, steel, basalt",
        "phone clamp, bubble level, bag hook",
        "color model",
        (4, 10),
    ),
    _type(
        _G,
        "Home & Kitchen › Furniture › Tables",
        "console tables",
        "console table, hallway table",
        "oak, mango wood, marble, bamboo",
        "felt pads, cable hole, lower shelf",
        "color style",
        (7, 13),
    ),
    _type(
        _G,
        "Home & Kitchen › Furniture › Shelves",
        "bookshelves",
        "bookshelf, bookcase",
        "pine, ash veneer, iron, plywood",
        "wall anchor, bookend, label holder",
        "color style",
        (6, 12),
    ),
    _type(
        _G,
        "Home & Kitchen › Decor › Pillows",
        "throw pillows",
        "throw pillow, cushion",
        "velvet, boucle, linen, down",
        "insert, piping, gift bag",
        "color inches shape",
        (2, 6),
    ),
    _type(
        _G,
        "Home & Kitchen › Windows › Curtains",
        "curtains",
        "curtain panel, drape",
        "voile, brocade, muslin, hessian",
        "tieback, rings, hem weights",
        "color inches",
        (3, 8),
    ),
    _type(
        _G,
        "Home & Kitchen › Bedding › Sheets",
        "bed sheets",
        "bed sheet set, bed linen",
        "percale, sateen, eucalyptus, microfiber",
        "pillow shams, storage box, corner clips",
        "color bed",
        (4, 9),
    ),
    _type(
        _G,
        "Home & Kitchen › Bedding › Blankets",
        "blankets",
        "blanket, bed throw",
        "sherpa, waffle, chenille, wool",
        "strap, duster bag, patch",
        "color bed",
        (4, 9),
    ),
    _type(
        _G,
        "Home & Kitchen › Storage › Baskets",
        "storage baskets",
        "storage basket, hamper",
        "seagrass, rattan, rope, wicker",
        "lid, liner, chalk tag",
        "color shape",
        (3, 7),
    ),
    _type(
        _R,
        "Grocery & Gourmet › Beverages › Tea",
        "tea",
        "loose leaf tea, tea blend",
        "oolong, rooibos, chamomile, assam",
        "infuser, tasting card, tea tin",
        "flavor pack",
        (1, 5),
    ),
    _type(
        _R,
        "Grocery & Gourmet › Beverages › Coffee",
        "coffee",
        "coffee beans, ground coffee",
        "arabica, robusta, espresso roast, peaberry",
        "scoop, filter pack, brew guide",
        "flavor pack",
        (2, 6),
    ),
    _type(
        _R,
        "Grocery & Gourmet › Snacks › Bars",
        "granola bars",
        "granola bar, cereal bar",
        "almond, quinoa, date, pumpkin seed",
        "lunch sleeve, sticker, coupon",
        "flavor pack",
        (1, 5),
    ),
    _type(
        _R,
        "Grocery & Gourmet › Snacks › Nuts",
        "mixed nuts",
        "nut mix, trail mix",
        "cashew, pistachio, pecan, macadamia",
        "serving cup, jar, spice packet",
        "flavor pack",
        (2, 6),
    ),
    _type(
        _R,
        "Grocery & Gourmet › Pantry › Sauces",
        "pasta sauces",
        "pasta sauce, marinara",
        "tomato, basil, truffle, porcini",
        "recipe leaflet, jar opener, ladle",
        "flavor pack",
        (1, 4),
    ),
    _type(
        _R,
        "Grocery & Gourmet › Baking › Flour",
        "flour",
        "flour, baking mix",
        "spelt, rye, buckwheat, teff",
        "sieve, measuring cup, starter sachet",
        "pack model",
        (1, 5),
    ),
)
