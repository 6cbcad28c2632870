"""Access control, before the body of a request is read.

Host        must be on the list, so that no page can reach us through a name of its own (DNS rebinding)
Origin      pages of another origin may neither read nor post, unless their origin is allowed
token       needed as soon as other machines can connect; compared in constant time. There may be a second one for
            requests that change something: training, uploading, renaming, removing
"""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))
COOKIE = "regard_token"
AUTHORIZED = "regard.authorized"  # in the scope: False where the token must be in the body
CHANGES = "regard.changes"  # in the scope: whether this client may change something here
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_OPEN = frozenset(("/", "/health", "/docs", "/openapi.json", "/frontend/settings"))  # without a token
# The name of a download is random: only the client that sent the file knows it.
_OPEN_FOLDERS = ("/studio/", "/docs/", "/download_file/")
# LibreTranslate's clients send `api_key` in the body.
_KEY_IN_BODY = frozenset(("/translate", "/translate_file", "/detect", "/languages"))
_READING = frozenset(("GET", "HEAD", "OPTIONS"))
_LOOKS = ("sentences", "trace", "importance", "gates", "map", "beam", "meaning", "walkthrough")
# A POST to these changes nothing; any other request that is not a GET does.
_USES = _KEY_IN_BODY | {f"/api/v1/{name}" for name in ("translate", "predict", *_LOOKS)}


@dataclass(frozen=True)
class Doors:
    """Which requests are accepted."""

    hosts: frozenset[str] = LOOPBACK
    origins: frozenset[str] = frozenset()  # such as https://example.org
    token: str = ""  # empty: none is needed
    admin: str = ""  # the token for changes; empty: `token` allows them too
    read_only: bool = False  # no request may change anything

    def opens(self, key: str) -> bool:
        """Whether a client with this token may use the service."""
        return not self.token or self.knows(key)

    def knows(self, key: str) -> bool:
        """Whether this is one of the tokens, compared in constant time."""
        return sum(_same(key, token) for token in (self.token, self.admin) if token) > 0

    def opens_changes(self, key: str) -> bool:
        """Whether a client with this token may change something."""
        return not self.read_only and (_same(key, self.admin) if self.admin else self.opens(key))


def _same(key: str, token: str) -> bool:
    return hmac.compare_digest(key.encode("utf-8", "surrogatepass"), token.encode())


class Guard:
    """Middleware that checks host, origin and token."""

    def __init__(self, app: ASGIApp, doors: Doors) -> None:
        self._app = app
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._meet(scope, receive, send)
        # web sockets are not served

    async def _meet(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        welcome = origin in self._doors.origins

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                add_headers(MutableHeaders(scope=message), origin if welcome else "")
            await send(message)

        if (name := _host(headers)) not in self._doors.hosts:
            line = f"host = {name[:100]}: not a name of this service; add serve.allow_host={name[:100]}"
            await refuse(answer, 421, line)
        elif not welcome and _is_foreign(scope, headers):
            await refuse(answer, 403, "origin: pages of other origins may not use this service; see serve.allow_origin")
        elif welcome and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await answer({"type": "http.response.start", "status": 204, "headers": []})
            await answer({"type": "http.response.body", "body": b""})
        elif (self._doors.token or self._doors.admin) and scope["path"] == "/" and (key := _query(scope, "token")):
            await self._remember(key, answer)
        else:
            await self._check(scope, headers, receive, answer)

    async def _check(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """The token, where one is needed."""
        key = _key(headers)
        allowed = self._doors.opens(key)
        scope[AUTHORIZED] = allowed
        scope[CHANGES] = allowed and self._doors.opens_changes(key)
        path: str = scope["path"]
        changes = scope["method"] not in _READING and path not in _USES
        public = path in _OPEN or path.startswith(_OPEN_FOLDERS)
        if allowed and changes and not scope[CHANGES]:
            line = "nothing can be trained, uploaded, renamed or removed here"
            needed = "training, uploading, renaming and removing need the token of serve.admin_token"
            await refuse(send, 403, f"read-only: {line}" if self._doors.read_only else f"token: {needed}")
        elif allowed or public or (not key and path in _KEY_IN_BODY):
            await self._app(scope, receive, send)
        else:
            line = "token: is wrong" if key else "token: is needed; send Authorization: Bearer TOKEN"
            await refuse(send, 401, line, {"WWW-Authenticate": "Bearer"})

    async def _remember(self, key: str, send: Send) -> None:
        """Move the token from the address into a cookie that no script and no other site can read."""
        if not self._doors.knows(key):
            await refuse(send, 401, "token: is wrong", {"WWW-Authenticate": "Bearer"})
            return
        cookie = f"{COOKIE}={key}; Path=/; HttpOnly; SameSite=Strict"
        fields = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 303, "headers": fields})
        await send({"type": "http.response.body", "body": b""})


async def refuse(
    send: Send, status: int, line: str, headers: dict[str, str] | None = None, *, more: bool = False
) -> None:
    """Answer a request that is refused. With ``more`` the caller sends the end of the body."""
    body = json.dumps({"error": line, "hint": ""}).encode()
    fields = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    encoded = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body, "more_body": more})


def may_change(request: HTTPConnection) -> bool:
    """Whether the client may train, upload, rename and remove."""
    return bool(request.scope.get(CHANGES, True))


def add_headers(headers: MutableHeaders, origin: str = "") -> None:
    """Add the headers of every answer."""
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Cache-Control", "no-store")
    if origin:
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
        headers["Access-Control-Allow-Methods"] = "GET, POST"
        headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        headers.add_vary_header("Origin")


def _host(headers: Headers) -> str:
    """The host of a request without its port; empty if there is not exactly one."""
    named = headers.getlist("host")
    if len(named) != 1:
        return ""
    try:
        return urlsplit(f"//{named[0]}").hostname or ""
    except ValueError:
        return ""


def _is_foreign(scope: Scope, headers: Headers) -> bool:
    """Whether a page of another origin sent this. Following a link to us is allowed: only the user sees the answer."""
    if (origin := headers.get("origin")) is not None:
        return _netloc(origin) != headers["host"].lower()
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    follows = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return not (follows and scope["method"] == "GET")


def _netloc(origin: str) -> str:
    """Host and port of an origin; empty if it is malformed."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _key(headers: Headers) -> str:
    """The token of a request, from its header or from the studio's cookie."""
    kind, _, key = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return key.strip()
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")


def _query(scope: Scope, name: str) -> str:
    return parse_qs(scope["query_string"].decode("latin-1")).get(name, [""])[0]
