"""``regard translate``"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.called import printable
from regard.cli.imports import unswept
from regard.cli.streams import Remarks, destination, kind_of, one_line, say, texts_of
from regard.cli.verb import apart, called, common, with_settings
from regard.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from regard.decode.options import Options
    from regard.decode.terms import Glossary
    from regard.decode.texts import Output
    from regard.tasks.translator import Translation, Translator

SHOWN = ("text", "align", "scores")


def translate(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    texts: Annotated[
        list[str] | None,
        with_settings("[TEXT]...", "Texts to translate; - or none: lines of stdin."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Translate the lines of this file (also .gz, .zst); - is stdin.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write here instead of to stdout; appears when it is whole.")] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy, 5 usual.")] = None,
    nbest: Annotated[int | None, typer.Option(help="Translations to show of each text, best first.")] = None,
    sample: Annotated[bool | None, typer.Option("--sample", help="Draw them instead of searching.")] = None,
    constrain: Annotated[Path | None, typer.Option(help="A glossary: lines of source term, tab, target term.")] = None,
    ensemble: Annotated[list[Path] | None, typer.Option("--with", help="A further run that votes; again.")] = None,
    show: Annotated[str, typer.Option(help="text, align (who looked at whom) or scores.")] = "text",
) -> None:
    """Translate texts, a file, or stdin line by line; translations go to stdout."""
    if show not in SHOWN:
        raise SettingsError(f"--show = {show}: no such view; {did_you_mean(show, SHOWN)}")
    overrides, given = apart(texts or [])
    flags = {"decode.beam": beam, "decode.best": nbest, "decode.sample": sample}
    decode = called("translate", overrides, flags).decode
    waiting = texts_of(given, file)
    with unswept():
        from regard.decode.options import Options
        from regard.tasks.load import load

    options = Options.of(decode)
    if constrain is not None:
        options = replace(options, glossary=_glossary(constrain, options.glossary))
    asked = common(context)
    translator = load(run, *(ensemble or ()), device=asked.place, engine=decode.engine, tell=say)
    found = _translations(translator, waiting, options)
    _write(found, Remarks(kind_of(given)), out, decode.best, "json" if asked.json else show)
    if show == "align" and not asked.json:
        say(f"weights: {translator.aligner.describe()}")


def _translations(translator: Translator, waiting: Iterable[list[str]], options: Options) -> Iterator[Translation]:
    """As soon as texts are there."""
    number = 0
    for chunk in waiting:
        yield from translator.stream(chunk, options, first=number)
        number += len(chunk)


def _write(found: Iterable[Translation], remarks: Remarks, out: Path | None, count: int, show: str) -> None:
    with destination(out) as write:
        for number, each in enumerate(found, start=1):
            remarks.note(number, _remark(each))
            for line in _json(each, count) if show == "json" else _lines(each, count, show):
                write(line)
    remarks.end()


def _remark(found: Translation) -> str:
    return "; ".join(filter(None, (found.warning, found.read_as and f"read as: {one_line(found.read_as)}")))


def _glossary(path: Path, set_too: Glossary | None) -> Glossary:
    """A file's terms and those that are set, which count where both have one."""
    from regard.data.lines import read_lines
    from regard.decode.terms import Glossary

    found = Glossary.parse(read_lines(path), str(path))
    return Glossary({**found.terms, **set_too.terms}) if set_too else found


def _text(found: Translation, output: Output) -> str:
    """In one line, unless the source has several."""
    return output.text if "\n" in found.source else one_line(output.text)


def _lines(found: Translation, count: int, show: str) -> Iterator[str]:
    for rank, output in enumerate(found.outputs[:count]):
        text = one_line(output.text) if show == "scores" else _text(found, output)
        yield f"{output.score:.4f}\t{output.log_probability:.4f}\t{text}" if show == "scores" else text
        if show == "align":
            links = found.alignment(rank)
            target = max((len(link.target) for link in links), default=0)
            source = max((len(link.source) for link in links), default=0)
            yield ""
            rows = (f"  {link.target:{target}}  ← {link.source:{source}}  {link.weight:.2f}" for link in links)
            yield from map(printable, rows)
            yield ""


def _json(found: Translation, count: int) -> Iterator[str]:
    best = found.outputs[0]
    content: dict[str, Any] = {"source": found.source, "target": _text(found, best)}
    content |= {"score": best.score, "log_probability": best.log_probability}
    if count > 1:
        outputs = found.outputs[:count]
        content["outputs"] = [
            {"target": _text(found, each), "score": each.score, "log_probability": each.log_probability}
            for each in outputs
        ]
    remarks = {"warning": found.warning, "read_as": found.read_as, "unknown": [asdict(each) for each in found.unknown]}
    content |= {name: value for name, value in remarks.items() if value}
    yield json.dumps(content, ensure_ascii=False)
