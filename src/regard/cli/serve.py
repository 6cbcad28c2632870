"""``regard serve`` and ``regard studio``: the same service, without and with the studio's pages."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import secrets
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from regard.cli.streams import say
from regard.cli.verb import Common, apart, called, common, with_settings
from regard.errors import SettingsError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from regard.serve.guard import Doors
    from regard.serve.library import Library
    from regard.settings.call import CallSettings, ServeSettings

Host = Annotated[str | None, typer.Option(help="The address to listen on; any but this machine's needs a token.")]
Port = Annotated[int, typer.Option(help="The port to listen on; 0 takes any that is free.", min=0, max=65535)]
SHORTEST_TOKEN = 16  # characters
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def serve(
    context: typer.Context,
    named: Annotated[
        list[str] | None,
        with_settings("[RUN]...", "Run folders."),
    ] = None,
    runs: Annotated[Path | None, typer.Option(help="Serve all runs in this folder, too.")] = None,
    host: Host = None,
    port: Port = 5000,
) -> None:
    """Serve runs over HTTP: LibreTranslate's API, /api/v1, /metrics; /docs lists all routes."""
    from regard.runs.folder import Run

    overrides, paths = apart(named or ())
    call = called("serve", overrides, {"serve.host": host})
    folders = [Run.open(Path(path)).folder for path in paths]
    if not folders and runs is None:
        raise SettingsError("regard serve: nothing to serve; name a run, or a folder of them with --runs")
    asked = common(context)
    _serve(call, asked, port, runs, folders, studio=False, log=not asked.quiet and call.serve.log is not False)


def studio(
    context: typer.Context,
    runs: Annotated[
        list[str] | None,
        with_settings("[FOLDER]", "A folder of runs, by default runs; made if it does not exist."),
    ] = None,
    host: Host = None,
    port: Port = 8765,
) -> None:
    """Open the studio in a browser: translate, look inside, train, compare, learn. The API is there as well."""
    overrides, folders = apart(runs or ())
    if folders[1:]:
        raise SettingsError(f"FOLDER = {folders[1]}: the studio shows one folder of runs; put them into one")
    call = called("studio", overrides, {"serve.host": host})
    folder = Path(*(folders or ["runs"]))
    _serve(call, common(context), port, folder, (), studio=True, log=bool(call.serve.log))


def _serve(
    call: CallSettings, asked: Common, port: int, folder: Path | None, named: Sequence[Path], *, studio: bool, log: bool
) -> None:
    """Check all settings, load what there is, and serve until stopped."""
    with _terminable():
        doors, made_up = _doors(call.serve)
        if studio and folder is not None and not folder.exists():  # perhaps mistyped
            folder.mkdir(parents=True)
            say(f"{folder}: there was no such folder; made an empty one")
        library = _library(folder, named, call, asked.place)
        from regard.serve.app import create_app

        stop = call.serve.stop_trainings
        app = create_app(library, doors, studio=studio, log=_log if log else None, stop_trainings=stop)
        browser = studio and call.serve.browser and sys.stderr.isatty()
        _run(app, call.serve, port, made_up=made_up, studio=studio, browser=browser, as_json=asked.json)


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the process before the server takes it: the first process of a container has no default action."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _library(folder: Path | None, named: Sequence[Path], call: CallSettings, place: str) -> Library:
    from regard.serve.library import Library
    from regard.serve.limits import Limits
    from regard.serve.pairs import check_pins

    how = call.serve
    memory = _bytes(how.memory)
    limits = Limits(queue=how.queue, together=how.batch, gather=how.gather / 1000, seconds=how.timeout, memory=memory)
    library = Library(folder, named, device=place, decode=call.decode, tell=_log, limits=limits, pinned=how.pin)
    check_pins(library)
    return library


def _not_served(library: Library) -> list[str]:
    """Why runs that somebody expects may not be served: a line for each folder."""
    if (folder := library.folder) is None:
        return []
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    closed = [path for path in inside if path.is_dir() and not os.access(path, os.R_OK | os.X_OK)]
    lines = [f"{path}: this user may not read it; it is not served" for path in closed]
    if not any(path.parent == folder for path in library.runs().values()):
        lines.append(
            f"{folder}: {'no run in it' if folder.is_dir() else 'no such folder'}; nothing of it is served yet"
        )
    return lines


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise SettingsError(f"serve.memory = {text}: not a size; write 512M or 4G")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _doors(how: ServeSettings) -> tuple[Doors, bool]:
    """Which requests to let in, and whether the token was made up just now."""
    from regard.serve.guard import LOOPBACK, Doors
    from regard.serve.server import own_names

    host = how.host
    token = how.token or os.environ.get("REGARD_TOKEN", "")
    admin = how.admin_token or os.environ.get("REGARD_ADMIN_TOKEN", "")
    for setting, given in (("serve.token", token), ("serve.admin_token", admin)):
        if given and len(given) < SHORTEST_TOKEN:
            raise SettingsError(
                f"{setting} = {len(given)} characters: too short, it could be guessed; use {SHORTEST_TOKEN} or more, "
                "or none at all"
            )
    if admin and admin == token:
        raise SettingsError("serve.admin_token: is the same as serve.token and allows nothing more; choose another")
    made_up = not token and not _is_loopback(host)
    key = secrets.token_urlsafe(24) if made_up else token
    wildcard = host in ("0.0.0.0", "::")
    allowed = (urlsplit(f"//{name}").hostname or name for name in how.allow_host)
    names = frozenset((*allowed, *(own_names() if wildcard else (host.lower(),))))
    for origin in how.allow_origin:
        if not re.fullmatch(r"https?://[^/\s]+", origin):
            raise SettingsError(
                f"serve.allow_origin = {origin}: not an origin; write https://example.org, without a path"
            )
    return Doors(LOOPBACK | names, frozenset(how.allow_origin), key, admin, read_only=how.read_only), made_up


def _run(
    app: FastAPI, how: ServeSettings, port: int, *, made_up: bool, studio: bool, browser: bool, as_json: bool
) -> None:
    """Listen, say where, and serve until stopped."""
    from regard.serve import server

    host = how.host
    listening = server.listen(host, port)
    where = server.address(listening)
    doors: Doors = app.state.doors
    key = doors.token

    def ready() -> None:
        what = "the studio" if studio else "the service"
        print(f"{what} is at {server.listens_on(listening)}; Ctrl-C stops it", file=sys.stderr)
        if not _is_loopback(host):
            names = ", ".join(sorted(doors.hosts))
            print(f"its names are {names}; add others with serve.allow_host=NAME", file=sys.stderr)
        if doors.read_only:
            print("read-only: no client can train, upload, rename or remove here", file=sys.stderr)
        for line in () if studio else _not_served(app.state.library):  # an empty studio is one to begin with
            print(line, file=sys.stderr)
        if made_up:
            print(f"token, made up for this start: {key}", file=sys.stderr)
        if key and studio:
            print(f"open it once with the token: {where}?token={key if made_up else 'TOKEN'}", file=sys.stderr)
        elif doors.admin and studio:
            print(f"to train and upload, open it once with the token: {where}?token=TOKEN", file=sys.stderr)
        if as_json:
            print(json.dumps({"address": where, "docs": f"{where}docs", "studio": studio}), flush=True)
        if browser:
            webbrowser.open(f"{where}?token={key}" if key else where)

    made = server.make(app, reading=app.state.library.limits.reading, drain=how.drain, started=ready)
    server.run(made, listening)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
