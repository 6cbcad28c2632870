"""The model as a tree of parts, from the whole down to a layer's attention, with the numbers of one sentence in each.

A part is named as in a trace (``encoder.0.self``). It says what it is, how large, how many parameters it has, which
parts it reads, and which steps of a walkthrough are inside it. The numbers are those of an ordinary replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.errors import DataError, did_you_mean
from regard.explain.answer import Answer, OfSentence, PackedTensor
from regard.explain.look import AttentionWeights, Looked, ReadingHeads
from regard.explain.replay import Model, replay
from regard.explain.trace import Side
from regard.models.generator import AttentionPool, Encoder, FinalPool, MaxPool, MeanPool, Pool
from regard.models.recurrent import (
    BahdanauDecoder,
    Bridge,
    ConditionalDecoder,
    ContextDecoder,
    LuongDecoder,
    RecurrentEncoder,
    ZeroBridge,
)
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn.attention import AdditiveScore, Attention, CosineScore, GeneralScore, InnerScore, Score, by_head
from regard.nn.embeddings import Embedding, Learned, OutputLayer, Sinusoidal, Unplaced, VectorEmbedding
from regard.nn.layers import GatedFeedForward
from regard.nn.recurrent import Layer
from regard.nn.transformer import DecoderLayer, EncoderLayer, Norm, Residual
from regard.nn.words import WordEmbedding
from regard.settings import TaskName

Kind = Literal[
    "stack", "embedding", "positions", "norm", "layer", "attention", "recurrence", "feed_forward", "add",
    "recurrent", "context", "readout", "pool", "output",
]  # fmt: skip
Whose = Literal["source", "target", "whole"]  # whose pieces its vectors stand for: those read, those written, all
RecurrentDecoder = ContextDecoder | BahdanauDecoder | LuongDecoder | ConditionalDecoder


@dataclass(frozen=True)
class Part(Answer):
    """A part of a model and what it made of the sentence."""

    name: Annotated[str, Field(description="As in a trace.", examples=["encoder.0.self"])]
    kind: Kind
    title: Annotated[str, Field(examples=["Self-attention"])]
    about: Annotated[str, Field(description="What it does, in a sentence.")]
    whose: Annotated[Whose, Field(description="Whose pieces its vectors stand for.")]
    size: Annotated[str, Field(description="Its widths.", examples=["64 → 256 → 64"])] = ""
    parameters: int = 0
    heads: Annotated[int, Field(description="Of an attention; else 0.")] = 0
    reads: Annotated[tuple[str, ...], Field(description="The parts it reads, by name.")] = ()
    steps: Annotated[tuple[str, ...], Field(description="How names of its steps in a walkthrough begin.")] = ()
    output: Annotated[str, Field(description="What leaves it, as a trace names it; empty if none does.")] = ""
    entry: Annotated[str, Field(description="What enters it, as a trace names it, if of the same width.")] = ""
    lengths: Annotated[
        tuple[float, ...], Field(description="Of what leaves it: √ of the mean square, for each piece.")
    ] = ()
    turned: Annotated[
        tuple[float, ...], Field(description="1 − cosine between what enters and what leaves, for each piece.")
    ] = ()
    parts: Annotated[tuple[Part, ...], Field(description="What it is made of, in the order of computation.")] = ()

    def walk(self) -> Iterator[Part]:
        """This part and all that are in it."""
        yield self
        for each in self.parts:
            yield from each.walk()


@dataclass(frozen=True)
class ModelMap(OfSentence):
    """A model as its parts, with one sentence in it."""

    task: TaskName
    run: str
    output: str
    parameters: int
    parts: tuple[Part, ...]
    source: Side
    inputs: Annotated[Side, Field(description="What the decoder read at each step.")]
    target: Side
    probabilities: Annotated[list[float], Field(description="Of each piece of the output.")]
    attentions: list[AttentionWeights]
    aligner: Annotated[ReadingHeads | None, Field(description="The heads that align best, where they are known.")]
    part: Annotated[str, Field(description="The part whose numbers were asked for.")] = ""
    inside: Annotated[
        dict[str, PackedTensor], Field(description="What a replay recorded in that part, by the rest of its name.")
    ] = field(default_factory=dict)


def map_model(looked: Looked, part: str = "") -> ModelMap:
    """The parts of the model that was looked into; with the name of a part, all that was recorded in it."""
    trace = looked.trace
    whole = replay(looked.model, trace.source.rows, trace.target.ids, looked.under(), detail="all")
    parts = tuple(_measured(each, whole.tensors) for each in parts_of(looked.model))
    names = [each.name for top in parts for each in top.walk()]
    if part and part not in names:
        raise DataError(f"part = {part}: this model has no such part; {did_you_mean(part, names)}")
    return ModelMap(
        task=looked.task,
        run=looked.run,
        output=looked.output,
        parameters=_count(looked.model),
        parts=parts,
        source=looked.source,
        inputs=looked.inputs,
        target=looked.target,
        probabilities=trace.log_probability.exp().tolist(),
        attentions=looked.attentions,
        aligner=looked.aligner,
        part=part,
        inside={} if not part else _compared(looked.model, part, _inside(part, whole.tensors)),
    )


def parts_of(model: Model) -> tuple[Part, ...]:
    """What the model is made of, without the numbers of a sentence."""
    if model.task == "label":
        pool = () if model.pool is None else (_pool(model.pool, model.encoder),)
        after = "pool" if pool else "encoder"
        about = "A score for every label; softmax makes probabilities of them."
        return (_encoder(model.encoder), *pool, _output(model.head, about, "whole" if pool else "source", after))
    decoder = model.decoder
    assert isinstance(decoder, TransformerDecoder | RecurrentDecoder)
    made = _transformer(decoder) if isinstance(decoder, TransformerDecoder) else _recurrent_decoder(decoder)
    about = "A score for every piece of the vocabulary; softmax makes probabilities of them."
    if tied := decoder.output.weight is decoder.embedding.weight:
        about += " Its weights are the embedding's."
    output = _output(decoder.output, about, "target", "decoder", tied=tied)
    if model.task == "language":
        return made, output
    first = [_encoder(model.encoder)]
    if not isinstance(decoder, TransformerDecoder):
        assert isinstance(model.encoder, RecurrentEncoder)
        first.append(_context(model.encoder, decoder.bridge))
        parts = (
            replace(part, reads=(*part.reads, "context")) if part.kind == "recurrent" else part for part in made.parts
        )
        made = replace(made, parts=tuple(parts))
    if decoder.embedding is getattr(model.encoder, "embedding", None):  # one table for both sides is counted once
        table, *rest = made.parts
        own = replace(table, about=f"{table.about} It is the encoder's table.", parameters=0)
        made = replace(made, parts=(own, *rest), parameters=made.parameters - table.parameters)
    return (*first, made, output)


def _output(layer: nn.Linear | OutputLayer, about: str, whose: Whose, after: str, *, tied: bool = False) -> Part:
    size, count = _arrow(*reversed(layer.weight.shape)), _count(layer)
    count -= layer.weight.numel() if tied else 0
    steps = ("logits", "probabilities", "probability")
    return Part("output", "output", "Output", about, whose, size, count, reads=(after,), steps=steps, output="logits")


def _stack(side: str, parts: Sequence[Part]) -> Part:
    encodes = side == "encoder"
    about = (
        "Reads the sentence and makes a vector for each piece that depends on its neighbours."
        if encodes
        else "Reads what is written so far and makes the vector from which the next piece is chosen."
    )
    count, output = sum(part.parameters for part in parts), "encoder.states" if encodes else "decoder.features"
    title, whose = side.capitalize(), parts[0].whose
    return Part(
        side, "stack", title, about, whose, "", count, steps=(f"{side}.",), output=output, parts=_chained(parts)
    )


def _encoder(encoder: Encoder) -> Part:
    assert isinstance(encoder, TransformerEncoder | RecurrentEncoder)
    return _transformer(encoder) if isinstance(encoder, TransformerEncoder) else _recurrent_encoder(encoder)


# Transformers


def _transformer(stack: TransformerEncoder | TransformerDecoder) -> Part:
    encodes = isinstance(stack, TransformerEncoder)
    side, last = ("encoder", "states") if encodes else ("decoder", "features")
    whose: Whose = "source" if encodes else "target"
    layers: Iterable[EncoderLayer | DecoderLayer] = stack.layers
    parts = [_embedding(side, stack.embedding, whose)]
    if not isinstance(stack.positions, Unplaced):
        parts.append(_positions(side, stack.positions, whose))
    before = parts[-1].output
    if stack.embedding_norm is not None:
        parts.append(_norm(f"{side}.normed", stack.embedding_norm, whose, before))
        before = f"{side}.normed"
    for level, layer in enumerate(layers):
        parts.append(_layer(f"{side}.{level}", layer, whose, before))
        before = f"{side}.{level}.states"
    if stack.norm is not None:
        parts.append(_norm(f"{side}.{last}", stack.norm, whose, before))
    return _stack(side, parts)


def _layer(name: str, layer: EncoderLayer | DecoderLayer, whose: Whose, before: str) -> Part:
    """The blocks of a layer, each with its residual connection."""
    entry, blocks, outputs = before, [_look_back(name, layer, whose)], ["attended"]
    about = "Self-attention, then a feed-forward network for each piece by itself."
    cross = layer.cross if isinstance(layer, DecoderLayer) else None
    if cross is not None:
        about = "Each piece that is written looks at the source and takes a mixture of what its words say."
        blocks.append(_attention(f"{name}.cross", cross, "Cross-attention", about, "target", reads=("encoder",)))
        outputs.append("crossed")
        about = (
            "Self-attention to what is written, cross-attention to the source, a feed-forward network for each piece."
        )
    elif isinstance(layer, DecoderLayer):
        about = "Self-attention to what is written, then a feed-forward network for each piece by itself."
    blocks.append(_feed(name, layer, whose))
    parts = list[Part]()
    for inner, residual, output in zip(blocks, layer.residuals, (*outputs, "states"), strict=True):
        parts += _residual(name, inner, residual, before, f"{name}.{output}")
        before = f"{name}.{output}"
    return Part(
        name,
        "layer",
        f"Layer {int(name.rpartition('.')[2]) + 1}",
        about,
        whose,
        _width(layer.residuals[0].norm),
        _count(layer),
        reads=() if cross is None else ("encoder",),
        steps=(f"{name}.",),
        output=f"{name}.states",
        entry=entry,
        parts=_chained(parts),
    )


def _look_back(name: str, layer: EncoderLayer | DecoderLayer, whose: Whose) -> Part:
    if isinstance(layer, DecoderLayer) and layer.recurrence is not None:
        about = "In place of attention, one vector of all that is written so far; a gate says how much of it stays."
        width, count = layer.recurrence.forget.in_features, _count(layer.recurrence)
        name, size, title = f"{name}.cell", _arrow(width, width), "Recurrence"
        steps, output = (f"{name}.",), f"{name}.hidden"
        return Part(name, "recurrence", title, about, whose, size, count, steps=steps, output=output)
    assert layer.attention is not None
    about = (
        "Each piece looks at itself and at those before it, never ahead, and takes a mixture of what they say."
        if isinstance(layer, DecoderLayer)
        else "Each piece looks at all pieces and takes a mixture of what they say."
    )
    return _attention(f"{name}.self", layer.attention, "Self-attention", about, whose)


def _feed(name: str, layer: EncoderLayer | DecoderLayer, whose: Whose) -> Part:
    network, name = layer.feed_forward, f"{name}.feed"
    about = "A small network that works on each piece by itself: wide and back."
    if isinstance(network, GatedFeedForward):
        about += " A second product, through SiLU, is its gate."
    size = _arrow(network.expand.in_features, network.expand.out_features, network.contract.out_features)
    return Part(name, "feed_forward", "Feed-forward", about, whose, size, _count(network), steps=(f"{name}.",))


def _residual(name: str, inner: Part, residual: Residual, entry: str, output: str) -> list[Part]:
    """``x + f(norm(x))`` or ``norm(x + f(x))`` as parts."""
    kind = inner.name.rpartition(".")[2].replace("cell", "self")
    size, steps = _width(residual.norm), (output, f"{name}.{kind}.sum")
    count = 0 if residual.before else _count(residual.norm)
    title = "Add" if residual.before else "Add and norm"
    about = "What was found is added to what was there" + (
        "." if residual.before else ", and the sum is brought to one scale."
    )
    add = Part(
        output, "add", title, about, inner.whose, size, count, reads=(entry,), steps=steps, output=output, entry=entry
    )
    if not residual.before:
        return [inner, add]
    return [replace(_norm(f"{name}.{kind}.norm", residual.norm, inner.whose, ""), output=""), inner, add]


def _norm(name: str, norm: Norm, whose: Whose, entry: str) -> Part:
    title = {"LayerNorm": "Layer norm", "RMSNorm": "RMS norm", "BatchNorm": "Batch norm"}[type(norm).__name__]
    about, size = "Brings each vector to one scale, so that no number grows out of hand.", _width(norm)
    return Part(name, "norm", title, about, whose, size, _count(norm), steps=(name,), output=name, entry=entry)


# Beginnings


def _embedding(side: str, embedding: Embedding | VectorEmbedding | WordEmbedding, whose: Whose) -> Part:
    match embedding:
        case Embedding():
            inputs = embedding.weight.shape[0]
            about = "Each piece becomes a list of numbers: its row of a learned table."
        case VectorEmbedding():
            inputs, about = embedding.filters.in_channels, "Each vector becomes one of the model's width: a linear map."
        case _:
            inputs = embedding.learned.weight.shape[0]
            about = "Each word becomes a list of numbers: a learned row, and what its letters or given vectors say."
    name, size, count = f"{side}.embedded", _arrow(inputs, embedding.width), _count(embedding)
    steps = (f"{side}.pieces", name, f"{side}.beside")
    return Part(name, "embedding", "Embedding", about, whose, size, count, steps=steps, output=name)


def _positions(side: str, positions: Sinusoidal | Learned, whose: Whose) -> Part:
    learned = isinstance(positions, Learned)
    width = positions.weight.shape[1] if isinstance(positions, Learned) else positions.width
    how = "learned like the embedding." if learned else "made of sines and cosines."
    about = f"A vector for each place is added, {how} Without it, attention would not know the order."
    name, size, entry = f"{side}.placed", f"{width:,}", f"{side}.embedded"
    steps, count = (f"{side}.positions", name), _count(positions)
    return Part(name, "positions", "Positions", about, whose, size, count, steps=steps, output=name, entry=entry)


# The attention family


def _attention(
    name: str, attention: Attention, title: str, about: str, whose: Whose, *, reads: tuple[str, ...] = ()
) -> Part:
    several = f"{attention.heads} heads" if attention.heads > 1 else "1 head"
    about += f" {_score(attention.score)}, {several}."
    if attention.window is not None:
        about += " Only a window of the source is in sight."
    if attention.hard:
        about += " One piece is chosen instead of a mixture."
    if attention.rotary is not None:
        about += " Queries and keys are rotated by their positions."
    size = "" if attention.projections is None else _arrow(attention.projections.width, attention.projections.width)
    count, heads, steps = _count(attention), attention.heads, (f"{name}.",)
    return Part(name, "attention", title, about, whose, size, count, heads=heads, reads=reads, steps=steps)


def _score(score: Score) -> str:
    match score:
        case GeneralScore():
            return "Scores q · W k"
        case CosineScore():
            return "Scores β · cos(q, k)"
        case InnerScore():
            return "Scores q · k" if score.scale == 1.0 else "Scores q · k ÷ √d"
        case AdditiveScore():
            return "Scores v · tanh(W [q; k])"


# Recurrent models


def _recurrent_encoder(encoder: RecurrentEncoder) -> Part:
    parts = [_embedding("encoder", encoder.embedding, "source")]
    for level, layer in enumerate(encoder.stack.layers):
        way = "from the last piece to the first" if encoder.reverse else "piece by piece"
        parts.append(_recurrent("encoder", level, layer, "both ways" if layer.bidirectional else way))
    if encoder.annotate is not None:
        about = "What the decoder looks at: tanh(W h + b) of each state."
        parts.append(_readout("encoder.states", "Annotations", about, "source", encoder.annotate))
    return _stack("encoder", parts)


def _readout(name: str, title: str, about: str, whose: Whose, layer: nn.Linear) -> Part:
    size = _arrow(layer.in_features, layer.out_features)
    return Part(name, "readout", title, about, whose, size, _count(layer), steps=(name,), output=name)


def _recurrent(side: str, level: int, layer: Layer, way: str = "piece by piece", about: str = "") -> Part:
    """One recurrent layer: its cells are one cell, used at every piece."""
    name, cell = f"{side}.{level}", layer.cell.fused.__name__
    about = about or f"Reads {way} and keeps one state, which every piece changes."
    gates = {"LSTM": " Gates say what is kept, what is taken in, what is shown.", "GRU": " Gates say what is kept."}
    return Part(
        name,
        "recurrent",
        f"{cell} layer {level + 1}",
        about + gates.get(cell, ""),
        "source" if side == "encoder" else "target",
        _arrow(layer.kernel.input_size, layer.width),
        _count(layer),
        steps=(f"{name}.cell.", f"{name}.states", *((f"{side}.input",) if side == "decoder" and level == 0 else ())),
        output=f"{name}.states",
    )


def _context(encoder: RecurrentEncoder, bridge: Bridge | ZeroBridge | None) -> Part:
    size, count = str(encoder.stack.width), 0
    match bridge:
        case ZeroBridge():
            title, about = "Zeros", "The decoder begins with zeros: all it knows of the source it sees by attention."
        case Bridge():
            title = "Mean of the states" if bridge.mean else "Bridge"
            what = "the mean of all states" if bridge.mean else "the last state"
            about = f"The decoder's first state: tanh(W h + b) of {what} of the encoder."
            size, count = _arrow(bridge.hidden[0].in_features, bridge.hidden[0].out_features), _count(bridge)
        case None:
            title, about = "Last state", "The encoder's last state becomes the decoder's first."
    first = (f"decoder.{level}.first." for level in range(encoder.stack.depth))
    steps = ("encoder.mean", *_finals(encoder), *first)
    reads = () if isinstance(bridge, ZeroBridge) else ("encoder",)
    return Part("context", "context", title, about, "whole", size, count, reads=reads, steps=steps)


def _recurrent_decoder(decoder: RecurrentDecoder) -> Part:
    """Its parts in the order of a step: that order is what tells these decoders apart."""
    layers = [_recurrent("decoder", level, layer) for level, layer in enumerate(decoder.stack.layers)]
    parts = [_embedding("decoder", decoder.embedding, "target")]
    formula = "tanh(W [state; context; piece])"
    match decoder:
        case ContextDecoder():
            return _stack("decoder", [*parts, *layers])
        case BahdanauDecoder():
            about = "Before each step the state so far looks at the source; what it finds goes into the step."
            parts += [_looks(decoder.attention, about), *layers]
            last: nn.Linear | None = decoder.readout
        case LuongDecoder():
            about = "After each step the new state looks at the source; what it finds goes to the output" + (
                " and into the next step." if decoder.feeding else "."
            )
            parts += [*layers, _looks(decoder.attention, about)]
            last, formula = decoder.combine, "tanh(W [context; state])"
        case ConditionalDecoder():
            about = "Between the two cells of a step the first one's state looks at the source."
            said = "The second cell of a step: it takes in what attention found."
            second = replace(_recurrent("decoder", len(layers), decoder.second, about=said), title="Second cell")
            parts += [*layers, _looks(decoder.attention, about), second]
            last = decoder.readout
    if last is not None:
        about = f"All that is known at this step in one vector: {formula}."
        parts.append(_readout("decoder.features", "Ready to decide", about, "target", last))
    return _stack("decoder", parts)


def _looks(attention: Attention, about: str) -> Part:
    return _attention("decoder.cross", attention, "Attention", about, "target", reads=("encoder",))


# Labels


def _pool(pool: Pool, encoder: Encoder) -> Part:
    reads = ("encoder",)
    match pool:
        case AttentionPool():
            about = "A learned question looks at all states; the mixture stands for the whole text."
            found = _attention("pool", pool.attention, "Pooling", about, "whole", reads=reads)
            return replace(found, parameters=_count(pool))
        case MeanPool():
            about = "The mean of all states stands for the whole text."
        case MaxPool():
            about = "Each feature's largest value stands for the whole text."
        case FinalPool():
            about = "The encoder's last state stands for the whole text."
    steps = ("pool.", *(_finals(encoder) if isinstance(encoder, RecurrentEncoder) else ()))
    return Part("pool", "pool", "Pooling", about, "whole", str(encoder.width), reads=reads, steps=steps)


def _finals(encoder: RecurrentEncoder) -> tuple[str, ...]:
    """The steps that take a recurrent encoder's last state."""
    return tuple(f"encoder.{level}.final." for level in range(encoder.stack.depth))


