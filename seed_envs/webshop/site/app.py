"""The Flask application: routes, forms and errors. Every action goes to the engine as the environment would send it."""

from __future__ import annotations

import hmac
import json
import random
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seed_envs.errors import NoTaskMatches, require
from seed_envs.loopback import LOOPBACK_HOSTS
from seed_envs.webshop.actions import Command
from seed_envs.webshop.pages import Node
from seed_envs.webshop.shop import Shop
from seed_envs.webshop.site.security import protect
from seed_envs.webshop.site.sessions import Session, SessionStore

if TYPE_CHECKING:
    from flask import Flask

STATIC_FILES = {"shop.css": "text/css", "product.svg": "image/svg+xml"}
_LOG_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class SiteOptions:
    """Limits and switches of the site.

    Attributes:
        split: Split that new sessions draw their goal from.
        choose_goal: Whether a visitor may start a goal by its task id.
        review: Whether the target may be looked at after the purchase.
        log_dir: Folder with one action log per session, or None.
        extra_hosts: Host names beside the loopback ones.
        max_body: Largest request body, bytes.
        max_query: Longest search, characters.
        max_page: Largest page, bytes.
        max_steps: Most actions per session.
        seed: Seed of the goal draw; None draws from the system's randomness.
    """

    split: str = "all"
    choose_goal: bool = False
    review: bool = False
    log_dir: Path | None = None
    extra_hosts: Sequence[str] = ()
    max_body: int = 8 * 1024
    max_query: int = 1000
    max_page: int = 256 * 1024
    max_steps: int = 200
    seed: int | None = None


def create_app(shop: Shop, options: SiteOptions | None = None, store: SessionStore | None = None) -> Flask:
    """Builds the site over a shop.

    Args:
        shop: The shop; shared, never changed.
        options: Limits and switches.
        store: Where sessions live.

    Raises:
        DependencyMissing: If Flask is not installed.
        UnknownSplit: If the split of the options does not exist.
        NoTaskMatches: If that split is empty.
        OSError: If the log folder cannot be made.
    """
    require("flask", "webshop", "the WebShop site")
    from flask import Flask

    app = Flask(__name__, static_folder=None)
    settings = options or SiteOptions()
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters["exact"] = _exact
    app.jinja_env.filters["groups"] = option_groups
    protect(app, LOOPBACK_HOSTS | {name.lower() for name in settings.extra_hosts}, settings.max_body, settings.max_page)
    site = _Site(app, shop, settings, SessionStore() if store is None else store)
    app.extensions["webshop"] = site
    app.add_url_rule("/", "start_page", site.start_page)
    app.add_url_rule("/start", "start", site.start, methods=["POST"])
    app.add_url_rule("/s/<sid>", "page", site.page)
    app.add_url_rule("/s/<sid>/act", "act", site.act, methods=["POST"])
    if settings.review:
        app.add_url_rule("/s/<sid>/review", "review", site.review)
    app.add_url_rule("/static/<name>", "static_file", site.static_file)
    app.add_url_rule("/healthz", "healthz", lambda: ("ok", 200, {"Content-Type": "text/plain"}))
    _install_errors(app)
    return app


def option_groups(nodes: Sequence[Node]) -> list[tuple[Node | None, list[Node]]]:
    """Option nodes grouped under their name's node."""
    groups: list[tuple[Node | None, list[Node]]] = []
    for node in nodes:
        if node.role == "option-name":
            groups.append((node, []))
        elif node.role == "option":
            if not groups or (groups[-1][1] and groups[-1][1][-1].group != node.group):
                groups.append((None, []))
            groups[-1][1].append(node)
    return groups


def _pressed(value: str, keys: Iterable[str]) -> str:
    """The button a form names; browsers send every line break in it as CR LF."""
    if "\n" not in value:
        return value
    lines = value.splitlines()
    return next((key for key in keys if key.splitlines() == lines), value)


def _exact(text: str) -> Any:
    """Escapes a string so that a parser gives back exactly its characters, carriage returns included."""
    from markupsafe import Markup, escape

    return Markup(str(escape(text)).replace("\r", "&#13;"))


def _install_errors(app: Flask) -> None:
    from flask import render_template
    from werkzeug.exceptions import HTTPException

    @app.errorhandler(HTTPException)
    def show_error(error: HTTPException) -> tuple[str, int]:
        code = error.code or 500
        return render_template("error.html", code=code, message=error.description or "", back=None), code


