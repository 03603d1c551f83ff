"""A headless Chromium of one's own: started with a fresh profile, cut off from other machines, and ended for certain.

A small watcher process waits until the browser is closed or this process is gone, however that happened; then it kills
what is left of the browser and removes its profile. Nothing here knows the shop.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import weakref
from typing import TYPE_CHECKING

from seed_envs.errors import DependencyMissing, require

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.chrome.service import Service

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    *("--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage"),
    # No page is kept for going back, or painted over until the next one is there.
    "--disable-features=PaintHolding,BackForwardCache,Translate",
    *("--proxy-server=direct://", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
)
_LONGEST_TMPDIR = 55
# Reads until its input is closed; "$1" is the browser's process group (or nothing), "$2" the profile.
_WATCH = (
    'cat >/dev/null; [ -n "$1" ] && kill -s KILL -- "-$1" 2>/dev/null; '
    'for attempt in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$2" 2>/dev/null && break; sleep 0.2; done'
)


class Chromium:
    """A running browser with its driver; :meth:`close` it, or let go of it.

    Args:
        no_sandbox: Switches Chromium's sandbox off, which a container's root user may need.
        window: Window size in pixels, width and height.
        logs: Whether console and network logs are recorded.

    Attributes:
        driver: Selenium's handle.
        profile: Folder of the browser's files, removed at the end.

    Raises:
        DependencyMissing: If selenium, Chromium or its driver is not installed, or the browser does not start.
    """

    def __init__(self, no_sandbox: bool = False, window: tuple[int, int] = (1280, 900), logs: bool = False) -> None:
        require("selenium", "browser", "the browser environment")
        from selenium import webdriver
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.chrome.service import Service

        browser, program = _programs()
        self.profile = tempfile.mkdtemp(prefix="webshop-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        # The environment waits for the document itself; pictures need no waiting.
        options.page_load_strategy = "eager"
        for flag in (*_FLAGS, f"--user-data-dir={self.profile}", f"--window-size={window[0]},{window[1]}"):
            options.add_argument(flag)
        if no_sandbox:
            options.add_argument("--no-sandbox")
        if logs:
            options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        # A process group of its own: it can be ended as a whole, and Ctrl+C in a terminal does not reach it first.
        service = Service(program, env=_environment(self.profile), popen_kw={"start_new_session": True})
        try:
            self.driver: Chrome = webdriver.Chrome(options=options, service=service)
        except BaseException as error:
            _release(_watch(service, self.profile))
            if not isinstance(error, WebDriverException):
                raise
            hint = "" if no_sandbox else " As root, or in a container, pass no_sandbox=True."
            reason = (str(error.msg).splitlines() or ["no reason given"])[0]
            raise DependencyMissing(
                f"{browser} does not start with {program}: {reason}{hint} Otherwise check that both have the same "
                "version."
            ) from error
        self._end = weakref.finalize(self, _end, os.getpid(), self.driver, _watch(service, self.profile))

    def close(self) -> None:
        """Ends the browser, every process of it, and its profile; calling it twice is fine."""
        self._end()


def _programs() -> tuple[str, str]:
    """Paths of the browser and its driver."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if driver is None or browser is None:
        raise DependencyMissing(
            "the browser environment needs chromium and chromedriver on the path. "
            "Run: apt-get install chromium chromium-driver"
        )
    return browser, driver


def _environment(profile: str) -> dict[str, str]:
    """The driver's environment: its other temporary files go into the profile, too, and with it."""
    # A socket's path in there must stay below the system's limit of about a hundred characters.
    return {**os.environ, "TMPDIR": profile} if len(profile) < _LONGEST_TMPDIR else dict(os.environ)


def _watch(service: Service, profile: str) -> subprocess.Popen[bytes]:
    """Starts the watcher of a driver's process group."""
    process = getattr(service, "process", None)
    group = "" if process is None else str(process.pid)
    return subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, "sh", group, profile],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _release(watcher: subprocess.Popen[bytes]) -> None:
    """Lets the watcher do its work and waits for it."""
    assert watcher.stdin is not None
    watcher.stdin.close()
    watcher.wait()


def _end(owner: int, driver: Chrome, watcher: subprocess.Popen[bytes]) -> None:
    # A forked child must not end its parent's browser.
    if os.getpid() == owner:
        driver.quit()
        _release(watcher)
