"""What if, asked of taggers, classifiers and language models."""

from __future__ import annotations

import pytest
import torch

import tiny
from regard.errors import DataError, ModelError
from regard.explain.asked import LabellerSubject, LanguageSubject
from regard.explain.attribution import masking
from regard.explain.edits import Edit, ForceHead, ForcePrefix, MaskWord, MuteHead, NoPositions, ReplaceWord, SetRow
from regard.explain.replay import replay
from regard.explain.whatif import carry_out
from regard.tasks.labels import Reader
from regard.text.special import END, PAD, START, UNK
from regard.text.words import WordTokenizer

SOURCES = WordTokenizer.learn([" ".join(f"s{number}" for number in range(tiny.SOURCE_SIZE - 4))])
TARGETS = WordTokenizer.learn([" ".join(f"t{number}" for number in range(tiny.TARGET_SIZE - 4))])
LABELS = tuple("ABCDE")
TEXT = "s1 s5 s3"


def labelling(pool: str | None = None, preset: str = "transformer-tiny") -> LabellerSubject:
    return LabellerSubject(tiny.tagger(preset, pool), Reader(SOURCES, 0, torch.device("cpu")), LABELS)


def continuing(preset: str = "transformer-tiny") -> LanguageSubject:
    return LanguageSubject(tiny.writer(preset), TARGETS, most=7)


@pytest.mark.parametrize("pool", [None, "attention"])
def test_no_edit_changes_no_label(pool: str | None) -> None:
    found = carry_out(labelling(pool), TEXT, [])
    assert found.fall.eq(0).all()
    assert found.difference == 0
    assert found.changes() == []
    assert len(found.texts[0].split()) == (3 if pool is None else 1)


@pytest.mark.parametrize("pool", [None, "mean"])
@pytest.mark.parametrize("preset", ["transformer-tiny", "lstm-reversed"])
def test_a_masked_word_has_the_effect_that_masking_measures(preset: str, pool: str | None) -> None:
    asked = labelling(pool, preset)
    effect = masking(asked.model, SOURCES.encode(TEXT))
    for word in range(3):
        torch.testing.assert_close(carry_out(asked, TEXT, [MaskWord(word)]).fall, effect.weights[:, word])


def test_a_replaced_word_is_another_text_to_label() -> None:
    found = carry_out(labelling(), TEXT, [ReplaceWord(1, "s7")])
    labels = found.before.target.ids
    expected = replay(tiny.tagger("transformer-tiny"), SOURCES.encode("s1 s7 s3"), labels)
    torch.testing.assert_close(found.same.log_probability, expected.log_probability)
    assert found.after.score >= found.same.score  # its labels are the likeliest there
    whole = carry_out(labelling("mean"), TEXT, [ReplaceWord(1, "s7 s8")])
    assert whole.same.source.words == ("s1", "s7", "s8", "s3")


def test_a_tag_belongs_to_the_first_piece_of_its_word() -> None:
    tokenizer = WordTokenizer.learn(["s1 s'2 s3"])
    asked = LabellerSubject(tiny.tagger("lstm"), Reader(tokenizer, 0, torch.device("cpu")), LABELS)
    found = carry_out(asked, "s1 s1 s3", [ReplaceWord(1, "s'2")])
    assert (len(found.before.target), len(found.same.target)) == (3, 4)
    assert found.same.target.ids[:2] == found.before.target.ids[:2]
    assert found.same.target.ids[3] == found.before.target.ids[2]
    assert len(found.fall) == 3
    assert len(found.texts[1].split()) == 3


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
    assert carry_out(labelling(), TEXT, edits).fall.abs().max() > 0
    assert carry_out(labelling("attention"), TEXT, [MuteHead("pool", 0)]).fall.abs().max() > 0


def test_a_language_model_goes_on_from_the_text() -> None:
    asked = continuing()
    found = carry_out(asked, "t1 t5 t3", [])
    assert found.fall.eq(0).all()
    assert found.before.target.words[:3] == ("t1", "t5", "t3")
    assert len(found.fall) == len(found.before.target) - 3
    assert found.scores[0] == pytest.approx(float(found.before.log_probability[3:].sum()))
    forced = carry_out(asked, "t1 t5 t3", [ForcePrefix("t9 t2")])
    assert forced.after.target.words[3:5] == ("t9", "t2")
    replaced = carry_out(asked, "t1 t5 t3", [ReplaceWord(0, "t8 t4")])
    assert replaced.same.target.words[:4] == ("t8", "t4", "t5", "t3")
    assert len(replaced.fall) == len(found.fall)


@pytest.mark.parametrize("preset", ["transformer-tiny", "gru"])
def test_a_word_masked_before_is_masked_while_writing_too(preset: str) -> None:
    asked = continuing(preset)
    found = carry_out(asked, "t1 t5 t3", [MaskWord(1)])
    effect = masking(asked.model, (), found.before.target.ids)
    torch.testing.assert_close(found.fall, effect.weights[3:, 1])
    for step, written in list(enumerate(found.after.target.ids))[3:-1]:  # greedy under the edit, as the replay sees it
        best = [number for number in found.after.top_ids[step].tolist() if number not in (PAD, START, UNK)]
        assert written == best[0]
    assert found.after.target.ids[-1] == END


def test_a_head_forced_to_a_word_looks_there_once_it_is_read() -> None:
    found = carry_out(continuing(), "t1 t5 t3", [ForceHead("decoder.0.self", 1, 1)])
    weights = found.after.tensors["decoder.0.self.weights"][1]  # (T, T)
    assert weights[2:, 2].eq(1).all()  # <start> stands first
    torch.testing.assert_close(weights[:2], found.before.tensors["decoder.0.self.weights"][1, :2, : weights.shape[1]])


def test_what_makes_no_sense_is_said_in_one_line() -> None:
    with pytest.raises(ModelError, match="prefix = x: labels are given all at once"):
        carry_out(labelling(), TEXT, [ForcePrefix("x")])
    with pytest.raises(DataError, match="3 words become 4: tags stand word by word"):
        carry_out(labelling(), TEXT, [ReplaceWord(0, "s1 s2")])
    with pytest.raises(DataError, match="word = 3: there is no such word"):
        carry_out(continuing(), "t1 t5 t3", [MaskWord(3)])
    with pytest.raises(ModelError, match="this model has none of that name"):
        carry_out(continuing(), "t1", [MuteHead("decoder.0.cross", 0)])
    with pytest.raises(DataError, match="an empty sentence has nothing to change"):
        carry_out(labelling(), " ", [])
