"""``regard explain``: a heat map on stdout, where its numbers come from on stderr, files where asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import corpora_for_tests as small
from pages import asks_for_nothing
from regard.cli.main import run
from regard.errors import ModelError
from regard.explain.alignment import Aligner
from regard.explain.look import look
from regard.explain.trace import Trace
from regard.tasks.load import load_predictor
from regard.trainer.start import start

Capture = pytest.CaptureFixture[str]
CAT = "the cat sees a bird"
BRIEF = ("train.steps=1", "train.validate_every=1", "train.step=eager")
TASKS = {
    "translate": ("transformer-tiny", "model.decoder_depth=2"),
    "plain": ("lstm", "model.depth=1"),
    "tag": ("transformer-tiny", "task=tag", "text.tokenizer=space"),
    "letters": ("transformer-tiny", "task=tag", "text.tokenizer=space", "model.letters=5"),
    "classify": ("transformer-tiny", "task=classify", "pool=mean"),
    "language": ("transformer-tiny", "task=language"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("explained")


def trained(folder: Path, name: str) -> Path:
    """One run of each kind, made when first asked for: do not change it."""
    if not (folder / name).exists():
        preset, *overrides = TASKS[name]
        start(folder / name, small.settings(preset, *BRIEF, *overrides), small.Notes(), device="cpu")
        if name == "translate":
            Aligner(((1, 0),), error_rate=0.25, chosen_on="valid").save(folder / name)  # to choose one takes seconds
    return folder / name


def test_a_heat_map_goes_to_stdout_and_its_origin_to_stderr(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    place = trained(folder, "translate")
    assert run(["explain", str(place), CAT, "--target", "le chat voit un oiseau"]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "le chat voit un oiseau"
    assert lines[2].split() == ["the", "cat", "sees", "a", "bird", "Σ"]
    assert [line.split()[0] for line in lines[3:]] == ["le", "chat", "voit", "un", "oiseau"]
    assert "\x1b" not in shown.out
    assert "weights: cross-attention, layer 2, head 1 (best aligner on valid, AER 0.25)" in shown.err
    assert "log-probability: −" in shown.err


def test_the_numbers_are_the_traces_own(folder: Path, capsys: Capture, tmp_path: Path) -> None:
    place = trained(folder, "translate")
    asked = [
        "--layer",
        "2",
        "--head",
        "1",
        "--pieces",
        "--json",
        "--out",
        str(tmp_path / "cat.safetensors"),
    ]
    assert run(["explain", str(place), CAT, *asked]) == 0
    found = json.loads(capsys.readouterr().out)
    trace = Trace.load(tmp_path / "cat")
    for row, expected in zip(found["picture"]["values"], trace.cross[1, 0].tolist(), strict=True):
        assert row == pytest.approx(expected, abs=1e-6)
        assert sum(row) == pytest.approx(1.0, abs=1e-5)
    assert found["picture"]["origin"] == "cross-attention, layer 2, head 1"
    assert found["source"] == CAT.split()


def test_files_are_written_and_named(folder: Path, capsys: Capture, tmp_path: Path) -> None:
    place = trained(folder, "translate")
    files = [f"--out={tmp_path / f'cat.{kind}'}" for kind in ("html", "svg", "png")]
    assert run(["explain", str(place), CAT, *files]) == 0
    asks_for_nothing((tmp_path / "cat.html").read_text(encoding="utf-8"))
    ElementTree.fromstring((tmp_path / "cat.svg").read_text(encoding="utf-8"))
    assert (tmp_path / "cat.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err.count("wrote ") == 3


def test_all_heads_are_a_table_here_and_small_pictures_in_files(folder: Path, capsys: Capture, tmp_path: Path) -> None:
    place = trained(folder, "translate")
    files = [f"--out={tmp_path / f'cat.{kind}'}" for kind in ("svg", "png")]
    assert run(["explain", str(place), CAT, "--head", "all", "--side", "cross", *files]) == 0
    table = capsys.readouterr().out.splitlines()[2:]
    assert [line.split()[0] for line in table] == ["head", "1.1", "1.2", "2.1", "2.2"]
    root = ElementTree.fromstring((tmp_path / "cat.svg").read_text(encoding="utf-8"))
    assert len([each for each in root.iter() if each.get("class") == "thumb"]) == 4
    assert (tmp_path / "cat.png").exists()


def test_letters_without_a_font_are_named(
    folder: Path, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.show.png.fonts_for", lambda _: (["DejaVu Sans"], "कख"))
    assert run(["explain", str(trained(folder, "translate")), CAT, "--out", str(tmp_path / "x.png")]) == 0
    assert "x.png: no font here has क ख; install one, such as Noto Sans" in capsys.readouterr().err


def test_edits_say_what_they_did(folder: Path, capsys: Capture) -> None:
    place = str(trained(folder, "translate"))
    edits = [
        "--edit",
        '{"kind": "replace-word", "word": 1, "by": "dog"}',
        "--edit",
        '[{"kind": "mask-word", "word": 0}]',
    ]
    assert run(["explain", place, CAT, *edits]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["before", "same,", "anew,", "difference"]
    assert "dog" in "\n".join(lines)
    assert run(["explain", place, CAT, *edits, "--json", "--target", "le chat"]) == 0
    found = json.loads(capsys.readouterr().out)["what_if"]
    assert found["texts"][0] == "le chat"
    before, _, after = found["log_probability"]
    assert found["difference"] == pytest.approx(after - before)
    assert [each["kind"] for each in found["edits"]] == ["replace-word", "mask-word"]


@pytest.mark.parametrize("name", ["plain", "tag", "letters", "classify", "language"])
def test_every_task_can_be_looked_into(name: str, folder: Path, capsys: Capture, tmp_path: Path) -> None:
    place = trained(folder, name)
    assert run(["explain", str(place), CAT, "--out", str(tmp_path / "x.html")]) == 0
    shown = capsys.readouterr()
    assert "bird" in shown.out
    origin = {"plain": "shares: norm of the gradient", "language": "weights: decoder"}.get(name, "weights: encoder")
    assert origin in shown.err
    asks_for_nothing((tmp_path / "x.html").read_text(encoding="utf-8"))


MISTAKES = {
    "an empty sentence": ([""], 3, "text = '': an empty sentence has nothing to look into; give it a word"),
    "an empty sentence with edits": (["", "--edit", '{"kind": "mask-word", "word": 0}'], 3, "an empty sentence"),
    "an empty reference's source": (["", "--target", "le"], 3, "an empty sentence has nothing to look into"),
    "no such head": (["--layer", "1", "--head", "9", CAT], 3, "head = 9: this model has no such head; 1 to 2"),
    "no such layer": (["--layer", "9", CAT], 3, "layer = 9: this model has no such layer; 1 to 2"),
    "no such side": (["--side", "corss", CAT], 2, "side = corss: no such attention; did you mean 'cross'?"),
    "an edit past the end": (
        [CAT, "--edit", '{"kind": "mask-word", "word": 99}'],
        3,
        "word = 99: the sentence has no such word; 0 to 4 would be right",
    ),
    "a replacement past the end": (
        [CAT, "--edit", '{"kind": "replace-word", "word": 5, "by": "x"}'],
        3,
        "word = 5: the sentence has no such word",
    ),
    "an edit that is no JSON": ([CAT, "--edit", "mask 3"], 2, "--edit = mask 3: is not JSON"),
    "an edit too deep": ([CAT, "--edit", "[" * 9999], 2, "is not JSON"),
    "an edit of no kind": ([CAT, "--edit", '{"kind": "mask-wrd"}'], 3, "did you mean 'mask-word'?"),
    "a file in a file": ([CAT, "--out", "{tmp}/file/x.svg"], 5, "file: is a file where a folder should be"),
    "a picture in a file": ([CAT, "--out", "{tmp}/file/x.png"], 5, "file: is a file where a folder should be"),
    "a trace in a file": ([CAT, "--out", "{tmp}/file/x.safetensors"], 5, "file: is a file where a folder should be"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_one_line(name: str, folder: Path, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    arguments, code, line = MISTAKES[name]
    given = [word.replace("{tmp}", str(tmp_path)) for word in arguments]
    assert run(["explain", str(trained(folder, "translate")), *given]) == code
    shown = capsys.readouterr()
    assert line in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert shown.out == ""


def test_attention_that_is_not_there_is_said_so(folder: Path, capsys: Capture) -> None:
    assert run(["explain", str(trained(folder, "plain")), CAT, "--side", "encoder"]) == 4
    assert "this model has no self-attention in an encoder" in capsys.readouterr().err
    assert run(["explain", str(trained(folder, "plain")), CAT, "--head", "all"]) == 4
    assert "attends to no source" in capsys.readouterr().err


def test_what_only_translations_have_is_refused_elsewhere(folder: Path) -> None:
    with pytest.raises(ModelError, match="target: run 'tag' does not translate"):
        look(load_predictor(trained(folder, "tag")), CAT, target="x", name="tag")


MUTED = '{"kind": "mute-head", "attention": "%s.0.self", "head": 0}'


@pytest.mark.parametrize("name", ["tag", "letters", "classify", "language"])
def test_every_task_can_be_asked_what_if(name: str, folder: Path, capsys: Capture, tmp_path: Path) -> None:
    place, page = str(trained(folder, name)), tmp_path / "x.html"
    side = "decoder" if name == "language" else "encoder"
    edits = ["--edit", '{"kind": "replace-word", "word": 1, "by": "dog"}', "--edit", MUTED % side]
    assert run(["explain", place, CAT, *edits, "--out", str(page)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["before", "same,", "anew,", "difference"]
    assert "What if" in page.read_text(encoding="utf-8")
    assert run(["explain", place, CAT, *edits, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["what_if"]
    before, same, _ = found["log_probability"]
    assert sum(found["fall"]) == pytest.approx(before - same, abs=1e-5)
    assert len(found["texts"][0].split()) >= {"classify": 1}.get(name, 5)


def test_pages_of_labels_show_what_each_word_was_worth(folder: Path, capsys: Capture, tmp_path: Path) -> None:
    for name, told in (("letters", "bird "), ("classify", "effect of masking")):
        page = tmp_path / f"{name}.html"
        assert run(["explain", str(trained(folder, name)), CAT, "--out", str(page)]) == 0
        written = page.read_text(encoding="utf-8")
        assert "how much less probable each label gets when a word is masked." in written
        assert told in written
    capsys.readouterr()


# What each word did


def test_a_method_draws_its_own_map(folder: Path, capsys: Capture, tmp_path: Path) -> None:
    place, page = str(trained(folder, "translate")), tmp_path / "x.html"
    assert run(["explain", place, CAT, "--by", "alti", "--out", str(page)]) == 0
    seen = capsys.readouterr()
    assert "shares: ALTI+: how near each token's part is to a block's output" in seen.err
    assert "completeness error" in seen.err
    assert "the source's share of all: " in seen.err
    assert "ALTI+: how near" in page.read_text(encoding="utf-8")
    assert run(["explain", place, CAT, "--by", "integrated-gradients"]) == 0
    told = capsys.readouterr().err
    assert re.search(r"; quadrature error \d+\.\d%, then weights were fitted to the sum", told)
    assert "completeness error" not in told  # zero by construction
    assert run(["explain", place, CAT, "--by", "saliency of entropy", "--side", "decoder", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["attribution"]["of"] == "entropy"
    assert found["picture"]["values"] == found["attribution"]["prefix"]


def test_why_this_word_and_not_that(folder: Path, capsys: Capture) -> None:
    place = str(trained(folder, "translate"))
    told = ["--target", "le chat voit un oiseau"]
    assert run(["explain", place, CAT, *told, "--not", "chien"]) == 0
    seen = capsys.readouterr()
    assert "log p of the word less log p of chien: decrease when the word" in seen.err
    assert " not chien: " in seen.err
    assert run(["explain", place, CAT, *told, "--by", "gradient", "--not", "le chien voit un oiseau", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["attribution"]
    assert (found["rows"], found["step"] > 0) == (["chat"], True)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["--by", "alty"], "method = alty: no such method; did you mean 'alti'?"),
        (["--by", "alti", "--not", "chien"], "against = chien: alti explains a state"),
        (
            ["--by", "masking", "--head", "all"],
            "--head = all: --by makes one map of all heads; use only one of the two",
        ),
    ],
)
def test_a_map_that_has_no_meaning_is_refused(folder: Path, capsys: Capture, given: list[str], line: str) -> None:
    assert run(["explain", str(trained(folder, "translate")), CAT, *given]) == 2
    assert line in capsys.readouterr().err
