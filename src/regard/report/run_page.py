"""The page of one run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from regard.measure.labels import Confusion
from regard.measure.translation import Quality
from regard.report import charts, heatmap_svg, numbers, sentences, tree
from regard.report.beam import drawing
from regard.report.buckets import bucket_parts
from regard.report.charts import Axis, Point, Series
from regard.report.heatmap import HeatMap, reaching
from regard.report.heatmap_svg import heat_svg, multiples_svg
from regard.report.markup import Html, element, join
from regard.report.page import figure, items, more, page, paragraph, section, sentence, table, verbatim
from regard.report.run_report import Example, Look, Map, RunReport
from regard.report.verdict import Finding, headline, verdict

MOST_LABELS = 24  # in a confusion matrix
MOST_CONFUSED = 12  # pairs of labels
LONGEST = 600  # characters of a sentence that are shown
GROUPS = {"pinned": "Pinned", "random": "Drawn at random", "worst": "Worst"}

STYLE = """
:root{--lit:#cfe6fb}
@media (prefers-color-scheme:dark){:root{--lit:#1d4a72}}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:0;margin:1rem 0 0;font-size:.9rem}
nav a{display:inline-block;padding:.2rem 0}
.verdict{list-style:none;padding:0;max-width:46rem}
.verdict li{display:grid;grid-template-columns:1.6rem 1fr;padding:.3rem 0;border-bottom:1px solid var(--grid)}
.verdict .sign{font-weight:700;text-align:center}
.verdict .bad .sign{color:var(--s1)}.verdict .good .sign{color:var(--s2)}.verdict .open .sign{color:var(--s0)}
.verdict .note{display:block;overflow-wrap:anywhere}
h3{font-size:1rem;margin:1.6rem 0 .3rem}
.missing{background:none;border-bottom:2px dotted var(--under)}
.card p{margin:.25rem 0}.card details{margin:0}
.maps{display:flex;flex-wrap:wrap;gap:0 2rem;align-items:flex-start}.maps figure{max-width:100%;min-width:0}
.maps figcaption{max-width:22rem}
.scroll>svg{max-width:none}
@media print{:root{--lit:#fff}nav,details.screen{display:none}.scroll>svg{max-width:100%;height:auto}}
"""


def run_page(report: RunReport) -> str:
    """Everything on one page; what there is nothing to say about is left out."""
    parts = [
        ("learning", "Learning", _learning(report)),
        ("scores", "Scores", _scores(report)),
        ("length", "By length", _lengths(report)),
        ("rarity", "By rare words", _rarities(report)),
        ("confusion", "Confusion", _confusion(report)),
        ("sentences", "Sentences", _sentences(report)),
        ("inside", "From inside", _inside(report)),
        ("beam", "The beam", _beam(report)),
        ("corpus", "Corpus", _corpus(report)),
        ("again", "Do it again", _recipe(report)),
        ("limits", "Limits", [items(*limits(report))]),
    ]
    kept = [(name, title, children) for name, title, children in parts if children]
    body = [
        element("h1", {}, headline(report)),
        paragraph("lead", _lead(report)),
        paragraph("note", _about(report)),
        _verdict(verdict(report)),
        _contents([(name, title) for name, title, _ in kept]),
        *(section(title, *children, name=name) for name, title, children in kept),
    ]
    longest = max((len(one.target_words) for one in report.examples), default=0)
    style = f"{heatmap_svg.STYLE}{tree.STYLE}{sentences.STYLE}{STYLE}{sentences.lighting(longest)}"
    return page(f"Regard: {report.run.name}", body, report.as_json(), style=style)


def _lead(report: RunReport) -> str:
    test, what = report.test, "sentences" if report.run.task == "translate" else "texts"
    beam = "" if test.beam is None else f", beam {test.beam}"
    return f"{report.run.architecture}, on {test.sentences:,} {what} ({test.name}{beam})."


def _about(report: RunReport) -> str:
    run, spent = report.run, report.learning.seconds
    size = f"{numbers.count(run.parameters)} parameters, {run.steps:,} steps"
    time = "" if spent is None else f" in {numbers.duration(spent)}"
    about = f" Settings: {run.about.rstrip('.')}." if run.about else ""
    return f"Task {run.task}; {size}{time}; weights of {run.checkpoint}.{about}"


def _verdict(findings: Sequence[Finding]) -> Html:
    """Claims, each with its numbers."""
    tones = {"good": "good", "bad": "bad", "open": "worth knowing"}
    rows = [
        element(
            "li",
            {"class": one.tone},
            element("span", {"class": "sign", "role": "img", "aria-label": tones[one.tone]}, one.sign),
            element("span", {}, element("strong", {}, one.claim), element("span", {"class": "note"}, one.evidence)),
        )
        for one in findings
    ]
    return element("ul", {"class": "verdict"}, *rows)


def _contents(names: Sequence[tuple[str, str]]) -> Html:
    links = [element("li", {}, element("a", {"href": f"#{name}"}, title)) for name, title in names]
    return element("nav", {"aria-label": "Contents"}, element("ul", {}, *links))


# How it learned


def _learning(report: RunReport) -> list[Html]:
    learned = report.learning
    if not learned.moments and not learned.validations:
        return []
    losses = [
        ("training", [(one.step, one.loss) for one in learned.moments]),
        ("validation", [(one.step, one.loss) for one in learned.validations]),
    ]
    shown = [_curves([curve for curve in losses if curve[1]], "loss per prediction, in nats", "Loss by training step.")]
    shown.append(paragraph("note", _smoothing(report)))
    if len(learned.validations) > 1:
        scored = [(one.step, one.score) for one in learned.validations]
        name = learned.score or "score"
        shown.append(_curves([(name, scored)], name, f"{name} of the validation text, as the training measured it."))
    pace = [
        _curves([(name, values)], name, caption)
        for name, values, caption in (
            (
                "gradient norm",
                [(one.step, one.norm) for one in learned.moments],
                "Gradient norm before clipping.",
            ),
            ("rate", [(one.step, one.rate) for one in learned.moments], "Learning rate."),
        )
        if values
    ]
    return [*shown, more("Gradient norm and learning rate", *pace)] if pace else shown


def _smoothing(report: RunReport) -> str:
    return (
        "The training loss is the one that was minimised, with label smoothing and dropout where there are any; the "
        f"validation loss has neither. At most {len(report.learning.moments)} points, each a mean over the steps since "
        "the one before."
    )


def _curves(curves: Sequence[tuple[str, Sequence[tuple[int, float]]]], label: str, caption: str) -> Html:
    """Lines over steps; on a scale of powers of ten where values spread over more than one of them."""
    values = [value for _, points in curves for _, value in points if math.isfinite(value)]
    steep = bool(values) and min(values) > 0 and max(values) / min(values) > 10
    y = charts.logarithmic(label, values) if steep else charts.linear(label, values)
    heights = {name: [Point(step, _height(value, steep=steep)) for step, value in points] for name, points in curves}
    series = [Series(name, points) for name, points in heights.items()]
    steps = [step for _, points in curves for step, _ in points]
    last = ", ".join(f"{name} {points[-1][1]:.3g} at step {points[-1][0]:,}" for name, points in curves)
    draw = _line(series, charts.linear("step", steps, zero=True), y, f"{caption} At the end: {last}.")
    return figure(draw, f"{caption} At the end: {last}.")


def _height(value: float, *, steep: bool) -> float | None:
    if not math.isfinite(value):
        return None
    return math.log10(value) if steep else value


def _line(series: Sequence[Series], x: Axis, y: Axis, spoken: str) -> Callable[[int], Html]:
    return lambda width: charts.line_chart(series, x, y, title=spoken, width=width)


# How good it is


def _scores(report: RunReport) -> list[Html]:
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
        ["repeated trigrams", _percent(told.repeated), f"{_percent(told.repeated_in_reference)} in the reference"],
        ["copied sentences", _percent(told.copied), "the source as it was, though the reference is another"],
        ["untranslated words", _percent(told.untranslated), "in the source, not in the reference"],
        ["empty outputs", _percent(told.empty), "though the reference has words"],
    ]
    return table(["habit", "", ""], rows, left=(2,))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _lengths(report: RunReport) -> list[Html]:
    if not report.lengths:
        return []
    rows = [(0, report.run.name, report.lengths)]
    return [*bucket_parts(rows, report.scores[0].name, "source length in words", "words", "source lengths")]


def _rarities(report: RunReport) -> list[Html]:
    if report.habits is None:
        return []
    if not report.rarities:
        return [paragraph("note", f"Not measured: {report.counts}.")]
    rows = [(0, report.run.name, report.rarities)]
    label = "times that the training text has the source's rarest word"
    parts = bucket_parts(rows, report.scores[0].name, label, "times seen", "sentences")
    return [*parts, paragraph("note", f"Words are counted in {report.counts}.")]


# Labels


def _confusion(report: RunReport) -> list[Html]:
    if report.labels is None:
        return []
    confusion = report.labels.confusion
    shown = [_matrix(confusion), _mistakes(confusion), more(f"All {len(confusion.labels)} labels", _each(confusion))]
    unknown = report.labels.unknown
    if unknown is not None and unknown.count:
        rate = _percent(unknown.accuracy)
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
    return _drawing(heat_svg(picture, caption=False), f"Share of each true label; {origin}.")


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


# Sentences


def _sentences(report: RunReport) -> list[Html]:
    if not report.examples:
        return []
    shown = [
        paragraph(
            "note",
            "Point at a word, or touch it, and the words it belongs to light up. Marked words of an output are "
            "not in the reference at that place; words of a reference with dots below are missing in the output. "
            f"Links: {report.links}.",
        )
    ]
    for kind, group in groupby(report.examples, key=lambda one: one.chosen):
        shown += [element("h3", {}, _group_title(kind, report)), *(_card(one) for one in group)]
    return shown


def _group_title(kind: str, report: RunReport) -> str:
    seed = f", seed {report.test.seed}" if kind == "random" else ""
    return f"{GROUPS[kind]}{seed}{', by chrF2 of the sentence alone' if kind == 'worst' else ''}"


def _card(one: Example) -> Html:
    linked = bool(one.links)
    lines = [("source", sentences.linked_source(one) if linked else _text(one.source))]
    if one.reference is not None:
        missing = sentences.wrong_words(one.reference, one.output)
        shown = _text(one.reference) if len(one.reference) > LONGEST else sentence(one.reference, missing, "missing")
        lines.append(("reference", shown))
    if linked:
        lines.append(("output", sentences.linked_output(one)))
    elif one.output:
        wrong = sentences.wrong_words(one.output, one.reference) if one.reference is not None else []
        lines.append(("output", sentence(one.output, wrong) if len(one.output) <= LONGEST else _text(one.output)))
    else:
        lines.append(("output", Html("(nothing)")))
    inside = [part for name, words in lines for part in (element("dt", {}, name), element("dd", {}, words))]
    below = [more("in words", sentences.in_words(one))] if linked else []
    return element("div", {"class": "card pair"}, element("dl", {}, *inside), paragraph("note", _facts(one)), *below)


def _text(words: str) -> Html:
    return sentence(words if len(words) <= LONGEST else words[:LONGEST].rstrip() + " …")


def _facts(one: Example) -> str:
    facts = [] if one.line is None else [f"line {one.line:,}"]
    facts += [] if one.score is None else [f"chrF2 {one.score:.0f}"]
    return " · ".join([*facts, f"log-probability {tree.number(one.log_probability)}"])


# From inside


def _inside(report: RunReport) -> list[Html]:
    shown: list[Html] = []
    for number, look in enumerate(report.looks):
        drawn = list(_look(look))
        shown += drawn if number == 0 else [more(look.source, *drawn)]
    if not shown:
        return []
    words = (
        "A row is what the model looked at when it wrote that word; attention says where it looked, the effect of "
        "masking what it needed. They need not agree."
    )
    silent = (
        "This model has no attention: the encoder's last state is all the decoder gets. What is shown instead is how "
    )
    other = f"{silent}much each source word matters, by masking it and by the gradient."
    return [paragraph("note", words if _attends(report) else other), *shown]


def _attends(report: RunReport) -> bool:
    return any(one.kind == "attention" for look in report.looks for one in look.maps)


def _look(look: Look) -> Iterator[Html]:
    yield element("h3", {}, sentence(look.source), " → ", sentence(look.output))
    drawn = [_drawing(heat_svg(_picture(one), caption=False, width=640), _sentence(one.title)) for one in look.maps]
    yield element("div", {"class": "maps"}, *drawn)
    if look.heads:
        grid = [list(group) for _, group in groupby(map(_thumb, look.heads), key=lambda one: one.title.split(",")[0])]
        drawn_heads = len(look.heads)
        every = f"All {drawn_heads}" if drawn_heads == look.of_heads else f"{drawn_heads} of {look.of_heads}"
        title = f"{every} heads of the cross-attention, a layer a line"
        yield more(title, _drawing(multiples_svg(grid, title=title), "Rows and columns as above."))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _picture(one: Map) -> HeatMap:
    """Weights end at 1; effects end at the largest."""
    if one.kind == "attention":
        return HeatMap(one.title, one.rows, one.columns, one.values, one.title, "output", "source", sums=True)
    names = one.title, "output", "source"
    return reaching(HeatMap(one.title, one.rows, one.columns, one.values, *names, "diverging", unit=one.unit))


def _thumb(one: Map) -> HeatMap:
    return HeatMap(one.title, one.rows, one.columns, one.values, one.title)


def _drawing(svg: Html, caption: str) -> Html:
    """A picture that keeps its size and scrolls by itself where it is too wide."""
    words = element("figcaption", {"class": "note"}, caption)
    return element("figure", {}, element("div", {"class": "scroll", "tabindex": 0}, svg), words)


def _beam(report: RunReport) -> list[Html]:
    one = report.tree
    if one is None:
        return []
    return [
        paragraph("", sentence(one.source), " → ", sentence(one.output), f", beam {one.beam}"),
        drawing(one),
    ]


# Where it comes from


def _corpus(report: RunReport) -> list[Html]:
    card = report.corpus
    if card.rows is None:
        return [paragraph("", f"Trained on: {card.name}. The encoded text is no longer in the run.")]
    checked = "" if card.validation_rows is None else f", {card.validation_rows:,} for validation"
    head = ["", "pieces", "mean", "median", "longest", "vocabulary", "unknown"]
    rows = [
        [
            side.name,
            f"{side.tokens:,}",
            f"{side.mean:.1f}",
            f"{side.median:,}",
            f"{side.longest:,}",
            f"{side.vocabulary:,}",
            _percent(side.unknown),
        ]
        for side in card.sides
    ]
    return [
        paragraph("", f"{card.rows:,} rows{checked}: {card.name}. Tokenizer: {card.tokenizer}."),
        table(head, rows),
        paragraph("note", "Pieces of the training text as the model reads them; mean, median, longest: of a row."),
    ]


def _recipe(report: RunReport) -> list[Html]:
    recipe = report.recipe
    hashes = [[name, element("code", {}, value)] for name, value in recipe.hashes.items()]
    known = ", ".join(f"{name} {version}" for name, version in recipe.versions.items())
    return [
        paragraph("", "The first command trains again from the settings below; the second makes this page."),
        verbatim("\n".join(recipe.commands)),
        items(
            f"seed of the training: {recipe.seed}; of the tests and drawings: {report.test.seed}",
            f"versions: {known}",
            f"run folder: {report.run.folder}, {report.run.checkpoint}",
        ),
        more("Settings, as resolved", verbatim(recipe.settings)),
        more("SHA-256", table(["", "hash"], hashes, left=(1,))),
    ]


def limits(report: RunReport) -> list[str]:
    """What these numbers do not say."""
    said = ["One test says nothing about other kinds of text, and one training nothing about other seeds."]
    if not report.test.held_out:
        said.append("By this text the best checkpoint was chosen, so that the scores flatter.")
    if "built-in corpus" in report.corpus.name:
        said.append("The built-in corpus is made by rules: scores on it are higher than on what people write.")
    if report.run.task == "translate":
        said += [
            "BLEU and chrF count what is like the reference; a good translation in other words scores low.",
            "Scores of groups by length or rarity are of different sentences: compare a group between runs, rather "
            "than groups of one run.",
        ]
    if _attends(report):
        said.append("Attention is where the model looked, which need not be what decided.")
    if report.tokenised >= 100:
        said.append(f"{report.tokenised:,} outputs end in ' .': is the text tokenised? Scores expect it as written.")
    if report.run.task == "language":
        said.append("Perplexities compare only where the text is the same; those per byte also between tokenizers.")
    return said
