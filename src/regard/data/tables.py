"""Rows of text columns from TSV, CSV, JSON lines and CoNLL-U, each with the line it begins at."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from typing import Any

from regard.data.lines import Complain, CorpusProblem, read_lines
from regard.errors import DataError, did_you_mean

Row = tuple[int, tuple[str, ...]]

LARGEST_RECORD = 1 << 24  # characters of CSV; the csv module's own limit, of a cell, is shorter than a long document


def read_tsv(path: str, complain: Complain) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line. There is no quoting: a tab always separates."""
    for number, line in enumerate(read_lines(path, complain), start=1):
        yield number, line.split("\t")


def read_csv(path: str, complain: Complain) -> Iterator[tuple[int, list[str]]]:
    """The cells of each record, which may be quoted and span lines; reading goes on after one that is not CSV."""
    csv.field_size_limit(LARGEST_RECORD)
    lines = _CsvLines(read_lines(path, complain))
    begin = before = 1
    while True:
        reader = csv.reader(lines, strict=True)
        try:
            for cells in reader:
                lines.held = 0
                yield begin, cells
                begin = before + reader.line_num
            return
        except csv.Error as problem:
            last = before + reader.line_num - 1
            where = f"{path} line {begin}" if last <= begin else f"{path} lines {begin} to {last}"
            complain(CorpusProblem("format", path, begin, f"{where}: not CSV ({problem})"))
            begin = before = last + 1


class _CsvLines(Iterator[str]):
    """Lines to read records from. A quote that is never closed, or opened ever again, makes no record without end."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines, self.held = lines, 0  # characters of the record that is being read

    def __next__(self) -> str:
        if self.held > LARGEST_RECORD:
            self.held = 0
            raise csv.Error(f"a record of more than {LARGEST_RECORD:,} characters")
        line = next(self.lines)
        self.held += len(line) + 1
        return f"{line}\n"


def pick_cells(
    rows: Iterator[tuple[int, list[str]]],
    path: str,
    names: Sequence[str],
    columns: Sequence[str],
    complain: Complain,
) -> Iterator[Row]:
    """The wanted columns of a table, by header or by number.

    Columns asked for by name need a header. Asked for by number there is none; and if nothing is asked for,
    the first row is a header when it holds the usual names, or else data like the rest.
    """
    first = next(rows, None)
    if first is None:
        return
    header = first[1]
    if columns and not all(column.isdecimal() for column in columns):
        places = [_place(header, column, path) for column in columns]
    elif not columns and set(names) <= set(header):
        places = [header.index(name) for name in names]
    else:
        places = [int(column) - 1 for column in columns or range(1, len(names) + 1)]
        yield from _pick_row(*first, places, path, complain)
    for line, cells in rows:
        yield from _pick_row(line, cells, places, path, complain)


def _place(header: list[str], column: str, path: str) -> int:
    if column not in header:
        raise DataError(f"{path}: column = {column}: not in the header; {did_you_mean(column, header)}")
    return header.index(column)


def _pick_row(line: int, cells: list[str], places: list[int], path: str, complain: Complain) -> Iterator[Row]:
    if min(places) >= 0 and max(places) < len(cells):
        yield line, tuple(cells[place] for place in places)
    else:
        wanted = " and ".join(str(place + 1) for place in places)
        message = f"{path} line {line}: {len(cells)} columns; {wanted} are needed, counted from 1"
        complain(CorpusProblem("format", path, line, message))


def read_jsonl(path: str, complain: Complain) -> Iterator[tuple[int, Any]]:
    """One JSON value a line; empty lines are passed over."""
    for number, line in enumerate(read_lines(path, complain), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if "\\u" in line:
                json.dumps(record, ensure_ascii=False).encode()  # half a surrogate pair cannot be written again
            yield number, record
        except (ValueError, RecursionError) as problem:
            complain(CorpusProblem("format", path, number, f"{path} line {number}: not JSON ({problem})"))


def pick_fields(
    records: Iterator[tuple[int, Any]], path: str, columns: Sequence[str], complain: Complain
) -> Iterator[Row]:
    """The wanted fields of records that name them; a number is taken as it is written."""
    for line, record in records:
        values = [_field(record, column) for column in columns]
        if None not in values:
            yield line, tuple(str(value) for value in values)
        else:
            column = columns[values.index(None)]
            known = did_you_mean(column, map(str, record)) if isinstance(record, dict) else "no object here"
            message = f"{path} line {line}: column = {column}: no text under that name; {known}"
            complain(CorpusProblem("format", path, line, message))


def _field(record: Any, column: str) -> str | int | float | None:
    """`record["a.b"]`, or `record["a"]["b"]`, or the field of that number; None where there is none."""
    if not isinstance(record, dict):
        return None
    if isinstance(value := record.get(column), str | int | float):
        return value
    if column.isdecimal() and 0 < int(column) <= len(record):
        return _field(record, list(record)[int(column) - 1])
    first, _, rest = column.partition(".")
    return _field(record.get(first), rest) if rest else None


def read_conllu(path: str, complain: Complain) -> Iterator[Row]:
    """Sentences as words and universal tags; multiword tokens (1-2) and empty nodes (1.1) are not words."""
    begin, words, tags = 1, list[str](), list[str]()
    for number, line in enumerate(read_lines(path, complain), start=1):
        cells = line.split("\t")
        if not line.strip():
            if words:
                yield begin, (" ".join(words), " ".join(tags))
            begin, words, tags = number + 1, [], []
        elif len(cells) >= 4 and cells[0].isdecimal():
            words.append("_".join(cells[1].split()))  # a form may hold spaces; it is one word all the same
            tags.append(cells[3])
        elif not line.startswith("#") and len(cells) < 4:
            message = f"{path} line {number}: {len(cells)} columns; CoNLL-U has ten, set apart by tabs"
            complain(CorpusProblem("format", path, number, message))
    if words:
        yield begin, (" ".join(words), " ".join(tags))
