"""The full graph in single precision: the same votes, harmonic labels and GDPA as in double."""

from __future__ import annotations

import numpy as np
import pytest

import gdpa
from reproduction.experiments.dense_graph import DenseGraph
from reproduction.methods import METHODS
from reproduction.protocol import full_graph


def make(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1).astype(np.int8)
    X = rng.normal(size=(n, 3)) + 0.7 * y[:, None]
    return X, np.where(np.arange(n) % 2, y, 0).astype(np.int8)


def test_it_is_the_papers_graph(monkeypatch):
    # many blocks
    monkeypatch.setattr("reproduction.experiments.dense_graph._BLOCK_BYTES", 8 * 300 * 7)
    X, labels = make()
    problem = gdpa.GraphProblem(full_graph(X), labels, laplacian="normalized")
    graph = DenseGraph.of(X)
    np.testing.assert_allclose(graph.weights, problem.adjacency.toarray(), atol=1e-7)
    u = labels == 0
    np.testing.assert_allclose(graph.scores("vote", labels)[0], problem.vote, atol=1e-5)
    scores, converged = graph.scores("harmonic", labels)
    assert converged
    np.testing.assert_allclose(scores, gdpa.solve(problem, "harmonic").scores[u], atol=1e-3)


def test_the_papers_algorithm_ends_where_the_solver_does():
    X, labels = make(n=80)
    problem = gdpa.GraphProblem(full_graph(X), labels, laplacian="normalized")
    solution = gdpa.solve(problem, "gdpa", **METHODS["gdpa-closed-form"].options)
    assert solution.info["erased"]
    scores, _ = DenseGraph.of(X).scores("gdpa-closed-form", labels)
    assert np.array_equal(np.where(scores >= 0, 1, -1), solution.labels[labels == 0])
    v = np.abs(scores)
    theirs = np.abs(solution.scores[labels == 0])
    assert v @ theirs > (1 - 1e-3) * np.linalg.norm(v) * np.linalg.norm(theirs)


@pytest.mark.parametrize("seed", range(4))
def test_search_reaches_the_value_of_the_solver(seed):
    X, labels = make(n=120, seed=seed)
    problem = gdpa.GraphProblem(full_graph(X), labels, laplacian="normalized")
    scores, _ = DenseGraph.of(X).scores("sns-authors", labels)
    ours, theirs = labels.astype(float), gdpa.solve(problem, "sns", variant="authors").labels
    ours[labels == 0] = scores
    L = problem.L
    assert ours @ L @ ours == pytest.approx(theirs @ L @ theirs, rel=0.01)
    assert ours @ L @ ours > 2 * np.abs(labels) @ L @ np.abs(labels)  # it maximises


def test_memory_is_checked_before_it_is_taken(monkeypatch):
    monkeypatch.setattr("gdpa.memory.available_memory", lambda: 1e9)
    X = np.zeros((24_432, 2))
    with pytest.raises(MemoryError, match=r"full graph of 24432 samples.*2[.]\d+ GB"):
        DenseGraph.of(X)
