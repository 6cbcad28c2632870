"""Translation on a GPU: a step of the search is one CUDA graph, and finished sentences are replaced by waiting ones.

A small model on a GPU spends its time launching kernels and waiting for the host to read results. Here the model's
step (`fixed`, `pooled`) is captured for a few shapes and replayed. A plain beam's choice (`slots`) is captured with it;
sampling and constraints, which depend on the texts of one call, choose between two replays and never ask the device
for a value. The host checks which sentences are done every few steps only, and reads their outputs while the device
goes on; the next sentence takes the slot of one that is done, so that no row of a step is idle until no sentence is
left.

Only the capture needs a GPU: on a CPU the same operations run one by one, which is how tests bind this to
`decode.search`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pad_sequence

from regard.decode.cancel import check_cancelled
from regard.decode.constraints import Constraint, Terms
from regard.decode.engines.fixed import FixedMemory, fits, fixed
from regard.decode.engines.pooled import StepShape
from regard.decode.engines.slots import Fetched, Slots
from regard.decode.options import Options
from regard.decode.rules import Beam, Choose, Rule, Sample
from regard.decode.search import Hypothesis
from regard.models.generator import EncoderDecoder
from regard.nn.state import select_rows
from regard.text.vocabulary import PAD

MENU = (8, 32, 128, 512)  # sentences that are searched at once
GRAIN = 32  # source and target lengths of captured steps are multiples of this
LOOK_EVERY = 4  # steps between two checks of which sentences are done
SHARE = 0.5  # of the device's free memory that may be taken
Step = Callable[[], None]
Key = tuple[object, StepShape]  # what a captured step serves (`SearchMemory.use`), and the part of memory that it reads
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]  # cuDNN plans for every shape


@dataclass(frozen=True)
class SearchMemory:
    """The memory of a search, and how large it is."""

    use: object  # what it serves: a plain beam, which is captured too, or all choices with so many hypotheses
    wanted: int  # sentences that were asked for; there may be memory for fewer
    shape: StepShape
    slots: Slots
    model: FixedMemory
    given: Tensor | None  # (B, W, V) log-probabilities for a choice that is not captured


@dataclass(frozen=True)
class Choosing:
    """How one search chooses."""

    rule: Rule
    choose: Choose
    constraints: Sequence[Constraint] = ()

    @staticmethod
    def of(rule: Rule, numbers: Sequence[int], limits: Tensor, constraints: Sequence[Constraint]) -> Choosing:
        return Choosing(rule, rule.begin(numbers, limits, constraints, observed=True), constraints)

    @property
    def plain(self) -> bool:
        """Whether it knows nothing of the texts of a call, so that it can be captured."""
        return isinstance(self.rule, Beam) and not self.constraints

    @property
    def use(self) -> object:
        sampled = isinstance(self.rule, Sample)
        return self.rule if self.plain else (sampled, self.rule.rows, self.rule.best)

    def bytes(self, target: int, vocabulary: int) -> int:
        """That it needs for one sentence, about."""
        entries = self.rule.rows * vocabulary
        found = entries * (12 if self.plain else 80 if isinstance(self.rule, Sample) else 24)
        for terms in self.constraints:
            if isinstance(terms, Terms):  # looks for each term in each place of each candidate
                found += 3 * self.rule.rows * (self.rule.rows + terms.count) * target * terms.tokens[0].numel()
        return found


class Captured:
    """An `Engine` that finds the outputs of `decode.search`, for models that it `fits`."""

    def __init__(
        self,
        models: Sequence[EncoderDecoder],
        kind: torch.dtype = torch.float32,
        *,
        name: str = "native",
        menu: Sequence[int] = MENU,
        look_every: int = LOOK_EVERY,
    ) -> None:
        weight = models[0].decoder.output.weight
        self.model = fixed(
            [model if weight.dtype == kind else copy.deepcopy(model).to(kind).eval() for model in models]
        )
        self.device, self.name = weight.device, name
        self.menu, self.look_every = tuple(menu), look_every
        self.memories: dict[bool, SearchMemory] = {}  # one for plain beams, one for the rest: neither drops the other
        self.bytes = 0  # all of its memory is torch's
        self.graphs = Graphs(self.device) if self.device.type == "cuda" else None

    fits = staticmethod(fits)

    def refuses(self, options: Options) -> str:
        """What compares whole texts, or looks at attention, is refused."""
        rule = options.rule
        return "groups and coverage" if rule.distinct or rule.coverage_penalty else ""

    @torch.inference_mode()
    def search(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        rule: Beam | Sample,
        budget: int,  # noqa: ARG002  the memory of the device decides
        *,
        constraints: Sequence[Constraint] = (),
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """For each source, ``<end>`` included, its outputs, best first."""
        if not sources:
            return []
        known = range(len(sources)) if numbers is None else numbers
        with self._computing():
            choosing = Choosing.of(rule, known, torch.tensor(limits, device=self.device), constraints)
            memory = self._memory_for(choosing, len(sources), max(map(len, sources)), max(limits))
            return _Search(self, memory, choosing, sources, limits).run()

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """On a stream of our own, which capturing needs."""
        if self.graphs is None:
            yield
            return
        self.graphs.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.graphs.stream), sdpa_kernel(KERNELS):
            yield
        torch.cuda.current_stream(self.device).wait_stream(self.graphs.stream)

    def _memory_for(self, choosing: Choosing, count: int, source: int, target: int) -> SearchMemory:
        """The present memory if it is large enough; else a larger one, for which steps are captured again."""
        wanted, source, target = on_menu(self.menu, count), grained(source), grained(target)
        old, rule = self.memories.pop(choosing.plain, None), choosing.rule
        if old is not None and old.use == choosing.use:
            if wanted <= old.wanted and source <= old.shape.source and target <= old.shape.target:
                self.memories[choosing.plain] = old
                return old
            wanted = max(wanted, old.wanted)
            source, target = max(source, old.shape.source), max(target, old.shape.target)
        if self.graphs is not None and old is not None:
            self.graphs.forget(old.use)
        old = None  # its memory may be needed
        weight = self.model.weight
        each = self.model.bytes(rule.rows, source, target) + choosing.bytes(target, len(weight))
        shape = StepShape(fitting(self.menu, wanted, each, self._free()), source, target)
        slots = Slots.empty(rule, shape.sentences, target, weight)
        given = None if choosing.plain else slots.totals.new_empty(*slots.totals.shape, len(weight))
        model = self.model.memory(rule, shape)
        found = self.memories[choosing.plain] = SearchMemory(choosing.use, wanted, shape, slots, model, given)
        return found

    def _free(self) -> float:
        """Bytes that may be taken."""
        if self.device.type != "cuda":
            return float("inf")
        free, _ = torch.cuda.mem_get_info(self.device)
        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return SHARE * (free + kept)

    def step(self, memory: SearchMemory, choosing: Choosing, shape: StepShape) -> None:
        """One token further for the first sentences in memory: one graph on a GPU, or one for the model alone."""
        given = None if memory.given is None else memory.given[: shape.sentences]

        def captured() -> None:
            log_probabilities = self._read(memory, shape)
            if given is None:
                self._choose(memory, choosing, shape, log_probabilities)
            else:
                given.copy_(log_probabilities)

        if self.graphs is None:
            captured()
        else:
            self.graphs.run((memory.use, shape), captured)
        if given is not None:
            self._choose(memory, choosing, shape, given)

    # Only work on the device, in shapes that depend on no value: it can be captured, and nothing waits for it.

    def _read(self, memory: SearchMemory, shape: StepShape) -> Tensor:
        """The model's part: log-probabilities (B, W, V) of the next tokens."""
        slots = memory.slots.first(shape.sentences)
        logits = self.model.step(slots.tokens, slots.written, memory.model, shape)
        return logits.log_softmax(-1, dtype=slots.totals.dtype)

    def _choose(self, memory: SearchMemory, choosing: Choosing, shape: StepShape, log_probabilities: Tensor) -> None:
        """The rule's part."""
        slots = memory.slots.first(shape.sentences)
        parents = slots.advance(log_probabilities, choosing.rule, choosing.choose, choosing.constraints, shape.target)
        if parents is not None:
            memory.model.follow(parents, shape)


