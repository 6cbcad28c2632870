"""The recording of one replayed pass as data, which can be saved and loaded."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

import torch
from pydantic import Field
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from regard.errors import DataError, ModelError, SettingsError, did_you_mean
from regard.explain.answer import Answer, Hidden
from regard.files import new_file
from regard.text.reading import is_unspaced
from regard.text.subwords import SPACE
from regard.text.vocabulary import SILENT, SPECIAL_TOKENS, START, UNK, Tokenizer
from regard.text.words import MARKS, legible, space_words


def check_number(name: str, number: int, count: int, owner: str = "this model", first: int = 0) -> int:
    """The index of one of so many things, which are counted from ``first``; refuses a number that none has."""
    if not first <= number < first + count:
        right = f"{first} to {first + count - 1}" if count > 1 else f"{first}"
        raise DataError(f"{name} = {number}: {owner} has no such {name}; {right} would be right")
    return number - first


# One side of a trace: ids, the pieces they spell, and the whitespace word that each piece is in.

OUTSIDE = -1  # the word of a special token
Rows = Sequence[int] | Sequence[Sequence[int]]  # ids, or each id followed by the letters it is written in
BYTES = ("byte", "byte-bpe")  # tokenizers whose pieces are parts of letters
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_QUESTION_MARK = "<0x3F>"  # stands for <unk> among bytes, which have no piece of that name


@dataclass(frozen=True)
class Side(Answer):
    """One side of a trace: pieces and words."""

    ids: tuple[int, ...] = ()  # special tokens included
    pieces: Annotated[tuple[str, ...], Field(description="As the model reads them.")] = ()
    word_of: Annotated[
        tuple[int, ...], Field(description="For each piece the number of its word; -1 for special tokens.")
    ] = ()
    words: Annotated[tuple[str, ...], Field(description="At whitespace.")] = ()
    letters: Hidden[tuple[tuple[int, ...], ...]] = ()  # for each piece, where the model reads how it is written

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def rows(self) -> Rows:
        """What the model reads: ids, with their letters where it takes them."""
        if not self.letters:
            return self.ids
        return [[number, *letters] for number, letters in zip(self.ids, self.letters, strict=True)]

    def pieces_of(self, word: int) -> list[int]:
        """The places of a word's pieces."""
        check_number("word", word, len(self.words), "the sentence")
        return [place for place, owner in enumerate(self.word_of) if owner == word]


def label_places(text: Side, tokenizer: Tokenizer | None) -> dict[int, int]:
    """Where the piece is that has the label of each word: the first one; where capitals are marks, the first after
    them."""
    places, marked = dict[int, int](), getattr(tokenizer, "case", "keep") == "mark"
    for place, (piece, word) in enumerate(zip(text.pieces, text.word_of, strict=True)):
        behind = marked and word in places and text.pieces[places[word]].lstrip(SPACE) in ("", *MARKS)
        if word != OUTSIDE and (word not in places or (behind and piece not in MARKS)):
            places[word] = place
    return places


def so_far(written: Side) -> Side:
    """What a decoder read at each step: ``<start>``, then the output but for its last piece."""
    pieces = (SPECIAL_TOKENS[START], *written.pieces[:-1])
    return Side((START, *written.ids[:-1]), pieces, (OUTSIDE, *written.word_of[:-1]), written.words)


