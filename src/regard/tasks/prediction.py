"""A trained run of any task as something to use, and how good it is on a corpus.

predictor = load_predictor("runs/tagger")       # Tagger, Classifier, Writer or Translator
evaluate("runs/tagger", Corpus(("dev.conllu",)))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol, assert_never

import torch

from regard.data.readers import Corpus
from regard.data.tables import Row
from regard.errors import DataError, ModelError, did_you_mean
from regard.metrics.labels import ClassResult, TagResult, Tally
from regard.metrics.language import LanguageResult, language_result
from regard.models import build
from regard.runs import checkpoint
from regard.runs.folder import Run, best_checkpoint, named_checkpoint
from regard.tasks.corpus import COLUMNS, Files
from regard.tasks.engines import silent
from regard.tasks.labels import Classifier, Reader, Tagger
from regard.tasks.load import load
from regard.tasks.translator import Translator
from regard.tasks.writer import Writer
from regard.text.tokenizers import Tokenizers, seen_words
from regard.text.vocabulary import Vocabulary


class Rows(Protocol):
    """A corpus: `data.readers.Corpus`, or a task's `Material`."""

    def rows(self, names: Sequence[str]) -> Iterator[Row]: ...


Predictor = Tagger | Classifier | Writer
Result = TagResult | ClassResult | LanguageResult
CHUNK = 512  # rows that are in memory at once


def labels_of(folder: str | Path, device: str = "cpu") -> Predictor:
    """The best model of a run that does not translate."""
    predictor = load_predictor(folder, device)
    if isinstance(predictor, Translator):
        raise ModelError(f"{folder}: is a run for task 'translate'; use regard translate and regard evaluate")
    return predictor


def load_predictor(
    folder: str | Path,
    device: str = "cpu",
    *,
    engine: str = "auto",
    tell: Callable[[str], object] = silent,
    checkpoint_name: str | None = None,
) -> Predictor | Translator:
    """The best model of a run, or that of a checkpoint named ``step-N``, ready for what it was trained for.

    ``engine`` and ``tell`` are for runs that translate, as in `tasks.load`.
    """
    run = Run.open(Path(folder))
    settings, chosen = run.settings, torch.device(device)
    if settings.task == "translate":
        return load(folder, device=device, engine=engine, tell=tell, checkpoint_name=checkpoint_name)
    tokenizers = Tokenizers.load(run.tokenizer)
    path = best_checkpoint(run) if checkpoint_name is None else named_checkpoint(run, checkpoint_name)
    if settings.task == "language":
        size = tokenizers.target.size
        writer = checkpoint.trained(lambda: build.language_model(settings.model, size), run, path, chosen)
        return Writer(writer, tokenizers.target, chosen, tokenizers.known)
    labels = _vocabulary(run.labels)
    pool = settings.pool if settings.task == "classify" else None
    tokenizer, seen = tokenizers.source, seen_words(tokenizers.source)
    sizes = tokenizer.size, len(labels)
    labeller = checkpoint.trained(lambda: build.labeller(settings.model, *sizes, pool, seen=seen), run, path, chosen)
    reader = Reader(tokenizer, settings.model.letters, chosen, tokenizers.known)
    return Tagger(labeller, reader, labels) if settings.task == "tag" else Classifier(labeller, reader, labels)


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
