"""One word in several sentences, layer by layer: what ``regard meaning`` and the studio show.

Layer 0 is the embedding, the same wherever a word stands (positions not yet added); the layers above mix in the
sentence, and the last is what a decoder reads. A word of several pieces is the mean of their vectors. This works for
every model with an encoder.
"""

from __future__ import annotations

import re
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

from regard.decode.cancel import check_cancelled
from regard.errors import DataError, ModelError, RegardError
from regard.explain.alignment import Aligner, attend, links_of_masking
from regard.explain.answer import Answer, Hidden, PackedTensor
from regard.explain.asked import greedy
from regard.explain.replay import Keeper, check, reads_backwards, resting
from regard.explain.trace import Side, check_number, spell
from regard.models.generator import EncoderDecoder, Labeller
from regard.nn import masks
from regard.runs.folder import Run
from regard.tasks.classify import Classifier
from regard.tasks.corpus import materials
from regard.tasks.labels import Reader
from regard.tasks.load import Trained, task_of
from regard.tasks.tag import Tagger
from regard.tasks.translator import Translator
from regard.text.subwords import SPACE
from regard.text.tokenizers import Tokenizers
from regard.text.vectors import Vectors
from regard.text.vocabulary import Tokenizer
from regard.text.words import space_words

SENTENCES = 200  # of the validation text, in which neighbours are looked for
WORDS = 25  # of the longest of them
NEAREST = 5
DIGITS = 6  # of numbers as a page keeps them
_STATES = re.compile(r"encoder\.(\d+)\.states")
# A sentence and which of its words, counted from 0 at whitespace; in a script without spaces words are pieces, and
# those that make the word follow.
Occurrence = tuple[str, int, *tuple[str, ...]]


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
    """Follow a word through the encoder; a control word shows the effect of the sentences alone.

    Neighbours come from the validation text of the run in ``folder``, where it is still there.
    """
    if not sentences:
        raise DataError(f"sentences = 0: nothing to find '{word}' in; give two or more")
    if predictor.task == "language":
        raise ModelError("meaning: a language model has no encoder, whose layers are compared here; a translator has")
    model, tokenizer, letters = reading_of(predictor)
    if isinstance(tokenizer.source if isinstance(tokenizer, Tokenizers) else tokenizer, Vectors):
        raise ModelError("meaning: this run reads vectors and no words; ask a run that reads text")
    cuts = tokenizer if predictor.task == "translate" else None
    own = find(word, sentences, cuts)
    occurrences = (*own, *_controls(control, sentences, cuts))
    found = meaning(model, tokenizer, occurrences, letters=letters)
    # Axes of the word alone: with the control among them they would separate two words, not two meanings.
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
    """The places of the control word."""
    if not control:
        return []
    found = find(control, [sentence for sentence in sentences if _places(control, sentence, cuts)], cuts)
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


# Vectors of words


def spelled(one: Occurrence) -> str:
    """The word itself."""
    sentence, word, *pieces = one
    return "".join(pieces) or space_words(sentence)[word]


def _numbers(one: Occurrence) -> range:
    """Which words it is."""
    return range(one[1], one[1] + max(1, len(one) - 2))


def find(word: str, sentences: Sequence[str], tokenizer: Tokenizer | Tokenizers | None = None) -> list[Occurrence]:
    """The first time that a word stands in each of the sentences; capitals and punctuation around it do not matter.

    With a tokenizer, words of a script without spaces are found in the pieces that it cuts a sentence into.
    """
    found = []
    for sentence in sentences:
        places = _places(word, sentence, tokenizer)
        if not places:
            where = f"in '{sentence[:60]}'"
            if word in sentence:
                words = () if tokenizer is None else _read(tokenizer, sentence).words
                longer = next((f"'{other}', one piece" for other in words if word in other and other != sentence), "")
                advice = "choose another sentence, or that piece" if longer else "put spaces around it"
                raise DataError(f"word = {word}: is part of {longer or 'a longer one'} {where}; {advice}")
            raise DataError(f"word = {word}: does not stand {where}; choose sentences that have it")
        found.append(places[0])
    return found


