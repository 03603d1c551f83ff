"""``seed-serve``: OpenEnv's own client and checks, isolation, killed and hostile clients, limits, an orderly stop."""

from __future__ import annotations

import asyncio
import http.client
import json
import multiprocessing
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error

import gymnasium as gym
import pytest
from serving import serve

pytest.importorskip("openenv", reason="OpenEnv: not installed")

from openenv.core.generic_client import GenericEnvClient
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import seed_envs
from seed_envs.serving.client import SeedClient
from seed_envs.serving.command import main
from seed_envs.serving.models import SeedAction
from seed_envs.serving.options import ServeOptions

gym.register_envs(seed_envs)
SOKOBAN, SHOP, FIXED, HOUSE = "seed/Sokoban-v0", "seed/WebShop-v0", "seed/WebShop-Fixed-v0", "seed/ALFWorld-v0"


@pytest.fixture(scope="module")
def server():
    with serve(SOKOBAN, SHOP, FIXED, HOUSE, "--max-sessions", "64", "--max-message", "100000") as running:
        yield running


def client(server, env_id=SOKOBAN, **arguments):
    return SeedClient(f"{server.root}/{env_id}", **arguments).sync()


def counted(server, name):
    """The numbers of a metric by their labels."""
    lines = [line for line in server.read("/metrics").decode().splitlines() if line.startswith(name)]
    return {line.rpartition(" ")[0].removeprefix(name): float(line.rpartition(" ")[2]) for line in lines}


def drained(server, sessions=0):
    """Waits until the server holds as many sessions."""
    end = time.monotonic() + 20
    while counted(server, "seed_sessions")[""] != sessions:
        assert time.monotonic() < end, counted(server, "seed_sessions")
        time.sleep(0.05)


@pytest.mark.parametrize("path", ["", f"/{SHOP}"])
def test_openenvs_own_checks_pass(server, path):
    run = subprocess.run(
        [sys.executable, "-m", "openenv.cli", "validate", "--url", server.root + path], capture_output=True, text=True
    )
    assert "Verdict: PASS" in run.stdout, run.stdout + run.stderr


def play(address, env_id, moves, pipe):
    with SeedClient(f"{address}/{env_id}").sync() as env:
        seen = [env.reset(split="test", index=2)]
        seen += [env.step(SeedAction(text=move)) for move in moves]
        pipe.send([(one.observation.text, one.observation.image, one.reward, one.done) for one in seen])


def test_another_process_sees_what_gym_shows(server):
    env = gym.make(SOKOBAN)
    env.reset(options={"task_id": env.unwrapped.task_ids("test")[2]})
    moves, wanted, ended = [], [], False
    while not ended:
        moves.append(env.unwrapped.oracle_action())
        observation, reward, terminated, truncated, _ = env.step(moves[-1])
        ended = terminated or truncated
        wanted.append((observation["text"], reward, ended))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    player = context.Process(target=play, args=(server.root, SOKOBAN, moves, theirs))
    player.start()
    assert ours.poll(60)
    seen = ours.recv()
    player.join()
    assert [(text, reward, done) for text, _, reward, done in seen[1:]] == wanted
    assert seen[0][2] is None and seen[0][1].startswith("data:image/png;base64,") and seen[-1][3]


def test_one_server_plays_every_id_and_ids_with_the_same_tasks_apart(server):
    assert server.get("/list_environments") == [SOKOBAN, SHOP, FIXED, HOUSE]
    with client(server, SHOP) as strict, client(server, FIXED) as tolerant:
        tasks = {env.reset(split="test", index=3).observation.task_id for env in (strict, tolerant)}
        assert len(tasks) == 1
        replies = [env.step(SeedAction(text=" Search[shoes] ")).observation for env in (strict, tolerant)]
        assert [reply.action_valid for reply in replies] == [False, True]
        assert [env.state().env_id for env in (strict, tolerant)] == [SHOP, FIXED]
        assert replies[0].text != replies[1].text


