"""What if, asked of taggers, classifiers and language models."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import tiny
from regard.errors import DataError, ModelError
from regard.explain.attribution import word_map
from regard.explain.edits import (
    Difference,
    Edit,
    ForceHead,
    ForcePrefix,
    MaskWord,
    MuteHead,
    NoPositions,
    ReplaceWord,
    SetRow,
    what_if,
)
from regard.explain.importance import attribute
from regard.explain.look import look
from regard.explain.replay import replay
from regard.explain.trace import Side, spell
from regard.tasks.classify import Classifier
from regard.tasks.labels import Reader
from regard.tasks.language import Writer
from regard.tasks.tag import Tagger
from regard.text.vocabulary import END, PAD, START, UNK, Vocabulary
from regard.text.words import Case, WordTokenizer

SOURCES = WordTokenizer.learn([" ".join(f"s{number}" for number in range(tiny.SOURCE_SIZE - 4))])
TARGETS = WordTokenizer.learn([" ".join(f"t{number}" for number in range(tiny.TARGET_SIZE - 4))])
LABELS, CPU = Vocabulary(tuple("ABCDE")), torch.device("cpu")
TEXT = "s1 s5 s3"


def labelling(pool: str | None = None, preset: str = "transformer-tiny") -> Tagger | Classifier:
    kind = Tagger if pool is None else Classifier
    return kind(tiny.tagger(preset, pool), Reader(SOURCES, 0, CPU), LABELS)


def continuing(preset: str = "transformer-tiny") -> Writer:
    return Writer(tiny.writer(preset), TARGETS, CPU)


def fall(found: Difference) -> Tensor:
    return torch.tensor(found.fall, dtype=torch.float64)


@pytest.mark.parametrize("pool", [None, "attention"])
def test_no_edit_changes_no_label(pool: str | None) -> None:
    found = what_if(labelling(pool), TEXT, [])
    assert not any(found.fall)
    assert found.change_in_log_probability == 0
    assert found.changes == ()
    assert len(found.before.text.split()) == (3 if pool is None else 1)


@pytest.mark.parametrize("pool", [None, "mean"])
@pytest.mark.parametrize("preset", ["transformer-tiny", "lstm-reversed"])
def test_a_masked_word_has_the_effect_that_masking_measures(preset: str, pool: str | None) -> None:
    asked = labelling(pool, preset)
    written = what_if(asked, TEXT, []).traces[0].target
    effect = word_map(asked.model, spell(SOURCES.encode(TEXT)), written)
    for word in range(3):
        torch.testing.assert_close(fall(what_if(asked, TEXT, [MaskWord(word)])), effect.weights[:, word])


def test_masking_and_saliency_are_measured_under_the_edits_that_were_made() -> None:
    found = look(labelling(), TEXT, edits=(MaskWord(1),))
    torch.testing.assert_close(found.effect.weights[:, 1], torch.zeros(3, dtype=torch.float64))  # masked already
    assert found.effect.weights[:, 0].abs().max() > 0
    plain = replace(found, difference=None)
    assert not torch.allclose(found.saliency, plain.saliency)


def test_a_replaced_word_is_another_text_to_label() -> None:
    found = what_if(labelling(), TEXT, [ReplaceWord(1, "s7")])
    labels = found.traces[0].target.ids
    expected = replay(tiny.tagger("transformer-tiny"), SOURCES.encode("s1 s7 s3"), labels)
    torch.testing.assert_close(found.traces[1].log_probability, expected.log_probability)
    assert found.traces[2].score >= found.traces[1].score  # its labels are the likeliest there
    whole = what_if(labelling("mean"), TEXT, [ReplaceWord(1, "s7 s8")])
    assert whole.traces[1].source.words == ("s1", "s7", "s8", "s3")


def test_a_tag_belongs_to_the_first_piece_of_its_word() -> None:
    tokenizer = WordTokenizer.learn(["s1 s'2 s3"])
    asked = Tagger(tiny.tagger("lstm"), Reader(tokenizer, 0, CPU), LABELS)
    found = what_if(asked, "s1 s1 s3", [ReplaceWord(1, "s'2")])
    assert (len(found.traces[0].target), len(found.traces[1].target)) == (3, 4)
    assert found.traces[1].target.ids[:2] == found.traces[0].target.ids[:2]
    assert found.traces[1].target.ids[3] == found.traces[0].target.ids[2]
    assert len(found.fall) == 3
    assert len(found.after.text.split()) == 3


@pytest.mark.parametrize(
    "edits",
    [
        [MuteHead("encoder.1.self", 2)],
        [ForceHead("encoder.0.self", 0, 1)],
        [SetRow("encoder.0.self", 1, 2, (0.5, 0.25, 0.25))],
        [NoPositions("encoder")],
    ],
)
def test_a_labeller_can_be_changed_inside(edits: list[Edit]) -> None:
    assert any(what_if(labelling(), TEXT, edits).fall)
    assert any(what_if(labelling("attention"), TEXT, [MuteHead("pool", 0)]).fall)


def test_a_language_model_goes_on_from_the_text() -> None:
    asked = continuing()
    found = what_if(asked, "t1 t5 t3", [])
    assert not any(found.fall)
    assert found.traces[0].target.words[:3] == ("t1", "t5", "t3")
    assert len(found.fall) == len(found.traces[0].target) - 3
    assert found.before.log_probability == pytest.approx(float(found.traces[0].log_probability[3:].sum()))
    forced = what_if(asked, "t1 t5 t3", [ForcePrefix("t9 t2")])
    assert forced.traces[2].target.words[3:5] == ("t9", "t2")
    replaced = what_if(asked, "t1 t5 t3", [ReplaceWord(0, "t8 t4")])
    assert replaced.traces[1].target.words[:4] == ("t8", "t4", "t5", "t3")
    assert len(replaced.fall) == len(found.fall)


@pytest.mark.parametrize("preset", ["transformer-tiny", "gru"])
def test_a_word_masked_before_is_masked_while_writing_too(preset: str) -> None:
    asked = continuing(preset)
    found = what_if(asked, "t1 t5 t3", [MaskWord(1)])
    effect = word_map(asked.model, Side(), found.traces[0].target, special=True)
    torch.testing.assert_close(fall(found), effect.weights[3:, 2])  # after <start>
    after = found.traces[2]
    for step, written in list(enumerate(after.target.ids))[3:-1]:  # greedy under the edit, as the replay sees it
        best = [number for number in after.top_ids[step].tolist() if number not in (PAD, START, UNK)]
        assert written == best[0]
    assert after.target.ids[-1] == END


def test_a_head_forced_to_a_word_looks_there_once_it_is_read() -> None:
    found = what_if(continuing(), "t1 t5 t3", [ForceHead("decoder.0.self", 1, 1)])
    weights = found.traces[2].tensors["decoder.0.self.weights"][1]  # (T, T)
    assert weights[2:, 2].eq(1).all()  # <start> stands first
    torch.testing.assert_close(
        weights[:2], found.traces[0].tensors["decoder.0.self.weights"][1, :2, : weights.shape[1]]
    )


def test_what_makes_no_sense_is_said_in_one_line() -> None:
    with pytest.raises(ModelError, match="prefix = x: labels are given all at once"):
        what_if(labelling(), TEXT, [ForcePrefix("x")])
    with pytest.raises(DataError, match="3 words become 4: tags stand word by word"):
        what_if(labelling(), TEXT, [ReplaceWord(0, "s1 s2")])
    with pytest.raises(DataError, match="word = 3: the sentence has no such word"):
        what_if(continuing(), "t1 t5 t3", [MaskWord(3)])
    with pytest.raises(ModelError, match="this model has none of that name"):
        what_if(continuing(), "t1", [MuteHead("decoder.0.cross", 0)])
    with pytest.raises(DataError, match="an empty sentence has nothing to change"):
        what_if(labelling(), " ", [])


@pytest.mark.parametrize("case", ["keep", "mark"])
def test_a_word_of_several_pieces_has_the_one_tag_that_predicting_gives_it(case: Case) -> None:
    tokenizer = WordTokenizer.learn(["S1-s5 s3 a b c d"], case=case)
    tagger = Tagger(tiny.tagger("gru"), Reader(tokenizer, 0, CPU), LABELS)
    found, tagged = look(tagger, text := "S1-s5 s3"), tagger.tag([text])[0]
    assert len(found.trace.target) > 2
    assert found.trace.target.words == tagged.tags
    assert math.exp(found.log_probability) == pytest.approx(math.prod(tagged.probabilities))
    assert found.effect.rows == tagged.tags
    assert what_if(tagger, text, []).before.text == " ".join(tagged.tags)
    for label in set(LABELS.tokens) - set(tagged.tags):
        against = attribute(tagger, found, against=label)
        assert set(against.rows) <= set(tagged.tags)
