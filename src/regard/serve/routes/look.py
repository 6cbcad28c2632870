"""``/api/v1/trace`` and other routes that look inside a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, TypeVar, get_args

from fastapi import APIRouter, Request, Response
from pydantic import Field, JsonValue

from regard.errors import DataError, ModelError
from regard.explain.answer import Answer, OfSentence, Sentence
from regard.explain.attribution import METHODS, POINTS, check_method
from regard.explain.beam import Searched, drawn, search_tree
from regard.explain.edits import MOST, from_data
from regard.explain.forecast import Forecasted, over_time
from regard.explain.importance import Attribution, attribute
from regard.explain.look import Looked, look
from regard.explain.meaning import Compared, compare_meanings
from regard.explain.parts import ModelMap, map_model
from regard.explain.passes import Of
from regard.explain.recurrent import Cells, cells
from regard.explain.walkthrough.step import Walkthrough
from regard.explain.walkthrough.walk import walk_text
from regard.serve.answers import Problem
from regard.serve.library import Library
from regard.serve.limits import BEAM, LINE, NAME, SENTENCES, TEXT, VECTORS, WORD, Body
from regard.serve.pairs import check_text, settings_at
from regard.serve.routes.translate import Decode
from regard.serve.worker import Model
from regard.settings.call import DRAWN, LOOKED
from regard.tasks.load import Trained, of_words
from regard.text.reading import Unknown, cut_as_read
from regard.text.sentences import Cut

_RUN = Field(description="Name of a run.", max_length=NAME, examples=["demo"])
_TEXT = Field(
    description=f"The sentence to look into, of at most {TEXT:,} characters; or vectors, where a run reads these.",
    max_length=VECTORS,
    examples=["the black cat sleeps"],
)
_SENTENCE = Field(default=0, ge=0, le=TEXT, description="Which sentence of the text, if there are several.")


class SentencesBody(Body):
    """A text to cut into sentences."""

    text: str = Field(max_length=TEXT, examples=["The cat sleeps. Dr. Smith does not."])
    run: str = Field(default="", max_length=NAME, description="The run that reads it; empty for any.", examples=[""])


class LookBody(Body):
    """A sentence to look into, and edits."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    target: str | None = Field(
        default=None,
        description="An output to look into instead of the run's own.",
        max_length=TEXT,
        examples=[None],
    )
    edits: list[dict[str, JsonValue]] = Field(
        default=[],
        description="What-if edits, each with its kind; indices count from 0.",
        max_length=MOST,
        examples=[[{"kind": "mask-word", "word": 1}]],
    )
    decode: Decode = None
    rank: int = Field(default=0, ge=0, lt=BEAM, description="Which of the n-best outputs; 0 is the best.")
    beam: int = Field(default=5, ge=1, le=BEAM, description="Hypotheses of each step; edits are greedy.")
    checkpoint: str | None = Field(
        default=None, max_length=NAME, description="A checkpoint of the run instead of the best.", examples=[None]
    )


class ImportanceBody(LookBody):
    """Which importance to compute; layers and heads count from 1, as in ``regard explain``."""

    method: str = Field(default="masking", max_length=NAME, description=f"One of {', '.join(METHODS)}.")
    of: str = Field(default="log-probability", max_length=NAME, description=f"One of {', '.join(get_args(Of))}.")
    against: str = Field(
        default="",
        max_length=TEXT,
        description="Why not this word, or this translation?",
        examples=[""],
    )
    step: int | None = Field(
        default=None,
        ge=0,
        le=TEXT,
        description="With against: the step, else where the two were nearest.",
    )
    layer: int | None = Field(default=None, ge=1, le=TEXT, description="One layer, where the method has layers.")
    head: str = Field(default="best", max_length=NAME, description="Of attention: a number, best or mean.")
    words: bool = Field(default=True, description="Words instead of pieces.")
    special: bool = Field(default=False, description="Whether special tokens such as <end> are shown.")
    points: int = Field(default=POINTS, ge=2, le=64, description="Steps of integrated gradients.")


class ForecastBody(Body):
    """A series, and what its forecast is to be explained by."""

    run: str = _RUN
    text: str = Field(description="Numbers, or the contents of a file.", max_length=VECTORS, examples=["[1, 2, 3]"])
    method: str = Field(default="", max_length=NAME, description="attention or gradient; empty: what there is.")
    checkpoint: str | None = Field(
        default=None, max_length=NAME, description="A checkpoint of the run instead of the best.", examples=[None]
    )


