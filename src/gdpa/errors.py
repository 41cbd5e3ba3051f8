"""Exceptions and warnings of the package, and the import of optional extras."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = [
    "ConvergenceWarning",
    "DegenerateProblemWarning",
    "MissingExtraError",
    "UnreachedWarning",
    "UnsupportedProblemError",
    "nearest_name",
    "require",
]


class MissingExtraError(ImportError):
    """An optional dependency is needed and not installed."""


class UnsupportedProblemError(ValueError):
    """A method was asked for a problem that it cannot take."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before its tolerance was met."""


class UnreachedWarning(UserWarning):
    """Some nodes are in components without a label or evidence."""


class DegenerateProblemWarning(UserWarning):
    """The problem has an answer that does not depend on the graph (one class only)."""


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which extra installs it.

    Parameters
    ----------
    module : str
        Name of the module to import.
    extra : str
        Name of the extra of this package that installs it.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    MissingExtraError
        If the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module!r} is not installed; install it with: pip install 'gdpa[{extra}]'"
        ) from error


def nearest_name(name: str, choices: list[str]) -> str:
    """Say which of `choices` was probably meant, as the end of an error message.

    Parameters
    ----------
    name : str
        What was given.
    choices : list of str
        What would be accepted.

    Returns
    -------
    str
        ``"; did you mean 'x'?"`` where one is close, and the list of all choices.
    """
    import difflib

    close = difflib.get_close_matches(str(name), choices, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Accepted: {', '.join(sorted(choices))}"
