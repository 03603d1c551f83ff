"""WebShop in a real Chromium: equal to the text environment, hostile texts stay text, nothing leaves the machine."""

from __future__ import annotations

import json
import os
import random
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flask", reason="the browser environment needs Flask: pip install 'seed-envs[browser]'")
pytest.importorskip("selenium", reason="the browser environment needs selenium: pip install 'seed-envs[browser]'")
if shutil.which("chromedriver") is None or not any(
    map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
):
    pytest.skip("the browser environment needs chromium and chromedriver on the path", allow_module_level=True)

from seed_envs.errors import DependencyMissing, UnknownOption
from seed_envs.webshop import browser as browser_module
from seed_envs.webshop.browser import WebShopBrowserEnv
from seed_envs.webshop.env import WebShopEnv

SETTINGS: dict[str, Any] = {"num_products": 100, "hostile": True, "reviews": True, "show_attrs": True, "split": "all"}
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture(scope="module")
def browsers() -> Iterator[dict[str, WebShopBrowserEnv]]:
    original = browser_module.start_browser

    def with_logs(profile: str, no_sandbox: bool, window: tuple[int, int]) -> Any:
        return original(profile, no_sandbox, window, logs=True)

    browser_module.start_browser = with_logs  # type: ignore[assignment]
    envs = {
        mode: WebShopBrowserEnv(mode=mode, no_sandbox=ROOT, render_mode="rgb_array", **SETTINGS)
        for mode in ("original", "fixed")
    }
    yield envs
    for env in envs.values():
        env.close()
        env.close()
    browser_module.start_browser = original


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


def test_closing_frees_the_profile(tmp_path: Path) -> None:
    env = WebShopBrowserEnv(no_sandbox=ROOT, num_products=100, obs_mode="parts")
    text = WebShopEnv(num_products=100, obs_mode="parts")
    assert env.reset(seed=0)[0] == text.reset(seed=0)[0]
    assert env.step("search[red]")[0] == text.step("search[red]")[0]
    assert env._profile is not None
    folder = Path(env._profile.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        env.close()
    assert not folder.exists()


def test_a_browser_that_does_not_start_is_explained_and_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    env = WebShopBrowserEnv(**SETTINGS)
    with pytest.raises(DependencyMissing, match="no_sandbox=True"):
        env.reset(seed=1)
    assert env._server is None and env._profile is None
    env.close()
