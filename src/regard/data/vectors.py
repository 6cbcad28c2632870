"""Word vectors from files: GloVe's text, word2vec's text and word2vec's binary form, packed or not.

    GloVe           the 0.418 0.249 …                  one line a word
    word2vec text   400000 50 / the 0.418 0.249 …      the same after a line with count and width
    word2vec binary 400000 50 / the <float32> …        the numbers as little-endian bytes

Which it is shows at the beginning of the file. Reading streams: a file of gigabytes costs what is kept of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import IO

import numpy as np
from numpy.typing import NDArray

from regard.data.lines import damage, open_bytes
from regard.errors import DataError

Vector = NDArray[np.float32]
_LONGEST_WORD = 1 << 12  # bytes; a longer one is no word but a file of another kind


def vector_width(path: str) -> int:
    """How many numbers a word has in this file."""
    return len(next(read_vectors(path))[1])


def vector_words(path: str, most: int) -> list[str]:
    """The first words of a file; the usual files have the most frequent ones first."""
    return [word for word, _ in islice(read_vectors(path), most)]


def find_vectors(path: str, words: Sequence[str]) -> tuple[list[int], Vector]:
    """The places of the words that are there, and their vectors (found, width): that of the word, or else that of the
    word in small letters, for files that know no capitals."""
    wanted: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        wanted.setdefault(word, []).append(place)
        if (small := word.lower()) != word:
            wanted.setdefault(small, []).append(place)
    found: dict[int, Vector] = {}
    for word, vector in read_vectors(path):
        for place in wanted.get(word, ()):
            if place not in found or words[place] == word:
                found[place] = vector
    places = sorted(found)
    return places, np.array([found[place] for place in places], np.float32)


def read_vectors(path: str) -> Iterator[tuple[str, Vector]]:
    """All words with their vectors, in the order of the file."""
    with open_bytes(path) as file:
        try:
            first = file.readline()
            header = _header(first)
            if header is None:
                yield from _text(path, first, file, 1)
                return
            second = file.readline()
            if _is_text(second, header[1]):
                yield from _text(path, second, file, 2)
            else:
                yield from _binary(path, *header, _BufferedBytes(second, file.read))
        except damage(path) as problem:
            raise DataError(f"{path}: the file is cut short or damaged ({problem})") from problem


def _header(line: bytes) -> tuple[int, int] | None:
    """Word2vec's first line, count and width; GloVe has none."""
    parts = line.split()
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 and all(part.isdigit() for part in parts) else None


def _is_text(line: bytes, width: int) -> bool:
    parts = line.rstrip(b"\r\n ").rsplit(b" ", width)
    try:
        return len([float(part) for part in parts[1:]]) == width
    except ValueError:
        return False


def _text(path: str, first: bytes, file: IO[bytes], begin: int) -> Iterator[tuple[str, Vector]]:
    width = len(first.split()) - 1
    if width < 1:
        raise DataError(f"{path} line {begin}: no word vector; a line is a word and its numbers, set apart by spaces")
    for number, line in enumerate(_chain(first, file), start=begin):
        word, *numbers = line.decode("utf-8", "replace").rstrip("\r\n ").rsplit(" ", width)
        try:
            vector = np.array(numbers, np.float32)
        except ValueError:
            raise DataError(f"{path} line {number}: not a number among the {width} after the word; {_hint}") from None
        if len(vector) != width:
            raise DataError(f"{path} line {number}: {len(vector)} numbers, the first line has {width}; {_hint}")
        yield word, _finite(vector, f"{path} line {number}")


_hint = "is the file whole?"


def _chain(first: bytes, file: IO[bytes]) -> Iterator[bytes]:
    yield first
    yield from file


class _BufferedBytes:
    """Bytes of which some were read already."""

    def __init__(self, begin: bytes, more: Callable[[int], bytes]) -> None:
        self._begin, self._more = begin, more

    def read(self, size: int) -> bytes:
        data, self._begin = self._begin[:size], self._begin[size:]
        return data + self._more(size - len(data)) if len(data) < size else data

    def word(self) -> bytes:
        """Up to the next space, which ends a word; the end of the vector before it may be a line's end."""
        letters = bytearray()
        while (letter := self.read(1)) not in (b" ", b"") and len(letters) < _LONGEST_WORD:
            letters += letter
        return bytes(letters).lstrip(b"\n")


def _binary(path: str, count: int, width: int, reader: _BufferedBytes) -> Iterator[tuple[str, Vector]]:
    for number in range(1, count + 1):
        word, data = reader.word(), reader.read(4 * width)
        if len(data) < 4 * width:
            raise DataError(f"{path} word {number:,}: the file ends before its {count:,} words do; {_hint}")
        yield word.decode("utf-8", "replace"), _finite(np.frombuffer(data, "<f4"), f"{path} word {number:,}")


def _finite(vector: Vector, where: str) -> Vector:
    if not np.isfinite(vector).all():
        raise DataError(f"{where}: a number that is not finite; {_hint}")
    return vector
