"""The search loop: one for every model, rule and constraint.

Everything stays on the device, and sentences leave the batch when they are done. A sentence's output does not depend on
the others in its batch: each has its own limit, end, constraints and random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from regard.decode.cancel import check_cancelled
from regard.decode.constraints import Constraint, restrict
from regard.decode.front import Choice, Finished, Front, gather
from regard.decode.rules import Beam, Rule
from regard.errors import ModelError, SettingsError
from regard.models.generator import EncoderDecoder
from regard.nn.attention import Memory
from regard.nn.layers import Chain
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.state import State
from regard.text.vocabulary import PAD

BEAM = Beam()
WORTH_MOVING = 7 / 8  # without a beam, rows stay in place until at most this share of them is left
LEAST = 1e-4  # attention that a source word counts as having had at least: log 0 would be -inf


def of_like_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """The numbers of all rows, in groups of at most ``budget`` padded tokens, or of one row: little is padding.

    The longest come first, so that a batch that does not fit into memory fails at once.
    """
    group: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if group and (len(group) + 1) * lengths[group[0]] > budget:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


class StepModel(Protocol):
    """What search knows of a model, or of several: `models.generator.Generator`, `Ensemble`."""

    def step(
        self, tokens: Tensor, state: State[Any, Any], observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]: ...


@dataclass(frozen=True)
class Hypothesis:
    """One output, without ``<start>`` and ``<end>``."""

    tokens: list[int]
    log_probability: float  # of the tokens and <end>
    score: float  # what the rule compares outputs by


class SearchListener(Protocol):
    """Gets every step. Without a listener nothing is collected."""

    def on_step(self, before: Front, choice: Choice, scores: Tensor | None, after: Front, over: Tensor) -> None:
        """``scores`` (B, W) are those of what ended, -inf where nothing did; ``over`` (B,) the sentences now done."""


def log_softmax(logits: Tensor) -> Tensor:
    """Log-probabilities in float32 at least."""
    return (logits if logits.dtype == torch.float64 else logits.float()).log_softmax(-1)


@torch.inference_mode()
def search(
    model: StepModel,
    first: Tensor,
    state: State[Any, Any],
    limits: Tensor,
    *,
    rule: Rule = BEAM,
    constraints: Sequence[Constraint] = (),
    numbers: Sequence[int] | None = None,
    listener: SearchListener | None = None,
    observer: Observer = UNOBSERVED,
) -> list[list[Hypothesis]]:
    """Each sentence's outputs, best first, from `start`'s first tokens (B,) and state.

    ``limits`` (B,) are tokens at the most, ``<end>`` included: a hypothesis that gets there is ended. A model whose
    numbers are infinite or NaN is refused, because no comparison of them would end the search.
    ``numbers`` identify sentences across batches, for sampling; without them they are 0, 1, ….
    An ``observer`` sees and may change what the model computes; coverage has its own.
    """
    results: list[list[Hypothesis]] = [[] for _ in range(len(first))]
    known = range(len(first)) if numbers is None else numbers
    choose = rule.begin(known, limits, constraints, observed=listener is not None)
    coverage = Coverage(rule.coverage_penalty, state) if rule.coverage_penalty else None
    now, most = _opening(limits, rule), int(limits.max())
    state = state.select(now.sentences[:, None].expand(-1, rule.rows)) if rule.rows > 1 else state
    token = first.repeat_interleave(rule.rows)
    while True:
        check_cancelled()
        if now.written.shape[2] >= most:
            raise _without_numbers()
        logits, state = model.step(token, state, observer if coverage is None else coverage.observer)
        log_probabilities = log_softmax(logits).reshape(-1, rule.rows, logits.shape[1])  # (B, W, V)
        now = now if coverage is None else coverage.add(now)
        if constraints:
            restrict(log_probabilities, now, constraints, unknown=rule.unknown)
        choice = choose(now, log_probabilities)
        scores = None if choice.ended is None else _scores(now, choice.ended, rule, coverage)
        after = _advance(now, choice, scores)
        kept = None
        if after.any_finished or now.near or listener is not None:
            over = _over(after, rule)
            if listener is not None:
                listener.on_step(now, choice, scores, after, over)
            if bool(over.any()):
                _collect(after.select(over.nonzero().squeeze(1)), results)
                after = _close(after, over)
                kept = after.open.nonzero().squeeze(1)
                if not len(kept):
                    if not all(results):
                        raise _without_numbers()
                    return results
        if kept is not None and (choice.parents is not None or len(kept) <= WORTH_MOVING * len(now.open)):
            state = state.select(_rows(now, choice.parents)[kept], sentences=kept)
            after = after.select(kept)
        elif choice.parents is not None:
            state = state.select(_rows(now, choice.parents))
        now = after
        token = now.written[:, :, -1].flatten()


def _without_numbers() -> ModelError:
    return ModelError(
        "the model's probabilities are infinite, or no numbers: its weights are damaged, or its training diverged"
    )


def _opening(limits: Tensor, rule: Rule) -> Front:
    """The front before the first step."""
    count, device = len(limits), limits.device
    totals = rule.opening().to(device).expand(count, -1)
    written = torch.zeros(count, rule.rows, 0, dtype=torch.long, device=device)
    finished = Finished.none(count, rule.best, totals)
    nothing = torch.zeros_like(limits)
    sentences, nearest = torch.arange(count, device=device), int(limits.min())
    return Front(sentences, limits, written, totals, finished, nothing, nothing == 0, nearest=nearest)


def _rows(front: Front, parents: Tensor | None) -> Tensor:
    """Which row of the state (B · W) each hypothesis goes on from, (B, W)."""
    count, width = front.totals.shape
    if count == 1 and parents is not None:
        return parents
    own = torch.arange(count * width, device=front.totals.device).reshape(count, width)
    return own if parents is None else own[:, :1] + parents


def _scores(now: Front, ended: Tensor, rule: Rule, coverage: Coverage | None) -> Tensor:
    """Of what ends in this step, (B, W); -inf where nothing does, or where the same text has ended before."""
    scores = rule.score(ended, now.written.shape[2] + 1)
    if coverage is not None:
        scores = scores + coverage.score(now)
    return scores.masked_fill(_repeated(now, scores), -torch.inf) if rule.distinct else scores


def _repeated(now: Front, scores: Tensor) -> Tensor:
    """Which of the hypotheses that end (B, W) have the text of one that has ended, or of an earlier one that does."""
    written, finished = now.written, now.finished
    place = torch.arange(written.shape[1], device=written.device)
    alike = (written[:, :, None] == written[:, None]).all(3) & scores.isfinite()[:, None] & (place < place[:, None])
    padded = torch.nn.functional.pad(finished.tokens, (0, written.shape[2] - finished.tokens.shape[2]), value=PAD)
    known = (finished.lengths == written.shape[2]) & finished.scores.isfinite()
    before = (written[:, :, None] == padded[:, None]).all(3) & known[:, None]
    return alike.any(2) | before.any(2)


def _advance(now: Front, choice: Choice, scores: Tensor | None) -> Front:
    """One token further."""
    written, covered = now.written, now.covered
    if choice.parents is not None:
        written = gather(written, choice.parents)
        covered = None if covered is None else gather(covered, choice.parents)
    written = torch.cat((written, choice.tokens[:, :, None]), 2)
    after = replace(now, written=written, totals=choice.totals, covered=covered)
    if scores is None or choice.ended is None:
        return after
    if scores.device.type == "cpu" and not bool(scores.amax() > -torch.inf):  # on a GPU, asking would wait for it
        return after
    finished = now.finished.merge(now.written, choice.ended, scores)
    return replace(after, finished=finished, count=now.count + scores.isfinite().sum(1), any_finished=True)


def _over(after: Front, rule: Rule) -> Tensor:
    """(B,) as many have ended as there are rows, or nothing is under way, or nothing under way can still win."""
    over = (after.count >= rule.rows) | after.totals.amax(1).isneginf()
    bound = rule.reachable(after.totals, after.limits, after.written.shape[2])
    return after.open & (over if bound is None else over | (bound < after.finished.scores[:, -1]))


def _close(after: Front, over: Tensor) -> Front:
    """Sentences that are over have no hypothesis under way any more."""
    return replace(after, open=after.open & ~over, totals=after.totals.masked_fill(over[:, None], -torch.inf))


def _collect(done: Front, results: list[list[Hypothesis]]) -> None:
    finished = done.finished
    columns = (finished.tokens, finished.lengths, finished.totals, finished.scores)
    for sentence, *rows in zip(done.sentences.tolist(), *(column.tolist() for column in columns), strict=True):
        results[sentence] = [
            Hypothesis(tokens[:length], total, score)
            for tokens, length, total, score in zip(*rows, strict=True)
            if score > -math.inf
        ]


# Coverage: how much of the source an output has attended to (Wu et al., 2016).


class Coverage:
    """The coverage of all hypotheses of one search: ``β Σ_s log min(Σ_t α_ts, 1)``."""

    def __init__(self, penalty: float, state: State[Any, Any]) -> None:
        self.observer = _CrossWeights()
        self._penalty = penalty
        self._mask = _source_mask(state, penalty)  # (sentences, S) which source words there are to cover

    def add(self, front: Front) -> Front:
        """The front with the attention of the last step, averaged over layers, heads and models."""
        weights = torch.stack(self.observer.seen).mean(0)  # (B, W, S)
        self.observer.seen.clear()
        return replace(front, covered=weights if front.covered is None else front.covered + weights)

    def score(self, front: Front) -> Tensor:
        """(B, W); zero when every source word has been attended to with a total weight of 1."""
        assert front.covered is not None
        missing = front.covered.clamp(LEAST, 1.0).log().masked_fill(~self._mask[front.sentences][:, None], 0.0)
        return self._penalty * missing.sum(2)


class _CrossWeights:
    """An observer that collects cross-attention weights, the mean of each layer's heads."""

    active = True

    def __init__(self, place: str | int = "", seen: list[Tensor] | None = None) -> None:
        self._place = place
        self.seen: list[Tensor] = [] if seen is None else seen

    def at(self, place: str | int) -> _CrossWeights:
        return _CrossWeights(place, self.seen)

    def see(self, name: str, value: Tensor) -> Tensor:
        if name == "weights" and self._place == "cross":
            self.seen.append(value.mean(1))  # (B, W, S)
        return value


