"""A heat map over its input: the image that was read, or its numbers as a curve, once for each row.

Positive values are blue, negative ones orange, with an opacity in proportion to the largest of the row.
"""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from math import isqrt
from typing import TYPE_CHECKING

from markupsafe import Markup

from regard.errors import optional
from regard.explain.heatmap import HeatMap
from regard.show.markup import Painted, element, label, shortened

if TYPE_CHECKING:
    from regard.explain.look import Looked

PANEL, GAP, LINE, SIZE = 112, 10, 17, 12
ROWS, CHANNELS = 24, 8  # drawn at the most
RAISED, LOWERED = "#1c7ed6", "#e8590c"  # as on the scale of a map
STRONGEST = 0.75  # the largest opacity


def grounded(picture: HeatMap, found: Looked) -> HeatMap:
    """The map with the image or curve of its columns, if these are vectors; else unchanged."""
    source = found.trace.source
    vectors = source.letters and isinstance(source.letters[0][0], float)  # letters are whole numbers
    if not vectors or picture.columns != source.words:
        return picture
    image = found.text if found.text.startswith("data:image/") else ""
    return replace(picture, image=image, curve=tuple(zip(*source.letters, strict=True)))


def panels(picture: HeatMap, width: float) -> Painted:
    """One panel for each row, as many side by side as fit."""
    across = max(1, int((width + GAP) // (PANEL + GAP)))
    drawn = list[Markup]()
    rows = list(zip(picture.rows, picture.values, strict=True))[:ROWS]
    for place, (name, values) in enumerate(rows):
        x, y = place % across * (PANEL + GAP), place // across * (PANEL + LINE + GAP)
        inside = _image(picture, values) if picture.image else _curve(picture, values)
        words = label(0, PANEL + SIZE + 2, shortened(name, PANEL, SIZE), full=name)
        drawn.append(element("g", {"transform": f"translate({x} {y})"}, *inside, words))
    high = -(-len(rows) // across) * (PANEL + LINE + GAP)
    return drawn, min(len(rows), across) * (PANEL + GAP) - GAP, high


def cut_of(picture: HeatMap) -> tuple[int, int, float]:
    """How wide and high a picture is, and the side of its patches, in pixels."""
    wide, high = _size(picture.image)
    down, across = (max(int(column.split(",")[part]) for column in picture.columns) for part in (0, 1))
    sides = (isqrt(len(picture.curve)), isqrt(len(picture.curve) // 3))  # in grey, or in three colours
    side = next((one for one in sides if one and (-(-high // one), -(-wide // one)) == (down, across)), wide / across)
    return wide, high, side


def _image(picture: HeatMap, values: tuple[float, ...]) -> list[Markup]:
    """The picture with a square on each patch."""
    wide, high, side = cut_of(picture)
    scale = PANEL / max(wide, high)
    size = {"width": wide * scale, "height": high * scale}
    drawn = [element("image", {**size, "href": picture.image, "image-rendering": "pixelated"})]
    for column, (value, strength) in zip(picture.columns, strengths(values), strict=True):
        line, number = (int(part) - 1 for part in column.split(","))
        x, y = number * side * scale, line * side * scale
        shape = {"x": x, "y": y, "width": min(side * scale, PANEL - x), "height": min(side * scale, PANEL - y)}
        drawn.append(_coloured(value, strength, shape, column))
    return drawn


def _curve(picture: HeatMap, values: tuple[float, ...]) -> list[Markup]:
    """Each channel as a line from left to right, with a coloured band behind each vector."""
    step = PANEL / max(1, len(values))
    drawn = [
        _coloured(value, strength, {"x": place * step, "y": 0, "width": step, "height": PANEL}, picture.columns[place])
        for place, (value, strength) in enumerate(strengths(values))
    ]
    for channel in picture.curve[:CHANNELS]:
        low, high = min(channel), max(channel)
        points = [
            f"{(place + 0.5) * step:.1f} {PANEL - 4 - (PANEL - 8) * (one - low) / ((high - low) or 1.0):.1f}"
            for place, one in enumerate(channel)
        ]
        drawn.append(element("path", {"class": "frame", "d": "M" + "L".join(points)}))
    drawn.append(element("rect", {"class": "frame", "width": PANEL, "height": PANEL}))
    return drawn


def strengths(values: tuple[float, ...]) -> list[tuple[float, float]]:
    most = max(map(abs, values), default=0.0) or 1.0
    return [(value, STRONGEST * abs(value) / most) for value in values]


def _coloured(value: float, strength: float, shape: dict[str, float], name: str) -> Markup:
    colour = RAISED if value >= 0 else LOWERED
    inside = element("title", {}, f"{name}: {value:.3g}")
    return element("rect", {**shape, "color": colour, "opacity": round(strength, 3)}, inside)


def _size(image: str) -> tuple[int, int]:
    data = base64.b64decode(image.partition(",")[2])
    with optional("PIL.Image", "drawing on a picture").open(io.BytesIO(data), formats=("PNG", "JPEG")) as opened:
        return opened.size
