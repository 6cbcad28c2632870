"""The trainer: one loop for every task, every architecture and every kind of step."""

from __future__ import annotations

import hashlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import torch
from torch import Tensor

from regard.data.batches import Position
from regard.errors import DataError, ModelError
from regard.explain.replay import resting
from regard.runs import checkpoint
from regard.runs.checkpoint import Checkpoint
from regard.runs.folder import Progress, Run, belonging, step_of
from regard.runs.log import Listener, Validation, ValidationSample, clock
from regard.tasks.task import Scores, Task, Tensors
from regard.trainer import optimizer
from regard.trainer.feed import Feed, Group
from regard.trainer.optimizer import DECAYING, learning_rate, make_optimizer, restrict
from regard.trainer.pace import Pace, used_memory
from regard.trainer.steps import GRAPHS, EagerStep, GraphStep, TrainStep, step_kind, uses_bfloat16
from regard.trainer.workers import ALONE, Workers

# Ctrl-C and SIGTERM: the first asks for a checkpoint and an orderly end, the second leaves at once.

INTERRUPTED = 130  # the exit code


class Interruption:
    """Whether the training was asked to stop."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.asked = False
        self._tell = tell

    def __call__(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.asked:
            os._exit(INTERRUPTED)  # checkpoints are renamed into place whole: the last good one is intact
        self.asked = True
        self._tell("stopping: a checkpoint is written, then the score is computed; once more to leave at once")


@contextmanager
def interruptible(tell: Callable[[str], None]) -> Iterator[Interruption]:
    """Catch the two signals for the time of a training."""
    interruption = Interruption(tell)
    before = {number: signal.signal(number, interruption) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


SAVE_EVERY = 120.0  # seconds of training between two checkpoints at the most
TENTH, SHORTEST = 0.1, 5.0  # between two validations by the clock: a share of the time limit, and seconds at least
AT_FIRST, AT_MOST = 20.0, 180.0  # seconds between them without a limit, at the beginning and later
COSTLY = 7.0  # between two validations there is at least so many times as much training as the last one took
FIRST = "step-0"  # the checkpoint of a run that begins with another's weights
SAMPLES = 5  # shown at each validation


@dataclass(frozen=True)
class Outcome:
    """How a training ended."""

    progress: Progress
    reason: str  # "steps", "time", "patience" or "interrupted"
    taken: int = 0  # steps since it was started or resumed


class Trainer:
    """Trains a task in a run folder, from the beginning or from a checkpoint."""

    def __init__(
        self,
        run: Run,
        task: Task,
        listener: Listener,
        *,
        device: torch.device,
        workers: Workers = ALONE,
        general: Task | None = None,
    ) -> None:
        """``general`` is the same task on a general test set, which is validated too."""
        self.task = task.to(device)
        self.settings = settings = run.settings.train
        self.width = run.settings.model.width
        self.folder = run.folder
        self.belonging = belonging(run)  # settings and tokenizers of the weights, for every checkpoint
        self.listener = listener
        self.device = device
        self.workers = workers
        self.general = general
        self.progress = Progress()
        self.adapters = restrict(task.model, settings)
        if self.adapters is not None:
            task.add_module("adapters", self.adapters)
        self.weights = checkpoint.model_tensors(task)
        self.kind = step_kind(settings, device)
        longest = task.longest(run.settings.data.longest)
        self.feed = Feed(task, settings, longest=longest, kind=self.kind, device=device, workers=workers)
        self.optimizer = make_optimizer(
            settings.optimizer,
            self.adapters or task,
            weight_decay=settings.weight_decay,
            momentum=settings.momentum,
            second_moment=settings.second_moment,
            capturable=self.kind in GRAPHS,
        )
        self.average = None
        if settings.average.kind == "moving":
            self.average = optimizer.MovingAverage(self.weights, settings.average.decay)
        self.best_step: int | None = None  # of the best validation, also of one that does not count
        self.validated = self.saved = 0.0  # seconds of training at the last validation and checkpoint
        self.validating = 0.0  # seconds that a validation takes
        self.mean: tuple[int, optimizer.Weights] = (-1, {})  # the step, and the mean of the last checkpoints there
        self.damaged: set[Path] = set()  # checkpoints that were reported
        self.captures = 2 * settings.shapes if self.kind in GRAPHS else 0  # first steps that may be slow

    # The loop

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to train."""
        return bool(self._reason(asked=False) or self._lost_patience())

    def run(self) -> Outcome:
        """Train until a limit, an interruption or lost patience; there is a score and a checkpoint in any case."""
        self.validated = self.saved = self.progress.seconds
        over = self._reason(asked=False)
        if self._owes_validation(over):
            self._validate(Pace(self.progress))
            self._save()
        if over := self._agree(over or self._lost_patience()):
            return Outcome(self.progress, over)
        self.task.train()
        begin, step = self.progress.step, self._step()
        pace = Pace(self.progress, self._share_done())
        groups = self.feed.groups(Position(self.progress.epoch, self.progress.batch))
        with interruptible(self.listener.tell) as interruption, closing(groups):
            while True:
                self._take(step, next(groups), pace)
                reason = self._agree(self._reason(asked=interruption.asked))
                validates = self._is_due()
                watches = self._is_landmark() and not (reason or validates)
                if pace.due() or reason or validates or watches:
                    self._report(pace)
                if self.progress.step == begin + self.captures:
                    pace.measure_from(self.progress, self._share_done())
                if self.progress.step >= begin + self.captures:
                    self._foretell(pace)
                if reason == "interrupted":
                    self._save()  # before the score: a second signal leaves at once
                if reason or validates:
                    self._validate(pace, counts=validates or reason != "interrupted")
                    reason = reason or self._agree(self._lost_patience())
                elif watches:
                    self._watch(pace)
                if reason or validates or self.progress.seconds - self.saved >= SAVE_EVERY:
                    self._save()
                if reason:
                    return Outcome(self.progress, reason, self.progress.step - begin)

    def rehearse(self, count: int = 3) -> float:
        """Seconds that a step takes: the mean of a few after one to warm up. It changes the model and saves nothing."""
        self.task.train()
        step, seconds = self._step(), []
        with closing(self.feed.groups(Position(0, 0))) as groups:
            for _ in range(1 + count):
                began = time.perf_counter()
                self._take(step, next(groups), Pace(self.progress))
                seconds.append(time.perf_counter() - began)
        return sum(seconds[1:]) / count

    def extend(self) -> None:
        """Begin the schedule again here, for limits that are later than before."""
        now = self.progress
        self.progress = replace(now, since_step=now.step, since_seconds=now.seconds, stale=0)
        if now.step:
            self._save()  # a resumed training must know it

    def _take(self, step: TrainStep, group: Group, pace: Pace) -> None:
        """One update of weights and progress."""
        here = float(sum(batch.tokens for batch in group.batches))
        count, seconds = self.workers.sum(here, pace.seconds())
        self.task.progress = self._share_done()
        number = self.progress.step + 1
        ready = [Tensors.of(batch, self.device) for batch in group.batches]
        begin_chance(step_seed(self.settings.seed, self.workers.rank, number), self.device)
        taken = step(ready, count, self._rate(number), number)
        self.progress = replace(
            self.progress,
            step=number,
            epoch=group.after.epoch,
            batch=group.after.batch,
            tokens=self.progress.tokens + int(count),
            seconds=seconds / self.workers.world,  # the mean, so that all compute the same learning rate
        )
        pace.add(taken, group, here)
        if taken.skipped:
            self._report(pace)

    def _report(self, pace: Pace) -> None:
        """Tell the listener about the last steps. Only here are losses waited for, and checked to be finite.

        That is early enough: a step whose gradient is not finite has changed nothing.
        """
        for taken, group in pace.pending:
            loss, norm = float(taken.loss), float(taken.norm)
            if math.isfinite(loss) and math.isfinite(norm):
                continue
            line = f"loss = {loss}, gradient = {norm}: not finite in {group.describe()}"
            if not self.settings.skip_nonfinite:
                raise DataError(f"{line}; lower train.rate, look at the rows, or set train.skip_nonfinite = true")
            self.listener.tell(f"{line}; left out")
        if pace.pending:
            rate, share = self._rate(max(1, self.progress.step)), self._share_done()
            self.listener.moment(pace.moment(self.progress, rate, share, self.device, self._limit()))

    def _foretell(self, pace: Pace) -> None:
        """Once, after the first steps: an estimate of the whole training."""
        taken, trained = self.progress.step - pace.step, self.progress.seconds - pace.started
        if pace.foretold or taken < 3 or trained < 2:
            return
        pace.foretold = True
        limit, share = self._limit(), self._share_done()
        if share >= 1:
            return
        left, each = pace.left(self.progress, share, limit), trained / taken
        ahead = self.settings.steps - self.progress.step if limit is None else left / each
        passes = ahead * self.settings.accumulate / max(1, len(self.feed.batches.plan(0)))
        self.listener.tell(
            f"about {ahead:,.0f} steps in {clock(left)}, {passes:,.1f} times through the corpus; "
            f"{used_memory(self.device) / 2**20:,.0f} MiB of memory so far"
        )

    def _is_due(self) -> bool:
        """Whether to validate now: by the count of steps, or by the clock."""
        if self.settings.validate_every:
            return self.progress.step % self.settings.validate_every == 0
        begun = self.progress.seconds - self.progress.since_seconds
        every = min(AT_MOST, max(AT_FIRST, begun / 2))
        if self.settings.seconds is not None:
            every = max(SHORTEST, TENTH * (self.settings.seconds - self.progress.since_seconds))
        due = self.progress.seconds - self.validated >= max(every, COSTLY * self.validating)
        return bool(self.workers.sum(float(due))[0])

    def _owes_validation(self, over: str) -> bool:
        """Whether the training stopped before the validation that was due at its last step."""
        now, every = self.progress, self.settings.validate_every
        if not now.step:  # the weights of another run may be the best there will be
            return bool(self.settings.base) and now.best is None
        return 0 < now.step != now.judged and (bool(over) or (every > 0 and now.step % every == 0))

    def _reason(self, *, asked: bool) -> str:
        if asked:
            return "interrupted"
        if self.progress.step >= self.settings.steps:
            return "steps"
        limit = self.settings.seconds
        return "time" if limit is not None and self.progress.seconds >= limit else ""

    def _agree(self, reason: str) -> str:
        """All processes stop if any of them has a reason to."""
        reasons = ("interrupted", "steps", "time", "patience")
        votes = self.workers.sum(*(float(reason == name) for name in reasons))
        return next((name for name, count in zip(reasons, votes, strict=True) if count), "")

    def _shares(self) -> tuple[float, float]:
        """The shares of the steps and of the time that are done, since the schedule began."""
        now, limit = self.progress, self.settings.seconds
        steps = (now.step - now.since_step) / max(1, self.settings.steps - now.since_step)
        if limit is None:
            return steps, 0.0
        return steps, (now.seconds - now.since_seconds) / max(1e-9, limit - now.since_seconds)

    def _share_done(self) -> float:
        return min(1.0, max(self._shares()))

    def _limit(self) -> float | None:
        """The time limit in seconds, where it is reached before that of the steps."""
        steps, spent = self._shares()
        return self.settings.seconds if spent >= steps else None

    def _rate(self, number: int) -> float:
        since = self.progress.since_step if self.settings.schedule in DECAYING else 0
        return learning_rate(self.settings, self.width, max(1, number - since), self._share_done())

    def _step(self) -> TrainStep:
        kind = GraphStep if self.kind in GRAPHS else EagerStep
        return kind(
            self.task,
            self.optimizer,
            self.average,
            clip=self.settings.clip,
            autocast=uses_bfloat16(self.settings, self.device),
            compiled=self.kind.startswith("compiled"),
            workers=self.workers,
            adapters=self.adapters,
            tell=self.listener.tell,
        )

    # Validation and checkpoints

    def _validate(self, pace: Pace, *, counts: bool = True) -> None:
        """Report loss and score, and remember the best. A validation that does not count, as when a training is
        stopped, leaves the progress unchanged: a resumed training goes on as if there had been none."""
        pace.pause()
        if self.workers.leads:
            with optimizer.swapped(self.weights, self._averaged()), torch.compiler.set_stance("force_eager"):
                scores = self.task.validate(self.device)
                general = self.general.validate(self.device) if self.general else None
                with resting(self.task.model):
                    samples = self._samples(scores)
                    watched = self.task.watched(self.settings.watch, self.device) if self.settings.watch else None
            value = _metric(scores, self.settings.metric)
            now = self.progress
            best = is_better(value, now.best)
            if best:
                self.best_step = now.step
            if counts:
                self.progress = replace(now, judged=now.step, stale=0 if best else now.stale + 1)
            if counts and best:
                self.progress = replace(self.progress, best=value, best_step=now.step)
            if general is not None and not now.step:
                self.progress = replace(self.progress, general=general.loss)
            self.listener.validation(
                Validation(
                    self.progress.step,
                    self.progress.epoch,
                    self.progress.seconds,
                    scores.loss,
                    scores.score,
                    scores.name,
                    best,
                    samples,
                    general.loss if general else None,
                    general.score if general else None,
                    self.progress.general,
                )
            )
            if watched is not None:
                self.listener.watch(self.progress.step, watched)
        self.workers.wait()
        self.validated, self.validating = self.progress.seconds, pace.resume()

    def _samples(self, scores: Scores) -> tuple[ValidationSample, ...]:
        """The first samples with the model's outputs, which validation may have written already."""
        samples = self.task.samples[:SAMPLES]
        outputs = scores.written[:SAMPLES] or self.task.write([text for text, _ in samples], self.device)
        return tuple(ValidationSample(*pair, output) for pair, output in zip(samples, outputs, strict=True))

    def _is_landmark(self) -> bool:
        """Whether to show the watched sentence between validations: after 1, 2, 4, 8, … steps, since most is learned
        early."""
        return bool(self.settings.watch) and self.workers.leads and self.progress.step.bit_count() == 1

    def _watch(self, pace: Pace) -> None:
        """Show the watched sentence, which does not count as time of training."""
        pace.pause()
        with optimizer.swapped(self.weights, self._averaged()), resting(self.task.model):
            watched = self.task.watched(self.settings.watch, self.device)
        self.listener.watch(self.progress.step, watched)
        pace.resume()

    def _lost_patience(self) -> str:
        """A reason to stop, which only the first process knows, since it alone validates."""
        return "patience" if self.workers.leads and 0 < self.settings.patience <= self.progress.stale else ""

    def _averaged(self) -> optimizer.Weights:
        """The averaged weights, which are validated and saved besides the trained ones; none without averaging."""
        if self.average is not None:
            return self.average.weights()
        if self.settings.average.kind == "last":
            if self.mean[0] != self.progress.step:
                now = {name: tensor.cpu() for name, tensor in self.weights.items()}
                before = self._snapshots(self.settings.average.count - 1)
                self.mean = self.progress.step, optimizer.mean_weights([*before, now])
            return self.mean[1]
        return {}

    def _snapshots(self, count: int) -> list[Mapping[str, Tensor]]:
        """The weights of the last ``count`` validations that counted, before this step; a damaged one is left out."""
        found: list[Mapping[str, Tensor]] = []
        for path in reversed(checkpoint.judged(self.folder / "checkpoints")):
            if len(found) == count:
                break
            if step_of(path) < self.progress.step:
                try:
                    found.append(checkpoint.load_trained(path))
                except ModelError as error:
                    if path not in self.damaged:
                        self.listener.tell(f"{error}; the average does without it")
                    self.damaged.add(path)
        return found[::-1]

    def _save(self) -> None:
        self.saved = self.progress.seconds
        if self.workers.leads:
            optimizer = checkpoint.optimizer_tensors(self.optimizer)
            saved = Checkpoint(self.progress, self.weights, self._averaged(), optimizer)
            checkpoint.save(saved, self.folder / "checkpoints", self.belonging)
            if self.best_step is not None or self.progress.best is not None:
                best = self.progress.best_step if self.best_step is None else self.best_step
                checkpoint.point_to_best(self.folder, best)
            self._prune()
        self.workers.wait()

    def _prune(self) -> None:
        """Remove old checkpoints, but for the best, those of an average of the last, and the first where adapters are
        added to it; and later ones, which were damaged, so that the training was resumed before them."""
        folder, average = self.folder / "checkpoints", self.settings.average
        checkpoint.remove_after(folder, self.progress.step)
        spare = {f"step-{self.progress.best_step}"}
        if self.adapters is not None:
            spare.add(FIRST)
        if average.kind == "last":
            spare |= {path.name for path in checkpoint.judged(folder)[-average.count :]}
        checkpoint.prune(folder, self.settings.keep, spare)

    def begin(self, weights: Mapping[str, Tensor]) -> None:
        """Begin with the weights of another training, which may lack what a task learns beside its model."""
        kept = {name: tensor for name, tensor in self.weights.items() if not name.startswith("model.")}
        checkpoint.load_model(self.task, kept | dict(weights), self.settings.base)
        if self.average is not None:
            self.average.load(self.weights)
        if self.adapters is not None:
            self.adapters.settle()

    def resume(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint. The weights that adapters are added to are in the first one."""
        if self.adapters is not None:
            self.begin(checkpoint.load_trained(self.folder / "checkpoints" / FIRST))
        self.progress = saved.progress
        checkpoint.load_model(self.task, saved.weights, "checkpoint")
        checkpoint.load_optimizer(self.optimizer, saved.optimizer)
        if self.average is not None:
            self.average.load(saved.average)


def step_seed(seed: int, rank: int, number: int) -> int:
    """The seed of one step in one process. It depends on these numbers alone, so that a resumed training draws the same
    random numbers without saving a state."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {rank} {number}".encode(), digest_size=8).digest())


def begin_chance(seed: int, device: torch.device) -> None:
    """`torch.manual_seed` for this device alone: for every kind of device it takes a quarter of a millisecond."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def is_better(value: float, best: float | None) -> bool:
    """Whether a value is the best so far. One that is not finite never is."""
    return math.isfinite(value) and (best is None or not value <= best)


def _metric(scores: Scores, metric: str) -> float:
    """One number, higher is better."""
    if metric == "loss":
        return -scores.loss
    return scores.score if scores.higher_is_better else -scores.score