class Graphs:
    """Captured steps by their shapes. The first step of a shape runs as it is, to warm up; the second is captured. They
    are replayed one after the other, so they share one pool of memory."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()
        self.met: set[Key] = set()
        self.graphs: dict[Key, torch.cuda.CUDAGraph] = {}

    def forget(self, use: object) -> None:
        """Drop the graphs of a memory that is freed; with the last of all, the pool goes too."""
        self.met = {key for key in self.met if key[0] != use}
        self.graphs = {key: graph for key, graph in self.graphs.items() if key[0] != use}
        if not self.graphs:
            self.pool = torch.cuda.graph_pool_handle()

    def run(self, key: Key, step: Step) -> None:
        if key not in self.met:
            self.met.add(key)
            step()
            return
        if key not in self.graphs:
            self.graphs[key] = self._capture(step)
        self.graphs[key].replay()

    def _capture(self, step: Step) -> torch.cuda.CUDAGraph:
        """`torch.cuda.graph` without collecting garbage and emptying caches, which take longer than the rest."""
        graph = torch.cuda.CUDAGraph()
        self.stream.synchronize()
        graph.capture_begin(pool=self.pool, capture_error_mode="thread_local")
        try:
            step()
        finally:
            graph.capture_end()
        return graph


class _Search:
    """The host's side of one search: which sentence is in which slot, which ones wait, and the outputs so far."""

    def __init__(
        self,
        engine: Captured,
        memory: SearchMemory,
        choosing: Choosing,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
    ) -> None:
        self.engine, self.memory, self.choosing, self.device = engine, memory, choosing, engine.device
        self.sources, self.limits = sources, limits
        self.results: list[list[Hypothesis]] = [[] for _ in sources]
        self.waiting = sorted(range(len(sources)), key=lambda row: len(sources[row]))  # the longest are taken first
        self.ready: list[int] = []  # sentences that are encoded and have no slot yet
        self.encoded: Any = None  # what the model remembers of these and of those that came with them
        self.placed = 0  # how many of those came into slots
        self.held: dict[int, int] = {}  # the sentence in each slot that is taken
        self.began: dict[int, int] = {}  # the time at which it came
        self.time = 0  # steps so far
        self.opening = choosing.rule.opening().to(self.device)

    def run(self) -> list[list[Hypothesis]]:
        under_way: tuple[list[int], Fetched] | None = None
        self.memory.slots.clear()
        while self._fill():
            check_cancelled()
            self._compact()
            shape = self._shape()
            for _ in range(self.engine.look_every):
                self.engine.step(self.memory, self.choosing, shape)
            self.time += self.engine.look_every
            self._keep(under_way)  # while the device computes
            under_way = self._leave(self.memory.slots.open[: shape.sentences].tolist())
        self._keep(under_way)
        return self.results

    def _fill(self) -> bool:
        """Put waiting sentences into free slots; returns whether any sentence is left."""
        free = [slot for slot in range(self.memory.shape.sentences) if slot not in self.held]
        while free and (self.ready or self.waiting):
            if not self.ready:
                self._encode()
            count = min(len(free), len(self.ready))
            rows, slots = self.ready[:count], free[:count]
            self.ready, free = self.ready[count:], free[count:]
            where, part = self._send(slots), self._send(list(range(self.placed, self.placed + count)))
            self.placed += count
            self.memory.model.fill(where, select_rows(self.encoded, part))
            limits = self._send([self.limits[row] for row in rows])
            self.memory.slots.fill(where, self._send(rows), limits, self.engine.model.first, self.opening)
            self.held.update(zip(slots, rows, strict=True))
            self.began.update(dict.fromkeys(slots, self.time))
        return bool(self.held)

    def _encode(self) -> None:
        """Encode the next sources, as many as there are slots."""
        count = min(len(self.waiting), self.memory.shape.sentences)
        self.ready = [self.waiting.pop() for _ in range(count)]
        rows = [torch.tensor(self.sources[row]) for row in self.ready]
        source = self._upload(pad_sequence(rows, batch_first=True, padding_value=PAD))
        self.encoded, self.placed = self.engine.model.encode(source), 0

    def _compact(self) -> None:
        """When no sentence waits and few are left, move them into the first slots, so that a step is smaller."""
        size = on_menu(self.engine.menu, len(self.held))
        late = [slot for slot in self.held if slot >= size]
        if self.ready or self.waiting or not late:
            return
        free = [slot for slot in range(size) if slot not in self.held][: len(late)]
        old, new = self._send(late), self._send(free)
        self.memory.slots.move(old, new)
        self.memory.model.move(old, new)
        for there, here in zip(late, free, strict=True):
            self.held[here], self.began[here] = self.held.pop(there), self.began[there]

    def _shape(self) -> StepShape:
        """The part of the memory that the sentences in it need for the next steps."""
        source = max(len(self.sources[row]) for row in self.held.values())
        ages = [
            min(self.time - self.began[slot] + self.engine.look_every, self.limits[row])
            for slot, row in self.held.items()
        ]
        return StepShape(on_menu(self.engine.menu, max(self.held) + 1), grained(source), grained(max(ages)))

    def _leave(self, still: list[bool]) -> tuple[list[int], Fetched] | None:
        """Free the slots of sentences that are done; returns these, and their outputs on the way to the host."""
        done = [slot for slot in self.held if not still[slot]]
        if not done:
            return None
        longest = max(min(self.time - self.began[slot], self.limits[self.held[slot]]) for slot in done)
        fetched = self.memory.slots.fetch(self._send(done), longest)
        return [self.held.pop(slot) for slot in done], fetched

    def _keep(self, under_way: tuple[list[int], Fetched] | None) -> None:
        if under_way is not None:
            for row, hypotheses in zip(under_way[0], under_way[1](), strict=True):
                self.results[row] = hypotheses

    def _send(self, values: list[int]) -> Tensor:
        return self._upload(torch.tensor(values))

    def _upload(self, values: Tensor) -> Tensor:
        """A copy on the device, without waiting for it."""
        return values.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else values


def on_menu(menu: Sequence[int], count: int) -> int:
    """The smallest size of the menu that is large enough; else the largest."""
    return next((size for size in menu if size >= count), menu[-1])


def fitting(menu: Sequence[int], wanted: int, each: int, free: float) -> int:
    """The largest size of the menu up to ``wanted`` that fits into ``free`` bytes; at least the smallest."""
    return max([size for size in menu if size <= wanted and size * each <= free], default=menu[0])


def grained(length: int) -> int:
    return -(-length // GRAIN) * GRAIN
