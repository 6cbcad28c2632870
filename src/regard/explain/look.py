"""One sentence through a loaded run of any task, with or without edits, to be looked into."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, get_args

import torch
from pydantic import Field
from torch import Tensor

from regard.decode.cancel import check_cancelled
from regard.decode.options import Options
from regard.errors import DataError, ModelError, SettingsError
from regard.explain.alignment import Aligner
from regard.explain.answer import Answer, Hidden, OfSentence, PackedTensor, computed
from regard.explain.asked import read, spelling
from regard.explain.attribution import word_map
from regard.explain.edits import Difference, Edit, changed_text, forced_prefix, what_if
from regard.explain.faithful import Faithfulness, method_and_head, remembered
from regard.explain.heatmap import HeatMap
from regard.explain.passes import Under, alone
from regard.explain.recurrent import saliency
from regard.explain.replay import Keeper, Model, check_size, forward, replay, resting
from regard.explain.statistics import HeadStatistics, statistics
from regard.explain.trace import OUTSIDE, Folded, Side, SideName, Trace, so_far
from regard.explain.views import View, attention_map, saliency_map, sides_of
from regard.nn.observe import Observer
from regard.settings import TaskName
from regard.settings.call import DecodeSettings
from regard.tasks.load import AnyTrained, Predicting, Trained, load_run
from regard.tasks.translator import Translator
from regard.text.vocabulary import END

# Checks: is what is shown what was used? Rows of weights are distributions, so each sums to one. A replay is one
# parallel pass, while the output was written step by step: it is written again, step by step, and all weights are
# compared. Without an observer, search uses fused kernels, which show no weights: there
# log-probabilities are compared.


@dataclass(frozen=True)
class Checks(Answer):
    """Is what is shown what was used?"""

    largest_row_error: Annotated[float, Field(description="|Σ row − 1|, over every row of all weights.")]
    largest_difference_from_decoding: Annotated[
        float,
        Field(
            description="|shown − live|: the output written again, step by step. Of weights, else of log-probabilities."
        ),
    ]
    largest_difference_in_log_probability: Annotated[
        float, Field(description="Of a piece, shown and as search computes it.")
    ]


def checks(model: Model, trace: Trace, under: Under = alone) -> Checks:
    """Write the trace's output again, step by step, and compare. ``under`` makes the observer of edits."""
    shown = {name: value for name, value in trace.tensors.items() if name.endswith(".weights")}
    sums = [float((value.sum(-1) - 1).abs().max()) for value in shown.values()]
    plain = float((_live(model, trace, under()) - trace.log_probability).abs().max())
    watch = Keeper("weights", under())
    if shown:
        _live(model, trace, watch)
    apart = [float((watch[name][0] - value).abs().max()) for name, value in shown.items()]
    return Checks(max(sums, default=0.0), max(apart, default=plain), plain)


def _live(model: Model, trace: Trace, observer: Observer) -> Tensor:
    """The log-probabilities (T,) of the output, one step after the other; labels are all given in one step."""
    device = next(model.parameters()).device
    targets = torch.tensor(trace.target.ids, device=device)
    with torch.no_grad(), resting(model):
        if model.task == "label":
            scores = forward(model, trace.source.rows, None, observer)  # (T, C)
        else:
            scores = _steps(model, trace, targets, observer)  # (T, V)
    return scores.float().log_softmax(-1).gather(1, targets[:, None]).squeeze(1)


def _steps(model: Model, trace: Trace, targets: Tensor, observer: Observer) -> Tensor:
    assert model.task != "label"
    if model.task == "translate":
        source = torch.tensor([trace.source.rows], device=targets.device)
        token, state = model.start(source, observer=observer)
    else:
        token, state = model.start(1)
    scores = []
    for target in targets:
        check_cancelled()
        logits, state = model.step(token, state, observer)
        scores.append(logits[0])
        token = target[None]
    return torch.stack(scores)


# Everything recorded while a model wrote one output: the answer for ``regard explain``, the service and pages. Most of
# it is computed when it is first read.

MOST_STEPS = 40_000  # pieces written, each with a gradient through all pieces: some seconds of a recurrent model
POOL = "pool.weights"  # a classifier's attention: one row, the label, over the source


