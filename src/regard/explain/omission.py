"""Words of a source that its translation leaves out.

Without such a word the source says what the translation says. So the model finds the translation at least as probable
when the word is taken away (contrastive conditioning, Vamvas and Sennrich, 2022):

    log p(output | source without the word) − log p(output | source)  ≥  a threshold near 0

Every word is taken away once, and all these sources are scored together: one pass, no search. Articles and auxiliaries
are often left out rightly, or said by other words, so frequent and short words must make the difference larger.
A word that is left out together with all that hangs on it, or that is replaced by a wrong one, is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from regard.decode.cancel import check_cancelled
from regard.decode.scoring import score
from regard.decode.texts import Output, Part, word_at
from regard.text.reading import Unknown
from regard.text.vectors import Vectors
from regard.text.words import space_spans

if TYPE_CHECKING:
    from regard.tasks.translator import Translator

LIKELIER: Final = 0.1  # natural logarithms by which the output must be more probable without a frequent word
ALIKE: Final = -0.02  # and without a rare one, of which there is
RARE: Final = 0.002  # at most this share in the training text
SHORT: Final = 2  # letters of words that count as frequent
MOST: Final = 2e10  # multiplications that are made without being asked for


def omitted(translator: Translator, text: str, output: Output) -> tuple[Unknown, ...]:
    """The words of a text that an output of it seems to leave out, and where they are."""
    found = (place for part in output.parts for place in _left_out(translator, part))
    return tuple(_located(text, *place) for place in found)


def is_cheap(translator: Translator, output: Output) -> bool:
    """Whether that takes some tenths of a second at the most: for each word that is taken away, every piece that is
    read or written is multiplied with all parameters."""
    read = translator.tokenizers.read
    sizes = ((len(space_spans(part.source)), len(read(part.source)) + len(part.tokens)) for part in output.parts)
    pieces = sum((words + 1) * count for words, count in sizes)
    return pieces * sum(parameter.numel() for parameter in translator.model.parameters()) <= MOST


def _left_out(translator: Translator, part: Part) -> Iterator[tuple[int, str]]:
    """The words of a part: the number of each in the text, between spaces, and how it was read."""
    check_cancelled()
    spans = list(words_of(part.source))
    if len(spans) < 2 or isinstance(translator.tokenizers.source, Vectors):
        return
    texts = [part.source, *(without(part.source, *span) for span in spans)]
    sources = [translator.tokenizers.read(text) for text in texts]
    scored = score(translator.model, sources, [part.tokens] * len(sources), translator.device)
    whole, *others = map(sum, scored)
    known = translator.tokenizers.known
    for (start, end), other in zip(spans, others, strict=True):
        word = part.source[start:end]
        if known is not None and known.whole and word not in known:
            continue  # a remark on unknown words says what became of it
        rare = known is not None and len(word) > SHORT and known.times(word) < RARE * known.total
        if other - whole > (ALIKE if rare else LIKELIER):
            yield word_at(part.source, start) + part.source_word, word


def words_of(text: str) -> Iterator[tuple[int, int]]:
    """Where words begin and end, between spaces, without the marks around them."""
    for start, end in space_spans(text):
        inside = [place for place in range(start, end) if text[place].isalnum()]
        if inside:
            yield inside[0], inside[-1] + 1


def without(text: str, start: int, end: int) -> str:
    """The text without a word; what follows the first one has its capital."""
    before, after = text[:start].rstrip(), text[end:]
    if not before and text[start:end].istitle():
        after = after.lstrip()
        after = after[:1].upper() + after[1:]
    return f"{before}{after}" if before else after.lstrip()


def _located(text: str, number: int, word: str) -> Unknown:
    """A word that was read, in the text as it was written."""
    spans = space_spans(text)
    start, end = spans[min(number, len(spans) - 1)]  # a long word may have been read in two parts, and counted twice
    if same := re.search(re.escape(word), text[start:end], re.IGNORECASE):
        start, end = start + same.start(), start + same.end()
    return Unknown(start, end, text[start:end])
