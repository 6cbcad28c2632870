"""Numbers as people read them. What is not known is a dash."""

from __future__ import annotations

from math import exp

UNKNOWN = "–"


def count(value: float | None) -> str:
    """``7.1 M``, ``430 k``, ``812``."""
    if value is None:
        return UNKNOWN
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.1f} {unit}" if value < 100 * size else f"{value / size:.0f} {unit}"
    return f"{value:.0f}"


def duration(seconds: float | None) -> str:
    """``8.2 s``, ``75 s``, ``40 min``, ``3 h 20 min``."""
    if seconds is None:
        return UNKNOWN
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def milliseconds(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def score(value: float, margin: float | None = None) -> str:
    """``19.8 ±0.9``"""
    return f"{value:.1f}" if margin is None else f"{value:.1f} ±{margin:.1f}"


def chance(p: float) -> str:
    """A p value: ``p<0.001``, ``p<0.01``, ``p=0.02``. It is never rounded to the better side of a bound."""
    for bound in (0.001, 0.01):
        if p < bound:
            return f"p<{bound}"
    return f"p={p:.3f}" if 0.045 <= p < 0.055 else f"p={p:.2f}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def signed(value: float, decimals: int = 2, sign: str = "") -> str:
    """``−0.31``; with the sign ``+``, what is above zero has one too."""
    return f"{value:{sign}.{decimals}f}".replace("-", "−")


def probability(log_probability: float) -> str:
    """Of a log-probability: ``99.6 %``, ``41 %``, ``< 0.1 %``."""
    share = 100 * exp(log_probability)
    if share >= 99.95:
        return "100 %" if share >= 99.9999 else "> 99.9 %"
    if share < 0.1:
        return "< 0.1 %"
    return f"{share:.1f} %" if share < 9.95 or share > 99 else f"{share:.0f} %"