def _places(word: str, sentence: str, tokenizer: Tokenizer | Tokenizers | None) -> list[Occurrence]:
    spaced, wanted = space_words(sentence), _plain(word)
    words = spaced if tokenizer is None else _read(tokenizer, sentence).words
    if len(words) == len(spaced):
        return [(sentence, place) for place, other in enumerate(spaced) if _plain(other) == wanted]
    runs = ((begin, end) for begin in range(len(words)) for end in range(begin + 1, len(words) + 1))
    near = ((begin, words[begin:end]) for begin, end in runs if end - begin <= len(word))
    return [(sentence, begin, *run) for begin, run in near if _plain("".join(run)) == wanted]


def _plain(word: str) -> str:
    return word.casefold().strip("\"'.,;:!?()[]«»“”‘’।。，、！？；：「」《》（）")


def _read(tokenizer: Tokenizer | Tokenizers, sentence: str) -> Side:
    """A sentence as a translator reads it."""
    pair = tokenizer if isinstance(tokenizer, Tokenizers) else Tokenizers(tokenizer, tokenizer)
    return spell(pair.read(sentence), pair.source, sentence)


def layers(
    model: EncoderDecoder | Labeller, tokenizer: Tokenizer | Tokenizers, sentence: str, *, letters: int = 0
) -> list[Tensor]:
    """The vectors of all words of a sentence, (words, D) for the embedding and for every layer.

    ``letters`` is how many of each piece the model reads.
    """
    device = next(model.parameters()).device
    side = _side(model, tokenizer, sentence, letters)
    if not side.words:
        raise DataError("sentence = '': an empty sentence has no meaning to look at; give it a word")
    check_cancelled()
    watch = Keeper("usual")
    check(model, side.rows, side.ids)
    ids, source = (torch.tensor([rows], device=device) for rows in (side.ids, side.rows))
    with torch.no_grad(), resting(model):
        model.encoder(source, masks.padding(ids), watch.at("encoder"))
    names = sorted((int(match[1]), name) for name in watch.names() if (match := _STATES.fullmatch(name)))
    found, bare = [], len(side.words) == len(space_words(sentence))
    for name in ("encoder.embedded", *(name for _, name in names[:-1])):
        value = watch[name][0]
        found.append(_of_words(value.flip(0) if reads_backwards(model) else value, side, bare=bare))
    return [*found, _of_words(watch["encoder.states"][0], side, bare=bare)]


def _side(model: EncoderDecoder | Labeller, tokenizer: Tokenizer | Tokenizers, sentence: str, letters: int) -> Side:
    """A sentence as a model reads it; labels are for words at whitespace, in every script."""
    if model.task != "label":
        return _read(tokenizer, sentence)
    cuts = tokenizer.source if isinstance(tokenizer, Tokenizers) else tokenizer
    read = Reader(cuts, letters, next(model.parameters()).device).text(sentence)
    return spell(read, cuts, sentence, at_spaces=True)


def _of_words(states: Tensor, side: Side, *, bare: bool = True) -> Tensor:
    """(words, D); without marks of space that stand ``bare``, where a word is a piece and they are of no word."""
    groups = [side.pieces_of(word) for word in range(len(side.words))]
    if not bare:
        groups = [[place for place in group if side.pieces[place] != SPACE] or group for group in groups]
    return torch.stack([states[group].mean(0) for group in groups])


def meaning(
    model: EncoderDecoder | Labeller,
    tokenizer: Tokenizer | Tokenizers,
    occurrences: Sequence[Occurrence],
    *,
    letters: int = 0,
) -> list[Tensor]:
    """The vectors (N, D) of these occurrences in each layer, embedding first; a control word is just more of them."""
    if not occurrences:
        raise DataError("occurrences = 0: there is no word to look at; give one or more")
    known: dict[str, list[Tensor]] = {}
    rows = []
    for one in occurrences:
        sentence = one[0]
        if sentence not in known:
            known[sentence] = layers(model, tokenizer, sentence, letters=letters)
        for number in _numbers(one):
            check_number("word", number, len(known[sentence][0]), f"'{sentence[:60]}'")
        rows.append([layer[_numbers(one)].mean(0) for layer in known[sentence]])
    return [torch.stack(layer) for layer in zip(*rows, strict=True)]


def cosines(vectors: Sequence[Tensor]) -> Tensor:
    """Of every two in every layer, (L + 1, N, N)."""
    unit = [normalize(layer, dim=-1) for layer in vectors]
    return torch.stack([layer @ layer.T for layer in unit])


