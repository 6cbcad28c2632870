"""``tokenizer.json`` of the `tokenizers` library, converted back to a sentencepiece model or to byte-level merges. The
conversion is exact: anything that sentencepiece cannot do is refused by its name."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from regard.convert.package import read_json
from regard.errors import ModelError
from regard.text.grafting import message, piece_entry
from regard.text.subwords import SPACE

TOKENIZER: Final = "tokenizer.json"
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6  # kinds of pieces
_UNIGRAM, _MERGES = 1, 2  # kinds of models
_MODEL_TYPE, _BYTE_FALLBACK, _CHARSMAP = 3, 35, 2  # numbers of fields
_SPACES = " {2,}"  # the only pattern that may be replaced, as sentencepiece does
_LARGEST = 1e30  # a score; sentencepiece stores them in single precision


class TokenizerJson:
    """The pieces of such a file by their ids, and how texts are cut into them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / TOKENIZER
        self._content: dict[str, Any] = read_json(self.path)
        model = self._content.get("model")
        self._model: dict[str, Any] = model if isinstance(model, dict) else {}
        self.kind = str(self._model.get("type"))[:40]
        if self.kind not in ("Unigram", "BPE"):
            raise self._refused("model.type", self.kind, "Unigram and BPE are")
        self.scores = dict(self._scored() if self.kind == "Unigram" else self._ranked())

    def _refused(self, where: str, value: object, known: str) -> ModelError:
        return ModelError(f"{self.path}: {where} = {str(value)[:60]}: not supported; {known}")

    @property
    def pieces(self) -> list[str]:
        """By their ids."""
        listed = self._model.get("vocab")
        if isinstance(listed, list):
            found = [str(each[0]) if isinstance(each, list) and each else "" for each in listed]
        else:
            by_id = {number: piece for piece, number in self._numbers().items()}
            found = [by_id.get(number, "") for number in range(len(by_id))]
        if "" in found or len(set(found)) < len(found):
            raise ModelError(f"{self.path}: does not name each of its {len(found):,} pieces; vocab.json must be beside")
        return found

    def _numbers(self) -> dict[str, int]:
        found = self._model.get("vocab")
        if not isinstance(found, dict) or not all(type(number) is int for number in found.values()):
            raise self._refused("model.vocab", found, "a table of pieces and their ids is")
        return found

    def _scored(self) -> Iterator[tuple[str, float]]:
        """Pieces of a unigram model with their scores; repeated ones, which fill holes of a vocabulary, only once."""
        listed, seen = self._model.get("vocab"), set[str]()
        for each in listed if isinstance(listed, list) else [None]:
            match each:
                case [str(piece), int() | float() as score] if piece and abs(score) < _LARGEST:
                    if piece not in seen:
                        seen.add(piece)
                        yield piece, float(score)
                case _:
                    raise self._refused("model.vocab", each, "a list of pieces and their scores is")

    def _ranked(self) -> Iterator[tuple[str, float]]:
        """Pieces of merges with scores: earlier merges score higher; single letters lowest."""
        made = {first + second: -rank for rank, (first, second) in reversed(list(enumerate(self._merges())))}
        for piece in self._numbers():
            yield piece, float(made.get(piece, -len(made) - 1 if len(piece) == 1 else -math.inf))

    def _merges(self) -> Iterator[tuple[str, str]]:
        listed = self._model.get("merges")
        for each in listed if isinstance(listed, list) else [None]:
            match each.split(" ") if isinstance(each, str) else each:
                case [str(first), str(second)]:
                    yield first, second
                case _:
                    raise self._refused("model.merges", each, "pairs of pieces are")

    def merges(self) -> str:
        """The merges of a byte-level model, in the format of ``merges.txt``."""
        before = self._parts("pre_tokenizer", "pretokenizers")
        if self.kind != "BPE" or [each.get("type") for each in before] != ["ByteLevel"]:
            raise self._refused("pre_tokenizer", before, "ByteLevel with BPE is for this model")
        return "#version: 0.2\n" + "".join(f"{first} {second}\n" for first, second in self._merges())

    def sentencepiece(self) -> bytes:
        """The sentencepiece model: pieces, kind and normaliser, as a protocol buffer."""
        spaces = [each for each in self._parts("pre_tokenizer", "pretokenizers") if each != {"type": "WhitespaceSplit"}]
        if [(each.get("type"), each.get("replacement")) for each in spaces] != [("Metaspace", SPACE)]:
            raise self._refused("pre_tokenizer", spaces, f"Metaspace with {SPACE} is for this model")
        bytewise = self._model.get("byte_fallback") is True
        trainer = {_MODEL_TYPE: _UNIGRAM if self.kind == "Unigram" else _MERGES, _BYTE_FALLBACK: int(bytewise)}
        begins = spaces[0].get("prepend_scheme", "always") != "never" and spaces[0].get("add_prefix_space") is not False
        normaliser: dict[int, int | bytes] = {_CHARSMAP: self._charsmap(), 3: int(begins), 4: 1, 5: 1}
        entries = (piece_entry(piece, max(score, -1e9), kind) for piece, score, kind in self._kinds(bytewise=bytewise))
        return b"".join((*entries, message(2, trainer), message(3, normaliser)))

    def _kinds(self, *, bytewise: bool) -> Iterator[tuple[str, float, int]]:
        """Each piece with its score and kind; special tokens and pieces that no merge makes are control pieces."""
        unknown = self._model.get("unk_token")
        if self.kind == "Unigram":
            number, listed = self._model.get("unk_id"), self._model["vocab"]
            unknown = listed[number][0] if type(number) is int and 0 <= number < len(listed) else None
        if unknown not in self.scores:
            raise self._refused("model.unk_id or unk_token", unknown, "one of its pieces is")
        added = self._content.get("added_tokens")
        special = {str(each.get("content")) for each in added or () if isinstance(each, dict) and each.get("special")}
        for piece, score in self.scores.items():
            never = piece in special or score == -math.inf
            is_byte = bytewise and len(piece) == 6 and piece.startswith("<0x")
            kind = _UNKNOWN if piece == unknown else _BYTE if is_byte else _CONTROL if never else _NORMAL
            yield piece, score, kind

    def _charsmap(self) -> bytes:
        """How letters are replaced, in sentencepiece's format; it strips and joins spaces in any case."""
        found = b""
        for each in self._parts("normalizer", "normalizers"):
            match each:
                case {"type": "Precompiled", "precompiled_charsmap": str(text)} if not found:
                    try:
                        found = base64.b64decode(text, validate=True)
                    except binascii.Error:
                        raise self._refused("normalizer.precompiled_charsmap", text, "base64 is") from None
                case {"type": "Strip"} | {"type": "Replace", "pattern": {"Regex": str(_)}}:
                    if each["type"] == "Replace" and each["pattern"]["Regex"] != _SPACES:
                        raise self._refused("normalizer.pattern", each["pattern"], f"{_SPACES} is")
                case _:
                    raise self._refused("normalizer", each, "Precompiled, Strip and Replace are")
        return found

    def _parts(self, name: str, inside: str) -> list[dict[str, Any]]:
        """One part of the file, or the parts of a sequence."""
        found = self._content.get(name)
        parts = found.get(inside) if isinstance(found, dict) and found.get("type") == "Sequence" else [found]
        return [each for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
