"""What if: small changes to a sentence or to the inside of a model, as data, and what they change in the output.

Each edit is a frozen dataclass with a ``kind``; `to_data` and `from_data` convert to plain dictionaries and back. Edits
inside the model act through an observer: a module goes on with the value that the edit returns. Everything counts from
0, and attention is named as in a trace, without ``.weights``: ``decoder.1.cross``.

`what_if` answers two questions. The *same* output replayed under the edits: how probable are the old words still? A
*new* output written under them: what would the model write instead? Outputs are greedy, before and after, so that the
difference is due to the edits alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import SequenceMatcher
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.errors import DataError, ModelError, did_you_mean
from regard.explain import asked
from regard.explain.answer import Answer, Hidden, computed
from regard.explain.replay import Detail, reads_backwards
from regard.explain.trace import Side, Trace, check_number
from regard.nn.observe import Observer
from regard.tasks.load import Trained
from regard.text.reading import is_unspaced
from regard.text.words import space_words

Read = Callable[[str], Side]
_OTHER = {"encoder": "decoder", "decoder": "encoder"}
ROUNDING = 1e-3  # how far from one the sum of a row may be that a person typed
MOST = 50  # edits at once
LONGEST = 1_000  # characters of a word, a prefix or a name; numbers of a row


class Edit:
    """The part that all share: an edit that changes text does nothing inside, and the other way round."""

    kind: ClassVar[str]

    def text(self, text: str, read: Read) -> str:  # noqa: ARG002
        """The source text, changed; ``read`` tells what its words are where no spaces do."""
        return text

    def check(self, before: Trace, editor: Editor) -> None:
        """Refuse what does not fit the sentence or the model, given the pass without edits."""

    def act(self, name: str, value: Tensor, editor: Editor) -> Tensor:  # noqa: ARG002
        """The value to go on with, in place of one that is recorded under this full name."""
        return value


def _replaced(text: str, words: Sequence[str], word: int, by: str) -> str:
    """Another text in the place of a word that no spaces set apart."""
    end = 0
    for each in words[: word + 1]:
        begin = text.find(each, end)
        if begin < 0:
            raise DataError(f"word = {word}: is read otherwise than it is written here; write it anew by hand")
        end = begin + len(each)
    return text[:begin] + by + text[end:]


@dataclass(frozen=True)
class ReplaceWord(Edit):
    """Another word, or several, or none, in place of a source word."""

    word: int
    by: str
    kind: ClassVar[str] = "replace-word"

    def text(self, text: str, read: Read) -> str:
        spaced = not any(map(is_unspaced, text))
        words = space_words(text) if spaced else read(text).words
        check_number("word", self.word, len(words), "the sentence")
        if not spaced:
            return _replaced(text, words, self.word, self.by)
        return " ".join((*words[: self.word], *self.by.split(), *words[self.word + 1 :]))


@dataclass(frozen=True)
class MaskWord(Edit):
    """A source word blanked out: its place stays, its embedding is zero."""

    word: int
    kind: ClassVar[str] = "mask-word"

    def check(self, before: Trace, editor: Editor) -> None:
        del before
        editor.places(self.word)

    def act(self, name: str, value: Tensor, editor: Editor) -> Tensor:
        if name != f"{editor.side}.embedded":
            return value
        places, count, first = editor.places(self.word), value.shape[1], editor.rows[name]
        if editor.backwards:
            places = [count - 1 - place for place in places]
        here = [place - first for place in places if 0 <= place - first < count]
        value = value.clone()
        value[:, here] = 0
        return value


@dataclass(frozen=True)
class ForcePrefix(Edit):
    """The output begins with this text; the model goes on from there."""

    prefix: str
    kind: ClassVar[str] = "force-prefix"

    def check(self, before: Trace, editor: Editor) -> None:
        del editor
        if before.task == "label":
            raise ModelError(
                f"prefix = {self.prefix[:40]}: labels are given all at once; there is no beginning to force"
            )


def _check_head(before: Trace, attention: str, head: int = 0) -> None:
    weights = before.tensors.get(f"{attention}.weights")
    if weights is None:
        known = [name.removesuffix(".weights") for name in before.tensors if name.endswith(".weights")]
        hint = did_you_mean(attention, known) if known else "it has no attention"
        raise ModelError(f"attention = {attention}: this model has none of that name; {hint}")
    check_number("head", head, weights.shape[0], attention)


@dataclass(frozen=True)
class SetRow(Edit):
    """One step's distribution, set by hand."""

    attention: str
    head: int
    row: int
    weights: tuple[float, ...]
    kind: ClassVar[str] = "set-row"

    def check(self, before: Trace, editor: Editor) -> None:
        del editor
        _check_head(before, self.attention, self.head)
        _, rows, columns = before.tensors[f"{self.attention}.weights"].shape
        check_number("row", self.row, rows, "the output")
        if len(self.weights) != columns:
            raise DataError(
                f"weights = {len(self.weights)} numbers: the row has {columns} places; one for each is needed"
            )
        if not (min(self.weights) >= 0 and abs(sum(self.weights) - 1) <= ROUNDING):  # not a number is neither
            raise DataError(f"weights: sum to {sum(self.weights):.3g}: a row is a distribution, 0 or more and 1 in all")
        backwards = self.attention.startswith("decoder") and self.attention.endswith("self")
        if backwards and any(self.weights[self.row + 1 :]):
            raise DataError(
                f"weights: row {self.row} looks at what is written later; 0 after place {self.row} is right"
            )

    def act(self, name: str, value: Tensor, editor: Editor) -> Tensor:
        row = self.row - editor.rows[name]
        if name != f"{self.attention}.weights" or not 0 <= row < value.shape[-2]:
            return value
        value = value.clone()
        given = torch.tensor(self.weights, dtype=value.dtype, device=value.device)
        value[:, self.head, row] = 0
        width = min(len(given), value.shape[-1])  # a live step has not seen the later keys
        value[:, self.head, row, :width] = given[:width]
        return value


