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
from regard.explain.look import AttentionWeights, Looked, ReadingHeads, TaskName
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
from regard.nn.embeddings import Embedding, Learned, Sinusoidal, Unplaced, VectorEmbedding
from regard.nn.layers import GatedFeedForward
from regard.nn.recurrent import Layer
from regard.nn.transformer import DecoderLayer, EncoderLayer, Norm, Residual
from regard.nn.words import WordEmbedding

Kind = Literal[
    "stack", "embedding", "positions", "norm", "layer", "attention", "recurrence", "feed_forward", "add",
    "recurrent", "context", "readout", "pool", "output",
]  # fmt: skip
Whose = Literal["source", "target", "whole"]  # whose pieces its vectors stand for: those read, those written, all
RecurrentDecoder = ContextDecoder | BahdanauDecoder | LuongDecoder | ConditionalDecoder


@dataclass(frozen=True, kw_only=True)
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

    def walk(self) -> Iterator[Part]:
        for each in self.parts:
            yield from each.walk()


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
    """The structure alone: what the model is made of."""
    if model.task == "label":
        pool = () if model.pool is None else (_pool(model.pool, model.encoder),)
        return (_encoder(model.encoder), *pool, _label_output(model.head, after=pool[0].name if pool else "encoder"))
    decoder = model.decoder
    assert isinstance(decoder, TransformerDecoder | RecurrentDecoder)
    made = _recurrent_decoder(decoder) if not isinstance(decoder, TransformerDecoder) else _transformer(decoder)
    first = () if model.task == "language" else (_encoder(model.encoder),)
    if model.task == "translate" and not isinstance(decoder, TransformerDecoder):
        assert isinstance(model.encoder, RecurrentEncoder)
        first = (*first, _context(model.encoder, decoder.bridge))
        made = _after_context(made)
    if model.task == "translate" and decoder.embedding is getattr(model.encoder, "embedding", None):
        made = _with_shared_table(made)
    tied = isinstance(decoder.embedding, Embedding) and decoder.output.weight is decoder.embedding.weight
    output = Part(
        name="output",
        kind="output",
        title="Output",
        about="A score for every piece of the vocabulary; softmax makes probabilities of them."
        + (" Its weights are the embedding's." if tied else ""),
        whose="target",
        size=_arrow(decoder.output.weight.shape[1], decoder.output.weight.shape[0]),
        parameters=_count(decoder.output) - (decoder.output.weight.numel() if tied else 0),
        reads=("decoder",),
        steps=("logits", "probabilities", "probability"),
        output="logits",
    )
    return (*first, made, output)


def _with_shared_table(decoder: Part) -> Part:
    """One table for both sides is counted once, with the encoder."""
    first, *rest = decoder.parts
    own = replace(first, about=f"{first.about} It is the encoder's table.", parameters=0)
    return replace(decoder, parts=(own, *rest), parameters=decoder.parameters - first.parameters)


def _after_context(decoder: Part) -> Part:
    """A recurrent decoder's layers begin with what the encoder handed over."""

    def begun(part: Part) -> Part:
        return replace(part, reads=(*part.reads, "context")) if part.kind == "recurrent" else part

    return replace(decoder, parts=tuple(map(begun, decoder.parts)))


# Transformers


def _encoder(encoder: Encoder) -> Part:
    assert isinstance(encoder, TransformerEncoder | RecurrentEncoder)
    return _transformer(encoder) if isinstance(encoder, TransformerEncoder) else _recurrent_encoder(encoder)


def _transformer(stack: TransformerEncoder | TransformerDecoder) -> Part:
    encodes = isinstance(stack, TransformerEncoder)
    side = "encoder" if encodes else "decoder"
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
        parts.append(_norm(f"{side}.{'states' if side == 'encoder' else 'features'}", stack.norm, whose, before))
    return _stack(side, whose, parts)


def _stack(side: str, whose: Whose, parts: Sequence[Part]) -> Part:
    encodes = side == "encoder"
    return Part(
        name=side,
        kind="stack",
        title=side.capitalize(),
        about="Reads the sentence and makes a vector for each piece that knows its neighbours."
        if encodes
        else "Reads what is written so far and makes the vector from which the next piece is chosen.",
        whose=whose,
        parameters=sum(part.parameters for part in parts),
        steps=(f"{side}.",),
        output="encoder.states" if encodes else "decoder.features",
        parts=_chained(parts),
    )


