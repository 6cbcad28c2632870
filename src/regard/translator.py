"""A trained translator, in use: what `regard.load` gives.

translator = regard.load("runs/demo")
result = translator.translate("the black cat ate the mouse")
result.text, result.alignment(), result.attention.cross
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, overload

import torch

from regard.decode.engine import Engine
from regard.decode.ensemble import Ensemble
from regard.decode.fused import Fused
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.shortlist import Shortlist
from regard.decode.texts import Output, Part, TextSearch
from regard.errors import DataError, SettingsError
from regard.models.encoder_decoder import EncoderDecoder
from regard.run import Run
from regard.text.special import END, UNK
from regard.text.tokenizers import Tokenizers
from regard.text.words import JOINER, WordTokenizer, join_words

if TYPE_CHECKING:  # looking is imported when somebody looks: to translate one sentence must not wait for it
    from regard.draw.explanation import Explanation
    from regard.explain.alignment import Aligner, Attended
    from regard.explain.side import Side
    from regard.explain.trace import Trace

CHUNK = 1024  # texts translated together: enough to sort them by length, few enough to hold
GPU_CHUNK = 8192  # where 512 are searched at once


class Link(NamedTuple):
    """A target word with the source word it looked at most."""

    target: str
    source: str
    weight: float
    target_place: int
    source_place: int


@dataclass(frozen=True)
class Translation:
    """A text, what it was translated to, and the way to look into it."""

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

    @property
    def warning(self) -> str:
        """What the reader should know; empty if all is as usual."""
        if (count := len(self.outputs[0].parts)) < 2:
            return ""
        return f"longer than the {self.translator.longest:,} pieces this model learned with; done in {count} parts"

    def alignment(self, rank: int = 0) -> list[Link]:
        """For each word of an output the source word it looked at most, read by the run's best aligner."""
        return self.translator.links([self.outputs[rank]])[0]

    @cached_property
    def attention(self) -> Trace:
        """Everything the model had in mind while it wrote the best output: ``attention.cross`` is (L, H, T, S)."""
        return self.trace()

    def trace(self, rank: int = 0) -> Trace:
        """The same for any of the outputs."""
        parts = self.outputs[rank].parts
        if len(parts) != 1:
            problem = "is empty" if not parts else f"went through the model in {len(parts)} parts"
            raise DataError(f"text = {self.source[:40]!r}: {problem}; a trace is of one pass over one sentence")
        return self.translator.trace(parts[0])

    def explanation(self, rank: int = 0) -> Explanation:
        """The trace with all that is shown of it: pictures, links, importance."""
        return self.translator.explained(self.trace(rank), self.outputs[rank].text)

    def _repr_html_(self) -> str:
        """What a notebook shows: the text with its heat map; the text alone, where no single pass wrote it."""
        from regard.draw.notebook import fragment

        whole = len(self.outputs[0].parts) == 1
        found = self.translator.explained(self.attention, self.text) if whole else None
        return fragment(self.source, self.text, found, self.warning)


