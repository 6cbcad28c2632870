"""Puts the service together: the runs, the routes, the studio's files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles

from regard import __version__
from regard.serve import answers
from regard.serve.commands import Commands
from regard.serve.corpora import Corpora
from regard.serve.jobs import Jobs
from regard.serve.library import Library
from regard.serve.routes import compare, corpora, presets, runs, trainings
from regard.serve.trainings import Trainings


@dataclass(frozen=True)
class Service:
    """What every route may use. It is `request.app.state.service`."""

    library: Library
    studio: bool = False


def create_app(service: Service) -> FastAPI:
    """The whole service; with the studio's pages, if it has them."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        app.state.jobs.closing.set()
        service.library.close()

    app = FastAPI(title="Regard", version=__version__, lifespan=life, docs_url=None, redoc_url=None)
    app.state.service = service
    answers.install(app)
    app.include_router(runs.router)
    _add_trainings(app, service.library)
    if service.studio:
        _add_studio(app)
    return app


def _add_trainings(app: FastAPI, library: Library) -> None:
    """What works in processes of its own, and what these read and write."""
    app.state.corpora = Corpora(None if library.folder is None else library.folder.resolve().parent / "corpora")
    app.state.jobs = Jobs(library)
    app.state.trainings = Trainings(app.state.jobs)
    app.state.commands = Commands()
    app.state.estimates = {}  # what was estimated lately
    for part in (presets, corpora, trainings, compare):
        app.include_router(part.router)


def _add_studio(app: FastAPI) -> None:
    folder = Path(str(resources.files("regard") / "studio"))

    @app.get("/", include_in_schema=False)
    def home() -> Response:
        return FileResponse(folder / "index.html")

    app.mount("/studio", StaticFiles(directory=folder))
