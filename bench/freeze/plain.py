"""What differs from one time to the next without anything having changed: times, dates, places, sizes of logs."""

from __future__ import annotations

import base64
import re
import struct
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import regard

NOISY = re.compile(  # keys whose numbers are times, or sizes of files that hold times
    r"(^|_)(seconds|milliseconds|time|times|date|changed|began|pid|memory|bytes|created|modified|age|left|alone)$"
    r"|_per_second$"
)
_PATTERNS = (
    (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?| UTC)?", "<date>"),
    (r"\b(?:[0-9a-f]{64}|[0-9a-f]{16})\b", "<hash>"),  # of settings that name a folder
    (r"\b0x[0-9a-f]{8,}\b", "<address>"),
    (r"(?<![\d.])(?:127\.0\.0\.1|localhost):\d+", "<host>"),
    (r"(?<![\w.])\d[\d.,]* [GT]FLOP/s", "<speed>"),
    (r"(?<![\w.])\d[\d.,]* (?:tokens|words|pieces|sentences|lines|steps)(?:/s| a second| per second)", "<speed>"),
    (r"(?<![\w.])\d[\d.,]*[ \u00a0](?:bytes|[kKMGT]i?B)\b", "<size>"),
    (r"(?<![\w.])\d[\d.,]*[ \u00a0]?(?:ms|s|seconds?|min|minutes?|h|hours?|days?)\b(?!['’])", "<time>"),
    (r"(?<![\w.:])\d+:\d\d(?::\d\d)?(?![\w:])", "<time>"),
)
PATTERNS = [(re.compile(pattern), name) for pattern, name in _PATTERNS]
# Said every few seconds, so that a slow machine says more of it.
PROGRESS = re.compile(r"^(?:step [\d,]+  loss .*|about [\d,]+ steps in .*|[\d,]+ of [\d,]+ lines .*)\n", re.MULTILINE)


class Plain:
    """Makes what is told comparable. ``places`` are folders that go by a name instead."""

    def __init__(self, **places: Path) -> None:
        package = Path(regard.__file__).parent
        known = {str(path): f"<{name}>" for name, path in places.items()}
        known |= {str(package): "<package>", sys.executable: "<python>", str(Path.home()): "<home>"}
        self._places = sorted(known.items(), key=lambda item: -len(item[0]))

    def text(self, text: str) -> str:
        """Without what is only true here and now."""
        for place, name in self._places:
            text = text.replace(place, name)
        text = PROGRESS.sub("", text)
        for pattern, name in PATTERNS:
            text = pattern.sub(name, text)
        return text

    def value(self, value: Any, key: str = "") -> Any:
        """The same for whatever JSON can hold; packed tensors become numbers."""
        found = value
        match value:
            case {"shape": list(), "data": str(data)}:
                found = {"shape": value["shape"], "data": _unpacked(data)}
            case dict():
                found = {self.text(str(name)): self.value(each, str(name)) for name, each in sorted(value.items())}
            case list():
                found = [self.value(each, key) for each in value]
            case str():
                found = self.lines(value)
            case int() | float() if not isinstance(value, bool) and NOISY.search(key):
                found = f"<{key}>"
            case float():
                found = _rounded(value)
        return found

    def lines(self, text: str) -> str | list[str]:
        """Several lines as a list: so they can be read in a file of JSON."""
        found = self.text(text).split("\n")
        return found if len(found) > 1 else found[0]


def _rounded(number: float) -> float:
    """Six digits: less than a difference that counts."""
    return float(f"{number:.6g}")


def _unpacked(data: str) -> list[float]:
    packed = base64.b64decode(data)
    return [_rounded(number) for number in struct.unpack(f"<{len(packed) // 4}f", packed)]


class _Words(HTMLParser):
    """What a reader of a page sees; a new line for every element that has text of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden and (words := " ".join(data.split())):
            self.found.append(words)


def words_of(page: str) -> str:
    """The text of a page without its markup."""
    reader = _Words()
    reader.feed(page)
    return "\n".join(reader.found) + "\n"


def markup_of(page: str) -> str:
    """The page, one element a line."""
    return page.replace("><", ">\n<")
