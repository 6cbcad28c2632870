"""Contextual meaning: the vector of a word in its sentence, layer by layer.

Layer 0 is the embedding, the same wherever a word stands (positions not yet added); the layers above mix in the
sentence, and the last is what a decoder gets to see. A word of several pieces is the mean of their vectors. Works
for every model with an encoder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from regard.decode.cancel import check_cancelled
from regard.errors import DataError
from regard.explain.alignment import Aligner, attend, links_of_masking
from regard.explain.asked import greedy
from regard.explain.replay import Keeper, check, reads_backwards, resting
from regard.explain.trace import Side, spell
from regard.models.generator import EncoderDecoder, Labeller
from regard.nn import masks
from regard.tasks.labels import Reader
from regard.text.subwords import SPACE
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import Tokenizer
from regard.text.words import space_words

_STATES = re.compile(r"encoder\.(\d+)\.states")


# A sentence and which of its words, counted from 0 at whitespace; in a script without spaces words are pieces, and
# those that make the word follow.
Occurrence = tuple[str, int, *tuple[str, ...]]


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


def stands_in(word: str, sentence: str, tokenizer: Tokenizer | Tokenizers | None = None) -> bool:
    return bool(_places(word, sentence, tokenizer))


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
        sentence, word, *_ = one
        if sentence not in known:
            known[sentence] = layers(model, tokenizer, sentence, letters=letters)
        last = len(known[sentence][0]) - 1
        if word < 0 or _numbers(one)[-1] > last:
            raise DataError(f"word = {word}: is past the end of '{sentence[:60]}'; 0 to {last} would be right")
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
