"""A trained run of any task as something to use, and how good it is on a corpus.

translator = load("runs/demo")                  # what `regard.load` gives
predictor = load_predictor("runs/tagger")       # Tagger, Classifier, Writer or Translator
evaluate("runs/tagger", Corpus(("dev.conllu",)))
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, assert_never

import torch

from regard.device import pick_device
from regard.errors import ModelError
from regard.models.generator import EncoderDecoder
from regard.nn.embeddings import longest_sequence
from regard.runs import checkpoint
from regard.runs.folder import Run
from regard.settings import TaskName
from regard.tasks.engines import choose, silent
from regard.tasks.translator import Translator, build_model
from regard.text.tokenizers import Tokenizers

if TYPE_CHECKING:  # translating one sentence must not wait for the imports of training and other tasks
    from regard.data.tables import Row
    from regard.tasks.classify import Classifier
    from regard.tasks.forecast import Forecaster
    from regard.tasks.language import Writer
    from regard.tasks.predictor import Predictor, Result, Rows
    from regard.tasks.tag import Tagger
    from regard.tasks.task import Task


Predicting: TypeAlias = "Tagger | Classifier | Writer"  # they read text; each a `regard.tasks.predictor.Predictor`
Trained: TypeAlias = "Tagger | Classifier | Writer | Translator"  # distinguished by ``task``
AnyTrained: TypeAlias = "Trained | Forecaster"  # with what forecasts numbers, which has no words
CHUNK = 512  # rows that are in memory at once


def task_of(name: TaskName) -> type[Task]:
    """The task of a name in the settings; its file is imported here, when it is needed."""
    match name:
        case "translate":
            from regard.tasks.translate import TranslateTask

            return TranslateTask
        case "language":
            from regard.tasks.language import LanguageTask

            return LanguageTask
        case "tag":
            from regard.tasks.tag import TagTask

            return TagTask
        case "classify":
            from regard.tasks.classify import ClassifyTask

            return ClassifyTask
        case "forecast":
            from regard.tasks.forecast import ForecastTask

            return ForecastTask
        case _:
            assert_never(name)


def load(
    folder: str | Path,
    *others: str | Path,
    device: str = "cpu",
    engine: str = "auto",
    tell: Callable[[str], object] = silent,
    checkpoint_name: str | None = None,
) -> Translator:
    """The best model of a run, ready to translate; with others, an ensemble of runs that share one vocabulary.

    ``engine`` is one of `regard.tasks.engines.ENGINES`: `auto` is our own loop until there is much to translate, and
    then CTranslate2 if its outputs are the same; ``tell`` gets a line about that choice.
    ``checkpoint_name`` is another checkpoint of the first run, as ``step-2000``; our own loop searches with it.
    """
    translator = open_translator(folder, *others, device=device, checkpoint_name=checkpoint_name)
    return replace(translator, searcher=choose(engine if checkpoint_name is None else "native", translator, tell))


def open_translator(
    folder: str | Path, *others: str | Path, device: str = "cpu", checkpoint_name: str | None = None
) -> Translator:
    """A run, or an ensemble of several, that our own loop searches with: no engine is chosen."""
    run = _open_translating(folder)
    chosen = pick_device(device)
    tokenizers = Tokenizers.load(run.tokenizer)
    models = [_model(run, tokenizers, chosen, checkpoint_name)]
    for other in map(_open_translating, others):
        theirs = Tokenizers.load(other.tokenizer)
        if _fingerprint(theirs) != _fingerprint(tokenizers):
            raise ModelError(
                f"{other.folder}: has another vocabulary than {run.folder}; the runs of an ensemble must share one"
            )
        models.append(_model(other, theirs, chosen))
    longest = min(run.settings.data.longest, *(longest_sequence(model) or sys.maxsize for model in models))
    return Translator(tuple(models), tokenizers, chosen, run, longest - 1)


def _open_translating(folder: str | Path) -> Run:
    run = Run.open(Path(folder))
    if run.settings.task != "translate":
        raise ModelError(
            f"{folder}: is a run for task '{run.settings.task}', which does not translate; try regard predict"
        )
    return run


def _model(run: Run, tokenizers: Tokenizers, device: torch.device, name: str | None = None) -> EncoderDecoder:
    return checkpoint.trained(lambda: build_model(run, tokenizers), run, device, name)


def _fingerprint(tokenizers: Tokenizers) -> tuple[str, str]:
    return tokenizers.source.fingerprint(), tokenizers.target.fingerprint()


def load_run(
    folder: str | Path,
    device: str = "cpu",
    *,
    engine: str = "auto",
    tell: Callable[[str], object] = silent,
    checkpoint_name: str | None = None,
) -> AnyTrained:
    """The best model of a run of any task, or that of its checkpoint ``step-N``, ready for use.

    ``engine`` and ``tell`` are for runs that translate, as in `load`.
    """
    run = Run.open(Path(folder))
    if run.settings.task == "translate":
        return load(folder, device=device, engine=engine, tell=tell, checkpoint_name=checkpoint_name)
    return task_of(run.settings.task).load(run, pick_device(device), checkpoint_name)


def load_predictor(folder: str | Path, device: str = "cpu", *, checkpoint_name: str | None = None) -> Trained:
    """`load_run`, for what can be asked only of a run with words."""
    return of_words(load_run(folder, device, checkpoint_name=checkpoint_name), folder)


def of_words(found: AnyTrained, name: str | Path) -> Trained:
    """Refuse a forecaster where a run with words is needed."""
    if found.task == "forecast":
        raise ModelError(f"run = {name}: forecasts numbers and has no words to ask for; predict and explain it")
    return found


def open_predictor(folder: str | Path, device: str = "cpu") -> Predictor:
    """The best model of a run that does not translate."""
    run = Run.open(Path(folder))
    found = task_of(run.settings.task).load(run, pick_device(device))
    if found.task == "translate":
        raise ModelError(f"{folder}: is a run for task 'translate'; use regard translate and regard evaluate")
    return found


def evaluate(folder: str | Path, corpus: Rows, device: str = "cpu") -> Result:
    """The scores of a run on a corpus with the right answers in it, which is read as a stream."""
    predictor = open_predictor(folder, device)
    return predictor.evaluate(_chunks(corpus.rows(task_of(predictor.task).columns)), _name(corpus))


def _name(corpus: Rows) -> str:
    """What an error message calls the corpus."""
    from regard.data.readers import Corpus
    from regard.tasks.corpus import Files

    files = corpus.corpus if isinstance(corpus, Files) else corpus
    return str(files.paths[-1]) if isinstance(files, Corpus) else "corpus"


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk
