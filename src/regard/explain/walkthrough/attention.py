"""Steps of one head of any member of the attention family, in the order of `regard.nn.attention`."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from regard.explain.walkthrough.step import AxisLabels, Board, Value
from regard.nn.attention import (
    AdditiveScore,
    Attention,
    CosineScore,
    GeneralScore,
    InnerScore,
    MonotonicWindow,
    PredictedWindow,
    relu,
    softmax,
)


@dataclass(frozen=True)
class Asking:
    """One head of an attention: which positions are queries, and which are keys."""

    board: Board
    attention: Attention
    place: str  # decoder.1.cross
    part: str
    head: int
    query: Value  # (T, D)
    source: Value  # (S, D)
    asked_by: AxisLabels
    asked: AxisLabels
    first: int = 0  # the position of the first query, which is its row in the trace too
    row: int = 0  # the query walked with
    causal: bool = False
    predicts: AxisLabels | None = None  # in a decoder: what is predicted where each query stands

    @property
    def rows(self) -> AxisLabels:
        """Rows of scores and weights, named as a heat map names them: in a decoder, after the piece predicted."""
        return self.asked_by if self.predicts is None else self.predicts

    def write(
        self,
        kind: str,
        name: str,
        inputs: dict[str, Value],
        snippet: str | list[str],
        *axes: AxisLabels,
        recorded: bool,
    ) -> Value:
        """A step with a row for each query; ``recorded`` says whether the trace has it."""
        own = self.seen(name) if recorded else None
        return self.board.write(
            kind,
            f"{self.place}.{name}",
            self.part,
            inputs,
            snippet,
            axes=(self.rows if axes else self.asked_by, *axes),
            recorded=own,
            row=self.row,
        )

    def seen(self, name: str) -> Value:
        """What the trace has of these queries and this head; a window's centre is the same for all heads."""
        value = self.board.seen(f"{self.place}.{name}").at(0 if name == "centre" else self.head)
        rows = self.asked_by.size
        return value if len(value.tensor) == rows else value.part(self.first, self.first + rows)


def attention_steps(asking: Asking) -> Value:
    """From what asks (T, D) and what is asked (S, D) to the contexts (T, D) of all heads."""
    query, keys, values = _heads_view(asking)
    query, keys = _rotated(asking, query, "queries"), _rotated(asking, keys, "keys")
    centre = _centre(asking)
    weights = _weights(asking, _masked(asking, _scores(asking, query, keys), centre), centre)
    context = asking.write(
        "context", "contexts", {"weights": weights, "v": values}, "result = weights @ v", recorded=True
    )
    return _together(asking, context)


def _heads_view(asking: Asking) -> tuple[Value, Value, Value]:
    """Queries, keys and values of the head, (T, K), (S, K) and (S, K)."""
    projections = asking.attention.projections
    if projections is None:
        if asking.attention.heads == 1:
            return asking.query, asking.source, asking.source
        keys = _slice(asking, asking.source, "keys")
        return _slice(asking, asking.query, "queries"), keys, keys
    return (
        _projected(asking, asking.query, projections.query, "queries"),
        _projected(asking, asking.source, projections.key, "keys"),
        _projected(asking, asking.source, projections.value, "values"),
    )


def _slice(asking: Asking, x: Value, name: str) -> Value:
    size = x.tensor.shape[1] // asking.attention.heads
    begin = asking.head * size
    return _for_each_key(asking, "slice", name, {"x": x}, f"result = x[:, {begin}:{begin + size}]")


def _projected(asking: Asking, x: Value, layer: nn.Linear, name: str) -> Value:
    size = layer.out_features // asking.attention.heads
    rows = asking.head * size, (asking.head + 1) * size
    board = asking.board
    inputs = {"x": x, "w": board.weight(layer.weight).part(*rows), "b": board.weight(layer.bias).part(*rows)}
    return _for_each_key(asking, name, name, inputs, "result = x @ w.T + b")


def _for_each_key(asking: Asking, kind: str, name: str, inputs: dict[str, Value], snippet: str) -> Value:
    """A step with a row for each key or, of queries, for each query."""
    if name == "queries":
        return asking.write(kind, name, inputs, snippet, recorded=True)
    recorded = asking.board.seen(f"{asking.place}.{name}").at(asking.head)
    full = f"{asking.place}.{name}"
    return asking.board.write(kind, full, asking.part, inputs, snippet, axes=(asking.asked,), recorded=recorded)


def _rotated(asking: Asking, x: Value, name: str) -> Value:
    if asking.attention.rotary is None:
        return x
    axis = asking.asked_by if name == "queries" else asking.asked
    snippet = [
        "place = torch.arange(len(x), dtype=torch.float64)[:, None]",
        "angle = place * 10000.0 ** (-torch.arange(0, x.shape[1], 2, dtype=torch.float64) / x.shape[1])",
        "sine, cosine = angle.sin().float(), angle.cos().float()  # tables are kept in single precision",
        "even, odd = x[:, 0::2], x[:, 1::2]",
        "result = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(1)",
    ]
    return asking.board.write("rotated", f"{asking.place}.rotated_{name}", asking.part, {"x": x}, snippet, axes=(axis,))


