"""Rules: given the log-probabilities of every next token, which hypotheses go on and which end.

Greedy is a beam of one. A rule is data; `begin` makes the state of one search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from regard.decode.constraints import Constraint, Terms
from regard.decode.front import Choice, Considered, UnderWay, largest, largest_sums
from regard.errors import SettingsError
from regard.text.vocabulary import END, PAD, UNK

# Slots of the beam for hypotheses that have more terms than others: dynamic beam allocation (Post and Vilar, 2018).


def terms_added(terms: Terms, front: UnderWay, log_probabilities: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens that continue a term, (B, W, K), and their log-probabilities; -inf for those among the best ``tokens``
    (B, W, k) already."""
    following = terms.progress(front.written, front.sentences).following
    known = torch.cat((tokens, following), 2)
    place = torch.arange(known.shape[2], device=known.device)
    earlier = place < place[tokens.shape[2] :, None]  # (K, k + K)
    twice = ((following[..., None] == known[:, :, None]) & earlier).any(3)
    return following, log_probabilities.gather(2, following).masked_fill(twice | (following == PAD), -torch.inf)


def allocate_banks(banks: Tensor, totals: Tensor, width: int) -> Tensor:
    """Which ``width`` of N candidates go on, (B, width), when ``banks`` (B, N) count the term tokens each has.

    First the best of each bank, then the second of each, and so on; within a round by log-probability, except
    that the fullest bank comes first, so that some hypothesis has all terms as soon as possible. A beam
    of one has no slot for that: it goes by log-probability alone, and writes terms when they are forced.
    """
    if width == 1:
        return totals.argmax(1, keepdim=True)
    place = torch.arange(totals.shape[1], device=totals.device)
    earlier = (totals[:, None] == totals[:, :, None]) & (place < place[:, None])
    better = (totals[:, None] > totals[:, :, None]) | earlier  # (B, N, N)
    rounds = (better & (banks[:, None] == banks[:, :, None])).sum(2)
    possible = totals.isfinite()
    fullest = torch.where(possible, banks, -1).amax(1, keepdim=True)
    rounds = torch.where((rounds == 0) & (banks == fullest), -1, rounds)
    rounds = torch.where(possible, rounds, totals.shape[1])
    by_score = totals.argsort(dim=1, descending=True, stable=True)
    by_round = rounds.gather(1, by_score).argsort(dim=1, stable=True)
    return by_score.gather(1, by_round)[:, :width]


Choose = Callable[[UnderWay, Tensor], Choice]  # log-probabilities (B, W, V) may be written to


class Rule(Protocol):
    """How hypotheses are chosen, and how finished ones are compared."""

    @property
    def rows(self) -> int:
        """Hypotheses of a sentence side by side, W."""

    @property
    def best(self) -> int:
        """Outputs asked for."""

    @property
    def coverage_penalty(self) -> float:
        """β of ``β Σ_s log min(Σ_t α_ts, 1)``."""

    @property
    def unknown(self) -> bool:
        """Whether ``<unk>`` may be written."""

    def opening(self) -> Tensor:
        """(W,) 0 for each slot in which a hypothesis begins, -inf for those that stand empty at first."""

    def begin(
        self, numbers: Sequence[int], limits: Tensor, constraints: Sequence[Constraint], *, observed: bool
    ) -> Choose:
        """The rule at work on sentences with these numbers and limits; unobserved, it need not collect `Considered`."""

    def score(self, totals: Tensor, length: int | Tensor) -> Tensor:
        """What finished outputs of ``length`` tokens, ``<end>`` included, are compared by."""

    def reachable(self, totals: Tensor, limits: Tensor, written: int | Tensor) -> Tensor | None:
        """(B,) a score that no hypothesis under way can exceed; None: search on in any case.

        From log-probabilities (B, W), limits (B,) and how many tokens are written, one number or (B,).
        """

    @property
    def distinct(self) -> bool:
        """Whether a text that has ended before is left out: for rules in which two hypotheses may write the same."""


