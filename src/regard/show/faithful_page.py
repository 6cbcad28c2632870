"""The page about how faithful each map is for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regard.show.page import render
from regard.show.pictures import Chart, Point, Series, linear

if TYPE_CHECKING:
    from regard.explain.faithful import Faithfulness, Figure

COLUMNS = {
    "faithfulness": "faithfulness",
    "comprehensiveness": "comprehensiveness",
    "sufficiency": "sufficiency",
    "agreement": "as masking",
    "redrawn": "weights drawn anew",
    "error_rate": "alignment error rate",
    "riddles": "riddles",
}


def faithful_page(found: Faithfulness) -> str:
    """The whole page."""
    percent = {each.method: [100 * end for end in each.faithfulness] for each in found.methods}
    bars = [Series(name, [Point(0, value, low, high)]) for name, (value, low, high) in percent.items()]
    ends = [end for several in percent.values() for end in several]
    names = [name for name in COLUMNS if getattr(found.methods[0], name) is not None]
    content: dict[str, Any] = {
        "title": f"{found.run}: which map to believe",
        "data": found.plain(),
        "found": found,
        "best": found[found.best],
        "random": found["random"],
        "bars": Chart("faithfulness of every method", bars, y=linear("faithfulness, %", ends, zero=True), kind="bars"),
        "heads": ["method", *(COLUMNS[name] for name in names), "seconds"],
        "rows": [
            (each, [*(figure(getattr(each, name)) for name in names), f"{each.seconds:.2f}"]) for each in found.methods
        ],
        "cautions": [each for each in found.methods if each.caution],
    }
    return render("faithful.html", content)


def figure(interval: Figure | None) -> str:
    """A value with half of its interval; empty if it was not measured."""
    if interval is None:
        return ""
    value, low, high = interval
    return f"{value:.2f} ±{(high - low) / 2:.2f}".replace("-", "−")