def _layer(name: str, layer: EncoderLayer | DecoderLayer, whose: Whose, before: str) -> Part:
    """The blocks of a layer, each with its residual connection."""
    entry, parts = before, list[Part]()
    crosses = isinstance(layer, DecoderLayer) and layer.cross is not None
    blocks = [_look_back(name, layer, whose), *([_cross(name, layer)] if crosses else []), _feed(name, layer, whose)]
    outputs = ["attended", *(["crossed"] if crosses else []), "states"]
    for inner, residual, output in zip(blocks, layer.residuals, outputs, strict=True):
        parts += _residual(name, inner, residual, (before, f"{name}.{output}"))
        before = f"{name}.{output}"
    return Part(
        name=name,
        kind="layer",
        title=f"Layer {int(name.rpartition('.')[2]) + 1}",
        about="One round of looking at others and working alone."
        if not isinstance(layer, DecoderLayer)
        else "One round: look back at what is written, look at the source, work alone."
        if crosses
        else "One round of looking back and working alone.",
        whose=whose,
        size=_width(layer.residuals[0].norm),
        parameters=_count(layer),
        reads=("encoder",) if crosses else (),
        steps=(f"{name}.",),
        output=f"{name}.states",
        entry=entry,
        parts=_chained(parts),
    )


def _look_back(name: str, layer: EncoderLayer | DecoderLayer, whose: Whose) -> Part:
    if isinstance(layer, DecoderLayer) and layer.recurrence is not None:
        width = layer.recurrence.forget.in_features
        return Part(
            name=f"{name}.cell",
            kind="recurrence",
            title="Recurrence",
            about="In place of attention, one vector of all that is written so far; a gate says how much of it stays.",
            whose=whose,
            size=_arrow(width, width),
            parameters=_count(layer.recurrence),
            steps=(f"{name}.cell.",),
            output=f"{name}.cell.hidden",
        )
    assert layer.attention is not None
    masked = isinstance(layer, DecoderLayer)
    about = (
        "Each piece looks at itself and at those before it, never ahead, and takes a mixture of what they say."
        if masked
        else "Each piece looks at all pieces and takes a mixture of what they say."
    )
    return _attention(f"{name}.self", layer.attention, "Self-attention", about, whose)


def _cross(name: str, layer: EncoderLayer | DecoderLayer) -> Part:
    assert isinstance(layer, DecoderLayer)
    assert layer.cross is not None
    about = "Each piece that is written looks at the source and takes a mixture of what its words say."
    found = _attention(f"{name}.cross", layer.cross, "Cross-attention", about, "target")
    return replace(found, reads=("encoder",))


def _feed(name: str, layer: EncoderLayer | DecoderLayer, whose: Whose) -> Part:
    network = layer.feed_forward
    gated = isinstance(network, GatedFeedForward)
    return Part(
        name=f"{name}.feed",
        kind="feed_forward",
        title="Feed-forward",
        about="A small network that works on each piece by itself: wide and back."
        + (" A second product, through SiLU, is its gate." if gated else ""),
        whose=whose,
        size=_arrow(network.expand.in_features, network.expand.out_features, network.contract.out_features),
        parameters=_count(network),
        steps=(f"{name}.feed.",),
    )


def _residual(name: str, inner: Part, residual: Residual, ends: tuple[str, str]) -> list[Part]:
    """``x + f(norm(x))`` or ``norm(x + f(x))`` as parts."""
    entry, output = ends
    kind = inner.name.rpartition(".")[2]
    add = Part(
        name=output,
        kind="add",
        title="Add" if residual.before else "Add and norm",
        about="What was found is added to what was there"
        + ("." if residual.before else ", and the sum is brought to one scale."),
        whose=inner.whose,
        size=_width(residual.norm),
        parameters=0 if residual.before else _count(residual.norm),
        reads=(entry,),
        steps=(output, f"{name}.{'self' if kind == 'cell' else kind}.sum"),
        output=output,
        entry=entry,
    )
    if not residual.before:
        return [inner, add]
    norm = _norm(f"{name}.{'self' if kind == 'cell' else kind}.norm", residual.norm, inner.whose, "")
    return [replace(norm, output=""), inner, add]


