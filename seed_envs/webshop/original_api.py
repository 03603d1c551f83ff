"""The text environment of the original WebShop over this package's shop, for scripts that were written against it.

    from seed_envs.webshop.original_api import WebAgentTextEnv  # instead of web_agent_site.envs

    env = WebAgentTextEnv(observation_mode="text", human_goals=True)
    observation, _ = env.reset(session=3)
    observation, reward, done, _ = env.step("search[red shoes]")

Pages, clickables, rewards and what happens after the purchase are the original's. Goals of sessions without a number
are drawn with the original's weights (and its slip of one place) by a generator of the environment's own, which the
original's global one was meant to be. The observation form ``html`` is not offered.
"""

from __future__ import annotations

import bisect
import itertools
import os
import random
import string
from collections.abc import Callable, Mapping
from typing import Any

from seed_envs.arguments import check_choice
from seed_envs.errors import UnknownOption
from seed_envs.webshop.actions import PARSERS
from seed_envs.webshop.env import WebShopEnv
from seed_envs.webshop.goals import Goal
from seed_envs.webshop.pages import SEPARATOR, Page
from seed_envs.webshop.state import State
from seed_envs.webshop.writers import WRITERS

BASE_URL = "http://127.0.0.1:3000"
_OPTIONS = (
    *("filter_goals", "limit_goals", "num_products", "human_goals", "session", "session_prefix", "show_attrs"),
    *("num_prev_obs", "num_prev_actions"),
)


class ShopServer:
    """What the environments of a process share: the shop and its goals.

    Args:
        env: Makes the shop.
        keep: Which goals, by number and goal as a dictionary; None keeps all.
        limit: How many goals, drawn by weight; -1 keeps all.

    Attributes:
        goals: The goals as dictionaries, in the order that session numbers count.
    """

    def __init__(self, env: WebShopEnv, keep: Callable[[int, Mapping[str, Any]], bool] | None, limit: int) -> None:
        self.shop = env.shop
        self._random = random.Random(233)
        found = [self.shop.tasks.at(number) for number in range(len(self.shop.goals))]
        kept = [goal for number, goal in enumerate(found) if keep is None or keep(number, as_dictionary(goal))]
        if limit != -1 and limit < len(kept):
            drawn: dict[str, Goal] = {}
            while len(drawn) < limit:
                goal = kept[self._draw(kept)]
                drawn[goal.task_id] = goal
            kept = list(drawn.values())
        self.listed = kept
        self.goals = [as_dictionary(goal) for goal in kept]
        self.sessions: dict[str, Goal] = {}

    def goal_of(self, session: str, number: int | None) -> Goal:
        """The goal of a session: its first one for ever, else that number's, else one drawn by weight."""
        if session not in self.sessions:
            self.sessions[session] = self.listed[self._draw(self.listed) if number is None else number]
        return self.sessions[session]

    def name(self) -> str:
        """A session's name: ten letters."""
        return "".join(self._random.choices(string.ascii_lowercase, k=10))

    def _draw(self, goals: list[Goal]) -> int:
        cumulative = [0.0, *itertools.accumulate(goal.weight for goal in goals)]
        return min(bisect.bisect(cumulative, self._random.random() * cumulative[-1]), len(goals) - 1)


