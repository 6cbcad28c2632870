"""How doubtful a translation is, and why: signals of one batched replay, with weights learned on validation data.

A signal is a number for a pair of source and output:

    probability  mean log-probability of the output's pieces, <end> included
    worst        that of its least probable piece
    entropy      mean entropy of the model's choices, in nats
    source       how much comes from the source: of what a Transformer's layers hold, the share that cross-attention
                 added, ‖c‖ / (‖c‖ + ‖a‖), mean over layers and pieces; of a recurrent decoder, what the source adds to
                 a piece's log-probability, log p(y | y<t, x) − log p(y | y<t, nothing)
    coverage     mean over source pieces of how far they were looked at: min(1, Σ_t α_ts), α the mean of all heads
    repetition   share of the output's pairs of words that it had before
    unknown      share of source words that the run has never seen
    length       how far log(output pieces / source pieces) is from what is usual

None of them says whether a translation is good. Which of them tell good pairs from bad ones depends on the run, so
their weights are learned (`calibrate`): a logistic regression on the run's validation text, of which bad pairs are made
by damaging the input or by giving it an output that is not its own. `RUN/doubt.json` keeps them with the hash of the
model's weights they were learned for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from regard.data.encoding import PairEncoder
from regard.decode.cancel import check_cancelled
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.search import of_like_length
from regard.decode.texts import Output, Part
from regard.errors import DataError, RegardError
from regard.explain.alignment import Attended
from regard.explain.answer import load_kept, save_kept
from regard.explain.faithful import weights_of
from regard.explain.replay import padded, resting
from regard.explain.trace import OUTSIDE, Side
from regard.models.generator import EncoderDecoder
from regard.nn import masks
from regard.nn.observe import UNOBSERVED, Unobserved
from regard.tasks.corpus import materials
from regard.text.vocabulary import END
from regard.text.words import space_words

if TYPE_CHECKING:
    from regard.tasks.translator import Translator

FILE = "doubt.json"
BUDGET = 4096  # padded pieces that are replayed at once
ROWS = 512  # features projected onto the vocabulary at once
LEARNED_ON = 200  # validation sentences
WORDS = 40  # of the longest of them
RARE = 0.05  # share of the words of good translations that is called doubtful
LIKELY = math.log(0.5)  # a word that is at least as probable is never doubtful
TOLD = 0.7  # a signal that adds more than this to the logit is a reason
SIGNALS = {
    "probability": "the model finds its words improbable",
    "worst": "one piece is very improbable",
    "entropy": "the model was undecided",
    "source": "it hardly depends on the source",
    "coverage": "parts of the source were not looked at",
    "repetition": "it repeats itself",
    "unknown": "words of the source were never seen in training",
    "length": "its length is unusual",
}
GREEDY = Options(Beam(width=1))
GOOD = ("own", "reference")  # kinds of pairs
Pair = tuple[str, tuple[int, ...]]  # a source as it is read, and the pieces of an output, without <end>
# log-probabilities, entropies and shares of the source (T,); cross-attention (L, H, T, S), where there is some
Measured = tuple[Tensor, Tensor, Tensor, Tensor | None]


@dataclass(frozen=True)
class DoubtfulWord:
    """A word of an output that the model found improbable."""

    place: Annotated[int, Field(description="Which word of the output, from 0 at spaces.")]
    word: str
    probability: Annotated[float, Field(description="Of its least probable piece.", examples=[0.08])]


@dataclass(frozen=True)
class Doubt:
    """Of an output."""

    value: Annotated[
        float | None,
        Field(description="From 0 to 1, as the run's validation text taught; null where it has none.", examples=[0.12]),
    ]
    reasons: tuple[str, ...]
    words: tuple[DoubtfulWord, ...]
    signals: Mapping[str, float]


class Watch:
    """An observer of all cross-attentions, which alone are written out, and of what each layer holds before and after
    its own."""

    def __init__(self, place: str = "", seen: dict[str, list[Tensor]] | None = None) -> None:
        self._place = place
        self.seen: dict[str, list[Tensor]] = {"weights": [], "attended": [], "crossed": []} if seen is None else seen

    @property
    def active(self) -> bool:
        return self._place == "cross"

    def at(self, place: str | int) -> Watch | Unobserved:
        inside = place in ("decoder", "cross") or (self._place == "decoder" and isinstance(place, int))
        return Watch("decoder" if isinstance(place, int) else place, self.seen) if inside else UNOBSERVED

    def see(self, name: str, value: Tensor) -> Tensor:
        if name in self.seen and (name == "weights") == self.active:
            self.seen[name].append(value)
        return value

    def cross(self, length: int) -> Tensor | None:
        """(B, L, H, T, S): a Transformer shows a layer after the other, a loop over time a step after the other."""
        weights = self.seen["weights"]
        if not weights:
            return None
        return torch.stack(weights, 1) if weights[0].shape[2] == length else torch.cat(weights, 2)[:, None]

    def share(self) -> Tensor | None:
        """What cross-attention added to what was there, (B, T)."""
        if not self.seen["crossed"]:
            return None
        before, after = (torch.stack(self.seen[name]) for name in ("attended", "crossed"))  # (L, B, T, D)
        added, there = (after - before).norm(dim=-1), before.norm(dim=-1)
        return (added / (added + there + 1e-9)).mean(0)


def replay_all(
    model: EncoderDecoder, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[Measured]:
    """What the signals are made of, for each pair; those of like length are replayed together."""
    found: dict[int, Measured] = {}
    lengths = [max(len(source), len(target) + 1) for source, target in zip(sources, targets, strict=True)]
    with torch.no_grad(), resting(model):
        for group in of_like_length(lengths, BUDGET):
            check_cancelled()
            rows = _replayed(model, [sources[row] for row in group], [targets[row] for row in group])
            found |= dict(zip(group, rows, strict=True))
    return [found[row] for row in range(len(sources))]


def _replayed(model: EncoderDecoder, sources: list[Sequence[int]], targets: list[Sequence[int]]) -> list[Measured]:
    device, watch = next(model.parameters()).device, Watch()
    read = padded(sources).to(device)
    written = padded([[model.first, *target] for target in targets]).to(device)  # (B, T)
    sizes = [len(target) + 1 for target in targets]
    real = masks.from_lengths(torch.tensor(sizes, device=device), written.shape[1])
    wanted = padded([[*target, END] for target in targets]).to(device)[real]  # (N,)
    features = model.advance(written, model.start(read, observer=watch)[1], real, watch)[0][real]
    own, entropy = _chosen(model, features, wanted)
    share = watch.share()
    if share is None:
        alone = model.advance(written, model.start(torch.full_like(read[:, :1], END))[1], real)[0][real]
        shares = own - _chosen(model, alone, wanted)[0]
    else:
        shares = share[real]
    cross = watch.cross(written.shape[1])
    parts = zip(*(torch.split(each.cpu(), sizes) for each in (own, entropy, shares)), strict=True)
    return [
        (*each, None if cross is None else cross[row, :, :, : sizes[row], : len(sources[row])].cpu())
        for row, each in enumerate(parts)
    ]


def _chosen(model: EncoderDecoder, features: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The log-probability of each wanted token (N,) after its features (N, D), and the entropy of the choice."""
    chosen, entropies = list[Tensor](), list[Tensor]()
    for some, tokens in zip(torch.split(features, ROWS), torch.split(wanted, ROWS), strict=True):
        logs = model.project(some).float().log_softmax(-1)
        chosen.append(logs.gather(1, tokens[:, None]).squeeze(1))
        entropies.append(-torch.linalg.vecdot(logs.exp(), logs))
    return torch.cat(chosen), torch.cat(entropies)


