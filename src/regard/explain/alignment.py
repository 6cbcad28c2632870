"""Word alignments from attention: which source word a target word came from.

Not every head aligns, and one that does may do so a step late: a Transformer's row t is asked by the word *before*
target word t, so what aligns with word t may stand in row t, which predicted it, or in row t + 1, which read it.
Which heads, which row and which rule align best is measured on validation sentences and saved in the run,
with what it was measured on (`RUN/aligner.json`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor

from regard.data.encoding import PairEncoder
from regard.decode.cancel import check_cancelled
from regard.decode.search import of_like_length
from regard.errors import DataError, ModelError, RegardError
from regard.explain.answer import load_kept, save_kept
from regard.explain.passes import SOURCE, Subject, masking
from regard.explain.replay import Keeper, padded, resting
from regard.explain.trace import OUTSIDE, Side, Trace, check_number, fold, layer_names, members, spell
from regard.fable.corpus import generate
from regard.metrics.alignment import Gold, Links, alignment_quality
from regard.models.generator import EncoderDecoder
from regard.runs.folder import Run
from regard.settings import DataSettings
from regard.tasks.corpus import materials
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import END

Rule = Literal["word", "piece", "threshold"]
Head = tuple[int, int]  # layer, head
THRESHOLDS = (0.15, 0.2, 0.3, 0.4, 0.5)
COVERS = (0.0, 0.05, 0.1, 0.2)
FILE = "aligner.json"


@dataclass(frozen=True)
class Attended:
    """A pair with its cross-attention."""

    cross: Tensor  # (L, H, T, S)
    source: Side
    target: Side

    @classmethod
    def of(cls, trace: Trace) -> Attended:
        return cls(trace.cross, trace.source, trace.target)

    @cached_property
    def by_piece(self) -> Tensor:
        """From each target piece to each source word, (L, H, T, S words)."""
        alone = Side(self.target.ids, self.target.pieces, tuple(range(len(self.target))), self.target.pieces)
        return fold(self.cross, alone, self.source, special=False).weights

    @cached_property
    def late(self) -> Attended:
        """The same with each row taken from the step that read the piece; the last, never read, keeps its own."""
        return replace(self, cross=torch.cat((self.cross[:, :, 1:], self.cross[:, :, -1:]), 2))

    @cached_property
    def by_word(self) -> Tensor:
        """From each target word to each source word, (L, H, T words, S words)."""
        return fold(self.cross, self.target, self.source, special=False).weights


@dataclass(frozen=True)
class Aligner:
    """A way to read links out of cross-attention, and how good it was found to be.

    - rule ``word``: each target word takes the source word with the largest weight;
    - rule ``piece``: each *piece* of a target word does, so that *l'abeille* can take *the* and *bee*;
    - rule ``threshold``: a target word takes every source word with at least the ``threshold``.

    With the first two rules, a ``threshold`` adds the links that have at least so much weight. To ``cover`` is to
    link each source word that has no link with the target word in whose row it weighs most, if it weighs at
    least that: so *will* in *will see*, which is one word in French, finds *verra*.
    """

    heads: tuple[Head, ...] = ()  # whose mean is read; none means all of them
    late: bool = False  # read the row that read a piece, not the one that predicted it
    rule: Rule = "word"
    threshold: float | None = None
    cover: float | None = None
    error_rate: float | None = None  # on the sentences it was chosen on
    chosen_on: str = ""
    sentences: int = 0

    @property
    def chosen(self) -> bool:
        """Whether heads were chosen; the mean of all heads is also read where there was no text to choose on."""
        return bool(self.heads or self.chosen_on)

    def weights(self, cross: Tensor) -> Tensor:
        """The (T, S) of all the (L, H, T, S) that this aligner reads."""
        for layer, head in self.heads:
            check_number("layer", layer, cross.shape[0])
            check_number("head", head, cross.shape[1])
        if not self.heads:
            return cross.mean((0, 1))
        return torch.stack([cross[layer, head] for layer, head in self.heads]).mean(0)

    def rows(self, pair: Trace | Attended) -> Attended:
        """A pair with the rows that this aligner reads."""
        seen = Attended.of(pair) if isinstance(pair, Trace) else pair
        return seen.late if self.late else seen

    def align(self, pair: Trace | Attended) -> Links:
        """The links (source word, target word) of a replayed pair; none for an empty one."""
        seen = self.rows(pair)
        if not (seen.source.words and seen.target.words):
            return frozenset()
        found: set[tuple[int, int]] = set()
        if self.threshold is not None:
            strong = self.weights(seen.by_word) >= self.threshold
            found |= {(source, target) for target, source in strong.nonzero().tolist()}
        if self.rule != "threshold":
            rows = self.weights(seen.by_word if self.rule == "word" else seen.by_piece).argmax(1).tolist()
            owners = range(len(rows)) if self.rule == "word" else seen.target.word_of
            found |= {(source, target) for source, target in zip(rows, owners, strict=True) if target != OUTSIDE}
        if self.cover is not None:
            found |= self._uncovered(self.weights(seen.by_word), {source for source, _ in found})
        return frozenset(found)

    def strongest(self, pair: Trace | Attended) -> list[tuple[int, float]]:
        """For each target word the source word with the largest weight, and that weight, whatever the rule."""
        seen = self.rows(pair)
        if not (seen.source.words and seen.target.words):
            return []
        weights, words = self.weights(seen.by_word).max(1)
        return list(zip(words.tolist(), weights.tolist(), strict=True))

    def _uncovered(self, weights: Tensor, taken: set[int]) -> set[tuple[int, int]]:
        heaviest, rows = weights.max(0)
        pairs = zip(heaviest.tolist(), rows.tolist(), strict=True)
        return {
            (source, target)
            for source, (weight, target) in enumerate(pairs)
            if source not in taken and weight >= (self.cover or 0.0)
        }

    def describe(self) -> str:
        """As shown beside its links, counted from 1: *layer 2, head 1 (best aligner on valid, AER 0.04)*."""
        if len(self.heads) == 1:
            place = f"layer {self.heads[0][0] + 1}, head {self.heads[0][1] + 1}"
        else:
            names = " + ".join(f"{layer + 1}.{head + 1}" for layer, head in self.heads)
            place = f"mean of heads {names}" if names else "mean of all heads"
        if self.error_rate is None:
            return f"cross-attention, {place}" + (f" (chosen by {self.chosen_on})" if self.chosen_on else "")
        return f"cross-attention, {place} (best aligner on {self.chosen_on}, AER {self.error_rate:.2f})"

    def save(self, folder: str | Path) -> None:
        """Remember in a run's folder."""
        save_kept(self, Path(folder) / FILE)

    @classmethod
    def load(cls, folder: str | Path) -> Aligner | None:
        """What is saved in a run's folder; None where none was chosen yet."""
        return load_kept(cls, Path(folder) / FILE, "an aligner", needs="heads")


