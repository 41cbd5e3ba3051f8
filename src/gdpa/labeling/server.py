"""Serve the labelling page with Starlette and uvicorn, by default to this machine only.

The server contains no logic: every request is one call of the controller.
"""

from __future__ import annotations

import json
import mimetypes
import os
import re
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import require
from .answers import is_unicode
from .controller import Controller
from .exports import Exporter
from .guard import BodyTooLarge, Guard
from .images import ImageError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MOST_TEXT = 500  # characters of a class or an annotator's name
MOST_ROWS = 5  # asked for at once
MOST_BULK = 5000  # labelled at once
HEADER_SECONDS = 10.0  # time limit for sending a complete request
# Connections without a complete request; one more closes the oldest. After a restart, all pages
# connect at once: fifty people with up to five connections each.
MOST_WAITING = 256


class BadRequest(ValueError):
    """An invalid request."""


def _text(data: dict[str, Any], name: str) -> str:
    """Return a text field."""
    value = data.get(name, "")
    if not isinstance(value, str) or len(value) > MOST_TEXT or not is_unicode(value):
        raise BadRequest(f"{name} must be valid Unicode text of at most {MOST_TEXT} characters")
    return value


def _integer(data: dict[str, Any], name: str) -> int:
    """Return an integer field."""
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadRequest(f"{name} must be an integer")
    return value


def _class(data: dict[str, Any], name: str) -> str | int | float | bool:
    """Return a field with the name of a class."""
    value = data.get(name)
    if isinstance(value, str):
        return _text(data, name)
    if isinstance(value, bool | int | float):
        return value
    raise BadRequest(f"{name} must be text or a number")


def _rows(data: dict[str, Any], name: str) -> list[int]:
    """Return a field with row numbers."""
    rows = data.get(name)
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_BULK:
        raise BadRequest(f"{name} must be a list of 1 to {MOST_BULK} rows")
    return [_integer({name: row}, name) for row in rows]


def _new_name(data: dict[str, Any], name: str) -> Any:
    """Return a field with the new name of a class, or None."""
    return None if data.get(name) is None else _class(data, name)


# The fields of each kind of answer, and how to parse them.
FIELDS = {"row": _integer, "rows": _rows, "value": _class, "to": _new_name, "key": _text}
NEEDS = {
    "label": ("row", "value"),
    "skip": ("row",),
    "remove": ("row",),
    "undo": ("key",),
    "bulk": ("rows", "value"),
    "rename": ("value", "to"),
}


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request."""
    try:
        data = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON") from error
    if not isinstance(data, dict):
        raise BadRequest("the body must be a JSON object")
    return data


def make_app(controller: Controller, exporter: Exporter) -> Starlette:
    """Return the ASGI application, without the guard.

    Parameters
    ----------
    controller : Controller
        Handles the requests.
    exporter : Exporter
        Creates the files to download.

    Returns
    -------
    starlette.applications.Starlette
        The application.
    """
    require("starlette", "label")
    from anyio import CapacityLimiter, to_thread
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import FileResponse, JSONResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    one_by_one = CapacityLimiter(1)  # waiting for a question must not occupy all threads
    page = Path(__file__).parent / "page"
    mimetypes.add_type("text/javascript", ".js")  # browsers require it; systems may differ

    def failure(message: str, status: int) -> Response:
        return JSONResponse({"error": message}, status)

    async def index(request: Request) -> Response:
        return FileResponse(page / "index.html")

    def get(call: Callable[..., Any]) -> Any:
        async def endpoint(request: Request) -> Response:
            row = [row_of(request)] if "row" in request.path_params else []
            return JSONResponse(await run_in_threadpool(call, *row))

        return endpoint

    def row_of(request: Request) -> int:
        row = int(request.path_params["row"])
        if not 0 <= row < controller.session.n_rows:
            raise BadRequest(f"rows are numbered 0 to {controller.session.n_rows - 1}")
        return row

    async def state(request: Request) -> Response:
        by = _text({"by": request.query_params.get("by", "")}, "by")
        return JSONResponse(await run_in_threadpool(controller.state, by))

    async def next_rows(request: Request) -> Response:
        data = await _body(request)
        by = _text(data, "by")
        n = _integer(data, "n")
        if not 1 <= n <= MOST_ROWS:
            raise BadRequest(f"n must be from 1 to {MOST_ROWS}")
        return JSONResponse(await to_thread.run_sync(controller.next, by, n, limiter=one_by_one))

    async def preview(request: Request) -> Response:
        rows = _rows(await _body(request), "rows")
        if not all(0 <= row < controller.session.n_rows for row in rows):
            raise BadRequest(f"rows are numbered 0 to {controller.session.n_rows - 1}")
        return JSONResponse(await run_in_threadpool(controller.preview, rows))

    async def answer(request: Request) -> Response:
        do = request.path_params["do"]
        if do not in NEEDS:
            return failure("not found", 404)
        data = await _body(request)
        wanted = {name: FIELDS[name](data, name) for name in NEEDS[do]}
        by = _text(data, "by")
        try:
            changed = await run_in_threadpool(controller.answer, do, by, **wanted)
        except OSError as error:  # for example a full disk
            return failure(f"the answer was not saved: {error.strerror}", 507)
        item = None if changed is None else await run_in_threadpool(controller.item, changed)
        return JSONResponse({"row": changed, "item": item, "version": controller.session.version})

    async def goal(request: Request) -> Response:
        data = await _body(request)
        percent = data.get("percent")
        if isinstance(percent, bool) or not isinstance(percent, int | float):
            raise BadRequest("percent must be a number")
        return JSONResponse(await run_in_threadpool(controller.set_goal, float(percent)))

    async def image(request: Request) -> Response:
        row = row_of(request)
        if controller.rows.images is None:
            return failure("there are no images", 404)
        content, kind = await run_in_threadpool(controller.rows.images.get, row)
        # An image opened in its own tab must not run scripts.
        headers = {"content-security-policy": "default-src 'none'; sandbox"}
        return Response(content, media_type=kind, headers=headers)

    async def export(request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in exporter.kinds:
            return failure("not found", 404)
        who = "who" in request.query_params
        content, media_type, name = await run_in_threadpool(exporter.make, kind, who=who)
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=media_type, headers=headers)

    async def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, BodyTooLarge):
            return failure("the body is too large", 413)
        if isinstance(error, ValueError):
            return failure(str(error), 415 if isinstance(error, ImageError) else 400)
        return failure("an internal error occurred; see the terminal", 500)

    return Starlette(
        routes=[
            Route("/", index),
            Mount("/static", StaticFiles(directory=page)),
            Route("/api/state", state),
            Route("/api/next", next_rows, methods=["POST"]),
            Route("/api/item/{row:int}", get(controller.item)),
            Route("/api/guess/{row:int}", get(controller.guess)),
            Route("/api/near/{row:int}", get(controller.near)),
            Route("/api/alike/{row:int}", get(controller.alike)),
            Route("/api/preview", preview, methods=["POST"]),
            Route("/api/labels", get(controller.labels)),
            Route("/api/review", get(controller.review)),
            Route("/api/formats", get(lambda: exporter.kinds)),
            Route("/api/map", get(controller.map)),
            Route("/api/colours", get(controller.colours)),
            Route("/api/goal", goal, methods=["POST"]),
            Route("/api/{do:str}", answer, methods=["POST"]),
            Route("/picture/{row:int}", image),
            Route("/export/{kind:str}", export),
        ],
        exception_handlers=dict.fromkeys((ValueError, BodyTooLarge, Exception), failed),
    )


def _make_protocol() -> Any:
    """Return uvicorn's protocol with limits on connections that never send a complete request."""
    base: Any = require("uvicorn.protocols.http.h11_impl", "label").H11Protocol

    class ImpatientProtocol(base):  # type: ignore[misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.made = self.loop.time()
            self.loop.call_later(HEADER_SECONDS, self.close_if_waiting)
            waiting = [c for c in self.connections if c.cycle is None]
            if len(waiting) > MOST_WAITING:
                min(waiting, key=lambda c: c.made).close_if_waiting()

        def close_if_waiting(self) -> None:
            if self.cycle is None:
                self.connections.discard(self)
                self.transport.abort()

    return ImpatientProtocol


