"""A second, naive reading of the original WebShop's rules, straight from the raw files, to compare with.

Written for clarity, not speed; it shares only the search engine and the nouns of titles with the package.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

from seed_envs.webshop.colours import COLOUR_NAMES

Node = tuple[str, str]
BUTTON, LINK, NAME, OPTION, TEXT = "button", "link", "name", "option", "text"
SUBS = ("description", "features", "reviews", "attributes")
PAGE_NAMES = ("search_results", "item_page", "item_sub_page", "done")


def read_products(rows: Sequence[dict], entries: dict[str, dict], rng: Random) -> list[dict[str, Any]]:
    products: dict[str, dict[str, Any]] = {}
    for row in rows:
        asin = row["asin"]
        if asin == "nan" or len(asin) > 10 or asin in products:
            continue
        bullets = row["small_description"]
        options = {
            name.lower(): [item["value"].strip().replace("/", " | ").lower() for item in items]
            for name, items in (row["customization_options"] or {}).items()
            if items is not None
        }
        values = [100.0]
        if row["pricing"]:
            values = [float(re.sub(r"[^\d.]", "", piece)) for piece in row["pricing"].split("$")[1:]][:2]
        products[asin] = {
            "asin": asin,
            "title": row["name"],
            "description": row["full_description"],
            "bullets": bullets if isinstance(bullets, list) else [bullets],
            "query": row["query"].lower().strip(),
            "category": row["category"],
            "path": row["product_category"],
            "options": options,
            "attributes": entries.get(asin, {}).get("attributes", ["DUMMY_ATTR"]),
            "tag": " to ".join(f"${value}" for value in values),
            "price": values[0] if len(values) == 1 else rng.uniform(*values),
        }
    return list(products.values())


def read_goals(products: Sequence[dict], entries: dict[str, dict], rng: Random) -> list[dict[str, Any]]:
    goals = []
    for product in products:
        entry = entries.get(product["asin"], {})
        if "instruction" not in entry:
            continue
        candidates = [10.0 * i for i in range(1, 100) if 10.0 * i > product["price"]][:4]
        upper, price_text = 1_000_000.0, ""
        if len(candidates) >= 2:
            upper = sorted(rng.sample(candidates, 2))[1]
            price_text = f", and price lower than {upper:.2f} dollars"
        names = sorted(product["options"])
        for values in itertools.product(*(product["options"][name] for name in names)):
            chosen = dict(zip(names, values, strict=True))
            wish = ", and ".join(f"{name}: {value}" for name, value in chosen.items())
            text = entry["instruction"] + (f" with {wish}" if wish else "") + price_text
            wanted = entry["instruction_attributes"]
            goals.append({"product": product, "text": text, "options": chosen, "attributes": wanted, "upper": upper})
    counts = Counter(attribute for goal in goals for attribute in goal["attributes"])
    for goal in goals:
        goal["weight"] = sum(1 / counts[wanted] for wanted in goal["attributes"]) / len(goal["attributes"])
    Random(233).shuffle(goals)
    return goals


# -- pages -----------------------------------------------------------------------------------------------------------


class Session:
    """One visit: its fields are the original's session entries."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number, self.goal = world, number, world.goals[number]
        self.view, self.sub, self.page, self.reward = "index", "", 0, 0.0
        self.words: list[str] = []
        self.found: list[dict] = []
        self.product: dict[str, Any] = {}
        self.options: dict[str, str] = {}
        self.seen: set[str] = set()

    def nodes(self) -> list[Node]:
        if self.view == "done":
            return [(TEXT, line) for line in self._done()]
        if self.view == "index":
            lines = ((TEXT, "WebShop"), (TEXT, "Instruction: "), (TEXT, self.goal["text"]), (BUTTON, "Search"))
            return without_blanks(lines)
        head = [(TEXT, "Instruction:"), (TEXT, self.goal["text"]), (BUTTON, "Back to Search")]
        return without_blanks([*head, *getattr(self, f"_{self.view}")()])

    def _results(self) -> list[Node]:
        nodes = [(TEXT, f"Page {self.page} (Total results: {len(self.found)})")]
        nodes += [(BUTTON, "< Prev"), (BUTTON, "Next >")][self.page <= 1 :]
        shown = self.found[(self.page - 1) * 10 : self.page * 10] if self.page > 0 else []
        for product in shown:
            nodes += [(LINK, product["asin"]), (TEXT, product["title"]), (TEXT, product["tag"])]
        return nodes

    def _item(self) -> list[Node]:
        nodes = [(BUTTON, "< Prev")]
        for name, values in self.product["options"].items():
            nodes += [(NAME, name), *((OPTION, value) for value in values)]
        nodes += [(TEXT, self.product["title"]), (TEXT, f"Price: {self.product['tag']}"), (TEXT, "Rating: N.A.")]
        return [*nodes, *((BUTTON, sub.title()) for sub in SUBS), (BUTTON, "Buy Now")]

    def _sub(self) -> list[Node]:
        product = self.product
        lines = {
            "description": [product["description"]],
            "features": [f" {bullet}" for bullet in product["bullets"]],
            "reviews": [],
            "attributes": [
                *(f" {attribute}" for attribute in product["attributes"]),
                *(product["category"], product["query"], product["path"]),
            ],
        }
        return [(BUTTON, "< Prev"), *((TEXT, line) for line in lines[self.sub])]

    def _done(self) -> list[str]:
        chosen = json.dumps(self.options, sort_keys=True)
        for char in "<>&'":
            chosen = chosen.replace(char, f"\\u{ord(char):04x}")
        return [
            *("Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)"),
            *("Purchased", "asin", self.product["asin"], "options", chosen, "attrs", "None", "category", "None"),
            *("query", "None", "product category", "None", "Target", "asin", "options", "attrs", "price upper"),
            *("instuction text", "category", "product category", "query", "Goal ", "None", "Reward"),
            *("Your score (min 0.0, max 1.0)", repr(self.reward), "Reward Details ", "None"),
        ]

    def url(self) -> str:
        base, words = "http://127.0.0.1:3000", "+".join(self.words)
        if self.view == "index":
            return f"{base}/{self.number}"
        if self.view == "results":
            return f"{base}/search_results/{self.number}/{words}/{self.page}"
        asin, chosen = self.product["asin"], self.options
        if self.view == "item":
            return f"{base}/item_page/{self.number}/{asin}/{words}/{self.page}/{json.dumps(chosen)}"
        if self.view == "sub":
            return f"{base}/item_sub_page/{self.number}/{asin}/{words}/{self.page}/{self.sub.title()}/{chosen}"
        return f"{base}/done/{self.number}/{asin}/{chosen}"

    def text(self) -> str:
        return " [SEP] ".join(text.strip() for _, text in self.nodes())

    def text_rich(self) -> str:
        front = lines = ""
        for kind, text in self.nodes():
            clicked = (kind == OPTION and f'"{text}"' in self.url()) or (kind == LINK and text in self.seen)
            mark = "clicked button" if clicked else "button"
            before = {LINK: "\n", OPTION: "  "}.get(kind, "")
            lines += f"{before}[{mark}] {text} [{mark}_]\n" if kind in (BUTTON, LINK, OPTION) else f"{text}\n"
            front = f"You have clicked {text}.\n{front}" if kind == OPTION and clicked else front
        return front + lines

    def clickables(self) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for wanted in (BUTTON, LINK, OPTION):
            name = ""
            for kind, text in self.nodes() if self.view != "done" else []:
                name = text if kind == NAME else name
                if kind == wanted:
                    found[text.lower()] = (kind, name)
        return found

    # -- actions -----------------------------------------------------------------------------------------------------

    def act(self, action: str) -> bool:
        """Carries out an action; False if it does nothing."""
        match = re.match(r"(.+)\[(.+)\]", action)
        kind, argument = match.groups() if match else ("", "")
        argument = argument.lower()
        if kind == "search":
            return self._to_results(argument.split(" "), 1)
        if kind != "click" or argument == "search" or argument not in self.clickables():
            return False
        page = next((name for name in PAGE_NAMES if name in self.url()), "")
        node, name = self.clickables()[argument]
        if argument == "buy now":
            self.reward = self.world.reward(self.product, self.options, self.goal)
            self.view = "done"
        elif argument == "back to search":
            self.__init__(self.world, self.number)  # type: ignore[misc]
        elif argument in ("next >", "< prev") and page == "search_results":
            return self._to_results(self.words, self.page + (1 if argument == "next >" else -1))
        elif argument == "< prev" and page == "item_page":
            return self._to_results(self.words, self.page)
        elif argument in SUBS:
            self.view, self.sub = "sub", argument
        else:
            if node == LINK:
                self.product = self.world.by_asin[argument.upper()]
                self.seen.add(argument.upper())
            elif node == OPTION:
                self.options[name] = argument
            self.view = "item"
        return True

    def _to_results(self, words: list[str], page: int) -> bool:
        found = self.world.find(words)
        if found is None:
            return False
        self.view, self.words, self.page, self.found, self.options = "results", words, page, found, {}
        return True


