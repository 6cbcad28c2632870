"""The ledger of all measurements, bench/ledger.jsonl: one line each, with what it takes to measure it again."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

LEDGER = Path(__file__).parent / "ledger.jsonl"
_ABSOLUTE = re.compile(r"(?<![^\s=])/(?:[^\s/]+/)*(?=[^\s/])")  # the folders that a word of a command begins with


def enter(bench: str, result: Mapping[str, object], command: str, ledger: Path = LEDGER) -> None:
    """Append a line: which bench, when, where, the figures, and the command that gives them.

    Of an absolute path in the command only the name is kept: the folders of one machine say nothing to others.
    """
    where = {"bench": bench, "date": time.strftime("%Y-%m-%d"), "device": machine()}
    with ledger.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({**where, **result, "command": _ABSOLUTE.sub("", command)}, ensure_ascii=False) + "\n")


def machine() -> str:
    """The processor in words: how many cores, of what, and the widest vectors it has."""
    try:
        facts = dict(
            (part.strip() for part in line.split(":", 1))
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if ":" in line
        )
    except OSError:
        facts = {}
    name = " ".join(facts.get("model name", platform.machine()).replace("(R)", "").split())
    flags = facts.get("flags", "").split()
    vectors = next((wide for flag, wide in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags), "")
    return ", ".join(part for part in (f"{os.cpu_count()} CPU cores", name, vectors) if part)


def exponent(places: Sequence[float], values: Sequence[float]) -> float:
    """The ``e`` of ``value ∝ place^e``: the slope of a straight line through the logarithms."""
    return statistics.linear_regression([math.log(x) for x in places], [math.log(y) for y in values]).slope


def spread(values: Sequence[float], digits: int = 0) -> list[float]:
    """The lowest and the highest, rounded."""
    return [round(min(values), digits or None), round(max(values), digits or None)]
