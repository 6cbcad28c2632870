"""Reads a page as strictly as a browser is lenient."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class Reader(HTMLParser):
    """Checks that elements are closed in order, and keeps what a browser would act on."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.shown = ""
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.shown += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def asks_for_nothing(html: str) -> None:
    """No element that loads, no address, no handler, no script that runs."""
    for tag, attributes in read(html).seen:
        assert tag not in {"link", "iframe", "object", "embed", "img", "base", "form", "audio", "video", "use", "image"}
        assert not {"src", "xlink:href", "srcset", "data", "action"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")  # within the page
        assert not [name for name in attributes if name.startswith("on")]
        assert tag != "script" or attributes["type"] == "application/json"
    assert not re.search(r"url\(|@import|https?://", html)