def _source_mask(state: State[Any, Any], penalty: float) -> Tensor:
    memory = _memory(state.source)
    if memory is None:
        raise SettingsError(
            f"coverage_penalty = {penalty}: this model has no attention over a source, so nothing says what is "
            "covered; use 0"
        )
    keys = memory.keys
    everything = torch.ones(len(keys), keys.shape[2], dtype=torch.bool, device=keys.device)
    return everything if memory.mask is None else memory.mask


def _memory(tree: Any) -> Memory | None:
    """The first memory in nested tuples."""
    if isinstance(tree, tuple):
        return next((memory for memory in map(_memory, tree) if memory is not None), None)
    return tree if isinstance(tree, Memory) else None


# Several models that write as one.


class Ensemble(nn.Module):
    """``p(y_t | y_<t, x) = 1/M Σ_m p_m(y_t | y_<t, x)`` over models with one vocabulary.

    It starts and steps as a single model does; its state is a tuple of theirs, and `State.select` reaches all.
    """

    def __init__(self, models: Sequence[EncoderDecoder]) -> None:
        super().__init__()
        if not models:
            raise ModelError("ensemble = []: needs at least one model")
        self.models = Chain[EncoderDecoder](models)

    def start(
        self, source: Tensor, mask: Tensor | None = None, observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """Every model reads ``source`` (B, S)."""
        starts = [model.start(source, mask, observer.at(number)) for number, model in enumerate(self.models)]
        return starts[0][0], _join([state for _, state in starts])

    def step(
        self, tokens: Tensor, state: State[Any, Any], observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """One token further: the logarithms (B, V) of the mean probabilities."""
        log_probabilities: list[Tensor] = []
        states = []
        for number, model in enumerate(self.models):
            own = State(state.source[number], state.target[number], state.length)
            logits, own = model.step(tokens, own, observer.at(number))
            if log_probabilities and logits.shape != log_probabilities[0].shape:
                raise ModelError(
                    f"ensemble[{number}]: writes one of {logits.shape[1]:,} tokens, the first model one of "
                    f"{log_probabilities[0].shape[1]:,}; models of an ensemble share one vocabulary"
                )
            log_probabilities.append(log_softmax(logits))
            states.append(own)
        return torch.stack(log_probabilities).logsumexp(0) - math.log(len(log_probabilities)), _join(states)


def _join(states: list[State[Any, Any]]) -> State[Any, Any]:
    return State(tuple(state.source for state in states), tuple(state.target for state in states), states[0].length)
