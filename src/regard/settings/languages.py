"""Which languages a run translates between: what its settings say, else what its corpus is called. Never a guess."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated

from pydantic import Field

from regard.settings.schema import LANGUAGE, DataSettings, Settings

_NAMED = (
    "ar ara Arabic, bg bul Bulgarian, bn ben Bengali, ca cat Catalan, cs ces Czech, da dan Danish, de deu German, el "
    "ell Greek, en eng English, eo epo Esperanto, es spa Spanish, et est Estonian, eu eus Basque, fa fas Persian, fi "
    "fin Finnish, fr fra French, ga gle Irish, gl glg Galician, gu guj Gujarati, he heb Hebrew, hi hin Hindi, hr hrv "
    "Croatian, hu hun Hungarian, hy hye Armenian, id ind Indonesian, is isl Icelandic, it ita Italian, ja jpn "
    "Japanese, ka kat Georgian, kk kaz Kazakh, kn kan Kannada, ko kor Korean, la lat Latin, lt lit Lithuanian, lv lav "
    "Latvian, mk mkd Macedonian, ml mal Malayalam, mr mar Marathi, ms msa Malay, mt mlt Maltese, my mya Burmese, nb "
    "nob Norwegian Bokmål, ne nep Nepali, nl nld Dutch, nn nno Norwegian Nynorsk, no nor Norwegian, pa pan Punjabi, "
    "pl pol Polish, pt por Portuguese, ro ron Romanian, ru rus Russian, si sin Sinhala, sk slk Slovak, sl slv "
    "Slovenian, sq sqi Albanian, sr srp Serbian, sv swe Swedish, sw swa Swahili, ta tam Tamil, te tel Telugu, th tha "
    "Thai, tl tgl Tagalog, tr tur Turkish, uk ukr Ukrainian, ur urd Urdu, vi vie Vietnamese, yo yor Yoruba, zh zho "
    "Chinese, zu zul Zulu"
)
_SPLIT = [each.split(" ", 2) for each in _NAMED.split(", ")]
NAMES = {code: name for code, _, name in _SPLIT}
_SHORT = {long: code for code, long, _ in _SPLIT} | {
    "arb": "ar",
    "cmn": "zh",
    "ekk": "et",
    "als": "sq",
    "lvs": "lv",
    "npi": "ne",
    "pes": "fa",
    "swh": "sw",
    "zsm": "ms",
}  # of ISO 639-3, the one language of a group that models mean by its name
_CODES = {name.lower(): code for code, name in NAMES.items()} | {code: code for code in NAMES}
_OTHER = 3  # not the same language at all
_PACKED = (".gz", ".zst", ".bz2", ".xz")
_BOTH = re.compile(rf"({LANGUAGE})-({LANGUAGE})")
_PAIR = re.compile(r"(?<![a-z])([a-z]{2})-([a-z]{2})(?![a-z])")


@dataclass(frozen=True)
class Languages:
    """The codes of the two languages, as the run has them: `en`, `pt_BR`, `eng_Latn`."""

    source: Annotated[str, Field(examples=["en"])]
    target: Annotated[str, Field(examples=["fr"])]

    @classmethod
    def of(cls, pair: str) -> Languages:
        """What `data.languages` says: `de-en`, `zh-Hans-pt_BR`."""
        found = _BOTH.fullmatch(pair)
        assert found is not None  # the settings have been checked
        return cls(found[1], found[2])

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


def languages_of(settings: Settings) -> Languages | None:
    """From `data.languages`, the built-in corpus (`fable:fr`) or file names (`train.de`, `train.en`)."""
    if settings.task != "translate":
        return None
    data = settings.data
    if data.languages:
        return Languages.of(data.languages)
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


def plain(code: str) -> str:
    """The language alone, by its two letters where it has them: `pt` of `pt_BR`, `en` of `eng_Latn`."""
    first = re.split("[_-]", code, maxsplit=1)[0].lower()
    return _SHORT.get(first, first)


def name_of(code: str) -> str:
    """`French`, `Portuguese (BR)`; a language without a name here is its code."""
    if (language := NAMES.get(plain(code))) is None:
        return code
    _, _, kind = code.replace("-", "_").partition("_")
    return f"{language} ({kind})" if kind else language


def matching(known: Iterable[Languages], source: str, target: str) -> list[Languages]:
    """The pairs that two codes may mean, those that are nearest to them. An empty code means any.

    `pt` is `pt_BR` where there is no other Portuguese, and so is `por`; `pt_PT` is not.
    """
    ranks = {pair: (_distance(source, pair.source), _distance(target, pair.target)) for pair in known}
    able = {pair: sum(each) for pair, each in ranks.items() if max(each) < _OTHER}
    return [pair for pair, rank in able.items() if rank == min(able.values())]


def _distance(asked: str, there: str) -> int:
    """0 where the codes are the same, 1 in another spelling, 2 where one language is asked for plainly."""
    one, other = asked.replace("-", "_").lower(), there.replace("-", "_").lower()
    if asked in ("", there):
        return 0
    return 1 if one == other else 2 if "_" not in one and plain(one) == plain(other) else _OTHER
