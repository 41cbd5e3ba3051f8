"""The GDPA solver: its loop, options, bound, and the paper's restoration table."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.errors import DegenerateProblemWarning
from gdpa.problem.dual import (
    build_H,
    dual_objective,
    optimal_point,
    optimal_value,
    paper_start,
)
from gdpa.solvers.registry import get_solver


def make(n, seed, laplacian="combinatorial", bias=False):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    W += np.diag(rng.uniform(0.1, 1, n - 1), 1)
    labels = rng.choice([-1, 0, 0, 1], n)
    labels[rng.permutation(n)[:3]] = 1, -1, 0
    h = rng.normal(size=n) * 0.3 if bias else None
    return gdpa.GraphProblem(W + W.T, labels, bias=h, laplacian=laplacian)


def brute_force(problem):
    best = np.inf
    for signs in itertools.product([-1, 1], repeat=problem.unlabeled.size):
        x = problem.labels.astype(float)
        x[problem.unlabeled] = signs
        best = min(best, problem.objective(x))
    return best


@given(
    n=st.integers(4, 11),
    seed=st.integers(0, 10**6),
    laplacian=st.sampled_from(["combinatorial", "normalized"]),
    bias=st.booleans(),
)
def test_the_certified_bound_is_below_the_optimum(n, seed, laplacian, bias):
    problem = make(n, seed, laplacian, bias)
    optimum = brute_force(problem)
    solution = gdpa.solve(problem, "gdpa")
    assert (solution.bound_status, solution.bound_kind) == ("certified", "trivial")
    assert solution.lower_bound <= optimum
    assert solution.objective >= optimum - 1e-9
    assert solution.objective == pytest.approx(problem.objective(solution.labels))
    assert np.array_equal(solution.labels[problem.labeled], problem.labels[problem.labeled])


@given(
    n=st.integers(4, 30),
    seed=st.integers(0, 10**6),
    laplacian=st.sampled_from(["combinatorial", "normalized"]),
    recovery=st.sampled_from(["eigenvector", "linear"]),
    start=st.sampled_from(["paper", "optimal"]),
)
@pytest.mark.filterwarnings("ignore::gdpa.errors.DegenerateProblemWarning")
def test_it_is_never_the_harmonic_function(n, seed, laplacian, recovery, start):
    problem = make(n, seed, laplacian)
    harmonic = gdpa.solve(problem, "harmonic", tol=1e-10).scores[problem.unlabeled]
    scores = gdpa.solve(problem, "gdpa", recovery=recovery, start=start, tol=1e-10).scores
    assert np.abs(scores[problem.unlabeled] - harmonic).max() > 1e-6


def test_its_module_does_not_use_the_harmonic_function():
    source = inspect.getsource(inspect.getmodule(get_solver("gdpa")))
    assert "Harmonic" not in source
    assert "LabeledSystem" not in source
    with pytest.raises(ValueError, match="label_weight=inf must be a positive number"):
        gdpa.solve(make(10, 0), "gdpa", label_weight=np.inf)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_an_optimal_start_is_kept_and_no_eigenvector_is_computed(laplacian):
    problem = make(40, 7, laplacian)
    solution = gdpa.solve(problem, "gdpa", start="optimal", label_weight=2.5)
    assert solution.converged
    assert solution.iterations == 1
    assert solution.history[0]["eigenvector_iterations"] == 0
    assert solution.history[0]["kept"]
    assert solution.history[0]["objective"] == pytest.approx(optimal_value(problem))
    assert np.allclose(solution.dual.y, optimal_point(problem, 2.5).y)
    assert not solution.info["erased"]


def test_the_start_of_the_paper_is_optimal_on_the_combinatorial_laplacian_only():
    combinatorial, normalized = make(25, 3), make(25, 3, "normalized")
    start = paper_start(combinatorial)
    assert np.allclose(start.y, optimal_point(combinatorial).y)
    assert dual_objective(combinatorial, start) == pytest.approx(optimal_value(combinatorial))
    assert dual_objective(normalized, paper_start(normalized)) > optimal_value(normalized) + 1e-6
    kept = gdpa.solve(combinatorial, "gdpa")
    assert kept.history[0]["kept"]
    erased = gdpa.solve(normalized, "gdpa")
    assert erased.info["erased"]
    assert "erased the labels" in erased.message
    assert np.unique(erased.labels[normalized.unlabeled]).size == 1


def test_a_simplex_lp_erases_the_labels_and_says_so():
    problem = make(30, 2)
    with pytest.warns(DegenerateProblemWarning, match="erased the labels"):
        solution = gdpa.solve(problem, "gdpa", lp="highs", recovery="linear")
    assert not solution.dual.z.any()
    assert not solution.scores[problem.unlabeled].any()
    assert solution.info["erased"]


@pytest.mark.parametrize("lp", ["closed-form", "interior-point"])
def test_linear_recovery_reads_the_dual_point(lp):
    problem = make(30, 2)
    solution = gdpa.solve(problem, "gdpa", lp=lp, recovery="linear", label_weight=0.7)
    assert np.abs(solution.dual.z).min() > 1e-3
    K = problem.L.toarray() + np.diag(solution.dual.y[:-1])
    drive = np.zeros(problem.n_nodes)
    drive[problem.labeled] = -solution.dual.z
    assert np.allclose(solution.scores, np.linalg.solve(K, drive), atol=1e-4)


def test_the_text_of_the_paper_by_simplex():
    problem = make(25, 3, "normalized")
    solution = gdpa.solve(problem, "gdpa", lp="highs")
    assert solution.converged
    assert solution.iterations < 10
    objectives = [entry["objective"] for entry in solution.history]
    assert all(b <= a + 1e-9 for a, b in itertools.pairwise(objectives))
    # It stalls above the optimum: with lmin = 0 the same eigenvector comes back.
    assert objectives[-1] >= optimal_value(problem) - 1e-9
    assert not solution.dual.z.any()


def test_eigenvector_recovery_is_the_first_eigenvector_of_H():
    problem = make(20, 9)
    solution = gdpa.solve(problem, "gdpa")
    H = build_H(problem, optimal_point(problem, 1.0)).toarray()
    v = np.linalg.eigh(H)[1][:-1, 0]
    cosine = abs(v @ solution.scores) / np.linalg.norm(v) / np.linalg.norm(solution.scores)
    assert cosine == pytest.approx(1.0, abs=1e-7)
    first = problem.labeled[0]
    assert solution.scores[first] * problem.labels[first] >= 0


def test_a_callback_sees_every_iteration_and_can_stop():
    problem = make(15, 1)
    seen = []
    gdpa.solve(problem, "gdpa", callback=seen.append)
    assert [entry["iteration"] for entry in seen] == [1]
    with pytest.warns(UserWarning, match="stopped by the callback"):
        stopped = gdpa.solve(problem, "gdpa", callback=lambda entry: True)
    assert not stopped.converged
    assert np.isfinite(stopped.scores).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"lp": "simplex"},
            "lp='simplex' is not known; .*Accepted: closed-form, highs, interior-point",
        ),
        ({"recovery": "eigen"}, "did you mean 'eigenvector'"),
        ({"start": "face"}, "start='face' is not known; .*ccepted: optimal, paper"),
        ({"label_weight": 0}, "label_weight=0 must be a positive number"),
        ({"label_weight": np.nan}, "label_weight=nan must be a positive number"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        gdpa.solve(make(10, 0), "gdpa", **options)


PAPER_TABLE_1 = {  # (N, hops): {sigma: (SPEC, GDPA)} in percent
    (100, 1): {1.0: (13.04, 2.78), 1.5: (23.24, 11.01), 2.0: (29.59, 19.57)},
    (100, 2): {1.0: (10.02, 0.86), 1.5: (20.94, 3.57), 2.0: (28.06, 9.13)},
    (200, 1): {1.0: (13.54, 2.46), 1.5: (23.38, 10.81), 2.0: (29.36, 18.67)},
    (200, 2): {1.0: (11.19, 0.39), 1.5: (21.69, 2.83), 2.0: (28.20, 8.52)},
}


@pytest.mark.slow
@pytest.mark.parametrize(("n", "hops"), PAPER_TABLE_1)
@pytest.mark.parametrize("sigma", [1.0, 1.5, 2.0])
def test_restoration_table_of_the_paper(n, hops, sigma):
    """Each GDPA cell of Table 1 within 2 points, 100 runs (SPEC's cells: test_spectral)."""
    from gdpa.datasets import restoration

    errors = []
    for seed in range(100):
        problem, signal = restoration(n, hops=hops, sigma=sigma, random_state=seed)
        solution = gdpa.solve(problem, "gdpa")
        errors.append(np.mean(solution.labels[1:] != signal))
    assert 100 * np.mean(errors) == pytest.approx(PAPER_TABLE_1[n, hops][sigma][1], abs=2.0)


@pytest.mark.parametrize("name", ["WDBC", "voting", "sonar"])
@pytest.mark.parametrize("rescaling", ["min-max", "standardization"])
def test_preset_published_gives_the_authors_numbers(name, rescaling, paper_set):
    from reproduction.authors import author_errors
    from reproduction.protocol import error_percent, paper_denominator, paper_problems

    dataset = paper_set(name)
    errors = [
        run.errors(gdpa.solve(run.problem(), "gdpa-published").labels)
        for run in paper_problems(dataset, rescaling)
    ]
    ours = error_percent(errors, paper_denominator(dataset, rescaling))
    assert ours == pytest.approx(author_errors(rescaling, "GDPA")[name], abs=1.0)


def test_preset_published_is_a_vote(paper_set):
    from reproduction.protocol import paper_problems

    for run in paper_problems(paper_set("heart"), "min-max", splits=[1]):
        problem = run.problem()
        solution = gdpa.solve(problem, "gdpa-published")
        vote = gdpa.solve(problem, "vote")
        assert np.array_equal(solution.labels, vote.labels)
        u = problem.unlabeled
        assert np.corrcoef(solution.scores[u], vote.scores[u])[0, 1] > 1 - 1e-6
        assert solution.dual.y[u].min() > 1e3 * solution.info["laplacian_scale"]


@given(n=st.integers(8, 30), seed=st.integers(0, 10**6))
def test_fact3_on_random_full_graphs_the_published_variant_is_the_vote(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    W = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    labels = np.zeros(n, dtype=int)
    labels[: n // 2] = rng.choice([-1, 1], n // 2)
    labels[:2] = 1, -1
    problem = gdpa.GraphProblem(W, labels, laplacian="normalized")
    solution = gdpa.solve(problem, "gdpa-published")
    vote = gdpa.solve(problem, "vote").scores[problem.unlabeled]
    clear = np.abs(vote) > 1e-6 * np.abs(vote).max()
    ours = solution.labels[problem.unlabeled]
    assert np.array_equal(ours[clear], np.sign(vote)[clear])


def test_fact4_the_exact_optimum_is_a_poor_classifier_when_labels_are_few():
    from gdpa.datasets import gaussian_clusters
    from gdpa.graph import neighbor_graph

    X, y = gaussian_clusters(5000, random_state=1)
    labels = np.zeros(5000, dtype=int)
    known = np.random.default_rng(0).permutation(5000)[:100]
    labels[known] = y[known]
    problem = gdpa.GraphProblem(neighbor_graph(X, 10), labels)
    exact = gdpa.solve(problem, "min-cut")
    relaxed = gdpa.solve(problem)
    assert exact.objective < relaxed.objective  # it is the better optimum ...
    u = problem.unlabeled
    error = [np.mean(s.labels[u] != y[u]) for s in (exact, relaxed)]
    assert error[0] > error[1] + 0.1  # ... and the worse classifier
    smaller = min(np.mean(exact.labels[u] == c) for c in (-1, 1))
    assert smaller < 0.1  # one class is cut off together with little more than its labels


def clusters(n=40, seed=0):
    """Two complete graphs joined by one weak edge, with two labels each."""
    half = n // 2
    W = np.zeros((n, n))
    W[:half, :half] = W[half:, half:] = 1.0
    W[0, half] = W[half, 0] = 1e-4
    np.fill_diagonal(W, 0.0)
    labels = np.zeros(n, dtype=int)
    labels[[1, 2]] = 1
    labels[[half + 1, half + 2]] = -1
    return gdpa.GraphProblem(W, labels)


def test_erased_labels_are_announced():
    problem = clusters()
    with pytest.warns(DegenerateProblemWarning, match="erased the labels"):
        solution = gdpa.solve(problem, "gdpa", lp="highs")
    assert np.unique(solution.labels[problem.unlabeled]).size == 1
    assert solution.objective > 1e3 * max(solution.lower_bound, 1e-9)
    assert solution.erased
    assert "ERASED" in repr(solution)
    assert "erased" in solution._repr_html_()
    kept = gdpa.solve(problem, "gdpa")
    assert not kept.erased
    assert "ERASED" not in repr(kept)


def test_the_sign_is_that_of_most_labels():
    """One label on the wrong side decides with the paper's rule, and is outvoted by default."""
    problem = clusters()
    labels = problem.labels.copy()
    labels[3:10] = 1
    labels[25:30] = -1
    labels[1] = -1  # the first known label contradicts its cluster
    wrong = gdpa.GraphProblem(problem.W, labels)
    options = {"start": "optimal", "label_weight": 0.01}
    majority = gdpa.solve(wrong, "gdpa", **options)
    first = gdpa.solve(wrong, "gdpa", sign="first", **options)
    free = wrong.unlabeled
    truth = np.where(np.arange(40) < 20, 1, -1)
    assert (majority.labels[free] == truth[free]).all()
    assert (first.labels[free] == -truth[free]).all()
    with pytest.raises(ValueError, match="sign='last'"):
        gdpa.solve(wrong, "gdpa", sign="last")
