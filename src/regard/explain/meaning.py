"""One word in several sentences, through the layers of a run: what ``regard meaning`` and the studio show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field
from torch.nn.functional import normalize

from regard.errors import DataError, ModelError, RegardError
from regard.explain.alignment import Aligner
from regard.explain.answer import Answer, Hidden, PackedTensor
from regard.explain.contextual import (
    Occurrence,
    cosines,
    find,
    meaning,
    nearest,
    plane,
    spelled,
    stands_in,
    translations,
    words_of,
)
from regard.models.generator import EncoderDecoder, Labeller
from regard.runs.folder import Run
from regard.tasks.classify import Classifier
from regard.tasks.corpus import materials
from regard.tasks.load import Trained, task_of
from regard.tasks.tag import Tagger
from regard.tasks.translator import Translator
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import Tokenizer

SENTENCES = 200  # of the validation text, in which neighbours are looked for
WORDS = 25  # of the longest of them
NEAREST = 5
DIGITS = 6  # of numbers as a page keeps them


@dataclass(frozen=True)
class Neighbour(Answer):
    """A word near another."""

    word: str
    sentence: str
    cosine: float


Near = tuple[Neighbour, ...]
Matrix = tuple[tuple[float, ...], ...]
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class WordPlace(Answer):
    """A word in a sentence."""

    sentence: str
    word: str
    place: int  # counted from 0
    control: bool
    translation: Annotated[str, Field(description="The target words linked with it; empty where none is.")]
    whole: Hidden[str]  # the translation of the sentence, or its tags or label


@dataclass(frozen=True)
class Compared(Answer):
    """A word through the layers."""

    word: Hidden[str]
    control: Hidden[str]
    occurrences: tuple[WordPlace, ...]  # of the word, then of the control: N in all
    layers: tuple[str, ...]
    cosines: Annotated[PackedTensor, Field(description="(layers, occurrences, occurrences).")]
    points: Annotated[
        PackedTensor, Field(description="(layers, occurrences, 2): principal axes, the same for all layers.")
    ]
    explained: Annotated[
        tuple[float, ...], Field(description="A layer: the share of all variance that the two axes show.")
    ]
    neighbours: Annotated[tuple[tuple[Near, ...], ...], Field(description="By layer, by occurrence, nearest first.")]
    searched: Annotated[int, Field(description="Sentences in which neighbours were looked for.")]
    name: Hidden[str] = ""  # of the run

    @property
    def places(self) -> list[WordPlace]:
        """Those of the word itself."""
        return [one for one in self.occurrences if not one.control]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.places)), 2))

    def of_pair(self, pair: tuple[int, int]) -> list[float]:
        """Their cosine in every layer."""
        return _rounded(self.cosines[:, pair[0], pair[1]].tolist())

    def of_control(self) -> list[float]:
        """The control's mean over its pairs, in every layer; none, where it does not stand in two sentences."""
        found = []
        for layer in self.control_cosines:
            values = [layer[one][other] for one, other in combinations(range(len(layer)), 2)]
            found += [sum(values) / len(values)] if values else []
        return found

    @property
    def control_cosines(self) -> list[Matrix]:
        """In every layer, of every two of the control's; none without a control."""
        own = len(self.places)
        return _rounded(self.cosines[:, own:, own:].tolist()) if self.control else []

    @property
    def own_points(self) -> list[Points]:
        """In every layer, where the word's places are."""
        return _rounded(self.points[:, : len(self.places)].tolist())

    @property
    def among(self) -> str:
        """Where neighbours were looked for."""
        more = self.searched - len({one.sentence for one in self.occurrences})
        return "the words of these sentences" + (f" and of {more} validation sentences" if more else "")

    def numbers(self) -> dict[str, Any]:
        """What ``regard meaning --json`` and the data of a page say."""
        own = len(self.places)
        return {
            "word": self.word,
            "control": self.control,
            "places": [
                {
                    "sentence": one.sentence,
                    "word": one.place,
                    "translation": one.translation,
                    "whole": one.whole,
                    "neighbours": [{**vars(each), "cosine": round(each.cosine, DIGITS)} for each in near],
                }
                for one, near in zip(self.places, self.neighbours[-1], strict=False)
            ],
            "layers": list(self.layers),
            "cosines": _rounded(self.cosines[:, :own, :own].tolist()),
            "control_cosines": self.control_cosines,
            "points": self.own_points,
            "explained": _rounded(self.explained),
            "searched": self.among,
            "name": self.name,
        }


