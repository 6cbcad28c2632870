"""How good a run is, as parts of its page: scores, habits, by length, by rare words, by label."""

from __future__ import annotations

from regard.evaluate.run_report import RunReport
from regard.explain.heatmap import HeatMap
from regard.metrics import numbers
from regard.metrics.labels import Confusion
from regard.metrics.translation import Quality
from regard.show.buckets import bucket_parts
from regard.show.heatmap_svg import heat_svg
from regard.show.markup import Html, element, join
from regard.show.page import more, paragraph, scrolled, table

MOST_LABELS = 24  # in a confusion matrix
MOST_CONFUSED = 12  # pairs of labels


def scores_part(report: RunReport) -> list[Html]:
    rows = [[quality.name, numbers.score(quality.score), _interval(quality)] for quality in report.scores]
    shown: list[Html] = [table(["", "score", "95 % of resamples"], rows)]
    signatures = [element("code", {}, f"{one.name}|{one.signature}") for one in report.scores if one.signature]
    if signatures:
        shown.append(paragraph("note", "sacreBLEU signatures: ", join(signatures, " · ")))
    if report.habits is not None:
        shown.append(_habits(report))
    if report.test.milliseconds is not None:
        machine = f"{report.test.device}, {report.test.threads} thread{'s' if report.test.threads > 1 else ''}"
        each = f"{numbers.milliseconds(report.test.milliseconds)} ms a sentence, translated in batches"
        shown.append(paragraph("note", f"{each} ({machine})."))
    return shown


def _interval(quality: Quality) -> str:
    if quality.low is None or quality.high is None:
        return numbers.UNKNOWN
    return f"{quality.low:.1f} to {quality.high:.1f}"


def _habits(report: RunReport) -> Html:
    told = report.habits
    assert told is not None
    rows = [
        ["length", f"{told.length_ratio:.3f}", "words for each word of the reference"],
        [
            "repeated trigrams",
            numbers.percent(told.repeated),
            f"{numbers.percent(told.repeated_in_reference)} in the reference",
        ],
        ["copied sentences", numbers.percent(told.copied), "the source as it was, though the reference is another"],
        ["untranslated words", numbers.percent(told.untranslated), "in the source, not in the reference"],
        ["empty outputs", numbers.percent(told.empty), "though the reference has words"],
    ]
    return table(["habit", "", ""], rows, left=(2,))


def lengths_part(report: RunReport) -> list[Html]:
    if not report.lengths:
        return []
    rows = [(0, report.run.name, report.lengths)]
    return [*bucket_parts(rows, report.scores[0].name, "source length in words", "words", "source lengths")]


def rarities_part(report: RunReport) -> list[Html]:
    if report.habits is None:
        return []
    if not report.rarities:
        return [paragraph("note", f"Not measured: {report.counts}.")]
    rows = [(0, report.run.name, report.rarities)]
    label = "times that the training text has the source's rarest word"
    parts = bucket_parts(rows, report.scores[0].name, label, "times seen", "sentences")
    return [*parts, paragraph("note", f"Words are counted in {report.counts}.")]


def confusion_part(report: RunReport) -> list[Html]:
    if report.labels is None:
        return []
    confusion = report.labels.confusion
    shown = [_matrix(confusion), _mistakes(confusion), more(f"All {len(confusion.labels)} labels", _each(confusion))]
    unknown = report.labels.unknown
    if unknown is not None and unknown.count:
        rate = numbers.percent(unknown.accuracy)
        shown.append(
            paragraph("note", f"Of {unknown.count:,} words that the training text does not have: {rate} right.")
        )
    return shown


def _matrix(confusion: Confusion) -> Html:
    """The most frequent labels against one another, as shares of each row."""
    ordered = sorted(confusion.scores(), key=lambda score: -score.count)[:MOST_LABELS]
    names, counts = [score.label for score in ordered], dict(confusion.counts)
    values = tuple(
        tuple(counts.get((truth.label, guess), 0) / max(1, truth.count) for guess in names) for truth in ordered
    )
    rest = "" if len(ordered) == len(confusion.labels) else f", the {len(ordered)} most frequent labels"
    origin = f"row = truth, column = what was given{rest}"
    picture = HeatMap("confusion", tuple(names), tuple(names), values, origin, "truth", "given", unit="of the row")
    return scrolled(heat_svg(picture, caption=False), f"Share of each true label; {origin}.")


def _mistakes(confusion: Confusion) -> Html:
    wrong = sorted(((times, pair) for pair, times in confusion.counts if pair[0] != pair[1]), reverse=True)
    rows = [[truth, guess, f"{times:,}"] for times, (truth, guess) in wrong[:MOST_CONFUSED]]
    return table(["truth", "given", "times"], rows, "The most frequent mistakes", left=(1,))


def _each(confusion: Confusion) -> Html:
    rows = [
        [score.label, f"{score.count:,}", *(f"{100 * part:.1f}" for part in (score.precision, score.recall, score.f1))]
        for score in sorted(confusion.scores(), key=lambda score: -score.count)
    ]
    return table(["", "there", "precision", "recall", "F1"], rows)
