"""Rows of Parquet files, in bounded memory: a few bytes may unpack to gigabytes, and a file's metadata may be wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

from regard.data.lines import LONGEST_LINE, damage, open_bytes
from regard.errors import DataError, optional

LARGEST_PART = 1 << 29  # bytes of a column in a row group, unpacked
LARGEST_BATCH = 1 << 27  # bytes of the rows that are unpacked at once
_ROWS = 64  # rows that are converted to Python at once
_DEEPEST = 8  # nested structures in the header of a page


def read_parquet(path: str, wanted: Sequence[str] = ()) -> Iterator[tuple[int, Any]]:
    """The records of a Parquet file, some at a time; of the ``wanted`` columns alone, where all of them are there.

    A value that is stored once for many rows is in memory once, and a file that would unpack to too much is refused.
    """
    parquet, arrow = optional("pyarrow.parquet", path), optional("pyarrow", path)
    number = 0
    try:
        with open_bytes(path) as file:
            with parquet.ParquetFile(file) as table:
                rows = _rows_at_once(file, table.metadata, path)
                texts = [field.name for field in table.schema_arrow if _is_text(arrow, field.type)]
                tops = {name if name in table.schema_arrow.names else name.partition(".")[0] for name in wanted}
                columns = sorted(tops) if tops and tops <= set(table.schema_arrow.names) else None
            file.seek(0)
            with parquet.ParquetFile(file, read_dictionary=texts) as table:
                for batch in table.iter_batches(batch_size=rows, columns=columns):
                    _check_texts(batch, f"{path} rows {number + 1} to {number + batch.num_rows}")
                    for begin in range(0, batch.num_rows, _ROWS):
                        for record in batch.slice(begin, _ROWS).to_pylist():
                            number += 1
                            yield number, record
    except (arrow.ArrowException, *damage(path)) as problem:
        raise DataError(f"{path} row {number + 1}: not readable as Parquet ({problem})") from problem


def _rows_at_once(file: IO[bytes], metadata: Any, path: str) -> int:
    """How many rows fit into memory, however a page stores them: no value is larger than its page unpacked.

    Refuses a column that unpacks to too much, by the sizes in the headers of its pages, which limit the decompressor.
    """
    largest = 1
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            part = metadata.row_group(group).column(column)
            total = 0
            for size in _page_sizes(file, part):
                total, largest = total + size, max(largest, size)
                if total > LARGEST_PART:
                    where = f"{path}: column = {part.path_in_schema}, row group {group + 1}"
                    raise DataError(
                        f"{where}: unpacks to {total:,} bytes or more; at most {LARGEST_PART:,}; write smaller groups"
                    )
    return min(4096, max(1, LARGEST_BATCH // largest))


def _page_sizes(file: IO[bytes], part: Any) -> Iterator[int]:
    """The unpacked size of each page of a column in bytes, from the headers of the pages."""
    at = min(filter(None, (part.data_page_offset, part.dictionary_page_offset)))
    end = at + part.total_compressed_size
    while 0 < at < end:
        file.seek(at)
        header = _structure(file)
        unpacked, packed = header.get(2), header.get(3)
        if unpacked is None or packed is None or min(unpacked, packed) < 0:
            raise EOFError(f"no page at byte {at:,}")
        yield unpacked
        at = file.tell() + packed


# As much of Thrift's compact protocol as the headers of pages need


def _structure(file: IO[bytes], depth: int = 0) -> dict[int, int]:
    """The integers of a structure by the numbers of their fields; everything else is skipped."""
    integers, field = dict[int, int](), 0
    while first := _byte(file):
        field = field + (first >> 4) if first >> 4 else _integer(file)
        value = _value(file, first & 15, depth)
        if value is not None:
            integers[field] = value
    return integers


def _value(file: IO[bytes], kind: int, depth: int) -> int | None:
    match kind:
        case 1 | 2:  # true, false
            return None
        case 3:
            return _byte(file)
        case 4 | 5 | 6:
            return _integer(file)
        case 7 | 8:  # a double; bytes
            file.seek(8 if kind == 7 else _varint(file), 1)
        case 12 if depth < _DEEPEST:
            _structure(file, depth + 1)
        case _:
            raise EOFError(f"no page's header: it has a field of kind {kind}")
    return None


def _integer(file: IO[bytes]) -> int:
    """Zigzag: 0, −1, 1, −2, …"""
    value = _varint(file)
    return (value >> 1) ^ -(value & 1)


def _varint(file: IO[bytes]) -> int:
    """Seven bits a byte, the lowest first."""
    value = 0
    for shift in range(0, 70, 7):
        byte = _byte(file)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise EOFError("no page's header: a number of more than ten bytes")


def _byte(file: IO[bytes]) -> int:
    data = file.read(1)
    if not data:
        raise EOFError("a page's header is beyond the end of the file")
    return data[0]


def _is_text(arrow: Any, kind: Any) -> bool:
    return any(
        getattr(arrow.types, f"is_{name}")(kind) for name in ("string", "large_string", "binary", "large_binary")
    )


def _check_texts(batch: Any, where: str) -> None:
    """No text may be longer than a line of a text file."""
    compute = optional("pyarrow.compute", where)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if hasattr(column, "dictionary"):
            longest = compute.max(compute.binary_length(column.dictionary)).as_py() or 0
            if longest > LONGEST_LINE:
                raise DataError(f"{where}: column = {name}: a text of {longest:,} bytes; at most {LONGEST_LINE:,}")