def sides(tokenizers: Tokenizers, source: str, target: str) -> tuple[Side, Side]:
    """Two texts as the sides of a finished translation, each with its ``<end>``."""
    read, written = tokenizers.read(source), [*tokenizers.written(target), END]
    texts = (read, tokenizers.source, source), (written, tokenizers.target, target)
    first, second = (spell(*each, at_spaces=True) for each in texts)
    return first, second


def attend(model: EncoderDecoder, pairs: Sequence[tuple[Side, Side]], *, budget: int = 2048) -> list[Attended]:
    """The cross-attention of many pairs, replayed ``budget`` tokens at a time, pairs of like length together."""
    found: dict[int, Attended] = {}
    for group in of_like_length([max(map(len, pair)) for pair in pairs], budget):
        chosen = [pairs[number] for number in group]
        for number, (source, target), weights in zip(group, chosen, _replay(model, chosen), strict=True):
            found[number] = Attended(weights[..., : len(target), : len(source)].clone(), source, target)
    return [found[number] for number in range(len(pairs))]


def _replay(model: EncoderDecoder, pairs: Sequence[tuple[Side, Side]]) -> Tensor:
    """Weights of a padded batch, (B, L, H, T, S)."""
    check_cancelled()
    device = next(model.parameters()).device
    sources = padded([source.rows for source, _ in pairs]).to(device)
    targets = padded([(model.first, *target.ids[:-1]) for _, target in pairs]).to(device)
    watch = Keeper("weights")
    with torch.no_grad(), resting(model):
        model(sources, targets, observer=watch)
    names = layer_names(watch.names(), "decoder", "cross")
    if not names:
        raise ModelError("alignment: this model attends to no source, so there are no weights to read links from")
    return torch.stack([watch[name] for name in names], 1)


def error_rate(aligner: Aligner, pairs: Sequence[Attended], golds: Sequence[Gold]) -> float:
    """The alignment error rate of one aligner."""
    check_cancelled()
    return alignment_quality([aligner.align(pair) for pair in pairs], golds).error_rate


def choose(pairs: Sequence[Attended], golds: Sequence[Gold], chosen_on: str, *, several: bool = True) -> Aligner:
    """The aligner with the lowest error rate against gold links: where to look, then how to read.

    Every head is tried in both rows. The best one is joined, as long as that helps and if ``several`` may be
    read together, by the head that helps most. Then come the rules, with every threshold and cover.
    """
    if not pairs:
        raise DataError("sentences = 0: an aligner is chosen on sentences with gold links; give it some")
    layers, heads = pairs[0].cross.shape[:2]
    every = list(product(range(layers), range(heads)))

    def rated(candidates: Iterable[Aligner]) -> Aligner:
        """The first of the best: of two alike, the simpler one, which is tried earlier."""
        results = [replace(one, error_rate=error_rate(one, pairs, golds)) for one in candidates]
        return min(results, key=_rate)

    best = rated(Aligner((head,), late, "piece") for head, late in product(every, (False, True)))
    if several and len(every) > 1:
        best = _joined(best, every, rated)
    rules: tuple[Rule, ...] = get_args(Rule)
    readings = product(rules, (None, *THRESHOLDS), (None, *COVERS))
    best = rated(
        replace(best, rule=rule, threshold=least, cover=cover)
        for rule, least, cover in readings
        if rule != "threshold" or least is not None
    )
    return replace(best, chosen_on=chosen_on, sentences=len(pairs))


