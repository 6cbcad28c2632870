"""How far a sentence walks: the files whose functions are called by a training, a translation or a request for a trace.

    PYTHONPATH=src python bench/walks.py train|translate|trace|options --source src/regard --run FOLDER --out FILE

What runs when a module is imported does not count, nor do classes that are only defined. ``train`` makes the run
FOLDER, from a few lines of text in the folder where it is called; the others open one. The trace is asked of
`regard serve` by HTTP and noted from the request to its answer; the run is loaded in between. ``options`` are those of
every command, with the module it is in. The result goes to FILE as JSON. ``see`` does all of it for bench/shape.py,
each in a process of its own.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

TEXT = "The black cat ate the mouse."
WORDS = ("black", "small", "old", "young", "grey")
LINES = {"en": [f"the {word} cat ate" for word in WORDS] * 8, "fr": [f"le chat {word} a mangé" for word in WORDS] * 8}
TRAINING = (
    *("transformer-tiny", "model.width=16", "model.hidden=16", "text.size=300", "train.steps=3"),
    *("train.validate_every=3", "--source", "train.en", "--target", "train.fr", "--device", "cpu"),
    *("data.valid_source=valid.en", "data.valid_target=valid.fr"),
)
SECONDS = 600  # that a walk may take
EVERY = "every verb"  # by which the options go that all commands have


class Walk:
    """Files of a package in which a function is called, each with the first one, in the order of their first call."""

    def __init__(self, source: Path) -> None:
        self.begun = True
        self.first: dict[str, str] = {}
        self._source = f"{source}{os.sep}"

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """What ``sys.setprofile`` calls."""
        code = frame.f_code
        if not (self.begun and event == "call" and self._is_ours(code)) or code.co_filename in self.first:
            return
        if code.co_flags & inspect.CO_OPTIMIZED and not self._is_importing(
            frame
        ):  # bodies of classes are not optimised
            self.first[code.co_filename] = code.co_qualname

    def has(self, file: str) -> bool:
        return Path(self._source, file).is_file()

    def files(self) -> list[tuple[str, str]]:
        return [(name.removeprefix(self._source), function) for name, function in self.first.items()]

    def _is_ours(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self._source)

    def _is_importing(self, frame: FrameType | None) -> bool:
        while frame is not None:
            if frame.f_code.co_name == "<module>" and self._is_ours(frame.f_code):
                return bool(frame.f_globals["__name__"] != "__main__")
            frame = frame.f_back
        return False


def regard(*arguments: str) -> None:
    """A verb, as its users call it."""
    sys.argv = ["regard", *arguments]
    try:
        runpy.run_module("regard", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise


def ask(walk: Walk, port: int) -> None:
    """Wait for the service, ask for a trace, and end the service."""
    address = f"http://127.0.0.1:{port}/api/v1"
    try:
        run = json.loads(_patiently(f"{address}/runs"))["runs"][0]["name"]
        body = json.dumps({"run": run, "text": TEXT}).encode()
        request = urllib.request.Request(f"{address}/trace", body, {"Content-Type": "application/json"})
        walk.begun = True
        with urllib.request.urlopen(request) as answer:
            answer.read()
        walk.begun = False
    finally:
        os.kill(os.getpid(), signal.SIGINT)


def _patiently(address: str) -> bytes:
    for _ in range(SECONDS):
        try:
            with urllib.request.urlopen(address) as answer:
                return bytes(answer.read())
        except urllib.error.URLError:  # it does not listen yet
            time.sleep(1)
    raise TimeoutError(address)


def serve(walk: Walk, run: str) -> None:
    """A service that is asked one question, the only thing that is noted."""
    walk.begun = False
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    threading.Thread(target=ask, args=(walk, port), daemon=True).start()
    patient = [f"serve.timeout={SECONDS}"] if walk.has("settings/call.py") else ["--timeout", str(SECONDS)]
    regard("serve", run, "--port", str(port), "--device", "cpu", "--quiet", *patient)


def walked(what: str, source: Path, run: str) -> list[tuple[str, str]]:
    walk = Walk(source)
    threading.setprofile(walk)
    sys.setprofile(walk)
    match what:
        case "train":
            for language, lines in LINES.items():
                for part in ("train", "valid"):
                    Path(f"{part}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            regard("train", *TRAINING, "--out", run)
        case "translate":
            regard("translate", run, TEXT, "--device", "cpu")
        case _:
            serve(walk, run)
    sys.setprofile(None)
    return walk.files()


def options() -> dict[str, tuple[str, list[str]]]:
    """The module of every command, and its options and arguments, but for those that are hidden."""
    import typer  # noqa: PLC0415

    from regard.cli.main import app  # noqa: PLC0415

    found: dict[str, tuple[str, list[str]]] = {}

    def note(command: Any, name: str) -> None:
        for word, each in getattr(command, "commands", {}).items():
            note(each, f"{name} {word}".strip())
        if not hasattr(command, "commands"):
            names = [each.name for each in command.params if not getattr(each, "hidden", False)]
            found[name] = command.callback.__module__, names

    note(typer.main.get_command(app), "")
    with suppress(ImportError):  # a version in which every verb has its own
        from regard.cli.verb import Common  # noqa: PLC0415

        found[EVERY] = Common.__module__, list(Common._fields)
    return found


@dataclass(frozen=True)
class Seen:
    """A package at work."""

    commands: dict[str, tuple[str, list[str]]]  # the module of each, and its options
    walks: dict[str, list[tuple[str, str]]]  # files, each with the function that was called first


def see(source: Path) -> Seen:
    """Train, translate and look: with the package's own run, or the one that was trained where there is none."""
    with tempfile.TemporaryDirectory() as folder:

        def call(what: str, run: str = "") -> Any:
            options = ["--source", str(source), "--run", run, "--out", "found.json"]
            process = subprocess.run(
                [sys.executable, str(Path(__file__).resolve()), what, *options],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(source.parent), "REGARD_OFFLINE": "1"},
                timeout=SECONDS,
                capture_output=True,
                check=False,
            )
            if process.returncode:
                sys.exit(f"{what}: failed with {source}\n{process.stderr.decode()}")
            return json.loads((Path(folder) / "found.json").read_text(encoding="utf-8"))

        walks = {"train": call("train", "trained")}
        run = "demo" if (source / "demo").is_dir() else "trained"
        return Seen(call("options"), walks | {what: call(what, run) for what in ("translate", "trace")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "translate", "trace", "options"])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--run", default="demo")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found = options() if given.what == "options" else walked(given.what, given.source.resolve(), given.run)
    given.out.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
