"""One thread owns each model: batches, a bounded queue, time-outs, leaving; and runs that come and go."""

from __future__ import annotations

import asyncio
import errno
import shutil
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import corpora_for_tests as small
import regard
import serving
from regard.decode.cancel import check_cancelled
from regard.decode.options import Options
from regard.decode.rules import Beam, Sample
from regard.errors import DataError, ModelError, ResourceError, SettingsError
from regard.serve import worker as serve_worker
from regard.serve.library import Library
from regard.serve.limits import BusyError, LateError, Limits, TooLargeError
from regard.serve.pairs import summary_at
from regard.serve.worker import Worker
from regard.tasks.language import Writer
from regard.tasks.load import load, load_run
from regard.tasks.translator import Translator
from regard.text import ByteTokenizer

SENTENCES = [
    "the black cat ate the mouse",
    "the bear sleeps",
    "",
    "a small bird sees the river and the old bear near the house",
    "the cat",
    "the dog ate the bread",
    "a bird sings",
]
GREEDY = Options(Beam(1))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return serving.runs(tmp_path_factory) / "attentive"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without attention."""
    return serving.runs(tmp_path_factory) / "plain"


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return load(trained)


class Gate:
    """Work that goes on until it is let."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, _: object) -> str:
        self.begun.set()
        assert self.may_end.wait(serving.PATIENCE)
        return "done"

    async def is_open(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, serving.PATIENCE)


