"""Other packages on the same finite inputs: how often an exception or a NaN."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import inputs
from .outcome import generator


def usable(seed: int) -> tuple[Any, np.ndarray] | None:
    """Features as an ordinary array and codes with -1, where all three packages take such."""
    rng = generator("fits", seed)
    data = inputs.make(rng)
    names = sorted({str(t) for t in data.truth[data.known]})
    if len(names) < 2 or data.known.size < 12:
        return None
    X = np.asarray(data.X.toarray() if sp.issparse(data.X) else data.X, dtype=float)
    codes = np.array(
        [names.index(str(t)) if k else -1 for t, k in zip(data.truth, data.known, strict=True)]
    )
    return X, codes


def _ours(X: Any, codes: Any) -> Any:
    from gdpa import GraphClassifier

    return GraphClassifier().fit(X, codes).label_scores_


def _committee(X: Any, codes: Any) -> Any:
    from gdpa import CommitteeClassifier

    return CommitteeClassifier().fit(X, codes).label_scores_


def _spreading(kernel: str) -> Callable[[Any, Any], Any]:
    def fit(X: Any, codes: Any) -> Any:
        from sklearn.semi_supervised import LabelSpreading

        return LabelSpreading(kernel=kernel).fit(X, codes).label_distributions_

    return fit


def _graphlearning(X: Any, codes: Any) -> Any:
    import graphlearning as gl

    W = gl.weightmatrix.knn(X, min(10, len(X) - 1))
    known = np.flatnonzero(codes >= 0)
    return gl.ssl.laplace(W).fit(known, codes[known])


PEERS: dict[str, Callable[[Any, Any], Any]] = {
    "gdpa": _committee,
    'gdpa, graph="knn"': _ours,
    "LabelSpreading knn": _spreading("knn"),
    "LabelSpreading rbf": _spreading("rbf"),
    "graphlearning": _graphlearning,
}


SECONDS = 10.0  # of processor time: a busy machine is no hang


class _TimeError(Exception):
    pass


def _too_long(*_: Any) -> None:
    raise _TimeError


def count(n_inputs: int) -> dict[str, dict[str, int]]:
    """Run all on the first `n_inputs` inputs that can be compared."""
    table = {name: {"tried": 0, "exception": 0, "nan": 0, "too long": 0} for name in PEERS}
    found, seed = 0, 0
    signal.signal(signal.SIGPROF, _too_long)
    while found < n_inputs:
        pair, seed = usable(seed), seed + 1
        if pair is None:
            continue
        found += 1
        for name, fit in PEERS.items():
            row = table[name]
            row["tried"] += 1
            try:
                signal.setitimer(signal.ITIMER_PROF, SECONDS)
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    scores = np.asarray(fit(pair[0].copy(), pair[1].copy()), dtype=float)
                signal.setitimer(signal.ITIMER_PROF, 0)
                row["nan"] += bool(np.isnan(scores).any())
            except _TimeError:
                row["too long"] += 1
            except Exception as error:
                row["exception"] += 1
                print(f"{name} --seed {seed - 1}: {type(error).__name__}: {str(error)[:200]}")
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    return table
