"""Links learned from a parallel corpus alone: which word of a target goes with which word of its source.

Two models, one in each direction, are trained to agree (Liang, Taskar and Klein, 2006): both learn from the product of
their posteriors. First each word chooses its partner independently (IBM model 1: Brown et al., 1993); then the distance
to the partner of the word before counts too (hidden Markov model: Vogel, Ney and Tillmann, 1996). Both directions share
one table of expected counts C(s, t), so that p(t | s) = C(s, t) / C(s) and p(s | t) = C(s, t) / C(t). Counts are summed
as integers, so that the order of addition, and with it the machine, changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batches import FILLER, Batch, Batches
from regard.data.encoding import Examples, LinkEncoder, PairEncoder, Ragged, parts_of
from regard.data.lines import Progress
from regard.data.readers import Corpus
from regard.data.shards import Shards, prepare
from regard.data.tables import Row
from regard.device import pick_device
from regard.runs.folder import Run
from regard.tasks.corpus import Files, Material
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import SPECIAL_TOKENS, UNK
from regard.text.words import space_words

ALONE, IN_ORDER = 5, 3  # rounds of IBM model 1, and of the hidden Markov model
LEARNED_ON = 300_000  # rows at the most; the others are only linked
LONGEST = 120  # words; longer sentences get no links
BUDGET = 16_384  # padded words of a side at a time
BUCKETS = 1 << 26  # of the table of counts at the most; beyond that, pairs of words share some
UNIT = 1 << 20  # the integer for a count of 1
NOTHING = 0.2  # probability that a word has no partner
JUMP = 10  # longer jumps count as this long
LINKED = 0.2  # words are linked where the product of both posteriors is larger
TINY = 1e-9
VERSION = "learned 1"  # links of another version are learned again

Told = Callable[[int, int | None], None]


def learn_links(pairs: Sequence[Sequence[str]], device: torch.device, tell: Told = lambda *_: None) -> list[str]:
    """The links of each pair of texts in Pharaoh's format, between the parts of their words (`parts_of`)."""
    examples = Examples({"source": numbered(row[0] for row in pairs), "target": numbered(row[1] for row in pairs)})
    model, batches = Agreement(examples, device), Batches(examples, BUDGET, longest=LONGEST)
    some = math.ceil(LEARNED_ON / len(examples) * len(batches.plan(0)))
    for number in range(rounds := ALONE + IN_ORDER):
        for batch in islice(batches.epoch(0), some):
            model.expect(batch, in_order=number >= ALONE)
        model.learn()
        tell(number + 1, rounds)
    links = [""] * len(examples)
    for batch in batches.epoch(0):
        for row, found in zip(batch.rows.tolist(), model.links(batch), strict=True):
            if row != FILLER:
                links[row] = " ".join(f"{source}-{target}" for source, target in found.tolist())
    return links


def numbered(texts: Iterable[str]) -> Ragged:
    """The parts of the words of each text, in small letters, each as its number."""
    numbers: dict[str, int] = {}
    first = len(SPECIAL_TOKENS)
    lines = ([part.lower() for word in space_words(text) for part in parts_of(word)] for text in texts)
    return Ragged.of([[numbers.setdefault(part, len(numbers) + first) for part in line] for line in lines])


