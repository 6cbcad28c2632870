"""A service without a server, and children that do nothing but live: for tests of what is around them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from regard.serve.app import create_app
from regard.serve.jobs import started
from regard.serve.library import Library

SETTINGS = "about = 'by hand'\n[model]\nkind = 'recurrent'\n"


@contextmanager
def client(runs: Path | None, **about: Any) -> Iterator[TestClient]:
    """The whole service, as a client sees it."""
    app = create_app(Library(runs, **about))
    with TestClient(app, base_url="http://127.0.0.1", headers={"X-Regard": "test"}) as found:
        yield found


def run_folder(runs: Path, name: str, settings: str = SETTINGS) -> Path:
    """The least that is a run."""
    folder = runs / name
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text(settings, encoding="utf-8")
    return folder


class Children:
    """Takes the place of `spawn`: each child sleeps until it is told to end, and what it was asked for is kept."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.children: list[subprocess.Popen[bytes]] = []

    def spawn(self, arguments: Sequence[str], folder: Path) -> tuple[int, str]:
        self.asked.append(list(arguments))
        (folder / "result.json").touch()
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.children.append(child)
        threading.Thread(target=child.wait, daemon=True).start()
        return child.pid, started(child.pid)

    def end(self) -> None:
        for child in self.children:
            child.kill()
            child.communicate()
