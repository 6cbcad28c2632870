"""The clock of a training, and what happened since the last report."""

from __future__ import annotations

import math
import sys
import time

import torch

from regard.runs.folder import Progress
from regard.runs.log import Moment
from regard.trainer.feed import Group
from regard.trainer.steps import Taken

if sys.platform != "win32":
    import resource

LOG_EVERY = 1.0  # seconds


class Pace:
    """Measures the time of training without that of validation, and collects the steps since the last report."""

    def __init__(self, progress: Progress, share: float = 0.0) -> None:
        """``share`` of the training is done."""
        self.before = progress.seconds
        self.measure_from(progress, share)
        self.foretold = False  # whether the time of the whole training has been estimated
        self._began = self._last = time.monotonic()
        self._paused = 0.0
        self._tokens = 0.0
        self.pending: list[tuple[Taken, Group]] = []

    def measure_from(self, progress: Progress, share: float) -> None:
        """Estimate by the speed of the steps from here on: the first ones on a GPU are slow."""
        self.step, self.started, self.share = progress.step, progress.seconds, share

    def seconds(self) -> float:
        return self.before + time.monotonic() - self._began - self._paused

    def pause(self) -> None:
        self._stopped = time.monotonic()

    def resume(self) -> float:
        """Returns the seconds of the pause."""
        pause = time.monotonic() - self._stopped
        self._paused += pause
        self._last = time.monotonic()
        return pause

    def add(self, taken: Taken, group: Group, tokens: float) -> None:
        self.pending.append((taken, group))
        self._tokens += tokens

    def due(self) -> bool:
        return time.monotonic() - self._last >= LOG_EVERY

    def left(self, progress: Progress, share: float, limit: float | None) -> float:
        """Seconds that the rest will take, at the speed so far."""
        if limit is not None:
            return max(0.0, limit - progress.seconds)
        done = share - self.share
        return (progress.seconds - self.started) * (1 - share) / done if done > 0 else 0.0

    def moment(
        self, progress: Progress, rate: float, share: float, device: torch.device, limit: float | None
    ) -> Moment:
        """The steps since the last report, as one. ``limit`` is the time limit, where it ends the training."""
        losses = [loss for taken, _ in self.pending if math.isfinite(loss := float(taken.loss))]
        norm = float(self.pending[-1][0].norm)
        now = time.monotonic()
        speed = self._tokens / (now - self._last)
        loss = sum(losses) / max(1.0, self._tokens)
        self._last, self.pending, self._tokens = now, [], 0.0
        return Moment(
            progress.step,
            progress.epoch,
            loss,
            norm,
            rate,
            progress.tokens,
            speed,
            progress.seconds,
            share,
            used_memory(device),
            limit,
            self.left(progress, share, limit),
        )


def used_memory(device: torch.device) -> int:
    """Bytes at the highest: on the GPU, or of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    if sys.platform == "win32":  # it does not say
        return 0
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
