"""Every knob, typed. Settings are frozen, go to TOML and back, and complain in one line. No torch here.

Variants are told apart by ``kind``. What a combination of knobs cannot mean is refused here, with the
reason, before anything is built.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import tomli_w
from pydantic import Field, model_validator

from regard.checks import common_width, even_width, head_width
from regard.errors import SettingsError, did_you_mean
from regard.reader import Frozen, read

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
ScoreName = Literal["dot", "scaled_dot", "general", "additive", "concat", "cosine"]


class NoWindow(Frozen):
    kind: Literal["none"] = "none"


class MonotonicWindow(Frozen):
    kind: Literal["monotonic"]
    reach: Count = 5
    """How many keys on either side of the query's own position may be seen (local-m)."""


class PredictedWindow(Frozen):
    kind: Literal["predicted"]
    reach: Count = 5
    """How many keys on either side of the predicted position may be seen (local-p)."""


WindowSettings = Annotated[NoWindow | MonotonicWindow | PredictedWindow, Field(discriminator="kind")]


class AttentionSettings(Frozen):
    """One member of the attention family."""

    score: ScoreName = "scaled_dot"
    """How well query and key fit: qᵀk, qᵀk/√K, qᵀWk, vᵀtanh(W[q;k]+b), the same without b, or β·cos(q,k)."""
    normaliser: Literal["softmax", "relu"] = "softmax"
    """How scores become weights."""
    selection: Literal["soft", "hard"] = "soft"
    """A weighted sum of all values, or one value (sampled in training, the likeliest at inference)."""
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

    heads: Count = 1
    """How many attentions side by side."""
    projected: bool = False
    """Whether queries, keys, values and output pass learned projections first, as in a Transformer."""


class ContextDecoder(Frozen):
    """No attention: the encoder's last state is all the decoder gets."""

    kind: Literal["context"] = "context"


class BahdanauDecoder(Frozen):
    """Attends with the previous state, then steps."""

    kind: Literal["bahdanau"]
    attention: RecurrentAttention = RecurrentAttention(score="additive")


class LuongDecoder(Frozen):
    """Steps, then attends with the current state."""

    kind: Literal["luong"]
    attention: RecurrentAttention = RecurrentAttention(score="general")
    feeding: bool = True
    """Input feeding: the attentional state is part of the next input."""


DecoderSettings = Annotated[ContextDecoder | BahdanauDecoder | LuongDecoder, Field(discriminator="kind")]


class VectorSettings(Frozen):
    """Word vectors learned elsewhere. Training reads the file once; afterwards the run has what it needs."""

    file: str = ""
    """GloVe or word2vec, text or binary, packed or not; empty for none. Needs the tokenizer 'word' or 'space'."""
    frozen: bool = False
    """Kept as they are, beside learned vectors (labellers only); or else where the learned ones begin."""
    width: Annotated[int, Field(ge=0)] = 0
    """Of the vectors; 0 looks into the file."""
    forget: Share = 0.0
    """Share of words whose learned vector is hidden in training where frozen ones stand beside it, as it is for words
    that training never saw."""
    words: Annotated[int, Field(ge=0)] = 50_000
    """How many words of the file, from its beginning, are known besides those of the training text."""


