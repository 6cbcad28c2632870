"""What LibreTranslate's clients send and get. Fields that we do not know are ignored, as they are there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from regard.serve.detect import Detection
from regard.serve.limits import LINE, NAME


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
