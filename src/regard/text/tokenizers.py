"""Where the names of tokenizers become tokenizers, and the two that a translator needs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from regard.errors import ModelError, SettingsError, did_you_mean
from regard.files import new_folder
from regard.text.casing import Case
from regard.text.characters import ByteTokenizer, CharacterTokenizer
from regard.text.known import COUNTED, KnownWords, WordCounter
from regard.text.subwords import MODEL, SubwordTokenizer
from regard.text.tokenizer import DESCRIPTION, Kind, Tokenizer
from regard.text.vocabulary import Vocabulary
from regard.text.words import VOCABULARY, SpaceTokenizer, WordTokenizer

KINDS = ("word", "space", "character", "byte", "bpe", "unigram")
CASED = ("word", "bpe", "unigram")  # what can have marks for capitals
CASED_NAMES = "text.tokenizer = 'word', 'bpe' or 'unigram'"
PAIR = "tokenizers.json"


def learn(
    kind: Kind, lines: Iterable[str], *, size: int = 8000, minimum: int = 1, seed: int = 0, case: Case = "keep"
) -> Tokenizer:
    """Learn a tokenizer from a stream of lines, with at most `size` pieces seen `minimum` times.

    Subwords have no minimum: their pieces are frequent by construction. They need the bytes and the characters of the
    text, which may be more than `size`; `size_remarks` says so. Words and subwords may have a mark for each capital
    (`regard.text.casing`).
    """
    if case != "keep" and kind not in CASED:
        raise SettingsError(f"case = {case}: a tokenizer of kind '{kind}' has no marks; use 'keep', or {CASED_NAMES}")
    match kind:
        case "word":
            return WordTokenizer.learn(lines, size=size, minimum=minimum, case=case)
        case "space":
            return SpaceTokenizer.learn(lines, size=size, minimum=minimum)
        case "character":
            return CharacterTokenizer.learn(lines, size=size, minimum=minimum)
        case "byte":
            return ByteTokenizer()
        case "bpe" | "unigram":
            return SubwordTokenizer.learn(kind, lines, size=size, seed=seed, case=case)
        case _:
            raise SettingsError(f"kind = {kind!r}: no such tokenizer; {did_you_mean(str(kind), KINDS)}")


def load(folder: str | Path) -> Tokenizer:
    """Read a tokenizer that `save` wrote."""
    folder = Path(folder)
    description = _read_json(folder / DESCRIPTION)
    cased: Case = "mark" if description.get("case") == "mark" else "keep"
    match description.get("kind"):
        case "word":
            return WordTokenizer(_vocabulary(folder), cased)
        case "space":
            return SpaceTokenizer(_vocabulary(folder))
        case "character":
            return CharacterTokenizer(_vocabulary(folder))
        case "byte":
            return ByteTokenizer()
        case ("bpe" | "unigram") as kind:
            sampling = description.get("sampling", 0)
            if not isinstance(sampling, int | float) or not 0 <= sampling <= 1:
                raise ModelError(f"{folder / DESCRIPTION}: sampling = {str(sampling)[:40]}: is the file damaged?")
            return SubwordTokenizer(kind, _read(folder / MODEL), float(sampling), cased)
        case other:
            raise ModelError(f"{folder / DESCRIPTION}: kind = {other!r}: no such tokenizer; known: {', '.join(KINDS)}")


def size_remarks(tokenizers: Tokenizers, size: int) -> list[str]:
    """What to tell of subwords that are fewer or more than were asked for: at most a line for each tokenizer."""
    sides = (
        {"": tokenizers.source} if tokenizers.joint else {"source ": tokenizers.source, "target ": tokenizers.target}
    )
    return [_size_remark(name, tokenizer.size, size) for name, tokenizer in sides.items() if _is_other(tokenizer, size)]


def _is_other(tokenizer: Tokenizer, size: int) -> bool:
    return isinstance(tokenizer, SubwordTokenizer) and tokenizer.size != size


def _size_remark(side: str, found: int, size: int) -> str:
    why = f"has {found:,} pieces at most" if found < size else f"has bytes and characters for {found:,} pieces"
    return f"the {side}text {why}: a vocabulary of {found:,} instead of {size:,}"


def seen_words(tokenizer: Tokenizer) -> int:
    """How many ids stand for what the training text held; the rest were added from word vectors."""
    return tokenizer.vocabulary.seen if isinstance(tokenizer, WordTokenizer | SpaceTokenizer) else tokenizer.size


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizer of each side. Joint means that both sides share one, and so can share embeddings."""

    source: Tokenizer
    target: Tokenizer
    counted: Vocabulary | None = field(default=None, repr=False, compare=False)  # words of the source's training text
    folder: Path | None = field(default=None, repr=False, compare=False)  # where those words are, if they are

    @cached_property
    def known(self) -> KnownWords | None:
        """The words of the source that were seen in training; None where they were not counted."""
        if isinstance(self.source, WordTokenizer | SpaceTokenizer):
            return KnownWords(self.source, self.source.vocabulary)
        counted = self.counted
        if counted is None and self.folder is not None and (self.folder / COUNTED).is_file():
            counted = Vocabulary.from_bytes(_read(self.folder / COUNTED), str(self.folder / COUNTED))
        return None if counted is None else KnownWords(self.source, counted)

    @property
    def joint(self) -> bool:
        return self.source is self.target

    @classmethod
    def learn(
        cls,
        kind: Kind,
        source: Iterable[str],
        target: Iterable[str],
        *,
        joint: bool,
        size: int = 8000,
        minimum: int = 1,
        seed: int = 0,
        case: Case = "keep",
    ) -> Tokenizers:
        """Learn one tokenizer from both sides together, or one from each side, of `size` pieces each."""
        words = None if kind in ("word", "space") else WordCounter(case)
        source = source if words is None else words.watch(source)
        if joint:
            both = learn(kind, chain(source, target), size=size, minimum=minimum, seed=seed, case=case)
            sides = (both, both)
        else:
            one, other = (
                learn(kind, each, size=size, minimum=minimum, seed=seed, case=case) for each in (source, target)
            )
            sides = (one, other)
        for _ in source if words is not None else ():  # bytes are learned without a look at the text
            pass
        return cls(*sides, words.commonest() if words is not None and words.counts else None)

    def save(self, folder: str | Path) -> None:
        """Write one folder for each tokenizer and a line that says how many there are."""
        sides = {"joint": self.source} if self.joint else {"source": self.source, "target": self.target}
        with new_folder(Path(folder)) as beside:
            (beside / PAIR).write_text(json.dumps({"joint": self.joint}) + "\n", encoding="utf-8")
            for name, tokenizer in sides.items():
                tokenizer.save(beside / name)
            if self.known is not None and not self.known.whole:
                (beside / COUNTED).write_bytes(self.known.counted.to_bytes())

    @classmethod
    def load(cls, folder: str | Path) -> Tokenizers:
        """Read what `save` wrote."""
        folder = Path(folder)
        if _read_json(folder / PAIR).get("joint"):
            both = load(folder / "joint")
            return cls(both, both, folder=folder)
        return cls(load(folder / "source"), load(folder / "target"), folder=folder)


def _vocabulary(folder: Path) -> Vocabulary:
    vocabulary = Vocabulary.from_bytes(_read(folder / VOCABULARY), str(folder / VOCABULARY))
    if not vocabulary.has_special:
        raise ModelError(f"{folder / VOCABULARY}: does not begin with the special tokens; is the file damaged?")
    return vocabulary


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise ModelError(f"{path}: cannot be read ({problem.strerror}); a tokenizer's folder must hold it") from problem


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_read(path))
    except (ValueError, RecursionError) as problem:
        raise ModelError(f"{path}: not JSON ({problem}); is the file damaged?") from problem
    if not isinstance(content, dict):
        raise ModelError(f"{path} = {str(content)[:40]}: not a JSON object; is the file damaged?")
    return content
