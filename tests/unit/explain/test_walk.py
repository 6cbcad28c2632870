"""`regard walk`: a text through a run of any task, step by step."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import torch

import corpora_for_tests as small
from regard.cli.main import run
from regard.errors import DataError
from regard.explain.walkthrough import render
from regard.explain.walkthrough.example import example
from regard.explain.walkthrough.walk import walk_text
from regard.tasks.load import load_predictor
from regard.tasks.tag import Tagger
from regard.tasks.translator import Translator
from regard.text.vocabulary import END
from regard.trainer.start import start

Capture = pytest.CaptureFixture[str]
TEXT = "the black cat ate the mouse"
QUICK = ("train.steps=4", "train.validate_every=4")
RUNS = {
    "translate": ("transformer-tiny",),
    "tag": ("lstm", "task=tag"),
    "classify": ("transformer-tiny", "task=classify"),
    "language": ("gru", "task=language"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("walks")


@cache
def trained(folder: Path, task: str) -> Path:
    """One run a task, hardly trained at all, shared by the tests: do not change it."""
    torch.manual_seed(0)
    preset, *overrides = RUNS[task]
    start(folder / task, small.settings(preset, *QUICK, *overrides), small.Notes(), device="cpu")
    return folder / task


def test_a_text_is_walked_through_in_the_terminal(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")  # no line is broken
    assert run(["walk", str(trained(folder, "translate")), TEXT, "--head", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{TEXT} → ")
    assert "layer 1, head 2" in out
    for title in ("Pieces", "Queries Q", "Masked scores", "Softmax: the weights", "Probability of the word written"):
        assert f". {title}  (" in out


def test_it_writes_a_page_and_json(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    page, run_folder = tmp_path / "pages" / "walk.md", str(trained(folder, "translate"))
    assert run(["walk", run_folder, TEXT, "--side", "cross", "--out", str(page), "--json"]) == 0
    printed = capsys.readouterr()
    content = json.loads(printed.out)
    assert {step["part"] for step in content["steps"]} == {"cross"}
    assert printed.err.strip() == f"{len(content['steps'])} steps: {page}"
    assert "## Attention to the source" in page.read_text(encoding="utf-8")
    assert run(["walk", run_folder, TEXT, "--out", str(page)]) == 0
    assert capsys.readouterr().out == ""
    assert "## Encoder" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["--layer", "2"], 2, "--layer = 2: the encoder has 1 layer; 1 would be right"),
        (["--head", "0"], 2, "--head = 0: a layer of the encoder has 2 heads; 1 to 2 would be right"),
        (["--word", "7", "--side", "encoder"], 2, "--word = 7: the text has 6 words; 1 to 6 would be right"),
        (["--word", "99"], 2, "--word = 99: the translation has"),
        (["--side", "decodr"], 2, "--side = decodr: no such side; did you mean 'decoder'?"),
    ],
)
def test_what_is_not_there_is_said_in_one_line_counted_from_one(
    folder: Path, capsys: Capture, arguments: list[str], code: int, line: str
) -> None:
    assert run(["walk", str(trained(folder, "translate")), TEXT, *arguments]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(line)
    assert len(printed.err.splitlines()) == 1


@pytest.mark.parametrize("task", RUNS)
def test_an_empty_sentence_has_nothing_to_walk_through(folder: Path, task: str) -> None:
    with pytest.raises(DataError, match="an empty sentence has nothing to walk through"):
        walk_text(load_predictor(trained(folder, task)), " \n")


@pytest.mark.parametrize("task", RUNS)
def test_runs_of_every_task_are_walked_through(folder: Path, task: str) -> None:
    predictor = load_predictor(trained(folder, task))
    walk = walk_text(predictor, TEXT)
    for step in walk:
        result = step.run()
        largest = max(1.0, float(step.output.double().nan_to_num(0, 0, 0).abs().max()))
        torch.testing.assert_close(result, step.output, rtol=0, atol=1e-6 * largest)
    assert 0 < float(walk["probability"].output) < 1
    if task == "translate":
        assert isinstance(predictor, Translator)
        assert walk.target.words == tuple(predictor.translate(TEXT).text.split())
        assert walk_text(predictor, TEXT, word=2, side="encoder").position == 2
    else:
        assert walk_text(predictor, TEXT, word=5).position == 5
        with pytest.raises(DataError, match="word = 6: the text has 6 words"):
            walk_text(predictor, TEXT, word=6)


@pytest.mark.parametrize(
    ("task", "title"),
    [
        ("translate", "Probability of the word written"),
        ("language", "Probability of the next word"),
        ("tag", "Probability of the label given"),
        ("classify", "Probability of the label given"),
    ],
)
def test_the_last_step_speaks_of_what_the_task_gives(folder: Path, task: str, title: str) -> None:
    walk = walk_text(load_predictor(trained(folder, task)), TEXT)
    assert walk["probability"].title == title
    if task in ("tag", "classify"):
        assert "label" in walk["logits"].idea
        assert "word" not in walk["probabilities"].idea


def test_rows_of_a_decoders_attention_are_named_after_the_piece_predicted(folder: Path) -> None:
    walk = walk_text(load_predictor(trained(folder, "translate")), TEXT)
    weights = next(step for step in walk if step.part == "cross" and step.name.endswith("weights"))
    assert weights.axes[0].name == "predicted"
    assert set(weights.axes[0].labels) <= set(walk.target.pieces)


def test_weight_and_colour_are_for_titles_the_marked_row_and_code() -> None:
    styles = [
        "── Encoder ──",
        "3. Queries Q  (encoder.0.self.queries)",
        "   ▸ cat  0.1",
        "   │ result = x",
        "   q = W x",
    ]
    assert [str(render.styled(line).style) for line in styles] == ["bold cyan", "bold", "bold green", "dim", ""]


def test_a_label_is_named(folder: Path) -> None:
    tagger = load_predictor(trained(folder, "tag"))
    assert isinstance(tagger, Tagger)
    axis = walk_text(tagger, TEXT, word=2)["probabilities"].axes[0]
    assert axis.labels == tuple(map(tagger.labels.token, axis.shown))
    assert tagger.tag([TEXT])[0].tags[2] == axis.labels[0]


def test_the_built_in_example_gives_the_known_numbers() -> None:
    walk = example()
    close = {"rtol": 0.0, "atol": 5e-5}
    numbers = {step.name.rpartition(".")[2]: step.output for step in walk}
    products = torch.tensor([[2, 0, 2], [0, 2, 2], [2, 2, 4]], dtype=torch.float64)
    torch.testing.assert_close(numbers["products"], products, rtol=0, atol=1e-12)
    torch.testing.assert_close(numbers["scores"], products / 2, rtol=0, atol=1e-12)
    weights = [[0.4223, 0.1554, 0.4223], [0.1554, 0.4223, 0.4223], [0.2119, 0.2119, 0.5761]]
    torch.testing.assert_close(numbers["weights"], torch.tensor(weights, dtype=torch.float64), **close)
    outputs = [[0.8446, 0.5777, 0.8446, 0.5777], [0.5777, 0.8446, 0.5777, 0.8446], [0.7881] * 4]
    torch.testing.assert_close(numbers["contexts"], torch.tensor(outputs, dtype=torch.float64), **close)
    for step in walk:
        torch.testing.assert_close(step.run(), step.output, rtol=0, atol=1e-12)
    assert walk["encoder.0.self.weights"].axes[1].labels == ("The", "cat", "sat")


def test_a_translation_without_a_word_is_walked_to_its_end(folder: Path) -> None:
    predictor = load_predictor(trained(folder, "translate"))
    assert isinstance(predictor, Translator)
    with torch.no_grad():
        predictor.model.decoder.output.bias[END] = 100.0  # type: ignore[union-attr,operator]
    walk = walk_text(predictor, TEXT)
    assert walk.target.pieces == ("<end>",)
    assert float(walk["probability"].output) > 0.999
    with pytest.raises(DataError, match="word = 1: the translation has no words; leave it out"):
        walk_text(predictor, TEXT, word=1)
