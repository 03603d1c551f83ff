"""The HTML report in a real browser: ten thousand episodes, filters, transcripts, pictures, hostile text."""

from __future__ import annotations

import dataclasses
import re
import shutil
import time

import pytest
from ladder_env import suite_record

from seed_benchmarks.cli import main
from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.folder import RunFolder, write_json
from seed_benchmarks.plan import episode_seed
from seed_benchmarks.records import encode_line, read_heads, read_transcripts
from seed_benchmarks.report import write_report
from seed_benchmarks.runner import start_run, summarise_folder
from seed_benchmarks.suite import Suite
from seed_benchmarks.suites import find_suite
from seed_envs.journal import Journal

COUNT = 10_008
HOSTILE = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1"> & "quoted" \u2028 \U0001f600'


def make_run(folder, agent="python:ladder_env:stumble", suite=None, **options):
    run = RunConfig(Suite.from_json(suite or suite_record()), AgentSettings(agent), **options)
    start_run(run, folder, ["seed-bench", "run", "--suite", "ladder/good"])
    return RunFolder(folder)


def report(folder, **options):
    return write_report(folder, summarise_folder(folder), folder.report, **options)


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """10,008 episodes, made of copies of 96 that were played; one of them is hostile."""
    folder = make_run(tmp_path_factory.mktemp("big") / "run", repeats=4)
    played = sorted(read_transcripts(folder.episodes), key=lambda pair: pair[0].index)
    for _, transcript in played:
        for step in transcript["steps"]:
            step["kept"] = 0
    folder.episodes.unlink()
    config = folder.read_config()
    write_json(
        folder.path / "config.json", {**config, "planned": COUNT, "run": {**config["run"], "repeats": COUNT // 24}}
    )
    with Journal(folder.episodes) as journal:
        for index in range(COUNT):
            record, transcript = played[index % len(played)]
            seed = episode_seed(config["run"]["seed"], record.task_id, index // 24)
            record = dataclasses.replace(record, index=index, repeat=index // 24, seed=seed)
            if index == 0:
                transcript = {**transcript, "final_observation": HOSTILE}
                transcript["steps"] = [{**transcript["steps"][0], "reply": HOSTILE}, *transcript["steps"][1:]]
                record = dataclasses.replace(record, goal=HOSTILE, task_type="<b>bold</b>")
            journal.append(encode_line(record, transcript))
    begin = time.process_time()
    size = report(folder).stat().st_size / 1e6
    print(f"report of {COUNT:,} episodes: {time.process_time() - begin:.1f} CPU seconds, {size:.1f} MB")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="packages: the report's browser test needs selenium")
    chromium, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("Chromium: chromium or chromedriver is not on the path")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync"):
        options.add_argument(f"--{flag}")
    options.add_argument("--disable-background-networking")
    options.add_argument("--disable-component-update")
    options.add_argument("--window-size=1400,1000")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    found.set_page_load_timeout(300)
    found.set_script_timeout(300)
    yield found
    found.quit()


def wait_for(browser, script, seconds=200.0):
    deadline = time.monotonic() + seconds
    while not (found := browser.execute_script(f"return {script}")):
        assert time.monotonic() < deadline, f"never true: {script}"
        time.sleep(0.05)
    return found


def open_page(browser, path, fragment=""):
    browser.get("about:blank")
    browser.get(path.as_uri() + fragment)
    wait_for(browser, "document.documentElement.dataset.ready === 'yes'")


def text(browser, selector):
    return browser.execute_script("return document.querySelector(arguments[0]).textContent", selector)


def set_field(browser, name, value):
    browser.execute_script(
        "const f = document.getElementById(arguments[0]); f.value = arguments[1]; f.dispatchEvent(new Event('input'))",
        name, value,
    )  # fmt: skip


def test_ten_thousand_episodes_are_listed_filtered_and_read(browser, big):
    open_page(browser, big.report)
    assert "10,008 episodes scored" in text(browser, "#headline") or "of 10,008" in text(browser, "#headline")
    assert text(browser, "#count") == "10,008 of 10,008 episodes"
    assert browser.execute_script("return document.querySelectorAll('#episodes tbody tr').length") == 100
    heads = list(read_heads(big.episodes))
    faults = sum(not record.scored for record in heads)
    set_field(browser, "f-outcome", "fault")
    assert text(browser, "#count") == f"{faults:,} of 10,008 episodes"
    set_field(browser, "f-type", "long")
    long_faults = sum(not record.scored and record.task_type == "long" for record in heads)
    assert text(browser, "#count") == f"{long_faults:,} of 10,008 episodes"
    set_field(browser, "f-text", "out of ideas")
    assert text(browser, "#count") == f"{long_faults:,} of 10,008 episodes"
    set_field(browser, "f-text", "nothing like it")
    assert text(browser, "#count") == "0 of 10,008 episodes"
    browser.execute_script("document.querySelector('#filters button').click()")
    wait_for(browser, "document.getElementById('count').textContent === '10,008 of 10,008 episodes'")
    browser.execute_script("document.getElementById('next-page').click()")
    assert "page 2 of 101" in text(browser, "#pages")


def test_a_transcript_opens_by_click_link_and_key(browser, big):
    wanted = next(record for record in read_heads(big.episodes) if record.index > 7000 and record.success)
    open_page(browser, big.report, f"#episode-{wanted.index}")
    wait_for(browser, "document.querySelectorAll('#transcript .step').length > 1")
    assert wanted.task_id in text(browser, "#transcript h2")
    assert "The next rung is" in text(browser, "#transcript")
    assert "<action>" in text(browser, "#transcript pre.reply")
    chosen = browser.execute_script("return document.querySelector('[aria-selected=true]').id")
    assert chosen == f"row-{wanted.index}"
    browser.execute_script("dispatchEvent(new KeyboardEvent('keydown', {key: 'j'}))")
    wait_for(browser, f"location.hash === '#episode-{wanted.index + 1}'")
    browser.execute_script("document.querySelector('#failures a').click()")
    wait_for(browser, "document.querySelector('#transcript pre.fault') !== null")
    assert "RuntimeError: out of ideas" in text(browser, "#transcript pre.fault")


@pytest.mark.parametrize("width", [390, 1400])
def test_a_chosen_transcript_is_in_view(browser, big, width):
    box = "document.getElementById('transcript').getBoundingClientRect()"
    in_view = f"{box}.top >= 0 && {box}.top < 0.5 * innerHeight"
    try:
        browser.set_window_size(width, 1000)
        open_page(browser, big.report)
        assert not browser.execute_script(f"return {in_view}")
        browser.execute_script("document.querySelector('#failures a').click()")
        wait_for(browser, in_view)
        browser.execute_script("scrollTo(0, 0); document.querySelector('#failures a').click()")
        wait_for(browser, in_view)
        browser.execute_script("document.querySelectorAll('#episodes tbody tr')[60].click()")
        wait_for(browser, f"location.hash === '#episode-60' && {in_view}")
        browser.execute_script("dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
        wait_for(browser, "document.activeElement.id === 'row-60'")
        row = "document.activeElement.getBoundingClientRect()"
        assert browser.execute_script(f"return {row}.top >= 0 && {row}.bottom <= innerHeight")
    finally:
        browser.set_window_size(1400, 1000)


def test_filters_and_pages_are_not_printed(browser, big):
    open_page(browser, big.report)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        for name in ("filters", "pages"):
            assert browser.execute_script(f"return document.getElementById('{name}').offsetHeight") == 0
        assert browser.execute_script("return document.getElementById('episodes').offsetHeight") > 0
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.fixture(scope="module")
def rivals(tmp_path_factory):
    root = tmp_path_factory.mktemp("rivals")
    agents = {"a": "oracle", "b": "python:ladder_env:stumble", "c": "random"}
    return [make_run(root / name, agent=agent, repeats=2) for name, agent in agents.items()]


def test_runs_are_compared_on_one_page(browser, rivals, tmp_path, capsys):
    out = tmp_path / "compare.html"
    assert main(["compare", *(str(run.path) for run in rivals), "--out", str(out)]) in (0, 1)
    assert "p, corrected" in capsys.readouterr().out
    open_page(browser, out)
    count = "return document.querySelectorAll(arguments[0]).length"
    assert browser.execute_script(count, "#pairs tbody tr") == 3
    assert browser.execute_script(count, "#runs tbody tr") == 3
    assert browser.execute_script(count, "svg.forest circle") >= 2
    assert browser.execute_script(count, "#tasks tbody tr") == 0, "B fails by faults alone, and they are not scored"
    set_field(browser, "f-right", "2")
    assert browser.execute_script(count, "#tasks tbody tr") > 0
    browser.execute_script("document.querySelector('#tasks tbody tr').click()")
    wait_for(browser, "document.querySelectorAll('#left .step').length > 1")
    wait_for(browser, "document.querySelectorAll('#right .step').length > 1")
    assert "A: oracle" in text(browser, "#left h3") and "C: random" in text(browser, "#right h3")
    wait_for(browser, "document.getElementById('pair').getBoundingClientRect().top < innerHeight / 2")
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert "default-src 'none'" in out.read_text(encoding="utf-8")


def test_a_leaderboard_holds_every_run_and_no_script(browser, rivals, tmp_path, capsys):
    out = tmp_path / "board.html"
    assert (
        main(["leaderboard", str(rivals[0].path.parent), str(rivals[1].path), "--out", str(out), "--title", "<b>"]) == 0
    )
    assert "3 runs" in capsys.readouterr().out
    page = out.read_text(encoding="utf-8")
    assert "<script" not in page and "<h1>&lt;b&gt;</h1>" in page
    browser.get("about:blank")
    browser.get(out.as_uri())
    assert browser.execute_script("return document.querySelectorAll('table.board')[1].tBodies[0].rows.length") == 3
    assert "not complete" in page, "the stumbling agent's faults are marked"
    assert main(["leaderboard", str(tmp_path / "nothing"), "--out", str(out)]) == 2
    assert "holds no run" in capsys.readouterr().err


def test_hostile_text_is_shown_and_never_run(browser, big):
    open_page(browser, big.report, "#episode-0")
    wait_for(browser, "document.querySelectorAll('#transcript .step').length > 1")
    assert HOSTILE in text(browser, "#transcript pre.reply")
    assert HOSTILE in text(browser, "#transcript p")
    assert "<b>bold</b>" in text(browser, "#families")
    assert browser.execute_script("return window.pwned") is None
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_pictures_are_shown(browser, tmp_path):
    folder = make_run(tmp_path / "run", agent="oracle", suite=suite_record(env_kwargs={"image": True}), limit=4)
    open_page(browser, report(folder), "#episode-1")
    wait_for(browser, "document.querySelectorAll('#transcript img').length > 1")
    wait_for(browser, "[...document.querySelectorAll('#transcript img')].every(i => i.complete)")
    assert browser.execute_script("return document.querySelector('#transcript img').naturalWidth") == 8


def test_a_direction_points_the_way_beside_every_picture(browser, tmp_path):
    run = RunConfig(find_suite("sokoban/mini"), AgentSettings("oracle"), profile="strict", limit=1)
    start_run(run, tmp_path / "run", ["seed-bench", "run", "--suite", "sokoban/mini"])
    folder = RunFolder(tmp_path / "run")
    _, transcript = next(read_transcripts(folder.episodes))
    actions = [step["action"] for step in transcript["steps"]]
    open_page(browser, report(folder), "#episode-0")
    wait_for(browser, f"document.querySelectorAll('#transcript .shot img').length === {len(actions)}")
    arrows = "[...document.querySelectorAll('#transcript .shot .arrow')].map(arrow => arrow.textContent).join('')"
    points = {"up": "\u2191", "down": "\u2193", "left": "\u2190", "right": "\u2192"}
    assert browser.execute_script(f"return {arrows}") == "".join(points[action] for action in actions)


def test_a_picture_that_did_not_change_is_shown_again(browser, tmp_path):
    suite = suite_record(env_kwargs={"image": True})
    wait = {"agent": "python:ladder_env:wait", "profile": "bare", "max_steps": 4, "limit": 1}
    folder = make_run(tmp_path / "run", suite=suite, **wait)
    _, transcript = next(read_transcripts(folder.episodes))
    first, *rest = [step["messages"] for step in transcript["steps"]][1:]
    assert all(messages == first for messages in rest), "the prompts were to be the same"
    open_page(browser, report(folder), "#episode-0")
    wait_for(browser, "document.querySelectorAll('#transcript .step').length === 5")
    shown = "[...document.querySelectorAll('#transcript .step')].map(s => s.querySelectorAll('.shot img').length)"
    assert browser.execute_script(f"return {shown}") == [1, 1, 1, 1, 0]
    prompts = "[...document.querySelectorAll('#transcript .step details')].map(d => d.textContent)"
    assert all("The next rung is" in text for text in browser.execute_script(f"return {prompts}")[:4])


def test_the_page_is_one_file_without_any_request(big):
    page = big.report.read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    outside = re.sub(r'<script type="(?:text/plain|application/json)"[^>]*>.*?</script>', "", page, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", outside)
    assert "fetch(" not in outside and "XMLHttpRequest" not in outside
    assert outside.count("http") == outside.count("http-equiv") + outside.count("http://www.w3.org/2000/svg")


def test_a_small_limit_keeps_failures_and_says_what_is_missing(browser, big, tmp_path):
    path = write_report(big, summarise_folder(big), tmp_path / "small.html", max_bytes=60_000)
    assert path.stat().st_size < 3_500_000
    open_page(browser, path)
    assert "transcripts are not in this file" in text(browser, "#notes")
    browser.execute_script("document.querySelector('#failures a').click()")
    wait_for(browser, "document.querySelectorAll('#transcript .step').length > 0")
    solved = next(record.index for record in read_heads(big.episodes) if record.success)
    browser.execute_script(f"location.hash = '#episode-{solved}'")
    wait_for(browser, "document.getElementById('transcript').textContent.includes('not in the file')")


def test_a_run_without_a_single_episode_has_a_report(browser, tmp_path):
    folder = make_run(tmp_path / "run", agent="oracle", limit=1)
    folder.episodes.write_bytes(b"")
    open_page(browser, report(folder))
    assert "0 of 1 episodes scored" in text(browser, "#headline")
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
