"""Builds models from settings: the only place where a name becomes a class. The modules know no settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, assert_never, get_args

import torch.nn.functional as F
from torch import Tensor
from torch.nn import init

from regard import settings
from regard.errors import SettingsError, did_you_mean
from regard.models.generator import (
    AttentionPool,
    Encoder,
    EncoderDecoder,
    FinalPool,
    FreeDecoder,
    Labeller,
    LanguageModel,
    MaxPool,
    MeanPool,
    Pool,
)
from regard.models.recurrent import (
    BahdanauDecoder,
    Bridge,
    ConditionalDecoder,
    ContextDecoder,
    LuongDecoder,
    RecurrentEncoder,
    ZeroBridge,
)
from regard.models.transformer import Positions, TransformerDecoder, TransformerEncoder
from regard.nn.attention import (
    NORMALISERS,
    AdditiveScore,
    Attention,
    CosineScore,
    GeneralScore,
    InnerScore,
    MonotonicWindow,
    PredictedWindow,
    Projections,
    Score,
)
from regard.nn.embeddings import (
    Embedding,
    Learned,
    OneHotEmbedding,
    OutputLayer,
    Rotary,
    Sinusoidal,
    TargetEmbedding,
    Unplaced,
    VectorEmbedding,
)
from regard.nn.layers import BatchNorm, FeedForward, GatedFeedForward, LayerNorm, RMSNorm
from regard.nn.recurrent import ELMAN, GRU, LSTM, Cell, Layer, Stack
from regard.nn.transformer import SSRU, DecoderLayer, EncoderLayer, Norm, Residual
from regard.nn.words import LetterConvolution, SourceEmbedding, WordEmbedding
from regard.settings.schema import common_width, head_width
from regard.text.vocabulary import START, UNK
from regard.text.words import LETTERS

PoolName = Literal["mean", "max", "final", "attention"]


def encoder_decoder(
    model: settings.ModelSettings, source_size: int, target_size: int, *, vectors: bool = False
) -> EncoderDecoder:
    """A translator over vocabularies of these sizes. With ``vectors`` it reads vectors of ``source_size`` numbers."""
    _reads_plain_ids(model, "a translator")
    if vectors and model.tie == "all":
        raise SettingsError("model.tie = all: a source of vectors has no vocabulary to share; use 'target' or 'none'")
    if model.tie == "all" and source_size != target_size:
        raise SettingsError(
            f"model.tie = all: needs one joint vocabulary, but the source has {source_size} tokens "
            f"and the target {target_size}; use 'target' or train a joint tokenizer"
        )
    target = _embedding(model, target_size, writes=True)
    source: SourceEmbedding = target if model.tie == "all" else _source_embedding(model, source_size, vectors=vectors)
    return _join(model, source, target, target_size)


def forecaster(model: settings.ModelSettings, features: int, written: int, outputs: int) -> EncoderDecoder:
    """Vectors of ``features`` numbers to vectors of ``written``; ``outputs`` numbers describe what each may be. These
    begin at zero: before it has learned, a forecaster says what it is to add to, and nothing else."""
    _reads_plain_ids(model, "a forecaster")
    source = VectorEmbedding(features, model.width, model.reach)
    target = VectorEmbedding(written, model.width)  # without neighbours: the next one is not known yet
    made = _join(model, source, target, outputs)
    init.zeros_(made.decoder.output.weight)
    return made


def _join(model: settings.ModelSettings, source: SourceEmbedding, target: TargetEmbedding, size: int) -> EncoderDecoder:
    """An encoder, which draws its weights first, and a decoder with outputs of this size."""
    match model:
        case settings.RecurrentModel():
            return EncoderDecoder(_recurrent_encoder(model, source), _recurrent_decoder(model, target, size))
        case settings.TransformerModel():
            encoder = _transformer_encoder(model, source)
            return EncoderDecoder(encoder, _transformer_decoder(model, target, size, cross=True))
        case _:
            assert_never(model)


def language_model(model: settings.ModelSettings, size: int) -> LanguageModel:
    """A model of text over a vocabulary of this size."""
    _reads_plain_ids(model, "a language model")
    embedding = _embedding(model, size, writes=True)
    decoder: FreeDecoder
    match model:
        case settings.RecurrentModel():
            if not isinstance(model.decoder, settings.ContextDecoderSettings):
                raise SettingsError(
                    f"model.decoder.kind = {model.decoder.kind}: attends to a source, and a language model has none; "
                    "use 'context'"
                )
            for name in ("bidirectional", "reverse"):
                if getattr(model, name):
                    raise SettingsError(
                        f"model.{name} = true: is about reading a source, and a language model has none"
                    )
            stack = _stack(model, model.width)
            output = _output(model, embedding, stack.width, size)
            decoder = ContextDecoder(embedding, stack, output, dropout=model.dropout)
        case settings.TransformerModel():
            decoder = _transformer_decoder(model, embedding, size, cross=False)
        case _:
            assert_never(model)
    return LanguageModel(decoder)


def labeller(
    model: settings.ModelSettings,
    size: int,
    labels: int,
    pool: PoolName | None = None,
    *,
    seen: int | None = None,
    vectors: bool = False,
) -> Labeller:
    """One label for each token or, with a pool, for the sequence. The first ``seen`` ids are in the training text."""
    if pool is not None and pool not in get_args(PoolName):
        raise SettingsError(f"pool = {pool}: no such pool; {did_you_mean(pool, get_args(PoolName))}")
    if isinstance(model, settings.RecurrentModel) and model.annotations == "dense":
        raise SettingsError(
            "model.annotations = dense: is what a decoder attends to, and a labeller has none; use 'plain'"
        )
    if vectors:
        _reads_plain_ids(model, "a source of vectors")
        embedding = _source_embedding(model, size, vectors=True)
    else:
        embedding = _word_embedding(model, size, size if seen is None else seen)
    encoder: Encoder
    match model:
        case settings.RecurrentModel():
            encoder = _recurrent_encoder(model, embedding)
        case settings.TransformerModel():
            if pool == "final":
                raise SettingsError("pool = final: a Transformer encoder has no final state; use 'mean' or 'attention'")
            encoder = _transformer_encoder(model, embedding)
        case _:
            assert_never(model)
    return Labeller(encoder, labels, pool=_pool(pool, encoder.width), dropout=model.dropout)


# Embeddings and outputs


def _embedding(
    model: settings.ModelSettings, size: int, scale: float | None = None, *, writes: bool = False
) -> Embedding:
    """Features begin with variance one: with less, an LSTM takes many times as long to start learning."""
    usual = model.width**0.5 if model.embedding_scale else 1.0
    scale, zero = usual if scale is None else scale, START if writes and model.start == "zero" else None
    match model.embedding:
        case "learned":
            return Embedding(size, model.width, scale, zero)
        case "one_hot":
            return OneHotEmbedding(size, model.width, scale, zero)
        case _:
            assert_never(model.embedding)


def _source_embedding(model: settings.ModelSettings, size: int, *, vectors: bool) -> SourceEmbedding:
    return VectorEmbedding(size, model.width, model.reach, model.across) if vectors else _embedding(model, size)


def _word_embedding(model: settings.ModelSettings, size: int, seen: int) -> SourceEmbedding:
    """Letters and frozen vectors are concatenated with the learned vector; a Transformer maps all to one width.

    The features of a recurrent labeller begin small, so that it overfits less: there is little labelled text.
    """
    scale = 1.0 if isinstance(model, settings.RecurrentModel) else None
    frozen = model.vectors.frozen and model.vectors.width > 0
    if not model.letters and not frozen:
        return _embedding(model, size, scale)
    return WordEmbedding(
        _embedding(model, seen if frozen else size, scale),
        unknown=UNK,
        vectors=(size, model.vectors.width) if frozen else (0, 0),
        forget=model.vectors.forget if frozen else 0.0,
        spelling=LetterConvolution(LETTERS, _LETTER_WIDTH, model.letter_features) if model.letters else None,
        project=model.width if isinstance(model, settings.TransformerModel) else None,
    )


_LETTER_WIDTH = 24  # of a letter's own vector; there are few letters


def _reads_plain_ids(model: settings.ModelSettings, what: str) -> None:
    if model.letters:
        raise SettingsError(
            f"model.letters = {model.letters}: {what} reads pieces alone; use 0, or the task tag or classify"
        )
    if model.vectors.frozen:
        raise SettingsError(
            f"model.vectors.frozen = true: {what} learns its vectors; use false, or the task tag or classify"
        )


def _output(model: settings.ModelSettings, embedding: TargetEmbedding, width: int, size: int) -> OutputLayer:
    return OutputLayer(width, size, embedding if model.tie != "none" and isinstance(embedding, Embedding) else None)


def _pool(name: PoolName | None, width: int) -> Pool | None:
    match name:
        case None:
            return None
        case "mean":
            return MeanPool()
        case "max":
            return MaxPool()
        case "final":
            return FinalPool()
        case "attention":
            return AttentionPool(Attention(AdditiveScore(1, width, width, width)), width)
        case _:
            assert_never(name)


# The attention family


def _score(name: settings.ScoreName, heads: int, query_width: int, key_width: int, hidden: int = 0) -> Score:
    """Widths are those of one head."""
    match name:
        case "dot":
            common_width(name, query_width, key_width)
            return InnerScore()
        case "scaled_dot":
            return InnerScore(common_width(name, query_width, key_width) ** -0.5)
        case "general":
            return GeneralScore(heads, query_width, key_width)
        case "additive":
            return AdditiveScore(heads, query_width, key_width, hidden or query_width)
        case "concat":
            return AdditiveScore(heads, query_width, key_width, hidden or query_width, bias=False)
        case "cosine":
            return CosineScore(heads, common_width(name, query_width, key_width))
        case _:
            assert_never(name)


def _window(window: settings.WindowSettings, width: int) -> MonotonicWindow | PredictedWindow | None:
    match window.kind:
        case "none":
            return None
        case "monotonic":
            return MonotonicWindow(window.reach)
        case "predicted":
            return PredictedWindow(width, window.reach)
        case _:
            assert_never(window.kind)


def _recurrent_attention(attention: settings.RecurrentAttention, query: int, source: int) -> tuple[Attention, int]:
    """Attention of a decoder with states of width ``query`` to states of width ``source``, and its context's width."""
    projections = Projections(query, source, query) if attention.projected else None
    key = query if attention.projected else source
    query_head, key_head = (head_width(width, attention.heads) for width in (query, key))
    built = Attention(
        _score(attention.score, attention.heads, query_head, key_head, attention.hidden),
        heads=attention.heads,
        projections=projections,
        normaliser=NORMALISERS[attention.normaliser],
        hard=attention.selection == "hard",
        window=_window(attention.window, query),
    )
    return built, key


