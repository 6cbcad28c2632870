"""A trained translator, in use: what `regard.load` gives.

translator = regard.load("runs/demo")
result = translator.translate("the black cat ate the mouse")
result.text, result.alignment(), result.attention.cross
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, overload

import torch

from regard.decode.engines.engine import Searcher
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.texts import Output, Part, TextSearch, copied, unknown_words
from regard.errors import DataError
from regard.models import build
from regard.models.generator import EncoderDecoder
from regard.nn.attention import Attention
from regard.runs.folder import Run
from regard.settings.languages import languages_of, name_of
from regard.text.reading import Passage, Unknown
from regard.text.tokenizers import Tokenizers
from regard.text.vectors import Vectors
from regard.text.vocabulary import END, UNK

if TYPE_CHECKING:  # imported when first used: translating one sentence must not wait for it
    from regard.explain.alignment import Aligner, Attended
    from regard.explain.doubt import Calibration, Doubt
    from regard.explain.look import Looked
    from regard.explain.trace import Side, Trace

CHUNK = 1024  # texts translated together: enough to sort them by length, few enough for memory
GPU_CHUNK = 8192  # on a GPU, which searches 512 at once


class Link(NamedTuple):
    """A target word with the source word it attended to most."""

    target: str
    source: str
    weight: float
    target_place: int
    source_place: int


@dataclass(frozen=True)
class Translation:
    """A text with its translations, their links, doubt and trace."""

    source: str
    outputs: tuple[Output, ...]  # best first, at least one
    translator: Translator = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        return self.outputs[0].text

    @property
    def log_probability(self) -> float:
        return self.outputs[0].log_probability

    @property
    def score(self) -> float:
        return self.outputs[0].score

    @cached_property
    def passage(self) -> Passage:
        """The source in sentences, as they were read."""
        return self.translator.search.read(self.source)

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """The words that the run has never seen, and where they are in the source."""
        return self.passage.unknown

    @property
    def read_as(self) -> str:
        """How the source was read, where that differs from how it was written; else empty."""
        return self.passage.read_as

    @property
    def sentences(self) -> tuple[tuple[int, int], ...]:
        """Where each sentence begins and ends in the source."""
        return self.passage.cut.spans

    @cached_property
    def warning(self) -> str:
        """Unknown words, wrong language, sentences in parts; empty if there is nothing to warn of."""
        remarks = self.passage.remarks(self.text, self.translator.language)
        counts = Counter(part.sentence for part in self.outputs[0].parts)
        for sentence, count in counts.items():
            if count > 1:
                which = "" if len(self.sentences) == 1 else f"sentence {sentence + 1} is "
                longest = f"{self.translator.longest:,} pieces this model learned with"
                remarks.append(f"{which}longer than the {longest}; done in {count} parts")
        return "; ".join(remarks)

    def alignment(self, rank: int = 0) -> list[Link]:
        """For each word of an output the source word it attended to most, by the run's best aligner."""
        return self.translator.links([self.outputs[rank]])[0]

    @cached_property
    def doubt(self) -> Doubt:
        """How far the best output is to be doubted, and why."""
        return self.translator.doubts_and_links([self.outputs[0]])[0][0]

    @cached_property
    def omitted(self) -> tuple[Unknown, ...]:
        """The words of the source that the best output seems to leave out, and where they are."""
        from regard.explain.omission import omitted

        return omitted(self.translator, self.source, self.outputs[0])

    @cached_property
    def attention(self) -> Trace:
        """All attention of the best output, replayed: ``attention.cross`` is (L, H, T, S)."""
        return self.trace()

    def trace(self, rank: int = 0, sentence: int | None = None) -> Trace:
        """The same for any of the outputs and, of a text with several, any sentence, counted from 1."""
        return self.translator.trace(self._part(rank, sentence))

    def explanation(self, rank: int = 0, sentence: int | None = None) -> Looked:
        """The trace with what is shown of it: pictures, links, importance."""
        part = self._part(rank, sentence)
        return self.translator.explained(self.translator.trace(part), part.text)

    def _part(self, rank: int, sentence: int | None) -> Part:
        """The part that is one whole sentence; an error where no single pass wrote it."""
        count = len(self.sentences)
        where = f"text = {self.source[:40]!r}"
        if sentence is None and count > 1:
            listed = ", ".join(f"{place} {text[:30]!r}" for place, text in enumerate(self.passage.cut.sentences[:5], 1))
            raise DataError(
                f"{where}: has {count} sentences, and a trace is of one; choose it with sentence=1: {listed}"
            )
        if sentence is not None and not 1 <= sentence <= count:
            raise DataError(f"sentence = {sentence}: there are {count}; they count from 1")
        parts = [part for part in self.outputs[rank].parts if part.sentence == (sentence or 1) - 1]
        if len(parts) == 1:
            return parts[0]
        if parts:
            raise DataError(f"{where}: went through the model in {len(parts)} parts; a trace is of one pass")
        if count:
            raise DataError(f"{where}: no word of it was seen in training; use words that were")
        raise DataError(f"{where}: {'has no word' if self.source.strip() else 'is empty'}; give it a word")

    def _repr_html_(self) -> str:
        """What a notebook shows: the text with its heat map, the most faithful one if that was measured; the text
        alone, where no single pass wrote it."""
        from regard.explain.importance import most_faithful_picture
        from regard.explain.views import View
        from regard.show.page import notebook_fragment

        picture = None
        if len(self.outputs[0].parts) == len(self.sentences) == 1:
            found = self.translator.explained(self.attention, self.text)
            picture = most_faithful_picture(self.translator, found) or found.picture(View())
        return notebook_fragment(self.source, self.text, picture, self.warning)