def signals(
    translator: Translator, pairs: Sequence[Pair], usual: float = 0.0
) -> list[tuple[dict[str, float], Measured]]:
    """The signals of each pair, and what they were made of; ``usual`` is the logarithm of how many pieces an output
    has for one of its source."""
    tokenizers = translator.tokenizers
    sources = [tokenizers.read(source) for source, _ in pairs]
    found = replay_all(translator.model, sources, [tokens for _, tokens in pairs])
    return [
        (_signals(translator, pair, len(source), seen, usual), seen)
        for pair, source, seen in zip(pairs, sources, found, strict=True)
    ]


def _signals(translator: Translator, pair: Pair, size: int, seen: Measured, usual: float) -> dict[str, float]:
    own, entropy, share, cross = seen
    looked = torch.ones(1) if cross is None or size < 2 else cross.mean((0, 1)).sum(0)[:-1].clamp(max=1)  # no <end>
    text, tokens = pair
    return {
        "probability": float(own.mean()),
        "worst": float(own.min()),
        "entropy": float(entropy.mean()),
        "source": float(share.mean()),
        "coverage": float(looked.mean()),
        "repetition": repetition(space_words(translator.tokenizers.target.decode(tokens))),
        "unknown": len(translator.search.read(text).unknown) / max(1, len(space_words(text))),
        "length": abs(math.log((len(tokens) + 1) / size) - usual),
    }