def test_sessions_are_apart(server):
    with client(server) as first, client(server) as second:
        start = first.reset(split="test", index=0).observation.text
        assert second.reset(split="test", index=0).observation.text == start
        moved = first.step(SeedAction(text="left"))
        assert first.state().step_count == 1 and second.state().step_count == 0
        assert second.step(SeedAction(text="left")).observation == moved.observation
    drained(server)


def test_a_profile_prompts_and_reads_replies(server):
    with client(server, HOUSE) as env:
        result = env.reset(profile="paper", seed=5)
        assert result.observation.goal in result.observation.prompt and result.metadata["style"] == "window"
        spoken = env.step(SeedAction(text="<think>look</think><action>look</action>")).observation
        assert spoken.format_valid and spoken.action_valid
        bare = env.step(SeedAction(text="look")).observation
        assert not bare.format_valid and bare.invalid_reason
        assert env.reset(profile="").observation.prompt == ""


def test_an_episode_over_plain_http(server):
    def ask(path, record):
        return server.post(f"/{HOUSE}{path}", record)

    first = ask("/reset", {"seed": 7})
    name = first["observation"]["metadata"]["episode_id"]
    other = ask("/reset", {"seed": 8, "episode_id": "mine"})
    assert other["observation"]["task_id"] != first["observation"]["task_id"]
    ask("/step", {"action": {"text": "look"}, "episode_id": name})
    states = [server.get(f"/{HOUSE}/state?episode_id={one}") for one in (name, "mine")]
    assert [state["step_count"] for state in states] == [1, 0]
    assert counted(server, "seed_sessions")[""] == 2
    ended = {"done": False}
    for _ in range(50):
        for one in (name, "mine"):
            try:
                ended = ask("/step", {"action": {"text": "look"}, "episode_id": one})
            except urllib.error.HTTPError as error:
                assert error.code == 404 and "episode_id" in json.load(error)["detail"]
    assert ended["done"] and ended["observation"]["stop_reason"] == "max_steps"
    drained(server)


def test_the_task_api_lists_what_reset_takes(server):
    room = f"/{SOKOBAN}/Sokoban-v0"
    assert [split["name"] for split in server.get(f"{room}/splits")] == ["train", "validation", "test"]
    assert server.post(f"{room}/num_tasks", {"split": "test"}) == {"num_tasks": 256}
    task = server.post(f"{room}/task", {"split": "test", "index": 9})["task"]
    with client(server) as env:
        assert env.reset(split="test", index=9).observation.task_id == task["id"]
    for path, record, code in [
        ("task", {"split": "test", "index": 256}, 400),
        ("num_tasks", {"split": "train"}, 501),
        ("num_tasks", {"split": "tset"}, 400),
    ]:
        with pytest.raises(urllib.error.HTTPError) as caught:
            server.post(f"{room}/{path}", record)
        assert caught.value.code == code


def test_an_environment_of_another_package_is_served_by_its_own_id(repo, tmp_path):
    source = (repo / "examples" / "05_new_environment.py").read_text(encoding="utf-8")
    (tmp_path / "guess_game.py").write_text(source, encoding="utf-8")
    with serve("guess_game:demo/Guess-v0", SOKOBAN, modules=str(tmp_path)) as server:
        assert server.get("/list_environments") == ["demo/Guess-v0", SOKOBAN]
        with client(server, "demo/Guess-v0") as env:
            assert env.reset(profile="paper", seed=3).observation.prompt
            assert env.state().env_id == "demo/Guess-v0"


WRONG = {
    "seed": [{"seed": "x"}, {"seed": -1}, {"seed": 1.5}, {"seed": [1]}],
    "is unknown": [{"task_id": "no such"}, {"split": 3}, {"nonsense": 1}, {"profile": "papre"}],
    "index": [{"split": "test", "index": 256}, {"split": "test", "index": -1}, {"split": "test", "index": "a"}],
    "str": [{"task_id": 7}, {"task_id": ["a"]}],
    "episode_id": [{"episode_id": ""}, {"episode_id": "x" * 256}, {"episode_id": 4}],
    "profile": [{"profile": 3}, {"profile": {"name": "paper"}}],
}