# Recurrent models


def _cell(name: Literal["elman", "lstm", "gru"]) -> Cell:
    match name:
        case "elman":
            return ELMAN
        case "lstm":
            return LSTM
        case "gru":
            return GRU
        case _:
            assert_never(name)


def _stack(model: settings.RecurrentModel, inputs: int, *, bidirectional: bool = False) -> Stack:
    return Stack(
        _cell(model.cell),
        inputs,
        model.hidden,
        model.depth,
        bidirectional=bidirectional,
        dropout=model.dropout,
        variational=model.variational,
    )


def _recurrent_encoder(model: settings.RecurrentModel, embedding: SourceEmbedding) -> RecurrentEncoder:
    stack = _stack(model, embedding.width, bidirectional=model.bidirectional)
    annotations = model.hidden if model.annotations == "dense" else None
    return RecurrentEncoder(embedding, stack, annotations=annotations, reverse=model.reverse, dropout=model.dropout)


def _bridge(model: settings.RecurrentModel) -> Bridge | ZeroBridge | None:
    match model.bridge:
        case "copy":
            return None
        case "dense" | "mean":
            mean, has_cell = model.bridge == "mean", _cell(model.cell).has_cell
            inputs = model.annotation_width if mean else model.encoder_width
            return Bridge(model.depth, inputs, model.hidden, has_cell=has_cell, mean=mean)
        case "zero":
            return ZeroBridge(_cell(model.cell), model.hidden, model.depth)
        case _:
            assert_never(model.bridge)


