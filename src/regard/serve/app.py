"""Puts the service together: the runs, the routes, the guards, the studio's files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

from regard import __version__
from regard.serve import answers
from regard.serve.bodies import Bodies, Leaving
from regard.serve.corpora import Corpora
from regard.serve.guard import Doors, Guard
from regard.serve.jobs import Commands, Jobs
from regard.serve.library import Library
from regard.serve.routes import compare, corpora, libre, look, predict, presets, runs, trainings, translate
from regard.serve.trainings import Trainings
from regard.serve.watch import Metrics, Watch

ABOUT = """\
Translation, and a look inside the models that translate. Everything under `/api/v1` speaks of *runs* by their names;
`/translate`, `/languages` and `/detect` are LibreTranslate's, so that its clients work unchanged."""


def create_app(
    library: Library,
    doors: Doors | None = None,
    *,
    studio: bool = False,
    log: Callable[[str], object] | None = None,
    stop_trainings: bool = False,
) -> FastAPI:
    """The whole service, also with the studio's pages. ``log`` takes one line a request; trainings go on when the
    service ends, unless they are to stop. What every route may use is in ``request.app.state``."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        app.state.jobs.closing.set()
        if stop_trainings:
            app.state.jobs.stop_all()
        library.close()

    app = FastAPI(
        title="Regard",
        description=ABOUT,
        version=__version__,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        responses=answers.PROBLEMS,
    )
    app.state.library, app.state.doors = library, (doors := doors or Doors())
    app.state.metrics = metrics = Metrics(library)
    app.state.files = OrderedDict[str, bytes]()  # that were translated lately, by their names
    library.on_batch = metrics.batches.observe
    answers.install(app)
    for each in (runs, translate, predict, libre, look):
        app.include_router(each.router)
    _add_trainings(app, library)
    _add_look(app)
    _add_pages(app, "serve/pages", "/docs")
    if studio:
        _add_pages(app, "studio", "/", "/studio")
    else:
        _add_page(app, "/", _folder("serve/pages") / "home.html")
    app.add_middleware(Leaving)  # the last one added is the first to be met
    app.add_middleware(Bodies, limits=library.limits)
    app.add_middleware(Guard, doors=doors)
    app.add_middleware(Watch, metrics=metrics, log=log, most=library.limits.connections)
    return app


def _add_trainings(app: FastAPI, library: Library) -> None:
    """What runs in processes of their own, and what these read and write."""
    runs = None if library.folder is None else library.folder.resolve()
    app.state.corpora = Corpora() if runs is None else Corpora(runs / "corpora", runs.parent / "corpora")
    app.state.jobs = Jobs(library)
    app.state.trainings = Trainings(app.state.jobs)
    app.state.commands = Commands(app.state.jobs.shown)
    app.state.estimates = {}  # what was estimated lately
    for part in (presets, corpora, trainings, compare):
        app.include_router(part.router)


def _folder(name: str) -> Path:
    return Path(str(resources.files("regard") / name))


def _add_page(app: FastAPI, address: str, file: Path) -> None:
    @app.get(address, include_in_schema=False)
    def page() -> Response:
        return FileResponse(file, headers={"Cache-Control": "no-cache"})


def _add_look(app: FastAPI) -> None:
    """The service's own pages look like the studio, also where there is none."""
    for name in ("style.css", "controls.css", "first.js", "icon.svg"):
        _add_page(app, f"/docs/{name}", _folder("studio") / name)


def _add_pages(app: FastAPI, name: str, home: str, files: str = "") -> None:
    """A folder of files with an index."""
    folder = _folder(name)
    _add_page(app, home, folder / "index.html")
    app.mount(files or home, _Files(directory=folder))


class _Files(StaticFiles):
    """Files that a browser asks about anew each time, so that an update is seen at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response
