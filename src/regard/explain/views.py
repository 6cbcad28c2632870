"""Which picture of a trace: whose attention, of which head, between pieces or between words.

Row t is the distribution that was used when ``rows[t]`` was predicted. People count layers and heads from 1, and so
does a `View`; traces and aligners count from 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.errors import SettingsError
from regard.explain.alignment import Aligner
from regard.explain.heatmap import HeatMap, Numbers, reaching
from regard.explain.recurrent import filling, gates
from regard.explain.trace import SIDES, Folded, Side, Trace, apart, check_number, fold, members
from regard.text.words import legible

NAMES: dict[str, str] = {
    "cross": "cross-attention",
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
}
VISIBLE = 0.005  # what a sum of two decimals shows


@dataclass(frozen=True)
class View:
    """What to show. ``head`` is a number from 1, ``mean``, or ``best``: the run's aligner, where there is one."""

    side: str = "cross"
    layer: int | None = None  # from 1; none means all of them
    head: str = "best"
    words: bool = True  # or the pieces that the model reads
    special: bool = False  # whether <end> and its like have rows and columns


def sides_of(trace: Trace) -> list[str]:
    """The attention there is, cross first."""
    return [side for side in SIDES if trace.layers(side)]


def first_view(trace: Trace) -> View:
    """The default: cross-attention where there is some, else another attention of the model."""
    return View(side=(*sides_of(trace), "cross")[0])


def attention_map(trace: Trace, view: View, aligner: Aligner | None = None) -> HeatMap:
    """One picture of a trace's attention."""
    weights = trace.weights(view.side)  # (L, H, T, S)
    chosen, origin = chosen_weights(weights, view, aligner)
    return _between(trace, chosen, view, origin)


def head_maps(trace: Trace, view: View) -> list[list[HeatMap]]:
    """Every head by itself: a list for each layer."""
    weights = trace.weights(view.side)
    return [
        [
            replace(
                _between(trace, weights[layer, head], view, _origin(view.side, layer, head)),
                title=f"{layer + 1}.{head + 1}",
            )
            for head in range(weights.shape[1])
        ]
        for layer in range(weights.shape[0])
    ]


def chosen_weights(weights: Tensor, view: View, aligner: Aligner | None) -> tuple[Tensor, str]:
    """The (T, S) that a view asks for, and what to call it."""
    layers, heads = weights.shape[:2]
    layer = None if view.layer is None else check_number("layer", view.layer, layers, first=1)
    if view.head.isdecimal():
        head = check_number("head", int(view.head), heads, first=1)
        if layer is None and layers > 1:
            raise SettingsError(f"head = {view.head}: of which layer? give --layer too, 1 to {layers}")
        return weights[layer or 0, head], _origin(view.side, layer or 0, head)
    if view.head not in ("best", "mean"):
        raise SettingsError(f"head = {view.head}: not a head; a number from 1, 'mean' or 'best' would be right")
    if view.head == "best" and layer is None and view.side == "cross" and aligner is not None:
        late = "; each row is that of the step that read the word" if aligner.late else ""
        shifted = torch.cat((weights[:, :, 1:], weights[:, :, -1:]), 2) if aligner.late else weights
        return aligner.weights(shifted), aligner.describe() + late
    some = weights if layer is None else weights[layer : layer + 1]
    return some.mean((0, 1)), f"{NAMES[view.side]}, {_mean(layers, heads, layer)}"


def _mean(layers: int, heads: int, layer: int | None) -> str:
    if layer is not None:
        return f"layer {layer + 1}, " + ("its one head" if heads == 1 else f"mean of its {heads} heads")
    return "its one head" if layers * heads == 1 else f"mean of all {layers * heads} heads"


def _origin(side: str, layer: int, head: int) -> str:
    return f"{NAMES[side]}, layer {layer + 1}, head {head + 1}"


def _between(trace: Trace, weights: Tensor, view: View, origin: str) -> HeatMap:
    """Weights (T, S) with the labels of both sides, between words if asked."""
    rows, columns = trace.axes(view.side)
    if not view.words:
        rows, columns = apart(rows), apart(columns)
    special = _shows_special(rows, columns, view)
    folded = fold(weights, rows, columns, special=special)
    return HeatMap(
        title=NAMES[view.side],
        rows=folded.rows,
        columns=folded.columns,
        values=numbers(folded.weights),
        origin=origin + _missing(weights, members(rows, special=special)[0], folded),
        column_name={"cross": "source", "encoder": "source", "decoder": "read so far"}[view.side],
        sums=True,
    )


def _missing(weights: Tensor, rows: list[list[int]], folded: Folded) -> str:
    """Why rows do not sum to 1, where they do not: left out of the picture, or never distributed."""
    totals = torch.stack([weights[places].sum(-1).mean() for places in rows])
    special = bool((totals - folded.weights.sum(-1) > VISIBLE).any())
    if bool((totals < 1 - VISIBLE).any()):
        also = "; special tokens are left out" if special else ""
        return f"{also}; the weights of a window or of ReLU need not sum to 1"
    return "; what is missing from Σ = 1 is on special tokens" if special else ""


