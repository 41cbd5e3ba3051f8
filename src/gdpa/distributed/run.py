"""Begin or continue a run: lock its work folder, check it, and connect to the workers."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from .cluster import Event, Runner, TaskError, Workers, connect
from .folder import Folder, locked
from .manifest import Manifest
from .predictions import check_out

# What files that do not fit together may cause.
MISFITS = (AttributeError, IndexError, KeyError, TypeError, ZeroDivisionError)


@contextmanager
def misfits_as_value_error(folder: Folder, resumed: bool) -> Iterator[None]:
    """Turn errors caused by files that do not fit together into a ValueError.

    Files whose checksums are right may still come from another run or version. What they cause
    cannot be foreseen. Errors of a run that began with an empty folder are not changed. A file
    that is lost while the run needs it is computed again by the next run.
    """
    try:
        yield
    except FileNotFoundError as error:
        if not str(error.filename or "").startswith(folder.url):
            raise
        raise ValueError(
            f"{error.filename} was lost during the run; run the same command again to compute it "
            "again"
        ) from error
    except (*MISFITS, TaskError) as error:
        cause = error.__cause__ if isinstance(error, TaskError) else error
        if not resumed or not isinstance(cause, MISFITS) or hasattr(cause, "from_callback"):
            raise
        raise ValueError(
            f"the files of work folder {folder.url} do not fit together ({error}); start again "
            "with an empty work folder"
        ) from error


@contextmanager
def open_run(
    work: str | os.PathLike[str],
    out: str | os.PathLike[str],
    parameters: Mapping[str, object],
    *,
    need_bytes: float,
    workers: Workers | None,
    callback: Callable[[Event], None] | None,
    run: str | None = None,
) -> Iterator[Runner]:
    """Begin a run in a work folder, or continue one with the same parameters.

    Parameters
    ----------
    work, out : path-like or URL
        Folders for intermediate files, and for the predictions.
    parameters : mapping
        Input and options, by which a run is recognised.
    need_bytes : float
        Estimated size of the work folder, for which the disk must have space.
    workers : Workers, optional
        Where to run the tasks.
    callback : callable, optional
        Called with an :class:`~gdpa.distributed.Event` whenever a task ends.
    run : str, optional
        Name by which the output folder is recognised; random by default.

    Yields
    ------
    Runner
        Runs the stages.
    """
    folder = Folder(os.fspath(work))
    workers = workers or Workers()
    with locked(folder):
        manifest = Manifest(folder)
        resumed = manifest.open(parameters)
        with misfits_as_value_error(folder, resumed):
            folder.remove_unfinished()
            manifest.reopen_lost()
            if "run" not in manifest.data:
                _check_space(folder, need_bytes)
                manifest.note("run", run or uuid.uuid4().hex)
            check_out(Folder(os.fspath(out)), manifest.data["run"])
            with connect(workers) as client:
                yield Runner(client, manifest, callback, dashboard=workers.dashboard)


def _check_space(folder: Folder, need: float) -> None:
    """Raise an error if the work folder would not fit on the disk."""
    free = folder.free_bytes()
    if free is not None and need > free:
        raise OSError(
            f"work folder {folder.url} needs about {need / 1e9:.3g} GB, but only "
            f"{free / 1e9:.3g} GB are free; choose another disk"
        )