class ModelBase(Frozen):
    """What every architecture has."""

    width: Count = 256
    """Width of the embeddings, and of a Transformer's states."""
    embedding: Literal["learned", "one_hot"] = "learned"
    """A look-up, or really a one-hot vector times the matrix (the same values, slowly)."""
    tie: Literal["none", "target", "all"] = "none"
    """Share the output layer with the target embedding, and with the source embedding too (joint vocabulary)."""
    dropout: Share = 0.1
    """Share of features dropped in training."""
    vectors: VectorSettings = VectorSettings()
    """Word vectors to begin with."""
    letters: Annotated[int, Field(ge=0)] = 0
    """How many letters (bytes of UTF-8, begin and end marked) of each piece a labeller reads; 0 reads none."""
    letter_features: Count = 64
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
    hidden: Count = 256
    """Width of the recurrent state, in each direction."""
    depth: Count = 1
    """Layers, in encoder and decoder each."""
    bidirectional: bool = False
    """Whether the encoder reads both ways."""
    reverse: bool = False
    """Whether the encoder reads the source back to front."""
    bridge: Literal["copy", "dense"] = "copy"
    """From the encoder's last state to the decoder's first: as it is, or through tanh(W h + b)."""
    decoder: DecoderSettings = ContextDecoder()
    """When the decoder looks at the source, if ever."""
    variational: bool = False
    """Whether dropout between layers is drawn once a sequence instead of once a step."""

    @property
    def encoder_width(self) -> int:
        return self.hidden * (2 if self.bidirectional else 1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.bidirectional and self.bridge == "copy":
            raise SettingsError(
                f"model.bridge = copy: a bidirectional encoder ends in two states of {self.hidden}, the decoder "
                "begins with one; use 'dense'"
            )
        if self.bidirectional and self.reverse:
            raise SettingsError("model.reverse = true: a bidirectional encoder reads both ways already; use false")
        if self.tie != "none" and self.decoder.kind != "bahdanau" and self.hidden != self.width:
            raise SettingsError(
                f"model.tie = {self.tie}: the output layer reads states of {self.hidden}, the embedding has "
                f"width {self.width}; make model.hidden and model.width equal"
            )
        if not isinstance(self.decoder, ContextDecoder):
            self._attention_fits(self.decoder.attention)
        return self

    def _attention_fits(self, attention: RecurrentAttention) -> None:
        where = "model.decoder.attention.heads"
        if attention.projected:
            head_width(self.hidden, attention.heads, where)
            return
        query = head_width(self.hidden, attention.heads, where)
        key = head_width(self.encoder_width, attention.heads, where)
        if attention.score in ("dot", "scaled_dot", "cosine"):
            common_width(attention.score, query, key)


class TransformerModel(ModelBase):
    """The Transformer and its variants."""

    kind: Literal["transformer"]
    heads: Count = 4
    """Attentions side by side in each layer."""
    hidden: Count = 1024
    """Width of the feed-forward networks inside."""
    encoder_depth: Count = 3
    decoder_depth: Count = 3
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    """How a token's place is made known."""
    longest: Count = 512
    """How many learned positions there are; the other kinds know no limit."""
    norm: Literal["layer", "rms", "batch"] = "layer"
    norm_place: Literal["before", "after"] = "before"
    """Before each sublayer, or after its residual sum as in the paper."""
    activation: Literal["relu", "gelu", "silu", "swiglu"] = "relu"
    """Of the feed-forward networks."""
    attention_dropout: Share = 0.0
    """Share of attention weights dropped in training."""
    encoder_attention: AttentionSettings = AttentionSettings()
    decoder_attention: AttentionSettings = AttentionSettings()
    cross_attention: AttentionSettings = AttentionSettings()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        width = head_width(self.width, self.heads, "model.heads")
        if isinstance(self.decoder_attention.window, PredictedWindow):
            raise SettingsError(
                "model.decoder_attention.window.kind = predicted: places a window in a finished sequence, "
                "but the decoder's own is still growing; use 'monotonic'"
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


class TextSettings(Frozen):
    """How text becomes numbers."""

    tokenizer: Literal["word", "space", "character", "byte", "bpe", "unigram"] = "bpe"
    """What a piece is: a word, what stands between two spaces, a character, a byte, or a subword learned by either
    method."""
    size: Annotated[int, Field(ge=5)] = 8000
    """Pieces in the vocabulary, special tokens included."""
    minimum: Count = 1
    """How often a word or character must have been seen to get an id."""
    joint: bool = True
    """One tokenizer for both languages, or one each."""
    sampling: bool = False
    """Subword sampling: training sees each text cut another way every time (BPE dropout, unigram sampling)."""


class DataSettings(Frozen):
    """Where examples come from: two parallel files, one file with columns, or the built-in corpus."""

    corpus: str = ""
    """`fable:fr` or `fable:hi`, or a file that holds all columns (tsv, csv, jsonl, parquet, tmx, conllu)."""
    source: str = ""
    target: str = ""
    valid_corpus: str = ""
    valid_source: str = ""
    valid_target: str = ""
    columns: str = ""
    """Which columns of a table to read, by name or number, with commas: `2,1`."""
    languages: Annotated[str, Field(pattern=r"^([a-z]{2,3}-[a-z]{2,3})?$")] = ""
    """Which language is translated into which, as codes: `de-en`. Empty: what the names of corpus or files say."""
    longest: Count = 200
    """Pieces; longer examples are left out of training, and counted."""
    pairs: Count = 100_000
    """How many sentences of the built-in corpus."""
    words: Count = 20
    """How long the sentences of the built-in corpus get."""
    riddles: Share = 0.0
    """Share of clauses of the built-in corpus made so that only an adjective tells which of two nouns *it* is."""


class NoAverage(Frozen):
    kind: Literal["none"] = "none"


class MovingAverage(Frozen):
    kind: Literal["moving"]
    decay: Share = 0.999
    """Exponential moving average of the weights: how much of the old average stays at each step."""


class LastAverage(Frozen):
    kind: Literal["last"]
    count: Count = 5
    """Average of the weights at the last so many checkpoints."""


AverageSettings = Annotated[NoAverage | MovingAverage | LastAverage, Field(discriminator="kind")]


class ReinforceSettings(Frozen):
    """How hard attention learns where to look."""

    weight: Annotated[float, Field(ge=0)] = 1.0
    """Of the REINFORCE term beside the cross-entropy."""
    discount: Annotated[float, Field(ge=0, le=1)] = 0.0
    """How much a choice is credited for later words: 0 its own word only, 1 all that follow."""
    entropy: Annotated[float, Field(ge=0)] = 0.01
    """Reward for staying undecided, against giving up all but one position too early."""


class TrainSettings(Frozen):
    """How a model learns."""

    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    rate: Annotated[float, Field(gt=0)] = 1e-3
    """The highest learning rate; with `noam`, the factor before width^-0.5."""
    schedule: Literal["constant", "noam", "inverse_square_root", "cosine", "linear"] = "inverse_square_root"
    """How the rate goes on after warming up. Cosine and linear end at zero."""
    warmup: Annotated[int, Field(ge=0)] = 400
    """Steps over which the rate rises from zero."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    momentum: Share = 0.9
    """Of SGD."""
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
    batch: Count = 4096
    """Padded tokens a side in a batch."""
    accumulate: Count = 1
    """Batches that make one step."""
    steps: Count = 10_000
    """Updates at the most."""
    time: str = ""
    """Time at the most, such as 90s, 10m or 2h; empty for no limit."""
    validate_every: Count = 500
    """Steps between validations; a checkpoint is written at each."""
    patience: Annotated[int, Field(ge=0)] = 0
    """Validations without improvement before stopping; 0 never stops early."""
    metric: Literal["loss", "score"] = "loss"
    """What decides which checkpoint is best: validation loss, or the task's score (BLEU, accuracy)."""
    keep: Count = 3
    """Checkpoints kept besides the best."""
    average: AverageSettings = NoAverage()
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the arithmetic; weights are float32. Auto is bfloat16 on a GPU that has it."""
    step: Literal["auto", "eager", "compiled", "graph", "compiled-graph"] = "auto"
    """How a step is run; auto is one CUDA graph per batch shape on a GPU, eager elsewhere. A compiled graph has fewer
    kernels, made in half a minute: auto has it where training may take five minutes or more."""
    shapes: Count = 24
    """How many batch shapes a GPU run has."""
    skip_nonfinite: bool = False
    """Leave out a batch whose loss is not finite instead of stopping."""
    watch: str = ""
    """A sentence to watch: its output and attention are logged at each validation, and after 1, 2, 4, 8, … steps."""
    seed: Annotated[int, Field(ge=0)] = 1

    @property
    def seconds(self) -> float | None:
        """The time limit in seconds."""
        return parse_time(self.time) if self.time else None

    @model_validator(mode="after")
    def _time_is_readable(self) -> Self:
        if self.time:
            parse_time(self.time)
        return self


def parse_time(text: str) -> float:
    """``90s``, ``10m`` or ``2h`` in seconds."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.replace(".", "", 1).isdecimal() and float(number) > 0:
        return float(number) * _UNITS[unit]
    raise SettingsError(f"train.time = {text}: not a time; write it as 90s, 10m or 2h")


_UNITS = {"s": 1, "m": 60, "h": 3600}


class Settings(Frozen):
    """Everything that makes a run what it is."""

    about: str = ""
    """One line for people."""
    task: Literal["translate", "language", "tag", "classify"] = "translate"
    """What is learned: a translation, the next piece, a label a token, a label a text."""
    pool: Literal["mean", "max", "final", "attention"] = "attention"
    """How a classifier sums up a text."""
    model: ModelSettings
    text: TextSettings = TextSettings()
    data: DataSettings = DataSettings()
    train: TrainSettings = TrainSettings()

    @model_validator(mode="after")
    def _can_be_compiled(self) -> Self:
        if self.train.step == "compiled" and self.model.kind == "recurrent":
            raise SettingsError(
                "train.step = compiled: torch.compile cannot see into recurrent layers, and cuts the step into pieces "
                "that are no faster; use 'auto'"
            )
        return self

    def to_toml(self) -> str:
        """All values, defaults too: a file from which the same settings come back."""
        return tomli_w.dumps(self.model_dump())


def preset_names() -> list[str]:
    """The architectures that come along, simplest first."""
    folder = resources.files("regard.presets")
    return sorted(
        (entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")),
        key=_LADDER.index,
    )


_LADDER = [
    *("rnn", "gru", "lstm", "lstm-reversed", "lstm-deep", "bahdanau"),
    *("luong-dot", "luong-general", "luong-concat", "luong-local", "luong-hard"),
    *("transformer-tiny", "transformer-small", "transformer-base", "transformer-big"),
]


def load_settings(name: str | Path, *overrides: str) -> Settings:
    """Settings from a preset's name or a TOML file, with overrides such as ``model.depth=4``."""
    if Path(name).suffix == ".toml":
        path = Path(name)
        if not path.is_file():
            raise SettingsError(f"{path}: no such file; give a TOML file or one of: {', '.join(preset_names())}")
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise SettingsError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    elif str(name) in preset_names():
        text = resources.files("regard.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise SettingsError(f"preset = {name}: no such preset; {did_you_mean(str(name), preset_names())}")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{name}: not TOML; {error}") from None
    for override in overrides:
        _override(values, override)
    return read(Settings, values, str(name))


def _override(values: dict[str, Any], override: str) -> None:
    """Set ``a.b=c`` in nested tables. The value is TOML if it can be, else a plain string."""
    path, equals, text = override.partition("=")
    if not equals or not all(path.split(".")):
        raise SettingsError(f"{override}: not an override; write it as model.depth=4")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *tables, last = path.strip().split(".")
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise SettingsError(f"{override}: '{table}' is a value, not a table, and has nothing inside it to set")
    values[last] = value
