"""Settings that were not given are fitted to the corpus, the machine and the time limit. Plain numbers; no torch here.

The rules come from trainings on Multi30k with two cores (docs/training.md): in a few minutes a small model with many
small steps learns most, and a learning rate that is zero at the end of the time is better than one that is not.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from regard.settings.schema import AverageSettings, Settings, TransformerModel

NO_LIMIT = 1_000_000  # steps, where the time is the limit
SUBWORDS = ("bpe", "unigram")
FOREIGN = ("sentencepiece", "subword-nmt", "byte-bpe")
LETTERS_A_PIECE = dict.fromkeys((*SUBWORDS, *FOREIGN), 4.0) | {"word": 5.0, "space": 6.0}  # of other tokenizers 1
OPERATIONS = {"cpu": 40e9, "gpu": 3e13}  # a second, of a thread or a GPU, in trainings of small models
OFTEN = 40  # times through the corpus from which on some words are hidden
VERY_OFTEN = 100  # and from which on each row is read twice, with dropout of its own (R-Drop)
MUCH = 0.2  # dropout
SHRINKS = 3.0  # weight decay times the highest rate times steps: without gradients, weights would fall to e^−1.5
MOST_DECAY = 0.3
SHORT, FEW_SHAPES = 60.0, 12  # seconds, and the batch shapes of such a training: to capture one takes 0.2 s


@dataclass(frozen=True)
class Extent:
    """How much text there is."""

    rows: int
    characters: int  # of all columns of text
    alphabet: int  # different characters
    vectors: int = 0  # vectors of all sources, if these are not text


@dataclass(frozen=True)
class Machine:
    """What the training runs on."""

    gpu: bool
    threads: int  # of each process
    processes: int = 1  # that train together, each with a GPU of its own if there are any

    def __str__(self) -> str:
        if self.gpu:
            return "a GPU" if self.processes == 1 else f"{self.processes} GPUs"
        cores = self.threads * self.processes
        return f"{cores} core{'s' * (cores > 1)}"

    @property
    def operations(self) -> float:
        """Per second."""
        return self.processes * (OPERATIONS["gpu"] if self.gpu else OPERATIONS["cpu"] * min(self.threads, 8))


def choose(known: Settings, corpus: Extent, machine: Machine) -> tuple[str, tuple[str, ...]]:
    """The preset to use if none is named, and overrides for it that go with what is given in `known`."""
    task, seconds, read = known.task, known.train.seconds, known.text.source.kind == "text"
    if task == "forecast":
        return "gru", ("model.width=32", "model.hidden=32")
    if task in ("tag", "classify"):
        words = ("text.tokenizer=space", "text.size=20000", "model.bidirectional=true", "model.bridge=dense")
        letters = ("model.letters=16",) if task == "tag" and read else ()
        return "lstm", (*words, "model.width=128", "model.hidden=128", *letters)
    tie = ("model.tie=all",) if task == "translate" and known.text.joint and read else ()
    small = "transformer-small", (*_recent(known, 1024), *tie)
    if machine.gpu:
        return small if corpus.rows < 500_000 else ("transformer-base", tie)
    if corpus.rows < 10_000 or (seconds is not None and seconds <= 1200):  # too little time for a larger model
        return "transformer-tiny", (*_recent(known, 512), *tie)
    if corpus.rows < 200_000:
        about = "A Transformer for half an hour on a CPU: 2 layers deep, width 192."
        shape = ("model.width=192", "model.encoder_depth=2", "model.decoder_depth=2")
        return "transformer-small", (f"about='{about}'", *shape, *_recent(known, 768), *tie)
    return small


def _recent(known: Settings, hidden: int) -> tuple[str, ...]:
    """Rotary positions and SwiGLU, where nothing that is given rules them out. SwiGLU has a third matrix: with
    two thirds of the width ``hidden``, in whole 32s, it has as many weights."""
    model = known.model
    assert isinstance(model, TransformerModel)
    scores = {model.encoder_attention.score, model.decoder_attention.score}
    pairs = model.width // model.heads % 2 == 0 and not model.first_position
    rotary = ("model.positions=rotary",) if pairs and scores.isdisjoint(("additive", "concat")) else ()
    if "activation" in model.model_fields_set and model.activation != "swiglu":
        return (*rotary, f"model.hidden={hidden}")
    return (*rotary, "model.activation=swiglu", f"model.hidden={math.ceil(hidden * 2 / 3 / 32) * 32}")


def careful(settings: Settings, corpus: Extent, machine: Machine) -> tuple[str, ...]:
    """Overrides against learning a text by heart: the more often it will be read, the more dropout (Araabi and Monz,
    2020), then hidden words, then R-Drop. On a CPU also Muon, which learns more from few steps; on a GPU the two were
    not compared in equal time."""
    if settings.task != "translate" or settings.text.source.kind != "text" or settings.train.base:
        return ()
    made, train = fit(settings, corpus, machine)[0], settings.train
    tokens = float(made.train.steps * made.train.batch * made.train.accumulate)
    if train.seconds is not None:
        within = train.seconds * machine.operations / (6 * _working(made))
        tokens = min(tokens, within) if "steps" in train.model_fields_set else within
    passes = tokens / max(1.0, _pieces(made, corpus))
    twice = passes >= VERY_OFTEN and machine.gpu and settings.model.dropout > 0  # two passes without would be the same
    dropout = round(min(0.3 if twice else 0.4, max(0.1, 0.1 + 0.18 * math.log10(max(passes, 1.0) / 8))), 2)
    free = not machine.gpu and "optimizer" not in train.model_fields_set
    muon = free and isinstance(settings.model, TransformerModel)
    return (
        f"model.dropout={dropout}",
        *(("train.optimizer=muon",) if muon else ()),
        *(("train.word_dropout=0.1",) if passes >= OFTEN else ()),
        *(("train.consistency={kind='rdrop', weight=2.0}",) if twice else ()),
    )


def fit(settings: Settings, corpus: Extent, machine: Machine, chosen: Collection[str] = ()) -> tuple[Settings, str]:
    """The settings with fitted values for those that were not given, and a line that says what was chosen and why;
    ``chosen`` are names that `careful` has set."""
    text, train = _fit_text(settings, corpus, machine), settings.train
    settings = settings.model_copy(update={"text": settings.text.model_copy(update=text)})
    pieces = _pieces(settings, corpus)
    seconds = train.seconds
    within = None if seconds is None else seconds * machine.operations / (6 * _working(settings))
    values = _fit_train(settings, corpus, machine, pieces, within)
    fitted = {name: value for name, value in values.items() if name not in train.model_fields_set}
    made = settings.model_copy(update={"train": train.model_copy(update=fitted)})
    return made, _reason(made, corpus, machine, {*text, *fitted, *chosen})


def _fit_text(settings: Settings, corpus: Extent, machine: Machine) -> dict[str, Any]:
    """A subword vocabulary grows with the square root of the text, and has at least every character."""
    text = settings.text
    if "size" in text.model_fields_set or text.tokenizer not in SUBWORDS:
        return {}
    most = 16_000 if machine.gpu else 8_000
    size = max(min(most, 2.5 * corpus.characters**0.5), 500, 1.2 * corpus.alphabet + 400)
    return {"size": round(size / 100) * 100}


def _fit_train(
    settings: Settings, corpus: Extent, machine: Machine, pieces: float, within: float | None
) -> dict[str, Any]:
    """Batch, rate and schedule for an epoch of `pieces` a side, of which `within` can be read in the time limit."""
    given = settings.train
    largest = 6144 if machine.gpu else 1536
    batch = largest if within is None else within / 3000
    batch = min(max(min(batch, pieces / (20 if given.base else 8)), 256, settings.data.longest), largest)
    batch = given.batch if "batch" in given.model_fields_set else int(batch) // 128 * 128 or 128
    epoch = max(1.0, pieces / (batch * given.accumulate))
    passes, fewest = min(40, max(3, 2_500_000 / max(1, corpus.rows))), 1500
    if within is not None:  # a model that cannot learn the text by heart may read it more often
        passes, fewest = 300 if settings.model.dropout > MUCH else 100, 3000
    if given.base:  # a trained model needs fewer passes, and forgets with more
        passes, fewest = min(10, max(2, 500_000 / max(1, corpus.rows))), 100
    steps = given.steps if "steps" in given.model_fields_set else min(NO_LIMIT, _rounded(max(fewest, passes * epoch)))
    expected = steps if within is None else min(steps, max(1.0, within / (batch * given.accumulate)))
    rate = given.rate if given.schedule == "noam" or given.optimizer == "sgd" else _rate(settings)
    decays = given.optimizer in ("adamw", "muon") and given.schedule != "noam" and not given.base
    highest = given.rate if "rate" in given.model_fields_set else rate
    decay = min(MOST_DECAY, SHRINKS / (highest * expected)) if decays else given.weight_decay
    return {
        "batch": batch,
        "steps": steps,
        "rate": rate,
        "schedule": "cosine",
        "weight_decay": float(f"{decay:.2g}"),
        "momentum": 0.95 if given.optimizer == "muon" else given.momentum,
        "shapes": FEW_SHAPES if machine.gpu and given.seconds is not None and given.seconds <= SHORT else given.shapes,
        "warmup": _rounded(min(max(0.05 * expected, 10), 400, expected / 4)),
        "average": AverageSettings(kind="moving", decay=round(min(max(1 - 6 / expected, 0.9), 0.998), 3)),
    }


def _rate(settings: Settings) -> float:
    """Trained weights get a twenty-fifth of the rate of new ones; adapters are new."""
    model, train = settings.model, settings.train
    share = 0.04 if train.base and train.adapt.kind == "none" else 1.0
    if isinstance(model, TransformerModel):
        most = 4e-3 if train.optimizer == "muon" else 3e-3
        return share * (5e-4 if model.norm_place == "after" else round(most * min(1.0, (128 / model.width) ** 0.5), 4))
    return share * (1e-3 if model.cell == "elman" else 2e-3)


def _pieces(settings: Settings, corpus: Extent) -> float:
    """How many pieces an epoch has on one side."""
    if corpus.vectors:
        return float(corpus.vectors)
    sides = 2 if settings.task == "translate" else 1
    return corpus.characters / sides / LETTERS_A_PIECE.get(settings.text.tokenizer, 1.0) + corpus.rows


def _working(settings: Settings) -> float:
    """About how many weights are multiplied with each token. A labeller has no output layer; to change the weights of
    its embedding takes about as long."""
    model, output = settings.model, settings.text.size * settings.model.width
    one = settings.task not in ("translate", "forecast")  # stack: a decoder, or an encoder that labels
    if isinstance(model, TransformerModel):
        layers, matrices = sum(model.depths(settings.task)), 3 if model.activation == "swiglu" else 2
        attention = 4 if one else 6  # two attentions in each layer of a decoder that reads an encoder
        read = 2 if settings.train.consistency.kind != "none" else 1  # times
        return read * (layers * (attention * model.width**2 + matrices * model.width * model.hidden) + output)
    stacks = 1 + model.bidirectional if one else 2
    return stacks * model.depth * 8 * model.hidden * (model.hidden + model.width) + output


def _rounded(number: float) -> int:
    """To two significant digits."""
    whole = round(number)
    return round(whole, -max(0, len(str(whole)) - 2))


def _reason(settings: Settings, corpus: Extent, machine: Machine, fitted: set[str]) -> str:
    """One line: the machine, the corpus and the limit, and what was chosen for them."""
    train, model = settings.train, settings.model
    noun = {"translate": "pair", "forecast": "window"}.get(settings.task, "text") + "s" * (corpus.rows != 1)
    depths = model.depths(settings.task) if isinstance(model, TransformerModel) else (model.depth,)
    layers = " + ".join(map(str, depths))
    said = {
        "size": "" if settings.task == "forecast" else f"at most {settings.text.size:,} subwords",
        "batch": f"batches of {train.batch:,} tokens",
        "warmup": f"{train.warmup:,} step{'s' * (train.warmup != 1)} of warm-up",
        "optimizer": "Muon" if train.optimizer == "muon" else "",
        "rate": f"a rate of {train.rate:g}{' that falls to zero' * (train.schedule in ('cosine', 'linear'))}",
        "weight_decay": f"weight decay {train.weight_decay:g}" if train.weight_decay else "",
        "steps": "" if train.time else f"{train.steps:,} steps",
        "dropout": f"dropout {model.dropout:g}",
        "word_dropout": f"{train.word_dropout:.0%} of the words hidden" if train.word_dropout else "",
        "consistency": "each row read twice (R-Drop)" if train.consistency.kind == "rdrop" else "",
    }
    chosen = [words for name, words in said.items() if name in fitted and words]
    limit = (f", {train.time}" if train.time else "") + (f", to teach {train.base}" if train.base else "")
    kind = f"{model.kind} model of width {model.width}, {layers} layer{'' if layers == '1' else 's'}"
    return f"fitted to {machine}, {corpus.rows:,} {noun}{limit}: {', '.join((kind, *chosen))}"