def repetition(words: Sequence[str]) -> float:
    """The share of pairs of neighbours that were there before."""
    couples = list(pairwise(words))
    return 1 - len(set(couples)) / len(couples) if couples else 0.0


# Weights of the signals


@dataclass(frozen=True)
class Calibration:
    """The logistic regression of one model, and how many sentences it was learned on."""

    weights: str  # the hash of the model's
    usual: float  # see `signals`
    means: tuple[float, ...]
    scales: tuple[float, ...]
    coefficients: tuple[float, ...]
    intercept: float
    word: float  # the log-probability below which a word is doubtful
    sentences: int

    def value(self, values: Mapping[str, float]) -> tuple[float, tuple[str, ...]]:
        """The doubt of a pair with these signals, from 0 to 1, and its reasons, the strongest first."""
        each = [
            (weight * (values[name] - mean) / scale, SIGNALS[name])
            for name, mean, scale, weight in zip(SIGNALS, self.means, self.scales, self.coefficients, strict=True)
        ]
        logit = self.intercept + sum(part for part, _ in each)
        reasons = tuple(why for part, why in sorted(each, reverse=True) if part > TOLD)
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit)))), reasons if logit > 0 else ()

    def save(self, folder: Path) -> None:
        save_kept(self, folder / FILE)

    @classmethod
    def load(cls, folder: Path) -> Calibration | None:
        """What a folder keeps, if it does."""
        return load_kept(cls, folder / FILE, "a calibration of doubt", cls._is_whole)

    def _is_whole(self) -> bool:
        lists = (self.means, self.scales, self.coefficients)
        numbers = (*sum(lists, ()), self.usual, self.intercept, self.word)
        return {len(each) for each in lists} == {len(SIGNALS)} and all(map(math.isfinite, numbers))


def calibration_of(translator: Translator) -> Calibration | None:
    """What the run has saved for its best weights; else what is learned on its validation text, and then saved. None
    where there is no such text."""
    if (known := known_calibration(translator)) is not None or translator.run is None:
        return known
    try:
        rows = (row for _, row in materials(translator.run.settings)[1].rows(PairEncoder.names))
        short = (row for row in rows if 2 < len(space_words(row[0])) <= WORDS and space_words(row[1]))
        chosen = [(row[0], row[1]) for row in islice(short, LEARNED_ON)]
        found = calibrate(translator, chosen, weights_of(translator.run))
    except RegardError:
        return None
    with suppress(OSError):
        found.save(translator.run.cache)
    return found


def known_calibration(translator: Translator) -> Calibration | None:
    """What the run has saved, if it is for the weights that it has."""
    if translator.run is None:
        return None
    kept = Calibration.load(translator.run.folder) or Calibration.load(translator.run.cache)
    return kept if kept is not None and kept.weights == weights_of(translator.run) else None