class MapBody(LookBody):
    """A sentence, and a part of the model whose numbers are wanted."""

    part: str = Field(default="", max_length=NAME, description="The name of a part; empty for none.", examples=[""])


class BeamBody(Body):
    """A search to show."""

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
    """Which computation to show; indices count from 0."""

    run: str = _RUN
    text: str = _TEXT
    sentence: int = _SENTENCE
    layer: int = Field(default=0, ge=0, le=TEXT)
    head: int = Field(default=0, ge=0, le=TEXT)
    word: int = Field(default=0, ge=0, le=TEXT)
    side: Literal["all", "encoder", "decoder", "cross"] = "all"
    decode: Decode = None


View = Looked | Attribution | Cells | ModelMap
PROBLEMS = {
    400: {"model": Problem, "description": "The request is wrong; the line says what would be right."},
    404: {"model": Problem, "description": "There is no such run, or the run has no such part."},
    503: {"model": Problem, "description": "The service cannot do this now."},
}
Found = TypeVar("Found", bound=OfSentence)
UNKNOWN = "<unk>"  # as a search writes it
router = APIRouter(prefix="/api/v1", tags=["look inside"], responses=PROBLEMS)  # type: ignore[arg-type]


async def answered(request: Request, run: str, question: Callable[[Trained], Answer]) -> Response:
    """Answer a question about a run; the thread of its model computes the answer and writes its JSON."""
    worker = await request.app.state.library.worker(run, None)
    content = await worker.call(lambda model: question(of_words(model, run)).to_json())
    return Response(content, media_type="application/json")


async def look_into(request: Request, body: LookBody, view: Callable[[Trained, Looked], View]) -> Response:
    """A view of one output. Several views of the same output need one search."""
    library: Library = request.app.state.library
    check_text(library, body.run, body.text)
    worker = await library.worker(body.run, body.checkpoint)
    edits = from_data(body.edits)
    fields = body.model_dump(include={"beam"}, exclude_unset=True)
    decode = library.limits.decode(library.decode, fields, body.decode, known=LOOKED, what="what is looked into")

    def work(found: Model) -> bytes:
        model = of_words(found, body.run)
        searched = model.task == "translate" and body.target is None and not edits
        how = decode if searched or body.decode is not None else None  # `look` refuses it where nothing is searched

        def viewed(text: str) -> View:
            question = text, body.target, body.rank, edits
            looked = worker.cached((question, how), lambda: look(model, *question, decode=how, name=body.run))
            return view(model, looked)

        return about_sentence(model, body.text, body.sentence, viewed, lambda looked: looked.output).to_json()

    return Response(await worker.call(work), media_type="application/json")


@router.post("/sentences")
async def sentences(request: Request, body: SentencesBody) -> dict[Literal["sentences"], tuple[Sentence, ...]]:
    """Where the sentences of a text are, as everything here cuts them; what is between them stays as it is."""
    library: Library = request.app.state.library
    plain = bool(body.run) and settings_at(library.path(body.run)).data.is_built_in
    return {"sentences": cut_up(cut_as_read(body.text, plain=plain))}


@router.post("/trace", response_model=Looked)
async def trace(request: Request, body: LookBody) -> Response:
    """Attention, probabilities and checks of one output; with edits, their effect."""
    return await look_into(request, body, lambda _, looked: looked)


@router.post("/importance", response_model=Attribution)
async def weigh(request: Request, body: ImportanceBody) -> Response:
    """The importance of each input word for each output word by one method; or why one word was chosen, not another."""
    check_method(body.method, body.of, body.against)
    asked = body.model_dump(include={"method", "of", "against", "step", "layer", "head", "words", "special", "points"})
    return await look_into(request, body, lambda model, looked: attribute(model, looked, **asked))


@router.post("/gates", response_model=Cells)
async def gates(request: Request, body: LookBody) -> Response:
    """Gates and states of a recurrent model, and what each step depends on."""
    return await look_into(request, body, lambda _, looked: cells(looked))


@router.post("/map", response_model=ModelMap)
async def map_parts(request: Request, body: MapBody) -> Response:
    """The parts of the model, and what each computed for the sentence."""
    return await look_into(request, body, lambda _, looked: map_model(looked, body.part))