class LabelServer:
    """Server of a labelling session.

    Parameters
    ----------
    controller : Controller
        Handles the requests.
    exporter : Exporter
        Creates the files to download.
    host : str, default="127.0.0.1"
        Address to listen on.
    port : int, default=0
        The port; 0 picks a free port.
    token : str, optional
        The secret part of the address: at least 16 letters, digits, "-" or "_"; random by default.
        It is required to accept connections from other machines.
    public_url : str, optional
        Address of the page behind a reverse proxy, such as https://label.example.org.

    Attributes
    ----------
    url : str
        The address to open.
    """

    def __init__(
        self,
        controller: Controller,
        exporter: Exporter,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        public_url: str | None = None,
    ) -> None:
        uvicorn = require("uvicorn", "label")
        self.controller = controller
        local = host in ("127.0.0.1", "localhost")
        if token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{16,200}", token):
            raise ValueError("token must be at least 16 letters, digits, - or _")
        if token is None and not local:
            raise ValueError(
                f"host={host!r} accepts connections from other machines and needs a token, for "
                f"example {secrets.token_urlsafe(24)}"
            )
        public = None if public_url is None else urlsplit(public_url)
        if public is not None and (public.scheme not in ("http", "https") or not public.netloc):
            raise ValueError(f"public_url={public_url!r} must be like https://label.example.org")
        self.token = token or secrets.token_urlsafe(24)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if os.name == "posix":  # on Windows this would let another process share the port
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen(128)  # connections made before the server starts wait
        except OSError as error:
            self._socket.close()
            raise ValueError(f"cannot use port {port} of {host}: {error.strerror}") from error
        self.port: int = self._socket.getsockname()[1]
        names = ("127.0.0.1", "localhost") if local else (host,)
        origins = [f"http://{name}:{self.port}" for name in names]
        if public is not None:
            origins.insert(0, f"{public.scheme}://{public.netloc}".lower())
        self.url = f"{origins[0]}/{self.token}/"
        config = uvicorn.Config(
            Guard(make_app(controller, exporter), token=self.token, origins=tuple(origins)),
            http=_make_protocol(),
            log_level="warning",
            access_log=False,  # paths contain the token
            server_header=False,
            limit_concurrency=500,  # a browser keeps up to six connections
            timeout_keep_alive=20,
            timeout_graceful_shutdown=3,
            lifespan="off",
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until interrupted."""
        self.controller.start()
        try:
            self._server.run(sockets=[self._socket])
        except (KeyboardInterrupt, SystemExit):  # Ctrl-C
            pass
        finally:
            self.controller.stop()
            self._socket.close()

    def start(self) -> None:
        """Serve in a background thread, for notebooks and tests."""
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the server that :meth:`start` started."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
