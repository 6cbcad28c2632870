"""``regard faithful``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.streams import put, say, show, suffix_of, write_whole
from regard.cli.verb import called, common, only_one, with_settings
from regard.errors import SettingsError

if TYPE_CHECKING:
    from regard.explain.faithful import Faithfulness
    from regard.metrics.alignment import Gold

LIMIT = "measure.limit=50"
HEADS = ("faithfulness", "comprehens.", "sufficiency", "as masking", "redrawn", "AER", "riddles", "seconds")


def faithful(
    context: typer.Context,
    words: Annotated[list[str], with_settings("RUN", "A run folder.")],
    source: Annotated[Path, typer.Option(help="Texts, one a line (also .gz, .zst).")],
    target: Annotated[Path | None, typer.Option(help="Their translations; without, the run translates them.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write a page (.html).")] = None,
) -> None:
    """Measure which map is most faithful for a run: attention, masking, ALTI+, …; explain then shows it first.

    Uses 50 sentences unless measure.limit says otherwise, and of each at most eight output words.
    """
    from regard.cli.streams import LineCounter
    from regard.evaluate.faithful import faithful as measure
    from regard.show.faithful_page import faithful_page
    from regard.tasks.load import load_predictor

    overrides, name = only_one(words, "RUN")
    how, asked = called("faithful", [LIMIT, *overrides]).measure, common(context)
    if out is not None:
        suffix_of(out, (".html",))
    texts, golds = _texts(source, target, how.alignment)
    predictor = load_predictor(Path(name), asked.place)
    limited = f"the first {how.limit:,} of " if 0 < how.limit < len(texts) else ""
    say(f"measuring {limited}{len(texts):,} lines; nothing is saved until all are measured")
    found = measure(predictor, texts, golds, named=source.name, how=how, tell=LineCounter("measured", what="sentences"))
    assert predictor.run is not None
    found.save(predictor.run.cache)
    if out is not None:
        write_whole(out, faithful_page(found))
    if asked.json:
        put(found.to_json().decode())
        return
    show(lines_of(found))
    for line in remarks_on(found):
        say(line)


def _texts(source: Path, target: Path | None, alignment: str) -> tuple[list[tuple[str, str | None]], list[Gold] | None]:
    from regard.data.lines import read_lines
    from regard.evaluate.evaluate import read_alignments, read_texts

    if target is None:
        if alignment:
            raise SettingsError(f"measure.alignment = {alignment}: aligns given translations; give --target too")
        return [(line, None) for line in read_lines(source)], None
    texts = read_texts(source, target)
    golds = read_alignments(Path(alignment), texts) if alignment else None
    return list(zip(texts.sources, texts.references, strict=True)), golds


def lines_of(found: Faithfulness) -> list[str]:
    """A line for each method, the most faithful first."""
    from regard.show.faithful_page import figure

    shown = [
        (head, place)
        for place, head in enumerate(HEADS)
        if not (head == "AER" and found.aligner is None) and not (head == "riddles" and not found.methods[0].riddles)
    ]
    lines = [f"  {'':22}" + "".join(f"{head:>14}" for head, _ in shown)]
    for each in found.methods:
        figures = (
            *(each.faithfulness, each.comprehensiveness, each.sufficiency, each.agreement, each.redrawn),
            *(each.error_rate, each.riddles),
        )
        cells = [*map(figure, figures), f"{each.seconds:.2f}"]
        mark = "▸" if each.method == found.best else "≈" if each.as_good else " "
        lines.append(f"{mark} {each.method:22}" + "".join(f"{cells[place]:>14}" for _, place in shown))
    return lines


def remarks_on(found: Faithfulness) -> list[str]:
    """Remarks on the table."""
    from regard.show.faithful_page import figure

    lines = [
        f"{found.sentences} sentences, {found.words} words of {found.measured_on}; {found.left_out:,} lines left out"
    ]
    lines += [f"▸ {found.best}: {found.told}; explain shows it first; ≈ is not significantly different"]
    alike: dict[str, list[str]] = {}
    for each in found.methods:
        alike.setdefault(each.caution, []).append(each.method)
    lines += [
        f"caution, {'; '.join(methods)}: each {caution}" if methods[1:] else found.caution(methods[0])
        for caution, methods in alike.items()
        if caution
    ]
    if found.aligner is not None:
        better = f"those of {found.links} have fewer errors and are shown first" if found.links else "none has fewer"
        lines.append(f"the run's own links have an AER of {figure(found.aligner)}; {better}")
    lines += [f"{name}: not measured ({why})" for name, why in found.refused.items()]
    lines.append("± is half of the interval of 95 %; masking is favoured by this measure, docs/looking-inside.md")
    return lines
