"""``regard translate``"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.bulk import ON, SHARD, bulk, fingerprint, located
from regard.cli.streams import (
    REMARKS,
    STREAM,
    Remarks,
    destination,
    keep_inputs,
    kind_of,
    named,
    one_line,
    opened,
    printable,
    say,
    texts_of,
    without_garbage_collection,
)
from regard.cli.verb import apart, called, common, with_settings
from regard.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from regard.data.blocks import Block, Done, Work
    from regard.decode.options import Options
    from regard.decode.texts import Output
    from regard.explain.doubt import Doubt
    from regard.settings.call import BulkSettings, DecodeSettings
    from regard.tasks.translator import Translation, Translator
    from regard.text.reading import Unknown

SHOWN = ("text", "align", "scores", "doubt")
LINKED = 0.005  # the least weight that is more than 0.00 when it is shown
STRINGS = (".po", ".pot", ".mo", ".xliff", ".xlf", ".srt")  # what `regard.serve.strings` reads


def translate(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    texts: Annotated[
        list[str] | None,
        with_settings("[TEXT]...", "Texts to translate; - or none: lines of stdin."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="Translate the lines of this file (also .gz, .zst; - is stdin), or .po, .mo, .xliff, .srt."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file; - or none: stdout.")] = None,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy, 5 usual.")] = None,
    nbest: Annotated[int | None, typer.Option(help="Translations to show of each text, best first.")] = None,
    constrain: Annotated[Path | None, typer.Option(help="A glossary: lines of source term, tab, target term.")] = None,
    ensemble: Annotated[
        list[Path] | None, typer.Option("--with", help="A further run to average with; repeatable.")
    ] = None,
    show: Annotated[str, typer.Option(help="text, align (word links), scores or doubt.")] = "text",
    shard: Annotated[str, typer.Option(metavar="I/N", help=SHARD)] = "",
    on: Annotated[str, typer.Option(help=ON)] = "",
) -> None:
    """Translate texts, a file, or stdin line by line; translations go to stdout."""
    if show not in SHOWN:
        raise SettingsError(f"--show = {show}: no such view; {did_you_mean(show, SHOWN)}")
    overrides, given = apart(texts or [])
    call = called("translate", overrides, {"decode.beam": beam, "decode.best": nbest})
    decode = call.decode
    strings = file is not None and file.suffix.lower() in STRINGS
    if strings and (given or show != "text" or decode.best > 1):
        raise SettingsError(f"--file = {file}: is translated as a whole; leave out texts, --nbest and --show")
    if not strings:  # a file of strings may be filled in place
        keep_inputs(out, file, constrain)
    asked = common(context)
    if shard or on:
        if file is None or str(file) == STREAM or strings or given:
            raise SettingsError("--shard, --on: divide a file of lines; give one with --file, and no texts")
        if constrain is not None:
            decode = decode.model_copy(update={"glossary": _glossary(constrain, decode.glossary)})
        runs = tuple(map(located, (run, *(ensemble or ()))))
        work = Translating(runs, asked.device if on else asked.place, decode, show, json=asked.json, remarks=True)
        translate_in_blocks(work, file, out, shard, on, call.bulk)
        return
    waiting = iter([]) if strings else texts_of(given, file)
    with without_garbage_collection():
        from regard.decode.options import Options
        from regard.tasks.load import load

    options = Options.of(decode)
    if constrain is not None:
        options = replace(options, glossary=_glossary(constrain, options.glossary))
    translator = load(run, *(ensemble or ()), device=asked.place, engine=decode.engine, tell=say)
    if strings:
        assert file is not None
        _translate_file(translator, file, out, options)
        return
    found = _translations(translator, (opened(run, chunk) for chunk in waiting), options)
    _write(found, kind_of(given), out, decode.best, show, as_json=asked.json)
    if show == "align" and not asked.json:
        say(f"weights: {translator.aligner.describe()}")


@dataclass(frozen=True)
class Translating:
    """What is to be done to the lines of a file, wherever that is."""

    runs: tuple[Path, ...]
    device: str
    decode: DecodeSettings
    show: str
    json: bool
    before: str = ""  # what every line of the output begins with
    remarks: bool = False  # whether there are any on single lines

    def about(self) -> dict[str, Any]:
        """What the output depends on."""
        decode = self.decode.model_dump(mode="json")
        how = {
            "show": self.show,
            "json": self.json,
            "before": self.before,
            "remarks": self.remarks,
            **{f"decode.{name}": value for name, value in decode.items()},
        }
        return {"verb": "translate", "weights": [fingerprint(run) for run in self.runs], **how}

    def __call__(self, opening: Sequence[tuple[str, ...]]) -> Work:
        """Load the runs, and choose the engine that searches by the first lines of the file."""
        from regard.data.blocks import Done
        from regard.decode.options import Options
        from regard.device import pick_device
        from regard.tasks.engines import settle
        from regard.tasks.load import load
        from regard.text.reading import doubt_of_language

        translator = load(*self.runs, device=str(pick_device(self.device)), engine=self.decode.engine)
        options = Options.of(self.decode)
        first = opened(self.runs[0], [row[0] for row in opening])
        settle(translator, first, options)
        if not self.remarks and (doubt := doubt_of_language(first, translator.tokenizers.known, translator.language)):
            say(f"first {len(first):,} lines: {doubt}")

        def work(block: Block) -> Done:
            texts = opened(self.runs[0], [row[0] for row in block.rows])
            written, remarks = list[str](), list[tuple[int, str]]()
            for number, each in enumerate(translator.stream(texts, options, first=block.first), start=block.first + 1):
                left_out = _left_out(each, "line", self.show)
                if self.remarks and (remark := _remark(each, left_out)):
                    remarks.append((number, remark))
                how = self.decode.best, self.show
                written += _json(each, *how, left_out) if self.json else _lines(each, *how)
            output = "".join(f"{self.before}{line}\n" for line in written).encode("utf-8", "surrogatepass")
            return Done(output, {"first": remarks[:REMARKS], "count": len(remarks)} if remarks else {})

        return work


def translate_in_blocks(
    work: Translating, file: Path, out: Path | None, shard: str, on: str, how: BulkSettings
) -> None:
    """Do the lines of a file that are missing; who merges them makes the remarks, as one process would."""
    from regard.data.lines import read_lines

    rows = ((line,) for line in read_lines(file))
    notes = bulk(rows, out, work.about(), work, shard=shard, on=on, how=how, device=work.device)
    remarks = Remarks("line")
    for note in notes or ():
        for number, line in note["first"]:
            remarks.note(number, line)
        remarks.more(note["count"] - len(note["first"]))
    remarks.end()


def _translate_file(translator: Translator, file: Path, out: Path | None, options: Options) -> None:
    """Translate a file of strings or subtitles, and nothing else in it."""
    from regard.files import new_file
    from regard.serve import strings
    from regard.tasks.translator import attends

    def translate(sentences: list[str]) -> list[strings.Found]:
        found = list(translator.stream(sentences, options))
        links = (
            translator.links([each.outputs[0] for each in found]) if attends(translator.model) else [[]] * len(found)
        )
        places = [[(link.target_place, link.source_place) for link in each] for each in links]
        return [(each.text, linked) for each, linked in zip(found, places, strict=True)]

    document = strings.read(file.name, file.read_bytes())
    keep = [term for term, meant in (options.glossary or {}).items() if term == meant]
    texts = strings.driven(strings.translating(document.texts, keep), translate)
    written = document.fill(texts)
    if (out := named(out)) is None:
        sys.stdout.buffer.write(written)
    else:
        with new_file(out) as target:
            target.write(written)
    same = sum(one == other for one, other in zip(document.texts, texts, strict=True))
    say(f"{file}: {len(texts):,} text{'' if len(texts) == 1 else 's'}, {same:,} unchanged")


def _translations(translator: Translator, waiting: Iterable[list[str]], options: Options) -> Iterator[Translation]:
    """Translate texts as they arrive."""
    from regard.nn.fast.allocator import remember_few_shapes

    remember_few_shapes()
    number = 0
    for chunk in waiting:
        yield from translator.stream(chunk, options, first=number)
        number += len(chunk)


def _write(found: Iterable[Translation], kind: str, out: Path | None, count: int, show: str, *, as_json: bool) -> None:
    remarks = Remarks(kind)
    with destination(out) as write:
        for number, each in enumerate(found, start=1):
            left_out = _left_out(each, kind, show)
            remarks.note(number, _remark(each, left_out))
            for line in _json(each, count, show, left_out) if as_json else _lines(each, count, show):
                write(line)
    remarks.end()


def _left_out(found: Translation, kind: str, show: str) -> tuple[Unknown, ...]:
    """The words that seem to be left out: of a text that somebody has typed, if that is soon said, and on request."""
    if show == "doubt":
        return found.omitted
    if kind == "line":
        return ()
    from regard.explain.omission import is_cheap

    return found.omitted if is_cheap(found.translator, found.outputs[0]) else ()


def _remark(found: Translation, left_out: Sequence[Unknown]) -> str:
    words = ", ".join(each.word for each in left_out)
    parts = found.warning, words and f"seems to leave out: {words}", found.read_as and f"read as: {found.read_as}"
    return "; ".join(one_line(part) for part in parts if part)


def _glossary(path: Path, set_too: Mapping[str, str] | None) -> dict[str, str]:
    """The terms of a file and those that are set, which take precedence."""
    from regard.data.lines import read_lines
    from regard.decode.constraints import parse_terms

    return {**parse_terms(read_lines(path), str(path)), **(set_too or {})}


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
            for link in links:  # where all its weight is on special tokens, a word is linked with none
                word = link.source if link.weight >= LINKED else "–"
                yield printable(f"  {link.target:{target}}  ← {word:{source}}  {link.weight:.2f}")
            yield ""
    if show == "doubt":
        yield from (f"  {line}" for line in doubt_lines(found.doubt))


def doubt_lines(doubt: Doubt) -> Iterator[str]:
    """The doubt, its reasons, and the improbable words."""
    value = "not measured: the run has no validation text" if doubt.value is None else f"{doubt.value:.0%}"
    yield "; ".join((f"doubt {value}", *doubt.reasons))
    if doubt.words:
        words = ", ".join(f"{each.word} {each.probability:.1%}" for each in doubt.words)
        yield printable(f"improbable: {words}")


def _json(found: Translation, count: int, show: str, left_out: Sequence[Unknown]) -> Iterator[str]:
    best = found.outputs[0]
    content: dict[str, Any] = {"source": found.source, "target": _text(found, best)}
    content |= {"score": best.score, "log_probability": best.log_probability}
    if count > 1:
        outputs = found.outputs[:count]
        content["outputs"] = [
            {"target": _text(found, each), "score": each.score, "log_probability": each.log_probability}
            for each in outputs
        ]
    remarks: dict[str, Any] = {"warning": found.warning, "read_as": found.read_as}
    remarks |= {"unknown": [asdict(each) for each in found.unknown], "omitted": [asdict(each) for each in left_out]}
    content |= {name: value for name, value in remarks.items() if value}
    if show == "doubt":
        content["doubt"] = asdict(found.doubt)
    yield json.dumps(content, ensure_ascii=False)
