"""Files of strings and subtitles, in and out: gettext's ``.po`` and ``.mo``, ``.xliff``, ``.srt``.

A file is read into texts and written again with their translations; everything else in it stays the same, byte for
byte where the format is text. Placeholders (``%s``, ``{name}``), tags, entities and addresses are kept: each occurs in
the translation as often as in the text. A line in which that fails is not translated.
"""

from __future__ import annotations

import html
import re
import struct
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final
from xml.etree import ElementTree

from regard.errors import DataError, did_you_mean
from regard.serve.markup import Page

_PLACEHOLDER: Final = (
    r"\{\{.*?\}\}|\{%.*?%\}"  # templates
    r"|\{\\[^{}]*\}"  # places of subtitles: {\an8}
    r"|\$?\{[^{}\s]*\}"  # {name}, {0:.2f}, ${name}
    r"|%(?:\(\w+\)|\d+\$)?[#0+-]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t|L)?[diouxXeEfFgGcrsap@%]"  # %s, %(name)s, %1$d, %%
    r"|&(?:\w+|#\d+|#x[\da-fA-F]+);"  # &nbsp;
    r"|https?://[^\s<>\"]*[^\s<>\".,;:!?)]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
)
_GUARDED: Final = rf"(?:{_PLACEHOLDER})+|(?P<tag></?[A-Za-z][^<>]*>)"
_KEPT: Final = re.compile(r'<br data-kept="([^"]*)">|</?[A-Za-z][^<>]*>')
Links = list[tuple[int, int]]  # of target and source word


@dataclass(frozen=True)
class Document:
    """The texts of a file to translate, and a function that writes the file with their translations."""

    texts: tuple[str, ...]
    fill: Callable[[Sequence[str]], bytes]


def read(name: str, data: bytes) -> Document:
    """Read a file by the suffix of its name."""
    ending = PurePath(name).suffix.lower()
    if ending not in READERS:
        known = did_you_mean(ending, READERS)
        raise DataError(f"file = {name[:100]}: not a format that is translated as a file; {known}")
    try:
        return READERS[ending](data)
    except UnicodeDecodeError as error:
        raise DataError(f"{name[:100]}: byte {error.start + 1} is not UTF-8; convert the file first") from None


Found = tuple[str, Links]  # the translation of a sentence, and its links
Translating = Generator[list[str], Sequence[Found], list[str]]


def translating(texts: Sequence[str], keep: Iterable[str] = ()) -> Translating:
    """Translate texts: a generator that yields sentences, is sent their translations, and returns the texts.

    Lines are translated one by one, equal sentences once. In the first round a number replaces each placeholder,
    because models copy numbers; a line in which a number is not kept exactly once is translated again in parts, cut at
    its placeholders.
    """
    terms = [re.escape(term) for term in sorted(keep, key=len, reverse=True) if term.strip()]
    guarded = re.compile("|".join((rf"(?P<term>(?<!\w)(?:{'|'.join(terms)})(?!\w))", _GUARDED)) if terms else _GUARDED)
    lines = list(dict.fromkeys(line for text in texts for line in text.split("\n")))
    ready: dict[str, str] = {}
    for stand_in in (_numbered, _apart):
        made = {line: stand_in(line, guarded) for line in lines if line not in ready}
        pages = {line: (Page(text), table) for line, (text, table) in made.items() if text}
        sentences = list(dict.fromkeys(each.source for page, _ in pages.values() for each in page.sentences))
        found = dict(zip(sentences, (yield sentences) if sentences else (), strict=True))
        for line, (page, table) in pages.items():
            whole = _plain(page.render(each.render(*found[each.source]) for each in page.sentences), table)
            if whole is not None and kept(whole, guarded) == kept(line, guarded):
                ready[line] = whole
    return ["\n".join(ready.get(line, line) for line in text.split("\n")) for text in texts]


