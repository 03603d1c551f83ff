"""Goals in other words: the task of a generated game said as people might, and things described rather than named.

Every phrase tells its kind from all others that one room can hold.  Data and
one draw; the official sentences are in ``goals``.
"""

from __future__ import annotations

from typing import Final

from seed_envs.alfworld.generator.draw import Draw
from seed_envs.alfworld.goals import JOINT, Goal

REQUESTS: Final[dict[str, tuple[str, ...]]] = {
    "simple": (
        "bring {o} over to {t} and leave it there",
        "see to it that {o} ends up in or on {t}",
        "tidy {o} away, it belongs in or on {t}",
    ),
    "look": (
        "study {o} in the glow of {t}",
        "carry {o} to {t} and press the switch",
        "get {o}, then hold it next to {t} while that shines",
    ),
    "clean": (
        "give {o} a good scrub at the tap, then leave it in or on {t}",
        "get the dirt off {o} with water and take it to {t}",
        "make {o} spotless before you leave it in or on {t}",
    ),
    "heat": (
        "make {o} steam, then leave it in or on {t}",
        "raise the temperature of {o} a lot and take it to {t}",
        "let the kitchen waves work on {o} for a minute, its place afterwards is {t}",
    ),
    "cool": (
        "lower the temperature of {o} a lot and take it to {t}",
        "let {o} get icy, then leave it in or on {t}",
        "give {o} a while where the milk is kept, its place afterwards is {t}",
    ),
    "two": (
        "gather a couple of the same kind in one and the same place. The kind is {o}, the place is {t}",
        "leave one beside the other, both in or on the same piece. What they are is {o}, where they go is {t}",
    ),
}
"""Kind of goal -> requests; {o} stands for the object, {t} for the place or lamp."""

