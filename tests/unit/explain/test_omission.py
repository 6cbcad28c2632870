"""Words that a translation leaves out: the output is as probable without them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tiny
from regard.decode.cancel import Cancelled, cancellable
from regard.decode.scoring import score
from regard.decode.texts import Output, Part
from regard.explain import omission
from regard.explain.omission import is_cheap, omitted
from regard.tasks.translator import Translator
from regard.text import Tokenizers
from regard.text.reading import Unknown
from regard.text.vectors import Vectors

LINES = ["the old man who slept is a cat .", *["the cat slept ."] * 300]
TEXT = "Why? The old man, who slept."


@pytest.fixture
def translator() -> Translator:
    tokenizers = Tokenizers.learn("word", LINES, LINES, joint=False, case="mark")
    return Translator((tiny.translator("gru"),), tokenizers, torch.device("cpu"))


def output(translator: Translator) -> Output:
    """Of the second sentence alone."""
    tokens = tuple(translator.tokenizers.written("the man slept ."))
    return Output("", 0.0, 0.0, (Part("The old man, who slept.", tokens, sentence=1, source_word=1),))


def test_every_word_is_taken_away_once_and_the_differences_are_those_of_scoring(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    read = Tokenizers.read
    monkeypatch.setattr(Tokenizers, "read", lambda self, text: asked.append(text) or read(self, text))  # type: ignore[func-returns-value]
    monkeypatch.setattr(omission, "ALIKE", -100.0)
    monkeypatch.setattr(omission, "LIKELIER", -100.0)
    found = omitted(translator, TEXT, output(translator))
    assert [(each.word, TEXT[each.start : each.end]) for each in found] == [
        (word, word) for word in ("The", "old", "man", "who", "slept")
    ]
    whole, *others = asked
    assert whole == "The old man, who slept."
    assert others == [
        "Old man, who slept.",
        "The man, who slept.",
        "The old, who slept.",
        "The old man, slept.",
        "The old man, who.",
    ]
    tokens = output(translator).parts[0].tokens
    sources = [read(translator.tokenizers, text) for text in asked]
    own, *each = (sum(scored) for scored in score(translator.model, sources, [tokens] * 6, translator.device))
    middle = sorted(one - own for one in each)[2]
    monkeypatch.setattr(omission, "ALIKE", middle)
    monkeypatch.setattr(omission, "LIKELIER", middle)
    likelier = [
        word for word, one in zip(("The", "old", "man", "who", "slept"), each, strict=True) if one - own > middle
    ]
    assert [each.word for each in omitted(translator, TEXT, output(translator))] == likelier


def test_frequent_words_must_make_the_difference_larger_than_rare_ones(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(omission, "score", lambda _model, sources, *_rest: [[0.0]] * len(sources))
    assert [each.word for each in omitted(translator, TEXT, output(translator))] == ["old", "man", "who"]
    monkeypatch.setitem(vars(translator.tokenizers), "known", None)
    assert omitted(translator, TEXT, output(translator)) == ()


def test_a_word_that_was_read_in_another_way_is_found_as_it_was_written() -> None:
    assert omission._located("The caf\u00e9s slept", 1, "cafe\u0301s") == Unknown(4, 9, "caf\u00e9s")
    assert omission._located("The “OLD” man", 1, "old") == Unknown(5, 8, "OLD")
    assert omission._located("İİ OLD", 1, "old") == Unknown(3, 6, "OLD")  # two letters in small ones
    assert omission._located("一二三四", 1, "三四") == Unknown(2, 4, "三四")


def test_a_word_never_seen_is_left_to_the_remark_on_such_words(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(omission, "score", lambda _model, sources, *_rest: [[0.0]] * len(sources))
    strange = Output("", 0.0, 0.0, (Part("the wizard who slept", (5,)),))
    assert [each.word for each in omitted(translator, "the wizard who slept", strange)] == ["who"]


def test_one_word_and_what_is_no_text_are_never_left_out(translator: Translator) -> None:
    one = Output("", 0.0, 0.0, (Part("Slept.", (5,)),))
    assert omitted(translator, "Slept.", one) == ()
    vectors: Any = object.__new__(Vectors)
    reader = Translator(translator.models, Tokenizers(vectors, translator.tokenizers.target), translator.device)
    assert omitted(reader, "[1, 2]", Output("", 0.0, 0.0, (Part("[1, 2]", (5,)),))) == ()


def test_it_stops_when_nobody_waits_for_it(translator: Translator) -> None:
    def gone() -> None:
        raise Cancelled

    with pytest.raises(Cancelled), cancellable(gone):
        omitted(translator, TEXT, output(translator))


def test_what_takes_long_is_not_cheap(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_cheap(translator, output(translator))
    pieces = len(translator.tokenizers.read("The old man, who slept.")) + len(output(translator).parts[0].tokens)
    most = 6 * pieces * sum(each.numel() for each in translator.model.parameters())
    monkeypatch.setattr(omission, "MOST", most)
    assert is_cheap(translator, output(translator))
    monkeypatch.setattr(omission, "MOST", most - 1)
    assert not is_cheap(translator, output(translator))
