"""Everything recorded while a model wrote one output: the answer that ``regard explain``, the service and pages
share. Most of it is computed when it is first wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from regard.errors import DataError
from regard.explain.answer import Answer, Hidden, OfSentence, PackedTensor, computed
from regard.explain.attribution import Under, alone
from regard.explain.checks import Checks, checks
from regard.explain.edits import Edit, Editor, Scene
from regard.explain.explanation import Explanation
from regard.explain.side import Side
from regard.explain.statistics import HeadStatistics, SideName, statistics
from regard.explain.trace import Trace
from regard.explain.views import read_so_far
from regard.explain.whatif import EditOutcome

TaskName = Literal["translate", "tag", "classify", "language"]
MOST_STEPS = 40_000  # pieces written, each with a gradient through all pieces: some seconds of a recurrent model
PLACES: dict[SideName, tuple[str, str, str]] = {  # side: where in a trace, and its name in statistics
    "encoder": ("encoder", "self", "encoder_self"),
    "decoder": ("decoder", "self", "decoder_self"),
    "cross": ("decoder", "cross", "cross"),
}
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
class HeadPlace(Answer):
    """Which head."""

    layer: int
    head: int


@dataclass(frozen=True)
class ReadingHeads(Answer):
    """Which attention aligns best."""

    heads: Annotated[tuple[HeadPlace, ...], Field(description="Whose mean is read; none means all of them.")]
    late: Annotated[bool, Field(description="Whether row t is taken from the step that read target t.")]
    description: Annotated[str, Field(examples=["cross-attention, layer 2, head 1 (best aligner on valid, AER 0.04)"])]


@dataclass(frozen=True)
class WordLink(Answer):
    """A target word and the source word it looked at most, both by number."""

    target: int
    source: int
    weight: Annotated[
        float | None,
        Field(description="The attention weight, 0 to 1; null where nothing is attended to.", examples=[0.97]),
    ]


@dataclass(frozen=True)
class ScoredText(Answer):
    """An output and its log-probability."""

    text: str
    log_probability: float


@dataclass(frozen=True)
class Exchange(Answer):
    """Words that were exchanged."""

    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Difference(Answer):
    """What the edits did. Outputs are greedy, before and after."""

    before: ScoredText
    after: ScoredText
    change_in_log_probability: Annotated[
        float, Field(description="Of the new output under the edits, less that of the old.")
    ]
    same: Annotated[ScoredText, Field(description="The old output, under the edits.")]
    fall: Annotated[
        tuple[float, ...], Field(description="By how much the log-probability of each piece of the old output fell.")
    ]
    pieces: Annotated[tuple[str, ...], Field(description="The pieces of the old output.")]
    changes: tuple[Exchange, ...]

    @classmethod
    def of(cls, outcome: EditOutcome) -> Difference:
        (old, new), (before, same, after) = outcome.texts, outcome.scores
        pieces, counted = outcome.before.target.pieces, outcome.places[0]
        return cls(
            before=ScoredText(old, before),
            after=ScoredText(new, after),
            change_in_log_probability=outcome.difference,
            same=ScoredText(old, same),
            fall=tuple(outcome.fall.tolist()),
            pieces=pieces if counted is None else tuple(pieces[place] for place in counted),
            changes=tuple(Exchange(*words) for words in outcome.changes()),
        )


@dataclass(frozen=True)
class Looked(OfSentence):
    """Everything that was recorded while the model wrote one output."""

    run: str
    task: TaskName
    text: Annotated[str, Field(description="What was read, after edits of the text.")]
    explanation: Hidden[Explanation]  # of the output under the edits
    edits: Hidden[tuple[Edit, ...]] = ()
    outcome: Hidden[EditOutcome | None] = None  # of the edits
    scene: Hidden[Scene | None] = None  # of the edits

    @property
    def trace(self) -> Trace:
        return self.explanation.trace

    @property
    def under(self) -> Under:
        """Makes the observer that carries out the edits, anew for each pass."""
        scene = self.scene
        return alone if scene is None else (lambda: Editor(self.edits, scene))

    def check_gradients(self) -> None:
        """Refuse what would take a minute: a gradient for each piece written goes back through all that was read."""
        written, pieces = len(self.trace.target), len(self.trace.source) + len(self.trace.target)
        if written * pieces > MOST_STEPS:
            raise DataError(
                f"text = {pieces} pieces with its output: a gradient for each takes too long; give a shorter text"
            )

    @computed
    def output(self) -> str:
        return self.explanation.output

    @computed
    def log_probability(self) -> float:
        """Of the whole output."""
        return self.trace.score

    @computed
    def source(self) -> Side:
        return self.trace.source

    @computed
    def inputs(self) -> Side:
        """What was read at each step: <start>, then the output but for its last."""
        return self.trace.source if self.trace.task == "label" else read_so_far(self.trace)

    @computed
    def target(self) -> Side:
        return self.trace.target

    @computed
    def attentions(self) -> list[AttentionWeights]:
        tensors = self.trace.tensors
        found = [
            (name, side, layer)
            for side, (half, kind, _) in PLACES.items()
            for layer, name in enumerate(self.trace.layers(half, kind))
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
        there = (name for half, kind, name in PLACES.values() if self.trace.has(half, kind))
        return [one for name in there for one in statistics(self.trace, name)]

    @computed
    def aligner(self) -> ReadingHeads | None:
        if (aligner := self.explanation.aligner) is None:
            return None
        return ReadingHeads(tuple(HeadPlace(*place) for place in aligner.heads), aligner.late, aligner.describe())

    @computed
    def links(self) -> list[WordLink]:
        """Empty where no source is attended to."""
        if (aligner := self.explanation.aligner) is None:
            return []
        found = enumerate(aligner.strongest(self.trace))
        return [WordLink(target, source, weight) for target, (source, weight) in found]

    @computed
    def checks(self) -> Checks:
        return checks(self.explanation.model, self.trace, self.under)

    @computed
    def difference(self) -> Difference | None:
        """What the edits did; null without edits."""
        return None if self.outcome is None else Difference.of(self.outcome)
