"""LibreTranslate's own addresses, so that its clients work unchanged: JSON and forms, one text and many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from regard.decode.options import Options
from regard.errors import DataError
from regard.serve.answers import RefusedError
from regard.serve.detect import Detection
from regard.serve.guard import AUTHORIZED
from regard.serve.limits import TooLargeError
from regard.serve.pairs import detector, pairs
from regard.serve.passage import Translatable, passage
from regard.serve.schema.libre import (
    CodeAndName,
    DetectQuestion,
    FrontendLanguages,
    FrontendSettings,
    Health,
    LibreBody,
    LibreLanguage,
    TranslateQuestion,
    TranslateReply,
)
from regard.serve.worker import Translated
from regard.settings.languages import Languages, matching, name_of

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
    best, others = [each.outputs[0] for each in found], [each.outputs[1:] for each in found]
    warnings, unknown = [each.warning for each in found], [each.unknown for each in found]
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
async def health() -> Health:
    """Whether the service answers."""
    return Health()


@router.get("/frontend/settings")
async def frontend_settings(request: Request) -> FrontendSettings:
    """What a page needs to know before it asks."""
    service = request.app.state.service
    first = next(iter(await asyncio.to_thread(pairs, service.library)), None)
    named = (
        [] if first is None else [CodeAndName(code=code, name=name_of(code)) for code in (first.source, first.target)]
    )
    needed = bool(service.doors.token)
    return FrontendSettings(
        api_keys=needed,
        key_required=needed,
        character_limit=service.library.limits.text,
        batch_limit=service.library.limits.texts,
        language=FrontendLanguages(source=named[0], target=named[1]) if named else None,
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


@dataclass(frozen=True)
class _Rendered:
    """What became of a passage."""

    outputs: list[str]  # best first
    warning: str
    unknown: list[str]

    @classmethod
    def of(cls, passage: Translatable, found: Sequence[Translated], count: int) -> _Rendered:
        texts = [each.translation for each in found]
        warnings = dict.fromkeys(text.warning for text in texts if text.warning)
        unknown = dict.fromkeys(each.word for text in texts for each in text.unknown)
        return cls(passage.render(found, count), "; ".join(warnings), list(unknown))


async def _translate(
    request: Request, passages: Sequence[Translatable], runs: Sequence[str], count: int
) -> list[_Rendered]:
    """Each passage's translations, best first. Runs work side by side; each gets all its texts at once."""
    library = request.app.state.service.library
    if count > library.limits.beam:
        raise DataError(f"alternatives = {count - 1}: too many; ask for at most {library.limits.beam - 1}")
    options = Options.of(library.limits.decode(library.decode, {"best": count}))

    async def of_run(run: str) -> dict[int, _Rendered]:
        own = [number for number, name in enumerate(runs) if name == run]
        worker = await library.worker(run)
        texts = [text for number in own for text in passages[number].texts]
        found = iter(await worker.translate(texts, options, links=any(passages[number].tagged for number in own)))
        parts = {number: [next(found) for _ in passages[number].texts] for number in own}
        return {number: _Rendered.of(passages[number], part, count) for number, part in parts.items()}

    results = await asyncio.gather(*(of_run(run) for run in dict.fromkeys(runs)))
    merged = {number: outputs for result in results for number, outputs in result.items()}
    return [merged[number] for number in range(len(passages))]
