"""A run's sentences, as a part of its page: pinned, drawn at random and worst."""

from __future__ import annotations

from itertools import groupby

from regard.evaluate.run_report import Example, RunReport
from regard.show import sentences, tree
from regard.show.markup import Html, element
from regard.show.page import more, paragraph, sentence

LONGEST = 600  # characters of a sentence that are shown
GROUPS = {"pinned": "Pinned", "random": "Drawn at random", "worst": "Worst"}


def sentences_part(report: RunReport) -> list[Html]:
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
