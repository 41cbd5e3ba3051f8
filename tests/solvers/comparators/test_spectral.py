"""SPEC: the top eigenvector, its bound, and the paper's Table 1."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.datasets import restoration

# The paper's Table 1, rows SPEC: (N, hops) -> error in percent at sigma = 1, 1.5, 2.
TABLE_1 = {
    (100, 1): (13.04, 23.24, 29.59),
    (100, 2): (10.02, 20.94, 28.06),
    (200, 1): (13.54, 23.38, 29.36),
    (200, 2): (11.19, 21.69, 28.20),
}


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), n=st.integers(2, 30))
def test_labels_and_bound_of_a_signed_form(seed, n):
    rng = np.random.default_rng(seed)
    P = np.triu(rng.normal(size=(n, n)))
    form = gdpa.BinaryQuadratic(P + P.T, anchor=n // 2)
    values, vectors = np.linalg.eigh(P + P.T)
    solution = gdpa.solve(form, "spectral")
    top = vectors[:, -1] * np.sign(vectors[n // 2, -1])
    np.testing.assert_allclose(solution.scores, top, atol=1e-6)
    np.testing.assert_array_equal(solution.labels, np.where(top < 0, -1, 1))
    assert solution.bound_status == "certified"
    assert solution.lower_bound <= -n * values[-1]
    assert solution.lower_bound == pytest.approx(-n * values[-1], rel=1e-9, abs=1e-9)


@given(seed=st.integers(0, 10_000), laplacian=st.sampled_from(["combinatorial", "normalized"]))
def test_labels_and_bound_of_a_graph_problem(seed, laplacian):
    rng = np.random.default_rng(seed)
    n = 12
    W = np.triu(rng.uniform(0.05, 1.0, (n, n)), 1)
    labels = rng.permutation(np.resize([1, -1, 0, 0], n))
    problem = gdpa.GraphProblem(W + W.T, labels, bias=rng.normal(size=n), laplacian=laplacian)
    solution = gdpa.solve(problem, "spectral")
    form = problem.reduced()
    values, vectors = np.linalg.eigh(form.P.toarray())
    top = vectors[:-1, -1] * np.sign(vectors[-1, -1])
    np.testing.assert_allclose(solution.scores[problem.unlabeled], top, atol=1e-6)
    bound = form.constant - form.P.shape[0] * values[-1]
    assert solution.lower_bound == pytest.approx(bound, rel=1e-9, abs=1e-8)
    assert solution.lower_bound <= bound + 1e-12 * abs(bound)
    assert solution.lower_bound <= solution.objective


def test_large_problem_has_an_estimated_bound():
    n = 3000
    form, _ = restoration(n, hops=2, sigma=1.0, random_state=0)
    solution = gdpa.solve(form, "spectral")
    assert solution.bound_status == "estimated"
    top = sp.linalg.eigsh(form.P, k=1, which="LA", return_eigenvectors=False)[0]
    assert solution.lower_bound == pytest.approx(-(n + 1) * top, rel=1e-5)


def test_callback_sees_the_iterations():
    form, _ = restoration(1000, sigma=1.0, random_state=0)
    solution = gdpa.solve(form, "spectral", callback=lambda entry: None)
    assert len(solution.history) >= 1


@pytest.mark.slow
@pytest.mark.parametrize(("n", "hops"), list(TABLE_1))
def test_table_1_within_two_points(n, hops):
    for sigma, published in zip((1.0, 1.5, 2.0), TABLE_1[n, hops], strict=True):
        errors = []
        for run in range(100):
            form, signal = restoration(n, hops=hops, sigma=sigma, random_state=run)
            labels = gdpa.solve(form, "spectral").labels[1:]
            errors.append(100.0 * np.mean(labels != signal))
        assert np.mean(errors) == pytest.approx(published, abs=2.0), sigma
