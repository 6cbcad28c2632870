"""The sentences of a report: which are shown, their links, attention and search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from torch import Tensor

from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.evaluate.run_report import Chosen, Look, ReportExample
from regard.explain.alignment import Attended, links_of_masking
from regard.explain.attribution import word_map
from regard.explain.beam import Searched, search_tree
from regard.explain.heatmap import HeatMap, reaching
from regard.explain.importance import most_faithful_picture
from regard.explain.look import WordLink
from regard.explain.trace import Trace, fold
from regard.metrics.translation import sentence_scores
from regard.tasks.translator import Translation, Translator, attends
from regard.text.words import space_words

RANDOM, WORST = 8, 6  # sentences shown
LOOKS = 3  # sentences looked into
MOST_WORDS = 25  # of a sentence that is looked into
MOST_PIECES = 60
SHORT = 12  # words of a sentence whose heads are surely all drawn
MOST_CELLS = 16_000  # of all small maps together: more would make a page too large
TREE_PIECES = 14  # of the source whose search is drawn
LONGEST = 100  # words of a sentence whose links are read
DIGITS = 5  # of weights as they are kept


def examples(
    translator: Translator,
    found: Sequence[Translation],
    references: Sequence[str],
    pins: Sequence[Translation],
    seed: int,
) -> tuple[ReportExample, ...]:
    """The pinned ones, some drawn with a seed, and the worst by chrF2, each source once; of worst alike, the seed
    decides."""
    scores = sentence_scores([each.text for each in found], references)
    drawn = Random(seed)
    chosen = sorted(drawn.sample(range(len(found)), min(RANDOM, len(found))))
    shuffled = drawn.sample(range(len(found)), len(found))
    worst: dict[str, int] = {}
    for place in sorted((row for row in shuffled if found[row].source.strip()), key=lambda row: scores[row]):
        worst.setdefault(found[place].source, place)
    known = {each.source: row for row, each in reversed(list(enumerate(found)))}
    kinds: list[tuple[Chosen, Translation, int | None]] = [
        *(("pinned", each, known.get(each.source)) for each in pins),
        *(("random", found[row], row) for row in chosen),
        *(("worst", found[row], row) for row in [*worst.values()][:WORST]),
    ]
    shown = []
    for kind, each, row in kinds:
        line, reference, score = (None, None, None) if row is None else (row + 1, references[row], scores[row])
        linked = _linked(translator, each)
        shown.append(ReportExample(kind, line, each.source, reference, each.text, score, each.log_probability, *linked))
    return tuple(shown)


def _linked(translator: Translator, one: Translation) -> tuple[tuple[str, ...], tuple[str, ...], tuple[WordLink, ...]]:
    """The words of both sides and the links between them, in order, over all parts of a long text."""
    sources: list[str] = []
    targets: list[str] = []
    links: list[WordLink] = []
    if len(one.source.split()) > LONGEST:
        return (), (), ()
    for part in one.outputs[0].parts:
        trace = translator.trace(part)
        for link in _links(translator, trace):
            links.append(WordLink(link.target + len(targets), link.source + len(sources), link.weight))
        sources += trace.source.words
        targets += trace.target.words
    written = space_words(one.source)  # a word may have been read in other capitals than it was written in
    sources = written if len(written) == len(sources) else sources
    ordered = sorted(links, key=lambda link: (link.target, link.source))
    return tuple(sources), tuple(targets), tuple(ordered)


def _links(translator: Translator, trace: Trace) -> list[WordLink]:
    """By the run's best aligner; without attention, by masking."""
    if not trace.layers("cross"):
        return [
            WordLink(target, source, None)
            for source, target in links_of_masking(translator.model, trace.source, trace.target)
        ]
    if not (trace.source.words and trace.target.words):
        return []
    aligner, pair = translator.aligner, Attended.of(trace)
    weights = aligner.weights(aligner.rows(pair).by_word)  # (T words, S words)
    return [
        WordLink(target, source, round(float(weights[target, source]), DIGITS))
        for source, target in aligner.align(pair)
    ]


