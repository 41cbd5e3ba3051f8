"""Exceptions and warnings of the package, and the import of optional extras."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType


class MissingExtraError(ImportError):
    """Raised if an optional dependency is not installed."""


class UnsupportedProblemError(ValueError):
    """Raised if a method does not support a problem."""


class ConfidenceWarning(UserWarning):
    """Predicted probabilities exceed the held-out accuracy."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it reached its tolerance."""


class ScaleWarning(UserWarning):
    """One column has a much larger range than others and dominates all distances."""


class UnreachedWarning(UserWarning):
    """Some nodes are in components without a label or evidence."""


class DegenerateProblemWarning(UserWarning):
    """The result does not depend on the graph: there is one class only, or no link."""


def require(module: str, extra: str) -> ModuleType:
    """Import a module of an optional dependency; the error names the extra that installs it.

    Parameters
    ----------
    module : str
        Full name of the module.
    extra : str
        Extra of this package that installs it.

    Returns
    -------
    ModuleType
        The module called `module`.

    Raises
    ------
    MissingExtraError
        If the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module!r} is not installed; in a copy of the gdpa source, run: "
            f"pip install '.[{extra}]'"
        ) from error


@contextmanager
def any_error_as_value_error(message: str) -> Iterator[None]:
    """Turn every error but MemoryError and FileNotFoundError into a ValueError.

    Damaged files and values that do not fit together can cause any error, in other libraries too.

    Parameters
    ----------
    message : str
        What the message begins with, before the message of the first error.

    Raises
    ------
    ValueError
        Instead of the first error.
    """
    try:
        yield
    except (MemoryError, FileNotFoundError):
        raise
    except Exception as error:
        raise ValueError(f"{message}: {error}") from error


def nearest_name(name: object, choices: Sequence[str]) -> str:
    """Suggest the closest of `choices`, as the end of an error message.

    Parameters
    ----------
    name : object
        The given name.
    choices : sequence of str
        Accepted names.

    Returns
    -------
    str
        ``did you mean 'x'?`` if one is close, and ``Accepted:`` with the choices.

    Examples
    --------
    >>> from gdpa.errors import nearest_name
    >>> nearest_name("spectrl", ["spectral", "min-cut"])
    "did you mean 'spectral'? Accepted: min-cut, spectral"
    """
    close = difflib.get_close_matches(str(name), choices, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    listed = sorted(choices)
    most = 40
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"{hint}Accepted: {', '.join(listed[:most])}{more}"


def unknown_choice(name: str, value: object, choices: Sequence[str]) -> ValueError:
    """Return the error for an argument that is not one of the accepted names.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : object
        The given value.
    choices : sequence of str
        Accepted names.

    Returns
    -------
    ValueError
        Names the argument, the value, the closest name and all accepted names.

    Examples
    --------
    >>> from gdpa.errors import unknown_choice
    >>> unknown_choice("kind", "fest", ("fast", "exact"))
    ValueError("kind='fest' is not known; did you mean 'fast'? Accepted: exact, fast")
    """
    return ValueError(f"{name}={value!r} is not known; {nearest_name(value, choices)}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise :func:`unknown_choice` unless an argument is one of the accepted names."""
    if value not in choices:
        raise unknown_choice(name, value, choices)
