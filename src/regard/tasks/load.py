"""A trained run of any task as something to use, and how good it is on a corpus.

translator = load("runs/demo")                  # what `regard.load` gives
predictor = load_predictor("runs/tagger")       # Tagger, Classifier, Writer or Translator
evaluate("runs/tagger", Corpus(("dev.conllu",)))
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from regard.errors import ModelError
from regard.models import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.positions import longest_sequence
from regard.runs import checkpoint
from regard.runs.folder import Run, best_checkpoint, named_checkpoint
from regard.tasks.engines import LoadedModel, choose, silent
from regard.tasks.translator import Translator
from regard.text.tokenizers import Tokenizers

if TYPE_CHECKING:  # one sentence to translate must not wait for what training and the other tasks need
    from regard.data.tables import Row
    from regard.tasks.kinds import Trained
    from regard.tasks.predictor import Predictor, Result, Rows

CHUNK = 512  # rows that are in memory at once


def load(
    folder: str | Path,
    *others: str | Path,
    device: str = "cpu",
    engine: str = "auto",
    tell: Callable[[str], object] = silent,
    checkpoint_name: str | None = None,
) -> Translator:
    """The best model of a run, ready to translate; with others, an ensemble of runs that share one vocabulary.

    ``engine`` names who searches, one of `regard.tasks.engines.ENGINES`: `auto` is our own loop until there is much to
    translate, and then CTranslate2 where it writes the same. ``tell`` hears what came of that.
    ``checkpoint_name`` is another checkpoint of the first run, as ``step-2000``; it is searched natively.
    """
    material = open_material(folder, *others, device=device, checkpoint_name=checkpoint_name)
    searcher = choose(engine if checkpoint_name is None else "native", material, tell)
    return Translator(material.models, material.tokenizers, material.device, material.run, material.longest, searcher)


def open_material(
    folder: str | Path, *others: str | Path, device: str = "cpu", checkpoint_name: str | None = None
) -> LoadedModel:
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
    return LoadedModel(run, tuple(models), tokenizers, chosen, longest - 1)


def open_translating(folder: str | Path) -> Run:
    """A run that translates."""
    run = Run.open(Path(folder))
    if run.settings.task != "translate":
        raise ModelError(
            f"{folder}: is a run for task '{run.settings.task}', which does not translate; try regard predict"
        )
    return run


def _model(run: Run, tokenizers: Tokenizers, device: torch.device, name: str | None = None) -> EncoderDecoder:
    path = best_checkpoint(run) if name is None else named_checkpoint(run, name)
    sizes = tokenizers.source.size, tokenizers.target.size
    return checkpoint.trained(lambda: build.encoder_decoder(run.settings.model, *sizes), run, path, device)


def _fingerprint(tokenizers: Tokenizers) -> tuple[str, str]:
    return tokenizers.source.fingerprint(), tokenizers.target.fingerprint()


def load_predictor(
    folder: str | Path,
    device: str = "cpu",
    *,
    engine: str = "auto",
    tell: Callable[[str], object] = silent,
    checkpoint_name: str | None = None,
) -> Trained:
    """The best model of a run, or that of a checkpoint named ``step-N``, ready for what it was trained for.

    ``engine`` and ``tell`` are for runs that translate, as in `load`.
    """
    from regard.tasks.kinds import task_of
    from regard.tasks.predictor import Opening

    run = Run.open(Path(folder))
    return task_of(run.settings.task).load(run, torch.device(device), Opening(checkpoint_name, engine, tell))


def labels_of(folder: str | Path, device: str = "cpu") -> Predictor:
    """The best model of a run that does not translate."""
    predictor = load_predictor(folder, device)
    if predictor.task == "translate":
        raise ModelError(f"{folder}: is a run for task 'translate'; use regard translate and regard evaluate")
    return predictor


def evaluate(folder: str | Path, corpus: Rows, device: str = "cpu") -> Result:
    """How good a run is on a corpus with the right answers in it. Reads as a stream."""
    from regard.tasks.kinds import task_of

    predictor = labels_of(folder, device)
    return predictor.evaluate(_chunks(corpus.rows(task_of(predictor.task).columns)), _name(corpus))


def _name(corpus: Rows) -> str:
    """What a complaint calls the corpus."""
    from regard.data.readers import Corpus
    from regard.tasks.corpus import Files

    files = corpus.corpus if isinstance(corpus, Files) else corpus
    return str(files.paths[-1]) if isinstance(files, Corpus) else "corpus"


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk
