"""Examples from files: every format gives rows of text columns, and a task says which columns it needs.

    two parallel files     Corpus(("train.de", "train.en"))
    one file with columns  Corpus(("train.tsv",), columns=("2", "1"))   also csv jsonl parquet npz tmx
    a dataset on the hub   Corpus(("hf://wmt14:de-en/train",), columns=("translation.de", "translation.en"))

Any file may be packed (`.gz`, `.zst`). A column is a name, or a number counted from 1; `a.b` is a field of a nested
record. All readers stream: none holds more than one row (or one Parquet batch) in memory.
"""

from __future__ import annotations

import os
import re
import shlex
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.lines import PACKED, Complain, CorpusProblem, ignore, open_bytes, read_lines, refuse
from regard.data.parquet import read_parquet
from regard.data.tables import (
    Row,
    header_of,
    pick_cells,
    pick_fields,
    read_conllu,
    read_csv,
    read_jsonl,
    read_tmx,
    read_tsv,
)
from regard.errors import DataError, ResourceError, SettingsError, optional
from regard.settings.languages import Languages, named_by
from regard.text.vectors import arrays, written

# Where two files stop matching line by line, guessed from the lengths of their lines.

_MOST_OFFSETS = 32
_SLIP = 1.5  # what a change of offset costs, in logarithms: as much as a few lines that do not match
_SOFTENING = 5  # characters, added to every length: the ratios of short lines vary much


def find_shift(source: NDArray[np.integer], target: NDArray[np.integer]) -> int | None:
    """The line (from 1) at which the pairing slips, given the lengths of both sides' lines.

    Translations are about as long as their sources, so pairing line i with line i + o costs
    `|log source_i - log target_{i+o} - median|`. A file that lacks d lines starts at offset o = 0 and ends at
    o = d, and every change of offset costs `slip`; the cheapest path of growing offsets says where it left 0. For
    each offset one running sum and one running minimum find it (None if the files are equally long):

        best_o[i] = sum_o[i] + min_{k <= i, p < o} (best_p[k] - sum_o[k] + slip)
    """
    if len(source) > len(target):
        return find_shift(target, source)
    missing, places = len(target) - len(source), np.arange(len(source) + 1)
    if missing == 0:
        return None
    short, long = (np.log(lengths + _SOFTENING).astype(np.float32) for lengths in (source, target))
    centre = np.median(short) - np.median(long) if len(short) else 0
    best = _sums(short, long, 0, centre)  # the cheapest path over the offsets so far
    left = places  # where that path left offset 0
    for offset in np.unique(np.linspace(1, missing, min(missing, _MOST_OFFSETS)).astype(int)):
        total = _sums(short, long, offset, centre)
        gain = best - total
        lowest = np.minimum.accumulate(gain)
        origin = np.maximum.accumulate(np.where(gain == lowest, places, 0))
        path = total + lowest + _SLIP
        left = np.where(path < best, left[origin], left) if offset < missing else left[origin]
        best = np.minimum(path, best)
    return int(left[-1]) + 1


def _sums(short: NDArray[np.float32], long: NDArray[np.float32], offset: int, centre: float) -> NDArray[np.float64]:
    """Running sums of the cost of pairing line i with line i + offset, from 0 lines on."""
    cost = np.minimum(np.abs(short - long[offset : offset + len(short)] - centre), 1.5)
    return np.concatenate(([0.0], np.cumsum(cost, dtype=np.float64)))


# Datasets by name, `hf://name[:config][/split]`, through the optional package `datasets`.

# A name may contain a slash (owner/name), so that the last part is a split only if it has the name of one.
_NAME = re.compile(
    r"hf://(?P<name>[\w.-]+(?:/(?!(?:train|validation|valid|dev|test)(?:\[|$))[\w.-]+)?)"
    r"(?::(?P<config>[\w.-]+))?(?:/(?P<split>[\w.\[\]:%-]+))?"
)


def read_hub(location: str) -> Iterator[tuple[int, Any]]:
    """The records of a dataset, streamed rather than downloaded whole; the split is `train` unless named."""
    parts = _NAME.fullmatch(location)
    if parts is None:
        raise SettingsError(f"name = {location}: not understood; write hf://owner/name:config/split")
    if os.environ.get("REGARD_OFFLINE") == "1":
        raise ResourceError(f"{location}: REGARD_OFFLINE=1 forbids downloads; unset it, or use a local file")
    load = optional("datasets", location).load_dataset
    with _naming(location):
        records = load(parts["name"], parts["config"], split=parts["split"] or "train", streaming=True)
    return _streamed(records, location)


