"""Word vectors from files: GloVe's text, word2vec's text and word2vec's binary form, packed or not.

    GloVe           the 0.418 0.249 …                  one line a word
    word2vec text   400000 50 / the 0.418 0.249 …      the same after a line with count and width
    word2vec binary 400000 50 / the <float32> …        the numbers as little-endian bytes

The beginning of the file says which it is. Files are streamed: memory holds only the vectors that are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import IO

import numpy as np
from numpy.typing import NDArray

from regard.data.lines import damage, open_bytes
from regard.errors import DataError

Vector = NDArray[np.float32]
_LONGEST_WORD = 1 << 12  # bytes; a longer one means a file of another kind
_WHOLE = "is the file whole?"


def vector_width(path: str) -> int:
    """How many numbers a word has in this file."""
    return len(next(read_vectors(path))[1])


def vector_words(path: str, most: int) -> list[str]:
    """The first words of a file, usually the most frequent ones."""
    return [word for word, _ in islice(read_vectors(path), most)]


def find_vectors(path: str, words: Sequence[str]) -> tuple[list[int], Vector]:
    """The indices of the words that the file has, and their vectors (found, width). A word that it does not have gets
    the vector of its small letters."""
    wanted: dict[str, list[int]] = {}
    for index, word in enumerate(words):
        for form in {word, word.lower()}:
            wanted.setdefault(form, []).append(index)
    vectors: dict[int, Vector] = {}
    for word, vector in read_vectors(path):
        for index in wanted.get(word, ()):
            if index not in vectors or words[index] == word:
                vectors[index] = vector
    indices = sorted(vectors)
    return indices, np.array([vectors[index] for index in indices], np.float32)


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
                return
            with open_bytes(path) as again:
                again.readline()
                yield from _binary(path, *header, again)
        except damage(path) as problem:
            raise DataError(f"{path}: the file is cut short or damaged ({problem})") from problem


def _header(line: bytes) -> tuple[int, int] | None:
    """Word2vec's first line, count and width; None for GloVe, which has no such line."""
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
        raise DataError(f"{path} line {begin}: no word vector; a line is a word and its numbers, separated by spaces")
    for number, line in enumerate(chain([first], file), start=begin):
        word, *numbers = line.decode("utf-8", "replace").rstrip("\r\n ").rsplit(" ", width)
        try:
            vector = np.array(numbers, np.float32)
        except ValueError:
            raise DataError(f"{path} line {number}: not a number among the {width} after the word; {_WHOLE}") from None
        if len(vector) != width:
            raise DataError(f"{path} line {number}: {len(vector)} numbers, the first line has {width}; {_WHOLE}")
        yield word, _finite(vector, f"{path} line {number}")


def _binary(path: str, count: int, width: int, file: IO[bytes]) -> Iterator[tuple[str, Vector]]:
    for number in range(1, count + 1):
        letters = bytearray()
        while (letter := file.read(1)) not in (b" ", b"") and len(letters) < _LONGEST_WORD:
            letters += letter
        word = letters.lstrip(b"\n").decode("utf-8", "replace")  # a line's end may follow a vector
        data = file.read(4 * width)
        if len(data) < 4 * width:
            raise DataError(f"{path} word {number:,}: the file ends before its {count:,} words do; {_WHOLE}")
        yield word, _finite(np.frombuffer(data, "<f4"), f"{path} word {number:,}")


def _finite(vector: Vector, where: str) -> Vector:
    if not np.isfinite(vector).all():
        raise DataError(f"{where}: a number that is not finite; {_WHOLE}")
    return vector
