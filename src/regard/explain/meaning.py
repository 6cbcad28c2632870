"""One word in several sentences, through the layers of a run: what ``regard meaning`` and the studio show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from regard.errors import DataError, ModelError, RegardError
from regard.explain.alignment import Aligner
from regard.explain.answer import Answer, Hidden, PackedTensor
from regard.explain.contextual import (
    Meaning,
    Neighbours,
    Occurrence,
    find,
    layers,
    meaning,
    plane,
    stands_in,
    translations,
)
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.labeller import Labeller
from regard.runs.folder import Run
from regard.tasks.classify import Classifier
from regard.tasks.corpus import materials
from regard.tasks.kinds import Trained, task_of
from regard.tasks.tag import Tagger
from regard.tasks.translator import Translator
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizers import Tokenizers
from regard.text.words import space_words

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
    own = find(word, sentences)
    occurrences = (*own, *_controls(control, sentences))
    found = meaning(model, tokenizer, occurrences, letters=letters)
    # Axes that told two words apart would have nothing left for two meanings: they are those of the word alone.
    points, explained = plane(found.vectors, len(own))
    corpus = tuple(dict.fromkeys((*sentences, *validation_texts(folder))))
    told = zip(occurrences, translated(predictor, occurrences), strict=True)
    return Compared(
        word=word,
        control=control or "",
        occurrences=tuple(
            WordPlace(one.sentence, str(one), one.word, number >= len(own), *both)
            for number, (one, both) in enumerate(told)
        ),
        layers=("embedding", *(f"layer {number}" for number in range(1, len(found.vectors)))),
        cosines=found.cosines(),
        points=torch.stack(points),
        explained=tuple(explained),
        neighbours=_neighbours(found, occurrences, _words(model, tokenizer, letters, corpus), neighbours),
        searched=len(corpus),
        name="" if folder is None else folder.name,
    )


def _controls(control: str | None, sentences: Sequence[str]) -> list[Occurrence]:
    """The control word wherever it stands; where it stands nowhere, there is nothing to compare with."""
    if not control:
        return []
    found = find(control, [sentence for sentence in sentences if stands_in(control, sentence)])
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
    match predictor:
        case Translator():
            return translations(predictor.model, predictor.tokenizers, occurrences, _aligner(predictor))
        case Tagger():
            found = predictor.tag([one.sentence for one in occurrences])
            return [(tags.tags[one.word], " ".join(tags.tags)) for one, tags in zip(occurrences, found, strict=True)]
        case Classifier():
            labels = predictor.classify([one.sentence for one in occurrences])
            return [("", found.label) for found in labels]


def _aligner(translator: Translator) -> Aligner | None:
    """None where there is no attention to read."""
    try:
        return translator.aligner
    except ModelError:
        return None


# What stands near


def _neighbours(
    found: Meaning, occurrences: Sequence[Occurrence], words: Sequence[Neighbours], count: int
) -> tuple[tuple[Near, ...], ...]:
    """The nearest words of each occurrence at each layer."""
    return tuple(
        tuple(
            tuple(
                Neighbour(str(near), near.sentence, cosine)
                for near, cosine in known.nearest(vector, count, besides=one)
            )
            for one, vector in zip(occurrences, vectors, strict=True)
        )
        for known, vectors in zip(words, found.vectors, strict=True)
    )


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


_KNOWN: WeakKeyDictionary[nn.Module, dict[str, list[Tensor]]] = WeakKeyDictionary()  # a corpus is read once a model


def _words(
    model: EncoderDecoder | Labeller, tokenizer: Tokenizer | Tokenizers, letters: int, corpus: Sequence[str]
) -> list[Neighbours]:
    """The words of some sentences, ready to be searched at every layer; each sentence goes through the model once."""
    known = _KNOWN.setdefault(model, {})
    for sentence in known.keys() - set(corpus):
        del known[sentence]
    for sentence in corpus:
        if sentence not in known:
            known[sentence] = layers(model, tokenizer, sentence, letters=letters)
    places = tuple(Occurrence(sentence, word) for sentence in corpus for word in range(len(space_words(sentence))))
    depth = len(known[corpus[0]])
    return [
        Neighbours(places, normalize(torch.cat([known[sentence][layer] for sentence in corpus]), dim=-1))
        for layer in range(depth)
    ]
