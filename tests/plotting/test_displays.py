"""Displays: what they draw is what the numbers say; matplotlib is needed only to draw."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle

import gdpa
from gdpa.gershgorin import align, discs, linearize
from gdpa.plotting import ConvergenceDisplay, GershgorinDisplay, GraphDisplay, SelectionDisplay
from gdpa.plotting.layout import positions_of, spectral_positions

matplotlib.use("Agg")

PAPER = np.array([[2.0, -2.0, -1.0], [-2.0, 5.0, -2.0], [-1.0, -2.0, 4.0]])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def moons():
    X, y = gdpa.datasets.moons(80, noise=0.08, random_state=3)
    known = np.concatenate([np.flatnonzero(y == s)[:8] for s in (-1, 1)])
    labels = np.full(80, -1)
    labels[known] = y[known] > 0
    return X, labels, gdpa.GDPAClassifier().fit(X, labels)


def test_circles_are_the_discs_and_touch_at_the_smallest_eigenvalue():
    display = GershgorinDisplay.from_alignment(PAPER)
    circles = [p for p in display.ax_.patches if isinstance(p, Circle)]
    drawn = sorted((c.center[0], c.radius) for c in circles)
    assert len(circles) == 6
    expected = [*zip(*_parts(discs(PAPER)), strict=True)]
    expected += [*zip(*_parts(discs(PAPER, v=align(PAPER).v)), strict=True)]
    np.testing.assert_allclose(drawn, sorted(expected))
    lowest = np.linalg.eigvalsh(PAPER)[0]
    aligned = [c for c in circles if c.get_linestyle() == "-"]
    np.testing.assert_allclose([c.center[0] - c.radius for c in aligned], lowest, atol=1e-9)
    assert display.lambda_min == pytest.approx(lowest)


def _parts(d):
    return d.centers, d.radii


def test_intervals_show_every_row_or_an_even_choice_with_the_outermost(random_graph):
    L = gdpa.graph.laplacian(random_graph(30, 0)) + sp.diags_array(np.linspace(0, 1, 30))
    display = GershgorinDisplay.from_matrix(L)
    left = display.ax_.lines[0].get_xdata()
    np.testing.assert_allclose(left, discs(L).left_ends)
    few = GershgorinDisplay.from_matrix(L, max_rows=10).ax_.lines[0].get_xdata()
    assert few.size == 10
    assert few.min() == left.min()
    assert few.max() == left.max()


def test_a_given_alignment_and_scaling_are_used():
    a = align(PAPER)
    display = GershgorinDisplay.from_alignment(PAPER, a, before=False)
    assert list(display.discs) == ["aligned"]
    scaled = GershgorinDisplay.from_matrix(PAPER, v=a.v, kind="intervals", name="scaled")
    np.testing.assert_allclose(scaled.discs["scaled"].left_ends, a.left_ends)


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
        lambda ax: SelectionDisplay.from_estimator(
            model, self_loops=[0.1], label_weights=[1.0], ax=ax
        ),
    ):
        figure, ax = plt.subplots()
        display = draw(ax)
        assert display.ax_ is ax
        assert display.figure_ is figure
        assert display.plot() is display  # again, on axes of its own
        assert display.ax_ is not ax


def test_graph_shows_nodes_at_the_features_and_all_edges(moons):
    X, labels, model = moons
    display = GraphDisplay.from_estimator(model, X)
    points = [c for c in display.ax_.collections if not isinstance(c, LineCollection)]
    drawn = np.vstack([c.get_offsets() for c in points])
    order, want = np.lexsort(drawn.T), np.lexsort(X.T)
    np.testing.assert_allclose(drawn[order], X[want])
    lines = next(c for c in display.ax_.collections if isinstance(c, LineCollection))
    assert len(lines.get_segments()) == model.graph_.nnz // 2
    np.testing.assert_array_equal(np.sort(display.labeled), np.flatnonzero(labels >= 0))
    texts = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert texts == [str(c) for c in model.classes_]


def test_graph_draws_the_heaviest_edges_first(moons):
    X, _, model = moons
    display = GraphDisplay.from_estimator(model, X, max_edges=5)
    segments = next(
        c for c in display.ax_.collections if isinstance(c, LineCollection)
    ).get_segments()
    upper = sp.triu(model.graph_, 1).tocoo()
    heaviest = np.argsort(-upper.data, kind="stable")[:5]
    want = X[np.column_stack([upper.row, upper.col])[heaviest]]
    np.testing.assert_allclose(np.asarray(segments), want)


def test_uncertainty_is_zero_on_labels_and_one_at_a_tie(moons):
    X, labels, model = moons
    u = GraphDisplay.from_estimator(model, X, color="uncertainty").uncertainty
    assert (u[labels >= 0] == 0).all()
    assert ((u >= 0) & (u <= 1)).all()
    tie = gdpa.GDPAClassifier(graph="precomputed").fit(
        np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]), [0, -1, 1]
    )
    assert GraphDisplay.from_estimator(tie).uncertainty[1] == pytest.approx(1.0)


def test_selection_repeats_the_loss_that_the_classifier_minimised(moons):
    """Two routes to one number: the eigen-decomposition of the tuning, and one system per pair."""
    _, _, model = moons
    display = SelectionDisplay.from_estimator(model)
    assert display.chosen[:2] == (model.self_loop_, model.label_weight_)
    assert display.chosen[2] == pytest.approx(model.tuning_.loss, abs=1e-4)
    assert display.losses.min() == pytest.approx(model.tuning_.loss, abs=1e-4)


def test_selection_counts_the_evidence_in():
    from sklearn.linear_model import LogisticRegression

    X, y = gdpa.datasets.gaussian_clusters(90, n_features=3, n_clusters=4, random_state=1)
    labels = np.where(np.arange(90) % 4 == 0, y, 0)
    model = gdpa.GDPAClassifier(
        unlabeled=0, evidence=LogisticRegression(), evidence_weight=0.3, n_neighbors=8
    ).fit(X, labels)
    display = SelectionDisplay.from_estimator(model)
    assert display.chosen[2] == pytest.approx(model.tuning_.loss, abs=1e-3)


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


def test_spectral_positions_separate_two_cliques_and_repeat():
    block = np.ones((60, 60)) - np.eye(60)
    W = sp.csr_array(np.block([[block, np.zeros((60, 60))], [np.zeros((60, 60)), block]]))
    W = W.tolil()
    W[59, 60] = W[60, 59] = 0.5
    W = W.tocsr()
    xy = spectral_positions(W)
    assert xy[:60, 0].max() * xy[60:, 0].min() < 0 or xy[:60, 0].min() * xy[60:, 0].max() < 0
    np.testing.assert_array_equal(xy, spectral_positions(W))


def test_positions_come_from_the_features_where_there_are_some(random_graph):
    W = random_graph(20, 0)
    X = np.random.default_rng(0).standard_normal((20, 5))
    np.testing.assert_array_equal(positions_of(W, X[:, :2]), X[:, :2])
    xy = positions_of(W, X)
    centred = X - X.mean(axis=0)
    top = np.linalg.svd(centred, compute_uv=False)[:2]
    np.testing.assert_allclose(np.linalg.norm(xy, axis=0), top)
    assert positions_of(W, X[:, :1]).shape == (20, 2)
    assert positions_of(sp.csr_array((2, 2))).shape == (2, 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, X: GershgorinDisplay({}), "discs is empty"),
        (lambda m, X: GershgorinDisplay.from_matrix(PAPER, kind="circle"), "did you mean"),
        (lambda m, X: GershgorinDisplay.from_matrix(PAPER, max_rows=1), "max_rows=1"),
        (lambda m, X: GershgorinDisplay.from_matrix(PAPER, ax=3), "ax=3"),
        (lambda m, X: GraphDisplay.from_estimator(m, X, color="clas"), "did you mean 'class'"),
        (lambda m, X: GraphDisplay.from_estimator(m, X, max_edges=-1), "max_edges=-1"),
        (lambda m, X: GraphDisplay.from_estimator(m, X[:5]), "X must have 80 rows"),
        (lambda m, X: GraphDisplay.from_estimator(m, X, layout="x"), "layout='x'"),
        (lambda m, X: GraphDisplay.from_estimator(m, layout="pca"), "needs X"),
        (lambda m, X: GraphDisplay(m.graph_, X[:, :1], X[:, 0]), "positions must be"),
        (lambda m, X: GraphDisplay(m.graph_, X, X[:5, 0]), "labels must have shape"),
        (lambda m, X: GraphDisplay(m.graph_, X, X[:, 0]).plot(color="uncertainty"), "needs"),
        (lambda m, X: SelectionDisplay([1], [1], [[1, 2]]), "losses has shape"),
        (lambda m, X: SelectionDisplay.from_estimator(m, self_loops=[0.0]), "self_loops"),
        (lambda m, X: ConvergenceDisplay([1, 2], {"gap": [1]}), "one value per iteration"),
    ],
)
def test_bad_input_is_named(moons, call, words):
    X, _, model = moons
    with pytest.raises(ValueError, match=words):
        call(model, X)


def test_a_solution_without_history_or_without_the_quantity_is_refused():
    problem, _ = gdpa.datasets.make_moons_graph(40, random_state=0)
    with pytest.raises(ValueError, match="no history"):
        ConvergenceDisplay.from_solution(gdpa.solve(problem, "vote"))
    with pytest.raises(ValueError, match=r"'values'.*did you mean 'value'"):
        ConvergenceDisplay.from_solution(gdpa.solve(problem, "sdr-low-rank"), quantities="values")


def test_too_few_labels_to_leave_out_are_refused():
    X, _ = gdpa.datasets.moons(30, random_state=0)
    y = np.full(30, -1)
    y[:2] = [0, 1]
    model = gdpa.GDPAClassifier().fit(X, y)
    with pytest.raises(ValueError, match="two labels"):
        SelectionDisplay.from_estimator(model)


def test_importing_displays_does_not_import_matplotlib_and_a_missing_one_names_the_extra():
    code = (
        "import sys, gdpa.plotting\n"
        "assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib.pyplot'] = None\n"
        "try:\n"
        "    gdpa.plotting.GershgorinDisplay.from_matrix([[1, 0], [0, 1]])\n"
        "except ImportError as error:\n"
        "    assert 'gdpa[plot]' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
