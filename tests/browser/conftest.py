"""A studio with small runs, and a page in a real browser that tolerates no complaint and no request to elsewhere.

One server and one browser for all tests of a process. `page` is at the studio's address, so that a test says
``page.goto("/#translate?run=transformer")``; whatever the console complains of fails the test at its end, unless the
test expected it and empties `heard`.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import httpx
import pytest

import corpora_for_tests as small
from processes import spawned
from regard.explain.alignment import Aligner
from regard.trainer.start import start
from serving import eight_runs, on_a_port

CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)
VIEW = {"width": 1440, "height": 900}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
RUNS = ("transformer-tiny", "bahdanau", "luong-general", "lstm")  # heads, one attention of two kinds, none
BRIEF = ("data.pairs=750", "train.steps=4", "train.validate_every=2")  # they know bank and bat, and write several words


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs that have learned for a moment."""
    folder = tmp_path_factory.mktemp("runs")
    for preset in RUNS:
        start(folder / preset, small.settings(preset, *BRIEF), small.Notes(), device="cpu")
        if preset != "lstm":  # how links are read: to choose that takes seconds
            tiny = preset == "transformer-tiny"
            Aligner(((0, 0),), late=tiny, error_rate=0.25, chosen_on="valid").save(folder / preset)
    return folder


@pytest.fixture(scope="session", autouse=True)
def forked() -> Iterator[None]:
    """What a studio begins here is a fork, which need not import torch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.serve.jobs.spawn", spawned)
        yield


@pytest.fixture(scope="session")
def studio(runs: Path) -> Iterator[str]:
    """The address of a studio with those runs."""
    yield from served(runs)


@pytest.fixture(scope="session")
def eight_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a studio with eight runs of all tasks and qualities."""
    yield from served(eight_runs(tmp_path_factory.mktemp("eight") / "runs"))


@pytest.fixture(scope="session")
def empty_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a studio at its first start: no run."""
    yield from served(tmp_path_factory.mktemp("nothing"))


def served(folder: Path) -> Iterator[str]:
    """A studio in a thread of this process, on whatever port is free; it ends whatever the browser still holds."""
    with on_a_port(folder, kept=True) as address:
        yield address


@pytest.fixture(scope="session")
def ask(studio: str) -> Callable[[str, dict[str, Any]], Any]:
    """The service itself, to compare a page with: ``ask("/api/v1/beam", {"run": …})``."""

    def post(path: str, body: dict[str, Any]) -> Any:
        answer = httpx.post(f"{studio}{path}", json=body, headers={"X-Regard": "studio"}, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return post


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no browser is installed: apt-get install chromium-headless-shell")
    with sync_api.sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        resume_loop()
        found.close()


@pytest.fixture(scope="session")
def context_of(browser: Any) -> Iterator[Callable[[str], Any]]:
    """One context and one page for all tests of an address: to open them costs as much as what most tests do there."""
    found: dict[str, Any] = {}

    def context(address: str) -> Any:
        if address not in found:
            found[address] = new_context(browser, address)
        return found[address]

    yield context
    resume_loop()
    for each in found.values():
        each.close()


_LOOPS: list[asyncio.AbstractEventLoop] = []


@pytest.fixture(autouse=True)
def own_loop() -> Iterator[None]:
    """Playwright's loop stays the running one of this thread, where `asyncio.run` of another test would then fail."""
    resume_loop()
    yield
    _LOOPS[:] = filter(None, [asyncio._get_running_loop()])
    asyncio._set_running_loop(None)


def resume_loop() -> None:
    if _LOOPS:
        asyncio._set_running_loop(_LOOPS[0])


@pytest.fixture
def heard() -> list[str]:
    """What the page complained of, and what it asked of others."""
    return []


@pytest.fixture
def page(context_of: Callable[[str], Any], studio: str, heard: list[str]) -> Iterator[Any]:
    """A page of the studio. It fails the test if anything is heard."""
    yield from opened(context_of(studio), studio, heard)


