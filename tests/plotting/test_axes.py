"""What all displays have in common: axes, errors, the optional extra."""

from __future__ import annotations

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

import gdpa
from gdpa.plotting import ConvergenceDisplay, GershgorinDisplay, GraphDisplay, SelectionDisplay

PAPER = np.array([[2.0, -2.0, -1.0], [-2.0, 5.0, -2.0], [-1.0, -2.0, 4.0]])


def test_displays_draw_on_given_axes_and_return_themselves(moons):
    X, _, model = moons
    problem, _ = gdpa.datasets.make_moons_graph(40, random_state=0)
    solution = gdpa.solve(problem, "sdr-low-rank")
    for draw in (
        lambda ax: GershgorinDisplay.from_matrix(PAPER, ax=ax),
        lambda ax: GershgorinDisplay.from_alignment(PAPER, ax=ax),
        lambda ax: GraphDisplay.from_estimator(model, X, ax=ax),
        lambda ax: GraphDisplay.from_solution(problem, solution, ax=ax),
        lambda ax: ConvergenceDisplay.from_solution(solution, ax=ax),
        lambda ax: SelectionDisplay.from_estimator(model, ax=ax),
    ):
        figure, ax = plt.subplots()
        display = draw(ax)
        assert display.ax_ is ax
        assert display.figure_ is figure
        assert display.plot() is display  # again, on axes of its own
        assert display.ax_ is not ax


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, X: GershgorinDisplay.from_matrix(PAPER, kind="circle"), "did you mean"),
        (lambda m, X: GershgorinDisplay.from_matrix(PAPER, max_rows=1), "max_rows=1"),
        (lambda m, X: GershgorinDisplay.from_matrix(PAPER, ax=3), "ax=3"),
        (lambda m, X: GraphDisplay.from_estimator(m, X, color="clas"), "did you mean 'class'"),
        (lambda m, X: GraphDisplay.from_estimator(m, X, max_edges=-1), "max_edges=-1"),
        (lambda m, X: GraphDisplay.from_estimator(m, X[:5]), "X must have 80 rows"),
        (lambda m, X: GraphDisplay(m.graph_, X, X[:, 0]).plot(color="uncertainty"), "needs"),
    ],
)
def test_bad_input_is_named(moons, call, words):
    X, _, model = moons
    with pytest.raises(ValueError, match=words):
        call(model, X)


@pytest.mark.slow
def test_importing_displays_does_not_import_matplotlib_and_a_missing_one_names_the_extra():
    code = (
        "import sys, gdpa.plotting\n"
        "assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib.pyplot'] = None\n"
        "try:\n"
        "    gdpa.plotting.GershgorinDisplay.from_matrix([[1, 0], [0, 1]])\n"
        "except ImportError as error:\n"
        "    assert '.[plot]' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
