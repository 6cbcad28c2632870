"""A trained run of any task as something to use, and how good it is on a corpus.

translator = load("runs/demo")                  # what `regard.load` gives
predictor = load_predictor("runs/tagger")       # Tagger, Classifier, Writer or Translator
evaluate("runs/tagger", Corpus(("dev.conllu",)))
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar, assert_never

import torch
from torch import nn

from regard.data.readers import Corpus
from regard.data.tables import Row
from regard.decode.fused import Fused
from regard.decode.shortlist import Shortlist
from regard.errors import DataError, ModelError, SettingsError, did_you_mean
from regard.metrics.labels import ClassResult, TagResult, Tally
from regard.metrics.language import LanguageResult, language_result
from regard.models import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.positions import longest_sequence
from regard.runs import checkpoint
from regard.runs.folder import Run, best_checkpoint, named_checkpoint
from regard.tasks.corpus import COLUMNS, Files
from regard.tasks.engines import Material, choose, silent
from regard.tasks.labels import Classifier, Reader, Tagger
from regard.tasks.translator import Translator
from regard.tasks.writer import Writer
from regard.text.tokenizers import Tokenizers, seen_words
from regard.text.vocabulary import Vocabulary

Model = TypeVar("Model", bound=nn.Module)


class Rows(Protocol):
    """A corpus: `data.readers.Corpus`, or a task's `Material`."""

    def rows(self, names: Sequence[str]) -> Iterator[Row]: ...


Predictor = Tagger | Classifier | Writer
Result = TagResult | ClassResult | LanguageResult
CHUNK = 512  # rows that are in memory at once


def load(
    folder: str | Path,
    *others: str | Path,
    device: str = "cpu",
    engine: str = "native",
    shortlist: int = 0,
    tell: Callable[[str], object] = silent,
    checkpoint_name: str | None = None,
) -> Translator:
    """The best model of a run, ready to translate; with others, an ensemble of runs that share one vocabulary.

    ``engine`` names who searches, one of `regard.tasks.engines.ENGINES`; ``tell`` hears what came of that.
    ``shortlist`` lets the native engine on a CPU write only what the source makes likely, so many targets for each of
    its pieces; 0 lets it write everything.
    ``checkpoint_name`` is another checkpoint of the first run, as ``step-2000``; it is searched natively.
    """
    material = open_material(folder, *others, device=device, checkpoint_name=checkpoint_name)
    table = _shortlist(material, engine, shortlist, tell) if shortlist else None
    searcher = choose(engine if checkpoint_name is None and table is None else "native", material, tell)
    known = material.tokenizers, material.device, material.run, material.longest
    return Translator(material.models, *known, searcher, table)


def _shortlist(material: Material, engine: str, count: int, tell: Callable[[str], object]) -> Shortlist:
    from regard.tasks.shortlisting import check, shortlist_of

    check(count)
    if engine not in ("native", "auto"):
        raise SettingsError(f"shortlist = {count}: the engine {engine} knows of none; use the engine native")
    if len(material.models) > 1 or not Fused.fits(material.models[0]):
        raise SettingsError(f"shortlist = {count}: is for one Transformer on a CPU; leave it out for others")
    if engine == "auto":
        tell("engine: native: the others know nothing of a shortlist")
    return shortlist_of(material.run, material.tokenizers, count, tell)


def open_material(
    folder: str | Path, *others: str | Path, device: str = "cpu", checkpoint_name: str | None = None
) -> Material:
    """What there is of a run, or of several: models, tokenizers, and the longest source that goes through at once."""
    run = open_translating(folder)
    chosen = torch.device(device)
    tokenizers = Tokenizers.load(run.tokenizer)
    models = [_model(run, tokenizers, chosen, checkpoint_name)]
    for other in map(open_translating, others):
        theirs = Tokenizers.load(other.tokenizer)
        if _fingerprint(theirs) != _fingerprint(tokenizers):
            raise ModelError(
                f"{other.folder}: has another vocabulary than {run.folder}; the runs of an ensemble must share one"
            )
        models.append(_model(other, theirs, chosen))
    longest = min(run.settings.data.longest, *(longest_sequence(model) or sys.maxsize for model in models))
    return Material(run, tuple(models), tokenizers, chosen, longest - 1)


def open_translating(folder: str | Path) -> Run:
    """A run that translates."""
    run = Run.open(Path(folder))
    if run.settings.task != "translate":
        raise ModelError(
            f"{folder}: is a run for task '{run.settings.task}', which does not translate; try regard predict"
        )
    return run


def _model(run: Run, tokenizers: Tokenizers, device: torch.device, name: str | None = None) -> EncoderDecoder:
    sizes = tokenizers.source.size, tokenizers.target.size
    return _trained(run, lambda: build.encoder_decoder(run.settings.model, *sizes), device, name)


