"""From settings to a trained run: what ``regard train`` does, step by step."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path, PurePath
from time import monotonic

import numpy as np
import torch

from regard.data.batches import lengths_of
from regard.data.encoding import Examples, RowEncoder
from regard.data.plan import both_sides
from regard.data.readers import languages_in_header
from regard.data.shards import open_shards
from regard.device import pick_device
from regard.errors import DataError, ModelError, SettingsError, quoted
from regard.files import remove
from regard.runs import checkpoint
from regard.runs.checkpoint import Checkpoint
from regard.runs.folder import DEMO, SETTINGS, Progress, Run, belongs, flat, occupied, packaged, steps
from regard.runs.log import Listener, Log, clock
from regard.settings import NO_LIMIT, Machine, Settings, careful, choose, fit, load_settings, parse_time
from regard.settings.fitting import SUBWORDS
from regard.settings.languages import languages_of
from regard.tasks import vectors
from regard.tasks.corpus import Files, Material, extent, general_material, materials
from regard.tasks.linking import guided
from regard.tasks.load import task_of
from regard.tasks.task import Task, column
from regard.text.tokenizers import Frame, Tokenizers, learn, size_remarks
from regard.text.vectors import Vectors
from regard.text.vocabulary import Tokenizer
from regard.trainer import teaching
from regard.trainer.loop import Outcome, Trainer
from regard.trainer.optimizer import DECAYING
from regard.trainer.preflight import Preflight, check_disk
from regard.trainer.preflight import preflight as estimate
from regard.trainer.steps import step_kind
from regard.trainer.workers import ALONE, Workers, processes, workers

HELD_OUT = 200  # sentences translated at each validation
EVERY = 10.0  # seconds between two lines about a preparation that takes long
Tell = Callable[[str], None]


def train(preset: str | Path = "", *overrides: str, corpus: str = "", time: str = "", out: str | Path = "") -> Run:
    """Train a new run from a preset or a TOML file: ``regard.train("bahdanau", corpus="fable:fr", time="60s")``.

    Without a preset, or with ``auto``, one is chosen; settings that are not given are fitted to corpus, machine and
    time (`fitted`).
    """
    flags = {"data.corpus": corpus, "train.time": time}
    given = [f"{name}={json.dumps(value)}" for name, value in flags.items() if value]
    preset = "" if str(preset) == "auto" else preset
    settings, reason = fitted(preset, *given, *overrides)
    folder = Path(out) if out else free_place(preset, settings)
    start(folder, settings, remark=reason)
    return Run.open(folder)


def fitted(preset: str | Path, *overrides: str, device: str = "auto") -> tuple[Settings, str]:
    """Settings fitted to the corpus, the machine and the time, from a preset or one that is chosen; and the reason in a
    line.

    A settings file is taken as it is, and a value that is given is never changed.
    """
    if Path(preset).suffix == ".toml":
        return load_settings(preset, *overrides), ""
    machine = Machine(pick_device(device).type == "cuda", torch.get_num_threads(), processes())
    if base := teaching.given("train.base", overrides):
        if preset:
            raise SettingsError(
                f"{preset}: a run that begins with the weights of {base} has its settings; name no preset"
            )
        known = teaching.resolve(teaching.settings_from(base, *overrides))
        return fit(known, extent(materials(known)[0], known), machine)
    known = load_settings(preset or _any_preset(overrides), *overrides)
    corpus = extent(materials(known)[0], known)
    if not preset:
        name, changes = choose(known, corpus, machine)
        known = load_settings(name, *changes, *overrides)
        against = careful(known, corpus, machine)
        known = load_settings(name, *changes, *against, *overrides)
        names = (override.partition("=")[0] for override in against)
        chosen = [each.rpartition(".")[2] for each in names if not any(given.startswith(each) for given in overrides)]
        return fit(known, corpus, machine, chosen)
    return fit(known, corpus, machine)


def _any_preset(overrides: tuple[str, ...]) -> str:
    """A preset for reading the overrides, until the corpus is known and one can be chosen."""
    return "lstm" if teaching.given("task", overrides) in ("tag", "classify") else "transformer-tiny"


def free_place(preset: str | Path, settings: Settings) -> Path:
    """A folder for a new run, named after its preset or its corpus; with a number where there is one of that name."""
    first = place(preset, settings)
    if "RANK" in os.environ:  # torchrun's processes must agree, and one may have created the folder already
        return first
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(folder for folder in itertools.chain((first,), others) if not folder.exists())


def place(preset: str | Path, settings: Settings) -> Path:
    """The folder of a new run, whether or not there is one of that name."""
    return Path("runs") / (Path(preset).stem or _name(settings))


def _name(settings: Settings) -> str:
    """The name of a corpus: `de-en` for train.de and train.en, `fable-fr`, or the name of its file."""
    data, task = settings.data, settings.task
    files = [PurePath(name.removesuffix(".gz").removesuffix(".zst")) for name in (data.source, data.target) if name]
    codes = [file.suffix.removeprefix(".") for file in files]
    if task == "translate" and len(codes) == 2 and codes[0] != codes[1] and all(0 < len(code) < 4 for code in codes):
        return "-".join(codes)
    name = files[0].stem if files else PurePath(data.corpus.replace(":", "-")).name.partition(".")[0]
    return name if task == "translate" else f"{name}-{task}"


def start(
    folder: Path, settings: Settings, *listeners: Listener, device: str = "auto", opening: str = "", remark: str = ""
) -> Outcome:
    """Train a new run. First ``opening`` is told, if nothing refuses the run; then ``remark``, which its log keeps."""
    chosen = pick_device(device)
    with workers(chosen) as together:
        fresh = together.leads and not folder.exists()
        if together.leads:
            _can_begin(settings, chosen)
            _create(folder, settings)
            _tell_all(listeners, opening)
        together.wait()
        with _held(folder, together):
            with _undone(folder, fresh=fresh):
                run = Run.open(folder)
                trainer = open_run(run, chosen, together, *listeners, remark=remark)
                _begin(run, trainer)
                check_disk(trainer)
            return trainer.run()


def _tell_all(listeners: Sequence[Listener], line: str) -> None:
    for listener in listeners if line else ():
        listener.tell(line)


def _can_begin(settings: Settings, device: torch.device) -> None:
    """Refuse what cannot work before anything is created: a kind of step that needs a GPU, a missing or empty file,
    subword sampling without subwords."""
    step_kind(settings.train, device)
    if settings.text.sampling and (settings.task != "translate" or settings.text.tokenizer not in SUBWORDS):
        raise SettingsError(
            "text.sampling = true: is for translation with bpe or unigram, which can cut a text in several ways; "
            "leave it out, or use task=translate and text.tokenizer=bpe"
        )
    columns, general = task_of(settings.task).columns, general_material(settings)
    training, validation = materials(settings)
    if next(training.rows(columns), None) is None and isinstance(training, Files):
        data = settings.data
        names = ", ".join(PurePath(name).name for name in (data.corpus, data.source, data.target) if name)
        raise DataError(f"{names}: no row to train on; a corpus has at least one line")
    for material in (validation, *(() if general is None else (general,))):
        next(material.rows(columns), None)


def _create(folder: Path, settings: Settings) -> Run:
    return Run.create(folder, absolute(_with_languages(vectors.resolve(teaching.resolve(settings)))))


def _with_languages(settings: Settings) -> Settings:
    """The settings with the languages that the header of a table names, where nothing else says which they are."""
    data = settings.data
    if settings.task != "translate" or data.columns or not Path(data.table).is_file() or languages_of(settings):
        return settings
    languages = str(languages_in_header(data.table) or "")
    return settings.model_copy(update={"data": data.model_copy(update={"languages": languages})})


def absolute(settings: Settings) -> Settings:
    """The settings with absolute paths, so that a run can be resumed from any folder."""
    data, train = settings.data, settings.train
    names = ("corpus", "source", "target", "valid_corpus", "valid_source", "valid_target")
    files: dict[str, object] = {name: _absolute(getattr(data, name)) for name in names}
    files["general"] = tuple(map(_absolute, data.general))
    named: dict[str, object] = {"base": _absolute(train.base)}
    if train.alignment.kind == "guided":
        named["alignment"] = train.alignment.model_copy(update={"links": _absolute(train.alignment.links)})
    changed = {"data": data.model_copy(update=files), "train": train.model_copy(update=named)}
    return settings.model_copy(update=changed)


def _absolute(path: str) -> str:
    return str(Path(path).absolute()) if path and Path(path).exists() else path


def _held(folder: Path, together: Workers) -> AbstractContextManager[None]:
    """The first process locks the run for all."""
    return occupied(folder) if together.leads else nullcontext()


@contextmanager
def _undone(folder: Path, *, fresh: bool) -> Iterator[None]:
    """Remove a new run that could not be prepared, so that the corrected command can use its name."""
    try:
        yield
    except Exception:
        if fresh:
            with suppress(OSError):
                remove(folder)
        raise


def resume(folder: Path, *listeners: Listener, device: str = "auto", time: str = "", more: str = "") -> Outcome:
    """Continue a run from its last good checkpoint, as if it had never stopped.

    ``time`` is how much longer to train, such as 10m; ``more`` is a new number of steps, such as 20000, or so many more
    of them, such as +5000.
    """
    chosen = pick_device(device)
    run = Run.open(folder)
    _can_go_on(run)
    step_kind(run.settings.train, chosen)
    with workers(chosen) as together, _held(folder, together):
        listener = _listener(run, together, *listeners)
        saved = last_good(run, listener.tell)
        if time or more:
            run = _extended(run, Progress() if saved is None else saved.progress, time, more)
        trainer = open_run(run, chosen, together, *listeners)
        if saved is None:
            _begin(run, trainer)
        else:
            trainer.resume(saved)
        check_disk(trainer)
        if time or more:
            if together.leads:
                run.write()
            trainer.extend()
            listener.tell(_going_on(run, trainer.progress))
        elif saved is not None:
            _tell_resumed(trainer)
        return trainer.run()


def go_on(
    folder: Path,
    preset: str | Path,
    *listeners: Listener,
    overrides: Sequence[str] = (),
    device: str = "auto",
    opening: str = "",
) -> Outcome:
    """Begin a run or, where the folder has one with the settings that are given, go on with it.

    So one command can be repeated after any end, by torchrun for all processes or by a batch system. First ``opening``
    is told, if nothing refuses the run.
    """
    chosen, remark, fresh = pick_device(device), "", False
    with workers(chosen) as together:
        if together.leads:
            fresh = not (folder / SETTINGS).exists()
            if fresh:
                settings, remark = fitted(preset, *overrides, device=device)
                _can_begin(settings, chosen)
                _create(folder, settings)
            else:
                _check_same(Run.open(folder), preset, overrides)
            _tell_all(listeners, opening)
        together.wait()
        with _held(folder, together):
            with _undone(folder, fresh=fresh):
                run = Run.open(folder)
                _can_go_on(run)
                saved = last_good(run, _listener(run, together, *listeners).tell)
                trainer = open_run(run, chosen, together, *listeners, remark=remark)
                if saved is None:
                    _begin(run, trainer)
                else:
                    trainer.resume(saved)
                    _tell_resumed(trainer)
                check_disk(trainer)
            return trainer.run()


def check_go_on(folder: Path, preset: str | Path, overrides: Sequence[str]) -> None:
    """Refuse what `go_on` would refuse, as far as that is known without a corpus: before hours of work to make one."""
    if (folder / SETTINGS).exists():
        _check_same(Run.open(folder), preset, overrides)
    else:
        load_settings(preset or _any_preset(tuple(overrides)), *overrides)
        Run.check_free(folder)


def _check_same(run: Run, preset: str | Path, overrides: Sequence[str]) -> None:
    """What the command says must be what the run has. What it does not say was fitted when the run began, and stays."""
    here = flat(run.settings.model_dump())
    wanted = flat(absolute(load_settings(run.folder / SETTINGS, *overrides)).model_dump())
    if preset:
        named = absolute(load_settings(preset, *overrides))
        wanted |= flat(named.model_dump(exclude_unset=True, exclude={"about"}))
    if not wanted["data.languages"]:  # then the run has those of its corpus
        del wanted["data.languages"]
    for name, value in sorted(wanted.items(), key=lambda item: not item[0].endswith(".kind")):  # what else follows
        if (had := here.get(name)) != value:
            longer = {"train.time": "--time 10m", "train.steps": f"--steps {value}"}.get(name, "")
            raise SettingsError(
                f"--continue: {name} = {value}, but {run.folder} has {'none' if had in ('', None) else had}; "
                "repeat the command that began it, or choose another --out",
                hint=longer and f"regard train --resume {quoted(run.folder)} {longer}",
            )


def _extended(run: Run, progress: Progress, time: str, more: str) -> Run:
    """The run with later limits. Either replaces both old limits, of time and of steps."""
    limit, until = "", NO_LIMIT
    if time:
        limit = f"{progress.seconds + parse_time(time):g}s"
    if more:
        number = more.removeprefix("+").replace(",", "")
        if not number.isdecimal() or not int(number):
            raise SettingsError(f"--steps = {more}: not a number of steps; write 20000, or +5000 for so many more")
        until = int(number) + (progress.step if more.startswith("+") else 0)
        if until <= progress.step:
            done = f"{run.folder} has done {progress.step:,} steps"
            raise SettingsError(f"--steps = {more}: {done}; give more, or +{number} for so many more")
    train = run.settings.train.model_copy(update={"time": limit, "steps": until})
    return Run(run.folder, run.settings.model_copy(update={"train": train}))


def _tell_resumed(trainer: Trainer) -> None:
    if not trainer.is_over:
        step, seconds = trainer.progress.step, trainer.progress.seconds
        trainer.listener.tell(f"going on from step {step:,}, after {clock(seconds)} of training")


def _going_on(run: Run, progress: Progress) -> str:
    train = run.settings.train
    until = [] if train.steps == NO_LIMIT else [f"step {train.steps:,}"]
    until += [] if train.seconds is None else [f"{clock(train.seconds)} of training"]
    again = "; the learning rate rises again and falls to zero by then" if train.schedule in DECAYING else ""
    return f"going on from step {progress.step:,}, {clock(progress.seconds)}, until {' or '.join(until)}{again}"


def _can_go_on(run: Run) -> None:
    """Refuse to resume an imported run that has weights alone, which would train it from the beginning."""
    found = steps(run.checkpoints)
    if found and not any((path / checkpoint.OPTIMIZER).exists() for path in found):
        name = DEMO if run.folder == packaged() else run.folder
        raise ModelError(
            f"{name}: holds weights alone and cannot be resumed; where it was trained, use --to archive-all, "
            "or begin a new run with its weights",
            hint=f"regard train --from {quoted(name)} --source FILE --target FILE",
        )


def _begin(run: Run, trainer: Trainer) -> None:
    """Before the first step, load the weights of another run, or word vectors into the embedding. Later they are in the
    checkpoints."""
    if run.settings.train.base:
        teaching.begin(trainer, run)
    if run.settings.model.vectors.file:
        tokenizer = Tokenizers.load(run.tokenizer).source
        vectors.begin(trainer.task.model, tokenizer, run.settings.model.vectors, trainer.listener.tell)


def last_good(run: Run, tell: Tell) -> Checkpoint | None:
    """The newest checkpoint that is whole. A damaged one is reported and skipped."""
    found = steps(run.checkpoints)
    while found:
        try:
            saved = checkpoint.load(path := found.pop())
        except ModelError as error:
            if not found:
                raise ModelError(f"{error}, and no other is whole; train again with another --out") from None
            tell(f"{error}; the one before is used")
        else:
            belongs(run, path)
            if run.tokenizer.exists():
                make = partial(task_of(run.settings.task).build, run, Tokenizers.load(run.tokenizer))
                checkpoint.check_shapes(make, path)
            return saved
    return None


def _listener(run: Run, together: Workers, *listeners: Listener) -> Listener:
    return Log(run.log, *listeners) if together.leads else _Silence()


def open_run(
    run: Run, device: torch.device, together: Workers = ALONE, *listeners: Listener, remark: str = ""
) -> Trainer:
    """The trainer of a run, with tokenizers, examples and model. The first process makes what is missing."""
    listener = _listener(run, together, *listeners)
    if remark:
        listener.tell(remark)
    torch.manual_seed(run.settings.train.seed)
    if not together.leads:
        together.wait()
    task = open_task(run, listener.tell)
    general = _general(run, task, listener.tell)
    if together.leads:
        together.wait()
    return Trainer(run, task, listener, device=device, workers=together, general=general)


class _Silence:
    """The listener of all processes but the first: discards everything."""

    def moment(self, moment: object) -> None: ...

    def validation(self, validation: object) -> None: ...

    def watch(self, step: int, watched: object) -> None: ...

    def tell(self, line: str) -> None: ...


def open_task(run: Run, tell: Tell) -> Task:
    """The task that a run's settings describe, with its examples encoded and a model not yet trained."""
    settings = run.settings
    kind = task_of(settings.task)
    train_rows, valid_rows = materials(settings)
    fresh = not run.tokenizer.exists()
    if fresh:
        _tell_held_out(valid_rows, kind, tell)
    tokenizers = _tokenizers(run, kind, train_rows, tell)
    encoder = kind.encoder(run, tokenizers, train_rows, valid_rows)
    train, valid = (
        _encoded(rows, encoder, run.data / name, tell) for name, rows in (("train", train_rows), ("valid", valid_rows))
    )
    held_out = kind.samples_of(valid_rows, HELD_OUT)
    train = guided(run, train_rows, tokenizers, train, ProgressLines(tell, "learning links"))
    task = kind.open(run, tokenizers, train, valid, held_out)
    _check_watched(settings.train.watch, tokenizers.source, task.longest(settings.data.longest))
    if fresh:
        _tell_lengths(task, min(task.longest(settings.data.longest), settings.train.batch), tell)
    return task


