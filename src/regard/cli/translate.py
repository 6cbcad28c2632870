"""``regard translate``"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.called import printable
from regard.cli.imports import unswept
from regard.cli.streams import Remarks, destination, has_lines, hush, say, texts_of
from regard.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from regard.decode.options import Options
    from regard.decode.terms import Glossary
    from regard.decode.texts import Output
    from regard.tasks.translator import Translation, Translator

SHOWN = ("text", "align", "scores")


def translate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    texts: Annotated[list[str] | None, typer.Argument(help="Texts to translate; - or none: lines of stdin.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="Translate the lines of this file (also .gz, .zst); - is stdin.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write here instead of to stdout; appears when it is whole.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 5,
    nbest: Annotated[int, typer.Option(help="Translations to show of each text, best first.")] = 1,
    length_penalty: Annotated[float, typer.Option(help="Outputs are compared by log p / length^this.")] = 1.0,
    coverage_penalty: Annotated[float, typer.Option(help="Price of source words left unattended.")] = 0.0,
    groups: Annotated[int, typer.Option(help="Groups of the beam that must differ; see --diversity.")] = 1,
    diversity: Annotated[float, typer.Option(help="What a group pays for a word that an earlier one chose.")] = 0.5,
    sample: Annotated[bool, typer.Option("--sample", help="Draw --nbest translations instead of searching.")] = False,
    temperature: Annotated[float, typer.Option(help="Of sampling; below 1 is more cautious.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Draw from so many pieces; 0 from all.")] = 0,
    nucleus: Annotated[float, typer.Option(help="Draw from the fewest pieces with this probability.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of sampling.")] = 1,
    risk: Annotated[int, typer.Option(help="Draw so many, and show the one most like all others (chrF).")] = 0,
    min_ratio: Annotated[float, typer.Option(help="Target pieces for each source piece, at the least.")] = 0.0,
    max_ratio: Annotated[float, typer.Option(help="At the most, plus ten.")] = 2.0,
    no_repeat: Annotated[int, typer.Option(help="No sequence of so many pieces twice; 3 is usual.")] = 0,
    forbid: Annotated[list[str] | None, typer.Option(help="A word not to write; may be given again.")] = None,
    prefix: Annotated[str, typer.Option(help="What each translation begins with.")] = "",
    constrain: Annotated[Path | None, typer.Option(help="A glossary: lines of source term, tab, target term.")] = None,
    copy_unknown: Annotated[bool | None, typer.Option(help="Copy words the model cannot write; usual.")] = None,
    ensemble: Annotated[list[Path] | None, typer.Option("--with", help="A further run that votes; again.")] = None,
    show: Annotated[str, typer.Option(help="text, align (who looked at whom) or scores.")] = "text",
    engine: Annotated[
        str, typer.Option(help="auto, native, native-bfloat16 (GPU), ctranslate2 or ctranslate2-int8.")
    ] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a text.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No remarks on stderr.")] = False,
) -> None:
    """Translate texts, a file, or stdin line by line; translations go to stdout."""
    if show not in SHOWN:
        raise SettingsError(f"--show = {show}: no such view; {did_you_mean(show, SHOWN)}")
    waiting = texts_of(texts, file, quiet=quiet)
    with unswept():
        from regard.decode.options import Options
        from regard.decode.rules import Beam, Sample
        from regard.device import pick_device
        from regard.tasks.load import load

    rule: Beam | Sample = Sample(risk or nbest, temperature, top_k, nucleus, seed)
    if not (sample or risk):
        width, parted = max(beam, nbest) if beam >= 1 else beam, diversity if groups > 1 else 0.0
        rule = Beam(width, length_penalty, coverage_penalty, nbest, groups, parted)
    words, glossary = tuple(forbid or ()), _glossary(constrain)
    options = Options(rule, bool(risk), min_ratio, max_ratio, no_repeat, words, prefix, glossary, copy_unknown)
    place = str(pick_device(device))
    tell = hush if quiet else say
    translator = load(run, *(ensemble or ()), device=place, engine=engine, tell=tell)
    remarks = Remarks(tell, "line" if has_lines(texts) else "text" if texts and texts[1:] else "")
    _write(_translations(translator, waiting, options), remarks, out, nbest, "json" if as_json else show)
    if show == "align" and not as_json:
        tell(f"weights: {translator.aligner.describe()}")


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
    return "; ".join(filter(None, (found.warning, found.read_as and f"read as: {_one_line(found.read_as)}")))


def _glossary(path: Path | None) -> Glossary | None:
    if path is None:
        return None
    from regard.data.lines import read_lines
    from regard.decode.terms import Glossary

    return Glossary.parse(read_lines(path), str(path))


def _one_line(text: str) -> str:
    """One line in, one line out, whatever the model writes."""
    return " ".join(text.splitlines())


def _text(found: Translation, output: Output) -> str:
    """In one line, unless the source has several."""
    return output.text if "\n" in found.source else _one_line(output.text)


def _lines(found: Translation, count: int, show: str) -> Iterator[str]:
    for rank, output in enumerate(found.outputs[:count]):
        text = _one_line(output.text) if show == "scores" else _text(found, output)
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