def _scores(asking: Asking, query: Value, keys: Value) -> Value:
    score, head, board = asking.attention.score, asking.head, asking.board
    inputs = {"q": query, "k": keys}
    match score:
        case AdditiveScore():
            inputs["w_q"], inputs["w_k"] = (
                board.weight(part).at(head) for part in (score.query_weight, score.key_weight)
            )
            inputs["v"] = board.weight(score.combine).at(head)
            bias = ""
            if score.bias is not None:
                inputs["b"], bias = board.weight(score.bias).at(head), " + b"
            snippet = [
                f"query, keys = q @ w_q{bias}, k @ w_k",
                "hidden = torch.tanh(query[:, None] + keys[None])  # every query with every key",
                "result = hidden @ v",
            ]
            kind = "concat" if score.bias is None else "additive"
            return asking.write(kind, "scores", inputs, snippet, asking.asked, recorded=True)
        case GeneralScore():
            inputs["w"] = board.weight(score.weight).at(head)
            return asking.write("general", "scores", inputs, "result = q @ w @ k.T", asking.asked, recorded=True)
        case CosineScore():
            inputs["sharpness"] = board.weight(score.sharpness).at(head)
            snippet = [
                "q = torch.nn.functional.normalize(q, dim=-1)",
                "k = torch.nn.functional.normalize(k, dim=-1)",
                "result = sharpness * q @ k.T",
            ]
            return asking.write("cosine", "scores", inputs, snippet, asking.asked, recorded=True)
        case _:
            return _inner(asking, score, inputs)


def _inner(asking: Asking, score: InnerScore, inputs: dict[str, Value]) -> Value:
    if score.scale == 1.0:
        return asking.write("dot", "scores", inputs, "result = q @ k.T", asking.asked, recorded=True)
    products = asking.write("dot", "products", inputs, "result = q @ k.T", asking.asked, recorded=True)
    width = inputs["q"].tensor.shape[1]
    snippet = f"result = products / {width}**0.5"
    return asking.write("scaled", "scores", {"products": products}, snippet, asking.asked, recorded=True)


def _centre(asking: Asking) -> Value | None:
    """Where a window stands, (T, 1)."""
    window, size = asking.attention.window, asking.asked.size
    if window is None:
        return None
    if isinstance(window, MonotonicWindow):
        last = asking.first + asking.asked_by.size
        snippet = f"result = torch.arange({asking.first}, {last})[:, None].clamp(max={size - 1})"
        return asking.write("monotonic", "centre", {}, snippet, recorded=True)
    inputs = {"q": asking.query}
    inputs["w"], inputs["v"] = (asking.board.weight(part.weight) for part in (window.hidden, window.centre))
    snippet = f"result = {size} * torch.sigmoid(torch.tanh(q @ w.T) @ v.T)"
    return asking.write("predicted", "centre", inputs, snippet, recorded=True)


def _masked(asking: Asking, scores: Value, centre: Value | None) -> Value:
    """Scores with what is hidden at minus infinity. One sentence has no padding, so it may be that nothing is."""
    inputs, lines = {"scores": scores}, []
    if centre is not None and asking.attention.window is not None:
        inputs["centre"] = centre
        reach = asking.attention.window.reach
        lines = [f"hidden = (torch.arange(scores.shape[1]) - centre).abs() > {reach}  # outside the window"]
    if asking.causal:
        lines.append("ahead = torch.ones_like(scores, dtype=torch.bool).triu(1)  # written later")
    if not lines:
        return scores
    hidden = "hidden | ahead" if len(lines) == 2 else "ahead" if asking.causal else "hidden"
    lines.append(f'result = scores.masked_fill({hidden}, float("-inf"))')
    return asking.write("masked", "masked", inputs, lines, asking.asked, recorded=False)


def _weights(asking: Asking, scores: Value, centre: Value | None) -> Value:
    attention, keys = asking.attention, asking.asked
    kind, snippet = "softmax", ["result = scores.softmax(-1)"]
    if attention.normaliser is relu:
        kind = "relu"
        snippet = ["positive = scores.relu()", "total = positive.sum(-1, keepdim=True)"]
        snippet.append("result = positive / torch.where(total > 0, total, 1.0)")
    elif attention.normaliser is not softmax:
        kind, name = "normaliser", attention.normaliser.__name__
        snippet = [f"from regard.nn.attention import {name}", f"result = {name}(scores, scores > float('-inf'))"]
    window = attention.window if isinstance(attention.window, PredictedWindow) else None
    name = "probabilities" if attention.hard else "weights" if window is None else "shares"
    weights = asking.write(kind, name, {"scores": scores}, snippet, keys, recorded=name != "shares")
    if attention.hard:
        name = "weights" if window is None else "choice"
        snippet = [
            "place = probabilities.argmax(-1, keepdim=True)",
            "result = torch.zeros_like(probabilities).scatter(-1, place, 1.0)",
        ]
        weights = asking.write("hard", name, {"probabilities": weights}, snippet, keys, recorded=window is None)
    if window is None or centre is None:
        return weights
    snippet = [
        "distance = torch.arange(weights.shape[1]) - centre",
        f"result = weights * torch.exp(-(distance**2) / (2 * ({window.reach} / 2) ** 2))",
    ]
    inputs = {"weights": weights, "centre": centre}
    return asking.write("focus", "weights", inputs, snippet, keys, recorded=True)


def _together(asking: Asking, context: Value) -> Value:
    """All heads' contexts side by side, and their projection."""
    attention, board, rows = asking.attention, asking.board, asking.asked_by.size
    if attention.heads > 1:
        every = board.seen(f"{asking.place}.contexts")
        if every.tensor.shape[1] != rows:
            end = asking.first + rows
            every = Value(every.tensor[:, asking.first : end], f"{every.origin}[:, {asking.first}:{end}]")
        snippet = "result = contexts.transpose(0, 1).flatten(1)"
        context = asking.write("heads", "heads", {"contexts": every}, snippet, recorded=False)
    if attention.projections is None:
        return context
    inputs = {"x": context, **board.linear(attention.projections.output)}
    return asking.write("output_map", "projected", inputs, "result = x @ w.T + b", recorded=False)