@dataclass(frozen=True)
class AttentionWeights(Answer):
    """The weights of one layer."""

    name: Annotated[str, Field(examples=["decoder.0.cross"])]
    side: Annotated[
        SideName,
        Field(description="Rows and columns: encoder source × source, decoder inputs × inputs, cross target × source."),
    ]
    layer: Annotated[int, Field(description="From 0.")]
    heads: int
    weights: Annotated[
        PackedTensor, Field(description="(heads, rows, columns); row t was used when target t was predicted.")
    ]


@dataclass(frozen=True)
class Alternative(Answer):
    """What a step might have written."""

    piece: str
    probability: float


@dataclass(frozen=True)
class ReadingHeads(Answer):
    """Which attention aligns best."""

    heads: Annotated[
        tuple[dict[str, int], ...], Field(description="layer and head, whose mean is read; none means all of them.")
    ]
    late: Annotated[bool, Field(description="Whether row t is taken from the step that read target t.")]
    description: Annotated[str, Field(examples=["cross-attention, layer 2, head 1 (best aligner on valid, AER 0.04)"])]


@dataclass(frozen=True)
class WordLink(Answer):
    """A target word and the source word it looked at most, both by number."""

    target: int
    source: int
    weight: Annotated[
        float | None,
        Field(description="The attention weight, 0 to 1; null where links are not read from it.", examples=[0.97]),
    ]


