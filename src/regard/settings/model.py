"""What a model is: the attention family, recurrent models and Transformers."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from regard.errors import SettingsError
from regard.settings.numbers import Depth, Share, Size
from regard.settings.reading import Frozen
from regard.settings.widths import common_width, even_width, head_width

ScoreName = Literal["dot", "scaled_dot", "general", "additive", "concat", "cosine"]


class NoWindow(Frozen):
    kind: Literal["none"] = "none"


class MonotonicWindowSettings(Frozen):
    kind: Literal["monotonic"]
    reach: Size = 5
    """How many keys on either side of the query's own position may be seen (local-m)."""


class PredictedWindowSettings(Frozen):
    kind: Literal["predicted"]
    reach: Size = 5
    """How many keys on either side of the predicted position may be seen (local-p)."""


WindowSettings = Annotated[NoWindow | MonotonicWindowSettings | PredictedWindowSettings, Field(discriminator="kind")]


class AttentionSettings(Frozen):
    """One member of the attention family."""

    score: ScoreName = "scaled_dot"
    """How well query and key fit: qᵀk, qᵀk/√K, qᵀWk, vᵀtanh(W[q;k]+b), the same without b, or β·cos(q,k)."""
    normaliser: Literal["softmax", "relu"] = "softmax"
    """How scores become weights."""
    selection: Literal["soft", "hard"] = "soft"
    """A weighted sum of all values, or one value (sampled in training, the likeliest at inference). What is chosen is
    learned with REINFORCE in recurrent decoders, and by a straight-through estimator in Transformers."""
    window: WindowSettings = NoWindow()
    """Which keys a query may see at all."""

    @model_validator(mode="after")
    def _hard_needs_a_distribution(self) -> Self:
        if self.selection == "hard" and self.normaliser == "relu":
            raise SettingsError(
                "attention.selection = hard: samples from the weights, but relu weights may all be zero; use softmax"
            )
        return self


class RecurrentAttention(AttentionSettings):
    """Attention of a recurrent decoder: by default as in the papers, one head and no projections."""

    heads: Size = 1
    """How many attentions side by side."""
    projected: bool = False
    """Whether queries, keys, values and output pass learned projections first, as in a Transformer."""


class ContextDecoderSettings(Frozen):
    """No attention: the encoder's last state is all the decoder gets."""

    kind: Literal["context"] = "context"


class BahdanauDecoderSettings(Frozen):
    """Attends with the previous state, then steps."""

    kind: Literal["bahdanau"]
    attention: RecurrentAttention = RecurrentAttention(score="additive")


class LuongDecoderSettings(Frozen):
    """Steps, then attends with the current state."""

    kind: Literal["luong"]
    attention: RecurrentAttention = RecurrentAttention(score="general")
    feeding: bool = True
    """Input feeding: the attentional state is part of the next input."""


class ConditionalDecoderSettings(Frozen):
    """Steps, attends with the new state, then steps once more with what it found."""

    kind: Literal["conditional"]
    attention: RecurrentAttention = RecurrentAttention(score="additive")
    second: Literal["transition", "layer"] = "transition"
    """The second cell goes on from the first one's state and reads the context, and state, context and word decide
    together (Nematus, Marian); or it is a layer with a state of its own that reads both and decides alone."""


DecoderSettings = Annotated[
    ContextDecoderSettings | BahdanauDecoderSettings | LuongDecoderSettings | ConditionalDecoderSettings,
    Field(discriminator="kind"),
]


class VectorSettings(Frozen):
    """Word vectors learned elsewhere. Training reads the file once; afterwards the run has what it needs."""

    file: str = ""
    """GloVe or word2vec, text or binary, packed or not; empty for none. Needs the tokenizer 'word' or 'space'."""
    frozen: bool = False
    """Kept as they are, beside learned vectors (labellers only); or else where the learned ones begin."""
    width: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    """Of the vectors; 0 looks into the file."""
    forget: Share = 0.0
    """Share of words whose learned vector is hidden in training where frozen ones stand beside it, as it is for words
    that training never saw."""
    words: Annotated[int, Field(ge=0, le=1 << 40)] = 50_000
    """How many words of the file, from its beginning, are known besides those of the training text."""


