"""What ``gdpa demo`` measures: accuracies side by side, and discs before and after alignment."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..errors import ConvergenceWarning
from ..gershgorin import Discs, align, discs
from ..graph import full_graph, rescale_minmax
from ..problem import GraphProblem
from ..solvers.registry import solve

__all__ = ["DemoRow", "DiscPair", "breast_cancer", "compare", "disc_pair", "draw_discs"]

LABELS_PER_CLASS = 5
DISC_NODES = 14


@dataclass(frozen=True)
class DemoRow:
    """One line of the demo's table.

    Parameters
    ----------
    data, method : str
        What was done.
    accuracy : float
        Share of the unlabelled rows that are right, mean over the draws of labels.
    seconds : float
        Mean time.
    draws : int
        How many draws of labels.
    not_converged : int
        In how many of them the method did not converge.
    """

    data: str
    method: str
    accuracy: float
    seconds: float
    draws: int
    not_converged: int = 0


def breast_cancer() -> tuple[NDArray[np.float64], NDArray[Any], list[str]]:
    """Features between 0 and 1, names of the classes, names of the features."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    return data.data, data.target_names[data.target].astype(object), data.feature_names.tolist()


def few_labels(y: NDArray[Any], seed: int) -> NDArray[np.bool_]:
    """Draw the same number of labels from every class."""
    rng = np.random.default_rng(seed)
    known = np.zeros(y.size, dtype=bool)
    for c in np.unique(y):
        known[rng.choice(np.flatnonzero(y == c), LABELS_PER_CLASS, replace=False)] = True
    return known


def compare() -> Iterator[DemoRow]:
    """Run all methods on both data sets, one line at a time."""
    from sklearn.datasets import load_digits

    X, y, _ = breast_cancer()
    codes = np.unique(y, return_inverse=True)[1]
    yield from _compare("breast cancer", X, codes, draws=10, binary=True)
    digits = load_digits()
    yield from _compare("digits", digits.data, digits.target, draws=1, binary=False)


def _compare(
    name: str, X: NDArray[np.float64], y: NDArray[np.intp], draws: int, binary: bool
) -> Iterator[DemoRow]:
    Z = rescale_minmax(X)
    kernel = full_graph(Z, bandwidth=1.0)
    methods: list[tuple[str, Callable[[NDArray[np.intp]], NDArray[np.intp]]]] = [
        ("GDPAClassifier", lambda z: _classifier(Z, z)),
        ("LabelSpreading, knn", lambda z: _spreading(Z, z, "knn")),
        ("LabelSpreading, rbf", lambda z: _spreading(Z, z, "rbf")),
        ("paper's graph: harmonic (GLR)", lambda z: _one_against_rest(kernel, z, "harmonic")),
        ("paper's graph: one-step vote", lambda z: _one_against_rest(kernel, z, "vote")),
    ]
    if binary:  # the paper's own setting; the presets take long for many classes
        methods += [
            (
                "paper's graph: GDPA as published",
                lambda z: _one_against_rest(kernel, z, "gdpa-published"),
            ),
            (
                "paper's graph: GDPA as stated",
                lambda z: _one_against_rest(kernel, z, "gdpa", lp="highs"),
            ),
        ]
    for method, run in methods:
        right, spent, failed = [], [], 0
        for draw in range(draws):
            known = few_labels(y, draw)
            start = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                predicted = run(np.where(known, y, -1))
            spent.append(time.perf_counter() - start)
            right.append(float((predicted == y)[~known].mean()))
            failed += any(issubclass(w.category, ConvergenceWarning) for w in caught)
        yield DemoRow(name, method, float(np.mean(right)), float(np.mean(spent)), draws, failed)


def _classifier(X: NDArray[np.float64], z: NDArray[np.intp]) -> NDArray[np.intp]:
    from ..estimators import GDPAClassifier

    model = GDPAClassifier(n_jobs=-1).fit(X, z)
    return np.asarray(model.transduction_)


def _spreading(X: NDArray[np.float64], z: NDArray[np.intp], kernel: str) -> NDArray[np.intp]:
    from sklearn.semi_supervised import LabelSpreading

    return np.asarray(LabelSpreading(kernel=kernel).fit(X, z).transduction_)


def _one_against_rest(W: Any, z: NDArray[np.intp], method: str, **options: Any) -> NDArray[np.intp]:
    """The paper's method is binary: with more classes the highest score wins."""
    classes = np.unique(z[z >= 0])
    first = GraphProblem(W, _signs(z, classes[-1]), laplacian="normalized")
    if classes.size == 2:
        labels = solve(first, method, **options).labels
        return np.asarray(np.where(labels > 0, classes[1], classes[0]))
    scores = [solve(first.with_labels(_signs(z, c)), method, **options).scores for c in classes]
    return np.asarray(classes[np.argmax(scores, axis=0)])


def _signs(z: NDArray[np.intp], c: int) -> NDArray[np.int8]:
    return np.where(z < 0, 0, np.where(z == c, 1, -1)).astype(np.int8)


@dataclass(frozen=True)
class DiscPair:
    """Gershgorin discs of a matrix before and after alignment.

    Parameters
    ----------
    before, after : Discs
        The discs.
    lambda_min : float
        Smallest eigenvalue.
    """

    before: Discs
    after: Discs
    lambda_min: float

    @property
    def limits(self) -> tuple[float, float]:
        """Range that shows all discs."""
        low = min(self.before.lower_bound, self.after.lower_bound)
        high = max(self.before.upper_bound, self.after.upper_bound)
        room = 0.03 * (high - low)
        return low - room, high + room


def disc_pair() -> DiscPair:
    """Discs of a generalised Laplacian: a small graph with self-loops on its labelled nodes."""
    X, _, _ = breast_cancer()
    some = np.sort(np.random.default_rng(3).choice(X.shape[0], DISC_NODES, replace=False))
    W = full_graph(rescale_minmax(X)[some], bandwidth=1.0)
    loops = np.zeros(DISC_NODES)
    loops[[1, 4, 9, 12]] = 3.0, 6.0, 4.5, 2.0
    A = sp.csr_array(np.diag(W.sum(axis=1) + loops) - W)
    aligned = align(A)
    return DiscPair(discs(A), discs(A, v=aligned.v), aligned.lambda_min)


def draw_discs(pair: DiscPair, which: str, width: int = 64) -> list[str]:
    """Discs as lines of text: ( left end, o centre, ) right end, | the smallest eigenvalue.

    Parameters
    ----------
    pair : DiscPair
        The discs.
    which : {"before", "after"}
        Which of them.
    width : int, default=64
        Characters per line.

    Returns
    -------
    list of str
        One line per disc.
    """
    shown: Discs = getattr(pair, which)
    low, high = pair.limits

    def place(value: float) -> int:
        return int(np.clip(round((value - low) / (high - low) * (width - 1)), 0, width - 1))

    lines = []
    mark = place(pair.lambda_min)
    for left, center, right in zip(shown.left_ends, shown.centers, shown.right_ends, strict=True):
        line = [" "] * width
        line[mark] = "|"
        for x in range(place(left) + 1, place(right)):
            line[x] = "-" if x != mark else "+"
        line[place(right)], line[place(left)] = ")", "("
        line[place(center)] = "o"
        lines.append("".join(line).rstrip())
    return lines
