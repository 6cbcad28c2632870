"""Colours for numbers: a sequential and a diverging scale, for light and dark backgrounds.

Both are computed in Oklab (Ottosson, 2020), where equal steps look equal. The sequential scale is monotonic in
lightness, so that it can be read in grey and with every kind of colour blindness; the diverging one goes from orange
over the background to blue, which no common kind confuses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

from regard.explain.heatmap import HeatMap, Scale

Theme = Literal["light", "dark", "either"]  # of the background; either: unknown, as in a terminal
Colour = tuple[int, int, int]  # red, green and blue, 0 to 255
Stop = tuple[float, float, float]  # lightness, chroma, hue in degrees

LEVELS = 40  # steps of a scale; a diverging one has its middle at half of them
PREFIX: dict[Scale, str] = {"sequential": "h", "diverging": "d"}  # of a level's class
INK: dict[Scale, str] = {"sequential": "n", "diverging": "m"}  # of the class of text on it

_STOPS: dict[tuple[Scale, Theme], tuple[Stop, ...]] = {
    ("sequential", "light"): (
        (0.99, 0.004, 230),
        (0.87, 0.07, 222),
        (0.69, 0.12, 238),
        (0.49, 0.14, 256),
        (0.28, 0.1, 275),
    ),
    ("sequential", "dark"): (
        (0.25, 0.012, 268),
        (0.37, 0.09, 268),
        (0.54, 0.12, 240),
        (0.75, 0.11, 190),
        (0.95, 0.09, 110),
    ),
    ("sequential", "either"): ((0.76, 0.0, 238), (0.7, 0.06, 238), (0.62, 0.12, 245), (0.5, 0.17, 258)),
    ("diverging", "either"): ((0.55, 0.15, 48), (0.68, 0.09, 55), (0.76, 0.0, 60), (0.66, 0.09, 240), (0.5, 0.17, 258)),
    ("diverging", "light"): ((0.46, 0.13, 50), (0.76, 0.12, 62), (0.99, 0.0, 60), (0.72, 0.11, 240), (0.38, 0.14, 262)),
    ("diverging", "dark"): ((0.86, 0.12, 75), (0.55, 0.12, 58), (0.25, 0.0, 60), (0.5, 0.12, 252), (0.84, 0.1, 225)),
}


@cache
def table(scale: Scale, theme: Theme) -> tuple[Colour, ...]:
    """The colour of every level, 0 to `LEVELS`."""
    stops = [_oklab(*stop) for stop in _STOPS[scale, theme]]
    parts = len(stops) - 1
    found = []
    for level in range(LEVELS + 1):
        place = level / LEVELS * parts
        first = min(int(place), parts - 1)
        share = place - first
        before, after = list(pairwise(stops))[first]
        found.append(_to_rgb([a + share * (b - a) for a, b in zip(before, after, strict=True)]))
    return tuple(found)


def level(value: float, low: float, high: float) -> int:
    """The level of a value between two ends; values beyond are clamped."""
    share = (value - low) / (high - low) if high > low else 0.0
    return round(LEVELS * min(1.0, max(0.0, share)))


def levels(picture: HeatMap) -> tuple[tuple[int, ...], ...]:
    """The level of every number of a picture."""
    return tuple(tuple(level(value, picture.low, picture.most) for value in row) for row in picture.values)


def nothing(picture: HeatMap) -> int:
    """The level of zero in a picture."""
    return level(0.0, picture.low, picture.most)


def ink(colour: Colour) -> Colour:
    """Black or white, whichever has more contrast with a colour; at least 4.5 to 1."""
    return (0, 0, 0) if contrast(colour, (0, 0, 0)) >= contrast(colour, (255, 255, 255)) else (255, 255, 255)


def contrast(first: Colour, second: Colour) -> float:
    """The contrast of two colours by WCAG, from 1 to 21."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def code(colour: Colour) -> str:
    """``#0072b2``"""
    return "#" + "".join(f"{part:02x}" for part in colour)


def rules(theme: Theme) -> str:
    """CSS: ``.h12`` is the colour of level 12, ``.n12`` that of text on it; ``.d12``, ``.m12``: diverging."""
    written = []
    for scale, prefix in PREFIX.items():
        colours, letter = table(scale, theme), INK[scale]
        written += [f"svg.heat .{prefix}{place}{{color:{code(colour)}}}" for place, colour in enumerate(colours)]
        for shade in ((0, 0, 0), (255, 255, 255)):
            names = [f"svg.heat .{letter}{place}" for place, colour in enumerate(colours) if ink(colour) == shade]
            written.append(f"{','.join(names)}{{fill:{code(shade)}}}")
    return "".join(written)


def module() -> str:
    """The same scales as an ES module, for canvases: ``COLOURS.sequential.light[12]`` is ``"#0072b2"``."""
    colours, inks = _written(lambda colour: colour), _written(ink)
    return (
        "// Made by `make docs` from src/regard/show/colours.py; change that, not this.\n\n"
        f"export const LEVELS = {LEVELS}; // steps of a scale\n\n"
        f"export const COLOURS = {colours};\n\n"
        f"// Of text on them.\nexport const INKS = {inks};\n"
    )


def _written(change: Callable[[Colour], Colour]) -> str:
    """Both scales for both backgrounds as JavaScript, one list a line."""
    themes: tuple[Theme, ...] = ("light", "dark")
    lines = ["{"]
    for scale in PREFIX:
        lines.append(f"  {scale}: {{")
        for theme in themes:
            codes = json.dumps(" ".join(code(change(colour)) for colour in table(scale, theme)))
            lines.append(f'    {theme}: {codes}.split(" "),')
        lines.append("  },")
    return "\n".join([*lines, "}"])


def _oklab(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    return lightness, chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))


# From Oklab over the cone responses to linear sRGB: Ottosson's matrices.
_TO_CONES = ((1, 0.3963377774, 0.2158037573), (1, -0.1055613458, -0.0638541728), (1, -0.0894841775, -1.2914855480))
_TO_LINEAR = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)


def _to_rgb(point: Sequence[float]) -> Colour:
    cones = [sum(a * b for a, b in zip(row, point, strict=True)) ** 3 for row in _TO_CONES]
    linear = (sum(a * b for a, b in zip(row, cones, strict=True)) for row in _TO_LINEAR)
    red, green, blue = (round(255 * _gamma(min(1.0, max(0.0, part)))) for part in linear)
    return red, green, blue


def _gamma(part: float) -> float:
    return 12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055


def _luminance(colour: Iterable[int]) -> float:
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
