"""How well a language model predicts a text, in units that do not depend on its tokenizer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from regard.metrics.labels import Confusion

Row = tuple[str, ...]
_LARGEST = 700.0  # e to this is about the largest number there is


@dataclass(frozen=True)
class LanguageResult:
    """``exp(−log p / n)``, with n words or bytes. The end of a line is one more word and one more byte, because the
    model predicts it too."""

    lines: int
    words: int
    bytes: int
    log_probability: float  # natural logarithm, of all lines together

    @property
    def perplexity_per_word(self) -> float:
        return _perplexity(self.log_probability, self.words + self.lines)

    @property
    def perplexity_per_byte(self) -> float:
        return _perplexity(self.log_probability, self.bytes + self.lines)

    @property
    def bits_per_byte(self) -> float:
        """The base-2 logarithm of the perplexity of a byte."""
        return -self.log_probability / max(1, self.bytes + self.lines) / math.log(2)

    def numbers(self) -> tuple[tuple[str, float], ...]:
        """What a language model is measured by."""
        return ("perplexity/word", self.perplexity_per_word), ("perplexity/byte", self.perplexity_per_byte)

    def confusions(self) -> tuple[Confusion, ...]:
        """It gives no labels."""
        return ()

    def rows(self) -> list[Row]:
        """For a table: what, over how many, and how much."""
        return [
            ("perplexity per word", f"{self.words + self.lines:,} words and ends", f"{self.perplexity_per_word:,.2f}"),
            ("perplexity per byte", f"{self.bytes + self.lines:,} bytes and ends", f"{self.perplexity_per_byte:,.3f}"),
            ("bits per byte", "", f"{self.bits_per_byte:,.3f}"),
        ]

    def to_dict(self) -> dict[str, object]:
        """As JSON takes it."""
        return {
            "task": "language",
            "lines": self.lines,
            "words": self.words,
            "bytes": self.bytes,
            "log_probability": self.log_probability,
            "perplexity_per_word": self.perplexity_per_word,
            "perplexity_per_byte": self.perplexity_per_byte,
            "bits_per_byte": self.bits_per_byte,
        }


def _perplexity(log_probability: float, count: int) -> float:
    return math.exp(min(-log_probability / max(1, count), _LARGEST))


def language_result(lines: Iterable[tuple[str, float]]) -> LanguageResult:
    """From texts, each with its log-probability."""
    count = words = size = 0
    total = 0.0
    for text, log_probability in lines:
        count += 1
        words += len(text.split())
        size += len(text.encode("utf-8", "replace"))
        total += log_probability
    return LanguageResult(count, words, size, total)
