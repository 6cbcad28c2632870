"""Contextual meaning: the vector of a word in its sentence, layer by layer.

Layer 0 is the embedding, the same wherever a word stands (positions not yet added); the layers above mix in the
sentence, and the last is what a decoder gets to see. A word of several pieces is the mean of their vectors. Works
for every model with an encoder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from regard.decode.cancel import check_cancelled
from regard.errors import DataError
from regard.explain.alignment import Aligner, attend, links_of_masking
from regard.explain.replay import Keeper, check, reads_backwards, resting
from regard.explain.side import Side, spell
from regard.explain.whatif import write
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.labeller import Labeller
from regard.nn import masks
from regard.tasks.labels import Reader
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizers import Tokenizers
from regard.text.words import space_words

_STATES = re.compile(r"encoder\.(\d+)\.states")


@dataclass(frozen=True)
class Occurrence:
    """A word in a sentence, counted from 0 at whitespace."""

    sentence: str
    word: int

    def __str__(self) -> str:
        return space_words(self.sentence)[self.word]


def find(word: str, sentences: Sequence[str]) -> list[Occurrence]:
    """The first time that a word stands in each of the sentences; capitals and punctuation around it do not matter."""
    found = []
    for sentence in sentences:
        places = [place for place, other in enumerate(space_words(sentence)) if _plain(other) == _plain(word)]
        if not places:
            where = f"in '{sentence[:60]}'"
            if word in sentence:
                raise DataError(f"word = {word}: is part of a longer one {where}; put spaces around it")
            raise DataError(f"word = {word}: does not stand {where}; choose sentences that have it")
        found.append(Occurrence(sentence, places[0]))
    return found


def _plain(word: str) -> str:
    return word.casefold().strip("\"'.,;:!?()[]«»“”‘’।")


def stands_in(word: str, sentence: str) -> bool:
    return any(_plain(other) == _plain(word) for other in space_words(sentence))


def layers(
    model: EncoderDecoder | Labeller, tokenizer: Tokenizer | Tokenizers, sentence: str, *, letters: int = 0
) -> list[Tensor]:
    """The vectors of all words of a sentence, (words, D) for the embedding and for every layer.

    ``letters`` is how many of each piece the model reads.
    """
    device = next(model.parameters()).device
    pair = tokenizer if isinstance(tokenizer, Tokenizers) else Tokenizers(tokenizer, tokenizer)
    labels = model.task == "label"
    read = Reader(pair.source, letters, device).text(sentence) if labels else pair.read(sentence)
    side = spell(read, pair.source, sentence, at_spaces=True)
    if not side.words:
        raise DataError("sentence = '': an empty sentence has no meaning to look at; give it a word")
    check_cancelled()
    watch = Keeper("usual")
    check(model, side.rows, side.ids)
    ids, source = (torch.tensor([rows], device=device) for rows in (side.ids, side.rows))
    with torch.no_grad(), resting(model):
        model.encoder(source, masks.padding(ids, model.pad), watch.at("encoder"))
    names = sorted((int(match[1]), name) for name in watch.names() if (match := _STATES.fullmatch(name)))
    found = []
    for name in ("encoder.embedded", *(name for _, name in names[:-1])):
        value = watch[name][0]
        found.append(_of_words(value.flip(0) if reads_backwards(model) else value, side))
    return [*found, _of_words(watch["encoder.states"][0], side)]


def _of_words(states: Tensor, side: Side) -> Tensor:
    return torch.stack([states[side.pieces_of(word)].mean(0) for word in range(len(side.words))])


@dataclass(frozen=True)
class Meaning:
    """The vectors of some occurrences."""

    occurrences: tuple[Occurrence, ...]
    vectors: tuple[Tensor, ...]  # a layer (N, D), embedding first

    def cosines(self) -> Tensor:
        """Of every two occurrences in every layer, (L + 1, N, N)."""
        unit = [normalize(layer, dim=-1) for layer in self.vectors]
        return torch.stack([layer @ layer.T for layer in unit])


def meaning(
    model: EncoderDecoder | Labeller,
    tokenizer: Tokenizer | Tokenizers,
    occurrences: Sequence[Occurrence],
    *,
    letters: int = 0,
) -> Meaning:
    """The vectors of these occurrences; a control word is just more of them."""
    if not occurrences:
        raise DataError("occurrences = 0: there is no word to look at; give one or more")
    known: dict[str, list[Tensor]] = {}
    rows = []
    for one in occurrences:
        words = space_words(one.sentence)
        if not 0 <= one.word < len(words):
            raise DataError(
                f"word = {one.word}: is past the end of '{one.sentence[:60]}'; 0 to {len(words) - 1} would be right"
            )
        if one.sentence not in known:
            known[one.sentence] = layers(model, tokenizer, one.sentence, letters=letters)
        rows.append([layer[one.word] for layer in known[one.sentence]])
    return Meaning(tuple(occurrences), tuple(torch.stack(layer) for layer in zip(*rows, strict=True)))


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


@dataclass(frozen=True)
class Neighbours:
    """The words of a corpus, ready to be searched at one layer."""

    occurrences: tuple[Occurrence, ...]
    vectors: Tensor  # (N, D), of unit length

    @classmethod
    def of(
        cls,
        model: EncoderDecoder | Labeller,
        tokenizer: Tokenizer | Tokenizers,
        sentences: Sequence[str],
        layer: int = -1,
        *,
        letters: int = 0,
    ) -> Neighbours:
        """All words of some sentences, at one layer, the last if not said otherwise."""
        found, vectors = [], []
        for sentence in sentences:
            if space_words(sentence):
                every = layers(model, tokenizer, sentence, letters=letters)
                if not -len(every) <= layer < len(every):
                    raise DataError(
                        f"layer = {layer}: there is no such layer; 0 (embedding) to {len(every) - 1} would be right"
                    )
                found += [Occurrence(sentence, word) for word in range(len(every[layer]))]
                vectors.append(every[layer])
        if not vectors:
            raise DataError("sentences = 0: a search for neighbours needs words to search; give it some")
        return cls(tuple(found), normalize(torch.cat(vectors), dim=-1))

    def nearest(
        self, vector: Tensor, count: int = 5, *, besides: Occurrence | None = None
    ) -> list[tuple[Occurrence, float]]:
        """The most alike by cosine, each spelling once, and never ``besides`` itself."""
        likeness = self.vectors @ normalize(vector, dim=0)
        seen: set[str] = set()
        found = []
        for number in likeness.argsort(descending=True).tolist():
            one = self.occurrences[number]
            if one == besides or _plain(str(one)) in seen:
                continue
            seen.add(_plain(str(one)))
            found.append((one, float(likeness[number])))
            if len(found) == count:
                break
        return found


def translations(
    model: EncoderDecoder, tokenizers: Tokenizers, occurrences: Sequence[Occurrence], aligner: Aligner | None
) -> list[tuple[str, str]]:
    """How each occurrence is translated: the target words linked with it, and the whole (greedy) translation.

    Without an aligner, as where there is no attention, a word is linked with those that miss it most when masked.
    """
    found = []
    for one in occurrences:
        source = spell(tokenizers.read(one.sentence), tokenizers.source, one.sentence, at_spaces=True)
        source.pieces_of(one.word)
        target = spell(write(model, source.ids, prefix=tokenizers.begin), tokenizers.target)
        if aligner is None:
            links = links_of_masking(model, source, target)
        else:
            links = aligner.align(attend(model, [(source, target)])[0])
        linked = sorted(place for word, place in links if word == one.word)
        found.append((" ".join(target.words[place] for place in linked), " ".join(target.words)))
    return found
