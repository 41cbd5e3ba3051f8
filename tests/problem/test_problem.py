"""GraphProblem and BinaryQuadratic: identities between the forms, and bad input."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import gdpa
from gdpa.errors import DegenerateProblemWarning, UnreachedWarning

PATH = np.array([[0.0, 1, 0], [1, 0, 2], [0, 2, 0]])


def random_problem(n, seed, *, bias=False, laplacian="combinatorial"):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6), 1)
    W = W + W.T + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    labels = rng.choice([-1, 0, 0, 1], n)
    labels[:2] = 1, -1
    h = rng.normal(size=n) if bias else None
    return gdpa.GraphProblem(W, labels, bias=h, laplacian=laplacian)


@given(
    n=st.integers(4, 9),
    seed=st.integers(0, 10**6),
    bias=st.booleans(),
    laplacian=st.sampled_from(["combinatorial", "normalized"]),
)
def test_reduced_form_has_the_objective_of_the_problem(n, seed, bias, laplacian):
    problem = random_problem(n, seed, bias=bias, laplacian=laplacian)
    form = problem.reduced()
    for signs in itertools.product([-1, 1], repeat=problem.unlabeled.size):
        x = problem.labels.astype(float)
        x[problem.unlabeled] = signs
        direct = x @ problem.L.toarray() @ x - 2 * problem.bias @ x
        assert problem.objective(x) == pytest.approx(direct, abs=1e-9)
        assert form.objective(np.append(signs, 1.0)) == pytest.approx(direct, abs=1e-9)


@given(n=st.integers(3, 8), seed=st.integers(0, 10**6))
def test_anchored_quadratic_has_the_objective_of_its_graph_problem(n, seed):
    rng = np.random.default_rng(seed)
    P = np.abs(rng.normal(size=(n, n)))
    P = P + P.T
    P[0, 1:] = P[1:, 0] = rng.normal(size=n - 1)
    quadratic = gdpa.BinaryQuadratic(P)
    problem, shift = quadratic.graph_problem()
    for signs in itertools.product([-1.0, 1.0], repeat=n - 1):
        x = np.append(1.0, signs)
        assert quadratic.value(x) == pytest.approx(x @ P @ x)
        assert problem.objective(x[1:]) + shift == pytest.approx(-x @ P @ x)
        assert quadratic.reduced().objective(x) == pytest.approx(-x @ P @ x)


def test_vote_is_the_labelled_neighbours_sum():
    problem = gdpa.GraphProblem(PATH, [1, 0, -1], bias=[0, 0.5, 0])
    assert problem.vote.tolist() == [1 - 2 + 0.5]


def test_the_input_is_not_changed():
    W = sp.csr_array(PATH)
    W.setdiag(3.0)
    before = W.toarray()
    problem = gdpa.GraphProblem(W, [1, 0, -1])
    assert np.array_equal(W.toarray(), before)
    assert not problem.W.diagonal().any()


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.array([[0, 1], [2, 0.0]]), r"W must be symmetric, but W\[0, 1\] = 1 and W\[1, 0\] = 2"),
        (np.array([[0, np.nan], [np.nan, 0]]), r"W\[0, 1\] is nan; all weights must be finite"),
        (np.array([[0, np.inf], [np.inf, 0]]), r"W\[0, 1\] is inf; all weights must be finite"),
        (np.zeros((2, 3)), r"W must be square, got shape \(2, 3\)"),
        (np.zeros(3), r"W must be a square matrix"),
        (np.zeros((0, 0)), r"W has no nodes"),
        ([["a", "b"], ["c", "d"]], r"W must be a real matrix"),
        (np.array([[0, 1j], [1j, 0]]), r"W must be a real matrix"),
    ],
)
def test_a_wrong_graph_is_refused(W, message):
    with pytest.raises(ValueError, match=message):
        gdpa.GraphProblem(W, [1, 0])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 0], r"labels must have shape \(3,\)"),
        ([[1, 0, -1]], r"labels must have shape \(3,\)"),
        ([1, 0, 2], r"labels\[2\] is 2; accepted: \+1, -1, or 0"),
        ([1, 0, 0.5], r"labels\[2\] is 0.5"),
        ([1, 0, np.nan], r"labels\[2\] is nan"),
        (["a", "b", "c"], r"labels must be numbers"),
        ([0, 0, 0], r"labels has no known label"),
    ],
)
def test_wrong_labels_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        gdpa.GraphProblem(PATH, labels)


def test_wrong_options_of_a_problem_are_refused():
    with pytest.raises(ValueError, match=r"bias must have shape \(3,\)"):
        gdpa.GraphProblem(PATH, [1, 0, -1], bias=[1.0])
    with pytest.raises(ValueError, match=r"bias\[1\] is nan"):
        gdpa.GraphProblem(PATH, [1, 0, -1], bias=[0, np.nan, 0])
    with pytest.raises(ValueError, match=r"laplacian='normalised' is not known; did you mean"):
        gdpa.GraphProblem(PATH, [1, 0, -1], laplacian="normalised")
    with pytest.raises(ValueError, match=r"anchor=5 is not a variable"):
        gdpa.BinaryQuadratic(PATH, anchor=5)
    with pytest.raises(ValueError, match=r"x must have shape \(3,\)"):
        gdpa.GraphProblem(PATH, [1, 0, -1]).objective([1, 1])


def test_degrees_that_overflow_are_refused():
    W = np.full((30, 30), 1e308)
    with pytest.raises(ValueError, match="divide W by a constant"):
        gdpa.GraphProblem(W, [1] + [0] * 29)


@pytest.mark.parametrize("method", ["gdpa", "harmonic", "vote"])
class TestDegenerateProblems:
    def test_one_node(self, method):
        solution = gdpa.solve(gdpa.GraphProblem([[0.0]], [-1]), method)
        assert solution.labels.tolist() == [-1]
        assert solution.gap == 0

    def test_two_nodes(self, method):
        with pytest.warns(DegenerateProblemWarning, match="only class -1"):
            solution = gdpa.solve(gdpa.GraphProblem([[0, 1.0], [1, 0]], [-1, 0]), method)
        assert solution.labels.tolist() == [-1, -1]

    def test_all_labelled(self, method):
        solution = gdpa.solve(gdpa.GraphProblem(PATH, [1, -1, 1]), method)
        assert solution.labels.tolist() == [1, -1, 1]
        assert solution.objective == solution.lower_bound == 12.0

    def test_unreached_components_and_isolated_nodes(self, method):
        W = sp.block_diag([PATH, [[0, 1.0], [1, 0]], [[0.0]]], format="csr")
        with pytest.warns(UnreachedWarning, match="3 of 6 nodes"):
            solution = gdpa.solve(gdpa.GraphProblem(W, [-1, 0, 1, 0, 0, 0]), method)
        assert solution.unreached.tolist() == [3, 4, 5]
        assert solution.scores[3:].tolist() == [0, 0, 0]
        assert set(np.abs(solution.labels)) == {1}
        if method != "gdpa":  # whose first eigenvector knows the first label only
            assert solution.labels[1] == 1
        assert solution.objective == gdpa.GraphProblem(W, [-1, 0, 1, 0, 0, 0]).objective(
            solution.labels
        )
        assert solution.lower_bound <= solution.objective + 1e-12

    def test_extreme_weights(self, method):
        # Left half tied to +1 by tiny weights, right half to -1 by huge ones.
        W = np.zeros((6, 6))
        for i, w in enumerate([1e-290, 1e-290, 1e-300, 1e300, 1e300]):
            W[i, i + 1] = W[i + 1, i] = w
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            solution = gdpa.solve(gdpa.GraphProblem(W, [1, 0, 0, 0, 0, -1]), method)
        assert np.isfinite(solution.scores).all()
        assert np.isfinite(solution.objective)
        assert solution.labels[[0, 5]].tolist() == [1, -1]
        if method == "harmonic":
            assert solution.labels.tolist() == [1, 1, 1, -1, -1, -1]


def test_unknown_methods_and_options_name_the_nearest():
    problem = gdpa.GraphProblem(PATH, [1, 0, -1])
    with pytest.raises(ValueError, match="did you mean 'gdpa'"):
        gdpa.solve(problem, "gpda")
    with pytest.raises(ValueError, match="no option 'labelweight'; did you mean 'label_weight'"):
        gdpa.solve(problem, labelweight=1)
    with pytest.raises(TypeError, match=r"must be a gdpa\.GraphProblem"):
        gdpa.solve(PATH)
    for options, message in [
        ({"tol": -1}, "tol=-1 must be a positive number"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number"),
        ({"callback": 3}, "callback must be callable"),
        ({"x0": [1.0]}, r"x0 must have shape \(3,\)"),
        ({"x0": [1.0, np.nan, 0]}, "x0 must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            gdpa.solve(problem, **options)


def test_a_method_of_ones_own_can_be_registered(monkeypatch):
    from gdpa.solvers import registry
    from gdpa.solvers.vote import Vote

    monkeypatch.setattr(registry, "METHODS", dict(registry.METHODS))
    registry.register("my-vote", Vote)
    registry.register("my-vote", Vote)  # the same again is no conflict
    problem = gdpa.GraphProblem(PATH, [1, 0, -1])
    assert gdpa.solve(problem, "my-vote").labels.tolist() == [1, -1, -1]
    for taken in ("harmonic", "auto"):
        with pytest.raises(ValueError, match="choose another name"):
            registry.register(taken, Vote)


def test_auto_says_which_method_it_chose():
    graph = gdpa.GraphProblem(PATH, [1, 0, -1])
    harmonic = gdpa.solve(graph, "harmonic")
    assert gdpa.solve(graph).method == "harmonic"
    assert np.array_equal(gdpa.solve(graph).scores, harmonic.scores)
    triangle = np.ones((3, 3)) - np.eye(3)
    assert gdpa.solve(gdpa.BinaryQuadratic(triangle)).method == "min-cut"
    switched = triangle * np.outer([1, -1, 1], [1, -1, 1])
    assert gdpa.solve(gdpa.BinaryQuadratic(switched)).method == "min-cut"
    ring = -sp.diags_array([1.0, 1, 1, 1], offsets=1) + sp.csr_array(([-1.0], ([0], [4])), (5, 5))
    odd = gdpa.BinaryQuadratic(sp.block_diag([[[0.0]], ring + ring.T]))
    assert gdpa.solve(odd).method == "branch-and-bound"
    assert gdpa.solve(odd, bound="sdr").method == "search"
    assert gdpa.solve(gdpa.GraphProblem(odd.P, [1, 0, 0, 0, 0, 0])).method == "branch-and-bound"


def test_label_weights_that_overflow_are_refused():
    problem = gdpa.GraphProblem(PATH, [1, 0, -1])
    with pytest.raises(ValueError, match="add up to"):
        gdpa.solve(problem, "gdpa", label_weight=1.7e308)


def test_every_method_is_listed_with_what_it_needs():
    methods = {m.name: m for m in gdpa.list_methods()}
    assert {"gdpa", "harmonic", "vote"} <= set(methods)
    for info in methods.values():
        assert info.summary
        assert info.kind in {"exact", "relaxation", "heuristic", "limit"}
        assert {"tol", "max_iter", "x0", "callback", "random_state"} <= set(info.options)


@pytest.mark.slow
@pytest.mark.parametrize("method", [m.name for m in gdpa.list_methods()])
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e154, 1e290, 1e302, 1e307, 1.7e308])
def test_huge_and_tiny_weights_are_solved_or_refused_by_name(method, scale):
    rng = np.random.default_rng(3)
    W = np.triu(0.1 + 0.9 * rng.random((6, 6)), 1) * scale
    S = W * rng.choice([-1.0, 1.0], W.shape)
    labels = [1, -1, 0, 0, 0, 0]
    makers = [
        lambda: gdpa.GraphProblem(W + W.T, labels),
        lambda: gdpa.GraphProblem(W + W.T, labels, bias=W[0], laplacian="normalized"),
        lambda: gdpa.BinaryQuadratic(W + W.T),
        lambda: gdpa.BinaryQuadratic(S + S.T),
    ]
    for make in makers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", category=RuntimeWarning)
            try:
                solution = gdpa.solve(make(), method)
            except gdpa.errors.UnsupportedProblemError:
                continue
            except ValueError as error:
                if scale < 1e303 or "add up to" not in str(error):
                    raise
                continue
        assert np.isfinite(solution.objective)
        assert solution.lower_bound <= solution.objective + 1e-6 * abs(solution.objective)
