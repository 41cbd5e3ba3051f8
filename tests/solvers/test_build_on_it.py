"""Parts of GDPA that a reader may replace: the Laplacian, the linear program, the callback."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import gdpa
from gdpa.gershgorin import discs
from gdpa.graph import balance
from gdpa.problem.dual import build_H_bar, optimal_point
from gdpa.solvers import gdpa_lp


def make(n=30, seed=0, laplacian="normalized"):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3), 1)
    W += np.diag(rng.uniform(0.1, 1, n - 1), 1)
    labels = np.zeros(n, dtype=int)
    labels[:6] = 1, -1, 1, -1, 1, -1
    return gdpa.GraphProblem(W + W.T, labels, laplacian=laplacian)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.coo_array])
@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_a_laplacian_of_your_own(kind, laplacian):
    named = make(laplacian=laplacian)
    own = gdpa.GraphProblem(None, named.labels, laplacian=kind(named.L.toarray()))
    assert own.laplacian == "given"
    assert np.allclose(own.L.toarray(), named.L.toarray())
    x = np.where(np.arange(30) % 2, 1, -1)
    assert own.objective(x) == pytest.approx(named.objective(x))
    for method in ("harmonic", "gdpa", "min-cut"):
        options = {"start": "optimal", "label_weight": "auto"} if method == "gdpa" else {}
        mine = gdpa.solve(own, method, **options)
        theirs = gdpa.solve(named, method, **options)
        assert np.array_equal(mine.labels, theirs.labels)
        assert mine.objective == pytest.approx(theirs.objective)


def test_self_loops_belong_to_a_laplacian_of_your_own():
    named = make(laplacian="combinatorial")
    L = named.L + sp.diags_array(np.full(30, 0.5))
    own = gdpa.GraphProblem(named.W, named.labels, laplacian=L)
    x = np.ones(30)
    assert own.objective(x) == pytest.approx(named.objective(x) + 15.0)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((3, 2)), "square"),
        (np.array([[1.0, -1.0], [0.0, 1.0]]), "symmetric"),
        (np.array([[-1.0, 0.0], [0.0, 1.0]]), "not negative"),
        (sp.linalg.aslinearoperator(np.eye(2)), "no entries"),
        ("random-walk", "laplacian='random-walk'"),
    ],
)
def test_bad_laplacians_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        gdpa.GraphProblem(np.zeros((2, 2)), [1, -1], laplacian=bad)


def test_a_linear_program_of_your_own():
    """A program that keeps every label at weight 2 does not erase them."""
    problem = make()
    seen = []

    def keep_labels(problem, v, incumbent):
        seen.append(incumbent.objective)
        cost, G, g = gdpa_lp.constraints(problem, v)
        n = problem.n_nodes + 1
        a = np.full(problem.n_labeled, 2.0)
        y = np.asarray(g - G[:, n:] @ a)  # each y occurs in one row
        plus = y[-2]
        y = np.append(y[:-2], y[-1])
        assert plus <= 1e-9 or np.isfinite(plus)
        return gdpa_lp.LPPoint(y=y, a=a, objective=float(cost @ np.append(y, a)))

    solution = gdpa.solve(problem, "gdpa", lp=keep_labels, max_iter=3, tol=1e-3)
    assert len(seen) >= 1
    assert np.allclose(np.abs(solution.dual.z), 2.0)
    assert not solution.erased
    with pytest.raises(ValueError, match="lp='simplex' is not known"):
        gdpa.solve(problem, "gdpa", lp="simplex")


def test_the_callback_receives_the_iterates_and_the_discs():
    problem = make()
    entries = []
    with pytest.warns(gdpa.errors.DegenerateProblemWarning):
        solution = gdpa.solve(problem, "gdpa", lp="highs", callback=lambda e: entries.append(e))
    assert len(entries) == solution.iterations == len(solution.history)
    for entry in entries:
        H_bar = build_H_bar(problem, gdpa.problem.dual.DualVariables(entry["y"], entry["z"]))
        expected = discs(H_bar, v=entry["v"])
        assert np.allclose(entry["discs"].left_ends, expected.left_ends)
        # Aligned: all left-ends are at the smallest eigenvalue.
        lmin = np.linalg.eigvalsh(H_bar.toarray())[0]
        assert np.allclose(entry["discs"].left_ends, lmin, atol=1e-5)
        assert entry["lambda_min"] == pytest.approx(lmin, abs=1e-6)
    for first, second in itertools.pairwise(entries):
        assert np.array_equal(first["y_next"], second["y"])
    assert all("y" not in entry for entry in solution.history)


def test_balance_of_H_bar_needs_no_minus_sign():
    problem = make()
    H_bar = build_H_bar(problem, optimal_point(problem, 1.0))
    assert balance(H_bar, laplacian=True).balanced
    assert balance(-H_bar).balanced
    colors = balance(H_bar, laplacian=True).colors
    assert abs(int(colors[:-1].sum())) == problem.n_nodes + 1
    assert colors[-1] == -colors[0]
