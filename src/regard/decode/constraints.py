"""What an output may and must contain.

A constraint says which next tokens are forbidden, and nothing else: the log-probabilities stay those of the
model, but for tokens that are given (`Prefix`). Those that force (`Terms`, then `Prefix`) come after those that forbid
and win over them, and the length limit of the search wins over all. A hypothesis may end when every token is forbidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from regard.decode.front import UnderWay
from regard.errors import DataError, SettingsError
from regard.text.vocabulary import END, PAD, SPECIAL_TOKENS, UNK, Tokenizer


def required(tokenizer: Tokenizer, where: str, text: str) -> list[int]:
    """The tokens of a text that outputs must or must not contain; a text the model cannot write is refused."""
    tokens = tokenizer.encode(text)
    if not tokens or UNK in tokens:
        raise DataError(f"{where} = {text!r}: has pieces that this model's vocabulary does not; use other words")
    return tokens


class Constraint(Protocol):
    """Forbids tokens. What it knows of its sentences should be on the search's device: a copy at each step waits."""

    order: ClassVar[int]  # 0 forbids, 1 forces, 2 forces before anything else

    def forbid(self, banned: Tensor, log_probabilities: Tensor, front: UnderWay) -> None:
        """Set ``banned`` (B, W, V) where a token must not come next, given the model's (B, W, V)."""


def restrict(
    log_probabilities: Tensor, front: UnderWay, constraints: Sequence[Constraint], *, unknown: bool = False
) -> None:
    """Set ``log_probabilities`` (B, W, V) of all forbidden tokens to -inf, in place."""
    banned = torch.zeros_like(log_probabilities, dtype=torch.bool)
    banned[:, :, : len(SPECIAL_TOKENS)] = True
    banned[:, :, END : UNK + unknown] = False
    for constraint in sorted(constraints, key=lambda each: each.order):
        constraint.forbid(banned, log_probabilities, front)
    banned[:, :, END] &= ~(front.last[:, None] | banned.all(2))
    log_probabilities.masked_fill_(banned, -torch.inf)


class Minimum:
    """At least so many tokens, one number a sentence. The limit of a sentence counts first."""

    order: ClassVar[int] = 0

    def __init__(self, lengths: Sequence[int], device: torch.device | None = None) -> None:
        self.lengths = torch.tensor(lengths, device=device)  # (sentences,)

    def forbid(self, banned: Tensor, log_probabilities: Tensor, front: UnderWay) -> None:  # noqa: ARG002
        lengths = self.lengths.to(banned.device)[front.sentences]
        banned[:, :, END] |= (lengths > front.length)[:, None]


@dataclass(frozen=True)
class NoRepeat:
    """No sequence of ``size`` tokens twice in one output."""

    order: ClassVar[int] = 0
    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise SettingsError(f"no_repeat = {self.size}: is the length of what must not repeat; 3 is usual")

    def forbid(self, banned: Tensor, log_probabilities: Tensor, front: UnderWay) -> None:  # noqa: ARG002
        written = front.written
        if written.shape[2] < self.size:
            return
        seen = written.unfold(2, self.size, 1)  # (B, W, t - n + 1, n)
        begun = written[:, :, written.shape[2] - self.size + 1 :]  # (B, W, n - 1)
        again = (seen[..., :-1] == begun[:, :, None]).all(3)
        _ban(banned, seen[..., -1], again)


class Forbidden:
    """Token sequences that must not appear."""

    order: ClassVar[int] = 0

    def __init__(self, sequences: Iterable[Sequence[int]], device: torch.device | None = None) -> None:
        distinct = sorted({tuple(sequence) for sequence in sequences})
        _check("forbidden", distinct)
        lengths = sorted({len(sequence) for sequence in distinct})
        alike = [[each for each in distinct if len(each) == length] for length in lengths]
        self.sequences = [torch.tensor(each, device=device) for each in alike]

    def forbid(self, banned: Tensor, log_probabilities: Tensor, front: UnderWay) -> None:  # noqa: ARG002
        written = front.written
        for sequences in self.sequences:  # (K, n), all of one length
            count, length = sequences.shape
            if written.shape[2] < length - 1:
                return
            known = sequences.to(written.device)
            begun = written[:, :, written.shape[2] - length + 1 :]  # (B, W, n - 1)
            reached = (known[:, :-1] == begun[:, :, None]).all(3)  # (B, W, K)
            _ban(banned, known[:, -1].expand(*written.shape[:2], count), reached)


