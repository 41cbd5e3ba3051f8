"""The paper's own notation beside the fast code, and the labels of its equations."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gdpa
from gdpa import paper
from gdpa.gershgorin import align, discs
from gdpa.problem import dual
from gdpa.solvers import gdpa_lp

ROOT = Path(__file__).resolve().parents[1]
TEXT = ROOT.parent / "shared" / "design" / "PAPER.tex"
LABELS = {  # of sections 3 to 5
    "sec:prelim", "eq:glr", "eq:GCT_linConst",
    "sec:formulate", "subsec:SDP_primal", "eq:binaryClass", "eq:primal",
    "subsec:SDP_dual", "eq:AB", "eq:bc", "eq:SDP_dual",
    "subsec:reformulate", "eq:ex_H", "lemma:Hbar", "eq:SDP_dual2", "lemma:Htilde", "eq:errBound",
    "sec:algo", "ssec:linearization", "eq:LP_dual",
}  # fmt: skip

instances = given(
    n=st.integers(4, 14),
    seed=st.integers(0, 10**6),
    laplacian=st.sampled_from(["combinatorial", "normalized"]),
)


def make(n, seed, laplacian="combinatorial"):
    """A connected graph with labels of both signs, and a random dual point."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    W += np.diag(rng.uniform(0.1, 1, n - 1), 1)
    x_hat = rng.choice([-1.0, 0.0, 0.0, 1.0], n)
    x_hat[rng.permutation(n)[:3]] = 1, -1, 0
    problem = gdpa.GraphProblem(W + W.T, x_hat, laplacian=laplacian)
    known = x_hat[x_hat != 0]
    y = rng.normal(size=n + 1)
    z = -known * rng.exponential(size=known.size)
    return problem, problem.L.toarray(), x_hat, y, z


def test_every_label_of_the_algorithm_is_named():
    source = Path(paper.__file__).read_text(encoding="utf-8")
    assert [label for label in sorted(LABELS) if not re.search(rf"{label}\b", source)] == []


def test_the_list_of_labels_is_that_of_the_text():
    if not TEXT.exists():
        pytest.skip("the text of the paper is not here")
    text = TEXT.read_text(encoding="utf-8")
    sections = text[text.index(r"\section{Preliminaries}") : text.index(r"\section{Experiments}")]
    labels = re.findall(r"\\label\{([^}]*)\}", sections)
    assert {label for label in labels if not label.startswith("fig:")} == LABELS


