"""The last steps: pools of labellers, the output layer, the softmax, and the probability of what was chosen."""

from __future__ import annotations

from torch import Tensor

from regard.explain.walkthrough.attention import Asking, attention_steps
from regard.explain.walkthrough.board import Board, Value, positions
from regard.explain.walkthrough.recurrent import context_steps
from regard.models.generator import AttentionPool, Encoder, FinalPool, MaxPool, MeanPool, Pool
from regard.models.recurrent import RecurrentEncoder


def pool_steps(board: Board, pool: Pool, encoder: Encoder) -> Value:
    """One vector (D,) of all states."""
    states = board.seen("encoder.states")
    match pool:
        case MeanPool():
            return board.write("mean_pool", "pool.mean", "output", {"states": states}, "result = states.mean(0)")
        case MaxPool():
            return board.write("max_pool", "pool.max", "output", {"states": states}, "result = states.amax(0)")
        case FinalPool():
            assert isinstance(encoder, RecurrentEncoder)
            return context_steps(board, encoder, encoder.stack.depth - 1)[0]
        case AttentionPool():
            asking = Asking(
                board=board,
                attention=pool.attention,
                place="pool",
                part="output",
                head=0,
                query=board.weight(pool.question).as_row(),
                source=states,
                asked_by=positions("question", ("question",)),
                asked=board.source,
            )
            return attention_steps(asking).only_row()


def output_steps(board: Board, x: Value, weight: Tensor, bias: Tensor, row: int) -> None:
    """Features (D,), scores of all words, probabilities, and that of the word in the output."""
    chosen = board.trace.target.ids[row]
    logits = board.seen("logits")
    logits = logits.at(row) if logits.tensor.dim() == 2 else logits  # a pooled text has one row
    axis = board.words(logits.tensor, chosen)
    inputs = {"x": x, "w": board.weight(weight), "b": board.weight(bias)}
    scores = board.write("logits", "logits", "output", inputs, "result = w @ x + b", axes=(axis,), recorded=logits)
    probabilities = board.write(
        "probabilities", "probabilities", "output", {"logits": scores}, "result = logits.softmax(-1)", axes=(axis,)
    )
    board.write(
        "probability", "probability", "output", {"probabilities": probabilities}, f"result = probabilities[{chosen}]"
    )