def driven(work: Translating, translate: Callable[[list[str]], Sequence[Found]]) -> list[str]:
    """Run such a generator with a function that translates sentences."""
    try:
        sentences = next(work)
        while True:
            sentences = work.send(translate(sentences))
    except StopIteration as done:
        found: list[str] = done.value
        return found


def _has_words(line: str, guarded: re.Pattern[str]) -> bool:
    """Whether there are letters outside of what is kept."""
    return any(letter.isalpha() for letter in guarded.sub("", line))


def _numbered(line: str, guarded: re.Pattern[str]) -> tuple[str, dict[str, str]]:
    """The line as HTML, with a number that it does not contain for each placeholder, and the table of these numbers.

    Empty where a placeholder touches a word: the number would become a part of it.
    """
    free = (str(number) for number in range(71, 10_000, 12) if str(number) not in line)
    table: dict[str, str] = {}
    parts, end = [], 0
    for found in guarded.finditer(line):
        parts.append(html.escape(line[end : found.start()], quote=False))
        end = found.end()
        if found["tag"] is not None:
            parts.append(found[0])
            continue
        if re.match(r"\w", line[end : end + 1]) or re.match(r"\w", line[max(0, found.start() - 1) : found.start()]):
            return "", {}
        parts.append(number := next(free))
        table[number] = found[0]
    return ("".join([*parts, html.escape(line[end:], quote=False)]) if _has_words(line, guarded) else ""), table


def _apart(line: str, guarded: re.Pattern[str]) -> tuple[str, dict[str, str]]:
    """The line as HTML that is cut at its placeholders: the parts between them are translated separately."""
    parts, end = [], 0
    for found in guarded.finditer(line):
        parts.append(html.escape(line[end : found.start()], quote=False))
        kept_part = f'<br data-kept="{html.escape(found[0])}">'
        parts.append(found[0] if found["tag"] is not None else kept_part)
        end = found.end()
    return ("".join([*parts, html.escape(line[end:], quote=False)]) if _has_words(line, guarded) else ""), {}


def _plain(page: str, table: Mapping[str, str]) -> str | None:
    """The translation with its placeholders put back; None if a number does not occur exactly once."""
    numbers = re.compile(rf"(?<!\w)(?:{'|'.join(table)})(?!\w)") if table else None
    if numbers is not None and sorted(numbers.findall(page)) != sorted(table):
        return None
    parts, end = [], 0
    for found in _KEPT.finditer(page):
        parts.append(html.unescape(page[end : found.start()]))
        parts.append(found[0] if found[1] is None else html.unescape(found[1]))
        end = found.end()
    whole = "".join([*parts, html.unescape(page[end:])])
    return whole if numbers is None else numbers.sub(lambda found: table[found[0]], whole)


_GUARDS: Final = re.compile(_GUARDED)


def kept(text: str, guarded: re.Pattern[str] = _GUARDS) -> Counter[str]:
    """What must occur in a translation as often as in the text: placeholders, tags, and signs that could begin one."""
    found = Counter(each[0] for each in guarded.finditer(text))
    return found + Counter(sign for sign in guarded.sub("", text) if sign in "%{}<>")


# gettext

_PLURALS = re.compile(r"nplurals\s*=\s*(\d+)")
_KEYWORD = re.compile(r"(#~\s*)?(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d+)\])?\s+(?=\")")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_MAGIC = 0x950412DE


def _po(data: bytes) -> Document:
    """Entries without a translation are filled; everything else stays the same."""
    text = data.decode("utf-8-sig")
    line_end = "\r\n" if "\r\n" in text else "\n"
    blocks = re.split(r"(\n[ \t]*(?:\n[ \t]*)*\n)", text.replace("\r\n", "\n"))
    plurals = _PLURALS.search(text)
    forms = min(int(plurals[1]), 10) if plurals else 2
    wanted: list[tuple[int, list[str]]] = []  # block, and its texts: singular and plural
    for number, block in enumerate(blocks):
        fields = _fields(block)
        if fields.get("msgid") and not any(value for name, value in fields.items() if name.startswith("msgstr")):
            wanted.append((number, [fields[name] for name in ("msgid", "msgid_plural") if name in fields]))

    def fill(texts: Sequence[str]) -> bytes:
        ready, filled = iter(texts), list(blocks)
        for number, asked in wanted:
            filled[number] = _with_translations(blocks[number], [next(ready) for _ in asked], forms)
        return "".join(filled).replace("\n", line_end).encode("utf-8")

    return Document(tuple(text for _, asked in wanted for text in asked), fill)


