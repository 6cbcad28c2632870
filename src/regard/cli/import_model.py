"""``regard import``: a model from elsewhere becomes a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.streams import say
from regard.cli.verb import common


def import_model(
    context: typer.Context,
    what: Annotated[Path, typer.Argument(help="A folder, a file, an .argosmodel, or a wheel or sdist on disk.")],
    out: Annotated[Path | None, typer.Option(help="The run folder to make; default runs/NAME.")] = None,
    languages: Annotated[str, typer.Option(help="Of a model with many: SOURCE-TARGET, as its files call them.")] = "",
    part: Annotated[str | None, typer.Option(help="Which model, where several are found.")] = None,
) -> None:
    """Make a run of a model from elsewhere: CTranslate2, Argos, Hugging Face, fairseq."""
    from regard.convert.foreign import write
    from regard.convert.recognise import opened

    with opened(what, part, languages) as (package, read):
        foreign = read(package)
        run = write(foreign, out or Path("runs") / package.name)
    from regard.runs.listing import architecture

    settings, origin = run.settings, foreign.origin
    if common(context).json:
        found = {"run": str(run.folder), "name": origin.name, "format": origin.format, "licence": origin.licence}
        print(json.dumps(found | {"languages": settings.data.languages}, ensure_ascii=False))
        return
    pieces = f"{settings.text.tokenizer}, {foreign.tokenizers.target.size:,} pieces"
    say(f"found {origin.name}: {origin.format}; {architecture(settings.model)}; {pieces}")
    say(f"licence: {origin.licence or 'not stated; ask those who made the model before you pass it on'}")
    say(f'{run.folder}: imported; try: regard translate {run.folder} "…"')
