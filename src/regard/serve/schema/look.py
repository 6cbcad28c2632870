"""Bodies and answers of looking inside."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from regard.explain.answer import Packed, Sentence
from regard.explain.edits import MOST
from regard.serve.limits import BEAM, LINE, NAME, SENTENCES, TEXT, WORD
from regard.text.reading import Unknown

SideName = Literal["encoder", "decoder", "cross"]

_RUN = Field(description="Name of a run.", max_length=NAME, examples=["demo"])
_TEXT = Field(description="The sentence to look into.", max_length=TEXT, examples=["the black cat sleeps"])
_SENTENCE = Field(
    default=0, ge=0, le=TEXT, description="Which sentence of the text, where a translator is given several."
)
_SENTENCES = Field(description="The text, cut as for translation; what does not translate reads it whole.")
_UNKNOWN = Field(description="Words of the sentence that the run has never seen, and where they are in it.")
_WARNING = Field(description="What the reader should know; empty if all is as usual.")
_TARGET = Field(
    default=None,
    description="An output by somebody else, looked into instead of the run's own.",
    max_length=TEXT,
    examples=[None],
)
_EDITS: Any = Field(
    default_factory=list,
    description="What if: edits, each with its kind, counting from 0.",
    max_length=MOST,
    examples=[[{"kind": "mask-word", "word": 1}]],
)


class Body(BaseModel):
    """What clients send: nothing but what is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(BaseModel):
    """What clients get."""

    model_config = ConfigDict(frozen=True)


class SentencesBody(Body):
    """A text to cut."""

    text: str = Field(max_length=TEXT, examples=["The cat sleeps. Dr. Smith does not."])


class SentencesAnswer(Answer):
    """Where the sentences of a text are; whatever is between them stays as it is."""

    sentences: tuple[Sentence, ...]


class OfSentence(Answer):
    """Which sentence an answer is about."""

    sentences: tuple[Sentence, ...] = _SENTENCES
    sentence: int = Field(description="Which of them this is about.")
    unknown: tuple[Unknown, ...] = _UNKNOWN
    warning: str = _WARNING


class Inquiry(Body):
    """A sentence, and perhaps what to change."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    target: str | None = _TARGET
    edits: list[dict[str, JsonValue]] = _EDITS


class TraceBody(Inquiry):
    """What to look into."""

    rank: int = Field(default=0, ge=0, lt=BEAM, description="Of the n-best, 0 the best.")
    beam: int = Field(default=5, ge=1, le=BEAM, description="Hypotheses side by side; edits are greedy.")
    checkpoint: str | None = Field(
        default=None, max_length=NAME, description="A checkpoint of the run, else the best.", examples=[None]
    )


class SideAnswer(Answer):
    """One side of a trace: pieces and words."""

    pieces: list[str] = Field(description="As the model reads them.")
    ids: list[int]
    words: list[str] = Field(description="At whitespace.")
    word_of: list[int] = Field(description="For each piece the number of its word; -1 for special tokens.")


class AttentionAnswer(Answer):
    """The weights of one layer."""

    name: str = Field(examples=["decoder.0.cross"])
    side: SideName = Field(
        description="Rows and columns: encoder source × source, decoder inputs × inputs, cross target × source."
    )
    layer: int = Field(description="From 0.")
    heads: int
    weights: Packed = Field(description="(heads, rows, columns); row t was used when target t was predicted.")


class Candidate(Answer):
    """What a step might have written."""

    piece: str
    probability: float


class HeadAnswer(Answer):
    """One head in a few numbers; shares are of its whole weight."""

    side: SideName
    layer: int
    head: int
    entropy: float = Field(description="In nats, the mean over rows.")
    coverage: float = Field(description="How much of what can be looked at was looked at.")
    distance: float = Field(description="Tokens away from the diagonal.")
    diagonality: float = Field(description="1 straight, -1 reversed.")
    end: float = Field(description="Share on <end>.")
    itself: float = Field(description="Share on its own place.")
    previous: float = Field(description="Share on the place before.")
    following: float = Field(description="Share on the place after.")
    same: float = Field(description="Share on the same token elsewhere.")
    role: str = Field(description="What it does most of the time, if there is such a thing.")


class HeadPlace(Answer):
    """Which head."""

    layer: int
    head: int


class AlignerAnswer(Answer):
    """Which attention shows best who translates whom."""

    heads: list[HeadPlace] = Field(description="Whose mean is read; none means all of them.")
    late: bool = Field(description="Whether row t is taken from the step that read target t.")
    description: str = Field(examples=["cross-attention, layer 2, head 1 (best aligner on valid, AER 0.04)"])


class LinkAnswer(Answer):
    """A target word with the source word it looked at most."""

    target: int
    source: int
    weight: float


class ChecksAnswer(Answer):
    """Is what is shown what was used?"""

    largest_row_error: float = Field(description="|Σ row − 1|, over every row of all weights.")
    largest_difference_from_decoding: float = Field(
        description="|shown − live|: the output written again, step by step. Of weights, else of log-probabilities."
    )
    largest_difference_in_log_probability: float = Field(description="Of a piece, shown and as search computes it.")


class OutputAnswer(Answer):
    """An output and its log-probability."""

    text: str
    log_probability: float


class ChangeAnswer(Answer):
    """Words that were exchanged."""

    before: list[str]
    after: list[str]


class DifferenceAnswer(Answer):
    """What the edits did. Outputs are greedy, before and after."""

    before: OutputAnswer
    after: OutputAnswer
    change_in_log_probability: float = Field(description="Of the new output under the edits, less that of the old.")
    same: OutputAnswer = Field(description="The old output, under the edits.")
    fall: list[float] = Field(description="By how much the log-probability of each piece of the old output fell.")
    pieces: list[str] = Field(description="The pieces of the old output.")
    changes: list[ChangeAnswer]


class TraceAnswer(OfSentence):
    """Everything the model had in mind while it wrote one output."""

    run: str
    task: Literal["translate", "tag", "classify", "language"]
    text: str = Field(description="What was read, after edits of the text.")
    output: str
    log_probability: float = Field(description="Of the whole output.")
    source: SideAnswer
    inputs: SideAnswer = Field(description="What was read at each step: <start>, then the output but for its last.")
    target: SideAnswer
    attentions: list[AttentionAnswer]
    top: list[list[Candidate]] = Field(description="The most probable pieces of each step of the target.")
    log_probabilities: list[float] = Field(description="Of each target piece.")
    ranks: list[int] = Field(description="Of each target piece among all, 0 the most probable.")
    statistics: list[HeadAnswer]
    aligner: AlignerAnswer | None
    links: list[LinkAnswer] = Field(description="Empty where no source is attended to.")
    checks: ChecksAnswer
    difference: DifferenceAnswer | None = Field(description="What the edits did; null without edits.")


class ImportanceAnswer(OfSentence):
    """Attention beside what each word did, (words written, words read)."""

    rows: list[str]
    columns: list[str]
    attention: Packed | None = Field(description="Null where no row of attention belongs to a word written.")
    attention_origin: str
    masking: Packed = Field(description="Nats by which log p falls when the word is blanked out.")
    gradient: Packed = Field(description="Gradient of the log-odds times the embedding.")
    difference: Packed | None = Field(description="Share of attention, less share of masking effects above zero.")


class GateAnswer(Answer):
    """One gate of one layer."""

    name: str = Field(examples=["encoder.0.cell.forget"])
    rows: list[str] = Field(description="Pieces: those read, and for a decoder those each step wrote.")
    values: Packed = Field(description="(pieces, units), 0 closed, 1 open.")
    mean: Packed
    opened: Packed = Field(description="Share of units above 0.9.")
    closed: Packed = Field(description="Share of units below 0.1.")


class StateAnswer(Answer):
    """The state of one layer after each piece."""

    name: str = Field(examples=["encoder.0.cell.hidden"])
    rows: list[str]
    values: Packed = Field(description="(pieces, units).")


class FillingAnswer(Answer):
    """How one encoder layer's state becomes the context vector."""

    name: str
    rows: list[str]
    likeness: Packed = Field(description="Cosine of the state after each piece with the last state.")
    change: Packed = Field(description="How far each piece moved the state, as a share of all movement.")
    length: Packed = Field(description="Norm of the state.")


