"""What a case can come to."""

from __future__ import annotations

import contextlib
import hashlib
import os
import traceback
import warnings
from collections.abc import Iterator

import numpy as np

RIGHT, CLEAR, WRONG = "right", "clear error", "wrong"

# Whose words a user understands: ours, and those of scikit-learn's checks of X and y. A library
# that was handed something impossible by our code raises ValueErrors, too; those are faults.
SPEAKERS = (
    "gdpa",
    "sklearn/utils/validation",
    "sklearn/utils/_param_validation",
    "sklearn/utils/multiclass",
    "narwhals",
)


class WrongError(AssertionError):
    """Something that must hold did not."""


def must(holds: object, what: str) -> None:
    """Fail the case unless `holds`."""
    if not holds:
        raise WrongError(what)


def refused(error: Exception) -> str:
    """CLEAR, where an error speaks about what was given.

    It must come from a ``raise`` of a speaker: where compiled code fails, the last line of the
    traceback is the speaker's, too, but the words are not.
    """
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = frame.filename.replace(os.sep, "/")
    if not any(f"/{speaker}" in place for speaker in SPEAKERS):
        raise error
    if not (frame.line or "").startswith("raise"):
        raise error
    return CLEAR


def generator(kind: str, seed: int) -> np.random.Generator:
    """Random numbers of one case; two kinds with one seed have nothing in common."""
    word = int.from_bytes(hashlib.sha256(kind.encode()).digest()[:4], "big")
    return np.random.default_rng([word, seed])


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the package's own warnings; NumPy's from its code are faults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning, module=r"gdpa(\..*)?$")
        yield
