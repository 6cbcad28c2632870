"""The page of one run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from regard.evaluate.run_report import Look, ReportExample, RunReport, headline, verdict
from regard.explain.heatmap import HeatMap
from regard.metrics.labels import Confusion
from regard.show.page import groups, render, sentence
from regard.show.page import search_section as search
from regard.show.pictures import Chart, Grid, Point, Series, linear, logarithmic
from regard.show.sentences import lighting, linked_output, linked_source, notes, wrong_words

MOST_LABELS = 24  # in a confusion matrix
MOST_CONFUSED = 12  # pairs of labels
LONGEST = 600  # characters of a sentence that are shown


def run_page(report: RunReport) -> str:
    """The whole page; sections without content are left out."""
    parts = (
        ("learning", "Learning", report.learning.moments or report.learning.validations),
        ("scores", "Scores", True),
        ("length", "By length", report.lengths),
        ("rarity", "By rare words", report.habits is not None),
        ("confusion", "Confusion", report.confusions),
        ("sentences", "Sentences", report.examples),
        ("inside", "Inside the model", report.looks),
        ("beam", "The beam", report.tree is not None),
        ("corpus", "Corpus", True),
        ("again", "How to reproduce it", True),
        ("limits", "Limits", True),
    )
    metric, name = report.scores[0].name, report.run.name
    rare = "times that the training text has the source's rarest word"
    lengths, rarities = [(0, name, report.lengths)], [(0, name, report.rarities)]
    content = {
        "title": f"Regard: {name}",
        "data": report.as_json(),
        "report": report,
        "headline": headline(report),
        "verdict": verdict(report),
        "parts": [(part, title) for part, title, there in parts if there],
        "curves": dict(curves(report)),
        "lengths": groups(lengths, metric, "source length in words", "words", "source lengths"),
        "rarities": groups(rarities, metric, rare, "times seen", "sentences"),
        "confusion": confusion(report.confusions[0]) if report.confusions else None,
        "examples": groupby(report.examples, key=lambda one: one.chosen),
        "card": card,
        "lighting": lighting(max((len(one.target_words) for one in report.examples), default=0)),
        "attends": attends(report),
        "heads": heads,
        "search": search(report.tree) if report.tree else None,
        "limits": limits(report),
    }
    return render("run.html", content)


def attends(report: RunReport) -> bool:
    """Whether there is attention to look at."""
    return any(one.scale == "sequential" for look in report.looks for one in look.maps)


# How it learned


def curves(report: RunReport) -> Iterator[tuple[str, tuple[Chart, str]]]:
    """The charts of the run's log by name, with their captions."""
    learned = report.learning
    score = learned.score or "score"
    general = [one for one in learned.validations if one.general_loss is not None]
    losses = {
        "training": [(one.step, one.loss) for one in learned.moments],
        "validation": [(one.step, one.loss) for one in learned.validations],
        "general test": [(one.step, one.general_loss or 0.0) for one in general],
    }
    since = losses["general test"]
    kept = f" On the general test it changed by {since[-1][1] - since[0][1]:+.3f}." if len(since) > 1 else ""
    yield "loss", _curves(losses, "loss per prediction, in nats", f"Loss by training step.{kept}")
    if len(learned.validations) > 1:
        scored = {score: [(one.step, one.score) for one in learned.validations]}
        scored["general test"] = [(one.step, one.general_score or 0.0) for one in general]
        yield "score", _curves(scored, score, f"{score} of the validation text, as the training measured it.")
    if learned.moments:
        norms = {"gradient norm": [(one.step, one.norm) for one in learned.moments]}
        yield "norm", _curves(norms, "gradient norm", "Gradient norm before clipping.")
        rates = {"rate": [(one.step, one.rate) for one in learned.moments]}
        yield "rate", _curves(rates, "rate", "Learning rate.")