class _Site:
    """The route functions, bound to one shop."""

    def __init__(self, app: Flask, shop: Shop, options: SiteOptions, store: SessionStore) -> None:
        self.app, self.shop, self.options, self.store = app, shop, options, store
        self._random = random.SystemRandom() if options.seed is None else random.Random(options.seed)
        self._tasks = shop.tasks.manifest(options.split)
        if not self._tasks:
            raise NoTaskMatches(f"split {options.split!r} has no goal among the {len(shop.goals)} of this catalogue")
        if options.log_dir is not None:
            options.log_dir.mkdir(parents=True, exist_ok=True)

    # -- pages -----------------------------------------------------------------------------------------------------

    def start_page(self) -> str:
        from flask import render_template

        return render_template("start.html", options=self.options, count=len(self.shop.products))

    def start(self) -> Any:
        from flask import abort, redirect, request, url_for

        from seed_envs.errors import UnknownTask

        task_id = request.form.get("task_id", "").strip()
        if task_id and not self.options.choose_goal:
            abort(403, "Goals cannot be chosen on this server.")
        try:
            goal = self.shop.tasks.goal(task_id or self._random.choice(self._tasks))
        except UnknownTask:
            abort(404, "There is no such goal.")
        session = self.store.start(goal)
        answer = redirect(url_for("page", sid=session.sid), 303)
        answer.set_cookie("visitor", session.cookie, httponly=True, samesite="Strict", path=f"/s/{session.sid}")
        return answer

    def page(self, sid: str) -> str:
        from flask import render_template

        session = self._session(sid)
        page = self.shop.page(session.state, session.goal)
        score = self.shop.score(session.state)
        return render_template(
            "page.html",
            page=page,
            session=session,
            options=self.options,
            score=score,
            search_bar=page.has_search_bar or (self.shop.rules.search_anywhere and page.kind != "done"),
        )

    def review(self, sid: str) -> str:
        from flask import abort, render_template

        session = self._session(sid)
        if session.state.verdict is None:
            abort(404, "There is nothing to review before the purchase.")
        return render_template(
            "review.html",
            session=session,
            goal=session.goal,
            verdict=session.state.verdict,
            bought=self.shop.by_asin[session.state.asin],
        )

    # -- actions ---------------------------------------------------------------------------------------------------

    def act(self, sid: str) -> Any:
        from flask import abort, redirect, render_template, request, url_for

        session = self._session(sid)
        form = request.form
        if not hmac.compare_digest(form.get("token", "").encode(), session.token.encode()):
            abort(403, "The form is not from this session.")
        with session.lock:
            if form.get("step") != str(session.step):
                text = "This page was out of date, so nothing was done."
                back = url_for("page", sid=sid)
                return render_template("error.html", code=409, message=text, back=back), 409
            if session.step >= self.options.max_steps:
                abort(429, f"A session has at most {self.options.max_steps} actions. Start a new one.")
            reason = self._apply(session, form.get("kind", ""), form.get("value", ""))
        if reason:
            back = url_for("page", sid=sid)
            return render_template("error.html", code=400, message=reason, back=back), 400
        return redirect(url_for("page", sid=sid), 303)

    def _apply(self, session: Session, kind: str, value: str) -> str:
        """Sends one command to the engine; returns why it was refused, or an empty string."""
        if kind not in ("search", "click"):
            return "An action is a search or a click."
        if session.state.view == "done":
            return "The purchase is done."
        if kind == "search":
            if len(value) > self.options.max_query:
                return f"A search has at most {self.options.max_query} characters."
            if not value:
                return "Type what you are looking for."
            value = value.lower()
        else:
            value = _pressed(value, self.shop.clicks(session.state))
        state, reason = self.shop.apply(session.state, Command(kind, value), session.goal)
        if not reason:
            session.state = state
            session.step += 1
            self._log(session, kind, value)
        return reason

    def _log(self, session: Session, kind: str, value: str) -> None:
        folder = self.options.log_dir
        if folder is None or not _LOG_NAME.fullmatch(session.sid):
            return
        entry: dict[str, Any] = {"step": session.step, "kind": kind, "value": value, "page": session.state.view}
        score = self.shop.score(session.state)
        if score is not None:
            entry["score"] = score.total
        with (folder / f"{session.sid}.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")

    # -- rest ------------------------------------------------------------------------------------------------------

    def _session(self, sid: str) -> Session:
        from flask import abort, request

        session = self.store.get(sid)
        if session is None:
            abort(404, "There is no such session, or it has expired.")
        if not secrets.compare_digest(request.cookies.get("visitor", "").encode(), session.cookie.encode()):
            abort(404, "There is no such session, or it has expired.")
        return session

    def static_file(self, name: str) -> Any:
        from flask import Response, abort

        if name not in STATIC_FILES:
            abort(404)
        data = (Path(__file__).parent / "static" / name).read_bytes()
        return Response(data, mimetype=STATIC_FILES[name], headers={"Cache-Control": "max-age=3600"})
