"""Sequences of vectors by name: `regard data make digits FOLDER`.

    digits  pictures of 8 × 8 pixels → zero … nine            scikit-learn's, from its package
    shapes  drawn pictures → "a small red square left of a large blue circle", with what each word is about
    vowels  12 numbers a moment of a spoken vowel → speaker   Japanese Vowels (Kudo et al., 1999), from sktime's package
    airline, co2, electricity, elnino, sunspots   series to forecast, from the packages sktime, pmdarima and statsmodels

A folder has `train`, `valid` and `test`, in each a file of vectors and one of answers, line by line; a series is cut
into three, each a CSV file that goes on where the one before ends. Nothing is fetched: what comes with a package is
read from where that is installed.
"""

from __future__ import annotations

import base64
import csv
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError, ResourceError, SettingsError, did_you_mean, optional
from regard.files import new_folder
from regard.text.vectors import written

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SPLITS = ("train", "valid", "test")
Example = tuple[str, ...]  # a line of each file


class VectorSet(NamedTuple):
    """A set by name: what its files are called, and its examples, drawn or read."""

    suffixes: tuple[str, ...]  # of the files; the first holds vectors
    examples: Callable[[int, int], Iterable[tuple[str, Example]]]  # (training pairs, held out) → split, example
    source: str  # where it comes from


def write_set(name: str, folder: str | Path, pairs: int, held_out: int) -> Path:
    """Write a set as files, or nothing at all."""
    if name not in SETS:
        raise SettingsError(f"corpus = {name}: no such set; {did_you_mean(name, SETS)}")
    folder, chosen = Path(folder), SETS[name]
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"folder = {folder}: is there already and not empty; a new name would be right")
    lines: dict[str, list[str]] = {f"{split}.{suffix}": [] for split in SPLITS for suffix in chosen.suffixes}
    for split, example in chosen.examples(pairs, held_out):
        for suffix, line in zip(chosen.suffixes, example, strict=True):
            lines[f"{split}.{suffix}"].append(line)
    with new_folder(folder) as beside:
        for file, each in lines.items():
            (beside / file).write_text("".join(f"{line}\n" for line in each), encoding="utf-8")
    return folder


def png(pixels: NDArray[np.uint8]) -> str:
    """A picture (height, width) in grey or (height, width, 3) in colours, as the text that denotes it."""
    height, width = pixels.shape[:2]
    rows = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if pixels.ndim == 2 else 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 9)
    parts = b"".join(_chunk(kind, part) for kind, part in ((b"IHDR", header), (b"IDAT", data), (b"IEND", b"")))
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# Digits


def _digits(_pairs: int, _held_out: int) -> Iterator[tuple[str, Example]]:
    """1,297 to train on, 200 to validate on and 300 to test with, in an order drawn once."""
    found = optional("sklearn.datasets", "the set digits").load_digits()
    order = list(range(len(found.images)))
    Random(1).shuffle(order)
    for place, number in enumerate(order):
        split = "test" if place < 300 else "valid" if place < 500 else "train"
        pixels = np.minimum(found.images[number] * 16, 255).astype(np.uint8)  # 0 to 16
        yield split, (png(pixels), NAMES[int(found.target[number])])


# Shapes

SIDE, PATCH = 32, 4  # pixels of a picture, and of the patches that gold links count
COLOURS = {"red": (220, 50, 47), "green": (60, 160, 70), "blue": (38, 100, 210), "yellow": (230, 190, 30)}
SIZES = {"small": 3, "large": 6}
SHAPES = ("square", "circle", "triangle")


def _shapes(pairs: int, held_out: int) -> Iterator[tuple[str, Example]]:
    for split, count in zip(SPLITS, (pairs, held_out, held_out), strict=True):
        chance = Random(f"shapes {split}")
        for _ in range(count):
            yield split, draw(chance)


def draw(chance: Random) -> Example:
    """A picture of two things, its caption, and for each patch of the things the words that are about them: 17-2 links
    patch 17 with word 2, both from 0. The first thing is the one on the left, or above, whichever is further apart: a
    picture has one caption."""
    across = chance.random() < 0.5
    canvas = np.full((SIDE, SIDE, 3), 245, np.uint8)
    canvas[:] = np.clip(245 + np.array([chance.randint(-10, 10) for _ in range(3)]), 0, 255)
    things = [tuple(chance.choice(list(each)) for each in (SIZES, COLOURS, SHAPES)) for _ in range(2)]
    words, links = list[str](), list[str]()
    places = _places(chance, [SIZES[size] for size, _, _ in things])
    for half, ((size, colour, shape), (along, beside)) in enumerate(zip(things, places, strict=True)):
        x, y = (along, beside) if across else (beside, along)
        ink = _ink(shape, x, y, SIZES[size])
        canvas[ink] = np.clip(np.array(COLOURS[colour]) + chance.randint(-15, 15), 0, 255)
        first = len(words) + 1
        links += [f"{patch}-{word}" for patch in _covered(ink) for word in range(first, first + 3)]
        words += ["a", size, colour, shape] + ([] if half else ["left", "of"] if across else ["above"])
    return png(canvas), " ".join(words), " ".join(links)