def _tell_lengths(task: Task, limit: int, tell: Tell) -> None:
    """Rows that training leaves out: those that are too long, and pairs with an empty side."""
    source, target = both_sides(*lengths_of(task.train_examples))
    noun = "pairs" if task.texts == 2 else "texts"
    if long := int((np.maximum(source, target) > limit).sum()):
        tell(f"left out of training: {long:,} of {len(source):,} {noun}, which have more than {limit:,} pieces")
    if task.texts == 2 and (empty := int((source == 0).sum())):
        tell(f"left out of training: {empty:,} of {len(source):,} pairs, which have an empty side")


def _check_watched(sentence: str, tokenizer: Tokenizer, longest: int) -> None:
    """Refuse to watch a sentence longer than those of the training, which would show nothing of what is learned."""
    if (count := len(tokenizer.encode(sentence))) >= longest:
        raise DataError(
            f"train.watch = {sentence[:40]}…: has {count:,} pieces, and those of the training have fewer than "
            f"{longest:,} (data.longest, or learned positions); watch a shorter sentence"
        )


def _general(run: Run, task: Task, tell: Tell) -> Task | None:
    """The task on the general test set, where one is to be watched."""
    rows, kind = general_material(run.settings), task_of(run.settings.task)
    if rows is None:
        return None
    encoder = kind.encoder(run, Tokenizers.load(run.tokenizer), rows, rows)
    return task.on(_encoded(rows, encoder, run.data / "general", tell), kind.samples_of(rows, HELD_OUT))