def with_letters(rows: Rows) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The ids, and the letters of each where there are some."""
    ids = tuple(row if isinstance(row, int) else row[0] for row in rows)
    return ids, tuple(tuple(row[1:]) for row in rows if not isinstance(row, int) and len(row) > 1)


def spell(rows: Rows, tokenizer: Tokenizer | None = None, text: str | None = None, *, at_spaces: bool = False) -> Side:
    """The pieces and words of ids, with their letters where they have some.

    With the ``text`` they came from, an unknown word shows as itself.
    Words are those of the text at whitespace, whatever the tokenizer; so word 3 of a trace is word 3 of a
    gold alignment. In a script without spaces, as in Chinese, each piece is a word, unless ``at_spaces`` says
    otherwise. Without a tokenizer each id is a word and is spelled as its number.
    """
    ids, letters = with_letters(rows)
    side = _spelled(ids, tokenizer, text)
    whole = at_spaces or tokenizer is None or tokenizer.kind in BYTES or not _is_unspaced(side)
    side = side if whole else apart(side, bare=SPACE)
    return replace(side, letters=letters) if letters else side


def _spelled(ids: tuple[int, ...], tokenizer: Tokenizer | None, text: str | None) -> Side:
    if tokenizer is None:
        numbers = [str(number) for number in ids if number not in SILENT]
        return _with_special(ids, numbers, range(len(numbers)), numbers)
    if tokenizer.kind == "vectors":
        names = tuple(map(str, range(1, len(ids) + 1)) if text is None else tokenizer.pieces(text))
        return Side(ids, names, tuple(range(len(names))), names)
    printed = [number for number in ids if number not in tokenizer.silent]
    pieces = [tokenizer.token(number) for number in printed]
    if text is not None and len(known := tokenizer.pieces(text)) == len(pieces):
        pieces = known
    named = [_QUESTION_MARK if tokenizer.kind == "byte" and piece == SPECIAL_TOKENS[UNK] else piece for piece in pieces]
    owners = tokenizer.word_of(named)
    words = space_words(tokenizer.decode(printed) if text is None else text)
    if owners and len(words) != owners[-1] + 1:  # decoding does not give the text back, as after <unk>
        words = _decoded_apart(printed, owners, tokenizer)
    special = {number: tokenizer.token(number) for number in ids if number in tokenizer.silent - SILENT}
    return _with_special(ids, pieces, owners, words, special)


def _is_unspaced(side: Side) -> bool:
    """Whether most letters of its words of several pieces are of a script without spaces."""
    counts = Counter(owner for owner in side.word_of if owner != OUTSIDE)
    letters = [letter for word, count in counts.items() if count > 1 for letter in side.words[word]]
    return 2 * sum(map(is_unspaced, letters)) > len(letters)


def apart(side: Side, bare: str = "") -> Side:
    """Every piece as a word of its own; special tokens stay. A mark that stands ``bare`` belongs to the next piece, and
    the bytes of a letter then belong together."""
    owners, words, begun, letter = list[int](), list[str](), False, b""
    for piece, owner in zip(side.pieces, side.word_of, strict=True):
        if owner == OUTSIDE:
            owners.append(OUTSIDE)
            continue
        word = legible(piece).replace(bare, "") if bare else legible(piece)
        byte = _BYTE.fullmatch(piece) if bare else None
        letter = letter + bytes.fromhex(byte[1]) if byte else b""
        whole = letter.decode(errors="ignore")
        words = [*(words[:-1] if begun or len(letter) > 1 else words), whole or word]
        owners.append(len(words) - 1)
        begun, letter = piece == bare, b"" if whole else letter
    return replace(side, word_of=tuple(owners), words=tuple(words))


def _with_special(
    ids: tuple[int, ...],
    pieces: Sequence[str],
    owners: Sequence[int],
    words: Sequence[str],
    others: Mapping[int, str] = MappingProxyType({}),
) -> Side:
    """``others`` are special tokens besides those that every vocabulary has."""
    named = {**{number: SPECIAL_TOKENS[number] for number in SILENT}, **others}
    spelled, placed = iter(pieces), iter(owners)
    return Side(
        ids,
        tuple(named[number] if number in named else next(spelled) for number in ids),
        tuple(OUTSIDE if number in named else next(placed) for number in ids),
        tuple(words),
    )


def _decoded_apart(printed: Sequence[int], owners: Sequence[int], tokenizer: Tokenizer) -> list[str]:
    groups: list[list[int]] = [[] for _ in range(owners[-1] + 1)]
    for number, owner in zip(printed, owners, strict=True):
        groups[owner].append(number)
    return [tokenizer.decode(group).strip() for group in groups]


# Pieces into words: weights between pieces become weights between the words a reader sees.
#
# The weight on a source word is the *sum* over its pieces: a row stays a distribution. The row of a target word
# is the *mean* over the steps that wrote its pieces: each of them is a distribution, and so is their mean. Words
# are those of the text at whitespace, for every tokenizer and script. Special tokens stay as they are, unless
# they are left out.


@dataclass(frozen=True)
class Folded:
    """Weights between words, with the labels of both axes."""

    weights: Tensor  # (…, T, S)
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def fold(weights: Tensor, target: Side, source: Side, *, special: bool = True) -> Folded:
    """``weights`` (…, T, S) between pieces, folded on both sides.

    Without ``special``, ``<end>`` and its like have neither row nor column; rows then sum to what is left.
    """
    (down_places, rows), (places, columns) = members(target, special=special), members(source, special=special)
    down = _membership(down_places, len(target), weights)
    down = down / down.sum(1, keepdim=True)  # mean
    across = _membership(places, len(source), weights)  # sum
    return Folded(down @ weights @ across.T, rows, columns)


def members(side: Side, *, special: bool) -> tuple[list[list[int]], tuple[str, ...]]:
    """The places of each word's pieces and, on request, each special token by itself, in the order of the text; and
    what each is called."""
    groups: list[list[int]] = []
    labels: list[str] = []
    last: int | None = None
    for place, (piece, word) in enumerate(zip(side.pieces, side.word_of, strict=True)):
        if word == OUTSIDE:
            if special:
                groups.append([place])
                labels.append(piece)
        elif word == last:
            groups[-1].append(place)
        else:
            groups.append([place])
            labels.append(side.words[word])
        last = word
    return groups, tuple(labels)


def _membership(groups: list[list[int]], pieces: int, like: Tensor) -> Tensor:
    """One row a group, with ones at its pieces."""
    matrix = torch.zeros(len(groups), pieces, dtype=like.dtype, device=like.device)
    for number, group in enumerate(groups):
        matrix[number, group] = 1
    return matrix


Task = Literal["translate", "language", "label"]
SideName = Literal["encoder", "decoder", "cross"]
SIDES: dict[SideName, tuple[str, str, str]] = {  # where in a trace the weights of a side are; what to say without them
    "cross": ("decoder", "cross", "attends to no source"),
    "encoder": ("encoder", "self", "has no self-attention in an encoder"),
    "decoder": ("decoder", "self", "has no self-attention in a decoder"),
}
FORMAT = 1
TENSORS, DESCRIPTION = ".safetensors", ".json"
_OWN = ("log_probability", "rank", "top_ids", "top_log_probability")  # a trace's own tensors, beside those of the model


@dataclass(frozen=True)
class Trace:
    """One finished output with all that was recorded while the model wrote it.

    Row t of anything along the target belongs to the step that *predicted* ``target.pieces[t]``; what the
    model read at that step is ``inputs[t]``, the piece before it. Tensors have no batch axis: weights are
    (H, T, S), states (T, D), by the names of `regard.nn.observe`, all in the order of the text: what a backward
    layer or a reversed encoder recorded from the last word to the first is reversed.
    """

    task: Task
    source: Side
    target: Side
    tensors: Mapping[str, Tensor]
    log_probability: Tensor  # (T,) of each target piece
    rank: Tensor  # (T,) of each target piece among all, 0 the most probable
    top_ids: Tensor  # (T, k) the most probable at each step, best first
    top_log_probability: Tensor  # (T, k)
    top_pieces: tuple[tuple[str, ...], ...] = ()
    backwards: bool = False  # whether the encoder read the source from its end

    @property
    def steps(self) -> list[int]:
        """The steps of the target that count: all or, of a tagger, those of the pieces that have their word's tag."""
        owners = enumerate(self.target.word_of)
        return [step for step, owner in owners if self.task != "label" or owner != OUTSIDE]

    @property
    def score(self) -> float:
        """The log-probability of the whole target: the sum over its steps."""
        return float(self.log_probability[self.steps].sum())

    @property
    def inputs(self) -> tuple[str, ...]:
        """What was read at each step."""
        if self.task == "label":
            return self.source.pieces
        return ("<start>", *self.target.pieces[:-1])

    @property
    def cross(self) -> Tensor:
        """Attention to the source, (L, H, T, S); a recurrent decoder has one layer of it."""
        return self.weights("cross")

    @property
    def encoder_self(self) -> Tensor:
        """Of the source to itself, (L, H, S, S)."""
        return self.weights("encoder")

    @property
    def decoder_self(self) -> Tensor:
        """Of what was read to itself and what came before it, (L, H, T, T)."""
        return self.weights("decoder")

    @property
    def logits(self) -> Tensor:
        """(T, V), where they were asked for."""
        if "logits" not in self.tensors:
            raise DataError("logits: this trace does not hold them; replay with logits = True")
        return self.tensors["logits"]

    def layers(self, side: str) -> list[str]:
        """The names of the weights of each layer of a side (see `SIDES`), lowest first; none where it has none."""
        if side not in SIDES:
            raise SettingsError(f"side = {side}: no such attention; {did_you_mean(side, SIDES)}")
        return layer_names(self.tensors, *SIDES[side][:2])

    def weights(self, side: str) -> Tensor:
        """The weights of all layers and heads of a side, (L, H, T, S)."""
        names = self.layers(side)
        if not names:
            half, kind, missing = SIDES[cast("SideName", side)]
            known = ", ".join(name for name in self.tensors if name.endswith(".weights")) or "no attention at all"
            raise ModelError(f"trace = {half}.{kind}.weights: this model {missing}; known: {known}")
        return torch.stack([self.tensors[name] for name in names])

    def axes(self, side: str) -> tuple[Side, Side]:
        """The rows and columns of a side's weights."""
        if side == "encoder":
            return self.source, self.source
        return self.target, self.source if side == "cross" else so_far(self.target)

    def save(self, path: str | Path) -> None:
        """Write ``path.safetensors`` and ``path.json``. The second, which names the first's size, is written last."""
        tensors = {f"model/{name}": tensor for name, tensor in self.tensors.items()}
        tensors |= {name: getattr(self, name) for name in _OWN}
        # Copies: safetensors refuses tensors that share memory.
        copies = {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
        }
        data = save_tensors(copies)
        description = {
            "format": FORMAT,
            "task": self.task,
            "source": asdict(self.source),
            "target": asdict(self.target),
            "top_pieces": self.top_pieces,
            "backwards": self.backwards,
            "bytes": len(data),
        }
        text = (json.dumps(description, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
        for suffix, content in ((TENSORS, data), (DESCRIPTION, text)):
            with new_file(_beside(path, suffix)) as file:
                file.write(content)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what `save` wrote, or say in one line what is wrong with it."""
        file = _beside(path, DESCRIPTION)
        description = _read_description(file)
        tensors = _read_tensors(_beside(path, TENSORS), description.get("bytes"))
        try:
            return cls(
                task=description["task"],
                source=_side(description["source"]),
                target=_side(description["target"]),
                tensors={name.removeprefix("model/"): value for name, value in tensors.items() if "/" in name},
                top_pieces=tuple(map(tuple, description["top_pieces"])),
                backwards=bool(description["backwards"]),
                **{name: tensors[name] for name in _OWN},
            )
        except (KeyError, TypeError, AttributeError) as problem:
            raise DataError(f"{file}: is not a whole trace; {problem} is missing or damaged") from None


def layer_names(names: Iterable[str], side: str, kind: str) -> list[str]:
    """Those of ``names`` that are a layer's weights, lowest layer first."""
    pattern = re.compile(rf"{side}\.(?:(\d+)\.)?{kind}\.weights")
    found = [(int(match[1] or 0), name) for name in names if (match := pattern.fullmatch(name))]
    return [name for _, name in sorted(found)]


def _beside(path: str | Path, suffix: str) -> Path:
    """The pair's file: a name given with either ending means both."""
    path = Path(path)
    plain = path.with_suffix("") if path.suffix in (TENSORS, DESCRIPTION) else path
    return plain.with_name(plain.name + suffix)


def _read_description(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_read(path))
    except (ValueError, RecursionError):
        raise DataError(f"{path}: is not JSON; is it a trace, whole?") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise DataError(f"{path}: format = {found}: is not a trace that this version reads; {FORMAT} would be right")
    return content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror}); a trace is a pair of files") from None


def _read_tensors(path: Path, size: object) -> dict[str, Tensor]:
    data = _read(path)
    if len(data) != size:
        raise DataError(f"{path} = {len(data)} bytes: does not belong to its {DESCRIPTION}, which says {size} bytes")
    try:
        return load_tensors(data)
    except (SafetensorError, ValueError, RuntimeError):
        raise DataError(f"{path}: is not a safetensors file; is it damaged?") from None


def _side(content: Mapping[str, Sequence[Any]]) -> Side:
    letters = tuple(tuple(row) for row in content.get("letters", ()))
    return Side(**{name: tuple(values) for name, values in content.items()} | {"letters": letters})