def _places(chance: Random, reaches: list[int]) -> list[tuple[int, int]]:
    """Of both things, in either half, along and beside the way from one to the other; further along than beside."""
    while True:
        found = [
            (chance.randint(reach, SIDE // 2 - 1 - reach) + half * SIDE // 2, chance.randint(reach, SIDE - 1 - reach))
            for half, reach in enumerate(reaches)
        ]
        if found[1][0] - found[0][0] > abs(found[1][1] - found[0][1]):
            return found


def _ink(shape: str, x: int, y: int, reach: int) -> NDArray[np.bool_]:
    """Which pixels a shape covers."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    across, down = np.abs(columns - x), rows - y
    match shape:
        case "square":
            return (across <= reach) & (np.abs(down) <= reach)
        case "circle":
            return across**2 + down**2 <= (reach + 0.5) ** 2
        case _:
            return (np.abs(down) <= reach) & (2 * across <= down + reach)


def _covered(ink: NDArray[np.bool_]) -> list[int]:
    """The patches that have some of it, line by line, from 0."""
    patches = ink.reshape(SIDE // PATCH, PATCH, SIDE // PATCH, PATCH).any((1, 3))
    return np.flatnonzero(patches).tolist()


# Vowels


def _vowels(_pairs: int, _held_out: int) -> Iterator[tuple[str, Example]]:
    """The set's own 270 to train on, of which every ninth is to validate on, and its own 370 to test with."""
    for part in ("TRAIN", "TEST"):
        for place, (vectors, label) in enumerate(
            _ts(_packaged("sktime", f"data/JapaneseVowels/JapaneseVowels_{part}.ts"))
        ):
            split = "test" if part == "TEST" else "valid" if place % 9 == 4 else "train"
            yield split, (written(vectors), f"speaker {label}")


def _packaged(package: str, file: str) -> Path:
    """A file that comes with a package, which is not imported."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise ResourceError(f"the set in {file}: needs the package {package}; pip install {package}")
    return Path(found.origin).parent / "datasets" / file


def _ts(path: Path) -> Iterator[tuple[NDArray[np.float64], str]]:
    """The examples of a file in the format .ts: channels between colons, the label last."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line and line[0] not in "#@":
            *channels, label = line.split(":")
            yield np.array([[float(cell) for cell in channel.split(",")] for channel in channels]).T, label


# Series


def _series(package: str, name: str, _pairs: int, _held_out: int) -> Iterator[tuple[str, Example]]:
    """A file with a time and a value in each line, or with several."""
    with _packaged(package, name).open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    yield from _cut([(row[0], cell) for row in rows for cell in row[1:]])  # El Niño has a line a year


def _electricity(_pairs: int, _held_out: int) -> Iterator[tuple[str, Example]]:
    """What was used in each hour, from half-hours that stand as a list in a file of Python, which is not run."""
    code = _packaged("pmdarima", "taylor.py").read_text(encoding="utf-8")
    halves = np.array(code.partition("np.array([")[2].partition("]")[0].split(","), np.float64)
    monday = datetime(2000, 6, 5)
    hours = (
        (f"{monday + timedelta(hours=hour)}", f"{used:g}") for hour, used in enumerate(halves.reshape(-1, 2).mean(1))
    )
    yield from _cut(list(hours))


def _cut(moments: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Example]]:
    """The first six tenths to train on, two to validate with, two to test with."""
    for split in SPLITS:
        yield split, ("time,value",)
    for place, moment in enumerate(moments):
        yield SPLITS[max(0, int(5 * place / len(moments)) - 2)], (",".join(moment),)


SETS = {
    "digits": VectorSet(("vectors", "words"), _digits, "scikit-learn's digits (UCI, Alpaydin and Kaynak; CC BY 4.0)"),
    "shapes": VectorSet(("vectors", "words", "links"), _shapes, "drawn here"),
    "airline": VectorSet(
        ("csv",),
        partial(_series, "sktime", "data/Airline/Airline.csv"),
        "air passengers by the month (Box and Jenkins)",
    ),
    "co2": VectorSet(
        ("csv",), partial(_series, "statsmodels", "co2/co2.csv"), "CO2 on Mauna Loa by the week (Keeling and Whorf)"
    ),
    "electricity": VectorSet(
        ("csv",), _electricity, "electricity used in England and Wales by the hour, in megawatts (Taylor, 2003)"
    ),
    "elnino": VectorSet(
        ("csv",), partial(_series, "statsmodels", "elnino/elnino.csv"), "temperature of the sea by the month (NOAA)"
    ),
    "sunspots": VectorSet(
        ("csv",), partial(_series, "statsmodels", "sunspots/sunspots.csv"), "sunspots by the year (SIDC)"
    ),
    "vowels": VectorSet(("vectors", "speaker"), _vowels, "Japanese Vowels (UCI, Kudo et al.; CC BY 4.0)"),
}
