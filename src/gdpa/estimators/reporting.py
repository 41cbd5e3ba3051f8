"""How far a fit has come: told to the callback, and to the log where somebody may be waiting."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .options import FitOptions

__all__ = ["report"]

logger = logging.getLogger("gdpa.estimators")

# Seconds after which a fit speaks unasked: nobody wonders earlier.
PATIENCE = 2.0


def report(options: FitOptions, entry: Mapping[str, Any] | None = None, **values: Any) -> Any:
    """Tell the callback and the log how far a fit has come.

    Parameters
    ----------
    options : FitOptions
        Who listens.
    entry : mapping, optional
        An iteration of the linear solve.
    **values
        A stage and what it says.

    Returns
    -------
    object
        What the callback answers; True stops the linear solve.
    """
    if entry is not None:
        values = {"stage": "solve", **entry}
    seconds = time.monotonic() - options.started
    asked = options.verbose >= (1 if entry is None else 2)
    if asked or (entry is None and seconds > PATIENCE):
        if asked or _is_terminal():
            _be_heard()
        told = ", ".join(f"{key}: {value}" for key, value in values.items())
        logger.info("%s (%.1f s)", told, seconds)
    return None if options.callback is None else options.callback(MappingProxyType(values))


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _be_heard() -> None:
    """Write to stderr where nobody has said what is to become of the log."""
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("gdpa: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
