"""LibreTranslate's own addresses, so that its clients work unchanged: JSON and forms, one text and many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from regard.decode.options import Options
from regard.errors import DataError
from regard.serve.answers import RefusedError
from regard.serve.detect import Detection
from regard.serve.guard import AUTHORIZED
from regard.serve.limits import LINE, NAME, TooLargeError
from regard.serve.pairs import detector, pairs
from regard.serve.passage import Translatable, passage
from regard.serve.worker import Translated
from regard.settings.languages import Languages, matching, name_of


class LibreBody(BaseModel):
    """What every question may hold."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    api_key: Annotated[str, Field(max_length=LINE, description="The token, where one is needed.")] = ""


class TranslateQuestion(LibreBody):
    """A text, or several."""

    q: Annotated[str | list[str], Field(description="What to translate.", examples=["the black cat ate the mouse"])]
    source: Annotated[str, Field(max_length=NAME, description="The language it is in, or `auto`.", examples=["en"])]
    target: Annotated[str, Field(max_length=NAME, description="The language to translate into.", examples=["fr"])]
    format: Annotated[Literal["text", "html"], Field(description="`html` keeps tags in place.")] = "text"
    alternatives: Annotated[int, Field(ge=0, le=10, description="Further translations to give.")] = 0


class DetectQuestion(LibreBody):
    """A text."""

    q: Annotated[str, Field(description="What to look at.", examples=["le chat noir"])]


class TranslateReply(BaseModel):
    """Of several texts, lists in their order."""

    model_config = ConfigDict(populate_by_name=True)

    translated: Annotated[str | list[str], Field(alias="translatedText", examples=["le chat noir a mangé la souris"])]
    detected: Annotated[
        Detection | list[Detection] | None, Field(alias="detectedLanguage", description="With source `auto`.")
    ] = None
    alternatives: Annotated[list[str] | list[list[str]] | None, Field(description="Where they were asked for.")] = None
    warning: Annotated[str | list[str] | None, Field(description="What the reader should know, if anything.")] = None
    unknown: Annotated[
        list[str] | list[list[str]] | None, Field(description="Words that the run has never seen, if any.")
    ] = None


class LibreLanguage(BaseModel):
    """A language that can be translated from or into."""

    code: Annotated[str, Field(examples=["en"])]
    name: Annotated[str, Field(examples=["English"])]
    targets: Annotated[list[str], Field(description="Into what it can be translated.", examples=[["fr"]])]


class FrontendSettings(BaseModel):
    """What a page needs to know before it asks."""

    model_config = ConfigDict(populate_by_name=True)

    api_keys: Annotated[bool, Field(alias="apiKeys", description="Whether there are keys.")]
    key_required: Annotated[bool, Field(alias="keyRequired", description="Whether one must be sent.")]
    character_limit: Annotated[int, Field(alias="charLimit", description="Characters of a text at the most.")]
    batch_limit: Annotated[int, Field(alias="batchLimit", description="Texts of a request at the most.")]
    timeout: Annotated[int, Field(alias="frontendTimeout", description="Milliseconds to wait after the last key.")] = (
        500
    )
    suggestions: bool = False
    files: Annotated[bool, Field(alias="filesTranslation")] = False
    formats: Annotated[list[str], Field(alias="supportedFilesFormat")] = []
    language: Annotated[
        dict[str, dict[str, str]] | None,
        Field(
            description="What a page begins with.",
            examples=[{"source": {"code": "en", "name": "English"}, "target": {"code": "fr", "name": "French"}}],
        ),
    ]


router = APIRouter(tags=["LibreTranslate"])
Question = TypeVar("Question", bound=LibreBody)
AUTO = "auto"
_FORM = "application/x-www-form-urlencoded"


def _takes(question: type[LibreBody]) -> dict[str, Any]:
    """The OpenAPI of a body that may be JSON or a form."""
    schema = question.model_json_schema(ref_template="#/components/schemas/{model}")
    content = {kind: {"schema": schema} for kind in ("application/json", _FORM)}
    return {"requestBody": {"required": True, "content": content}}


