"""Which languages a run translates between: what its settings say, else what its corpus is called. Never a guess."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

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
_PACKED = (".gz", ".zst", ".bz2", ".xz")


@dataclass(frozen=True)
class Languages:
    """ISO 639 codes."""

    source: str
    target: str


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
    return _by_suffix(data)


def _by_suffix(data: DataSettings) -> Languages | None:
    codes = [_suffix(name) for name in (data.source, data.target)]
    return Languages(*codes) if codes[0] != codes[1] and all(code in NAMES for code in codes) else None


def _suffix(name: str) -> str:
    path = PurePath(name)
    path = path.with_suffix("") if path.suffix in _PACKED else path
    return path.suffix.removeprefix(".").lower()


def name_of(code: str) -> str:
    return NAMES.get(code, code)
