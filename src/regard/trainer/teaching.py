"""A run that begins with the weights of another: its settings, its tokenizers, its first weights."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from regard.errors import ModelError, SettingsError
from regard.runs import checkpoint
from regard.runs.folder import MANIFEST, ORIGIN, Run, belongs, best_checkpoint, digest, flat
from regard.settings import Settings, load_settings, read_settings
from regard.settings.languages import languages_of
from regard.tasks.predictor import Rows
from regard.tasks.task import Task, column
from regard.text.grafting import graft_both, origins
from regard.text.reading import commonest, count_words
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import Tokenizer, Vocabulary
from regard.trainer.loop import Trainer
from regard.trainer.optimizer import Weights

MEANING = ("task", "pool", "model", "text")  # the settings that say what weights mean
FREE = {"model.dropout", "model.attention_dropout", "model.vectors.forget", "text.sampling"}
CARRIED = (
    *("optimizer", "momentum", "second_moment", "clip"),  # no weight decay: it was fitted to other steps and rates
    *("smoothing", "word_dropout", "scheduled_sampling", "reinforce"),
)


def settings_of(words: Sequence[str]) -> Settings:
    """The settings that the arguments of `regard train` name, before fitting: a preset's or another run's, with
    overrides."""
    base = given("train.base", words)
    return settings_from(base, *words) if base else load_settings(*words)


def given(name: str, overrides: Sequence[str]) -> str:
    """The text that overrides give to a setting; empty if they do not name it."""
    values = dict(each.split("=", 1) for each in overrides if "=" in each)
    return next((text.strip("\"' ") for each, text in values.items() if each.strip() == name), "")


def settings_from(folder: str, *overrides: str) -> Settings:
    """The settings of a run that begins with the weights of another: its model, text and optimizer, and overrides."""
    base = Run.open(Path(folder))
    theirs = base.settings.model_dump()
    values = {name: theirs[name] for name in MEANING}
    values["model"]["vectors"]["file"] = ""  # they are in the weights
    values["data"] = {"longest": theirs["data"]["longest"]}
    values["train"] = {name: theirs["train"][name] for name in CARRIED}
    taught = read_settings(values, *overrides, origin=base.place)
    before, now = languages_of(base.settings), languages_of(taught)
    if before and not taught.data.languages and (now is None or now.codes == before.codes):  # else it learns others
        taught = taught.model_copy(update={"data": taught.data.model_copy(update={"languages": str(before)})})
    return taught


def resolve(settings: Settings) -> Settings:
    """The settings with the hash of the weights that the run begins with; refused if these need other settings."""
    if not settings.train.base:
        return settings
    base = Run.open(Path(settings.train.base))
    theirs, ours = (flat({name: each.model_dump()[name] for name in MEANING}) for each in (base.settings, settings))
    theirs["model.vectors.file"] = ""
    for name in sorted(theirs.keys() | ours.keys()):
        if name not in FREE and theirs.get(name) != ours.get(name):
            problem = f"{name} = {ours.get(name)}: {base.place} has {theirs.get(name)}, and its weights need that"
            raise SettingsError(f"{problem}; leave the setting out")
    update = {"base": base.place, "base_weights": digest(best_checkpoint(base) / MANIFEST)}
    return settings.model_copy(update={"train": settings.train.model_copy(update=update)})


def inherit(run: Run, kind: type[Task], rows: Rows, tell: Callable[[str], None]) -> Tokenizers:
    """Copy the tokenizers, labels and origin of the other run; add the words of the new text to those it knows."""
    base = Run.open(Path(run.settings.train.base))
    theirs, counted = Tokenizers.load(base.tokenizer), None
    for name in (base.labels.name, ORIGIN):  # whose licence goes with the weights
        if (base.folder / name).exists():
            shutil.copyfile(base.folder / name, run.folder / name)
    if base.words.exists():
        words = (word for text in column(rows, kind.columns, 0) for word in text.split())
        Vocabulary.load(base.words).extended(words).save(run.words)
    if theirs.known is not None and not theirs.known.whole:
        counts = Counter(dict(zip(theirs.known.counted.tokens, theirs.known.counted.counts, strict=True)))
        for _ in count_words(column(rows, kind.columns, 0), run.settings.text.case, counts):
            pass
        counted = commonest(counts)
    tokenizers = replace(theirs, counted=counted, folder=None)
    if count := run.settings.train.graft:
        sides = [column(rows, kind.columns, place) for place in range(kind.texts)]
        tokenizers = graft_both(tokenizers, sides[0], sides[-1] if len(sides) > 1 else iter(()), count)
        grown = sorted({each.size - old.size for old, each in _sides(theirs, tokenizers)})
        tell(f"grafted {' and '.join(f'{more:,}' for more in grown)} pieces onto the vocabulary")
    tokenizers.save(run.tokenizer)
    return tokenizers


def _sides(old: Tokenizers, new: Tokenizers) -> tuple[tuple[Tokenizer, Tokenizer], tuple[Tokenizer, Tokenizer]]:
    return (old.source, new.source), (old.target, new.target)


def _grown(weights: Weights, own: Weights, old: Tokenizers, new: Tokenizers) -> Weights:
    """Weights with rows for the pieces that were added: each the mean of the rows of the pieces it replaces."""
    source, target = (origins(*side) for side in _sides(old, new))
    grown = dict(weights)
    for name, tensor in weights.items():
        added = source if name.startswith("model.encoder.") else target
        if name in own and len(own[name]) == len(tensor) + len(added) and added:
            grown[name] = torch.cat((tensor, torch.stack([tensor[rows].mean(0) for rows in added])))
    return grown


def begin(trainer: Trainer, run: Run) -> None:
    """Load the best weights of the other run, before the first step; later they are in the checkpoints."""
    base = Run.open(Path(trainer.settings.base))
    path = best_checkpoint(base)
    if digest(path / MANIFEST) != trainer.settings.base_weights:
        raise ModelError(
            f"train.base = {base.place}: its best weights are others than when this run was made; "
            "begin again with another --out"
        )
    belongs(base, path)
    weights = checkpoint.load_weights(path)
    if trainer.settings.graft:
        both = (Tokenizers.load(each.tokenizer) for each in (base, run))
        weights = _grown(weights, trainer.weights, *both)
    trainer.begin(weights)