def _norm(name: str, norm: Norm, whose: Whose, entry: str) -> Part:
    title = {"LayerNorm": "Layer norm", "RMSNorm": "RMS norm", "BatchNorm": "Batch norm"}[type(norm).__name__]
    return Part(
        name=name,
        kind="norm",
        title=title,
        about="Brings each vector to one scale, so that no number grows out of hand.",
        whose=whose,
        size=_width(norm),
        parameters=_count(norm),
        steps=(name,),
        output=name,
        entry=entry,
    )


# Beginnings


def _embedding(side: str, embedding: Embedding | VectorEmbedding | WordEmbedding, whose: Whose) -> Part:
    match embedding:
        case Embedding():
            inputs, about = (
                embedding.weight.shape[0],
                "Each piece becomes a list of numbers: its row of a learned table.",
            )
        case VectorEmbedding():
            inputs, about = embedding.filters.in_channels, "Each vector becomes one of the model's width: a linear map."
        case _:
            inputs = embedding.learned.weight.shape[0]
            about = "Each word becomes a list of numbers: a learned row, and what its letters or given vectors say."
    return Part(
        name=f"{side}.embedded",
        kind="embedding",
        title="Embedding",
        about=about,
        whose=whose,
        size=_arrow(inputs, embedding.width),
        parameters=_count(embedding),
        steps=(f"{side}.pieces", f"{side}.embedded", f"{side}.beside"),
        output=f"{side}.embedded",
    )


def _positions(side: str, positions: Sinusoidal | Learned, whose: Whose) -> Part:
    learned = isinstance(positions, Learned)
    width = positions.weight.shape[1] if isinstance(positions, Learned) else positions.width
    return Part(
        name=f"{side}.placed",
        kind="positions",
        title="Positions",
        about="A vector for each place is added, "
        + ("learned like the embedding." if learned else "made of sines and cosines.")
        + " Without it, attention would not know the order.",
        whose=whose,
        size=f"{width:,}",
        parameters=_count(positions),
        steps=(f"{side}.positions", f"{side}.placed"),
        output=f"{side}.placed",
        entry=f"{side}.embedded",
    )


# The attention family


def _attention(name: str, attention: Attention, title: str, about: str, whose: Whose) -> Part:
    several = f"{attention.heads} heads" if attention.heads > 1 else "1 head"
    extra = [about, f"{_score(attention.score)}, {several}."]
    if attention.window is not None:
        extra.append("Only a window of the source is in sight.")
    if attention.hard:
        extra.append("One piece is chosen instead of a mixture.")
    if attention.rotary is not None:
        extra.append("Queries and keys are turned by their positions.")
    size = "" if attention.projections is None else _arrow(attention.projections.width, attention.projections.width)
    return Part(
        name=name,
        kind="attention",
        title=title,
        about=" ".join(extra),
        whose=whose,
        size=size,
        parameters=_count(attention),
        heads=attention.heads,
        steps=(f"{name}.",),
    )


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
        parts.append(
            Part(
                name="encoder.states",
                kind="readout",
                title="Annotations",
                about="What the decoder looks at: tanh(W h + b) of each state.",
                whose="source",
                size=_arrow(encoder.annotate.in_features, encoder.annotate.out_features),
                parameters=_count(encoder.annotate),
                steps=("encoder.states",),
                output="encoder.states",
            )
        )
    return _stack("encoder", "source", parts)


def _recurrent(side: str, level: int, layer: Layer, way: str = "piece by piece", about: str = "") -> Part:
    """One recurrent layer: its cells are one cell, used at every piece."""
    name, cell = f"{side}.{level}", layer.cell.fused.__name__
    said = about or f"Reads {way} and keeps one state, which every piece changes."
    gates = {"LSTM": " Gates say what is kept, what is taken in, what is shown.", "GRU": " Gates say what is kept."}
    return Part(
        name=name,
        kind="recurrent",
        title=f"{cell} layer {level + 1}",
        about=said + gates.get(cell, ""),
        whose="source" if side == "encoder" else "target",
        size=_arrow(layer.kernel.input_size, layer.width),
        parameters=_count(layer),
        steps=(f"{name}.cell.", f"{name}.states", *((f"{side}.input",) if side == "decoder" and level == 0 else ())),
        output=f"{name}.states",
    )