def _recurrent_decoder(
    model: settings.RecurrentModel, embedding: TargetEmbedding, size: int
) -> ContextDecoder | BahdanauDecoder | LuongDecoder | ConditionalDecoder:
    bridge, hidden, drop = _bridge(model), model.hidden, model.dropout
    if isinstance(model.decoder, settings.ContextDecoderSettings):
        output = _output(model, embedding, hidden, size)
        return ContextDecoder(embedding, _stack(model, model.width), output, bridge=bridge, dropout=drop)
    attention, context = _recurrent_attention(model.decoder.attention, hidden, model.annotation_width)
    match model.decoder:
        case settings.BahdanauDecoderSettings():
            stack, output = _stack(model, model.width + context), _output(model, embedding, model.width, size)
            return BahdanauDecoder(
                embedding, stack, attention, output, context_width=context, bridge=bridge, dropout=drop
            )
        case settings.LuongDecoderSettings(feeding=feeding):
            stack = _stack(model, model.width + (hidden if feeding else 0))
            output = _output(model, embedding, hidden, size)
            return LuongDecoder(
                embedding, stack, attention, output, context_width=context, feeding=feeding, bridge=bridge, dropout=drop
            )
        case settings.ConditionalDecoderSettings(second=second):
            stack = _stack(model, model.width)
            later = Layer(_cell(model.cell), context + (hidden if second == "layer" else 0), hidden)
            output = _output(model, embedding, model.width if model.reads_out else hidden, size)
            return ConditionalDecoder(
                embedding,
                stack,
                attention,
                later,
                output,
                context_width=context,
                readout=model.reads_out,
                bridge=bridge,
                dropout=drop,
            )
        case _:
            assert_never(model.decoder)


