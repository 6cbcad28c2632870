"""Tokens around a source and at the beginning of a target: every question to a model sees them, no text does."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import sentencepiece
import torch

import regard
import tiny
from regard.data import Batches, PairEncoder, encode_examples, menu_for
from regard.decode.engines.captured import Captured
from regard.decode.options import Options
from regard.decode.rules import Beam, Sample
from regard.decode.scoring import score
from regard.evaluate.evaluate import score as scored
from regard.explain.alignment import sides
from regard.explain.beam import search_tree
from regard.explain.edits import ForcePrefix, MaskWord
from regard.explain.look import look
from regard.explain.meaning import layers, translations
from regard.explain.trace import OUTSIDE
from regard.explain.walkthrough.walk import walk_text
from regard.runs.folder import Run
from regard.tasks.engines import choose
from regard.tasks.translator import Translator
from regard.text import END, SPECIAL_TOKENS, SentencePieceTokenizer, Tokenizers, Vocabulary
from regard.text.tokenizers import Frame

LINES = ["the bear sees the honey", "a cat eats the old mouse", "the river bank", "money in the bank"] * 5
TEXT, ENGLISH, FRENCH = "the old bear eats honey", "eng_Latn", "fra_Latn"
FRAMES = {
    "a language before the source": Frame(before=(">>fra<<",)),
    "languages before both": Frame(before=(ENGLISH,), begin=(FRENCH,)),
    "a language behind the end": Frame(after=("<end>", ENGLISH), begin=(FRENCH,)),
}


@cache
def tokenizer() -> SentencePieceTokenizer:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, vocab_size=60, hard_vocab_limit=False, minloglevel=5
    )
    known = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [known.id_to_piece(number) for number in range(3, known.get_piece_size())]
    control = (">>fra<<", ENGLISH, FRENCH)
    return SentencePieceTokenizer(Vocabulary((*SPECIAL_TOKENS, *pieces, *control)), control, model=model.getvalue())


@cache
def translator(name: str, preset: str = "transformer-small") -> Translator:
    torch.manual_seed(5)
    model = regard.encoder_decoder(tiny.settings(preset).model, tokenizer().size, tokenizer().size).eval()
    both = Tokenizers(tokenizer(), tokenizer(), frame=FRAMES[name])
    return Translator((model,), both, torch.device("cpu"))


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("preset", ["transformer-small", "bahdanau"])
@pytest.mark.parametrize("rule", [Beam(1), Beam(4, best=3), Sample(2)], ids=["greedy", "beam", "sample"])
def test_every_search_begins_as_it_must_and_counts_what_it_chose(name: str, preset: str, rule: Beam | Sample) -> None:
    ours = translator(name, preset)
    begin = list(ours.tokenizers.begin)
    for output in ours.translate([TEXT, "the bank"], Options(rule))[0].outputs:
        (part,) = output.parts
        assert list(part.tokens[: len(begin)]) == begin
        assert FRENCH not in output.text
        assert output.text == tokenizer().decode(part.tokens[len(begin) :])
        source = ours.tokenizers.read(TEXT)
        (found,) = score(ours.model, [source], [part.tokens], ours.device)
        if isinstance(rule, Beam):
            assert output.log_probability == pytest.approx(sum(found[len(begin) :]), abs=1e-4)


def test_a_prefix_of_the_user_comes_behind_what_is_given() -> None:
    ours = translator("languages before both")
    found = ours.translate(TEXT, Options(prefix="the river"))
    assert found.text.startswith("the river")
    assert tokenizer().token(found.outputs[0].parts[0].tokens[0]) == FRENCH


def test_the_score_of_a_given_translation_leaves_out_what_is_given() -> None:
    ours = translator("languages before both")
    (found,) = scored(ours, [(TEXT, "a cat")])
    assert [piece for piece, _ in found] == [*tokenizer().pieces("a cat"), "<end>"]


@pytest.mark.parametrize("name", FRAMES)
def test_looking_shows_the_frame_outside_of_all_words(name: str) -> None:
    ours, frame = translator(name), FRAMES[name]
    looked = look(ours, TEXT)
    source, target = looked.trace.source, looked.trace.target
    named = [piece for piece, word in zip(source.pieces, source.word_of, strict=True) if word == OUTSIDE]
    assert named == [*frame.before, *frame.after]
    assert source.words == tuple(TEXT.split())
    assert target.pieces[: len(frame.begin)] == frame.begin
    assert set(target.word_of[: len(frame.begin)]) <= {OUTSIDE}
    given = look(ours, TEXT, target="the river bank").trace.target
    assert given.words == ("the", "river", "bank")
    assert given.pieces[: len(frame.begin)] == frame.begin
    first, second = sides(ours.tokenizers, TEXT, "the river bank")
    assert (first.pieces, second.pieces) == (source.pieces, given.pieces)


@pytest.mark.parametrize("name", FRAMES)
def test_what_if_walk_beam_and_meaning_begin_alike(name: str) -> None:
    ours, begin = translator(name), FRAMES[name].begin
    edited = look(ours, TEXT, edits=(MaskWord(1), ForcePrefix("the river")))
    outcome = edited.trace.target
    assert outcome.pieces[: len(begin)] == begin
    assert " ".join(outcome.words).startswith("the river")
    assert walk_text(ours, TEXT, word=0).steps
    tree = search_tree(ours, TEXT, Beam(3), others=())
    path = [node.piece for node in tree.nodes if node.parent == 0]
    assert not begin or path == [begin[0]]
    assert len(layers(ours.model, ours.tokenizers, TEXT)[0]) == len(TEXT.split())
    (linked, whole) = translations(ours.model, ours.tokenizers, [(TEXT, 2)], None)[0]
    assert FRENCH not in linked + whole


def test_training_reads_and_writes_them_too() -> None:
    both = translator("a language behind the end").tokenizers
    columns = encode_examples([(TEXT, "a cat")], PairEncoder(both)).columns
    assert columns["source"][0].tolist() == [*tokenizer().encode(TEXT), END, tokenizer().id(ENGLISH)]
    assert columns["target"][0].tolist() == [tokenizer().id(FRENCH), *tokenizer().encode("a cat")]


@pytest.mark.parametrize("options", [Options(Beam(4, best=2)), Options(Sample(3)), Options(prefix="a cat")], ids=str)
def test_captured_steps_begin_with_the_same_tokens(tmp_path: Path, options: Options) -> None:
    """There is no GPU here: the engine is told of one, and searches where the weights are."""
    ours = translator("languages before both")
    run = Run.create(tmp_path / "run", tiny.settings("transformer-small"))
    searcher = choose("native", replace(ours, device=torch.device("cuda"), run=run, longest=100))
    assert isinstance(searcher.engine, Captured)
    found, expected = (each.translate(LINES[:4], options) for each in (replace(ours, searcher=searcher), ours))
    for one, other in zip(found, expected, strict=True):
        assert [each.text for each in one.outputs] == [each.text for each in other.outputs]
        logs = [each.log_probability for each in other.outputs]
        assert [each.log_probability for each in one.outputs] == pytest.approx(logs, rel=1e-4)


@pytest.mark.parametrize("name", FRAMES)
def test_a_pair_with_nothing_but_its_frame_on_one_side_is_in_no_batch(name: str) -> None:
    ours, pairs = translator(name), [("the bear", "the honey"), ("", "the honey"), ("the bear", ""), ("", "")]
    examples = encode_examples(pairs, PairEncoder(ours.tokenizers))
    made = Batches(examples, budget=64).plan(0)
    assert (made.order.tolist(), made.empty) == ([0], 3)
    assert [shape.source > 0 for shape in menu_for(examples, budget=64)] == [True]
