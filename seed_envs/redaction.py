"""The one redactor: what must not be read by others leaves this process as ``<hidden>``, wherever it is written.

Hidden are the values of fields that are secret by name (``hub_token``, ``password``, ...), credentials in URLs, the
values of environment variables that look like keys, and whatever of these was given on the command line or in a
configuration file, wherever it turns up later (``learn``). Settings and messages go through :func:`redact`;
transcripts, whose words are the result, through :func:`conceal`, which takes out nothing but known secrets. Standard
output and error go through :func:`guarded`. See ``docs/security.md``.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, TextIO
from urllib.parse import quote, unquote

HIDDEN = "<hidden>"

_SHORTEST = 6
"""Shorter secrets are hidden where they stand, but not searched for elsewhere: they would tear up ordinary words."""

_FIELD = (
    r"(?:api[_-]?key|(?:secret|access|private)[_-]key|password|passwd|passphrase|secret|credentials?|authorization|"
    r"(?:hub|hf|auth|access|bearer|api|refresh|session|server|service|search|retriever|endpoint|user)[_-]token|"
    r"(?<![a-z0-9_-])token)"
)
_SECRET_FIELD = re.compile(rf"(?:.*[_-])?{_FIELD}", re.IGNORECASE)
_SECRET_VARIABLE = re.compile(r"(?:.*_)?(?:\w*KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)", re.IGNORECASE)

# Texts may be long and hostile: every pattern starts at a fixed word and reads a bounded stretch behind it.
_USER_INFO = re.compile(
    r"""(?<=://)(?P<secret>[^\s/?#@"'<>]{0,500}|[^\s/?#@:"'<>]{0,200}:(?!\d+[/?#])[^\s@"'<>]{0,500})(?=@)"""
)
_ASSIGNED = re.compile(
    rf"""{_FIELD}(?:=|\\?["']\s?:\s?)(?:(?:Bearer|Basic)\s)?\\?"""
    r"""(?:"(?P<double>[^"\\]{1,2000})|'(?P<single>[^'\\]{1,2000})|(?P<bare>[^\s"'\\&,;}<]{1,2000}))""",
    re.IGNORECASE,
)
_HEADER = re.compile(r"(?:Bearer |Authorization: \w{1,20} )(?P<secret>[\w.~+/=-]{8,2000})")
_PATTERNS = (_USER_INFO, _ASSIGNED, _HEADER)

_known: set[str] = set()

Found = Callable[[str], None]


def redact(value: Any) -> Any:
    """A copy of settings or messages without secrets.

    Args:
        value: Text, or mappings and lists as JSON has them; everything else is returned as it is.

    Returns:
        The same, with ``<hidden>`` in the place of every secret.
    """
    return _Walk(_known_now()).clean(value)


def conceal(value: Any) -> Any:
    """A copy of a transcript without the secrets that this process knows; what only looks like one stays."""
    return _Walk(_known_now(), patterns=False).clean(value)


def learn(value: Any) -> None:
    """Remember the secrets in settings, so that they are hidden wherever they turn up, and however they are written.

    Args:
        value: A command line, the content of a configuration file, an address.
    """
    _Walk((), found=_remember).clean(value)


def learn_secret(secret: str | None) -> None:
    """Remember a secret that is known as such, e.g. a key from a variable that the user named."""
    if secret:
        _remember(secret)


def is_secret(name: str) -> bool:
    """Whether a field or option is secret by its name."""
    return _SECRET_FIELD.fullmatch(name.lstrip("-")) is not None


class _Walk:
    """One pass over a value.

    Args:
        secrets: Taken out of every text.
        patterns: Also hide what looks like a secret.
        found: Told every secret that was found by its look or place.
    """

    def __init__(self, secrets: tuple[str, ...], patterns: bool = True, found: Found = lambda secret: None) -> None:
        self._secrets, self._patterns, self._found = secrets, patterns, found

    def clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {key: self._field(str(key), item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return tuple(self._items(value)) if isinstance(value, tuple) else list(self._items(value))
        return value

    def _items(self, values: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
        """The items of a list, which may be a command line: ``--hub_token VALUE``, ``password=VALUE``."""
        before = ""
        for item in values:
            yield self._field(before, item) if before.startswith("--") else self.clean(item)
            before = item if isinstance(item, str) and "=" not in item else ""

    def _field(self, name: str, value: Any) -> Any:
        if not self._patterns or value is None or isinstance(value, bool) or value == "" or not is_secret(name):
            return self.clean(value)
        for secret in [value] if isinstance(value, (str, int, float)) else []:
            self._found(str(secret))
        return HIDDEN

    def _text(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        if not self._patterns:
            return text
        name, equals, value = text.partition("=")
        if equals and value and is_secret(name) and "\n" not in text:
            self._found(value)
            return f"{name}={HIDDEN}"
        text = self._json(text)
        for pattern in _PATTERNS:
            text = pattern.sub(self._hide, text)
        return text

    def _json(self, text: str) -> str:
        """A text that ends with a JSON object (``--env_kwargs``, ``KEY={...}``), the object cleaned as such."""
        start = text.find("{", 0, 200)
        if start < 0 or not text.rstrip().endswith("}"):
            return text
        try:
            record = json.loads(text[start:])
            cleaned = self.clean(record)
        except (ValueError, RecursionError):
            return text
        return text if cleaned == record else text[:start] + json.dumps(cleaned)

    def _hide(self, match: re.Match[str]) -> str:
        name = match.lastgroup or ""
        if not match[name] or match[name] == HIDDEN:
            return match[0]
        self._found(match[name])
        first, last = (place - match.start() for place in match.span(name))
        return f"{match[0][:first]}{HIDDEN}{match[0][last:]}"


def _remember(secret: str) -> None:
    """Keep a secret in every form in which it may turn up again: plain, in a URL, in JSON, in a header."""
    plain = [secret, unquote(secret)]
    user, colon, password = plain[1].partition(":")
    if colon:  # the user information of a URL
        plain += [secret.partition(":")[2], password or user, base64.b64encode(plain[1].encode()).decode()]
    for text in plain:
        if len(text) >= _SHORTEST and text != HIDDEN:
            _known.update((text, quote(text, safe=""), json.dumps(text)[1:-1]))


def _known_now() -> tuple[str, ...]:
    """Every known secret, longest first, so that none is hidden in part."""
    variables = {
        value for name, value in os.environ.items() if len(value) >= _SHORTEST and _SECRET_VARIABLE.fullmatch(name)
    }
    return tuple(sorted(_known | variables, key=lambda secret: (-len(secret), secret)))


class _Guarded:
    """A text stream that writes no secret; everything else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write what may be read."""
        self.stream.write(redact(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def guarded(*settings: Any) -> Iterator[None]:
    """Standard output and error of a command: nothing secret is printed, tracebacks included.

    Args:
        *settings: Learned first, e.g. the command line.
    """
    learn(settings)
    with (
        contextlib.redirect_stdout(_Guarded(sys.stdout)),
        contextlib.redirect_stderr(_Guarded(sys.stderr)),
    ):
        try:
            yield
        except Exception:
            sys.excepthook = _print_error  # the traceback is printed when the guard is gone
            raise


def guard_process(*settings: Any) -> None:
    """As :func:`guarded`, for the whole life of a process that does nothing else, such as a worker."""
    learn(settings)
    sys.stdout, sys.stderr = _Guarded(sys.stdout), _Guarded(sys.stderr)
    sys.excepthook = _print_error


def _print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, trace))))
