"""``/api/v1/trace`` and its like: what happened inside a model, and what would change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field, JsonValue

from regard.explain.answer import Answer, Sentence
from regard.explain.ask import (
    Cells,
    Compared,
    Importance,
    Looked,
    Question,
    Searched,
    Walkthrough,
    cells,
    compare_meanings,
    importance,
    look,
    search_tree,
    walk_text,
)
from regard.explain.beam import drawn
from regard.explain.edits import MOST, from_data
from regard.serve.answers import Problem
from regard.serve.library import Library
from regard.serve.limits import BEAM, LINE, NAME, SENTENCES, TEXT, WORD, Body
from regard.serve.routes.translate import Decode
from regard.serve.sentences import choose, cut_up
from regard.serve.worker import Model
from regard.settings.call import DRAWN, LOOKED

_RUN = Field(description="Name of a run.", max_length=NAME, examples=["demo"])
_TEXT = Field(description="The sentence to look into.", max_length=TEXT, examples=["the black cat sleeps"])
_SENTENCE = Field(
    default=0, ge=0, le=TEXT, description="Which sentence of the text, where a translator is given several."
)
_TARGET = Field(
    default=None,
    description="A given output, looked into instead of the run's own.",
    max_length=TEXT,
    examples=[None],
)
_EDITS: Any = Field(
    default_factory=list,
    description="What if: edits, each with its kind, counting from 0.",
    max_length=MOST,
    examples=[[{"kind": "mask-word", "word": 1}]],
)


class SentencesBody(Body):
    """A text to cut."""

    text: str = Field(max_length=TEXT, examples=["The cat sleeps. Dr. Smith does not."])


@dataclass(frozen=True)
class SentencesAnswer(Answer):
    """Where the sentences of a text are; whatever is between them stays as it is."""

    sentences: tuple[Sentence, ...]


class Inquiry(Body):
    """A sentence, and perhaps what to change."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    target: str | None = _TARGET
    edits: list[dict[str, JsonValue]] = _EDITS
    decode: Decode = None


class TraceBody(Inquiry):
    """What to look into."""

    rank: int = Field(default=0, ge=0, lt=BEAM, description="Of the n-best, 0 the best.")
    beam: int = Field(default=5, ge=1, le=BEAM, description="Hypotheses side by side; edits are greedy.")
    checkpoint: str | None = Field(
        default=None, max_length=NAME, description="A checkpoint of the run, else the best.", examples=[None]
    )


class BeamBody(Body):
    """A search to watch."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    beam: int = Field(default=5, ge=1, le=BEAM)
    length_penalty: float = Field(default=1.0, ge=-5, le=5)
    prefix: str = Field(default="", max_length=LINE, description="What the output begins with.")
    decode: Decode = None


class MeaningBody(Body):
    """A word in several sentences."""

    run: str = _RUN
    word: str = Field(max_length=WORD, min_length=1, examples=["bank"])
    sentences: list[Annotated[str, Field(max_length=LINE)]] = Field(
        min_length=1, max_length=SENTENCES, examples=[["she sat on the bank of the river", "the bank lends money"]]
    )
    control: str | None = Field(default=None, max_length=WORD, description="A word to compare with.", examples=["the"])
    neighbours: int = Field(default=5, ge=0, le=20)


class WalkthroughBody(Body):
    """Which numbers to walk through; everything counts from 0."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    layer: int = Field(default=0, ge=0, le=TEXT)
    head: int = Field(default=0, ge=0, le=TEXT)
    word: int = Field(default=0, ge=0, le=TEXT)
    side: Literal["all", "encoder", "decoder", "cross"] = "all"
    decode: Decode = None


View = Looked | Importance | Cells
PROBLEMS = {
    400: {"model": Problem, "description": "What was asked makes no sense; the line says what would."},
    404: {"model": Problem, "description": "There is no such run, or the run has no such part."},
    503: {"model": Problem, "description": "The service cannot do this now."},
}
router = APIRouter(prefix="/api/v1", tags=["look inside"], responses=PROBLEMS)  # type: ignore[arg-type]


