"""``regard serve`` and ``regard studio``: the same service, without and with its pages."""

from __future__ import annotations

import ipaddress
import json
import re
import secrets
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from regard.errors import SettingsError

if TYPE_CHECKING:
    from regard.serve.app import Service
    from regard.serve.guard import Doors
    from regard.serve.limits import Limits
    from regard.serve.server import Place

Host = Annotated[str, typer.Option(help="Where to listen; anything but this machine needs a token.")]
Port = Annotated[int, typer.Option(help="0 takes any that is free.", min=0, max=65535)]
Token = Annotated[str, typer.Option(help="What clients must send; made up if needed.", envvar="REGARD_TOKEN")]
AdminToken = Annotated[
    str,
    typer.Option(
        help="Needed to train, upload, rename and remove; without it, --token is enough.", envvar="REGARD_ADMIN_TOKEN"
    ),
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Nobody trains, uploads, renames or removes.")]
AllowHost = Annotated[list[str] | None, typer.Option(help="Another name this service goes by; may be given again.")]
AllowOrigin = Annotated[list[str] | None, typer.Option(help="A web page that may use it: https://…; again.")]
Queue = Annotated[int, typer.Option(help="Texts that may wait for one model; more get 429.", min=1)]
Batch = Annotated[int, typer.Option(help="Texts in one batch at the most; 1 does not batch.", min=1)]
Gather = Annotated[float, typer.Option(help="Milliseconds that a text waits for others to share its batch.", min=0)]
Timeout = Annotated[float, typer.Option(help="Seconds that a request may take.", min=0.1)]
Memory = Annotated[str, typer.Option(help="Of weights at the most: 512M, 4G. What was not used longest goes first.")]
Engine = Annotated[str, typer.Option(help="auto, native, native-bfloat16 (GPU), ctranslate2 or ctranslate2-int8.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
StopTrainings = Annotated[bool, typer.Option("--stop-trainings", help="Stop trainings when the service ends.")]
Pin = Annotated[
    list[str] | None, typer.Option(help="A run to use for its task and languages, not the best; may be given again.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No log of requests.")]
AsJson = Annotated[bool, typer.Option("--json", help="One line with the address on stdout when ready.")]
SHORTEST_TOKEN = 16  # characters
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def serve(
    named: Annotated[list[Path] | None, typer.Argument(metavar="RUN...", help="Run folders.")] = None,
    runs: Annotated[Path | None, typer.Option(help="Serve all runs in this folder, too.")] = None,
    pin: Pin = None,
    host: Host = "127.0.0.1",
    port: Port = 5000,
    token: Token = "",
    admin_token: AdminToken = "",
    read_only: ReadOnly = False,
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    queue: Queue = 1024,
    batch: Batch = 256,
    gather: Gather = 4.0,
    timeout: Timeout = 60.0,
    memory: Memory = "4G",
    engine: Engine = "auto",
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Serve runs over HTTP: LibreTranslate's API, /api/v1, /metrics; /docs says what there is."""
    from regard.runs.folder import Run

    folders = [Run.open(path).folder for path in named or ()]
    if not named and runs is None:
        raise SettingsError("regard serve: nothing to serve; name a run, or a folder of them with --runs")
    doors, made_up = _doors(host, token, allow_host, allow_origin, admin_token)
    doors = replace(doors, read_only=read_only)
    limits = _limits(queue, batch, gather, timeout, memory)
    from regard.device import pick_device
    from regard.serve.app import Service
    from regard.serve.library import Library
    from regard.serve.pairs import check_pins
    from regard.serve.server import Place

    place = str(pick_device(device))
    library = Library(runs, folders, device=place, engine=engine, tell=_log, limits=limits, pinned=pin or [])
    check_pins(library)
    service = Service(library, doors=doors, log=None if quiet else _log)
    _run(Place(host, port), service, made_up=made_up, as_json=as_json)


def studio(
    runs: Annotated[Path, typer.Argument(help="A folder of runs; made if it is not there.")] = Path("runs"),
    pin: Pin = None,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    token: Token = "",
    admin_token: AdminToken = "",
    read_only: ReadOnly = False,
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    queue: Queue = 1024,
    timeout: Timeout = 60.0,
    memory: Memory = "4G",
    engine: Engine = "auto",
    device: Device = "auto",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser when ready.")] = True,
    stop_trainings: StopTrainings = False,
    log: Annotated[bool, typer.Option("--log", help="Log requests.")] = False,
    as_json: AsJson = False,
) -> None:
    """Open the studio in a browser: translate, look inside, train, compare, learn. The API is there as well."""
    doors, made_up = _doors(host, token, allow_host, allow_origin, admin_token)
    doors = replace(doors, read_only=read_only)
    limits = _limits(queue, 256, 4.0, timeout, memory)
    from regard.device import pick_device
    from regard.serve.app import Service
    from regard.serve.library import Library
    from regard.serve.pairs import check_pins
    from regard.serve.server import Place

    if not runs.exists():  # perhaps mistyped
        runs.mkdir(parents=True)
        print(f"{runs}: there was no such folder; made an empty one", file=sys.stderr)
    place = str(pick_device(device))
    library = Library(runs, device=place, engine=engine, tell=_log, limits=limits, pinned=pin or [])
    check_pins(library)
    service = Service(library, studio=True, doors=doors, log=_log if log else None, stop_trainings=stop_trainings)
    wanted = browser and sys.stderr.isatty()
    _run(Place(host, port), service, made_up=made_up, browser=wanted, as_json=as_json)


def _limits(queue: int, batch: int, gather: float, timeout: float, memory: str) -> Limits:
    from regard.serve.limits import Limits

    return Limits(queue=queue, together=batch, gather=gather / 1000, seconds=timeout, memory=_bytes(memory))


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise SettingsError(f"--memory = {text}: not a size; write 512M or 4G")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _doors(
    host: str, token: str, allow_host: list[str] | None, allow_origin: list[str] | None, admin: str = ""
) -> tuple[Doors, bool]:
    """Whom to let in, and whether the token was made up just now."""
    from regard.serve.guard import LOOPBACK, Doors
    from regard.serve.server import own_names

    for option, given in (("--token", token), ("--admin-token", admin)):
        if given and len(given) < SHORTEST_TOKEN:
            raise SettingsError(
                f"{option} = {len(given)} characters: is guessed too soon; {SHORTEST_TOKEN} or more would be right, "
                "or none at all"
            )
    if admin and admin == token:
        raise SettingsError("--admin-token: is the same as --token, and would open nothing more; choose another")
    made_up = not token and not _is_loopback(host)
    key = secrets.token_urlsafe(24) if made_up else token
    wildcard = host in ("0.0.0.0", "::")
    allowed = (urlsplit(f"//{name}").hostname or name for name in allow_host or ())
    names = frozenset((*allowed, *(own_names() if wildcard else (host.lower(),))))
    for origin in allow_origin or ():
        if not re.fullmatch(r"https?://[^/\s]+", origin):
            raise SettingsError(f"--allow-origin = {origin}: not an origin; write https://example.org, without a path")
    return Doors(LOOPBACK | names, frozenset(allow_origin or ()), key, admin), made_up


def _run(
    place: Place,
    service: Service,
    *,
    made_up: bool = False,
    browser: bool = False,
    as_json: bool = False,
) -> None:
    """Listen, say where, and serve until stopped."""
    from regard.serve.app import create_app
    from regard.serve.server import address, listens_on, make, run

    listening = place.open()
    where = address(listening)
    key = service.doors.token

    def ready() -> None:
        what = "the studio" if service.studio else "the service"
        print(f"{what} is at {listens_on(listening)}; Ctrl-C stops it", file=sys.stderr)
        if not _is_loopback(place.host):
            names = ", ".join(sorted(service.doors.hosts))
            print(f"it goes by the names {names}; add others with --allow-host NAME", file=sys.stderr)
        if service.doors.read_only:
            print("read-only: nobody trains, uploads, renames or removes here", file=sys.stderr)
        if made_up:
            print(f"token, made up for this time: {key}", file=sys.stderr)
        if key and service.studio:
            print(f"a browser needs it once: {where}?token={key if made_up else 'TOKEN'}", file=sys.stderr)
        elif service.doors.admin and service.studio:
            print(f"a browser that trains and uploads needs its token once: {where}?token=TOKEN", file=sys.stderr)
        if as_json:
            print(json.dumps({"address": where, "docs": f"{where}docs", "studio": service.studio}), flush=True)
        if browser:
            webbrowser.open(f"{where}?token={key}" if key else where)

    run(make(create_app(service), reading=service.library.limits.reading, started=ready), listening)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
