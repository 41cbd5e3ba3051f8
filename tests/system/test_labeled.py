"""Fact 5 and Fact 6: linear recovery, its limits against independent code, leave-one-out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.policy import Policy
from gdpa.problem.dual import build_H, optimal_point
from gdpa.system import LabeledSystem
from gdpa.system.closed_form import labeled_blocks, left_out_by_one
from tests.system.small_systems import dense, system


def make(n, seed, laplacian="combinatorial", bias=False):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    W += np.diag(rng.uniform(0.1, 1, n - 1), 1)
    labels = np.zeros(n, dtype=int)
    where = rng.permutation(n)[: max(3, n // 3)]
    labels[where] = rng.choice([-1, 1], where.size)
    labels[where[:2]] = 1, -1
    h = rng.normal(size=n) if bias else None
    return gdpa.GraphProblem(W + W.T, labels, bias=h, laplacian=laplacian), rng


def recover(problem, **options):
    system = LabeledSystem(
        problem.adjacency,
        problem.diagonal,
        problem.labeled,
        problem.labels[problem.labeled].astype(float),
        **options,
    )
    return system.solve(tol=1e-12).x


def harmonic_by_relaxation(W, labels):
    """Independent: repeat the neighbours' mean until nothing moves."""
    x = labels.astype(float)
    free = labels == 0
    degree = W.sum(axis=1)
    for _ in range(200_000):
        new = np.where(free, (W @ x) / degree, labels)
        if np.abs(new - x).max() < 1e-14:
            break
        x = new
    return x


problems = given(
    n=st.integers(4, 20),
    seed=st.integers(0, 10**6),
    laplacian=st.sampled_from(["combinatorial", "normalized"]),
)


@given(n=st.integers(4, 12), seed=st.integers(0, 10**6))
def test_infinite_label_weight_is_the_harmonic_function(n, seed):
    problem, _ = make(n, seed)
    expected = harmonic_by_relaxation(problem.W.toarray(), problem.labels)
    assert np.allclose(recover(problem), expected, atol=1e-7)
    assert np.abs(recover(problem)).max() <= 1 + 1e-9  # the box is never active
    heavy = recover(problem, label_weight=1e9)
    assert np.allclose(heavy, expected, atol=1e-6)


@problems
def test_infinite_self_loop_is_the_vote(n, seed, laplacian):
    problem, _ = make(n, seed, laplacian)
    gamma = 1e10
    u = problem.unlabeled
    scores = recover(problem, self_loop=gamma)[u] * gamma
    direct = (
        problem.adjacency.toarray()[np.ix_(u, problem.labeled)] @ problem.labels[problem.labeled]
    )
    assert np.allclose(scores, direct, rtol=1e-6, atol=1e-8)
    assert np.allclose(gdpa.solve(problem, "vote").scores[u], direct)


@given(n=st.integers(4, 15), seed=st.integers(0, 10**6))
def test_zero_label_weight_is_poisson_learning(n, seed):
    """a -> 0 with the constant removed: L x = xh - mean on labelled nodes."""
    problem, _ = make(n, seed)
    m = problem.n_labeled
    source = np.zeros(n)
    source[problem.labeled] = problem.labels[problem.labeled]
    source[problem.labeled] -= source.sum() / m
    poisson = np.linalg.pinv(problem.L.toarray()) @ source
    a = 1e-7
    scores = recover(problem, label_weight=a) / a
    assert np.allclose(scores - scores.mean(), poisson - poisson.mean(), atol=1e-4)


@given(n=st.integers(4, 15), seed=st.integers(0, 10**6))
def test_gamma_at_minus_lmin_is_the_first_eigenvector_with_clamped_labels(n, seed):
    problem, _ = make(n, seed)
    u = problem.unlabeled
    L_uu = problem.L.toarray()[np.ix_(u, u)]
    values, vectors = np.linalg.eigh(L_uu)
    if u.size > 1 and values[1] - values[0] < 1e-3:
        return
    gamma = -values[0] * (1 - 1e-9)
    x = recover(problem, self_loop=gamma)[u]
    drive = (
        problem.adjacency.toarray()[np.ix_(u, problem.labeled)] @ problem.labels[problem.labeled]
    )
    if abs(vectors[:, 0] @ drive) < 1e-3:
        return
    cosine = abs(x @ vectors[:, 0]) / np.linalg.norm(x)
    assert cosine == pytest.approx(1.0, abs=1e-6)


@problems
def test_linear_recovery_is_complementary_slackness(n, seed, laplacian):
    """H (x, 1) vanishes on the nodes' rows at the recovered x."""
    problem, rng = make(n, seed, laplacian, bias=True)
    dual = optimal_point(problem, rng.exponential() + 0.1)
    weight = float(np.abs(dual.z[0]))
    options = {"start": "optimal", "recovery": "linear", "label_weight": weight}
    solution = gdpa.solve(problem, "gdpa", **options, tol=1e-12)
    rows = build_H(problem, dual) @ np.append(solution.scores, 1.0)
    assert np.abs(rows[:-1]).max() < 1e-7


@given(n=st.integers(4, 12), seed=st.integers(0, 10**6))
def test_both_recoveries_agree_where_lmin_of_H_is_zero(n, seed):
    """H (x, 1) = 0 on all rows means that (x, 1) is the first eigenvector."""
    problem, _ = make(n, seed)
    dual = optimal_point(problem, 1.0)
    x = np.linalg.solve(problem.L.toarray() + np.diag(dual.y[:-1]), problem.labels.astype(float))
    H = build_H(problem, dual).toarray()
    H[-1, -1] = problem.labels @ x  # the Schur complement vanishes
    values, vectors = np.linalg.eigh(H)
    assert abs(values[0]) < 1e-10
    if values[1] < 1e-3:
        return
    v = vectors[:, 0]
    assert np.allclose(v[:-1] / v[-1], x, atol=1e-6)


