"""Which languages a run translates between: what its settings say, else what its corpus is called. Never a guess."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated

from pydantic import Field

from regard.settings.learning import DataSettings
from regard.settings.whole import Settings

_NAMED = (
    "ar Arabic, bg Bulgarian, bn Bengali, ca Catalan, cs Czech, da Danish, de German, el Greek, en English, "
    "eo Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, fi Finnish, fr French, ga Irish, "
    "gl Galician, gu Gujarati, he Hebrew, hi Hindi, hr Croatian, hu Hungarian, hy Armenian, id Indonesian, "
    "is Icelandic, it Italian, ja Japanese, ka Georgian, kk Kazakh, kn Kannada, ko Korean, la Latin, "
    "lt Lithuanian, lv Latvian, mk Macedonian, ml Malayalam, mr Marathi, ms Malay, mt Maltese, my Burmese, "
    "nb Norwegian Bokmål, ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, pa Punjabi, pl Polish, "
    "pt Portuguese, ro Romanian, ru Russian, si Sinhala, sk Slovak, sl Slovenian, sq Albanian, sr Serbian, "
    "sv Swedish, sw Swahili, ta Tamil, te Telugu, th Thai, tl Tagalog, tr Turkish, uk Ukrainian, ur Urdu, "
    "vi Vietnamese, yo Yoruba, zh Chinese, zu Zulu"
)
NAMES = dict(each.split(" ", 1) for each in _NAMED.split(", "))
_CODES = {name.lower(): code for code, name in NAMES.items()} | {code: code for code in NAMES}
_PACKED = (".gz", ".zst", ".bz2", ".xz")
_PAIR = re.compile(r"(?<![a-z])([a-z]{2})-([a-z]{2})(?![a-z])")


@dataclass(frozen=True)
class Languages:
    """ISO 639 codes of the two languages."""

    source: Annotated[str, Field(examples=["en"])]
    target: Annotated[str, Field(examples=["fr"])]

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


def languages_of(settings: Settings) -> Languages | None:
    """From `data.languages`, the built-in corpus (`fable:fr`) or file names (`train.de`, `train.en`)."""
    if settings.task != "translate":
        return None
    data = settings.data
    if data.languages:
        return Languages(*data.languages.split("-"))
    name, _, language = data.corpus.partition(":")
    if name == "fable":
        return Languages("en", language or "fr")
    return named_in(*_files(data))


def _files(data: DataSettings) -> tuple[str, ...]:
    return (data.corpus,) if data.corpus else (data.source, data.target)


def named_in(*files: str) -> Languages | None:
    """What the names of a corpus say: two files that differ in a language alone or end in one, or one file that names
    both (`en-de`).

    A language is its code or its English name: `train.de` and `train.en`, `news-en.txt` and `news-de.txt`,
    `English.txt` and `German.txt`.
    """
    parts = [re.split(r"[^a-z]+", PurePath(file).name.lower()) for file in files]
    if len(parts) == 1:
        found = _PAIR.search(PurePath(files[0]).name.lower())
        return None if found is None else _pair(found[1], found[2])
    source, target = parts
    differing = [(one, other) for one, other in zip(source, target, strict=False) if one != other]
    if len(source) == len(target) and len(differing) == 1:
        return _pair(*differing[0])
    return _pair(*map(_suffix, files))


def _suffix(file: str) -> str:
    """How a name ends, whatever it is packed with."""
    path = PurePath(file.lower())
    return (path.with_suffix("") if path.suffix in _PACKED else path).suffix.removeprefix(".")


def _pair(source: str, target: str) -> Languages | None:
    codes = _CODES.get(source, ""), _CODES.get(target, "")
    return Languages(*codes) if all(codes) and codes[0] != codes[1] else None


def name_of(code: str) -> str:
    return NAMES.get(code, code)
