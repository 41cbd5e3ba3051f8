"""GraphClassifier on graphs with negative weights, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gdpa import GraphClassifier
from gdpa.errors import UnsupportedProblemError
from gdpa.estimators import GraphOptions

LAPLACIANS = ("combinatorial", "normalized")


def signed_graph(seed: int, balanced: bool) -> tuple[np.ndarray, np.ndarray, list[object]]:
    """Integer weights in a connected graph of 4 to 8 nodes with two labels."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    size = np.triu(rng.integers(0, 4, (n, n)), 1)
    size[np.arange(n - 1), np.arange(1, n)] += 1
    colors = rng.choice([-1, 1], n)
    colors[:2] = 1, -1
    W = (size * np.outer(colors, colors)).astype(float)
    if not balanced:
        W[0, 1], W[0, 2], W[1, 2] = 1, 1, -1  # a triangle with one negative edge
    y = [None] * n
    y[0], y[n - 1] = "a", "b"
    return W + W.T, colors, y


def least_objective(W: np.ndarray, y: list[object], laplacian: str) -> float:
    """Smallest ``x' L x`` with the signed Laplacian, over all labellings that keep the labels."""
    d = np.abs(W).sum(axis=1)
    L = np.diag(d) - W
    if laplacian == "normalized":
        L = L / np.sqrt(np.outer(d, d))
    fixed = [1.0 if label == "b" else -1.0 for label in y if label is not None]
    known = [i for i, label in enumerate(y) if label is not None]
    values = []
    for signs in itertools.product((-1.0, 1.0), repeat=len(y)):
        x = np.array(signs)
        if x[known].tolist() == fixed:
            values.append(x @ L @ x)
    return min(values)


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_labels_are_optimal_and_proved(seed, balanced, laplacian):
    W, _, y = signed_graph(seed, balanced)
    options = GraphOptions(laplacian=laplacian)
    model = GraphClassifier(graph="precomputed", unlabeled=None, options=options).fit(W, y)
    best = least_objective(W, y, laplacian)
    assert model.balance_.balanced == balanced
    assert model.objective_ == pytest.approx(best, abs=1e-9)
    assert model.solution_.objective == pytest.approx(best, abs=1e-9)
    assert model.solution_.bound_status == "certified"
    assert model.solution_.lower_bound <= best + 1e-9
    assert model.solution_.lower_bound == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert [a for a, b in zip(model.transduction_, y, strict=True) if b is not None] == ["a", "b"]


def test_balanced_signs_have_one_consistent_labelling():
    W, colors, y = signed_graph(3, balanced=True)
    y = [None] * len(y)
    y[0], y[1] = "up", "down"  # colours +1 and -1
    options = GraphOptions(laplacian="combinatorial")
    model = GraphClassifier(graph="precomputed", unlabeled=None, options=options).fit(W, y)
    assert model.solution_.method == "min-cut"
    assert model.transduction_.tolist() == ["up" if c > 0 else "down" for c in colors]
    assert model.objective_ == pytest.approx(0.0, abs=1e-9)


def test_further_labels_are_solved_for_again(tmp_path):
    W, _, y = signed_graph(4, balanced=False)
    model = GraphClassifier(graph="precomputed", unlabeled=None).fit(W, y)
    node = int(model.query(1)[0])
    other = "a" if model.transduction_[node] == "b" else "b"
    model.add_labels(node, other)
    y[node] = other
    assert model.objective_ == pytest.approx(least_objective(W, y, "normalized"), abs=1e-9)
    again = GraphClassifier.load(model.save(tmp_path / "signed.npz"))
    assert again.transduction_.tolist() == model.transduction_.tolist()
    assert np.isfinite(again.predict_proba(np.abs(W))).all()
    with pytest.raises(ValueError, match="two classes"):
        model.add_labels(1, "c")


@pytest.mark.parametrize("y", [[0, 1, 2, -1], [0, -1, -1, -1]])
def test_other_numbers_of_classes_are_refused(y):
    W = np.ones((4, 4)) - np.eye(4)
    W[0, 1] = W[1, 0] = -1
    with pytest.raises(ValueError, match="exactly two classes"):
        GraphClassifier(graph="precomputed").fit(W, y)


def test_methods_for_nonnegative_weights_are_refused_by_name():
    W = [[0, -1, 1], [-1, 0, 1], [1, 1, 0]]
    with pytest.raises(UnsupportedProblemError, match="branch-and-bound"):
        GraphClassifier(graph="precomputed", method="gdpa").fit(W, [0, 1, -1])
    model = GraphClassifier(graph="precomputed", method="search").fit(W, [0, 1, -1])
    assert model.solution_.method == "search"
