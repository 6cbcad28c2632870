"""Translation memories (TMX), streamed: the file may be larger than memory and need not be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from xml.parsers import expat

from regard.data.lines import LONGEST_LINE, Complain, CorpusProblem, read_chunks, refuse
from regard.errors import DataError

_CODE = frozenset(("bpt", "ept", "it", "ph", "ut"))  # elements that hold a document's markup, not its words
_CHUNK = 1 << 16


class _Units:
    """Collects `(line, {language: text})` for each translation unit while expat walks through the file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.finished: list[tuple[int, dict[str, str]]] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity
        self._line, self._language = 0, ""
        self._unit: dict[str, str] = {}
        self._segment: list[str] | None = None
        self._code = self._held = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "tu":
                self._line, self._unit, self._held = self.parser.CurrentLineNumber, {}, 0
            case "tuv":
                self._language = (attributes.get("xml:lang") or attributes.get("lang") or "").lower()
            case "seg":
                self._segment = []
            case _:
                self._code += name in _CODE

    def _end(self, name: str) -> None:
        match name:
            case "tu":
                self.finished.append((self._line, self._unit))
            case "seg" if self._segment is not None:
                self._unit[self._language] = " ".join("".join(self._segment).split())
                self._segment = None
            case _:
                self._code -= name in _CODE

    def _text(self, text: str) -> None:
        if self._segment is not None and not self._code:
            self._segment.append(text)
            self._held += len(text)

    def endless(self, fed: int) -> str:
        """What does not end, after so many bytes: a unit, or a tag of which the end has not come yet."""
        if self._held > LONGEST_LINE:
            return f"a unit of more than {LONGEST_LINE:,} characters, the most of one; cut or drop it"
        if fed - self.parser.CurrentByteIndex > LONGEST_LINE:
            return f"a tag of more than {LONGEST_LINE:,} bytes, the most of one; mend it"
        return ""

    def _entity(self, name: str, *rest: object) -> None:
        """Entities can unfold to gigabytes or to other files; a translation memory has no use for them."""
        del rest
        raise DataError(f"{self.path} line {self.parser.CurrentLineNumber}: entity = {name!r}: not read; remove it")


def read_tmx(
    path: str, languages: Sequence[str] = (), count: int = 2, complain: Complain = refuse
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The units that have all the languages (the first `count` of the first unit, if none are named).

    `en` also finds `en-GB`. Units that lack a language are passed over: a memory may hold many languages.
    """
    units, fed = _Units(path), 0
    for chunk in chain(read_chunks(path, _CHUNK), [b""]):
        fed += len(chunk)
        try:
            units.parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            complain(CorpusProblem("format", path, error.lineno, f"{path} line {error.lineno}: not XML ({error})"))
            return
        if problem := units.endless(fed):
            line = units.parser.CurrentLineNumber
            complain(CorpusProblem("format", path, line, f"{path} line {line}: {problem}"))
            return
        for line, unit in units.finished:
            languages = languages or tuple(unit)[:count]
            texts = [text for language in languages if (text := _find(unit, language)) is not None]
            if len(texts) == len(languages):
                yield line, tuple(texts)
        units.finished.clear()


def _find(unit: dict[str, str], language: str) -> str | None:
    """The text in a language, or in one of its regional variants."""
    language = language.lower()
    variants = (text for code, text in unit.items() if code.split("-")[0] == language)
    return unit.get(language, next(variants, None))
