"""Building XML elements: plain text is escaped, only `Markup` is inserted as it is; and measuring text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unicodedata import bidirectional, category, combining, east_asian_width

from markupsafe import Markup, escape

# Text as it is drawn: grapheme clusters, direction, approximate width.

VIRAMA = 9  # the combining class of the sign that joins two Indic consonants
NARROW, USUAL, INDIC, WIDE = 0.34, 0.6, 0.8, 1.05  # of the size of letters


def clusters(text: str) -> list[str]:
    """Grapheme clusters: letters with their marks, joined Indic consonants and joined emoji."""
    found: list[str] = []
    for letter in text:
        if found and _joins(found[-1], letter):
            found[-1] += letter
        else:
            found.append(letter)
    return found


def _joins(before: str, letter: str) -> bool:
    last = before[-1]
    if category(letter)[0] == "M" or letter in "\u200d\u200c" or "\U0001f3fb" <= letter <= "\U0001f3ff":
        return True
    if last == "\u200d" or (combining(last) == VIRAMA and category(letter)[0] == "L"):
        return True
    return _flag(letter) and len(before) == 1 and _flag(last)


def _flag(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"


def right_to_left(text: str) -> bool:
    """Whether the first letter with a direction is right-to-left."""
    directions = (bidirectional(letter) for letter in text)
    return next((found in ("R", "AL") for found in directions if found in ("L", "R", "AL")), False)


def extent(text: str, size: float) -> float:
    """The approximate width of a line in pixels, rather too large."""
    return size * sum(map(_share, clusters(text)))


def _share(cluster: str) -> float:
    """The width of a cluster: marks above and below take no room, other marks and joined letters do."""
    first = cluster[0]
    if east_asian_width(first) in "WF":
        return WIDE
    if len(cluster) == 1:
        return _plain(first)
    kinds = [category(letter) for letter in cluster]
    return max(1, sum(kind[0] == "L" for kind in kinds)) * (INDIC if _indic(first) else USUAL) + NARROW * kinds.count(
        "Mc"
    )


def _plain(letter: str) -> float:
    if letter in "iljtfr.,:;'!|() ·":
        return NARROW
    if letter in "mwMW@%—…":
        return WIDE
    return INDIC if _indic(letter) else USUAL


def _indic(letter: str) -> bool:
    return "\u0900" <= letter <= "\u0dff"


def shortened(text: str, width: float, size: float) -> str:
    """A text cut to a width, with an ellipsis, between grapheme clusters."""
    if extent(text, size) <= width:
        return text
    kept = clusters(text)
    while len(kept) > 1 and extent("".join(kept) + "…", size) > width:
        kept.pop()
    return "".join(kept).rstrip() + "…"


def wrapped(text: str, width: float, size: float) -> list[str]:
    """A text broken at spaces into lines that fit; a word that is too long is shortened."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and extent(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(shortened(word, width, size))
    return lines


Attributes = Mapping[str, str | int | float]
Painted = tuple[list[Markup], float, float]  # elements, width, height

EMPTY = frozenset({"circle", "line", "path", "rect"})
# HTML allows no control characters; they are replaced by their pictures (␀ for NUL).
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}


def shown(value: Any) -> Any:
    """A value for a page: control characters of plain text are replaced."""
    return value.translate(PICTURES) if type(value) is str else value


def element(name: str, attributes: Attributes | None = None, *children: str) -> Markup:
    """``<name …>children</name>``; numbers have at most two decimals."""
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
    """A line of text in its own direction; for right-to-left text start and end anchors are swapped.

    ``full`` is the whole text where ``words`` were cut, for a tooltip.
    """
    about: dict[str, str | int | float] = {"x": float(x), "y": float(y)}
    if right_to_left(words):
        anchor = {"start": "end", "end": "start"}.get(anchor, anchor)
        about |= {"direction": "rtl", "unicode-bidi": "plaintext"}
    about |= {"text-anchor": anchor} if anchor != "start" else {}
    about |= {"class": kind} if kind else {}
    return element("text", {**about, **(more or {})}, *noted(full if full != words else ""), words)


def noted(words: str) -> list[Markup]:
    """A tooltip, to be the first child of an element."""
    return [element("title", {}, words)] if words else []


def _value(value: str | int | float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