def _fields(block: str) -> dict[str, str]:
    """The fields of an entry: ``msgid``, ``msgid_plural``, ``msgstr``, ``msgstr[0]``; none of an obsolete one."""
    found: dict[str, str] = {}
    name = ""
    for line in block.splitlines():
        keyword = _KEYWORD.match(line.strip())
        if keyword is not None:
            name = "" if keyword[1] else keyword[2] + (f"[{keyword[3]}]" if keyword[3] else "")
        if name and (keyword is not None or line.lstrip().startswith('"')):
            value = "".join(re.sub(r"\\(.)", _unescaped, each) for each in _QUOTED.findall(line))
            found[name] = found.get(name, "") + value
    return found


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[1], found[0])


def _with_translations(block: str, texts: Sequence[str], forms: int) -> str:
    """An entry with these translations: form 0 of a plural is the singular's, all others are the plural's."""
    kept_lines, inside = [], False
    for line in block.split("\n"):
        keyword = _KEYWORD.match(line.strip())
        inside = keyword[2] == "msgstr" if keyword else inside and line.lstrip().startswith('"')
        if not inside:
            kept_lines.append(line)
    end = len(kept_lines)
    while end and not kept_lines[end - 1].strip():  # the end of the file
        end -= 1
    if len(texts) == 1:
        written = _po_lines("msgstr", texts[0])
    else:
        chosen = [texts[-1] if forms == 1 or form else texts[0] for form in range(forms)]
        written = [line for form, text in enumerate(chosen) for line in _po_lines(f"msgstr[{form}]", text)]
    return "\n".join([*kept_lines[:end], *written, *kept_lines[end:]])


def _po_lines(name: str, text: str) -> list[str]:
    lines = [_quoted(line) for line in text.splitlines(keepends=True)] or ['""']
    return [f"{name} {lines[0]}"] if len(lines) == 1 else [f'{name} ""', *lines]


def _quoted(text: str) -> str:
    back = {value: f"\\{name}" for name, value in _ESCAPES.items()}
    return '"' + "".join(back.get(letter, letter) for letter in text) + '"'


def _mo(data: bytes) -> Document:
    """All strings are translated again from their keys: a .mo file has none without a translation."""
    entries = list(_mo_entries(data))
    header = next((value for key, value in entries if not key), "")
    plurals = _PLURALS.search(header)
    forms = min(int(plurals[1]), 10) if plurals else 2
    asked = [key.rpartition("\x04")[2].split("\0") if key else [] for key, _ in entries]

    def fill(texts: Sequence[str]) -> bytes:
        ready, filled = iter(texts), []
        for (key, value), wanted in zip(entries, asked, strict=True):
            found = [next(ready) for _ in wanted]
            if len(found) > 1:
                found = [found[-1] if forms == 1 or form else found[0] for form in range(forms)]
            filled.append((key, "\0".join(found) if wanted else value))
        return _mo_bytes(filled)

    return Document(tuple(text for wanted in asked for text in wanted), fill)


