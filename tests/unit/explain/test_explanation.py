"""One sentence from inside: what is shown is what the trace holds, as a picture, a page and in a notebook."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import pytest
import torch
from markupsafe import escape

import regard
import tiny
from pages import asks_for_nothing, read
from regard.errors import DataError, ModelError, SettingsError
from regard.explain.alignment import Aligner
from regard.explain.edits import MaskWord, ReplaceWord, what_if
from regard.explain.look import Looked
from regard.explain.replay import Spelling, replay
from regard.explain.trace import OUTSIDE, fold, so_far
from regard.explain.views import (
    View,
    _between,
    apart,
    attention_map,
    difference_map,
    first_view,
    gate_maps,
    head_maps,
    masking_map,
    saliency_map,
    sides_of,
    state_maps,
)
from regard.show.explanation_page import explanation_page
from regard.show.page import notebook_fragment
from regard.tasks.translator import Translator
from regard.text import Tokenizers, WordTokenizer
from regard.text.vocabulary import END

SOURCES = ["the cat sleeps", "<script>alert(1)</script> & co", "القطة السوداء", "काली बिल्ली"]
TARGETS = ["le chat dort", 'l\'ours & "co"', "कुत्ता सोता है", "القطة نائمة"]
CAT = "the cat sleeps"


@cache
def translator(preset: str = "transformer-tiny") -> Translator:
    """Untrained, with words of four scripts. Shared between tests: do not change it."""
    torch.manual_seed(0)
    tokenizers = Tokenizers(WordTokenizer.learn(SOURCES), WordTokenizer.learn(TARGETS))
    model = regard.encoder_decoder(tiny.settings(preset).model, tokenizers.source.size, tokenizers.target.size)
    return Translator((model.eval(),), tokenizers, torch.device("cpu"))


def explained(preset: str = "transformer-tiny", source: str = CAT, target: str = 'l\'ours & "co"') -> Looked:
    return translator(preset).explain(source, target)


def close(values: object, expected: torch.Tensor) -> None:
    torch.testing.assert_close(torch.tensor(values), expected.double(), rtol=0, atol=1e-6, check_dtype=False)


# Views


@pytest.mark.parametrize("side", ["cross", "encoder", "decoder"])
def test_one_head_between_pieces_is_the_trace_itself(side: str) -> None:
    trace = explained().trace
    weights = {"cross": trace.cross, "encoder": trace.encoder_self, "decoder": trace.decoder_self}[side]
    picture = attention_map(trace, View(side, layer=2, head="3", words=False, special=True))
    close(picture.values, weights[1, 2])
    assert picture.totals == pytest.approx([1.0] * len(picture.rows), abs=1e-5)
    assert picture.origin.endswith("attention, layer 2, head 3")
    assert len(picture.rows) == weights.shape[-2]
    assert len(picture.columns) == weights.shape[-1]


def test_words_are_folded_and_special_tokens_left_out_with_a_word_about_it() -> None:
    trace = explained().trace
    picture = attention_map(trace, View(layer=1, head="1"))
    assert picture.rows == ("l'ours", "&", '"co"')
    assert picture.columns == ("the", "cat", "sleeps")
    close(picture.values, fold(trace.cross[0, 0], trace.target, trace.source, special=False).weights)
    assert "what is missing from Σ = 1 is on special tokens" in picture.origin
    whole = attention_map(trace, View(layer=1, head="1", special=True))
    assert whole.columns[-1] == "<end>"
    assert whole.totals == pytest.approx([1.0] * len(whole.rows), abs=1e-5)
    assert "missing" not in whole.origin


def test_what_a_window_takes_away_is_not_said_to_be_on_special_tokens() -> None:
    """Of rows of 0.8 a quarter is on <end>, or nothing; rows of ReLU may be all zero."""
    trace = explained().trace
    for total, end, remark in (
        (1.0, 0.25, "; what is missing from Σ = 1 is on special tokens"),
        (1.0, 0.0, ""),
        (0.8, 0.25, "; special tokens are left out; the weights of a window or of ReLU need not sum to 1"),
        (0.8, 0.0, "; the weights of a window or of ReLU need not sum to 1"),
        (0.0, 0.0, "; the weights of a window or of ReLU need not sum to 1"),
    ):
        weights = torch.zeros(len(trace.target), len(trace.source))
        weights[:, 0], weights[:, -1] = total * (1 - end), total * end
        assert _between(trace, weights, View(), "here").origin == f"here{remark}"
    assert _between(trace, weights, View(special=True), "here").origin.endswith("need not sum to 1")


def test_a_row_of_the_decoder_is_the_word_it_predicted_and_a_column_what_it_had_read() -> None:
    trace = explained().trace
    picture = attention_map(trace, View("decoder", head="mean", words=False, special=True))
    assert picture.columns == ("<start>", "l'", "‿ours", "&", '"', "‿co", '‿"')
    assert picture.rows == ("l'", "‿ours", "&", '"', "‿co", '‿"', "<end>")
    assert so_far(trace.target).pieces == trace.inputs
    assert all(value == 0 for row, values in enumerate(picture.values) for value in values[row + 1 :])
    assert apart(trace.source).word_of[-1] == OUTSIDE


def test_the_best_is_what_the_aligner_reads_and_says() -> None:
    trace = explained().trace
    aligner = Aligner(((0, 1), (1, 2)), error_rate=0.04, chosen_on="valid")
    picture = attention_map(trace, View(words=False, special=True), aligner)
    close(picture.values, (trace.cross[0, 1] + trace.cross[1, 2]) / 2)
    assert picture.origin == "cross-attention, mean of heads 1.2 + 2.3 (best aligner on valid, AER 0.04)"
    late = attention_map(trace, View(words=False, special=True), Aligner(((0, 1),), late=True))
    close(late.values[:-1], trace.cross[0, 1, 1:])
    assert late.origin.endswith("; each row is that of the step that read the word")


def test_means_say_of_what() -> None:
    trace = explained().trace
    assert attention_map(trace, View(head="mean", special=True)).origin == "cross-attention, mean of all 6 heads"
    some = attention_map(trace, View("encoder", 2, "mean", words=False, special=True))
    close(some.values, trace.encoder_self[1].mean(0))
    assert some.origin == "encoder self-attention, layer 2, mean of its 3 heads"
    recurrent = explained("bahdanau").trace
    assert attention_map(recurrent, View(head="mean", special=True)).origin == "cross-attention, its one head"
    assert attention_map(recurrent, View(head="1", special=True)).origin == "cross-attention, layer 1, head 1"
    only = attention_map(recurrent, View(layer=1, head="mean", special=True))
    assert only.origin == "cross-attention, layer 1, its one head"


MISTAKES = {
    "a side": (View("crss"), SettingsError, "side = crss: no such attention; did you mean 'cross'?"),
    "a layer": (View(layer=3, head="1"), DataError, "layer = 3: this model has no such layer; 1 to 2 would be right"),
    "layer 0": (View(layer=0), DataError, "layer = 0"),
    "a head": (View(layer=1, head="4"), DataError, "head = 4: this model has no such head; 1 to 3 would be right"),
    "no layer": (View(head="1"), SettingsError, "head = 1: of which layer? give --layer too, 1 to 2"),
    "a word": (View(head="bst"), SettingsError, "head = bst: not a head; a number from 1, 'mean' or 'best'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_view_that_is_not_there_gets_a_line(name: str) -> None:
    view, kind, line = MISTAKES[name]
    with pytest.raises(kind) as problem:
        attention_map(explained().trace, view)
    assert line in str(problem.value)


def test_every_head_has_its_picture() -> None:
    trace = explained().trace
    grid = head_maps(trace, View(words=False, special=True))
    assert [[picture.title for picture in line] for line in grid] == [["1.1", "1.2", "1.3"], ["2.1", "2.2", "2.3"]]
    for layer, line in enumerate(grid):
        for head, picture in enumerate(line):
            close(picture.values, trace.cross[layer, head])


def test_masking_and_its_difference_from_attention_are_drawn_as_measured() -> None:
    found = explained()
    picture = masking_map(found.trace, found.effect)
    assert picture.rows == found.trace.target.words
    close(picture.values, found.effect.weights[: len(picture.rows)])
    assert picture.most == pytest.approx(max(abs(value) for row in picture.values for value in row))
    difference = difference_map(found.trace, Aligner(((0, 0),)), found.effect)
    assert difference.totals == pytest.approx(
        [0.0 if any(v > 0 for v in row) else 1.0 for row in picture.values], abs=1e-5
    )
    looked = fold(found.trace.cross[0, 0], found.trace.target, found.trace.source, special=False).weights
    worth = torch.tensor(picture.values).clamp(min=0)
    shares = worth / worth.sum(1, keepdim=True).clamp(min=1e-30)
    close(difference.values, looked / looked.sum(1, keepdim=True) - shares)


def test_where_nothing_is_attended_to_the_gradient_takes_its_place() -> None:
    found = explained("lstm")
    assert found.sides == []
    assert first_view(found.trace) == View()
    picture = found.picture(View(words=False, special=True))
    close(picture.values, found.saliency / found.saliency.sum(1, keepdim=True))
    assert picture.title == "gradient saliency"
    assert found.picture(View()).columns == ("the", "cat", "sleeps")
    assert saliency_map(found.trace, found.saliency, found.read, View()).rows == found.trace.target.words
    assert found.links_origin == "the word whose masking lowers the probability most"
    with pytest.raises(ModelError, match="attends to no source"):
        found.picture(View(layer=1))


def test_an_aligner_that_was_not_chosen_is_not_called_the_best() -> None:
    """As for an imported model, which has no validation text: its links are read from the mean of all heads."""
    found = explained()
    assert replace(found, reader=Aligner()).aligner is None
    assert len(replace(found, reader=Aligner()).links) == len(found.trace.target.words)
    chosen = replace(found, reader=Aligner(chosen_on="valid", error_rate=0.25)).aligner
    assert chosen is not None
    assert chosen.description == "cross-attention, mean of all heads (best aligner on valid, AER 0.25)"


def test_gates_and_states_are_those_of_the_trace() -> None:
    trace = explained("lstm").trace
    encoder, decoder = gate_maps(trace)
    assert encoder.columns == ("the", "cat", "sleeps", "<end>")
    assert decoder.columns == ("l'", "‿ours", "&", '"', "‿co", '‿"', "<end>")
    names = list(encoder.rows)
    assert names[:3] == ["1 input", "1 forget", "1 output"]
    close(encoder.values[1], trace.tensors["encoder.0.cell.forget"].mean(-1))
    alike, moved = state_maps(trace)
    assert alike.values[0][-1] == pytest.approx(1.0)
    assert moved.totals == pytest.approx([1.0] * len(moved.rows), abs=1e-5)
    assert state_maps(explained("bahdanau").trace)[0].rows == ("1 forward", "1 backward")


def test_a_text_that_nobody_translates_shows_the_text_so_far() -> None:
    writer = tiny.writer("transformer-tiny")
    trace = replay(writer, (), [7, 8, 9])
    found = Looked(writer, trace, "language")
    assert sides_of(trace) == ["decoder"]
    assert found.read.pieces == ("<start>", "7", "8")
    assert found.effect.columns == ("7", "8")
    html = explanation_page(found)
    asks_for_nothing(html)
    rnn = tiny.writer("lstm")
    assert (
        Looked(rnn, replay(rnn, (), [7, 8, 9]), "language").picture(View(words=False, special=True)).columns[0]
        == "<start>"
    )


@pytest.mark.parametrize("pool", [None, "mean"])
@pytest.mark.parametrize("preset", ["transformer-tiny", "gru"])
def test_labels_are_shown_too(preset: str, pool: str | None) -> None:
    model = tiny.tagger(preset, pool)
    found = Looked(model, replay(model, [7, 8, 9], spelling=Spelling(labels=tuple("abcde"))), "tag")
    reader = read(explanation_page(found))
    assert "Step by step" in reader.shown
    assert ("Every head" in reader.shown) == (preset == "transformer-tiny")


@pytest.mark.parametrize("preset", ["transformer-tiny", "lstm"])
def test_an_output_that_is_nothing_but_its_end_is_shown_with_it(preset: str) -> None:
    found = explained(preset, target="")
    picture = found.picture(View())
    assert picture.rows == ("<end>",)
    assert picture.columns[-1] == "<end>"
    assert picture.totals == pytest.approx([1.0], abs=1e-5)
    assert found.word_links == frozenset()
    asks_for_nothing(explanation_page(found))
    writer = tiny.writer(preset)
    asks_for_nothing(explanation_page(Looked(writer, replay(writer, (), [7]), "language")))


def test_a_long_sentence_scrolls_and_a_short_one_is_drawn_for_a_telephone_too() -> None:
    long = " ".join(["the", "cat", "sleeps"] * 9)
    assert 'class="narrow"' in explanation_page(explained())
    assert 'class="narrow"' not in explanation_page(explained(source=long)).split("Importance of each word")[0]


# Page


def svgs(html: str) -> list[ElementTree.Element]:
    parts = html.split("<svg")[1:]
    return [ElementTree.fromstring(f"<svg{part.split('</svg>')[0]}</svg>") for part in parts]


@pytest.mark.parametrize("preset", ["transformer-tiny", "bahdanau", "lstm", "rnn"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_page_asks_for_nothing_obeys_nothing_and_holds_every_number(preset: str, source: str) -> None:
    found = explained(preset, source)
    html = explanation_page(found)
    asks_for_nothing(html)
    reader = read(html)
    assert source in reader.shown
    assert "<script>alert" not in html
    data = json.loads(reader.scripts[0])
    assert data["source"] == source.split()
    assert data["log_probability"] == pytest.approx(found.trace.log_probability.tolist())
    picture = found.picture(first_view(found.trace))
    assert data["picture"]["values"] == [list(row) for row in picture.values]
    drawn = [group.attrib["data-values"] for group in svgs(html)[0].iter("g") if "data-values" in group.attrib]
    close([[float(value) for value in row.split()] for row in drawn], torch.tensor(picture.values))
    gates = {"lstm": "gates of the decoder", "rnn": "likeness to the last state", "bahdanau": "gates"}.get(preset, "")
    assert gates in reader.shown
    assert ("cross-attention" in reader.shown) == (preset in ("transformer-tiny", "bahdanau"))


def test_steps_are_shown_with_their_chances() -> None:
    found = explained()
    shown = read(explanation_page(found)).shown
    trace = found.trace
    for step in range(len(trace.target)):
        assert f"{float(trace.log_probability[step].exp()):.3f}" in shown
        assert f" {float(trace.top_log_probability[step, 0].exp()):.2f}" in shown


def test_pointing_at_a_word_lights_up_its_links_by_style_alone() -> None:
    found = explained()
    html = explanation_page(found)
    shown, links = html.partition("<main>")[2], found.word_links
    assert links
    for place, word in enumerate(found.read.words):
        linked = "".join(f" l{target}" for source, target in sorted(links) if source == place)
        assert f'<span class="word{linked}" tabindex="0">{word}</span>' in shown
    for place, word in enumerate(found.trace.target.words):
        own = f" l{place}" if any(target == place for _, target in links) else ""
        assert f'<span class="word{own}" tabindex="0">{escape(word)}</span>' in shown
    assert shown.count('<span class="word') == 6
    assert all(f".pair:has(.l{target}:is(:hover,:focus)) .l{target}" in html for _, target in links)


def test_right_to_left_text_is_marked_so_that_a_browser_can_turn_it() -> None:
    html = explanation_page(explained(source=SOURCES[2], target=TARGETS[3]))
    assert '<p class="words" dir="auto">' in html
    assert 'direction="rtl" unicode-bidi="plaintext"' in html
    assert "<bdi>القطة</bdi>" in html
    shown = read(explanation_page(explained(source=SOURCES[3], target=TARGETS[2]))).shown
    assert all(word in shown for word in (*SOURCES[3].split(), *TARGETS[2].split()))


def test_a_large_page_leaves_out_what_it_says_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = explained()
    whole = explanation_page(found)
    monkeypatch.setattr("regard.show.explanation_page.MOST_CELLS", 5)
    monkeypatch.setattr("regard.show.explanation_page.MOST_VALUES", 5)
    small = explanation_page(found)
    assert "too large for this page" in small
    assert "too large for this page" not in whole
    assert small.count("<details") == 1
    assert whole.count("<details") == 3
    assert len(small) < len(whole)


def test_edits_are_shown_with_what_they_did() -> None:
    one = translator()
    outcome = what_if(one, CAT, [ReplaceWord(1, "<script>alert(1)</script>"), MaskWord(0)])
    html = explanation_page(replace(one.explained(outcome.traces[2]), difference=outcome))
    asks_for_nothing(html)
    shown = read(html).shown
    assert "What if" in shown
    assert "mask-word" in shown
    assert f"{outcome.traces[1].score:.2f}".replace("-", "−") in shown


# Notebook


def test_a_notebook_shows_text_and_heat_map_without_a_script() -> None:
    one = translator()
    found = one.translate(SOURCES[1])
    html = found._repr_html_()
    asks_for_nothing(html)
    reader = read(html)
    assert SOURCES[1] in reader.shown
    assert not reader.scripts
    assert "<script" not in html
    assert not [name for _, attributes in reader.seen for name in attributes if name == "id"]
    drawn = [group.attrib["data-values"] for group in svgs(html)[0].iter("g") if "data-values" in group.attrib]
    picture = found.explanation().picture(View())
    close(
        [[float(value) for value in row.split()] for row in drawn], torch.tensor(picture.values).reshape(len(drawn), -1)
    )


def test_a_notebook_shows_sixty_words_in_little_room() -> None:
    words = " ".join(["the", "cat", "sleeps"] * 20)
    found = explained(target=" ".join(["le", "chat", "dort"] * 20), source=words)
    html = notebook_fragment(words, "x", found.picture(View()))
    assert len(html.encode()) <= 200_000
    assert len(html.split("data-values")) == 61


def test_a_notebook_shows_what_has_no_single_trace() -> None:
    one = translator()
    assert "svg" not in one.translate("")._repr_html_()
    many = Translator(one.models, one.tokenizers, one.device, longest=4)
    found = many.translate("the cat sleeps the cat sleeps the cat sleeps")
    html = found._repr_html_()
    assert "done in" in html
    assert "<svg" not in html


def test_a_reference_is_looked_into_as_an_output_is() -> None:
    one = translator()
    found = one.explain(CAT, "le chat dort")
    ids = [*one.tokenizers.target.encode("le chat dort"), END]
    direct = replay(one.model, [*one.tokenizers.source.encode(CAT), END], ids)
    assert found.trace.score == pytest.approx(direct.score)
    assert found.output == "le chat dort"
    assert one.explain(CAT).output == one.translate(CAT).text