def reading(translator: Translator) -> str:
    """How links are read, to stand beside them."""
    if attends(translator.model):
        return translator.aligner.describe()
    return "this model has no attention; links are to the source word whose masking lowers the probability most"


# From inside


def looks(translator: Translator, candidates: Sequence[Translation]) -> tuple[Look, ...]:
    """The first sentences that are not too long; the first short one of them, else the shortest, with all its heads."""
    fitting = [
        one
        for one in candidates
        if len(one.outputs[0].parts) == 1
        and one.text.strip()
        and len(one.source.split()) <= MOST_WORDS
        and len(one.outputs[0].parts[0].tokens) <= MOST_PIECES
    ]
    chosen = fitting[:LOOKS]
    longer = [max(0, len(one.source.split()) - SHORT) for one in chosen]
    return tuple(_look(translator, one, heads=place == longer.index(min(longer))) for place, one in enumerate(chosen))


def _look(translator: Translator, one: Translation, *, heads: bool) -> Look:
    trace = one.trace()
    looked = translator.explained(trace, one.text)
    first = most_faithful_picture(translator, looked)
    measured = () if first is None else (replace(first, values=_short(first.values)),)
    shown = bool(measured) and looked.measured is not None and looked.measured.best == "masking"
    masked = () if shown else (_masking(translator, trace),)
    if not trace.layers("cross"):
        return Look(one.source, one.text, (*measured, *masked, _gradient(translator, trace)))
    aligner = translator.aligner
    folded = fold(aligner.weights(aligner.rows(trace).cross), trace.target, trace.source)
    title, names = aligner.describe(), (folded.rows, folded.columns)
    attention = HeatMap(title, *names, _rounded(folded.weights), title, "source", sums=True)
    count = trace.cross.shape[0] * trace.cross.shape[1]
    return Look(
        one.source, one.text, (*measured, attention, *masked), _heads(trace) if heads and count > 1 else (), count
    )


def _masking(translator: Translator, trace: Trace) -> HeatMap:
    found = word_map(translator.model, trace.source, trace.target, special=True)
    title = "effect of masking each source word on the log-probability"
    return _effect(title, found.rows, found.columns, found.weights, "nats")


def _gradient(translator: Translator, trace: Trace) -> HeatMap:
    """Gradient × input, which needs no attention."""
    found = word_map(translator.model, trace.source, trace.target, "gradient", of="log-odds", special=True)
    return _effect("gradient × input", found.rows, found.columns, found.weights, "log-odds")


def _effect(title: str, rows: tuple[str, ...], columns: tuple[str, ...], weights: Tensor, unit: str) -> HeatMap:
    """Positive and negative effects, on a scale up to the largest."""
    values = _rounded(weights)
    return reaching(HeatMap(title, rows, columns, values, title, "source", "diverging", unit=unit))


def _heads(trace: Trace) -> tuple[HeatMap, ...]:
    """Every head of the cross-attention, or as many as there is room for."""
    folded = fold(trace.cross, trace.target, trace.source)
    layers, heads = folded.weights.shape[:2]
    names = ((layer, head, f"layer {layer + 1}, head {head + 1}") for layer in range(layers) for head in range(heads))
    return tuple(
        HeatMap(name, folded.rows, folded.columns, _rounded(folded.weights[layer, head]), name)
        for layer, head, name in names
    )[: max(1, MOST_CELLS // folded.weights[0, 0].numel())]


def _rounded(weights: Tensor) -> tuple[tuple[float, ...], ...]:
    return _short(weights.double().cpu().tolist())


def _short(rows: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(round(value, DIGITS) for value in row) for row in rows)


# The beam


def beam_tree(translator: Translator, candidates: Sequence[Translation], options: Options) -> Searched | None:
    """The search for the first sentence that is short enough; None where outputs are sampled."""
    if not isinstance(options.rule, Beam):
        return None
    for one in candidates:
        parts = one.outputs[0].parts
        if len(parts) == 1 and len(translator.tokenizers.source.encode(one.source)) <= TREE_PIECES:
            return search_tree(translator, one.source, options.rule, prefix=options.prefix, others=())
    return None
