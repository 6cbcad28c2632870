"""``regard translate``"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from regard.errors import DataError, SettingsError

CHUNK = 512  # lines read before any is translated


def translate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts to translate; without any, lines of stdin.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 5,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Translate texts, or stdin line by line; translations go to stdout."""
    if beam < 1:
        raise SettingsError(f"--beam = {beam}: a beam holds at least one hypothesis; 5 is usual")
    from regard.loading import load
    from regard.training import pick_device

    translator = load(run, str(pick_device(device)))
    lines = iter(texts) if texts else _stdin()
    while chunk := list(islice(lines, CHUNK)):
        for source, target in zip(chunk, translator.translate(chunk, beam=beam), strict=True):
            line = " ".join(target.splitlines())  # one line in, one line out, whatever the model writes
            print(json.dumps({"source": source, "target": line}, ensure_ascii=False) if as_json else line, flush=True)


def _stdin() -> Iterator[str]:
    if sys.stdin.isatty():
        print("reading lines from the keyboard; Ctrl-D ends", file=sys.stderr)
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"stdin line {number}: byte {error.start + 1} is not UTF-8; convert the text first"
            ) from None