@router.post("/forecast", response_model=Forecasted)
async def forecast(request: Request, body: ForecastBody) -> Response:
    """How a series goes on, beside the naive forecast, and which moments of it each moment ahead hangs on."""
    library: Library = request.app.state.library
    check_text(library, body.run, body.text)

    def work(model: Model) -> bytes:
        if model.task != "forecast":
            raise ModelError(f"run = {body.run}: does not forecast; ask /api/v1/trace")
        return over_time(model, body.text, body.method, body.run).to_json()

    worker = await library.worker(body.run, body.checkpoint)
    return Response(await worker.call(work), media_type="application/json")


@router.post("/beam", response_model=Searched)
async def beam(request: Request, body: BeamBody) -> Response:
    """The tree of a search: what was kept, what was pruned and why, and the outputs of other beam sizes."""
    library: Library = request.app.state.library
    check_text(library, body.run, body.text)
    fields = body.model_dump(include={"beam", "length_penalty", "prefix"}, exclude_unset=True)
    decode = library.limits.decode(library.decode, fields, body.decode, known=DRAWN, what="the tree of a search")
    rule = replace(drawn(decode), best=decode.beam)
    own = body.prefix if body.decode is None else body.decode.prefix or body.prefix

    def work(model: Trained) -> Searched:
        prefix = decode.prefix if model.task == "translate" else own  # the service's default is for translations
        tree = partial(search_tree, model, rule=rule, prefix=prefix)
        return about_sentence(model, body.text, body.sentence, tree, lambda found: found.text)

    return await answered(request, body.run, work)


@router.post("/meaning", response_model=Compared)
async def meaning(request: Request, body: MeaningBody) -> Response:
    """One word in several sentences through the layers of the encoder."""
    folder = request.app.state.library.path(body.run)

    def work(model: Trained) -> Compared:
        return compare_meanings(
            model, body.word, body.sentences, control=body.control, neighbours=body.neighbours, folder=folder
        )

    return await answered(request, body.run, work)


@router.post("/walkthrough", response_model=Walkthrough)
async def walkthrough(request: Request, body: WalkthroughBody) -> Response:
    """The computation for one sentence, with the run's own numbers."""
    library: Library = request.app.state.library
    check_text(library, body.run, body.text)
    how = library.limits.decode(library.decode, {}, body.decode, known=LOOKED, what="what is looked into")

    def work(model: Trained) -> Walkthrough:
        decode = how if model.task == "translate" or body.decode is not None else None  # other models refuse it
        places = body.model_dump(include={"layer", "head", "word", "side"})
        walk = partial(walk_text, model, **places, decode=decode)
        return about_sentence(model, body.text, body.sentence, walk, lambda found: " ".join(found.target.words))

    return await answered(request, body.run, work)


# One sentence of a text, with remarks on it


def about_sentence(
    model: Trained, text: str, number: int, answer: Callable[[str], Found], output: Callable[[Found], str]
) -> Found:
    """The answer about one sentence of a text, counted from 0, with remarks on its output. Models that do not translate
    read a text whole."""
    found_in = cut_up(model.search.read(text).cut) if model.task == "translate" else ()
    sentences = found_in or (Sentence(0, len(text), text),)
    if number >= len(sentences):
        raise DataError(f"sentence = {number}: the text has {len(sentences)}, counted from 0; choose one of these")
    found = answer(sentences[number].text)
    unknown, warning = _remarks(model, sentences[number].text, output(found))
    return replace(found, sentences=sentences, sentence=number, unknown=unknown, warning=warning)


def _remarks(model: Trained, text: str, output: str) -> tuple[tuple[Unknown, ...], str]:
    """Words that a translator has never seen, and its warnings."""
    if model.task != "translate":
        return (), ""
    passage = model.search.read(text)
    words = list(dict.fromkeys(each.word for each in passage.unknown))
    copied = [output, *words] if output.count(UNKNOWN) >= len(words) else [output]  # each has its <unk>
    return passage.unknown, "; ".join(passage.remarks(" ".join(copied), model.language))


def cut_up(found: Cut) -> tuple[Sentence, ...]:
    """Every sentence with its start and end."""
    places = zip(found.sentences, found.spans, strict=True)
    return tuple(Sentence(start, end, sentence) for sentence, (start, end) in places)
