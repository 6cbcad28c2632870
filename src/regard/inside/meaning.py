"""One word in several sentences, through the layers: how alike, beside which others, translated how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from regard.decode.writer import Writer
from regard.errors import DataError, ModelError, RegardError
from regard.explain.meaning import Neighbours, Occurrence, find, layers, meaning, stands_in
from regard.prediction import Predictor
from regard.run import Run
from regard.tasks.material import COLUMNS, materials
from regard.translator import Translator
from regard.understanding import Reading, reading_of, translated

SENTENCES = 200  # of the validation text, in which neighbours are looked for
WORDS = 25  # of the longest of them


@dataclass(frozen=True)
class Neighbour:
    """A word near another, with the sentence it stands in."""

    word: str
    sentence: str
    cosine: float


@dataclass(frozen=True)
class Compared:
    """Occurrences of a word, then those of the control, N in all, at every layer."""

    occurrences: tuple[Occurrence, ...]
    controls: int  # how many of them, at the end, are of the control
    translations: tuple[str, ...]  # or tags; empty where no word was linked
    layers: tuple[str, ...]
    cosines: Tensor  # (L, N, N)
    points: Tensor  # (L, N, 2)
    explained: tuple[float, ...]
    neighbours: tuple[tuple[tuple[Neighbour, ...], ...], ...]  # of each occurrence at each layer
    searched: int  # sentences in which neighbours were looked for


def compare_meanings(
    predictor: Predictor | Translator,
    word: str,
    sentences: Sequence[str],
    *,
    control: str | None = None,
    neighbours: int = 5,
    folder: Path | None = None,
) -> Compared:
    """Follow a word through the encoder. Neighbours come from the run's validation text, where it is still there."""
    if isinstance(predictor, Writer):
        raise ModelError("meaning: a language model has no encoder, whose layers are compared here; a translator has")
    reading = reading_of(predictor)
    own = find(word, sentences)
    controls = _controls(control, sentences)
    occurrences = (*own, *controls)
    found = meaning(reading.model, reading.tokenizer, occurrences, letters=reading.letters)
    plane = found.plane()
    corpus = tuple(dict.fromkeys((*sentences, *validation_texts(folder))))
    return Compared(
        occurrences=occurrences,
        controls=len(controls),
        translations=tuple(linked for linked, _ in translated(predictor, occurrences)),
        layers=("embedding", *(f"layer {number}" for number in range(1, len(found.vectors)))),
        cosines=found.cosines(),
        points=torch.stack(plane.points),
        explained=plane.explained,
        neighbours=tuple(
            tuple(
                tuple(
                    Neighbour(str(near), near.sentence, cosine)
                    for near, cosine in words.nearest(vector, neighbours, besides=one)
                )
                for one, vector in zip(occurrences, vectors, strict=True)
            )
            for words, vectors in zip(_words(reading, corpus), found.vectors, strict=True)
        ),
        searched=len(corpus),
    )


def _controls(control: str | None, sentences: Sequence[str]) -> list[Occurrence]:
    """The control word wherever it stands; where it stands nowhere, there is nothing to compare with."""
    if not control:
        return []
    found = find(control, [sentence for sentence in sentences if stands_in(control, sentence)])
    if not found:
        raise DataError(f"control = {control}: stands in none of the sentences; choose a word that does")
    return found


def validation_texts(folder: Path | None) -> list[str]:
    """Some sentences that a run was validated on; none where they are no longer there."""
    if folder is None:
        return []
    try:
        settings = Run.open(folder).settings
        rows = (row[0] for _, row in materials(settings)[1].rows(COLUMNS[settings.task]))
        return list(islice((text for text in rows if 0 < len(text.split()) <= WORDS), SENTENCES))
    except RegardError:
        return []


_KNOWN: WeakKeyDictionary[nn.Module, dict[str, list[Tensor]]] = WeakKeyDictionary()  # a corpus is read once a model


def _words(reading: Reading, corpus: Sequence[str]) -> list[Neighbours]:
    """The words of some sentences, ready to be searched at every layer; each sentence goes through the model once."""
    known = _KNOWN.setdefault(reading.model, {})
    for sentence in known.keys() - set(corpus):
        del known[sentence]
    for sentence in corpus:
        if sentence not in known:
            known[sentence] = layers(reading.model, reading.tokenizer, sentence, letters=reading.letters)
    places = tuple(Occurrence(sentence, word) for sentence in corpus for word in range(len(sentence.split())))
    depth = len(known[corpus[0]])
    return [
        Neighbours(places, normalize(torch.cat([known[sentence][layer] for sentence in corpus]), dim=-1))
        for layer in range(depth)
    ]
