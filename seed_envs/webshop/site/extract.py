"""Visible strings of an HTML page, by the rule the original reads its own pages with.

Every text outside style, script, head, title and meta counts; blank strings with a line break do not.
"""

from __future__ import annotations

from html.parser import HTMLParser

_SILENT = frozenset({"style", "script", "head", "title"})
_BLANK_CHARS = " \t\n\r\f"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.strings: list[str] = []
        self._pieces: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.flush()
        self._silent += tag in _SILENT

    def handle_endtag(self, tag: str) -> None:
        self.flush()
        self._silent -= tag in _SILENT

    def handle_data(self, data: str) -> None:
        self._pieces.append(data)

    def handle_comment(self, data: str) -> None:
        self.flush()

    def handle_decl(self, decl: str) -> None:
        self._pieces.clear()

    def flush(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if self._silent or not text:
            return
        if text.strip(_BLANK_CHARS):
            self.strings.append(text)
        elif "\n" not in text:
            self.strings.append(" ")


def visible_strings(html: str) -> list[str]:
    """The strings a reader sees, unstripped, in page order.

    >>> visible_strings("<title>x</title><p>one</p>\\n<p> two </p><p> </p>")
    ['one', ' two ', ' ']
    """
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.flush()
    return reader.strings
