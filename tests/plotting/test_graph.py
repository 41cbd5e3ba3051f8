"""The graph as it is drawn: nodes, edges, uncertainty."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.collections import LineCollection

import gdpa
from gdpa.plotting import GraphDisplay


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
    tie = gdpa.GraphClassifier(graph="precomputed").fit(
        np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]), [0, -1, 1]
    )
    assert GraphDisplay.from_estimator(tie).uncertainty[1] == pytest.approx(1.0)
