"""Language modelling: each piece from those before it. Continuations of a prompt, and how likely a text is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from regard.data.encoding import Examples, RowEncoder, TextEncoder
from regard.data.tables import Row
from regard.decode.options import rule_of
from regard.decode.rules import Rule
from regard.decode.search import SearchListener, search
from regard.metrics.language import LanguageResult, language_result
from regard.models import build
from regard.models.generator import LanguageModel
from regard.nn import masks
from regard.nn.embeddings import longest_sequence
from regard.runs import checkpoint
from regard.runs.folder import Run
from regard.settings import TrainSettings
from regard.settings.call import DecodeSettings
from regard.tasks.labels import groups
from regard.tasks.predictor import GREEDY, Rows
from regard.tasks.task import Pairs, Scores, Task, Tensors, drop_words, fitting
from regard.text.reading import KnownWords
from regard.text.sentences import one_line
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import END, PAD, START, Tokenizer

OPENING = 4  # words of a sample that are the prompt
ONE = rule_of(GREEDY)
TOGETHER = 64  # prompts that are continued at once
BUDGET = 16384  # tokens times hypotheses of these, for which a search has memory


def room(model: LanguageModel, read: int, wanted: int) -> int:
    """How many tokens may follow ``read`` tokens, special ones included: ``wanted``, or as many as there are positions
    for."""
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
        return one_line(self.text)

    def to_dict(self) -> dict[str, Any]:
        return {"prompt": self.prompt, "text": self.text, "added": self.added, "score": self.score}

    def fields(self) -> dict[str, Any]:
        return {"continuation": self.added, "score": self.score} if self.prompt else {}


NOTHING = Continuation("", "", "", 0.0)  # of a text without words


@dataclass(frozen=True)
class Writer:
    """A language model with its tokenizer."""

    model: LanguageModel = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    device: torch.device
    known: KnownWords | None = field(default=None, repr=False)  # what the run has seen
    run: Run | None = None
    task: ClassVar[Literal["language"]] = "language"

    def write(
        self,
        prompts: Sequence[str],
        *,
        length: int = 40,
        rule: Rule = ONE,
        first: int = 0,
        listener: SearchListener | None = None,
    ) -> list[Continuation]:
        """Each prompt with at most ``length`` more pieces; order is kept. An empty prompt begins a new text.

        ``first`` is the number of the first prompt: sampling draws by numbers.
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
        self, prompts: list[list[int]], length: int, rule: Rule, numbers: list[int], listener: SearchListener | None
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
            log_probabilities = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None]).squeeze(-1)  # (B, T)
            totals = (log_probabilities * (tokens[:, 1:] != PAD)).sum(1)
            for row, total in zip(group, totals.tolist(), strict=True):
                results[row] = total
        return results

    def predict(self, texts: Sequence[str], how: DecodeSettings = GREEDY, *, first: int = 0) -> Sequence[Continuation]:
        """A continuation of each text; none of a text without words."""
        filled = [number for number, text in enumerate(texts) if text.strip()]
        prompts = [texts[number] for number in filled]
        written = self.write(prompts, length=how.length, rule=rule_of(how), first=first)
        answers = [NOTHING] * len(texts)
        for number, continuation in zip(filled, written, strict=True):
            answers[number] = continuation
        return answers

    def read(self, texts: Sequence[str]) -> list[str]:
        return [str(found) for found in self.log_probabilities(texts)]

    def evaluate(self, chunks: Iterable[list[Row]], name: str) -> LanguageResult:  # noqa: ARG002
        texts = ([row[0] for _, row in chunk] for chunk in chunks)
        return language_result(
            scored for text in texts for scored in zip(text, self.log_probabilities(text), strict=True)
        )


class LanguageTask(Task):
    """A language model in training."""

    model: LanguageModel
    columns = TextEncoder.names

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        train: Examples,
        valid: Examples,
        *,
        learn: TrainSettings,
        samples: Pairs = (),
    ) -> None:
        super().__init__(model, train, valid, learn, samples)
        self.tokenizer = tokenizer

    @classmethod
    def encoder(cls, run: Run, tokenizers: Tokenizers, train: Rows, valid: Rows) -> RowEncoder:  # noqa: ARG003
        return TextEncoder(tokenizers.target)

    @classmethod
    def build(cls, run: Run, tokenizers: Tokenizers) -> LanguageModel:
        return build.language_model(run.settings.model, tokenizers.target.size)

    @classmethod
    def open(cls, run: Run, tokenizers: Tokenizers, train: Examples, valid: Examples, held_out: Pairs) -> Self:
        model, tokenizer = cls.build(run, tokenizers), tokenizers.target
        opening = [(" ".join(text.split()[:OPENING]), text) for text, _ in held_out]
        samples = fitting(opening, model, lambda text: len(tokenizer.encode(text)))
        return cls(model, tokenizer, train, valid, learn=run.settings.train, samples=samples)

    @classmethod
    def load(cls, run: Run, device: torch.device, checkpoint_name: str | None = None) -> Writer:
        tokenizers = Tokenizers.load(run.tokenizer)
        model = checkpoint.trained(lambda: cls.build(run, tokenizers), run, device, checkpoint_name)
        return Writer(model, tokenizers.target, device, tokenizers.known, run)

    def write(self, texts: Sequence[str], device: torch.device) -> list[str]:
        """The texts with the model's continuations now."""
        return [str(found) for found in Writer(self.model, self.tokenizer, device).write(texts)]

    def forward(self, batch: Tensors, *, static: bool = False) -> Tensor:
        target = drop_words(batch.target_in, self.word_dropout)
        _, state = self.model.start(len(target))
        features, _ = self.model.advance(target, state, masks.padding(target))
        return self.token_loss(self.model, features, batch.target_out, static=static)

    def score(self, device: torch.device, loss: float) -> Scores:  # noqa: ARG002
        """The perplexity of a piece, e to the loss."""
        return Scores(loss, math.exp(min(loss, 50)), "perplexity", higher_is_better=False)
