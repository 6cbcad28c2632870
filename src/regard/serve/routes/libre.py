"""LibreTranslate's API, so that its clients work unchanged: JSON and forms, one text, several, or a file."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from email.message import Message
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from regard.decode.options import Options
from regard.errors import DataError
from regard.serve import strings
from regard.serve.answers import RefusedError
from regard.serve.detect import Detection
from regard.serve.guard import AUTHORIZED
from regard.serve.library import Library
from regard.serve.limits import LINE, NAME, KindError, TooLargeError
from regard.serve.markup import Page
from regard.serve.pairs import current_pairs, detector
from regard.serve.worker import Translated
from regard.settings.languages import Languages, matching, name_of


class LibreBody(BaseModel):
    """A field of every question."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    api_key: Annotated[str, Field(max_length=LINE, description="The token, if one is needed.")] = ""


class TranslateQuestion(LibreBody):
    """A text, or several."""

    q: Annotated[str | list[str], Field(description="The text, or several.", examples=["the black cat ate the mouse"])]
    source: Annotated[str, Field(max_length=NAME, description="The language it is in, or `auto`.", examples=["en"])]
    target: Annotated[str, Field(max_length=NAME, description="The language to translate into.", examples=["fr"])]
    format: Annotated[Literal["text", "html"], Field(description="`html` keeps tags in place.")] = "text"
    alternatives: Annotated[int, Field(ge=0, le=10, description="Further translations to give.")] = 0


class DetectQuestion(LibreBody):
    """A text whose language to detect."""

    q: Annotated[str, Field(description="The text.", examples=["le chat noir"])]


class FileQuestion(LibreBody):
    """A file of strings or subtitles."""

    file: Annotated[str, Field(description="`.po`, `.mo`, `.xliff` or `.srt`.", json_schema_extra={"format": "binary"})]
    source: Annotated[str, Field(max_length=NAME, description="The language it is in.", examples=["en"])]
    target: Annotated[str, Field(max_length=NAME, description="The language to translate into.", examples=["fr"])]
    keep: Annotated[str, Field(max_length=LINE, description="Terms not to translate, separated by commas.")] = ""


class TranslateReply(BaseModel):
    """The translation; for several texts, lists in their order."""

    model_config = ConfigDict(populate_by_name=True)

    translated: Annotated[str | list[str], Field(alias="translatedText", examples=["le chat noir a mangé la souris"])]
    detected: Annotated[
        Detection | list[Detection] | None, Field(alias="detectedLanguage", description="With source `auto`.")
    ] = None
    alternatives: Annotated[list[str] | list[list[str]] | None, Field(description="If they were asked for.")] = None
    warning: Annotated[str | list[str] | None, Field(description="A remark for the reader, if any.")] = None
    unknown: Annotated[
        list[str] | list[list[str]] | None, Field(description="Words that the run has never seen, if any.")
    ] = None


router = APIRouter(tags=["LibreTranslate"])
Question = TypeVar("Question", bound=LibreBody)
AUTO = "auto"
_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_FILES: Final = 64  # translated files that are kept
_BOUNDARY = re.compile(r"[\w'()+,./:=? -]{1,70}", re.ASCII)


def _takes(question: type[LibreBody], *kinds: str) -> dict[str, Any]:
    """The OpenAPI of a body that may be JSON or a form."""
    schema = question.model_json_schema(ref_template="#/components/schemas/{model}")
    content = {kind: {"schema": schema} for kind in kinds or ("application/json", _FORM, _MULTIPART)}
    return {"requestBody": {"required": True, "content": content}}


@router.post("/translate", response_model_exclude_none=True, openapi_extra=_takes(TranslateQuestion))
async def translate(request: Request, response: Response) -> TranslateReply:
    """Translate a text, or several. The header `X-Regard-Run` names the run."""
    question = await _question(request, TranslateQuestion)
    texts = [question.q] if isinstance(question.q, str) else question.q
    _check(request, texts)
    known = await current_pairs(request.app.state.library)
    detected = await _languages_of(request, question, texts, known)
    runs = [_run(known, each.language, question.target) for each in detected]
    found = await _translate(request, texts, runs, 1 + question.alternatives, markup=question.format == "html")
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