@dataclass(frozen=True)
class Beam:
    """The ``width`` most probable hypotheses at each step.

    An end counts if it is among the ``width`` best continuations of its step, and a sentence is done when
    ``width`` have ended (or at its limit): those that end are compared by ``log p / length^length_penalty``, plus
    ``coverage_penalty`` times the coverage (Wu et al., 2016). With ``early`` a sentence also leaves the search as
    soon as its ``best`` outputs are certain; see `reachable`, which proves that this changes nothing.

    With ``groups`` the beam is divided. The groups choose one after the other, and each pays ``diversity`` for
    every time that an earlier one has chosen the same token in this step (Vijayakumar et al., 2016, Hamming
    diversity). The price decides which hypotheses go on and is not part of any log-probability.
    """

    width: int = 5
    length_penalty: float = 1.0
    coverage_penalty: float = 0.0
    best: int = 1
    groups: int = 1
    diversity: float = 0.0
    early: bool = True
    unknown: bool = False  # whether <unk> may be written, to be replaced later

    def __post_init__(self) -> None:
        if self.width < 1:
            raise SettingsError(f"beam = {self.width}: a beam holds at least one hypothesis; 5 is usual")
        if not 1 <= self.best <= self.width:
            raise SettingsError(
                f"best = {self.best}: a beam of {self.width} has 1 to {self.width} outputs; use a wider beam"
            )
        if self.groups < 1 or self.width % self.groups:
            raise SettingsError(f"groups = {self.groups}: must divide the beam of {self.width} evenly")
        if self.diversity < 0:
            raise SettingsError(f"diversity = {self.diversity}: is a price, 0 or more; 0.5 is usual")
        if self.coverage_penalty < 0:
            raise SettingsError(f"coverage_penalty = {self.coverage_penalty}: must be 0 or more; 0.2 is usual")

    @property
    def rows(self) -> int:
        return self.width

    @property
    def distinct(self) -> bool:
        """Within one beam all prefixes differ, so all outputs do; two groups may write the same."""
        return self.groups > 1

    def opening(self) -> Tensor:
        slots = torch.full((self.groups, self.width // self.groups), -torch.inf)
        slots[:, 0] = 0.0
        return slots.flatten()

    def score(self, totals: Tensor, length: int | Tensor) -> Tensor:
        return totals / length**self.length_penalty

    def reachable(self, totals: Tensor, limits: Tensor, written: int | Tensor) -> Tensor | None:
        """``log p / L^a`` with the log-probability of the best under way and the most favourable length L.

        A log-probability ``s`` only falls from here, ``s' ≤ s ≤ 0``, and the length ``l`` of the output will be
        between ``t + 1`` and the limit. If ``a ≥ 0``, then ``s' / l^a ≤ s' / limit^a ≤ s / limit^a``; if ``a < 0``,
        ``s' / l^a ≤ s' / (t + 1)^a ≤ s / (t + 1)^a``. Coverage is never above zero and can only take away. So once
        this is below the n-th best finished score, the n best outputs are certain. Rounding keeps all
        these inequalities, since it is monotonic.
        """
        if not self.early:
            return None
        length = limits.to(totals.dtype) if self.length_penalty >= 0 else written + 1
        return totals.amax(1) / length**self.length_penalty

    def begin(
        self,
        numbers: Sequence[int],  # noqa: ARG002
        limits: Tensor,  # noqa: ARG002
        constraints: Sequence[Constraint],
        *,
        observed: bool,
    ) -> Choose:
        terms = next((each for each in constraints if isinstance(each, Terms) and each.count), None)
        if terms is not None and self.groups == 1:
            return lambda front, log_probabilities: self._choose_with(terms, front, log_probabilities)
        if observed or self.groups > 1:
            return lambda front, log_probabilities: self.choose(front.totals, front.last, log_probabilities)
        return self._choose_unobserved

    def choose(self, totals: Tensor, last: Tensor, log_probabilities: Tensor) -> Choice:
        """From log-probabilities so far (B, W), which sentences must end now (B,), and the next tokens' (B, W, V)."""
        going_on, ending = self._apart(totals, last, log_probabilities)
        if self.groups > 1:
            return self._in_groups(going_on, ending, log_probabilities)
        return _best(going_on, ending, log_probabilities)

    def _apart(self, totals: Tensor, last: Tensor | None, log_probabilities: Tensor) -> tuple[Tensor, Tensor]:
        """Totals (B, W) of what may go on, and of each with <end>, which no longer counts as a next token."""
        ending = totals + log_probabilities[:, :, END]
        log_probabilities[:, :, : UNK + (not self.unknown)] = -torch.inf
        return totals if last is None else totals.masked_fill(last[:, None], -torch.inf), ending

    def _choose_unobserved(self, front: UnderWay, log_probabilities: Tensor) -> Choice:
        """The same with less work: the W best of all continuations at once, and ends only where there are any."""
        going_on, ending = self._apart(front.totals, front.last if front.near else None, log_probabilities)
        totals, places = largest_sums(going_on, log_probabilities, self.width)  # (B, W)
        bar = totals[:, -1:]  # an end that counts is no worse than the W-th that goes on
        if log_probabilities.device.type == "cpu" and not bool((ending >= bar).any()):
            ended = None
        else:
            bar = bar if self.width == 1 else torch.cat((totals, ending), 1).topk(self.width).values[:, -1:]
            ended = ending.masked_fill(ending < bar, -torch.inf)
        if self.width == 1:
            return Choice(None, places, totals, ended, None)
        return Choice(places // log_probabilities.shape[2], places % log_probabilities.shape[2], totals, ended, None)

    def _in_groups(self, going_on: Tensor, ending: Tensor, log_probabilities: Tensor) -> Choice:
        size, width = log_probabilities.shape[2], self.width // self.groups
        taken = log_probabilities.new_zeros(len(log_probabilities), size)  # (B, V) choices of earlier groups
        choices = []
        for first in range(0, self.width, width):
            part = slice(first, first + width)
            price = self.diversity * taken if first else None
            choice = _best(going_on[:, part], ending[:, part], log_probabilities[:, part], price)
            taken.scatter_add_(1, choice.tokens, choice.totals.isfinite().to(taken.dtype))
            choices.append(choice)
        return _side_by_side(choices)

    def _choose_with(self, terms: Terms, front: UnderWay, log_probabilities: Tensor) -> Choice:
        """Candidates that write a term, and slots for those that have most of their terms: `allocate_banks`."""
        going_on, ending = self._apart(front.totals, front.last, log_probabilities)
        values, tokens = largest(log_probabilities, self.width)
        more, their_values = terms_added(terms, front, log_probabilities, tokens)
        tokens = torch.cat((tokens, more), 2)  # (B, W, k)
        totals = going_on[:, :, None] + torch.cat((values, their_values), 2)
        texts = torch.cat((front.written[:, :, None].expand(-1, -1, tokens.shape[2], -1), tokens[..., None]), 3)
        filled = terms.progress(texts.flatten(1, 2), front.sentences).bank  # (B, W · k)
        kept = allocate_banks(filled, totals.flatten(1), self.width)
        whole = filled == terms.progress(front.written[:, :1], front.sentences).lengths.sum(2)
        rivals = totals.flatten(1).masked_fill(~whole, -torch.inf).topk(min(self.width, whole.shape[1])).values
        return _choice(tokens, totals, kept, ending, rivals)


def _best(totals: Tensor, ending: Tensor, log_probabilities: Tensor, price: Tensor | None = None) -> Choice:
    """The W best that go on, (B, W), after paying ``price`` (B, V)."""
    width = totals.shape[1]
    if price is None:
        values, tokens = largest(log_probabilities, width)  # (B, W, W): more than W of one hypothesis cannot go on
        paid = candidates = totals[:, :, None] + values
    else:
        values, tokens = largest(log_probabilities - price[:, None], width)
        paid = totals[:, :, None] + values
        candidates = totals[:, :, None] + log_probabilities.gather(2, tokens)
    rivals, kept = paid.flatten(1).topk(width)
    return _choice(tokens, candidates, kept, ending, rivals)


def _choice(tokens: Tensor, totals: Tensor, kept: Tensor, ending: Tensor, rivals: Tensor) -> Choice:
    """From candidates (B, W, k), those that are kept (B, W), and what an end is compared with."""
    width, each = tokens.shape[1:]
    bar = torch.cat((rivals, ending), 1).topk(width).values[:, -1:]  # the W-th best
    return Choice(
        None if width == 1 else kept // each,
        tokens.flatten(1).gather(1, kept),
        totals.flatten(1).gather(1, kept),
        ending.masked_fill(ending < bar, -torch.inf),
        Considered(tokens, totals, kept, ending),
    )


def _side_by_side(groups: list[Choice]) -> Choice:
    """The choices of all groups as one."""
    considered = [group.considered for group in groups if group.considered is not None]
    width, each = considered[0].tokens.shape[1:]
    kept = torch.cat([group.kept + number * width * each for number, group in enumerate(considered)], 1)
    together = Considered(
        torch.cat([group.tokens for group in considered], 1),
        torch.cat([group.totals for group in considered], 1),
        kept,
        torch.cat([group.ending for group in considered], 1),
    )
    return Choice(
        kept // each,
        torch.cat([group.tokens for group in groups], 1),
        torch.cat([group.totals for group in groups], 1),
        torch.cat([group.ended for group in groups if group.ended is not None], 1),
        together,
    )


@dataclass(frozen=True)
class Sample:
    """``count`` outputs drawn from the model, each token with its probability to the power of 1 / temperature.

    ``top_k`` draws from the k most probable tokens only (0: from all), ``nucleus`` from the fewest that together
    have this probability (Holtzman et al., 2020), ``epsilon`` from those that have this probability each, and the most
    probable one (Hewitt et al., 2022). The score of a sample is its log-probability under the model.

    A token is where one uniform number falls in the cumulated probabilities. The number depends on the seed, the
    number of the sentence, the sample and the step, and on nothing else (Philox, a counter-based generator), so
    that batches do not change what is drawn.
    """

    count: int = 1
    temperature: float = 1.0
    top_k: int = 0
    nucleus: float = 1.0
    seed: int = 1
    unknown: bool = False
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < 1:
            raise SettingsError(f"epsilon = {self.epsilon}: is a probability below 1; 0.02 is usual, 0 draws from all")
        if self.count < 1:
            raise SettingsError(f"samples = {self.count}: must be 1 or more")
        if self.temperature <= 0:
            raise SettingsError(f"temperature = {self.temperature}: must be above 0; for the most probable use beam 1")
        if self.top_k < 0:
            raise SettingsError(f"top_k = {self.top_k}: is how many tokens to draw from; 0 means all")
        if not 0 < self.nucleus <= 1:
            raise SettingsError(f"nucleus = {self.nucleus}: is a probability above 0 and at most 1; 0.9 is usual")
        if self.seed < 0:
            raise SettingsError(f"seed = {self.seed}: must be 0 or more")

    coverage_penalty: ClassVar[float] = 0.0
    distinct: ClassVar[bool] = False

    @property
    def rows(self) -> int:
        return self.count

    @property
    def best(self) -> int:
        return self.count

    def opening(self) -> Tensor:
        return torch.zeros(self.count)

    def score(self, totals: Tensor, length: int | Tensor) -> Tensor:  # noqa: ARG002
        return totals

    def reachable(self, totals: Tensor, limits: Tensor, written: int | Tensor) -> None:
        """None: every sample is wanted."""

    def begin(
        self,
        numbers: Sequence[int],
        limits: Tensor,
        constraints: Sequence[Constraint],  # noqa: ARG002
        *,
        observed: bool,  # noqa: ARG002
    ) -> Choose:
        chance = self._chance(numbers, int(limits.max())).to(limits.device)  # (sentences, W, T)
        return lambda front, log_probabilities: self._choose(
            front, log_probabilities, chance[front.sentences, :, front.length]
        )

    def _chance(self, numbers: Sequence[int], longest: int) -> Tensor:
        drawn = [
            np.random.Generator(np.random.Philox(key=[self.seed, number], counter=[0, sample, 0, 0])).random(longest)
            for number in numbers
            for sample in range(self.count)
        ]
        return torch.from_numpy(np.stack(drawn)).reshape(len(numbers), self.count, longest)

    def _choose(self, front: UnderWay, log_probabilities: Tensor, chance: Tensor) -> Choice:
        log_probabilities[:, :, :END] = -torch.inf
        log_probabilities[:, :, UNK : UNK + (not self.unknown)] = -torch.inf
        if front.near:
            log_probabilities[:, :, UNK:].masked_fill_(front.last[:, None, None], -torch.inf)  # only <end> is left
        cumulated = self._likely(log_probabilities / self.temperature).double().exp().cumsum(2)  # (B, W, V)
        point = chance.to(cumulated.dtype)[:, :, None] * cumulated[:, :, -1:]
        tokens = torch.searchsorted(cumulated, point, right=True).clamp(max=log_probabilities.shape[2] - 1)  # (B, W, 1)
        totals = front.totals[:, :, None] + log_probabilities.gather(2, tokens)
        ends = tokens == END
        ended = totals.masked_fill(~ends, -torch.inf).squeeze(2)
        going_on = totals.masked_fill(ends, -torch.inf)
        places = torch.arange(self.count, device=log_probabilities.device).expand(len(log_probabilities), -1)
        considered = Considered(tokens, going_on, places, ended)
        return Choice(None, tokens.squeeze(2), going_on.squeeze(2), ended, considered)

    def _likely(self, log_probabilities: Tensor) -> Tensor:
        """Only what may be drawn, the most probable at 0; the rest -inf."""
        log_probabilities = log_probabilities - log_probabilities.amax(2, keepdim=True)
        if 0 < self.top_k < log_probabilities.shape[2]:
            log_probabilities = log_probabilities.masked_fill(
                log_probabilities < log_probabilities.topk(self.top_k).values[..., -1:], -torch.inf
            )
        if self.epsilon:  # the most probable is at 0, and stays
            rare = (log_probabilities.softmax(2) < self.epsilon) & (log_probabilities < 0)
            log_probabilities = log_probabilities.masked_fill(rare, -torch.inf)
        if self.nucleus < 1:
            ordered, order = log_probabilities.softmax(2).sort(dim=2, descending=True, stable=True)
            before = ordered.cumsum(2) - ordered  # the probability of all that are more probable
            outside = torch.zeros_like(before, dtype=torch.bool).scatter(2, order, before >= self.nucleus)
            log_probabilities = log_probabilities.masked_fill(outside, -torch.inf)
        return log_probabilities
