"""The page of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from regard.evaluate.comparison import LEVEL, Comparison, Conditions, Row, costs
from regard.metrics import numbers
from regard.metrics.differing import Differing
from regard.metrics.paired import LOWER_IS_BETTER, Verdict, holm
from regard.show import charts
from regard.show.buckets import bucket_parts
from regard.show.charts import Bar
from regard.show.markup import Html, element, join
from regard.show.page import figure, items, key, page, paragraph, section, sentence, table
from regard.show.sentences import wrong_words


def comparison_page(comparison: Comparison) -> str:
    """Everything on one page; what there is nothing to say about is left out."""
    names = ", ".join(row.name for row in comparison.rows)
    body = [
        element("h1", {}, f"Compared: {names}"),
        paragraph("lead", headline(comparison)),
        paragraph("note", _about(comparison)),
        _scores(comparison),
        *([_lengths(comparison)] if any(row.lengths for row in comparison.rows) else []),
        *([_tests(comparison)] if comparison.verdicts else []),
        _costs(comparison),
        *([_sentences(comparison)] if comparison.differing else []),
        _conditions(comparison),
    ]
    return page(f"Regard: {names}", body, comparison.as_json())


def headline(comparison: Comparison) -> str:
    """Who is best, and whether that can be told."""
    metric = comparison.metrics[0]
    scored = [(row.scores[0].score, row.name) for row in comparison.rows if row.scores]
    score, best = min(scored) if metric in LOWER_IS_BETTER else max(scored, key=lambda item: item[0])
    claim = f"{best} scores best: {metric} {score:.1f}"
    against = [
        verdict
        for verdict in comparison.verdicts
        if verdict.metric == metric and best in (verdict.first, verdict.second)
    ]
    if not against:
        return f"{claim}. Whether that is more than chance was not tested."
    doubtful = [verdict for verdict in against if verdict.bootstrap >= LEVEL]
    if doubtful:
        others = _and([verdict.second if verdict.first == best else verdict.first for verdict in doubtful])
        smallest = min(verdict.bootstrap for verdict in doubtful)
        return f"{claim}, but its lead over {others} may be chance ({numbers.chance(smallest)})."
    largest = max(verdict.bootstrap for verdict in against)
    rest = "the other" if len(against) == 1 else f"each of the {len(against)} others"
    return f"{claim}, better than {rest} by more than chance would give ({numbers.chance(largest)})."


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _about(comparison: Comparison) -> str:
    facts = comparison.conditions
    return f"{facts.sentences:,} sentences: {facts.data}. Measured with: {_machine(facts)}."


def _machine(facts: Conditions) -> str:
    beam = [] if facts.beam is None else [f"beam {facts.beam}"]
    return ", ".join([*beam, facts.device, f"{facts.threads} thread{'s' if facts.threads > 1 else ''}"])


def _name(number: int, row: Row) -> Html:
    return join([key(number), row.name])


def _scores(comparison: Comparison) -> Html:
    rows = []
    for number, row in enumerate(comparison.rows):
        shown = {quality.name: numbers.score(quality.score, quality.margin) for quality in row.scores}
        first, *rest = (shown.get(name, numbers.UNKNOWN) for name in comparison.metrics)
        rows.append([_name(number, row), first, comparison.signs(row.name), *rest])
    words = [*comparison.legend(), f"{comparison.test_name()} resamples, p<{LEVEL}"]
    legend = [paragraph("note", " · ".join(words))] if words[1:] else []
    metric = comparison.metrics[0]
    bars = [
        Bar(row.name, quality.score, quality.low, quality.high)
        for row in comparison.rows
        for quality in row.scores
        if quality.name == metric
    ]
    ends = [end for bar in bars for end in (bar.value, bar.high) if end is not None]
    axis = charts.linear(metric, ends, zero=True)
    spoken = f"{metric} of each: " + ", ".join(f"{bar.name} {bar.value:.1f}" for bar in bars)
    return section(
        "Scores",
        table(["", metric, "", *comparison.metrics[1:]], rows, left=(2,)),
        *legend,
        figure(
            lambda width: charts.bar_chart(bars, axis, title=spoken, width=width),
            f"{metric}; the whiskers are the interval that holds 95 % of the bootstrap resamples.",
        ),
    )


def _lengths(comparison: Comparison) -> Html:
    """The first score by source length."""
    rows = [(number, row.name, row.lengths) for number, row in enumerate(comparison.rows) if row.lengths]
    metric = comparison.metrics[0]
    parts = bucket_parts(rows, metric, "source length in words", "words", "source lengths")
    return section(f"{metric} by length", *parts)


def _tests(comparison: Comparison) -> Html:
    facts = comparison.conditions
    head = ["", "score", "difference", "p, bootstrap", "p, randomisation"]
    several = len(comparison.tested) > 2
    adjusted = _adjusted(comparison.verdicts)
    rows = []
    for verdict, corrected in zip(comparison.verdicts, adjusted, strict=True):
        cells = [f"{verdict.second} − {verdict.first}", verdict.metric, f"{verdict.difference:+.2f}".replace("-", "−")]
        cells += [f"{verdict.bootstrap:.4f}", f"{verdict.randomisation:.4f}"]
        rows.append([*cells, f"{corrected:.4f}"] if several else cells)
    words = (
        "How often chance alone would give a difference as large as the one seen: sacreBLEU's paired bootstrap "
        f"({facts.resamples:,} resamples) and paired approximate randomisation ({facts.trials:,} trials), seed "
        f"{facts.seed}. "
    )
    many = (
        "With several pairs some will look significant by luck; the last column is the bootstrap's p with Holm's "
        "correction for the number of pairs. "
    )
    return section(
        "Paired tests",
        table([*head, "p, Holm"] if several else head, rows),
        paragraph("note", words, many if several else ""),
    )


def _adjusted(verdicts: Sequence[Verdict]) -> list[float]:
    """Holm's correction of the bootstrap, over the pairs of each score."""
    found: dict[int, float] = {}
    for metric in {verdict.metric for verdict in verdicts}:
        places = [place for place, verdict in enumerate(verdicts) if verdict.metric == metric]
        found |= dict(zip(places, holm([verdicts[place].bootstrap for place in places]), strict=True))
    return [found[place] for place in range(len(verdicts))]


