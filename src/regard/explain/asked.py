"""How a run of each task reads a text, writes its output, and replays it.

A labeller's output is its labels. A language model's output is its continuation of the text, so a word replaced or
masked in the text changes what is written after it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.decode.constraints import Prefix, required
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.errors import DataError
from regard.explain.replay import Detail, Spelling, forward, replay, resting
from regard.explain.trace import Rows, Side, Trace, label_places, spell
from regard.models.generator import EncoderDecoder
from regard.nn.observe import UNOBSERVED, Observer
from regard.tasks.language import Writer, room
from regard.tasks.load import Trained
from regard.text.vocabulary import END

Places = tuple[int, ...] | None  # of the pieces that count; None: all of them
WRITTEN = 20  # pieces that a language model adds, at most


def read(predictor: Trained, text: str) -> Side:
    """The text, as the model reads it."""
    match predictor.task:
        case "translate":
            return spell(predictor.tokenizers.read(text), predictor.tokenizers.source, text)
        case "language":
            return spell(predictor.tokenizer.encode(text), predictor.tokenizer, text)
        case "tag":
            return spell(predictor.reader.units(text)[1], predictor.reader.tokenizer, text)
        case "classify":
            return spell(predictor.reader.text(text), predictor.reader.tokenizer, text)


def spelling(predictor: Trained, text: str) -> Spelling:
    """How the ids of ``text`` and of its output are written."""
    match predictor.task:
        case "translate":
            return Spelling(predictor.tokenizers.source, predictor.tokenizers.target, text)
        case "language":
            return Spelling(target=predictor.tokenizer, target_text=text)
        case "tag" | "classify":
            return Spelling(predictor.reader.tokenizer, source_text=text, labels=predictor.labels.tokens)


def write(predictor: Trained, text: Side, observer: Observer = UNOBSERVED, *, prefix: str = "") -> list[int]:
    """The greedy output, under an observer that may change every step."""
    match predictor.task:
        case "translate":
            begun = required(predictor.tokenizers.target, "prefix", prefix) if prefix else []
            return greedy(predictor.model, text.rows, observer, prefix=[*predictor.tokenizers.begin, *begun])
        case "language":
            return _continued(predictor, text, observer, prefix)
        case "tag" | "classify":
            with torch.no_grad(), resting(predictor.model):
                return forward(predictor.model, text.rows, None, observer).argmax(-1).tolist()


def greedy(
    model: EncoderDecoder, source_ids: Rows, observer: Observer = UNOBSERVED, *, prefix: Sequence[int] = ()
) -> list[int]:
    """The greedy translation, with its ``<end>``, under an observer that may change every step."""
    source = torch.tensor([list(source_ids)], device=next(model.parameters()).device)
    limit = torch.tensor([2 * len(source_ids) + 10 + len(prefix)], device=source.device)
    with torch.no_grad(), resting(model):
        first, state = model.start(source, observer=observer)
        constraints = [Prefix([prefix])] if prefix else []
        found = search(model, first, state, limit, rule=Beam(1), constraints=constraints, observer=observer)
    return [*found[0][0].tokens, END]


def _continued(writer: Writer, text: Side, observer: Observer, prefix: str) -> list[int]:
    """The continuation of the text, with its ``<end>``."""
    model, device = writer.model, next(writer.model.parameters()).device
    start = required(writer.tokenizer, "prefix", prefix) if prefix else []
    with torch.no_grad(), resting(model):
        _, state = model.start(1)
        tokens = torch.tensor([[model.first, *text.ids]], device=device)  # (1, T)
        _, state = model.advance(tokens[:, :-1], state, observer=observer)
        limit = torch.tensor([room(model, tokens.shape[1], WRITTEN + len(start) + 1)], device=device)
        constraints = [Prefix([start])] if start else []
        found = search(model, tokens[:, -1], state, limit, rule=Beam(1), constraints=constraints, observer=observer)
    return [*found[0][0].tokens, END]


def seen_writing(
    predictor: Trained,
    text: Side,
    written: Sequence[int],
    observer: Observer | None = None,
    *,
    detail: Detail = "usual",
) -> Trace:
    """An output of a text, replayed."""
    if predictor.task == "language":
        how, source, target = Spelling(target=predictor.tokenizer), (), [*text.ids, *written]
        return replay(predictor.model, source, target, observer, spelling=how, detail=detail)
    how = spelling(predictor, " ".join(text.words))
    return replay(predictor.model, text.rows, written, observer, spelling=how, detail=detail)


def kept(predictor: Trained, text: Side, before: Trace, written: Sequence[int]) -> list[int]:
    """An output written before, for a text that may have changed.

    Tags go word by word: one piece of each has its label, and what the others would have does not count.
    """
    if predictor.task != "tag":
        return list(written)
    if len(text.words) != len(before.source.words):
        raise DataError(
            f"replace-word = {len(before.source.words)} words become {len(text.words)}: tags stand word by word; "
            "one word for one word would be right"
        )
    labels = write(predictor, text)
    places = (label_places(side, predictor.reader.tokenizer).values() for side in (before.source, text))
    for old, new in zip(*places, strict=True):
        labels[new] = written[old]
    return labels


def counted(predictor: Trained, trace: Trace, text: Side) -> Places:
    """What counts of an output: what a language model wrote; of a tagger, the piece of each word that has its
    tag; of a translation, what it was not given to begin with."""
    match predictor.task:
        case "language":
            return tuple(range(len(text), len(trace.target)))
        case "tag":
            return tuple(label_places(text, predictor.reader.tokenizer).values())
        case "translate" if begun := len(predictor.tokenizers.begin):
            return tuple(range(begun, len(trace.target)))
        case _:
            return None
