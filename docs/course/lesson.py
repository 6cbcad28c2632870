"""What the lessons share: two kinds of pictures, a task that trains in seconds, and the checks of the exercises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.explain.heatmap import HeatMap, reaching
from regard.models.generator import EncoderDecoder
from regard.show import pictures
from regard.show.pictures import Chart, Grid, Point, Series
from regard.show.svg import document
from regard.text.vocabulary import END, PAD, START

torch.set_printoptions(precision=4, sci_mode=False, linewidth=110)


class Picture:
    """A picture that a notebook draws."""

    def __init__(self, drawn: HeatMap | Chart | Grid) -> None:
        self.title = drawn.title
        self._drawn = drawn

    def _repr_svg_(self) -> str:
        return document(self._drawn)


def heat(values: Tensor, rows: Sequence[str], columns: Sequence[str], title: str) -> Picture:
    """A matrix as a heat map; negative numbers have a colour of their own."""
    scale = "diverging" if float(values.min()) < 0 else "sequential"
    cells = tuple(tuple(row) for row in values.tolist())
    return Picture(reaching(HeatMap(title, tuple(rows), tuple(columns), cells, origin="this page", scale=scale)))


def lines(title: str, x: str, y: str, series: dict[str, dict[float, float]], *, powers: bool = False) -> Picture:
    """Curves by name, each a table of places and values; ``powers`` for an axis of powers of ten."""
    places = [place for points in series.values() for place in points]
    values = [value for points in series.values() for value in points.values()]
    up = pictures.logarithmic(y, values) if powers else pictures.linear(y, values, zero=True)
    found = [
        Series(name, [Point(place, math.log10(value) if powers else value) for place, value in points.items()])
        for name, points in series.items()
    ]
    return Picture(Chart(title, found, pictures.linear(x, places), up))


# A task that trains in seconds: write a word back to front

LETTERS = "abcdefghijklmnopqrstuvwxyz"
OFFSET = 4  # <pad>, <start>, <end> and <unk> come first
SIZE = OFFSET + len(LETTERS)


def words(rows: int, shortest: int, longest: int, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random words, and the same reversed between <start> and <end>; shorter rows are filled with <pad>."""
    source, target = torch.full((rows, longest + 1), PAD), torch.full((rows, longest + 2), PAD)
    for row, length in enumerate(torch.randint(shortest, longest + 1, (rows,), generator=chance).tolist()):
        word = torch.randint(OFFSET, SIZE, (length,), generator=chance)
        source[row, : length + 1] = torch.cat((word, torch.tensor([END])))
        target[row, : length + 2] = torch.cat((torch.tensor([START]), word.flip(0), torch.tensor([END])))
    return source, target


def fit(model: EncoderDecoder, steps: int, shortest: int = 2, longest: int = 8) -> float:
    """Teacher forcing: the decoder reads the right word, not its own, and is asked for the next letter each time."""
    chance = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        source, target = words(64, shortest, longest, chance)
        logits = model(source, target[:, :-1])  # from <start> to the last letter
        loss = cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)  # to <end>
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    return loss.item()


@torch.no_grad()
def written(model: EncoderDecoder, source: Tensor) -> Tensor:
    """Greedy generation of whole rows: each step reads what the step before has written."""
    token, state = model.start(source)
    found = [token]
    for _ in range(source.shape[1] + 1):
        logits, state = model.step(token, state)
        token = logits.argmax(-1)
        found.append(token)
    return torch.stack(found, 1)


def accuracy(model: EncoderDecoder, length: int, rows: int = 200) -> float:
    """Percent of letters of new words of one length that stand where they should."""
    source, target = words(rows, length, length, torch.Generator().manual_seed(1))
    found = written(model, source)[:, : target.shape[1]]
    return 100 * (found[:, 1:-1] == target[:, 1:-1]).float().mean().item()


# The exercises


@dataclass(frozen=True)
class Exercise:
    """What is right, a hint for what is not, and answers that people give and that are wrong."""

    right: Callable[[Any], bool]
    hint: str
    wrong: tuple[Any, ...]


def check(lesson: int, answer: Any) -> bool:
    """Say whether an answer is right; one that cannot be compared is not."""
    exercise = EXERCISES[lesson]
    try:
        right = answer is not None and bool(exercise.right(answer))
    except (TypeError, ValueError, RuntimeError, IndexError, KeyError):
        right = False
    print("Right." if right else f"Not yet. {exercise.hint}")
    return right


def near(*expected: float, within: float = 1e-3) -> Callable[[Any], bool]:
    """Whether numbers are these, up to rounding."""

    def compare(answer: Any) -> bool:
        found = torch.as_tensor(answer, dtype=torch.float64).flatten()
        wanted = torch.tensor(expected, dtype=torch.float64)
        return found.shape == wanted.shape and bool((found - wanted).abs().max() <= within)

    return compare


def _is_best(answer: Any) -> bool:
    """Lesson 11's table decides, which the learner has just computed: a name and its count."""
    name, counts = answer
    return counts[name] == max(counts.values()) and len(counts) > 2


EXERCISES: dict[int, Exercise] = {
    1: Exercise(
        lambda answer: list(answer) == [2, 1, 0, 4, 3, 5],
        "Count the places in the list from 0.",
        ([2, 1, 0, 4, 5], [3, 2, 1, 5, 4, 6], "I am a student", 5, []),
    ),
    2: Exercise(near(7), "0.5, 0.25, 0.125 … : the first below 0.01.", (6, 6.64, 8, 100, "seven")),
    3: Exercise(near(128), "An LSTM keeps two vectors.", (64, 30 * 64, 30 * 128, 192)),
    4: Exercise(near(7.0), "The weights are a quarter and three quarters.", (6.0, 8.0, 5.0, 12.0, [7.0, 7.0])),
    5: Exercise(near(5.0, 7.0), "The matrix swaps the numbers of h before the product.", ([7, 5], [5, 5], [5], 12)),
    6: Exercise(
        near(0.5777, 0.8446, 0.5777, 0.8446),
        "Take the second row of the weights, and sum the rows of X with them.",
        ([0.8446, 0.5777, 0.8446, 0.5777], [0.1554, 0.4223, 0.4223], [0.7881] * 4, [0, 1, 0, 1]),
    ),
    7: Exercise(
        lambda answer: torch.as_tensor(answer).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]],
        "A query may look at itself and before itself, and nobody at <pad>.",
        ([[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1, 1, 0]] * 3, [[1, 1, 0], [0, 1, 0], [0, 0, 0]], [1, 1, 0]),
    ),
    8: Exercise(
        near(4 * (512 * 512 + 512)),
        "Four matrices of 512 × 512, each with a bias; the number of heads changes nothing.",
        (4 * 512 * 512, 3 * (512 * 512 + 512), 8 * 4 * (512 * 512 + 512), 512 * 512),
    ),
    9: Exercise(near(0.4, 0.33), "Multiply along the two ways.", ([0.33, 0.4], [0.6, 0.4], [0.36, 0.33], 0.4)),
    10: Exercise(
        near(math.exp(1 - 10 / 8)),
        "exp(1 − reference / hypothesis), in words, when the hypothesis is the shorter.",
        (0.8, math.exp(1 - 8 / 10), 1.0, 10 / 8),
    ),
    11: Exercise(
        _is_best,
        "Give the name with the largest count, and the table itself.",
        (("attention", {"attention": 1, "masking": 3, "alti": 2}), "masking", ("masking", {"masking": 1}), None),
    ),
    12: Exercise(near(1 / 3), "Of three test sentences, one was in the training text.", (0, 1, 3, 2 / 3, "one")),
}
