"""Readers: every format gives the same rows, and every complaint names the file and the line."""

import csv
import gzip
import io
import json
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pyarrow
import pytest
import zstandard
from pyarrow import parquet

from regard.data import Corpus, tables
from regard.data import parquet as reading
from regard.data.lines import Complain, CorpusProblem, ignore, open_bytes, read_lines, refuse
from regard.data.readers import format_of
from regard.errors import DataError, ResourceError, SettingsError

ROWS = [
    ("ein Bär", "a bear"),
    ("Honig\u2028süß", "sweet honey"),
    ("", "nothing"),
    ("ja, „gut“", 'yes, "good"'),
]
PAIRS = ROWS


def read_rows(corpus: Corpus, names: tuple[str, ...], complain: Complain = refuse) -> Iterator[tuple[str, ...]]:
    rows = corpus.rows(names, complain)
    return (row for _, row in rows)


def read_pairs(corpus: Corpus, complain: Complain = refuse) -> Iterator[tuple[str, ...]]:
    return read_rows(corpus, ("source", "target"), complain)


def read_texts(corpus: Corpus) -> Iterator[str]:
    return (text for (text,) in read_rows(corpus, ("text",)))


def write(path: Path, text: str) -> str:
    path.write_bytes(text.encode())
    return str(path)


def parallel(folder: Path, rows: list[tuple[str, str]] = ROWS) -> tuple[str, str]:
    source = write(folder / "train.de", "".join(f"{source}\n" for source, _ in rows))
    return source, write(folder / "train.en", "".join(f"{target}\n" for _, target in rows))


def test_parallel_files_pair_line_by_line(tmp_path) -> None:
    assert list(read_pairs(Corpus(parallel(tmp_path)))) == PAIRS


def test_lines_end_at_newline_alone(tmp_path) -> None:
    path = write(tmp_path / "a.txt", "\ufeffone\r\ntwo\x0b\x0c\x1c\x85\u2028\u2029still two\rand on\nlast")
    assert list(read_lines(path)) == ["one", "two\x0b\x0c\x1c\x85\u2028\u2029still two\rand on", "last"]
    assert list(read_lines(write(tmp_path / "b.txt", "a\r\r\n\n"))) == ["a\r", ""]
    assert list(read_lines(write(tmp_path / "c.txt", ""))) == []


def test_packed_files_read_as_plain_ones(tmp_path) -> None:
    text = "".join(f"{source}\t{target}\n" for source, target in ROWS).encode()
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(text))
    (tmp_path / "a.tsv.zst").write_bytes(zstandard.compress(text))
    for name in ("a.tsv.gz", "a.tsv.zst"):
        assert list(read_pairs(Corpus((str(tmp_path / name),)))) == PAIRS


def test_tsv_takes_the_first_columns_or_those_asked_for(tmp_path) -> None:
    bare = write(tmp_path / "bare.tsv", "1\tx\ty\n2\tp\tq\n")
    assert list(read_pairs(Corpus((bare,)))) == [("1", "x"), ("2", "p")]
    assert list(read_pairs(Corpus((bare,), ("3", "2")))) == [("y", "x"), ("q", "p")]


