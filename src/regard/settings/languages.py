"""Which languages a run translates between: from its settings, or else from the name of its corpus. Never guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated

from pydantic import Field

from regard.settings.schema import LANGUAGE, Settings

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
_SINGLE = "arb:ar cmn:zh ekk:et als:sq lvs:lv npi:ne pes:fa swh:sw zsm:ms"  # ISO 639-3: one language for its group
_SHORT = {long: code for code, long, _ in _SPLIT} | dict(pair.split(":") for pair in _SINGLE.split())
_CODES = {name.lower(): code for code, name in NAMES.items()} | {code: code for code in NAMES}
_OTHER = 3  # the distance of different languages
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
        """From `data.languages`: `de-en`, `zh-Hans-pt_BR`."""
        codes = _BOTH.fullmatch(pair)
        assert codes is not None  # the settings have been checked
        return cls(codes[1], codes[2])

    @property
    def codes(self) -> tuple[str, str]:
        """The languages alone: `pt` of `pt_BR`, `en` of `eng_Latn`."""
        return plain(self.source), plain(self.target)

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


def languages_of(settings: Settings) -> Languages | None:
    """From `data.languages`, the built-in corpus (`fable:fr`), columns (`german,english`) or file names (`train.de`,
    `train.en`). Pictures, sounds and numbers are in no language, whatever is written of them."""
    if settings.task != "translate" or settings.text.source.kind == "vectors":
        return None
    data = settings.data
    if data.languages:
        return Languages.of(data.languages)
    name, _, language = data.corpus.partition(":")
    if name == "fable":
        return Languages("en", language or "fr")
    if found := named_by(data.columns.split(",")):
        return found
    return named_in(data.table) if data.table else named_in(data.source, data.target)


def named_in(*files: str) -> Languages | None:
    """From the names of files: two that differ only in a language or end in one, or one that has both (`en-de`).

    A language is its code or its English name: `train.de` and `train.en`, `news-en.txt` and `news-de.txt`,
    `English.txt` and `German.txt`.
    """
    names = [PurePath(file).name.lower() for file in files]
    if len(names) == 1:
        codes = _PAIR.search(names[0])
        return None if codes is None else _pair(codes[1], codes[2])
    source, target = (re.split(r"[^a-z]+", name) for name in names)
    differing = [(one, other) for one, other in zip(source, target, strict=False) if one != other]
    if len(source) == len(target) and len(differing) == 1:
        return _pair(*differing[0])
    return _pair(*map(_suffix, files))


def named_by(columns: Sequence[str]) -> Languages | None:
    """From the names of two columns, each a language: `german` and `English`, `translation.de` and `translation.en`."""
    names = [column.rpartition(".")[2].strip().lower() for column in columns]
    return _pair(*names) if len(names) == 2 else None


def _suffix(file: str) -> str:
    """The last suffix of a name, without that of a packed file."""
    path = PurePath(file.lower())
    return (path.with_suffix("") if path.suffix in _PACKED else path).suffix.removeprefix(".")


def _pair(source: str, target: str) -> Languages | None:
    codes = _CODES.get(source, ""), _CODES.get(target, "")
    return Languages(*codes) if all(codes) and codes[0] != codes[1] else None


def is_language(name: str) -> bool:
    """Whether this is the code of a language or its English name, in any capitals."""
    return name.lower() in _CODES


def plain(code: str) -> str:
    """The code of the language alone, with two letters if there is one: `pt` of `pt_BR`, `en` of `eng_Latn`."""
    first = re.split("[_-]", code, maxsplit=1)[0].lower()
    return _SHORT.get(first, first)


def name_of(code: str) -> str:
    """`French`, `Portuguese (BR)`; the code itself if there is no name for it."""
    if (language := NAMES.get(plain(code))) is None:
        return code
    _, _, kind = code.replace("-", "_").partition("_")
    return f"{language} ({kind})" if kind else language


def matching(known: Iterable[Languages], source: str, target: str) -> list[Languages]:
    """The known pairs that are nearest to two codes. An empty code means any.

    `pt` and `por` mean `pt_BR` if that is the only Portuguese; `pt_PT` does not.
    """
    ranks = {pair: (_distance(source, pair.source), _distance(target, pair.target)) for pair in known}
    able = {pair: sum(each) for pair, each in ranks.items() if max(each) < _OTHER}
    return [pair for pair, rank in able.items() if rank == min(able.values())]


def _distance(asked: str, there: str) -> int:
    """0 for the same code, 1 for another spelling of it, 2 if the code asked for is the language alone."""
    one, other = asked.replace("-", "_").lower(), there.replace("-", "_").lower()
    if asked in ("", there):
        return 0
    return 1 if one == other else 2 if "_" not in one and plain(one) == plain(other) else _OTHER
