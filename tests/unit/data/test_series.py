"""Series from files, and the windows that are cut of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.data.batches import collate, trimmed
from regard.data.check import check, check_labels, check_series
from regard.data.clean import clean, split
from regard.data.encoding import encode_examples
from regard.data.plan import BatchShape
from regard.data.readers import Corpus
from regard.data.series import Window, WindowEncoder, read_series, read_windows, seasonal_mean, windows
from regard.data.stats import series_stats
from regard.errors import DataError
from regard.settings import ForecastSettings
from regard.text.vectors import Vectors, is_vectors, parse, written
from regard.text.vocabulary import START

CUT = ForecastSettings(context=5, horizon=3, season=2, held_out=0.3)


def values(path: Path, *columns: str) -> list[list[list[float]]]:
    return [parse(row[0], 1, 1)[0].tolist() for _, row in read_series(str(path), columns)]


def test_a_table_is_a_series_without_its_times(tmp_path: Path) -> None:
    file = tmp_path / "air.csv"
    file.write_text("year,a,b,place\n1950,1,2,here\n1951,,4,there\n")
    assert values(file, "b", "1") == [[[2, 1950], [4, 1951]]]
    np.testing.assert_array_equal(values(file)[0], [[1, 2], [np.nan, 4]])
    file.write_text(",lynx\n1821,269\n1822,321\n")  # an index without a name
    assert values(file) == [[[269], [321]]]
    with pytest.raises(DataError, match="column = c: not in the file"):
        values(file, "c")


def test_arrays_and_rows_are_series(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.arange(3.0))
    assert values(tmp_path / "one.npy") == [[[0], [1], [2]]]
    np.savez_compressed(tmp_path / "two.npz", a=np.ones((2, 2)), b=np.zeros(1))
    assert values(tmp_path / "two.npz") == [[[1, 1], [1, 1]], [[0]]]
    (tmp_path / "rows.jsonl").write_text(json.dumps({"series": [1, None, 3]}) + "\n")
    np.testing.assert_array_equal(values(tmp_path / "rows.jsonl")[0], [[1], [np.nan], [3]])
    (tmp_path / "names.txt").write_text("one.npy\n[4, 5]\n")
    assert values(tmp_path / "names.txt") == [[[0], [1], [2]], [[4], [5]]]


@pytest.mark.parametrize("values_of", [np.array(["a", "b"]), np.zeros((2, 3, 4))], ids=["words", "deep"])
def test_an_array_that_is_no_series_is_refused(values_of: NDArray[Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "odd.npz", speed=values_of)
    with pytest.raises(DataError, match=r"source \(npz\): speed: "):
        values(tmp_path / "odd.npz")


def test_a_list_of_words_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"source": ["Hello", "world"], "target": "x"}) + "\n")
    with pytest.raises(DataError, match="line 1: column = source: no text under that name"):
        list(Corpus((str(tmp_path / "rows.jsonl"),)).rows(("source", "target")))


def test_lists_of_parquet_are_series(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"series": [[1.0, 2.0], [3.0]], "deep": [[[1.0, 2.0]], [[3.0, 4.0]]], "label": ["a", "b"]})
    parquet.write_table(table, tmp_path / "series.parquet")
    assert values(tmp_path / "series.parquet") == [[[1], [2]], [[3]]]
    rows = list(Corpus((str(tmp_path / "series.parquet"),), ("deep", "label")).rows(("text", "label")))
    assert rows == [(1, ("[[1.0, 2.0]]", "a")), (2, ("[[3.0, 4.0]]", "b"))]


def test_an_npz_file_is_a_corpus_of_rows(tmp_path: Path) -> None:
    filled = np.array([[[1.0], [2.0]], [[3.0], [np.nan]]])
    np.savez(tmp_path / "set.npz", text=filled, label=np.array(["x", "y"]))
    rows = list(Corpus((str(tmp_path / "set.npz"),)).rows(("text", "label")))
    assert rows == [(1, ("[[1.0],[2.0]]", "x")), (2, ("[[3.0]]", "y"))]
    np.savez(tmp_path / "set.npz", text=filled, label=np.array(["x"]))
    with pytest.raises(DataError, match="2 different lengths"):
        list(Corpus((str(tmp_path / "set.npz"),)).rows(("text", "label")))
    (tmp_path / "set.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"not an \.npz file"):
        list(read_series(str(tmp_path / "set.npz")))


def test_training_ends_before_what_is_held_out() -> None:
    series = np.arange(40.0)[:, None]
    train, valid = (list(windows(series, CUT, part)) for part in ("train", "valid"))
    assert max(future.max() for _, future in train) == 27  # of 40, the last 12 are held out
    assert min(future.min() for _, future in valid) == 28
    assert {len(context) for context, _ in train + valid} == {5}
    assert len(list(windows(series, CUT, ""))) == 40 - 5 - 3 + 1
    series[10:13] = np.nan
    assert len(list(windows(series, CUT, ""))) == 40 - 5 - 3  # a future of which nothing is known is none


def test_of_two_files_the_second_goes_on(tmp_path: Path) -> None:
    for name, numbers in (("past", range(9)), ("later", range(9, 13))):
        (tmp_path / f"{name}.csv").write_text("value\n" + "".join(f"{number}\n" for number in numbers))
    both = Corpus((str(tmp_path / "past.csv"), str(tmp_path / "later.csv")))
    found = [(context[-1, 0], future[0, 0]) for _, context, future in read_windows(both, CUT, "")]
    assert found == [(8, 9), (9, 10)]
    (tmp_path / "later.txt").write_text("")
    with pytest.raises(DataError, match="has fewer series"):
        list(read_windows(Corpus((both.paths[0], str(tmp_path / "later.txt"))), CUT, ""))
    for text, problem in (
        ("[1, 2]\n[3, 4]\n", "has more series"),
        ("[[1, 2], [3, 4]]\n", "2 channels, in .* 1; as many"),
    ):
        (tmp_path / "later.txt").write_text(text)
        with pytest.raises(DataError, match=problem):
            list(read_windows(Corpus((both.paths[0], str(tmp_path / "later.txt"))), CUT, ""))


@pytest.mark.parametrize("scale", ["corpus", "window", "season"])
@pytest.mark.parametrize("anchor", ["none", "naive", "mean"])
def test_what_is_scaled_comes_back(scale: str, anchor: str) -> None:
    cut = CUT.model_copy(update={"scale": scale, "anchor": anchor})
    vectors = Vectors(1, 1, (3.0, 0.0), (2.0, 1.0), (1,))
    context = np.array([[1.0, 5], [2, np.nan], [3, 7], [2, 6], [4, np.nan]])
    future = np.array([[2.0, 1], [5, 3], [7, 2]])
    way = Window.of(context, vectors, cut)
    scaled = way.written(future)
    np.testing.assert_allclose(way.back(scaled[:, :2, None])[..., 0], future)
    read = np.array(way.read(context, vectors.missing))
    assert read.shape == (5, 4 if anchor == "none" else 6)
    np.testing.assert_array_equal(read[:, 3], [0, 1, 0, 0, 1])
    if anchor == "naive":  # how far each moment is from that one season before
        np.testing.assert_allclose(read[:, 4] * way.spread[0], [0, 0, 2, 0, 1], atol=1e-12)
    if anchor == "mean":  # and from the mean of those a season apart: of 1, 3 and 4, and of 2 and 2
        np.testing.assert_allclose(read[:, 4] * way.spread[0], np.array([-5, 0, 1, 0, 4]) / 3, atol=1e-12)
    nothing = np.full((5, 2), np.nan)
    np.testing.assert_allclose(Window.of(nothing, vectors, cut).level, [3, 0])


def test_the_mean_of_all_seasons_knows_no_holes() -> None:
    history = np.array([[1.0], [5], [3], [np.nan], [2], [np.nan]])
    np.testing.assert_array_equal(seasonal_mean(history, 3, 2)[:, 0], [2, 5, 2])
    np.testing.assert_array_equal(seasonal_mean(history[:3], 2, 9)[:, 0], [3, 3])


def test_a_batch_has_vectors_on_both_sides() -> None:
    encoder = WindowEncoder(Vectors(1, 1, (0.0,), (1.0,)), CUT.model_copy(update={"scale": "corpus", "anchor": "none"}))
    rows = [(written(np.arange(5.0)), "[1, null, 3]"), (written(np.arange(5.0)), "[4, 5, 6]")]
    batch = collate(encode_examples(rows, encoder), np.arange(2), BatchShape(3, 5, 4))
    assert batch.source.shape == (3, 5, 2)
    np.testing.assert_array_equal(batch.target_in[:, 0, 0], [START] * 3)
    np.testing.assert_array_equal(batch.target_out[0], [[4, 1, 0], [4, 0, 1], [4, 3, 0]])
    np.testing.assert_array_equal(batch.target_in[0, 1:], batch.target_out[0, :-1])
    assert batch.tokens == 6
    assert trimmed(batch).target_out.shape == (3, 3, 3)
    assert encoder.fingerprint() != WindowEncoder(encoder.vectors, CUT).fingerprint()
    with pytest.raises(DataError, match="channels = 2"):
        encoder.encode(("[[1, 2]]", "[[1, 2]]"))


def sounds(folder: Path) -> Path:
    """A table that names files, of which one is missing, one is of another width and one is no array."""
    for name, width in (("a", 2), ("b", 2), ("c", 3)):
        np.save(folder / f"{name}.npy", np.arange(4.0 * width).reshape(4, width))
    (folder / "d.npy").write_bytes(b"no array")
    named = ("a.npy", "b.npy", "none.npy", "c.npy", "d.npy", "[[1, 2], [3]]", "[[1, 2]]")
    (folder / "rows.tsv").write_text("".join(f"{text}\tlow\n" for text in named))
    return folder / "rows.tsv"


def test_vectors_are_checked_as_they_would_be_read(tmp_path: Path) -> None:
    corpus = Corpus((str(sounds(tmp_path)),))
    for report in (check(corpus), check_labels(corpus, ("text", "label"), lambda _: "")):
        (found,) = report.findings
        assert (found.kind, found.count) == ("format", 4)
        notes = [example.note for example in found.examples]
        assert "none.npy: cannot be read" in notes[0]
        assert notes[1] == "3 numbers a vector; the first has 2"
        assert "not an array of NumPy" in notes[2]
        assert "not vectors of one length" in notes[3]


def test_a_clean_copy_and_a_split_name_the_same_files(tmp_path: Path) -> None:
    corpus = Corpus((str(sounds(tmp_path)),))
    out = tmp_path / "out"
    report = clean(corpus, out / "clean.source", out / "clean.target", out / "dropped.tsv")
    assert report.dropped == {"format": 4}
    assert (out / "clean.source").read_text().splitlines() == ["../a.npy", "../b.npy", "[[1, 2]]"]
    assert check(Corpus((str(out / "clean.source"), str(out / "clean.target")))).clean
    split(corpus, tmp_path / "parts", valid=1, test=1)
    lines = [line for part in (tmp_path / "parts").glob("*.source") for line in part.read_text().splitlines()]
    assert sorted(lines)[:2] == ["../a.npy", "../b.npy"]


@pytest.mark.parametrize("first", ["[1] See below.", "[noise] yes", "[2010, again]", "[...]", "[-] so"])
def test_a_text_that_begins_with_a_bracket_is_no_vector(first: str, tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text(f"{first}\tune phrase\nA tree grows.\tUn arbre.\n")
    assert check(Corpus((str(tmp_path / "rows.tsv"),))).clean


@pytest.mark.parametrize(
    "text", ["[1]", "[[1]]", "[ [ 1.5, 2 ] ]", "[[null]]", "[NaN, 1]", "[-1e-3,2]", "data:text/csv;base64,x"]
)
def test_numbers_in_brackets_are_vectors(text: str) -> None:
    assert is_vectors(text)


def test_series_are_checked_and_counted_by_channel(tmp_path: Path) -> None:
    (tmp_path / "air.csv").write_text("year,a,b,c\n1950,1,7,\n1951,,7,\n1952,3,7,\n")
    np.savez(tmp_path / "air.npz", first=np.array([[1.0, 7, np.nan], [np.nan, 7, np.nan], [3, 7, np.nan]]))
    report = check_series(Corpus((str(tmp_path / "air.npz"),)))
    assert [(each.kind, each.examples[0].note) for each in report.findings] == [
        ("identical", "channel 2 is always 7"),
        ("empty", "channel 3 has no number"),
    ]
    first, second, third = series_stats(Corpus((str(tmp_path / "air.csv"),)))
    assert (first.moments, first.missing, first.mean, first.least, first.most) == (3, 1, 2.0, 1.0, 3.0)
    assert second.deviation == 0.0
    assert (third.missing, third.mean) == (3, None)


def test_every_file_of_series_is_checked_and_counted(tmp_path: Path) -> None:
    (tmp_path / "past.csv").write_text("a,b\n1,7\n2,8\n")
    (tmp_path / "later.csv").write_text("a,b\n3,9\n3,\n")
    both = Corpus((str(tmp_path / "past.csv"), str(tmp_path / "later.csv")))
    report = check_series(both)
    (found,) = report.findings
    assert (report.pairs, found.count) == (4, 2)
    assert found.examples[0].note == f"{both.paths[1]}: channel 1 is always 3"
    assert [(Path(each.file).name, each.channel, each.least) for each in series_stats(both)] == [
        *(("past.csv", 1, 1.0), ("past.csv", 2, 7.0)),
        *(("later.csv", 1, 3.0), ("later.csv", 2, 9.0)),
    ]