@pytest.fixture
def empty_page(context_of: Callable[[str], Any], empty_studio: str, heard: list[str]) -> Iterator[Any]:
    """The same where there is no run."""
    yield from opened(context_of(empty_studio), empty_studio, heard)


@pytest.fixture
def eight_page(context_of: Callable[[str], Any], eight_studio: str, heard: list[str]) -> Iterator[Any]:
    """The same where there are eight."""
    yield from opened(context_of(eight_studio), eight_studio, heard)


@pytest.fixture
def page_at(context_of: Callable[[str], Any], heard: list[str]) -> Iterator[Callable[[str], Any]]:
    """A page of another studio that tests share: ``page_at(address)``."""
    with ExitStack() as stack:
        yield lambda address: stack.enter_context(contextmanager(opened)(context_of(address), address, heard))


@pytest.fixture
def page_of(browser: Any, heard: list[str]) -> Iterator[Callable[[Path], Any]]:
    """A page of a studio of its own: ``page_of(folder)``, for tests that change what others see."""
    with ExitStack() as stack:

        def open_page(folder: Path) -> Any:
            address = stack.enter_context(contextmanager(served)(folder))
            context = stack.enter_context(new_context(browser, address))
            return stack.enter_context(contextmanager(opened)(context, address, heard))

        yield open_page


def new_context(browser: Any, address: str) -> Any:
    return browser.new_context(base_url=address, viewport=VIEW, reduced_motion="reduce")


def opened(context: Any, address: str, heard: list[str]) -> Iterator[Any]:
    """The page of a context, as if it were new: it remembers nothing of the tests before."""
    page = context.pages[0] if context.pages else context.new_page()
    forget(page, address)
    ours = (f"{address}/", "data:", "blob:", "about:")
    listeners = {
        "request": lambda request: request.url.startswith(ours) or heard.append(f"asked for {request.url}"),
        "console": lambda said: said.type in {"error", "warning"} and heard.append(said.text),
        "pageerror": lambda error: heard.append(str(error)),
    }
    for name, listener in listeners.items():
        page.on(name, listener)
    yield page
    for name, listener in listeners.items():
        page.remove_listener(name, listener)
    for other in context.pages[1:]:
        other.close()
    page.unroute_all(behavior="ignoreErrors")
    page.goto(f"{address}/studio/icon.svg")  # what it did ends; the same process of the browser goes on
    context.clear_permissions()
    assert heard == []


def forget(page: Any, address: str) -> None:
    """What is stored, where it has been, and how it is shown."""
    page.set_default_timeout(60_000)
    page.set_viewport_size(VIEW)
    page.emulate_media(media="null", color_scheme="null", reduced_motion="reduce")
    session = page.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": address, "storageTypes": "all"})
    session.send("Page.resetNavigationHistory")
    session.detach()


# What fades in or out has other colours on the way.
SETTLED = """() => Promise.all(document.getAnimations()
  .filter(each => Number.isFinite(each.effect?.getComputedTiming().endTime))
  .map(each => each.finished.catch(() => null)))
  .then(() => null)"""


@pytest.fixture(scope="session")
def accessible() -> Callable[..., None]:
    """axe-core finds no violation: ``accessible(page)``; on a long page most of its time goes into ``colours``."""
    rules = (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")

    def check(page: Any, *, colours: bool = True) -> None:
        if not page.evaluate("'axe' in window"):
            page.evaluate(rules)  # not a script element: the page's policy would refuse it
        asked = {"resultTypes": ["violations"], "preload": False}  # what it would load, no rule that is on looks at
        asked["rules"] = {} if colours else {"color-contrast": {"enabled": False}}
        page.evaluate(SETTLED)
        found = page.evaluate("(asked) => axe.run(asked).then(found => found.violations)", asked)
        bad = [f"{each['id']}: {node['html']} {node['failureSummary']}" for each in found for node in each["nodes"]]
        assert bad == []

    return check


@pytest.fixture(scope="session")
def fits() -> Callable[[Any], None]:
    """Nothing makes the whole page scroll sideways: ``fits(page)``, once what follows its size is drawn."""

    def check(page: Any) -> None:
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        wide, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= room

    return check
