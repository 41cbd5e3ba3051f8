"""Certificates: valid for every labelling, exact by cut, refused for what is no labelling."""

from __future__ import annotations

import numpy as np
import pytest

import gdpa


def weights(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    return upper + upper.T


def all_signs(n: int) -> np.ndarray:
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) * 2 - 1


@pytest.mark.parametrize("seed", range(4))
def test_exact_where_weights_are_nonnegative(seed):
    labels = np.zeros(10)
    labels[[2, 7]] = 1, -1
    problem = gdpa.GraphProblem(weights(seed, 10), labels)
    X = all_signs(10)
    X = X[(X[:, 2] == 1) & (X[:, 7] == -1)]
    objectives = np.array([problem.objective(x) for x in X])
    for k in (0, 17, int(objectives.argmin()), int(objectives.argmax())):
        found = gdpa.certify(problem, X[k])
        assert found.exact
        assert found.bound_status == "certified"
        assert found.objective == objectives[k]
        assert found.lower_bound <= objectives.min()
        assert found.gap == pytest.approx(objectives[k] - objectives.min(), abs=1e-8)
        assert problem.objective(found.optimal_labels) == pytest.approx(objectives.min(), rel=1e-12)


@pytest.mark.parametrize("method", ["search", "sdr-interior-point", "sdr-low-rank"])
@pytest.mark.parametrize("seed", range(3))
def test_signed_forms_get_the_bound_of_the_relaxation(seed, method):
    rng = np.random.default_rng(seed)
    P = np.triu(rng.normal(size=(11, 11)), 1)
    form = gdpa.BinaryQuadratic(P + P.T)
    objectives = np.array([form.objective(x) for x in all_signs(11)])
    best = all_signs(11)[objectives.argmin()]
    found = gdpa.certify(form, best, method=method)
    assert not found.exact
    assert found.optimal_labels is None
    assert found.bound_status == "certified"
    assert found.lower_bound <= objectives.min()
    # Nesterov: the relaxation of max x'Px is at most a factor away; here it is a few percent.
    assert found.relative_gap < 0.25
    assert found.method == method
    exact = gdpa.certify(form, best)
    assert (exact.method, exact.exact) == ("branch-and-bound", True)
    assert exact.lower_bound == pytest.approx(exact.objective)


def test_the_bound_is_the_value_of_the_relaxation():
    rng = np.random.default_rng(1)
    P = np.triu(rng.normal(size=(40, 40)), 1)
    form = gdpa.BinaryQuadratic(P + P.T)
    value = gdpa.solve(form, "sdr-interior-point").info["sdr_value"]
    for method in ("sdr-interior-point", "sdr-low-rank"):
        bound = gdpa.certify(form, np.ones(40), method=method).lower_bound
        assert value - 1e-3 * abs(value) <= bound <= value + 1e-9 * abs(value)


def test_balanced_forms_are_certified_by_the_cut():
    W = weights(3, 9)
    signs = np.array([1, 1, -1, 1, -1, -1, 1, 1, -1])
    form = gdpa.BinaryQuadratic(W * np.outer(signs, signs))
    assert form.signed
    found = gdpa.certify(form, signs)
    assert found.method == "min-cut"
    assert found.gap == pytest.approx(0.0, abs=1e-10)