def calibrate(translator: Translator, texts: Sequence[tuple[str, str]], weights: str, seed: int = 1) -> Calibration:
    """Learn to tell the model's translations of ``texts``, and their references, from bad pairs made of them."""
    if len(texts) < 10:
        raise DataError(f"sentences = {len(texts)}: too few to calibrate doubt; 10 are the least")
    made = labelled(translator, texts, Random(seed))
    if not any(kind == "own" for _, kind in made):
        raise DataError("outputs = 0: the run translates nothing of its validation text; train it for longer")
    pairs = [pair for pair, _ in made]
    bad = np.array([kind not in GOOD for _, kind in made])
    sources = [len(translator.tokenizers.read(source)) for source, _ in pairs]
    ratios = [math.log((len(pair[1]) + 1) / size) for pair, size in zip(pairs, sources, strict=True)]
    usual = float(np.median(np.array(ratios)[~bad]))
    found = signals(translator, pairs, usual)
    table = np.array([list(values.values()) for values, _ in found])
    means, scales = table.mean(0), table.std(0) + 1e-6
    coefficients, intercept = logistic((table - means) / scales, bad)
    lows = [seen[0][:-1].numpy() for (_, seen), (_, kind) in zip(found, made, strict=True) if kind == "own"]
    lists = [tuple(map(float, row)) for row in (means, scales, coefficients)]
    word = min(LIKELY, float(np.quantile(np.concatenate(lows), RARE)))
    return Calibration(weights, usual, lists[0], lists[1], lists[2], float(intercept), word, len(texts))


def logistic(x: NDArray[np.float64], y: NDArray[np.bool_], ridge: float = 1.0) -> tuple[NDArray[np.float64], float]:
    """Coefficients and intercept of ``p = 1 / (1 + exp(−(x · c + b)))``, by Newton's method.

    Both labels have the same total weight.
    """
    wide = np.column_stack((x, np.ones(len(x))))
    share = np.where(y, 0.5 / max(1, y.sum()), 0.5 / max(1, (~y).sum())) * len(y)
    penalty, found = np.diag([*[ridge] * x.shape[1], 1e-6]), np.zeros(wide.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-(wide @ found).clip(-30, 30)))
        gradient = wide.T @ (share * (chance - y)) + penalty @ found
        curvature = (wide * (share * chance * (1 - chance))[:, None]).T @ wide + penalty
        found = found - np.linalg.solve(curvature, gradient)
    return found[:-1], float(found[-1])


# Bad pairs


def labelled(translator: Translator, texts: Sequence[tuple[str, str]], chance: Random) -> list[tuple[Pair, str]]:
    """Pairs with their kind: good ones are the model's ``own`` translations and the ``reference`` ones; of each text
    there is one damaged input with its translation, and one output that is not its own."""
    sources = [source for source, _ in texts]
    kinds = list(DAMAGES)
    damages = [kinds[number % len(kinds)] for number in range(len(texts))]
    hurt = [DAMAGES[kind](*pair, chance) for kind, pair in zip(damages, texts, strict=True)]
    own, wrong = (_written(translator, each) for each in (sources, hurt))
    references = [tuple(translator.tokenizers.written(target)) for _, target in texts]
    made = [((source, tokens), "own") for source, tokens in zip(sources, own, strict=True)]
    made += [((source, tokens), "reference") for source, tokens in zip(sources, references, strict=True)]
    made += [((source, tokens), kind) for source, tokens, kind in zip(hurt, wrong, damages, strict=True)]
    for number, source in enumerate(sources):
        kind = list(DETACHED)[number % len(DETACHED)]
        other = own[(number + 1 + chance.randrange(len(own) - 1)) % len(own)]
        made.append(((source, DETACHED[kind](own[number], other, chance)), kind))
    return [(pair, kind) for pair, kind in made if pair[1]]