@router.post("/translate", response_model_exclude_none=True, openapi_extra=_takes(TranslateQuestion))
async def translate(request: Request, response: Response) -> TranslateReply:
    """Translate a text, or several at once, from one language into another. `X-Regard-Run` says which run did."""
    question = await _question(request, TranslateQuestion)
    texts = [question.q] if isinstance(question.q, str) else question.q
    _check(request, texts)
    known = await asyncio.to_thread(pairs, request.app.state.service.library)  # it reads the disk, once for all texts
    detected = await _languages_of(request, question, texts, known)
    runs = [_run(known, each.language, question.target) for each in detected]
    passages = [passage(text, markup=question.format == "html") for text in texts]
    found = await _translate(request, passages, runs, 1 + question.alternatives)
    response.headers["X-Regard-Run"] = ", ".join(quote(run) for run in dict.fromkeys(runs))
    ranked, warnings, unknown = map(list, zip(*found, strict=True)) if found else ([], [], [])
    best, others = [outputs[0] for outputs in ranked], [outputs[1:] for outputs in ranked]
    single = isinstance(question.q, str)
    return TranslateReply(
        translated=best[0] if single else best,
        detected=(detected[0] if single else detected) if question.source == AUTO else None,
        alternatives=(others[0] if single else others) if question.alternatives else None,
        warning=(warnings[0] if single else warnings) if any(warnings) else None,
        unknown=(unknown[0] if single else unknown) if any(unknown) else None,
    )


@router.get("/languages")
async def languages(request: Request) -> list[LibreLanguage]:
    """What can be translated into what."""
    if not request.scope.get(AUTHORIZED, True):
        await _question(request, LibreBody)
    known = await asyncio.to_thread(pairs, request.app.state.service.library)
    codes = dict.fromkeys(code for pair in known for code in (pair.source, pair.target))
    return [
        LibreLanguage(code=code, name=name_of(code), targets=[pair.target for pair in known if pair.source == code])
        for code in codes
    ]


@router.post("/detect", openapi_extra=_takes(DetectQuestion))
async def detect(request: Request) -> list[Detection]:
    """Which of the languages known here a text is in, the likeliest first."""
    question = await _question(request, DetectQuestion)
    _check(request, [question.q])
    known = await asyncio.to_thread(pairs, request.app.state.service.library)
    found = await _detect(request, [question.q], tuple(known.items()))
    return found[0]


@router.get("/health")
async def health() -> dict[Literal["status"], Literal["ok"]]:
    """Whether the service answers."""
    return {"status": "ok"}


@router.get("/frontend/settings")
async def frontend_settings(request: Request) -> FrontendSettings:
    """What a page needs to know before it asks."""
    service = request.app.state.service
    first = next(iter(await asyncio.to_thread(pairs, service.library)), None)
    sides = {} if first is None else {"source": first.source, "target": first.target}
    needed = bool(service.doors.token)
    return FrontendSettings(
        api_keys=needed,
        key_required=needed,
        character_limit=service.library.limits.text,
        batch_limit=service.library.limits.texts,
        language={side: {"code": code, "name": name_of(code)} for side, code in sides.items()} or None,
    )


