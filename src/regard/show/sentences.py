"""Sentences on a page: what is wrong is marked, and what belongs together lights up together, without any script.

Target word i and the source words linked with it share the class ``li``. The rules of `lighting` say: in a pair that
has a pointed-at word of class ``li``, every word of class ``li`` is lit. Who cannot point reads the links in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from regard.evaluate.run_report import Example, Link
from regard.show.markup import Attributes, Html, element, join

STYLE = """
.pair .word{border-radius:3px}
.pair .word[tabindex]{cursor:default}
.pair .word:focus{outline:2px solid var(--s0);outline-offset:1px}
.links{margin:.35rem 0 0}
.links bdi{display:inline-block;max-width:100%;overflow-wrap:anywhere}
"""
LIT = "background:var(--lit);box-shadow:0 0 0 2px var(--lit)"


def lighting(count: int) -> str:
    """The rules for pairs of up to so many target words."""
    chosen = ",".join(
        f".pair:has(.l{number}:hover) .l{number},.pair:has(.l{number}:focus) .l{number}" for number in range(count)
    )
    return f"{chosen}{{{LIT}}}" if chosen else ""


def wrong_words(words: str, reference: str) -> list[bool]:
    """Which words of an output are not part of the longest agreement with the reference."""
    ours, theirs = words.split(), reference.split()
    wrong = [True] * len(ours)
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        wrong[block.a : block.a + block.size] = [False] * block.size
    return wrong


def linked_source(one: Example) -> Html:
    """The source, each word with the classes of the target words it is linked with."""
    groups: dict[int, list[Link]] = {}
    for link in one.links:
        groups.setdefault(link.source, []).append(link)
    words = (
        _word(word, [link.target for link in groups.get(place, [])], _heard(word, groups.get(place, []), one, "→"))
        for place, word in enumerate(one.source_words)
    )
    return element("span", {"dir": "auto"}, join(words, " "))


def linked_output(one: Example) -> Html:
    """The output, each word with its own class if it has links, and marked where it is wrong."""
    groups = by_target(one)
    wrong = wrong_words(" ".join(one.target_words), one.reference) if one.reference else []
    wrong = wrong if len(wrong) == len(one.target_words) else [False] * len(one.target_words)
    words = (
        _word(
            word,
            [place] if place in groups else [],
            _heard(word, groups.get(place, []), one, "←"),
            bad=wrong[place],
        )
        for place, word in enumerate(one.target_words)
    )
    return element("span", {"dir": "auto"}, join(words, " "))


def in_words(one: Example) -> Html:
    """``chat ← cat 0.95 · noir ← black 0.96``, for those who cannot point."""
    groups = by_target(one)
    said = [
        element("bdi", {}, _heard(word, groups[place], one, "←"))
        for place, word in enumerate(one.target_words)
        if place in groups
    ]
    return element("p", {"class": "links note"}, join(said, " · "))


def by_target(one: Example) -> dict[int, list[Link]]:
    """The links of each target word that has any, strongest first."""
    groups: dict[int, list[Link]] = {}
    for link in sorted(one.links, key=lambda link: -(link.weight or 0.0)):
        groups.setdefault(link.target, []).append(link)
    return groups


def _word(word: str, numbers: Sequence[int], heard: str, *, bad: bool = False) -> Html:
    """A word that can be pointed at and touched; it is not a stop of the keyboard, of which there would be hundreds."""
    kind = " ".join(["word", *(f"l{number}" for number in numbers)])
    about: Attributes = {"class": kind, "title": heard, "tabindex": -1} if numbers else {"class": "word"}
    return element("mark" if bad else "span", about, word)


def _heard(word: str, links: Sequence[Link], one: Example, arrow: str) -> str:
    others = ", ".join(_others(links, one, arrow))
    return f"{word} {arrow} {others}" if others else ""


def _others(links: Sequence[Link], one: Example, arrow: str) -> Iterator[str]:
    for link in links:
        word = one.source_words[link.source] if arrow == "←" else one.target_words[link.target]
        yield word if link.weight is None else f"{word} {link.weight:.2f}"
