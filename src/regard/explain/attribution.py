"""Attribution by every method: one map between what is read and what is written.

Methods that follow the mixing of tokens (`regard.explain.mixing`) explain a state. Those that change what is read
(`regard.explain.passes`) explain a number, such as the log-probability of each step, and so can also say why one word
was written and not another. Attention weights need not be what decided (Jain and Wallace, 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import torch
from torch import Tensor

from regard.errors import DataError, ModelError, SettingsError, did_you_mean
from regard.explain.alignment import Aligner
from regard.explain.mixing import alti, halves, mixed, norms, pool_block, roll, shared, zeroing
from regard.explain.passes import (
    PREFIX,
    SOURCE,
    How,
    Of,
    Subject,
    Under,
    alone,
    gradient_times_input,
    integrated_gradients,
    masking,
    saliency,
)
from regard.explain.replay import Model, replay, resting
from regard.explain.trace import OUTSIDE, Folded, Side, apart, check_number, layer_names, members, so_far
from regard.explain.views import View, chosen_weights
from regard.models.generator import AttentionPool
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.text.words import legible

Method = Literal[
    "attention",
    "attention-reading",
    "rollout",
    "norm",
    "alti",
    "zeroing",
    "integrated-gradients",
    "gradient",
    "saliency",
    "masking",
    "masking-unknown",
    "masking-removed",
]
METHODS: dict[str, str] = {  # what each number is
    "attention": "attention weight of the step that wrote the word",
    "attention-reading": "attention weight of the step that read the word",
    "rollout": "attention followed down through all layers, one half for each residual connection",
    "norm": "norm of what attention took from each token: weight times transformed value",
    "alti": "ALTI+: how near each token's part is to a block's output, followed down through all layers",
    "zeroing": "how far a layer's output rotates when a token's value is zero, followed down through all layers",
    "integrated-gradients": "mean gradient on the line from the text with unknown words, times the way",
    "gradient": "embedding times its gradient",
    "saliency": "norm of the gradient at each embedding",
    "masking": "decrease when the word's embedding is set to zero",
    "masking-unknown": "decrease with <unk> in place of the word",
    "masking-removed": "decrease when the word is left out of the source",
}
LOOKING = ("attention", "attention-reading", "norm")  # of single layers: source and prefix by themselves
FOLLOWING = ("rollout", "alti", "zeroing")  # of all layers: source and prefix together sum to one
POINTS, LEAST = 16, 4  # of integrated gradients, and of a model for which so many would cost more than USUAL
USUAL = 1 << 39  # see `Subject.work`
TOLERANCE = 0.01  # of the sum of integrated gradients
Maps = tuple[Tensor, Tensor | None] | None  # between pieces: all in all (R, C), and of every layer (L, R, C)
Half = tuple[Tensor, tuple[str, ...], Tensor | None] | None  # the same with names of columns


def word_map(
    model: Model,
    read: Side,
    written: Side,
    method: str = "masking",
    *,
    of: Of = "log-probability",
    aligner: Aligner | None = None,
    head: str = "best",
    special: bool = False,
    points: int = POINTS,
    under: Under = alone,
) -> Folded:
    """One matrix (T words, S words) by any method, of a finished output; of a language model, (T words, T words).

    For many sentences: nothing else is computed or kept. ``read`` is the source; language models do not use it.
    """
    check_method(method, of)
    subject = Subject(model, () if model.task == "language" else read.rows, written.ids, of, None, under)
    asked = Asked(subject, read, written, method, View(head=head, special=special), aligner, points)
    source, prefix, *_ = asked.halves(both=False)
    found = source or prefix
    assert found is not None
    return Folded(found[0], asked.rows[1], found[1])


def check_method(method: str, of: str = "log-probability", against: str = "") -> None:
    """Refuse a question without meaning, before anything is computed."""
    if method not in METHODS:
        raise SettingsError(f"method = {method}: no such method; {did_you_mean(method, METHODS)}")
    if of not in get_args(Of):
        raise SettingsError(f"of = {of}: cannot be explained; {did_you_mean(of, get_args(Of))}")
    if (against or of != "log-probability") and method in (*LOOKING, *FOLLOWING):
        asked = f"against = {against}" if against else f"of = {of}"
        raise SettingsError(
            f"{asked}: {method} explains a state, not a number; masking, gradient, saliency "
            "or integrated-gradients would be right"
        )
    if against and of != "log-probability":
        raise SettingsError(f"of = {of}: a contrast is a difference of log-probabilities; leave it out")


@dataclass(frozen=True)
class Asked:
    """One method asked of one finished output."""

    subject: Subject
    read: Side  # the source
    written: Side
    method: str
    view: View
    aligner: Aligner | None
    points: int

    @property
    def unit(self) -> str:
        if self.method in (*LOOKING, *FOLLOWING):
            return "share"
        if self.method == "saliency":
            return "norm"
        return "probability" if self.subject.of == "probability" and not self.subject.against else "nats"

    @property
    def sums(self) -> bool:
        """Whether a word's row is the sum of its pieces' rows, as log-probabilities add up; else it is their mean."""
        additive = self.subject.of in ("log-probability", "log-odds")
        return additive and self.method not in (*LOOKING, *FOLLOWING, "saliency")

    @property
    def rows(self) -> tuple[list[list[int]], tuple[str, ...]]:
        """The pieces of each row, and its name."""
        if self.subject.against is None:
            return self._members(self.written)
        step = self.subject.against[0]
        word = self.written.word_of[step]
        whole = self.view.words and word != OUTSIDE
        return [[0]], (self.written.words[word] if whole else legible(self.written.pieces[step]),)

    def _members(self, side: Side) -> tuple[list[list[int]], tuple[str, ...]]:
        return members(side if self.view.words else apart(side), special=self.view.special)

    def origin(self, against: str) -> str:
        """What the numbers are."""
        what = METHODS[self.method]
        if self.method in ("attention", "attention-reading") and self.view.head != "best":
            what += f"; layer {self.view.layer or 'all'}, head {self.view.head}"
        if self.method in (*LOOKING, *FOLLOWING):
            return what
        explained = f"log p of the word less log p of {against}" if against else self.subject.of
        return f"{explained}: {what}"

    def halves(self, *, both: bool = True) -> tuple[Half, Half, float | None, float | None]:
        """The parts of the source and of the prefix, folded, the completeness error, and that before weights of points
        were fitted. Unless ``both``, the prefix is only there where there is no source."""
        model, method = self.subject.model, self.method
        sides = {SOURCE: self.read, PREFIX: so_far(self.written)}
        places = self.subject.places if both else self.subject.places[:1]
        if method.startswith("masking"):
            how = cast("How", method.partition("-")[2] or "blank")
            self._check_how(how)
            kept = [place for place in places if how != "removed" or place == SOURCE]
            source, prefix = (self._masked(sides[place], place, how) if place in kept else None for place in sides)
            return source, prefix, None, None
        with torch.no_grad(), resting(model):
            found, error, missed = self._maps()
        folded = [
            self._folded(maps, sides[place]) if place in places and (maps := found.get(place)) is not None else None
            for place in sides
        ]
        if not any(folded):
            raise ModelError(f"method = {method}: {_missing(model)}")
        return folded[0], folded[1], error, missed

    def _check_how(self, how: How) -> None:
        task = self.subject.model.task
        if how != "blank" and (task == "language" or (how == "removed" and task == "label")):
            raise DataError(
                f"method = masking-{how}: would change what is written too; 'masking' would be right for this model"
            )

    def _masked(self, side: Side, place: str, how: How) -> Half:
        groups, names = self._members(side)
        rows = masking(self.subject, place, groups, how)
        return rows_of(rows, self.rows[0], sums=self.sums), names, None

    def _folded(self, maps: tuple[Tensor, Tensor | None], side: Side) -> Half:
        groups, names = self._members(side)

        def fold(values: Tensor) -> Tensor:
            columns = [values[..., group].sum(-1) for group in groups]
            across = torch.stack(columns, -1) if columns else values[..., :0]
            return rows_of(across, self.rows[0], sums=self.sums)

        whole, layers = maps
        return fold(whole), names, None if layers is None else fold(layers)

    def _maps(self) -> tuple[dict[str, Maps], float | None, float | None]:
        """Between pieces, by place, and both errors."""
        match self.method:
            case "gradient":
                return {place: (each, None) for place, each in gradient_times_input(self.subject).items()}, None, None
            case "saliency":
                return {place: (each, None) for place, each in saliency(self.subject).items()}, None, None
            case "integrated-gradients":
                points = self.points if self.points != POINTS else max(LEAST, min(POINTS, USUAL // self.subject.work))
                found, begin, end, missed = integrated_gradients(self.subject, points, tolerance=TOLERANCE)
                missing = sum(each.sum(-1) for each in found.values()) - (end - begin)
                error = float(missing.abs().sum() / (end - begin).abs().sum().clamp(min=1e-30))
                return {place: (each, None) for place, each in found.items()}, error, missed
            case "attention" | "attention-reading":
                return *self._attention(), None
            case "norm":
                return self._norms(), None, None
            case _:
                return *self._followed(), None

    def _replayed(self, detail: Literal["weights", "blocks"]) -> dict[str, Tensor]:
        subject = self.subject
        trace = replay(subject.model, subject.source, subject.targets, subject.under(), detail=detail)
        return dict(trace.tensors)

    def _attention(self) -> tuple[dict[str, Maps], float | None]:
        tensors, task = self._replayed("weights"), self.subject.model.task
        found: dict[str, Maps] = {}
        pool = tensors.get("pool.weights")
        if pool is not None:
            found[SOURCE] = chosen_weights(pool[None], View(head="mean"), None)[0], pool.mean(0)[None]
        elif task == "label":
            if self.subject.model.pool is None:
                found[SOURCE] = self._heads(tensors, "encoder", "self", None)
        else:
            found[SOURCE] = self._heads(tensors, "decoder", "cross", self.aligner)
            found[PREFIX] = self._heads(tensors, "decoder", "self", None)
        sums = [each[0].sum(-1) for each in found.values() if each is not None]
        return found, max((float((each - 1).abs().max()) for each in sums), default=None)

    def _heads(self, tensors: dict[str, Tensor], half: str, kind: str, aligner: Aligner | None) -> Maps:
        """What the view asks for, and the mean of each layer's heads."""
        names = layer_names(tensors, half, kind)
        if not names:
            return None
        weights = torch.stack([tensors[name] for name in names])  # (L, H, T, S)
        if self.method == "attention-reading":
            weights, aligner = torch.cat((weights[:, :, 1:], weights[:, :, -1:]), 2), None
        side = {"cross": "cross", "self": half}[kind]
        view = View(side, self.view.layer, self.view.head)
        if aligner is None and view.head == "best":
            view = View(side, self.view.layer, "mean")
        return chosen_weights(weights, view, aligner)[0], weights.mean(1)

    def _norms(self) -> dict[str, Maps]:
        model, tensors = self.subject.model, self._replayed("blocks")
        below, own, cross = norms(model, tensors)
        if model.task == "label" and model.pool is not None:
            if not isinstance(model.pool, AttentionPool):
                return {}
            below = shared(pool_block(model, tensors).parts.norm(dim=-1))[None]
        layers = {SOURCE: below if model.task == "label" else cross, PREFIX: own}
        return {place: (self._layer(each, mean=True), each) for place, each in layers.items() if each is not None}

    def _layer(self, layers: Tensor, *, mean: bool = False) -> Tensor:
        """The layer asked for, else the last or the mean of all."""
        if self.view.layer is None:
            return layers.mean(0) if mean else layers[-1]
        return layers[check_number("layer", self.view.layer, len(layers), first=1)]

    def _followed(self) -> tuple[dict[str, Maps], float | None]:
        model = self.subject.model
        if not is_transformer(model):
            raise ModelError(
                f"method = {self.method}: follows the layers of a Transformer, and this model is recurrent; attention, "
                "norm, masking, gradient, saliency or integrated-gradients would be right"
            )
        tensors, error = self._replayed("blocks"), 0.0
        match self.method:
            case "alti":
                below, above, error = alti(model, tensors)
            case "zeroing":
                below, above = mixed(*zeroing(model, tensors, self.subject.under()))
            case _:
                below, above = self._halves(tensors)
        size = len(self.written) if model.task == "language" else len(self.read)
        encoder, source, prefix = roll(below, above, size)
        if model.task == "label":
            if model.pool is not None:
                encoder = shared(self._pooled(pool_block(model, tensors).parts)) @ encoder
            found = {SOURCE: encoder}
        elif model.task == "language":
            found = {PREFIX: cast("Tensor", prefix)}
        else:
            found = {SOURCE: cast("Tensor", source), PREFIX: cast("Tensor", prefix)}
        rows = torch.stack([each[-1].sum(-1) for each in found.values()]).sum(0)
        return (
            {place: (self._layer(each), each) for place, each in found.items()},
            max(error, float((rows - 1).abs().max())),
        )

    def _halves(self, tensors: dict[str, Tensor]) -> tuple[list[Tensor], list[tuple[Tensor, Tensor | None]]]:
        """Rollout's; each layer is needed whole."""
        model = self.subject.model
        means = {
            (half, kind): [tensors[name].mean(0) for name in layer_names(tensors, half, kind)]
            for half, kind in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross"))
        }
        below, own, cross = means.values()
        if model.task != "label" and not own:
            raise ModelError(
                "method = rollout: this decoder keeps one vector of what is written and has no weights to follow; "
                "alti or zeroing would be right"
            )
        return halves(below, own, cross)

    def _pooled(self, parts: Tensor) -> Tensor:
        """How a pool mixes the states, (1, S), by the method's own measure."""
        whole = parts.sum(1, keepdim=True)  # (1, 1, D)
        match self.method:
            case "alti":
                near = whole.abs().sum(-1) - (whole - parts).abs().sum(-1)
                return near.clamp(min=0)
            case "zeroing":
                return (1 - torch.cosine_similarity(whole, whole - parts, -1)).clamp(min=0)
            case _:
                return parts.abs().sum(-1)


def is_transformer(model: Model) -> bool:
    halves = [getattr(model, half) for half in ("encoder", "decoder") if hasattr(model, half)]
    return all(isinstance(half, TransformerEncoder | TransformerDecoder) for half in halves)


def _missing(model: Model) -> str:
    pooled = model.task == "label" and model.pool is not None
    reason = "no attention leads to the label" if pooled else "this model has no attention"
    return f"{reason}; masking, gradient, saliency or integrated-gradients would be right"


def rows_of(values: Tensor, groups: Sequence[Sequence[int]], *, sums: bool) -> Tensor:
    """Rows of pieces into rows of words: (…, R, C) → (…, words, C)."""
    reduce: Callable[..., Tensor] = torch.sum if sums else torch.mean
    if not groups:
        return values[..., :0, :]
    return torch.stack([reduce(values[..., list(group), :], -2) for group in groups], -2)