@router.get("/metrics", tags=["service"], response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Numbers for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


# Reading questions


async def _question(request: Request, kind: type[Question]) -> Question:
    """The body, read and checked, of an authorised client."""
    try:
        question = kind.model_validate(await _values(request))
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
    if not (request.scope.get(AUTHORIZED, True) or request.app.state.service.doors.opens(question.api_key)):
        raise RefusedError(
            403 if question.api_key else 400,
            "api_key: is not the right one" if question.api_key else "api_key: is needed; send the service's token",
        )
    return question


async def _values(request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", _FORM).partition(";")[0].strip().lower()
    body = await request.body()
    if kind == "application/json":
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise DataError('body: is not JSON; send an object such as {"q": "a text"}') from None
        if not isinstance(found, dict):
            raise DataError(f'body = {type(found).__name__}: must be an object, such as {{"q": "a text"}}')
        return found
    if kind != _FORM:
        raise RefusedError(415, f"content-type = {kind[:100]}: not understood; send application/json or {_FORM}")
    most = request.app.state.service.library.limits.fields
    try:
        text = (body or request.scope["query_string"]).decode("utf-8", "replace")
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=most)
    except ValueError:
        raise DataError(f"body: more than {most:,} fields; send fewer") from None
    return {name: values if len(values) > 1 and name == "q" else values[-1] for name, values in fields.items()}


def _check(request: Request, texts: Sequence[str]) -> None:
    """LibreTranslate says 400 to what is too much."""
    try:
        request.app.state.service.library.limits.check(texts, "q")
    except TooLargeError as problem:
        raise DataError(str(problem)) from None


# Finding languages and runs


async def _languages_of(
    request: Request, question: TranslateQuestion, texts: Sequence[str], known: Mapping[Languages, str]
) -> list[Detection]:
    """Each text's language: what the client says, else what its letters say, of those that can be translated."""
    if question.source != AUTO:
        return [Detection(100.0, question.source)] * len(texts)
    able = {pair.source for pair in matching(known, "", question.target)}
    if not able:
        _run(known, AUTO, question.target)
    found = await _detect(request, texts, tuple(known.items()))
    return [next(each for each in ranked if each.language in able) for ranked in found]


async def _detect(
    request: Request, texts: Sequence[str], known: tuple[tuple[Languages, str], ...]
) -> list[list[Detection]]:
    """Off the event loop: vocabularies are read from the disk when first needed."""
    library = request.app.state.service.library

    def work() -> list[list[Detection]]:
        find = detector(library, known)
        return [find(text) for text in texts]

    return await asyncio.to_thread(work)


def _run(known: Mapping[Languages, str], source: str, target: str) -> str:
    found = matching(known, source, target)
    if len(found) == 1:
        return known[found[0]]
    if found:
        which = ", ".join(f"{pair.source} to {pair.target}" for pair in found)
        raise DataError(f"source, target = {source[:20]}, {target[:20]}: may be {which}; say which")
    there = ", ".join(f"{pair.source} to {pair.target}" for pair in known) or "nothing yet"
    raise DataError(f"source, target = {source[:20]}, {target[:20]}: no run translates that; here is {there}")


# Translating


Rendered = tuple[list[str], str, list[str]]  # of a passage: outputs, best first; a warning; unknown words


def _rendered(passage: Translatable, found: Sequence[Translated], count: int) -> Rendered:
    texts = [each.translation for each in found]
    warnings = dict.fromkeys(text.warning for text in texts if text.warning)
    unknown = dict.fromkeys(each.word for text in texts for each in text.unknown)
    return passage.render(found, count), "; ".join(warnings), list(unknown)


async def _translate(
    request: Request, passages: Sequence[Translatable], runs: Sequence[str], count: int
) -> list[Rendered]:
    """Each passage's translations, best first. Runs work side by side; each gets all its texts at once."""
    library = request.app.state.service.library
    if count > library.limits.beam:
        raise DataError(f"alternatives = {count - 1}: too many; ask for at most {library.limits.beam - 1}")
    options = Options.of(library.limits.decode(library.decode, {"best": count}))

    async def of_run(run: str) -> dict[int, Rendered]:
        own = [number for number, name in enumerate(runs) if name == run]
        worker = await library.worker(run)
        texts = [text for number in own for text in passages[number].texts]
        found = iter(await worker.translate(texts, options, links=any(passages[number].tagged for number in own)))
        parts = {number: [next(found) for _ in passages[number].texts] for number in own}
        return {number: _rendered(passages[number], part, count) for number, part in parts.items()}

    results = await asyncio.gather(*(of_run(run) for run in dict.fromkeys(runs)))
    merged = {number: outputs for result in results for number, outputs in result.items()}
    return [merged[number] for number in range(len(passages))]
