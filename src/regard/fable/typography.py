"""How a sentence is written down: capitals, full stops and other marks, quotation marks; and its normal form."""

from __future__ import annotations

import re

from regard.fable.phrases.english import EnglishLine
from regard.fable.phrases.line import Line
from regard.fable.syntax import Case, Text

NARROW = "\u202f"  # the narrow no-break space before French ? and !, and inside « »
MARKS = {
    "fr": {"": "", ".": ".", "...": "...", "?": NARROW + "?", "!": NARROW + "!"},
    "hi": {"": "", ".": "।", "...": "...", "?": "?", "!": "!"},
}
CLOSING = {"fr": NARROW + "»", "hi": '"'}
PUNCTUATION = re.compile(r'[.,!?:"]')
CONTRACTIONS = (
    ("won't", "will not"),
    ("cannot", "can not"),
    ("can't", "can not"),
    ("n't", " not"),
    ("'m ", " am "),
    ("'re ", " are "),
    ("'ll ", " will "),
    ("'ve ", " have "),
    ("'d ", " would "),
)
IS = re.compile(r"\b(he|she|it|that|there|what|where|who|name)'s\b")


def tokens(page: EnglishLine, text: Text) -> list[str]:
    """The English tokens with their capitals. After a first *I* or name, the mark at the end says how it is written."""
    written = list(page.tokens)
    if written[0][0].isupper():
        text.capital = bool(text.mark)
    if text.capital:
        for at in page.openings:
            written[at] = capitalised(written[at])
    return [cased(token, text.case) for token in written] if text.case else written


def words(pieces: list[str], glued: set[int]) -> tuple[list[str], list[int]]:
    """Tokens as they are written between spaces, and for each token its word."""
    written: list[str] = []
    word_of = []
    for at, token in enumerate(pieces):
        if at in glued:
            written[-1] += token
        else:
            written.append(token)
        word_of.append(len(written) - 1)
    return written, word_of


def target(line: Line, text: Text, language: str) -> str:
    """The other side, with the marks and the capitals that the English has."""
    written = line.words
    written[-1] += MARKS[language][text.mark]
    if text.quoted:
        written[-1] += CLOSING[language]
    if text.capital and language == "fr":
        written[0] = capitalised(written[0])
        if text.quoted:
            written = [capitalised(word) if word[0] == "«" else word for word in written]
    return cased(" ".join(written), text.case)


def capitalised(word: str) -> str:
    """A capital for the first letter: L'ours, Est-ce, « Le."""
    start = {"«": 2, '"': 1}.get(word[0], 0)
    return word[:start] + word[start].upper() + word[start + 1 :]


def cased(text: str, case: Case) -> str:
    return text.upper() if case == "upper" else text.lower() if case == "lower" else text


def normal(source: str) -> str:
    """The same for every way to write a sentence: lower case, no marks, nothing contracted."""
    text = PUNCTUATION.sub("", source.lower())
    if "'" in text or "cannot" in text:
        text += " "
        for short, full in CONTRACTIONS:
            text = text.replace(short, full)
        text = IS.sub(r"\1 is", text).rstrip()
    return text