def test_wrong_values_are_explained_and_end_nothing(server):
    with client(server) as env:
        for word, requests in WRONG.items():
            for request in requests:
                with pytest.raises(RuntimeError, match="(?i)" + word):
                    env.reset(**request)
        assert env.reset(split="test", index=1).observation.text
        assert env.step(SeedAction(text="up")).observation.format_valid
    assert counted(server, "seed_faults_total") == {}


HOSTILE = [
    b"{", b"[]", b"3", b"null", b'"x"', b'{"type": 3}', b'{"type": "step"}', b'{"type": "step", "data": 3}',
    b'{"type": "step", "data": {"text": 5}}', b'{"type": "step", "data": {"text": "a", "more": 1}}',
    b'{"type": "step", "data": {"text": "\\ud800"}}', b'{"type": "reset", "data": {"self": 1}}',
    b'{"type": "reset", "data": {"work": 1, "seat": 2}}', b"[" * 50_000, b'{"type": "mcp", "data": {}}',
    b'{"type": "reset", "data": {"level": "' + b"#" * 50_000 + b'"}}', b'{"type": "reset", "data": {"seed": 1e999}}',
    b'{"type": "reset", "data": {"seed": ' + b"9" * 5000 + b"}}", b"\x00" * 1000,
]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("{", "Invalid JSON"),
        ("[]", "Unknown message type"),
        ("3", "Unknown message type"),
        (b"{}", "Unknown message type"),
        ("[" * 50_000, "Unknown message type"),
        ('{"type": "hello"}', "Unknown message type: hello"),
        ('{"type": "step"}', "data: Field required"),
        ('{"type": "step", "data": {"text": 5}}', "text: Input should be a valid string"),
        ('{"type": "reset", "data": 3}', "data: Input should be a valid dictionary"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_message_that_cannot_be_read_is_told_what_was_expected_and_the_session_lives(server, message, said):
    async def run():
        async with connect(f"{server.root.replace('http', 'ws')}/{SOKOBAN}/ws") as socket_:
            await socket_.send(message)
            answer = json.loads(await asyncio.wait_for(socket_.recv(), 20))
            assert (
                said in answer["data"]["message"] and '{"type": "step", "data": {"text": ' in answer["data"]["message"]
            )
            await socket_.send(json.dumps({"type": "reset", "data": {}}))
            assert json.loads(await asyncio.wait_for(socket_.recv(), 20))["type"] == "observation"

    asyncio.run(run())


def test_hostile_messages_hurt_nobody_else(server):
    async def attack(message):
        async with connect(server.root.replace("http", "ws") + f"/{SOKOBAN}/ws") as socket_:
            await socket_.send(message.decode())
            answer = json.loads(await asyncio.wait_for(socket_.recv(), 20))
            assert answer["type"] in ("error", "mcp"), (message[:60], answer)

    async def run():
        await asyncio.gather(*[attack(message) for message in HOSTILE])
        async with connect(server.root.replace("http", "ws") + "/ws") as socket_:
            await socket_.send(json.dumps({"type": "step", "data": {"text": "x" * 100_000}}))
            with pytest.raises(ConnectionClosed, match="1009"):
                await socket_.recv()

    with client(server) as bystander:
        before = bystander.reset(split="test", index=4).observation
        asyncio.run(run())
        huge = bystander.step(SeedAction(text="x" * 50_000)).observation
        assert not huge.action_valid and huge.text.endswith(before.text)
    drained(server)
    for path, headers, body, code in [
        ("/reset", {}, b"x" * 200_000, 413),
        ("/reset", {}, b"{", 422),
        ("/step", {}, b'{"action": 3}', 422),
        ("/step", {}, b'{"action": {"text": "a"}}', 404),
        ("/mcp", {}, b'{"jsonrpc": "2.0", "id": 1, "method": "openenv\\/session\\/create"}', 404),
        ("/reset", {"Origin": "http://evil.example"}, b"{}", 403),
        ("/reset", {"Host": "evil.example"}, b"{}", 403),
    ]:
        link = http.client.HTTPConnection(server.root.removeprefix("http://"), timeout=20)
        link.request("POST", path, body, {"Content-Type": "application/json", **headers})
        assert link.getresponse().status == code, (path, body[:40])
        link.close()
    assert counted(server, "seed_sessions")[""] == 0 and counted(server, "seed_faults_total") == {}


def vanish(address, pipe):
    env = GenericEnvClient(f"{address}/{SOKOBAN}").sync()
    env.__enter__()
    env.reset(seed=1)
    pipe.send("playing")
    time.sleep(60)


def test_a_killed_client_leaves_nothing_behind(server):
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    player = context.Process(target=vanish, args=(server.root, theirs))
    player.start()
    assert ours.poll(60) and counted(server, "seed_sessions")[""] == 1
    player.kill()
    player.join()
    drained(server)


def test_one_session_too_many_is_refused_and_later_ones_are_not(server):
    async def run():
        address = server.root.replace("http", "ws") + f"/{SOKOBAN}/ws"
        held = [await connect(address) for _ in range(64)]
        for one in held[:2]:
            await one.send(json.dumps({"type": "reset", "data": {}}))
            assert json.loads(await one.recv())["type"] == "observation"
        async with connect(address) as late:
            refused = json.loads(await late.recv())
            assert refused["data"]["code"] == "CAPACITY_REACHED" and "all 64 sessions" in refused["data"]["message"]
        await held[0].close()
        await asyncio.to_thread(drained, server, 63)
        async with connect(address) as next_one:
            await next_one.send(json.dumps({"type": "reset", "data": {}}))
            assert json.loads(await next_one.recv())["type"] == "observation"
        await asyncio.gather(*[one.close() for one in held])

    asyncio.run(run())
    drained(server)


@pytest.mark.slow
def test_two_thousand_sessions_are_apart_and_the_next_thousand_is_refused():
    async def ask(socket_, kind, **data):
        await socket_.send(json.dumps({"type": kind, "data": data}))
        return json.loads(await socket_.recv())["data"]

    async def run(address):
        few = asyncio.Semaphore(50)

        async def play(number):
            async with few:
                socket_ = await connect(address, compression=None)
                shown = await ask(socket_, "reset", split="test", index=number % 256)
            return socket_, shown["observation"]["task_id"]

        async def knock():
            async with few, connect(address, compression=None) as socket_:
                return json.loads(await socket_.recv())["data"]["code"]

        held = await asyncio.gather(*[play(number) for number in range(2000)])
        assert set(await asyncio.gather(*[knock() for _ in range(1000)])) == {"CAPACITY_REACHED"}
        assert len({task for _, task in held}) == 256
        for number, (socket_, _) in enumerate(held):
            if number % 3 == 0:
                await ask(socket_, "step", text="left")
        for number, (socket_, task) in enumerate(held):
            await socket_.send('{"type": "state"}')
            state = json.loads(await socket_.recv())["data"]
            assert (state["task_id"], state["step_count"]) == (task, int(number % 3 == 0))
        await asyncio.gather(*[socket_.close() for socket_, _ in held])

    with serve(SOKOBAN, "--max-sessions", "2000") as server:
        asyncio.run(run(server.root.replace("http", "ws") + "/ws"))
        drained(server)
        assert counted(server, "seed_refused_total") == {'{reason="sessions"}': 1000}


def test_token_idle_sessions_and_an_orderly_stop():
    with serve(SOKOBAN, "--idle-seconds", "1", token="s3cret") as server:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}):
            with pytest.raises((ConnectionError, InvalidStatus), match="401"), client(server, headers=headers):
                pass
        with pytest.raises(urllib.error.HTTPError) as caught:
            server.read("/metrics")
        assert caught.value.code == 401 and "Bearer TOKEN" in json.load(caught.value)["detail"]
        given = {"Authorization": "Bearer s3cret"}
        link = http.client.HTTPConnection(server.root.removeprefix("http://"), timeout=20)
        link.request("POST", "/reset", b"{}", {"Content-Type": "application/json", **given})
        assert link.getresponse().status == 200

        async def wait():
            async with connect(server.root.replace("http", "ws") + "/ws", additional_headers=given) as silent:
                with pytest.raises(ConnectionClosed, match=r"silent for 1 s"):
                    await asyncio.wait_for(silent.recv(), 20)

        asyncio.run(wait())
        address = ("127.0.0.1", int(server.root.rpartition(":")[2]))
        head = b"POST /reset HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\nContent-Length: 9\r\n\r\n"
        for sent, answer in [(b"", b""), (b"POST /reset HT", b""), (head + b"{", b"HTTP/1.1 408")]:
            with socket.create_connection(address, timeout=20) as slow:
                slow.sendall(sent)
                assert slow.recv(1000).startswith(answer) and (answer or slow.recv(1) == b"")
        end = time.monotonic() + 20
        while True:
            link = http.client.HTTPConnection(server.root.removeprefix("http://"), timeout=20)
            link.request("GET", "/metrics", headers=given)
            text = link.getresponse().read().decode()
            if "seed_sessions 0\n" in text:
                break
            assert time.monotonic() < end, text
            time.sleep(0.1)
        assert 'seed_refused_total{reason="token"} 4' in text and 'seed_refused_total{reason="idle"} 3' in text
        os.kill(server._process.pid, signal.SIGTERM)
        assert server._process.wait(20) == 0


