"""Word alignments: reading gold ones, joining two directions, and scoring (Och and Ney, 2003).

A link is (source word, target word), counted from 0 over the words between spaces. Gold links are sure, or only
possible; sure ones are possible too. With A the links found, S the sure and P the possible ones,

    precision = |A ∩ P| / |A|     recall = |A ∩ S| / |S|     error rate = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from regard.errors import DataError
from regard.text.words import space_words

Link = tuple[int, int]
Links = frozenset[Link]
Symmetrisation = Literal["intersection", "union", "grow-diag", "grow-diag-final-and"]

_PHARAOH = re.compile(r"(\d+)([-?p])(\d+)")
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


@dataclass(frozen=True)
class Gold:
    """What people said about one pair of sentences."""

    sure: Links
    possible: Links  # the sure ones among them

    def flipped(self) -> Gold:
        """The same for the other direction of translation."""
        return Gold(flipped(self.sure), flipped(self.possible))


@dataclass(frozen=True)
class AlignmentQuality:
    """Over a corpus; with how many links of each kind."""

    error_rate: float
    precision: float
    recall: float
    predicted: int
    sure: int
    possible: int


def flipped(links: Iterable[Link]) -> Links:
    """Target first."""
    return frozenset((target, source) for source, target in links)


def read_gold(lines: Iterable[str], where: str, *, sentences: int | None = None) -> list[Gold]:
    """Gold alignments in Pharaoh's or NAACL's format, whichever the first links are in.

    Pharaoh: a line for each sentence, ``0-0 1-2``, with ``1?2`` or ``1p2`` for a possible link. NAACL: a line for
    each link, ``sentence source target [S|P]``, all counted from 1; a word 0 stands for none and is left out.
    ``sentences`` says how many there should be: NAACL's format does not name those without links.
    """
    listed = list(lines)
    first = next((line for line in listed if line.strip()), "")
    naacl = first.split()[:1] and first.split()[0].isdecimal()
    golds = _read_naacl(listed, where, sentences) if naacl else _read_pharaoh(listed, where)
    if not golds or (sentences is not None and len(golds) != sentences):
        wanted = f"there are {sentences:,} sentences" if sentences else "at least one would be right"
        raise DataError(f"{where} = {len(golds):,} alignments: one is needed for each sentence; {wanted}")
    return golds


def _read_pharaoh(lines: Sequence[str], where: str) -> list[Gold]:
    golds = []
    for number, line in enumerate(lines, start=1):
        kinds: dict[bool, set[Link]] = {True: set(), False: set()}
        for word in line.split():
            match = _PHARAOH.fullmatch(word)
            if match is None:
                raise DataError(
                    f"{where} line {number} = {word[:40]}: not a link; 0-0 is a sure one, 0?0 a possible one"
                )
            kinds[match[2] == "-"].add((int(match[1]), int(match[3])))
        golds.append(_gold(kinds))
    return golds


def _read_naacl(lines: Sequence[str], where: str, sentences: int | None) -> list[Gold]:
    found: dict[int, dict[bool, set[Link]]] = {}
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields:
            continue
        good = len(fields) >= 3 and all(field.isdecimal() for field in fields[:3]) and int(fields[0]) > 0
        kind = fields[3].upper() if len(fields) > 3 else "S"
        if not good or kind not in ("S", "P"):
            raise DataError(f"{where} line {number} = {line[:40]}: not a link; '1 2 3 S' (sentence, source, target) is")
        sentence, source, target = map(int, fields[:3])
        kinds = found.setdefault(sentence, {True: set(), False: set()})
        if source and target:
            kinds[kind == "S"].add((source - 1, target - 1))
    return [_gold(found.get(number, {})) for number in range(1, max(sentences or 0, *found) + 1)]


def _gold(kinds: Mapping[bool, set[Link]]) -> Gold:
    """Of links that are sure (True) or only possible."""
    sure = frozenset(kinds.get(True, ()))
    return Gold(sure, sure | kinds.get(False, frozenset()))


def check_inside(golds: Sequence[Gold], sources: Sequence[str], targets: Sequence[str], where: str) -> None:
    """Refuse links to words that a sentence does not have: the wrong files, or the wrong direction."""
    for number, (gold, source, target) in enumerate(zip(golds, sources, targets, strict=True), start=1):
        sizes = len(space_words(source)), len(space_words(target))
        for link in sorted(gold.possible):
            if link[0] >= sizes[0] or link[1] >= sizes[1]:
                raise DataError(
                    f"{where} sentence {number} = {link[0]}-{link[1]}: points outside the sentence, "
                    f"which has {sizes[0]} source and {sizes[1]} target words; is this gold for other files?"
                )


def alignment_quality(predicted: Sequence[Iterable[Link]], golds: Sequence[Gold]) -> AlignmentQuality:
    """Error rate, precision and recall, from sums over all sentences."""
    if len(predicted) != len(golds):
        raise DataError(f"alignments = {len(predicted):,}: the gold has {len(golds):,}; one is needed for each")
    found = [frozenset(links) for links in predicted]
    total, sure = sum(map(len, found)), sum(len(gold.sure) for gold in golds)
    in_sure = sum(len(links & gold.sure) for links, gold in zip(found, golds, strict=True))
    in_possible = sum(len(links & gold.possible) for links, gold in zip(found, golds, strict=True))
    return AlignmentQuality(
        error_rate=1 - (in_sure + in_possible) / (total + sure) if total + sure else 0.0,
        precision=in_possible / total if total else 0.0,
        recall=in_sure / sure if sure else 0.0,
        predicted=total,
        sure=sure,
        possible=sum(len(gold.possible) for gold in golds),
    )


def symmetrise(
    forward: Iterable[Link], backward: Iterable[Link], method: Symmetrisation = "grow-diag-final-and"
) -> Links:
    """One alignment from two directions (Koehn, Och and Marcu, 2003); both are given source first."""
    there, back = frozenset(forward), frozenset(backward)
    match method:
        case "intersection":
            return there & back
        case "union":
            return there | back
        case "grow-diag":
            return _grow(there & back, there | back)
        case "grow-diag-final-and":
            return _final_and(_grow(there & back, there | back), there, back)
        case _:
            assert_never(method)


def _grow(links: Links, union: Links) -> Links:
    """Add links of the union beside those there are, as long as they reach a word that has none yet."""
    grown = set(links)
    sources, targets = {source for source, _ in grown}, {target for _, target in grown}
    before = -1
    while before != len(grown):
        before = len(grown)
        for source, target in sorted(grown):
            for down, right in _NEIGHBOURS:
                new = source + down, target + right
                if new in union and new not in grown and (new[0] not in sources or new[1] not in targets):
                    grown.add(new)
                    sources.add(new[0])
                    targets.add(new[1])
    return frozenset(grown)


def _final_and(links: Links, *directions: Links) -> Links:
    """Add what a direction says about two words that both have no link yet."""
    final = set(links)
    sources, targets = {source for source, _ in final}, {target for _, target in final}
    for direction in directions:
        for source, target in sorted(direction):
            if source not in sources and target not in targets:
                final.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(final)
