"""The page's server: Starlette on uvicorn, on 127.0.0.1, behind a guard.

Nothing here decides anything: every request is one call of the desk.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from importlib import resources
from typing import Any

from ..errors import require
from .desk import Desk
from .exporter import Exporter
from .guard import BodyTooLarge, Guard
from .ledger import is_unicode
from .pictures import PictureError

__all__ = ["LabelServer", "make_app"]

FILES = {
    "": ("index.html", "text/html; charset=utf-8"),
    "style.css": ("style.css", "text/css; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
    **{
        f"{name}.js": (f"{name}.js", "text/javascript; charset=utf-8")
        for name in ("app", "api", "classes", "item", "lists", "map")
    },
}
MOST_TEXT = 500  # characters of a class or an annotator's name
AHEAD = 5  # most rows asked for at once
# A picture that somebody opens in a tab of its own still cannot do anything.
PICTURE_POLICY = "default-src 'none'; sandbox"


class BadRequest(ValueError):
    """What the request says makes no sense."""


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name, "")
    if not isinstance(value, str) or len(value) > MOST_TEXT or not is_unicode(value):
        raise BadRequest(f"{name} must be valid Unicode text of at most {MOST_TEXT} characters")
    return value


def _whole(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadRequest(f"{name} must be a whole number")
    return value


def _class(data: dict[str, Any]) -> Any:
    value = data.get("value")
    if isinstance(value, str):
        return _text(data, "value")
    if isinstance(value, bool | int | float):
        return value
    raise BadRequest("value must be text or a number")


def make_app(desk: Desk, exporter: Exporter) -> Any:
    """Make the ASGI application, without its guard.

    Parameters
    ----------
    desk : Desk
        What answers.
    exporter : Exporter
        What makes the files to keep.

    Returns
    -------
    starlette.applications.Starlette
        The application.
    """
    require("starlette", "label")
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    page = resources.files("gdpa.labeling") / "page"
    files = {name: ((page / file).read_bytes(), kind) for name, (file, kind) in FILES.items()}

    async def body(request: Request) -> dict[str, Any]:
        try:
            data = json.loads(await request.body())
        except (ValueError, RecursionError) as error:
            raise BadRequest("the body is not JSON") from error
        if not isinstance(data, dict):
            raise BadRequest("the body must be a JSON object")
        return data

    async def static(request: Request) -> Response:
        name = request.path_params.get("name", "")
        if name not in files:
            return JSONResponse({"error": "not found"}, 404)
        content, kind = files[name]
        return Response(content, media_type=kind)

    async def state(request: Request) -> Response:
        data = {"by": request.query_params.get("by", "")}
        return JSONResponse(await run_in_threadpool(desk.state, _text(data, "by")))

    async def next_items(request: Request) -> Response:
        data = await body(request)
        n = _whole(data, "n")
        if not 1 <= n <= AHEAD:
            raise BadRequest(f"n must be from 1 to {AHEAD}")
        return JSONResponse(await run_in_threadpool(desk.next, _text(data, "by"), n))

    async def answer(request: Request) -> Response:
        data = await body(request)
        do = request.path_params["do"]
        row = None if do == "undo" else _whole(data, "row")
        value = _class(data) if do == "label" else None
        by = _text(data, "by")
        try:
            changed = await run_in_threadpool(desk.answer, do, by, row, value)
        except OSError as error:  # the log cannot be written, for example on a full disk
            return JSONResponse({"error": f"the answer was not saved: {error.strerror}"}, 507)
        item = None if changed is None else desk.item(changed)
        return JSONResponse({"row": changed, "item": item, "version": desk.session.version})

    def row_of(request: Request) -> int:
        row = int(request.path_params["row"])
        if not 0 <= row < desk.session.n_rows:
            raise BadRequest(f"rows are numbered 0 to {desk.session.n_rows - 1}")
        return row

    async def item(request: Request) -> Response:
        return JSONResponse(desk.item(row_of(request)))

    async def guess(request: Request) -> Response:
        return JSONResponse(desk.guess(row_of(request)))

    async def picture(request: Request) -> Response:
        row = row_of(request)
        if desk.items.pictures is None:
            return JSONResponse({"error": "there are no pictures"}, 404)
        content, kind = await run_in_threadpool(desk.items.pictures.get, row)
        headers = {"content-security-policy": PICTURE_POLICY}
        return Response(content, media_type=kind, headers=headers)

    async def labels(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(desk.labels))

    async def places(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(desk.map))

    async def colours(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(desk.colours))

    async def export(request: Request) -> Response:
        what = request.path_params["what"]
        if what not in exporter.KINDS:
            return JSONResponse({"error": "not found"}, 404)
        content, kind, name = await run_in_threadpool(exporter.make, what)
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=kind, headers=headers)

    async def refused(request: Request, error: Exception) -> Response:
        status = 415 if isinstance(error, PictureError) else 400
        return JSONResponse({"error": str(error)}, status)

    async def too_large(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "the body is too large"}, 413)

    async def failed(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "something went wrong; see the terminal"}, 500)

    return Starlette(
        routes=[
            Route("/", static),
            Route("/static/{name:str}", static),
            Route("/api/state", state),
            Route("/api/next", next_items, methods=["POST"]),
            *[
                Route(f"/api/{do}", _with(answer, do), methods=["POST"])
                for do in ("label", "skip", "remove", "undo")
            ],
            Route("/api/item/{row:int}", item),
            Route("/api/guess/{row:int}", guess),
            Route("/api/labels", labels),
            Route("/api/map", places),
            Route("/api/colours", colours),
            Route("/picture/{row:int}", picture),
            Route("/export/{what:str}", export),
        ],
        exception_handlers={ValueError: refused, BodyTooLarge: too_large, Exception: failed},
    )


def _with(endpoint: Any, do: str) -> Any:
    async def inner(request: Any) -> Any:
        request.path_params["do"] = do
        return await endpoint(request)

    return inner


class LabelServer:
    """Serves a desk on a port of 127.0.0.1.

    Parameters
    ----------
    desk : Desk
        The desk.
    exporter : Exporter
        What makes the files to keep.
    port : int, default=0
        The port; 0 takes a free one.
    token : str, optional
        The secret part of the address; a random one by default.

    Attributes
    ----------
    url : str
        The address to open.
    """

    def __init__(
        self, desk: Desk, exporter: Exporter, *, port: int = 0, token: str | None = None
    ) -> None:
        uvicorn = require("uvicorn", "label")
        self.desk = desk
        self.token = token or secrets.token_urlsafe(24)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
            self._socket.listen(128)  # a browser that is quicker than the server waits
        except OSError as error:
            self._socket.close()
            raise ValueError(f"port {port} cannot be used: {error.strerror}") from error
        self.port: int = self._socket.getsockname()[1]
        hosts = tuple(f"{name}:{self.port}" for name in ("127.0.0.1", "localhost"))
        self.url = f"http://127.0.0.1:{self.port}/{self.token}/"
        app = Guard(make_app(desk, exporter), token=self.token, hosts=hosts)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,  # the paths hold the token
            server_header=False,
            limit_concurrency=100,
            timeout_keep_alive=20,
            timeout_graceful_shutdown=3,
            lifespan="off",
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until interrupted."""
        self.desk.start()
        try:
            self._server.run(sockets=[self._socket])
        except (KeyboardInterrupt, SystemExit):  # how people end it: uvicorn passes signals on
            pass
        finally:
            self.desk.stop()
            self._socket.close()

    def start(self) -> None:
        """Serve in a thread, for notebooks and tests."""
        self.desk.start()
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End what :meth:`start` began."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        self.desk.stop()
        self._socket.close()
