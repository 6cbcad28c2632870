"""Sequences of vectors: what a text denotes, how it is scaled, and what is refused."""

from __future__ import annotations

import base64
import io
import json
import wave
import zipfile
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import Image

from regard.data.batches import collate
from regard.data.encoding import LabelEncoder, PairEncoder, encode_examples
from regard.data.plan import BatchShape
from regard.data.shards import prepare
from regard.errors import DataError, ModelError, ResourceError, SettingsError
from regard.explain.heatmap import HeatMap
from regard.fable.sets import PATCH, SIDE, draw, png, write_set
from regard.show.png import save_png
from regard.show.svg import document
from regard.show.svg_vectors import LOWERED, RAISED
from regard.text.tokenizers import Frame, Tokenizers, learn, load
from regard.text.vectors import MOST_NUMBERS, VECTOR, Vectors, inlined, log_mel, parse, written
from regard.text.vocabulary import Vocabulary


def inline(media: str, data: bytes) -> str:
    return f"data:{media};base64,{base64.b64encode(data).decode()}"


def sound(samples: np.ndarray, rate: int = 8000, width: int = 2, channels: int = 1) -> str:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(width)
        out.setframerate(rate)
        full = 256**width // 2 - 1
        whole = np.round(samples * full).astype(np.int64) + (128 if width == 1 else 0)
        out.writeframes(b"".join(int(one).to_bytes(width, "little", signed=width > 1) for one in whole))
    return inline("audio/wav", file.getvalue())


def array(values: np.ndarray) -> str:
    file = io.BytesIO()
    np.save(file, values)
    return inline("application/x-npy", file.getvalue())


def test_numbers_are_vectors_or_one_channel() -> None:
    values, names = parse("[[1, 2.5], [3, null]]", 4, 40)
    np.testing.assert_array_equal(values, [[1, 2.5], [3, np.nan]])
    assert names == ["1", "2"]
    np.testing.assert_array_equal(parse("[1, 2, 3]", 4, 40)[0], [[1], [2], [3]])


def test_vectors_are_written_as_they_are_read() -> None:
    values = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    values[2, 1] = np.nan
    np.testing.assert_allclose(parse(written(values), 4, 40)[0], values, rtol=1e-6)
    np.testing.assert_array_equal(parse(array(values), 4, 40)[0], values)
    np.testing.assert_allclose(parse(written(values[:, 0]), 4, 40)[0], values[:, :1], rtol=1e-6)


def test_a_table_has_a_header_times_and_holes() -> None:
    table = "time,a,b\n2020-01-01,1,4\n2020-01-02,,5\n2020-01-03,3\n"
    np.testing.assert_array_equal(
        parse(inline("text/csv", table.encode()), 4, 40)[0], [[1, 4], [np.nan, 5], [3, np.nan]]
    )


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("time,a,b\n1,1,4\n2,2,oops\n", r"line 3: b = 'oops': not a number; leave it empty"),
        ("1,4\n2,5x\n", "line 2: 2 = '5x': not a number"),
        ("time;a;b\n0;10,1;4,0\n", r"line 2: 3 cells; 1 would be right, as above: commas separate, and 1\.5"),
    ],
)
def test_a_table_loses_no_column_and_no_number_in_silence(table: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        parse(inline("text/csv", table.encode()), 4, 40)


def test_a_table_may_say_in_several_ways_that_a_number_is_missing() -> None:
    table = "time,a,b,,\n1,n/a,4,,\n2,-,,\n3,None,null\n"
    expected = [[np.nan, 4], [np.nan, np.nan], [np.nan, np.nan]]
    np.testing.assert_array_equal(parse(inline("text/csv", table.encode()), 4, 40)[0][:, :2], expected)


def test_a_picture_is_cut_into_patches_line_by_line() -> None:
    pixels = np.arange(6 * 5, dtype=np.uint8).reshape(6, 5)
    values, names = parse(png(pixels), 3, 40)
    assert names == ["1,1", "1,2", "2,1", "2,2"]
    np.testing.assert_allclose(values[0] * 255, [0, 1, 2, 5, 6, 7, 10, 11, 12])
    np.testing.assert_allclose(values[1] * 255, [3, 4, 0, 8, 9, 0, 13, 14, 0])  # filled up


def test_our_pictures_are_those_that_others_read() -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (7, 4, 3), dtype=np.uint8)
    data = base64.b64decode(png(pixels).partition(",")[2])
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data))), pixels)
    values, _ = parse(png(pixels), 7, 40)
    assert values.shape == (1, 7 * 7 * 3)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_a_tone_is_loudest_in_its_band(width: int) -> None:
    time = np.arange(8000) / 8000
    values, names = parse(sound(0.5 * np.sin(2 * np.pi * 1000 * time), width=width), 4, 20)
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 4000 / 700), 22) / 2595) - 1)
    band = int(np.abs(edges[1:-1] - 1000).argmin())
    assert (values.argmax(1) == band).all()
    assert names[:3] == ["0.00s", "0.01s", "0.02s"]
    assert len(values) == 98  # (8000 - 200) / 80 + 1


