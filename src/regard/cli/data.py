"""``regard data``: make, check, clean, stats, split."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from regard.cli.streams import LineCounter, put, say
from regard.cli.verb import Command, common
from regard.errors import DataError, SettingsError, did_you_mean

if TYPE_CHECKING:
    from regard.data.check import CheckReport
    from regard.data.readers import Corpus
    from regard.tasks.task import Task as AnyTask
    from regard.text.tokenizers import Tokenizers

app = typer.Typer(help="Make, check, clean, count and split corpora.", no_args_is_help=True, rich_markup_mode=None)

Files = Annotated[list[Path], typer.Argument(help="Two parallel files, or one file with columns.")]
Texts = Annotated[list[Path], typer.Argument(help="Two parallel files, one file with columns, or one plain text.")]
Columns = Annotated[str, typer.Option(help="Columns of a table, by name or number: 2,1.")]
Run = Annotated[Path | None, typer.Option("--run", help="Use the tokenizers of this run.")]
Task = Annotated[
    str,
    typer.Option(
        help="translate, tag, classify, language or forecast: which columns there are. "
        "Without it translate, and language for one file of plain text."
    ),
]
HeldOut = Annotated[
    list[Path] | None,
    typer.Option("--held-out", help="A test set whose sources must not be in the corpus; one or two files."),
]


@app.command(cls=Command)
def make(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(help="The built-in corpus, fable:fr or fable:hi; or a set: digits, shapes, vowels, co2, …"),
    ],
    out: Annotated[Path, typer.Argument(help="The folder to make.")],
    pairs: Annotated[int, typer.Option(help="Training pairs.")] = 20_000,
    held_out: Annotated[int, typer.Option(help="Pairs for validation, and as many for the test.")] = 1000,
    words: Annotated[str, typer.Option(help="How long English sentences are.")] = "1-20",
) -> None:
    """Write the built-in corpus as plain files, with gold alignments, tags and sentiment; or a set of vectors."""
    from regard.fable.corpus import check_language
    from regard.fable.files import write
    from regard.fable.sets import SETS, write_set

    corpus, _, target = name.partition(":")
    if corpus in SETS:
        folder = write_set(name, out, pairs, held_out)
        before, after = f"{folder}: ", f"; {SETS[corpus].source}"
    elif corpus == "fable":
        check_language(target or "fr")
        if (lengths := re.fullmatch(r"(\d+)-(\d+)", words)) is None:
            raise SettingsError(f"--words = {words}: not a range of lengths; 1-20 would be right")
        folder = write(
            out,
            target or "fr",  # type: ignore[arg-type]
            train=pairs,
            valid=held_out,
            test=held_out,
            minimum_words=int(lengths[1]),
            maximum_words=int(lengths[2]),
        )
        before, after = f"{folder}: {pairs:,} training pairs and twice {held_out:,} held out: ", ""
    else:
        raise SettingsError(f"corpus = {name}: no such built-in corpus; did you mean 'fable:fr'?")
    files = sorted(path.name for path in folder.iterdir())
    common(context).answer({"folder": str(folder), "files": files}, before + ", ".join(files) + after)


@app.command(cls=Command)
def check(
    context: typer.Context,
    files: Texts,
    columns: Columns = "",
    held_out: HeldOut = None,
    run: Run = None,
    ratio: Annotated[float, typer.Option(help="How unusual a ratio of lengths must be to be reported.")] = 4.0,
    task: Task = "",
    find_shift: Annotated[
        bool, typer.Option("--find-shift", help="Only find the line from which on two files are shifted.")
    ] = False,
) -> int:
    """Report what is wrong with a corpus. The exit code is 3 when something is."""
    from regard.data.check import check as examine
    from regard.data.check import check_labels, check_series

    if find_shift:
        return _find_shift(files)
    corpus, others = _corpus(files, columns), _corpus(held_out, columns) if held_out else None
    task = task or _usual_task(corpus)
    if (other := _other_task(task)) is None:
        report = examine(corpus, held_out=others, tokenizers=_tokenizers(run), ratio=ratio, progress=_progress())
    elif task == "forecast":
        report = check_series(corpus)
    else:
        known, told = _tokenizers(run), _progress("rows")
        report = check_labels(corpus, other.columns, other.fault, held_out=others, tokenizers=known, progress=told)
    if report.clean and not report.pairs:
        raise DataError(f"{', '.join(report.files)}: is empty; a corpus has at least one line")
    if common(context).json:
        put(json.dumps(asdict(report), ensure_ascii=False, indent=2))
    elif not report.pairs and len(report.files) == 1 and report.findings[0].kind == "format":  # it is read wrongly
        first = report.findings[0].examples[0]
        raise DataError(f"{report.files[0]} line {first.line:,}: {first.note}")
    else:
        _show_check(report)
        if task == "language" and report.clean:
            say(f"to learn it: regard train --source {shlex.join(report.files)} task=language")
    return 0 if report.clean else DataError.exit_code


def _show_check(report: CheckReport) -> None:
    ratio = "" if report.typical_ratio is None else f", source/target length {report.typical_ratio:.2f}"
    print(f"{', '.join(report.files)}: {report.pairs:,} {'rows' if not ratio else 'pairs'}{ratio}")
    for side in report.sides:
        outside = " ".join(f"{character!r}×{count}" for character, count in list(side.outside.items())[:8])
        print(f"  {side.side}: {100 * side.unknown_share:.2f} % <unk>" + (f"; outside: {outside}" if outside else ""))
    for finding in report.findings:
        print(f"\n{finding.kind}: {finding.count:,}")
        for example in finding.examples:
            texts = (example.source[:60], example.target[:60]) if ratio or example.target else (example.source[:60],)
            text = " | ".join(texts) if any(texts) else ""
            put(f"  line {example.line:,}: {example.note}  {text}".rstrip())
    if report.clean:
        print("nothing wrong")
    elif any(finding.kind == "mismatch" for finding in report.findings):
        say(f"\nto find where the two sides are shifted: regard data check {shlex.join(report.files)} --find-shift")
    elif ratio:
        say(f"\nto mend or drop these: regard data clean {shlex.join(report.files)} --out clean")


def _find_shift(files: list[Path]) -> int:
    from regard.data.readers import find_shift as locate
    from regard.data.readers import line_lengths

    if len(files) != 2:
        raise SettingsError("--find-shift: compares two parallel files; give both")
    first, second = (line_lengths(str(path)) for path in files)
    where = locate(first, second)
    counts = f"{files[0]} has {len(first):,} lines, {files[1]} {len(second):,}"
    print(f"{counts}; lengths stop matching near line {where:,}" if where else f"{counts}; lengths match throughout")
    return DataError.exit_code if where or len(first) != len(second) else 0


@app.command(cls=Command)
def clean(
    context: typer.Context,
    files: Files,
    out: Annotated[Path, typer.Option(help="The folder for the clean files and dropped.tsv.")],
    columns: Columns = "",
    held_out: HeldOut = None,
    ratio: Annotated[float, typer.Option(help="How unusual a ratio of lengths must be to be dropped.")] = 4.0,
) -> None:
    """Write a clean copy, and what was dropped and why."""
    from regard.data.clean import clean as tidy
    from regard.data.clean import suffixes

    corpus = _corpus(files, columns)
    first, second = suffixes(corpus)
    report = tidy(
        corpus,
        out / f"clean.{first}",
        out / f"clean.{second}",
        out / "dropped.tsv",
        held_out=_corpus(held_out, columns) if held_out else None,
        ratio=ratio,
        progress=_progress(),
    )
    if common(context).json:
        print(json.dumps(asdict(report), indent=2))
        return
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items()) or "none"
    print(f"{report.kept:,} of {report.read:,} pairs kept, {report.mended:,} of them mended; dropped: {reasons}")
    say(f"written: {', '.join(report.files)}")


@app.command(cls=Command)
def stats(context: typer.Context, files: Texts, columns: Columns = "", run: Run = None, task: Task = "") -> None:
    """Count lines, words and pieces."""
    from regard.data.check import SIDES
    from regard.data.stats import stats as count

    corpus = _corpus(files, columns)
    task = task or _usual_task(corpus)
    if task == "forecast":
        _series_stats(context, corpus)
        return
    names = SIDES if (other := _other_task(task)) is None else other.columns
    report = count(corpus, _tokenizers(run), names)
    if common(context).json:
        print(json.dumps(asdict(report), indent=2))
        return
    print(f"{', '.join(report.files)}: {report.pairs:,} {'pairs' if other is None else 'rows'}")
    print(f"{'':20}{'total':>14}{'mean':>8}{'median':>8}{'95 %':>8}{'longest':>9}")
    for side in report.sides:
        for name, spread in (("characters", side.characters), ("words", side.words), ("pieces", side.tokens)):
            if spread is not None:
                numbers = f"{spread.median:>8,}{spread.ninety_five:>8,}{spread.longest:>9,}"
                print(f"{side.side + ' ' + name:20}{spread.total:>14,}{spread.mean:>8.1f}{numbers}")
        print(f"{side.side + ' different words':27}{side.different_words:,}")


def _series_stats(context: typer.Context, corpus: Corpus) -> None:
    from regard.data.stats import series_stats

    report = series_stats(corpus)
    if common(context).json:
        print(json.dumps([asdict(each) for each in report], indent=2))
        return
    print(
        f"{'series':>8}{'channel':>9}{'moments':>9}{'missing':>9}{'mean':>12}{'deviation':>12}{'least':>12}{'most':>12}"
    )
    for path, channels in groupby(report, lambda each: each.file):
        if len(corpus.paths) > 1:
            print(path)
        for each in channels:
            numbers = (each.mean, each.deviation, each.least, each.most)
            told = "".join(f"{'-':>12}" if number is None else f"{number:>12.5g}" for number in numbers)
            print(f"{each.series:>8,}{each.channel:>9}{each.moments:>9,}{each.missing:>9,}{told}")


@app.command(cls=Command)
def split(
    context: typer.Context,
    files: Files,
    out: Annotated[Path, typer.Option(help="The folder for train, valid and test.")],
    valid: Annotated[int, typer.Option(help="Pairs for validation.")] = 1000,
    test: Annotated[int, typer.Option(help="Pairs for the test.")] = 1000,
    columns: Columns = "",
) -> None:
    """Divide a corpus so that no source is in two parts."""
    from regard.data.clean import split as divide

    report = divide(_corpus(files, columns), out, valid=valid, test=test)
    if common(context).json:
        print(json.dumps(asdict(report), indent=2))
    else:
        say(f"{report.train:,} train, {report.valid:,} valid, {report.test:,} test in {out}")


def _corpus(files: list[Path], columns: str) -> Corpus:
    from regard.data.readers import Corpus

    return Corpus(tuple(map(str, files)), tuple(columns.split(",")) if columns else ())


def _usual_task(corpus: Corpus) -> str:
    """The task of a corpus where none is named: one plain text, which has one column, is of a language model."""
    from regard.data.readers import format_of

    if corpus.columns or len(corpus.paths) > 1 or format_of(corpus.paths[0]) != "text":
        return "translate"
    if Path(corpus.paths[0]).is_file():  # what is not there is refused when it is read
        say(f"{corpus.paths[0]}: one column, taken for the text of a language model; pairs are in two files or a table")
    return "language"


def _other_task(name: str) -> type[AnyTask] | None:
    """The task, or None for translate, whose data is read without torch."""
    if name == "translate":
        return None
    from regard.settings import TaskName
    from regard.tasks.load import task_of

    found: TaskName | None = next((each for each in get_args(TaskName) if each == name), None)
    if found is None:
        raise SettingsError(f"--task = {name}: no such task; {did_you_mean(name, get_args(TaskName))}")
    return task_of(found)


def _tokenizers(run: Path | None) -> Tokenizers | None:
    from regard.runs.folder import resolve
    from regard.text.tokenizers import Tokenizers

    return None if run is None else Tokenizers.load(resolve(run) / "tokenizer")


def _progress(what: str = "pairs") -> LineCounter:
    """A counter of what was read."""
    return LineCounter("read", what=what)