def without_blanks(nodes: Sequence[Node]) -> list[Node]:
    kept = []
    for kind, text in nodes:
        blank = not text.strip(" \t\n\r\f")
        if text and not (blank and "\n" in text):
            kept.append((kind, " " if blank else text))
    return kept


# -- the shop and the reward -----------------------------------------------------------------------------------------


class World:
    """A catalogue with its goals.

    Args:
        rows: Product rows of the original file.
        entries: Attribute entries of the original file.
        rank: The search engine: query to asins, best first.
        nouns: Nouns of a product's title, by asin.
        seed: Seed of hidden prices and caps.
    """

    def __init__(
        self,
        rows: Sequence[dict],
        entries: dict[str, dict],
        rank: Callable[[str], list[str]],
        nouns: dict[str, Sequence[str]],
        seed: int = 0,
    ) -> None:
        rng = Random(seed)
        self.products = read_products(rows, entries, rng)
        self.goals = read_goals(self.products, entries, rng)
        self.by_asin = {product["asin"]: product for product in self.products}
        self.rank, self.nouns = rank, nouns

    def find(self, words: list[str]) -> list[dict] | None:
        word, rest = words[0], " ".join(words[1:]).strip()
        if word in ("<a>", "<r>") or words == ["<c>"]:
            return None
        if word == "<c>":
            return [product for product in self.products if product["category"] == words[1].strip()]
        if word == "<q>":
            return [product for product in self.products if product["query"] == rest]
        return [self.by_asin[asin] for asin in self.rank(" ".join(words))]

    def reward(self, bought: dict, chosen: dict[str, str], goal: dict) -> float:
        wanted = goal["product"]
        there, asked = self.nouns[bought["asin"]], self.nouns[wanted["asin"]]
        title = len(set(there) & set(asked)) / len(asked) if asked else 0.2
        paths = [{part.strip() for part in product["path"].split("›")} for product in (bought, wanted)]
        alike = bought["query"] == wanted["query"] or len(paths[0] & paths[1]) >= 2 or title > 0.2
        kind = 0.0 if title == 0 else 0.1 if title < 0.1 else 1.0 if alike else 0.5
        texts = [text.lower() for text in (bought["title"], " ".join(bought["bullets"]), bought["description"])]
        met = 0
        for attribute in goal["attributes"]:
            close = any(similarity(own, attribute) > 85 for own in bought["attributes"])
            met += close or any(attribute in text for text in texts)
        values = [next((colour for colour in COLOUR_NAMES if colour in value), value) for value in chosen.values()]
        for pair in goal["options"].items():
            target = next((colour for colour in COLOUR_NAMES if colour in pair), str(pair))
            met += any(similarity(value, target) > 85 for value in values)
        met += bought["price"] <= goal["upper"]
        return met / (len(goal["attributes"]) + len(goal["options"]) + 1) * kind


def longest_common(first: str, second: str) -> int:
    row = [0] * (len(second) + 1)
    for char in first:
        diagonal = 0
        for position, other in enumerate(second, start=1):
            above = row[position]
            row[position] = diagonal + 1 if char == other else max(above, row[position - 1])
            diagonal = above
    return row[-1]


@cache
def similarity(first: str, second: str) -> int:
    sets = []
    for text in (first, second):
        kept = "".join(char for char in text if not 128 <= ord(char) <= 255)
        sets.append(set(re.sub(r"\W", " ", kept).lower().split()))
    if not all(sets):
        return 0
    common = " ".join(sorted(sets[0] & sets[1]))
    whole = [f"{common} {' '.join(sorted(rest))}".strip() for rest in (sets[0] - sets[1], sets[1] - sets[0])]
    best = 0
    for a, b in itertools.combinations([common, *whole], 2):
        score = 100 if a == b else round(100 * 2 * longest_common(a, b) / (len(a) + len(b))) if a and b else 0
        best = max(best, score)
    return best
