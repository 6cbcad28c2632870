"""What was seen inside a model, as answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from regard.explain.alignment import Aligner
from regard.explain.answer import pack
from regard.explain.cells import Cells
from regard.explain.checks import checks
from regard.explain.importance_answer import Importance
from regard.explain.look import Looked
from regard.explain.side import Side
from regard.explain.statistics import statistics
from regard.explain.trace import Trace
from regard.explain.views import read_so_far
from regard.explain.whatif import Outcome
from regard.explain.word import Compared
from regard.serve.schema.look import (
    AlignerAnswer,
    AttentionAnswer,
    Candidate,
    ChangeAnswer,
    ChecksAnswer,
    DifferenceAnswer,
    FillingAnswer,
    GateAnswer,
    GatesAnswer,
    HeadAnswer,
    HeadPlace,
    ImportanceAnswer,
    LinkAnswer,
    MeaningAnswer,
    NeighbourAnswer,
    OccurrenceAnswer,
    OutputAnswer,
    SideAnswer,
    SideName,
    StateAnswer,
    TraceAnswer,
)
from regard.serve.sentences import Asked

PLACES: dict[SideName, tuple[str, str, str]] = {  # side: where in a trace, and its name in statistics
    "encoder": ("encoder", "self", "encoder_self"),
    "decoder": ("decoder", "self", "decoder_self"),
    "cross": ("decoder", "cross", "cross"),
}
POOL = "pool.weights"  # a classifier's attention: one row, the label, over the source


def tell_trace(looked: Looked, run: str, asked: Asked) -> TraceAnswer:
    """All of a trace that a page shows."""
    trace, shown = looked.trace, looked.explanation
    return TraceAnswer(
        **asked.fields(shown.output),
        run=run,
        task=looked.task,
        text=looked.text,
        output=shown.output,
        log_probability=trace.score,
        source=_side(trace.source),
        inputs=_side(trace.source if trace.task == "label" else read_so_far(trace)),
        target=_side(trace.target),
        attentions=_attentions(trace),
        top=_top(trace),
        log_probabilities=trace.log_probability.tolist(),
        ranks=trace.rank.tolist(),
        statistics=_statistics(trace),
        aligner=None if shown.aligner is None else _aligner(shown.aligner),
        links=[] if shown.aligner is None else _links(shown.aligner, trace),
        checks=ChecksAnswer(**asdict(checks(shown.model, trace, looked.under))),
        difference=None if looked.outcome is None else _difference(looked.outcome),
    )


def _side(side: Side) -> SideAnswer:
    return SideAnswer(pieces=list(side.pieces), ids=list(side.ids), words=list(side.words), word_of=list(side.word_of))


def _attentions(trace: Trace) -> list[AttentionAnswer]:
    found = [
        (name, side, layer)
        for side, (half, kind, _) in PLACES.items()
        for layer, name in enumerate(trace.layers(half, kind))
    ]
    if POOL in trace.tensors:
        found.append((POOL, "cross", 0))
    return [
        AttentionAnswer(
            name=name.removesuffix(".weights"),
            side=side,
            layer=layer,
            heads=trace.tensors[name].shape[0],
            weights=pack(trace.tensors[name]),
        )
        for name, side, layer in found
    ]


def _top(trace: Trace) -> list[list[Candidate]]:
    odds = trace.top_log_probability.exp().tolist()
    return [
        [Candidate(piece=piece, probability=probability) for piece, probability in zip(pieces, row, strict=True)]
        for pieces, row in zip(trace.top_pieces, odds, strict=True)
    ]


def _statistics(trace: Trace) -> list[HeadAnswer]:
    return [
        HeadAnswer(side=side, role=one.role, **asdict(one))
        for side, (half, kind, name) in PLACES.items()
        if trace.has(half, kind)
        for one in statistics(trace, name)
    ]


def _aligner(aligner: Aligner) -> AlignerAnswer:
    heads = [HeadPlace(layer=layer, head=head) for layer, head in aligner.heads]
    return AlignerAnswer(heads=heads, late=aligner.late, description=aligner.describe())


def _links(aligner: Aligner, trace: Trace) -> list[LinkAnswer]:
    found = enumerate(aligner.strongest(trace))
    return [LinkAnswer(target=target, source=source, weight=weight) for target, (source, weight) in found]


def _difference(outcome: Outcome) -> DifferenceAnswer:
    (old, new), (before, same, after) = outcome.texts, outcome.scores
    pieces, counted = outcome.before.target.pieces, outcome.places[0]
    return DifferenceAnswer(
        before=OutputAnswer(text=old, log_probability=before),
        after=OutputAnswer(text=new, log_probability=after),
        change_in_log_probability=outcome.difference,
        same=OutputAnswer(text=old, log_probability=same),
        fall=outcome.fall.tolist(),
        pieces=[pieces[place] for place in (range(len(pieces)) if counted is None else counted)],
        changes=[ChangeAnswer(before=list(was), after=list(now)) for was, now in outcome.changes()],
    )


def tell_importance(found: Importance, asked: Asked) -> ImportanceAnswer:
    """Attention beside importance."""
    return ImportanceAnswer(
        **asked.fields(" ".join(found.rows)),
        rows=list(found.rows),
        columns=list(found.columns),
        attention=None if found.attention is None else pack(found.attention),
        attention_origin=found.attention_origin,
        masking=pack(found.masking),
        gradient=pack(found.gradient),
        difference=None if found.difference is None else pack(found.difference),
    )


def tell_cells(looked: Looked, found: Cells, run: str, asked: Asked) -> GatesAnswer:
    """Gates and states."""
    trace = looked.trace
    return GatesAnswer(
        **asked.fields(looked.explanation.output),
        run=run,
        output=looked.explanation.output,
        rows=list(trace.target.pieces),
        columns=list(looked.explanation.read.pieces),
        gates=[
            GateAnswer(
                name=gate.name,
                rows=_pieces(trace, gate.name),
                values=pack(gate.values),
                mean=pack(gate.mean),
                opened=pack(gate.opened),
                closed=pack(gate.closed),
            )
            for gate in found.gates
        ],
        states=[StateAnswer(name=name, rows=_pieces(trace, name), values=pack(value)) for name, value in found.states],
        saliency=pack(found.saliency),
        filling=[
            FillingAnswer(
                name=one.name,
                rows=list(trace.source.pieces),
                likeness=pack(one.likeness),
                change=pack(one.change),
                length=pack(one.length),
            )
            for one in found.filling
        ],
    )


def _pieces(trace: Trace, name: str) -> list[str]:
    """What a cell read or, in a decoder, what its step wrote."""
    return list(trace.source.pieces if name.startswith("encoder.") else trace.target.pieces)


def tell_meanings(found: Compared) -> MeaningAnswer:
    """A word through the layers."""
    first_control = len(found.occurrences) - found.controls
    occurrences = [
        OccurrenceAnswer(
            sentence=one.sentence,
            word=str(one),
            place=one.word,
            control=number >= first_control,
            translation=translation,
        )
        for number, (one, (translation, _)) in enumerate(zip(found.occurrences, found.translations, strict=True))
    ]

    def near(layer: Sequence[Sequence[object]]) -> list[list[NeighbourAnswer]]:
        return [[NeighbourAnswer.model_validate(one, from_attributes=True) for one in several] for several in layer]

    return MeaningAnswer(
        occurrences=occurrences,
        layers=list(found.layers),
        cosines=pack(found.cosines),
        points=pack(found.points),
        explained=list(found.explained),
        neighbours=[near(layer) for layer in found.neighbours],
        searched=found.searched,
    )
