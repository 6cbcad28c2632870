"""Two frozen folders side by side: numbers may differ by what rounding does, anything else may not."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

RELATIVE, ABSOLUTE = 1e-4, 1e-6
NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
Difference = tuple[str, str, str]  # where, before, after
NOTHING = "(nothing)"


def differences(before: Path, after: Path) -> Iterator[Difference]:
    """What is not the same in two folders, file by file."""
    files = {file.relative_to(folder) for folder in (before, after) for file in folder.rglob("*") if file.is_file()}
    for file in sorted(files):
        if not (after / file).exists():
            yield str(file), "a file", NOTHING
        elif not (before / file).exists():
            yield str(file), NOTHING, "a file"
        else:
            old, new = ((folder / file).read_text(encoding="utf-8") for folder in (before, after))
            if file.suffix == ".json":
                yield from _values(str(file), json.loads(old), json.loads(new))
            else:
                yield from _lines(str(file), old.splitlines(), new.splitlines())


def _values(where: str, before: Any, after: Any) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _values(f"{where} › {key}", before.get(key, NOTHING), after.get(key, NOTHING))
    elif _are_lines(before) and _are_lines(after):
        yield from _lines(where, before, after)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _values(f"{where}[{place}]", one, other)
    elif not _same(before, after):
        yield where, _short(before), _short(after)


def _are_lines(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _lines(where: str, before: list[str], after: list[str]) -> Iterator[Difference]:
    if len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True), start=1)
        yield from ((f"{where}:{line}", one, other) for line, (one, other) in pairs if not same_text(one, other))
        return
    for kind, start, end, begin, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        old, new = before[start:end], after[begin:stop]
        if kind != "equal" and not same_text("\n".join(old), "\n".join(new)):
            yield f"{where}:{start + 1}", "\n".join(old) or NOTHING, "\n".join(new) or NOTHING


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, str) and isinstance(after, str):
        return same_text(before, after)
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (before, after))
    return _close(before, after) if numbers else type(before) is type(after) and before == after


def _close(before: float, after: float) -> bool:
    return before == after or math.isclose(before, after, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def same_text(before: str, after: str) -> bool:
    """Whether two texts have the same words, and numbers that are close."""
    if before == after:
        return True
    old, new = NUMBER.split(before), NUMBER.split(after)  # words and numbers by turns
    if len(old) != len(new) or old[::2] != new[::2]:
        return False
    return all(_close(float(one), float(other)) for one, other in zip(old[1::2], new[1::2], strict=True))


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