DESCRIPTIONS: Final[dict[str, tuple[str, str]]] = {
    "alarmclock": ("what rings in the morning to wake people", "the bedside timepiece that makes noise"),
    "apple": ("the round fruit that cider is made of", "the fruit said to keep doctors away"),
    "baseballbat": ("the wooden club for hitting a pitched ball", "what a batter swings"),
    "basketball": ("the big orange ball that goes through hoops", "what players dribble and dunk"),
    "book": ("the bound pages with a story in them", "what a library lends out"),
    "boots": ("the tall footwear for bad weather", "what keeps feet dry in mud"),
    "bowl": ("the round deep dish one eats soup from", "what breakfast cereal is served in"),
    "box": ("the cardboard container with a lid", "what a parcel is packed in"),
    "bread": ("the baked loaf", "what toast is cut from"),
    "butterknife": ("the blunt blade for spreading", "what one spreads jam with"),
    "candle": ("the wax stick with a wick", "what burns on a birthday cake"),
    "cd": ("the shiny disc with music on it", "the flat round silver thing that a stereo plays"),
    "cellphone": ("the mobile that one calls people with", "the pocket device for texting"),
    "cloth": ("the rag for wiping", "the piece of fabric one dusts with"),
    "creditcard": ("the plastic one pays with", "what a bank issues for shopping without cash"),
    "cup": ("the drinking vessel without a handle", "what one pours juice into"),
    "dishsponge": ("the soft porous thing for scouring plates", "what soaks up suds when pans are scoured"),
    "egg": ("what a hen lays", "the fragile oval thing for an omelette"),
    "footstool": ("the low seat to rest heels on", "what one puts up tired legs on"),
    "fork": ("the piece of cutlery with prongs", "what one twirls spaghetti with"),
    "glassbottle": ("the transparent container with a narrow neck", "the see-through flask for water"),
    "handtowel": ("the small one to dry your fingers", "the little terry square beside the basin"),
    "kettle": ("what one boils water for tea in", "the spouted pot that whistles"),
    "keychain": ("the ring that opens the front door", "what one needs to unlock the car"),
    "knife": ("the sharp blade for cutting", "what a chef chops with"),
    "ladle": ("the long scoop for soup", "what one serves stew with"),
    "laptop": ("the portable computer", "the folding machine for typing and surfing"),
    "lettuce": ("the leafy green head for a salad", "the green leaves that go on a burger"),
    "mug": ("the drinking vessel with a handle", "what one drinks morning coffee from"),
    "newspaper": ("the daily press", "the printed headlines of today"),
    "pan": ("the flat metal thing for frying", "what pancakes are fried in"),
    "papertowelroll": ("the tear-off kitchen sheets", "the roll that mops up spills"),
    "pen": ("the writing tool with ink", "what one signs contracts with"),
    "pencil": ("the writing tool that can be erased", "what one sharpens before sketching"),
    "peppershaker": ("the little pot of ground black spice", "what makes one sneeze at dinner"),
    "pillow": ("the cushion for the head", "the soft thing one sleeps on"),
    "plate": ("the flat round dish one eats from", "what dinner is served on"),
    "plunger": ("the rubber cup on a stick that clears drains", "what unclogs a blocked pipe"),
    "pot": ("the deep metal vessel for boiling pasta", "what stew simmers in"),
    "potato": ("the tuber that fries are made of", "the brown vegetable one mashes"),
    "remotecontrol": ("the clicker that changes channels", "what one zaps through programmes with"),
    "saltshaker": ("the little pot of white seasoning", "what one sprinkles on fries from"),
    "scrubbrush": ("the stiff bristles for floors", "what one scours tiles with"),
    "soapbar": ("the solid block for washing hands", "the slippery block that lathers"),
    "soapbottle": ("the dispenser of liquid for washing hands", "what one pumps suds from"),
    "spatula": ("the flat tool that flips pancakes", "what one turns burgers with"),
    "spoon": ("the piece of cutlery for soup", "what one stirs tea with"),
    "spraybottle": ("the one with a trigger that makes a mist", "what one squirts windows with"),
    "statue": ("the sculpted figure", "the small work of a sculptor"),
    "teddybear": ("the plush animal", "the furry toy children cuddle"),
    "tennisracket": ("the stringed frame for playing on a court", "what one serves an ace with"),
    "tissuebox": ("what one reaches for when the nose runs", "the paper handkerchiefs"),
    "toiletpaper": ("the bathroom roll", "the soft roll nobody wants to run out of"),
    "tomato": ("the red fruit that ketchup is made of", "the red juicy thing for pasta sauce"),
    "towel": ("the big one to dry off with after a bath", "what one wraps up in after a shower"),
    "vase": ("what cut flowers stand in", "the vessel for a bouquet"),
    "watch": ("what tells time on a wrist", "the little timepiece on a strap"),
    "wateringcan": ("what one gives plants a drink with", "the gardener's vessel with a long spout"),
    "winebottle": ("what a sommelier uncorks", "the corked container of Merlot"),
    "armchair": ("the big soft seat for one", "the comfortable seat with rests for both elbows"),
    "bathtubbasin": ("where one soaks in foam", "the big white basin one lies down in"),
    "bed": ("where one sleeps", "the piece of furniture with a mattress"),
    "cabinet": ("the cupboard", "the wall unit with hinged doors"),
    "cart": ("the thing on wheels", "what can be rolled about with things on it"),
    "coffeemachine": ("what brews espresso", "the appliance baristas use"),
    "coffeetable": ("the low one in front of the seats", "the low surface for magazines"),
    "countertop": ("the kitchen worktop", "the long surface where vegetables are chopped"),
    "desk": ("where homework is done", "the surface one studies at"),
    "diningtable": ("where the family eats", "the big one with chairs for dinner guests"),
    "drawer": ("what slides out on rails", "the pull-out compartment"),
    "dresser": ("the chest for clothes", "the bedroom chest with socks inside"),
    "fridge": ("where milk is kept fresh", "the tall cold appliance"),
    "garbagecan": ("the bin", "where rubbish goes"),
    "handtowelholder": ("the small rail beside the basin", "the hook for the little terry square"),
    "laundryhamper": ("the basket for dirty clothes", "where worn shirts wait for washing day"),
    "microwave": ("the appliance for leftovers and popcorn", "the box with a turning glass tray inside"),
    "ottoman": ("the padded seat without a back", "the upholstered block one puts legs on"),
    "safe": ("the strongbox", "the steel thing that valuables are locked in"),
    "shelf": ("the board on the wall", "the plank that things stand on"),
    "sidetable": ("the little one beside where one sits or sleeps", "the small stand within reach of an arm"),
    "sinkbasin": ("where the tap is", "the basin under the faucet"),
    "sofa": ("the long soft seat for several", "where the whole family watches films"),
    "stoveburner": ("where pans get their flame", "the ring one cooks on"),
    "toaster": ("what browns slices", "the appliance that slices pop out of"),
    "toilet": ("the loo", "what gets flushed"),
    "toiletpaperhanger": ("the spindle for the bathroom roll", "what the bathroom roll hangs on"),
    "towelholder": ("the rail where the bath linen hangs", "the bar one hangs bath linen on"),
    "tvstand": ("what the television is on", "the furniture below the screen"),
    "desklamp": ("the small electric light", "what shines on papers at night"),
}
"""Kind of thing, place or lamp -> two descriptions."""

_LETTERS_APART: Final = {
    "alarmclock": "alarm clock",
    "baseballbat": "baseball bat",
    "bathtubbasin": "bathtub basin",
    "butterknife": "butter knife",
    "cd": "CD",
    "coffeemachine": "coffee machine",
    "coffeetable": "coffee table",
    "creditcard": "credit card",
    "desklamp": "desk lamp",
    "diningtable": "dining table",
    "dishsponge": "dish sponge",
    "garbagecan": "garbage can",
    "glassbottle": "glass bottle",
    "handtowel": "hand towel",
    "remotecontrol": "remote control",
    "sidetable": "side table",
    "sinkbasin": "sink basin",
    "soapbar": "soap bar",
    "soapbottle": "soap bottle",
    "toiletpaper": "toilet paper",
    "winebottle": "wine bottle",
}


def in_other_words(goal: Goal, draw: Draw) -> str:
    """State a goal in other words; one time in three a thing is called by its name.

    Args:
        goal: one goal, or two.
        draw: where chance comes from.

    Returns:
        The request, without the game's opening words and without a full stop.
    """
    requests = []
    for part in goal.parts:
        request = draw.choice(REQUESTS[part.kind])
        requests.append(request.format(o=_describe(part.object_type, draw), t=_describe(part.target_type, draw)))
    return JOINT.join(requests)


def _describe(kind: str, draw: Draw) -> str:
    return draw.choice((f"the {_LETTERS_APART.get(kind, kind)}", *DESCRIPTIONS[kind]))
