"""Markup that is built, never pasted: a child that is plain text is escaped, only `Html` goes in as it is.

`Html` joined or formatted with other text is plain text again and will be escaped: forgetting is safe.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

Attributes = Mapping[str, str | int | float]

EMPTY = frozenset({"br", "circle", "col", "hr", "img", "line", "meta", "path", "polygon", "polyline", "rect"})
# Control characters are not allowed in HTML; their pictures are (␀ for NUL).
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
# What could end a script element early, or a line of JavaScript.
UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


class Html(str):
    """Text that is markup already. Made by `element`, `join` and `data`; by hand only for what we wrote ourselves."""

    __slots__ = ()


def text(value: str) -> Html:
    """Any text as markup that shows it."""
    return value if isinstance(value, Html) else Html(escape(value.translate(PICTURES)))


def element(name: str, attributes: Attributes | None = None, *children: str) -> Html:
    """``<name …>children</name>``; numbers are written short."""
    written = "".join(f' {key}="{text(_value(value))}"' for key, value in (attributes or {}).items())
    if name in EMPTY and not children:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Html:
    """Parts one after another, each escaped unless it is markup."""
    return Html(text(between).join(text(part) for part in parts))


def data(value: Any, name: str) -> Html:
    """A value as JSON in a script element that does not run; nothing in it can end the element."""
    written = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return Html(f'<script type="application/json" id="{escape(name)}">{written.translate(UNSAFE)}</script>')


def _value(value: str | int | float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
