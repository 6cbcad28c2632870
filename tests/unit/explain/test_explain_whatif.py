"""Edits: what they do, how they join, how they travel, and what they refuse."""

from __future__ import annotations

import json

import pytest
import torch

import tiny
from regard.errors import DataError, ModelError
from regard.explain.asked import greedy
from regard.explain.attribution import word_map
from regard.explain.edits import (
    KINDS,
    Difference,
    Edit,
    ForceHead,
    ForcePrefix,
    MaskWord,
    MuteHead,
    NoPositions,
    NoScale,
    ReplaceWord,
    SetRow,
    from_data,
    to_data,
    what_if,
)
from regard.explain.replay import replay
from regard.explain.trace import Side, spell
from regard.models.generator import EncoderDecoder
from regard.nn.observe import Recorder
from regard.tasks.translator import Translator
from regard.text import Tokenizers, WordTokenizer
from regard.text.vocabulary import END, START, UNK

SOURCES = WordTokenizer.learn([" ".join(f"s{number}" for number in range(tiny.SOURCE_SIZE - 4))])
TARGETS = WordTokenizer.learn([" ".join(f"t{number}" for number in range(tiny.TARGET_SIZE - 4))])
BOTH = Tokenizers(SOURCES, TARGETS)
TEXT = "s1 s5 s3"
OUTPUT = [*TARGETS.encode("t4 t2 t9 t7"), END]
ALL: list[Edit] = [
    ReplaceWord(1, "s7"),
    MaskWord(2),
    ForcePrefix("t3 t1"),
    SetRow("decoder.1.cross", 2, 1, (0.0, 0.5, 0.25, 0.25)),
    MuteHead("encoder.0.self", 1),
    ForceHead("decoder.0.cross", 0, 2),
    NoPositions("decoder"),
    NoScale("decoder.0.self"),
]


def transformer() -> EncoderDecoder:
    return tiny.translator("transformer-tiny")


def tried(*edits: Edit, model: EncoderDecoder | None = None) -> Difference:
    return what_if(translating(model), TEXT, edits, output=OUTPUT)


def translating(model: EncoderDecoder | None = None) -> Translator:
    return Translator((model or transformer(),), BOTH, torch.device("cpu"))


def test_no_edit_changes_nothing() -> None:
    found = tried()
    assert not any(found.fall)
    assert torch.equal(found.traces[0].cross, found.traces[1].cross)
    own = what_if(translating(), TEXT, [])
    assert own.before.text == own.after.text
    assert own.change_in_log_probability == 0
    assert own.changes == ()


@pytest.mark.parametrize("preset", tiny.PRESETS)
def test_what_is_written_while_watched_is_what_is_written_unwatched(preset: str) -> None:
    model, source = tiny.translator(preset), [*SOURCES.encode(TEXT), END]
    assert greedy(model, source, Recorder()) == greedy(model, source)


def test_a_replaced_word_is_another_sentence() -> None:
    found = tried(ReplaceWord(1, "s7 s8"))
    assert found.traces[1].source.words == ("s1", "s7", "s8", "s3")
    expected = replay(transformer(), [*SOURCES.encode("s1 s7 s8 s3"), END], OUTPUT)
    torch.testing.assert_close(found.traces[1].log_probability, expected.log_probability)
    assert tried(ReplaceWord(1, "")).traces[1].source.words == ("s1", "s3")


def test_a_word_that_no_spaces_set_apart_is_replaced_where_it_stands() -> None:
    def read(_: str) -> Side:
        return Side(words=("银行", "在", "河边"))

    assert ReplaceWord(0, "学校").text("银行在 河边", read) == "学校在 河边"
    assert ReplaceWord(2, "").text("银行在 河边", read) == "银行在 "
    with pytest.raises(DataError, match="word = 3: the sentence has no such word; 0 to 2 would be right"):
        ReplaceWord(3, "x").text("银行在河边", read)
    with pytest.raises(DataError, match="word = 1: is read otherwise than it is written"):
        ReplaceWord(1, "x").text("银行河边", read)


@pytest.mark.parametrize("preset", ["lstm-reversed", "bahdanau", "transformer-tiny"])
def test_a_masked_word_falls_as_its_importance_says(preset: str) -> None:
    model = tiny.translator(preset)
    effect = word_map(model, spell([*SOURCES.encode(TEXT), END]), spell(OUTPUT), special=True).weights
    torch.testing.assert_close(torch.tensor(tried(MaskWord(1), model=model).fall).to(effect), effect[:, 1])


