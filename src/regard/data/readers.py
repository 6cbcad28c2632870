"""Examples from files: every format gives rows of text columns, and a task says which columns it wants.

    two parallel files     Corpus(("train.de", "train.en"))
    one file with columns  Corpus(("train.tsv",), columns=("2", "1"))   also csv jsonl parquet tmx conllu
    a dataset on the hub   Corpus(("hf://wmt14:de-en/train",), columns=("translation.de", "translation.en"))

`.gz` or `.zst` may follow any file name. A column is a name, or a number counted from 1; `a.b` looks inside
nested records. All readers stream: none holds more than one row (or one Parquet batch) in memory.
"""

from __future__ import annotations

import shlex
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.hub import read_hub
from regard.data.lines import PACKED, Complain, CorpusProblem, ignore, read_lines, refuse
from regard.data.parquet import read_parquet
from regard.data.shift import find_shift
from regard.data.tables import (
    Row,
    pick_cells,
    pick_fields,
    read_conllu,
    read_csv,
    read_jsonl,
    read_tsv,
)
from regard.data.tmx import read_tmx
from regard.errors import SettingsError

RecordFormat = Literal["jsonl", "parquet", "hub"]
Format = Literal["text", "tsv", "csv", "tmx", "conllu"] | RecordFormat


@dataclass(frozen=True)
class Corpus:
    """Where examples are: parallel files with one column each, or one file with several columns."""

    paths: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def rows(self, names: Sequence[str], complain: Complain = refuse) -> Iterator[Row]:
        """Rows with one text for each of `names`, which are also the column names to expect by default."""
        if self.columns and len(self.columns) != len(names):
            wanted = " and ".join(names)
            raise SettingsError(f"columns = {','.join(self.columns)}: {len(names)} are needed, for {wanted}")
        if len(self.paths) == 1:
            return read_rows(self.paths[0], names, self.columns, complain)
        if len(self.paths) != len(names):
            given = ", ".join(self.paths) or "none"
            raise SettingsError(f"files = {given}: give one file, or one each for {' and '.join(names)}")
        return read_parallel(self.paths, complain)


def read_rows(
    path: str, names: Sequence[str], columns: Sequence[str] = (), complain: Complain = refuse
) -> Iterator[Row]:
    """The rows of one file, by the reader that its name asks for."""
    match kind := format_of(path):
        case "tsv" | "csv":
            cells = read_tsv(path, complain) if kind == "tsv" else read_csv(path, complain)
            return pick_cells(cells, path, names, columns, complain)
        case "jsonl" | "parquet" | "hub":
            return pick_fields(_records(path, kind, complain), path, columns or names, complain)
        case "tmx":
            return read_tmx(path, columns, len(names), complain)
        case "conllu":
            return ((line, row[: len(names)]) for line, row in read_conllu(path, complain))
        case "text" if len(names) == 1:
            return ((number, (line,)) for number, line in enumerate(read_lines(path, complain), start=1))
        case "text":
            wanted = " and ".join(names)
            raise SettingsError(f"file = {path}: plain text has one column; give a file each for {wanted}")


def _records(path: str, kind: RecordFormat, complain: Complain) -> Iterator[tuple[int, Any]]:
    """Records that name their fields."""
    match kind:
        case "jsonl":
            return read_jsonl(path, complain)
        case "parquet":
            return read_parquet(path)
        case "hub":
            return read_hub(path)


def format_of(path: str) -> Format:
    """The format that a file's name claims, whether packed or not."""
    if path.startswith("hf://"):
        return "hub"
    name = PurePath(path.lower())
    suffix = name.suffix if name.suffix not in PACKED else PurePath(name.stem).suffix
    match suffix.removeprefix("."):
        case "tsv" | "tab":
            return "tsv"
        case "jsonl" | "ndjson":
            return "jsonl"
        case ("csv" | "parquet" | "tmx" | "conllu") as known:
            return known
        case _:
            return "text"


def read_parallel(paths: Sequence[str], complain: Complain = refuse) -> Iterator[Row]:
    """Line i of every file together. The files must have as many lines as each other."""
    for path in paths:
        if (kind := format_of(path)) != "text":
            raise SettingsError(f"file = {path}: a {kind} file holds all columns; give it alone, not with another")
    readers = [read_lines(path, complain) for path in paths]
    for number, row in enumerate(zip_longest(*readers), start=1):
        if None in row:
            complain(_mismatch(paths, number))
            return
        yield number, row


def _mismatch(paths: Sequence[str], number: int) -> CorpusProblem:
    """The complaint about files of different length, with a guess at where they came apart."""
    lengths = [line_lengths(path) for path in paths]
    order = sorted(range(len(paths)), key=lambda side: len(lengths[side]))
    short, long = order[0], order[-1]
    line = find_shift(lengths[short], lengths[long])
    message = (
        f"{paths[short]}: {len(lengths[short]):,} lines but {paths[long]} has {len(lengths[long]):,}; "
        f"the sides must pair line by line. Lengths stop matching near line {line:,}."
    )
    hint = f"regard data check {shlex.join(paths)} --find-shift"
    return CorpusProblem("mismatch", paths[short], line or number, message, hint)


def line_lengths(path: str) -> NDArray[np.uint32]:
    """How many characters each line of a file has, at four bytes a line."""
    lines = read_lines(path, ignore)
    return np.frombuffer(array("I", (len(line) for line in lines)), dtype=np.uint32)