class Agreement:
    """The models of both directions, and their expected counts."""

    def __init__(self, examples: Examples, device: torch.device) -> None:
        columns = [examples.columns[side].numbers for side in ("source", "target")]
        self.sizes = [int(column.max(initial=0)) + 1 for column in columns]
        self.device = device
        counts = [np.bincount(column, minlength=size) for column, size in zip(columns, self.sizes, strict=True)]
        self.frequency = [
            torch.tensor(each / max(1, each.sum()), dtype=torch.float32, device=device) for each in counts
        ]
        self.table = torch.zeros(0, device=device)  # C(s, t), by bucket; empty before the first round
        self.totals = [torch.zeros(size, device=device) for size in self.sizes]  # C(s) and C(t)
        self.jumps = [torch.ones(2 * JUMP + 1, device=device) for _ in self.sizes]
        self._forget()

    def _forget(self) -> None:
        buckets = min(BUCKETS, self.sizes[0] * self.sizes[1])
        self._table = torch.zeros(buckets, dtype=torch.int64, device=self.device)
        self._jumps = [torch.zeros(2 * JUMP + 1, dtype=torch.int64, device=self.device) for _ in self.sizes]
        self._totals = [torch.zeros(size, dtype=torch.int64, device=self.device) for size in self.sizes]

    def expect(self, batch: Batch, *, in_order: bool) -> None:
        """Add the expected counts of some rows."""
        source, target = self._sides(batch)
        if not target.shape[1]:
            return
        agreed, jumps = self._agreed(source, target, in_order=in_order)
        counts = (agreed * UNIT).long()  # (B, T, S)
        self._table.index_add_(0, self._buckets(source, target).flatten(), counts.flatten())
        self._totals[0].index_add_(0, source.flatten(), counts.sum(1).flatten())
        self._totals[1].index_add_(0, target.flatten(), counts.sum(2).flatten())
        for kept, found in zip(self._jumps, jumps, strict=True):
            kept.add_((found * UNIT).long())

    def learn(self) -> None:
        """Take the counts of this round as the model of the next."""
        self.table = self._table.float() / UNIT
        self.totals = [each.float() / UNIT for each in self._totals]
        if self._jumps[0].any():
            self.jumps = [each.float() / each.sum() + 1e-4 for each in self._jumps]
        self._forget()

    def links(self, batch: Batch) -> list[NDArray[np.int64]]:
        """The links of each row, (N, 2): source, target."""
        source, target = self._sides(batch)
        found = self._agreed(source, target, in_order=True)[0] > LINKED
        rows, targets, sources = (each.cpu().numpy() for each in found.nonzero(as_tuple=True))
        pairs = np.stack((sources, targets), 1)
        ends = np.searchsorted(rows, np.arange(1, len(source)))
        return np.split(pairs, ends)

    def _sides(self, batch: Batch) -> tuple[Tensor, Tensor]:
        sides = batch.source, batch.target_in[:, 1:]
        source, target = (torch.from_numpy(side).to(self.device) for side in sides)
        return source, target

    def _buckets(self, source: Tensor, target: Tensor) -> Tensor:
        return (source[:, None] * self.sizes[1] + target[:, :, None]) % len(self._table)  # (B, T, S)

    def _agreed(self, source: Tensor, target: Tensor, *, in_order: bool) -> tuple[Tensor, list[Tensor]]:
        """The product of both posteriors, (B, T, S), and how often each jump is expected."""
        real = [(side > UNK).float() for side in (source, target)]
        often = [frequency[side] for frequency, side in zip(self.frequency, (source, target), strict=True)]
        if len(self.table):
            joint = self.table[self._buckets(source, target)] + TINY
            down = joint / (self.totals[0][source][:, None] + TINY * self.sizes[1])  # p(t | s)
            up = joint / (self.totals[1][target][:, :, None] + TINY * self.sizes[0])  # p(s | t)
        else:
            down, up = (
                each.expand(-1, target.shape[1], source.shape[1]) for each in (often[1][:, :, None], often[0][:, None])
            )
        rule = posterior_in_order if in_order else posterior_alone
        there, ahead = rule(down, often[1], real[0], real[1], self.jumps[0])
        back, behind = rule(up.mT, often[0], real[1], real[0], self.jumps[1])
        return there * back.mT, [ahead, behind]


def posterior_alone(
    chosen: Tensor, often: Tensor, states: Tensor, steps: Tensor, jumps: Tensor
) -> tuple[Tensor, Tensor]:
    """IBM model 1: p(state | step) from ``chosen`` = p(step | state), (B, T, S), with all states equally probable;
    ``often`` is p(step) without a partner."""
    share = (1 - NOTHING) / states.sum(1).clamp_min(1)
    each = chosen * share[:, None, None] * states[:, None] * steps[:, :, None]
    return each / (each.sum(2, keepdim=True) + NOTHING * often[:, :, None] + TINY * TINY), torch.zeros_like(jumps)


