"""Text from a language model: continuations of a prompt, and how likely a given text is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch

from regard.decode.rules import Beam, Rule
from regard.decode.search import Listener, search
from regard.models.language_model import LanguageModel
from regard.nn.positions import longest_sequence
from regard.tasks.labels import groups
from regard.text.known import KnownWords
from regard.text.special import END, PAD, START
from regard.text.tokenizer import Tokenizer

GREEDY = Beam(width=1)
TOGETHER = 64  # prompts that are continued at once
BUDGET = 16384  # tokens times hypotheses of these: what search remembers of them must fit into memory


def room(model: LanguageModel, read: int, wanted: int) -> int:
    """How many tokens may follow ``read`` of them, both with their special ones: as many as wanted, or as many as there
    are positions for."""
    most = longest_sequence(model)
    return wanted if most is None else min(wanted, max(1, most - read + 1))


@dataclass(frozen=True)
class Continuation:
    """A prompt and what the model writes after it."""

    prompt: str
    text: str  # the prompt, as the tokenizer spells it, and what follows
    added: str  # what follows
    score: float  # log-probability of what was added, over its length

    def __str__(self) -> str:
        return " ".join(self.text.splitlines())


@dataclass(frozen=True)
class Writer:
    """A language model with its tokenizer."""

    model: LanguageModel
    tokenizer: Tokenizer
    device: torch.device
    known: KnownWords | None = None  # what the run has seen

    def write(
        self,
        prompts: Sequence[str],
        *,
        length: int = 40,
        rule: Rule = GREEDY,
        first: int = 0,
        listener: Listener | None = None,
    ) -> list[Continuation]:
        """Each prompt with at most ``length`` more pieces; order is kept. An empty prompt begins from nothing.

        ``first`` is the number of the first prompt, which decides its chance where the rule draws.
        """
        self.model.eval()
        encoded = [self.tokenizer.encode(prompt) for prompt in prompts]
        results: dict[int, Continuation] = {}
        order = sorted(range(len(prompts)), key=lambda row: len(encoded[row]))
        for _, same in groupby(order, key=lambda row: len(encoded[row])):  # one length a batch: nothing to pad
            rows = list(same)
            each = rule.rows * (len(encoded[rows[0]]) + length)
            together = min(TOGETHER, max(1, BUDGET // max(1, each)))
            for begin in range(0, len(rows), together):
                part = rows[begin : begin + together]
                numbers = [first + row for row in part]
                written = self._continue([encoded[row] for row in part], length, rule, numbers, listener)
                for row, (tokens, score) in zip(part, written, strict=True):
                    results[row] = self._continuation(prompts[row], encoded[row], tokens, score)
        return [results[row] for row in range(len(prompts))]

    def _continuation(self, prompt: str, before: list[int], tokens: list[int], score: float) -> Continuation:
        text = self.tokenizer.decode([*before, *tokens])
        return Continuation(prompt, text, text[len(self.tokenizer.decode(before)) :], score)

    @torch.no_grad()
    def _continue(
        self, prompts: list[list[int]], length: int, rule: Rule, numbers: list[int], listener: Listener | None
    ) -> list[tuple[list[int], float]]:
        """Let the model read all but the last token of each prompt, and search from there."""
        first, state = self.model.start(len(prompts))
        read = torch.tensor(prompts, dtype=torch.long, device=self.device).reshape(len(prompts), -1)
        read = torch.cat((first[:, None], read), 1)  # (B, T)
        if read.shape[1] > 1:
            _, state = self.model.advance(read[:, :-1], state)
        limit = torch.full((len(prompts),), room(self.model, read.shape[1], length + 1), device=self.device)
        found = search(self.model, read[:, -1], state, limit, rule=rule, numbers=numbers, listener=listener)
        return [(outputs[0].tokens, outputs[0].score) for outputs in found]

    @torch.no_grad()
    def log_probabilities(self, texts: Sequence[str]) -> list[float]:
        """``Σ_t log p(y_t | y_<t)`` of each text, its end included."""
        self.model.eval()
        encoded = [self.tokenizer.encode(text) for text in texts]
        results = [0.0] * len(texts)
        for group in groups([len(ids) + 1 for ids in encoded]):
            width = len(encoded[group[0]]) + 1
            rows = [[START, *encoded[row], END] + [PAD] * (width - 1 - len(encoded[row])) for row in group]
            tokens = torch.tensor(rows, device=self.device)  # (B, T + 1)
            logits = self.model(tokens[:, :-1].masked_fill(tokens[:, :-1] == END, PAD)).float()
            odds = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None]).squeeze(-1)  # (B, T)
            totals = (odds * (tokens[:, 1:] != PAD)).sum(1)
            for row, total in zip(group, totals.tolist(), strict=True):
                results[row] = total
        return results
