"""``WebShopEnv``: the shop as a Gymnasium text environment.

The rules live in ``shop`` and below; this module connects them to reset, step and info.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from seed_envs.arguments import check_choice, whole_number
from seed_envs.base import MAX_ACTION_LENGTH, SeedEnv
from seed_envs.data_card import DataSource
from seed_envs.errors import InvalidState, NoTaskMatches, UnknownOption, UnknownTask
from seed_envs.outcomes import LazyActions, Outcome, TaskStatus
from seed_envs.webshop.actions import PARSERS
from seed_envs.webshop.goals import Goal
from seed_envs.webshop.modes import resolve_rules
from seed_envs.webshop.oracle import instruction_search, oracle_action, rule_action
from seed_envs.webshop.pages import SEARCH_ACTION, SEPARATOR, Page
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.state import State
from seed_envs.webshop.store import ShopSpec, get_shop
from seed_envs.webshop.tasks import COMBINED, SPLITS
from seed_envs.webshop.writers import WRITERS, text_rich

REWARD_TYPES = ("score", "success")


class EpisodeState(NamedTuple):
    """A snapshot: the goal, the session, the remembered steps and how the last action went."""

    task_id: str
    split: str
    session: State
    past: tuple[tuple[str, str], ...]
    running: bool
    action_valid: bool
    invalid_reason: str
    stop_reason: str


class WebShopEnv(SeedEnv[str]):
    """Buy what an instruction asks for in an online shop.

    ## Description
    A customer states a wish: attributes, option values and a price cap. The agent searches, opens products, chooses
    options and buys one product, which ends the episode. ``seed/WebShop-v0`` equals the original WebShop page by page
    and reward by reward; ``seed/WebShop-Fixed-v0`` repairs its proven defects.

    ## Task and data
    A task is a goal with the id ``ASIN/n``. By default the catalogue is generated from a seed (1,000 products, no
    download); ``catalogue="files"`` reads the original files (``items_shuffle*``, ``items_ins_v2*``,
    ``items_human_ins*``; ``.json`` or ``.json.gz``). Splits ``train``, ``eval``, ``test`` are the original's ranges
    (goals 1500 and up, 500-1499, 0-499; in catalogues with fewer than 4,000 goals 70, 20 and 10 %), ``verl-train`` and
    ``verl-test`` those of verl-agent, ``product-train``, ``product-eval``, ``product-test`` share no product, ``all``
    is everything, ``combined`` is the panel below. ``reset(options={"goal": i})`` plays goal i of the shuffled list.

    ### The panel of combined conditions
    Split and suite ``combined`` hold the test goals (128 of the generated catalogue, at most four of a product) that no
    two of three conditions settle: beside the right product there is one of its kind that only lacks an attribute, one
    that only lacks an option value, and one that is only too dear; at least two options have to be chosen among several
    values each, and the exact purchase is paid in full in both modes. It measures whether an agent keeps all of a wish
    in mind up to the purchase. The published 1,000-product set has no such goal, its products being too different.

    | player | success | score |
    |---|---|---|
    | oracle | 100.0 % [97.2, 100.0] | 100.0 % [97.2, 100.0] |
    | careful reader | 46.1 % [37.2, 55.1] | 75.2 % [67.9, 81.2] |
    | rule | 0.0 % [0.0, 2.8] | 52.3 % [48.1, 55.9] |
    | random | 0.2 % [0.0, 3.1] | 17.6 % [15.4, 20.8] |

    The rule player buys the first product found. The careful reader of ``python -m seed_envs.webshop baselines --split
    combined`` minds the price and chooses every option that is named, but cannot tell attributes.

    ## Action space
    Text: ``search[words]`` or ``click[button]``. Buttons, products (by asin) and option values are lower case and are
    listed in ``admissible_actions``. The original's grammar is strict (one action, no blanks around it); the fixed mode
    trims, ignores case and takes the last action of a reply, but none after an ``Observation:`` the model imagined.

    ## Observation space
    Text, by ``obs_mode``: ``text`` (page strings joined by `` [SEP] ``), ``text_rich`` (one line per string, buttons
    marked), ``url``, ``parts`` (strings after the goal in quotes, as verl-agent and SEED prompt with), ``json``.

    ## Reward
    0 until the purchase, then the score from 0 to 1: type factor times the share of attributes, options and price cap
    that are met. ``reward_type="success"`` pays 1 for a score of 1.0 and else 0.

    ## Termination and truncation
    Buying terminates. Truncation comes from the step limit alone (15 by default).

    ## Info
    The common keys, and under ``webshop``: ``page``, ``page_number``, ``asin``, ``options``, ``has_search_bar``,
    ``split``, ``goal_index``, ``score_original``, ``score_fixed``, ``details`` (sub-scores under the original's
    names), ``mode``, ``seed``, ``catalogue_sha256``, ``noun_source``.

    ## Oracle
    ``oracle_action()`` searches the target's title, opens it, chooses the goal's options and buys. It scores 1.0 on
    every goal in fixed mode; in original mode 458 of the 6,910 goals of the real 1,000-product set cannot be reached
    by anybody's exact purchase. ``rule_action()`` is the baseline: search the instruction, buy the first product.

    ## Arguments
    All have defaults; wrong names and values are refused with close matches.

    ## Registered versions
    ``seed/WebShop-v0`` (``mode="original"``), ``seed/WebShop-Fixed-v0`` (``mode="fixed"``),
    ``seed/WebShopBrowser-v0`` (the same through a real browser).

    ## Differences from the original
    In both modes: hidden prices and caps are seeded, tasks are drawn uniformly over a split, a step after the purchase
    raises, no action can crash the shop, every refused action has a reason in info, nothing needs Java, torch or spaCy.
    The observation form ``html`` is not offered: pages are HTML on the site (``python -m seed_envs.webshop serve``),
    where visitors see a plain page of thanks unless it is started with ``--parity``. Profile ``paper`` reads replies to
    the letter as verl-agent does and counts only the format as invalid; a button that is not there costs nothing. Its
    prompts are in this package's own words, with chat-template markers in shop text broken; replies of more than a
    million characters are not read. Profile ``tolerant``, the default of ``seed-bench``, differs in reading alone. The
    button beside the search bar, which the original lists and no click reaches, is no action here.
    ``python -m benchmarks.parity webshop`` compares.

    ## References and asset credits
    Yao et al., WebShop: Towards Scalable Real-World Web Interaction with Grounded Language Agents, NeurIPS 2022;
    princeton-nlp/WebShop (MIT), whose page labels and colour names are reproduced as interface facts.

    Args:
        mode: ``original`` or ``fixed``.
        rules: Overrides of single switches, see ``modes.Rules``.
        catalogue: ``generated`` or ``files``; by default files where ``data_dir`` is given.
        data_dir: Folder of the files (for ``files`` by default ``$WEBSHOP_DATA``, ``$SEED_DATA_DIR/webshop`` or the
            cache).
        num_products: Catalogue size or number of rows read.
        catalogue_seed: Seed of the generator.
        price_seed: Seed of hidden prices and price caps.
        human_goals: Use human instructions instead of synthetic ones.
        hostile: Add products with hostile texts to the generated catalogue.
        show_attrs: Add the Attributes sub page.
        reviews: Show reviews and ratings, where the catalogue has them.
        search_engine: ``bm25`` (own, exact) or ``lucene`` (Java).
        nouns: ``auto``, ``spacy`` or ``words``.
        obs_mode: Observation form.
        reward_type: ``score`` or ``success``.
        num_prev_obs: Earlier observations in front of the current one.
        num_prev_actions: Earlier actions in front of the current observation.
        split: Split that ``reset`` draws from.
        render_mode: ``ansi`` or None.
    """

    name: ClassVar[str] = "webshop"
    splits: ClassVar[tuple[str, ...]] = (*SPLITS, COMBINED)
    option_keys: ClassVar[frozenset[str]] = frozenset({"goal"})

    def __init__(
        self,
        *,
        mode: str = "original",
        rules: Mapping[str, Any] | None = None,
        catalogue: str | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        num_products: int | None = None,
        catalogue_seed: int = 0,
        price_seed: int = 0,
        human_goals: bool = False,
        hostile: bool = False,
        show_attrs: bool = False,
        reviews: bool = False,
        search_engine: str = "bm25",
        nouns: str = "auto",
        obs_mode: str = "text",
        reward_type: str = "score",
        num_prev_obs: int = 0,
        num_prev_actions: int = 0,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        check_choice("obs_mode", obs_mode, tuple(WRITERS))
        check_choice("reward_type", reward_type, REWARD_TYPES)
        self.mode = mode
        self._shop_spec = ShopSpec(
            rules=resolve_rules(mode, rules),
            catalogue=catalogue or ("generated" if data_dir is None else "files"),
            folder=None if data_dir is None else str(data_dir),
            num_products=None if num_products is None else whole_number("num_products", num_products, 1),
            catalogue_seed=whole_number("catalogue_seed", catalogue_seed),
            seed=whole_number("price_seed", price_seed),
            human_goals=human_goals,
            hostile=hostile,
            show_attrs=show_attrs,
            reviews=reviews,
            search_engine=search_engine,
            nouns=nouns,
        )
        self.shop: Shop = get_shop(self._shop_spec)
        self._write = WRITERS[obs_mode]
        if obs_mode == "text_rich" and self.shop.rules.rich_state == "state":
            self._write = _rich_by_state
        self._parse = PARSERS[self.shop.rules.parser]
        self._binary = reward_type == "success"
        self._num_prev = (
            whole_number("num_prev_obs", num_prev_obs, 0),
            whole_number("num_prev_actions", num_prev_actions, 0),
        )
        self._goal: Goal | None = None
        self._state = State("")
        self._page: Page | None = None
        self._past: tuple[tuple[str, str], ...] = ()
        self._observation = ""
        self._task_split = split

    # -- tasks ---------------------------------------------------------------------------------------------------

    def task_ids(self, split: str) -> Sequence[str]:
        """The goal ids of a split in the original's shuffled order."""
        self.check_split(split)
        return self.shop.tasks.manifest(split)

    def _choose_task(self, options: dict[str, Any]) -> str:
        split = options.get("split", self.split)
        if "goal" in options:
            task_id = self.shop.tasks.at(options["goal"]).task_id
            if "split" in options and not self.belongs(task_id, split):
                raise UnknownOption(f"goal {options['goal']} ({task_id}) is not in split {split!r}; leave one out")
            return task_id
        if not self.task_ids(split):
            raise NoTaskMatches(
                f"split {split!r} has no goal: {len(self.shop.products)} products of {self._catalogue()} have "
                f"{len(self.shop.goals)} {self.shop.source.goals} goals in all. Use split='all' or {self._remedy()}"
            )
        if self.shop.rules.sampling == "uniform":
            return super()._choose_task(options)
        cumulative = self.shop.tasks.weights(split)
        drawn = bisect.bisect(cumulative, self.np_random.random() * cumulative[-1])
        if self.shop.rules.sampling == "original":
            # The original bisects a list with a leading 0 and does not shift back.
            drawn += 1
        return self.task_ids(split)[min(drawn, len(cumulative) - 1)]

    def _catalogue(self) -> str:
        return " + ".join(name for name, _ in self.shop.source.files) or "the generated catalogue"

    def _remedy(self) -> str:
        if self.shop.source.goals == "human" and self.shop.source.files:
            return f"files with more human goals than {self.shop.source.files[-1][0]}"
        return "a larger num_products" if not self.shop.source.files else "a larger catalogue"

    def data_source(self, task_id: str) -> DataSource:
        """See ``SeedEnv.data_source``."""
        return self.shop.source

    # -- episode -------------------------------------------------------------------------------------------------

    def _begin(self, task_id: str, options: dict[str, Any]) -> str:
        goal = self.shop.tasks.goal(task_id)
        if "task_id" in options and "goal" in options and self.shop.tasks.at(options["goal"]) is not goal:
            raise UnknownOption(f"task_id {task_id!r} is not goal {options['goal']}; give one of the two")
        explicit = "task_id" in options or "goal" in options
        self._task_split = options.get("split", "" if explicit else self.split)
        self._goal = goal
        self._past = ()
        return self._show(State(str(goal.index)))

    def _show(self, state: State) -> str:
        self._state = state
        self._page = self.shop.page(state, self.goal)
        self._observation = self._write(self._page)
        return self._observation

    def _act(self, action: str) -> Outcome:
        if len(action) > MAX_ACTION_LENGTH:
            return self._refused(action[:80], f"the action has {len(action)} characters; at most {MAX_ACTION_LENGTH}")
        page = self.page
        command = self._parse(action, lambda: page.body.clicks)
        state, reason = self.shop.apply(self._state, command, self.goal)
        if reason:
            return self._refused(action, reason)
        before = self._observation
        shown = self._show(state)
        observation = self._with_history(before, action, shown)
        if state.view != "done":
            return Outcome(observation)
        reward = self._score()
        return Outcome(observation, float(reward == 1.0) if self._binary else reward, True)

    def _refused(self, action: str, reason: str) -> Outcome:
        shown = self._with_history(self._observation, action, self._observation)
        if self.shop.rules.feedback:
            shown = f"{reason}{SEPARATOR}{shown}"
        return Outcome(shown, action_valid=False, invalid_reason=reason)

    def _with_history(self, before: str, action: str, shown: str) -> str:
        num_obs, num_actions = self._num_prev
        if not num_obs and not num_actions:
            return shown
        self._past = (*self._past, (before, action))[-max(num_obs, num_actions) :]
        pieces = [shown]
        for age, (observation, act) in enumerate(reversed(self._past), start=1):
            if age <= num_actions:
                pieces.append(act)
            if age <= num_obs:
                pieces.append(observation)
        return SEPARATOR.join(reversed(pieces))

    def _score(self) -> float:
        score = self.shop.score(self._state)
        return 0.0 if score is None else score.total

    # -- info ----------------------------------------------------------------------------------------------------

    @property
    def goal(self) -> Goal:
        """The goal of the running episode."""
        assert self._goal is not None, "call reset() first"
        return self._goal

    @property
    def page(self) -> Page:
        """The page the session shows."""
        assert self._page is not None, "call reset() first"
        return self._page

    def _status(self) -> TaskStatus:
        score = self._score()
        goal = self.goal
        return TaskStatus(goal.product.category, goal.instruction, score == 1.0, score)

    def _admissible(self) -> Sequence[str]:
        body = self.page.body
        return LazyActions(lambda: body.actions)

    def _extras(self) -> dict[str, Any]:
        state, shop = self._state, self.shop
        verdict, score = state.verdict, shop.score(state)
        return {
            "page": state.view,
            "page_number": state.page,
            "asin": state.asin,
            "options": dict(state.options),
            "has_search_bar": state.view == "index",
            "split": self._task_split,
            "goal_index": self.goal.index,
            "score_original": 0.0 if verdict is None else verdict.original.total,
            "score_fixed": 0.0 if verdict is None else verdict.fixed.total,
            "details": {} if score is None else score.details(),
            "mode": self.mode,
            "seed": shop.seed,
            "catalogue_sha256": shop.sha256,
            "noun_source": shop.noun_source,
        }

    # -- oracle, snapshots, rendering ----------------------------------------------------------------------------

    def oracle_action(self) -> str:
        """The next action of the exact purchase."""
        self._require_task()
        return oracle_action(self.shop, self._state, self.goal)

    def rule_action(self) -> str:
        """The next action of the rule baseline."""
        self._require_task()
        return rule_action(self.shop, self._state, self.goal)

    def random_action(self) -> str:
        """A random admissible action; where that is a search, it is for the words of the instruction."""
        action = super().random_action()
        return instruction_search(self.goal) if action == SEARCH_ACTION else action

    def get_state(self) -> EpisodeState:
        """A snapshot; it holds a few references and costs about a microsecond."""
        return EpisodeState(
            self.task_id,
            self._task_split,
            self._state,
            self._past,
            self._running,
            self._action_valid,
            self._invalid_reason,
            self._stop_reason,
        )

    def set_state(self, state: EpisodeState) -> None:
        """Continues from a snapshot.

        Raises:
            InvalidState: If it is not a snapshot of a WebShop environment with the same catalogue; nothing changes.
        """
        if not isinstance(state, EpisodeState):
            raise InvalidState(f"expected a snapshot of get_state(), got {type(state).__name__}")
        if not state.task_id:
            raise InvalidState("this snapshot was taken before the first reset(); it holds no episode")
        try:
            goal = self.shop.tasks.goal(state.task_id)
        except UnknownTask as error:
            raise InvalidState(f"this snapshot is from another catalogue: {error}") from None
        if state.session.asin and state.session.asin not in self.shop.by_asin:
            raise InvalidState(f"this snapshot is from another catalogue: there is no product {state.session.asin!r}")
        self.task_id, self._task_split, self._goal = state.task_id, state.split, goal
        self._past, self._running = state.past, state.running
        self._action_valid, self._invalid_reason = state.action_valid, state.invalid_reason
        self._stop_reason = state.stop_reason
        self._show(state.session)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the shop, which copies share in a process and open again in another one."""
        return {name: value for name, value in self.__dict__.items() if name not in ("shop", "_goal", "_page")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.shop = get_shop(self._shop_spec)
        self._goal = self.shop.tasks.goal(self.task_id) if self.task_id else None
        self._page = None if self._goal is None else self.shop.page(self._state, self._goal)

    def render(self) -> str | None:
        """The page as lines of text."""
        return text_rich(self.page, chosen_by_url=False) if self.render_mode == "ansi" else None


def _rich_by_state(page: Page) -> str:
    return text_rich(page, chosen_by_url=False)