def test_channels_of_a_sound_are_averaged() -> None:
    both = np.stack((np.full(900, 0.5), np.full(900, -0.5)), 1).flatten()
    assert (parse(sound(both, channels=2), 4, 20)[0] <= np.log(1e-10) + 1e-9).all()


def test_log_mel_is_the_formula() -> None:
    samples, rate, bands = np.random.default_rng(3).normal(size=500), 4000, 7
    found = log_mel(samples, rate, bands)
    frame = samples[40:140] * np.hanning(100)  # the second: 25 ms, 10 ms later
    power = np.array([abs(sum(frame * np.exp(-2j * np.pi * k * np.arange(100) / 128))) ** 2 for k in range(65)])
    mel = np.linspace(0, 2595 * np.log10(1 + 2000 / 700), bands + 2)
    hertz = 700 * (10 ** (mel / 2595) - 1)
    for band in range(bands):
        low, middle, high = hertz[band : band + 3]
        weights = [
            max(0.0, min((f - low) / (middle - low), (high - f) / (high - middle))) for f in np.arange(65) * rate / 128
        ]
        np.testing.assert_allclose(found[1, band], np.log(max(np.dot(weights, power), 1e-10)), rtol=1e-9)


def test_the_scale_is_learned_and_missing_values_are_said_to_be_missing() -> None:
    texts = ["[[1, 10], [3, null]]", "", "[[5, 30]]"]
    vectors = Vectors.learn(texts, patch=4, bands=40)
    np.testing.assert_allclose(vectors.mean, [3, 20])
    np.testing.assert_allclose(vectors.deviation, [np.std([1, 3, 5]), 10], rtol=1e-8)
    assert vectors.missing == (1,)
    assert vectors.size == 3
    rows = np.array(vectors.encode("[[3, 40], [1, null]]"))
    np.testing.assert_allclose(rows[0], [VECTOR, 0, 2, 0])
    np.testing.assert_allclose(rows[1], [VECTOR, -2 / np.std([1, 3, 5]), 0, 1], rtol=1e-8)
    assert vectors.encode("") == []


def test_a_scale_far_from_zero_and_one_that_is_constant_are_kept_exact() -> None:
    vectors = Vectors.learn([written(np.array([[1e6 + one, 7.0] for one in range(5)]))], patch=4, bands=40)
    np.testing.assert_allclose(vectors.deviation, [np.std(range(5)), 1], rtol=1e-6)


