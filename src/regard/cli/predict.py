"""``regard predict``"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.streams import Remarks, destination, has_lines, hush, say, texts_of
from regard.errors import SettingsError

if TYPE_CHECKING:
    from regard.decode.rules import Rule
    from regard.tasks.load import Predictor


def predict(
    run: Annotated[Path, typer.Argument(help="A run folder of the task tag, classify or language.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; - or none: lines of stdin.")] = None,
    file: Annotated[Path | None, typer.Option(help="Read lines from this file (also .gz, .zst); - is stdin.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of stdout.")] = None,
    length: Annotated[int, typer.Option(help="Language models: pieces to add at the most.")] = 40,
    beam: Annotated[int, typer.Option(help="Language models: hypotheses kept at each step; 1 is greedy.")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Language models: draw instead of searching.")] = False,
    temperature: Annotated[float, typer.Option(help="Of sampling; below 1 is more cautious.")] = 1.0,
    nucleus: Annotated[float, typer.Option(help="Draw from the fewest pieces with this probability.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of sampling.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No remarks on stderr.")] = False,
) -> None:
    """Tag words, classify texts or continue prompts, one line each; a line in is a line out."""
    if length < 1:
        raise SettingsError(f"--length = {length}: a continuation has at least one piece; 40 is usual")
    waiting = texts_of(texts, file, quiet=quiet)
    from regard.decode.rules import Beam, Sample
    from regard.device import pick_device
    from regard.tasks.load import labels_of
    from regard.text.reading import unseen

    rule = Sample(1, temperature, 0, nucleus, seed) if sample else Beam(beam)

    predictor = labels_of(run, str(pick_device(device)))
    remarks = Remarks(hush if quiet else say, "line" if has_lines(texts) else "text" if texts and texts[1:] else "")
    first = 0
    with destination(out) as write:
        for chunk in waiting:
            answers = _answers(predictor, chunk, length, rule, first)
            for number, (text, answer) in enumerate(zip(chunk, answers, strict=True), start=first + 1):
                unknown, warning = unseen(text, predictor.known)
                remarks.note(number, warning)
                more = {"warning": warning, "unknown": [asdict(each) for each in unknown]} if warning else {}
                write(json.dumps(_fields(answer) | more, ensure_ascii=False) if as_json else str(answer))
            first += len(chunk)
    remarks.end()


def _answers(predictor: Predictor, chunk: list[str], length: int, rule: Rule, first: int) -> list[Any]:
    """In the order of the lines. What has no words gets an empty answer, whatever the task."""
    from regard.tasks.labels import Classifier, Tagger

    if isinstance(predictor, Tagger):
        return list(predictor.tag(chunk))
    if isinstance(predictor, Classifier):
        return list(predictor.classify(chunk))
    filled = [number for number, line in enumerate(chunk) if line.strip()]
    written = predictor.write([chunk[number] for number in filled], length=length, rule=rule, first=first)
    answers: list[Any] = [""] * len(chunk)
    for number, continuation in zip(filled, written, strict=True):
        answers[number] = continuation
    return answers


def _fields(answer: Any) -> dict[str, Any]:
    from regard.tasks.labels import Classified, TaggedText
    from regard.tasks.writer import Continuation

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
