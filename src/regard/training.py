"""From settings to a trained run: what ``regard train`` does, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import assert_never

import torch

from regard import build
from regard.data.encoding import Encoder, LabelEncoder, PairEncoder, TagEncoder, TextEncoder
from regard.device import pick_device
from regard.errors import ModelError, RegardError
from regard.files import remove
from regard.run import Run, occupied, steps
from regard.settings import Settings, TransformerModel, load_settings
from regard.tasks import showing, vectors
from regard.tasks.label import Label
from regard.tasks.language import Language
from regard.tasks.material import COLUMNS, Material, materials
from regard.tasks.showing import Showing
from regard.tasks.task import Task
from regard.tasks.translate import Habits, Translate
from regard.text.tokenizers import Tokenizers, seen_words, size_remarks
from regard.text.vocabulary import Vocabulary
from regard.trainer import checkpoint
from regard.trainer.checkpoint import Checkpoint
from regard.trainer.log import Listener, Log
from regard.trainer.loop import Outcome, Trainer
from regard.trainer.preflight import Preflight
from regard.trainer.preflight import preflight as estimate
from regard.trainer.workers import ALONE, Workers, workers

HELD_OUT = 200  # sentences translated at each validation
OPENING = 4  # words of a sample that a language model goes on from
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Opened:
    """A run with everything that training needs."""

    run: Run
    task: Task
    trainer: Trainer


def train(preset: str | Path, *overrides: str, corpus: str = "", time: str = "", out: str | Path = "") -> Run:
    """Train a new run from a preset or a TOML file: ``regard.train("bahdanau", corpus="fable:fr", time="60s")``."""
    flags = {"data.corpus": corpus, "train.time": time}
    given = [f"{name}={json.dumps(value)}" for name, value in flags.items() if value]
    folder = Path(out) if out else Path("runs") / Path(preset).stem
    start(folder, load_settings(preset, *given, *overrides))
    return Run.open(folder)


def start(folder: Path, settings: Settings, *listeners: Listener, device: str = "auto") -> Outcome:
    """Train a new run."""
    chosen = pick_device(device)
    with workers(chosen) as together:
        fresh = together.leads and not folder.exists()
        if together.leads:
            Run.create(folder, vectors.resolve(settings))
        together.wait()
        with _held(folder, together):
            with _undone(folder, fresh=fresh):
                opened = open_run(Run.open(folder), chosen, together, *listeners)
                _begin(opened)
            return opened.trainer.run()


def _held(folder: Path, together: Workers) -> AbstractContextManager[None]:
    """The first process holds the run for all."""
    return occupied(folder) if together.leads else nullcontext()


@contextmanager
def _undone(folder: Path, *, fresh: bool) -> Iterator[None]:
    """A new run that cannot be prepared is taken away again: the mended command must find its place free."""
    try:
        yield
    except RegardError:
        if fresh:
            remove(folder)
        raise


def resume(folder: Path, *listeners: Listener, device: str = "auto") -> Outcome:
    """Go on with a run from its last good checkpoint, as if it had never stopped."""
    chosen = pick_device(device)
    run = Run.open(folder)
    _can_go_on(run)
    with workers(chosen) as together, _held(folder, together):
        opened = open_run(run, chosen, together, *listeners)
        saved = last_good(run, opened.trainer.listener.tell)
        if saved is None:
            _begin(opened)
        else:
            opened.trainer.resume(saved)
        if saved is not None and saved.progress.step >= run.settings.train.steps:
            return Outcome(saved.progress, "steps")
        return opened.trainer.run()


def _can_go_on(run: Run) -> None:
    """An imported run may have weights alone: training it from the beginning is not what resuming means."""
    found = steps(run.checkpoints)
    if found and not any((path / checkpoint.OPTIMIZER).exists() for path in found):
        raise ModelError(
            f"{run.folder}: holds weights alone and cannot be resumed; export the run with --all where it was trained"
        )


def _begin(opened: Opened) -> None:
    """What happens before the very first step: word vectors take their places. Later they are in the checkpoints."""
    run = opened.run
    if run.settings.model.vectors.file:
        tokenizer = Tokenizers.load(run.tokenizer).source
        vectors.begin(opened.task.model, tokenizer, run.settings.model.vectors, opened.trainer.listener.tell)


def last_good(run: Run, tell: Tell) -> Checkpoint | None:
    """The newest checkpoint that is whole. A damaged one is named and passed over."""
    for path in reversed(steps(run.checkpoints)):
        try:
            return checkpoint.load(path)
        except ModelError as error:
            tell(f"{error}; the one before is used")
    return None


def open_run(run: Run, device: torch.device, together: Workers = ALONE, *listeners: Listener) -> Opened:
    """Tokenizers, examples, model and trainer of a run. The first process makes what is missing."""
    settings = run.settings
    listener = Log(run.log, *listeners) if together.leads else _Silence()
    torch.manual_seed(settings.train.seed)
    if not together.leads:
        together.wait()
    task = open_task(run, listener.tell)
    if together.leads:
        together.wait()
    trainer = Trainer(
        task,
        settings.train,
        run.folder,
        listener,
        width=settings.model.width,
        longest=settings.data.longest,
        device=device,
        workers=together,
    )
    return Opened(run, task, trainer)


class _Silence:
    """What the processes that do not lead tell."""

    def moment(self, moment: object) -> None: ...

    def validation(self, validation: object) -> None: ...

    def watch(self, step: int, watched: object) -> None: ...

    def tell(self, line: str) -> None: ...


def open_task(run: Run, tell: Tell) -> Task:
    """The task that a run's settings describe, with its examples encoded and a model not yet trained."""
    settings = run.settings
    train_rows, valid_rows = materials(settings)
    tokenizers = _tokenizers(run, train_rows, tell)
    encoder = _encoder(run, tokenizers, train_rows)
    train, valid = (
        rows.encode(encoder, run.data / name, _Telling(tell, name))
        for name, rows in (("train", train_rows), ("valid", valid_rows))
    )
    learn, source, target = settings.train, tokenizers.source.size, tokenizers.target.size
    held_out = [(row[0], row[-1]) for _, row in islice(valid_rows.rows(COLUMNS[settings.task]), HELD_OUT)]
    showing.check_length(learn.watch, tokenizers.source, settings.data.longest)
    match settings.task:
        case "translate":
            habits = Habits(
                smoothing=learn.smoothing,
                word_dropout=learn.word_dropout,
                subword_sampling=settings.text.sampling,
                scheduled_sampling=learn.scheduled_sampling,
                reinforce=learn.reinforce,
                seed=learn.seed,
            )
            model = build.encoder_decoder(settings.model, source, target)
            shows = showing.translations(model, tokenizers, held_out, learn.watch)
            return Translate(model, tokenizers, train, valid, habits=habits, held_out=held_out, showing=shows)
        case "language":
            writer = build.language_model(settings.model, target)
            opening = [(" ".join(text.split()[:OPENING]), text) for text, _ in held_out]
            shows = Showing(showing.continuations(writer, tokenizers.target), opening, learn.watch)
            return Language(
                writer, train, valid, smoothing=learn.smoothing, word_dropout=learn.word_dropout, showing=shows
            )
        case "tag" | "classify":
            labels = Vocabulary.load(run.labels)
            pool = settings.pool if settings.task == "classify" else None
            labeller = build.labeller(settings.model, source, len(labels), pool, seen=seen_words(tokenizers.source))
            look = showing.tags if settings.task == "tag" else showing.classes
            shows = Showing(look(labeller, tokenizers.source, settings.model.letters, labels), held_out, learn.watch)
            return Label(
                labeller, train, valid, smoothing=learn.smoothing, word_dropout=learn.word_dropout, showing=shows
            )
        case _:
            assert_never(settings.task)


