"""Rows of text columns from TSV, CSV, JSON lines, CoNLL-U and TMX, each with the line it begins at."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any
from xml.parsers import expat

from regard.data.lines import LONGEST_LINE, Complain, CorpusProblem, read_chunks, read_lines, refuse
from regard.errors import DataError, did_you_mean
from regard.settings.languages import is_language

Row = tuple[int, tuple[str, ...]]

_USUAL = (  # names of columns
    *("source", "target", "src", "tgt", "trg", "text", "label", "labels", "tags", "words", "sentence", "translation"),
    *("input", "output", "id", "index", "line", "score"),
)
_QUOTED = re.compile('"[^"]*"?')
_FIRST = 20  # lines of a CSV that say what separates its cells
LARGEST_RECORD = 1 << 24  # characters of CSV; the csv module's own limit is too short for a long document


def read_tsv(path: str, complain: Complain) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line. There is no quoting: a tab always separates."""
    for number, line in enumerate(read_lines(path, complain), start=1):
        yield number, line.split("\t")


def read_csv(path: str, complain: Complain, separators: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The cells of each record, which may be quoted and span lines; reading goes on after one that is not CSV.

    What separates cells is one of ``separators`` (`_separator`).
    """
    csv.field_size_limit(LARGEST_RECORD)
    texts = read_lines(path, complain)
    first = list(islice(texts, _FIRST))
    separator = _separator(first, separators)
    lines = _CsvLines(chain(first, texts))
    begin = before = 1
    while True:
        reader = csv.reader(lines, delimiter=separator, strict=True)
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


def _separator(lines: Sequence[str], separators: str) -> str:
    """The first that cuts all of these lines into equally many cells, two or more; if none does, the first that line 1
    has outside quotation marks. A comma in a sentence is no separator: other sentences have more, or none."""
    for each in separators:
        with suppress(csv.Error):
            counts = {len(cells) for cells in csv.reader(lines, delimiter=each, strict=True) if cells}
            if len(counts) == 1 and min(counts) > 1:
                return each
    bare = _QUOTED.sub("", "".join(lines[:1]))
    return next((each for each in separators if each in bare), ",")


class _CsvLines(Iterator[str]):
    """Lines to read records from. It ends a record that grows too long, as after a quote that is never closed."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines, self.held = lines, 0  # characters of the current record

    def __next__(self) -> str:
        if self.held > LARGEST_RECORD:
            self.held = 0
            raise csv.Error(f"a record of more than {LARGEST_RECORD:,} characters")
        line = next(self.lines)
        self.held += len(line) + 1
        return f"{line}\n"


def pick_cells(
    rows: Iterator[tuple[int, list[str]]], path: str, names: Sequence[str], columns: Sequence[str], complain: Complain
) -> Iterator[Row]:
    """The wanted columns of a table, by header or by number.

    Columns given by name need a header; with columns given by number there is none. If no columns are given, the first
    row is a header if it contains `names`, or names languages and the like, or a column of numbers; else it is data.
    """
    first = next(rows, None)
    if first is None:
        return
    header, below = first[1], list(islice(rows, 3))
    rows = chain(below, rows)
    if columns and not all(column.isdecimal() for column in columns):
        for column in columns:
            if column not in header:
                raise DataError(f"{path}: column = {column}: not in the header; {did_you_mean(column, header)}")
        indices = [header.index(column) for column in columns]
    elif not columns and set(names) <= set(lowered := [cell.strip().lower() for cell in header]):
        indices = [lowered.index(name) for name in names]
    elif not columns and _is_header(lowered, [cells for _, cells in below], len(names)):
        if len(header) != len(names):
            wanted = " and ".join(names)
            raise DataError(
                f"{path}: the first line names {', '.join(filter(None, header))}; say which are {wanted}, as columns: "
                f"data.columns={','.join(name.upper() for name in names)}, or --columns where there is that option; "
                f"if it is no header, data.columns={','.join(str(place + 1) for place in range(len(names)))}"
            )
        indices = list(range(len(names)))
    else:
        indices = [int(column) - 1 for column in columns or range(1, len(names) + 1)]
        rows = chain([first], rows)
    for line, cells in rows:
        if min(indices) >= 0 and max(indices) < len(cells):
            yield line, tuple(cells[index] for index in indices)
        else:
            wanted = " and ".join(str(index + 1) for index in indices)
            count = f"{len(cells)} column{'' if len(cells) == 1 else 's'}"
            message = f"{path} line {line}: {count}; {wanted} are needed, counted from 1{_other_mark(path, cells)}"
            complain(CorpusProblem("format", path, line, message))


def header_of(rows: Iterator[tuple[int, list[str]]], wanted: int) -> list[str]:
    """The names of a table's columns, if it has as many as are wanted and its first row is a header; else none."""
    first = [[cell.strip().lower() for cell in cells] for _, cells in islice(rows, 1)]
    return next((cells for cells in first if len(cells) == wanted and _is_header(cells, (), wanted)), [])


def _other_mark(path: str, cells: Sequence[str]) -> str:
    """What to do about cells that are set apart by another mark than the name of their file says."""
    if len(cells) == 1 and "\t" in cells[0]:
        return "; cells with tabs between them are read from a .tsv"
    if len(cells) == 1 and ";" in cells[0] and ".csv" in path:
        return "; cells are set apart by commas here, not by semicolons: save it so, or as a .tsv with tabs"
    return ""


def _is_header(cells: Sequence[str], below: Sequence[Sequence[str]], wanted: int) -> bool:
    """Whether these are names of columns, two or more, all different; an index often has none. Of more columns than are
    wanted, more than half must have usual names, or the first must have nothing but numbers ``below`` its name."""
    named = [cell for cell in cells if cell]
    usual = sum(cell in _USUAL or is_language(cell) for cell in named)
    needed = len(named) if len(cells) <= wanted else len(named) // 2 + 1
    numbered = [row[0].strip().isdecimal() for row in (cells, *below) if row] == [False, True, True, True]
    return 1 < len(named) == len(set(named)) and (usual >= needed or (numbered and len(cells) > wanted))


def read_jsonl(path: str, complain: Complain) -> Iterator[tuple[int, Any]]:
    """One JSON value a line; empty lines are skipped."""
    for number, line in enumerate(read_lines(path, complain), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if "\\u" in line:
                json.dumps(record, ensure_ascii=False).encode()  # fails on half a surrogate pair
            yield number, record
        except (ValueError, RecursionError) as problem:
            complain(CorpusProblem("format", path, number, f"{path} line {number}: not JSON ({problem})"))


def pick_fields(
    records: Iterator[tuple[int, Any]], path: str, columns: Sequence[str], complain: Complain
) -> Iterator[Row]:
    """The wanted fields of records; a number becomes its text."""
    for line, record in records:
        values = [_field(record, column) for column in columns]
        if None not in values:
            yield line, tuple(str(value) for value in values)
        else:
            column = columns[values.index(None)]
            known, which = "no object here", "data.columns, or --columns, says which to read"
            if isinstance(record, dict):
                known = f"{did_you_mean(column, map(str, record))}; {which}"
            message = f"{path} line {line}: column = {column}: no text under that name; {known}"
            complain(CorpusProblem("format", path, line, message))


def _field(record: Any, column: str) -> str | int | float | None:
    """`record["a.b"]`, or `record["a"]["b"]`, or the field with that number; None if there is none. A list of
    numbers, or of lists of them, is a sequence of vectors, as text."""
    if not isinstance(record, dict):
        return None
    if isinstance(value := record.get(column), str | int | float):
        return value
    if isinstance(value, list) and _is_numbers(value):
        return json.dumps(value)
    if column.isdecimal() and 0 < int(column) <= len(record):
        return _field(record, list(record)[int(column) - 1])
    first, _, rest = column.partition(".")
    return _field(record.get(first), rest) if rest else None


def _is_numbers(value: list[Any]) -> bool:
    """Whether a list holds numbers, or lists of them, and not words. A number may be missing."""
    inner = chain.from_iterable(each if isinstance(each, list) else [each] for each in value)
    return all(each is None or isinstance(each, int | float) for each in inner)


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
            words.append("_".join(cells[1].split()))  # a form may contain spaces, but is one word
            tags.append(cells[3])
        elif not line.startswith("#") and len(cells) < 4:
            message = f"{path} line {number}: {len(cells)} columns; CoNLL-U has ten, separated by tabs"
            complain(CorpusProblem("format", path, number, message))
    if words:
        yield begin, (" ".join(words), " ".join(tags))


# Translation memories (TMX), streamed: the file may be larger than memory, and is not trusted.

_CODE = frozenset(("bpt", "ept", "it", "ph", "ut"))  # elements that contain a document's markup, not its words
_CHUNK = 1 << 16


class _Units:
    """Collects `(line, {language: text})` for each translation unit while expat reads the file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.finished: list[tuple[int, dict[str, str]]] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity
        self._line, self._language = 0, ""
        self._unit: dict[str, str] = {}
        self._segment: list[str] | None = None
        self._code = self._held = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "tu":
                self._line, self._unit, self._held = self.parser.CurrentLineNumber, {}, 0
            case "tuv":
                self._language = (attributes.get("xml:lang") or attributes.get("lang") or "").lower()
            case "seg":
                self._segment = []
            case _:
                self._code += name in _CODE

    def _end(self, name: str) -> None:
        match name:
            case "tu":
                self.finished.append((self._line, self._unit))
            case "seg" if self._segment is not None:
                self._unit[self._language] = " ".join("".join(self._segment).split())
                self._segment = None
            case _:
                self._code -= name in _CODE

    def _text(self, text: str) -> None:
        if self._segment is not None and not self._code:
            self._segment.append(text)
            self._held += len(text)

    def endless(self, fed: int) -> str:
        """What is too long, after so many bytes: a unit or a tag; empty if nothing is."""
        if self._held > LONGEST_LINE:
            return f"a unit of more than {LONGEST_LINE:,} characters; cut or drop it"
        if fed - self.parser.CurrentByteIndex > LONGEST_LINE:
            return f"a tag of more than {LONGEST_LINE:,} bytes; shorten it"
        return ""

    def _entity(self, name: str, *rest: object) -> None:
        """Entities can expand to gigabytes or to other files; a translation memory does not need them."""
        del rest
        raise DataError(f"{self.path} line {self.parser.CurrentLineNumber}: entity = {name!r}: not read; remove it")


def read_tmx(
    path: str, languages: Sequence[str] = (), count: int = 2, complain: Complain = refuse
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The units that have all the languages (if none are named, the first `count` of the first unit with so many).

    `en` also finds `en-GB`. Units that lack a language are skipped: a memory may have many languages.
    """
    units, fed = _Units(path), 0
    for chunk in chain(read_chunks(path, _CHUNK), [b""]):
        fed += len(chunk)
        try:
            units.parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            complain(CorpusProblem("format", path, error.lineno, f"{path} line {error.lineno}: not XML ({error})"))
            return
        if problem := units.endless(fed):
            line = units.parser.CurrentLineNumber
            complain(CorpusProblem("format", path, line, f"{path} line {line}: {problem}"))
            return
        for line, unit in units.finished:
            languages = languages or (tuple(unit)[:count] if len(unit) >= count else ())
            texts = [text for language in languages if (text := _find(unit, language)) is not None]
            if texts and len(texts) == len(languages):
                yield line, tuple(texts)
        units.finished.clear()


def _find(unit: dict[str, str], language: str) -> str | None:
    """The text in a language, or in one of its regional variants."""
    language = language.lower()
    variants = (text for code, text in unit.items() if code.split("-")[0] == language)
    return unit.get(language, next(variants, None))