def _shows_special(rows: Side, columns: Side, view: View) -> bool:
    """Where nothing but special tokens was read or written they are shown, so that there is something to see."""
    return view.special or not all(members(side, special=False)[0] for side in (rows, columns))


def numbers(values: Tensor) -> Numbers:
    """A (T, S) as plain numbers."""
    return tuple(map(tuple, values.detach().double().cpu().tolist()))


# Importance


def masking_map(trace: Trace, effect: Folded) -> HeatMap:
    """How far the log-probability of each output word falls when a source word is blanked out."""
    output = "label" if trace.task == "label" else "output word"
    return reaching(
        HeatMap(
            title="effect of masking",
            rows=labelled(trace, effect.rows),
            columns=effect.columns,
            values=numbers(effect.weights),
            origin=f"log p of the {output}, less log p with a word's embedding set to zero",
            column_name="blanked out",
            scale="diverging",
            unit="nats",
        )
    )


def labelled(trace: Trace, rows: tuple[str, ...]) -> tuple[str, ...]:
    """Tags with their words."""
    names = next((side for side in (trace.source.words, trace.source.pieces) if len(side) == len(rows)), ())
    if trace.task != "label" or not names:
        return rows
    return tuple(f"{legible(name)} {label}" for name, label in zip(names, rows, strict=True))


def difference_map(trace: Trace, attention: Aligner, effect: Folded) -> HeatMap:
    """Where attention and masking disagree: the difference of both, with rows as shares."""
    looked = attention.weights(attention.rows(trace).by_word)  # (T words, S words)
    return HeatMap(
        title="attention less masking",
        rows=effect.rows,
        columns=effect.columns,
        values=numbers(shares(looked) - shares(effect.weights.clamp(min=0).to(looked))),
        origin="share of the row's attention, less share of its masking effects above zero; special tokens left out",
        column_name="source",
        scale="diverging",
        unit="share",
    )


def shares(values: Tensor) -> Tensor:
    """Each row divided by its sum; a row of zeros stays one."""
    total = values.sum(-1, keepdim=True)
    return values / torch.where(total > 0, total, 1.0)


def saliency_map(trace: Trace, norms: Tensor, read: Side, view: View) -> HeatMap:
    """Gradient norms (T, S) in place of attention, each row as shares of one."""
    rows, columns = (trace.target, read) if view.words else (apart(trace.target), apart(read))
    folded = fold(shares(norms), rows, columns, special=_shows_special(rows, columns, view))
    return HeatMap(
        title="gradient saliency",
        rows=folded.rows,
        columns=folded.columns,
        values=numbers(folded.weights),
        origin="norm of the gradient of the word's log-odds at each embedding, as a share of its row",
        column_name="source" if trace.task != "language" else "read so far",
        sums=True,
        unit="share",
    )


# Recurrent models


def gate_maps(trace: Trace) -> list[HeatMap]:
    """The mean of every gate over the text: one picture for each side."""
    found = gates(trace)
    pictures = []
    for side, columns in (("encoder", trace.source), ("decoder", trace.target)):
        views = [view for view in found if view.name.startswith(f"{side}.")]
        if views:
            pictures.append(
                HeatMap(
                    title=f"gates of the {side}",
                    rows=tuple(_cell_name(view.name) for view in views),
                    columns=tuple(map(legible, columns.pieces)),
                    values=numbers(torch.stack([view.mean for view in views])),
                    origin="mean over the units of a gate: 0 closed, 1 open",
                    column_name="read" if side == "encoder" else "the step that wrote",
                    unit="open",
                )
            )
    return pictures


def state_maps(trace: Trace) -> list[HeatMap]:
    """How the context vector fills: how like the last state, and how far each token moved the state."""
    found = filling(trace)
    alike = HeatMap(
        title="likeness to the last state",
        rows=tuple(_cell_name(one.name) for one in found),
        columns=tuple(map(legible, trace.source.pieces)),
        values=numbers(torch.stack([one.likeness for one in found])),
        origin="cosine of the encoder's state after each token with its last state",
        column_name="read",
        scale="diverging",
        unit="cosine",
    )
    moved = replace(
        alike,
        title="movement of the state",
        values=numbers(torch.stack([one.change for one in found])),
        origin="how far each token moved the encoder's state, as a share of all movement",
        scale="sequential",
        sums=True,
        unit="share",
    )
    return [alike, moved]


def _cell_name(name: str) -> str:
    """``encoder.0.cell.backward.forget`` → ``1 backward forget``"""
    _, layer, _, *rest = name.split(".")
    return " ".join((str(int(layer) + 1), *rest))