class _Telling:
    """Says now and then how far the encoding of a corpus has come."""

    def __init__(self, tell: Tell, name: str) -> None:
        self._tell, self._name, self._told = tell, name, 0

    def __call__(self, done: int, total: int | None) -> None:
        if done - self._told >= 100_000:
            self._told = done
            self._tell(f"encoding {self._name}: {done:,}{f' of {total:,}' if total else ''}")


def _tokenizers(run: Run, rows: Material, tell: Tell) -> Tokenizers:
    """The run's tokenizers, learned from its training text if there are none yet."""
    if run.tokenizer.exists():
        return Tokenizers.load(run.tokenizer)
    settings, text = run.settings, run.settings.text
    tell(f"learning a {text.tokenizer} tokenizer of at most {text.size:,} pieces")
    names = COLUMNS[settings.task]
    pair = settings.task == "translate"
    tokenizers = Tokenizers.learn(
        text.tokenizer,
        _column(rows, names, 0),
        _column(rows, names, 1) if pair else iter(()),
        joint=text.joint or not pair,
        size=text.size,
        minimum=text.minimum,
        seed=settings.train.seed,
        case=text.case,
    )
    for line in size_remarks(tokenizers, text.size):
        tell(line)
    if settings.model.vectors.file:
        tokenizers = vectors.extend(tokenizers, settings.model.vectors)
    tokenizers.save(run.tokenizer)
    return tokenizers


def _column(rows: Material, names: tuple[str, ...], place: int) -> Iterator[str]:
    return (row[place] for _, row in rows.rows(names))


def _encoder(run: Run, tokenizers: Tokenizers, rows: Material) -> Encoder:
    match task := run.settings.task:
        case "translate":
            return PairEncoder(tokenizers)
        case "language":
            return TextEncoder(tokenizers.target)
        case "classify" | "tag":
            if not run.labels.exists():
                found = (label for text in _column(rows, COLUMNS[task], 1) for label in _labels(task, text))
                Vocabulary.count(found, special=False).save(run.labels)
            if task == "tag" and not run.words.exists():
                words = (word for text in _column(rows, COLUMNS[task], 0) for word in text.split())
                Vocabulary.count(words, special=False).save(run.words)
            kind = TagEncoder if task == "tag" else LabelEncoder
            return kind(tokenizers.source, Vocabulary.load(run.labels), run.settings.model.letters)
        case _:
            assert_never(task)


def _labels(task: str, text: str) -> list[str]:
    return text.split() if task == "tag" else [text]


def preflight(folder: Path, settings: Settings | None, *listeners: Listener, device: str = "auto") -> Preflight:
    """Prepare a run and estimate what its training needs, without training. What was prepared stays."""
    chosen = pick_device(device)
    fresh = not folder.exists()
    run = Run.open(folder) if settings is None else Run.create(folder, vectors.resolve(settings))
    with occupied(folder), _undone(folder, fresh=fresh):
        return _estimate(open_run(run, chosen, ALONE, *listeners))


def _estimate(opened: Opened) -> Preflight:
    model = opened.run.settings.model
    depth = model.encoder_depth + model.decoder_depth if isinstance(model, TransformerModel) else 2 * model.depth
    size = Tokenizers.load(opened.run.tokenizer).target.size
    return estimate(opened.trainer, opened.run.settings.train, depth=depth, width=model.width, size=size)
