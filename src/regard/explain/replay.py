"""Looking is replaying: the finished output goes through the model once more, at once, with recording on.

Search stays as fast as it is, and any output can be looked at: a hypothesis of the n-best, a reference, an
edited prefix. That the replay shows what the live steps used is held by tests for every preset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from regard.errors import DataError, ModelError
from regard.explain.side import Side, spell
from regard.explain.trace import Task, Trace
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.labeller import Labeller
from regard.models.language_model import LanguageModel
from regard.nn.observe import UNOBSERVED, Observer, Recorder
from regard.text.special import END, PAD, START
from regard.text.tokenizers import Tokenizers

Model = EncoderDecoder | LanguageModel | Labeller
Detail = Literal["weights", "usual", "all"]
TOP = 5

# What a detail keeps, by the last part of a name; "all" keeps everything there is.
_WEIGHTS = frozenset(("weights", "odds", "centre"))
_GATES = frozenset(("input", "forget", "candidate", "output", "reset", "update", "cell", "hidden"))
_STATES = frozenset(("embedded", "placed", "states", "features"))
_KEPT = {"weights": _WEIGHTS, "usual": _WEIGHTS | _GATES | _STATES}


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
    source_ids: Sequence[int] = (),
    target_ids: Sequence[int] | None = None,
    observer: Observer | None = None,
    *,
    tokenizers: Tokenizers | None = None,
    texts: tuple[str | None, str | None] = (None, None),
    labels: Sequence[str] = (),
    detail: Detail = "usual",
    logits: bool = False,
    top: int = TOP,
) -> Trace:
    """One recorded pass over a source and its finished output.

    Translators read ``source_ids`` with its final ``<end>``; language models have no source. ``target_ids``
    are what each step was to predict, so a finished output ends in ``<end>`` and a prefix does not. Labellers
    label the source; without ``target_ids`` with the labels they find most probable.

    ``observer`` may change values on the way; what is recorded is what the model went on with. ``texts`` are
    those the ids came from, and spell words that are ``<unk>`` to the model.
    """
    _check(model, source_ids, target_ids)
    watch = Keeper(detail, observer or UNOBSERVED)
    with torch.no_grad(), resting(model):
        scores = forward(model, source_ids, target_ids, watch)  # (T, V)
    scores = scores.double() if scores.dtype == torch.float64 else scores.float()
    odds = scores.log_softmax(-1)
    chosen = odds.argmax(-1) if target_ids is None else torch.tensor(list(target_ids), device=odds.device)
    if int(chosen.max()) >= odds.shape[1] or int(chosen.min()) < 0:
        raise DataError(f"target = {int(chosen.max())}: is no id of this model; 0 to {odds.shape[1] - 1} would be right")
    own = odds.gather(1, chosen[:, None])
    best = odds.topk(min(top, odds.shape[1]))
    source, target, top_pieces = _sides(model, source_ids, chosen.tolist(), best.indices, tokenizers, texts, labels)
    tensors = {name: _unbatched(watch[name]) for name in watch.names()}
    return Trace(
        task=task_of(model),
        source=source,
        target=target,
        tensors=tensors | ({"logits": scores} if logits else {}),
        log_probability=own.squeeze(1),
        rank=(odds > own).sum(1),
        top_ids=best.indices,
        top_log_probability=best.values,
        top_pieces=top_pieces,
    )


def forward(model: Model, source_ids: Sequence[int], target_ids: Sequence[int] | None, observer: Observer) -> Tensor:
    """The logits of every step, (T, V)."""
    device = next(model.parameters()).device
    source = torch.tensor([list(source_ids)], device=device)
    if isinstance(model, Labeller):
        found = model(source, observer=observer)
        return found[0] if found.dim() == 3 else found
    read = torch.tensor([[model.first, *(target_ids or ())][: len(target_ids or ())]], device=device)
    found = model(read, observer) if isinstance(model, LanguageModel) else model(source, read, observer=observer)
    return found[0]


def task_of(model: Model) -> Task:
    match model:
        case EncoderDecoder():
            return "translate"
        case LanguageModel():
            return "language"
        case Labeller():
            return "label"
    raise ModelError(f"model = {type(model).__name__}: cannot be replayed; a translator, a language model or a labeller can")


@contextmanager
def resting(model: nn.Module) -> Iterator[None]:
    """Without dropout, and afterwards as it was."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def _check(model: Model, source_ids: Sequence[int], target_ids: Sequence[int] | None) -> None:
    task = task_of(model)
    if task != "language" and not any(number not in (PAD, START, END) for number in source_ids):
        raise DataError("source = '': an empty sentence has nothing to look into; give it a word")
    if task == "language" and source_ids:
        raise DataError(f"source = {len(source_ids)} ids: a language model has no source; give the text as the target")
    if task != "label" and not target_ids:
        raise DataError("target = '': there is no output to replay; give the tokens of one, <end> included")


def _unbatched(value: Tensor) -> Tensor:
    return value[0].detach()


def _sides(
    model: Model,
    source_ids: Sequence[int],
    chosen: list[int],
    best: Tensor,
    tokenizers: Tokenizers | None,
    texts: tuple[str | None, str | None],
    labels: Sequence[str],
) -> tuple[Side, Side, tuple[tuple[str, ...], ...]]:
    source = spell(source_ids, tokenizers and tokenizers.source, texts[0])
    rows = best.tolist()
    if isinstance(model, Labeller):
        names = labels or [str(number) for number in range(model.head.out_features)]
        words = tuple(names[number] for number in chosen)
        target = Side(tuple(chosen), words, tuple(range(len(words))), words)
        return source, target, tuple(tuple(names[number] for number in row) for row in rows)
    target = spell(chosen, tokenizers and tokenizers.target, texts[1])
    if tokenizers is None:
        return source, target, tuple(tuple(map(str, row)) for row in rows)
    return source, target, tuple(tuple(map(tokenizers.target.token, row)) for row in rows)
