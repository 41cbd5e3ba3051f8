"""Edge lists and NetworkX graphs."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa.graph import from_edges, from_networkx

EXPECTED = np.array([[0, 2.0, 0], [2.0, 0, 0.5], [0, 0.5, 0]])


@pytest.mark.parametrize(
    ("edges", "weights"),
    [
        ([[0, 1, 2.0], [2, 1, 0.5]], None),
        (np.array([[0, 1], [2, 1]]), [2.0, 0.5]),
        ([["a", "b"], ["c", "b"]], [2.0, 0.5]),
        ([["a", "b", "2.0"], ["c", "b", "0.5"]], None),
        ([[10, 20, 2.0], [30, 20, 0.5]], None),
    ],
)
def test_edge_lists(edges, weights):
    graph = from_edges(edges, weights)
    assert np.array_equal(graph.W.toarray(), EXPECTED)
    assert graph.nodes.tolist() in ([0, 1, 2], ["a", "b", "c"], [10, 20, 30])


def test_data_frame_keeps_names_and_weights_apart():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"from": ["x", "z"], "to": ["y", "y"], "w": [2.0, 0.5]})
    graph = from_edges(table)
    assert np.array_equal(graph.W.toarray(), EXPECTED)
    assert graph.nodes.tolist() == ["x", "y", "z"]


def test_numbered_nodes_without_edges_exist():
    graph = from_edges([[0, 3]], n_nodes=5)
    assert graph.W.shape == (5, 5)
    assert graph.W.nnz == 2
    assert from_edges([], n_nodes=3).W.nnz == 0


def test_self_loops_are_dropped():
    assert from_edges([[0, 0], [0, 1]]).W.nnz == 2


def test_duplicates():
    edges = [[0, 1, 2.0], [1, 0, 3.0], [1, 2, 1.0]]
    with pytest.raises(ValueError, match=r"\(0, 1\) is listed more than once with the weights"):
        from_edges(edges)
    with pytest.raises(ValueError, match=r"\(0, 1\) is listed more than once; .*list it once"):
        from_edges([[0, 1], [1, 0]], duplicates="error")
    assert from_edges([[0, 1], [1, 0]]).W[0, 1] == 1.0
    assert from_edges(edges, duplicates="sum").W[0, 1] == 5.0
    assert from_edges(edges, duplicates="max").W[1, 0] == 3.0


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        ([[0, 1, 2, 3]], {}, "2 or 3 columns"),
        ([0, 1], {}, "2 or 3 columns"),
        ([[0, 1]], {"weights": [1.0, 2.0]}, r"shape \(1,\)"),
        ([[0, 1, 1.0]], {"weights": [1.0]}, "third column"),
        ([[0, 1]], {"weights": [np.nan]}, "edge 0 has weight nan"),
        ([[0, 1]], {"weights": ["heavy"]}, "real numbers"),
        ([[0, 1]], {"weights": [-1.0]}, "negative"),
        ([[0.5, 1, 1.0]], {}, "integers"),
        ([[0, 7]], {"n_nodes": 3}, "the end 7"),
        ([[-1, 0]], {"n_nodes": 3}, "the end -1"),
        ([["a", "b"]], {"n_nodes": 3}, "integers"),
        ([[0, 1]], {"n_nodes": 0}, "n_nodes=0 must be a whole number"),
        ([], {}, "empty"),
        ([[0, 1]], {"duplicates": "add"}, "not known"),
    ],
)
def test_bad_edges_are_refused(edges, options, message):
    with pytest.raises(ValueError, match=message):
        from_edges(edges, **options)


def test_signed_edges_on_request():
    assert from_edges([[0, 1]], [-1.0], signed=True).W[0, 1] == -1.0


def test_networkx():
    networkx = pytest.importorskip("networkx")
    G = networkx.Graph()
    G.add_nodes_from(["c", ("a", 1), 7])
    G.add_edge("c", ("a", 1), weight=2.0)
    G.add_edge(("a", 1), 7, weight=0.5)
    G.add_edge(7, 7, weight=9.0)
    graph = from_networkx(G)
    assert np.array_equal(graph.W.toarray(), EXPECTED)
    assert list(graph.nodes) == ["c", ("a", 1), 7]
    assert set(from_networkx(G, weight=None).W.data) == {1.0}


def test_networkx_agrees_with_its_own_matrix():
    networkx = pytest.importorskip("networkx")
    G = networkx.gnm_random_graph(30, 60, seed=1)
    for k, (u, v) in enumerate(G.edges):
        G[u][v]["weight"] = 1.0 + k
    ours = from_networkx(G).W
    assert (ours != networkx.to_scipy_sparse_array(G, dtype=float)).nnz == 0
    M = networkx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    assert from_networkx(M).W[0, 1] == 2.0


def test_bad_networkx_is_refused():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="directed"):
        from_networkx(networkx.DiGraph([(0, 1)]))
    with pytest.raises(ValueError, match="no nodes"):
        from_networkx(networkx.Graph())
    with pytest.raises(ValueError, match="networkx graph, got list"):
        from_networkx([[0, 1]])
    with pytest.raises(ValueError, match="negative"):
        from_networkx(networkx.Graph([(0, 1, {"weight": -1.0})]))