def test_unreached_nodes_and_single_classes_need_no_warning(recwarn):
    W = np.zeros((5, 5))
    W[0, 1] = W[1, 0] = W[3, 4] = W[4, 3] = 1.0
    two = gdpa.certify(gdpa.GraphProblem(W, [1, 0, -1, 0, 0]), [1, 1, -1, 1, -1])
    one = gdpa.certify(gdpa.GraphProblem(W, [1, 0, 0, 0, 0]), [1, -1, 1, 1, 1])
    assert two.gap == pytest.approx(4.0)
    assert one.gap == pytest.approx(4.0)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 1], r"shape \(3,\)"),
        ([1, 0, -1], r"labels\[1\] is 0"),
        ([1, np.nan, -1], r"labels\[1\] is nan"),
        ([1, 1, 1], r"labels\[2\] is \+1, but the known label of that node is -1"),
        (["a", "b", "c"], "must be numbers"),
    ],
)
def test_what_is_no_labelling_is_refused(labels, message):
    problem = gdpa.GraphProblem([[0, 1, 0], [1, 0, 2], [0, 2, 0]], [1, 0, -1])
    with pytest.raises(ValueError, match=message):
        gdpa.certify(problem, labels)


def test_other_arguments_are_checked():
    problem = gdpa.GraphProblem([[0, 1], [1, 0]], [1, -1])
    with pytest.raises(ValueError, match="method='vote' gives no bound"):
        gdpa.certify(problem, [1, -1], method="vote")
    with pytest.raises(TypeError, match="GraphProblem"):
        gdpa.certify(np.eye(2), [1, -1])


def test_reads_as_a_sentence():
    problem = gdpa.GraphProblem([[0, 1, 0], [1, 0, 2], [0, 2, 0]], [1, 0, -1])
    assert str(gdpa.certify(problem, [1, 1, -1])) == (
        "objective 8, optimum 4 (certified, min-cut), gap 4 (50 %)"
    )


def test_binary_labellings_are_zeros_and_ones():
    form = gdpa.BinaryQuadratic.qubo([[-1, 1], [1, -1]])
    states = [(a, b) for a in (0, 1) for b in (0, 1)]
    best = min(form.objective(np.array(x)) for x in states)
    for x in states:
        found = gdpa.certify(form, x)
        assert found.objective == form.objective(np.array(x))
        assert found.gap == pytest.approx(found.objective - best)
    with pytest.raises(ValueError, match=r"labels\[1\] is -1; a labelling has 0 or 1"):
        gdpa.certify(form, [1, -1])
    with pytest.raises(ValueError, match=r"labels\[0\] is 0; a labelling has \+1 or -1"):
        gdpa.certify(gdpa.BinaryQuadratic([[0, 2], [2, 0]]), [0, 1])


def test_gaps_are_never_negative_and_relative_to_the_larger_value():
    from gdpa.certificate import Certificate

    below = Certificate(1.0, 1.0 + 1e-12, "certified", "min-cut", True)
    assert below.gap == 0.0
    apart = Certificate(-3.0, -4.0, "certified", "search", False)
    assert (apart.gap, apart.relative_gap) == (1.0, 0.25)
    assert str(apart).startswith("objective -3, lower bound -4 (certified, search)")


@pytest.mark.parametrize(
    ("objective", "status", "exact", "optimal"),
    [
        (4.0, "certified", True, True),
        (8.0, "certified", True, False),
        (4.0, "estimated", False, False),
    ],
)
def test_notebooks_call_only_proved_labellings_optimal(objective, status, exact, optimal):
    from gdpa.certificate import Certificate

    html = Certificate(objective, 4.0, status, "min-cut", exact)._repr_html_()
    assert ("No labelling is better." in html) == optimal
    assert (">optimum<" in html) == exact
    assert (">lower bound<" in html) != exact
    assert f"{100 * (objective - 4) / objective:.3g} %" in html
    assert f"({status}, by min-cut)" in html
    assert "XX" not in html


def test_a_stopped_exact_method_proves_no_optimum():
    """Branch and bound beyond its limit gives a valid bound, and does not claim the optimum."""
    rng = np.random.default_rng(0)
    P = np.triu(rng.normal(size=(70, 70)), 1)
    form = gdpa.BinaryQuadratic(P + P.T)
    chosen = gdpa.certify(form, np.ones(70))
    assert chosen.method == "search"
    assert not chosen.exact
    assert chosen.lower_bound <= gdpa.solve(form, "search").objective
