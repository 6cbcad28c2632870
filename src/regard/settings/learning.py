"""How text becomes numbers, where examples come from, and how a model learns from them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from regard.errors import SettingsError
from regard.settings.call import Words
from regard.settings.numbers import Count, Share
from regard.settings.reading import Frozen

# A code as models and people write it: `de`, `pt_BR`, `eng_Latn`, `zh-Hans`. Behind a hyphen stands a capital or a
# digit, so that `zh-Hans-en` is a pair.
LANGUAGE = r"[a-z]{2,3}(?:_[A-Za-z0-9]{2,8}|-(?:[A-Z][A-Za-z]{1,3}|[0-9]{3}))*"


class TextSettings(Frozen):
    """How text becomes numbers."""

    tokenizer: Literal[
        "word", "space", "character", "byte", "bpe", "unigram", "sentencepiece", "subword-nmt", "byte-bpe"
    ] = "bpe"
    """What a piece is: a word, what stands between two spaces, a character, a byte, or a subword learned by either
    method. The last three are not learned: they come with imported models."""
    size: Annotated[int, Field(ge=5)] = 8000
    """Pieces in the vocabulary at the most, special tokens included; a small text has fewer."""
    minimum: Count = 1
    """How often a word or character must have been seen to get an id."""
    joint: bool = True
    """One tokenizer for both languages, or one each."""
    sampling: bool = False
    """Subword sampling: training sees each text cut another way every time (BPE dropout, unigram sampling)."""
    case: Literal["keep", "mark"] = "keep"
    """Whether a capital stays in its word, or is a mark of its own before the word in small letters, so that *The* and
    *the* are one word; for words and subwords."""

    @model_validator(mode="after")
    def _capitals(self) -> Self:
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
    """What to validate on. Where neither this nor the files below are named, some rows of the corpus are held out."""
    valid_source: str = ""
    valid_target: str = ""
    general: Words = ()
    """A general test set that is measured beside the validation text, with a comma between two files: where a model
    that is taught one kind of text forgets others, it shows there."""
    columns: str = ""
    """Which columns of a table to read, by name or number, with commas: `2,1`."""
    languages: Annotated[str, Field(pattern=rf"^({LANGUAGE}-{LANGUAGE})?$")] = ""
    """Which language is translated into which, as codes: `de-en`, `pt_BR-en`, `eng_Latn-zh-Hans`. Empty: what the names
    of corpus or files say."""
    longest: Count = 200
    """Pieces; longer examples are left out of training, and counted."""
    pairs: Count = 100_000
    """How many sentences of the built-in corpus."""
    words: Count = 20
    """How long the sentences of the built-in corpus get."""
    riddles: Share = 0.0
    """Share of clauses of the built-in corpus made so that only an adjective tells which of two nouns *it* is."""
    unknown: Share = 0.0
    """Share of sentences of the built-in corpus with an invented word, which is copied into the translation."""

    @property
    def is_built_in(self) -> bool:
        """Whether the corpus is the built-in one, and no file whose name begins like it."""
        return self.corpus.partition(":")[0] == "fable"


class NoAverage(Frozen):
    kind: Literal["none"] = "none"


class MovingAverageSettings(Frozen):
    kind: Literal["moving"]
    decay: Share = 0.999
    """Exponential moving average of the weights: how much of the old average stays at each step."""


class LastAverage(Frozen):
    kind: Literal["last"]
    count: Count = 5
    """Average of the weights at the last so many checkpoints."""


AverageSettings = Annotated[NoAverage | MovingAverageSettings | LastAverage, Field(discriminator="kind")]


class NoAdapters(Frozen):
    kind: Literal["none"] = "none"


class LowRankSettings(Frozen):
    kind: Literal["lora"]
    rank: Count = 8
    """Of what is added to a matrix: B A, with so many rows in A."""
    alpha: Annotated[float, Field(gt=0)] = 16.0
    """What is added counts alpha / rank times."""


AdaptSettings = Annotated[NoAdapters | LowRankSettings, Field(discriminator="kind")]


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
    validate_every: Annotated[int, Field(ge=0)] = 0
    """Steps between validations, at each of which a checkpoint is written; 0 goes by the clock: about ten times within
    a time limit, every few minutes without one. There is one at the end in any case."""
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
    base: str = ""
    """The run whose best weights, tokenizers and model this one begins with, `demo` or a folder; empty begins anew."""
    base_weights: str = ""
    """Which weights these were: a hash, written down when the run is made."""
    adapt: AdaptSettings = NoAdapters()
    """Instead of the weights of the run that it begins with, learn small additions to its attention and feed-forward
    matrices, which are merged into all that is kept: `{kind = "lora", rank = 8}`."""
    freeze: Words = ()
    """Parts that do not learn: `embeddings`, `encoder`, `decoder`, or anything as its weights are called, such as
    `encoder.layers.0`. What is shared with a part is frozen with it."""
    graft: Annotated[int, Field(ge=0)] = 0
    """Pieces, learned on the text of this run, that are added at the most to the vocabulary of the run that it begins
    with; each begins as the mean of the pieces it was cut into before."""
    watch: str = ""
    """A sentence to watch: its output and attention are logged at each validation, and after 1, 2, 4, 8, … steps."""
    seed: Annotated[int, Field(ge=0)] = 1

    @property
    def seconds(self) -> float | None:
        """The time limit in seconds."""
        return parse_time(self.time) if self.time else None

    @model_validator(mode="after")
    def _adapts_something(self) -> Self:
        if self.adapt.kind == "lora" and not self.base:
            raise SettingsError(
                "train.adapt.kind = lora: adds to weights that have learned; begin with those of a run (--from), "
                "or use 'none'"
            )
        return self

    @model_validator(mode="after")
    def _grafts_onto_something(self) -> Self:
        if self.graft and not self.base:
            raise SettingsError(
                f"train.graft = {self.graft}: adds to the vocabulary of another run; begin with one (--from), or use 0"
            )
        if self.graft and (self.adapt.kind != "none" or "embeddings" in self.freeze):
            raise SettingsError(
                f"train.graft = {self.graft}: new pieces learn with the embeddings, which adapters and train.freeze "
                "leave as they are; use 0, or let all learn"
            )
        return self

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
