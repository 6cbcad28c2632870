"""The trainer: one loop for every task, every architecture and every kind of step."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from regard.data.batches import Position
from regard.errors import DataError, ModelError
from regard.runs import checkpoint
from regard.runs.checkpoint import Checkpoint
from regard.runs.folder import Progress, step_of
from regard.runs.log import Listener, Validation, clock
from regard.runs.samples import Watched
from regard.settings import LastAverage, MovingAverageSettings, TrainSettings
from regard.tasks.task import Scores, Task, Tensors
from regard.trainer import averaging
from regard.trainer.adapting import restrict
from regard.trainer.feed import Feed, Group
from regard.trainer.kinds import GRAPHS, step_kind, uses_bfloat16
from regard.trainer.optimizer import make_optimizer
from regard.trainer.pace import Pace, used_memory
from regard.trainer.schedule import DECAYING, Schedule
from regard.trainer.showing import Showing
from regard.trainer.signals import interruptible
from regard.trainer.steps import EagerStep, GraphStep, StepContext, TrainStep
from regard.trainer.workers import ALONE, Workers

SAVE_EVERY = 120.0  # seconds of training between two checkpoints at the most
TENTH, SHORTEST = 0.1, 5.0  # of a time limit, and seconds at the least, lie between two validations by the clock
AT_FIRST, AT_MOST = 20.0, 180.0  # seconds between them without a limit: more and more
FIRST = "step-0"  # the checkpoint of a run that begins with another's weights
COSTLY = 7.0  # times as long as validating took is trained before the next


@dataclass(frozen=True)
class Outcome:
    """How a training ended."""

    progress: Progress
    reason: str  # "steps", "time", "patience" or "interrupted"
    taken: int = 0  # steps that were taken now


class Trainer:
    """Trains a task in a run folder, from the beginning or from a checkpoint."""

    def __init__(
        self,
        task: Task,
        settings: TrainSettings,
        folder: Path,
        listener: Listener,
        *,
        width: int,
        longest: int,
        device: torch.device,
        workers: Workers = ALONE,
        belonging: Mapping[str, object] | None = None,
        showing: Showing | None = None,
        general: Task | None = None,
    ) -> None:
        """``belonging`` is what the weights belong to, as every checkpoint says: that of the run as it was opened.
        ``showing`` writes the samples of a validation and the sentence that is watched. ``general`` is the task on a
        general test set, which is measured beside its own."""
        self.task = task.to(device)
        self.settings = settings
        self.folder = folder
        self.listener = listener
        self.device = device
        self.workers = workers
        self.belonging = belonging
        self.showing = showing
        self.general = general
        self.progress = Progress()
        self.schedule = Schedule(settings.schedule, settings.rate, settings.warmup, width)
        self.adapters = restrict(task.model, settings)
        if self.adapters is not None:
            task.add_module("adapters", self.adapters)
        self.weights = checkpoint.model_tensors(task)
        self.kind = step_kind(settings, device, workers)
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
        if isinstance(settings.average, MovingAverageSettings):
            self.average = averaging.MovingAverage(self.weights, settings.average.decay)
        self.best_step: int | None = (
            None  # the best checkpoint there is, also where the validation of an interruption found it
        )
        self.validated = self.saved = 0.0  # seconds of training at the last validation and checkpoint
        self.validating = 0.0  # seconds that a validation takes
        self.mean: tuple[int, averaging.Weights] = (-1, {})  # of the last checkpoints, and at which step
        self.damaged: set[Path] = set()  # checkpoints that were reported
        self.captures = 2 * settings.shapes if self.kind in GRAPHS else 0  # so many first steps may be slow

    # The loop

    def run(self) -> Outcome:
        """Train until something says that it is enough. Whatever that is, there is a score and a checkpoint."""
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
                    self._save()  # first of all: a second signal does not wait for the score
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
        """Seconds that a step takes, from a few of them after one that warms up. For estimates: the model has changed
        afterwards, and nothing is kept."""
        self.task.train()
        step, seconds = self._step(), []
        with closing(self.feed.groups(Position(0, 0))) as groups:
            for _ in range(1 + count):
                began = time.perf_counter()
                self._take(step, next(groups), Pace(self.progress))
                seconds.append(time.perf_counter() - began)
        return sum(seconds[1:]) / count

    def extend(self) -> None:
        """Begin the schedule again here: the limits are later ones than those that it began with."""
        now = self.progress
        self.progress = replace(now, since_step=now.step, since_seconds=now.seconds, stale=0)
        if now.step:
            self._save()  # so that a resumed training knows too

    def _take(self, step: TrainStep, group: Group, pace: Pace) -> None:
        """One update, and what it changes in the progress."""
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
            seconds=seconds / self.workers.world,  # their mean, so that all agree on the rate that follows from it
        )
        pace.add(taken, group, here)
        if taken.skipped:
            self._report(pace)

    def _report(self, pace: Pace) -> None:
        """Say how it goes. Here alone the losses are waited for, and found out if they are not finite.

        A step whose gradient is not finite has changed nothing, so that it is not too late.
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
        """Whether the step that a training goes on from was to be judged, and was stopped before it was."""
        now, every = self.progress, self.settings.validate_every
        if not now.step:  # what the training begins with may be the best there will be
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
        """All processes take the same decision: that of any one of them."""
        reasons = ("", "interrupted", "steps", "time", "patience")
        votes = self.workers.sum(*(float(reason == name) for name in reasons))
        return next((name for name, count in zip(reasons[1:], votes[1:], strict=True) if count), "")

    def _shares(self) -> tuple[float, float]:
        """How much of the steps and of the time lies behind, since the schedule began."""
        now, limit = self.progress, self.settings.seconds
        steps = (now.step - now.since_step) / max(1, self.settings.steps - now.since_step)
        if limit is None:
            return steps, 0.0
        return steps, (now.seconds - now.since_seconds) / max(1e-9, limit - now.since_seconds)

    def _share_done(self) -> float:
        return min(1.0, max(self._shares()))

    def _limit(self) -> float | None:
        """The time limit in seconds, where it comes before that of the steps."""
        steps, spent = self._shares()
        return self.settings.seconds if spent >= steps else None

    def _rate(self, number: int) -> float:
        since = self.progress.since_step if self.settings.schedule in DECAYING else 0
        return self.schedule(max(1, number - since), self._share_done())

    # Steps

    def _step(self) -> TrainStep:
        settings = self.settings
        recipe = StepContext(
            self.task,
            self.optimizer,
            self.average,
            settings.clip,
            uses_bfloat16(settings, self.device),
            self.device,
            self.workers,
            self.adapters,
        )
        if self.kind in GRAPHS:
            return GraphStep(recipe, compiled=self.kind == "compiled-graph")
        return EagerStep(recipe, compiled=self.kind == "compiled", tell=self.listener.tell)

    # Validation and checkpoints

    def _validate(self, pace: Pace, *, counts: bool = True) -> None:
        """Loss and score, reported, and kept where they are the best. One that does not count, as when a training is
        stopped, leaves the progress as it is: a resumed training goes on as if there had been none."""
        pace.pause()
        if self.workers.leads:
            average = self._averaged()
            with averaging.swapped(self.weights, average), torch.compiler.set_stance("force_eager"):
                scores = self.task.validate(self.device)
                general = self.general.validate(self.device) if self.general else None
                samples = self.showing.sampled(scores.written, self.device) if self.showing else ()
                watched = self._watched()
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
            self._tell_watched(watched)
        self.workers.wait()
        self.validated, self.validating = self.progress.seconds, pace.resume()

    def _is_landmark(self) -> bool:
        """Whether to look at the watched sentence between validations: after 1, 2, 4, 8, … steps, for most is learned
        early. One sentence more is little work, and becomes ever rarer."""
        watching = self.showing is not None and bool(self.showing.sentence)
        return watching and self.workers.leads and self.progress.step.bit_count() == 1

    def _watch(self, pace: Pace) -> None:
        """Look at the watched sentence while the clock of training stands still."""
        pace.pause()
        with averaging.swapped(self.weights, self._averaged()):
            watched = self._watched()
        self._tell_watched(watched)
        pace.resume()

    def _watched(self) -> Watched | None:
        return self.showing.watched(self.device) if self.showing else None

    def _tell_watched(self, watched: Watched | None) -> None:
        if watched is not None:
            self.listener.watch(self.progress.step, watched)

    def _lost_patience(self) -> str:
        """A reason to stop. Only the first process validates and knows; asking synchronises all processes."""
        return "patience" if self.workers.leads and 0 < self.settings.patience <= self.progress.stale else ""

    def _averaged(self) -> averaging.Weights:
        """The weights to judge and to keep besides the trained ones; none without averaging."""
        if self.average is not None:
            return self.average.weights()
        if isinstance(self.settings.average, LastAverage):
            if self.mean[0] != self.progress.step:
                now = {name: tensor.cpu() for name, tensor in self.weights.items()}
                before = self._snapshots(self.settings.average.count - 1)
                self.mean = self.progress.step, averaging.mean([*before, now])
            return self.mean[1]
        return {}

    def _snapshots(self, count: int) -> list[Mapping[str, Tensor]]:
        """The weights of the last validations before this step that counted. A damaged one is named and left out."""
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
            checkpoint.save(self._checkpoint(), self.folder / "checkpoints", self.belonging)
            if self.best_step is not None or self.progress.best is not None:
                best = self.progress.best_step if self.best_step is None else self.best_step
                checkpoint.point_to_best(self.folder, best)
            self._prune()
        self.workers.wait()

    def _prune(self) -> None:
        """Remove old checkpoints: neither the best nor those that belong to an average of the last. And later ones,
        which were damaged: this training has begun before them. What adapters add to stays, too."""
        folder, average = self.folder / "checkpoints", self.settings.average
        checkpoint.remove_after(folder, self.progress.step)
        spare = {f"step-{self.progress.best_step}"}
        if self.adapters is not None:
            spare.add(FIRST)
        if isinstance(average, LastAverage):
            spare |= {path.name for path in checkpoint.judged(folder)[-average.count :]}
        checkpoint.prune(folder, self.settings.keep, spare)

    def _checkpoint(self) -> Checkpoint:
        optimizer = checkpoint.optimizer_tensors(self.optimizer)
        return Checkpoint(self.progress, self.weights, self._averaged(), optimizer)

    def begin(self, weights: Mapping[str, Tensor]) -> None:
        """Take over the weights of another training, and nothing else. What a task learns beside its model may be
        missing there."""
        kept = {name: tensor for name, tensor in self.weights.items() if not name.startswith("model.")}
        checkpoint.load_model(self.task, kept | dict(weights), self.settings.base)
        if self.average is not None:
            self.average.load(self.weights)
        if self.adapters is not None:
            self.adapters.settle()

    def resume(self, saved: Checkpoint) -> None:
        """Take over the state of a checkpoint. What adapters add to is in the first one."""
        if self.adapters is not None:
            self.begin(checkpoint.load_trained(self.folder / "checkpoints" / FIRST))
        self.progress = saved.progress
        checkpoint.load_model(self.task, saved.weights, "checkpoint")
        checkpoint.load_optimizer(self.optimizer, saved.optimizer)
        if self.average is not None:
            self.average.load(saved.average)


def step_seed(seed: int, rank: int, number: int) -> int:
    """The seed of one step in one process: from these numbers alone, so that none of it needs to be
    kept, and a training goes on with the same numbers however it was stopped."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {rank} {number}".encode(), digest_size=8).digest())


def begin_chance(seed: int, device: torch.device) -> None:
    """What `torch.manual_seed` does, for this device alone: to look for every kind there is takes a quarter of a
    millisecond."""
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
