"""A text through a trained run, step by step: what ``regard walk`` shows."""

from __future__ import annotations

from collections.abc import Sequence

from regard.decode.options import Options
from regard.errors import DataError, ModelError
from regard.explain.asked import read, spelling
from regard.explain.look import UNSEARCHED
from regard.explain.replay import check_size
from regard.explain.trace import Rows, Side, spell
from regard.explain.walkthrough.step import Walkthrough
from regard.explain.walkthrough.walk import NoSuchPlaceError, SideName, walkthrough
from regard.settings.call import DecodeSettings
from regard.tasks.load import Trained
from regard.text.vocabulary import END
from regard.text.words import MARKS


def walk_text(
    predictor: Trained,
    text: str,
    *,
    layer: int = 0,
    head: int = 0,
    word: int = 0,
    side: SideName = "all",
    decode: DecodeSettings | None = None,
) -> Walkthrough:
    """The walkthrough of a text and what the run makes of it, at the first piece of a word.

    The word is one of the translation, or of the text where the run does not translate or only its encoder is
    walked through. Everything counts from 0. ``decode`` is how to translate.
    """
    if not text.strip():
        raise DataError("text = '': an empty sentence has nothing to walk through; give it a word")
    if decode is not None and predictor.task != "translate":
        raise ModelError(UNSEARCHED)
    rows: Rows = ()
    ids: Sequence[int] | None = None
    match predictor.task:
        case "translate":
            predictor.search.check_whole(text)
            check_size(predictor.model, len(predictor.tokenizers.read(text)), 0)
            trace = predictor.translate(text, None if decode is None else Options.of(decode)).trace()
            rows, ids = trace.source.rows, trace.target.ids
            owner, counted = ("the text", trace.source) if side == "encoder" else ("the translation", trace.target)
            place = _place(counted, word, owner)
        case "language":
            target = spell([*predictor.tokenizer.encode(text), END], predictor.tokenizer, text)
            check_size(predictor.model, 0, len(target))
            ids, place = target.ids, _place(target, word, "the text")
        case "tag":
            rows, first = read(predictor, text).rows, predictor.reader.words(text.split())[1]
            if not 0 <= word < len(first):
                raise NoSuchPlaceError("word", word, len(first), "the text")
            check_size(predictor.model, len(rows), 0)
            place = first[word]
        case "classify":
            source = read(predictor, text)
            rows, place = source.rows, _place(source, word, "the text")
            check_size(predictor.model, len(rows), 0)
    how = spelling(predictor, text)
    return walkthrough(predictor.model, rows, ids, how, layer=layer, head=head, position=place, side=side)


def _place(side: Side, word: int, owner: str) -> int:
    """Where a word begins: its first piece that is no mark of case. An output without a word is its end alone."""
    if not side.words and word == 0:
        return 0
    if not 0 <= word < len(side.words):
        raise NoSuchPlaceError("word", word, len(side.words), owner)
    places = side.pieces_of(word)
    return next((place for place in places if side.pieces[place] not in MARKS), places[0])