# Transformers


def _transformer_attention(
    model: settings.TransformerModel, attention: settings.AttentionSettings, *, rotary: bool
) -> Attention:
    width = head_width(model.width, model.heads)
    return Attention(
        _score(attention.score, model.heads, width, width),
        heads=model.heads,
        projections=Projections(model.width, model.width, model.width),
        normaliser=NORMALISERS[attention.normaliser],
        hard=attention.selection == "hard",
        straight=True,
        window=_window(attention.window, model.width),
        rotary=Rotary(width) if rotary else None,
        dropout=model.attention_dropout,
    )


def _positions(model: settings.TransformerModel) -> Positions:
    match model.positions:
        case "sinusoidal":
            to_last = model.frequencies == "marian"
            return Sinusoidal(model.width, to_last=to_last, interleaved=model.interleaved, begin=model.first_position)
        case "learned":
            return Learned(model.width, model.longest)
        case "rotary" | "none":
            return Unplaced()
        case _:
            assert_never(model.positions)


def _norm(model: settings.TransformerModel) -> Norm:
    match model.norm:
        case "layer":
            return LayerNorm(model.width, model.norm_epsilon or 1e-5)
        case "rms":
            return RMSNorm(model.width, model.norm_epsilon or 1e-6)
        case "batch":
            return BatchNorm(model.width, model.norm_epsilon or 1e-5)
        case _:
            assert_never(model.norm)


def _feed_forward(model: settings.TransformerModel) -> FeedForward | GatedFeedForward:
    activation: Callable[[Tensor], Tensor]
    match model.activation:
        case "swiglu":
            return GatedFeedForward(model.width, model.hidden, model.dropout)
        case "relu":
            activation = F.relu
        case "gelu":
            activation = F.gelu
        case "silu":
            activation = F.silu
        case _:
            assert_never(model.activation)
    return FeedForward(model.width, model.hidden, activation, model.dropout)


def _residuals(model: settings.TransformerModel, count: int) -> list[Residual]:
    before = model.norm_place == "before"
    return [Residual(_norm(model), before=before, dropout=model.dropout) for _ in range(count)]


def _last_norm(model: settings.TransformerModel) -> Norm | None:
    """Auto has it with norms before the sublayers: without it nothing would normalise the last sum."""
    auto = model.final_norm == "auto" and model.norm_place == "before"
    return _norm(model) if auto or model.final_norm == "yes" else None


def _transformer_encoder(model: settings.TransformerModel, embedding: SourceEmbedding) -> TransformerEncoder:
    rotary = model.positions == "rotary"
    layers = [
        EncoderLayer(
            _transformer_attention(model, model.encoder_attention, rotary=rotary),
            _feed_forward(model),
            _residuals(model, 2),
        )
        for _ in range(model.encoder_depth)
    ]
    positions, before, last = _positions(model), _norm(model) if model.embedding_norm else None, _last_norm(model)
    return TransformerEncoder(embedding, positions, layers, embedding_norm=before, norm=last, dropout=model.dropout)


def _autoregression(model: settings.TransformerModel) -> Attention | SSRU:
    match model.autoregression:
        case "attention":
            return _transformer_attention(model, model.decoder_attention, rotary=model.positions == "rotary")
        case "ssru":
            return SSRU(model.width)
        case _:
            assert_never(model.autoregression)


def _transformer_decoder(
    model: settings.TransformerModel, embedding: TargetEmbedding, size: int, *, cross: bool
) -> TransformerDecoder:
    layers = [
        DecoderLayer(
            _autoregression(model),
            _transformer_attention(model, model.cross_attention, rotary=False) if cross else None,
            _feed_forward(model),
            _residuals(model, 3 if cross else 2),
        )
        for _ in range(model.decoder_depth)
    ]
    output, positions = _output(model, embedding, model.width, size), _positions(model)
    before, last = _norm(model) if model.embedding_norm else None, _last_norm(model)
    return TransformerDecoder(
        embedding, positions, layers, output, embedding_norm=before, norm=last, dropout=model.dropout
    )