def _rounded(values: Any) -> Any:
    """Numbers as a page keeps them, however deep they stand."""
    return round(values, DIGITS) if isinstance(values, float) else [_rounded(each) for each in values]


def compare_meanings(
    predictor: Trained,
    word: str,
    sentences: Sequence[str],
    *,
    control: str | None = None,
    neighbours: int = NEAREST,
    folder: Path | None = None,
) -> Compared:
    """Follow a word through the encoder; with a control word, what the sentences alone do to one.

    Neighbours come from the validation text of the run in ``folder``, where it is still there.
    """
    if not sentences:
        raise DataError(f"sentences = 0: there is nothing in which '{word}' could stand; give two or more")
    if predictor.task == "language":
        raise ModelError("meaning: a language model has no encoder, whose layers are compared here; a translator has")
    model, tokenizer, letters = reading_of(predictor)
    cuts = tokenizer if predictor.task == "translate" else None
    own = find(word, sentences, cuts)
    occurrences = (*own, *_controls(control, sentences, cuts))
    found = meaning(model, tokenizer, occurrences, letters=letters)
    # Axes that told two words apart would have nothing left for two meanings: they are those of the word alone.
    points, explained = plane(found, len(own))
    corpus = tuple(dict.fromkeys((*sentences, *validation_texts(folder))))
    told = zip(occurrences, translated(predictor, occurrences), strict=True)
    words, every = words_of(model, tokenizer, corpus, letters=letters)
    known = [normalize(layer, dim=-1) for layer in every]
    return Compared(
        word=word,
        control=control or "",
        occurrences=tuple(
            WordPlace(one[0], spelled(one), one[1], number >= len(own), *both)
            for number, (one, both) in enumerate(told)
        ),
        layers=("embedding", *(f"layer {number}" for number in range(1, len(found)))),
        cosines=cosines(found),
        points=torch.stack(points),
        explained=tuple(explained),
        neighbours=tuple(
            tuple(
                tuple(
                    Neighbour(spelled(near), near[0], cosine)
                    for near, cosine in nearest(vector, words, unit, neighbours, besides=one)
                )
                for one, vector in zip(occurrences, vectors, strict=True)
            )
            for unit, vectors in zip(known, found, strict=True)
        ),
        searched=len(corpus),
        name="" if folder is None else folder.name,
    )


def _controls(control: str | None, sentences: Sequence[str], cuts: Tokenizer | Tokenizers | None) -> list[Occurrence]:
    """The control word wherever it stands; where it stands nowhere, there is nothing to compare with."""
    if not control:
        return []
    found = find(control, [sentence for sentence in sentences if stands_in(control, sentence, cuts)], cuts)
    if not found:
        raise DataError(f"control = {control}: stands in none of the sentences; choose a word that does")
    return found


# What a model reads and says


Reading = tuple[EncoderDecoder | Labeller, Tokenizer | Tokenizers, int]


def reading_of(predictor: Translator | Tagger | Classifier) -> Reading:
    """A model with an encoder, what cuts its sentences, and how many letters of a piece it reads."""
    if predictor.task == "translate":
        return predictor.model, predictor.tokenizers, 0
    return predictor.model, predictor.reader.tokenizer, predictor.reader.letters


def translated(predictor: Translator | Tagger | Classifier, occurrences: Sequence[Occurrence]) -> list[tuple[str, str]]:
    """How each is translated; by a tagger, tagged; a classifier says something of the whole sentence only."""
    sentences = [one[0] for one in occurrences]
    match predictor:
        case Translator():
            return translations(predictor.model, predictor.tokenizers, occurrences, _aligner(predictor))
        case Tagger():
            found = predictor.tag(sentences)
            pairs = zip(occurrences, found, strict=True)
            return [(tags.tags[word], " ".join(tags.tags)) for (_, word, *_), tags in pairs]
        case Classifier():
            labels = predictor.classify(sentences)
            return [("", found.label) for found in labels]


def _aligner(translator: Translator) -> Aligner | None:
    """None where there is no attention to read."""
    try:
        return translator.aligner
    except ModelError:
        return None


def validation_texts(folder: Path | None) -> list[str]:
    """Some sentences that a run was validated on; none where they are no longer there."""
    if folder is None:
        return []
    try:
        settings = Run.open(folder).settings
        rows = (row[0] for _, row in materials(settings)[1].rows(task_of(settings.task).columns))
        return list(islice((text for text in rows if 0 < len(text.split()) <= WORDS), SENTENCES))
    except RegardError:
        return []
