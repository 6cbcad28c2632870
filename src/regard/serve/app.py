"""Builds the service: routes, middleware, and the files of the studio."""

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
Translation, and a look inside the models that translate. Everything under `/api/v1` takes *runs* by their names;
`/translate`, `/languages` and `/detect` are LibreTranslate's, so that its clients work unchanged."""


def create_app(
    library: Library,
    doors: Doors | None = None,
    *,
    studio: bool = False,
    log: Callable[[str], object] | None = None,
    stop_trainings: bool = False,
) -> FastAPI:
    """The whole service, with the studio's pages if ``studio``. ``log`` gets one line for each request. Trainings go on
    when the service ends unless ``stop_trainings``. What routes share is in ``request.app.state``."""

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
    app.state.draining = False  # about to end
    app.state.metrics = metrics = Metrics(library)
    app.state.files = OrderedDict[str, bytes]()  # the newest translated files, by name
    library.on_batch = metrics.batches.observe
    answers.install(app)
    folder = None if library.folder is None else library.folder.resolve()
    app.state.corpora = Corpora() if folder is None else Corpora(folder / "corpora", folder.parent / "corpora")
    app.state.jobs = Jobs(library)
    app.state.trainings = Trainings(app.state.jobs)
    app.state.commands = Commands(app.state.jobs.shown)
    app.state.estimates = {}  # the newest estimates
    for part in (runs, translate, predict, libre, look, presets, corpora, trainings, compare):
        app.include_router(part.router)
    for name in ("style.css", "controls.css", "first.js", "icon.svg"):  # the service's own pages look like the studio
        _add_page(app, f"/docs/{name}", _folder("studio") / name)
    _add_pages(app, "serve/pages", "/docs")
    if studio:
        _add_pages(app, "studio", "/", "/studio")
    else:
        _add_page(app, "/", _folder("serve/pages") / "home.html")
    app.add_middleware(Leaving)  # the last one added runs first
    app.add_middleware(Bodies, limits=library.limits)
    app.add_middleware(Guard, doors=doors)
    most, state = library.limits.connections, app.state
    app.add_middleware(Watch, metrics=metrics, log=log, most=most, draining=lambda: state.draining)
    return app


def _folder(name: str) -> Path:
    return Path(str(resources.files("regard") / name))


def _add_page(app: FastAPI, address: str, file: Path) -> None:
    @app.get(address, include_in_schema=False)
    def page() -> Response:
        return FileResponse(file, headers={"Cache-Control": "no-cache"})


def _add_pages(app: FastAPI, name: str, home: str, files: str = "") -> None:
    """Serve a folder of files and its index.html."""
    folder = _folder(name)
    _add_page(app, home, folder / "index.html")
    app.mount(files or home, _Files(directory=folder))


class _Files(StaticFiles):
    """Files that a browser revalidates each time, so that an update is seen at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response
