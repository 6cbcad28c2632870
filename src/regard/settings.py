"""Every knob, typed. Settings are frozen, go to TOML and back, and complain in one line. No torch here.

Variants are told apart by ``kind``. What a combination of knobs cannot mean is refused here, with the
reason, before anything is built.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from regard.checks import common_width, even_width, head_width
from regard.errors import SettingsError, did_you_mean

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
ScoreName = Literal["dot", "scaled_dot", "general", "additive", "concat", "cosine"]


class Frozen(BaseModel):
    """What all settings are: unchangeable, and strict about names and types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


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


class Settings(Frozen):
    """Everything that makes a run what it is."""

    about: str = ""
    """One line for people."""
    model: ModelSettings

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


Model = TypeVar("Model", bound=Frozen)


def read(kind: type[Model], values: Mapping[str, Any], origin: str) -> Model:
    """The one reader of untrusted settings: TOML, overrides and JSON bodies all pass here."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise SettingsError(f"{origin}: {_line(kind, error.errors()[0])}") from None
    except SettingsError as error:
        raise SettingsError(f"{origin}: {error}") from None


def _line(kind: type[Frozen], error: ErrorDetails) -> str:
    """Pydantic's first complaint in our grammar."""
    names, model, variants = _locate(kind, error["loc"])
    where, value, context = ".".join(names), error["input"], error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return f"{where} = {value}: no such setting; {did_you_mean(names[-1], model.model_fields)}"
        case "missing":
            return f"{where}: missing; it has no default"
        case "union_tag_not_found":
            return f"{where}.kind: missing; known: {', '.join(map(_tag, variants))}"
        case "union_tag_invalid":
            return f"{where}.kind = {context['tag']}: no such kind; {did_you_mean(context['tag'], map(_tag, variants))}"
        case "literal_error":
            known = get_args(model.model_fields[names[-1]].annotation)
            return f"{where} = {value}: not known; {did_you_mean(str(value), known)}"
        case _:
            return f"{where} = {value!r}: not valid; {error['msg'].removeprefix('Input ')}"


def _locate(
    kind: type[Frozen], location: Sequence[str | int]
) -> tuple[list[str], type[Frozen], tuple[type[Frozen], ...]]:
    """An error's dotted names, the settings class it is in, and the variants there are at that place.

    Pydantic names the variant of a union as if it were a level of its own; users have never seen it.
    """
    names: list[str] = []
    model = kind
    variants: tuple[type[Frozen], ...] = ()
    for part in map(str, location):
        tagged = [variant for variant in variants if _tag(variant) == part]
        if tagged:
            model, variants = tagged[0], ()
            continue
        names.append(part)
        field = model.model_fields.get(part)
        inside = () if field is None else _classes(field.annotation)
        variants = inside if len(inside) > 1 else ()
        model = inside[0] if len(inside) == 1 else model
    return names, model, variants


def _tag(variant: type[Frozen]) -> str:
    return str(get_args(variant.model_fields["kind"].annotation)[0])


def _classes(annotation: Any) -> tuple[type[Frozen], ...]:
    candidates = (annotation, *get_args(annotation))
    return tuple(item for item in candidates if isinstance(item, type) and issubclass(item, Frozen))
