"""``regard evaluate``"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.streams import put, say
from regard.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from regard.evaluate.evaluate import Evaluation, Measures, Texts
    from regard.metrics.alignment import AlignmentQuality, Gold
    from regard.metrics.by_length import Bucket
    from regard.metrics.habits import Habits
    from regard.metrics.translation import Quality

TOKENISED = 100  # outputs that end in " .", as many as make sacreBLEU warn
METHODS = ("intersection", "union", "grow-diag", "grow-diag-final-and")


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    source: Annotated[Path, typer.Option(help="Texts, one a line (also .gz, .zst), or a table with all columns.")],
    target: Annotated[Path | None, typer.Option(help="Their translations by people, tags or labels.")] = None,
    hypotheses: Annotated[Path | None, typer.Option(help="Measure this output instead of translating.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the translations here.")] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")] = 5,
    metrics: Annotated[str, typer.Option(help="Of bleu, chrf, chrf++ and ter; the first also by length.")] = (
        "bleu,chrf,ter"
    ),
    edges: Annotated[str, typer.Option(help="Where the buckets of source lengths end, in words.")] = "10,20,30,40",
    rarity: Annotated[str, typer.Option(help="By the rarest word of a source, or their mean.")] = "rarest",
    resamples: Annotated[int, typer.Option(help="Resamples for the intervals; 0 for none.")] = 1000,
    tokenize: Annotated[str, typer.Option(help="BLEU's tokenizer: 13a, intl, char, zh or none.")] = "13a",
    alignment: Annotated[Path | None, typer.Option(help="Gold word alignments, Pharaoh or NAACL format.")] = None,
    reverse: Annotated[Path | None, typer.Option(help="A run of the other direction, to join links with.")] = None,
    links: Annotated[Path | None, typer.Option(help="Alignments to hold against the gold, not the run's.")] = None,
    reverse_links: Annotated[Path | None, typer.Option(help="Those of the other direction, to join with.")] = None,
    symmetrise: Annotated[str, typer.Option(help=f"How to join them: {', '.join(METHODS)}.")] = "grow-diag-final-and",
    comet: Annotated[str, typer.Option(help="Also COMET with this model, if comet-score is installed.")] = "",
    engine: Annotated[
        str, typer.Option(help="auto, native, native-bfloat16 (GPU), ctranslate2 or ctranslate2-int8.")
    ] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON on stdout.")] = False,
) -> None:
    """Translate a test set and measure the result: BLEU, chrF, TER with intervals, by length, by rarity, habits."""
    if beam < 1:
        raise SettingsError(f"--beam = {beam}: a beam holds at least one hypothesis; 5 is usual")
    from regard.evaluate import evaluate as evaluation
    from regard.runs.folder import Run

    opened = Run.open(run)
    if opened.settings.task != "translate":
        _evaluate_labels(run, source, target, device, as_json=as_json)
        return
    measures = _measures(metrics, edges, rarity, resamples, tokenize)
    if target is None:
        raise SettingsError("--target: missing; a translation is measured against one by people")
    texts = evaluation.read_texts(source, target, hypotheses)
    wanted = _Wanted(alignment, links, reverse_links, reverse, symmetrise)
    golds = None if alignment is None else evaluation.read_alignments(alignment, texts)
    outputs = texts.hypotheses or _translate(run, texts, beam, device, engine)
    if out is not None:
        _write(out, outputs)
    counts = evaluation.training_counts(opened, texts.sources)
    aligned = None if golds is None else _alignment(run, texts, golds, wanted, device)
    result = evaluation.evaluate(texts, outputs, counts, measures, aligned)
    judged = _comet(texts, outputs, comet, device) if comet else []
    origin = f"beam {beam}" if hypotheses is None else str(hypotheses)
    if as_json:
        about = {"run": str(run), "source": str(source), "target": str(target), "output": origin}
        put(json.dumps(about | _as_dict(result, judged), ensure_ascii=False, indent=2))
    else:
        _show(result, judged, f"{run} on {source}, {target}: {result.sentences:,} sentences, {origin}", measures)


def _evaluate_labels(run: Path, source: Path, target: Path | None, device: str, *, as_json: bool) -> None:
    """Taggers, classifiers and language models."""
    from regard.data.readers import Corpus
    from regard.device import pick_device
    from regard.tasks.load import evaluate as measure

    files = [str(path) for path in (source, target) if path is not None]
    result = measure(run, Corpus(tuple(files)), str(pick_device(device)))
    if as_json:
        put(json.dumps({"run": str(run), "files": files} | result.to_dict(), ensure_ascii=False, indent=2))
        return
    say(f"{run} on {' and '.join(files)}")
    rows = result.rows()
    widths = [max((len(row[place]) for row in rows if len(row) > place), default=0) for place in range(9)]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), file=sys.stderr)


def _measures(metrics: str, edges: str, rarity: str, resamples: int, tokenize: str) -> Measures:
    from regard.evaluate.evaluate import Measures

    try:
        numbers = [int(edge) for edge in edges.split(",")]
    except ValueError:
        raise SettingsError(f"--edges = {edges}: not numbers with commas; 10,20,30,40 would be right") from None
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    return Measures(names, numbers, rarity, resamples, tokenize)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Wanted:
    """Where links come from; complains before any work is done."""

    gold: Path | None
    links: Path | None
    reverse_links: Path | None
    reverse: Path | None
    method: str

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise SettingsError(f"--symmetrise = {self.method}: no such way; {did_you_mean(self.method, METHODS)}")
        if self.gold is None and (self.links or self.reverse_links or self.reverse):
            raise SettingsError("--alignment: links are held against gold ones; give --alignment FILE")
        if self.reverse_links is not None and self.links is None:
            raise SettingsError(f"--reverse-links = {self.reverse_links}: joins --links; give --links FILE too")


def _alignment(run: Path, texts: Texts, golds: list[Gold], wanted: _Wanted, device: str) -> AlignmentQuality:
    """From files where they are given, else from the attention of the run, and of the reverse run."""
    from regard.device import pick_device
    from regard.evaluate import evaluate as evaluation
    from regard.tasks.load import load

    if wanted.links is not None:
        paths = [path for path in (wanted.links, wanted.reverse_links) if path is not None]
        found = [[pair.possible for pair in evaluation.read_alignments(path, texts)] for path in paths]
    else:
        chosen = str(pick_device(device))
        translator = load(run, device=chosen)
        found = [evaluation.aligned(translator, texts.sources, texts.references)]
        say(f"links: {translator.aligner.describe()}")
        if wanted.reverse is not None:
            backward = load(wanted.reverse, device=chosen)
            found.append(evaluation.turned(evaluation.aligned(backward, texts.references, texts.sources)))
    both = found[1] if len(found) > 1 else None
    return evaluation.alignment_of(found[0], golds, both, wanted.method)  # type: ignore[arg-type]


def _translate(run: Path, texts: Texts, beam: int, device: str, engine: str) -> list[str]:
    from regard.cli.progress import Lines
    from regard.device import pick_device
    from regard.evaluate import evaluate as evaluation
    from regard.tasks.load import load

    place = str(pick_device(device))
    translator = load(run, device=place, engine=engine, tell=say)
    return evaluation.translate(translator, texts.sources, beam=beam, progress=Lines("translated"))


def _write(path: Path, lines: list[str]) -> None:
    from regard.files import new_file

    with new_file(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def _comet(texts: Texts, outputs: list[str], model: str, device: str) -> list[Quality]:
    from regard.device import pick_device
    from regard.metrics.comet import comet

    gpus = int(pick_device(device).type == "cuda")
    return [comet(texts.sources, outputs, texts.references, model, gpus=gpus)]


def _as_dict(result: Evaluation, judged: list[Quality]) -> dict[str, Any]:
    shown = result.to_dict()
    shown["qualities"] += [asdict(quality) for quality in judged]
    return shown


def _show(result: Evaluation, judged: list[Quality], title: str, measures: Measures) -> None:
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
    _show_buckets(console, f"{name} by words of the source", result.lengths)
    if result.rarities:
        what = "of the rarest word" if measures.rarity == "rarest" else "of the words on average"
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


def _show_habits(console: Console, told: Habits) -> None:
    console.print("habits", style="bold")
    rows = (
        ("length", f"{told.length_ratio:.3f}", "of the reference's, in words"),
        ("repeated trigrams", f"{told.repeated:.1%}", f"{told.repeated_in_reference:.1%} in the reference"),
        ("copied sentences", f"{told.copied:.1%}", "the source as it was, though the reference is another"),
        ("untranslated words", f"{told.untranslated:.1%}", "of the output: in the source, not in the reference"),
        ("empty outputs", f"{told.empty:.1%}", ""),
    )
    for name, value, note in rows:
        console.print(f"  {name:20}{value:>8}  {note}".rstrip())


def _show_buckets(console: Console, title: str, buckets: list[Bucket]) -> None:
    console.print(title, style="bold")
    for bucket in buckets:
        shown = "too few" if bucket.quality is None else _score(bucket.quality)
        console.print(f"  {bucket.name:16}{bucket.count:8,} sentences  {shown}")


def _score(quality: Quality) -> str:
    digits = 4 if quality.name == "COMET" else 1
    margin = "" if quality.margin is None else f" ±{quality.margin:.{digits}f}"
    return f"{quality.score:.{digits}f}{margin}"