class ModelBase(Frozen):
    """What every architecture has."""

    width: Size = 256
    """Width of the embeddings, and of a Transformer's states."""
    embedding: Literal["learned", "one_hot"] = "learned"
    """A look-up, or really a one-hot vector times the matrix (the same values, slowly)."""
    tie: Literal["none", "target", "all"] = "none"
    """Share the output layer with the target embedding, and with the source embedding too (joint vocabulary)."""
    embedding_scale: bool = True
    """Whether embeddings are multiplied by √width."""
    start: Literal["token", "zero"] = "token"
    """What a decoder reads first: the embedding of `<start>`, or a vector of zeros, as in Marian."""
    dropout: Share = 0.1
    """Share of features dropped in training."""
    vectors: VectorSettings = VectorSettings()
    """Word vectors to begin with."""
    letters: Annotated[int, Field(ge=0, le=1000)] = 0
    """How many letters (bytes of UTF-8, begin and end marked) of each piece a labeller reads; 0 reads none."""
    letter_features: Size = 64
    """What it makes of them, beside the embedding."""

    @model_validator(mode="after")
    def _letters_have_ends(self) -> Self:
        if 0 < self.letters < 4:
            raise SettingsError(
                f"model.letters = {self.letters}: begin and end of a word take two of them; 16 is usual, 0 is none"
            )
        return self


class RecurrentModel(ModelBase):
    """From the plain RNN to deep attentional encoder-decoders."""

    kind: Literal["recurrent"]
    cell: Literal["elman", "lstm", "gru"] = "lstm"
    """The recurrent unit."""
    hidden: Size = 256
    """Width of the recurrent state, in each direction."""
    depth: Depth = 1
    """Layers, in encoder and decoder each."""
    bidirectional: bool = False
    """Whether the encoder reads both ways."""
    reverse: bool = False
    """Whether the encoder reads the source back to front."""
    annotations: Literal["plain", "dense"] = "plain"
    """What a decoder attends to: the encoder's states as they are, or tanh(W h + b) of them, of the decoder's width."""
    bridge: Literal["copy", "dense", "mean", "zero"] = "copy"
    """From the encoder to the decoder's first state: its last state as it is, or through tanh(W h + b); the same of the
    mean of all its states; or zeros."""
    decoder: DecoderSettings = ContextDecoderSettings()
    """When the decoder looks at the source, if ever."""
    variational: bool = False
    """Whether dropout between layers is drawn once a sequence instead of once a step."""

    @property
    def encoder_width(self) -> int:
        return self.hidden * (2 if self.bidirectional else 1)

    @property
    def annotation_width(self) -> int:
        return self.hidden if self.annotations == "dense" else self.encoder_width

    @property
    def reads_out(self) -> bool:
        """Whether a layer of the embedding's width stands between the decoder's state and the output layer."""
        return self.decoder.kind == "bahdanau" or getattr(self.decoder, "second", "") == "transition"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.bidirectional and self.bridge == "copy":
            raise SettingsError(
                f"model.bridge = copy: a bidirectional encoder ends in two states of {self.hidden}, the decoder "
                "begins with one; use 'dense'"
            )
        if self.bidirectional and self.reverse:
            raise SettingsError("model.reverse = true: a bidirectional encoder reads both ways already; use false")
        if self.bridge == "zero" and self.decoder.kind == "context":
            raise SettingsError(
                "model.bridge = zero: the decoder would know nothing of the source; use another bridge, or a "
                "model.decoder that attends"
            )
        if self.tie != "none" and not self.reads_out and self.hidden != self.width:
            raise SettingsError(
                f"model.tie = {self.tie}: the output layer reads states of {self.hidden}, the embedding has "
                f"width {self.width}; make model.hidden and model.width equal"
            )
        if not isinstance(self.decoder, ContextDecoderSettings):
            self._attention_fits(self.decoder.attention)
        return self

    def _attention_fits(self, attention: RecurrentAttention) -> None:
        where = "model.decoder.attention.heads"
        if attention.projected:
            head_width(self.hidden, attention.heads, where)
            return
        query = head_width(self.hidden, attention.heads, where)
        key = head_width(self.annotation_width, attention.heads, where)
        if attention.score in ("dot", "scaled_dot", "cosine"):
            common_width(attention.score, query, key)


