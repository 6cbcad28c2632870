"""The runs of a server by name: listed from a folder, loaded when first asked for, unloaded when memory is short."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import Annotated

from pydantic import BaseModel, Field

from regard.decode.options import Options
from regard.errors import ModelError, ResourceError, SettingsError, did_you_mean
from regard.explain.look import at_checkpoint
from regard.runs import listing
from regard.runs.folder import DEMO, SETTINGS, Run, named_checkpoint, packaged
from regard.runs.listing import NAME
from regard.serve.limits import Limits
from regard.serve.worker import Worker
from regard.settings import ContextDecoderSettings, DataSettings, RecurrentModel, Settings, TransformerModel
from regard.settings.call import DecodeSettings
from regard.tasks.engines import check, silent
from regard.tasks.load import load_run

# What a run was trained on and is tested on, by names without paths.


def corpus_name(data: DataSettings) -> str:
    """The name of a corpus: that of the built-in one, of one sent to the studio, or of its files."""
    if data.is_built_in:
        return data.corpus
    files = [PurePath(name) for name in (data.corpus, data.source, data.target) if name]
    if files and files[0].parent.parent.name == "corpora":
        return files[0].parent.name
    return " and ".join(file.name for file in files)


def test_of(settings: Settings) -> str:
    """A key that is the same for two runs with the same test; empty for a run without one."""
    data = settings.data
    if data.is_built_in:
        return f"{settings.task} {data.corpus}"
    named = data.valid_corpus, data.valid_source, data.valid_target
    divided = data.corpus, data.source, data.target
    if not any(named + divided):
        return ""
    # the rows that are held out of one corpus are always the same
    test = named if any(named) else ("held out of", *divided, settings.forecast.held_out)
    trained = "" if settings.task == "translate" else data.corpus
    return hashlib.sha256(json.dumps([settings.task, trained, *test]).encode()).hexdigest()[:16]


def check_shared(names: Sequence[str], runs: Sequence[Settings]) -> None:
    """Refuse runs that share no test, and say what each was trained on."""
    tests = {test_of(settings) for settings in runs}
    if len(tests) > 1 or tests == {""}:
        each = ", ".join(f"{name} on {corpus_name(one.data)}" for name, one in zip(names, runs, strict=True))
        raise SettingsError(
            f"runs = {each}: were trained on different corpora and share no test; choose runs of one corpus, "
            "or name a corpus whose test part all of them translate"
        )


# The shape of a model, from its settings: layers, heads, and the names of its attentions.


class ModelAnswer(BaseModel):
    """A model's shape."""

    kind: Annotated[str, Field(examples=["transformer"])]
    encoder_layers: int
    decoder_layers: int
    heads: int
    attentions: Annotated[list[str], Field(examples=[["encoder.0.self", "decoder.0.self", "decoder.0.cross"]])]


def attends(settings: Settings) -> bool:
    """Whether there is any attention to look at."""
    return bool(shape(settings).attentions)


def shape(settings: Settings) -> ModelAnswer:
    """A tagger or classifier has no decoder, a language model no encoder."""
    model, task = settings.model, settings.task
    reads, writes = task != "language", task in ("translate", "language", "forecast")
    if isinstance(model, RecurrentModel):
        return _recurrent(model, reads, writes)
    return _transformer(model, reads, writes)


def _recurrent(model: RecurrentModel, reads: bool, writes: bool) -> ModelAnswer:
    both = reads and writes and not isinstance(model.decoder, ContextDecoderSettings)
    heads = 0 if isinstance(model.decoder, ContextDecoderSettings) or not both else model.decoder.attention.heads
    return ModelAnswer(
        kind=model.kind,
        encoder_layers=model.depth * reads,
        decoder_layers=(model.depth + (model.decoder.kind == "conditional")) * writes,
        heads=heads,
        attentions=["decoder.cross"] if both else [],
    )


def _transformer(model: TransformerModel, reads: bool, writes: bool) -> ModelAnswer:
    encoder, decoder = model.encoder_depth * reads, model.decoder_depth * writes
    names = [f"encoder.{layer}.self" for layer in range(encoder)]
    for layer in range(decoder):
        names += [f"decoder.{layer}.self"] * (model.autoregression == "attention") + [f"decoder.{layer}.cross"] * reads
    return ModelAnswer(
        kind=model.kind, encoder_layers=encoder, decoder_layers=decoder, heads=model.heads, attentions=names
    )


