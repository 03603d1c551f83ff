"""WebShop in a real Chromium: equal to the text environment, hostile texts stay text, nothing leaves the machine."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flask", reason="packages: the browser environment needs Flask")
pytest.importorskip("selenium", reason="packages: the browser environment needs selenium")
if shutil.which("chromedriver") is None or not any(
    map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
):
    pytest.skip("Chromium: chromium or chromedriver is not on the path", allow_module_level=True)

from seed_envs.errors import DependencyMissing, EpisodeEnded, UnknownOption
from seed_envs.webshop.browser import WebShopBrowserEnv
from seed_envs.webshop.chromium import Chromium
from seed_envs.webshop.env import WebShopEnv

SETTINGS: dict[str, Any] = {"num_products": 100, "hostile": True, "reviews": True, "show_attrs": True, "split": "all"}
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


class LoggedEnv(WebShopBrowserEnv):
    """The environment with a browser that records its network traffic."""

    def _start_browser(self) -> Chromium:
        return Chromium(ROOT, logs=True)


@pytest.fixture(scope="module")
def browsers() -> Iterator[dict[str, WebShopBrowserEnv]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        envs: dict[str, WebShopBrowserEnv] = {
            mode: LoggedEnv(mode=mode, render_mode="rgb_array", **SETTINGS) for mode in ("original", "fixed")
        }
        yield envs
        for env in envs.values():
            env.close()
            env.close()


def processes_with(text: str) -> list[str]:
    """Command lines of running processes that mention a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        # A process may end while it is looked at.
        with contextlib.suppress(OSError):
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            found += [line] if text in line else []
    return found


def wait_until_gone(profile: str) -> None:
    """Waits, as long as it takes on a busy machine, until a browser's processes and files are no more."""
    for _ in range(1200):
        if not Path(profile).exists() and not processes_with(profile):
            return
        time.sleep(0.1)
    raise AssertionError(f"left: {processes_with(profile)}, folder there: {Path(profile).exists()}")


@pytest.mark.parametrize("mode", ["original", "fixed"])
def test_browser_and_text_environment_agree_step_by_step(browsers: dict[str, WebShopBrowserEnv], mode: str) -> None:
    seen, text = browsers[mode], WebShopEnv(mode=mode, **SETTINGS)
    rng = random.Random(2)
    pages = set()
    for seed in range(3):
        first, other = seen.reset(seed=seed), text.reset(seed=seed)
        assert first[0] == other[0]
        for _ in range(15):
            chance = rng.random()
            if chance < 0.2:
                action = rng.choice(
                    ["click[x]", "Search[a]", "search[unfriendly listing]", "search[<c>]", "click[search]"]
                )
            elif chance < 0.5:
                action = text.oracle_action()
            else:
                action = f"click[{rng.choice(list(text.page.body.clicks))}]"
            got, expected = seen.step(action), text.step(action)
            pages.add(text.page.kind)
            assert got[:4] == expected[:4], action
            assert got[4]["webshop"] == expected[4]["webshop"]
            assert got[4]["action_valid"] == expected[4]["action_valid"]
            assert list(got[4]["admissible_actions"]) == list(expected[4]["admissible_actions"])
            if got[2]:
                break
    assert {"results", "item"} <= pages


def test_a_tour_ends_in_a_full_score(browsers: dict[str, WebShopBrowserEnv]) -> None:
    env = browsers["fixed"]
    env.reset(seed=5)
    reward, done = 0.0, False
    for _ in range(15):
        _, reward, done, _, info = env.step(env.oracle_action())
        if done:
            break
    assert done and reward == 1.0 and info["success"]
    picture = env.render()
    assert picture.ndim == 3 and picture.shape[2] == 3 and picture.std() > 5