def _trained(run: Run, make: Callable[[], Model], device: torch.device, name: str | None = None) -> Model:
    """What is made with the weights of the best checkpoint, or of the one that is named."""
    path = best_checkpoint(run) if name is None else named_checkpoint(run, name)
    return checkpoint.trained(make, run, path, device)


def _fingerprint(tokenizers: Tokenizers) -> tuple[str, str]:
    return tokenizers.source.fingerprint(), tokenizers.target.fingerprint()


def load_predictor(
    folder: str | Path,
    device: str = "cpu",
    *,
    engine: str = "native",
    shortlist: int = 0,
    tell: Callable[[str], object] = silent,
    checkpoint_name: str | None = None,
) -> Predictor | Translator:
    """The best model of a run, or that of a checkpoint named ``step-N``, ready for what it was trained for.

    ``engine``, ``shortlist`` and ``tell`` are for runs that translate, as in `load`.
    """
    run = Run.open(Path(folder))
    settings, chosen = run.settings, torch.device(device)
    if settings.task == "translate":
        return load(
            folder, device=device, engine=engine, shortlist=shortlist, tell=tell, checkpoint_name=checkpoint_name
        )
    tokenizers = Tokenizers.load(run.tokenizer)
    if settings.task == "language":
        size = tokenizers.target.size
        writer = _trained(run, lambda: build.language_model(settings.model, size), chosen, checkpoint_name)
        return Writer(writer, tokenizers.target, chosen, tokenizers.known)
    labels = _vocabulary(run.labels)
    pool = settings.pool if settings.task == "classify" else None
    tokenizer, seen = tokenizers.source, seen_words(tokenizers.source)
    sizes = tokenizer.size, len(labels)
    labeller = _trained(run, lambda: build.labeller(settings.model, *sizes, pool, seen=seen), chosen, checkpoint_name)
    reader = Reader(tokenizer, settings.model.letters, chosen, tokenizers.known)
    return Tagger(labeller, reader, labels) if settings.task == "tag" else Classifier(labeller, reader, labels)


def labels_of(folder: str | Path, device: str = "cpu") -> Predictor:
    """The best model of a run that does not translate."""
    predictor = load_predictor(folder, device)
    if isinstance(predictor, Translator):
        raise ModelError(f"{folder}: is a run for task 'translate'; use regard translate and regard evaluate")
    return predictor


def _vocabulary(path: Path) -> Vocabulary:
    if not path.is_file():
        raise ModelError(f"{path}: missing; a run for labels has this file, so the folder is not whole")
    return Vocabulary.load(path)


def evaluate(folder: str | Path, corpus: Rows, device: str = "cpu") -> Result:
    """How good a run is on a corpus with the right answers in it. Reads as a stream."""
    predictor, run = labels_of(folder, device), Run.open(Path(folder))
    chunks = _chunks(corpus.rows(COLUMNS[run.settings.task]))
    match predictor:
        case Tagger():
            return _tags(predictor, chunks, set(_vocabulary(run.words)), _name(corpus))
        case Classifier():
            return _classes(predictor, chunks, _name(corpus))
        case Writer():
            texts = ([row[0] for _, row in chunk] for chunk in chunks)
            return language_result(
                scored for text in texts for scored in zip(text, predictor.log_probabilities(text), strict=True)
            )
        case _:
            assert_never(predictor)


def _name(corpus: Rows) -> str:
    """What a complaint calls the corpus."""
    files = corpus.corpus if isinstance(corpus, Files) else corpus
    return str(files.paths[-1]) if isinstance(files, Corpus) else "corpus"


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


def _tags(tagger: Tagger, chunks: Iterator[list[Row]], known: set[str], name: str) -> TagResult:
    tally = Tally(known)
    for chunk in chunks:
        for (line, (words, tags)), guess in zip(chunk, tagger.tag([row[0] for _, row in chunk]), strict=True):
            try:
                tally.tags(words.split(), tags.split(), guess.tags)
            except DataError:
                found = f"{len(words.split())} words but {len(tags.split())} tags"
                raise DataError(f"{name} line {line}: {found}; every word needs one tag") from None
    return TagResult(tally.texts, tally.confusion(), tally.unknown())


def _classes(classifier: Classifier, chunks: Iterator[list[Row]], name: str) -> ClassResult:
    tally, labels = Tally(), frozenset(classifier.labels)
    for chunk in chunks:
        for (line, (_, truth)), guess in zip(chunk, classifier.classify([row[0] for _, row in chunk]), strict=True):
            if truth not in labels:
                hint = did_you_mean(truth, labels)
                raise DataError(f"{name} line {line}: label = {truth!r}: not one the run knows; {hint}")
            tally.label(truth, guess.label)
    return ClassResult(tally.confusion())
