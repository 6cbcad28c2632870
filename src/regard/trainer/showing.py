"""How a model in training shows itself: the output it writes now, for samples and for the sentence that is watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from regard.decode.engines.engine import Searcher
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.texts import TextSearch
from regard.errors import DataError
from regard.explain.alignment import attend
from regard.explain.replay import resting
from regard.explain.side import spell
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.labeller import Labeller
from regard.models.language_model import LanguageModel
from regard.nn.attention import Attention
from regard.nn.positions import longest_sequence
from regard.runs.folder import Run
from regard.runs.samples import Sample, Watched, Weights
from regard.tasks.labels import Classifier, Reader, Tagger
from regard.tasks.writer import Writer
from regard.text.special import END
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import Vocabulary

GREEDY = Options(Beam(width=1))
SAMPLES = 5
OPENING = 4  # words of a sample that a language model goes on from
DIGITS = 4  # of a weight, in the log
Write = Callable[[Sequence[str], torch.device], list[str]]
Look = Callable[[str, torch.device], Watched]


@dataclass(frozen=True)
class Showing:
    """Texts with their right answers, a sentence to watch (empty for none), and how the model's output is had."""

    write: Write
    samples: Sequence[tuple[str, str]] = ()
    sentence: str = ""
    look: Look | None = None  # where there is more to see than the output

    def sampled(self, device: torch.device) -> tuple[Sample, ...]:
        """The samples as the model writes them now."""
        shown = self.samples[:SAMPLES]
        outputs = self.write([text for text, _ in shown], device)
        return tuple(Sample(*pair, output) for pair, output in zip(shown, outputs, strict=True))

    def watched(self, device: torch.device) -> Watched | None:
        """The sentence as the model writes it now."""
        if not self.sentence:
            return None
        if self.look is not None:
            return self.look(self.sentence, device)
        return Watched(self.sentence, self.write([self.sentence], device)[0])


def showing_of(run: Run, model: nn.Module, tokenizers: Tokenizers, held_out: Sequence[tuple[str, str]]) -> Showing:
    """What is shown of a model, as its kind and its task have it."""
    settings, watch = run.settings, run.settings.train.watch
    source, target = tokenizers.source, tokenizers.target
    if isinstance(model, EncoderDecoder):
        return translations(model, tokenizers, held_out, watch)
    if isinstance(model, LanguageModel):
        opening = [(" ".join(text.split()[:OPENING]), text) for text, _ in held_out]
        return Showing(
            continuations(model, target), fitting(opening, model, lambda text: len(target.encode(text))), watch
        )
    assert isinstance(model, Labeller)
    write = tags if settings.task == "tag" else classes
    rows = fitting(held_out, model, lambda text: sum(map(len, map(source.encode, text.split()))))
    return Showing(write(model, source, settings.model.letters, Vocabulary.load(run.labels)), rows, watch)


def fitting(samples: Sequence[tuple[str, str]], model: nn.Module, count: Callable[[str], int]) -> list[tuple[str, str]]:
    """The samples that the model has positions for. ``count`` tells how many pieces a text has."""
    most = longest_sequence(model)
    return [sample for sample in samples if most is None or count(sample[0]) < most]


def check_length(sentence: str, tokenizer: Tokenizer, longest: int) -> None:
    """A sentence longer than those of the training would show nothing of what is learned."""
    if (count := len(tokenizer.encode(sentence))) >= longest:
        raise DataError(
            f"train.watch = {sentence[:40]}…: has {count:,} pieces, and those of the training have fewer than "
            f"{longest:,} (data.longest, or learned positions); watch a shorter sentence"
        )


def translations(
    model: EncoderDecoder, tokenizers: Tokenizers, samples: Sequence[tuple[str, str]], watch: str
) -> Showing:
    """Greedy translations and, for the watched sentence, the cross-attention that wrote it."""
    attends = any(isinstance(module, Attention) for module in model.modules())

    def write(texts: Sequence[str], device: torch.device) -> list[str]:
        return [each[0].text for each in TextSearch(Searcher(model), tokenizers, device)(texts, GREEDY)]

    def look(text: str, device: torch.device) -> Watched:
        output = TextSearch(Searcher(model), tokenizers, device)([text], GREEDY)[0][0]
        if len(output.parts) != 1:
            return Watched(text, output.text)
        part = output.parts[0]
        source = spell([*tokenizers.source.encode(part.source), END], tokenizers.source, part.source)
        target = spell([*part.tokens, END], tokenizers.target)
        cross = attend(model, [(source, target)])[0].cross.mean(1)  # (L, T, S)
        layers: list[list[list[float]]] = cross.tolist()
        return Watched(text, output.text, source.pieces, target.pieces, tuple(_rounded(layer) for layer in layers))

    return Showing(write, samples, watch, look if attends else None)


def _rounded(rows: list[list[float]]) -> Weights:
    return tuple(tuple(round(weight, DIGITS) for weight in row) for row in rows)


def tags(model: Labeller, tokenizer: Tokenizer, letters: int, labels: Vocabulary) -> Write:
    """Each word with its tag."""

    def write(texts: Sequence[str], device: torch.device) -> list[str]:
        with resting(model):
            return [str(found) for found in Tagger(model, Reader(tokenizer, letters, device), labels).tag(texts)]

    return write


def classes(model: Labeller, tokenizer: Tokenizer, letters: int, labels: Vocabulary) -> Write:
    """The likeliest class, with its probability."""

    def write(texts: Sequence[str], device: torch.device) -> list[str]:
        with resting(model):
            found = Classifier(model, Reader(tokenizer, letters, device), labels).classify(texts)
            return [str(each).replace("\t", " ") for each in found]

    return write


def continuations(model: LanguageModel, tokenizer: Tokenizer) -> Write:
    """The text and what is written after it."""

    def write(texts: Sequence[str], device: torch.device) -> list[str]:
        with resting(model):
            return [str(found) for found in Writer(model, tokenizer, device).write(texts)]

    return write
