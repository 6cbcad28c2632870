"""Settings that were not given are fitted to the corpus, the machine and the time limit. Plain numbers; no torch here.

The rules come from trainings on Multi30k with two cores (docs/training.md): in minutes a small model that takes many
small steps learns most, and a rate that falls to zero when the time is up beats one that does not know of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.settings.schema import AverageSettings, Settings, TrainSettings, TransformerModel

NO_LIMIT = 1_000_000  # steps, where the time is the limit
SUBWORDS = ("bpe", "unigram")
FOREIGN = ("sentencepiece", "subword-nmt", "byte-bpe")
LETTERS_A_PIECE = dict.fromkeys((*SUBWORDS, *FOREIGN), 4.0) | {"word": 5.0, "space": 6.0}  # others have one
OPERATIONS = {"cpu": 40e9, "gpu": 1e13}  # a second, of a thread or a GPU, in trainings of small models


@dataclass(frozen=True)
class Extent:
    """How much text there is."""

    rows: int
    characters: int  # of all columns of text
    alphabet: int  # different characters
    vectors: int = 0  # vectors of all sources that have these


@dataclass(frozen=True)
class Machine:
    """What computes."""

    gpu: bool
    threads: int

    def __str__(self) -> str:
        return "a GPU" if self.gpu else f"{self.threads} core{'s' * (self.threads > 1)}"

    @property
    def operations(self) -> float:
        """A second."""
        return OPERATIONS["gpu"] if self.gpu else OPERATIONS["cpu"] * min(self.threads, 8)


def choose(known: Settings, corpus: Extent, machine: Machine) -> tuple[str, tuple[str, ...]]:
    """A preset for those who name none, and what to change in it. Of what is known, the model has no say."""
    task, seconds, read = known.task, known.train.seconds, known.text.source.kind == "text"
    if task == "forecast":
        return "gru", ("model.width=32", "model.hidden=32")
    if task in ("tag", "classify"):
        words = ("text.tokenizer=space", "text.size=20000", "model.bidirectional=true", "model.bridge=dense")
        letters = ("model.letters=16",) if task == "tag" and read else ()
        return "lstm", (*words, "model.width=128", "model.hidden=128", *letters)
    tie = ("model.tie=all",) if task == "translate" and known.text.joint and read else ()
    if machine.gpu:
        size = "tiny" if corpus.rows < 5_000 else "small" if corpus.rows < 500_000 else "base"
        return f"transformer-{size}", tie
    long = seconds is None or seconds > 1200  # a larger model needs the time to pay
    if not long or corpus.rows < 10_000:
        return "transformer-tiny", ("model.hidden=512", *tie)
    if corpus.rows < 200_000:
        about = "A Transformer for half an hour on a CPU: 2 + 2 layers of width 192."
        shape = ("model.width=192", "model.hidden=768", "model.encoder_depth=2", "model.decoder_depth=2")
        return "transformer-small", (f"about='{about}'", *shape, *tie)
    return "transformer-small", tie


def fit(settings: Settings, corpus: Extent, machine: Machine) -> tuple[Settings, str]:
    """The settings with everything filled in that was not given, and a line that says what was chosen and why."""
    text, train = _fit_text(settings, corpus, machine), settings.train
    settings = settings.model_copy(update={"text": settings.text.model_copy(update=text)})
    pieces = _pieces(settings, corpus)
    seconds = train.seconds
    within = None if seconds is None else seconds * machine.operations / (6 * _working(settings))
    values = _fit_train(settings, corpus, machine, pieces, within)
    fitted = {name: value for name, value in values.items() if name not in train.model_fields_set}
    made = settings.model_copy(update={"train": train.model_copy(update=fitted)})
    return made, _reason(made, corpus, machine, {*text, *fitted})


def _fit_text(settings: Settings, corpus: Extent, machine: Machine) -> dict[str, Any]:
    """A vocabulary of subwords grows with the root of the text, and holds every character at the least."""
    text = settings.text
    if "size" in text.model_fields_set or text.tokenizer not in SUBWORDS:
        return {}
    most = 16_000 if machine.gpu else 8_000
    size = max(min(most, 2.5 * corpus.characters**0.5), 500, 1.2 * corpus.alphabet + 400)
    return {"size": round(size / 100) * 100}


def _fit_train(
    settings: Settings, corpus: Extent, machine: Machine, pieces: float, within: float | None
) -> dict[str, Any]:
    """Batch, rate and schedule for an epoch of so many pieces a side, and so many within the time."""
    given = settings.train
    largest = 6144 if machine.gpu else 1536
    batch = largest if within is None else within / 3000
    batch = min(max(min(batch, pieces / (20 if given.base else 8)), 256, settings.data.longest), largest)
    batch = given.batch if "batch" in given.model_fields_set else int(batch) // 128 * 128 or 128
    epoch = max(1.0, pieces / (batch * given.accumulate))
    passes, fewest = (100, 3000) if within is not None else (min(40, max(3, 2_500_000 / max(1, corpus.rows))), 1500)
    if given.base:  # it knows most already, and forgets what it does not hear
        passes, fewest = min(10, max(2, 500_000 / max(1, corpus.rows))), 100
    steps = given.steps if "steps" in given.model_fields_set else min(NO_LIMIT, _rounded(max(fewest, passes * epoch)))
    expected = steps if within is None else min(steps, max(1.0, within / (batch * given.accumulate)))
    rate = given.rate if given.schedule == "noam" or given.optimizer == "sgd" else _rate(settings)
    return {
        "batch": batch,
        "steps": steps,
        "rate": rate,
        "schedule": "cosine",
        "warmup": _rounded(min(max(0.05 * expected, 10), 400, expected / 4)),
        "average": AverageSettings(kind="moving", decay=round(min(max(1 - 6 / expected, 0.9), 0.998), 3)),
    }


def _rate(settings: Settings) -> float:
    """Weights that have learned already take a twenty-fifth of what new ones take; adapters are new ones."""
    model, train = settings.model, settings.train
    share = 0.04 if train.base and train.adapt.kind == "none" else 1.0
    if isinstance(model, TransformerModel):
        return share * (5e-4 if model.norm_place == "after" else round(3e-3 * min(1.0, (128 / model.width) ** 0.5), 4))
    return share * (1e-3 if model.cell == "elman" else 2e-3)


def _pieces(settings: Settings, corpus: Extent) -> float:
    """That an epoch has, on one side."""
    if corpus.vectors:
        return float(corpus.vectors)
    sides = 2 if settings.task == "translate" else 1
    return corpus.characters / sides / LETTERS_A_PIECE.get(settings.text.tokenizer, 1.0) + corpus.rows


def _working(settings: Settings) -> float:
    """About how many weights a token meets."""
    model, output = settings.model, settings.text.size * settings.model.width
    if isinstance(model, TransformerModel):
        layers = model.encoder_depth + model.decoder_depth
        return layers * (6 * model.width**2 + 2 * model.width * model.hidden) + output
    return 2 * model.depth * 8 * model.hidden * (model.hidden + model.width) + output


def _rounded(number: float) -> int:
    """To two digits that matter."""
    whole = round(number)
    digits = max(0, len(str(whole)) - 2)
    return round(whole, -digits)


def _reason(settings: Settings, corpus: Extent, machine: Machine, fitted: set[str]) -> str:
    """One line: what there is, and what follows from it."""
    train, model = settings.train, settings.model
    noun = ("pair" if settings.task == "translate" else "text") + "s" * (corpus.rows != 1)
    layers = (
        f"{model.encoder_depth} + {model.decoder_depth}" if isinstance(model, TransformerModel) else f"{model.depth}"
    )
    said = {
        "size": f"at most {settings.text.size:,} subwords",
        "batch": f"batches of {train.batch:,} tokens",
        "warmup": f"{train.warmup:,} steps of warm-up",
        "rate": f"a rate of {train.rate:g}" + _falling(train),
        "steps": "" if train.time else f"{train.steps:,} steps",
    }
    chosen = [words for name, words in said.items() if name in fitted and words]
    limit = (f", {train.time}" if train.time else "") + (f", to teach {train.base}" if train.base else "")
    kind = f"{model.kind} model of width {model.width}, {layers} layer{'' if layers == '1' else 's'}"
    return f"fitted to {machine}, {corpus.rows:,} {noun}{limit}: {', '.join((kind, *chosen))}"


def _falling(train: TrainSettings) -> str:
    return " that falls to zero" if train.schedule in ("cosine", "linear") else ""