def test_a_reader_of_vectors_comes_back_as_it_was(tmp_path: Path) -> None:
    vectors = Vectors.learn(["[[1, 10], [3, null]]"], patch=2, bands=7)
    vectors.save(tmp_path / "one")
    assert load(tmp_path / "one") == vectors
    pair = Tokenizers(vectors, learn("word", ["one two"]), frame=Frame(after=()))
    pair.save(tmp_path / "both")
    again = Tokenizers.load(tmp_path / "both")
    assert again.read("[[1, 2]]") == pair.read("[[1, 2]]")
    assert len(again.read("[[1, 2]]")) == 1  # nothing stands around vectors


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"mean": "x"}, "no description"), ({"mean": [1.0]}, "1 means, 2 deviations"), ({"missing": [9]}, "2 means")],
)
def test_a_damaged_description_is_refused(change: dict[str, object], problem: str, tmp_path: Path) -> None:
    Vectors.learn(["[[1, 10], [3, null]]"], patch=2, bands=7).save(tmp_path / "one")
    path = tmp_path / "one" / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=problem):
        load(tmp_path / "one")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("three.png", "not numbers"),
        ("[[1, 2], [3]]", "not vectors of one length"),
        ("[]", "not a sequence of vectors"),
        ("[[[1]]]", "not a sequence of vectors"),
        ("[1e999]", "infinite"),
        ("[1, -1e31]", "infinite, or beyond 1e\\+30"),
        ('[["a"]]', "not vectors"),
        ("data:image/png;base64,!", "not base64"),
        ("data:image/png;base64,AAAA", "not a picture"),
        ("data:audio/wav;base64,AAAA", "not a WAV file"),
        ("data:video/mp4;base64,AAAA", "cannot be read"),
        ("data:application/x-npy;base64,AAAA", "not an array"),
        (inline("text/csv", b"\xff\xfe\xff"), "not CSV"),
        (inline("text/csv", b"a,b\n"), "has no column of numbers"),
        (inline("text/csv", b"a,b\n1,2\n3,4o\n"), "line 3: b = '4o': not a number; leave it empty"),
        (sound(np.zeros(0)), "without samples"),
        (array(np.zeros((1 << 12, (1 << 12) + 1), np.uint8)), "at most 16,777,216"),
        (png(np.zeros((2400, 2400), np.uint8)), "a picture of 2400 × 2400"),
    ],
)
def test_what_is_no_sequence_of_vectors_is_refused(text: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        parse(text, 4, 40)


def test_vectors_of_another_width_are_refused() -> None:
    with pytest.raises(DataError, match="line 2: source: has 3 numbers a vector; 2 would be right"):
        Vectors.learn(["[[1, 2]]", "[[1, 2, 3]]"], patch=4, bands=40)
    with pytest.raises(DataError, match="has 1 numbers a vector"):
        Vectors.learn(["[[1, 2]]"], patch=4, bands=40).encode("[1]")
    with pytest.raises(DataError, match="has no numbers"):
        Vectors.learn(["", "[[null]]"], patch=4, bands=40)


def test_a_file_that_a_person_names_stands_in_the_place_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    text = inlined("a.csv", tmp_path)
    np.testing.assert_array_equal(parse(text, 4, 40)[0], [[1, 2], [3, 4]])
    assert inlined(text, tmp_path) == text
    assert inlined("[1, 2]", tmp_path) == "[1, 2]"
    with pytest.raises(DataError, match=r"b\.csv: cannot be read"):
        inlined("b.csv", tmp_path)


# Numbers to batches


def test_a_batch_has_the_numbers_beside_the_ids(tmp_path: Path) -> None:
    vectors = Vectors.learn(["[[1, 2], [3, 4], [5, 7]]"], patch=4, bands=40)
    rows = [("[[1, 2], [3, 4]]", "one two"), ("[[5, 6]]", "two")]
    pair = PairEncoder(Tokenizers(vectors, learn("word", ["one two"]), frame=Frame(after=())))
    shards = prepare(((number, row) for number, row in enumerate(rows)), pair, tmp_path / "shards")
    for examples in (encode_examples(rows, pair), shards):
        batch = collate(examples, np.arange(2), BatchShape(3, 4, 3))
        assert batch.source.shape == (3, 4, 3)
        assert batch.source.dtype == np.float32
        np.testing.assert_allclose(batch.source[0, :2], vectors.encode(rows[0][0]), rtol=1e-6)
        np.testing.assert_allclose(batch.source[1, 0], vectors.encode(rows[1][0])[0], rtol=1e-6)
        assert not batch.source[0, 2:].any()
        assert batch.source[2, 0, 0] != 0  # a filler row has something to read
        assert not batch.source[2, 0, 1:].any()
        assert batch.target_in.dtype == np.int64
    labels = LabelEncoder(vectors, Vocabulary.count(["x", "y"], special=False))
    batch = collate(encode_examples([("[[1, 2]]", "y")], labels), np.arange(1), BatchShape(1, 1, 0))
    assert batch.source.shape == (1, 1, 3)
    assert batch.labels.tolist() == [[1]]


# Sets by name


def test_gold_links_of_a_drawn_shape_are_the_patches_that_it_covers() -> None:
    for seed in range(20):
        picture, caption, links = draw(Random(seed))
        values, _ = parse(picture, PATCH, 40)
        background = np.median(parse(picture, SIDE, 40)[0].reshape(-1, 3), 0)
        inked = {place for place, patch in enumerate(values.reshape(len(values), -1, 3)) if (patch != background).any()}
        pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
        assert {patch for patch, _ in pairs} == inked
        words = caption.split()
        assert {words[word] for _, word in pairs} <= set(words) - {"a", "left", "of", "above"}
        colours = {"red": 0, "green": 1, "blue": 2}
        for patch, word in pairs:
            if (channel := colours.get(words[word])) is not None:
                ink = [one for one in values[patch].reshape(-1, 3) if (one != background).any()]
                assert any(int(np.argmax(one)) == channel for one in ink)


def test_shapes_are_drawn_the_same_each_time_and_written_whole(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_set("shapes", tmp_path / name, 5, 3)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == [
        f"{split}.{kind}" for split in ("test", "train", "valid") for kind in ("links", "vectors", "words")
    ]
    for name in files:
        assert (tmp_path / "one" / name).read_text() == (tmp_path / "two" / name).read_text()
    assert len((tmp_path / "one" / "train.words").read_text().splitlines()) == 5
    with pytest.raises(DataError, match="not empty"):
        write_set("shapes", tmp_path / "one", 5, 3)
    with pytest.raises(SettingsError, match="no such set; did you mean 'digits'"):
        write_set("digit", tmp_path / "three", 5, 3)


def test_digits_are_all_there(tmp_path: Path) -> None:
    folder = write_set("digits", tmp_path / "digits", 1, 1)
    counts = {split: len((folder / f"{split}.words").read_text().splitlines()) for split in ("train", "valid", "test")}
    assert counts == {"train": 1297, "valid": 200, "test": 300}
    lines = [line for split in counts for line in (folder / f"{split}.vectors").read_text().splitlines()]
    assert parse(lines[0], 2, 40)[0].shape == (16, 4)


def test_vowels_are_read_from_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.fable.sets.find_spec", lambda _: None)
    with pytest.raises(ResourceError, match="pip install sktime"):
        write_set("vowels", tmp_path / "vowels", 1, 1)
    data = tmp_path / "sktime" / "datasets" / "data" / "JapaneseVowels"
    data.mkdir(parents=True)
    for part in ("TRAIN", "TEST"):
        lines = "".join(f"{number},2,3:4,5,6:{number}\n" for number in range(1, 10))
        (data / f"JapaneseVowels_{part}.ts").write_text(f"#note\n@dimensions 2\n@data\n{lines}")
    found = type("Spec", (), {"origin": str(tmp_path / "sktime" / "__init__.py")})()
    monkeypatch.setattr("regard.fable.sets.find_spec", lambda _: found)
    folder = write_set("vowels", tmp_path / "vowels", 1, 1)
    np.testing.assert_array_equal(
        parse((folder / "train.vectors").read_text().splitlines()[0], 4, 40)[0], [[1, 4], [2, 5], [3, 6]]
    )
    assert (folder / "valid.speaker").read_text() == "speaker 5\n"
    assert len((folder / "test.speaker").read_text().splitlines()) == 9


def test_a_picture_of_shapes_has_one_caption() -> None:
    for seed in range(50):
        _, caption, links = draw(Random(seed))
        words = caption.split()
        pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
        first, second = ({patch for patch, word in pairs if word == place} for place in (1, len(words) - 1))
        down, across = (
            np.mean([patch // (SIDE // PATCH) for patch in second])
            - np.mean([patch // (SIDE // PATCH) for patch in first]),
            np.mean([patch % (SIDE // PATCH) for patch in second])
            - np.mean([patch % (SIDE // PATCH) for patch in first]),
        )
        along, beside = (across, down) if "left" in words else (down, across)
        assert along > abs(beside) - 1  # patches are four pixels wide


def test_series_are_cut_into_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "statsmodels" / "datasets" / "elnino"
    data.mkdir(parents=True)
    (data / "elnino.csv").write_text(
        '"YEAR","JAN","FEB"\n' + "".join(f"{1950 + year},{year},{year}\n" for year in range(5))
    )
    found = type("Spec", (), {"origin": str(tmp_path / "statsmodels" / "__init__.py")})()
    monkeypatch.setattr("regard.fable.sets.find_spec", lambda _: found)
    folder = write_set("elnino", tmp_path / "elnino", 1, 1)
    parts = [(folder / f"{split}.csv").read_text().splitlines() for split in ("train", "valid", "test")]
    assert [len(part) for part in parts] == [7, 3, 3]
    assert parts[1] == ["time,value", "1953,3", "1953,3"]


def test_half_hours_are_read_from_a_file_of_python_that_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pmdarima" / "datasets").mkdir(parents=True)
    code = "raise SystemExit\nrslt = np.array([\n    10, 20, 30,\n    40, 50, 60, 70, 80, 90, 100]).astype(dtype)\n"
    (tmp_path / "pmdarima" / "datasets" / "taylor.py").write_text(code)
    found = type("Spec", (), {"origin": str(tmp_path / "pmdarima" / "__init__.py")})()
    monkeypatch.setattr("regard.fable.sets.find_spec", lambda _: found)
    folder = write_set("electricity", tmp_path / "electricity", 1, 1)
    parts = [(folder / f"{split}.csv").read_text().splitlines()[1:] for split in ("train", "valid", "test")]
    assert parts[0] == ["2000-06-05 00:00:00,15", "2000-06-05 01:00:00,35", "2000-06-05 02:00:00,55"]
    assert (parts[1], parts[2]) == (["2000-06-05 03:00:00,75"], ["2000-06-05 04:00:00,95"])


def test_arrays_of_several_names_are_told_apart() -> None:
    def packed(**arrays: np.ndarray) -> str:
        file = io.BytesIO()
        np.savez(file, **arrays)
        return inline("application/x-npz", file.getvalue())

    np.testing.assert_array_equal(parse(packed(a=np.ones(2)), 4, 40)[0], [[1], [1]])
    with pytest.raises(DataError, match="the arrays a, b; one would be right"):
        parse(packed(a=np.ones(2), b=np.ones(2)), 4, 40)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(8 * MOST_NUMBERS + 1))
    with pytest.raises(DataError, match=r"an \.npz file of more than"):
        parse(inline("application/x-npz", file.getvalue()), 4, 40)


# Drawing


@pytest.mark.parametrize("image", [True, False])
def test_a_map_of_vectors_is_drawn_on_what_was_read(image: bool, tmp_path: Path) -> None:
    pixels = np.arange(25, dtype=np.uint8).reshape(5, 5)
    values, names = parse(png(pixels), 3, 40)
    curve = tuple(map(tuple, values.T.tolist()))
    rows = ((0.5, -0.25, 0.0, 0.1), (0.0, 0.0, 1.0, 0.0))
    shown = HeatMap("masking", ("one", "two"), tuple(names), rows, "origin", scale="diverging", curve=curve)
    drawn = document(replace(shown, image=png(pixels) if image else ""))
    assert drawn.count("<image ") == (2 if image else 0)
    assert drawn.count(f'color="{RAISED}"') == 7
    assert drawn.count(f'color="{LOWERED}"') == 1
    assert "<title>1,2: -0.25</title>" in drawn
    if image:  # a patch of three pixels of five
        assert 'width="67.2"' in drawn
    assert "<title>1,2: -0.25</title>" not in document(replace(shown, curve=()))
    sizes = list[tuple[int, int]]()
    for name, each in (
        ("panels.png", replace(shown, image=png(pixels) if image else "")),
        ("map.png", replace(shown, curve=())),
    ):
        assert not save_png(each, tmp_path / name)
        with Image.open(tmp_path / name) as opened:
            sizes.append(opened.size)
    assert sizes[0][1] > sizes[1][1] + 200  # what was read stands below the map
