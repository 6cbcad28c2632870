"""One word in several sentences, through the layers of a run: what ``regard meaning`` and the studio show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from regard.errors import DataError, ModelError, RegardError
from regard.explain.alignment import Aligner
from regard.explain.meaning import Meaning, Neighbours, Occurrence, find, layers, meaning, stands_in, translations
from regard.explain.meaning_report import Matrix, MeaningReport, Neighbour, Place
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.labeller import Labeller
from regard.runs.folder import Run
from regard.tasks.classify import Classifier
from regard.tasks.corpus import materials
from regard.tasks.kinds import Trained, task_of
from regard.tasks.language import Writer
from regard.tasks.load import load_predictor
from regard.tasks.tag import Tagger
from regard.tasks.translator import Translator
from regard.text.tokenizer import Tokenizer
from regard.text.words import space_words

SENTENCES = 200  # of the validation text, in which neighbours are looked for
WORDS = 25  # of the longest of them
NEAREST = 5
DIGITS = 6  # of numbers as a report keeps them

Near = tuple[Neighbour, ...]


@dataclass(frozen=True)
class Compared:
    """Occurrences of a word, then those of the control, N in all, at every layer."""

    occurrences: tuple[Occurrence, ...]
    controls: int  # how many of them, at the end, are of the control
    translations: tuple[tuple[str, str], ...]  # or tags: of the word, empty where none was linked, and of the sentence
    layers: tuple[str, ...]
    cosines: Tensor  # (L, N, N)
    points: Tensor  # (L, N, 2)
    explained: tuple[float, ...]
    neighbours: tuple[tuple[Near, ...], ...]  # of each occurrence at each layer
    searched: int  # sentences in which neighbours were looked for


def compare_meanings(
    predictor: Trained,
    word: str,
    sentences: Sequence[str],
    *,
    control: str | None = None,
    neighbours: int = NEAREST,
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
    plane = found.plane(len(own))  # axes that told two words apart would have nothing left for two meanings
    corpus = tuple(dict.fromkeys((*sentences, *validation_texts(folder))))
    return Compared(
        occurrences=occurrences,
        controls=len(controls),
        translations=tuple(translated(predictor, occurrences)),
        layers=("embedding", *(f"layer {number}" for number in range(1, len(found.vectors)))),
        cosines=found.cosines(),
        points=torch.stack(plane.points),
        explained=plane.explained,
        neighbours=_neighbours(found, occurrences, _words(reading, corpus), neighbours),
        searched=len(corpus),
    )


def meaning_report(
    run: str | Path, word: str, sentences: Sequence[str], *, control: str = "", device: str = "cpu"
) -> MeaningReport:
    """The word's vectors in these sentences, compared; with a control word, what the sentences alone do to it."""
    if not sentences:
        raise DataError(f"sentences = 0: there is nothing in which '{word}' could stand; give two or more")
    folder = Path(run)
    found = compare_meanings(load_predictor(run, device), word, sentences, control=control, folder=folder)
    if control and found.controls < 2:
        raise DataError(f"control = {control}: stands in one of the sentences; a word in two would be right")
    count = len(found.occurrences) - found.controls
    own = zip(found.occurrences, found.translations, found.neighbours[-1], strict=True)
    return MeaningReport(
        word=word,
        control=control,
        places=tuple(Place(one.sentence, one.word, *told, _kept(near)) for one, told, near in islice(own, count)),
        layers=found.layers,
        cosines=_rounded(found.cosines[:, :count, :count]),
        control_cosines=_rounded(found.cosines[:, count:, count:]) if control else (),
        points=tuple(
            tuple((round(x, DIGITS), round(y, DIGITS)) for x, y in layer[:count]) for layer in found.points.tolist()
        ),
        explained=tuple(round(share, DIGITS) for share in found.explained),
        searched=_searched(found.searched - len({*sentences})),
        name=folder.name,
    )


def _searched(more: int) -> str:
    """Where neighbours were looked for."""
    return "the words of these sentences" + (f" and of {more} validation sentences" if more else "")


def _kept(near: Near) -> Near:
    return tuple(Neighbour(one.word, one.sentence, round(one.cosine, DIGITS)) for one in near)


def _rounded(values: Tensor) -> tuple[Matrix, ...]:
    return tuple(tuple(tuple(round(value, DIGITS) for value in row) for row in layer) for layer in values.tolist())


def _controls(control: str | None, sentences: Sequence[str]) -> list[Occurrence]:
    """The control word wherever it stands; where it stands nowhere, there is nothing to compare with."""
    if not control:
        return []
    found = find(control, [sentence for sentence in sentences if stands_in(control, sentence)])
    if not found:
        raise DataError(f"control = {control}: stands in none of the sentences; choose a word that does")
    return found


# What a model reads and says


@dataclass(frozen=True)
class Reading:
    """A model with an encoder, and what it reads of a sentence."""

    model: EncoderDecoder | Labeller
    tokenizer: Tokenizer
    letters: int = 0


def reading_of(predictor: Translator | Tagger | Classifier) -> Reading:
    if isinstance(predictor, Translator):
        return Reading(predictor.model, predictor.tokenizers.source)
    return Reading(predictor.model, predictor.reader.tokenizer, predictor.reader.letters)


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


def _words(reading: Reading, corpus: Sequence[str]) -> list[Neighbours]:
    """The words of some sentences, ready to be searched at every layer; each sentence goes through the model once."""
    known = _KNOWN.setdefault(reading.model, {})
    for sentence in known.keys() - set(corpus):
        del known[sentence]
    for sentence in corpus:
        if sentence not in known:
            known[sentence] = layers(reading.model, reading.tokenizer, sentence, letters=reading.letters)
    places = tuple(Occurrence(sentence, word) for sentence in corpus for word in range(len(space_words(sentence))))
    depth = len(known[corpus[0]])
    return [
        Neighbours(places, normalize(torch.cat([known[sentence][layer] for sentence in corpus]), dim=-1))
        for layer in range(depth)
    ]
