"""Learning and loading tokenizers by the name of their kind, and the pair of them that a translator needs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from regard.errors import ModelError, SettingsError, did_you_mean
from regard.files import new_folder
from regard.text.foreign import MERGES, ByteMergesTokenizer, ForeignTokenizer, MergesTokenizer, SentencePieceTokenizer
from regard.text.reading import COUNTED, KnownWords, commonest, count_words
from regard.text.subwords import MODEL, SubwordTokenizer
from regard.text.vectors import Vectors
from regard.text.vocabulary import (
    DESCRIPTION,
    END,
    FOREIGN,
    LEARNED,
    SPECIAL_TOKENS,
    UNK,
    VOCABULARY,
    Kind,
    Tokenizer,
    Vocabulary,
    decoded,
)
from regard.text.words import ByteTokenizer, Case, CharacterTokenizer, SpaceTokenizer, WordTokenizer

KINDS = (*LEARNED, *FOREIGN)
CASED = ("word", "bpe", "unigram")  # the kinds that can have marks for capitals
CASED_NAMES = "text.tokenizer = 'word', 'bpe' or 'unigram'"
PAIR = "tokenizers.json"


def learn(
    kind: Kind, lines: Iterable[str], *, size: int = 8000, minimum: int = 1, seed: int = 0, case: Case = "keep"
) -> Tokenizer:
    """Learn a tokenizer from a stream of lines, with at most `size` pieces seen `minimum` times.

    Subwords have no minimum, because their pieces are frequent anyway; they need a piece for every byte and character
    of the text, which may be more than `size` (`size_remarks`). `case` is explained in `regard.text.words`.
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
        case "sentencepiece" | "subword-nmt" | "byte-bpe":
            raise SettingsError(
                f"text.tokenizer = {kind}: comes with an imported model; learn one of {', '.join(LEARNED)}"
            )
        case _:
            raise SettingsError(f"kind = {kind!r}: no such tokenizer; {did_you_mean(str(kind), LEARNED)}")


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
        case "sentencepiece" | "subword-nmt" | "byte-bpe" | "vectors":
            return _load_other(folder, description)
        case other:
            raise ModelError(f"{folder / DESCRIPTION}: kind = {other!r}: no such tokenizer; known: {', '.join(KINDS)}")


def _load_other(folder: Path, description: dict[str, Any]) -> Tokenizer:
    if description["kind"] == "vectors":
        return Vectors.load(description, folder / DESCRIPTION)
    vocabulary, control = _vocabulary(folder), _tokens(description, "control", folder / DESCRIPTION)
    match description["kind"]:
        case "sentencepiece":
            return SentencePieceTokenizer(vocabulary, control, model=_read(folder / MODEL))
        case "subword-nmt":
            lower = bool(description.get("lower"))
            return MergesTokenizer(vocabulary, control, codes=_text(folder / MERGES), lower=lower)
        case _:
            return ByteMergesTokenizer(vocabulary, control, codes=_text(folder / MERGES))


def size_remarks(tokenizers: Tokenizers, size: int) -> list[str]:
    """A sentence for each subword tokenizer that has not `size` pieces."""
    sides, remarks = {"source ": tokenizers.source, "target ": tokenizers.target}, list[str]()
    for name, tokenizer in ({"": tokenizers.source} if tokenizers.joint else sides).items():
        pieces = tokenizer.size
        if isinstance(tokenizer, SubwordTokenizer) and pieces != size:
            why = f"{pieces:,} pieces at most" if pieces < size else f"bytes and characters for {pieces:,} pieces"
            remarks.append(f"the {name}text has {why}: a vocabulary of {pieces:,} instead of {size:,}")
    return remarks


def seen_words(tokenizer: Tokenizer) -> int:
    """How many ids occur in the training text; the ids after them were added from word vectors."""
    return tokenizer.vocabulary.seen if isinstance(tokenizer, WordTokenizer | SpaceTokenizer) else tokenizer.size