@dataclass(frozen=True)
class Looked(OfSentence):
    """Everything that was recorded while the model wrote one output."""

    model: Hidden[Model]
    trace: Hidden[Trace]  # of the output under the edits
    task: TaskName
    run: str = ""
    text: Annotated[str, Field(description="What was read, after edits of the text.")] = ""
    reader: Hidden[Aligner | None] = None  # of cross-attention, where there is some
    written: Hidden[str] = ""  # the output as text, where pieces alone do not say it
    difference: Annotated[Difference | None, Field(description="What the edits did; null without edits.")] = None
    measured: Annotated[
        Faithfulness | None, Field(description="Which map to believe for this run; null where that was not measured.")
    ] = None

    @property
    def under(self) -> Under:
        """Makes the observer that carries out the edits, anew for each pass."""
        return alone if self.difference is None else self.difference.editor.anew

    def check_gradients(self) -> None:
        """Refuse a text that would take a minute: each piece written has a gradient through all pieces."""
        written, pieces = len(self.trace.target), len(self.trace.source) + len(self.trace.target)
        if written * pieces > MOST_STEPS:
            raise DataError(
                f"text = {pieces} pieces with its output: a gradient for each takes too long; give a shorter text"
            )

    @computed
    def output(self) -> str:
        return self.written or " ".join(self.trace.target.words)

    @computed
    def log_probability(self) -> float:
        """Of the whole output."""
        return self.trace.score

    @computed
    def source(self) -> Side:
        return self.trace.source

    @computed
    def vectors(self) -> list[list[float]]:
        """What was read, scaled, where it is numbers or a sound; a picture is in the text itself."""
        rows = self.trace.source.letters
        numbers = rows and isinstance(rows[0][0], float) and not self.text.startswith("data:image/")
        return [list(row) for row in rows] if numbers else []

    @computed
    def inputs(self) -> Side:
        """What was read at each step: <start>, then the output but for its last."""
        return self.trace.source if self.trace.task == "label" else so_far(self.trace.target)

    @computed
    def target(self) -> Side:
        return self.trace.target

    @computed
    def attentions(self) -> list[AttentionWeights]:
        tensors = self.trace.tensors
        found = [
            (name, side, layer) for side in get_args(SideName) for layer, name in enumerate(self.trace.layers(side))
        ]
        if POOL in tensors:
            found.append((POOL, "cross", 0))
        return [
            AttentionWeights(name.removesuffix(".weights"), side, layer, tensors[name].shape[0], tensors[name])
            for name, side, layer in found
        ]

    @computed
    def top(self) -> list[list[Alternative]]:
        """The most probable pieces of each step of the target."""
        probabilities = self.trace.top_log_probability.exp().tolist()
        return [
            [Alternative(*each) for each in zip(pieces, row, strict=True)]
            for pieces, row in zip(self.trace.top_pieces, probabilities, strict=True)
        ]

    @computed
    def log_probabilities(self) -> list[float]:
        """Of each target piece."""
        return self.trace.log_probability.tolist()

    @computed
    def ranks(self) -> list[int]:
        """Of each target piece among all, 0 the most probable."""
        return self.trace.rank.tolist()

    @computed
    def statistics(self) -> list[HeadStatistics]:
        there = (side for side in get_args(SideName) if self.trace.layers(side))
        return [one for side in there for one in statistics(self.trace, side)]

    @computed
    def aligner(self) -> ReadingHeads | None:
        """The heads that align best; null where none were chosen, as for an imported model."""
        if (aligner := self.reader) is None or not aligner.chosen:
            return None
        heads = tuple({"layer": layer, "head": head} for layer, head in aligner.heads)
        return ReadingHeads(heads, aligner.late, aligner.describe())

    @computed
    def links(self) -> list[WordLink]:
        """Empty where no source is attended to."""
        if self.measured_links is not None:
            found = sorted((target, source) for source, target in self.measured_links)
            return [WordLink(target, source, None) for target, source in found]
        if (aligner := self.reader) is None:
            return []
        strongest = enumerate(aligner.strongest(self.trace))
        return [WordLink(target, source, weight) for target, (source, weight) in strongest]

    @computed
    def checks(self) -> Checks:
        return checks(self.model, self.trace, self.under)

    # What is drawn

    @property
    def sides(self) -> list[str]:
        """The attention there is to show."""
        return sides_of(self.trace)

    @property
    def read(self) -> Side:
        """What is read: the source or, for a language model, the text so far."""
        return so_far(self.trace.target) if self.trace.task == "language" else self.trace.source

    @property
    def speaks(self) -> bool:
        """Whether both sides have words: an output may be nothing but its end."""
        return all(any(owner != OUTSIDE for owner in side.word_of) for side in (self.read, self.trace.target))

    @cached_property
    def effect(self) -> Folded:
        """Of masking each word of what is read, (T words, S words)."""
        return word_map(self.model, self.read, self.trace.target, under=self.under)

    @cached_property
    def saliency(self) -> Tensor:
        """Gradient norms, (T, S): for models that attend to nothing."""
        sources = () if self.trace.task == "language" else self.trace.source.rows
        return saliency(self.model, sources, self.trace.target.ids, under=self.under)

    def picture(self, view: View) -> HeatMap:
        """The picture that a view asks for. Where nothing is attended to, gradient saliency takes its place."""
        if self.sides and view.side in self.sides:
            return attention_map(self.trace, view, self.reader)
        if self.sides or view != View(words=view.words, special=view.special):
            return attention_map(self.trace, view)  # raises, with what there is
        return saliency_map(self.trace, self.saliency, self.read, view)

    @cached_property
    def measured_links(self) -> frozenset[tuple[int, int]] | None:
        """Each word written with the word read that counts most for it, by the method whose links had the fewest
        errors; None where the run's own are as good, or nothing was measured."""
        if self.measured is None or not self.measured.links or not self.speaks:
            return None
        method, head = method_and_head(self.measured.links)
        trace = self.trace
        found = word_map(
            self.model, trace.source, trace.target, method, aligner=self.reader, head=head, under=self.under
        ).weights
        return frozenset((source, target) for target, source in enumerate(found.argmax(1).tolist()))

    @cached_property
    def word_links(self) -> frozenset[tuple[int, int]]:
        """Links (word read, word written): by the aligner, unless another method was measured to be better; without
        attention, by masking."""
        if self.measured_links is not None:
            return self.measured_links
        if self.reader is not None and "cross" in self.sides:
            return self.reader.align(self.trace)
        if not self.speaks:
            return frozenset()
        effect = self.effect.weights
        return frozenset((source, target) for target, source in enumerate(effect.argmax(1).tolist()))

    @property
    def links_origin(self) -> str:
        if self.measured_links is not None and self.measured is not None:
            error = self.measured[self.measured.links].error_rate
            assert error is not None
            return f"the heaviest word by {self.measured.links} (measured: AER {error[0]:.2f}, the best of this run)"
        if self.reader is not None and "cross" in self.sides:
            return self.reader.describe()
        return "the word whose masking lowers the probability most"


