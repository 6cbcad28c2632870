"""``regard predict``"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.streams import Remarks, destination, keep_inputs, kind_of, opened, series_of, texts_of
from regard.cli.verb import apart, called, common, with_settings


def predict(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder of the task tag, classify, language or forecast.")],
    texts: Annotated[
        list[str] | None,
        with_settings("[TEXT]...", "Texts; - or none: lines of stdin."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="Read lines from this file (also .gz, .zst), or series (.csv, .npy, .npz); - is stdin."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file; - or none: stdout.")] = None,
) -> None:
    """Tag words, classify texts, continue prompts or forecast series; a line in is a line out."""
    overrides, given = apart(texts or [])
    decode = called("predict", ["decode.beam=1", *overrides]).decode
    keep_inputs(out, file)
    waiting = series_of(run, given, file) or texts_of(given, file)
    from regard.tasks.load import open_predictor
    from regard.tasks.predictor import continuing
    from regard.text.reading import unseen

    asked, how = common(context), continuing(decode)
    predictor = open_predictor(run, asked.place)
    remarks = Remarks(kind_of(given))
    first = 0
    with destination(out) as write:
        for chunk in waiting:
            answers = predictor.predict(opened(run, chunk), how, first=first)
            for number, (text, answer) in enumerate(zip(chunk, answers, strict=True), start=first + 1):
                unknown, warning = unseen(text, predictor.known)
                remarks.note(number, warning)
                more = {"warning": warning, "unknown": [asdict(each) for each in unknown]} if warning else {}
                write(json.dumps(answer.to_dict() | more, ensure_ascii=False) if asked.json else str(answer))
            first += len(chunk)
    remarks.end()