class WebAgentTextEnv:
    """One session after the other.

    Args:
        observation_mode: ``text``, ``text_rich`` or ``url``.
        file_path: The products file, in a folder with the others; None looks where this package's data is.
        server: Another environment's ``server``, to share its goals and sessions.
        **kwargs: The original's further arguments.

    Raises:
        UnknownOption: For what the original has and this does not (``html``, pictures), or nobody has.
        DataMissing: When the files are not there.
    """

    def __init__(
        self,
        observation_mode: str = "text",
        file_path: str | os.PathLike[str] | None = None,
        server: ShopServer | None = None,
        **kwargs: Any,
    ) -> None:
        check_choice("observation_mode", observation_mode, ("text", "text_rich", "url"))
        for name, value in kwargs.items():
            if name not in _OPTIONS and value:
                raise UnknownOption(f"{name}={value!r} is not offered; known: {', '.join(_OPTIONS)}")
        self.observation_mode, self._kwargs = observation_mode, kwargs
        self.server = self._make_server(file_path) if server is None else server
        self._write = WRITERS[observation_mode]
        self._past: list[str] = []
        self.session, self.instruction_text = "", ""
        self.reset(kwargs.get("session"))

    def reset(self, session: int | str | None = None, instruction_text: str | None = None) -> tuple[str, None]:
        """Open a session: a number plays that goal; a name, or None for a new one, draws a goal."""
        prefix = self._kwargs.get("session_prefix") or ""
        self.session = prefix + (self.server.name() if session is None else str(session))
        self._goal = self.server.goal_of(self.session, session if isinstance(session, int) else None)
        self._state, self._past = State(self.session), []
        self.instruction_text = instruction_text or f"Instruction: {self._goal.instruction}"
        return self.observation, None

    def step(self, action: str) -> tuple[str, float, bool, None]:
        """Play ``search[words]`` or ``click[button]``; anything else changes nothing."""
        before = self.observation
        command = PARSERS["original"](action, lambda: self._page.clickables)
        state, reason = self.server.shop.apply(self._state, command, self._goal)
        reward, done = 0.0, False
        if not reason:
            bought = state.view == "done" and state != self._state
            score = self.server.shop.score(state) if bought else None
            reward, done, self._state = (0.0 if score is None else score.total), bought, state
        self._past += [before, action]
        shown = self.observation
        pieces = [shown]
        for age in range(1, 1 + len(self._past) // 2):
            observation, act = self._past[-2 * age], self._past[-2 * age + 1]
            pieces += [act] * (age <= self._kwargs.get("num_prev_actions", 0))
            pieces += [observation] * (age <= self._kwargs.get("num_prev_obs", 0))
        return SEPARATOR.join(reversed(pieces)), reward, done, None

    def get_available_actions(self) -> dict[str, Any]:
        """``has_search_bar`` and ``clickables`` of the page."""
        return {"has_search_bar": self._page.kind == "index", "clickables": list(self._page.clickables)}

    def get_instruction_text(self) -> str:
        """The instruction as the page shows it."""
        return f"Instruction: {self._goal.instruction}"

    @property
    def observation(self) -> str:
        """The page in the observation mode."""
        return self._write(self._page)

    @property
    def state(self) -> dict[str, str]:
        """Address and instruction; the original's third entry, ``html``, is not there."""
        return {"url": WRITERS["url"](self._page), "instruction_text": self.instruction_text}

    def close(self) -> None:
        """Nothing to release."""

    @property
    def _page(self) -> Page:
        return self.server.shop.page(self._state, self._goal)

    def _make_server(self, file_path: str | os.PathLike[str] | None) -> ShopServer:
        asked = {name: self._kwargs[name] for name in ("num_products", "show_attrs") if self._kwargs.get(name)}
        human = bool(self._kwargs.get("human_goals"))
        folder = None if file_path is None else os.path.dirname(os.path.abspath(file_path))
        env = WebShopEnv(catalogue="files", data_dir=folder, human_goals=human, **asked)
        return ShopServer(env, self._kwargs.get("filter_goals"), self._kwargs.get("limit_goals", -1))


def as_dictionary(goal: Goal) -> dict[str, Any]:
    """A goal under the original's names."""
    options: Any = dict(goal.options) if goal.named_options else [value for _, value in goal.options]
    return {
        "asin": goal.product.asin,
        "category": goal.product.category,
        "query": goal.product.query,
        "name": goal.product.title,
        "instruction_text": goal.instruction,
        "attributes": list(goal.attributes),
        "goal_options": options,
        "price_upper": goal.price_upper,
        "weight": goal.weight,
    }
