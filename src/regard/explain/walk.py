"""A text through a trained run, step by step: what ``regard walk`` shows."""

from __future__ import annotations

from regard.decode.options import Options
from regard.errors import DataError, ModelError
from regard.explain.look import UNSEARCHED
from regard.explain.replay import Spelling, check_size
from regard.explain.side import Rows, Side, spell
from regard.explain.walkthrough.step import Walkthrough
from regard.explain.walkthrough.walk import NoSuchPlaceError, SideName, walkthrough
from regard.settings.call import DecodeSettings
from regard.tasks.classify import Classifier
from regard.tasks.kinds import Trained
from regard.tasks.tag import Tagger
from regard.text.casing import MARKS
from regard.text.special import END


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
    match predictor.task:
        case "translate":
            predictor.search.check_whole(text)
            check_size(predictor.model, len(predictor.tokenizers.read(text)), 0)
            trace = predictor.translate(text, None if decode is None else Options.of(decode)).trace()
            source, target = trace.source, trace.target
            spelling = Spelling(predictor.tokenizers.source, predictor.tokenizers.target, text)
            owner, counted = ("the text", source) if side == "encoder" else ("the translation", target)
            place = _place(counted, word, owner)
            return walkthrough(
                predictor.model, source.ids, target.ids, spelling, layer=layer, head=head, position=place, side=side
            )
        case "language":
            target = spell([*predictor.tokenizer.encode(text), END], predictor.tokenizer, text)
            check_size(predictor.model, 0, len(target))
            spelling = Spelling(target=predictor.tokenizer, target_text=text)
            place = _place(target, word, "the text")
            return walkthrough(
                predictor.model, (), target.ids, spelling, layer=layer, head=head, position=place, side=side
            )
        case "tag" | "classify":
            rows, place = _labelled(predictor, text, word)
            check_size(predictor.model, len(rows), 0)
            spelling = Spelling(predictor.reader.tokenizer, source_text=text, labels=tuple(predictor.labels))
            return walkthrough(predictor.model, rows, None, spelling, layer=layer, head=head, position=place, side=side)


def _place(side: Side, word: int, owner: str) -> int:
    """Where a word begins: its first piece that is no mark of case. An output without a word is its end alone."""
    if not side.words and word == 0:
        return 0
    if not 0 <= word < len(side.words):
        raise NoSuchPlaceError("word", word, len(side.words), owner)
    places = side.pieces_of(word)
    return next((place for place in places if side.pieces[place] not in MARKS), places[0])


def _labelled(predictor: Tagger | Classifier, text: str, word: int) -> tuple[Rows, int]:
    """What a labeller reads, and where in it the word is."""
    if predictor.task == "classify":
        read = _bare(predictor.reader.text(text))
        return read, _place(spell(read, predictor.reader.tokenizer, text), word, "the text")
    rows, first = predictor.reader.words(text.split())
    if not 0 <= word < len(first):
        raise NoSuchPlaceError("word", word, len(first), "the text")
    return _bare(rows), first[word]


def _bare(rows: list[list[int]]) -> Rows:
    """Ids alone, where no letters follow them."""
    return rows if any(len(row) > 1 for row in rows) else [row[0] for row in rows]