async def answered(request: Request, run: str, question: Callable[[Model], Answer]) -> Response:
    """The answer to a question about a run, found and written as JSON by the thread that owns its model."""
    worker = await request.app.state.service.library.worker(run, None)
    return Response(await worker.call(lambda model: question(model).to_json()), media_type="application/json")


async def look_into(
    request: Request, body: Inquiry, view: Callable[[Looked], View], checkpoint: str | None = None
) -> Response:
    """A view of one output. Several views of the same, one after the other, take one search."""
    library: Library = request.app.state.service.library
    worker = await library.worker(body.run, checkpoint)
    edits = from_data(body.edits)
    fields = body.model_dump(include={"beam"}, exclude_unset=True)
    decode = library.limits.decode(library.decode, fields, body.decode, known=LOOKED, what="what is looked into")

    def work(model: Model) -> bytes:
        asked = choose(model, body.text, body.sentence)
        searched = model.task == "translate" and body.target is None and not edits
        searched = searched or body.decode is not None  # which is then refused
        rank = body.rank if isinstance(body, TraceBody) else 0
        question = Question(asked.text, body.target, rank, edits=edits, decode=decode if searched else None)
        found = view(worker.cached(question, lambda: look(model, question, body.run)))
        return asked.about(found, found.output).to_json()

    return Response(await worker.call(work), media_type="application/json")


@router.post("/sentences")
async def sentences(body: SentencesBody) -> SentencesAnswer:
    """Where the sentences of a text are, as everything here cuts them."""
    return SentencesAnswer(sentences=cut_up(body.text))


@router.post("/trace", response_model=Looked)
async def trace(request: Request, body: TraceBody) -> Response:
    """Attention, probabilities and checks of one output; with edits, what they did."""
    return await look_into(request, body, lambda looked: looked, body.checkpoint)


@router.post("/importance", response_model=Importance)
async def weigh(request: Request, body: Inquiry) -> Response:
    """Attention beside the effect of masking each word, and beside the gradient."""
    return await look_into(request, body, importance)


@router.post("/gates", response_model=Cells)
async def gates(request: Request, body: Inquiry) -> Response:
    """Gates and states of a recurrent model, and what each step's choice hangs on."""
    return await look_into(request, body, cells)


@router.post("/beam", response_model=Searched)
async def beam(request: Request, body: BeamBody) -> Response:
    """The tree of a search: what was kept, what was pruned and why, and what other beams find."""
    library: Library = request.app.state.service.library
    fields = body.model_dump(include={"beam", "length_penalty", "prefix"}, exclude_unset=True)
    decode = library.limits.decode(library.decode, fields, body.decode, known=DRAWN, what="the tree of a search")
    rule = replace(drawn(decode), best=decode.beam)
    own = body.prefix if body.decode is None else body.decode.prefix or body.prefix

    def work(model: Model) -> Searched:
        asked = choose(model, body.text, body.sentence)
        prefix = decode.prefix if model.task == "translate" else own  # the usual one is for translations
        found = search_tree(model, asked.text, rule, prefix=prefix)
        return asked.about(found, found.text)

    return await answered(request, body.run, work)


@router.post("/meaning", response_model=Compared)
async def meaning(request: Request, body: MeaningBody) -> Response:
    """One word in several sentences through the layers of the encoder."""
    folder = request.app.state.service.library.path(body.run)

    def work(model: Model) -> Compared:
        return compare_meanings(
            model, body.word, body.sentences, control=body.control, neighbours=body.neighbours, folder=folder
        )

    return await answered(request, body.run, work)


@router.post("/walkthrough", response_model=Walkthrough)
async def walkthrough(request: Request, body: WalkthroughBody) -> Response:
    """The mathematics of one sentence with the run's own numbers."""
    library: Library = request.app.state.service.library
    how = library.limits.decode(library.decode, {}, body.decode, known=LOOKED, what="what is looked into")

    def work(model: Model) -> Walkthrough:
        asked = choose(model, body.text, body.sentence)
        decode = how if model.task == "translate" or body.decode is not None else None  # others refuse it
        found = walk_text(
            model, asked.text, layer=body.layer, head=body.head, word=body.word, side=body.side, decode=decode
        )
        return asked.about(found, " ".join(found.target.words))

    return await answered(request, body.run, work)