def test_a_forced_prefix_begins_the_output_and_changes_nothing_inside() -> None:
    found = tried(ForcePrefix("t3 t1"))
    assert found.traces[2].target.words[:2] == ("t3", "t1")
    assert not any(found.fall)


@pytest.mark.parametrize("preset", ["bahdanau", "luong-general", "transformer-tiny"])
def test_a_row_set_by_hand_is_the_row_that_is_used(preset: str) -> None:
    name = "decoder.1.cross" if preset == "transformer-tiny" else "decoder.cross"
    row = (0.0, 0.5, 0.25, 0.25)
    found = tried(SetRow(name, 0, 2, row), model=tiny.translator(preset))
    for trace in found.traces[1:]:
        if len(trace.target) > 2:
            assert tuple(trace.tensors[f"{name}.weights"][0, 2].tolist()) == row
    assert not any(found.fall[:2])  # nothing before it
    assert found.fall[2] != 0


def test_a_live_step_uses_the_row_too() -> None:
    """The output written under an edit is the one that its replay finds most probable, step by step."""
    model = tiny.translator("bahdanau")
    found = tried(SetRow("decoder.cross", 0, 1, (0.0, 1.0, 0.0, 0.0)), model=model)
    best, written = found.traces[2].top_ids[:-1, 0], torch.tensor(found.traces[2].target.ids)[:-1]  # the limit ends it
    assert best.gt(UNK).all()  # <pad>, <start>, <unk> are never written
    assert torch.equal(best, written)


def test_setting_a_row_to_what_it_was_changes_nothing() -> None:
    before = tried().traces[0]
    row = tuple(before.tensors["decoder.1.cross.weights"][2, 1].tolist())
    torch.testing.assert_close(
        torch.tensor(tried(SetRow("decoder.1.cross", 2, 1, row)).fall), torch.zeros(5), atol=1e-7, rtol=0.0
    )


def test_a_mute_head_is_one_whose_part_of_the_output_matrix_is_zero() -> None:
    model = transformer()
    attention = model.decoder.layers[1].cross
    width = attention.projections.width // attention.heads
    kept = attention.projections.output.weight.data.clone()
    try:
        attention.projections.output.weight.data[:, width : 2 * width] = 0
        expected = replay(model, [*SOURCES.encode(TEXT), END], OUTPUT).log_probability
    finally:
        attention.projections.output.weight.data.copy_(kept)
    torch.testing.assert_close(tried(MuteHead("decoder.1.cross", 1)).traces[1].log_probability, expected)


def test_a_forced_head_looks_at_its_word_and_no_other_head_does() -> None:
    found = tried(ForceHead("decoder.1.cross", 1, 2)).traces[1].tensors["decoder.1.cross.weights"]
    assert found[1, :, 2].eq(1).all()
    assert found[1].sum() == len(OUTPUT)
    assert torch.equal(found[0], tried().traces[0].tensors["decoder.1.cross.weights"][0])


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_without_positions_what_goes_on_is_the_bare_embedding(side: str) -> None:
    found = tried(NoPositions(side)).traces[1].tensors
    assert torch.equal(found[f"{side}.placed"], found[f"{side}.embedded"])


def test_without_its_scale_a_score_is_the_product() -> None:
    found = what_if(translating(), TEXT, [NoScale("decoder.0.cross")], output=OUTPUT, detail="all").traces[1].tensors
    assert torch.equal(found["decoder.0.cross.scores"], found["decoder.0.cross.products"])
    torch.testing.assert_close(found["decoder.0.cross.weights"], found["decoder.0.cross.products"].softmax(-1))


def test_edits_join() -> None:
    both = tried(ReplaceWord(0, "s9"), MuteHead("decoder.0.cross", 1), MaskWord(2))
    assert both.traces[1].source.words == ("s9", "s5", "s3")
    assert both.traces[1].tensors["encoder.embedded"][2].eq(0).all()
    assert len(both.editor.edits) == 3


def test_changes_are_told_in_words() -> None:
    found = tried(ForcePrefix("t3"))
    old, new = zip(*(each.values() for each in found.changes), strict=True)
    assert "t3" in [word for words in new for word in words]
    assert {word for words in old for word in words} <= set(found.before.text.split())
    assert found.change_in_log_probability == pytest.approx(found.traces[2].score - found.traces[0].score)