@dataclass(frozen=True)
class Translator:
    """A model, or several with one vocabulary, that translates. Order is kept; an empty text stays empty."""

    models: tuple[EncoderDecoder, ...] = field(repr=False)
    tokenizers: Tokenizers = field(repr=False)
    device: torch.device
    run: Run | None = None
    longest: int = 1000  # source pieces at once; longer sentences are cut and put together again
    searcher: Searcher | None = field(default=None, repr=False)  # None: our own loop
    task: ClassVar[Literal["translate"]] = "translate"

    @property
    def model(self) -> EncoderDecoder:
        """The model whose attention is shown; of several, the first."""
        return self.models[0]

    @property
    def loaded_from(self) -> Run:
        """Its run; only for translators that were loaded from one."""
        assert self.run is not None
        return self.run

    @cached_property
    def search(self) -> TextSearch:
        copy = self._copied if attends(self.model) else None
        searcher = self.searcher or Searcher.of(self.models)
        plain = self.run is not None and self.run.settings.data.is_built_in
        return TextSearch(searcher, self.tokenizers, self.device, self.longest, copy, plain)

    @cached_property
    def language(self) -> str:
        """The name of the source language, if the run's settings name one; else empty."""
        languages = None if self.run is None else languages_of(self.run.settings)
        return "" if languages is None else name_of(languages.source)

    @overload
    def translate(
        self, texts: str, options: Options | None = None, *, beam: int = 5, trace: bool = False
    ) -> Translation: ...

    @overload
    def translate(
        self,
        texts: list[str] | tuple[str, ...],
        options: Options | None = None,
        *,
        beam: int = 5,
        trace: bool = False,
    ) -> list[Translation]: ...

    def translate(
        self,
        texts: str | list[str] | tuple[str, ...],
        options: Options | None = None,
        *,
        beam: int = 5,
        trace: bool = False,
    ) -> Translation | list[Translation]:
        """Translate one text, or many together. ``beam`` is a shorthand for options with that beam alone."""
        several = [texts] if isinstance(texts, str) else list(texts)
        translations = list(self.stream(several, options or Options(Beam(beam))))
        if trace:
            for translation in translations:
                _ = translation.attention
        return translations[0] if isinstance(texts, str) else translations

    def stream(
        self, texts: Iterable[str], options: Options | None = None, *, budget: int | None = None, first: int = 0
    ) -> Iterator[Translation]:
        """Translate texts in order; no more than a chunk of them is held in memory.

        ``first`` is the number of the first text: sampling draws by numbers.
        """
        options, waiting, number = options or Options(), iter(texts), first
        together = CHUNK if self.device.type == "cpu" else GPU_CHUNK
        while chunk := list(islice(waiting, together)):
            numbers = range(number, number := number + len(chunk))
            for text, outputs in zip(chunk, self.search(chunk, options, numbers=numbers, budget=budget), strict=True):
                yield Translation(text, tuple(outputs), self)

    # Looking

    @cached_property
    def aligner(self) -> Aligner:
        """The aligner that finds the best links for this run; without a run, the mean of all heads."""
        from regard.explain.alignment import Aligner, aligner_of

        return Aligner() if self.run is None else aligner_of(self.run, self.model, self.tokenizers)

    @cached_property
    def calibration(self) -> Calibration | None:
        """The calibration of doubt; None if the run has no validation text for it."""
        from regard.explain.doubt import calibration_of

        return calibration_of(self)

    def doubts_and_links(self, outputs: Sequence[Output]) -> tuple[list[Doubt], list[list[Link]]]:
        """The doubt of each output and, where there is attention, its links; one replay gives both."""
        from regard.explain.doubt import doubts

        rated = doubts(self, outputs, self.calibration)
        links = [
            [link for part, pair in zip(output.parts, seen, strict=bool(seen)) for link in self._links(part, pair)]
            for output, (_, seen) in zip(outputs, rated, strict=True)
        ]
        return [doubt for doubt, _ in rated], links

    def attended(self, parts: Sequence[Part]) -> list[Attended]:
        """The cross-attention that wrote each part."""
        from regard.explain.alignment import attend

        return attend(self.model, [self.sides(part) for part in parts])

    def links(self, outputs: Sequence[Output]) -> list[list[Link]]:
        """For each word of each output the source word it attended to most. All outputs are replayed together."""
        pairs = iter(self.attended([part for output in outputs for part in output.parts]))
        return [[link for part in output.parts for link in self._links(part, next(pairs))] for output in outputs]

    def _links(self, part: Part, pair: Attended) -> list[Link]:
        """The links of one part, with the numbers of words in the whole text."""
        links: list[Link] = []
        for target, (source, weight) in enumerate(self.aligner.strongest(pair)):
            words = pair.target.words[target], pair.source.words[source]
            links.append(Link(*words, weight, part.target_word + target, part.source_word + source))
        return links

    def trace(self, part: Part) -> Trace:
        """One source and its output, replayed."""
        from regard.explain.replay import Spelling, replay

        source, target = self.sides(part)
        spelling = Spelling(self.tokenizers.source, self.tokenizers.target, part.source, _with_copies(part))
        return replay(self.model, source.rows, target.ids, spelling=spelling)

    def explain(self, text: str, target: str | None = None, *, sentence: int | None = None) -> Looked:
        """The trace of one sentence and its translation, or of a ``target`` that is given.

        Of a text with several sentences ``sentence``, counted from 1, is the one meant.
        """
        if target is None:
            return self.translate(text).explanation(sentence=sentence)
        from regard.explain.replay import Spelling, replay

        spelling = Spelling(self.tokenizers.source, self.tokenizers.target, text, target)
        source, written = self.tokenizers.read(text), self.tokenizers.written(target)
        return self.explained(replay(self.model, source, [*written, END], spelling=spelling), target)

    def explained(self, trace: Trace, text: str = "") -> Looked:
        """A trace with the run's aligner, where there is cross-attention, and the map that was measured as faithful."""
        from regard.explain.faithful import remembered
        from regard.explain.look import Looked

        aligner = self.aligner if trace.layers("cross") else None
        name, read = "" if self.run is None else self.run.folder.name, " ".join(trace.source.words)
        return Looked(self.model, trace, "translate", name, read, aligner, text, measured=remembered(self.run))

    def sides(self, part: Part) -> tuple[Side, Side]:
        """The source of a part and what was written for it, in pieces and words."""
        from regard.explain.trace import spell

        target = spell([*part.tokens, END], self.tokenizers.target, _with_copies(part), at_spaces=True)
        source = self.tokenizers.read(part.source)
        return spell(source, self.tokenizers.source, part.source, at_spaces=True), target

    # Unknown words

    def _copied(self, parts: Sequence[Part]) -> list[str]:
        """Each ``<unk>`` becomes the unknown source word that it attended to most (Luong et al. 2015).

        A word is copied again only when none is left.
        """
        texts = []
        for part, pair in zip(parts, self.attended(parts), strict=True):
            seen = pair.late if self.aligner.late else pair
            weights = self.aligner.weights(seen.cross)  # (T, S)
            words = unknown_words(self.tokenizers, part)
            left, chosen = set(words), []
            for place, token in enumerate(part.tokens):
                if token == UNK:
                    best = max(sorted(left or words), key=lambda source: float(weights[place, source]))
                    chosen.append(words[best])
                    left.discard(best)
            texts.append(copied(self.tokenizers, part.tokens, chosen))
        return texts


def _with_copies(part: Part) -> str | None:
    """The text of a part in which words were copied: its tokens do not say which."""
    return part.text if UNK in part.tokens else None


def build_model(run: Run, tokenizers: Tokenizers) -> EncoderDecoder:
    """The model that a run's settings describe, not yet trained."""
    sizes = tokenizers.source.size, tokenizers.target.size
    return build.encoder_decoder(run.settings.model, *sizes, vectors=isinstance(tokenizers.source, Vectors))


def attends(model: EncoderDecoder) -> bool:
    """Whether the decoder attends to the source."""
    return any(isinstance(module, Attention) for module in model.get_submodule("decoder").modules())
