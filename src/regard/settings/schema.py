"""Every setting of a run: its model, how text becomes numbers, where examples come from, how it learns. No torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import Field, model_validator

from regard.errors import SettingsError
from regard.settings.call import Words
from regard.settings.reading import Count, Depth, Frozen, Share, Size

# Widths that must fit, checked here and again where modules are built. Nothing here imports torch.


def head_width(width: int, heads: int, where: str = "heads") -> int:
    """``width / heads``: every head has the same number of features."""
    if heads < 1 or width % heads:
        fitting = ", ".join(str(count) for count in range(1, width + 1) if width % count == 0)
        raise SettingsError(f"{where} = {heads}: does not divide the width {width}; one of {fitting} would")
    return width // heads


def common_width(score: str, query_width: int, key_width: int) -> int:
    """The width of query and key, which an inner product needs to be the same."""
    if query_width != key_width:
        raise SettingsError(
            f"attention.score = {score}: needs queries and keys of one width, not {query_width} and {key_width}; "
            "use 'general' or 'additive', or set attention.projected = true"
        )
    return query_width


# Models: the attention family, recurrent models and Transformers.

ScoreName = Literal["dot", "scaled_dot", "general", "additive", "concat", "cosine"]


class WindowSettings(Frozen):
    """Which keys a query may see."""

    kind: Literal["none", "monotonic", "predicted"] = "none"
    """All of them; those around the query's own position (local-m); those around a predicted position (local-p)."""
    reach: Size = 5
    """How many keys on either side of that position are seen."""


class AttentionSettings(Frozen):
    """One member of the attention family."""

    score: ScoreName = "scaled_dot"
    """The score of a query and a key: qᵀk, qᵀk/√K, qᵀWk, vᵀtanh(W[q;k]+b), the same without b, or β·cos(q,k)."""
    normaliser: Literal["softmax", "relu"] = "softmax"
    """How scores become weights."""
    selection: Literal["soft", "hard"] = "soft"
    """A weighted sum of all values, or one value (sampled in training, the most probable at inference). The choice is
    learned with REINFORCE in recurrent decoders, with a straight-through estimator in Transformers."""
    window: WindowSettings = WindowSettings()
    """Which keys a query may see."""

    @model_validator(mode="after")
    def _hard_needs_a_distribution(self) -> Self:
        if self.selection == "hard" and self.normaliser == "relu":
            raise SettingsError(
                "attention.selection = hard: samples from the weights, but relu weights may all be zero; use softmax"
            )
        return self


class RecurrentAttention(AttentionSettings):
    """Attention of a recurrent decoder: by default one head and no projections, as in the papers."""

    heads: Size = 1
    """How many heads."""
    projected: bool = False
    """Whether queries, keys, values and output pass learned projections first, as in a Transformer."""
    hidden: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    """Rows of W in an additive or concat score, of each head; 0 is the query's width. In Nematus it is the key's."""


class ContextDecoderSettings(Frozen):
    """No attention: the decoder gets only the encoder's last state."""

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
    """Steps, attends with the new state, then steps again with the context."""

    kind: Literal["conditional"]
    attention: RecurrentAttention = RecurrentAttention(score="additive")
    second: Literal["transition", "layer"] = "transition"
    """The second cell starts from the first one's state and reads the context, and the output layer reads state,
    context and word (Nematus, Marian); or it is a layer with its own state that reads both, and is read alone."""


DecoderSettings = Annotated[
    ContextDecoderSettings | BahdanauDecoderSettings | LuongDecoderSettings | ConditionalDecoderSettings,
    Field(discriminator="kind"),
]