def choose_without_gold(model: EncoderDecoder, pairs: Sequence[tuple[Side, Side]], chosen_on: str) -> Aligner:
    """The single head that agrees best with masking, where there are no gold links.

    Each target word is linked with the source word whose masking lowers its log-probability most; the aligner is the
    head whose largest weights agree with these links most often. It has no error rate, and neither thresholds nor means
    are tuned on links that are themselves estimates.
    """
    seen = attend(model, pairs)
    guesses = [links_of_masking(model, source, target) for source, target in pairs]
    golds = [Gold(links, links) for links in guesses]
    if not any(guesses):
        raise DataError("sentences = 0: an aligner is chosen on sentences; give it some that are not empty")
    layers, heads = seen[0].cross.shape[:2]
    candidates = [Aligner((head,), late) for head in product(range(layers), range(heads)) for late in (False, True)]
    best = min(candidates, key=lambda one: error_rate(one, seen, golds))
    return replace(best, chosen_on=f"agreement with masking, {chosen_on}", sentences=len(pairs))


def links_of_masking(model: EncoderDecoder, source: Side, target: Side) -> Links:
    """Each target word with the source word whose masking lowers its log-probability most; this needs no attention."""
    if not (source.words and target.words):
        return frozenset()
    effect = masking(Subject(model, source.rows, target.ids), SOURCE, members(source, special=False)[0])
    words = [effect[group].sum(0).argmax() for group in members(target, special=False)[0]]
    return frozenset((int(s), t) for t, s in enumerate(words))


def _joined(best: Aligner, every: Sequence[Head], rated: Callable[[Iterable[Aligner]], Aligner]) -> Aligner:
    """Greedy: one head more at a time; at last the mean of all heads, if that is better."""
    while rest := [head for head in every if head not in best.heads]:
        longer = rated(replace(best, heads=(*best.heads, head)) for head in rest)
        if _rate(longer) >= _rate(best):
            break
        best = longer
    return min(best, rated([replace(best, heads=())]), key=_rate)


def _rate(aligner: Aligner) -> float:
    assert aligner.error_rate is not None
    return aligner.error_rate


# The aligner of a run: chosen once, on validation sentences, and saved.

WITH_GOLD = 200  # sentences to choose on
WITHOUT_GOLD = 40  # masking every word of each takes longer
WORDS = 25  # of the longest of them
GUIDED = 0.4  # weight of a link in a head that was taught to align: what has no partner looks at `<end>`


def aligner_of(run: Run, model: EncoderDecoder, tokenizers: Tokenizers) -> Aligner:
    """The aligner that the run has saved; else the best on its validation text, which is then saved.

    The built-in corpus knows its links. For other text, see `choose_without_gold`. Where the validation text is
    missing, it is the mean of all heads, and nothing is saved.
    """
    if (known := Aligner.load(run.folder) or Aligner.load(run.cache)) is not None:
        return known
    if (head := run.settings.guided_head) is not None:  # it has learned where to look: see `TranslateTask`
        named = f"training, {Path(run.settings.train.alignment.links).name} links"
        if run.settings.model.kind == "recurrent":
            return Aligner((head,), rule="piece", chosen_on=named)
        return Aligner((head,), late=True, rule="threshold", threshold=GUIDED, chosen_on=named)
    data = run.settings.data
    try:
        chosen = _with_gold(data, model, tokenizers) if data.is_built_in else _without_gold(run, model, tokenizers)
    except DataError:
        return Aligner()
    with suppress(OSError):  # a run that cannot be written to can still be looked into
        chosen.save(run.cache)
    return chosen


def _with_gold(data: DataSettings, model: EncoderDecoder, tokenizers: Tokenizers) -> Aligner:
    language = data.corpus.partition(":")[2]
    sentences = list(
        generate(language, count=WITH_GOLD, split="valid", maximum_words=data.words)  # type: ignore[arg-type]
    )
    pairs = attend(model, [sides(tokenizers, each.source, each.target) for each in sentences])
    links = [frozenset(each.alignment) for each in sentences]
    return choose(pairs, [Gold(each, each) for each in links], "valid")


def _without_gold(run: Run, model: EncoderDecoder, tokenizers: Tokenizers) -> Aligner:
    try:
        rows = (row for _, row in materials(run.settings)[1].rows(PairEncoder.names))
        short = (row for row in rows if 0 < len(row[0].split()) <= WORDS and row[1].strip())
        chosen = list(islice(short, WITHOUT_GOLD))
    except RegardError as problem:
        raise DataError(f"validation text: is not there any more ({problem})") from None
    return choose_without_gold(
        model, [sides(tokenizers, row[0], row[1]) for row in chosen], f"{len(chosen)} validation sentences"
    )
