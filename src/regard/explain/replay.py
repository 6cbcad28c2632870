"""Looking is replaying: the finished output goes through the model once more, at once, with recording on.

Search records nothing and stays fast, and any output can be looked at: a hypothesis of the n-best list, a reference,
an edited prefix. Tests for every preset check that a replay shows what the live steps used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from regard.decode.cancel import check_cancelled
from regard.errors import DataError
from regard.explain.trace import OUTSIDE, Rows, Side, Trace, label_places, spell, with_letters
from regard.models.generator import EncoderDecoder, Labeller, LanguageModel
from regard.models.recurrent import RecurrentEncoder
from regard.models.transformer import TransformerEncoder
from regard.nn.attention import Attention
from regard.nn.embeddings import VectorEmbedding
from regard.nn.observe import UNOBSERVED, Observer, Recorder
from regard.nn.words import WordEmbedding
from regard.text.vocabulary import END, PAD, START, Tokenizer

Model = EncoderDecoder | LanguageModel | Labeller
Detail = Literal["weights", "usual", "blocks", "all"]
TOP = 5
MOST_PIECES = 2_000  # of a text or an output that is looked into
MOST_NUMBERS = 8_000_000  # weights of one trace: 32 MB, about 230 pieces through 6 + 6 layers of 8 heads

# What a detail keeps, by the last part of a name; "all" keeps everything there is.
_WEIGHTS = frozenset(("weights", "probabilities", "centre"))
_GATES = frozenset(("input", "forget", "candidate", "output", "reset", "update", "cell", "hidden"))
_STATES = frozenset(("embedded", "placed", "states", "features"))
_BLOCKS = frozenset(("values", "normed", "attended", "crossed"))
_KEPT = {
    "weights": _WEIGHTS,
    "usual": _WEIGHTS | _GATES | _STATES,
    "blocks": _WEIGHTS | _GATES | _STATES | _BLOCKS,
}


@dataclass(frozen=True)
class Spelling:
    """How ids are written: tokenizers, the texts the ids came from (which know what ``<unk>`` was), labels."""

    source: Tokenizer | None = None
    target: Tokenizer | None = None
    source_text: str | None = None
    target_text: str | None = None
    labels: tuple[str, ...] = ()

    def name(self, model: Model, number: int) -> str:
        """One target id, as read."""
        if model.task == "label":
            return self.labels[number] if self.labels else str(number)
        return str(number) if self.target is None else self.target.token(number)

    def spell_target(self, model: Model, ids: Sequence[int], source: Side | None = None) -> Side:
        """The output in pieces and words. A tagger labels every piece, and a word has the label of one of its own."""
        if model.task != "label":
            return spell(ids, self.target, self.target_text)
        names = tuple(self.name(model, number) for number in ids)
        if source is None or len(names) != len(source):
            return Side(tuple(ids), names, tuple(range(len(names))), names)
        places = list(label_places(source, self.source).values())
        owners = {place: word for word, place in enumerate(places)}
        words = tuple(names[place] for place in places)
        return Side(tuple(ids), names, tuple(owners.get(place, OUTSIDE) for place in range(len(names))), words)


PLAIN = Spelling()


class Keeper(Recorder):
    """A recorder that keeps what a detail asks for, and lets another observer act before it looks."""

    def __init__(
        self,
        detail: Detail,
        before: Observer = UNOBSERVED,
        place: str = "",
        seen: dict[str, list[Tensor]] | None = None,
    ) -> None:
        super().__init__(place, seen)
        self._detail: Detail = detail
        self._before = before

    def at(self, place: str | int) -> Keeper:
        return Keeper(self._detail, self._before.at(place), f"{self._place}{place}.", self._seen)

    def see(self, name: str, value: Tensor) -> Tensor:
        value = self._before.see(name, value)
        return super().see(name, value) if self._detail == "all" or name in _KEPT[self._detail] else value


def replay(
    model: Model,
    source_ids: Rows = (),
    target_ids: Sequence[int] | None = None,
    observer: Observer | None = None,
    *,
    spelling: Spelling = PLAIN,
    detail: Detail = "usual",
    logits: bool = False,
    top: int = TOP,
) -> Trace:
    """One recorded pass over a source and its finished output.

    Translators read ``source_ids`` with its final ``<end>``; language models have no source. ``target_ids``
    are what each step was to predict, so a finished output ends in ``<end>`` and a prefix does not. Labellers
    label the source; without ``target_ids`` with the labels they find most probable. For one that reads letters,
    each id of the source is followed by them.

    ``observer`` may change values; the changed values are recorded.
    """
    check(model, source_ids, target_ids)
    watch = Keeper(detail, observer or UNOBSERVED)
    with torch.no_grad(), resting(model):
        scores = forward(model, source_ids, target_ids, watch)  # (T, V)
    scores = scores if scores.dtype == torch.float64 else scores.float()
    log_probabilities = scores.log_softmax(-1)
    chosen = log_probabilities.argmax(-1) if target_ids is None else _targets(target_ids, log_probabilities)
    own = log_probabilities.gather(1, chosen[:, None])  # (T, 1)
    best = log_probabilities.topk(min(top, log_probabilities.shape[1]))
    tensors = {name: _in_order(model, name, watch[name][0]) for name in watch.names()}
    source = spell(source_ids, spelling.source, spelling.source_text)
    return Trace(
        task=model.task,
        source=source,
        target=spelling.spell_target(model, chosen.tolist(), source),
        tensors=tensors | ({"logits": scores} if logits else {}),
        log_probability=own.squeeze(1),
        rank=(log_probabilities > own).sum(1),
        top_ids=best.indices,
        top_log_probability=best.values,
        top_pieces=tuple(tuple(spelling.name(model, number) for number in row) for row in best.indices.tolist()),
        backwards=reads_backwards(model),
    )


def forward(model: Model, source_ids: Rows, target_ids: Sequence[int] | None, observer: Observer) -> Tensor:
    """The logits of every step, (T, V)."""
    return forward_all(model, [source_ids], target_ids or (), observer)[0]


def forward_all(model: Model, sources: Sequence[Rows], targets: Sequence[int], observer: Observer) -> Tensor:
    """The logits of every step of one target after each of several sources, (B, T, V)."""
    check_cancelled()
    device = next(model.parameters()).device
    if model.task == "label":
        found = model(padded(sources).to(device), observer=observer)  # (B, S, C) or, pooled, (B, C)
        return found if found.dim() == 3 else found[:, None]
    read = torch.tensor([[model.first, *targets[:-1]]] * len(sources), device=device)
    if model.task == "language":
        return model(read, observer)
    return model(padded(sources).to(device), read, observer=observer)


def padded(rows: Sequence[Rows]) -> Tensor:
    """(B, S), or (B, S, 1 + L) where letters follow the ids."""
    return pad_sequence([torch.tensor(list(each)) for each in rows], batch_first=True, padding_value=PAD)


@contextmanager
def resting(model: nn.Module) -> Iterator[None]:
    """In evaluation mode, without dropout; afterwards in the mode it was in."""
    training = model.training
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()


def check(model: Model, source_ids: Rows, target_ids: Sequence[int] | None) -> None:
    """Refuse an empty source or output, and rows that this model does not read."""
    task = model.task
    ids, letters = with_letters(source_ids)
    if task != "language" and not any(number not in (PAD, START, END) for number in ids):
        raise DataError("source = '': an empty sentence has nothing to look into; give it a word")
    if task == "language" and source_ids:
        raise DataError(f"source = {len(source_ids)} ids: a language model has no source; give the text as the target")
    if bool(letters) != reads_letters(model):
        problem = "this model reads none" if letters else "this model reads them"
        raise DataError(f"source = {len(ids)} pieces, {len(letters)} with letters: {problem}; see decode.labels.Reader")
    if task != "label" and not target_ids:
        raise DataError("target = '': there is no output to replay; give the tokens of one, <end> included")


def check_size(model: Model, read: int, written: int) -> None:
    """Refuse, before any pass, a text that is too long; ``written`` is 0 while there is no output yet."""
    if (most := max(read, written)) > MOST_PIECES:
        raise DataError(
            f"text = {most:,} pieces: too many to look at; {MOST_PIECES:,} are the most, give a shorter one"
        )
    if (numbers := weights_of(model, read, written)) > MOST_NUMBERS:
        raise DataError(
            f"text = {read + written} pieces with its output: {numbers:,} weights are too many to look at; "
            f"{MOST_NUMBERS:,} are the most, so give a shorter text"
        )


def weights_of(model: Model, read: int, written: int) -> int:
    """The number of attention weights in a trace with so many pieces."""
    numbers = 0
    for name, module in model.named_modules():
        if isinstance(module, Attention):
            across = written * (written if name.startswith("decoder.layers") and name.endswith("attention") else read)
            numbers += module.heads * (read * read if name.startswith("encoder") else across)
    return numbers


def reads_letters(model: Model) -> bool:
    """Whether each id of the source is followed by its letters, or by the numbers of a vector."""
    encoder = None if model.task == "language" else model.encoder
    embedding = encoder.embedding if isinstance(encoder, TransformerEncoder | RecurrentEncoder) else None
    spelled = isinstance(embedding, WordEmbedding) and embedding.spelling is not None
    return spelled or isinstance(embedding, VectorEmbedding)


def reads_backwards(model: Model) -> bool:
    """Whether the encoder reads the source from its end."""
    encoder = None if model.task == "language" else model.encoder
    return isinstance(encoder, RecurrentEncoder) and encoder.reverse


def _in_order(model: Model, name: str, value: Tensor) -> Tensor:
    """In the order of the text; a backward direction or a reversed encoder records the opposite order."""
    backward = ".backward." in name
    if name.startswith("encoder.") and name != "encoder.states" and reads_backwards(model):
        backward = not backward
    return value.flip(-2) if backward else value


def _targets(ids: Sequence[int], log_probabilities: Tensor) -> Tensor:
    """The tokens whose probability is asked for, one for each row of ``log_probabilities`` (T, V)."""
    rows, size = log_probabilities.shape
    if len(ids) != rows:
        raise DataError(f"target = {len(ids)} labels: there are {rows} places to label; one for each would be right")
    for number in ids:
        if not 0 <= number < size:
            raise DataError(f"target = {number}: is no id of this model; 0 to {size - 1} would be right")
    return torch.tensor(list(ids), device=log_probabilities.device)