def _mo_entries(data: bytes) -> Iterator[tuple[str, str]]:
    order = next((each for each in "<>" if data[:4] == struct.pack(f"{each}I", _MAGIC)), "")
    try:
        if not order:
            raise struct.error
        _, _, count, keys, values = struct.unpack_from(f"{order}5I", data)
        if count * 16 > len(data):
            raise struct.error
        for number in range(count):
            pair = []
            for table in (keys, values):
                length, place = struct.unpack_from(f"{order}2I", data, table + 8 * number)
                if place + length > len(data):
                    raise struct.error
                pair.append(data[place : place + length].decode("utf-8"))
            yield pair[0], pair[1]
    except struct.error:
        raise DataError("file: is not a .mo file, or is damaged; make it again with msgfmt") from None


def _mo_bytes(entries: Sequence[tuple[str, str]]) -> bytes:
    ordered = sorted((key.encode(), value.encode()) for key, value in entries)
    head, count = 28, len(ordered)
    place = head + 16 * count
    tables, strings = [b"", b""], b""
    for side in (0, 1):
        for pair in ordered:
            tables[side] += struct.pack("<2I", len(pair[side]), place + len(strings))
            strings += pair[side] + b"\0"
    return struct.pack("<7I", _MAGIC, 0, count, head, head + 8 * count, 0, place) + tables[0] + tables[1] + strings


# XLIFF 1.2 and 2

_UNIT = re.compile(r"<((?:\w+:)?(?:trans-unit|segment))\b([^>]*)>(.*?)</\1>", re.DOTALL)
_SOURCE = re.compile(r"<((?:\w+:)?)source\b[^>]*?(?:/>|>(.*?)</\1source>)", re.DOTALL)
_TARGET = re.compile(r"<((?:\w+:)?)target\b([^>]*?)(?:/>|>(.*?)</\1target>)", re.DOTALL)
_ELEMENT = re.compile(r"(</?[^<>]+>)")
_NUMBERED = re.compile(r'<(?:span|img) data-xliff="(\d+)">|</span>')
_AROUND = re.compile(r"</?(?:\w+:)?(?:g|pc|mrk)\b")  # around words; other elements are kept with their content


def _xliff(data: bytes) -> Document:
    """Units without a target get one; elements inside a source follow its words. Everything else stays the same."""
    text = data.decode("utf-8-sig")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DataError("file: has a DOCTYPE, which an XLIFF file does not need; remove it")
    try:
        ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError) as problem:
        raise DataError(f"file: is not XML; {problem}") from None
    wanted = [unit for unit in _UNIT.finditer(text) if _is_open(unit)]
    sources = [_as_text((_SOURCE.search(unit[3]) or unit)[2] or "") for unit in wanted]

    def fill(texts: Sequence[str]) -> bytes:
        parts, end = [], 0
        for unit, (_, elements), found in zip(wanted, sources, texts, strict=True):
            parts += [text[end : unit.start(3)], _with_target(unit[3], _as_xml(found, elements))]
            end = unit.end(3)
        return "".join([*parts, text[end:]]).encode("utf-8")

    return Document(tuple(found for found, _ in sources), fill)


def _is_open(unit: re.Match[str]) -> bool:
    """Whether a unit is not translated yet and may be."""
    source, target = _SOURCE.search(unit[3]), _TARGET.search(unit[3])
    done = target is not None and (target[3] or "").strip()
    inside = (source[2] or "") if source else ""
    return bool(inside.strip()) and not done and 'translate="no"' not in unit[2] and "<!" not in inside


def _as_text(inside: str) -> tuple[str, list[str]]:
    """The content of a source as text with numbered tags, and the elements that these replace."""
    parts: list[str] = []
    elements: list[str] = []
    alone = 0  # depth inside an element without words
    for piece in _ELEMENT.split(inside):
        is_tag = piece.startswith("<")
        if alone and elements:
            elements[-1] += piece
            if is_tag and not piece.endswith("/>"):
                alone += -1 if piece.startswith("</") else 1
        elif not is_tag:
            parts.append(html.unescape(piece))
        elif piece.startswith("</"):
            parts.append("</span>")
        else:
            around = _AROUND.match(piece) is not None and not piece.endswith("/>")
            parts.append(f'<{"span" if around else "img"} data-xliff="{len(elements)}">')
            elements.append(piece)
            alone = 0 if around or piece.endswith("/>") else 1
    return "".join(parts), elements


