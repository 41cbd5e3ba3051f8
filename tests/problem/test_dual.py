"""The dual matrices, Fact 1, the two lemmas and the error bound, against the true SDR."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import gdpa
from gdpa.problem.dual import (
    build_H,
    build_H_bar,
    build_H_tilde,
    dual_objective,
    error_bound,
    lemma1_gap,
    optimal_point,
    optimal_value,
)
from gdpa.solution import DualVariables

clarabel = pytest.importorskip("clarabel", reason="needs the extra 'sdp'")


def make(n, seed, *, bias=False, laplacian="combinatorial", n_labeled=None):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    W += np.diag(rng.uniform(0.1, 1, n - 1), 1)  # a path keeps it connected
    W = W + W.T
    labels = np.zeros(n, dtype=int)
    where = rng.permutation(n)[: n_labeled or rng.integers(2, max(3, n // 2) + 1)]
    labels[where] = rng.choice([-1, 1], where.size)
    labels[where[:2]] = 1, -1
    h = rng.normal(size=n) * 0.5 if bias else None
    return gdpa.GraphProblem(W, labels, bias=h, laplacian=laplacian), rng


def random_dual(problem, rng):
    a = rng.exponential(size=problem.n_labeled)
    y = rng.normal(size=problem.n_nodes + 1)
    return DualVariables(y=y, z=-problem.labels[problem.labeled] * a)


def psd_triangle_index(n):
    rows, cols = np.triu_indices(n)
    order = np.lexsort((rows, cols))
    return rows[order], cols[order]


def sdr_full_form(problem):
    """The SDR of the paper, M = [X x; x' 1] psd, by Clarabel; returns its value."""
    n = problem.n_nodes
    size = n + 1
    rows, cols = psd_triangle_index(size)
    scale = np.where(rows == cols, 1.0, np.sqrt(2.0))
    C = np.zeros((size, size))
    C[:n, :n] = problem.L.toarray()
    C[:n, n] = C[n, :n] = -problem.bias
    cost = C[rows, cols] * scale
    position = {(i, j): k for k, (i, j) in enumerate(zip(rows, cols, strict=True))}
    equations, values = [], []
    for i in range(size):
        equations.append((position[i, i], 1.0))
        values.append(1.0)
    for i in problem.labeled:
        equations.append((position[i, n], 1.0 / np.sqrt(2.0)))
        values.append(float(problem.labels[i]))
    E = sp.csc_matrix(
        (
            [c for _, c in equations],
            (np.arange(len(equations)), [k for k, _ in equations]),
        ),
        shape=(len(equations), rows.size),
    )
    A = sp.vstack([E, -sp.eye(rows.size)], format="csc")
    b = np.concatenate([values, np.zeros(rows.size)])
    options = clarabel.DefaultSettings()
    options.verbose = False
    solver = clarabel.DefaultSolver(
        sp.csc_matrix((rows.size, rows.size)),
        cost,
        A,
        b,
        [clarabel.ZeroConeT(len(equations)), clarabel.PSDTriangleConeT(size)],
        options,
    )
    return float(solver.solve().obj_val)


cases = given(
    n=st.integers(3, 12),
    seed=st.integers(0, 10**6),
    bias=st.booleans(),
    laplacian=st.sampled_from(["combinatorial", "normalized"]),
)


@cases
def test_fact1_identity(n, seed, bias, laplacian):
    """w' H_bar w = F + 1'L1 - 2 sum_u |h| for w = (1, 1, -1), at any dual point."""
    problem, rng = make(n, seed, bias=bias, laplacian=laplacian)
    dual = random_dual(problem, rng)
    w = np.append(np.ones(n + 1), -1.0)
    left = w @ (build_H_bar(problem, dual) @ w)
    right = dual_objective(problem, dual) + problem.L.sum()
    right -= 2 * np.abs(problem.bias[problem.unlabeled]).sum()
    assert left == pytest.approx(right, abs=1e-9)


@cases
def test_fact1_the_whole_face_is_optimal(n, seed, bias, laplacian):
    """Every a >= 0 gives a feasible point with the smallest possible objective."""
    problem, rng = make(n, seed, bias=bias, laplacian=laplacian)
    a = rng.exponential(size=problem.n_labeled) * rng.integers(0, 2, problem.n_labeled)
    dual = optimal_point(problem, a)
    assert dual_objective(problem, dual) == pytest.approx(optimal_value(problem), abs=1e-9)
    H_bar = build_H_bar(problem, dual).toarray()
    assert np.linalg.eigvalsh(H_bar)[0] >= -1e-9 * (1 + np.abs(H_bar).max())
    assert np.abs(H_bar @ np.append(np.ones(n + 1), -1.0)).max() < 1e-9 * (1 + a.sum())


def test_fact1_the_start_of_the_paper_is_on_the_face():
    problem, _ = make(8, 3)
    dual = optimal_point(problem, 1.0)
    assert dual.y[problem.labeled].tolist() == [1.0] * problem.n_labeled
    assert not dual.y[problem.unlabeled].any()
    assert dual.y[-1] == problem.n_labeled
    assert np.array_equal(dual.z, -problem.labels[problem.labeled])


@cases
def test_fact1_nothing_outside_the_face_is_optimal(n, seed, bias, laplacian):
    """Off the face a feasible point costs more: H_bar w = 0 is necessary."""
    problem, rng = make(n, seed, bias=bias, laplacian=laplacian)
    dual = optimal_point(problem, rng.exponential(size=problem.n_labeled))
    y = dual.y.copy()
    y[rng.integers(n)] += 0.1  # still psd: a self-loop was added
    moved = DualVariables(y=y, z=dual.z)
    assert dual_objective(problem, moved) >= optimal_value(problem) + 0.1 - 1e-9


def test_matrices_of_a_path_by_hand():
    """Three nodes in a line, labels +1 and -1 on the first two, as the paper writes them."""
    w12, w23 = 0.7, 0.4
    problem = gdpa.GraphProblem([[0, w12, 0], [w12, 0, w23], [0, w23, 0]], [1, -1, 0])
    y, z = np.array([1.0, 2.0, 3.0, 4.0]), np.array([-0.5, 0.25])
    dual = DualVariables(y=y, z=z)
    H = [
        [y[0] + w12, -w12, 0, z[0]],
        [-w12, y[1] + w12 + w23, -w23, z[1]],
        [0, -w23, y[2] + w23, 0],
        [z[0], z[1], 0, y[3]],
    ]
    assert np.allclose(build_H(problem, dual).toarray(), H)
    u4 = y[3] + z[0] + z[1]
    H_bar = [
        [y[0] + w12, -w12, 0, z[0], 0],
        [-w12, y[1] + w12 + w23, -w23, 0, z[1]],
        [0, -w23, y[2] + w23, 0, 0],
        [z[0], 0, 0, -z[0], 0],
        [0, z[1], 0, 0, u4 - z[1]],
    ]
    assert np.allclose(build_H_bar(problem, dual).toarray(), H_bar)
    phi = 0.3
    star = phi * np.array([[1, 0, 0, -1], [0, 1, 0, -1], [0, 0, 0, 0], [-1, -1, 0, 2.0]])
    assert np.allclose(build_H_tilde(problem, dual, phi).toarray(), H + star)


@cases
def test_lemmas_1_and_2(n, seed, bias, laplacian):
    problem, rng = make(n, seed, bias=bias, laplacian=laplacian)
    dual = random_dual(problem, rng)
    # Lemma 1 compares Rayleigh quotients with a longer vector in H_bar, so it needs lmin(H) >= 0.
    shift = np.linalg.eigvalsh(build_H(problem, dual).toarray())[0]
    dual = DualVariables(y=dual.y + max(0.0, -shift), z=dual.z)
    assert lemma1_gap(problem, dual) >= -1e-8
    H_tilde = build_H_tilde(problem, dual, rng.exponential()).toarray()
    H = build_H(problem, dual).toarray()
    assert np.linalg.eigvalsh(H_tilde)[0] >= np.linalg.eigvalsh(H)[0] - 1e-8


@settings(max_examples=25)
@given(n=st.integers(4, 9), seed=st.integers(0, 10**6), bias=st.booleans())
def test_error_bound_against_the_true_sdr(n, seed, bias):
    """F(H_tilde) <= F(H) <= F(H_bar), with F(H) = -SDR from an independent solver."""
    for laplacian in ("combinatorial", "normalized"):
        problem, _ = make(n, seed, bias=bias, laplacian=laplacian)
        labelled = 2.0 * float(problem.bias[problem.labeled] @ problem.labels[problem.labeled])
        F = -(sdr_full_form(problem) + labelled)
        result = error_bound(problem)
        slack = 1e-5 * (1 + abs(F))
        assert result.F_tilde <= F + slack
        assert result.F_bar + slack >= F
        assert abs(result.F_bar - F) <= result.bound + slack
        assert result.bound == pytest.approx(result.F_bar - result.F_tilde)


@settings(max_examples=25)
@given(n=st.integers(4, 9), seed=st.integers(0, 10**6), bias=st.booleans())
def test_F_tilde_is_the_optimum_over_positive_graphs(n, seed, bias):
    """The closed form is attained by a feasible point, and no random feasible point beats it."""
    problem, rng = make(n, seed, bias=bias)
    phi = 1.5 + np.abs(problem.bias).max()
    result = error_bound(problem, phi)
    negative = problem.labels[problem.labeled] < 0
    z = np.where(negative, phi, -rng.exponential(size=problem.n_labeled))
    leaf = ((problem.labels != 0) | (problem.bias != 0)) * phi
    edges = problem.bias + leaf
    edges[problem.labeled] = phi - z
    edges[(problem.labels == 0) & (problem.bias == 0)] = 0.0
    y = np.append(edges - leaf, edges.sum() - leaf.sum())  # H_tilde is a plain Laplacian
    best = DualVariables(y=y, z=z)
    spectrum = np.linalg.eigvalsh(build_H_tilde(problem, best, phi).toarray())
    assert spectrum[0] >= -1e-9
    assert dual_objective(problem, best) == pytest.approx(result.F_tilde)
    z = np.where(negative, rng.uniform(0, phi, z.size), -rng.exponential(size=z.size))
    other = DualVariables(y=rng.normal(size=n + 1), z=z)
    lmin = np.linalg.eigvalsh(build_H_tilde(problem, other, phi).toarray())[0]
    other = DualVariables(y=other.y - lmin, z=z)
    assert dual_objective(problem, other) >= result.F_tilde - 1e-9


def test_wrong_dual_points_are_refused():
    problem, _ = make(5, 0)
    good = optimal_point(problem)
    with pytest.raises(ValueError, match=r"dual.y must have shape \(6,\)"):
        build_H(problem, DualVariables(y=good.y[:-1], z=good.z))
    with pytest.raises(ValueError, match=r"dual\.z must have shape"):
        build_H_bar(problem, DualVariables(y=good.y, z=good.z[:-1]))
    with pytest.raises(ValueError, match="phi=-1"):
        build_H_tilde(problem, good, -1)
    with pytest.raises(ValueError, match="label_weight must"):
        optimal_point(problem, -1.0)
    h = np.zeros(5)
    h[problem.unlabeled[0]] = -2.0
    biased = gdpa.GraphProblem(problem.W, problem.labels, bias=h)
    with pytest.raises(ValueError, match="phi=1 leaves an edge of the apex negative"):
        error_bound(biased, 1)
