"""SNS: what the deterministic and the stochastic step promise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.datasets import restoration
from gdpa.errors import ConvergenceWarning
from gdpa.solvers.comparators import sns as module
from gdpa.solvers.comparators.sns import SNS


def signed_form(seed: int, n: int = 12) -> gdpa.BinaryQuadratic:
    rng = np.random.default_rng(seed)
    P = np.triu(rng.normal(size=(n, n)))
    return gdpa.BinaryQuadratic(P + P.T, anchor=seed % n)


def problem_of(seed: int, n: int = 12, known: int = 3, *, bias: bool = False) -> gdpa.GraphProblem:
    rng = np.random.default_rng(seed)
    W = np.triu(rng.uniform(0.05, 1.0, (n, n)), 1)
    labels = np.zeros(n, dtype=int)
    labels[rng.permutation(n)[:known]] = np.resize([1, -1], known)
    return gdpa.GraphProblem(W + W.T, labels, bias=rng.normal(size=n) if bias else None)


def mixtures(Q: np.ndarray, h: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    g = Q @ x + h
    u = g * np.linalg.norm(x) / np.linalg.norm(g)
    return [np.sign((1 - t) * u + t * x) for t in (0.0, 0.2, 0.4, 0.6, 0.8)]


@given(seed=st.integers(0, 10_000), bias=st.booleans())
def test_no_mixture_of_gradient_and_point_is_better(seed, bias):
    problem = problem_of(seed, bias=bias)
    solution = gdpa.solve(problem, "sns", random_state=seed)
    assert solution.converged
    x = solution.labels.astype(float)
    known = problem.labeled
    for candidate in mixtures(problem.adjacency.toarray(), problem.bias, x):
        candidate[known] = problem.labels[known]
        assert problem.objective(candidate) >= solution.objective - 1e-9


@given(seed=st.integers(0, 10_000))
def test_no_mixture_is_better_on_a_signed_form(seed):
    form = signed_form(seed)
    solution = gdpa.solve(form, "sns", random_state=seed)
    assert solution.labels[form.anchor] == 1
    P = form.P.toarray()
    np.fill_diagonal(P, 0.0)
    x = solution.labels.astype(float)
    for candidate in mixtures(P, np.zeros(x.size), x):
        candidate[form.anchor] = 1.0
        assert form.objective(candidate) >= solution.objective - 1e-9


def test_most_small_signed_forms_are_solved_exactly():
    solved = 0
    for seed in range(40):
        form = signed_form(seed, n=10)
        best = min(
            form.objective(np.insert(np.array(s), form.anchor, 1.0))
            for s in itertools.product((-1.0, 1.0), repeat=9)
        )
        solved += gdpa.solve(form, "sns").objective <= best + 1e-9
    assert solved >= 36


def test_neighbours_improve_on_the_deterministic_search():
    better = 0
    for seed in range(30):
        form, _ = restoration(60, sigma=2.0, random_state=seed)
        solution = gdpa.solve(form, "sns")
        first = solution.history[0]["form"]
        last = solution.history[-1]["form"]
        assert last >= first
        better += solution.iterations > 1
    assert better >= 15


def test_same_seed_same_answer_and_seeds_matter():
    form, _ = restoration(120, sigma=2.0, random_state=1)
    first = gdpa.solve(form, "sns", random_state=3)
    again = gdpa.solve(form, "sns", random_state=3)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert [dict(h) for h in first.history] == [dict(h) for h in again.history]
    others = [gdpa.solve(form, "sns", random_state=s).history for s in range(4, 8)]
    assert any([dict(h) for h in o] != [dict(h) for h in first.history] for o in others)


@pytest.mark.parametrize("seed", range(5))
def test_authors_variant_maximises_what_is_to_be_minimised(seed):
    problem = problem_of(seed)
    stated = gdpa.solve(problem, "sns")
    authors = gdpa.solve(problem, "sns", variant="authors")
    free = problem.unlabeled
    x = problem.labels.astype(float)
    values = []
    for signs in itertools.product((-1.0, 1.0), repeat=free.size):
        x[free] = signs
        values.append(problem.objective(x))
    assert stated.objective < np.median(values) < authors.objective


def test_authors_projection_leaves_the_most_contradicted_label():
    W = np.ones((5, 5)) - np.eye(5)
    problem = gdpa.GraphProblem(W, [1, 1, -1, -1, 0])
    X = np.array([[0.5, -2.0, 3.0, -1.0, 0.7], [0.5, 2.0, -3.0, -1.0, -0.7]]).T
    stated = module._search(problem, "stated", 5).project(X, np.ones_like(X))
    authors = module._search(problem, "authors", 5).project(X, np.ones_like(X))
    np.testing.assert_array_equal(stated.T, [[1, 1, -1, -1, 1], [1, 1, -1, -1, -1]])
    # First column: nodes 1 (by 2) and 2 (by 3) are contradicted, the second column agrees.
    np.testing.assert_array_equal(authors.T, [[1, 1, 1, -1, 1], [1, 1, -1, -1, -1]])
    # What is returned keeps every label.
    labels = gdpa.solve(problem, "sns", variant="authors").labels
    np.testing.assert_array_equal(labels[:4], [1, 1, -1, -1])


def test_authors_variant_is_the_same_for_a_quadratic_form():
    form = signed_form(7)
    a, b = (gdpa.solve(form, "sns", variant=v) for v in SNS.choices["variant"])
    np.testing.assert_array_equal(a.labels, b.labels)


def test_units_do_not_matter():
    problem = problem_of(3)
    plain = gdpa.solve(problem, "sns")
    for factor in (1e-200, 1e200):
        scaled = gdpa.solve(gdpa.GraphProblem(problem.W * factor, problem.labels), "sns")
        np.testing.assert_array_equal(plain.labels, scaled.labels)


def test_sparse_and_dense_products_agree(random_graph):
    W = random_graph(300, 2, density=0.02)
    labels = np.zeros(300, dtype=int)
    labels[:30] = np.resize([1, -1], 30)
    problem = gdpa.GraphProblem(W, labels)
    sparse = gdpa.solve(problem, "sns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gdpa.solvers.comparators.sns.DENSE_SHARE", 0.0)
        dense = gdpa.solve(problem, "sns")
    np.testing.assert_array_equal(sparse.labels, dense.labels)


def test_evidence_alone_is_enough():
    W = np.diag([1.0, 0.1, 1.0], 1)
    problem = gdpa.GraphProblem(W + W.T, np.zeros(4), bias=[3.0, 0.0, 0.0, -3.0])
    assert gdpa.solve(problem, "sns").labels.tolist() == [1, 1, -1, -1]


def test_labels_spread_through_a_sparse_graph():
    # Two paths of 40 nodes, one labelled end each, joined by a weak edge: the optimum cuts it.
    W = np.diag(np.ones(79), 1)
    W[39, 40] = 0.01
    labels = np.zeros(80, dtype=int)
    labels[0], labels[-1] = 1, -1
    solution = gdpa.solve(gdpa.GraphProblem(W + W.T, labels), "sns")
    np.testing.assert_array_equal(solution.labels, np.repeat([1, -1], 40))


def test_start_is_used():
    problem = problem_of(2)
    best = gdpa.solve(problem, "sns")
    again = gdpa.solve(problem, "sns", x0=best.labels.astype(float))
    assert again.objective <= best.objective + 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "state"}, "did you mean 'stated'"),
        ({"neighbors": 0}, "neighbors=0"),
        ({"mixtures": 1.5}, "mixtures=1.5"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        SNS(**options)


def test_callback_stops_and_the_best_point_is_returned():
    form, _ = restoration(40, sigma=1.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        solution = gdpa.solve(form, "sns", callback=lambda entry: True)
    assert not solution.converged
    assert set(np.unique(solution.labels)) <= {-1, 1}
