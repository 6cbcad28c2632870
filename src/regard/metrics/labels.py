"""How good tags and classes are. Counts of what was right and wrong, added up as they come; no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from regard.errors import DataError

Row = tuple[str, ...]


@dataclass(frozen=True)
class LabelScore:
    """One label: of those given, how many were right (precision); of those there, how many were found (recall)."""

    label: str
    count: int  # how often it is the truth
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class Confusion:
    """How often each label (truth, guess) was given. Everything else follows from this."""

    counts: tuple[tuple[tuple[str, str], int], ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Confusion:
        """From pairs of the true label and the one that was given."""
        return cls(tuple(sorted(Counter(pairs).items())))

    @property
    def labels(self) -> tuple[str, ...]:
        """Those that are the truth somewhere, then those that are only guessed."""
        true = sorted({truth for (truth, _), _ in self.counts})
        return (*true, *sorted({guess for (_, guess), _ in self.counts} - set(true)))

    @property
    def count(self) -> int:
        return sum(times for _, times in self.counts)

    @property
    def accuracy(self) -> float:
        """Share of the labels that are right."""
        return sum(times for (truth, guess), times in self.counts if truth == guess) / max(1, self.count)

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the labels that occur: each counts the same, however rare."""
        scores = [score.f1 for score in self.scores() if score.count]
        return sum(scores) / max(1, len(scores))

    def scores(self) -> tuple[LabelScore, ...]:
        """Precision, recall and F1 of each label."""
        right: Counter[str] = Counter()
        there: Counter[str] = Counter()
        given: Counter[str] = Counter()
        for (truth, guess), times in self.counts:
            there[truth] += times
            given[guess] += times
            right[truth] += times * (truth == guess)
        return tuple(
            LabelScore(label, there[label], right[label] / max(1, given[label]), right[label] / max(1, there[label]))
            for label in self.labels
        )

    def matrix(self) -> list[list[int]]:
        """Row = truth, column = guess, both in the order of `labels`."""
        counts = dict(self.counts)
        return [[counts.get((truth, guess), 0) for guess in self.labels] for truth in self.labels]


class Tally:
    """Counts labels text by text, in constant memory."""

    def __init__(self, known: Collection[str] = ()) -> None:
        """``known`` words are those of the training text; the others are counted apart too."""
        self._known = frozenset(known)
        self._all: Counter[tuple[str, str]] = Counter()
        self._unknown: Counter[tuple[str, str]] = Counter()
        self.texts = 0

    def tags(self, words: Sequence[str], truth: Sequence[str], guesses: Sequence[str]) -> None:
        """One text's words with their true and their given tags."""
        if not len(words) == len(truth) == len(guesses):
            raise DataError(f"{len(words)} words, {len(truth)} tags, {len(guesses)} guesses: every word needs one each")
        pairs = list(zip(truth, guesses, strict=True))
        self._all.update(pairs)
        self._unknown.update(pair for word, pair in zip(words, pairs, strict=True) if word not in self._known)
        self.texts += 1

    def label(self, truth: str, guess: str) -> None:
        """One text's true and given class."""
        self._all[truth, guess] += 1
        self.texts += 1

    def confusion(self) -> Confusion:
        return Confusion(tuple(sorted(self._all.items())))

    def unknown(self) -> Confusion:
        """The same for words that the training text does not have."""
        return Confusion(tuple(sorted(self._unknown.items())))


@dataclass(frozen=True)
class TagResult:
    """Tagging on a corpus."""

    texts: int
    words: Confusion
    unknown: Confusion  # words that are not in the training text

    @property
    def accuracy(self) -> float:
        return self.words.accuracy

    def numbers(self) -> tuple[tuple[str, float], ...]:
        """What a tagger is measured by, in percent."""
        return (
            ("accuracy", 100 * self.words.accuracy),
            ("unknown words", 100 * self.unknown.accuracy),
            ("macro F1", 100 * self.words.macro_f1),
        )

    def confusions(self) -> tuple[Confusion, ...]:
        """Of all words, and of those that are not in the training text."""
        return self.words, self.unknown

    def rows(self) -> list[Row]:
        """For a table: what, how many, and how good in percent."""
        head = [
            ("accuracy", f"{self.words.count:,} words", _percent(self.words.accuracy)),
            ("on unknown words", f"{self.unknown.count:,} words", _percent(self.unknown.accuracy)),
            ("macro F1", f"{len(self.words.labels)} tags", _percent(self.words.macro_f1)),
        ]
        return [*head, *_label_rows(self.words)]

    def to_dict(self) -> dict[str, object]:
        """As JSON takes it."""
        return {
            "task": "tag",
            "texts": self.texts,
            "words": self.words.count,
            "accuracy": self.words.accuracy,
            "unknown_words": self.unknown.count,
            "unknown_accuracy": self.unknown.accuracy,
            "macro_f1": self.words.macro_f1,
            "tags": _label_dict(self.words),
        }


@dataclass(frozen=True)
class ClassResult:
    """Classification of a corpus."""

    confusion: Confusion

    @property
    def accuracy(self) -> float:
        return self.confusion.accuracy

    def numbers(self) -> tuple[tuple[str, float], ...]:
        """What a classifier is measured by, in percent."""
        return ("accuracy", 100 * self.accuracy), ("macro F1", 100 * self.confusion.macro_f1)

    def confusions(self) -> tuple[Confusion, ...]:
        return (self.confusion,)

    def rows(self) -> list[Row]:
        """For a table: what, how many, and how good in percent; then the confusion matrix, row = truth."""
        confusion = self.confusion
        head = [
            ("accuracy", f"{confusion.count:,} texts", _percent(confusion.accuracy)),
            ("macro F1", f"{len(confusion.labels)} classes", _percent(confusion.macro_f1)),
        ]
        matrix = [
            (f"truth {label}", *(f"{guess} ×{times:,}" for guess, times in zip(confusion.labels, row, strict=True)))
            for label, row in zip(confusion.labels, confusion.matrix(), strict=True)
        ]
        return [*head, *_label_rows(confusion), *matrix]

    def to_dict(self) -> dict[str, object]:
        """As JSON takes it."""
        return {
            "task": "classify",
            "texts": self.confusion.count,
            "accuracy": self.confusion.accuracy,
            "macro_f1": self.confusion.macro_f1,
            "classes": _label_dict(self.confusion),
            "labels": list(self.confusion.labels),
            "confusion": self.confusion.matrix(),
        }


def _label_rows(confusion: Confusion) -> list[Row]:
    return [
        (
            f"  {score.label}",
            f"{score.count:,}",
            f"precision {_percent(score.precision)}",
            f"recall {_percent(score.recall)}",
            f"F1 {_percent(score.f1)}",
        )
        for score in sorted(confusion.scores(), key=lambda score: -score.count)
    ]


def _label_dict(confusion: Confusion) -> dict[str, dict[str, float]]:
    return {
        score.label: {"count": score.count, "precision": score.precision, "recall": score.recall, "f1": score.f1}
        for score in confusion.scores()
    }


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