Stamp = tuple[tuple[int, int, int], ...]
AT = "@"  # between the names of a run and of its checkpoint; names cannot contain it


class Library:
    """All runs in a folder, and others that were named one by one."""

    def __init__(
        self,
        folder: Path | None = None,
        named: Sequence[Path] = (),
        *,
        device: str = "cpu",
        decode: DecodeSettings | None = None,
        tell: Callable[[str], object] = silent,
        limits: Limits | None = None,
        pinned: Sequence[str] = (),
    ) -> None:
        """``decode`` has the defaults of requests, ``tell`` gets a line about each engine, and ``pinned`` are the names
        of runs that are used by default."""
        self.decode = decode or DecodeSettings()
        check(self.decode.engine)
        self.folder = folder
        self.limits = limits or Limits()
        Options.of(self.limits.decode(self.decode, {}, known=DecodeSettings.model_fields))  # raises now, not later
        self.pinned = tuple(pinned)
        self._named = _by_name(named)
        self._device = device
        self._tell = tell
        self.on_batch: Callable[[int], object] = lambda _: None  # called with the size of every batch
        # Runs in memory or being loaded, with the stamp of their files; the most recently used is last.
        self._loaded: dict[str, tuple[Future[Worker], Stamp]] = {}
        self._changing = threading.Lock()
        self._loader = ThreadPoolExecutor(1, "loader")  # one at a time: two together might not fit

    def runs(self) -> dict[str, Path]:
        """Every run that exists now, by name. The folder is listed each time: trainings create and remove runs."""
        beside = sorted(self.folder.iterdir()) if self.folder and self.folder.is_dir() else []
        runs = self._named | {path.name: path for path in beside if path.name not in self._named and _is_run(path)}
        return runs | self._packaged(runs)

    def _packaged(self, runs: Mapping[str, Path]) -> dict[str, Path]:
        """The run in the package, unless a run of the folder has its name."""
        is_shown = self.folder is not None and DEMO not in runs and _is_run(packaged())
        return {DEMO: packaged()} if is_shown else {}

    @property
    def named(self) -> frozenset[str]:
        """The runs that were named one by one."""
        return frozenset(self._named)

    def is_fixed(self, name: str) -> bool:
        """Whether a run cannot be renamed or removed here: it was named at the start, or is in the package."""
        return name in self._named or listing.is_fixed(self.path(name))

    def forget(self, name: str) -> None:
        """Unload a run that was renamed or removed."""
        with self._changing:
            for each in [each for each in self._loaded if each.partition(AT)[0] == name]:
                self._loaded.pop(each)[0].add_done_callback(_close_worker)

    def path(self, name: str) -> Path:
        """The folder of a run. Only names of runs are accepted, never a path."""
        if name in self._named:
            return self._named[name]
        if self.folder is not None and NAME.fullmatch(name) and _is_run(self.folder / name):
            return self.folder / name
        if name in (own := self._packaged({})):
            return own[name]
        raise ModelError(f"run = {name[:100]}: no such run here; {did_you_mean(name, self.runs())}")

    def conceal(self, line: str) -> str:
        """A line with the names of runs instead of their folders."""
        for name, path in self._named.items():
            line = line.replace(str(path.resolve()), name)
            line = line.replace(str(path), name) if path.name == name else line  # and not "."
        line = line.replace(str(packaged()), DEMO)
        if self.folder is not None:
            line = line.replace(f"{self.folder.resolve()}/", "").replace(f"{self.folder}/", "")
        return line

    async def worker(self, name: str, checkpoint: str | None = None) -> Worker:
        """The worker of a run; loads the run if it is not loaded, or has changed on the disk.

        A named ``checkpoint`` is a model of its own, loaded and unloaded like others. Loading goes on if the client
        disconnects: others may wait for the same run.
        """
        return await asyncio.shield(asyncio.wrap_future(self._find(name, checkpoint)))

    @property
    def loaded(self) -> dict[str, Worker]:
        """The runs in memory."""
        return {name: worker.result() for name, (worker, _) in list(self._loaded.items()) if _is_ready(worker)}

    def close(self, seconds: float = 5.0) -> None:
        """Let every worker finish its queue, all within so many seconds, without waiting for runs being loaded."""
        self._loader.shutdown(wait=False, cancel_futures=True)
        workers = list(self.loaded.values())
        for worker in workers:
            worker.close()
        until = time.monotonic() + seconds
        for worker in workers:
            worker.join(max(0.0, until - time.monotonic()))

    def _find(self, run: str, checkpoint: str | None = None) -> Future[Worker]:
        path = self.path(run)
        name = run if checkpoint is None else f"{run}{AT}{named_checkpoint(Run.open(path), checkpoint).name}"
        stamp = _stamp(path)
        with self._changing:
            worker, then = self._loaded.pop(name, (None, stamp))
            if worker is not None and then != stamp:
                worker.add_done_callback(_close_worker)
                worker = None
            if worker is None or (worker.done() and not _is_ready(worker)):
                worker = self._loader.submit(self._load, name, path, checkpoint)
            self._loaded[name] = worker, stamp
            return worker

    def _load(self, name: str, path: Path, checkpoint: str | None) -> Worker:
        self._make_room(name, 4 * (listing.parameters(Run.open(path)) or 0))

        def tell(line: str) -> None:
            self._tell(f"{name}: {line}")

        def load() -> Worker:
            if checkpoint is not None:
                model = at_checkpoint(path, checkpoint, self._device)
            else:
                model = load_run(path, self._device, engine=self.decode.engine, tell=tell)
            return Worker(model, self.limits, on_batch=self._batch_done)

        try:
            with ThreadPoolExecutor(1, "loading") as brief:  # ends torch's threads with it: docs/decisions/0005
                worker = brief.submit(load).result()
        except FileNotFoundError:  # a training has removed the checkpoint meanwhile
            raise ResourceError(f"run = {name}: changed while it was read; ask again") from None
        self._make_room(name, worker.bytes)  # an engine may need as much again
        return worker

    def _batch_done(self, size: int) -> None:
        self.on_batch(size)  # looked up here: it may be set after the run was loaded

    def _make_room(self, name: str, needed: int) -> None:
        """Unload idle runs, the least recently used first, until ``needed`` bytes are free."""
        with self._changing:
            present = self.loaded
            free = self.limits.memory - sum(worker.bytes for worker in present.values())
            idle = {other: worker for other, worker in present.items() if worker.idle}
            most = free + sum(worker.bytes for worker in idle.values())
            if most < needed:
                megabytes = [round(size / 2**20, 1) for size in (needed, self.limits.memory, max(0, most))]
                raise ResourceError(
                    f"run = {name}: needs {megabytes[0]} MiB, and of {megabytes[1]} MiB only "
                    f"{megabytes[2]} can be freed; try again later, or raise serve.memory"
                )
            for other, worker in idle.items():
                if free >= needed:
                    return
                free += worker.bytes
                del self._loaded[other]
                worker.close()