class GatesAnswer(OfSentence):
    """A recurrent model from inside."""

    run: str
    output: str
    rows: list[str] = Field(description="Pieces written: the rows of saliency.")
    columns: list[str] = Field(description="Pieces read: the columns of saliency.")
    gates: list[GateAnswer]
    states: list[StateAnswer]
    saliency: Packed | None = Field(description="Norm of the gradient of each step's log-odds at each embedding.")
    filling: list[FillingAnswer]


class BeamBody(Body):
    """A search to watch."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    beam: int = Field(default=5, ge=1, le=BEAM)
    length_penalty: float = Field(default=1.0, ge=-5, le=5)
    prefix: str = Field(default="", max_length=LINE, description="What the output begins with.")


class MeaningBody(Body):
    """A word in several sentences."""

    run: str = _RUN
    word: str = Field(max_length=WORD, min_length=1, examples=["bank"])
    sentences: list[Annotated[str, Field(max_length=LINE)]] = Field(
        min_length=1, max_length=SENTENCES, examples=[["she sat on the bank of the river", "the bank lends money"]]
    )
    control: str | None = Field(default=None, max_length=WORD, description="A word to compare with.", examples=["the"])
    neighbours: int = Field(default=5, ge=0, le=20)


class OccurrenceAnswer(Answer):
    """A word in a sentence."""

    sentence: str
    word: str
    place: int
    control: bool
    translation: str = Field(description="The target words linked with it; empty where none is.")


class NeighbourAnswer(Answer):
    """A word near another."""

    word: str
    sentence: str
    cosine: float


class MeaningAnswer(Answer):
    """A word through the layers."""

    occurrences: list[OccurrenceAnswer]
    layers: list[str]
    cosines: Packed = Field(description="(layers, occurrences, occurrences).")
    points: Packed = Field(description="(layers, occurrences, 2): principal axes, the same for all layers.")
    explained: list[float] = Field(description="A layer: the share of all variance that the two axes show.")
    neighbours: list[list[list[NeighbourAnswer]]] = Field(description="By layer, by occurrence, nearest first.")
    searched: int = Field(description="Sentences in which neighbours were looked for.")


class WalkthroughBody(Body):
    """Which numbers to walk through; everything counts from 0."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    layer: int = Field(default=0, ge=0, le=TEXT)
    head: int = Field(default=0, ge=0, le=TEXT)
    word: int = Field(default=0, ge=0, le=TEXT)
    side: Literal["all", "encoder", "decoder", "cross"] = "all"


class WalkthroughAnswer(OfSentence):
    """The mathematics of a sentence, step by step."""

    format: int
    task: str
    layer: int
    head: int
    position: int
    source_position: int
    source: dict[str, Any]
    target: dict[str, Any]
    steps: list[dict[str, Any]] = Field(description="Each: name, title, idea, formula, snippet, axes, shown, …")
