"""The page of seed-play: calls, refusals, and a person in Chromium at both widths, light and dark."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from seed_envs.errors import DependencyMissing
from seed_envs.playing.table import Table
from seed_envs.playing.web import PageServer

FIVE = ["seed/ALFWorld-v0", "seed/WebShop-v0", "seed/SearchQA-v0", "seed/Sokoban-v0", "seed/EZPoints-v0"]
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
TRAINED = {
    "task_id": f"t{HOSTILE}",
    "goal": HOSTILE,
    "success": True,
    "round": 2,
    "skill": HOSTILE,
    "turns": [
        {"observation": HOSTILE, "reply": HOSTILE, "action": "up", "valid": True, "reason": ""},
        {"observation": "the end " * 300, "reply": "x" * 900, "action": HOSTILE, "valid": False, "reason": HOSTILE},
    ],
    "rows": [
        {"tokens": [HOSTILE, " up"], "mask": [1, 0], "student": [-1, -1], "teacher": [-0.5, -1], "gate": [0.9, 0.5]},
        {"tokens": ["down"], "mask": [1], "student": [-1], "teacher": [-3], "gate": [0.1]},
    ],
}


@contextlib.contextmanager
def serving(env_id, replay=None):
    table = Table(env_id, replay=replay)
    with PageServer(table) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            table.close()


def send(server, method, path, body=b"", **headers):
    connection = http.client.HTTPConnection(*server.server_address, timeout=60)
    connection.request(method, path, body, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def call(server, name, **request):
    status, _, body = send(server, "POST", f"/api/{name}", json.dumps(request).encode())
    return status, json.loads(body)


@pytest.mark.parametrize("env_id", FIVE)
def test_all_five_are_won_by_hints_and_taken_back(env_id):
    with serving(FIVE[0]) as server:
        assert set(FIVE) <= set(call(server, "offer")[1]["envs"])
        status, game = call(server, "new", env=env_id, seed=3)
        assert status == 200 and game["goal"] and (game["observation"] or game["picture"])
        first = game
        while not game["ended"]:
            hinted = call(server, "hint", turn=game["turn"])[1]
            game = call(server, "act", turn=game["turn"], action=hinted["hint"])[1]
        assert game["success"] and game["score"] == 1.0
        for _ in range(game["turn"]):
            game = call(server, "undo", turn=game["turn"])[1]
        assert game == first


def test_requests_that_cannot_be_carried_out_are_told():
    with serving("seed/Sokoban-v0") as server:
        assert call(server, "act", turn=0, action="up") == (400, {"error": "no game has begun"})
        game = call(server, "new", env="seed/Sokoban-v0", seed=1)[1]
        for name, request, message in [
            ("new", {"env": "seed/Sokobann-v0"}, "Did you mean"),
            ("new", {"env": "seed/Sokoban-v0", "task_id": "nope"}, "task 'nope'"),
            ("new", {"env": "seed/Sokoban-v0", "seed": "x"}, "expected a whole number"),
            ("new", {"env": 3}, "env is text"),
            ("act", {"turn": 7, "action": "up"}, "another window"),
            ("act", {"turn": 0, "action": ["up"]}, "action is text"),
            ("episode", {"number": 0}, "no stored episodes"),
        ]:
            status, answer = call(server, name, **request)
            assert status == 400 and message in answer["error"], (name, request, answer)
        assert call(server, "offer")[1]["game"] == game, "a refused request leaves the game as it was"
        refused = call(server, "act", turn=0, action="nonsense")[1]
        assert "unknown action" in refused["refusal"]


def test_only_pages_of_this_machine_are_answered():
    with serving("seed/Sokoban-v0") as server:
        assert server.server_address[0] == "127.0.0.1"
        for path in ("/", "/play.css", "/play.js"):
            status, headers, body = send(server, "GET", path)
            assert status == 200 and body and headers["X-Content-Type-Options"] == "nosniff"
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy
        for headers in (
            {"Host": "evil.example"},
            {"Origin": "http://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Origin": "null"},
        ):
            assert send(server, "POST", "/api/offer", b"{}", **headers)[0] == 403
            assert send(server, "GET", "/", b"", **headers)[0] == 403
        for body, headers, status in [
            (b"{}", {"Content-Type": "text/plain"}, 413),
            (b"x" * 70_000, {}, 413),
            (b"[" * 60_000, {}, 400),
            (b"[1]", {}, 400),
            (b"\xff", {}, 400),
        ]:
            assert send(server, "POST", "/api/offer", body, **headers)[0] == status
        for path in ("/api/close", "/api/_new", "/api/../offer", "/play.js/", "/etc/passwd", "/api/__class__"):
            assert send(server, "POST", path, b"{}")[0] == 404
            assert send(server, "GET", path)[0] == 404


def test_the_command_serves_until_it_is_interrupted(tmp_path):
    (tmp_path / "episodes.jsonl").write_text(json.dumps(TRAINED) + "\n")
    command = [sys.executable, "-m", "seed_envs.play", "--web", "--replay", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert address, line
        connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=60)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.status == 200 and b"play.js" in answer.read()
        connection.close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "stopped\n", "")


@pytest.fixture(scope="module")
def driver():
    from seed_envs.webshop.chromium import Chromium

    try:
        chromium = Chromium(no_sandbox=True, logs=True)
    except DependencyMissing as error:
        pytest.skip(f"Chromium: {error}")
    yield chromium.driver
    chromium.close()


def view(driver, width, scheme):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def until(driver, script):
    deadline = time.monotonic() + 200
    while not (found := driver.execute_script(f"return {script}")):
        assert time.monotonic() < deadline, f"never true: {script}"
        time.sleep(0.05)
    return found


def click(driver, selector):
    """Clicks and waits until the page has shown the answer."""
    before = driver.execute_script("return Number(document.documentElement.dataset.asked)")
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)
    until(driver, f"Number(document.documentElement.dataset.asked) > {before}")


def text(driver, selector):
    return driver.execute_script("return document.querySelector(arguments[0]).textContent", selector)


def fits(driver):
    wide = driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide <= 0


def picture_of(driver, name):
    """Keeps what the page looks like, for a person, in the folder that SEED_SCREENSHOTS names."""
    if folder := os.environ.get("SEED_SCREENSHOTS"):
        driver.save_screenshot(os.path.join(folder, f"{name}.png"))


LOOKS = [(width, scheme) for width in (390, 1280) for scheme in ("light", "dark")]


@pytest.mark.parametrize("env_id", FIVE)
def test_a_person_wins_in_the_browser(driver, env_id):
    with serving(env_id) as server:
        view(driver, 1280, "light")
        driver.get(server.url)
        until(driver, "document.documentElement.dataset.ready === 'yes'")
        driver.execute_script("document.getElementById('seed').value = 3")
        click(driver, "#start button")
        for width, scheme in LOOKS:
            view(driver, width, scheme)
            assert fits(driver), (env_id, width)
            assert not driver.execute_script("return document.getElementById('stored').offsetHeight"), "none are there"
            picture_of(driver, f"play-{env_id.split('/')[1]}-{width}-{scheme}")
        listed = driver.execute_script("return document.querySelectorAll('#actions button').length")
        while not driver.execute_script("return document.getElementById('typed').hidden"):
            click(driver, "#hint")
            hinted = driver.execute_script("return document.querySelectorAll('#actions button.hinted').length")
            assert "hint: " in text(driver, "#note")
            assert hinted or not listed or driver.execute_script("return document.getElementById('action').value")
            click(driver, "#actions button.hinted" if hinted else "#typed button")
        assert text(driver, "#end").startswith("Solved")
        click(driver, "#undo")
        assert not text(driver, "#end") and not driver.execute_script("return document.getElementById('typed').hidden")


def test_an_action_with_a_blank_is_filled_in_by_the_person(driver):
    with serving("seed/WebShop-v0") as server:
        driver.get(server.url)
        until(driver, "document.documentElement.dataset.ready === 'yes'")
        click(driver, "#start button")
        driver.execute_script("document.querySelector('#actions button').click()")
        chosen = "const f = document.getElementById('action'); return f.value.slice(f.selectionStart, f.selectionEnd)"
        assert driver.execute_script(chosen) == "<your query>"
        assert not driver.execute_script("return document.querySelectorAll('#past li').length")


def test_stored_episodes_are_text_whatever_they_hold(driver, tmp_path):
    (tmp_path / "episodes.jsonl").write_text(json.dumps(TRAINED) + "\n")
    driver.get_log("browser")
    with serving("seed/Sokoban-v0", tmp_path) as server:
        driver.get(server.url)
        until(driver, "document.documentElement.dataset.ready === 'yes' && document.querySelector('.tokens')")
        for width, scheme in LOOKS:
            view(driver, width, scheme)
            assert fits(driver), width
            picture_of(driver, f"replay-{width}-{scheme}")
        assert text(driver, "#goal") == text(driver, "#observation") == text(driver, "#skill") == HOSTILE
        assert text(driver, ".tokens span") == HOSTILE
        colours = "return [...document.querySelectorAll('.tokens span')].map((s) => s.style.backgroundColor)"
        blue, plain = driver.execute_script(colours)
        assert blue.startswith("rgb(") and not plain
        driver.execute_script("document.getElementById('next').click()")
        assert text(driver, "#at") == "turn 2 of 2" and text(driver, ".tokens span") == "down"
        assert HOSTILE in text(driver, "#refusal") and fits(driver)
        assert driver.title == "seed-play" and not driver.execute_script("return document.images.length > 1")
        assert [entry for entry in driver.get_log("browser") if "favicon" not in entry["message"]] == []
