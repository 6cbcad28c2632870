"""One thread owns each model. Requests wait for it in a bounded queue; when it is full, they are refused.

Waiting texts with the same options share a batch. A batch begins with the oldest text or, every other time, with the
oldest text of the request that has fewest results so far, and takes those nearest to it in length: so little of it is
padding and no request waits for ever. A translation does not depend on the other texts of its batch. Other work with
the model waits in the same queue and is done between two batches.

Work checks regularly whether it may go on (`regard.decode.cancel`). It is cancelled when its client has disconnected or
its time is up. When it takes long, it pauses while short texts of other requests are translated on the same thread, so
that a large request does not delay small ones.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeAlias, TypeVar, cast
from weakref import WeakSet

from regard.decode.cancel import Cancelled, cancellable
from regard.decode.engines.engine import held
from regard.decode.options import Options
from regard.decode.texts import BUDGET
from regard.errors import ModelError
from regard.explain.alignment import Aligner, aligner_of
from regard.explain.doubt import Doubt, calibration_of, known_calibration
from regard.explain.omission import is_cheap
from regard.serve.limits import BusyError, LateError, Limits, TooLargeError
from regard.tasks.load import AnyTrained
from regard.tasks.translator import Link, Translation, attends
from regard.text.reading import Unknown
from regard.text.vocabulary import UNK

Model: TypeAlias = AnyTrained
# A translation and, if they were asked for, the links of each of its outputs, the aligner that read them, the doubt of
# each output, and the words that the best one leaves out.
Translated: TypeAlias = tuple[Translation, tuple[list[Link], ...], str, tuple[Doubt, ...], tuple[Unknown, ...]]
Wish = tuple[Options, bool, bool, bool]  # how to search; whether links, doubt and words that are left out are wanted
Result = TypeVar("Result")
TURN = 0.25  # seconds after which work pauses for short texts of other requests
SHORT = 64  # pieces of a short text
LAST = 20.0  # seconds that a thread gets to stop when the process ends
ANSWERS = 3  # kept, so that several views of one output need one search
ALIGNER = 5.0  # seconds that choosing the aligner, once for a run, may delay a request


@dataclass(frozen=True, eq=False)
class _Call:
    """Work with the model other than translating."""

    work: Callable[[Model], Any]
    answer: Future[Any]
    background: bool = False  # no request waits for it; it is done last


@dataclass(eq=False)
class _WaitingText:
    """One text of a request."""

    text: str
    wish: Wish  # texts with equal wishes may share a batch
    answer: Future[list[Translated]]  # of the whole request; cancelled when its client disconnects
    results: dict[int, Translated]  # of the request so far
    position: int  # in the request
    count: int  # texts of the request
    arrived: float = field(default_factory=time.monotonic)
    length: int = 0  # in pieces; 0 until the thread has counted them


_Job: TypeAlias = _Call | _WaitingText


class Worker:
    """A model and the one thread that uses it."""

    def __init__(
        self, model: Model, limits: Limits | None = None, *, on_batch: Callable[[int], object] = lambda _: None
    ) -> None:
        self._model = model
        self._translator = model if model.task == "translate" else None
        self._weight = held(*model.models, model.search.searcher) if model.task == "translate" else held(model.model)
        self.attends = self._translator is not None and attends(self._translator.model)
        self._limits = limits or Limits()
        self._on_batch = on_batch  # called with the size of every batch
        self._queue: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._ending = False  # the process ends: no request is answered any more
        self._working = False  # for a request
        self._oldest_first = False  # alternates with the request that has fewest results
        self._aligner = not self.attends or _knows_aligner(model)  # whether one was chosen
        self._answers: deque[tuple[object, object]] = deque(maxlen=ANSWERS)
        self._pace = 0.02  # seconds a text, a moving average

    @property
    def bytes(self) -> int:
        """Memory of all weights, shared ones counted once, and of the engine's copies. An engine outside torch may take
        more for its first large batch."""
        return self._weight + (0 if self._translator is None else self._translator.search.searcher.bytes)

    @property
    def engine(self) -> str:
        """The engine of a translator; empty for other models."""
        return "" if self._translator is None else self._translator.search.searcher.name

    @property
    def waiting(self) -> int:
        """Jobs of requests in the queue."""
        with self._changed:
            return sum(not _is_background(job) for job in self._queue)

    @property
    def idle(self) -> bool:
        """Whether no request waits."""
        return not (self._working or self.waiting)

    async def call(self, work: Callable[[Model], Result]) -> Result:
        """Run a function of the model on its thread."""
        answer: Future[Result] = Future()
        return await self._answer(answer, [_Call(work, answer)])

    def cached(self, question: object, answer: Callable[[], Result]) -> Result:
        """The answer to one of the last questions, or a new one; called on the model's thread.

        An answer made with another aligner than the run has now is made again.
        """
        key = question, vars(self._model).get("aligner")
        for asked, found in self._answers:
            if asked == key:
                return cast("Result", found)
        new = answer()
        self._answers.append((key, new))
        return new

    async def translate(
        self,
        texts: Sequence[str],
        options: Options,
        *,
        links: bool = False,
        doubt: bool = False,
        omitted: bool = False,
    ) -> list[Translated]:
        """Translate in batches shared with other requests; results are in the order of the texts.

        A model without attention has no links.
        """
        if self._translator is None:
            raise ModelError("run: does not translate; ask /api/v1/predict, or choose a run that translates")
        if len(texts) > self._limits.queue:
            most = self._limits.queue
            raise TooLargeError(f"texts = {len(texts):,} pieces: more than the queue holds; send at most {most:,}")
        if not texts:
            return []
        answer: Future[list[Translated]] = Future()
        results: dict[int, Translated] = {}
        wish = options, links and self.attends, doubt, omitted
        return await self._answer(
            answer, [_WaitingText(text, wish, answer, results, place, len(texts)) for place, text in enumerate(texts)]
        )

    def close(self) -> None:
        """Let the thread end when its queue is empty. Requests in the queue are still answered."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def end(self) -> None:
        """Let the thread stop at its next check, because the process ends."""
        with self._changed:
            self._closed = self._ending = True
            self._queue.clear()
            self._changed.notify()

    def join(self, seconds: float) -> None:
        """Wait for the thread to end after `close`."""
        if (thread := self._thread) is not None:
            thread.join(seconds)

    # Called by requests

    async def _answer(self, answer: Future[Result], jobs: Sequence[_Job]) -> Result:
        """Put jobs into the queue and wait. They are removed when the client disconnects or the time is up."""
        self._enter(jobs)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(answer), self._limits.seconds)
        except TimeoutError:
            raise LateError(
                f"time = {self._limits.seconds:g} s: was not enough; send less at once, or ask again later"
            ) from None
        finally:
            if answer.cancelled():
                with self._changed:
                    self._queue = deque(job for job in self._queue if job.answer is not answer)

    def _enter(self, jobs: Sequence[_Job]) -> None:
        with self._changed:
            if self._ending:
                raise BusyError("service: is shutting down; ask again in 10 s", 10)
            if (waiting := self.waiting) and waiting + len(jobs) > self._limits.queue:
                seconds = max(1, round(waiting * self._pace))
                raise BusyError(f"queue = {waiting} waiting: is full; ask again in {seconds} s", seconds)
            self._queue.extend(jobs)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="model", daemon=True)
                self._thread.start()
                _at_work.add(self)
            self._changed.notify()

    # On the thread that owns the model

    def _serve(self) -> None:
        while job := self._next():
            started = time.monotonic()
            if isinstance(job, _Call):
                self._do(job)
            else:
                self._translate(job)
                self._pace = 0.9 * self._pace + 0.1 * (time.monotonic() - started) / len(job)
            del job  # else the last request stays in memory until the next one comes

    def _next(self) -> _Call | list[_WaitingText] | None:
        """The next call or batch; None when the worker is closed and the queue is empty."""
        while (head := self._due()) is not None:
            if isinstance(head, _WaitingText):
                self._count(head)
            with self._changed:
                if (job := self._take()) is not None:
                    return job
        return None

    def _due(self) -> _Job | None:
        """Wait for the next job; None when the worker is closed and the queue is empty."""
        with self._changed:
            self._working = False
            while True:
                while not self._queue:
                    if self._closed:
                        self._thread = None
                        return None
                    self._changed.wait()
                head = self._head()
                if isinstance(head, _Call) or self._closed or len(self._queue) >= self._limits.together:
                    return head
                patience = head.arrived + self._limits.gather - time.monotonic()
                if patience <= 0:
                    return head
                self._changed.wait(patience)

    def _take(self) -> _Call | list[_WaitingText] | None:
        """Take the next job out of the queue; None if there is none whose pieces were counted."""
        head = self._head() if self._queue else None
        if head is None or (isinstance(head, _WaitingText) and not head.length):
            return None
        self._working = not _is_background(head)
        if isinstance(head, _WaitingText):
            return self._batch(head)
        self._oldest_first = not self._oldest_first
        self._queue.remove(head)
        return head

    def _head(self) -> _Job:
        """The next job: the oldest or, every other time, the oldest of the request with fewest results."""
        first = self._queue[0]
        if not self._oldest_first:
            first = min(self._queue, key=_finished)
        elif _is_background(first):
            first = next((job for job in self._queue if not _is_background(job)), first)
        return first

    def _batch(self, head: _WaitingText, longest: int | None = None) -> list[_WaitingText]:
        """Take a text and as many as fit of those nearest to it in length, none longer than ``longest``."""
        self._oldest_first = not self._oldest_first
        counted = (job for job in self._queue if isinstance(job, _WaitingText) and job.length)
        alike = [job for job in counted if job.wish == head.wish and (longest is None or job.length <= longest)]
        alike.sort(key=lambda job: (job is not head, abs(job.length - head.length)))
        room, longest, count = BUDGET // head.wish[0].rule.rows, 0, 0
        for job in alike[: self._limits.together]:
            longest = max(longest, job.length)
            if count and (count + 1) * longest > room:
                break
            count += 1
        batch = alike[:count]
        taken = set(map(id, batch))
        self._queue = deque(job for job in self._queue if id(job) not in taken)
        return batch

    def _count(self, first: _WaitingText | None = None) -> None:
        """Count the pieces of waiting texts, for a `TURN` at most; without the lock, which the event loop needs too."""
        with self._changed:
            uncounted = [job for job in self._queue if isinstance(job, _WaitingText) and not job.length]
        uncounted.sort(key=lambda job: (job is not first, len(job.text)))  # short texts first: they may interrupt
        until = time.monotonic() + TURN
        for job in uncounted:
            job.length = self._pieces(job.text)
            if self._ending or time.monotonic() > until:
                return

    def _pieces(self, text: str) -> int:
        """How many pieces a text has; one for a text that cannot be read: its search says why, to its client alone."""
        assert self._translator is not None
        try:
            return len(self._translator.tokenizers.read(text))
        except Exception:
            return 1

    def _do(self, call: _Call) -> None:
        if call.answer.cancelled():
            return
        try:
            check = self._check([call], background=call.background)
            with cancellable(check):
                if not call.background:
                    self._choose_aligner(check)
                _settle(call.answer, call.work(self._model))
        except Cancelled:
            return
        except Exception as problem:
            _fail(call.answer, problem)

    # During work

    def _check(self, jobs: Sequence[_Job], *, background: bool = False) -> Callable[[], None]:
        """A function that work calls regularly: raises if the work is cancelled, and pauses for other requests."""
        until = time.monotonic() + (0.0 if background else TURN)

        def may_go_on() -> None:
            nonlocal until
            unwanted = all(job.answer.cancelled() for job in jobs)
            if unwanted or self._ending or (background and self._closed):
                raise Cancelled
            if self._queue and (began := time.monotonic()) >= until:
                self._work_for_others(jobs, background=background)
                now = time.monotonic()
                until = now if background else now + max(TURN, now - began)  # others get at most half of the time

        return may_go_on

    def _work_for_others(self, jobs: Sequence[_Job], *, background: bool) -> None:
        self._count()
        with self._changed:
            other = self._in_between(jobs, background=background)
            self._working = other is not None or not background
        if isinstance(other, _Call):
            self._do(other)
        elif other is not None:
            self._translate(other, brief=True)
        self._working = not background

    def _in_between(self, jobs: Sequence[_Job], *, background: bool) -> _Call | list[_WaitingText] | None:
        """What to do before these go on: short texts of other requests; any job, if these are in the background."""
        if background and self._queue and isinstance(call := self._queue[0], _Call):
            self._queue.popleft()
            return call
        own = {id(job.answer) for job in jobs}
        for job in self._queue:
            if isinstance(job, _WaitingText) and job.length and id(job.answer) not in own:
                if background:
                    return self._batch(job)
                if job.length <= SHORT:
                    return self._batch(job, SHORT)
        return None

    def _choose_aligner(self, check: Callable[[], None]) -> None:
        """Choose the run's aligner, and save it in the run. If that takes long, use the mean of all heads for now and
        choose it in the background."""
        if self._aligner:
            return
        self._aligner = True
        assert self._translator is not None
        self._translator.__dict__["aligner"] = Aligner(chosen_on="default, until the best is found")
        late = time.monotonic() + ALIGNER

        def in_time() -> None:
            check()
            if time.monotonic() > late:
                raise Cancelled

        try:
            with cancellable(in_time):
                _set_aligner(self._translator)
        except Cancelled:
            with self._changed:
                self._queue.append(_Call(_set_aligner, Future(), background=True))

    def _translate(self, batch: list[_WaitingText], *, brief: bool = False) -> None:
        """Translate these texts. A ``brief`` batch does not pause for others."""
        self._on_batch(len(batch))
        self._find(batch, brief=brief)

    def _find(self, batch: list[_WaitingText], *, brief: bool) -> None:
        def still_wanted() -> None:
            if self._ending or all(each.answer.cancelled() for each in batch):
                raise Cancelled

        check = still_wanted if brief else self._check(batch)
        try:
            with cancellable(check):
                if not self._aligner and self._needs_aligner(batch):
                    self._choose_aligner(check)
                results = self._search(batch)
        except Cancelled:
            return
        except Exception as problem:
            if len(batch) == 1:
                _fail(batch[0].answer, problem)
                return
            for each in batch:  # one of them caused it; the others are translated without it
                self._find([each], brief=brief)
            return
        for each, result in zip(batch, results, strict=True):
            each.results[each.position] = result
            if len(each.results) == each.count:
                _settle(each.answer, [each.results[position] for position in range(each.count)])

    def _needs_aligner(self, batch: list[_WaitingText]) -> bool:
        """Whether links are wanted, or decide which source word replaces an unknown one."""
        assert self._translator is not None
        (options, links, *_), translator = batch[0].wish, self._translator
        encode = translator.tokenizers.source.encode
        return links or (translator.search.copies(options) and any(UNK in encode(job.text) for job in batch))

    def _search(self, batch: list[_WaitingText]) -> list[Translated]:
        assert self._translator is not None
        translator, (options, links, doubt, omitted) = self._translator, batch[0].wish
        numbers = [each.position for each in batch]  # sampling does not depend on other requests
        outputs = translator.search([each.text for each in batch], options, numbers=numbers)
        found = [Translation(each.text, tuple(ranked), translator) for each, ranked in zip(batch, outputs, strict=True)]
        every = [output for each in found for output in each.outputs]
        doubts, linked = list[Doubt](), list[list[Link]]()
        if doubt:
            self._load_calibration()
            doubts, linked = translator.doubts_and_links(every)
        elif links:
            linked = translator.links(every)
        aligner = translator.aligner.describe() if links else ""
        counts = [len(each.outputs) for each in found]
        ends = list(accumulate(counts))
        return [
            (
                each,
                tuple(linked[end - count : end]) if links else (),
                aligner,
                tuple(doubts[end - count : end]),
                each.omitted if omitted and is_cheap(translator, each.outputs[0]) else (),
            )
            for each, count, end in zip(found, counts, ends, strict=True)
        ]

    def _load_calibration(self) -> None:
        """Load the run's calibration of doubt; if it has none, learn it in the background, with no value until then."""
        model = self._translator
        assert model is not None
        if "calibration" in vars(model):
            return
        vars(model)["calibration"] = known = known_calibration(model)
        if known is None and model.run is not None:
            with self._changed:
                self._queue.append(_Call(_calibrate, Future(), background=True))