def _curves(curves: Mapping[str, Sequence[tuple[int, float]]], label: str, caption: str) -> tuple[Chart, str]:
    """Lines over steps; on a logarithmic scale if values span more than a factor of ten."""
    there = {name: points for name, points in curves.items() if points}
    values = [value for points in there.values() for _, value in points if math.isfinite(value)]
    steep = bool(values) and min(values) > 0 and max(values) / min(values) > 10
    series = [
        Series(name, [Point(step, _height(value, steep=steep)) for step, value in points])
        for name, points in there.items()
    ]
    steps = [step for points in there.values() for step, _ in points]
    y = logarithmic(label, values) if steep else linear(label, values)
    last = ", ".join(f"{name} {points[-1][1]:.3g} at step {points[-1][0]:,}" for name, points in there.items())
    told = f"{caption} At the end: {last}."
    return Chart(told, series, linear("step", steps, zero=True), y), told


def _height(value: float, *, steep: bool) -> float | None:
    if not math.isfinite(value):
        return None
    return math.log10(value) if steep else value


# What it gets wrong


def confusion(found: Confusion) -> dict[str, Any]:
    """The confusion matrix of the most frequent labels, and the most frequent mistakes."""
    scores = sorted(found.scores(), key=lambda score: -score.count)
    ordered, counts = scores[:MOST_LABELS], dict(found.counts)
    names = tuple(score.label for score in ordered)
    values = tuple(
        tuple(counts.get((truth.label, guess), 0) / max(1, truth.count) for guess in names) for truth in ordered
    )
    rest = "" if len(ordered) == len(scores) else f", the {len(ordered)} most frequent labels"
    origin = f"row = truth, column = what was given{rest}"
    wrong = sorted(((times, pair) for pair, times in found.counts if pair[0] != pair[1]), reverse=True)
    return {
        "matrix": HeatMap("confusion", names, names, values, origin, "given", unit="of the row"),
        "mistakes": [(*pair, times) for times, pair in wrong[:MOST_CONFUSED]],
        "scores": scores,
    }


def card(one: ReportExample) -> dict[str, Any]:
    """The content of a card: a sentence, its reference, its output, and its links in words."""
    shown = {"source": linked_source(one) if one.links else _text(one.source)}
    if one.reference is not None:
        shown["reference"] = _text(one.reference, wrong_words(one.reference, one.output), "missing")
    wrong = wrong_words(one.output, one.reference) if one.reference is not None else ()
    shown["output"] = linked_output(one) if one.links else _text(one.output, wrong) if one.output else "(nothing)"
    return {"lines": shown, "links": list(notes(one, "←").values())}


def _text(words: str, wrong: Sequence[bool] = (), kind: str = "") -> str:
    """A text with marks; a long one is cut, without marks."""
    return sentence(words, wrong, kind) if len(words) <= LONGEST else sentence(words[:LONGEST].rstrip() + " …")


def heads(look: Look) -> Grid:
    """Every head, a layer a line."""
    several = len(look.heads)
    every = f"All {several}" if several == look.of_heads else f"{several} of {look.of_heads}"
    rows = [list(group) for _, group in groupby(look.heads, key=lambda one: one.title.split(",")[0])]
    return Grid(f"{every} heads of the cross-attention, a layer a line", rows)


def limits(report: RunReport) -> list[str]:
    """What the numbers of the report do not show."""
    said = ["One test says nothing about other kinds of text, and one training nothing about other seeds."]
    if not report.test.held_out:
        said.append("The best checkpoint was chosen on this text, so its scores are too optimistic.")
    said += [f"{remark}." for remark in report.test.learned]
    if "built-in corpus" in report.corpus.name:
        said.append("The built-in corpus is generated by rules: scores on it are higher than on natural text.")
    if report.run.task == "translate":
        said += [
            "BLEU and chrF measure similarity to the reference; a good translation in other words scores low.",
            "Scores of groups by length or rarity are of different sentences: compare a group between runs, rather "
            "than groups of one run.",
        ]
    if attends(report):
        said.append("Attention shows where the model looked, which need not be what decided its output.")
    if report.tokenised >= 100:
        said.append(f"{report.tokenised:,} outputs end in ' .': is the text tokenised? Scores expect it as written.")
    if report.run.task == "language":
        said.append("Perplexities compare only where the text is the same; those per byte also between tokenizers.")
    return said
