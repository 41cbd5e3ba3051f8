"""Histories of solves as they are drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gdpa
from gdpa.gershgorin import linearize
from gdpa.plotting import ConvergenceDisplay


def test_convergence_draws_what_was_reported():
    problem, _ = gdpa.datasets.make_moons_graph(50, random_state=1)
    solution = gdpa.solve(problem, "sdr-low-rank")
    display = ConvergenceDisplay.from_solution(solution)
    assert sorted(display.series) == ["bound", "value"]
    assert display.lower_bound == solution.lower_bound
    value = display.ax_.lines[0].get_ydata()
    np.testing.assert_array_equal(value, [entry["value"] for entry in solution.history])
    gap = ConvergenceDisplay.from_solution(
        gdpa.solve(problem, "sdr-interior-point"), quantities="gap"
    )
    assert gap.ax_.get_yscale() == "log"


def test_convergence_takes_a_linearisation():
    A0 = -np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    result = linearize([1, 2, 1], A0, [np.diag(row) for row in np.eye(3)])
    display = ConvergenceDisplay.from_solution(result)
    assert display.series["objective"][-1] == pytest.approx(result.objective)


def test_a_solution_without_history_or_without_the_quantity_is_refused():
    problem, _ = gdpa.datasets.make_moons_graph(40, random_state=0)
    with pytest.raises(ValueError, match="no history"):
        ConvergenceDisplay.from_solution(replace(gdpa.solve(problem, "vote"), history=()))
    with pytest.raises(ValueError, match=r"'values'.*did you mean 'value'"):
        ConvergenceDisplay.from_solution(gdpa.solve(problem, "sdr-low-rank"), quantities="values")
