"""Sequences of vectors in the place of a text: numbers over time, patches of a picture, frames of a sound.

A text denotes such a sequence, so that every reader, page and request carries it as it carries words:

    [[0.1, 2], [0.3, null], [0.2, 1]]   three vectors of two numbers, one of them missing
    [1, 2, 3] or 1, 2, 3 or 1 2 3       three vectors of one number
    data:image/png;base64,iVBO…         a picture, cut into square patches, line by line (JPEG too)
    data:audio/wav;base64,UklG…         a sound, as the logarithms of its energy in mel bands, a hundred times a second
    data:text/csv;base64,… or npy, npz  a table of numbers, a line a vector; an array of NumPy

`Vectors` makes numbers of it: each vector is an id that is always the same, followed by its numbers, scaled to mean 0
and deviation 1 in the training text. Nothing here opens a file by a name that stands in a text: `inlined` does so, and
is called where a person names files, in a corpus or on the command line.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
import re
import wave
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.errors import DataError, ModelError, did_you_mean, optional
from regard.text.vocabulary import Tokenizer

VECTOR = 4  # the id of every vector: the first that is no special token
MEDIA = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".wav": "audio/wav",
    ".csv": "text/csv",
    ".npy": "application/x-npy",
    ".npz": "application/x-npz",
}
TIMES = ("time", "date", "datetime", "timestamp", "ds", "period", "year", "month", "week", "day", "hour", "index", "")
MOST_NUMBERS = 1 << 24  # of one sequence; a picture or a recording with more is no example
LARGEST = 1e30  # number: a model computes with 32 bits
WINDOW, HOP = 0.025, 0.01  # seconds of sound in a frame, and from one to the next
QUIET = 1e-10  # energy below which nothing is heard
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Vectors(Tokenizer):
    """How sequences of vectors are read: how pictures and sounds are cut, and the scale of each number."""

    patch: int
    bands: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    missing: tuple[int, ...] = ()  # channels with missing values in training: each has a number that says so
    kind: Literal["vectors"] = field(default="vectors", init=False)

    @classmethod
    def learn(cls, texts: Iterable[str], *, patch: int, bands: int) -> Vectors:
        """The mean and the deviation of each number over all vectors, and which are missing now and then."""
        count, holes, first, total, squares = (np.zeros(1) for _ in range(5))
        for number, text in enumerate(texts, start=1):
            if not text.strip():  # left out of training, as an empty sentence is
                continue
            try:
                values = parse(text, patch, bands)[0]
                if not count.any():
                    count, holes, total, squares = (np.zeros(values.shape[1]) for _ in range(4))
                    first = np.nan_to_num(values[0])
                _check_width(values, len(count))
            except DataError as problem:
                raise DataError(f"line {number}: {problem}") from problem
            real = ~np.isnan(values)
            moved = np.where(real, values - first, 0.0)  # near the first, so that no digits are lost
            count, holes = count + real.sum(0), holes + (~real).sum(0)
            total, squares = total + moved.sum(0), squares + (moved**2).sum(0)
        if not count.any():
            raise DataError("source: has no numbers to learn a scale from; give at least one vector")
        mean = total / np.maximum(count, 1)
        spread = np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0.0))
        spread = np.where(spread > 1e-9 * np.maximum(1.0, np.abs(first)), spread, 1.0)
        return cls(patch, bands, _plain(first + mean), _plain(spread), tuple(np.flatnonzero(holes).tolist()))

    @property
    def size(self) -> int:
        """How many numbers stand for a vector."""
        return len(self.mean) + len(self.missing)

    def encode(self, text: str) -> list[Any]:
        """Each vector as its id and its numbers; a missing one is 0, the mean, and is said to be missing."""
        if not text.strip():
            return []
        values = self.values(text)
        _check_width(values, len(self.mean))
        scaled = (values - np.array(self.mean)) / np.array(self.deviation)
        holes = np.isnan(values)[:, self.missing] if self.missing else np.zeros((len(values), 0))
        return [(VECTOR, *row) for row in np.concatenate((np.nan_to_num(scaled), holes), 1).tolist()]

    def values(self, text: str) -> Matrix:
        """The vectors as they are given, not scaled."""
        return parse(text, self.patch, self.bands)[0]

    def pieces(self, text: str) -> list[str]:
        """What the vectors are called: 2,3 is the third patch of the second line, 0.25s a moment, 7 the seventh."""
        return parse(text, self.patch, self.bands)[1]

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.token(number) for number in ids)

    def token(self, number: int) -> str:  # noqa: ARG002
        return "·"

    def id(self, piece: str) -> int:  # noqa: ARG002
        return VECTOR

    def word_of(self, pieces: Sequence[str]) -> list[int]:
        return list(range(len(pieces)))

    def details(self) -> dict[str, object]:
        names = ("patch", "bands", "mean", "deviation", "missing")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def load(cls, description: dict[str, Any], where: Path) -> Vectors:
        """What `files` wrote."""
        try:
            lists = (tuple(map(float, description[name])) for name in ("mean", "deviation"))
            mean, deviation = lists
            found = cls(
                int(description["patch"]),
                int(description["bands"]),
                mean,
                deviation,
                tuple(map(int, description["missing"])),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise ModelError(f"{where}: no description of vectors ({problem}); is the file damaged?") from problem
        if len(mean) != len(deviation) or not all(0 <= channel < len(mean) for channel in found.missing):
            raise ModelError(f"{where}: {len(mean)} means, {len(deviation)} deviations; is the file damaged?")
        return found


_NUMBER = r"(-?[\d.]+(e[+-]?\d+)?|null|nan)\b"
_BEGINS = re.compile(  # [1, 2 or [[1, 2 or [1] and nothing else; "[1] See below" and "[noise]" are words
    rf"\[\s*(\[\s*)?{_NUMBER}\s*(,\s*{_NUMBER}|\]\s*([],]|$))|data:\w+/", re.IGNORECASE
)


def is_vectors(text: str) -> bool:
    """Whether a text looks like vectors, or like the name of a file that holds some, and not like words."""
    plain = text.strip()
    named = Path(plain[-8:]).suffix.lower() in MEDIA and len(plain.split()) == 1
    return named or _BEGINS.match(plain) is not None


def inlined(text: str, folder: Path = Path()) -> str:
    """The contents of a file that is named; anything else stays as it is."""
    media = MEDIA.get(Path(text.strip()[-8:]).suffix.lower())
    if media is None or "\n" in text or text.startswith("data:"):
        return text
    path = folder / text.strip()
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror}); check the name") from problem
    return f"data:{media};base64,{base64.b64encode(data).decode()}"


def written(values: NDArray[Any]) -> str:
    """The text that denotes these vectors: (S, F), or (S,) with one channel."""
    rounded = [[None if np.isnan(one) else float(f"{one:.7g}") for one in row] for row in np.atleast_2d(values.T).T]
    return json.dumps(rounded, separators=(",", ":"))


def parse(text: str, patch: int, bands: int) -> tuple[Matrix, list[str]]:
    """The vectors that a text denotes, missing numbers as NaN, and what each is called."""
    kind, _, packed = text.strip().partition(";base64,")
    if not kind.startswith("data:"):
        found = _numbers(text)
        return found, _counted(found)
    try:
        data = base64.b64decode(packed, validate=True)
    except binascii.Error as problem:
        raise DataError(f"source = {text[:40]}…: not base64 ({problem}); is it cut off?") from problem
    match kind.removeprefix("data:"):
        case "image/png" | "image/jpeg":
            return _patches(_pixels(data), patch)
        case "audio/wav":
            found = log_mel(*_samples(data), bands)
            return found, [f"{HOP * place:.2f}s" for place in range(len(found))]
        case "text/csv":
            found = table(data)
        case "application/x-npy":
            found = array(data)
        case "application/x-npz":
            found = _checked(_only(arrays(data)), "source (npz)")
        case other:
            raise DataError(
                f"source = data:{other[:40]}: cannot be read; {', '.join(dict.fromkeys(MEDIA.values()))} can"
            )
    return found, _counted(found)


def _counted(values: Matrix) -> list[str]:
    return [str(place) for place in range(1, len(values) + 1)]


def _check_width(values: Matrix, width: int) -> None:
    if values.shape[1] != width:
        raise DataError(f"source: has {values.shape[1]} numbers a vector; {width} would be right, as in the others")


def _plain(values: Matrix) -> tuple[float, ...]:
    return tuple(float(f"{value:.9g}") for value in values)


def _checked(values: Any, what: str) -> Matrix:
    """(S, F) of finite numbers or NaN."""
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        raise DataError(f"{what}: not vectors of one length; [[1, 2], [3, 4]] are two") from problem
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or not found.size:
        raise DataError(f"{what}: numbers of shape {found.shape}: not a sequence of vectors; [[1, 2], [3, 4]] is one")
    if (np.abs(found) > LARGEST).any():
        raise DataError(f"{what}: a number that is infinite, or beyond {LARGEST:g}; what is not known is null")
    if found.size > MOST_NUMBERS:
        raise DataError(f"{what}: {found.size:,} numbers; at most {MOST_NUMBERS:,} would be right")
    return found


def _numbers(text: str) -> Matrix:
    try:
        plain = text.lstrip()[:1] not in ("[", "{")
        content = list(map(float, text.replace(",", " ").split())) if plain else json.loads(text)
    except (ValueError, RecursionError) as problem:
        hint = "[[1, 2], [3, 4]] are two vectors, and a file is named by a person, not in a text"
        raise DataError(f"source = {text[:40]!r}: not numbers ({str(problem)[:80]}); {hint}") from problem
    return _checked(content, "source")


def table(data: bytes, columns: Sequence[str] = ()) -> Matrix:
    """The lines of a CSV file, of which columns may be chosen by name or number. If none are, the first is passed over
    where its name is that of a time, and so are all that hold words alone. A word among numbers is refused."""
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig")))
        lines = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise DataError(f"source: not CSV ({problem})") from problem
    cells = [[_cell(cell) for cell in row] for _, row in lines]
    header = lines[0][1] if cells and all(value is None or np.isnan(value) for value in cells[0]) else []
    cells, lines = (cells[1:], lines[1:]) if header else (cells, lines)
    width = len(header or cells[0]) if cells else 0
    if columns:
        kept = [_column(name, header, width) for name in columns]
    else:
        first = bool(header) and header[0].strip().lower() in TIMES
        kept = [place for place in range(first, width) if _has_numbers([_at(row, place) for row in cells])]
    for line, row in lines:
        _check_line(line, row, kept, header or [str(place) for place in range(1, width + 1)])
    if not kept:
        raise DataError("source (CSV): has no column of numbers; a line is a vector, a column a number of it")
    return _checked([[_at(row, place) for place in kept] for row in cells], "source (CSV)")


def _has_numbers(column: Sequence[float | None]) -> bool:
    """Whether there is a number, or at least no word."""
    return None not in column or any(value is not None and not np.isnan(value) for value in column)


def _check_line(line: int, row: Sequence[str], kept: Sequence[int], names: Sequence[str]) -> None:
    if any(cell.strip() for cell in row[len(names) :]):
        hint = "commas separate, and 1.5 has a point"
        raise DataError(f"source (CSV) line {line}: {len(row)} cells; {len(names)} would be right, as above: {hint}")
    for place in kept:
        if place < len(row) and _cell(row[place]) is None:
            hint = "leave it empty where it is not known, or choose columns"
            raise DataError(f"source (CSV) line {line}: {names[place]} = {row[place][:40]!r}: not a number; {hint}")


def _column(name: str, header: Sequence[str], width: int) -> int:
    if name in header:
        return header.index(name)
    if name.isdecimal() and 0 < int(name) <= width:
        return int(name) - 1
    raise DataError(f"column = {name}: not in the file; {did_you_mean(name, header)}")


def _at(row: list[float | None], place: int) -> float | None:
    return row[place] if place < len(row) else float("nan")


def _cell(cell: str) -> float | None:
    """A number, NaN where there is nothing, or None where there are words."""
    if cell.strip().lower() in ("", "na", "n/a", "nan", "none", "null", "-", "?"):
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return None


def array(data: bytes) -> Matrix:
    """An array of NumPy: (length, numbers) or (length,)."""
    try:
        found = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError) as problem:
        raise DataError(f"source: not an array of NumPy ({problem})") from problem
    return _checked(found, "source (npy)")


def arrays(data: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by their names, where they are no more than fits."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            if sum(each.file_size for each in packed.infolist()) > 8 * MOST_NUMBERS:
                raise DataError(f"source: an .npz file of more than {8 * MOST_NUMBERS:,} bytes; give a smaller one")
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (ValueError, EOFError, OSError, KeyError, zipfile.BadZipFile, zlib.error) as problem:
        raise DataError(f"source: not an .npz file ({problem})") from problem


def sequences(data: bytes) -> list[Matrix]:
    """The arrays of an .npz file, each a sequence of vectors."""
    return [_checked(each, f"source (npz): {name}") for name, each in arrays(data).items()]


def _only(found: dict[str, NDArray[Any]]) -> NDArray[Any]:
    if len(found) != 1:
        raise DataError(f"source: an .npz file with the arrays {', '.join(found) or '(none)'}; one would be right")
    return next(iter(found.values()))


# Pictures


def pixels_of(text: str) -> Matrix:
    """The picture that a text denotes, (height, width, colours) from 0 to 1."""
    return _pixels(base64.b64decode(text.partition(",")[2]))


def _pixels(data: bytes) -> Matrix:
    """(height, width, colours) from 0 to 1: one colour of a picture in grey, else red, green and blue."""
    image = optional("PIL.Image", "a picture as a source")
    try:
        with image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as opened:
            if opened.width * opened.height > MOST_NUMBERS // 3:
                raise DataError(
                    f"source: a picture of {opened.width} × {opened.height}; at most {MOST_NUMBERS // 3:,} pixels"
                )
            plain = opened.convert("L" if opened.mode in ("1", "L") else "RGB")
            found = np.asarray(plain, np.float64) / 255
    except (OSError, ValueError, SyntaxError) as problem:
        raise DataError(f"source: not a picture ({problem})") from problem
    return found[..., None] if found.ndim == 2 else found


def _patches(pixels: Matrix, side: int) -> tuple[Matrix, list[str]]:
    """Squares of so many pixels, line by line; what does not fill a square is filled up with zeros."""
    height, width, colours = pixels.shape
    down, across = -(-height // side), -(-width // side)
    filled = np.zeros((down * side, across * side, colours))
    filled[:height, :width] = pixels
    squares = filled.reshape(down, side, across, side, colours).swapaxes(1, 2).reshape(down * across, -1)
    return squares, [f"{line},{place}" for line in range(1, down + 1) for place in range(1, across + 1)]


# Sounds


def _samples(data: bytes) -> tuple[Matrix, int]:
    """What a WAV file holds, from -1 to 1, its channels averaged, and how many samples there are a second."""
    try:
        with wave.open(io.BytesIO(data)) as sound:
            width, channels, rate = sound.getsampwidth(), sound.getnchannels(), sound.getframerate()
            raw = np.frombuffer(sound.readframes(MOST_NUMBERS // channels), np.uint8)
    except (wave.Error, EOFError) as problem:
        raise DataError(f"source: not a WAV file ({problem}); PCM would be right") from problem
    raw = raw[: len(raw) // (width * channels) * width * channels].reshape(-1, width)
    if not len(raw) or not rate:
        raise DataError("source: a sound without samples; give a longer one")
    if width == 1:
        values = raw[:, 0].astype(np.float64) - 128
    else:  # the sign is in the last byte
        weights = np.array([1 << 8 * place for place in range(width)], np.float64)
        values = (raw * weights).sum(1)
        values = np.where(raw[:, -1] >= 128, values - 256.0**width, values)
    return (values / (128 * 256.0 ** (width - 1))).reshape(-1, channels).mean(1), rate


def log_mel(samples: Matrix, rate: int, bands: int) -> Matrix:
    """``log Σ_k filter_bk |FFT(window · x)_k|²``, (frames, bands): the energy in bands as wide as the ear's.

    A frame is 25 ms under a Hann window, every 10 ms; filters are triangles evenly spaced in mel = 2595 log10(1 +
    f / 700) from 0 to half the rate.
    """
    size, hop = max(2, round(WINDOW * rate)), max(1, round(HOP * rate))
    samples = np.pad(samples, (0, max(0, size - len(samples))))
    frames = np.lib.stride_tricks.sliding_window_view(samples, size)[::hop] * np.hanning(size)
    length = 1 << (size - 1).bit_length()
    power = np.abs(np.fft.rfft(frames, length)) ** 2
    frequencies = np.fft.rfftfreq(length, 1 / rate)
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 1400), bands + 2) / 2595) - 1)
    rising = (frequencies - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequencies) / (edges[2:] - edges[1:-1])[:, None]
    filters = np.clip(np.minimum(rising, falling), 0, None)  # (bands, frequencies)
    return np.log(np.maximum(power @ filters.T, QUIET))