def test_hostile_products_run_nothing(browsers: dict[str, WebShopBrowserEnv]) -> None:
    env = browsers["original"]
    env.reset(seed=1)
    shop = env.shop
    opened = 0
    for asin in [product.asin.lower() for product in shop.products if product.asin.startswith("X0")]:
        env.step("search[unfriendly listing]")
        env.step(f"click[{asin}]")
        assert env.page.kind == "item"
        option = next(
            key
            for key in env.page.body.clicks
            if key not in ("plain", "< prev") and key in shop.by_asin[asin.upper()].options["style"]
        )
        for action in (
            f"click[{option}]",
            "click[description]",
            "click[< prev]",
            "click[features]",
            "click[< prev]",
            "click[reviews]",
        ):
            env.step(action)
            assert env.driver.title.startswith("WebShop: ")
            opened += 1
    assert opened == 18
    assert env.driver.execute_script("return document.scripts.length") == 0


def test_nothing_leaves_the_machine_and_nothing_fails_to_load(browsers: dict[str, WebShopBrowserEnv]) -> None:
    env = browsers["original"]
    # What Chromium itself does before the first page is not ours.
    env.driver.get_log("performance")
    env.reset(seed=2)
    env.step("search[unfriendly listing]")
    env.step(f"click[{next(key for key in env.page.body.clicks if key.startswith('x0'))}]")
    addresses, failed = set(), []
    for entry in env.driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            addresses.add(message["params"]["request"]["url"])
        elif message["method"] == "Network.loadingFailed":
            failed.append(message["params"])
    web = {address for address in addresses if address.startswith("http")}
    assert web and all(address.startswith("http://127.0.0.1:") for address in web)
    assert not failed
    severe = [
        entry for entry in env.driver.get_log("browser") if entry["level"] == "SEVERE" and " 40" not in entry["message"]
    ]
    assert not severe


def test_snapshots_work_in_the_browser(browsers: dict[str, WebShopBrowserEnv]) -> None:
    env = browsers["fixed"]
    env.reset(seed=3)
    env.step(env.oracle_action())
    snapshot, observation = env.get_state(), env._observation
    env.step(env.oracle_action())
    env.set_state(snapshot)
    assert (
        env._observation == observation
        and env.driver.find_element("tag name", "main").get_attribute("data-view") == "results"
    )


def test_a_snapshot_outlives_the_sites_session(browsers: dict[str, WebShopBrowserEnv]) -> None:
    env = browsers["fixed"]
    env.reset(seed=3)
    env.step(env.oracle_action())
    snapshot, observation = env.get_state(), env._observation
    assert env._store is not None and env._session is not None
    env._store.close(env._session.sid)
    env.set_state(snapshot)
    assert env._observation == observation
    assert env.step(env.oracle_action())[4]["webshop"]["page"] == "item"


@pytest.mark.parametrize("mode", ["original", "fixed"])
def test_long_and_odd_searches_equal_the_text_environments(browsers: dict[str, WebShopBrowserEnv], mode: str) -> None:
    seen, text = browsers[mode], WebShopEnv(mode=mode, **SETTINGS)
    for query in ("中文" * 4900, "\U0001f600 " * 3000, "red\nshoes", " ", "a&b=c+d%20;?#", "\"><b>'`", "x" * 20_000):
        first, other = seen.reset(seed=1), text.reset(seed=1)
        assert first[0] == other[0]
        got, expected = seen.step(f"search[{query}]"), text.step(f"search[{query}]")
        assert got[:4] == expected[:4] and got[4]["invalid_reason"] == expected[4]["invalid_reason"]


CONTRAST = """
const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => v / 255)
  .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (c !== 'rgba(0, 0, 0, 0)') return c; } return 'rgb(255, 255, 255)'; };
const worst = [];
for (const e of document.body.querySelectorAll('*')) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  if (!own && !e.hasAttribute('data-label') && e.tagName !== 'INPUT') continue;
  const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) worst.push([e.outerHTML.slice(0, 200), (a + 0.05) / (b + 0.05)]);
}
return worst;
"""


def test_all_texts_stand_out_from_their_ground(browsers: dict[str, WebShopBrowserEnv]) -> None:
    env = browsers["original"]
    env.reset(seed=6)
    looked = set()
    product = env.goal.product.asin.lower()
    actions = ["search[zzzz]", f"search[{env.goal.product.title}]", f"click[{product}]", "click[reviews]"]
    actions += ["click[< prev]", "click[attributes]", "click[< prev]", "click[< prev]", f"click[{product}]"]
    for action in [*actions, "", "", "", "", ""]:
        assert env.driver.execute_script(CONTRAST) == []
        looked.add(env.page.kind)
        if env.page.kind == "done":
            break
        env.step(action or env.oracle_action())
    assert looked == {"index", "results", "item", "sub", "done"}