@pytest.mark.parametrize("header", ["german,french", "de,en", "Source,Target", "src,tgt", "English,Hindi"])
def test_a_header_of_usual_names_is_no_pair(header: str, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text(f"{header}\nein Hund,un chien\n", encoding="utf-8")
    assert list(Corpus((str(tmp_path / "pairs.csv"),)).rows(("source", "target"))) == [(2, ("ein Hund", "un chien"))]


@pytest.mark.parametrize("first", ["no,no", "Hello,Bonjour", "text,texte", "de,"])
def test_a_first_pair_of_short_words_is_no_header(first: str, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text(f"{first}\n", encoding="utf-8")
    assert list(Corpus((str(tmp_path / "pairs.csv"),)).rows(("source", "target"))) == [(1, tuple(first.split(",")))]


def test_of_a_header_with_more_columns_one_must_say_which(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("\tgerman\tfrench\n1\tein Hund\tun chien\n", encoding="utf-8")
    with pytest.raises(DataError, match="first line names german, french; say which are source and target"):
        list(Corpus((str(tmp_path / "pairs.tsv"),)).rows(("source", "target")))
    chosen = Corpus((str(tmp_path / "pairs.tsv"),), ("german", "french")).rows(("source", "target"))
    assert list(chosen) == [(2, ("ein Hund", "un chien"))]


def test_a_header_with_an_unusual_name_among_others_is_no_pair(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("id,German,English,note\n1,ein Hund,a dog,x\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"first line names id, German, English, note; .*data\.columns=SOURCE,TARGET"):
        list(Corpus((str(tmp_path / "pairs.csv"),)).rows(("source", "target")))
    chosen = Corpus((str(tmp_path / "pairs.csv"),), ("German", "English"))
    assert list(chosen.rows(("source", "target"))) == [(2, ("ein Hund", "a dog"))]


def test_a_name_above_numbers_is_a_header_in_any_language(tmp_path: Path) -> None:
    rows = "1;ein Hund;un chien\n2;eine Katze;un chat\n3;ein Bär;un ours\n"
    (tmp_path / "pairs.csv").write_text(f"Nummer;Deutsch;Français\n{rows}", encoding="utf-8")
    with pytest.raises(DataError, match=r"first line names Nummer, Deutsch, Français; say which are source and target"):
        list(Corpus((str(tmp_path / "pairs.csv"),)).rows(("source", "target")))
    (tmp_path / "bare.csv").write_text(rows, encoding="utf-8")
    assert len(list(Corpus((str(tmp_path / "bare.csv"),)).rows(("source", "target")))) == 3


def test_a_first_row_with_names_of_languages_in_it_is_a_pair(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("ein Hund\ta dog\tde\ten\n", encoding="utf-8")
    assert list(Corpus((str(tmp_path / "pairs.tsv"),)).rows(("source", "target"))) == [(1, ("ein Hund", "a dog"))]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_what_separates_the_first_line_of_a_csv_separates_all(mark: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f'German{mark}"English, or so"\n"ja; nein"{mark}yes, no\n', encoding="utf-8")
    assert list(Corpus((str(path),), ("1", "2")).rows(("source", "target"))) == [
        (1, ("German", "English, or so")),
        (2, ("ja; nein", "yes, no")),
    ]


def test_commas_in_sentences_are_not_taken_for_what_separates_them(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('Ja, ja, ja;Yes, yes, yes\n"er kam\nzu uns";a dog\n', encoding="utf-8")
    rows = [(1, ("Ja, ja, ja", "Yes, yes, yes")), (2, ("er kam\nzu uns", "a dog"))]
    assert list(Corpus((str(path),)).rows(("source", "target"))) == rows
    path.write_text("er kam; er sah,he came; he saw\nein Hund,a dog\n", encoding="utf-8")
    assert next(Corpus((str(path),)).rows(("source", "target"))) == (1, ("er kam; er sah", "he came; he saw"))


def test_one_column_of_a_csv_with_semicolons_is_read_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("id;text\n1;he came\n2;he saw\n", encoding="utf-8")
    assert [row for _, row in Corpus((str(tmp_path / "texts.csv"),), ("text",)).rows(("text",))] == [
        ("he came",),
        ("he saw",),
    ]


def test_a_single_text_of_a_csv_may_have_semicolons(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("he came; he saw\n", encoding="utf-8")
    assert list(Corpus((str(tmp_path / "texts.csv"),)).rows(("text",))) == [(1, ("he came; he saw",))]


@pytest.mark.parametrize(("mark", "advice"), [(";", "commas here, not by semicolons"), ("\t", "read from a .tsv")])
def test_cells_with_other_marks_between_them_are_told_what_to_do(mark: str, advice: str, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text(f"eine Katze,a cat\nein Hund{mark}a dog\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"line 2: 1 column; 1 and 2 are needed, counted from 1; .*{advice}"):
        list(Corpus((str(tmp_path / "pairs.csv"),)).rows(("source", "target")))


def test_a_header_is_used_where_it_names_what_is_wanted(tmp_path) -> None:
    usual = write(tmp_path / "usual.tsv", "target\tsource\ny\tx\n")
    other = write(tmp_path / "other.tsv", "de\ten\nx\ty\n")
    assert list(read_pairs(Corpus((usual,)))) == [("x", "y")]
    assert list(read_pairs(Corpus((other,), ("en", "de")))) == [("y", "x")]


def test_csv_may_quote_and_span_lines(tmp_path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([*ROWS, ("two\nlines", "a,b")])
    assert list(read_pairs(Corpus((str(path),)))) == [*PAIRS, ("two\nlines", "a,b")]


def test_jsonl_reads_names_numbers_and_nested_fields(tmp_path) -> None:
    records = [{"source": source, "target": target, "pair": {"de": source, "en": target}} for source, target in ROWS]
    path = write(tmp_path / "a.jsonl", "\n".join(json.dumps(record) for record in records) + "\n\n")
    for columns in ((), ("source", "target"), ("1", "2"), ("pair.de", "pair.en")):
        assert list(read_pairs(Corpus((path,), columns))) == PAIRS
    labelled = write(tmp_path / "b.jsonl", '{"text": "fine", "label": 1}')
    assert list(read_rows(Corpus((labelled,)), ("text", "label"))) == [("fine", "1")]


def test_parquet_reads_flat_and_nested_columns(tmp_path) -> None:
    path = tmp_path / "a.parquet"
    sources, targets = zip(*ROWS, strict=True)
    nested = [{"de": source, "en": target} for source, target in ROWS]
    parquet.write_table(pyarrow.table({"source": sources, "target": targets, "translation": nested}), path)
    assert list(read_pairs(Corpus((str(path),)))) == PAIRS
    assert list(read_pairs(Corpus((str(path),), ("translation.de", "translation.en")))) == PAIRS


TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en-GB"><seg>Press <bpt i="1">&lt;b&gt;</bpt>here<ept i="1">&lt;/b&gt;</ept> &amp;
  wait</seg></tuv><tuv xml:lang="fr"><seg>Appuyez <hi>ici</hi></seg></tuv></tu>
<tu><tuv xml:lang="en-GB"><seg>lonely</seg></tuv></tu>
<tu><tuv lang="FR"><seg>chat</seg></tuv><tuv lang="en"><seg>cat</seg></tuv></tu>
</body></tmx>"""


def test_tmx_gives_units_by_language_without_markup(tmp_path) -> None:
    path = write(tmp_path / "a.tmx", TMX)
    expected = [("Appuyez ici", "Press here & wait"), ("chat", "cat")]
    assert list(read_pairs(Corpus((path,), ("fr", "en")))) == expected
    assert next(read_pairs(Corpus((path,)))) == ("Press here & wait", "Appuyez ici")
    assert list(read_texts(Corpus((path,), ("fr",)))) == ["Appuyez ici", "chat"]


def test_a_unit_of_one_language_does_not_choose_the_languages(tmp_path) -> None:
    alone = '<tu><tuv xml:lang="en"><seg>alone</seg></tuv></tu>'
    both = '<tu><tuv xml:lang="en"><seg>cat</seg></tuv><tuv xml:lang="fr"><seg>chat</seg></tuv></tu>'
    for units, expected in ((alone + both, [("cat", "chat")]), ("<tu></tu>" + alone, [])):
        (tmp_path / "a.tmx").write_text(f"<tmx><body>{units}</body></tmx>", encoding="utf-8")
        assert [row for _, row in Corpus((str(tmp_path / "a.tmx"),)).rows(("source", "target"))] == expected


def test_a_large_tmx_arrives_in_pieces(tmp_path) -> None:
    unit = '<tu><tuv xml:lang="en"><seg>{0}</seg></tuv><tuv xml:lang="fr"><seg>{0} {0}</seg></tuv></tu>\n'
    body = "".join(unit.format(number) for number in range(3000))
    path = write(tmp_path / "a.tmx", f"<tmx><body>\n{body}</body></tmx>")
    rows = list(Corpus((path,)).rows(("source", "target")))
    assert [row[0] for _, row in rows] == [str(number) for number in range(3000)]
    assert rows[10] == (12, ("10", "10 10"))


def test_tmx_refuses_entities_and_broken_xml(tmp_path) -> None:
    bomb = write(tmp_path / "bomb.tmx", '<!DOCTYPE tmx [\n<!ENTITY a "aaaa">]><tmx>&a;</tmx>')
    with pytest.raises(DataError, match=r"bomb\.tmx line 2: entity = 'a': not read"):
        list(read_pairs(Corpus((bomb,))))
    broken = write(tmp_path / "broken.tmx", "<tmx>\n<body></tmx>")
    with pytest.raises(DataError, match=r"broken\.tmx line 2: not XML \(mismatched tag"):
        list(read_pairs(Corpus((broken,))))
    assert list(read_pairs(Corpus((broken,)), ignore)) == []


CONLLU = (
    "# text = Don't go\n1-2\tDon't\t_\t_\n1\tDo\tdo\tAUX\n2\tn't\tnot\tPART\n2.1\tx\tx\tX\n"
    "3\tgo\tgo\tVERB\n\n\n"
    "1\t10 000\t_\tNUM\n2\tbears\tbear\tNOUN"
)


def test_conllu_gives_words_and_universal_tags(tmp_path) -> None:
    path = write(tmp_path / "a.conllu", CONLLU)
    expected = [
        ("Do n't go", "AUX PART VERB"),
        ("10_000 bears", "NUM NOUN"),
    ]
    assert list(read_rows(Corpus((path,)), ("words", "tags"))) == expected
    assert list(read_texts(Corpus((path,)))) == ["Do n't go", "10_000 bears"]
    bad = write(tmp_path / "bad.conllu", "1\tx\n")
    with pytest.raises(DataError, match=r"bad\.conllu line 1: 2 columns; CoNLL-U has ten"):
        list(read_rows(Corpus((bad,)), ("words", "tags")))


def test_texts_are_the_lines_of_a_plain_file(tmp_path) -> None:
    assert list(read_texts(Corpus((write(tmp_path / "a.txt", "x\n\ny\n"),)))) == ["x", "", "y"]


def test_bad_utf8_is_refused_with_file_and_line(tmp_path) -> None:
    path = tmp_path / "bad.de"
    path.write_bytes(b"gut\nsch\xf6n\nja\n")
    with pytest.raises(DataError, match=r"bad\.de line 2: not UTF-8 \(byte 0xf6 at column 4\)"):
        list(read_lines(path))
    problems: list[CorpusProblem] = []
    assert list(read_lines(path, problems.append)) == ["gut", "sch\ufffdn", "ja"]
    assert [(problem.kind, problem.line) for problem in problems] == [("encoding", 2)]


@pytest.mark.parametrize("start", [b"PK\x03\x04\x14", b"\xd0\xcf\x11\xe0", b"%PDF-1.7\n"])
def test_documents_are_not_read_as_text(start: bytes, tmp_path) -> None:
    path = tmp_path / "book.docx"
    path.write_bytes(start + bytes(range(256)))
    with pytest.raises(DataError, match=r"book\.docx: a document, a spreadsheet or a zip file, not plain text; save"):
        list(read_lines(path, ignore))


def test_mismatched_files_are_refused_with_the_place_where_they_slip(tmp_path) -> None:
    lengths = [(7 * number**2) % 83 + 1 for number in range(400)]
    source = write(tmp_path / "train.de", "".join("x" * n + "\n" for n in lengths[:150] + lengths[152:]))
    target = write(tmp_path / "train.en", "".join("y" * n + "\n" for n in lengths))
    expected = (
        f"{source}: 398 lines but {target} has 400; the sides must pair line by line. "
        "Lengths stop matching near line 151."
    )
    for paths in ((source, target), (target, source)):
        with pytest.raises(DataError) as refused:
            list(read_pairs(Corpus(paths)))
        assert str(refused.value) == expected
    assert len(list(read_pairs(Corpus((source, target)), ignore))) == 398


def test_damaged_packed_files_are_refused_by_name(tmp_path) -> None:
    for name, packed in (("a.gz", gzip.compress), ("a.zst", zstandard.compress)):
        data = packed(b"".join(b"line %d %d\n" % (number, number**7) for number in range(5000)))
        (tmp_path / name).write_bytes(data[:200])
        if name == "a.gz":
            with pytest.raises(DataError, match=rf"{name} line \d+: the file is cut short or damaged"):
                list(read_lines(tmp_path / name))
        (tmp_path / name).write_bytes(data[:20] + b"\x00\xff" * 40 + data[100:])
        with pytest.raises(DataError, match=rf"{name} line \d+: the file is cut short or damaged"):
            list(read_lines(tmp_path / name))
    (tmp_path / "a.tmx.gz").write_bytes(gzip.compress(TMX.encode())[:100])
    with pytest.raises(DataError, match=r"a\.tmx\.gz: the file is cut short or damaged"):
        list(read_pairs(Corpus((str(tmp_path / "a.tmx.gz"),))))


def test_a_missing_file_is_refused_by_name(tmp_path) -> None:
    with pytest.raises(DataError, match=r"^-: cannot be read \(stdin is not read here\)"):
        open_bytes("-")
    with pytest.raises(DataError, match=r"nowhere\.de: cannot be read \(No such file or directory\)"):
        list(read_lines(tmp_path / "nowhere.de"))


def test_rows_that_lack_columns_are_refused_or_passed_over(tmp_path) -> None:
    table = write(tmp_path / "a.tsv", "a\tb\nc\nd\te\n")
    with pytest.raises(DataError, match=r"a\.tsv line 2: 1 column; 1 and 2 are needed, counted from 1"):
        list(read_pairs(Corpus((table,))))
    assert list(read_pairs(Corpus((table,)), ignore)) == [("a", "b"), ("d", "e")]
    with pytest.raises(DataError, match="0 and 2 are needed, counted from 1"):
        list(read_pairs(Corpus((table,), ("0", "2"))))


def test_a_column_that_is_not_there_is_refused_with_its_neighbour(tmp_path) -> None:
    table = write(tmp_path / "a.csv", "german,english\nx,y\n")
    with pytest.raises(DataError, match="column = englisch: not in the header; did you mean 'english'"):
        list(read_pairs(Corpus((table,), ("german", "englisch"))))
    records = write(tmp_path / "a.jsonl", '{"source": "x", "targt": "y"}\n[1]\n')
    with pytest.raises(DataError, match="line 1: column = target: no text under that name; did you mean 'targt'"):
        list(read_pairs(Corpus((records,))))
    problems: list[CorpusProblem] = []
    assert list(read_pairs(Corpus((records,)), problems.append)) == []
    assert [problem.line for problem in problems] == [1, 2]


def test_broken_csv_and_json_are_refused_with_their_line(tmp_path) -> None:
    table = write(tmp_path / "a.csv", 'a,b\n"x" y,z\n')
    with pytest.raises(DataError, match=r"a\.csv line 2: not CSV"):
        list(read_pairs(Corpus((table,))))
    records = write(tmp_path / "a.jsonl", '{"source": "x", "target": "y"}\n{"source"\n')
    with pytest.raises(DataError, match=r"a\.jsonl line 2: not JSON"):
        list(read_pairs(Corpus((records,))))
    half = write(tmp_path / "c.jsonl", '{"source": "\\ud800", "target": "y"}')
    with pytest.raises(DataError, match=r"c\.jsonl line 1: not JSON .*surrogates not allowed"):
        list(read_pairs(Corpus((half,))))
    deep = write(tmp_path / "b.jsonl", "[" * 100_000 + "\n")
    with pytest.raises(DataError, match=r"b\.jsonl line 1: not JSON"):
        list(read_pairs(Corpus((deep,))))


def test_reading_goes_on_after_a_record_that_is_not_csv(tmp_path) -> None:
    table = write(tmp_path / "a.csv", 'a,b\nc,d\n"x" y,z\ne,f\n"g\nh",i\n"open,j\nk,l\n')
    problems: list[CorpusProblem] = []
    rows = list(Corpus((table,)).rows(("source", "target"), problems.append))
    assert rows == [(1, ("a", "b")), (2, ("c", "d")), (4, ("e", "f")), (5, ("g\nh", "i"))]
    assert [(problem.line, problem.message.partition(" (")[0]) for problem in problems] == [
        (3, f"{table} line 3: not CSV"),
        (7, f"{table} lines 7 to 8: not CSV"),
    ]


@pytest.mark.parametrize("line", ['","', "xyz"])
def test_a_record_of_csv_without_end_is_refused_in_bounded_memory(tmp_path, monkeypatch, line: str) -> None:
    """A quote that is not closed; and one that each line closes and opens again: no cell is long, no record ends."""
    monkeypatch.setattr(tables, "LARGEST_RECORD", 10_000)
    path = write(tmp_path / "a.csv", 'a,b\nc,"\n' + f"{line}\n" * 20_000 + "d,e\n")
    problems: list[CorpusProblem] = []
    tracemalloc.start()
    rows = tables.read_csv(path, problems.append)
    assert next(rows) == (1, ["a", "b"])
    assert all(len(cells) < 10_000 for _, cells in rows)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    assert "a record of more than 10,000 characters" in problems[0].message or "field limit" in problems[0].message
    with pytest.raises(DataError, match=r"a\.csv lines 2 to \d+: not CSV"):
        list(read_pairs(Corpus((path,))))


def test_a_text_that_parquet_keeps_once_for_many_rows_is_once_in_memory(tmp_path) -> None:
    """A few kilobytes on the disk, 20,000 times 100 kB in rows."""
    path = tmp_path / "a.parquet"
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 20_000, pyarrow.int32()), ["x" * 100_000])
    parquet.write_table(pyarrow.table({"source": texts, "target": texts}), path, compression="zstd")
    assert path.stat().st_size < 20_000
    before = pyarrow.total_allocated_bytes()
    rows = read(path)
    for _ in range(211):
        assert len(next(rows)[1][0]) == 100_000
        assert pyarrow.total_allocated_bytes() - before < 20_000_000


def read(path, *columns: str) -> Iterator[tables.Row]:
    names = columns or ("source", "target")
    return tables.pick_fields(reading.read_parquet(str(path)), str(path), names, refuse)


@pytest.mark.parametrize("how", ["a text for all rows", "long beginnings that are alike"])
def test_rows_that_parquet_unfolds_are_few_at_once(tmp_path, monkeypatch, how: str) -> None:
    """Texts inside a structure, which cannot stay once in memory: 300 times 100 kB in rows, of 200 kB on the disk."""
    path, alike = tmp_path / "a.parquet", how == "a text for all rows"
    texts = ["x" * 100_000 + ("" if alike else str(number)) for number in range(300)]
    encoding = {} if alike else {"column_encoding": {"pair.source": "DELTA_BYTE_ARRAY"}, "use_dictionary": False}
    parquet.write_table(pyarrow.table({"pair": [{"source": text} for text in texts]}), path, **encoding)
    assert path.stat().st_size < 200_000
    monkeypatch.setattr(reading, "LARGEST_BATCH", 1 << 21)
    before = pyarrow.total_allocated_bytes()
    for (_, row), text in zip(read(path, "pair.source"), texts, strict=True):
        assert row == (text,)
        assert pyarrow.total_allocated_bytes() - before < 6_000_000


def test_a_list_in_parquet_is_passed_over(tmp_path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"more": [[1, 2], []], "source": ["a", "b"], "target": ["c", "d"]}), path)
    assert list(read(path)) == [(1, ("a", "c")), (2, ("b", "d"))]


def _varint(number: int) -> bytes:
    """As Thrift writes a number: zigzag, then seven bits a byte."""
    rest, found = 2 * number, []
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*found, rest])


def forge(path: Path, true: int, false: int) -> None:
    """Let the end of a file, where it says what it has, say another number."""
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert _varint(true) in data[begin:-8]
    said = data[begin:-8].replace(_varint(true), _varint(false))
    path.write_bytes(data[:begin] + said + len(said).to_bytes(4, "little") + b"PAR1")


def test_parquet_that_lies_about_how_much_it_unfolds_to_is_refused(tmp_path, monkeypatch) -> None:
    """A file of a few kilobytes that unpacks to megabytes and says that it does not."""
    path = tmp_path / "a.parquet"
    rows = {"source": ["x" * 1_000_000] * 3, "target": ["a"] * 3}
    parquet.write_table(pyarrow.table(rows), path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 20_000
    part = parquet.ParquetFile(path).metadata.row_group(0).column(0)
    forge(path, part.total_uncompressed_size, 777)
    assert parquet.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size == 777
    monkeypatch.setattr(reading, "LARGEST_PART", 1 << 20)
    before = pyarrow.total_allocated_bytes()
    with pytest.raises(DataError, match=r"a\.parquet: column = source, row group 1: unpacks to 3,000,0\d\d bytes"):
        next(read(path))
    assert pyarrow.total_allocated_bytes() - before < 100_000


def test_parquet_that_lies_about_its_rows_gives_those_that_it_has(tmp_path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"source": ["ab"] * 1009, "target": ["c"] * 1009}), path)
    forge(path, 1009, 1 << 40)
    assert parquet.ParquetFile(path).metadata.num_rows == 1 << 40
    before, count = pyarrow.total_allocated_bytes(), 0
    for _, row in read(path):
        assert row == ("ab", "c")
        assert pyarrow.total_allocated_bytes() - before < 10_000_000
        count += 1
    assert count == 1009


@pytest.mark.parametrize("header", [b"", b"\x1b\x00", b"\x15" + b"\xff" * 11, b"\x2c" * 20, b"\x13\x07\x00"])
def test_a_page_of_parquet_that_is_none_is_refused(tmp_path, header: bytes) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"source": ["ab"], "target": ["c"]}), path, use_dictionary=False)
    data = bytearray(path.read_bytes())
    begin = parquet.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    data[begin : begin + len(header)] = header
    path.write_bytes(data if header else data[: begin - 4] + data[begin:])
    with pytest.raises(DataError, match=r"a\.parquet row 1: not readable as Parquet"):
        next(read(path))


def test_a_header_of_a_page_of_parquet_does_not_go_on_beyond_the_file() -> None:
    with pytest.raises(EOFError, match="beyond the end of the file"):
        reading._structure(io.BytesIO(b"\x15"))


@pytest.mark.parametrize(
    ("limit", "most", "line"),
    [
        ("LARGEST_PART", 900, "column = source, row group 1: unpacks to [0-9,]+ bytes or more; at most 900; write"),
        ("LONGEST_LINE", 6, "rows 1 to 5: column = source: a text of 7 bytes; at most 6"),
    ],
)
def test_parquet_that_would_unfold_to_too_much_is_refused(tmp_path, monkeypatch, limit, most, line) -> None:
    path = tmp_path / "a.parquet"
    sources = ["x" * 1000 if limit == "LARGEST_PART" else "x" * 7] * 5
    parquet.write_table(pyarrow.table({"source": sources, "target": ["a"] * 5}), path)
    monkeypatch.setattr(reading, limit, most)
    with pytest.raises(DataError, match=f"a.parquet:? {line}"):
        next(read(path))


def test_what_is_not_parquet_is_refused(tmp_path) -> None:
    path = write(tmp_path / "a.parquet", "nonsense")
    with pytest.raises(DataError, match=r"a\.parquet row 1: not readable as Parquet"):
        list(read_pairs(Corpus((path,))))


def test_an_empty_table_has_no_rows(tmp_path) -> None:
    assert list(read_pairs(Corpus((write(tmp_path / "a.tsv", ""),)))) == []


def test_files_and_columns_must_fit_the_task(tmp_path) -> None:
    plain = write(tmp_path / "a.de", "x\n")
    with pytest.raises(SettingsError, match="plain text has one column; give a file each for source and target"):
        read_pairs(Corpus((plain,)))
    with pytest.raises(SettingsError, match=r"pairs\.xlsx: a spreadsheet is not read; save it as \.csv or \.tsv"):
        list(Corpus(("pairs.xlsx",)).rows(("source", "target")))
    with pytest.raises(SettingsError, match=r"pairs\.docx: a document is not read; save it as plain text"):
        list(Corpus(("pairs.docx",)).rows(("source", "target")))
    with pytest.raises(SettingsError, match="give one file, or one each for text"):
        read_texts(Corpus((plain, plain)))
    with pytest.raises(SettingsError, match=r"columns = a: 2 are needed, for source and target"):
        read_pairs(Corpus((plain,), ("a",)))
    with pytest.raises(SettingsError, match=r"a\.tsv: a tsv file holds all columns; give it alone"):
        list(read_pairs(Corpus((plain, "a.tsv"))))


def test_the_format_is_read_from_the_name() -> None:
    names = {
        "a.TSV.gz": "tsv",
        "a.ndjson": "jsonl",
        "a.csv.zst": "csv",
        "a.de": "text",
        "a": "text",
        "hf://x": "hub",
    }
    assert {name: format_of(name) for name in names} == names


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """A stand-in for the package `datasets` that writes down how it is called."""
    calls: list[tuple[object, ...]] = []

    def load_dataset(name: str, config: str | None, *, split: str, streaming: bool) -> Iterable[object]:
        calls.append((name, config, split, streaming))
        if name == "missing":
            raise FileNotFoundError("no such dataset")
        rows = [{"translation": {"de": source, "en": target}} for source, target in ROWS]
        return cut_off(rows) if name == "half" else rows

    def cut_off(rows: list[object]) -> Iterator[object]:
        yield from rows
        raise ConnectionResetError("connection reset by peer")

    module = ModuleType("datasets")
    monkeypatch.setattr(module, "load_dataset", load_dataset, raising=False)
    monkeypatch.setitem(sys.modules, "datasets", module)
    monkeypatch.delenv("REGARD_OFFLINE", raising=False)
    return calls


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("hf://wmt14", ("wmt14", None, "train", True)),
        ("hf://wmt14:de-en/test", ("wmt14", "de-en", "test", True)),
        ("hf://owner/corpus", ("owner/corpus", None, "train", True)),
        ("hf://corpus/validation", ("corpus", None, "validation", True)),
        ("hf://owner/corpus:a/train[:10%]", ("owner/corpus", "a", "train[:10%]", True)),
        ("hf://owner/corpus/test", ("owner/corpus", None, "test", True)),
    ],
)
def test_hub_names_are_taken_apart(name: str, call: tuple[object, ...], hub: list[tuple[object, ...]]) -> None:
    columns = ("translation.de", "translation.en")
    assert list(read_pairs(Corpus((name,), columns))) == PAIRS
    assert hub == [call]


def test_the_hub_is_not_asked_when_it_must_not_be(hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceError, match="hf://missing: cannot be loaded; the hub says: no such dataset"):
        read_pairs(Corpus(("hf://missing",)))
    with pytest.raises(ResourceError, match="hf://half: cannot be loaded; the hub says: connection reset by peer"):
        list(read_pairs(Corpus(("hf://half",), ("translation.de", "translation.en"))))
    with pytest.raises(SettingsError, match="name = hf://: not understood; write hf://owner/name:config/split"):
        read_pairs(Corpus(("hf://",)))
    monkeypatch.setenv("REGARD_OFFLINE", "1")
    hub.clear()
    with pytest.raises(ResourceError, match="REGARD_OFFLINE=1 forbids downloads"):
        read_pairs(Corpus(("hf://wmt14",)))
    assert hub == []


def test_a_missing_package_is_named_with_what_installs_it(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_OFFLINE", raising=False)
    for module, name in (
        ("zstandard", str(tmp_path / "a.tsv.zst")),
        ("pyarrow.parquet", str(tmp_path / "a.parquet")),
        ("datasets", "hf://wmt14"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ResourceError, match=r"needs the package (\w+); pip install \1$"):
            list(read_pairs(Corpus((name,))))


def test_columns_of_parquet_that_nobody_wants_are_not_unpacked(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    columns = {"source": ["a"], "target": ["b"], "embedding": [[0.5] * 7], "pair": [{"de": "x", "en": "y"}]}
    parquet.write_table(pyarrow.table(columns), path)
    assert next(reading.read_parquet(path, ("source", "target")))[1] == {"source": "a", "target": "b"}
    assert next(reading.read_parquet(path, ("pair.de", "source")))[1] == {"pair": {"de": "x", "en": "y"}, "source": "a"}
    assert list(Corpus((path,), ("pair.en", "pair.de")).rows(("source", "target"))) == [(1, ("y", "x"))]
    assert list(Corpus((path,), ("2", "1")).rows(("source", "target"))) == [(1, ("b", "a"))]
    with pytest.raises(DataError, match="column = sorce: no text under that name; did you mean 'source'"):
        list(Corpus((path,), ("sorce", "target")).rows(("source", "target")))