def test_the_theory_page_links_to_it():
    assert "gdpa/paper.py" in (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")


def test_its_examples():
    M = np.array([[2.0, -2, -1], [-2, 5, -2], [-1, -2, 4]])
    assert paper.disc_left_ends(M)[0] == -1
    assert np.allclose(paper.disc_left_ends(M, paper.alignment(M)), 0.1078, atol=5e-5)
    W = np.array([[0, 2.0, 0], [2, 0, 3], [0, 3, 0]])
    y, z = np.array([10.0, 20, 30, 40]), np.array([-5.0, 6])
    H = paper.H_matrix(paper.laplacian(W), np.array([1.0, -1, 0]), y, z)
    assert H.tolist() == [[12, -2, 0, -5], [-2, 25, -3, 6], [0, -3, 33, 0], [-5, 6, 0, 40]]
    H_bar = paper.H_bar_matrix(paper.laplacian(W), np.array([1.0, -1, 0]), y, z)
    assert H_bar[3].tolist() == [-5, 0, 0, 5, 0]
    assert H_bar[4].tolist() == [0, 6, 0, 0, 35]  # u_4 - z_2, u_4 = y_4 + z_1 + z_2


@instances
@pytest.mark.filterwarnings("ignore::gdpa.errors.ConvergenceWarning")
def test_graph_and_problem(n, seed, laplacian):
    problem, L, x_hat, _, _ = make(n, seed, laplacian)
    if laplacian == "combinatorial":
        assert np.allclose(paper.laplacian(problem.W.toarray()), L)
    best, x = paper.binary_classification(L, x_hat)
    assert best == pytest.approx(problem.objective(x))
    assert best == pytest.approx(gdpa.solve(problem, "min-cut").objective, abs=1e-9)
    assert paper.primal_objective(L, paper.M_matrix(x)) == pytest.approx(best)


@instances
def test_matrices_and_objective_of_the_dual(n, seed, laplacian):
    problem, L, x_hat, y, z = make(n, seed, laplacian)
    point = dual.DualVariables(y=y, z=z)
    assert np.allclose(paper.H_matrix(L, x_hat, y, z), dual.build_H(problem, point).toarray())
    assert np.allclose(
        paper.H_bar_matrix(L, x_hat, y, z), dual.build_H_bar(problem, point).toarray()
    )
    tilde = paper.H_tilde_matrix(L, x_hat, y, z, 0.7)
    assert np.allclose(tilde, dual.build_H_tilde(problem, point, 0.7).toarray())
    assert paper.objective(x_hat, y, z) == pytest.approx(dual.dual_objective(problem, point))


@instances
def test_discs_and_their_alignment(n, seed, laplacian):
    _, L, x_hat, y, z = make(n, seed, laplacian)
    H_bar = paper.H_bar_matrix(L, x_hat, y, z)
    assert np.allclose(paper.disc_left_ends(H_bar), discs(H_bar).left_ends)
    s, fast = paper.alignment(H_bar), align(H_bar)
    value, v = paper.first_eigenvector(H_bar)
    assert value == pytest.approx(fast.lambda_min, abs=1e-9)
    if np.abs(v).min() > 1e-5 and fast.component_lambda.size == 1:
        assert np.allclose(paper.disc_left_ends(H_bar, s), fast.lambda_min, atol=1e-7)


@settings(max_examples=50)
@instances
def test_one_linear_program(n, seed, laplacian):
    problem, L, x_hat, _, _ = make(n, seed, laplacian)
    v = np.append(np.exp(np.random.default_rng(seed).normal(size=n + 1)), -1.0)
    y, z = paper.lp(lambda y, z: paper.H_bar_matrix(L, x_hat, y, z), x_hat, 1.0 / v)
    assert paper.objective(x_hat, y, z) == pytest.approx(
        gdpa_lp.closed_form(problem, v).objective, abs=1e-7 * (1 + np.abs(y).sum())
    )
    H_bar = paper.H_bar_matrix(L, x_hat, y, z)
    assert paper.disc_left_ends(H_bar, 1.0 / v).min() >= -1e-7 * (1 + np.abs(H_bar).max())


@settings(max_examples=40)
@instances
def test_the_loop_and_the_labels(n, seed, laplacian):
    problem, L, x_hat, _, _ = make(n, seed, laplacian)
    y, z = paper.gdpa(L, x_hat)
    fast = gdpa.solve(problem, "gdpa", lp="highs")
    scale = 1 + np.abs(y).sum()
    assert paper.objective(x_hat, y, z) == pytest.approx(
        fast.info["dual_objective"], abs=1e-5 * scale
    )
    if laplacian == "normalized":  # a = 0 is the only optimum: both erase the labels
        assert np.abs(z).max() < 1e-9
        assert np.unique(paper.extract_labels(L, x_hat, y, z)[x_hat == 0]).size == 1
    point = dual.optimal_point(problem, 1.0)
    H = paper.H_matrix(L, x_hat, point.y, point.z)
    values, vectors = np.linalg.eigh(H)
    if values[1] - values[0] > 1e-6 and np.abs(vectors[:-1, 0]).min() > 1e-6:
        kept = gdpa.solve(problem, "gdpa", start="optimal", sign="first")
        assert np.array_equal(paper.extract_labels(L, x_hat, point.y, point.z), kept.labels)


@settings(max_examples=20)
@given(n=st.integers(4, 10), seed=st.integers(0, 10**6), phi=st.floats(0.5, 3.0))
def test_the_error_bound(n, seed, phi):
    problem, L, x_hat, _, _ = make(n, seed)
    expected = dual.error_bound(problem, phi).bound
    assert paper.error_bound(L, x_hat, phi) == pytest.approx(expected, abs=1e-6 * (1 + expected))


def test_from_graph_to_labels():
    problem, L, x_hat, _, _ = make(12, 5)
    labels = paper.classify(problem.W.toarray(), x_hat)
    # HiGHS erases the labels, and only the first of them decides the class of all the others.
    assert not paper.gdpa(L, x_hat)[1].any()
    first = x_hat[x_hat != 0][0]
    assert (labels[x_hat == 0] == first).all()
    assert np.array_equal(labels[x_hat != 0], x_hat[x_hat != 0])


@settings(max_examples=20)
@instances
def test_the_three_semidefinite_programs(n, seed, laplacian):
    """Strong duality of primal and dual, and the value of the split dual in closed form."""
    pytest.importorskip("clarabel", reason="the semidefinite programs need the extra sdp")
    problem, L, x_hat, _, _ = make(min(n, 7), seed, laplacian)
    primal, M = paper.solve_primal(L, x_hat)
    value, y, z, multiplier = paper.solve_dual(L, x_hat)
    size = 1.0 + np.abs(L).sum()
    assert np.linalg.eigvalsh(M)[0] > -1e-6 * size
    assert np.allclose(np.diag(M), 1.0)
    assert -value == pytest.approx(primal, abs=1e-4 * size)
    assert np.linalg.eigvalsh(paper.H_matrix(L, x_hat, y, z))[0] > -1e-5 * size
    assert np.allclose(np.diag(multiplier), 1.0, atol=1e-4)
    split, y, z = paper.solve_dual2(L, x_hat)
    assert split == pytest.approx(dual.optimal_value(problem), abs=1e-4 * size)
    assert split >= value - 1e-4 * size