def _by_name(paths: Sequence[Path]) -> dict[str, Path]:
    runs: dict[str, Path] = {}
    for path in paths:
        name = path.resolve().name
        if not NAME.fullmatch(name):
            raise SettingsError(f"run = {name}: an address cannot hold this name; use letters, digits, '.', '_' or '-'")
        if name in runs:
            raise SettingsError(f"run = {path}: there is another run named {name}; rename one of them")
        runs[name] = path
    return runs


def _is_run(path: Path) -> bool:
    try:
        return bool(NAME.fullmatch(path.name)) and not path.is_symlink() and (path / SETTINGS).is_file()
    except PermissionError:  # a folder that we may not look into
        return False


def _is_ready(worker: Future[Worker]) -> bool:
    return worker.done() and not worker.cancelled() and worker.exception() is None


def _close_worker(worker: Future[Worker]) -> None:
    if _is_ready(worker):
        worker.result().close()


def _stamp(path: Path) -> Stamp:
    """Changes with what would be loaded: the settings, or the best checkpoint (before there is one, the newest)."""
    best = path / "best"
    files = path / SETTINGS, best if best.is_file() else path / "checkpoints"
    return tuple(
        (status.st_mtime_ns, status.st_size, status.st_ino)
        for file in files
        if file.exists() and (status := file.stat())
    )
