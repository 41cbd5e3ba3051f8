"""Every method calls the callback, and stops with a valid answer when it returns True."""

import numpy as np
import pytest

import gdpa
from gdpa.errors import MissingExtraError
from gdpa.solvers.registry import METHODS


def problems():
    """A labelled graph, and a signed problem for the methods that need one."""
    rng = np.random.default_rng(0)
    W = np.triu(rng.random((24, 24)) < 0.3, 1) * rng.random((24, 24))
    labels = np.zeros(24, dtype=int)
    labels[[0, 1, 2, 3]] = [1, -1, 1, -1]
    J = np.triu(rng.standard_normal((24, 24)), 1)
    return gdpa.GraphProblem(W + W.T, labels), gdpa.BinaryQuadratic.max_cut(J + J.T)


@pytest.mark.parametrize("answer", [True, np.True_])
@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_method_stops_when_asked(method, answer):
    stopped = 0
    for problem in problems():
        seen = []

        def callback(entry, seen=seen):
            seen.append(dict(entry))
            return answer

        try:
            solution = gdpa.solve(problem, method, callback=callback)
        except (gdpa.errors.UnsupportedProblemError, MissingExtraError):
            continue
        assert seen, "the callback was never called"
        assert set(np.unique(solution.labels)) <= {-1, 1}
        assert np.isfinite(solution.objective)
        assert not solution.converged or solution.bound_kind == "optimum"
        assert "callback" in solution.message or solution.bound_kind == "optimum"
        stopped += 1
    assert stopped or method in {"sdr-interior-point"}


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_callback_that_only_watches_changes_nothing(method):
    for problem in problems():
        seen = []
        try:
            watched = gdpa.solve(problem, method, callback=seen.append)
        except (gdpa.errors.UnsupportedProblemError, MissingExtraError):
            continue
        plain = gdpa.solve(problem, method)
        assert seen
        np.testing.assert_array_equal(watched.labels, plain.labels)
        np.testing.assert_array_equal(watched.scores, plain.scores)