class Prefix:
    """Each sentence's output begins with these tokens, whatever other constraints say of them.

    The first ``given`` of them are the model's, not the user's, such as a language's: they count as certain.
    """

    order: ClassVar[int] = 2

    def __init__(self, prefixes: Sequence[Sequence[int]], given: int = 0, device: torch.device | None = None) -> None:
        _check("prefix", [each for each in prefixes if each])
        self.given = given
        self.tokens = _padded([[*each, PAD] for each in prefixes]).to(device)  # (sentences, longest + 1)

    def forbid(self, banned: Tensor, log_probabilities: Tensor, front: UnderWay) -> None:
        length, longest = front.length, self.tokens.shape[1] - 1
        if isinstance(length, int) and length >= longest:
            return
        place = length if isinstance(length, int) else length.clamp(max=longest)
        token = self.tokens.to(banned.device)[front.sentences, place][:, None, None]  # (B, 1, 1)
        asked = token != PAD
        banned |= asked
        shape = (-1, banned.shape[1], 1)
        token = token.expand(*shape)
        banned.scatter_(2, token, ~asked.expand(*shape))
        if self.given:
            early = length < self.given
            certain = asked & (early if isinstance(early, bool) else early[:, None, None])
            known = log_probabilities.gather(2, token).masked_fill(certain, 0.0)
            log_probabilities.scatter_(2, token, known)


class Terms:
    """Token sequences that must appear, a list for each sentence.

    An output may not end before it has all of them. Let ``need`` be the tokens still missing, ``p`` those of an
    unfinished term that the output ends with, ``room`` what the limit leaves. Writing any token takes one of
    the room and may at worst waste ``p``; going on with a term takes one of both. So as long as
    ``room - need > p`` all tokens are free, and from then on only terms are written: ``room ≥ need`` always
    holds if it held at first. A term is also begun where the model would rather end than write anything else.
    That alone makes the terms appear, under every rule; `Beam` also keeps slots for hypotheses that have more
    of them than others (`rules.allocate_banks`).
    """

    order: ClassVar[int] = 1

    def __init__(self, terms: Sequence[Sequence[Sequence[int]]], device: torch.device | None = None) -> None:
        distinct = [list(dict.fromkeys(tuple(term) for term in sentence)) for sentence in terms]
        _check("terms", [term for sentence in distinct for term in sentence])
        self.count = max(map(len, distinct), default=0)  # K
        longest = max((len(term) for sentence in distinct for term in sentence), default=0)
        tokens = torch.full((len(distinct), self.count, longest), PAD)
        for row, sentence in enumerate(distinct):
            if sentence:
                tokens[row, : len(sentence)] = _padded(sentence, longest)
        self.tokens = tokens.to(device)  # (sentences, K, M)

    def forbid(self, banned: Tensor, log_probabilities: Tensor, front: UnderWay) -> None:
        if not self.count:
            return
        progress = self.progress(front.written, front.sentences)
        lacking = progress.unmet.any(2)  # (B, W)
        spare = (front.limits - 1 - front.length)[:, None] - progress.need
        ending = log_probabilities[:, :, END] >= log_probabilities[:, :, len(SPECIAL_TOKENS) :].amax(2)
        forced = lacking & ((spare <= progress.furthest) | ending | banned.all(2))
        going_on = (progress.written == progress.furthest[:, :, None]) & progress.unmet
        nothing_but = torch.ones_like(banned)
        nothing_but.scatter_(2, torch.where(going_on, progress.following, PAD), value=False)
        nothing_but[:, :, PAD] = True
        banned[:, :, END] |= lacking
        torch.where(forced[:, :, None], nothing_but, banned, out=banned)

    def progress(self, written: Tensor, sentences: Tensor) -> TermProgress:
        """How far each of the texts ``written`` (B, N, t) has come with the terms of its sentence."""
        terms = self.tokens.to(written.device)[sentences]  # (B, K, M)
        lengths = (terms != PAD).sum(2)[:, None]  # (B, 1, K)
        longest, time = terms.shape[2], written.shape[2]
        unmet = (lengths > 0) & ~_contains(written, terms)  # (B, N, K)
        begun = torch.zeros_like(unmet, dtype=torch.long)
        for size in range(1, min(longest, time + 1)):
            same = (written[:, :, None, time - size :] == terms[:, None, :, :size]).all(3)
            begun = torch.where(same & (lengths > size), size, begun)
        begun = begun.masked_fill(~unmet, 0)
        following = terms[:, None].expand(-1, written.shape[1], -1, -1).gather(3, begun[..., None]).squeeze(3)
        return TermProgress(unmet, begun, following.masked_fill(~unmet, PAD), lengths)