@dataclass(frozen=True)
class MuteHead(Edit):
    """A head that contributes nothing: its context is zero."""

    attention: str
    head: int
    kind: ClassVar[str] = "mute-head"

    def check(self, before: Trace, editor: Editor) -> None:
        del editor
        _check_head(before, self.attention, self.head)

    def act(self, name: str, value: Tensor, editor: Editor) -> Tensor:  # noqa: ARG002
        if name != f"{self.attention}.contexts":
            return value
        value = value.clone()
        value[:, self.head] = 0
        return value


@dataclass(frozen=True)
class ForceHead(Edit):
    """A head that looks at one source word, always; at its pieces evenly.

    In a language model, at a word of the text before: steps that have not read it yet look as they did.
    """

    attention: str
    head: int
    word: int
    kind: ClassVar[str] = "force-head"

    def check(self, before: Trace, editor: Editor) -> None:
        _check_head(before, self.attention, self.head)
        if self.attention.startswith(f"{_OTHER[editor.side]}.") and self.attention.endswith("self"):
            raise DataError(f"attention = {self.attention}: does not look at source words; a cross attention would")
        editor.places(self.word)

    def act(self, name: str, value: Tensor, editor: Editor) -> Tensor:
        if name != f"{self.attention}.weights":
            return value
        places = editor.places(self.word)
        first = max(0, max(places) - editor.rows[name]) if editor.side == "decoder" else 0
        value = value.clone()
        value[:, self.head, first:] = 0
        value[:, self.head, first:, [place for place in places if place < value.shape[-1]]] = 1 / len(places)
        return value


@dataclass(frozen=True)
class NoPositions(Edit):
    """Embeddings without the positions that are added to them."""

    side: str = "encoder"
    kind: ClassVar[str] = "no-positions"

    def check(self, before: Trace, editor: Editor) -> None:
        del editor
        placed, bare = (before.tensors.get(f"{self.side}.{name}") for name in ("placed", "embedded"))
        if placed is None or bare is None or torch.equal(placed, bare):
            raise ModelError(f"side = {self.side}: adds no positions to its embeddings, so there are none to remove")

    def act(self, name: str, value: Tensor, editor: Editor) -> Tensor:
        if name == f"{self.side}.embedded":
            editor.seen[name] = value
        if name == f"{self.side}.placed":
            return editor.seen[f"{self.side}.embedded"]
        return value