def _tell_held_out(rows: Material, kind: type[Task], tell: Tell) -> None:
    if not isinstance(rows, Files) or not rows.part:
        return
    (last, count, whole), noun = rows.held_out(kind.columns), "pairs" if kind.texts == 2 else "texts"
    if last < 0:
        tell(f"too few {noun} to hold any out: validation uses training {noun}, and its score says little")
    else:
        tell(f"held out for validation: {count:,} of {whole:,} {noun}, which training does not see")


def _encoded(rows: Material, encoder: RowEncoder, folder: Path, tell: Tell) -> Examples:
    """Encoded rows. A corpus that has changed since the run was made, or that was damaged there, is reported."""
    before, inode = _fingerprint(folder), folder.stat().st_ino if folder.exists() else None
    examples = rows.encode(encoder, folder, ProgressLines(tell, f"encoding {folder.name}"))
    if inode not in (None, folder.stat().st_ino):
        changed = before and _fingerprint(folder) != before
        what = "has changed since this run was prepared" if changed else "was damaged in the folder of the run"
        tell(f"the {folder.name} corpus {what}, and was encoded again")
    return examples


def _fingerprint(folder: Path) -> str:
    try:
        return open_shards(folder, verify=False).manifest.fingerprint
    except DataError:
        return ""