@given(
    n=st.integers(5, 16),
    seed=st.integers(0, 10**6),
    laplacian=st.sampled_from(["combinatorial", "normalized"]),
    weight=st.sampled_from([0.3, 2.0, np.inf]),
    gamma=st.sampled_from([0.0, 0.2]),
)
def test_leave_one_out_equals_really_leaving_one_out(n, seed, laplacian, weight, gamma):
    problem, _ = make(n, seed, laplacian)
    known = problem.labeled
    targets = np.column_stack([problem.labels[known], 1.0 * (problem.labels[known] > 0)]).astype(
        float
    )
    system = LabeledSystem(
        problem.adjacency,
        problem.diagonal,
        known,
        targets,
        label_weight=weight,
        self_loop=gamma,
    )
    K = labeled_blocks(system, [gamma])[0]
    _, left_out = next(left_out_by_one(K, targets, [weight]))
    for k in range(known.size):
        rest = np.delete(np.arange(known.size), k)
        direct = replace(system, labeled=known[rest], targets=targets[rest]).solve(tol=1e-12)
        assert np.allclose(left_out[k], direct.x[known[k]], atol=1e-5)


def test_many_right_hand_sides_equal_one_at_a_time():
    problem, rng = make(30, 4)
    known = problem.labeled
    targets = rng.normal(size=(known.size, 4))
    system = LabeledSystem(problem.adjacency, problem.diagonal, known, targets, label_weight=2.0)
    block = system.solve(tol=1e-12).x
    for k in range(4):
        single = replace(system, targets=targets[:, k]).solve(tol=1e-12).x
        assert np.allclose(block[:, k], single, atol=1e-9)


def test_mixed_label_weights_are_refused():
    problem, _ = make(8, 1)
    known = problem.labeled
    weights = np.ones(known.size)
    weights[0] = np.inf
    with pytest.raises(ValueError, match="infinite on all labelled nodes or on none"):
        LabeledSystem(
            problem.adjacency,
            problem.diagonal,
            known,
            problem.labels[known].astype(float),
            label_weight=weights,
        ).solve()


def test_evidence_alone_is_enough(random_graph):
    """No label at all: (L + |h|) x = h."""
    W = random_graph(12, 4)
    h = np.linspace(-1.0, 1.0, 12)
    problem = gdpa.GraphProblem(W, np.zeros(12), bias=h)
    expected = np.linalg.solve(problem.L.toarray() + np.diag(np.abs(h)), h)
    np.testing.assert_allclose(gdpa.solve(problem, tol=1e-12).scores, expected, atol=1e-10)


def test_the_unit_is_the_mean_degree():
    given = system()
    assert given.unit == pytest.approx(given.diagonal.mean(), rel=1e-14)
    assert replace(given, diagonal=np.zeros(40)).unit == 1.0
    huge = replace(given, diagonal=np.full(40, 1e308))
    assert huge.unit == pytest.approx(1e308, rel=1e-12)


@pytest.mark.parametrize("weight", [np.inf, 2.0, "each"])
@pytest.mark.parametrize("evidence", [None, "one", "many"])
@pytest.mark.parametrize("loop", [0.0, 0.4])
def test_matrix_and_right_hand_side_are_those_of_the_definition(weight, evidence, loop):
    rng = np.random.default_rng(1)
    columns = 1 if evidence == "one" else 3
    options = {"self_loop": loop, "label_weight": weight}
    if weight == "each":
        options["label_weight"] = rng.uniform(0.5, 2.0, 5)
    if evidence is not None:
        options["evidence"] = rng.standard_normal(40 if evidence == "one" else (40, 3))
    given = system(columns=columns, **options)
    exact = dense(given)
    kept = given.labeled if weight is np.inf else given.labeled[:0]
    free = np.setdiff1d(np.arange(40), kept)
    np.testing.assert_array_equal(given.kept, kept)
    np.testing.assert_array_equal(given.unknown, free)
    left = given.matrix() @ exact[free]
    np.testing.assert_allclose(left, given.rhs[free], atol=1e-11)
    np.testing.assert_allclose(given.matrix().diagonal(), given.total[free])
    for preconditioner in (None, "auto", "jacobi", "two-level", lambda R: R):
        iterated = replace(given, policy=Policy(dense_below=0))
        found = iterated.solve(tol=1e-11, preconditioner=preconditioner)
        np.testing.assert_allclose(found.x, exact, atol=1e-8)
    flat = replace(given, targets=given.targets[:, 0])
    if evidence != "many":
        assert flat.solve(tol=1e-11).x.shape == (40,)
        np.testing.assert_allclose(flat.solve(tol=1e-11).x, exact[:, 0], atol=1e-8)


def test_nothing_to_solve():
    given = system(4, 4)
    found = given.solve()
    np.testing.assert_array_equal(found.x, given.targets)
    assert (found.iterations, found.matvecs, found.residual, found.converged) == (0, 0, 0.0, True)
    assert (found.method, found.message) == ("none", "nothing to solve")


@pytest.mark.parametrize("bad", [[np.inf, 1.0], [1.0, np.inf]])
def test_mixed_weights_are_refused(bad):
    with pytest.raises(ValueError, match="infinite on all"):
        system(m=2, label_weight=np.array(bad)).solve()
