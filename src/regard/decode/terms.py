"""Terms that must be translated in one way: applied to a sentence when its source has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from regard.errors import DataError


@dataclass(frozen=True)
class Glossary:
    """Source terms with their translations. A term matches as whole words, in whatever case it stands."""

    terms: Mapping[str, str]

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> Glossary:
        """Terms as a user wrote them."""
        if blank := [f"{source!r}: {target!r}" for source, target in terms.items() if not (source.strip() and target)]:
            raise DataError(f"glossary = {blank[0][:60]}: must be a term and its translation, neither of them empty")
        return cls({source.strip().casefold(): target for source, target in terms.items()})

    @classmethod
    def parse(cls, lines: Iterable[str], name: str) -> Glossary:
        """Lines of ``source<TAB>target``; empty lines and lines that begin with ``#`` say nothing."""
        terms = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            source, *target = (part.strip() for part in line.split("\t"))
            if len(target) != 1 or not source or not target[0]:
                raise DataError(f"{name} line {number} = {line[:60]!r}: must be a term, a tab and its translation")
            terms[source.casefold()] = target[0]
        return cls(terms)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.terms, key=len, reverse=True)
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    def find(self, source: str) -> list[str]:
        """The translations that a sentence must contain, in the order of its terms, each once."""
        if not self.terms:
            return []
        found = (self.terms[match[0]] for match in self._pattern.finditer(source.casefold()))
        return list(dict.fromkeys(found))