@dataclass(frozen=True)
class Translator:
    """A model, or several with one vocabulary, that translates. Order is kept; an empty text stays empty."""

    models: tuple[EncoderDecoder, ...]
    tokenizers: Tokenizers
    device: torch.device
    run: Run | None = None
    longest: int = 1000  # source pieces at once; longer texts are cut at sentence ends and put together again
    most: int | None = None  # target tokens that the model has positions for
    engine: Engine | None = None  # who searches in place of our own loop; looking is always done with the model
    shortlist: Shortlist | None = None  # which target pieces our own loop considers

    @property
    def model(self) -> EncoderDecoder:
        """The one to look into; of several, the first."""
        return self.models[0]

    @cached_property
    def search(self) -> TextSearch:
        model = self.model if len(self.models) == 1 else Ensemble(self.models).eval()
        fused = Fused(model) if Fused.fits(model) else None
        limits = self.longest, self.most
        return TextSearch(model, self.tokenizers, self.device, *limits, fused, self.engine, self.shortlist)

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
        """Translate one text, or many together. ``options`` say all there is to say; ``beam`` alone is often enough."""
        several = [texts] if isinstance(texts, str) else list(texts)
        found = list(self.stream(several, options or Options(Beam(beam))))
        if trace:
            for translation in found:
                _ = translation.attention
        return found[0] if isinstance(texts, str) else found

    def stream(
        self, texts: Iterable[str], options: Options | None = None, *, budget: int | None = None
    ) -> Iterator[Translation]:
        """Translate as many texts as there are, in order; no more than a chunk of them is held in memory."""
        options = self._allowing_unknown(options or Options())
        waiting, number = iter(texts), 0
        together = CHUNK if self.device.type == "cpu" else GPU_CHUNK
        while chunk := list(islice(waiting, together)):
            for text, outputs in zip(chunk, self.search(chunk, options, first=number, budget=budget), strict=True):
                copied = [self._copy_unknown(each) for each in outputs] if options.copy_unknown else outputs
                yield Translation(text, tuple(copied), self)
            number += len(chunk)

    # Looking

    @cached_property
    def aligner(self) -> Aligner:
        """The best reader of links for this run; without a run, the mean of all heads."""
        from regard.aligning import aligner_of
        from regard.explain.alignment import Aligner

        return Aligner() if self.run is None else aligner_of(self.run, self.model, self.tokenizers)

    def attended(self, parts: Sequence[Part]) -> list[Attended]:
        """The cross-attention that wrote each part."""
        from regard.explain.alignment import attend

        return attend(self.model, [self._sides(part) for part in parts])

    def links(self, outputs: Sequence[Output]) -> list[list[Link]]:
        """For each word of each output the source word it looked at most. All outputs are replayed together."""
        pairs = iter(self.attended([part for output in outputs for part in output.parts]))
        return [self._links([next(pairs) for _ in output.parts]) for output in outputs]

    def _links(self, pairs: Sequence[Attended]) -> list[Link]:
        """Of one output; words are counted through its parts."""
        links: list[Link] = []
        source_words = target_words = 0
        for pair in pairs:
            for place, (looked, weight) in enumerate(self.aligner.strongest(pair)):
                words = pair.target.words[place], pair.source.words[looked]
                links.append(Link(*words, weight, target_words + place, source_words + looked))
            source_words += len(pair.source.words)
            target_words += len(pair.target.words)
        return links

    def trace(self, part: Part) -> Trace:
        """One source and its output, replayed."""
        from regard.explain.replay import Spelling, replay

        source, target = self._sides(part)
        spelling = Spelling(self.tokenizers.source, self.tokenizers.target, part.source)
        return replay(self.model, source.ids, target.ids, spelling=spelling)

    def explain(self, text: str, target: str | None = None) -> Explanation:
        """Look into one sentence: into its translation or, if given, into a translation by somebody else."""
        if target is None:
            return self.translate(text).explanation()
        from regard.explain.replay import Spelling, replay

        spelling = Spelling(self.tokenizers.source, self.tokenizers.target, text, target)
        source, written = self.tokenizers.source.encode(text), self.tokenizers.target.encode(target)
        return self.explained(replay(self.model, [*source, END], [*written, END], spelling=spelling), target)

    def explained(self, trace: Trace, text: str = "") -> Explanation:
        """A trace with the run's aligner, where there is attention for it to read."""
        from regard.draw.explanation import Explanation

        aligner = self.aligner if trace.has("decoder", "cross") else None
        return Explanation(self.model, trace, aligner, "" if self.run is None else self.run.folder.name, text)

    def _sides(self, part: Part) -> tuple[Side, Side]:
        from regard.explain.side import spell

        source = [*self.tokenizers.source.encode(part.source), END]
        return spell(source, self.tokenizers.source, part.source), spell([*part.tokens, END], self.tokenizers.target)

    # Unknown words

    def _allowing_unknown(self, options: Options) -> Options:
        if not options.copy_unknown:
            return options
        if not isinstance(self.tokenizers.target, WordTokenizer):
            raise SettingsError(
                f"copy_unknown: a vocabulary of kind '{self.tokenizers.target.kind}' spells every word; "
                "only a vocabulary of words leaves some unknown"
            )
        return replace(options, rule=replace(options.rule, unknown=True))

    def _copy_unknown(self, output: Output) -> Output:
        """Each ``<unk>`` becomes the source word that was looked at most when it was written (Luong et al., 2015)."""
        if not any(UNK in part.tokens for part in output.parts):
            return output
        texts = []
        for part, pair in zip(output.parts, self.attended(output.parts), strict=True):
            seen = pair.late if self.aligner.late else pair
            looked = self.aligner.weights(seen.cross)[:, :-1].argmax(1).tolist()  # not at <end>
            pieces = [
                pair.source.pieces[looked[place]].removeprefix(JOINER) if token == UNK else pair.target.pieces[place]
                for place, token in enumerate(part.tokens)
            ]
            texts.append(join_words(pieces))
        return replace(output, text=" ".join(texts))
