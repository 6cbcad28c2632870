"""``regard evaluate``"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.bulk import ON, SHARD, bulk, located
from regard.cli.streams import destination, keep_inputs, put, say
from regard.cli.verb import Common, called, common, only_one, with_settings
from regard.errors import SettingsError

if TYPE_CHECKING:
    from rich.console import Console

    from regard.decode.options import Options
    from regard.evaluate.evaluate import Evaluation, Texts
    from regard.metrics.alignment import AlignmentQuality, Gold
    from regard.metrics.groups import Bucket, Habits
    from regard.metrics.translation import Quality
    from regard.runs.folder import Run
    from regard.settings.call import CallSettings, MeasureSettings

ALL = "measure.metrics=bleu,chrf,ter"  # of one run
READ = "measure.metrics=exact,edits"  # of one that reads vectors
TOKENISED = 100  # outputs that end in " ." from which on sacreBLEU warns, too


def evaluate(
    context: typer.Context,
    words: Annotated[list[str], with_settings("RUN", "A run folder.")],
    source: Annotated[Path, typer.Option(help="Texts, one a line (also .gz, .zst), or a table with all columns.")],
    target: Annotated[Path | None, typer.Option(help="Their reference translations, tags or labels.")] = None,
    hypotheses: Annotated[Path | None, typer.Option(help="Measure this output instead of translating.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the translations here; - is stdout.")] = None,
    shard: Annotated[str, typer.Option(metavar="I/N", help=SHARD)] = "",
    on: Annotated[str, typer.Option(help=ON)] = "",
) -> None:
    """Translate a test set and measure the result: BLEU, chrF, TER with intervals, by length, by rarity, habits."""
    overrides, name = only_one(words, "RUN")
    run, asked = Path(name), common(context)
    from regard.decode.options import Options, how
    from regard.evaluate import evaluate as evaluation
    from regard.runs.folder import Run

    keep_inputs(out, source, target, hypotheses)
    opened = Run.open(run)
    vectors = opened.settings.text.source.kind == "vectors"
    call = called("evaluate", [READ if vectors else ALL, *overrides])
    options, wanted = Options.of(call.decode), call.measure
    if (shard or on) and (opened.settings.task != "translate" or hypotheses is not None):
        raise SettingsError("--shard, --on: divide what is translated, and nothing is here; leave them out")
    if opened.settings.task != "translate":
        _evaluate_labels(run, source, target, asked)
        return
    evaluation.check_measures(wanted)
    if target is None:
        raise SettingsError("--target: missing; give the reference translations")
    _check_links(wanted)
    texts = evaluation.read_texts(source, target, hypotheses, vectors=vectors)
    golds = evaluation.read_alignments(Path(wanted.alignment), texts) if wanted.alignment else None
    if shard or on:
        outputs = _in_blocks(run, texts, out, call, asked, shard=shard, on=on)
        if outputs is None:  # another process merges, and measures
            return
    else:
        outputs = texts.hypotheses or _translate(run, texts, options, call.decode.engine, asked.place)
        if out is not None:
            with destination(out) as write:
                for line in outputs:
                    write(line)
    counts, remark = evaluation.training_counts(opened, texts.sources), _learned(opened, texts, source, target)
    aligned = None if golds is None else _alignment(run, texts, golds, wanted, asked.place)
    result = evaluation.evaluate(texts, outputs, counts, wanted, aligned)
    judged: list[Quality] = []
    if wanted.comet:
        from regard.metrics.comet import comet

        gpus = int(asked.place.startswith("cuda"))
        judged = [comet(texts.sources, outputs, texts.references, wanted.comet, gpus=gpus)]
    origin = ", ".join(how(call.decode)) if hypotheses is None else str(hypotheses)
    if asked.json:
        about = {"run": str(run), "source": str(source), "target": str(target), "output": origin, "learned": remark}
        shown = asdict(result)
        shown["qualities"] += [asdict(quality) for quality in judged]
        put(json.dumps(about | shown, ensure_ascii=False, indent=2))
    else:
        _show(result, judged, f"{run} on {source}, {target}: {result.sentences:,} sentences, {origin}", wanted)


def _learned(run: Run, texts: Texts, *files: Path) -> str:
    """What `misnamed` and `learned` say of a test that the run itself translates; it is also told."""
    from regard.evaluate.evaluate import learned, misnamed

    if texts.hypotheses is not None:
        return ""
    found = [remark for remark in (misnamed(run, *map(str, files)), learned(run, texts.sources)) if remark]
    for remark in found:
        say(remark)
    return "; ".join(found)


def _evaluate_labels(run: Path, source: Path, target: Path | None, asked: Common) -> None:
    """Taggers, classifiers, language models and forecasters."""
    from regard.data.readers import Corpus
    from regard.runs.folder import Run
    from regard.tasks.corpus import Files, columns_of
    from regard.tasks.load import evaluate as measure
    from regard.tasks.load import task_of

    files = [str(path) for path in (source, target) if path is not None]
    settings = Run.open(run).settings
    columns = columns_of(settings.data) if settings.task == "forecast" else ()
    rows_of = Files(Corpus(tuple(files), columns), vectors=settings.text.source.kind == "vectors")
    result = measure(run, task_of(settings.task).material(rows_of, settings), asked.place)
    if asked.json:
        put(json.dumps({"run": str(run), "files": files} | result.to_dict(), ensure_ascii=False, indent=2))
        return
    say(f"{run} on {' and '.join(files)}")
    rows = result.rows()
    widths = [max((len(row[place]) for row in rows if len(row) > place), default=0) for place in range(9)]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), file=sys.stderr)


def _check_links(wanted: MeasureSettings) -> None:
    """Refuse settings of links that do not fit together, before any work."""
    if not wanted.alignment and (wanted.links or wanted.reverse_links or wanted.reverse):
        raise SettingsError("measure.alignment: missing; links are compared with gold ones, name their file")
    if wanted.reverse_links and not wanted.links:
        raise SettingsError(
            f"measure.reverse_links = {wanted.reverse_links}: joins measure.links; give measure.links=FILE too"
        )


def _alignment(run: Path, texts: Texts, golds: list[Gold], wanted: MeasureSettings, place: str) -> AlignmentQuality:
    """The quality of links: of files if they are given, else of the attention of the run, and of the reverse run."""
    from regard.evaluate import evaluate as evaluation
    from regard.metrics.alignment import flipped
    from regard.tasks.load import load

    if wanted.links:
        paths = [Path(path) for path in (wanted.links, wanted.reverse_links) if path]
        found = [[pair.possible for pair in evaluation.read_alignments(path, texts)] for path in paths]
    else:
        translator = load(run, device=place)
        found = [evaluation.aligned(translator, texts.sources, texts.references)]
        say(f"links: {translator.aligner.describe()}")
        if wanted.reverse:
            backward = load(Path(wanted.reverse), device=place)
            links = evaluation.aligned(backward, texts.references, texts.sources)
            found.append([flipped(each) for each in links])
    return evaluation.alignment_of(found[0], golds, found[1] if found[1:] else None, wanted.symmetrise)


def _translate(run: Path, texts: Texts, options: Options, engine: str, place: str) -> list[str]:
    from regard.cli.streams import LineCounter
    from regard.evaluate import evaluate as evaluation
    from regard.tasks.load import load

    translator = load(run, device=place, engine=engine, tell=say)
    return evaluation.translate(translator, texts.sources, options, progress=LineCounter("translated"))


def _in_blocks(
    run: Path, texts: Texts, out: Path | None, call: CallSettings, asked: Common, *, shard: str, on: str
) -> list[str] | None:
    """The translations, made in blocks by any number of processes; None if some are still missing."""
    from regard.cli.translate import Translating
    from regard.data.lines import read_lines

    decode, device = call.decode.model_copy(update={"best": 1}), asked.device if on else asked.place
    work = Translating((located(run),), device, decode, "text", json=False)
    rows = ((source,) for source in texts.sources)
    merged = bulk(rows, out, work.about(), work, shard=shard, on=on, how=call.bulk, device=device)
    return None if merged is None or out is None else list(read_lines(out))


def _show(result: Evaluation, judged: list[Quality], title: str, how: MeasureSettings) -> None:
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    console.print(title, style="bold")
    for quality in (*result.qualities, *judged):
        console.print(f"  {quality.name:8}{_score(quality):14}{quality.signature}")
    if result.tokenised >= TOKENISED:
        console.print(
            f"  {result.tokenised:,} outputs end in ' .': is the text tokenised? These metrics expect it as written"
        )
    name = result.qualities[0].name
    if result.lengths:
        _show_buckets(console, f"{name} by words of the source", result.lengths)
    if result.rarities:
        what = "of the rarest word" if how.rarity == "rarest" else "of the words on average"
        _show_buckets(console, f"{name} by the count {what} of the source in {result.counts}", result.rarities)
    else:
        console.print(f"{name} by rare words: not measured, {result.counts}", style="bold")
    _show_habits(console, result.habits)
    if (found := result.alignment) is not None:
        console.print("alignment", style="bold")
        console.print(
            f"  error rate {found.error_rate:.3f}, precision {found.precision:.3f}, recall {found.recall:.3f} "
            f"({found.predicted:,} links; gold {found.sure:,} sure, {found.possible:,} possible)"
        )


def _show_habits(console: Console, habits: Habits) -> None:
    console.print("habits", style="bold")
    rows = (
        ("length", f"{habits.length_ratio:.3f}", "of the reference's, in words"),
        ("repeated trigrams", f"{habits.repeated:.1%}", f"{habits.repeated_in_reference:.1%} in the reference"),
        ("copied sentences", f"{habits.copied:.1%}", "the source unchanged, though the reference differs"),
        ("untranslated words", f"{habits.untranslated:.1%}", "of the output: in the source, not in the reference"),
        ("empty outputs", f"{habits.empty:.1%}", ""),
    )
    for name, value, note in rows:
        console.print(f"  {name:20}{value:>8}  {note}".rstrip())


def _show_buckets(console: Console, title: str, buckets: list[Bucket]) -> None:
    console.print(title, style="bold")
    for bucket in buckets:
        shown = "too few" if bucket.quality is None else _score(bucket.quality)
        console.print(
            f"  {bucket.name:16}{bucket.count:8,} {'sentence ' if bucket.count == 1 else 'sentences'}  {shown}"
        )


def _score(quality: Quality) -> str:
    digits = 4 if quality.name == "COMET" else 1
    margin = "" if quality.margin is None else f" ±{quality.margin:.{digits}f}"
    return f"{quality.score:.{digits}f}{margin}"
