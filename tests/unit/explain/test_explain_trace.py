"""Traces as data, and pieces as words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

import tiny
from regard.errors import DataError, ModelError
from regard.explain.replay import Spelling, replay
from regard.explain.trace import OUTSIDE, Side, Trace, apart, fold, spell
from regard.text import ByteTokenizer, CharacterTokenizer, SubwordTokenizer, Tokenizer, WordTokenizer
from regard.text.vocabulary import END, UNK

SOURCE, TARGET = [5, 9, 7, END], [8, 11, 6, 20, END]
LINES = ["the bear ate the honey", "l'ours a mangé le miel", "भालू ने शहद खाया", "אכל הדוב את הדבש", "👩‍🚀 flew"]


@pytest.fixture(params=tiny.PRESETS)
def trace(request: pytest.FixtureRequest) -> Trace:
    return replay(tiny.translator(request.param), SOURCE, TARGET)


def tokenizers() -> list[Tokenizer]:
    return [
        WordTokenizer.learn(LINES),
        CharacterTokenizer.learn(LINES),
        ByteTokenizer(),
        SubwordTokenizer.learn("bpe", LINES * 7, size=330),
        SubwordTokenizer.learn("unigram", LINES * 7, size=310),
    ]


def test_in_a_script_without_spaces_each_piece_is_a_word() -> None:
    lines = ["银行在河边", "他在银行取钱", "河边有人"] * 9
    tokenizer = SubwordTokenizer.learn("bpe", lines, size=275)
    text = "银行在河边"
    side = spell([*tokenizer.encode(text), END], tokenizer, text)
    assert len(side.words) > 2
    assert "".join(side.words) == text
    assert all(side.words)  # a mark of space alone belongs to what follows
    assert side.word_of[-1] == OUTSIDE
    assert spell(tokenizer.encode(text), tokenizer, text, at_spaces=True).words == (text,)
    spaced = "银行 在 河边"  # words that stand apart already are counted so
    counted = spell(tokenizer.encode(spaced), tokenizer, spaced)
    assert len(counted.words) >= 3
    assert spell(ByteTokenizer().encode(text), ByteTokenizer(), text).words == (text,)


def test_the_bytes_of_an_unknown_letter_are_one_word() -> None:
    tokenizer = SubwordTokenizer.learn("bpe", ["ein Hund", "zwei Hunde"] * 9, size=270)
    text = "猫 日本"
    side = spell([*tokenizer.encode(text), END], tokenizer, text)
    assert side.words == ("猫", "日", "本")
    assert side.word_of == (0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, OUTSIDE)  # three bytes, and the space before a word
    broken = Side((5, 6, 7), ("<0xE6>", "<0xE6>", "b"), (0, 0, 0), ("?",))
    assert apart(broken, "▁").words == ("<0xE6>", "b")  # no letter: as it is


def test_a_trace_comes_back_as_it_was_saved(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "one")
    for name in ("one", "one.json", "one.safetensors"):
        back = Trace.load(tmp_path / name)
        assert (back.task, back.source, back.target, back.top_pieces) == (
            trace.task,
            trace.source,
            trace.target,
            trace.top_pieces,
        )
        assert back.score == trace.score
        assert set(back.tensors) == set(trace.tensors)
        assert all(torch.equal(back.tensors[name], tensor) for name, tensor in trace.tensors.items())


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("one.json", None, "cannot be read"),
        ("one.json", b"{", "is not JSON"),
        ("one.json", b"[" * 9999, "is not JSON"),
        ("one.json", b"[]", "format = None"),
        ("one.json", b'{"format": 99}', "format = 99"),
        ("one.safetensors", None, "cannot be read"),
        ("one.safetensors", b"short", "5 bytes: does not belong"),
    ],
)
def test_half_a_trace_is_refused_in_one_line(tmp_path: Path, file: str, content: bytes | None, complaint: str) -> None:
    replay(tiny.translator("bahdanau"), SOURCE, TARGET).save(tmp_path / "one")
    (tmp_path / file).unlink()
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=complaint) as problem:
        Trace.load(tmp_path / "one")
    assert "\n" not in str(problem.value)


def test_a_trace_with_parts_missing_is_refused(tmp_path: Path) -> None:
    replay(tiny.translator("bahdanau"), SOURCE, TARGET).save(tmp_path / "one")
    description = json.loads((tmp_path / "one.json").read_text())
    del description["target"]
    (tmp_path / "one.json").write_text(json.dumps(description))
    with pytest.raises(DataError, match="not a whole trace; 'target' is missing"):
        Trace.load(tmp_path / "one")


def test_a_file_of_the_right_size_that_holds_no_tensors_is_refused(tmp_path: Path) -> None:
    replay(tiny.translator("bahdanau"), SOURCE, TARGET).save(tmp_path / "one")
    data = (tmp_path / "one.safetensors").read_bytes()
    (tmp_path / "one.safetensors").write_bytes(b"\xff" * len(data))
    with pytest.raises(DataError, match="is not a safetensors file"):
        Trace.load(tmp_path / "one")


def test_attention_has_layers_heads_and_both_sides() -> None:
    trace = replay(tiny.translator("transformer-tiny"), SOURCE, TARGET)
    assert trace.cross.shape == (2, 3, 5, 4)
    assert trace.encoder_self.shape == (2, 3, 4, 4)
    assert trace.decoder_self.shape == (2, 3, 5, 5)
    assert torch.equal(trace.cross[1, 2], trace.tensors["decoder.1.cross.weights"][2])
    assert trace.inputs == ("<start>", "8", "11", "6", "20")
    assert replay(tiny.translator("bahdanau"), SOURCE, TARGET).cross.shape == (1, 1, 5, 4)


def test_a_model_without_attention_says_so() -> None:
    trace = replay(tiny.translator("lstm"), SOURCE, TARGET)
    assert not trace.layers("cross")
    with pytest.raises(ModelError, match="attends to no source; known: no attention at all"):
        _ = trace.cross


def test_logits_are_kept_on_demand() -> None:
    model = tiny.translator("gru")
    with pytest.raises(DataError, match="replay with logits = True"):
        _ = replay(model, SOURCE, TARGET).logits
    kept = replay(model, SOURCE, TARGET, logits=True).logits
    torch.testing.assert_close(kept, model(torch.tensor([SOURCE]), torch.tensor([[1, *TARGET[:-1]]]))[0])


def test_detail_decides_what_is_kept() -> None:
    model = tiny.translator("transformer-tiny")
    few, usual, everything = (set(replay(model, SOURCE, TARGET, detail=d).tensors) for d in ("weights", "usual", "all"))
    assert few < usual < everything
    assert {name.rpartition(".")[2] for name in few} == {"weights"}
    assert "decoder.1.states" in usual
    assert "decoder.1.cross.queries" in everything - usual


def test_replaying_leaves_a_model_in_training_as_it_was() -> None:
    model = tiny.translator("gru")
    model.train()
    replay(model, SOURCE, TARGET)
    assert model.training
    model.eval()


@pytest.mark.parametrize(
    ("source", "target", "complaint"),
    [
        ([END], TARGET, "source = '': an empty sentence"),
        ([], TARGET, "source = '': an empty sentence"),
        (SOURCE, [], "target = '': there is no output"),
        (SOURCE, None, "target = '': there is no output"),
        (SOURCE, [5, 29], "target = 29: is no id.*0 to 28"),
    ],
)
def test_what_cannot_be_replayed_is_refused(source: list[int], target: list[int] | None, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        replay(tiny.translator("transformer-tiny"), source, target)


def test_a_language_model_has_no_source_and_a_labeller_a_label_for_each_place() -> None:
    with pytest.raises(DataError, match="a language model has no source"):
        replay(tiny.writer("gru"), SOURCE, TARGET)
    with pytest.raises(DataError, match="target = 2 labels: there are 4 places"):
        replay(tiny.tagger("gru"), SOURCE, [0, 1])


def test_labels_are_named() -> None:
    labels = ("noun", "verb", "adjective", "adverb", "other")
    trace = replay(tiny.tagger("gru"), [5, 6], spelling=Spelling(labels=labels))
    assert set(trace.target.words) <= set(labels)
    assert set(trace.top_pieces[0]) == set(labels)
    assert trace.inputs == trace.source.pieces


@pytest.mark.parametrize("tokenizer", tokenizers(), ids=lambda tokenizer: tokenizer.kind)
@pytest.mark.parametrize("text", [*LINES, "unheard-of Größe, 10,000!", "  two  spaces "])
def test_words_are_those_of_the_text_in_every_script(tokenizer: Tokenizer, text: str) -> None:
    side = spell([*tokenizer.encode(text), END], tokenizer, text)
    assert side.words == tuple(text.split())
    assert side.word_of[-1] == OUTSIDE
    assert side.pieces[-1] == "<end>"
    assert sorted(set(side.word_of[:-1])) == list(range(len(text.split())))


@pytest.mark.parametrize("tokenizer", tokenizers(), ids=lambda tokenizer: tokenizer.kind)
def test_words_are_found_without_the_text_too(tokenizer: Tokenizer) -> None:
    for text in LINES:
        side = spell([*tokenizer.encode(text), END], tokenizer)
        assert side.words == tuple(text.split())


@pytest.mark.parametrize("tokenizer", tokenizers(), ids=lambda tokenizer: tokenizer.kind)
def test_an_unknown_piece_still_is_a_word(tokenizer: Tokenizer) -> None:
    side = spell([UNK, END], tokenizer)
    assert len(side.words) == 1
    assert side.word_of == (0, OUTSIDE)


def test_a_bare_space_piece_makes_no_word() -> None:
    tokenizer = SubwordTokenizer.learn("bpe", LINES * 7, size=330)
    mark, bear = tokenizer.id("▁"), tokenizer.encode("bear")
    for ids in ([mark, *bear], [*bear, mark], [mark, mark, *bear], [mark]):
        side = spell(ids, tokenizer)
        assert max(side.word_of) == 0
        assert len(side.word_of) == len(ids)


def test_an_unknown_word_shows_as_itself_where_the_text_is_known() -> None:
    tokenizer = WordTokenizer.learn(["the bear"])
    assert spell(tokenizer.encode("the moose's"), tokenizer, "the moose's").words == ("the", "moose's")
    assert spell(tokenizer.encode("the moose"), tokenizer).words == ("the", "<unk>")


def test_a_word_that_is_not_there_is_refused() -> None:
    side = spell([7, 8, END])
    assert side.pieces_of(1) == [1]
    with pytest.raises(DataError, match="word = 2: the sentence has no such word; 0 to 1 would be right"):
        side.pieces_of(2)


def pieces(word_of: list[int]) -> Side:
    ids = tuple(END if word == OUTSIDE else 7 for word in word_of)
    names = tuple(f"p{place}" for place in range(len(ids)))
    return Side(ids, names, tuple(word_of), tuple(f"w{n}" for n in range(max(word_of) + 1)))


def weights(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_weights_are_summed_over_a_source_word_and_averaged_over_a_target_word() -> None:
    given = weights([[0.1, 0.2, 0.3, 0.4], [0.3, 0.4, 0.1, 0.2], [0.0, 0.0, 0.0, 1.0]])
    folded = fold(given, pieces([0, 0, OUTSIDE]), pieces([0, 1, 1, OUTSIDE]))
    torch.testing.assert_close(folded.weights, weights([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]]))
    assert folded.rows == ("w0", "p2")
    assert folded.columns == ("w0", "w1", "p3")
    bare = fold(given, pieces([0, 0, OUTSIDE]), pieces([0, 1, 1, OUTSIDE]), special=False)
    torch.testing.assert_close(bare.weights, weights([[0.2, 0.5]]))


def test_folded_rows_are_still_distributions() -> None:
    torch.manual_seed(0)
    given = torch.rand(2, 3, 7, 5, dtype=torch.float64).softmax(-1)
    folded = fold(given, pieces([0, 0, 1, 2, 2, 2, OUTSIDE]), pieces([0, 1, 1, 1, OUTSIDE]))
    assert folded.weights.shape == (2, 3, 4, 3)
    torch.testing.assert_close(folded.weights.sum(-1), torch.ones(2, 3, 4, dtype=torch.float64))
