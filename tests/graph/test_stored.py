"""Graphs and what goes with them in files: the same answers, and no file that does not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.codec import load, pack, save, unpack
from gdpa.graph.forest import LeafEmbedding
from gdpa.graph.neighbor_graph import NeighborGraph, neighbor_graphs
from gdpa.graph.rescale import Rescaler
from gdpa.graph.smoothing import Smoother

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
KIND = {"kind": "test", "version": 1}


def graph(**options) -> NeighborGraph:
    return neighbor_graphs(X, [5], **options)[0]


@pytest.mark.parametrize("algorithm", ["exact", "approximate"])
@pytest.mark.parametrize("bandwidth", ["self-tuning", 0.7])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_a_stored_graph_attaches_the_same(tmp_path, algorithm, bandwidth, container):
    data = container(X)
    built = neighbor_graphs(data, [5], algorithm=algorithm, bandwidth=bandwidth)[0]
    found = load(save(tmp_path / "g.npz", built, **KIND), NeighborGraph, **KIND)
    assert found.algorithm == found.index.algorithm == built.algorithm
    for a, b in ((found.W, built.W), (found.attach(data[:9]), built.attach(data[:9]))):
        np.testing.assert_array_equal(a.data, b.data)
        np.testing.assert_array_equal(a.indices, b.indices)


def test_other_stored_things_answer_the_same():
    leaves = rng.integers(0, 9, (60, 7))
    W = sp.csr_array(graph().W)
    logs = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 1.0]])
    for thing, answer in (
        (Rescaler.fit(X, "standard"), lambda r: r.transform(X)),
        (replace(Rescaler.fit(X, "min-max"), logs=logs), lambda r: r.transform(X)),
        (LeafEmbedding.fit(leaves, 4), lambda e: e.transform(leaves)),
        (Smoother(W, X), lambda s: s.points(1.0, 2)),
    ):
        found = unpack(type(thing), *pack(thing))
        np.testing.assert_array_equal(answer(found), answer(thing))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scales": np.ones(79)}, "scales must be 80 positive numbers"),
        ({"scales": np.full(80, np.nan)}, "scales must be 80 positive"),
        ({"scales": np.zeros(80)}, "scales must be 80 positive"),
        ({"W": sp.csr_array((79, 79))}, "positive weights between 80 nodes"),
        ({"W": -1.0 * graph().W}, "positive weights"),
        ({"bandwidth": "wide"}, "bandwidth='wide' is not known"),
        ({"bandwidth": -1.0}, "bandwidth=-1.0 must be a positive number"),
        ({"n_neighbors": 0}, "out of range"),
        ({"recall": 1.5}, "out of range"),
    ],
)
def test_a_graph_that_does_not_fit_together(change, message):
    with pytest.raises(ValueError, match=message):
        replace(graph(), **change)


def test_a_file_with_weights_that_are_not_symmetric():
    crooked = sp.csr_array(sp.triu(graph().W))
    with pytest.raises(ValueError, match="symmetric"):
        unpack(NeighborGraph, *pack(replace(graph(), W=crooked)))


def test_rescalers_and_embeddings_that_do_not_fit_together():
    columns = np.array([True, False])
    with pytest.raises(ValueError, match="kind='other' is not known"):
        Rescaler("other", columns, np.zeros(1), np.ones(1), False)
    with pytest.raises(ValueError, match="one number for each of 1 columns"):
        Rescaler("min-max", columns, np.zeros(2), np.ones(1), False)
    with pytest.raises(ValueError, match="scale must be positive"):
        Rescaler("min-max", columns, np.zeros(1), np.zeros(1), False)
    for logs in (np.zeros((2, 2)), np.full((2, 1), np.nan), -np.ones((2, 1))):
        with pytest.raises(ValueError, match="logs must"):
            Rescaler("min-max", columns, np.zeros(1), np.ones(1), False, logs)
    with pytest.raises(ValueError, match="ascending"):
        LeafEmbedding(np.zeros((3, 2), np.float32), np.array([0, 3, 3]))
    with pytest.raises(ValueError, match="vectors must be"):
        LeafEmbedding(np.zeros((4, 2), np.float32), np.array([0, 3]))
    with pytest.raises(ValueError, match="W must hold non-negative weights"):
        Smoother(sp.csr_array((2, 2)), np.ones((3, 1)))
