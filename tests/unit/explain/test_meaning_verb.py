"""``regard meaning``: one word in several sentences, layer by layer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import corpora_for_tests as small
from pages import asks_for_nothing
from regard.cli.main import run
from regard.errors import DataError
from regard.explain.alignment import Aligner
from regard.explain.meaning import Compared, compare_meanings
from regard.show.page import meaning_page, meaning_svg
from regard.tasks.load import load_predictor
from regard.trainer.start import start

Capture = pytest.CaptureFixture[str]
SENTENCES = ["the cat sees a bird", "a small cat slept", "the king saw the cat"]
BRIEF = ("train.steps=1", "train.validate_every=1", "train.step=eager")
RUNS = {
    "translate": ("transformer-tiny", "model.encoder_depth=2"),
    "tag": ("lstm", "task=tag", "text.tokenizer=space", "model.letters=5"),
    "classify": ("transformer-tiny", "task=classify"),
    "language": ("gru", "task=language"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("meant")


def trained(folder: Path, name: str) -> Path:
    """One run of each kind, made when first asked for: do not change it."""
    if not (folder / name).exists():
        preset, *overrides = RUNS[name]
        start(folder / name, small.settings(preset, *BRIEF, *overrides), small.Notes(), device="cpu")
        if name == "translate":
            Aligner().save(folder / name)  # to choose one takes seconds
    return folder / name


def compared(folder: Path, word: str, sentences: list[str]) -> Compared:
    return compare_meanings(load_predictor(folder), word, sentences, folder=folder)


def test_cosines_by_layer_are_printed_with_a_control_word(folder: Path, capsys: Capture) -> None:
    assert run(["meaning", str(trained(folder, "translate")), "cat", *SENTENCES, "--control", "the"]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("cosine"))
    assert lines[head].split() == ["cosine", "1–2", "1–3", "2–3", "the"]
    assert lines[head + 1].split() == ["embedding", "1.00", "1.00", "1.00", "1.00"]
    assert [line.split()[1] for line in lines[head + 2 : head + 4]] == ["1", "2"]
    assert "nearest at the last layer" in lines
    assert "→" in shown.out
    assert "validation sentences" in shown.err


def test_numbers_are_plain_and_whole(folder: Path, capsys: Capture) -> None:
    assert run(["meaning", str(trained(folder, "translate")), "cat", *SENTENCES, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["layers"] == ["embedding", "layer 1", "layer 2"]
    assert [place["word"] for place in found["places"]] == [1, 2, 4]
    assert [len(layer) for layer in found["points"]] == [3, 3, 3]
    for layer in found["cosines"]:
        assert [layer[place][place] for place in range(3)] == pytest.approx([1.0] * 3)
    assert all(len(place["neighbours"]) == 5 for place in found["places"])
    assert found["control_cosines"] == []


@pytest.mark.parametrize("name", ["translate", "tag", "classify"])
def test_pages_and_pictures_are_written(name: str, folder: Path, capsys: Capture, tmp_path: Path) -> None:
    page, picture = tmp_path / "cat.html", tmp_path / "cat.svg"
    files = ["--out", str(page), "--out", str(picture)]
    assert run(["meaning", str(trained(folder, name)), "cat", *SENTENCES, "--control", "the", *files]) == 0
    assert capsys.readouterr().out == ""
    asks_for_nothing(page.read_text(encoding="utf-8"))
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    circles = [each for each in root.iter() if each.tag.endswith("circle")]
    layers = 3 if name == "translate" else 2
    assert len(circles) == layers * 3  # of the word alone: the control would take the axes for itself
    texts = [each for each in root.iter() if each.tag.endswith("text")]
    numbers = [each for each in texts if set(each.text or "") <= set("123, ")]
    assert sorted(" ".join(str(each.text) for each in numbers).replace(",", "").split()) == sorted("123" * layers)
    for label in numbers:  # beside a point, never elsewhere
        near = [abs(float(label.attrib["y"]) - 4 - float(dot.attrib["cy"])) for dot in circles]
        assert min(near) < 0.01


def test_one_sentence_is_shown_without_comparing(folder: Path, capsys: Capture) -> None:
    assert run(["meaning", str(trained(folder, "classify")), "cat", SENTENCES[0]]) == 0
    assert "cosine " not in capsys.readouterr().out
    assert "and so nothing to compare" in meaning_page(compared(trained(folder, "classify"), "cat", SENTENCES[:1]))


def test_without_its_validation_text_neighbours_are_of_the_same_sentences(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: object) -> None:
        raise DataError("valid.en: is not there")

    monkeypatch.setattr("regard.explain.meaning.materials", gone)
    found = compared(trained(folder, "classify"), "cat", SENTENCES)
    assert found.among == "the words of these sentences"
    assert {near.sentence for layer in found.neighbours for place in layer for near in place} <= {*SENTENCES}
    assert "Among the words of these sentences." in meaning_page(found)


def test_markup_in_a_sentence_is_text(folder: Path) -> None:
    found = compared(trained(folder, "classify"), "cat", ["<script>x</script> cat", SENTENCES[0]])
    page = meaning_page(found)
    assert "<script>x" not in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page
    ElementTree.fromstring(meaning_svg(found))


def test_labels_of_points_do_not_stand_upon_one_another(folder: Path) -> None:
    found = compared(trained(folder, "classify"), "cat", [SENTENCES[0]] * 9)
    same = replace(found, points=torch.full_like(found.points, 0.5))
    root = ElementTree.fromstring(meaning_svg(same))
    for panel in next(each for each in root if each.tag.endswith("}g")):
        labels = [each for each in panel if each.tag.endswith("text")][2:]
        assert ["".join(each.itertext()) for each in labels] == ["1, 2, 3, 4, 5, 6, 7, 8, 9"]


@pytest.mark.parametrize(
    ("name", "arguments", "code", "line"),
    [
        ("translate", ["dog", *SENTENCES], 3, "word = dog: does not stand in 'the cat sees a bird'"),
        (
            "translate",
            ["cat", *SENTENCES, "--control", "king"],
            3,
            "control = king: is in only one of the sentences;",
        ),
        ("language", ["cat", *SENTENCES], 4, "a language model has no encoder"),
    ],
)
def test_a_mistake_gets_one_line(
    name: str, arguments: list[str], code: int, line: str, folder: Path, capsys: Capture
) -> None:
    assert run(["meaning", str(trained(folder, name)), *arguments]) == code
    shown = capsys.readouterr()
    assert line in shown.err
    assert len(shown.err.strip().splitlines()) == 1


def test_no_sentence_has_no_word(folder: Path) -> None:
    with pytest.raises(DataError, match="sentences = 0"):
        compared(trained(folder, "classify"), "cat", [])
