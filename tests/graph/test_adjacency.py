"""What an adjacency must be, and what becomes of it at the door."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.graph.adjacency import check_adjacency, component_labels, csr_from_parts, degrees

TRIANGLE = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])


@pytest.mark.parametrize(
    "kind", [np.asarray, list, sp.csr_array, sp.csc_matrix, sp.coo_array, np.asfortranarray]
)
def test_every_container_gives_the_same_canonical_matrix(kind):
    W = check_adjacency(kind(TRIANGLE))
    assert isinstance(W, sp.csr_array)
    assert W.dtype == np.float64
    assert W.has_sorted_indices
    assert np.array_equal(W.toarray(), TRIANGLE)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.float32])
def test_every_real_type_is_taken(dtype):
    W = check_adjacency(np.array([[0, 1], [1, 0]], dtype=dtype))
    assert np.array_equal(W.toarray(), [[0, 1], [1, 0]])


def test_diagonal_is_dropped_unless_kept():
    A = TRIANGLE + 5 * np.eye(3)
    assert np.array_equal(check_adjacency(A).toarray(), TRIANGLE)
    assert np.array_equal(check_adjacency(A, keep_diagonal=True).toarray(), A)


@pytest.mark.parametrize("make", [np.array, sp.csr_array, sp.coo_array])
def test_input_is_not_modified(make):
    A = make(TRIANGLE + np.eye(3))
    before = A.copy()
    W = check_adjacency(A)
    W.data[:] = -7.0
    assert (abs(A - before)).max() == 0
    assert A.shape == before.shape


def test_explicit_zeros_and_duplicates_are_merged():
    rows, columns = [0, 0, 1, 1, 0, 2], [1, 1, 0, 0, 2, 0]
    A = sp.coo_array(([1.0, 2.0, 1.0, 2.0, 0.0, 0.0], (rows, columns)), shape=(3, 3))
    W = check_adjacency(A)
    assert W.nnz == 2
    assert W[0, 1] == W[1, 0] == 3.0


def test_rounding_asymmetry_is_averaged_away():
    A = TRIANGLE.copy()
    A[0, 1] *= 1 + 1e-14
    W = check_adjacency(A)
    assert (W - W.T).nnz == 0


@pytest.mark.parametrize("signed", [False, True])
def test_asymmetric_is_refused_with_the_place(signed):
    A = TRIANGLE.copy()
    A[0, 2] = 2.5
    with pytest.raises(ValueError, match=r"symmetric.*W\[(0, 2|2, 0)\]"):
        check_adjacency(A, signed=signed)


def test_asymmetric_pattern_is_refused():
    with pytest.raises(ValueError, match="symmetric"):
        check_adjacency(sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]])))


def test_a_frame_with_rows_and_columns_in_different_orders_is_refused():
    pandas = pytest.importorskip("pandas")
    # This one would be symmetric: nothing else tells that it is another graph.
    frame = pandas.DataFrame(np.ones((3, 3)), index=["a", "b", "c"], columns=["c", "a", "b"])
    with pytest.raises(ValueError, match="same names in different orders"):
        check_adjacency(frame)
    assert check_adjacency(frame[frame.index]).nnz == 6


def test_numbers_that_no_float_can_hold_are_refused():
    with pytest.raises(ValueError, match="W must be a real matrix"):
        check_adjacency(np.array([[0, 10**400], [10**400, 0]], dtype=object))


def test_negative_is_refused_with_the_place_and_taken_when_signed():
    A = TRIANGLE.copy()
    A[1, 2] = A[2, 1] = -3.0
    with pytest.raises(ValueError, match=r"W\[1, 2\] is -3.*negative"):
        check_adjacency(A)
    assert check_adjacency(A, signed=True)[2, 1] == -3.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_not_finite_is_refused_with_the_place(value, make):
    A = TRIANGLE.copy()
    A[0, 1] = A[1, 0] = value
    with pytest.raises(ValueError, match=r"W\[0, 1\].*finite"):
        check_adjacency(make(A))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((2, 3)), "square"),
        (sp.csr_array((2, 3)), "square"),
        (np.zeros(4), "square"),
        (np.zeros((2, 2, 2)), "square"),
        (3.0, "square"),
        (np.zeros((0, 0)), "no nodes"),
        (sp.csr_array((0, 0)), "no nodes"),
        (np.array([[0, 1j], [1j, 0]]), "real"),
        (sp.csr_array(np.array([[0, 1j], [1j, 0]])), "real|complex"),
        ([["a", "b"], ["c", "d"]], "real"),
        (None, "real|square|finite"),
    ],
)
def test_wrong_shapes_and_types_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        check_adjacency(bad)


def test_message_names_the_argument():
    with pytest.raises(ValueError, match=r"^P must be square"):
        check_adjacency(np.zeros((1, 2)), name="P")


@pytest.mark.parametrize("n", [1, 2])
def test_isolated_nodes_are_fine(n):
    W = check_adjacency(np.zeros((n, n)))
    assert W.shape == (n, n)
    assert W.nnz == 0
    assert np.array_equal(degrees(W), np.zeros(n))


@pytest.mark.parametrize("weight", [1e-300, 5e-324, 1e300])
def test_extreme_weights_survive(weight):
    A = np.array([[0, weight, 1.0], [weight, 0, 0], [1.0, 0, 0]])
    W = check_adjacency(A)
    assert np.array_equal(W.toarray(), A)
    assert degrees(W)[1] == weight


def test_components():
    A = sp.block_diag([TRIANGLE, np.zeros((1, 1)), TRIANGLE])
    count, component = component_labels(check_adjacency(A))
    assert count == 3
    assert component.tolist() == [0, 0, 0, 1, 2, 2, 2]


@pytest.mark.parametrize("edges", [0, 10, 25, 60, 200])
@pytest.mark.parametrize("n", [1, 30])
def test_components_are_those_of_scipy(n, edges):
    rng = np.random.default_rng(edges)
    A = np.zeros((n, n))
    A[rng.integers(0, n, edges), rng.integers(0, n, edges)] = 1.0
    A = np.triu(A, 1)
    W = check_adjacency(A + A.T)
    count, component = component_labels(W)
    expected, other = sp.csgraph.connected_components(W, directed=False)
    assert count == expected
    assert np.array_equal(component[:, None] == component, other[:, None] == other)


def test_parts_keep_their_index_type():
    indices = np.array([1, 0], dtype=np.int64)
    W = csr_from_parts(np.ones(2), indices, np.array([0, 1, 2], dtype=np.int64), (2, 2))
    assert W.indices is indices
    assert W.indptr.dtype == np.int64
    assert np.array_equal((W @ W).toarray(), np.eye(2))