def _as_xml(text: str, elements: Sequence[str]) -> str:
    """The reverse of `_as_text`."""
    parts, end, opened = [], 0, list[str]()
    for found in _NUMBERED.finditer(text):
        parts.append(html.escape(text[end : found.start()], quote=False))
        end = found.end()
        if found[1] is None:
            name = opened.pop() if opened else ""
            parts.append(f"</{name}>" if name else html.escape(found[0], quote=False))
            continue
        parts.append(elements[int(found[1])])
        if found[0].startswith("<span"):
            opened.append(re.split(r"[\s>]", elements[int(found[1])][1:], maxsplit=1)[0])
    return "".join([*parts, html.escape(text[end:], quote=False)])


def _with_target(unit: str, inside: str) -> str:
    target = _TARGET.search(unit)
    if target is not None:
        return (
            f"{unit[: target.start()]}<{target[1]}target{target[2]}>{inside}</{target[1]}target>{unit[target.end() :]}"
        )
    source = _SOURCE.search(unit)
    assert source is not None
    indent = re.search(r"\n[ \t]*$", unit[: source.start()])
    return (
        f"{unit[: source.end()]}{indent[0] if indent else ''}<{source[1]}target>{inside}</{source[1]}target>"
        f"{unit[source.end() :]}"
    )


# Subtitles

_TIMES = re.compile(r"^\s*\d+:\d\d:\d\d[,.]\d{1,3}\s*-->\s*\d+:\d\d:\d\d[,.]\d{1,3}.*$", re.MULTILINE)


def _srt(data: bytes) -> Document:
    """Each subtitle is one text, and keeps its number of lines."""
    text = data.decode("utf-8-sig")
    line_end = "\r\n" if "\r\n" in text else "\n"
    blocks = re.split(r"(\n\s*\n)", text.replace("\r\n", "\n"))
    wanted: list[tuple[int, int, str]] = []  # block, where its text begins, and the text
    for number, block in enumerate(blocks):
        times = _TIMES.search(block)
        if times is not None and (said := block[times.end() :].strip("\n")):
            wanted.append((number, times.end() + 1, said))

    def fill(texts: Sequence[str]) -> bytes:
        filled = list(blocks)
        for (number, begin, said), found in zip(wanted, texts, strict=True):
            count, behind = said.count("\n") + 1, blocks[number][begin + len(said) :]
            filled[number] = blocks[number][:begin] + "\n".join(_balanced(found, count)) + behind
        return "".join(filled).replace("\n", line_end).encode("utf-8")

    return Document(tuple(_in_one_line(said) for _, _, said in wanted), fill)


def _in_one_line(said: str) -> str:
    """Lines of one speaker are joined; lines that begin with a dash or a note are kept apart."""
    lines = said.split("\n")
    speakers = sum(line.lstrip().startswith(("-", "–", "♪")) for line in lines)
    return said if speakers > 1 else " ".join(line.strip() for line in lines)


def _balanced(text: str, count: int) -> list[str]:
    """A text broken between words into so many lines of about the same length; existing lines are kept."""
    if count == 1 or "\n" in text:
        return [text]
    lines, words = [], text.split(" ")
    for left in range(count, 1, -1):
        size = len(" ".join(words)) / left
        line = [words.pop(0)] if words else []
        while len(words) >= left and len(" ".join([*line, words[0]])) <= size + len(words[0]) / 2:
            line.append(words.pop(0))
        lines.append(" ".join(line))
    return [line for line in (*lines, " ".join(words)) if line]


READERS: Final[dict[str, Callable[[bytes], Document]]] = {
    ".po": _po,
    ".pot": _po,
    ".mo": _mo,
    ".xliff": _xliff,
    ".xlf": _xliff,
    ".srt": _srt,
}