class VectorSettings(Frozen):
    """Pretrained word vectors. Training reads the file once; afterwards the run does not need it."""

    file: str = ""
    """GloVe or word2vec, text or binary, packed or not; empty for none. Needs the tokenizer 'word' or 'space'."""
    frozen: bool = False
    """Kept unchanged, beside learned vectors (labellers only); if not, the learned vectors begin with them."""
    width: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    """Of the vectors; 0 takes it from the file."""
    forget: Share = 0.0
    """Beside frozen vectors: share of words whose learned vector is hidden in training, as it is for words that the
    training text does not have."""
    words: Annotated[int, Field(ge=0, le=1 << 40)] = 50_000
    """How many words of the file, from its beginning, are added to those of the training text."""


class ModelBase(Frozen):
    """What every architecture has."""

    width: Size = 256
    """Width of the embeddings, and of a Transformer's states."""
    embedding: Literal["learned", "one_hot"] = "learned"
    """A look-up, or the product of a one-hot vector and the matrix (the same values, slower)."""
    tie: Literal["none", "target", "all"] = "none"
    """Share the output layer's weights with the target embedding, or also with the source embedding (joint
    vocabulary). A forecaster has no vocabulary and shares nothing."""
    embedding_scale: bool = True
    """Whether embeddings are multiplied by √width."""
    start: Literal["token", "zero"] = "token"
    """What a decoder reads first: the embedding of `<start>`, or a vector of zeros, as in Marian."""
    dropout: Share = 0.1
    """Share of features dropped in training."""
    vectors: VectorSettings = VectorSettings()
    """Pretrained word vectors."""
    letters: Annotated[int, Field(ge=0, le=1000)] = 0
    """How many letters (bytes of UTF-8, begin and end marked) of each piece a labeller reads; 0 reads none."""
    letter_features: Size = 64
    """How many features it computes from them, beside the embedding."""
    reach: Annotated[int, Field(ge=1, le=99)] = 1
    """How many vectors of the source are embedded together, an odd number: 1 is a linear map of each vector, 3 a
    convolution over it and its neighbours."""
    across: Annotated[int, Field(ge=0, le=1 << 16)] = 0
    """Of pictures that are equally wide: how many patches a line of them has, so that those above and below a patch are
    its neighbours too; 0 for a sequence."""

    @model_validator(mode="after")
    def _sizes_are_possible(self) -> Self:
        if self.reach % 2 == 0:
            raise SettingsError(f"model.reach = {self.reach}: must be odd; {self.reach + 1} would be right")
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
    """What a decoder attends to: the encoder's states h, or tanh(W h + b), which has the decoder's width."""
    bridge: Literal["copy", "dense", "mean", "zero"] = "copy"
    """The decoder's first state: the encoder's last state h, or tanh(W h + b); the same of the mean of all its states;
    or zeros."""
    decoder: DecoderSettings = ContextDecoderSettings()
    """When the decoder attends to the source, if at all."""
    variational: bool = False
    """Whether dropout between layers is drawn once for a sequence, not at each step."""

    @property
    def encoder_width(self) -> int:
        return self.hidden * (2 if self.bidirectional else 1)

    @property
    def annotation_width(self) -> int:
        return self.hidden if self.annotations == "dense" else self.encoder_width

    @property
    def reads_out(self) -> bool:
        """Whether there is a layer of the embedding's width between the decoder's state and the output layer."""
        return self.decoder.kind == "bahdanau" or getattr(self.decoder, "second", "") == "transition"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.bidirectional and self.bridge == "copy":
            raise SettingsError(
                f"model.bridge = copy: a bidirectional encoder ends with two states of {self.hidden}, the decoder "
                "begins with one; use 'dense'"
            )
        if self.bidirectional and self.reverse:
            raise SettingsError("model.reverse = true: a bidirectional encoder reads both ways already; use false")
        if self.bridge == "zero" and self.decoder.kind == "context":
            raise SettingsError(
                "model.bridge = zero: the decoder would not get the source at all; use another bridge, or a "
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
        query = head_width(self.hidden, attention.heads, where)
        if not attention.projected:
            key = head_width(self.annotation_width, attention.heads, where)
            if attention.score in ("dot", "scaled_dot", "cosine"):
                common_width(attention.score, query, key)


class TransformerModel(ModelBase):
    """The Transformer and its variants."""

    kind: Literal["transformer"]
    heads: Size = 4
    """Attention heads in each layer."""
    hidden: Size = 1024
    """Width inside the feed-forward networks."""
    encoder_depth: Depth = 3
    decoder_depth: Depth = 3
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    """How the model gets the position of a token."""
    longest: Size = 512
    """How many learned positions there are; the other kinds have no limit."""
    frequencies: Literal["paper", "marian"] = "paper"
    """Of sinusoids: 10000^(-i / half) for the i-th of half the width, or 10000^(-i / (half - 1)), as in Marian, fairseq
    and Tensor2Tensor."""
    interleaved: bool = True
    """Whether sines and cosines alternate; if not, all sines come first."""
    first_position: Annotated[int, Field(ge=0)] = 0
    """The number of the first sinusoidal position; in fairseq it is 2."""
    embedding_norm: bool = False
    """A norm after the sum of embedding and position."""
    norm: Literal["layer", "rms", "batch"] = "layer"
    norm_epsilon: Annotated[float, Field(ge=0)] = 0.0
    """What norms add to the variance; 0 is the usual value, 1e-5, or 1e-6 for RMS norm."""
    norm_place: Literal["before", "after"] = "before"
    """Before each sublayer, or after its residual sum as in the paper."""
    final_norm: Literal["auto", "yes", "no"] = "auto"
    """A norm after the last layer of encoder and decoder; auto: if norms are before the sublayers."""
    activation: Literal["relu", "gelu", "silu", "swiglu"] = "relu"
    """Of the feed-forward networks."""
    autoregression: Literal["attention", "ssru"] = "attention"
    """How a decoder layer sees the target so far: by attention, or as one vector (SSRU)."""
    attention_dropout: Share = 0.0
    """Share of attention weights dropped in training."""
    encoder_attention: AttentionSettings = AttentionSettings()
    decoder_attention: AttentionSettings = AttentionSettings()
    cross_attention: AttentionSettings = AttentionSettings()

    def depths(self, task: str) -> tuple[int, ...]:
        """The layers of what a model for the task has: encoder, decoder, or both."""
        reads, writes = task != "language", task in {"translate", "language", "forecast"}
        return (self.encoder_depth,) * reads + (self.decoder_depth,) * writes

    @model_validator(mode="after")
    def _fits(self) -> Self:
        width = head_width(self.width, self.heads, "model.heads")
        if self.decoder_attention.window.kind == "predicted":
            raise SettingsError(
                "model.decoder_attention.window.kind = predicted: needs the whole sequence, but the target is still "
                "growing; use 'monotonic'"
            )
        if self.first_position and self.positions != "sinusoidal":
            raise SettingsError(
                f"model.first_position = {self.first_position}: is for sinusoidal positions; for {self.positions} use 0"
            )
        if self.autoregression == "ssru" and self.decoder_attention != AttentionSettings():
            raise SettingsError(
                "model.autoregression = ssru: a decoder layer then has no self-attention, and "
                "model.decoder_attention has no effect; use 'attention', or leave model.decoder_attention out"
            )
        if self.positions == "rotary" and width % 2:
            raise SettingsError(
                f"model.positions = rotary: rotates pairs of features, but a head has {width} of them; "
                "choose width and heads so that width / heads is even"
            )
        for name in ("encoder_attention", "decoder_attention"):
            score = getattr(self, name).score
            if self.positions == "rotary" and score in ("additive", "concat"):
                raise SettingsError(
                    f"model.{name}.score = {score}: rotary positions need a score with an inner product; use "
                    "sinusoidal or learned positions"
                )
        return self


ModelSettings = Annotated[RecurrentModel | TransformerModel, Field(discriminator="kind")]


# How text becomes numbers, where examples come from, and how a model learns from them.

# A language code: `de`, `pt_BR`, `eng_Latn`, `zh-Hans`. After a hyphen comes a capital or a digit, so that `zh-Hans-en`
# is a pair.
LANGUAGE = r"[a-z]{2,3}(?:_[A-Za-z0-9]{2,8}|-(?:[A-Z][A-Za-z]{1,3}|[0-9]{3}))*"


class SourceSettings(Frozen):
    """What is read: text, or sequences of vectors."""

    kind: Literal["text", "vectors"] = "text"
    """Text, or sequences of vectors: numbers over time, pictures or sounds (docs/vectors.md)."""
    patch: Count = 4
    """Width and height, in pixels, of the squares that a picture is cut into."""
    bands: Count = 40
    """How many frequency bands a vector of a sound has."""


class TextSettings(Frozen):
    """How text becomes numbers."""

    tokenizer: Literal[
        "word", "space", "character", "byte", "bpe", "unigram", "sentencepiece", "subword-nmt", "byte-bpe"
    ] = "bpe"
    """What a piece is: a word, text between two spaces, a character, a byte, or a subword learned by either method. The
    last three are not learned: they come with imported models."""
    size: Annotated[int, Field(ge=5)] = 8000
    """Pieces in the vocabulary at the most, special tokens included; a small text has fewer."""
    minimum: Count = 1
    """How often a word or character must occur to get an id."""
    joint: bool = True
    """One tokenizer for both languages, or one each."""
    source: SourceSettings = SourceSettings()
    """`{kind = "vectors"}` if the source is not text. The rest of this table is then about the target."""
    sampling: bool = False
    """Subword sampling: in training each text is cut differently every time (BPE dropout, unigram sampling)."""
    case: Literal["keep", "mark"] = "keep"
    """Whether a capital stays in its word, or becomes a mark before the word in small letters, so that *The* and *the*
    are one word; for words and subwords."""

    @model_validator(mode="after")
    def _has_marks(self) -> Self:
        if self.case == "mark" and self.tokenizer not in ("word", "bpe", "unigram"):
            raise SettingsError(
                f"text.case = mark: a tokenizer of kind '{self.tokenizer}' has no marks; use 'keep', or "
                "text.tokenizer = 'word', 'bpe' or 'unigram'"
            )
        return self


class DataSettings(Frozen):
    """Where examples come from: two parallel files, one file with columns, or the built-in corpus."""

    corpus: str = ""
    """`fable:fr` or `fable:hi`, or a file that holds all columns (tsv, csv, jsonl, parquet, tmx, conllu)."""
    source: str = ""
    target: str = ""
    valid_corpus: str = ""
    """What to validate on. Without this and without the files below, some rows of the corpus are held out."""
    valid_source: str = ""
    valid_target: str = ""
    general: Words = ()
    """A general test set that is measured beside the validation text, with a comma between two files: it shows what a
    model forgets that is taught one kind of text."""
    columns: str = ""
    """Which columns of a table to read, by name or number, with commas: `2,1`."""
    languages: Annotated[str, Field(pattern=rf"^({LANGUAGE}-{LANGUAGE})?$")] = ""
    """Source and target language as codes: `de-en`, `pt_BR-en`, `eng_Latn-zh-Hans`. Empty: taken from the names of the
    corpus, its columns or the files."""
    longest: Count = 200
    """In pieces; longer examples are left out of training, and counted."""
    pairs: Count = 100_000
    """How many sentences of the built-in corpus."""
    words: Count = 20
    """Length of the longest sentences of the built-in corpus, in words."""
    riddles: Share = 0.0
    """Share of clauses of the built-in corpus in which only an adjective says which of two nouns *it* stands for."""
    unknown: Share = 0.0
    """Share of sentences of the built-in corpus with an invented word, which is copied into the translation."""

    @property
    def table(self) -> str:
        """What has both sides, whichever of the two settings names it."""
        return self.corpus or ("" if self.target else self.source)

    @property
    def is_built_in(self) -> bool:
        """Whether the corpus is the built-in one, not a file with a similar name."""
        return self.corpus.partition(":")[0] == "fable"


class AverageSettings(Frozen):
    """Averaged weights, which are validated and saved in place of the trained ones."""

    kind: Literal["none", "moving", "last"] = "none"
    """None; an exponential moving average of the weights; or the mean of those at the last checkpoints."""
    decay: Share = 0.999
    """Of a moving average: the factor of the old average at each step."""
    count: Count = 5
    """How many of the last checkpoints."""


class AdaptSettings(Frozen):
    """Small matrices that learn instead of the weights."""

    kind: Literal["none", "lora"] = "none"
    rank: Count = 8
    """Of the matrix B A that is added to a weight: the number of rows of A."""
    alpha: Annotated[float, Field(gt=0)] = 16.0
    """The added matrix is multiplied by alpha / rank."""


class AlignmentSettings(Frozen):
    """Whether one head of the cross-attention is trained to align words."""

    kind: Literal["none", "guided"] = "none"
    links: str = "learned"
    """`learned` from the training text alone, `gold` of the built-in corpus, or a file with a line of links between
    words for each pair of data.source and data.target: `0-0 1-2`, words separated by spaces, from 0, source first."""
    layer: Annotated[int, Field(ge=0)] = 0
    """Of the decoder, from 1; 0 is the last but one."""
    head: Count = 1
    """Of that layer's cross-attention, from 1."""
    weight: Annotated[float, Field(gt=0)] = 0.5
    """Of the head's loss, beside the cross-entropy of the words."""


class ConsistencySettings(Frozen):
    """Whether every row is read twice, by the model as it is with dropout, or with some tokens hidden, and what both
    predict must agree."""

    kind: Literal["none", "rdrop", "simcut"] = "none"
    """R-Drop: two passes with dropout of their own; SimCut: a whole sentence and one with tokens hidden. A step takes
    twice as long."""
    weight: Annotated[float, Field(gt=0)] = 3.0
    """Of the divergence, beside the cross-entropy; the papers have 5 for R-Drop and 3 for SimCut, in long trainings."""
    cut: Share = 0.05
    """Of SimCut: the share of tokens, on both sides, that are hidden."""


class ReinforceSettings(Frozen):
    """How hard attention learns what to choose."""

    weight: Annotated[float, Field(ge=0)] = 1.0
    """Of the REINFORCE term beside the cross-entropy."""
    discount: Annotated[float, Field(ge=0, le=1)] = 0.0
    """How much later words count for a choice: 0 only its own word, 1 all that follow."""
    entropy: Annotated[float, Field(ge=0)] = 0.01
    """Reward for the entropy of the weights, which keeps them from settling on one position too early."""


class TrainSettings(Frozen):
    """How a model learns."""

    optimizer: Literal["adam", "adamw", "sgd", "muon"] = "adam"
    """Muon (Jordan, 2024) is for the matrices inside the model, with AdamW for embeddings, output layer and vectors."""
    rate: Annotated[float, Field(gt=0)] = 1e-3
    """The highest learning rate; with `noam`, the factor before width^-0.5."""
    schedule: Literal["constant", "noam", "inverse_square_root", "cosine", "linear"] = "inverse_square_root"
    """How the rate goes on after warming up. Cosine and linear end at zero."""
    warmup: Annotated[int, Field(ge=0)] = 400
    """Steps over which the rate rises from zero."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Of matrices alone. With `adamw` and `muon`, where a preset or none is named, it is fitted: 3 / (rate · steps), at
    most 0.3."""
    momentum: Share = 0.9
    """Of SGD and Muon. With `muon`, where a preset or none is named, it is 0.95."""
    second_moment: Share = 0.98
    """Adam's β₂."""
    clip: Annotated[float, Field(ge=0)] = 1.0
    """Largest norm of the gradient; 0 does not clip."""
    smoothing: Share = 0.1
    """Label smoothing."""
    word_dropout: Share = 0.0
    """Share of input tokens replaced by <unk>."""
    scheduled_sampling: Share = 0.0
    """Share of the decoder's inputs that are its own predictions, reached linearly over training (recurrent only)."""
    reinforce: ReinforceSettings = ReinforceSettings()
    alignment: AlignmentSettings = AlignmentSettings()
    """`{kind = "guided"}` trains one head of the cross-attention to align words; it is then the run's aligner."""
    consistency: ConsistencySettings = ConsistencySettings()
    """Every row goes through the model twice, and both predictions must agree, against learning small corpora by heart:
    `{kind = "rdrop", weight = 2.0}` or `{kind = "simcut"}`."""
    batch: Count = 4096
    """Padded tokens a side in a batch."""
    accumulate: Count = 1
    """Batches that make one step."""
    steps: Count = 10_000
    """Updates at the most."""
    time: str = ""
    """Time at the most, such as 90s, 10m or 2h; empty for no limit."""
    validate_every: Annotated[int, Field(ge=0)] = 0
    """Steps between validations, at each of which a checkpoint is written; 0 goes by time: about ten times within a
    time limit, every few minutes without one. There is always one at the end."""
    patience: Annotated[int, Field(ge=0)] = 0
    """Validations without improvement before stopping; 0 never stops early."""
    metric: Literal["loss", "score"] = "loss"
    """What decides which checkpoint is best: validation loss, or the task's score (BLEU, accuracy)."""
    keep: Count = 3
    """Checkpoints kept besides the best."""
    average: AverageSettings = AverageSettings()
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the arithmetic; weights are float32. Auto is bfloat16 on a GPU that has it."""
    step: Literal["auto", "eager", "graph", "compiled-graph"] = "auto"
    """How a step is run; auto is one CUDA graph per batch shape on a GPU, eager elsewhere. A compiled graph has fewer
    kernels and takes half a minute to compile: auto uses it if training may take five minutes or more."""
    shapes: Count = 24
    """How many batch shapes a GPU run has."""
    skip_nonfinite: bool = False
    """Leave out a batch whose loss is not finite instead of stopping."""
    base: str = ""
    """The run, `demo` or a folder, whose best weights, tokenizers and model this one begins with; empty for none."""
    base_weights: str = ""
    """The hash of these weights, set when the run is made."""
    adapt: AdaptSettings = AdaptSettings()
    """`{kind = "lora", rank = 8}` trains small additions to the attention and feed-forward matrices of the base run
    instead of its weights. Checkpoints contain the sum."""
    freeze: Words = ()
    """Parts that do not learn: `embeddings`, `encoder`, `decoder`, or the beginning of the names of weights, such as
    `encoder.layers.0`. Weights that are shared with a frozen part are frozen, too."""
    graft: Annotated[int, Field(ge=0)] = 0
    """How many pieces, learned from this run's text, are added to the base run's vocabulary at the most; each begins as
    the mean of the pieces it was cut into before."""
    watch: str = ""
    """A sentence whose output and attention are logged at each validation, and after 1, 2, 4, 8, … steps."""
    seed: Annotated[int, Field(ge=0)] = 1

    @property
    def seconds(self) -> float | None:
        """The time limit in seconds."""
        return parse_time(self.time) if self.time else None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.time:
            parse_time(self.time)
        if self.adapt.kind == "lora" and not self.base:
            raise SettingsError(
                "train.adapt.kind = lora: adds to trained weights; begin with those of a run (--from), or use 'none'"
            )
        if self.graft and not self.base:
            raise SettingsError(
                f"train.graft = {self.graft}: adds to the vocabulary of another run; begin with one (--from), or use 0"
            )
        if self.graft and (self.adapt.kind != "none" or "embeddings" in self.freeze):
            raise SettingsError(
                f"train.graft = {self.graft}: new pieces need embeddings that learn, and here adapters or train.freeze "
                "keep them fixed; use 0, or let all learn"
            )
        return self


def parse_time(text: str) -> float:
    """``90s``, ``10m`` or ``2h`` in seconds."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.replace(".", "", 1).isdecimal() and float(number) > 0:
        return float(number) * _UNITS[unit]
    raise SettingsError(f"train.time = {text}: not a time; write it as 90s, 10m or 2h")


_UNITS = {"s": 1, "m": 60, "h": 3600}


class ForecastSettings(Frozen):
    """What a forecaster reads of a series, how far it looks ahead, and what it says of each moment."""

    context: Count = 48
    """Moments that are read."""
    horizon: Count = 12
    """Moments that are forecast."""
    season: Count = 1
    """Moments of a season: 12 for months, 7 for days; 1 for none. The naive forecast repeats the last season, or the
    last value where there is none."""
    stride: Count = 1
    """Training windows begin every so many moments."""
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of each series, from its end, that is held out for validation where no validation corpus is named."""
    head: Literal["autoregressive", "direct"] = "autoregressive"
    """A moment is forecast from the moments before it, the forecast ones too; or all of them from the context alone."""
    loss: Literal["gaussian", "quantile"] = "gaussian"
    """Each moment is a normal distribution, and the loss its negative log-likelihood; or it is 19 quantiles, and the
    loss is that of quantile regression."""
    scale: Literal["corpus", "window", "season"] = "window"
    """Numbers are brought to mean 0 and deviation 1 over the training text, or over the context of each window, so that
    a level never seen before is read as any other; `season` divides by what the context's seasons differ by instead, so
    that intervals are wide where they differ much."""
    anchor: Literal["none", "naive", "mean"] = "naive"
    """What is learned: the numbers as they are; what is to be added to the naive forecast; what is to be added to the
    mean of all seasons of the context."""
    paths: Count = 200
    """Futures that an autoregressive forecaster draws; its quantiles are theirs."""


# All settings of a run together.

TaskName = Literal["translate", "language", "tag", "classify", "forecast"]


class Settings(Frozen):
    """Everything that makes a run what it is."""

    about: str = ""
    """One line for people."""
    task: TaskName = "translate"
    """What is learned: a translation, the next piece, a label for each token or for the text, how a series goes on."""
    pool: Literal["mean", "max", "final", "attention"] = "attention"
    """How a classifier makes one vector of a text."""
    forecast: ForecastSettings = ForecastSettings()
    """What a forecaster reads and writes."""
    model: ModelSettings
    text: TextSettings = TextSettings()
    data: DataSettings = DataSettings()
    train: TrainSettings = TrainSettings()

    @model_validator(mode="before")
    @classmethod
    def _series_are_vectors(cls, values: Any) -> Any:
        """A forecaster reads vectors, whether that is said or not."""
        text = values.get("text", {}) if isinstance(values, dict) and values.get("task") == "forecast" else None
        if not isinstance(text, dict) or not isinstance(source := text.get("source", {}), dict):
            return values
        return {**values, "text": {**text, "source": {"kind": "vectors", **source}}}

    @model_validator(mode="after")
    def _forecasts(self) -> Self:
        if self.task != "forecast":
            return self
        if self.text.source.kind != "vectors":
            raise SettingsError("text.source.kind = text: a forecaster reads numbers; use 'vectors'")
        if self.train.scheduled_sampling:
            raise SettingsError("train.scheduled_sampling: is for words; use 0, or forecast.head = 'direct'")
        for name in ("context", "horizon"):
            if (value := getattr(self.forecast, name)) > self.data.longest:
                problem = "data.longest leaves all examples out"
                raise SettingsError(f"forecast.{name} = {value}: {problem}; set data.longest={value}")
        return self

    @model_validator(mode="after")
    def _reads_what_there_is(self) -> Self:
        if self.text.source.kind == "text":
            return self
        problem = ""
        if self.task == "language":
            problem = "a run for task 'language' reads text; use another task"
        elif self.data.is_built_in:
            problem = f"{self.data.corpus} is text; name a corpus of vectors"
        elif self.train.base or self.text.sampling or self.train.alignment.kind != "none":
            problem = "train.base, train.alignment and text.sampling are for text; leave them out"
        if problem:
            raise SettingsError(f"text.source.kind = vectors: {problem}")
        return self

    @model_validator(mode="after")
    def _can_be_guided(self) -> Self:
        guide, data = self.train.alignment, self.data
        if guide.kind == "none":
            return self
        attention = self._cross_attention()
        if attention is None:
            raise SettingsError(
                "train.alignment.kind = guided: needs a model that attends to the source; use 'none', or the task "
                "translate with a model.decoder that attends"
            )
        if attention.selection == "hard" or attention.normaliser != "softmax":
            raise SettingsError(
                "train.alignment.kind = guided: needs cross-attention with a weight for every source word; use "
                "selection = 'soft' and normaliser = 'softmax'"
            )
        layers, heads = self._cross_heads()
        for name, value, most in (("layer", guide.layer, layers), ("head", guide.head, heads)):
            if value > most:
                right = f"1 to {most}" if most > 1 else "1"
                raise SettingsError(
                    f"train.alignment.{name} = {value}: there is no such {name}; {right} would be right"
                )
        if guide.links == "gold" and not data.is_built_in:
            raise SettingsError(
                "train.alignment.links = gold: only the built-in corpus has these; name a file, or use 'learned'"
            )
        if guide.links not in ("learned", "gold") and not (data.source and data.target):
            raise SettingsError(
                f"train.alignment.links = {guide.links}: a file of links belongs to data.source and data.target, line "
                "by line; give these, or use 'learned'"
            )
        return self

    @model_validator(mode="after")
    def _can_be_consistent(self) -> Self:
        kind, attention = self.train.consistency.kind, self._cross_attention()
        problem = ""
        if kind != "none" and self.task != "translate":
            problem = f"is for translations, and the task is {self.task}; use 'none'"
        elif kind == "rdrop" and not self._drops():
            problem = "two passes differ by dropout, and there is none; set model.dropout=0.1"
        elif kind == "simcut" and (self.guided_head or (attention and attention.selection == "hard")):
            problem = "goes with neither guided alignment nor hard attention; use 'rdrop'"
        if problem:
            raise SettingsError(f"train.consistency.kind = {kind}: {problem}")
        return self

    def _drops(self) -> bool:
        """Whether two passes of one row differ."""
        attention = self.model.attention_dropout if self.model.kind == "transformer" else 0.0
        return any((self.model.dropout, self.train.word_dropout, attention))

    def _cross_attention(self) -> AttentionSettings | None:
        if self.task != "translate":
            return None
        if self.model.kind == "transformer":
            return self.model.cross_attention
        return None if isinstance(self.model.decoder, ContextDecoderSettings) else self.model.decoder.attention

    def _cross_heads(self) -> tuple[int, int]:
        """How many layers attend to the source, and with how many heads each."""
        if self.model.kind == "transformer":
            return self.model.decoder_depth, self.model.heads
        return 1, 1 if isinstance(self.model.decoder, ContextDecoderSettings) else self.model.decoder.attention.heads

    @property
    def guided_head(self) -> tuple[int, int] | None:
        """The layer and head, from 0, of the cross-attention that was trained to align."""
        guide = self.train.alignment
        if guide.kind == "none":
            return None
        return (guide.layer or max(1, self._cross_heads()[0] - 1)) - 1, guide.head - 1

    def to_toml(self) -> str:
        """All values, also defaults: reading the file gives the same settings."""
        return tomli_w.dumps(self.model_dump())
