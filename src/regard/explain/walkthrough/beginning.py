"""The first steps: pieces, embeddings, positions."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from regard.explain.trace import Side
from regard.explain.walkthrough.step import Spot, Value
from regard.models.transformer import Positions
from regard.nn.embeddings import Embedding, Learned, OneHotEmbedding, Sinusoidal, VectorEmbedding
from regard.nn.words import LetterConvolution, SourceEmbedding, WordEmbedding
from regard.text.vocabulary import END, PAD, SPECIAL_TOKENS, START
from regard.text.words import spell

OFFSET = len(SPECIAL_TOKENS)  # the number of the letter that is byte 0
CODE = 100  # columns that a line of a snippet may take


def embedding_steps(spot: Spot, ids: Sequence[int], embedding: SourceEmbedding) -> Value:
    """From numbers to vectors, (T, D)."""
    board, side = spot.board, spot.side
    if isinstance(embedding, VectorEmbedding):
        return _from_vectors(spot, embedding)
    numbers = textwrap.fill(f"result = torch.tensor({list(ids)})", CODE, subsequent_indent="    ")
    pieces = spot.write("pieces", f"{side}.pieces", side, {}, numbers)
    recorded = board.seen(f"{side}.embedded")
    if isinstance(embedding, Embedding):
        inputs = {"ids": pieces, "table": board.weight(embedding.weight)}
        kind, found = "embedding", "table[ids]"
        if isinstance(embedding, OneHotEmbedding):
            kind, found = "one_hot", "torch.nn.functional.one_hot(ids, len(table)).to(table.dtype) @ table"
        snippet = [f"result = {found}{_times(embedding)}"]
        if embedding.zero in ids:
            snippet.append(f"result = result.masked_fill((ids == {embedding.zero})[:, None], 0.0)")
        return spot.write(kind, f"{side}.embedded", side, inputs, snippet, recorded=recorded)
    return _beside(spot, embedding, pieces)


def _from_vectors(spot: Spot, embedding: VectorEmbedding) -> Value:
    """Vectors of the source in the width of the model."""
    board, side, filters = spot.board, spot.side, embedding.filters
    rows = [[float(f"{number:.9g}") for number in each] for each in board.trace.source.letters]
    numbers = textwrap.wrap(f"result = torch.tensor({rows})", CODE, subsequent_indent="    ")
    assert filters.bias is not None
    inputs = {
        "x": spot.write("vectors", f"{side}.vectors", side, {}, numbers),
        "w": board.weight(filters.weight),
        "b": board.weight(filters.bias),
    }
    reach, recorded = filters.kernel_size[0], board.seen(f"{side}.embedded")
    if reach == 1:
        snippet = "result = x.to(w.dtype) @ w[:, :, 0].T + b"
        return spot.write("from_vectors", f"{side}.embedded", side, inputs, snippet, recorded=recorded)
    snippet = f"result = torch.nn.functional.conv1d(x.to(w.dtype).T[None], w, b, padding={reach // 2})[0].T"
    return spot.write("filtered", f"{side}.embedded", side, inputs, snippet, recorded=recorded)


def _beside(spot: Spot, embedding: WordEmbedding, pieces: Value) -> Value:
    """A learned vector and, beside it, one that is frozen, what the letters say, or both."""
    board, side, learned = spot.board, spot.side, embedding.learned
    recorded = board.seen(f"{side}.embedded")
    inputs = {"ids": pieces, "learned": board.weight(learned.weight)}
    parts = [f"learned[known]{_times(learned)}"]
    if embedding.vectors.shape[1]:
        inputs["frozen"] = board.weight(embedding.vectors)
        parts.append("frozen[ids]")
    if embedding.spelling is not None:
        inputs["spelled"] = _spelling(spot, embedding.spelling)
        parts.append("spelled")
    kind = {"frozen": "beside", "spelled": "beside_spelling"}[list(inputs)[2]] if len(inputs) == 3 else "beside_both"
    snippet = [
        f"known = ids.masked_fill(ids >= len(learned), {embedding.unknown})",
        f"result = torch.cat(({', '.join(parts)}), -1)",
    ]
    if embedding.project is None:
        return spot.write(kind, f"{side}.embedded", side, inputs, snippet, recorded=recorded)
    x = spot.write(kind, f"{side}.beside", side, inputs, snippet)
    inputs = {"x": x, **board.linear(embedding.project)}
    return spot.write("projected", f"{side}.embedded", side, inputs, "result = x @ w.T + b", recorded=recorded)


def _spelling(spot: Spot, spelling: LetterConvolution) -> Value:
    """What the letters say, (T, features): written out, since the model shows it only as part of the embedding."""
    board, side = spot.board, spot.side
    read = spot.write("letters", f"{side}.letters", side, {}, _letters(board.trace.source))
    filters = spelling.filters
    assert filters.bias is not None
    inputs = {
        "letters": read,
        "table": board.weight(spelling.letters.weight),
        "w": board.weight(filters.weight),
        "b": board.weight(filters.bias),
    }
    snippet = [
        f"x = table[letters]{_times(spelling.letters)} * (letters != {PAD})[..., None]",
        f"found = torch.nn.functional.conv1d(x.transpose(1, 2), w, b, padding={filters.kernel_size[0] // 2}).relu()",
        "result = found.amax(2)",
    ]
    return spot.write("spelling", f"{side}.spelling", side, inputs, snippet)


def _letters(source: Side) -> list[str]:
    """Code for the letters (T, L) of all pieces: made of the pieces or, where those are not known, as numbers."""
    places = len(source.letters[0])
    if any(spell(piece, places) != letters for piece, letters in zip(source.pieces, source.letters, strict=True)):
        numbers = [list(each) for each in source.letters]
        return textwrap.wrap(f"result = torch.tensor({numbers})", CODE, subsequent_indent="    ")
    first = places // 2
    return [
        *textwrap.wrap(f"pieces = {list(source.pieces)}", CODE, subsequent_indent="    "),
        f"rows = [[{START}, *(byte + {OFFSET} for byte in piece.encode()), {END}] for piece in pieces]",
        f"rows = [row if len(row) <= {places} else row[:{first}] + row[-{places - first}:] for row in rows]",
        f"result = torch.tensor([row + [{PAD}] * ({places} - len(row)) for row in rows])",
    ]


def _times(embedding: Embedding) -> str:
    if embedding.scale == 1.0:
        return ""
    return f" * {embedding.width}**0.5" if embedding.scale == embedding.width**0.5 else f" * {embedding.scale}"


def _waves(positions: Sinusoidal, length: int, x: Value) -> list[str]:
    """Code for the sinusoids of a text."""
    width, begin = positions.width, positions.begin
    first = f"{begin}, {begin + length}" if begin else f"{length}"
    least = max((width - 1) // 2 * 2, 1) if positions.to_last else width  # the last frequency is 1/10000, or the next
    beside = -1 if positions.interleaved else 1
    return [
        f"place = torch.arange({first}, dtype=torch.float64)[:, None]",
        f"angle = place * 10000.0 ** (-torch.arange(0, {width}, 2, dtype=torch.float64) / {least})",
        f"waves = torch.stack((angle.sin(), angle.cos()), {beside}).flatten(1)[:, :{width}]",
        f"result = waves.float().to({x.tensor.dtype})  # the table is kept in single precision",
    ]


def position_steps(spot: Spot, positions: Positions, x: Value) -> Value:
    """Embeddings with positions, where positions are added."""
    board, side, length = spot.board, spot.side, len(x.tensor)
    match positions:
        case Sinusoidal():
            snippet = _waves(positions, length, x)
            kind = ("sinusoidal" if positions.interleaved else "halves") + "_last" * positions.to_last
            places = spot.write(kind, f"{side}.positions", side, {}, snippet)
        case Learned():
            inputs = {"table": board.weight(positions.weight)}
            snippet = [f"result = table[torch.arange({length})]"]
            places = spot.write("learned", f"{side}.positions", side, inputs, snippet)
        case _:
            return x
    inputs = {"x": x, "position": places}
    recorded = board.seen(f"{side}.placed")
    return spot.write("placed", f"{side}.placed", side, inputs, "result = x + position", recorded=recorded)