# Numbers


def _measured(part: Part, tensors: Mapping[str, Tensor]) -> Part:
    """A part with the numbers of what entered and left it."""
    found = tensors.get(part.output)
    inner = tuple(_measured(each, tensors) for each in part.parts)
    if found is None or part.kind == "output":
        return replace(part, parts=inner)
    rows = found.reshape(-1, found.shape[-1]).float()
    before = tensors.get(part.entry)
    turned = () if before is None else (1 - torch.cosine_similarity(before.float(), rows, dim=-1)).tolist()
    return replace(part, parts=inner, lengths=tuple(rows.square().mean(-1).sqrt().tolist()), turned=tuple(turned))


def _inside(part: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What was recorded in a part, by the rest of its name; of a stack or a layer, only what leaves it."""
    return {
        name.removeprefix(part).lstrip("."): value
        for name, value in tensors.items()
        if name == part or (name.startswith(f"{part}.") and name.removeprefix(f"{part}.").count(".") <= 2)
    }


def _compared(model: Model, part: str, inside: dict[str, Tensor]) -> dict[str, Tensor]:
    """With what a score compares: ``asked`` and ``answered``, after rotation and weights. Their product is
    ``products``; of an additive score, the sum of ``combine`` · tanh(asked + answered) is ``scores``."""
    attention = _attention_at(model, part)
    if attention is None or not {"queries", "keys"} <= inside.keys():
        return inside
    score, rotary = attention.score, attention.rotary
    with torch.no_grad():
        asked, answered = inside["queries"][None], score.prepare(inside["keys"][None])  # (1, H, T, K), (1, H, S, K)
        if rotary is not None:
            asked, answered = rotary(asked, 0), rotary(answered, 0)
        if isinstance(score, InnerScore):
            return {**inside, "asked": score.queries(asked)[0], "answered": answered[0]}
        asked = by_head(asked, score.query_weight)
        asked = asked if score.bias is None else asked + score.bias
        return {**inside, "asked": asked[0], "answered": answered[0], "combine": score.combine.detach()}


def _attention_at(model: Model, part: str) -> Attention | None:
    """The attention of that name."""
    side, *rest = part.split(".")
    owner = model if side == "pool" else getattr(model, side, None)
    found = getattr(owner, {"pool": "pool"}.get(side, "attention"), None) if rest in ([], ["cross"]) else None
    if len(rest) == 2 and isinstance(owner, TransformerEncoder | TransformerDecoder):
        layer: object = list(owner.layers)[int(rest[0])]
        found = getattr(layer, {"self": "attention", "cross": "cross"}.get(rest[1], ""), None)
    found = found.attention if isinstance(found, AttentionPool) else found
    return found if isinstance(found, Attention) else None


def _chained(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Each part reads the one before it, beside what it says itself."""
    found, before = [], ""
    for part in parts:
        found.append(replace(part, reads=tuple(filter(None, (before, *part.reads)))))
        before = part.name
    return tuple(found)


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _arrow(*widths: int) -> str:
    return " → ".join(f"{width:,}" for width in widths)


def _width(norm: Norm) -> str:
    return f"{norm.gain.shape[0]:,}"
