"""``/api/v1/trace`` and its like: what a model had in mind, and what would change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fastapi import APIRouter, Request, Response

from regard.decode.rules import Beam
from regard.explain.answer import Answer
from regard.explain.beam import Searched, search_tree
from regard.explain.cells import cells
from regard.explain.edits import from_data
from regard.explain.importance_answer import importance
from regard.explain.look import Question, look
from regard.explain.walk import walk_text
from regard.explain.word import compare_meanings
from regard.serve.answers import Problem
from regard.serve.schema.look import (
    BeamBody,
    GatesAnswer,
    ImportanceAnswer,
    Inquiry,
    MeaningAnswer,
    MeaningBody,
    SentencesAnswer,
    SentencesBody,
    TraceAnswer,
    TraceBody,
    WalkthroughAnswer,
    WalkthroughBody,
)
from regard.serve.sentences import choose, cut_up
from regard.serve.telling import tell_cells, tell_importance, tell_meanings, tell_trace
from regard.serve.worker import Model

Result = TypeVar("Result")
PROBLEMS = {
    400: {"model": Problem, "description": "What was asked makes no sense; the line says what would."},
    404: {"model": Problem, "description": "There is no such run, or the run has no such part."},
    503: {"model": Problem, "description": "The service cannot do this now."},
}
router = APIRouter(prefix="/api/v1", tags=["look inside"], responses=PROBLEMS)  # type: ignore[arg-type]


async def ask(request: Request, run: str, work: Callable[[Model], Result], checkpoint: str | None = None) -> Result:
    """Have this done by the thread that owns a run's model, or that of one of its checkpoints."""
    worker = await request.app.state.service.library.worker(run, checkpoint)
    answer: Result = await worker.call(work)
    return answer


async def told(
    request: Request, run: str, question: Callable[[Model], Answer], checkpoint: str | None = None
) -> Response:
    """The answer to a question about a run, written as JSON by the thread that found it."""
    content = await ask(request, run, lambda model: question(model).to_json(), checkpoint)
    return Response(content, media_type="application/json")


def _question(body: Inquiry, text: str) -> Question:
    edits = from_data(body.edits)
    if isinstance(body, TraceBody):
        return Question(text, body.target, body.rank, body.beam, edits)
    return Question(text, body.target, edits=edits)


@router.post("/sentences")
async def sentences(body: SentencesBody) -> SentencesAnswer:
    """Where the sentences of a text are, as everything here cuts them."""
    return SentencesAnswer(sentences=cut_up(body.text))


@router.post("/trace")
async def trace(request: Request, body: TraceBody) -> TraceAnswer:
    """Attention, probabilities and checks of one output; with edits, what they did."""

    def work(model: Model) -> TraceAnswer:
        asked = choose(model, body.text, body.sentence)
        return tell_trace(look(model, _question(body, asked.text), body.run), body.run, asked)

    return await ask(request, body.run, work, body.checkpoint)


@router.post("/importance")
async def weigh(request: Request, body: Inquiry) -> ImportanceAnswer:
    """Attention beside the effect of masking each word, and beside the gradient."""

    def work(model: Model) -> ImportanceAnswer:
        asked = choose(model, body.text, body.sentence)
        return tell_importance(importance(look(model, _question(body, asked.text), body.run)), asked)

    return await ask(request, body.run, work)


@router.post("/gates")
async def gates(request: Request, body: Inquiry) -> GatesAnswer:
    """Gates and states of a recurrent model, and what each step's choice hangs on."""

    def work(model: Model) -> GatesAnswer:
        asked = choose(model, body.text, body.sentence)
        looked = look(model, _question(body, asked.text), body.run)
        return tell_cells(looked, cells(looked), body.run, asked)

    return await ask(request, body.run, work)


@router.post("/beam", response_model=Searched)
async def beam(request: Request, body: BeamBody) -> Response:
    """The tree of a search: what was kept, what was pruned and why, and what other beams find."""

    def work(model: Model) -> Searched:
        asked = choose(model, body.text, body.sentence)
        rule = Beam(body.beam, body.length_penalty, best=body.beam)
        found = search_tree(model, asked.text, rule, prefix=body.prefix)
        return asked.about(found, found.text)

    return await told(request, body.run, work)


@router.post("/meaning")
async def meaning(request: Request, body: MeaningBody) -> MeaningAnswer:
    """One word in several sentences through the layers of the encoder."""
    folder = request.app.state.service.library.path(body.run)

    def work(model: Model) -> MeaningAnswer:
        found = compare_meanings(
            model, body.word, body.sentences, control=body.control, neighbours=body.neighbours, folder=folder
        )
        return tell_meanings(found)

    return await ask(request, body.run, work)


@router.post("/walkthrough")
async def walkthrough(request: Request, body: WalkthroughBody) -> WalkthroughAnswer:
    """The mathematics of one sentence with the run's own numbers."""

    def work(model: Model) -> WalkthroughAnswer:
        asked = choose(model, body.text, body.sentence)
        steps = walk_text(model, asked.text, layer=body.layer, head=body.head, word=body.word, side=body.side)
        found = steps.to_dict()
        return WalkthroughAnswer.model_validate(found | asked.fields(" ".join(found["target"]["words"])))

    return await ask(request, body.run, work)
