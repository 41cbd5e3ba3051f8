"""Restrict access to the server: only its own address, and only with the token.

Other web sites can make a browser send requests to 127.0.0.1, even under their own host name (DNS
rebinding). They do not know the token in the path, their requests have a different Host or Origin
header, and the response headers prevent them from using the content.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BODY = 64 * 1024
METHODS = ("GET", "HEAD", "POST")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Guard:
    """Refuses unauthorised requests, and adds security headers to responses.

    Parameters
    ----------
    app : ASGI application
        The guarded application. It receives paths without the token.
    token : str
        The secret first part of every path.
    origins : tuple of str
        Accepted Origin headers; without the scheme, they are the accepted Host headers.
    """

    def __init__(self, app: Any, *, token: str, origins: tuple[str, ...]) -> None:
        self.app = app
        self.token = token
        self.origins = origins
        self.hosts = tuple(origin.partition("://")[2] for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or forward it to the application."""
        from starlette.responses import PlainTextResponse

        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        token, slash, inner = str(scope["path"])[1:].partition("/")
        refusal = self._refusal(scope["method"], headers)
        if refusal is None and not (
            slash and hmac.compare_digest(token.encode(), self.token.encode())
        ):
            refusal = (404, "not found")
        if refusal is not None:
            # A refused client must not keep the connection open.
            answer = PlainTextResponse(refusal[1], refusal[0], {"connection": "close"})
            await answer(scope, receive, _with_headers(send))
            return
        scope = {**scope, "path": "/" + inner, "raw_path": b"/" + inner.encode(), "root_path": ""}
        await self.app(scope, _limited(receive), _with_headers(send))

    def _refusal(self, method: str, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return status and reason if a request must be refused."""
        if headers.get("host", "").lower() not in self.hosts:
            return 421, "this Host is not accepted"
        if method not in METHODS:
            return 405, "accepted methods: GET, HEAD, POST"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins:
            return 403, "this Origin is not accepted"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "requests from other sites are not accepted"
        if method == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, "the content type must be application/json"
            length = headers.get("content-length", "")
            if length and (not length.isdigit() or int(length) > MOST_BODY):
                return 413, f"the body may have at most {MOST_BODY} bytes"
        return None


class BodyTooLarge(Exception):
    """A request body without a declared length exceeds the limit."""


def _limited(receive: Receive) -> Receive:
    """Limit the size of a request body."""
    size = 0

    async def inner() -> MutableMapping[str, Any]:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MOST_BODY:
            raise BodyTooLarge
        return message

    return inner


def _with_headers(send: Send) -> Send:
    """Add the security headers to a response."""
    from starlette.datastructures import MutableHeaders

    async def inner(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return inner