def _streamed(records: Iterable[Any], location: str) -> Iterator[tuple[int, Any]]:
    """Records with their numbers; most are downloaded only now."""
    with _naming(location):
        yield from enumerate(records, start=1)


@contextmanager
def _naming(location: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as problem:
        raise ResourceError(f"{location}: cannot be loaded; the hub says: {problem}") from problem


def read_npz(path: str) -> Iterator[tuple[int, Any]]:
    """The rows of the arrays of an .npz file, by the names of the arrays: texts, or vectors, of which those at the end
    that hold no number at all only fill up."""
    with open_bytes(path) as file:
        found = arrays(file.read())
    lengths = {len(each) if each.ndim else 0 for each in found.values()}
    if len(lengths) != 1:
        raise DataError(f"{path}: arrays of {len(lengths)} different lengths; a row of each for every example")
    for row in range(*lengths):
        yield row + 1, {name: _array_text(each[row]) for name, each in found.items()}


def _array_text(value: Any) -> str:
    if value.dtype.kind not in "fiub" or value.ndim == 0:
        return str(value)
    vectors = np.asarray(value, np.float64).reshape(len(value), -1)
    real = np.flatnonzero(~np.isnan(vectors).all(1))
    return written(vectors[: real.max(initial=-1) + 1])


Format = Literal["text", "tsv", "csv", "tmx", "conllu", "jsonl", "parquet", "npz", "hub"]


@dataclass(frozen=True)
class Corpus:
    """Where examples are: parallel files with one column each, or one file with several columns."""

    paths: tuple[str, ...]
    columns: tuple[str, ...] = ()

    def rows(self, names: Sequence[str], complain: Complain = refuse) -> Iterator[Row]:
        """Rows with one text for each of `names`, which are also the default names of the columns."""
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
    """The rows of one file, whose name says its format."""
    match kind := format_of(path):
        case "tsv" | "csv":
            several = len(names) > 1 or columns not in ((), ("1",))
            return pick_cells(_cells(path, complain, several=several), path, names, columns, complain)
        case "jsonl":
            return pick_fields(read_jsonl(path, complain), path, columns or names, complain)
        case "parquet" | "npz" | "hub":
            wanted = columns or names
            found = read_npz(path) if kind == "npz" else read_hub(path) if kind == "hub" else read_parquet(path, wanted)
            return pick_fields(found, path, wanted, complain)
        case "tmx":
            return read_tmx(path, columns, len(names), complain)
        case "conllu":
            return ((line, row[: len(names)]) for line, row in read_conllu(path, complain))
        case "text" if len(names) == 1:
            return ((number, (line,)) for number, line in enumerate(read_lines(path, complain), start=1))
        case "text" if path.lower().endswith((".xlsx", ".xls", ".ods")):
            raise SettingsError(f"file = {path}: a spreadsheet is not read; save it as .csv or .tsv")
        case "text" if path.lower().endswith((".docx", ".doc", ".odt", ".rtf", ".pdf")):
            raise SettingsError(f"file = {path}: a document is not read; save it as plain text")
        case "text":
            wanted = " and ".join(names)
            raise SettingsError(f"file = {path}: plain text has one column; give a file each for {wanted}")


def _cells(path: str, complain: Complain, *, several: bool) -> Iterator[tuple[int, list[str]]]:
    if format_of(path) == "tsv":
        return read_tsv(path, complain)
    return read_csv(path, complain, ",;\t" if several else ",")  # a single text may have semicolons


def languages_in_header(path: str) -> Languages | None:
    """The languages of a table of pairs whose header names them; None of any other file."""
    return named_by(header_of(_cells(path, ignore, several=True), 2)) if format_of(path) in ("tsv", "csv") else None


def format_of(path: str) -> Format:
    """The format that a file's name says, packed or not."""
    if path.startswith("hf://"):
        return "hub"
    name = PurePath(path.lower())
    suffix = name.suffix if name.suffix not in PACKED else PurePath(name.stem).suffix
    match suffix.removeprefix("."):
        case "tsv" | "tab":
            return "tsv"
        case "jsonl" | "ndjson":
            return "jsonl"
        case ("csv" | "parquet" | "npz" | "tmx" | "conllu") as known:
            return known
        case _:
            return "text"


def read_parallel(paths: Sequence[str], complain: Complain = refuse) -> Iterator[Row]:
    """Line i of every file together. The files must have the same number of lines."""
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
    """The problem of files of different length, with a guess at where they stop matching."""
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
