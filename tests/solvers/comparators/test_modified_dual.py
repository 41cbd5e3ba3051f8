"""The paper's modified dual as a semidefinite programme: its value, its face, its labels."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

import gdpa
from gdpa.errors import ConvergenceWarning, MissingExtraError, UnsupportedProblemError
from gdpa.problem.dual import build_H, build_H_bar, dual_objective, optimal_point, optimal_value
from gdpa.solution import DualVariables
from gdpa.solvers import sdr_form
from gdpa.solvers.comparators.modified_dual import modified_dual_lmi

METHODS = ["modified-dual-interior-point", "modified-dual-admm"]
CASES = [
    (laplacian, bias) for laplacian in ("combinatorial", "normalized") for bias in (False, True)
]


def make_problem(random_graph, n, seed, laplacian="combinatorial", bias=False):
    rng = np.random.default_rng(seed)
    labels = np.zeros(n)
    labels[rng.permutation(n)[: n // 2]] = rng.choice([-1, 1], n // 2)
    labels[np.flatnonzero(labels)[:2]] = 1, -1
    h = 0.3 * rng.normal(size=n) if bias else None
    return gdpa.GraphProblem(random_graph(n, seed), labels, bias=h, laplacian=laplacian)


@pytest.mark.parametrize(("laplacian", "bias"), CASES)
def test_lmi_is_H_bar(random_graph, laplacian, bias):
    problem = make_problem(random_graph, 9, 1, laplacian, bias)
    rng = np.random.default_rng(0)
    y = rng.normal(size=10)
    a = rng.random(problem.n_labeled)
    lmi = modified_dual_lmi(problem)
    x = np.concatenate([y, a])
    F = np.zeros((11, 11))
    np.add.at(F, (lmi.row, lmi.column), x[lmi.variable] * lmi.value)
    F = lmi.F0 + F + np.tril(F, -1).T + np.triu(F, 1).T
    dual = DualVariables(y=y, z=-problem.labels[problem.labeled] * a)
    assert pytest.approx(build_H_bar(problem, dual).toarray()) == F
    assert lmi.c @ x == pytest.approx(dual_objective(problem, dual))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("laplacian", "bias"), CASES)
def test_value_is_the_closed_form_that_ignores_the_labels(random_graph, method, laplacian, bias):
    problem = make_problem(random_graph, 14, 2, laplacian, bias)
    solution = gdpa.solve(problem, method)
    assert solution.converged
    size = float(problem.diagonal.sum())
    assert solution.info["dual_value"] == pytest.approx(optimal_value(problem), abs=2e-4 * size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("laplacian", "bias"), CASES)
def test_the_solver_ends_on_the_optimal_face(random_graph, method, laplacian, bias):
    # The face is non-unique: given the a that the solver ended at, y is determined by it.
    problem = make_problem(random_graph, 14, 3, laplacian, bias)
    solution = gdpa.solve(problem, method, tol=1e-7)
    a = np.abs(solution.dual.z)
    face = optimal_point(problem, a)
    assert solution.dual.y == pytest.approx(face.y, abs=2e-3 * (1.0 + a.max()))
    assert (solution.dual.z * problem.labels[problem.labeled] <= 0).all()


def test_two_solvers_end_at_different_points_of_the_face(random_graph):
    problem = make_problem(random_graph, 14, 3)
    one, two = (gdpa.solve(problem, method, tol=1e-7) for method in METHODS)
    assert one.info["dual_value"] == pytest.approx(two.info["dual_value"], abs=1e-3)
    assert np.abs(one.dual.z - two.dual.z).max() > 0.1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("laplacian", "bias"), CASES)
def test_bound_is_below_every_labelling(random_graph, method, laplacian, bias):
    problem = make_problem(random_graph, 12, 4, laplacian, bias)
    x = problem.labels.astype(float)
    best = np.inf
    for signs in itertools.product((-1.0, 1.0), repeat=problem.unlabeled.size):
        x[problem.unlabeled] = signs
        best = min(best, problem.objective(x))
    solution = gdpa.solve(problem, method)
    assert solution.bound_status == "certified"
    assert solution.lower_bound <= best
    assert solution.objective >= best - 1e-9
    relaxation = gdpa.solve(problem, "sdr-interior-point")
    assert solution.lower_bound <= relaxation.info["sdr_value"]
    # H at the reported dual point is positive semi-definite: that is what the bound rests on.
    H = build_H(problem, solution.dual).toarray()
    assert np.linalg.eigvalsh(H)[0] >= -1e-12 * np.abs(H).sum()


@pytest.mark.parametrize("method", METHODS)
def test_scores_are_the_first_eigenvector_of_H(random_graph, method):
    problem = make_problem(random_graph, 15, 5, "normalized")
    solution = gdpa.solve(problem, method)
    H = build_H(problem, solution.dual).toarray()
    _, vectors = np.linalg.eigh(H)
    v = vectors[:, 0]
    first = problem.labeled[0]
    expected = np.sign(problem.labels[first] * v[first]) * v[:-1]
    assert solution.scores == pytest.approx(expected, abs=1e-6)
    u = problem.unlabeled
    assert (solution.labels[u] == np.sign(expected[u])).all()
    assert (solution.labels[problem.labeled] == problem.labels[problem.labeled]).all()


@pytest.mark.parametrize("method", METHODS)
def test_first_eigenvector_is_the_constant_mode_inside_the_face(method):
    # A full graph with weights 1 inside and 0.5 between two groups, half of each labelled. Already
    # the vote separates the groups; the first eigenvector gives all unlabelled nodes one class.
    W = 0.5 + 0.5 * np.kron(np.eye(2), np.ones((6, 6)))
    labels = np.array([1, 1, 1, 0, 0, 0, -1, -1, -1, 0, 0, 0])
    problem = gdpa.GraphProblem(W, labels)
    solution = gdpa.solve(problem, method)
    assert solution.info["lowest_eigenvalue"] > 0.1
    assert len(set(solution.labels[problem.unlabeled].tolist())) == 1
    assert gdpa.solve(problem, "vote").labels.tolist() == [1] * 6 + [-1] * 6


@pytest.mark.parametrize("method", METHODS)
def test_evidence_alone_orients_by_the_apex(random_graph, method):
    bias = np.array([1.0, 0.5, 0.5, 0.2, -0.1, 0.3, 0.4, 0.8])
    problem = gdpa.GraphProblem(random_graph(8, 0), np.zeros(8), bias=bias)
    solution = gdpa.solve(problem, method)
    assert solution.labels[0] == 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40])
def test_scale_of_the_weights_does_not_matter(random_graph, method, factor):
    problem = make_problem(random_graph, 12, 7)
    scaled = gdpa.GraphProblem(problem.W * factor, problem.labels)
    one, other = gdpa.solve(problem, method), gdpa.solve(scaled, method)
    assert other.scores == pytest.approx(one.scores, abs=1e-9)
    assert other.dual.z / factor == pytest.approx(one.dual.z)


@pytest.mark.parametrize("method", METHODS)
def test_early_stop_is_marked(random_graph, method):
    problem = make_problem(random_graph, 14, 6)
    with pytest.warns(ConvergenceWarning):
        solution = gdpa.solve(problem, method, max_iter=2)
    assert not solution.converged
    assert np.isfinite(solution.scores).all()
    assert solution.lower_bound <= problem.objective(solution.labels)


@pytest.mark.parametrize("method", METHODS)
def test_callback_may_refuse(random_graph, method):
    problem = make_problem(random_graph, 10, 6)
    with pytest.warns(ConvergenceWarning, match="callback"):
        assert not gdpa.solve(problem, method, callback=lambda entry: True).converged


@pytest.mark.parametrize("method", METHODS)
def test_too_large_is_refused(random_graph, monkeypatch, method):
    problem = make_problem(random_graph, 700, 0)
    monkeypatch.setattr(sdr_form, "available_memory", lambda: 2**25)
    with pytest.raises(UnsupportedProblemError, match=r"sdr-interior-point, sdr-low-rank"):
        gdpa.solve(problem, method)


@pytest.mark.parametrize(("method", "module"), list(zip(METHODS, ["clarabel", "scs"], strict=True)))
def test_missing_extra_names_itself(random_graph, monkeypatch, method, module):
    problem = make_problem(random_graph, 10, 0)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"{module}.*\.\[sdp\]"):
        gdpa.solve(problem, method)


@pytest.mark.parametrize("method", METHODS)
def test_binary_quadratic_is_refused_with_advice(method):
    form = gdpa.BinaryQuadratic([[0, 1], [1, 0]])
    with pytest.raises(UnsupportedProblemError, match="sdr-interior-point"):
        gdpa.solve(form, method)