def _context(encoder: RecurrentEncoder, bridge: Bridge | ZeroBridge | None) -> Part:
    size, parameters = str(encoder.stack.width), 0
    match bridge:
        case ZeroBridge():
            title, about = "Zeros", "The decoder begins with zeros: all it knows of the source it sees by attention."
        case Bridge():
            title = "Mean of the states" if bridge.mean else "Bridge"
            what = "the mean of all states" if bridge.mean else "the last state"
            about = f"The decoder's first state: tanh(W h + b) of {what} of the encoder."
            size, parameters = _arrow(bridge.hidden[0].in_features, bridge.hidden[0].out_features), _count(bridge)
        case None:
            title, about = "Last state", "The encoder's last state becomes the decoder's first."
    depth = range(encoder.stack.depth)
    return Part(
        name="context",
        kind="context",
        title=title,
        about=about,
        whose="whole",
        size=size,
        parameters=parameters,
        reads=() if isinstance(bridge, ZeroBridge) else ("encoder",),
        steps=(
            "encoder.mean",
            *(f"encoder.{level}.final." for level in depth),
            *(f"decoder.{level}.first." for level in depth),
        ),
    )


def _recurrent_decoder(decoder: RecurrentDecoder) -> Part:
    """Its parts in the order of a step: that order is what tells these decoders apart."""
    layers = [_recurrent("decoder", level, layer) for level, layer in enumerate(decoder.stack.layers)]
    begin = _embedding("decoder", decoder.embedding, "target")
    match decoder:
        case ContextDecoder():
            parts = [begin, *layers]
        case BahdanauDecoder():
            about = "Before each step the state so far looks at the source; what it finds goes into the step."
            last = _readout("tanh(W [state; context; piece])", decoder.readout)
            parts = [begin, _looks(decoder.attention, about), *layers, last]
        case LuongDecoder():
            about = "After each step the new state looks at the source; what it finds goes to the output" + (
                " and into the next step." if decoder.feeding else "."
            )
            last = _readout("tanh(W [context; state])", decoder.combine)
            parts = [begin, *layers, _looks(decoder.attention, about), last]
        case ConditionalDecoder():
            about = "Between the two cells of a step the first one's state looks at the source."
            said = "The second cell of a step: it takes in what attention found."
            second = replace(_recurrent("decoder", len(layers), decoder.second, about=said), title="Second cell")
            parts = [begin, *layers, _looks(decoder.attention, about), second]
            if decoder.readout is not None:
                parts.append(_readout("tanh(W [state; context; piece])", decoder.readout))
    return _stack("decoder", "target", parts)


def _looks(attention: Attention, about: str) -> Part:
    found = _attention("decoder.cross", attention, "Attention", about, "target")
    return replace(found, reads=("encoder",))


def _readout(formula: str, layer: nn.Linear) -> Part:
    return Part(
        name="decoder.features",
        kind="readout",
        title="Ready to decide",
        about=f"All that is known at this step in one vector: {formula}.",
        whose="target",
        size=_arrow(layer.in_features, layer.out_features),
        parameters=_count(layer),
        steps=("decoder.features",),
        output="decoder.features",
    )


# Labels


def _pool(pool: Pool, encoder: Encoder) -> Part:
    match pool:
        case AttentionPool():
            about = "A learned question looks at all states; the mixture stands for the whole text."
            return replace(
                _attention("pool", pool.attention, "Pooling", about, "whole"),
                parameters=_count(pool),
                reads=("encoder",),
            )
        case MeanPool():
            about = "The mean of all states stands for the whole text."
        case MaxPool():
            about = "Each feature's largest value stands for the whole text."
        case FinalPool():
            about = "The encoder's last state stands for the whole text."
    return Part(
        name="pool",
        kind="pool",
        title="Pooling",
        about=about,
        whose="whole",
        size=str(encoder.width),
        reads=("encoder",),
        steps=("pool.", *_finals(encoder)),
    )


def _finals(encoder: Encoder) -> tuple[str, ...]:
    """The steps that take a recurrent encoder's last state."""
    if not isinstance(encoder, RecurrentEncoder):
        return ()
    return tuple(f"encoder.{level}.final." for level in range(encoder.stack.depth))


def _label_output(head: nn.Linear, after: str) -> Part:
    return Part(
        name="output",
        kind="output",
        title="Output",
        about="A score for every label; softmax makes probabilities of them.",
        whose="source" if after == "encoder" else "whole",
        size=_arrow(head.in_features, head.out_features),
        parameters=_count(head),
        reads=(after,),
        steps=("logits", "probabilities", "probability"),
        output="logits",
    )


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