UNSEARCHED = "decode: there is no search here; leave it out"


def look(
    predictor: Trained,
    text: str,
    target: str | None = None,
    rank: int = 0,
    edits: tuple[Edit, ...] = (),
    *,
    decode: DecodeSettings | None = None,
    name: str = "",
) -> Looked:
    """Look into a translation, into labels or, with a language model, into the text itself. ``name`` is the run's.

    ``target`` is a given translation, ``rank`` one of the n-best, 0 the best, and ``decode`` how to search for it.
    Without edits the translation is that of a beam; with them it is greedy, before and after, so that the
    difference is that of the edits.
    """
    if not text.strip():
        raise DataError("text = '': an empty sentence has nothing to look into; give it a word")
    if predictor.task == "translate":
        if decode is not None and (edits or target is not None):
            raise SettingsError(UNSEARCHED)  # a target is given, and edits are greedy
        found = _translated(predictor, text, target, rank, edits, decode=decode, name=name)
    else:
        if decode is not None:
            raise ModelError(UNSEARCHED)
        for part, given in (("target", target), ("rank", rank)):
            if given:
                raise ModelError(f"{part}: run {name!r} does not translate, and only translations have a {part}")
        found = _predicted(predictor, text, edits, name)
    check_size(found.model, len(found.trace.source), len(found.trace.target))
    return found


def at_checkpoint(folder: Path, name: str, device: str) -> AnyTrained:
    """A run at another checkpoint than its best. Links are read with the run's own aligner."""
    found = load_run(folder, device, checkpoint_name=name)
    if found.task == "translate" and Aligner.load(folder) is None:
        return replace(found, run=None)
    return found


def _translated(
    translator: Translator,
    text: str,
    target: str | None,
    rank: int,
    edits: tuple[Edit, ...],
    *,
    decode: DecodeSettings | None,
    name: str,
) -> Looked:
    model = translator.model
    written = None if target is None else [*translator.tokenizers.written(target), END]
    begun = len(translator.tokenizers.written(forced_prefix(edits)))
    changed = changed_text(text, edits, partial(read, translator))
    count = len(read(translator, changed))
    check_size(model, count, max(begun, len(written or ())))
    if edits:
        if count - 1 > translator.longest:
            most = f"{translator.longest:,} pieces this model learned with"
            raise DataError(f"text = {count - 1:,} pieces after its edits: longer than the {most}; give a shorter one")
        found = what_if(translator, text, edits, output=written)
        return replace(translator.explained(found.traces[2]), run=name, text=changed, difference=found)
    if target is not None:
        return replace(translator.explain(text, target), run=name, text=text)
    how = decode or DecodeSettings()
    if not 0 <= rank < how.beam:
        raise DataError(f"rank = {rank}: a beam of {how.beam} has outputs 0 to {how.beam - 1}; use a wider beam")
    translator.search.check_whole(text)
    translation = translator.translate(text, Options.of(how.model_copy(update={"best": rank + 1})))
    if rank >= len(translation.outputs):
        raise DataError(f"rank = {rank}: only {len(translation.outputs)} outputs were found for this text")
    for part in translation.outputs[rank].parts:
        check_size(model, len(read(translator, part.source)), len(part.tokens) + 1)
    return replace(translation.explanation(rank), run=name, text=text)


def _predicted(predictor: Predicting, text: str, edits: tuple[Edit, ...], name: str) -> Looked:
    """Labels; of a language model, the text itself or, under edits, the text and its continuation."""
    task, model = predictor.task, predictor.model
    changed = changed_text(text, edits, partial(read, predictor))
    side = read(predictor, changed)
    check_size(model, *((0, len(side)) if task == "language" else (len(side), 0)))
    if edits:
        found = what_if(predictor, text, edits)
        return Looked(model, found.traces[2], task, name, changed, difference=found, measured=remembered(predictor.run))
    source, target = ((), side.ids) if task == "language" else (side.rows, None)
    trace = replay(model, source, target, spelling=spelling(predictor, text))
    return Looked(model, trace, task, name, text, measured=remembered(predictor.run))
