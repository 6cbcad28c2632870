"""``regard score``"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.bulk import ON, SHARD, bulk, fingerprint, located
from regard.cli.streams import destination, keep_inputs, one_line, put, say
from regard.cli.verb import called, common, only_one, with_settings

if TYPE_CHECKING:
    from regard.data.blocks import Block, Done, Work


def score(
    context: typer.Context,
    words: Annotated[list[str], with_settings("RUN", "A run folder.")],
    source: Annotated[Path, typer.Option(help="Texts, one a line (also .gz, .zst).")],
    target: Annotated[Path, typer.Option(help="The translations to score, line by line.")],
    out: Annotated[Path | None, typer.Option(help="Write the lines here, whole or not at all; - is stdout.")] = None,
    shard: Annotated[str, typer.Option(metavar="I/N", help=SHARD)] = "",
    on: Annotated[str, typer.Option(help=ON)] = "",
) -> None:
    """Log-probabilities (natural) of given translations, a line a pair; --json: of each piece."""
    from regard.cli.streams import LineCounter
    from regard.evaluate import evaluate as evaluation
    from regard.nn.fast.allocator import remember_few_shapes
    from regard.tasks.load import load

    overrides, name = only_one(words, "RUN")
    how, asked = called("score", overrides).bulk, common(context)
    keep_inputs(out, source, target)
    rows = _pairs(source, target)
    if shard or on:
        work = Scoring(located(Path(name)), asked.device if on else asked.place, json=asked.json)
        merged = bulk(rows, out, work.about(), work, shard=shard, on=on, how=how, device=work.device)
        if notes := list(merged or ()):
            _say_sums(*(sum(note[name] for note in notes) for name in _SUMMED), as_json=asked.json)
        return
    remember_few_shapes()
    translator = load(Path(name), device=asked.place)
    told = LineCounter("scored")
    lines, pieces, total = 0, 0, 0.0
    with destination(out) as write:
        for scored in evaluation.score(translator, rows):
            lines, pieces, total = lines + 1, pieces + len(scored), total + sum(value for _, value in scored)
            write(_line(lines, scored, as_json=asked.json))
            if lines % evaluation.CHUNK == 0:
                told(lines)
    _say_sums(lines, pieces, total, as_json=asked.json)


def _pairs(source: Path, target: Path) -> Iterator[tuple[str, ...]]:
    """The rows of two files; at least one."""
    from regard.data.encoding import PairEncoder
    from regard.data.readers import Corpus
    from regard.errors import DataError

    rows = (row for _, row in Corpus((str(source), str(target))).rows(PairEncoder.names))
    first = next(rows, None)
    if first is None:
        raise DataError(f"{source}: is empty; give at least one sentence")
    yield first
    yield from rows


_SUMMED = ("lines", "pieces", "log_probability")


def _say_sums(lines: int, pieces: int, total: float, *, as_json: bool) -> None:
    mean = total / pieces
    if as_json:
        sums = dict(zip(_SUMMED, (lines, pieces, total), strict=True))
        print(json.dumps({**sums, "mean": mean, "perplexity": math.exp(-mean)}))
    print(
        f"lines {lines:,}, pieces with <end> {pieces:,}, log-probability {total:,.2f}, "
        f"a piece {mean:.4f}, perplexity a piece {math.exp(-mean):,.3f}",
        file=sys.stderr,
    )


def _line(number: int, scored: list[tuple[str, float]], *, as_json: bool) -> str:
    found = sum(value for _, value in scored)
    if not as_json:
        return f"{found:.4f}"
    tokens = [{"piece": piece, "log_probability": value} for piece, value in scored]
    row = {"line": number, "log_probability": found, "pieces": len(scored), "tokens": tokens}
    return json.dumps(row, ensure_ascii=False)


@dataclass(frozen=True)
class Scoring:
    """What is to be done to the pairs of two files, wherever that is."""

    run: Path
    device: str
    json: bool

    def about(self) -> dict[str, Any]:
        """What the output depends on."""
        return {"verb": "score", "weights": [fingerprint(self.run)], "json": self.json, "sums": True}

    def __call__(self, opening: Sequence[tuple[str, ...]]) -> Work:
        """Load the run; nothing depends on the first lines of the files."""
        from regard.data.blocks import Done
        from regard.device import pick_device
        from regard.evaluate import evaluate as evaluation
        from regard.tasks.load import load

        del opening
        translator = load(self.run, device=str(pick_device(self.device)))

        def work(block: Block) -> Done:
            lines, pieces, total = list[str](), 0, 0.0
            found = evaluation.score(translator, block.rows, first=block.first)
            for number, scored in enumerate(found, start=block.first + 1):
                lines.append(f"{_line(number, scored, as_json=self.json)}\n")
                pieces, total = pieces + len(scored), total + sum(value for _, value in scored)
            sums = zip(_SUMMED, (len(lines), pieces, total), strict=True)
            return Done("".join(lines).encode("utf-8", "surrogatepass"), dict(sums))

        return work


# ``regard doubt``


def doubt(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    source: Annotated[Path, typer.Option(help="Texts, one a line (also .gz, .zst).")],
    target: Annotated[Path | None, typer.Option(help="Their translations; without, the run translates them.")] = None,
) -> None:
    """Sort a corpus by the doubt of its translations, highest first: doubt, line, source, target, reasons."""
    from regard.cli.streams import LineCounter
    from regard.data.lines import read_lines
    from regard.data.readers import Corpus
    from regard.errors import DataError
    from regard.evaluate.evaluate import doubted
    from regard.tasks.load import load

    asked = common(context)
    translator = load(run, device=asked.place)
    rows: Iterable[tuple[str, str | None]]
    if target is None:
        rows = ((line, None) for line in read_lines(source))
    else:
        rows = ((row[0], row[1]) for _, row in Corpus((str(source), str(target))).rows(("source", "target")))
    lines = count()
    found = doubted(translator, (row for row, _ in zip(rows, lines, strict=False)), LineCounter("replayed"))
    if not found:
        raise DataError(f"{source}: has no sentence; give at least one")
    if left_out := next(lines) - len(found):
        say(f"{left_out:,} {'line was' if left_out == 1 else 'lines were'} left out: nothing to read or to write there")
    for number, read, written, each in found:
        if asked.json:
            about = {"line": number, "source": read, "target": written, "doubt": asdict(each)}
            put(json.dumps(about, ensure_ascii=False))
        else:
            value = "" if each.value is None else f"{each.value:.4f}"
            texts = (one_line(text).replace("\t", " ") for text in (read, written))
            put("\t".join((value, str(number), *texts, "; ".join(each.reasons))))