class FileReply(BaseModel):
    """Where the translated file is."""

    translatedFileUrl: Annotated[str, Field(description="The newest 64 files can be downloaded.")]  # noqa: N815


@router.post("/translate_file", openapi_extra=_takes(FileQuestion, _MULTIPART))
async def translate_file(request: Request) -> FileReply:
    """Translate the strings of a file, which otherwise stays the same. The newest 64 files can be downloaded."""
    values = await _values(request)
    name, content = values.get("file", ("", b"")) if isinstance(values.get("file"), tuple) else ("", b"")
    question = await _question(request, FileQuestion, values | {"file": name})
    if not name:
        raise DataError("file: is missing; send one as multipart/form-data, with its name")
    if PurePath(name).suffix.lower() not in strings.READERS:
        raise KindError(
            f"file = {name[:NAME]}: not a format that is translated; send one of {', '.join(strings.READERS)}"
        )
    document = await asyncio.to_thread(strings.read, name, content)
    known = await current_pairs(request.app.state.library)
    run = _run(known, question.source, question.target)
    texts = await _strings(request, document.texts, run, question.keep.split(","))
    written = await asyncio.to_thread(document.fill, texts)
    kept: OrderedDict[str, bytes] = request.app.state.files
    place = f"{secrets.token_urlsafe(24)}{PurePath(name).suffix.lower()}"
    kept[place] = written
    while len(kept) > _FILES:
        kept.popitem(last=False)
    return FileReply(translatedFileUrl=f"{request.base_url}download_file/{place}")


async def _strings(request: Request, texts: Sequence[str], run: str, keep: Sequence[str]) -> list[str]:
    """Translate texts, as many at once as the queue of a model holds."""
    library: Library = request.app.state.library
    for text in texts:
        library.limits.check(text.split("\n")[:1], "file")
    worker = await library.worker(run)
    options, most = (
        Options.of(library.limits.decode(library.decode, {})),
        min(library.limits.texts, library.limits.queue),
    )
    work = strings.translating(texts, [term.strip() for term in keep])
    found: list[Translated] = []
    try:
        sentences = next(work)
        while True:
            library.limits.check([max(sentences, key=len)], "file")
            found = []
            for begin in range(0, len(sentences), most):
                found += await worker.translate(sentences[begin : begin + most], options, links=True)
            sentences = work.send([ranked(each, 0) for each in found])
    except StopIteration as done:
        texts = done.value
        return list(texts)