@dataclass(frozen=True)
class NoScale(Edit):
    """Scores without their scale: q·k and not q·k / √d, which makes the softmax sharper."""

    attention: str
    kind: ClassVar[str] = "no-scale"

    def check(self, before: Trace, editor: Editor) -> None:
        del editor
        _check_head(before, self.attention)

    def act(self, name: str, value: Tensor, editor: Editor) -> Tensor:
        if name == f"{self.attention}.products":
            editor.seen[name] = value
        if name != f"{self.attention}.scores":
            return value
        if f"{self.attention}.products" not in editor.seen:
            raise ModelError(f"attention = {self.attention}: has a score without a scale; an inner product has one")
        return editor.seen[f"{self.attention}.products"]


KINDS: Mapping[str, type[Edit]] = {
    edit.kind: edit for edit in (ReplaceWord, MaskWord, ForcePrefix, SetRow, MuteHead, ForceHead, NoPositions, NoScale)
}


@dataclass(frozen=True)
class Editor:
    """The observer that carries out edits. One for each pass: it counts the rows it has seen.

    An edit may know from it what is read, by whom, and which way.
    """

    edits: tuple[Edit, ...]
    source: Side  # or, for a language model, the text that it goes on from
    backwards: bool = False  # a reversed encoder embeds from the last word to the first
    side: str = "encoder"  # who reads it
    place: str = ""
    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # of each name that came before in this pass
    seen: dict[str, Tensor] = field(default_factory=dict)  # what edits remember within it
    active: bool = True

    def anew(self) -> Editor:
        """For another pass."""
        return Editor(self.edits, self.source, self.backwards, self.side)

    def places(self, word: int) -> list[int]:
        """Where a word's pieces stand among what is read: a decoder reads ``<start>`` first."""
        return [place + (self.side == "decoder") for place in self.source.pieces_of(word)]

    def at(self, place: str | int) -> Observer:
        return replace(self, place=f"{self.place}{place}.")

    def see(self, name: str, value: Tensor) -> Tensor:
        name = self.place + name
        for edit in self.edits:
            value = edit.act(name, value, self)
        self.rows[name] += value.shape[-2]
        if name in self.seen:  # what an edit remembers is what the module goes on with, later edits included
            self.seen[name] = value
        return value


def changed_text(text: str, edits: Sequence[Edit], read: Read) -> str:
    """The text after its edits."""
    for edit in edits:
        text = edit.text(text, read)
    return text


def forced_prefix(edits: Sequence[Edit]) -> str:
    """What the output has to begin with."""
    return "".join([edit.prefix for edit in edits if isinstance(edit, ForcePrefix)][-1:])


