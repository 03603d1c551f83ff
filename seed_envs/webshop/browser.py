"""``WebShopBrowserEnv``: the shop driven through a real, headless Chromium against the local site.

The text a model sees is read from the page in the browser. Task, rules and info are those of ``WebShopEnv``.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from seed_envs.arguments import check_choice
from seed_envs.base import MAX_ACTION_LENGTH
from seed_envs.errors import require
from seed_envs.outcomes import Outcome
from seed_envs.webshop.actions import Command
from seed_envs.webshop.chromium import Chromium
from seed_envs.webshop.env import EpisodeState, WebShopEnv
from seed_envs.webshop.goals import Goal
from seed_envs.webshop.pages import SEPARATOR
from seed_envs.webshop.state import State

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from seed_envs.webshop.site.server import SiteServer
    from seed_envs.webshop.site.sessions import Session, SessionStore

OBSERVATION_MODES = ("text", "parts", "html")
# Presses what an action names (kind, value, words of a search); tells whether it is there. The mark on the window is
# gone when the next page is.
_PRESS = (
    "const found = [...document.querySelectorAll('[data-kind]')]"
    ".find(e => e.dataset.kind === arguments[0] && e.dataset.value === arguments[1]);"
    "if (!found) return false;"
    "if (arguments[0] === 'search') document.getElementById('search_input').value = arguments[2];"
    "window.leaving = true; found.click(); return true"
)
_START = (
    "document.getElementById('task_id').value = arguments[0];"
    "window.leaving = true; document.querySelector('button[type=submit]').click()"
)
# What a step needs to know of a page that has arrived: session, markup, reward, and why nothing was done.
_READ = (
    "if (window.leaving !== undefined || document.readyState === 'loading') return null;"
    "const main = document.querySelector('main');"
    "return [location.pathname.split('/').pop(), document.documentElement.outerHTML,"
    " main ? main.dataset.reward : null, main ? main.dataset.reason : null]"
)
#: Seconds that a page may take; only a browser that hangs reaches it.
_PATIENCE = 120.0
_POLL = 0.004
_MAX_PAGE = 64 * 1024**2


class _Seen(NamedTuple):
    """A page as the browser holds it."""

    session: str
    source: str
    reward: str | None
    reason: str | None


class WebShopBrowserEnv(WebShopEnv):
    """WebShop through a real, headless Chromium.

    ## Description
    The shop of :class:`WebShopEnv` as a web site on this machine, driven through selenium. Each reset opens a session
    on the task; each action presses the button, link or search field that it names. Close the environment to end
    browser and server.

    ## Task and data
    As :class:`WebShopEnv`.

    ## Action space
    As :class:`WebShopEnv`; searches work wherever the page has a search field.

    ## Observation space
    Text read from the page in the browser, equal to the text environment's: ``text``, ``parts``, or ``html`` (the
    page's source).

    ## Reward
    As :class:`WebShopEnv`, read from the page.

    ## Termination and truncation
    As :class:`WebShopEnv`.

    ## Info
    As :class:`WebShopEnv`.

    ## Oracle
    As :class:`WebShopEnv`.

    ## Arguments
    Those of :class:`WebShopEnv`, ``no_sandbox`` and ``window``; ``render_mode="rgb_array"`` gives screenshots.

    ## Registered versions
    ``seed/WebShopBrowser-v0``.

    ## Differences from the original
    The site is this package's own: no script, no request to other hosts, purchase by form. The list of actions need not
    be fetched before each step, and there is no action ``end``.

    ## References and asset credits
    As :class:`WebShopEnv`. Needs Chromium, its driver, and ``pip install 'seed-envs[browser]'``.

    Args:
        no_sandbox: Switches Chromium's sandbox off (needed for root in most containers).
        window: Window size in pixels.
        obs_mode: ``text``, ``parts`` or ``html``.
        **kwargs: Arguments of :class:`WebShopEnv`.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        *,
        no_sandbox: bool = False,
        window: tuple[int, int] = (1280, 900),
        obs_mode: str = "text",
        **kwargs: Any,
    ) -> None:
        check_choice("obs_mode", obs_mode, OBSERVATION_MODES)
        super().__init__(obs_mode="text", **kwargs)
        require("flask", "browser", "the browser environment")
        require("selenium", "browser", "the browser environment")
        self._form = obs_mode
        self._no_sandbox, self._window = no_sandbox, window
        self._chromium: Chromium | None = None
        self._server: SiteServer | None = None
        self._store: SessionStore | None = None
        self._session: Session | None = None
        self._seen = _Seen("", "", None, None)

    # -- machinery -------------------------------------------------------------------------------------------------

    @property
    def driver(self) -> Chrome:
        """The browser; started on first use."""
        if self._chromium is None:
            from seed_envs.webshop.site.app import SiteOptions, create_app
            from seed_envs.webshop.site.server import SiteServer
            from seed_envs.webshop.site.sessions import SessionStore

            self._chromium = self._start_browser()
            self._store = SessionStore(cap=8, idle=math.inf)
            limits = SiteOptions(
                choose_goal=True,
                max_query=MAX_ACTION_LENGTH,
                # A character is sent as up to twelve.
                max_body=16 * MAX_ACTION_LENGTH,
                max_page=_MAX_PAGE,
                max_steps=sys.maxsize,
            )
            self._server = SiteServer(create_app(self.shop, limits, self._store)).start()
        return self._chromium.driver

    def _start_browser(self) -> Chromium:
        return Chromium(self._no_sandbox, self._window)

    def close(self) -> None:
        """Ends browser and server, and the episode with them; calling it twice is fine."""
        self._running = False
        self._session = None
        chromium, server = self._chromium, self._server
        self._chromium = self._server = self._store = None
        if chromium is not None:
            chromium.close()
        if server is not None:
            server.stop()

    @contextlib.contextmanager
    def _ended_on_fault(self) -> Iterator[None]:
        """Ends a browser that failed, so that the next reset starts a new one."""
        try:
            yield
        except Exception:
            self.close()
            raise

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a running browser cannot be copied; make a new environment and set_state(get_state()) on it")

    # -- episode ---------------------------------------------------------------------------------------------------

    def _begin(self, task_id: str, options: dict[str, Any]) -> str:
        super()._begin(task_id, options)
        used = self._chromium is not None
        try:
            with self._ended_on_fault():
                self._open(task_id)
        except Exception:
            if not used:
                raise
            # The browser may have died since the last episode; a fresh one gets a try.
            with self._ended_on_fault():
                self._open(task_id)
        return self._look()

    def _open(self, task_id: str) -> None:
        driver = self.driver
        assert self._server is not None and self._store is not None
        if self._session is not None:
            self._store.close(self._session.sid)
        driver.delete_all_cookies()
        driver.get(self._server.url)
        driver.execute_script(_START, task_id)
        self._wait()
        session = self._store.get(self._seen.session)
        if session is None:
            raise RuntimeError(f"the site opened no session: {self._seen.reason or driver.current_url}")
        self._session = session

    def _is_open_for(self, goal: Goal) -> bool:
        """Whether the site still has this environment's session, on this goal (it forgets finished ones in time)."""
        if self._session is None or self._store is None:
            return False
        return self._session.goal is goal and self._store.get(self._session.sid) is self._session

    def _wait(self) -> None:
        """Waits for the page that was asked for and reads it."""
        from selenium.webdriver.support.ui import WebDriverWait

        patient = WebDriverWait(self.driver, _PATIENCE, poll_frequency=_POLL)
        self._seen = _Seen(*patient.until(lambda driver: driver.execute_script(_READ)))

    def _look(self) -> str:
        """Takes over the session's state and the text of the page in the browser."""
        from seed_envs.webshop.site.extract import visible_strings

        assert self._session is not None
        self._state = self._session.state
        self._page = self.shop.page(self._state, self.goal)
        if self._form == "html":
            self._observation = self._seen.source
            return self._observation
        strings = [string.strip() for string in visible_strings(self._seen.source)]
        if self._form == "parts":
            goal = self.goal.instruction.strip()
            start = strings.index(goal) + 1 if goal in strings else 0
            strings = [f"'{string}'" for string in strings[start:]]
        self._observation = SEPARATOR.join(strings)
        return self._observation

    def _act(self, action: str) -> Outcome:
        if len(action) > MAX_ACTION_LENGTH:
            return self._refused(action[:80], f"the action has {len(action)} characters; at most {MAX_ACTION_LENGTH}")
        clicks = self.page.body.clicks
        command = self._parse(action, lambda: clicks)
        before = self._observation
        with self._ended_on_fault():
            reason = command.reason or self._press(command)
            if reason:
                return self._refused(action, reason)
            shown = self._with_history(before, action, self._look())
        if self._state.view != "done":
            return Outcome(shown)
        reward = float(self._seen.reward or "nan")
        return Outcome(shown, float(reward == 1.0) if self._binary else reward, True)

    def _press(self, command: Command) -> str:
        """Presses what a command names; returns why nothing happened, or an empty string."""
        session = self._session
        assert session is not None
        step = session.step
        value = "search" if command.kind == "search" else command.argument
        if not self.driver.execute_script(_PRESS, command.kind, value, command.argument):
            return self.shop.apply(self._state, command, self.goal).reason or f"the page has no {value!r} to press"
        self._wait()
        if session.step == step + 1:
            return ""
        reason = self._seen.reason or "the site refused the action"
        self._reload()
        return reason

    def _reload(self) -> None:
        assert self._server is not None and self._session is not None
        self.driver.get(f"{self._server.url}/s/{self._session.sid}")
        self._wait()
        if self._seen.reason is not None:
            raise RuntimeError(f"the site does not show the session any more: {self._seen.reason}")

    def _show(self, state: State) -> str:
        if self._session is None or self._session.state is not state:
            return super()._show(state)
        return self._look()

    # -- snapshots, rendering --------------------------------------------------------------------------------------

    def set_state(self, state: EpisodeState) -> None:
        """Continues from a snapshot: puts the session there and reloads the page."""
        super().set_state(state)
        with self._ended_on_fault():
            if not self._is_open_for(self.goal):
                self._open(state.task_id)
            assert self._session is not None
            self._session.state = state.session
            self._session.step += 1
            self._reload()
            self._look()

    def render(self) -> Any:
        """The page as text lines (``ansi``) or as the browser paints it (``rgb_array``, uint8 H x W x 3)."""
        if self.render_mode != "rgb_array":
            return super().render()
        import io

        import numpy as np
        from PIL import Image

        picture = Image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB")
        return np.asarray(picture)
