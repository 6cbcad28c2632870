"""Markup that is built, never pasted: a child that is plain text is escaped, only `Markup` goes in as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from regard.show.letters import right_to_left

Attributes = Mapping[str, str | int | float]
Painted = tuple[list[Markup], float, float]  # what is drawn, how wide and how high it is

EMPTY = frozenset({"circle", "line", "path", "rect"})
# Control characters are not allowed in HTML; their pictures are (␀ for NUL).
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}


def shown(value: Any) -> Any:
    """A value as a page can hold it: in plain text, control characters are their pictures."""
    return value.translate(PICTURES) if type(value) is str else value


def element(name: str, attributes: Attributes | None = None, *children: str) -> Markup:
    """``<name …>children</name>``; numbers are written short."""
    written = "".join(f' {key}="{escape(shown(_value(value)))}"' for key, value in (attributes or {}).items())
    if name in EMPTY and not children:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{''.join(escape(shown(child)) for child in children)}</{name}>")


def label(
    x: float,
    y: float,
    words: str,
    kind: str = "",
    *,
    anchor: str = "start",
    full: str = "",
    more: Attributes | None = None,
) -> Markup:
    """A line of text in its own direction. From right to left its start is at the right: the anchors change places.

    Where words were cut, ``full`` has all of them, for who points there.
    """
    about: dict[str, str | int | float] = {"x": float(x), "y": float(y)}
    if right_to_left(words):
        anchor = {"start": "end", "end": "start"}.get(anchor, anchor)
        about |= {"direction": "rtl", "unicode-bidi": "plaintext"}
    about |= {"text-anchor": anchor} if anchor != "start" else {}
    about |= {"class": kind} if kind else {}
    return element("text", {**about, **(more or {})}, *noted(full if full != words else ""), words)


def noted(words: str) -> list[Markup]:
    """What is shown when an element is pointed at, to stand first in it."""
    return [element("title", {}, words)] if words else []


def _value(value: str | int | float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