def test_what_cannot_be_served_is_said_at_once(capsys):
    for arguments, text in [
        (["seed/Sokoban-v1"], "is unknown; expected one of"),
        ([SOKOBAN, SOKOBAN], "each once"),
        ([SOKOBAN, "--host", "0.0.0.0"], "SEED_SERVE_TOKEN"),
        ([SOKOBAN, "--profile", "papre"], "Did you mean 'paper'"),
        ([SOKOBAN, "--env-arg", "levles=classic"], "'levels'"),
        ([SOKOBAN, "--max-sessions", "0"], "at least 1"),
        ([SOKOBAN, "--idle-seconds", "0"], "above 0"),
        ([SOKOBAN, "--port", "99999"], "65535"),
        ([SOKOBAN, "--max-sessions", str(1 << 40)], "ulimit -n"),
    ]:
        assert main(["--port", "0", *arguments]) == 2
        assert text in capsys.readouterr().err, arguments
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main([SOKOBAN, "--port", str(taken.getsockname()[1])]) == 2
    assert "in use" in capsys.readouterr().err
    with pytest.raises(ValueError, match="token"):
        ServeOptions((SOKOBAN,), host="192.0.2.1")


def test_the_space_starts_what_it_says(tmp_path, capsys):
    folder = tmp_path / "space"
    assert (
        main(
            [
                SOKOBAN,
                "seed/EZPoints-v0",
                "--profile",
                "paper",
                "--env-arg",
                'parsing="substring"',
                "--write-space",
                str(folder),
            ]
        )
        == 0
    )
    assert capsys.readouterr().out.split() == [
        str(folder / name) for name in ("Dockerfile", "README.md", "openenv.yaml")
    ]
    assert main([SOKOBAN, "--write-space", str(folder)]) == 2
    assert "not empty" in capsys.readouterr().err
    (line,) = [one for one in (folder / "Dockerfile").read_text().splitlines() if one.startswith("CMD seed-serve")]
    program, *arguments = shlex.split(line.removeprefix("CMD "))
    assert program == "seed-serve" and main(arguments) == 2  # no token, and 0.0.0.0
    host, port = arguments.index("--host"), arguments.index("--port")
    local = [word for place, word in enumerate(arguments) if place not in (host, host + 1, port, port + 1)]
    with serve(*local) as server, client(server, "seed/EZPoints-v0") as env:
        assert env.reset().observation.prompt
        assert env.state().profile == "paper"
