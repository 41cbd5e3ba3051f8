"""BCR: the vectorised rounds against the definition written out constraint by constraint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.errors import ConvergenceWarning, UnsupportedProblemError
from gdpa.solvers.comparators import bcr as module
from gdpa.solvers.comparators.bcr import BCR


def problem_of(seed: int, n: int = 12, known: int = 5, *, bias: bool = False) -> gdpa.GraphProblem:
    rng = np.random.default_rng(seed)
    W = np.triu(rng.uniform(0.05, 1.0, (n, n)), 1)
    labels = np.zeros(n, dtype=int)
    labels[rng.permutation(n)[:known]] = np.resize([1, -1, -1, 1, 1], known)
    return gdpa.GraphProblem(
        W + W.T,
        labels,
        bias=rng.normal(size=n) if bias else None,
        laplacian="normalized" if seed % 2 else "combinatorial",
    )


def written_out_authors(problem: gdpa.GraphProblem, rounds: int) -> tuple[np.ndarray, list[float]]:
    """The published comparison's loop with explicit constraint matrices and complex roots."""
    n = problem.n_nodes + 1
    C = np.zeros((n, n))
    C[:-1, :-1] = -problem.L.toarray() / problem.diagonal.mean()
    matrices, values = [], []
    for i in range(n):
        A = np.zeros((n, n))
        A[i, i] = 1.0
        matrices.append(A)
        values.append(1.0)
    for i in problem.labeled:
        B = np.zeros((n, n))
        B[i, -1] = B[-1, i] = float(problem.labels[i])
        matrices.append(B)
        values.append(2.0)
    roots = []
    for K in matrices:  # principal square roots
        lam, V = np.linalg.eigh(K)
        roots.append((V * np.emath.sqrt(lam)) @ V.T)
    beta = np.linalg.norm(C)
    alpha = 2.0 * beta
    G = np.linalg.inv(alpha * sum(matrices) + C)
    mean = sum(v * K for v, K in zip(values, matrices, strict=True)) / len(values)
    lam, V = np.linalg.eigh(mean)
    lead = np.argmax(np.abs(lam))
    x = np.sqrt(np.abs(lam[lead]) / 2.0) * V[:, lead] * np.sign(V[-1, lead])
    x[np.abs(x) < 1e-14] = 0.0
    objectives = []
    for _ in range(rounds):
        total, length = np.zeros(n, dtype=complex), 0.0
        for root, value in zip(roots, values, strict=True):
            q = root @ x
            r = np.linalg.norm(q)
            if r > 0:
                Q = min(alpha * r / (alpha - beta), np.sqrt(value)) * q / r
                total += root.conj().T @ Q
                length += np.linalg.norm(Q)
        x = G @ total
        np.testing.assert_allclose(x.imag, 0.0, atol=1e-12)
        x = x.real
        objectives.append(float(x @ C @ x - 0.5 * beta * length))
    return x, objectives


@pytest.mark.parametrize("seed", range(6))
def test_authors_rounds_equal_the_written_out_loop(seed):
    problem = problem_of(seed)
    with pytest.warns(ConvergenceWarning):
        solution = BCR(variant="authors", max_iter=6, tol=1e-300).solve(problem)
    x, objectives = written_out_authors(problem, 6)
    x = x if x[-1] >= 0 else -x
    np.testing.assert_allclose(solution.scores, x[:-1], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose([h["objective"] for h in solution.history], objectives, rtol=1e-8)


@given(seed=st.integers(0, 10_000), bias=st.booleans())
def test_stated_objective_is_the_definition_and_never_rises(seed, bias):
    problem = problem_of(seed, bias=bias)
    solution = BCR(max_iter=500, tol=1e-9).solve(problem)
    values = np.array([h["objective"] for h in solution.history])
    assert (np.diff(values) <= 1e-9 * np.abs(values[1:])).all()
    # The value of the biconvex problem, summed constraint by constraint, at one more q-step from
    # the last x: no higher than what was reported, and no lower than by the tolerance.
    h = problem.bias
    scale = max(problem.diagonal.mean(), np.abs(h).max())
    C = np.block([[problem.L.toarray(), -h[:, None]], [-h[None, :], np.zeros((1, 1))]]) / scale
    x = np.append(solution.scores, solution.info["apex"])
    beta = np.linalg.norm(C)
    alpha = 2.0 * beta
    value = x @ C @ x
    rows = [(np.eye(x.size)[i], 1.0) for i in range(x.size)]
    for i in problem.labeled:
        row = np.eye(x.size)[i] + problem.labels[i] * np.eye(x.size)[-1]
        rows.append((row, 2.0))
    for row, radius in rows:
        q = np.clip(2.0 * (row @ x), -radius, radius)
        value += 0.5 * alpha * (q - row @ x) ** 2 - 0.5 * beta * q**2
    assert value <= values[-1] + 1e-9 * abs(value)
    assert value >= values[-1] - 1e-6 * abs(value)


@pytest.mark.parametrize("variant", ["stated", "authors"])
@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_units_of_weight_do_not_matter(variant, factor):
    problem = problem_of(4)
    scaled = gdpa.GraphProblem(problem.W * factor, problem.labels)
    a = gdpa.solve(problem, "bcr", variant=variant)
    b = gdpa.solve(scaled, "bcr", variant=variant)
    np.testing.assert_allclose(a.scores, b.scores, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("variant", ["stated", "authors"])
def test_sparse_factorisation_gives_the_dense_result(variant, random_graph):
    W = random_graph(260, 3, density=0.03)
    labels = np.zeros(260, dtype=int)
    labels[:40] = np.resize([1, -1], 40)
    problem = gdpa.GraphProblem(W, labels)
    sparse = gdpa.solve(problem, "bcr", variant=variant)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE_SHARE", 0.0)
        dense = gdpa.solve(problem, "bcr", variant=variant)
    np.testing.assert_allclose(sparse.scores, dense.scores, rtol=1e-7, atol=1e-10)


def test_mirrored_labels_give_mirrored_scores():
    problem = problem_of(2)
    mirrored = problem.with_labels(-problem.labels)
    for variant in BCR.choices["variant"]:
        a = gdpa.solve(problem, "bcr", variant=variant)
        b = gdpa.solve(mirrored, "bcr", variant=variant)
        np.testing.assert_allclose(a.scores, -b.scores, rtol=1e-6, atol=1e-12)


def test_evidence_alone_is_enough():
    bias = np.array([3.0, 0.0, 0.0, -3.0])
    W = np.diag([1.0, 0.1, 1.0], 1)
    solution = gdpa.solve(gdpa.GraphProblem(W + W.T, np.zeros(4), bias=bias), "bcr")
    assert solution.labels.tolist() == [1, 1, -1, -1]


def test_refuses_a_dense_system_that_does_not_fit(monkeypatch):
    monkeypatch.setattr(module, "available_memory", lambda: 100)
    with pytest.raises(UnsupportedProblemError, match=r"GiB.*glr-box"):
        gdpa.solve(problem_of(0), "bcr")


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="variant='author' is not known; did you mean 'authors'"):
        BCR(variant="author")


def test_callback_stops_and_the_best_point_is_returned():
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        solution = gdpa.solve(problem_of(1), "bcr", callback=lambda entry: True)
    assert not solution.converged
    assert solution.iterations == 1
    assert np.isfinite(solution.scores).all()
