"""Labellers that read letters: traces, importance and meaning see what the model sees."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.functional import normalize

import regard
import tiny
from regard.errors import DataError
from regard.explain.attribution import word_map
from regard.explain.meaning import cosines, find, layers, meaning, nearest, spelled, words_of
from regard.explain.recurrent import saliency
from regard.explain.replay import PLAIN, Spelling, replay
from regard.explain.trace import Trace, spell
from regard.models.generator import Labeller
from regard.nn.observe import Recorder
from regard.tasks.labels import Reader
from regard.text.vocabulary import PAD, UNK
from regard.text.words import WordTokenizer

TOKENIZER = WordTokenizer.learn([" ".join(f"w{number}" for number in range(19))])
READER = Reader(TOKENIZER, 5, torch.device("cpu"))
TEXT = "w1 nobody w2"  # the middle one has only its letters
ROWS = READER.text(TEXT)


def tagger(preset: str = "transformer-tiny", pool: str | None = None) -> Labeller:
    torch.manual_seed(0)
    return regard.labeller(tiny.settings(preset, "model.letters=5").model, TOKENIZER.size, 7, pool).double().eval()


def direct(model: Labeller, rows: list[list[int]]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([rows]))[0].log_softmax(-1)


@pytest.mark.parametrize("preset", ["transformer-tiny", "lstm", "lstm-reversed"])
def test_a_trace_shows_what_the_model_used(preset: str, tmp_path: Path) -> None:
    model, watch = tagger(preset), Recorder()
    with torch.no_grad():
        model(torch.tensor([ROWS]), observer=watch)
    trace = replay(model, ROWS, spelling=Spelling(TOKENIZER, source_text=TEXT))
    torch.testing.assert_close(trace.tensors["encoder.states"], watch["encoder.states"][0])
    torch.testing.assert_close(trace.log_probability, direct(model, ROWS).max(-1).values)
    assert trace.source.words == ("w1", "nobody", "w2")
    assert trace.source.rows == ROWS
    trace.save(tmp_path / "seen")
    assert Trace.load(tmp_path / "seen").source == trace.source


def test_a_word_blanked_out_has_no_letters_either() -> None:
    model = tagger()
    labels = direct(model, ROWS).argmax(-1).tolist()
    written = PLAIN.spell_target(model, labels)
    effect = word_map(model, spell(ROWS, TOKENIZER, TEXT), written)
    assert effect.columns == ("w1", "nobody", "w2")
    other = [ROWS[0], READER.text("somebody")[0], ROWS[2]]
    again = word_map(model, spell(other), written)
    blank = direct(model, ROWS).gather(1, torch.tensor(labels)[:, None])[:, 0] - effect.weights[:, 1]
    other_blank = direct(model, other).gather(1, torch.tensor(labels)[:, None])[:, 0] - again.weights[:, 1]
    torch.testing.assert_close(blank, other_blank)  # whatever stood there
    unknown = word_map(model, spell(ROWS), written, "masking-unknown")
    put = [ROWS[0], [UNK, *[PAD] * 5], ROWS[2]]
    expected = (direct(model, ROWS) - direct(model, put)).gather(1, torch.tensor(labels)[:, None])[:, 0]
    torch.testing.assert_close(unknown.weights[:, 1], expected)


def test_gradients_reach_words_with_letters() -> None:
    model = tagger("lstm")
    assert word_map(model, spell(ROWS), PLAIN.spell_target(model, [1, 0, 1]), "gradient").weights.shape == (3, 3)
    assert saliency(model, ROWS, [1, 0, 1]).min() >= 0
    assert float(saliency(model, ROWS, [1, 0, 1]).max()) > 0


def test_an_unknown_word_means_what_its_letters_say() -> None:
    model = tagger()
    one, other = (layers(model, TOKENIZER, text, letters=5) for text in (TEXT, "w1 somebody w2"))
    assert not torch.allclose(one[0][1], other[0][1])
    torch.testing.assert_close(one[0][0], other[0][0])
    found = meaning(model, TOKENIZER, find("nobody", [TEXT, "nobody w1"]), letters=5)
    assert cosines(found)[0].min() == pytest.approx(1.0)
    words, vectors = words_of(model, TOKENIZER, [TEXT], letters=5)
    near = nearest(one[0][1], words, normalize(vectors[0], dim=-1), 1)
    assert spelled(near[0][0]) == "nobody"
    with pytest.raises(DataError, match="0 with letters: this model reads them"):
        layers(model, TOKENIZER, TEXT)