@dataclass(frozen=True)
class TermProgress:
    """Of N texts with K terms, each a row of (B, N, K)."""

    unmet: Tensor  # whether the term is still missing
    written: Tensor  # tokens of it that the text ends with
    following: Tensor  # the token that would take it one further, <pad> if it is met
    lengths: Tensor  # (B, 1, K)

    @property
    def furthest(self) -> Tensor:
        """(B, N) tokens of the term that is furthest under way."""
        return self.written.amax(2)

    @property
    def need(self) -> Tensor:
        """(B, N) tokens that are still missing."""
        return (self.lengths * self.unmet).sum(2) - self.furthest

    @property
    def bank(self) -> Tensor:
        """(B, N) tokens of terms that are there."""
        return self.lengths.sum(2) - self.need


def _contains(written: Tensor, terms: Tensor) -> Tensor:
    """Whether texts (B, N, t) contain terms (B, K, M), padded: (B, N, K)."""
    if not written.shape[2]:
        return torch.zeros(*written.shape[:2], terms.shape[1], dtype=torch.bool, device=written.device)
    padded = torch.nn.functional.pad(written, (0, terms.shape[2] - 1), value=PAD)
    windows = padded.unfold(2, terms.shape[2], 1)[:, :, :, None]  # (B, N, t, 1, M)
    asked = terms[:, None, None]  # (B, 1, 1, K, M)
    return ((windows == asked) | (asked == PAD)).all(4).any(2)


def _ban(banned: Tensor, tokens: Tensor, where: Tensor) -> None:
    """Ban tokens (B, W, K) where ``where`` (B, W, K) is true."""
    banned.scatter_(2, torch.where(where, tokens, PAD), value=True)  # <pad> is banned anyway


def _check(name: str, sequences: Iterable[Sequence[int]]) -> None:
    for sequence in sequences:
        if not sequence or min(sequence) < len(SPECIAL_TOKENS):
            raise DataError(
                f"{name} = {list(sequence)}: must be at least one token, and none of {' '.join(SPECIAL_TOKENS)}; "
                "these the search writes itself"
            )


def _padded(rows: Sequence[Sequence[int]], width: int = 0) -> Tensor:
    width = max((width, *map(len, rows)))
    filled = [[*row, *[PAD] * (width - len(row))] for row in rows]
    return torch.tensor(filled, dtype=torch.long).reshape(len(rows), width)


# A glossary: source terms with the translations that they must have. A term matches whole words, in any case.


def checked_terms(terms: Mapping[str, str]) -> dict[str, str]:
    """A glossary, from terms as a user wrote them."""
    if blank := [f"{source!r}: {target!r}" for source, target in terms.items() if not (source.strip() and target)]:
        raise DataError(f"glossary = {blank[0][:60]}: must be a term and its translation, neither of them empty")
    return {source.strip().casefold(): target for source, target in terms.items()}


def parse_terms(lines: Iterable[str], name: str) -> dict[str, str]:
    """A glossary in lines of ``source<TAB>target``; empty lines and lines that begin with ``#`` are skipped."""
    terms = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        source, *target = (part.strip() for part in line.split("\t"))
        if len(target) != 1 or not source or not target[0]:
            raise DataError(f"{name} line {number} = {line[:60]!r}: must be a term, a tab and its translation")
        terms[source.casefold()] = target[0]
    return terms


def terms_in(sources: Sequence[str], terms: Mapping[str, str]) -> list[list[str]]:
    """The translations that must be in that of each source, in the order of its terms, each once."""
    if not terms:
        return [[] for _ in sources]
    terms = {source.casefold(): target for source, target in terms.items()}
    longest_first = sorted(terms, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
    found = ([terms[match[0]] for match in pattern.finditer(source.casefold())] for source in sources)
    return [list(dict.fromkeys(each)) for each in found]