class ProgressLines:
    """Reports the progress of a preparation every few seconds."""

    def __init__(self, tell: Tell, what: str) -> None:
        self._tell, self._what, self._last = tell, what, monotonic()

    def __call__(self, done: int, total: int | None = None) -> None:
        if monotonic() - self._last >= EVERY:
            self._last = monotonic()
            self._tell(f"{self._what}: {done:,}{f' of {total:,}' if total else ''}")

    def counted(self, texts: Iterator[str]) -> Iterator[str]:
        """The same texts; reports how many have been read."""
        for number, text in enumerate(texts, start=1):
            yield text
            self(number)


def _tokenizers(run: Run, kind: type[Task], rows: Material, tell: Tell) -> Tokenizers:
    """The run's tokenizers, learned from its training text if there are none yet."""
    if run.tokenizer.exists():
        return Tokenizers.load(run.tokenizer)
    settings, text = run.settings, run.settings.text
    if settings.train.base:
        return teaching.inherit(run, kind, rows, tell)
    names, pair = kind.columns, kind.texts == 2
    progress = ProgressLines(tell, "reading for the tokenizer")
    if text.source.kind == "vectors":
        return _of_vectors(
            run, progress.counted(column(rows, names, 0)), column(rows, names, 1) if pair else None, tell
        )
    tell(f"learning a {text.tokenizer} tokenizer of at most {text.size:,} pieces")
    tokenizers = Tokenizers.learn(
        text.tokenizer,
        progress.counted(column(rows, names, 0)),
        progress.counted(column(rows, names, 1)) if pair else iter(()),
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


def _of_vectors(run: Run, sources: Iterator[str], targets: Iterator[str] | None, tell: Tell) -> Tokenizers:
    """Learn the scale of the source's vectors and, where the target is text, its tokenizer."""
    text = run.settings.text
    source = Vectors.learn(sources, patch=text.source.patch, bands=text.source.bands)
    missing = f", {len(source.missing)} of them missing now and then" if source.missing else ""
    count = len(source.mean)
    tell(f"learned the scale of {count} number{'' if count == 1 else 's'} a vector{missing}")
    target: Tokenizer = source
    if targets is not None:
        how = {"size": text.size, "minimum": text.minimum, "seed": run.settings.train.seed}
        target = learn(text.tokenizer, targets, case=text.case, **how)
    tokenizers = Tokenizers(source, target, frame=Frame(after=()))
    tokenizers.save(run.tokenizer)
    return tokenizers


def preflight(
    folder: Path, settings: Settings | None, *listeners: Listener, device: str = "auto", remark: str = ""
) -> Preflight:
    """Prepare a run and estimate what its training needs, without training. The prepared run stays."""
    chosen = pick_device(device)
    fresh = not folder.exists()
    _can_begin(Run.open(folder).settings if settings is None else settings, chosen)
    run = Run.open(folder) if settings is None else _create(folder, settings)
    with occupied(folder), _undone(folder, fresh=fresh):
        return estimate(open_run(run, chosen, ALONE, *listeners, remark=remark), run)
