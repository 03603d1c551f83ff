"""The WebShop site's server over real sockets: malformed, slow and many clients."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

pytest.importorskip("flask", reason="packages: the site needs Flask")

from seed_envs.webshop.modes import resolve_rules
from seed_envs.webshop.oracle import oracle_action
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.site.app import SiteOptions, create_app
from seed_envs.webshop.site.server import SiteServer
from seed_envs.webshop.site.sessions import SessionStore
from seed_envs.webshop.store import ShopSpec, get_shop


def open_shop(mode: str = "original") -> Shop:
    return get_shop(ShopSpec(resolve_rules(mode), num_products=100))


def raw_answer(server: SiteServer, request: bytes) -> bytes:
    """Everything a server sends back for raw bytes, until it closes the connection."""
    answer = b""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=300)
    # A server that has seen enough closes without reading the rest, which resets the connection.
    with connection, contextlib.suppress(ConnectionError):
        connection.sendall(request)
        while piece := connection.recv(65536):
            answer += piece
    return answer


def test_raw_requests_get_4xx_and_a_closed_connection(capfd: pytest.CaptureFixture[str]) -> None:
    with SiteServer(create_app(open_shop()), patience=300.0) as server:
        host = f"Host: 127.0.0.1:{server.port}\r\n".encode()
        form = b"POST /start HTTP/1.1\r\n" + host + b"Content-Type: application/x-www-form-urlencoded\r\n"
        requests = {
            b"GET / HTTP/1.1\r\n\r\n": b"403",
            b"GET / HTTP/1.1\r\n" + host + b"Host: evil.example\r\n\r\n": b"403",
            b"GET http://evil.example/ HTTP/1.1\r\n" + host + b"\r\n": b"403",
            b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n" + host + b"\r\n": b"414",
            b"GET / HTTP/1.1\r\n" + host + b"X: " + b"a" * 70_000 + b"\r\n\r\n": b"431",
            b"GET / HTTP/1.1\r\n" + host + b"X: a\r\n" * 300 + b"\r\n": b"431",
            b"TRACE / HTTP/1.1\r\n" + host + b"\r\n": b"405",
            form + b"Content-Length: 99999999999\r\n\r\na=b": b"413",
            form + b"Transfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\n\r\n": b"413",
        }
        for request, code in requests.items():
            answer = raw_answer(server, request)
            assert answer.split(b" ")[1] == code, request[:80]
            assert answer.count(b"HTTP/1.1 ") == 1
        # Nothing was smuggled behind a body: one request, one answer.
        hidden = b"GET /healthz HTTP/1.1\r\n" + host + b"\r\n"
        answer = raw_answer(server, form + b"Content-Length: 3\r\n\r\na=b" + hidden)
        assert answer.startswith(b"HTTP/1.1 303") and answer.count(b"HTTP/1.1 ") == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"GET / HTTP/1.1\r\nHos",
        b"POST /start HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: 30\r\n\r\na=b",
    ],
)
def test_a_client_that_stops_sending_is_given_up(start: bytes) -> None:
    with SiteServer(create_app(open_shop()), patience=0.5) as server:
        answer = raw_answer(server, start)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 408"))


def test_slow_clients_do_not_hold_up_others() -> None:
    with SiteServer(create_app(open_shop())) as server:
        slow = [socket.create_connection(("127.0.0.1", server.port), timeout=300) for _ in range(50)]
        for connection in slow:
            connection.sendall(b"POST /start HTTP/1.1\r\nHost: loc")
        request = f"GET /healthz HTTP/1.1\r\nHost: localhost:{server.port}\r\n\r\n".encode()
        assert raw_answer(server, request).startswith(b"HTTP/1.1 200")
        for connection in slow:
            connection.close()


def test_addresses_that_cannot_be_served_are_explained() -> None:
    app = create_app(open_shop())
    with SiteServer(app) as server, pytest.raises(OSError, match=f"cannot serve at 127.0.0.1:{server.port}: "):
        SiteServer(app, port=server.port)
    with pytest.raises(OSError, match="ports go from 0"):
        SiteServer(app, port=70_000)


def test_a_hundred_sessions_at_once_over_http() -> None:
    import http.cookiejar
    import urllib.parse
    import urllib.request

    shop = open_shop("fixed")
    failures: list[str] = []

    def shop_once(url: str, number: int) -> None:
        goal = shop.goals[number % len(shop.goals)]
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        )
        data = urllib.parse.urlencode({"task_id": goal.task_id}).encode()
        page = opener.open(f"{url}/start", data)
        for _ in range(15):
            address, html = page.geturl(), page.read().decode()
            session = store.get(address.rpartition("/")[2])
            if session is None or session.goal is not goal:
                failures.append(f"session {number} lost")
                return
            if session.state.view == "done":
                if 'data-reward="1.0"' not in html:
                    failures.append(f"session {number}: no full score")
                return
            kind, value = oracle_action(shop, session.state, goal)[:-1].split("[", 1)
            form = {"kind": kind, "value": value, "step": session.step, "token": session.token}
            page = opener.open(f"{address}/act", urllib.parse.urlencode(form).encode())
        failures.append(f"session {number} did not finish")

    store = SessionStore()
    with SiteServer(create_app(shop, SiteOptions(choose_goal=True), store)) as server:
        threads = [threading.Thread(target=shop_once, args=(server.url, number)) for number in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
    assert len(store) == 100
