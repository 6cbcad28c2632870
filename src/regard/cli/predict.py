"""``regard predict``"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.streams import Remarks, destination, has_lines, hush, say, texts_of
from regard.errors import SettingsError


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
    from regard.tasks.predictor import Writing
    from regard.text.reading import unseen

    rule = Sample(1, temperature, 0, nucleus, seed) if sample else Beam(beam)

    predictor = labels_of(run, str(pick_device(device)))
    remarks = Remarks(hush if quiet else say, "line" if has_lines(texts) else "text" if texts and texts[1:] else "")
    first = 0
    with destination(out) as write:
        for chunk in waiting:
            answers = predictor.predict(chunk, Writing(length, rule, first))
            for number, (text, answer) in enumerate(zip(chunk, answers, strict=True), start=first + 1):
                unknown, warning = unseen(text, predictor.known)
                remarks.note(number, warning)
                more = {"warning": warning, "unknown": [asdict(each) for each in unknown]} if warning else {}
                write(json.dumps(answer.to_dict() | more, ensure_ascii=False) if as_json else str(answer))
            first += len(chunk)
    remarks.end()
