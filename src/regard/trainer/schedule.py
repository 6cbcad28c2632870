"""Learning rates over time: a warm-up from zero, then one of five ways to go on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, assert_never

Shape = Literal["constant", "noam", "inverse_square_root", "cosine", "linear"]
DECAYING = ("cosine", "linear")  # these end at zero: training beyond that starts them again


@dataclass(frozen=True)
class Schedule:
    """The learning rate at each step."""

    shape: Shape
    rate: float
    warmup: int
    width: int  # of the model, for noam

    def __call__(self, step: int, progress: float) -> float:
        """At step 1, 2, …; ``progress`` is the share of the whole training that lies behind, 0 to 1."""
        rise = min(1.0, step / self.warmup) if self.warmup else 1.0
        match self.shape:
            case "constant":
                return self.rate * rise
            case "noam":  # Vaswani et al. (2017), eq. 3
                slowest = step**-0.5 if not self.warmup else min(step**-0.5, step * self.warmup**-1.5)
                return self.rate * self.width**-0.5 * slowest
            case "inverse_square_root":
                return self.rate * min(rise, (max(self.warmup, 1) / step) ** 0.5)
            case "cosine":
                return self.rate * rise * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
            case "linear":
                return self.rate * rise * max(0.0, 1 - progress)
            case _:
                assert_never(self.shape)
