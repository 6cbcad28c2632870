"""A run that begins with the weights of another: its settings, its tokenizers, its first weights."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from regard.errors import ModelError, SettingsError
from regard.runs import checkpoint
from regard.runs.folder import MANIFEST, Run, belongs, best_checkpoint, digest, flat
from regard.settings import Settings, read_settings
from regard.settings.languages import languages_of
from regard.tasks.predictor import Rows
from regard.tasks.task import Task, column
from regard.text.known import WordCounter
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import Vocabulary
from regard.trainer.loop import Trainer

MEANING = ("task", "pool", "model", "text")  # the settings that say what weights mean
FREE = {"model.dropout", "model.attention_dropout", "model.vectors.forget", "text.sampling"}
CARRIED = (
    *("optimizer", "weight_decay", "momentum", "second_moment", "clip"),
    *("smoothing", "word_dropout", "scheduled_sampling", "reinforce"),
)


def settings_from(place: str, *overrides: str) -> Settings:
    """Those of a run that is to begin with another's weights: what the other is, how it learned, and what is new."""
    base = Run.open(Path(place))
    theirs = base.settings.model_dump()
    values = {name: theirs[name] for name in MEANING}
    values["model"]["vectors"]["file"] = ""  # they are in the weights
    values["data"] = {"longest": theirs["data"]["longest"], "languages": str(languages_of(base.settings) or "")}
    values["train"] = {name: theirs["train"][name] for name in CARRIED}
    return read_settings(values, *overrides, origin=base.place)


def resolve(settings: Settings) -> Settings:
    """The settings with the hash of the weights that the run begins with, if those of the other run allow it."""
    if not settings.train.base:
        return settings
    base = Run.open(Path(settings.train.base))
    theirs, ours = (flat({name: each.model_dump()[name] for name in MEANING}) for each in (base.settings, settings))
    theirs["model.vectors.file"] = ""
    for name in sorted(theirs.keys() | ours.keys()):
        if name not in FREE and theirs.get(name) != ours.get(name):
            said = f"{name} = {ours.get(name)}: {base.place} has {theirs.get(name)}, and its weights need that"
            raise SettingsError(f"{said}; leave the setting out")
    found = digest(best_checkpoint(base) / MANIFEST)
    update = {"base": base.place, "base_weights": found}
    return settings.model_copy(update={"train": settings.train.model_copy(update=update)})


def inherit(run: Run, kind: type[Task], rows: Rows) -> Tokenizers:
    """The tokenizers of the other run, which goes on seeing words, and its labels. They are the new run's own now."""
    base = Run.open(Path(run.settings.train.base))
    theirs, counted = Tokenizers.load(base.tokenizer), None
    if base.labels.exists():
        shutil.copyfile(base.labels, run.labels)
    if base.words.exists():
        words = (word for text in column(rows, kind.columns, 0) for word in text.split())
        Vocabulary.load(base.words).extended(words).save(run.words)
    if theirs.known is not None and not theirs.known.whole:
        before = dict(zip(theirs.known.counted.tokens, theirs.known.counted.counts, strict=True))
        counter = WordCounter(run.settings.text.case, Counter(before))
        for _ in counter.watch(column(rows, kind.columns, 0)):
            pass
        counted = counter.commonest()
    tokenizers = Tokenizers(theirs.source, theirs.target, counted)
    tokenizers.save(run.tokenizer)
    return tokenizers


def begin(trainer: Trainer) -> None:
    """Before the very first step: the best weights of the other run. Later they are in the checkpoints."""
    base = Run.open(Path(trainer.settings.base))
    path = best_checkpoint(base)
    if digest(path / MANIFEST) != trainer.settings.base_weights:
        raise ModelError(
            f"train.base = {base.place}: its best weights are others than when this run was made; "
            "begin anew with another --out"
        )
    belongs(base, path)
    trainer.begin(checkpoint.load_weights(path))