def posterior_in_order(
    chosen: Tensor, often: Tensor, states: Tensor, steps: Tensor, jumps: Tensor
) -> tuple[Tensor, Tensor]:
    """The same for a hidden Markov model, by the forward-backward algorithm. A step without a partner, or of padding,
    stays in its state."""
    size, count = chosen.shape[2], chosen.shape[1]
    places = torch.arange(size, device=chosen.device)
    leap = (places - places[:, None]).clamp(-JUMP, JUMP) + JUMP  # (S, S) from, to
    move = jumps[leap] * states[:, None]
    move = move / move.sum(2, keepdim=True).clamp_min(TINY)  # (B, S, S)
    real = (1 - NOTHING) * chosen * states[:, None] * steps[:, :, None]
    stay = torch.where(steps > 0, NOTHING * often, 1.0) + TINY * TINY  # (B, T)
    at = states / states.sum(1, keepdim=True).clamp_min(1)  # (B, S)
    before, taken, scales = list[Tensor](), list[Tensor](), list[Tensor]()
    for step in range(count):
        arrived = at if step == 0 else (at[:, None] @ move)[:, 0]
        moved = arrived * real[:, step]
        new = moved + at * stay[:, step, None]
        scale = new.sum(1, keepdim=True).clamp_min(1e-30)
        before.append(at)
        at = new / scale
        taken.append(moved / scale)
        scales.append(scale)
    after, later, wanted = torch.ones_like(at), list[Tensor](), list[Tensor]()
    for step in range(count - 1, -1, -1):
        later.append(after)
        wanted.append(real[:, step] * after / scales[step])
        after = (move @ wanted[-1][:, :, None])[:, :, 0] + after * stay[:, step, None] / scales[step]
    found = torch.stack(taken, 1) * torch.stack(later[::-1], 1)  # (B, T, S)
    pairs = (
        torch.stack(before[1:], 2) @ torch.stack(wanted[::-1][1:], 1) * move if count > 1 else torch.zeros_like(move)
    )
    expected = torch.zeros_like(jumps).index_add_(0, leap.flatten(), pairs.sum(0).flatten())
    return found, expected


# The links that guide a head of the cross-attention in training: read from a file, those of the built-in corpus, or
# learned. RUN/data/links/ keeps the links between the pieces of each training pair; it is made again when missing.


def guided(run: Run, rows: Material, tokenizers: Tokenizers, train: Examples, progress: Progress) -> Examples:
    """The training examples with the links that the settings ask for, if they ask for any."""
    guide = run.settings.train.alignment
    if guide.kind == "none":
        return train
    folder = run.data / "links"
    if guide.links == "learned":
        links = _learned(run, rows, LinkEncoder(tokenizers, parts=True), train, progress)
    elif isinstance(rows, Files):
        links = Files(Corpus((*rows.corpus.paths, guide.links)), rows.part).encode(
            LinkEncoder(tokenizers), folder, progress
        )
    else:
        links = rows.encode(LinkEncoder(tokenizers), folder, progress)
    return replace(train, columns={**train.columns, **links.columns})


def _learned(run: Run, rows: Material, encoder: LinkEncoder, train: Examples, progress: Progress) -> Examples:
    assert isinstance(train, Shards)
    mark = f"{train.manifest.fingerprint} {encoder.fingerprint()} {VERSION}"

    def linked() -> Iterator[Row]:
        texts = [row[:2] for _, row in rows.rows(PairEncoder.names)]
        found = learn_links(texts, pick_device("auto"), progress)
        for number, (text, links) in enumerate(zip(texts, found, strict=True), start=1):
            yield number, (*text, links)

    return prepare(linked(), encoder, run.data / "links", fingerprint=mark)