_at_work: WeakSet[Worker] = WeakSet()  # those that have started a thread


@atexit.register
def _end_all() -> None:
    """A thread that is still in torch when the interpreter shuts down aborts the process, so all are stopped before."""
    workers = list(_at_work)
    for worker in workers:
        worker.end()
    for worker in workers:
        worker.join(LAST)


def _is_background(job: _Job) -> bool:
    return isinstance(job, _Call) and job.background


def _finished(job: _Job) -> float:
    """How many texts of its request are done."""
    if isinstance(job, _Call):
        return math.inf if job.background else 0
    return len(job.results)


def _knows_aligner(model: Model) -> bool:
    """Whether the aligner need not be computed."""
    if model.task != "translate" or model.run is None:
        return True
    return any(Aligner.load(folder) is not None for folder in (model.run.folder, model.run.cache))


def _set_aligner(model: Model) -> None:
    """Choose the aligner of a translator. If that fails, it translates with the default aligner."""
    assert model.task == "translate"
    assert model.run is not None
    try:
        chosen = aligner_of(model.run, model.model, model.tokenizers)
    except Exception:
        logging.getLogger(__name__).exception("the aligner of %s could not be chosen", model.run.folder.name)
        chosen = Aligner(chosen_on="default: choosing a better one failed")
    model.__dict__["aligner"] = chosen  # as `cached_property` stores it


def _calibrate(model: Model) -> None:
    """Learn the calibration of doubt."""
    assert model.task == "translate"
    vars(model)["calibration"] = calibration_of(model)


def _settle(answer: Future[Any], result: object) -> None:
    with suppress(InvalidStateError):  # the client has disconnected
        answer.set_result(result)


def _fail(answer: Future[Any], problem: Exception) -> None:
    with suppress(InvalidStateError):
        answer.set_exception(problem)
