"""The built-in parallel corpus, *fable*: English with French or Hindi, gold alignments, tags and labels.

>>> from regard.fable import generate
>>> for sentence in generate("fr", count=3, split="valid", seed=7, maximum_words=12): ...

It needs no download and no dependency, and generates as many pairs as an experiment needs, of any length.
"""

from regard.fable.corpus import LONGEST, SHORTEST, SPLITS, Split, capacity, generate, split_of
from regard.fable.files import write
from regard.fable.sentence import LANGUAGES, Language, ParallelSentence, Sentiment

__all__ = [
    "LANGUAGES",
    "LONGEST",
    "SHORTEST",
    "SPLITS",
    "Language",
    "ParallelSentence",
    "Sentiment",
    "Split",
    "capacity",
    "generate",
    "split_of",
    "write",
]