@dataclass(frozen=True)
class Frame:
    """Tokens around every text, such as `>>fra<<` before a source: a source is read as `before text after`, a target is
    `begin text` and `<end>`. The model is given `begin`; it does not choose it."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = (SPECIAL_TOKENS[END],)
    begin: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizer of each side. Joint means that both sides have the same ids, and so can share embeddings."""

    source: Tokenizer
    target: Tokenizer
    counted: Vocabulary | None = field(default=None, repr=False, compare=False)  # words of the source's training text
    folder: Path | None = field(default=None, repr=False, compare=False)  # where `COUNTED` may be
    frame: Frame = Frame()

    def read(self, text: str) -> list[int]:
        """A source text as a model reads it."""
        return self.framed(self.source.encode(text))

    def framed(self, ids: Iterable[int]) -> list[int]:
        """The ids of a source text, with the frame."""
        return [*self._around[0], *ids, *self._around[1]]

    def written(self, text: str) -> list[int]:
        """A target text as a model writes it, without `<end>`."""
        return [*self.begin, *self.target.encode(text)]

    @cached_property
    def begin(self) -> tuple[int, ...]:
        """The ids that every target begins with."""
        return _ids(self.target, self.frame.begin)

    @cached_property
    def _around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return _ids(self.source, self.frame.before), _ids(self.source, self.frame.after)

    @cached_property
    def known(self) -> KnownWords | None:
        """The source words that were seen in training; None if they were not counted."""
        if isinstance(self.source, WordTokenizer | SpaceTokenizer):
            return KnownWords(self.source, self.source.vocabulary)
        counted = self.counted
        if counted is None and self.folder is not None and (self.folder / COUNTED).is_file():
            counted = Vocabulary.from_bytes(_read(self.folder / COUNTED), str(self.folder / COUNTED))
        return None if counted is None else KnownWords(self.source, counted)

    @cached_property
    def joint(self) -> bool:
        if isinstance(self.source, ForeignTokenizer) and isinstance(self.target, ForeignTokenizer):
            return self.source.vocabulary == self.target.vocabulary
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
        counts, counted = Counter[str](), kind not in ("word", "space")
        source = count_words(source, case, counts) if counted else source
        texts = (chain(source, target),) if joint else (source, target)
        sides = [learn(kind, each, size=size, minimum=minimum, seed=seed, case=case) for each in texts]
        for _ in source if counted else ():  # a byte tokenizer is learned without reading the text: count it here
            pass
        return cls(sides[0], sides[-1], commonest(counts) if counts else None)

    def save(self, folder: str | Path) -> None:
        """Write one folder for each tokenizer, and `tokenizers.json`."""
        one = self.source is self.target
        sides = {"joint": self.source} if one else {"source": self.source, "target": self.target}
        framed = {} if self.frame == Frame() else asdict(self.frame)
        with new_folder(Path(folder)) as beside:
            (beside / PAIR).write_text(json.dumps({"joint": one} | framed) + "\n", encoding="utf-8")
            for name, tokenizer in sides.items():
                tokenizer.save(beside / name)
            if self.known is not None and not self.known.whole:
                (beside / COUNTED).write_bytes(self.known.counted.to_bytes())

    @classmethod
    def load(cls, folder: str | Path) -> Tokenizers:
        """Read what `save` wrote."""
        folder = Path(folder)
        content = _read_json(folder / PAIR)
        tokens = {name: _tokens(content, name, folder / PAIR) for name in ("before", "after", "begin")}
        frame = Frame(**tokens) if "after" in content else Frame()
        one = load(folder / ("joint" if content.get("joint") else "source"))
        return cls(one, one if content.get("joint") else load(folder / "target"), folder=folder, frame=frame)


def _vocabulary(folder: Path) -> Vocabulary:
    vocabulary = Vocabulary.from_bytes(_read(folder / VOCABULARY), str(folder / VOCABULARY))
    if not vocabulary.has_special:
        raise ModelError(f"{folder / VOCABULARY}: does not begin with the special tokens; is the file damaged?")
    return vocabulary


def _ids(tokenizer: Tokenizer, tokens: tuple[str, ...]) -> tuple[int, ...]:
    ids = tuple(SPECIAL_TOKENS.index(token) if token in SPECIAL_TOKENS else tokenizer.id(token) for token in tokens)
    if UNK in ids:
        raise ModelError(f"frame = {tokens[ids.index(UNK)]!r}: the vocabulary has no such token; use one that it has")
    return ids


def _tokens(content: dict[str, Any], name: str, path: Path) -> tuple[str, ...]:
    """A list of tokens in a JSON file; empty if it is not there."""
    tokens = content.get(name, [])
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ModelError(f"{path}: {name} = {str(tokens)[:40]}: not a list of tokens; is the file damaged?")
    return tuple(tokens)


def _text(path: Path) -> str:
    return decoded(_read(path), path)


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