def _costs(comparison: Comparison) -> Html:
    facts = comparison.conditions
    head = ["", "parameters", "training time", "training tokens/s", "ms/sentence", "ms, one alone"]
    rows = [
        [_name(number, row), *costs(row.cost), numbers.milliseconds(row.cost.alone)]
        for number, row in enumerate(comparison.rows)
    ]
    return section(
        "Cost",
        table(head, rows),
        paragraph(
            "note",
            "Training time and speed are from each run's own log: its target tokens over its whole training, without "
            "validation, on the machine it was trained on. Milliseconds are measured here, in one process, the "
            f"systems taking turns ({_machine(facts)}): with the test taken in batches, and as the median of sentences "
            "taken one by one.",
        ),
    )


def _sentences(comparison: Comparison) -> Html:
    systems = list(comparison.tested) or [row.name for row in comparison.rows]
    keys = {row.name: number for number, row in enumerate(comparison.rows)}
    cards = [_card(one, [(keys[name], name) for name in systems]) for one in comparison.differing]
    note = (
        "By the distance between the best and the worst chrF2 of the sentence alone, which stands beside each. "
        "Marked words are not in the reference at that place."
    )
    return section("Where they differ most", paragraph("note", note), *cards)


def _card(one: Differing, systems: Sequence[tuple[int, str]]) -> Html:
    lines = [(f"line {one.line:,}", sentence(one.source)), ("reference", sentence(one.reference))]
    inside = [part for name, words in lines for part in (element("dt", {}, name), element("dd", {}, words))]
    return element("div", {"class": "card"}, element("dl", {}, *inside, *_outputs(one, systems)))


def _outputs(one: Differing, systems: Sequence[tuple[int, str]]) -> list[Html]:
    shown: list[Html] = []
    for (number, name), words, score in zip(systems, one.outputs, one.scores, strict=True):
        shown.append(element("dt", {}, key(number), f"{name} {score:.0f}"))
        shown.append(element("dd", {}, sentence(words, wrong_words(words, one.reference)) if words else "(nothing)"))
    return shown


def _conditions(comparison: Comparison) -> Html:
    facts = comparison.conditions
    signatures = dict.fromkeys(
        f"{quality.name}|{quality.signature}" for row in comparison.rows for quality in row.scores if quality.signature
    )
    lines: list[str] = [join(["signature: ", element("code", {}, signature)]) for signature in signatures]
    lines += [f"{row.name}: {row.origin}" for row in comparison.rows if row.origin]
    lines.append(join([f"test: {facts.data}; SHA-256 of its text ", element("code", {}, facts.sha256)]))
    lines.append("versions: " + ", ".join(f"{name} {version}" for name, version in facts.versions.items()))
    lines.append(
        "limits: one test set says nothing about other kinds of text, and a higher score nothing about meaning."
    )
    return section("How this was measured", items(*lines))
