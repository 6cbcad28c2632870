"""Sentences on a page: wrong words are marked, and linked words are highlighted together, without a script.

Target word i and the source words linked with it share the class ``li``. By the rules of `lighting`, hovering over a
word of class ``li`` highlights every word of class ``li`` in its pair. The links are written out as text, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import SequenceMatcher

from markupsafe import Markup

from regard.evaluate.run_report import ReportExample
from regard.show.markup import Attributes, element

LIT = "background:var(--lit);box-shadow:0 0 0 2px var(--lit)"
Numbers = Mapping[int, Collection[int]]  # of a word: the target words that it belongs to


def lighting(count: int) -> Markup:
    """The rules for pairs of up to so many target words."""
    chosen = ",".join(f".pair:has(.l{number}:is(:hover,:focus)) .l{number}" for number in range(count))
    return Markup(f"{chosen}{{{LIT}}}" if chosen else "")


def wrong_words(words: str, reference: str) -> list[bool]:
    """Which words of an output do not match the reference."""
    ours, theirs = words.split(), reference.split()
    wrong = [True] * len(ours)
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        wrong[block.a : block.a + block.size] = [False] * block.size
    return wrong


def words_line(
    words: Sequence[str], numbers: Numbers, notes: Mapping[int, str], wrong: Sequence[bool] = (), stop: int = -1
) -> Markup:
    """Words with the classes of their links; ``stop`` is the tabindex of linked words, 0 to reach them by keyboard."""
    parts: list[str] = []
    for place, word in enumerate(words):
        own = sorted(numbers.get(place, ()))
        about: Attributes = {"class": " ".join(["word", *(f"l{number}" for number in own)])}
        about = {**about, "title": notes[place]} if place in notes else about
        about = {**about, "tabindex": stop} if own or stop == 0 else about
        parts += [" ", element("mark" if wrong and wrong[place] else "span", about, word)]
    return Markup("").join(parts[1:])


def linked_source(one: ReportExample) -> Markup:
    """The source, each word with the classes of the target words it is linked with."""
    groups: dict[int, list[int]] = {}
    for link in one.links:
        groups.setdefault(link.source, []).append(link.target)
    return element("span", {"dir": "auto"}, words_line(one.source_words, groups, notes(one, "→")))


def linked_output(one: ReportExample) -> Markup:
    """The output, each linked word with its class, wrong words marked."""
    wrong = wrong_words(" ".join(one.target_words), one.reference) if one.reference else []
    wrong = wrong if len(wrong) == len(one.target_words) else []
    own = {link.target: [link.target] for link in one.links}
    return element("span", {"dir": "auto"}, words_line(one.target_words, own, notes(one, "←"), wrong))


def notes(one: ReportExample, arrow: str) -> dict[int, str]:
    """The links of each word in text: ``chat ← cat 0.95``, or ``cat → chat 0.95``, the strongest first."""
    found: dict[int, list[str]] = {}
    own, others = (one.target_words, one.source_words) if arrow == "←" else (one.source_words, one.target_words)
    for link in sorted(one.links, key=lambda link: -(link.weight or 0.0)):
        place, other = (link.target, link.source) if arrow == "←" else (link.source, link.target)
        weight = "" if link.weight is None else f" {link.weight:.2f}"
        found.setdefault(place, []).append(f"{others[other]}{weight}")
    return {place: f"{own[place]} {arrow} {', '.join(linked)}" for place, linked in sorted(found.items())}
