"""Downloads that can be resumed: a ``.part`` file grows until it is whole, then gets its name."""

from __future__ import annotations

import http.client
import os
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from gdpa.version import __version__

_NETWORK_ERRORS = (
    urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError,
)  # fmt: skip


class DownloadError(OSError):
    """A public source could not be reached or did not give the file."""


class UnknownHostError(DownloadError):
    """The name of a server could not be looked up, as on a machine without internet."""


def download(url: str, target: Path, *, timeout: float = 30.0, retries: int = 3) -> Path:
    """Download a file, continuing where an earlier attempt stopped.

    Parameters
    ----------
    url : str
        Address, http or https.
    target : pathlib.Path
        Where to put it. Until it is whole it is called ``target.part``.
    timeout : float, default=30
        Seconds to wait for an answer.
    retries : int, default=3
        How often a broken connection is tried again, after 1, 2, 4, ... seconds.

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
        If the file cannot be written.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url={url!r} is not accepted; http:// or https:// is needed")
    if target.is_file():
        return target
    part = target.with_name(target.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    reason = ""
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(2.0 ** (attempt - 1))
        try:
            if _fetch(url, part, timeout):
                os.replace(part, target)
                return target
            reason = "the connection broke off before the end"
        except urllib.error.HTTPError as error:
            reason = f"the server answered {error.code} {error.reason}"
            if error.code < 500 and error.code not in (408, 429):
                break  # asking again does not help
        except _NETWORK_ERRORS as error:
            cause = getattr(error, "reason", error)
            if isinstance(cause, socket.gaierror):
                host = urlsplit(url).hostname
                raise UnknownHostError(
                    f"the server {host} cannot be found: no internet?"
                ) from error
            reason = str(cause) or type(error).__name__
    raise DownloadError(f"cannot download {url}: {reason}")


def _fetch(url: str, part: Path, timeout: float) -> bool:
    """Fetch what is missing of `part`; return whether it is whole now."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": f"gdpa/{__version__}", "Accept-Encoding": "identity"}
    request = urllib.request.Request(url, headers=headers)
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        # Either nothing is missing, or the part is of another file: then start again.
        whole: bool = error.headers.get("Content-Range", "").rpartition("/")[2] == str(have)
        if not whole:
            part.unlink()
        return whole
    with answer:
        start = have if answer.status == 206 else 0
        if start and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            part.unlink()
            return False
        length = answer.headers.get("Content-Length")
        size = start
        with part.open("ab" if start else "wb") as stream:
            while chunk := answer.read(1 << 16):
                stream.write(chunk)
                stream.flush()
                size += len(chunk)
    return length is None or size == start + int(length)
