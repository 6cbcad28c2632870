"""The runs a server knows, by name: found in a folder, loaded when first asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from regard.errors import ModelError, did_you_mean
from regard.prediction import load_predictor
from regard.run import SETTINGS
from regard.serve.worker import Worker

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Library:
    """All runs directly in a folder, and others that were named one by one."""

    def __init__(self, folder: Path | None = None, named: Sequence[Path] = (), *, device: str = "cpu") -> None:
        self.folder = folder
        self._named = {path.resolve().name: path for path in named}
        self._device = device
        self._workers: dict[str, Worker] = {}

    def runs(self) -> dict[str, Path]:
        """Every run there is now, by name. A folder is looked at anew each time: trainings come and go."""
        beside = sorted(self.folder.iterdir()) if self.folder and self.folder.is_dir() else []
        found = {
            path.name: path
            for path in beside
            if NAME.fullmatch(path.name) and not path.is_symlink() and (path / SETTINGS).is_file()
        }
        return found | self._named

    def path(self, name: str) -> Path:
        """Where a run is. Only names from the list are known, so that no path can be smuggled in."""
        known = self.runs()
        if name not in known:
            raise ModelError(f"run = {name[:100]}: no such run here; {did_you_mean(name, known)}")
        return known[name]

    def worker(self, name: str) -> Worker:
        """The thread that owns a run's model; loads it if it is not there yet."""
        if name not in self._workers:
            self._workers[name] = Worker(load_predictor(self.path(name), self._device))
        return self._workers[name]

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()