def run(work: Callable[[], Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work(), 2 * serving.PATIENCE)

    return asyncio.run(bounded())


async def together(worker: Worker, *asked: Coroutine[Any, Any, Any]) -> list[Any]:
    """What becomes of requests that all wait when the worker is free for the first of them."""
    gate = Gate()
    busy = asyncio.create_task(worker.call(gate))
    await gate.is_open()
    waiting = [asyncio.create_task(each) for each in asked]
    await asyncio.sleep(0)
    gate.may_end.set()
    await busy
    return await asyncio.gather(*waiting)


# Batches


def test_a_short_text_that_nobody_waits_for_any_more_is_not_searched_for(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it was taken in between other work: nothing else asks whether its client is there."""
    answer: Future[list[serve_worker.Translated]] = Future()
    answer.cancel()
    text = serve_worker._WaitingText("the cat", (GREEDY, False, False, False), answer, {}, position=0, count=1)
    failed: list[BaseException] = []
    monkeypatch.setattr(serve_worker, "_fail", lambda _, problem: failed.append(problem))
    Worker(load(plain))._find([text], brief=True)
    assert (text.results, failed) == ({}, [])


def test_texts_that_wait_together_share_a_batch_and_come_out_as_if_alone(translator: Translator) -> None:
    sizes: list[int] = []
    worker = Worker(translator, on_batch=sizes.append)
    options = Options(Beam(3, best=2))
    asked = [worker.translate([text], options, links=True) for text in SENTENCES]
    found = [each for (each,) in run(lambda: together(worker, *asked))]
    assert sizes == [len(SENTENCES)]
    for text, each in zip(SENTENCES, found, strict=True):
        alone = translator.translate(text, options)
        assert [output.text for output in each[0].outputs] == [output.text for output in alone.outputs]
        assert each[0].score == pytest.approx(alone.score, abs=1e-4)
        for rank, links in enumerate(each[1]):
            expected = alone.alignment(rank)
            assert [link[:2] + link[3:] for link in links] == [link[:2] + link[3:] for link in expected]
            assert [link.weight for link in links] == pytest.approx([link.weight for link in expected], abs=1e-4)


@pytest.mark.parametrize("risk", [False, True])
def test_what_is_drawn_depends_on_the_request_and_its_seed_and_not_on_who_else_asks(
    translator: Translator, *, risk: bool
) -> None:
    sizes: list[int] = []
    worker = Worker(translator, on_batch=sizes.append)
    options = Options(Sample(3, seed=4), risk=risk)
    texts = [SENTENCES[0], SENTENCES[5]]
    asked = [worker.translate(each, options) for each in (SENTENCES[:2], texts, texts)]
    _, *found = run(lambda: together(worker, *asked))
    assert sizes == [6]
    alone = [[output.text for output in each.outputs] for each in translator.translate(texts, options)]
    for several in found:
        assert [[output.text for output in each[0].outputs] for each in several] == alone


def test_a_request_keeps_its_order_whatever_batches_it_went_through(translator: Translator) -> None:
    sizes: list[int] = []
    worker = Worker(translator, Limits(together=2), on_batch=sizes.append)
    found = run(lambda: worker.translate(SENTENCES, GREEDY))
    assert [each[0].source for each in found] == SENTENCES
    assert [each[0].text for each in found] == [each.text for each in translator.translate(SENTENCES, GREEDY)]
    assert max(sizes) == 2
    assert sum(sizes) == len(SENTENCES)


def test_a_batch_is_the_oldest_text_with_those_nearest_in_length(translator: Translator) -> None:
    """With room for three of thirteen pieces, the short ones go first because the oldest is short."""
    sizes: list[int] = []
    worker = Worker(translator, Limits(together=3, gather=0.2), on_batch=sizes.append)
    order: list[str] = []
    search = worker._search
    worker._search = lambda batch: order.extend(each.text for each in batch) or search(batch)  # type: ignore[method-assign, func-returns-value]

    run(lambda: worker.translate(["the cat", SENTENCES[3], SENTENCES[0], "the bear sleeps", "a bird"], GREEDY))
    assert set(order[:3]) == {"the cat", "a bird", "the bear sleeps"}


def test_texts_with_other_wishes_go_in_another_batch(translator: Translator) -> None:
    sizes: list[int] = []
    worker = Worker(translator, on_batch=sizes.append)
    asked = [worker.translate([text], options) for text in SENTENCES[:3] for options in (GREEDY, Options(Beam(2)))]
    run(lambda: together(worker, *asked))
    assert sizes == [3, 3]


def test_a_batch_holds_no_more_than_its_budget(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.serve.worker.BUDGET", 30)
    sizes: list[int] = []
    worker = Worker(translator, Limits(gather=0.1), on_batch=sizes.append)
    run(lambda: worker.translate(["the black cat ate the mouse"] * 9, GREEDY))
    assert sizes == [4, 4, 1]  # seven pieces each, with <end>


def test_who_is_to_blame_fails_alone(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(translator, Limits(gather=0.2))
    search = worker._search

    def picky(batch: list[Any]) -> Any:
        if any("dog" in each.text for each in batch):
            raise DataError("text = dog: cannot be meant; say cat")
        return search(batch)

    monkeypatch.setattr(worker, "_search", picky)

    async def all_at_once() -> Any:
        asked = (worker.translate([text], GREEDY) for text in SENTENCES)
        return await asyncio.gather(*asked, return_exceptions=True)

    for text, found in zip(SENTENCES, run(all_at_once), strict=True):
        assert isinstance(found, DataError if "dog" in text else list)


def test_a_model_without_attention_has_no_links(plain: Path) -> None:
    (found,) = run(lambda: Worker(load(plain)).translate(["the cat"], GREEDY, links=True))
    assert found[1] == ()


def test_nothing_to_translate_is_nothing(translator: Translator) -> None:
    assert run(lambda: Worker(translator).translate([], GREEDY)) == []


def test_only_a_translator_translates() -> None:
    model = regard.language_model(small.settings("gru").model, 7)
    worker = Worker(Writer(model, ByteTokenizer(), torch.device("cpu")))
    with pytest.raises(ModelError, match="does not translate"):
        run(lambda: worker.translate(["the cat"], GREEDY))


# Calls, the queue, leaving


def test_calls_run_one_by_one_on_one_thread_between_the_batches(translator: Translator) -> None:
    worker = Worker(translator, Limits(gather=0.05))
    order: list[str] = []

    async def mixed() -> Any:
        first = asyncio.create_task(worker.translate(["the cat"], GREEDY))
        await asyncio.sleep(0)
        names = await asyncio.gather(*(worker.call(lambda _: threading.current_thread().ident) for _ in range(3)))
        order.append("calls")
        await first
        return names

    assert len(set(run(mixed))) == 1
    assert order == ["calls"]


def test_a_problem_of_a_call_is_the_callers_and_the_thread_goes_on(translator: Translator) -> None:
    worker = Worker(translator)

    async def both() -> Any:
        with pytest.raises(ZeroDivisionError):
            await worker.call(lambda _: 1 // 0)
        return await worker.call(lambda model: model)

    assert run(both) is translator


def test_a_full_queue_is_an_answer_with_the_time_to_wait(translator: Translator) -> None:
    worker, gate = Worker(translator, Limits(queue=3)), Gate()

    async def crowd() -> None:
        busy = asyncio.create_task(worker.call(gate))
        await gate.is_open()
        waiting = asyncio.create_task(worker.translate(["the cat"] * 3, GREEDY))
        await asyncio.sleep(0)
        assert worker.waiting == 3
        with pytest.raises(BusyError, match="queue = 3 waiting: is full; ask again in 1 s") as refused:
            await worker.translate(["the cat"], GREEDY)
        assert refused.value.seconds == 1
        gate.may_end.set()
        assert await busy == "done"
        assert len(await waiting) == 3

    run(crowd)
    with pytest.raises(TooLargeError, match="texts = 4"):
        run(lambda: worker.translate(["the cat"] * 4, GREEDY))


def test_who_waited_too_long_is_told_and_leaves_the_queue(translator: Translator) -> None:
    worker, gate = Worker(translator, Limits(seconds=0.05)), Gate()

    async def wait() -> None:
        with pytest.raises(LateError, match=r"time = 0\.05 s"):
            await worker.call(gate)
        with pytest.raises(LateError):
            await worker.translate(["the cat"], GREEDY)
        assert worker.waiting == 0
        gate.may_end.set()

    run(wait)


def test_who_leaves_is_dropped_and_the_others_go_on(translator: Translator) -> None:
    sizes: list[int] = []
    worker, gate = Worker(translator, Limits(gather=0.0), on_batch=sizes.append), Gate()

    async def leave() -> Any:
        busy = asyncio.create_task(worker.call(gate))
        await gate.is_open()
        gone = asyncio.create_task(worker.translate(["the dog"] * 5, GREEDY))
        never = asyncio.create_task(worker.call(lambda _: sizes.append(99)))
        stays = asyncio.create_task(worker.translate(["the cat"], GREEDY))
        await asyncio.sleep(0)
        gone.cancel()
        never.cancel()
        while worker.waiting > 1:  # `run` ends a wait without end
            await asyncio.sleep(0.001)
        assert worker.waiting == 1
        gate.may_end.set()
        await busy
        return await stays

    assert len(run(leave)) == 1
    assert sizes == [1]


def test_a_search_that_nobody_waits_for_stops_at_the_next_step(translator: Translator) -> None:
    """The second step comes only after the client has left, and is the last."""
    worker, gate, steps = Worker(translator), Gate(), []
    model = translator.model
    step = model.step

    def slow(*arguments: Any) -> Any:
        steps.append(1)
        gate(None)
        return step(*arguments)

    object.__setattr__(model, "step", slow)

    async def leave() -> None:
        asked = asyncio.create_task(worker.translate(["the black cat ate the mouse"], Options(Beam(1), shortest=2.0)))
        await gate.is_open()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        gate.may_end.set()
        await worker.call(lambda _: None)

    try:
        run(leave)
    finally:
        object.__delattr__(model, "step")
    assert len(steps) == 1


def test_a_closed_worker_finishes_its_queue_and_still_answers_who_holds_it(translator: Translator) -> None:
    worker, gate = Worker(translator), Gate()

    async def close() -> Any:
        busy = asyncio.create_task(worker.call(gate))
        await gate.is_open()
        last = asyncio.create_task(worker.translate(["the cat"], GREEDY))
        await asyncio.sleep(0)
        worker.close()
        gate.may_end.set()
        return await busy, await last

    done, found = run(close)
    worker.join(serving.PATIENCE)
    assert (done, len(found), worker._thread) == ("done", 1, None)
    assert run(lambda: worker.call(lambda _: 7)) == 7


# The library


@pytest.fixture
def folder(trained: Path, plain: Path, tmp_path: Path) -> Path:
    """A folder with two runs, something else, and a link."""
    runs = tmp_path / "runs"
    shutil.copytree(trained, runs / "attentive")
    shutil.copytree(plain, runs / "plain")
    (runs / "notes").mkdir()
    (runs / "link").symlink_to(trained)
    (runs / "a name with spaces").mkdir()
    (runs / "a name with spaces" / "settings.toml").touch()
    return runs


def test_the_runs_of_a_folder_and_those_that_were_named_are_known(folder: Path, trained: Path) -> None:
    assert list(Library(folder).runs()) == ["attentive", "plain"]
    assert Library(folder, [trained]).runs()["attentive"] == trained
    assert Library(folder, [trained]).path("attentive") == trained
    assert Library(None, [trained]).runs() == {"attentive": trained}
    assert Library(folder / "nowhere").runs() == {}


@pytest.mark.parametrize("name", ["..", ".", "", "../runs/plain", "notes", "link", "a name with spaces", "plain/", "/"])
def test_no_name_leads_out_of_the_folder(folder: Path, name: str) -> None:
    with pytest.raises(ModelError, match="no such run here"):
        Library(folder).path(name)


def test_two_runs_of_one_name_and_names_that_no_address_can_hold_are_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="another run named attentive"):
        Library(None, [trained, tmp_path / "attentive"])
    with pytest.raises(SettingsError, match="an address cannot hold"):
        Library(None, [tmp_path / "ein Lauf"])


def test_a_run_is_loaded_once_when_it_is_first_asked_for(folder: Path) -> None:
    library = Library(folder)
    assert library.loaded == {}

    async def twice() -> Any:
        return await asyncio.gather(library.worker("attentive"), library.worker("attentive"))

    first, second = run(twice)
    assert first is second
    assert list(library.loaded) == ["attentive"]
    library.close()


def test_loading_goes_on_for_others_when_the_first_who_asked_leaves(folder: Path) -> None:
    library = Library(folder)

    async def leave() -> Any:
        first = asyncio.create_task(library.worker("attentive"))
        second = asyncio.create_task(library.worker("attentive"))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert run(leave).bytes > 0


def test_the_run_that_was_not_asked_for_longest_makes_room(folder: Path) -> None:
    sizes = {name: run(lambda name=name: Library(folder).worker(name)).bytes for name in ("attentive", "plain")}
    shutil.copytree(folder / "plain", folder / "third")
    library = Library(folder, limits=Limits(memory=sizes["attentive"] + sizes["plain"] + 100))

    async def in_turn() -> list[set[str]]:
        seen = []
        for name in ("attentive", "plain", "attentive", "third"):
            await library.worker(name)
            seen.append(set(library.loaded))
        return seen

    assert run(in_turn)[-2:] == [{"attentive", "plain"}, {"attentive", "third"}]


def test_one_that_works_is_never_put_away(folder: Path) -> None:
    size = run(lambda: Library(folder).worker("attentive")).bytes
    library, gate = Library(folder, limits=Limits(memory=size + 100)), Gate()

    async def both() -> None:
        worker = await library.worker("attentive")
        busy = asyncio.create_task(worker.call(gate))
        await gate.is_open()
        with pytest.raises(ResourceError, match=r"run = plain: needs .* can be freed"):
            await library.worker("plain")
        gate.may_end.set()
        assert await busy == "done"
        while not worker.idle:  # its thread has answered, and goes on to see that nothing waits
            await asyncio.sleep(0.001)
        await library.worker("plain")
        assert list(library.loaded) == ["plain"]

    run(both)


def test_one_that_cannot_fit_puts_nobody_away(folder: Path) -> None:
    size = run(lambda: Library(folder).worker("attentive")).bytes
    library = Library(folder, limits=Limits(memory=size + 100))

    async def both() -> None:
        first = await library.worker("attentive")
        with pytest.raises(ResourceError, match=r"can be freed; try again later, or raise serve\.memory"):
            library._make_room("huge", size + 200)
        assert await library.worker("attentive") is first

    run(both)


def test_a_folder_that_may_not_be_looked_into_harms_no_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small.forbid(monkeypatch, folder / "plain")
    assert list(Library(folder).runs()) == ["attentive"]
    assert "permission denied" in summary_at(folder / "plain", "plain").note


def test_what_could_not_be_read_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        small.forbid(broken, folder / "plain" / "settings.toml", errno.EMFILE)
        assert summary_at(folder / "plain", "plain").state == "unreadable"
    assert summary_at(folder / "plain", "plain").state == "finished"


def test_a_run_that_went_on_is_loaded_anew(folder: Path) -> None:
    library = Library(folder)

    async def change() -> None:
        first = await library.worker("attentive")
        assert await library.worker("attentive") is first
        (folder / "attentive" / "best").write_text("step-23\n ")
        second = await library.worker("attentive")
        assert second is not first
        assert await first.call(lambda _: 1) == 1

    run(change)


def test_a_run_that_could_not_be_loaded_is_tried_again(folder: Path) -> None:
    library, weights = Library(folder), folder / "plain" / "best"
    settings = (folder / "plain" / "settings.toml").read_bytes()

    async def mend() -> None:
        (folder / "plain" / "settings.toml").write_text("about = 'x'\n")
        with pytest.raises(SettingsError):
            await library.worker("plain")
        with pytest.raises(SettingsError):
            await library.worker("plain")
        (folder / "plain" / "settings.toml").write_bytes(settings)
        assert (await library.worker("plain")).bytes > 0

    run(mend)
    assert weights.exists()


def test_a_run_that_changes_while_it_is_read_is_asked_for_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise FileNotFoundError("step-60")

    monkeypatch.setattr("regard.serve.library.load_run", gone)
    with pytest.raises(ResourceError, match="run = plain: changed while it was read; ask again"):
        run(lambda: Library(folder).worker("plain"))


@pytest.mark.parametrize("limits", [Limits(texts=2, text=5), replace(Limits(), queue=2, text=5)])
def test_limits_say_what_would_be_right(limits: Limits) -> None:
    limits.check(["a", "b"])
    with pytest.raises(TooLargeError, match="texts = 3 texts: too many at once; send at most 2"):
        limits.check(["a", "b", "c"])
    with pytest.raises(TooLargeError, match=r"q\.1 = 6 characters: too long; send at most 5"):
        limits.check(["a", "bbbbbb"], "q")


@pytest.mark.parametrize("written", [".", "../{name}", "{place}"])
def test_a_client_sees_names_and_no_places(trained: Path, written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    path = Path(written.format(name=trained.name, place=trained))
    wanted = f"{trained.name}: is broken. Train it again."
    for library in (Library(named=[path]), Library(path / "..")):
        assert library.conceal(f"{trained.resolve()}: is broken. Train it again.") == wanted
    assert Library(named=[path]).conceal(f"{path}/log.jsonl") == f"{trained.name}/log.jsonl" or written == "."


def test_loading_has_all_threads_and_leaves_none_behind(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is made then takes as many as torch has, and torch's own end with the thread that had them."""
    seen: list[tuple[threading.Thread, int]] = []

    def load_and_look(*arguments: Any, **named: Any) -> Any:
        seen.append((threading.current_thread(), torch.get_num_threads()))
        return load_run(*arguments, **named)

    monkeypatch.setattr("regard.serve.library.load_run", load_and_look)
    run(lambda: Library(named=[trained]).worker(trained.name))
    ((thread, count),) = seen
    assert count == torch.get_num_threads()
    assert not thread.is_alive()


# Work that takes long


class Long:
    """Work that goes on, step by step, until it is cancelled or let."""

    def __init__(self) -> None:
        self.begun, self.may_end, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, _: object) -> str:
        self.begun.set()
        try:
            while not self.may_end.wait(0.001):
                check_cancelled()
        finally:
            self.ended.set()
        return "done"

    async def is_open(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, serving.PATIENCE)


def test_work_stops_at_its_next_step_when_its_client_has_left_or_its_time_is_up(translator: Translator) -> None:
    worker, brief, left, late = Worker(translator), Worker(translator, Limits(seconds=0.05)), Long(), Long()

    async def leave() -> None:
        asked = asyncio.create_task(worker.call(left))
        await left.is_open()
        asked.cancel()
        assert await worker.call(lambda _: "free") == "free"
        with pytest.raises(LateError):
            await brief.call(late)
        assert await asyncio.to_thread(late.ended.wait, 20)

    run(leave)
    assert left.ended.is_set()


def test_short_texts_of_others_go_before_work_that_takes_long(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once each way: while a call goes on, and while a batch does. What comes out is what comes out alone."""
    monkeypatch.setattr(serve_worker, "TURN", 0.0)
    worker, long, expected = Worker(translator), Long(), translator.translate("the cat", GREEDY).text

    async def both() -> None:
        busy = asyncio.create_task(worker.call(long))
        await long.is_open()
        found = await worker.translate(["the cat"], GREEDY)
        assert found[0][0].text == expected
        assert not busy.done()
        long.may_end.set()
        assert await busy == "done"

    run(both)


def test_long_texts_wait_for_their_turn(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_worker, "TURN", 0.0)
    monkeypatch.setattr(serve_worker, "SHORT", 3)
    worker, long = Worker(translator), Long()

    async def both() -> None:
        busy = asyncio.create_task(worker.call(long))
        await long.is_open()
        later = asyncio.create_task(worker.translate([SENTENCES[0]], GREEDY))
        await worker.translate(["cat"], GREEDY)
        assert not later.done()
        long.may_end.set()
        await busy
        assert len(await later) == 1

    run(both)


def test_who_asks_for_little_does_not_wait_for_who_asks_for_much(translator: Translator) -> None:
    worker, gate, order = Worker(translator, Limits(together=1, gather=0.0)), Gate(), list[str]()
    search = worker._search
    worker._search = lambda batch: order.extend(each.text for each in batch) or search(batch)  # type: ignore[method-assign, func-returns-value]

    async def both() -> None:
        busy = asyncio.create_task(worker.call(gate))
        await gate.is_open()
        much = asyncio.create_task(worker.translate(["the dog"] * 7, GREEDY))
        await asyncio.sleep(0)
        little = asyncio.create_task(worker.translate(["the cat"], GREEDY))
        await asyncio.sleep(0)
        gate.may_end.set()
        await asyncio.gather(busy, much, little)

    run(both)
    assert order.index("the cat") == 1


def test_calls_that_follow_each_other_leave_every_other_turn_to_a_large_request(translator: Translator) -> None:
    worker, gate, order = Worker(translator, Limits(together=1, gather=0.0)), Gate(), list[str]()
    search = worker._search
    worker._search = lambda batch: order.append("text") or search(batch)  # type: ignore[method-assign, func-returns-value]

    async def both() -> None:
        busy = asyncio.create_task(worker.call(gate))
        await gate.is_open()
        much = asyncio.create_task(worker.translate(["the dog"] * 4, GREEDY))
        await asyncio.sleep(0)
        calls = [asyncio.create_task(worker.call(lambda _: order.append("call"))) for _ in range(4)]
        await asyncio.sleep(0)
        gate.may_end.set()
        await asyncio.gather(busy, much, *calls)

    run(both)
    assert order == ["text", "call"] * 4


def test_texts_are_counted_without_holding_up_who_asks(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both before a batch and while a call goes on; as far as a turn goes, who is next before all others."""
    worker, long, free, counted = Worker(translator, Limits(gather=0.0)), Long(), list[bool](), list[str]()
    monkeypatch.setattr(serve_worker, "TURN", 0.0)
    pieces = worker._pieces

    def watched(text: str) -> int:
        def look() -> None:
            free.append(worker._changed.acquire(timeout=5))
            worker._changed.release()

        other = threading.Thread(target=look)
        other.start()
        other.join(serving.PATIENCE)
        counted.append(text)
        return pieces(text)

    monkeypatch.setattr(worker, "_pieces", watched)

    async def ask() -> None:
        await worker.translate(["the cat", "the dog"], GREEDY)
        busy = asyncio.create_task(worker.call(long))
        await long.is_open()
        await worker.translate(["the bear"], GREEDY)
        long.may_end.set()
        await busy

    run(ask)
    assert free == [True] * 3
    assert counted == ["the cat", "the dog", "the bear"]


@pytest.fixture
def unaligned(trained: Path, tmp_path: Path) -> Path:
    """A run whose aligner nobody has chosen yet."""
    shutil.copytree(trained, tmp_path / "unaligned")
    (tmp_path / "unaligned" / "aligner.json").unlink()
    return tmp_path / "unaligned"


def test_the_aligner_is_chosen_when_links_are_first_asked_for(unaligned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_worker, "ALIGNER", 1000.0)
    translator = load(unaligned)
    worker = Worker(translator)
    run(lambda: worker.translate(["the cat"], GREEDY))
    assert not (unaligned / "aligner.json").exists()
    run(lambda: worker.translate(["the unheard-of cat"], GREEDY))  # what is copied for it, the aligner decides
    assert (unaligned / "aligner.json").exists()
    (found,) = run(lambda: worker.translate(["the cat"], GREEDY, links=True))
    assert "best aligner on valid" in found[2]
    assert found[2] == load(unaligned).aligner.describe()


def test_an_aligner_that_takes_long_is_chosen_when_nobody_waits(
    unaligned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_worker, "ALIGNER", -1.0)
    worker = Worker(load(unaligned))
    first = run(lambda: worker.call(lambda model: model.aligner.describe()))  # type: ignore[union-attr]
    assert first == "cross-attention, mean of all heads (chosen by default, until the best is found)"

    async def again() -> str:
        while (now := (await worker.translate(["the cat"], GREEDY, links=True))[0][2]) == first:
            await asyncio.sleep(0.01)
        return now

    assert "best aligner on valid" in run(again)
    worker.close()
    worker.join(serving.PATIENCE)


def test_a_choice_that_fails_harms_no_answer_and_is_not_promised_any_more(
    unaligned: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("heads: none left")

    monkeypatch.setattr(serve_worker, "aligner_of", fail)
    (found,) = run(lambda: Worker(load(unaligned)).translate(["the cat"], GREEDY, links=True))
    assert found[1]
    assert found[2] == "cross-attention, mean of all heads (chosen by default: choosing a better one failed)"
    assert "heads: none left" in caplog.text


def test_a_choice_that_nobody_waits_for_lets_calls_go_before_and_ends_with_the_worker(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, long = Worker(translator), Long()
    monkeypatch.setattr(serve_worker, "_set_aligner", long)
    with worker._changed:
        worker._queue.append(serve_worker._Call(long, Future(), background=True))
    assert (worker.waiting, worker.idle) == (0, True)

    async def ask() -> None:
        assert await worker.call(lambda _: 7) == 7
        await long.is_open()
        assert worker.idle
        assert await worker.call(lambda _: worker.idle) is False
        assert await worker.call(lambda _: 8) == 8
        assert len(await worker.translate([SENTENCES[3]], GREEDY)) == 1

    run(ask)
    assert not long.ended.is_set()
    worker.close()
    worker.join(serving.PATIENCE)
    assert long.ended.is_set()


def test_a_worker_that_ends_with_its_process_leaves_what_it_does_and_takes_nothing_more(translator: Translator) -> None:
    worker, work = Worker(translator), Long()

    async def ask() -> None:
        asked = asyncio.create_task(worker.call(work))
        await work.is_open()
        worker.end()
        assert await asyncio.to_thread(work.ended.wait, 20)
        worker.join(serving.PATIENCE)
        with pytest.raises(BusyError, match="is shutting down; ask again"):
            await worker.call(work)
        asked.cancel()

    run(ask)
