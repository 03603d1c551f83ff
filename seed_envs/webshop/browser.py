"""``WebShopBrowserEnv``: the shop driven through a real, headless Chromium against the local site.

The text a model sees is read from the page in the browser. Task, rules and info are those of ``WebShopEnv``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from seed_envs.base import MAX_ACTION_LENGTH, Outcome
from seed_envs.errors import DependencyMissing, require
from seed_envs.webshop.actions import Command
from seed_envs.webshop.arguments import check_choice
from seed_envs.webshop.env import EpisodeState, WebShopEnv
from seed_envs.webshop.pages import SEPARATOR
from seed_envs.webshop.state import State

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from seed_envs.webshop.site.server import SiteServer
    from seed_envs.webshop.site.sessions import Session, SessionStore

OBSERVATION_MODES = ("text", "parts", "html")
_FIND = (
    "const found = [...document.querySelectorAll('[data-kind]')]"
    ".find(e => e.dataset.kind === arguments[0] && e.dataset.value === arguments[1]);"
    "if (found && arguments[0] === 'search') document.getElementById('search_input').value = arguments[2];"
    "if (found) window.leaving = true; return found || null"
)
_FILL = "arguments[0].value = arguments[1]"
_LEAVE = "window.leaving = true"
_SOURCE = (
    "return window.leaving === undefined && document.readyState !== 'loading' "
    "? document.documentElement.outerHTML : null"
)
_PATIENCE = 15.0
_POLL = 0.004


def start_browser(
    profile: str, no_sandbox: bool = False, window: tuple[int, int] = (1280, 900), logs: bool = False
) -> Chrome:
    """Starts headless Chromium that can reach this machine only.

    Args:
        profile: Fresh folder for the browser's files.
        no_sandbox: Switches Chromium's sandbox off, which a container's root user may need.
        window: Window size in pixels.
        logs: Whether console and network logs are recorded.

    Raises:
        DependencyMissing: If selenium, Chromium or its driver is not installed, or the browser does not start.
    """
    import shutil

    require("selenium", "browser", "the browser environment")
    from selenium import webdriver
    from selenium.common.exceptions import SessionNotCreatedException
    from selenium.webdriver.chrome.service import Service

    driver = shutil.which("chromedriver")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if driver is None or browser is None:
        raise DependencyMissing(
            "the browser environment needs chromium and chromedriver on the path. "
            "Run: apt-get install chromium chromium-driver"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    # The environment waits for the document itself; pictures need no waiting.
    options.page_load_strategy = "eager"
    flags = [
        *("--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
        *("--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage"),
        *(f"--user-data-dir={profile}", f"--window-size={window[0]},{window[1]}", "--proxy-server=direct://"),
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        *(["--no-sandbox"] if no_sandbox else []),
        "about:blank",
    ]
    for flag in flags:
        options.add_argument(flag)
    if logs:
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        return webdriver.Chrome(options=options, service=Service(driver))
    except SessionNotCreatedException as error:
        hint = "" if no_sandbox else " As root, or in a container, pass no_sandbox=True."
        raise DependencyMissing(
            f"{browser} does not start with {driver}: {str(error.msg).splitlines()[0]}{hint} Otherwise check that both "
            "have the same version."
        ) from error


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
        self._driver: Chrome | None = None
        self._server: SiteServer | None = None
        self._store: SessionStore | None = None
        self._profile: tempfile.TemporaryDirectory[str] | None = None
        self._session: Session | None = None
        self._source = ""

    # -- machinery -------------------------------------------------------------------------------------------------

    @property
    def driver(self) -> Chrome:
        """The browser; started on first use."""
        if self._driver is None:
            from seed_envs.webshop.site.app import SiteOptions, create_app
            from seed_envs.webshop.site.server import SiteServer
            from seed_envs.webshop.site.sessions import SessionStore

            self._store = SessionStore(cap=8)
            limits = SiteOptions(
                choose_goal=True, max_query=MAX_ACTION_LENGTH, max_body=8 * MAX_ACTION_LENGTH, max_steps=1_000_000
            )
            self._server = SiteServer(create_app(self.shop, limits, self._store)).start()
            self._profile = tempfile.TemporaryDirectory(prefix="webshop-browser-")
            try:
                self._driver = start_browser(self._profile.name, self._no_sandbox, self._window)
            except DependencyMissing:
                self.close()
                raise
        return self._driver

    def close(self) -> None:
        """Ends browser and server; calling it twice is fine."""
        if self._driver is not None:
            self._driver.quit()
            self._driver = None
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._profile is not None:
            self._profile.cleanup()
            self._profile = None
        self._session = None

    # -- episode ---------------------------------------------------------------------------------------------------

    def _begin(self, task_id: str, options: dict[str, Any]) -> str:
        super()._begin(task_id, options)
        self._open(task_id)
        return self._look()

    def _open(self, task_id: str) -> None:
        driver = self.driver
        assert self._server is not None and self._store is not None
        if self._session is not None:
            self._store.close(self._session.sid)
        driver.delete_all_cookies()
        driver.get(self._server.url)
        driver.execute_script(_FILL, driver.find_element("id", "task_id"), task_id)
        driver.execute_script(_LEAVE)
        self._follow(driver.find_element("css selector", "button[type=submit]"))
        session = self._store.get(driver.current_url.rpartition("/")[2])
        assert session is not None, f"the site opened no session: {driver.current_url}"
        self._session = session

    def _follow(self, element: Any) -> None:
        """Presses an element of a page that was marked as left, waits for the next page and keeps its source."""
        from selenium.webdriver.support.ui import WebDriverWait

        element.click()
        patient = WebDriverWait(self.driver, _PATIENCE, poll_frequency=_POLL)
        self._source = patient.until(lambda driver: driver.execute_script(_SOURCE))

    def _look(self) -> str:
        """Reads the page in the browser and takes over the session's state."""
        from seed_envs.webshop.site.extract import visible_strings

        assert self._session is not None
        self._state = self._session.state
        self._page = self.shop.page(self._state, self.goal)
        source = self._source
        strings = [string.strip() for string in visible_strings(source)]
        if self._form == "parts":
            goal = self.goal.instruction.strip()
            start = strings.index(goal) + 1 if goal in strings else 0
            strings = [f"'{string}'" for string in strings[start:]]
        self._observation = source if self._form == "html" else SEPARATOR.join(strings)
        return self._observation

    def _act(self, action: str) -> Outcome:
        if len(action) > MAX_ACTION_LENGTH:
            return self._refused(action[:80], f"the action has {len(action)} characters; at most {MAX_ACTION_LENGTH}")
        clicks = self.page.body.clicks
        command = self._parse(action, lambda: clicks)
        reason = command.reason or self._press(command)
        if reason:
            return self._refused(action, reason)
        before = self._observation
        shown = self._with_history(before, action, self._look())
        if self._state.view != "done":
            return Outcome(shown)
        reward = float(self.driver.find_element("tag name", "main").get_attribute("data-reward") or "nan")
        return Outcome(shown, float(reward == 1.0) if self._binary else reward, True)

    def _press(self, command: Command) -> str:
        """Presses what a command names; returns why nothing happened, or an empty string."""
        driver, session = self.driver, self._session
        assert session is not None
        step = session.step
        value = "search" if command.kind == "search" else command.argument
        element = driver.execute_script(_FIND, command.kind, value, command.argument)
        if element is None:
            return self.shop.apply(self._state, command, self.goal).reason or f"the page has no {value!r} to press"
        self._follow(element)
        if session.step == step + 1:
            return ""
        reason = driver.find_element("tag name", "main").get_attribute("data-reason") or "the site refused the action"
        self._reload()
        return reason

    def _reload(self) -> None:
        self.driver.get(self._address())
        self._source = self.driver.page_source

    def _address(self) -> str:
        assert self._server is not None and self._session is not None
        return f"{self._server.url}/s/{self._session.sid}"

    def _show(self, state: State) -> str:
        if self._session is None or self._session.state is not state:
            return super()._show(state)
        return self._look()

    # -- snapshots, rendering --------------------------------------------------------------------------------------

    def set_state(self, state: EpisodeState) -> None:
        """Continues from a snapshot: puts the session there and reloads the page."""
        super().set_state(state)
        if self._session is None or self._session.goal is not self.goal:
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

    def screenshot(self, path: Path) -> None:
        """Saves the visible page as PNG."""
        self.driver.save_screenshot(str(path))
