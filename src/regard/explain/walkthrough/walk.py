"""``walkthrough``: the mathematics of one sentence, step by step, in the order in which the model computes it.

    steps = walkthrough(model, source_ids, target_ids, spelling, layer=1, head=3, position=2)
    for step in steps:
        print(step.title, step.idea, step.formula, step.shown, step.snippet)
        assert torch.allclose(step.run(), step.output)

Nothing is computed beside the model: an output is what an ordinary replay recorded. Where the model does not show a
value, it is what the snippet makes of recorded ones, and a later step whose output is recorded is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from torch import nn

from regard.decode.options import Options
from regard.errors import DataError, ModelError, did_you_mean
from regard.explain.asked import read, spelling
from regard.explain.look import UNSEARCHED
from regard.explain.replay import PLAIN, Model, Spelling, check_size, replay
from regard.explain.trace import Rows, Side, Trace, spell
from regard.explain.walkthrough import recurrent, transformer
from regard.explain.walkthrough.attention import Asking, attention_steps
from regard.explain.walkthrough.step import Board, Spot, Step, Value, Walkthrough, positions
from regard.models.generator import (
    AttentionPool,
    Encoder,
    EncoderDecoder,
    FinalPool,
    LanguageModel,
    MaxPool,
    MeanPool,
    Pool,
)
from regard.models.recurrent import (
    BahdanauDecoder,
    ConditionalDecoder,
    ContextDecoder,
    LuongDecoder,
    RecurrentEncoder,
)
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn.embeddings import OutputLayer
from regard.settings.call import DecodeSettings
from regard.tasks.load import Trained
from regard.text.vocabulary import END
from regard.text.words import MARKS

SideName = Literal["all", "encoder", "decoder", "cross"]
SIDES: tuple[str, ...] = get_args(SideName)
_PARTS = {
    "all": {"encoder", "context", "decoder", "cross", "output"},
    "encoder": {"encoder", "context"},
    "decoder": {"context", "decoder", "output"},
    "cross": {"cross"},
}


class NoSuchPlaceError(DataError):
    """A layer, head or piece that is not there. People count from 1, Python from 0: both can have it said."""

    def __init__(self, name: str, value: int, count: int, owner: str) -> None:
        self.name, self.value, self.count, self.owner = name, value, count, owner
        super().__init__(self.line())

    def line(self, *, first: int = 0, flag: str = "") -> str:
        if self.count == 0:
            return f"{flag or self.name} = {self.value + first}: {self.owner} has no {self.name}s; leave it out"
        kind = {"position": "piece", "source_position": "piece"}.get(self.name, self.name)
        places = f"{first} to {self.count - 1 + first}" if self.count > 1 else f"{first}"
        several = kind if self.count == 1 else f"{kind}s"
        return (
            f"{flag or self.name} = {self.value + first}: {self.owner} has {self.count} {several}; "
            f"{places} would be right"
        )


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


def walkthrough(
    model: Model,
    source_ids: Rows = (),
    target_ids: Sequence[int] | None = None,
    spelling: Spelling = PLAIN,
    *,
    layer: int = 0,
    head: int = 0,
    position: int = 0,
    source_position: int | None = None,
    side: SideName = "all",
) -> Walkthrough:
    """Every intermediate of one layer and one head, for one piece of a sentence.

    ``source_ids`` and ``target_ids`` are those of `replay`. ``position`` is the piece that is walked with: on the
    target, or on the source where only the encoder is walked. Steps that the model computes for all pieces at once
    have all of them, and mark the row of this one. Of a source read on the way, ``source_position`` is marked; by
    default the piece that the chosen head looks at most or, without attention, the last one read.
    """
    _check_side(model, side)
    trace = replay(model, source_ids, target_ids, spelling=spelling, detail="all")
    board = Board(model, trace, spelling)
    on_source = side == "encoder" or model.task == "label"
    _within("position", position, len(trace.source if on_source else trace.target), "the text")
    looked = position if on_source else source_position
    looked = _looked_at(trace, layer, head, position) if looked is None else looked
    if model.task != "language":
        _within("source_position", looked, len(trace.source), "the source")
    _walk(board, side, layer, head, rows=(position, looked))
    steps = _of_parts(board.steps, _PARTS["all" if model.task == "label" else side])
    return Walkthrough(trace.task, layer, head, position, looked, trace.source, trace.target, steps)


def _check_side(model: Model, side: str) -> None:
    if side not in SIDES:
        raise DataError(f"side = {side}: no such side; {did_you_mean(side, SIDES)}")
    has = {"all", "encoder", "decoder", "cross"}
    if model.task == "label":
        has = {"all", "encoder"}
    elif model.task == "language":
        has = {"all", "decoder"}
    elif isinstance(model.decoder, ContextDecoder):
        has = {"all", "encoder", "decoder"}
    if side not in has:
        raise ModelError(f"side = {side}: this model has no such side; {' or '.join(sorted(has))} would be right")


def _within(name: str, value: int, count: int, owner: str) -> None:
    """A count of 0 says that there is nothing to choose from; then the first is as good as none."""
    if not 0 <= value < max(count, 1):
        raise NoSuchPlaceError(name, value, count, owner)


def _looked_at(trace: Trace, layer: int, head: int, position: int) -> int:
    """The source piece that the walk looks at most; without attention, the last one read."""
    names = trace.layers("cross")
    if not names:
        return 0 if trace.backwards else max(len(trace.source) - 1, 0)
    weights = trace.tensors[names[min(layer, len(names) - 1)]]  # (H, T, S)
    return int(weights[min(max(head, 0), len(weights) - 1), position].argmax())


def _of_parts(steps: Sequence[Step], parts: set[str]) -> tuple[Step, ...]:
    """The steps of some parts. What they took from others they have from the trace, as far as it is there."""
    kept = [step for step in steps if step.part in parts]
    gone = {f"step {step.name}": f"trace {step.recorded}" for step in steps if step not in kept and step.recorded}

    def known(origin: str) -> str:
        name, bracket, index = origin.partition("[")
        return gone.get(name, name) + bracket + index

    return tuple(replace(step, origins={key: known(name) for key, name in step.origins.items()}) for step in kept)


def _walk(board: Board, side: str, layer: int, head: int, *, rows: tuple[int, int]) -> None:
    model, (position, looked) = board.model, rows
    if model.task == "label":
        _encode(board, model.encoder, layer, head, position)
        if isinstance(model.encoder, RecurrentEncoder):
            _within("head", head, 0, "this model")
        x = board.seen("encoder.states").at(position)
        if model.pool is not None:
            x = _pool_steps(board, model.pool, model.encoder)
        row = position if model.pool is None else 0
        _output_steps(board, x, model.head, row)
        return
    encoder = model.encoder if model.task == "translate" else None
    if encoder is not None and side in ("all", "encoder"):
        _encode(board, encoder, layer, head, looked)
    if side == "encoder":
        if isinstance(encoder, RecurrentEncoder):
            _within("head", head, 0, "a recurrent encoder")
            recurrent.context_steps(board, encoder, layer)
        return
    _decode(board, model, layer, head, position)


def _encode(board: Board, encoder: object, layer: int, head: int, row: int) -> None:
    spot = Spot(board, "encoder", layer, head, board.source, row)
    if isinstance(encoder, TransformerEncoder):
        _within("layer", layer, len(encoder.layers), "the encoder")
        _within("head", head, encoder.layers[layer].attention.heads, "a layer of the encoder")
        transformer.encoder_steps(spot, encoder)
    else:
        assert isinstance(encoder, RecurrentEncoder)
        _within("layer", layer, encoder.stack.depth, "the encoder")
        recurrent.encoder_steps(spot, encoder)


def _decode(board: Board, model: EncoderDecoder | LanguageModel, layer: int, head: int, row: int) -> None:
    decoder = model.decoder
    read = (model.first, *board.trace.target.ids[:-1])
    spot = Spot(board, "decoder", layer, head, board.read, row)
    if isinstance(decoder, TransformerDecoder):
        _within("layer", layer, len(decoder.layers), "the decoder")
        own = decoder.layers[layer].attention or decoder.layers[layer].cross
        _within("head", head, 0 if own is None else own.heads, "a layer of the decoder")
        x = transformer.decoder_steps(spot, decoder, read, board.source).at(row)
    else:
        assert isinstance(decoder, ContextDecoder | BahdanauDecoder | LuongDecoder | ConditionalDecoder)
        layers = decoder.stack.depth + isinstance(decoder, ConditionalDecoder)
        _within("layer", layer, layers, "the decoder")
        heads = 0 if isinstance(decoder, ContextDecoder) else decoder.attention.heads
        _within("head", head, heads, "this model")
        encoder = model.encoder if model.task == "translate" else None
        assert encoder is None or isinstance(encoder, RecurrentEncoder)
        x = recurrent.decoder_steps(spot, decoder, encoder, read)
    _output_steps(board, x, decoder.output, row)


# The last steps: pools of labellers, the output layer, the softmax, and the probability of what was chosen.


def _pool_steps(board: Board, pool: Pool, encoder: Encoder) -> Value:
    """One vector (D,) of all states."""
    states = board.seen("encoder.states")
    match pool:
        case MeanPool():
            return board.write("mean_pool", "pool.mean", "output", {"states": states}, "result = states.mean(0)")
        case MaxPool():
            return board.write("max_pool", "pool.max", "output", {"states": states}, "result = states.amax(0)")
        case FinalPool():
            assert isinstance(encoder, RecurrentEncoder)
            return recurrent.context_steps(board, encoder, encoder.stack.depth - 1)[0]
        case AttentionPool():
            asking = Asking(
                board=board,
                attention=pool.attention,
                place="pool",
                part="output",
                head=0,
                query=board.weight(pool.question).as_row(),
                source=states,
                asked_by=positions("question", ("question",)),
                asked=board.source,
            )
            return attention_steps(asking).at(0)


def _output_steps(board: Board, x: Value, layer: nn.Linear | OutputLayer, row: int) -> None:
    """Features (D,), scores of all words, probabilities, and that of the word in the output."""
    chosen = board.trace.target.ids[row]
    logits = board.seen("logits")
    logits = logits.at(row) if logits.tensor.dim() == 2 else logits  # a pooled text has one row
    axis = board.words(logits.tensor, chosen)
    inputs = {"x": x, **board.linear(layer)}
    scores = board.write("logits", "logits", "output", inputs, "result = w @ x + b", axes=(axis,), recorded=logits)
    probabilities = board.write(
        "probabilities", "probabilities", "output", {"logits": scores}, "result = logits.softmax(-1)", axes=(axis,)
    )
    board.write(
        "probability", "probability", "output", {"probabilities": probabilities}, f"result = probabilities[{chosen}]"
    )