def to_data(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """Plain dictionaries, for JSON, a URL or a file."""
    return [{"kind": edit.kind, **asdict(edit)} for edit in edits]  # type: ignore[call-overload]


def from_data(data: object) -> tuple[Edit, ...]:
    """What `to_data` made, or a line that says what is wrong with it."""
    if not isinstance(data, list):
        raise DataError(f"edits = {str(data)[:40]}: not a list; a list of edits, each with its kind, would be right")
    if len(data) > MOST:
        raise DataError(f"edits = {len(data):,} of them: too many; {MOST} at once are the most")
    return tuple(map(_edit, data))


def _edit(content: object) -> Edit:
    kind = content.get("kind") if isinstance(content, dict) else content
    if not isinstance(content, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise DataError(f"edit = {str(kind)[:40]}: no such edit; {did_you_mean(str(kind), KINDS)}")
    made = KINDS[kind]
    given = {name: value for name, value in content.items() if name != "kind"}
    wanted = {one.name: str(one.type) for one in fields(made)}  # type: ignore[arg-type]
    needed = {one.name for one in fields(made)} - ({"side"} if made is NoPositions else set())  # type: ignore[arg-type]
    if not needed <= given.keys() <= wanted.keys():
        raise DataError(f"{kind} = {', '.join(given) or 'nothing'}: wrong parts; it has {', '.join(wanted)}")
    for name, value in given.items():
        given[name] = _value(f"{kind}.{name}", wanted[name], value)
    return made(**given)


def _value(where: str, wanted: str, value: object) -> object:
    """A value of the type that a field is declared with, and of a plausible length."""
    if isinstance(value, str | list | tuple) and len(value) > LONGEST:
        raise DataError(f"{where} = {len(value):,} long: too long; {LONGEST:,} are the most")
    if wanted.startswith("tuple"):
        if isinstance(value, list | tuple) and all(isinstance(one, int | float) for one in value):
            with suppress(OverflowError):  # an integer beyond all floats
                return tuple(float(one) for one in value)
        raise DataError(f"{where} = {str(value)[:40]}: not a list of numbers")
    if isinstance(value, {"int": int, "str": str}[wanted]) and not isinstance(value, bool):
        return value
    raise DataError(f"{where} = {str(value)[:40]}: of the wrong type; {wanted} would be right")


# Carrying out edits: what changes in the output and in its probability.


@dataclass(frozen=True)
class ScoredText(Answer):
    """An output and its log-probability."""

    text: str
    log_probability: float


@dataclass(frozen=True)
class Difference(Answer):
    """What the edits did. Outputs are greedy, before and after."""

    editor: Hidden[Editor]  # carries out the edits
    traces: Hidden[tuple[Trace, Trace, Trace]]  # the old output, the same under the edits, the one written under them
    places: Hidden[tuple[asked.Places, asked.Places, asked.Places]]  # the pieces of each trace that count

    def _counted(self, number: int) -> Tensor:
        trace, places = self.traces[number], self.places[number]
        return trace.log_probability if places is None else trace.log_probability[list(places)]

    def _words(self, number: int) -> tuple[str, ...]:
        """Of a tagger, one tag a word; else all there is."""
        trace, places = self.traces[number], self.places[number]
        if trace.task != "label" or places is None:
            return trace.target.words
        return tuple(trace.target.pieces[place] for place in places)

    def _scored(self, number: int) -> ScoredText:
        words = self._words(2 if number == 2 else 0)
        return ScoredText(" ".join(words), float(self._counted(number).sum()))

    @computed
    def before(self) -> ScoredText:
        return self._scored(0)

    @computed
    def after(self) -> ScoredText:
        return self._scored(2)

    @computed
    def change_in_log_probability(self) -> float:
        """Of the new output under the edits, less that of the old."""
        return self.after.log_probability - self.before.log_probability

    @computed
    def same(self) -> ScoredText:
        """The old output, under the edits."""
        return self._scored(1)

    @computed
    def fall(self) -> tuple[float, ...]:
        """By how much the log-probability of each piece of the old output fell."""
        return tuple((self._counted(0) - self._counted(1)).tolist())

    @computed
    def pieces(self) -> tuple[str, ...]:
        """The pieces of the old output."""
        pieces, places = self.traces[0].target.pieces, self.places[0]
        return pieces if places is None else tuple(pieces[place] for place in places)

    @computed
    def changes(self) -> tuple[dict[str, tuple[str, ...]], ...]:
        """Words that were exchanged, before and after."""
        old, new = self._words(0), self._words(2)
        steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return tuple({"before": old[a:b], "after": new[c:d]} for tag, a, b, c, d in steps if tag != "equal")


def what_if(
    predictor: Trained,
    text: str,
    edits: Sequence[Edit],
    *,
    output: Sequence[int] | None = None,
    detail: Detail = "usual",
) -> Difference:
    """Carry out ``edits`` on a text. ``output`` is what was written; without it, what the model would write.

    Replacements are made first, in order; the other edits count the words of the text that results.
    """
    if not text.split():
        raise DataError("text = '': an empty sentence has nothing to change; give it a word")
    first = asked.read(predictor, text)
    written = asked.write(predictor, first) if output is None else list(output)
    before = asked.seen_writing(predictor, first, written, detail=detail)
    changed = changed_text(text, edits, partial(asked.read, predictor))
    read = first if changed == text else asked.read(predictor, changed)
    kept = asked.kept(predictor, read, before, written)
    middle = before if changed == text else asked.seen_writing(predictor, read, kept, detail=detail)
    side = "decoder" if predictor.task == "language" else "encoder"
    editor = Editor(tuple(edits), read, reads_backwards(predictor.model), side)
    for edit in edits:
        edit.check(middle, editor)
    same = asked.seen_writing(predictor, read, kept, editor.anew(), detail=detail)
    anew = asked.write(predictor, read, editor.anew(), prefix=forced_prefix(edits))
    after = asked.seen_writing(predictor, read, anew, editor.anew(), detail=detail)
    pairs = (before, first), (same, read), (after, read)
    places = [asked.counted(predictor, *pair) for pair in pairs]
    return Difference(editor, (before, same, after), (places[0], places[1], places[2]))