@pytest.mark.parametrize("edit", ALL, ids=lambda edit: edit.kind)
def test_every_edit_travels_as_json_and_works_on_arrival(edit: Edit) -> None:
    (back,) = from_data(json.loads(json.dumps(to_data([edit]))))
    assert back == edit
    tried(back)


def test_all_kinds_are_tried_here() -> None:
    assert {edit.kind for edit in ALL} == set(KINDS)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({}, "edits = {}: not a list"),
        (["mute"], "edit = mute: no such edit"),
        ([{"kind": "mute-hed"}], "edit = mute-hed: no such edit; did you mean 'mute-head'"),
        ([{"kind": "mask-word"}], "mask-word = nothing: wrong parts; it has word"),
        ([{"kind": "mask-word", "word": 1, "colour": 2}], "mask-word = word, colour: wrong parts"),
        ([{"kind": "mask-word", "word": "one"}], "mask-word.word = one: of the wrong type; int"),
        ([{"kind": "mask-word", "word": True}], "of the wrong type; int"),
        (
            [{"kind": "set-row", "attention": "a", "head": 0, "row": 0, "weights": "x"}],
            "weights = x: not a list of numbers",
        ),
        (
            [{"kind": "set-row", "attention": "a", "head": 0, "row": 0, "weights": [10**400]}],
            "weights = .1000.*: not a list of numbers",
        ),
        ([{"kind": "replace-word", "word": 0, "by": "x " * 3000}], "by = 6,000 long: too long; 1,000 are the most"),
        ([{"kind": "force-prefix", "prefix": "x" * 1001}], "prefix = 1,001 long: too long"),
        ([{"kind": "mask-word", "word": 0}] * 101, "edits = 101 of them: too many; 50 at once are the most"),
    ],
)
def test_edits_that_cannot_be_read_are_refused_in_one_line(data: object, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        from_data(data)


def test_a_side_may_be_left_out() -> None:
    assert from_data([{"kind": "no-positions"}]) == (NoPositions("encoder"),)


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (ReplaceWord(3, "s1"), "word = 3: the sentence has no such word; 0 to 2"),
        (MaskWord(3), "word = 3: the sentence has no such word"),
        (MuteHead("decoder.1.cross", 3), "head = 3: decoder.1.cross has no such head; 0 to 2"),
        (SetRow("decoder.1.cross", 0, 5, (1.0, 0, 0, 0)), "row = 5: the output has no such row; 0 to 4"),
        (SetRow("decoder.1.cross", 0, 0, (1.0,)), "weights = 1 numbers: the row has 4 places"),
        (SetRow("decoder.1.cross", 0, 0, (0.5, 0, 0, 0)), "sum to 0.5: a row is a distribution"),
        (SetRow("decoder.1.cross", 0, 0, (2.0, -1.0, 0, 0)), "a row is a distribution"),
        (SetRow("decoder.0.self", 0, 1, (0.5, 0, 0.5, 0, 0)), "row 1 looks at what is written later"),
        (ForceHead("decoder.0.self", 0, 1), "does not look at source words"),
        (ForceHead("decoder.0.cross", 0, 7), "word = 7: the sentence has no such word"),
    ],
)
def test_what_does_not_fit_the_sentence_is_refused(edit: Edit, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        tried(edit)


@pytest.mark.parametrize(
    ("preset", "edit", "complaint"),
    [
        ("transformer-tiny", MuteHead("decoder.2.cross", 0), "attention = decoder.2.cross.*did you mean 'decoder"),
        ("lstm", MuteHead("decoder.cross", 0), "it has no attention"),
        ("bahdanau", MuteHead("decoder.cross", 1), "head = 1: decoder.cross has no such head; 0 would"),
        ("lstm", NoPositions(), "side = encoder: adds no positions"),
        ("bahdanau", NoScale("decoder.cross"), "has a score without a scale"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(preset: str, edit: Edit, complaint: str) -> None:
    with pytest.raises((ModelError, DataError), match=complaint):
        tried(edit, model=tiny.translator(preset))


def test_an_empty_sentence_is_refused() -> None:
    with pytest.raises(DataError, match="text = '': an empty sentence"):
        what_if(translating(), "  ", [])


def test_a_prefix_is_never_the_start_token() -> None:
    assert START not in greedy(transformer(), [*SOURCES.encode(TEXT), END], prefix=TARGETS.encode("t1"))
