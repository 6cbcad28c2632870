"""The page of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from regard.evaluate.comparison import LEVEL, Comparison, Conditions, Row, costs
from regard.metrics import numbers
from regard.metrics.paired import LOWER_IS_BETTER, Verdict, holm
from regard.show.page import groups, render, several
from regard.show.pictures import Chart, Point, Series, linear
from regard.show.sentences import wrong_words


def comparison_page(comparison: Comparison) -> str:
    """The whole page; sections without content are left out."""
    metric, rows = comparison.metrics[0], comparison.rows
    measured = [(number, row.name, row.lengths) for number, row in enumerate(rows) if row.lengths]
    tested = comparison.tested or [row.name for row in rows]
    known = [quality for row in rows for quality in row.scores if quality.signature]
    legend = [*comparison.legend(), f"{comparison.test_name()} resamples, p<{LEVEL}"]
    content = {
        "title": f"Regard: {', '.join(row.name for row in rows)}",
        "data": comparison.as_json(),
        "comparison": comparison,
        "metric": metric,
        "headline": headline(comparison),
        "machine": _machine(comparison.conditions),
        "scores": [_scores(comparison, row) for row in rows],
        "legend": legend if legend[1:] else [],
        "bars": _bars(comparison),
        "lengths": groups(measured, metric, "source length in words", "words", "source lengths") if measured else None,
        "tests": list(zip(comparison.verdicts, _adjusted(comparison.verdicts), strict=True)),
        "costs": [[*costs(row.cost), numbers.milliseconds(row.cost.alone)] for row in rows],
        "systems": [(number, row.name) for number, row in enumerate(rows) if row.name in tested],
        "signatures": dict.fromkeys(f"{quality.name}|{quality.signature}" for quality in known),
        "wrong_words": wrong_words,
    }
    return render("comparison.html", content)


def headline(comparison: Comparison) -> str:
    """The best run, and whether its lead is significant."""
    metric = comparison.metrics[0]
    scored = [(row.scores[0].score, row.name) for row in comparison.rows if row.scores]
    score, best = min(scored) if metric in LOWER_IS_BETTER else max(scored, key=lambda item: item[0])
    if tied := [name for other, name in scored if other == score and name != best]:
        return f"{several([best, *tied])} score the same: {metric} {score:.1f}."
    claim = f"{best} scores best: {metric} {score:.1f}"
    against = [
        verdict
        for verdict in comparison.verdicts
        if verdict.metric == metric and best in (verdict.first, verdict.second)
    ]
    if not against:
        return f"{claim}. Whether the difference is significant was not tested."
    doubtful = [verdict for verdict in against if verdict.bootstrap >= LEVEL]
    if doubtful:
        others = several([verdict.second if verdict.first == best else verdict.first for verdict in doubtful])
        smallest = min(verdict.bootstrap for verdict in doubtful)
        return f"{claim}, but its lead over {others} may be chance ({numbers.chance(smallest)})."
    largest = max(verdict.bootstrap for verdict in against)
    rest = "the other" if len(against) == 1 else f"each of the {len(against)} others"
    return f"{claim}, better than {rest} by more than chance would give ({numbers.chance(largest)})."


def _machine(facts: Conditions) -> str:
    return ", ".join([*facts.how, facts.device, f"{facts.threads} thread{'s' if facts.threads > 1 else ''}"])


def _scores(comparison: Comparison, row: Row) -> list[str]:
    """The first score, which runs it beats, and the other scores."""
    known = {quality.name: numbers.score(quality.score, quality.margin) for quality in row.scores}
    first, *rest = (known.get(name, numbers.UNKNOWN) for name in comparison.metrics)
    return [first, comparison.signs(row.name), *rest]


def _bars(comparison: Comparison) -> Chart:
    """The first score of every row."""
    metric = comparison.metrics[0]
    found = [(row.name, one) for row in comparison.rows for one in row.scores if one.name == metric]
    series = [Series(name, [Point(0, one.score, one.low, one.high)]) for name, one in found]
    axis = linear(metric, [end for _, one in found for end in (one.score, one.high) if end is not None], zero=True)
    spoken = f"{metric} of each: " + ", ".join(f"{name} {one.score:.1f}" for name, one in found)
    return Chart(spoken, series, y=axis, kind="bars")


def _adjusted(verdicts: Sequence[Verdict]) -> list[float]:
    """Holm's correction of the bootstrap, over the pairs of each score."""
    found: dict[int, float] = {}
    for metric in {verdict.metric for verdict in verdicts}:
        places = [place for place, verdict in enumerate(verdicts) if verdict.metric == metric]
        found |= dict(zip(places, holm([verdicts[place].bootstrap for place in places]), strict=True))
    return [found[place] for place in range(len(verdicts))]