@router.get("/download_file/{name}", responses={200: {"content": {"application/octet-stream": {}}}})
async def download_file(request: Request, name: str) -> Response:
    """A file that was translated here."""
    content = request.app.state.files.get(name)
    if content is None:
        raise RefusedError(404, "file: does not exist, or no longer; translate it again")
    headers = {"Content-Disposition": f'attachment; filename="translated{PurePath(name).suffix}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


class Language(BaseModel):
    """A language, and into which it can be translated."""

    code: str
    name: str
    targets: list[str]


@router.get("/languages")
async def languages(request: Request) -> list[Language]:
    """The languages, and into which each can be translated."""
    if not request.scope.get(AUTHORIZED, True):
        await _question(request, LibreBody)
    known = await current_pairs(request.app.state.library)
    codes = dict.fromkeys(code for pair in known for code in (pair.source, pair.target))
    return [
        Language(code=code, name=name_of(code), targets=[pair.target for pair in known if pair.source == code])
        for code in codes
    ]


@router.post("/detect", openapi_extra=_takes(DetectQuestion))
async def detect(request: Request) -> list[Detection]:
    """The languages that a text may be in, the most probable first."""
    question = await _question(request, DetectQuestion)
    _check(request, [question.q])
    known = await current_pairs(request.app.state.library)
    found = await _detect(request, [question.q], tuple(known.items()))
    return found[0]


@router.head("/health", include_in_schema=False)  # for who only wants to know whether it answers
@router.get("/health")
async def health(request: Request) -> dict[Literal["status"], Literal["ok"]]:
    """Whether the service answers, and is not about to end."""
    if request.app.state.draining:
        raise RefusedError(503, "draining: this service is about to end; ask another")
    return {"status": "ok"}


@router.get("/frontend/settings")
async def frontend_settings(request: Request) -> dict[str, Any]:
    """Settings for pages: whether a key is needed, limits of a text and a request, milliseconds to wait after the last
    keystroke, and the first languages."""
    library: Library = request.app.state.library
    first = next(iter(await current_pairs(library)), None)
    sides = {} if first is None else {"source": first.source, "target": first.target}
    needed = bool(request.app.state.doors.token)
    return {
        "apiKeys": needed,
        "keyRequired": needed,
        "charLimit": library.limits.text,
        "batchLimit": library.limits.texts,
        "frontendTimeout": 500,
        "suggestions": False,
        "filesTranslation": True,
        "supportedFilesFormat": list(strings.READERS),
        "language": {side: {"code": code, "name": name_of(code)} for side, code in sides.items()} or None,
    }


@router.get("/metrics", tags=["service"], response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Metrics for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


# Reading requests


async def _question(request: Request, kind: type[Question], values: Mapping[str, Any] | None = None) -> Question:
    """The body of a request, checked, also for its key."""
    try:
        question = kind.model_validate(await _values(request) if values is None else values)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
    if not (request.scope.get(AUTHORIZED, True) or request.app.state.doors.opens(question.api_key)):
        raise RefusedError(
            403 if question.api_key else 400,
            "api_key: is wrong" if question.api_key else "api_key: is needed; send the service's token",
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
    most = request.app.state.library.limits.fields
    if kind == _MULTIPART:
        return _gathered(_parts(request.headers["content-type"], body, most))
    if kind != _FORM:
        raise RefusedError(415, f"content-type = {kind[:100]}: not supported; send application/json or {_FORM}")
    try:
        text = (body or request.scope["query_string"]).decode("utf-8", "replace")
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=most)
    except ValueError:
        raise DataError(f"body: more than {most:,} fields; send fewer") from None
    return _gathered(fields)


def _gathered(fields: Mapping[str, list[Any]]) -> dict[str, Any]:
    """The fields of a form; only `q` may occur several times."""
    return {name: values if len(values) > 1 and name == "q" else values[-1] for name, values in fields.items()}


def _parts(content_type: str, body: bytes, most: int) -> dict[str, list[Any]]:
    """The fields of a multipart form (RFC 7578): texts, and files as name and content."""
    boundary = str(_parameter(content_type, "boundary") or "")
    mark = b"--" + boundary.encode("ascii", "replace")
    whole = b"\r\n" + body
    if not _BOUNDARY.fullmatch(boundary) or b"\r\n" + mark + b"--" not in whole:
        raise DataError("body: is not a complete multipart form; send all parts and the final boundary")
    pieces = whole.partition(b"\r\n" + mark + b"--")[0].split(b"\r\n" + mark + b"\r\n")[1:]
    if len(pieces) > most:
        raise DataError(f"body: more than {most:,} fields; send fewer")
    found: dict[str, list[Any]] = {}
    for piece in pieces:
        head, _, content = (piece if piece.startswith(b"\r\n") else b"\r\n" + piece).partition(b"\r\n\r\n")
        lines = head.decode("utf-8", "replace").split("\r\n")
        about = next((line.partition(":")[2] for line in lines if line.lower().startswith("content-disposition:")), "")
        name, file = _parameter(about, "name"), _parameter(about, "filename")
        value = content.decode("utf-8", "replace") if file is None else (PurePath(file).name, content)
        found.setdefault(name or "", []).append(value)
    return found


def _parameter(header: str, name: str) -> str | None:
    message = Message()
    message["content-type"] = " ".join(header.split())
    found = message.get_param(name)
    return found if isinstance(found, str) else found[2] if isinstance(found, tuple) else None


def _check(request: Request, texts: Sequence[str]) -> None:
    """Refuse too much text with 400, as LibreTranslate does."""
    try:
        request.app.state.library.limits.check(texts, "q")
    except TooLargeError as problem:
        raise DataError(str(problem)) from None


# Languages and runs


async def _languages_of(
    request: Request, question: TranslateQuestion, texts: Sequence[str], known: Mapping[Languages, str]
) -> list[Detection]:
    """The language of each text: the one given, else the detected one, of those that can be translated."""
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
    """Detect languages in a thread: vocabularies are read from the disk when first needed."""
    library = request.app.state.library

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
        raise DataError(f"source, target = {source[:20]}, {target[:20]}: are ambiguous: {which}; choose one")
    there = ", ".join(f"{pair.source} to {pair.target}" for pair in known) or "nothing yet"
    raise DataError(f"source, target = {source[:20]}, {target[:20]}: no run translates this pair; there is {there}")


# Translating


Render = Callable[[Sequence[Translated], int], list[str]]
Rendered = tuple[list[str], str, list[str]]  # of a text: translations, best first; a warning; unknown words


def _rendered(found: Sequence[Translated], outputs: list[str]) -> Rendered:
    texts = [translation for translation, *_ in found]
    warnings = dict.fromkeys(text.warning for text in texts if text.warning)
    unknown = dict.fromkeys(each.word for text in texts for each in text.unknown)
    return outputs, "; ".join(warnings), list(unknown)


async def _translate(
    request: Request, texts: Sequence[str], runs: Sequence[str], count: int, *, markup: bool
) -> list[Rendered]:
    """The translations of each text, best first. Runs work in parallel; each gets all its texts at once."""
    library: Library = request.app.state.library
    if count > library.limits.beam:
        raise DataError(f"alternatives = {count - 1}: too many; ask for at most {library.limits.beam - 1}")
    options = Options.of(library.limits.decode(library.decode, {"best": count}))
    passages = [passage(text, markup=markup) for text in texts]

    async def of_run(run: str) -> dict[int, Rendered]:
        own = {number: passages[number] for number, name in enumerate(runs) if name == run}
        worker = await library.worker(run)
        found = iter(
            await worker.translate([text for parts, _ in own.values() for text in parts], options, links=markup)
        )
        parts = {number: [next(found) for _ in texts] for number, (texts, _) in own.items()}
        return {number: _rendered(part, passages[number][1](part, count)) for number, part in parts.items()}

    results = await asyncio.gather(*(of_run(run) for run in dict.fromkeys(runs)))
    merged = {number: outputs for result in results for number, outputs in result.items()}
    return [merged[number] for number in range(len(texts))]


def passage(text: str, *, markup: bool) -> tuple[list[str], Render]:
    """The texts to translate, and a function that makes different translations of the whole from theirs, best first, at
    most so many. The translator cuts plain text into sentences; HTML is cut here, and its tags follow its words."""
    page = Page(text) if markup else None

    def whole(found: Sequence[Translated], rank: int) -> str:
        if page is None:
            return ranked(found[0], rank)[0]
        pairs = zip(page.sentences, found, strict=True)
        return page.render(sentence.render(*ranked(each, rank)) for sentence, each in pairs)

    def render(found: Sequence[Translated], count: int) -> list[str]:
        return list(dict.fromkeys(whole(found, rank) for rank in range(count)))

    return [text] if page is None else [sentence.source for sentence in page.sentences], render


def ranked(found: Translated, rank: int) -> tuple[str, list[tuple[int, int]]]:
    """The translation of this rank, or the last, and the links of target and source word."""
    translation, links, *_ = found
    rank = min(rank, len(translation.outputs) - 1)
    places = [(link.target_place, link.source_place) for link in links[rank]] if links else []
    return translation.outputs[rank].text, places
