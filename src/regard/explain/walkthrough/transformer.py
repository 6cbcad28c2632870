"""Steps of one Transformer layer, and of the way to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from regard.explain.walkthrough.attention import Asking, attention_steps
from regard.explain.walkthrough.beginning import embedding_steps, position_steps
from regard.explain.walkthrough.step import AxisLabels, Spot, Value
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn.attention import Attention
from regard.nn.layers import FeedForward, GatedFeedForward, LayerNorm, RMSNorm
from regard.nn.transformer import SSRU, Norm, Residual


def _asking(spot: Spot, attention: Attention, kind: str, query: Value) -> Asking:
    """The attention of this layer that asks its own side."""
    return Asking(
        board=spot.board,
        attention=attention,
        place=f"{spot.place}.{kind}",
        part=spot.side,
        head=spot.head,
        query=query,
        source=query,
        asked_by=spot.axis,
        asked=spot.axis,
        row=spot.row,
        predicts=spot.board.predicted if spot.side == "decoder" else None,
    )


def encoder_steps(spot: Spot, encoder: TransformerEncoder) -> None:
    """Numbers, embeddings, positions, and one layer."""
    x = _input(spot, encoder, spot.board.trace.source.ids)
    layer = encoder.layers[spot.level]

    def attend(inner: Value) -> Value:
        return attention_steps(_asking(spot, layer.attention, "self", inner))

    x = _residual(spot, layer.residuals[0], x, attend, ("self", spot.side, "attended"))
    x = _residual(spot, layer.residuals[1], x, _think(spot, layer.feed_forward), ("feed", spot.side, "states"))
    _last_norm(spot, encoder.norm, len(encoder.layers), x, "states")


def decoder_steps(spot: Spot, decoder: TransformerDecoder, read: Sequence[int], source: AxisLabels) -> Value:
    """The same for a decoder, which also asks the source where there is one. Gives the features (T, D)."""
    board = spot.board
    x = _input(spot, decoder, read)
    layer = decoder.layers[spot.level]

    def look_back(inner: Value) -> Value:
        if layer.attention is None:
            assert layer.recurrence is not None
            return _recurrence(spot, layer.recurrence, inner)
        return attention_steps(replace(_asking(spot, layer.attention, "self", inner), causal=True))

    x = _residual(spot, layer.residuals[0], x, look_back, ("self", spot.side, "attended"))
    if (cross := layer.cross) is not None:

        def ask(inner: Value) -> Value:
            asking = _asking(spot, cross, "cross", inner)
            states = board.seen("encoder.states")
            return attention_steps(replace(asking, source=states, asked=source, part="cross"))

        x = _residual(spot, layer.residuals[1], x, ask, ("cross", "cross", "crossed"))
    x = _residual(spot, layer.residuals[-1], x, _think(spot, layer.feed_forward), ("feed", spot.side, "states"))
    return _last_norm(spot, decoder.norm, len(decoder.layers), x, "features")


def _input(spot: Spot, stack: TransformerEncoder | TransformerDecoder, ids: Sequence[int]) -> Value:
    """What the layer reads: the placed embeddings, or the states of the layer below."""
    x = embedding_steps(spot, ids, stack.embedding)
    x = position_steps(spot, stack.positions, x)
    if stack.embedding_norm is not None:
        name = f"{spot.side}.normed"
        x = _norm(spot, stack.embedding_norm, x, name, spot.side, recorded=spot.board.seen(name))
    return x if spot.level == 0 else spot.board.seen(f"{spot.side}.{spot.level - 1}.states")


def _residual(
    spot: Spot, residual: Residual, x: Value, sublayer: Callable[[Value], Value], names: tuple[str, str, str]
) -> Value:
    """``norm(x + f(x))`` or ``x + f(norm(x))``; the result is recorded under the last of ``names``."""
    inside, part, outside = names
    recorded = spot.seen(outside)
    after = f"{spot.place}.{outside}"
    if residual.before:
        found = sublayer(_norm(spot, residual.norm, x, f"{spot.place}.{inside}.norm", part))
        return spot.write("sum", after, part, {"x": x, "found": found}, "result = x + found", recorded=recorded)
    added = {"x": x, "found": sublayer(x)}
    total = spot.write("sum", f"{spot.place}.{inside}.sum", part, added, "result = x + found")
    return _norm(spot, residual.norm, total, after, part, recorded=recorded)


def _recurrence(spot: Spot, ssru: SSRU, x: Value) -> Value:
    """What an SSRU keeps of all pieces so far."""
    board = spot.board

    def write(name: str, inputs: dict[str, Value], snippet: str | list[str]) -> Value:
        full = f"{spot.place}.cell.{name}"
        return spot.write(f"ssru_{name}", full, spot.side, inputs, snippet, recorded=board.seen(full))

    forget = write("forget", {"x": x, **board.linear(ssru.forget)}, "result = torch.sigmoid(x @ w.T + b)")
    candidate = write("candidate", {"x": x, "w": board.weight(ssru.candidate.weight)}, "result = x @ w.T")
    loop = [
        "c, cells = torch.zeros_like(g[0]), []",
        "for f_t, g_t in zip(f, g):",
        "    c = f_t * c + (1 - f_t) * g_t",
        "    cells.append(c)",
        "result = torch.stack(cells)",
    ]
    cell = write("cell", {"f": forget, "g": candidate}, loop)
    return write("hidden", {"c": cell}, "result = c.relu()")


def _norm(spot: Spot, norm: Norm, x: Value, name: str, part: str, *, recorded: Value | None = None) -> Value:
    board = spot.board
    inputs = {"x": x, "gain": board.weight(norm.gain)}
    if isinstance(norm, RMSNorm):
        snippet = [
            f"size = torch.sqrt(x.square().mean(-1, keepdim=True) + {norm.epsilon})",
            "result = gain * x / size",
        ]
        return spot.write("rms_norm", name, part, inputs, snippet, recorded=recorded)
    inputs["shift"] = board.weight(norm.shift)
    if isinstance(norm, LayerNorm):
        snippet = ["mean = x.mean(-1, keepdim=True)", "variance = x.var(-1, correction=0, keepdim=True)"]
        kind = "layer_norm"
    else:
        inputs |= {"mean": board.weight(norm.running_mean), "variance": board.weight(norm.running_variance)}
        snippet, kind = [], "batch_norm"
    snippet.append(f"result = gain * (x - mean) / torch.sqrt(variance + {norm.epsilon}) + shift")
    return spot.write(kind, name, part, inputs, snippet, recorded=recorded)


def _think(spot: Spot, network: FeedForward | GatedFeedForward) -> Callable[[Value], Value]:
    """The feed-forward network: wide and back."""
    board, name = spot.board, f"{spot.place}.feed"

    def steps(x: Value) -> Value:
        if isinstance(network, GatedFeedForward):
            inputs = {"x": x, "w": board.weight(network.expand.weight), "gate": board.weight(network.gate.weight)}
            snippet = "result = torch.nn.functional.silu(x @ gate.T) * (x @ w.T)"
            hidden = spot.write("gated", f"{name}.hidden", spot.side, inputs, snippet)
            inputs = {"h": hidden, "w": board.weight(network.contract.weight)}
            return spot.write("contract_plain", f"{name}.found", spot.side, inputs, "result = h @ w.T")
        snippet = f"result = torch.nn.functional.{network.activation.__name__}(x @ w.T + b)"
        hidden = spot.write("expand", f"{name}.hidden", spot.side, {"x": x, **board.linear(network.expand)}, snippet)
        inputs = {"h": hidden, **board.linear(network.contract)}
        return spot.write("contract", f"{name}.found", spot.side, inputs, "result = h @ w.T + b")

    return steps


def _last_norm(spot: Spot, norm: Norm | None, depth: int, x: Value, name: str) -> Value:
    """What leaves the stack: the last layer's states, which may pass one more norm."""
    top = x if spot.level == depth - 1 else spot.board.seen(f"{spot.side}.{depth - 1}.states")
    if norm is None:
        return top
    recorded = spot.board.seen(f"{spot.side}.{name}")
    return _norm(spot, norm, top, f"{spot.side}.{name}", spot.side, recorded=recorded)
