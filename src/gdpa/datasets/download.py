"""Downloads that can be resumed: a ``.part`` file grows until it is whole, then gets its name."""

from __future__ import annotations

import http.client
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from ..version import __version__
from .cache import explain_os_error

__all__ = ["DownloadError", "UnknownHostError", "download"]

_CHUNK = 1 << 16
_HEADERS = {"User-Agent": f"gdpa/{__version__}", "Accept-Encoding": "identity"}


class DownloadError(OSError):
    """A public source could not be reached or did not give the file."""


class UnknownHostError(DownloadError):
    """The name of a server could not be looked up, as on a machine without internet."""


def download(
    url: str,
    target: Path,
    *,
    timeout: float = 30.0,
    retries: int = 3,
    wait: float = 1.0,
    progress: Callable[[int, int | None], None] | None = None,
) -> Path:
    """Download a file, going on where an earlier attempt stopped.

    Parameters
    ----------
    url : str
        Address, http or https.
    target : pathlib.Path
        Where to put it. Until it is whole it is called ``target.part``.
    timeout : float, default=30
        Seconds to wait for an answer.
    retries : int, default=3
        How often a broken connection is tried again.
    wait : float, default=1
        Seconds before the first retry; doubled each time.
    progress : callable, optional
        Called with the bytes so far and the total (None if unknown).

    Returns
    -------
    pathlib.Path
        `target`.

    Raises
    ------
    UnknownHostError
        If the server's name cannot be looked up; this is not tried again.
    DownloadError
        If the source cannot be reached, has no such file, or breaks off again and again.
    OSError
        If the file cannot be written (permission, no room on disk).
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url={url!r} is not accepted; http:// or https:// is needed")
    if target.is_file():
        return target
    part = target.with_name(target.name + ".part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explain_os_error(error, part) from error
    reason = ""
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        try:
            if _fetch(url, part, timeout, progress):
                os.replace(part, target)
                return target
            reason = "the connection broke off before the end"
        except urllib.error.HTTPError as error:
            reason = f"the server answered {error.code} {error.reason}"
            if error.code < 500 and error.code not in (408, 429):
                break  # asking again does not help
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
            if isinstance(getattr(error, "reason", None), socket.gaierror):
                raise UnknownHostError(
                    f"the server {urlsplit(url).hostname} cannot be found: no internet?"
                ) from error
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        except ConnectionError as error:
            reason = str(error)
    raise DownloadError(f"cannot download {url}: {reason}")


def _fetch(
    url: str, part: Path, timeout: float, progress: Callable[[int, int | None], None] | None
) -> bool:
    """Fetch what is missing of `part`; return whether it is whole now."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers=_HEADERS)
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:
            # Either nothing is missing, or the part is of another file: then start again.
            if error.headers.get("Content-Range", "").rpartition("/")[2] == str(have):
                return True
            part.unlink()
            return False
        raise
    with answer:
        start = have if answer.status == 206 else 0
        if start and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            part.unlink()
            return False
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length is not None else None
        size = start
        with _open(part, "ab" if start else "wb", total) as stream:
            while chunk := answer.read(_CHUNK):
                try:
                    stream.write(chunk)
                    stream.flush()
                except OSError as error:
                    raise explain_os_error(error, part, total) from error
                size += len(chunk)
                if progress is not None:
                    progress(size, total)
    return total is None or size == total


def _open(part: Path, mode: str, total: int | None) -> IO[bytes]:
    try:
        return part.open(mode)
    except OSError as error:
        raise explain_os_error(error, part, total) from error