def test_pages_fit_a_phone(browsers: dict[str, WebShopBrowserEnv]) -> None:
    env = browsers["fixed"]
    env.reset(seed=4)
    env.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        for _ in range(8):
            width = env.driver.execute_script("return document.documentElement.scrollWidth")
            assert width <= 320, (env.page.kind, width)
            if env.page.kind == "done":
                break
            env.step(env.oracle_action())
    finally:
        env.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_control_has_a_name(browsers: dict[str, WebShopBrowserEnv]) -> None:
    env = browsers["original"]
    env.reset(seed=6)
    script = (
        "return [...document.querySelectorAll('button, input:not([type=hidden]), a, fieldset, img')].filter(e => "
        "!(e.textContent.trim() || e.getAttribute('aria-label') || e.hasAttribute('alt') "
        "|| (e.labels && e.labels.length) || e.querySelector('legend'))).map(e => e.outerHTML)"
    )
    for _ in range(8):
        assert env.driver.execute_script(script) == []
        assert env.driver.execute_script("return document.querySelectorAll('h1').length") == 1
        assert env.driver.execute_script("return document.documentElement.lang") == "en"
        if env.page.kind == "done":
            break
        env.step(env.oracle_action())


def test_an_expired_session_shows_an_error_page(browsers: dict[str, WebShopBrowserEnv]) -> None:
    env = browsers["original"]
    env.reset(seed=7)
    assert env._store is not None and env._session is not None
    env._store.close(env._session.sid)
    env.driver.refresh()
    assert env.driver.find_element("tag name", "main").get_attribute("data-error") == "404"


def test_other_observation_forms_are_refused() -> None:
    with pytest.raises(UnknownOption, match="text_rich"):
        WebShopBrowserEnv(obs_mode="text_rich")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="Linux: looks at processes in /proc")
def test_a_browser_that_dies_is_replaced_by_the_next_reset_and_closing_leaves_nothing() -> None:
    env = WebShopBrowserEnv(no_sandbox=ROOT, num_products=100, obs_mode="parts")
    text = WebShopEnv(num_products=100, obs_mode="parts")
    assert env.reset(seed=0)[0] == text.reset(seed=0)[0]
    assert env._chromium is not None
    first = env._chromium.profile
    assert processes_with(first)
    os.killpg(env._chromium.driver.service.process.pid, signal.SIGKILL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises(Exception):  # noqa: B017  selenium's or urllib3's, whichever notices first
            env.step("search[red]")
        wait_until_gone(first)
        with pytest.raises(EpisodeEnded):
            env.step("search[red]")
        assert env.reset(seed=0)[0] == text.reset(seed=0)[0]
        assert env.step("search[red]")[0] == text.step("search[red]")[0]
        second = env._chromium.profile
        os.killpg(env._chromium.driver.service.process.pid, signal.SIGKILL)
        assert env.reset(seed=1)[0] == text.reset(seed=1)[0]
        wait_until_gone(second)
        third = env._chromium.profile
        with pytest.raises(TypeError, match="cannot be copied"):
            copy.deepcopy(env)
        env.close()
        env.close()
    wait_until_gone(third)
    with pytest.raises(EpisodeEnded):
        env.step("search[red]")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="Linux: looks at processes in /proc")
def test_a_killed_process_leaves_no_browser_behind() -> None:
    code = (
        "import os, signal\n"
        "from seed_envs.webshop.chromium import Chromium\n"
        f"chromium = Chromium({ROOT})\n"
        "print(chromium.profile, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_until_gone(done.stdout.strip())


def test_a_browser_that_does_not_start_is_explained_and_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    env = WebShopBrowserEnv(**SETTINGS)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(DependencyMissing, match="no_sandbox=True"):
        env.reset(seed=1)
    assert env._server is None and env._chromium is None
    env.close()
    assert not list(tmp_path.glob("webshop-browser-*"))