class TransformerModel(ModelBase):
    """The Transformer and its variants."""

    kind: Literal["transformer"]
    heads: Size = 4
    """Attentions side by side in each layer."""
    hidden: Size = 1024
    """Width of the feed-forward networks inside."""
    encoder_depth: Depth = 3
    decoder_depth: Depth = 3
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    """How a token's place is made known."""
    longest: Size = 512
    """How many learned positions there are; the other kinds know no limit."""
    frequencies: Literal["paper", "marian"] = "paper"
    """Of sinusoids: 10000^(-i / half) for the i-th of half the width, or 10000^(-i / (half - 1)), as in Marian, fairseq
    and Tensor2Tensor."""
    interleaved: bool = True
    """Whether sines and cosines alternate; or else all sines come first."""
    first_position: Annotated[int, Field(ge=0)] = 0
    """The number of the first sinusoidal position; in fairseq it is 2."""
    embedding_norm: bool = False
    """A norm more, after embedding and position."""
    norm: Literal["layer", "rms", "batch"] = "layer"
    norm_epsilon: Annotated[float, Field(ge=0)] = 0.0
    """What norms add to the variance; 0 is the usual 1e-5, of RMS norm 1e-6."""
    norm_place: Literal["before", "after"] = "before"
    """Before each sublayer, or after its residual sum as in the paper."""
    final_norm: Literal["auto", "yes", "no"] = "auto"
    """A norm after the last layer of encoder and decoder; auto has it where norms stand before the sublayers."""
    activation: Literal["relu", "gelu", "silu", "swiglu"] = "relu"
    """Of the feed-forward networks."""
    autoregression: Literal["attention", "ssru"] = "attention"
    """How a decoder layer knows what is written already: it attends to it, or keeps one vector of it (SSRU)."""
    attention_dropout: Share = 0.0
    """Share of attention weights dropped in training."""
    encoder_attention: AttentionSettings = AttentionSettings()
    decoder_attention: AttentionSettings = AttentionSettings()
    cross_attention: AttentionSettings = AttentionSettings()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        width = head_width(self.width, self.heads, "model.heads")
        if isinstance(self.decoder_attention.window, PredictedWindowSettings):
            raise SettingsError(
                "model.decoder_attention.window.kind = predicted: places a window in a finished sequence, "
                "but the decoder's own is still growing; use 'monotonic'"
            )
        if self.first_position and self.positions != "sinusoidal":
            raise SettingsError(
                f"model.first_position = {self.first_position}: is for sinusoidal positions; {self.positions} ones "
                "begin with the first token; use 0"
            )
        if self.autoregression == "ssru" and self.decoder_attention != AttentionSettings():
            raise SettingsError(
                "model.autoregression = ssru: a decoder layer then has no attention to itself, and "
                "model.decoder_attention says nothing; use 'attention', or leave model.decoder_attention out"
            )
        if self.positions == "rotary":
            even_width(width)
            for name in ("encoder_attention", "decoder_attention"):
                if (score := getattr(self, name).score) in ("additive", "concat"):
                    raise SettingsError(
                        f"model.{name}.score = {score}: rotary positions act through inner products, "
                        "and this score has none; use sinusoidal or learned positions"
                    )
        return self


ModelSettings = Annotated[RecurrentModel | TransformerModel, Field(discriminator="kind")]
