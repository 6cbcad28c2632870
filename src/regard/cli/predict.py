"""``regard predict``"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from regard.cli.translate import _stdin
from regard.errors import ModelError, SettingsError

if TYPE_CHECKING:
    from regard.prediction import Predictor

CHUNK = 512  # lines read before any is answered


def predict(
    run: Annotated[Path, typer.Argument(help="A run folder of the task tag, classify or language.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; without any, lines of stdin.")] = None,
    file: Annotated[Path | None, typer.Option(help="Read lines from this file (also .gz, .zst).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of stdout.")] = None,
    length: Annotated[int, typer.Option(help="Language models: pieces to add at the most.")] = 40,
    beam: Annotated[int, typer.Option(help="Language models: hypotheses kept at each step; 1 is greedy.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Tag words, classify texts or continue prompts, one line each; a line in is a line out."""
    if length < 1:
        raise SettingsError(f"--length = {length}: a continuation has at least one piece; 40 is usual")
    if beam < 1:
        raise SettingsError(f"--beam = {beam}: a beam holds at least one hypothesis; 1 is greedy")
    if texts and file is not None:
        raise SettingsError(f"--file {file}: there are texts on the command line too; give one or the other")
    from regard.decode.translator import Translator
    from regard.prediction import load_predictor
    from regard.training import pick_device

    predictor = load_predictor(run, str(pick_device(device)))
    if isinstance(predictor, Translator):
        raise ModelError(f'{run}: is a translator; use regard translate {run} "…"')
    lines = _lines(texts, file)
    with ExitStack() as files:
        stream: TextIO = sys.stdout
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            stream = files.enter_context(out.open("w", encoding="utf-8", newline="\n"))
        while chunk := list(islice(lines, CHUNK)):
            for answer in _answers(predictor, chunk, length=length, beam=beam):
                line = json.dumps(_fields(answer), ensure_ascii=False) if as_json else str(answer)
                print(line, file=stream, flush=out is None)


def _lines(texts: list[str] | None, file: Path | None) -> Iterator[str]:
    from regard.data.lines import read_lines

    if texts:
        return iter(texts)
    return _stdin() if file is None else read_lines(file)


def _answers(predictor: Predictor, chunk: list[str], *, length: int, beam: int) -> list[Any]:
    """In the order of the lines. What has no words gets an empty answer, whatever the task."""
    from regard.decode.labels import Classifier, Tagger

    if isinstance(predictor, Tagger):
        return list(predictor.tag(chunk))
    if isinstance(predictor, Classifier):
        return list(predictor.classify(chunk))
    filled = [number for number, line in enumerate(chunk) if line.strip()]
    written = predictor.write([chunk[number] for number in filled], length=length, beam=beam)
    answers: list[Any] = [""] * len(chunk)
    for number, continuation in zip(filled, written, strict=True):
        answers[number] = continuation
    return answers


def _fields(answer: Any) -> dict[str, Any]:
    from regard.decode.labels import Classified, TaggedText
    from regard.decode.writer import Continuation

    match answer:
        case TaggedText():
            return {
                "words": answer.words,
                "tags": answer.tags,
                "probabilities": [round(value, 4) for value in answer.probabilities],
            }
        case Classified():
            odds = {label: round(value, 4) for label, value in answer.classes}
            return {"text": answer.text, "label": answer.label, "probabilities": odds}
        case Continuation():
            return {"prompt": answer.prompt, "text": answer.text, "added": answer.added, "score": answer.score}
        case _:
            return {"prompt": "", "text": "", "added": "", "score": 0.0}