def plane(vectors: Sequence[Tensor], own: int | None = None) -> tuple[list[Tensor], list[float]]:
    """Vectors on two axes: principal components of the unit vectors of all layers together, so that a word's way can be
    followed. Gives the points (N, 2) of each layer, and the share of all variance on its axes that the two show.

    Unit length, because layers differ in scale and it is angles that cosines compare. An embedding that is
    narrower than the states above has axes of its own. Signs are fixed: the largest part of an axis is positive.
    The axes are those of the first ``own`` vectors of each layer, or of all; the others are seen from there.
    """
    unit = [normalize(layer, dim=-1) for layer in vectors]
    points: list[Tensor] = [torch.zeros(0)] * len(unit)
    explained = [0.0] * len(unit)
    for width in {layer.shape[1] for layer in unit}:
        members = [number for number, layer in enumerate(unit) if layer.shape[1] == width]
        together = torch.cat([unit[number][:own] for number in members])
        middle = together.mean(0)
        _, lengths, axes = torch.linalg.svd(together - middle, full_matrices=False)
        share = float(lengths[:2].square().sum() / lengths.square().sum().clamp(min=1e-30))
        axes = axes[:2] * axes[:2].gather(1, axes[:2].abs().argmax(1, keepdim=True)).sign()
        for number in members:
            found = (unit[number] - middle) @ axes.T
            points[number] = torch.nn.functional.pad(found, (0, 2 - found.shape[1]))
            explained[number] = share
    return points, explained


_KNOWN: WeakKeyDictionary[nn.Module, dict[str, list[Tensor]]] = WeakKeyDictionary()  # a corpus is read once a model


def words_of(
    model: EncoderDecoder | Labeller,
    tokenizer: Tokenizer | Tokenizers,
    corpus: Sequence[str],
    *,
    letters: int = 0,
) -> tuple[list[Occurrence], list[Tensor]]:
    """All words of some sentences, and their vectors (N, D) in each layer; the model reads each sentence once."""
    known = _KNOWN.setdefault(model, {})
    for sentence in known.keys() - set(corpus):
        del known[sentence]
    for sentence in corpus:
        if sentence not in known:
            known[sentence] = layers(model, tokenizer, sentence, letters=letters)
    places: list[Occurrence] = []
    for sentence in corpus:
        words = _side(model, tokenizer, sentence, letters).words
        apart = len(words) != len(space_words(sentence))
        places += [(sentence, place, word) if apart else (sentence, place) for place, word in enumerate(words)]
    return places, [torch.cat(layer) for layer in zip(*(known[sentence] for sentence in corpus), strict=True)]


def nearest(
    vector: Tensor, words: Sequence[Occurrence], unit: Tensor, count: int = 5, *, besides: Occurrence | None = None
) -> list[tuple[Occurrence, float]]:
    """Of ``words``, whose vectors of length one are ``unit`` (N, D), the most alike by cosine.

    Each spelling once, and never ``besides`` itself.
    """
    likeness = unit @ normalize(vector, dim=0)
    found: dict[str, tuple[Occurrence, float]] = {}
    for number in likeness.argsort(descending=True).tolist():
        if len(found) == count:
            break
        if words[number] != besides:
            found.setdefault(_plain(spelled(words[number])), (words[number], float(likeness[number])))
    return list(found.values())


def translations(
    model: EncoderDecoder, tokenizers: Tokenizers, occurrences: Sequence[Occurrence], aligner: Aligner | None
) -> list[tuple[str, str]]:
    """How each occurrence is translated: the target words linked with it, and the whole (greedy) translation.

    Without an aligner, as where there is no attention, a word is linked with those that miss it most when masked.
    """
    found = []
    for one in occurrences:
        source = _read(tokenizers, one[0])
        source.pieces_of(one[1])
        target = spell(greedy(model, source.ids, prefix=tokenizers.begin), tokenizers.target)
        if aligner is None:
            links = links_of_masking(model, source, target)
        else:
            links = aligner.align(attend(model, [(source, target)])[0])
        linked = sorted(place for word, place in links if word in _numbers(one))
        found.append((" ".join(target.words[place] for place in linked), " ".join(target.words)))
    return found