def _written(translator: Translator, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """The pieces of greedy translations; of a text in several sentences or parts, all of them."""
    found = translator.search(list(texts), GREEDY)
    return [tuple(token for part in ranked[0].parts for token in part.tokens) for ranked in found]


def shuffled(source: str, target: str, chance: Random) -> str:  # noqa: ARG001
    return " ".join(chance.sample(words := source.split(), len(words)))


def thinned(source: str, target: str, chance: Random) -> str:  # noqa: ARG001
    """Half of its words, at least one."""
    words = source.split()
    kept = sorted(chance.sample(range(len(words)), max(1, len(words) // 2)))
    return " ".join(words[place] for place in kept)


def foreign(source: str, target: str, chance: Random) -> str:  # noqa: ARG001
    """The reference, which is in the other language."""
    return target


def noisy(source: str, target: str, chance: Random) -> str:  # noqa: ARG001
    """With a third of its letters replaced by others of the text."""
    letters = [letter for letter in source if not letter.isspace()]
    return "".join(
        chance.choice(letters) if not letter.isspace() and chance.random() < 1 / 3 else letter for letter in source
    )


def _other(own: tuple[int, ...], other: tuple[int, ...], chance: Random) -> tuple[int, ...]:  # noqa: ARG001
    return other


def _repeated(own: tuple[int, ...], other: tuple[int, ...], chance: Random) -> tuple[int, ...]:  # noqa: ARG001
    """A part of it again and again."""
    start = chance.randrange(max(1, len(own) - 3))
    return own[: start + 4] + own[start : start + 4] * 3


def _truncated(own: tuple[int, ...], other: tuple[int, ...], chance: Random) -> tuple[int, ...]:  # noqa: ARG001
    return own[: max(1, len(own) // 2)]


DAMAGES: dict[str, Callable[[str, str, Random], str]] = {
    "shuffled": shuffled,
    "thinned": thinned,
    "foreign": foreign,
    "noisy": noisy,
}
DETACHED: dict[str, Callable[[tuple[int, ...], tuple[int, ...], Random], tuple[int, ...]]] = {
    "another": _other,
    "repeated": _repeated,
    "truncated": _truncated,
}


# Outputs


def doubts(
    translator: Translator, outputs: Sequence[Output], calibration: Calibration | None
) -> list[tuple[Doubt, list[Attended]]]:
    """Of each output, with the cross-attention of its parts, which the same replay has shown. The doubt
    of several sentences is that of the most doubtful one."""
    parts = [part for output in outputs for part in output.parts]
    usual = 0.0 if calibration is None else calibration.usual
    found = zip(parts, signals(translator, [(part.source, part.tokens) for part in parts], usual), strict=True)
    return [_joined(translator, list(islice(found, len(output.parts))), calibration) for output in outputs]


def _joined(
    translator: Translator,
    found: Sequence[tuple[Part, tuple[dict[str, float], Measured]]],
    calibration: Calibration | None,
) -> tuple[Doubt, list[Attended]]:
    worst, words, attended = Doubt(None, (), (), {}), list[DoubtfulWord](), list[Attended]()
    rare = LIKELY if calibration is None else calibration.word
    for part, (values, (own, _, _, cross)) in found:
        source, target = translator.sides(part)
        words += _rare(part, target, own, rare)
        if cross is not None:
            attended.append(Attended(cross, source, target))
        value, reasons = (None, ()) if calibration is None else calibration.value(values)
        if not worst.signals or (value or 0.0) > (worst.value or 0.0):
            worst = Doubt(value, reasons, (), values)
    return replace(worst, words=tuple(words)), attended


def _rare(part: Part, target: Side, logs: Tensor, least: float) -> list[DoubtfulWord]:
    """The words whose least probable piece is less probable than that."""
    lowest: dict[int, float] = {}
    for owner, value in zip(target.word_of, logs.tolist(), strict=True):
        if owner != OUTSIDE:
            lowest[owner] = min(value, lowest.get(owner, 0.0))
    return [
        DoubtfulWord(part.target_word + place, target.words[place], math.exp(value))
        for place, value in sorted(lowest.items())
        if value < least
    ]
