"""Graphs written and read back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.graph import load_graph, save_graph
from gdpa.graph.adjacency import csr_from_parts


@pytest.fixture
def W(random_graph):
    return random_graph(20, 0)


def same(A, B):
    return all(np.array_equal(getattr(A, p), getattr(B, p)) for p in ("data", "indices", "indptr"))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_round_trip(tmp_path, W, dtype):
    A = W.astype(dtype)
    B = load_graph(save_graph(tmp_path / "graph.npz", A))
    assert isinstance(B, sp.csr_array)
    assert B.dtype == dtype
    assert B.shape == A.shape
    assert same(A, B)


def test_an_existing_graph_is_replaced(tmp_path, W):
    path = save_graph(tmp_path / "graph", W)
    save_graph(path, 2 * W)
    assert np.array_equal(load_graph(path).data, 2 * W.data)


def test_wide_indices_stay_wide(tmp_path, W):
    A = csr_from_parts(W.data, W.indices.astype(np.int64), W.indptr.astype(np.int64), W.shape)
    assert load_graph(save_graph(tmp_path / "graph.npz", A)).indices.dtype == np.int64


def test_nothing_is_pickled(tmp_path):
    np.savez(tmp_path / "bad.npz", data=np.array([{}], dtype=object), indices=[0], indptr=[0, 1])
    with pytest.raises(ValueError, match="not a saved graph"):
        load_graph(tmp_path / "bad.npz")


def test_bad_places_are_refused(tmp_path, W):
    for place in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(ValueError, match="is not a file"):
            load_graph(place)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a folder"):
        save_graph(tmp_path, W)
    with pytest.raises(ValueError, match="not a saved graph"):
        load_graph(tmp_path / "file")
    with pytest.raises(ValueError, match="square"):
        save_graph(tmp_path / "b.npz", np.zeros((2, 3)))
    with pytest.raises(ValueError, match="real"):
        save_graph(tmp_path / "b.npz", np.array([[1j]]))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("indices", np.array([99], dtype=np.int32)),
        ("indices", np.full(2, 50, dtype=np.int32)),
        ("indptr", np.zeros(3, dtype=np.int32)),
        ("data", np.zeros((2, 2))),
    ],
)
def test_damaged_parts_are_refused(tmp_path, part, value):
    path = save_graph(tmp_path / "graph.npz", np.array([[0.0, 1.0], [1.0, 0.0]]))
    with np.load(path) as stored:
        parts = dict(stored)
    np.savez(path, **{**parts, part: value})
    with pytest.raises(ValueError, match="are inconsistent"):
        load_graph(path)


def test_other_formats_are_refused(tmp_path, W):
    path = save_graph(tmp_path / "graph.npz", W)
    with np.load(path) as stored:
        parts = dict(stored)
    np.savez(path, **{**parts, "format": 2})
    with pytest.raises(ValueError, match="format 2, but only format 1"):
        load_graph(path)
