"""Labels with a trained model: a tag for each word, or a class for the whole text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decode.cancel import check_cancelled
from regard.decode.grouping import of_like_length
from regard.models.labeller import Labeller
from regard.text.known import KnownWords
from regard.text.special import PAD
from regard.text.spelling import own_piece, spell, word_ids, word_letters
from regard.text.tokenizer import Tokenizer
from regard.text.vocabulary import Vocabulary

BUDGET = 4096  # padded tokens in a batch; it changes no label


@dataclass(frozen=True)
class TaggedText:
    """The words of a text, each with its tag and how sure the model is of it."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]

    def __str__(self) -> str:
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))


@dataclass(frozen=True)
class Classified:
    """The classes of a text, the likeliest first. An empty text has none."""

    text: str
    classes: tuple[tuple[str, float], ...]

    @property
    def label(self) -> str:
        return self.classes[0][0] if self.classes else ""

    def __str__(self) -> str:
        return f"{self.label}\t{self.classes[0][1]:.3f}" if self.classes else ""


@dataclass(frozen=True)
class Reader:
    """What labellers read: ids, each followed by its letters where the model takes them."""

    tokenizer: Tokenizer
    letters: int
    device: torch.device
    known: KnownWords | None = None  # what the run has seen

    def words(self, words: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        """One entry a piece, and where the piece of each word is that has its label."""
        rows: list[list[int]] = []
        first = []
        for word in words:
            first.append(len(rows) + own_piece(self.tokenizer, word))
            letters = word_letters(self.tokenizer, word, self.letters) if self.letters else []
            rows += _with_letters(word_ids(self.tokenizer, word), letters, self.letters)
        return rows, first

    def text(self, text: str) -> list[list[int]]:
        """One entry a piece."""
        pieces = self.tokenizer.pieces(text) if self.letters else []
        letters = [letter for piece in pieces for letter in spell(piece, self.letters)]
        return _with_letters(self.tokenizer.encode(text), letters, self.letters)

    def batch(self, rows: Sequence[list[list[int]]]) -> Tensor:
        """Padded on the right: (B, S), or (B, S, 1 + L) with letters."""
        width = max(map(len, rows))
        nothing = [PAD] * (1 + self.letters)
        padded = torch.tensor([row + [nothing] * (width - len(row)) for row in rows], device=self.device)
        return padded if self.letters else padded.squeeze(-1)


def _with_letters(ids: list[int], letters: list[int], places: int) -> list[list[int]]:
    return [[number, *letters[place * places : (place + 1) * places]] for place, number in enumerate(ids)]


@dataclass(frozen=True)
class Tagger:
    """Tags words. They are what stands between spaces, as in the training text."""

    model: Labeller
    reader: Reader
    tags: Vocabulary

    @property
    def known(self) -> KnownWords | None:
        """The words it has seen."""
        return self.reader.known

    @torch.no_grad()
    def tag(self, texts: Sequence[str]) -> list[TaggedText]:
        """Each text's words with their tags; order is kept, and an empty text has no words."""
        self.model.eval()
        words = [tuple(text.split()) for text in texts]
        read = [self.reader.words(row) for row in words]
        results = [TaggedText((), (), ())] * len(texts)
        for group in groups([len(rows) for rows, _ in read]):
            odds = self.model(self.reader.batch([read[row][0] for row in group])).float().softmax(-1)  # (B, S, C)
            best, which = (part.cpu() for part in odds.max(-1))
            for place, row in enumerate(group):
                first = read[row][1]
                tags = tuple(self.tags.token(number) for number in which[place, first].tolist())
                results[row] = TaggedText(words[row], tags, tuple(best[place, first].tolist()))
        return results


@dataclass(frozen=True)
class Classifier:
    """Finds the class of a text."""

    model: Labeller
    reader: Reader
    labels: Vocabulary

    @property
    def known(self) -> KnownWords | None:
        """The words it has seen."""
        return self.reader.known

    @torch.no_grad()
    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Each text's classes with their probabilities; order is kept."""
        self.model.eval()
        read = [self.reader.text(text) for text in texts]
        results = [Classified(text, ()) for text in texts]
        for group in groups([len(rows) for rows in read]):
            odds = self.model(self.reader.batch([read[row] for row in group])).float().softmax(-1).cpu()  # (B, C)
            best, which = odds.sort(descending=True, stable=True)
            for place, row in enumerate(group):
                names = map(self.labels.token, which[place].tolist())
                results[row] = Classified(texts[row], tuple(zip(names, best[place].tolist(), strict=True)))
        return results


def groups(lengths: Sequence[int], budget: int = BUDGET) -> Iterator[list[int]]:
    """Rows of like length together, longest first; empty rows are in none."""
    filled = [row for row, length in enumerate(lengths) if length]
    for group in of_like_length([lengths[row] for row in filled], budget):
        check_cancelled()
        yield [filled[place] for place in group]
