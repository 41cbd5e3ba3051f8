"""Perfect alignment: all left-ends at lambda_min, on every balanced graph."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gdpa.errors import ConvergenceWarning
from gdpa.gershgorin import align, discs

M = np.array([[2.0, -2, -1], [-2, 5, -2], [-1, -2, 4]])
seeds = st.integers(0, 2**32 - 1)


def balanced(seed: int, n: int, *, connected: bool = True, decades: float = 0.0) -> np.ndarray:
    """Generalised Laplacian of a random balanced signed graph with random self-loops."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.1, 1, (n, n)) * 10 ** (decades * rng.uniform(-1, 0, (n, n)))
    upper = np.triu(rng.random((n, n)) < rng.uniform(0.05, 0.6), 1) * size
    if connected:
        k = np.arange(n - 1)
        upper[k, k + 1] = size[k, k + 1]
    colors = rng.choice([-1, 1], n)
    W = (upper + upper.T) * np.outer(colors, colors)
    loops = rng.normal(size=n) * rng.choice([0.0, 0.1, 1.0])
    return np.diag(W.sum(axis=1) + loops) - W


def test_the_papers_example():
    a = align(M)
    assert round(a.lambda_min, 4) == 0.1078
    np.testing.assert_allclose(a.left_ends, np.linalg.eigvalsh(M)[0], rtol=0, atol=1e-12)
    printed = [[2, -1.30, -0.59], [-3.07, 5, -1.82], [-1.69, -2.20, 4]]
    np.testing.assert_allclose(a.transform(M).toarray().round(2), printed, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.diag(a.s) @ M @ np.diag(a.v), a.transform(M).toarray())
    assert a.colors.tolist() == [1, 1, 1]
    assert a.converged


@settings(max_examples=200)
@given(seeds, st.integers(1, 40))
def test_all_left_ends_equal_lambda_min(seed, n):
    A = balanced(seed, n)
    a = align(A)
    eigenvalues, vectors = np.linalg.eigh(A)
    assert a.converged
    assert np.abs(a.left_ends - eigenvalues[0]).max() <= 1e-9
    assert abs(a.lambda_min - eigenvalues[0]) <= 1e-9
    # The discs as anyone would compute them, and the eigenvector as LAPACK has it.
    assert np.abs(discs(A, v=a.v).left_ends - eigenvalues[0]).max() <= 1e-9
    assert abs(a.v @ vectors[:, 0]) == pytest.approx(1, abs=1e-8)


@settings(max_examples=50)
@given(seeds, st.integers(2, 30))
def test_small_entries_of_the_eigenvector_are_aligned_too(seed, n):
    # Weights over six decades: entries of v far below the accuracy of an eigensolver.
    A = balanced(seed, n, decades=6.0)
    assert np.abs(align(A).left_ends - np.linalg.eigvalsh(A)[0]).max() <= 1e-9


def test_an_eigensolver_alone_would_not_align():
    # A path with growing self-loops: entries of v fall like 1 / k!, below LAPACK's error.
    n = 18
    A = np.diag(np.arange(n) ** 2.0) - np.eye(n, k=1) - np.eye(n, k=-1)
    # LAPACK is accurate entry by entry on graded matrices; in another order it is not.
    order = np.random.default_rng(0).permutation(n)
    A = A[np.ix_(order, order)]
    eigenvalues, vectors = np.linalg.eigh(A)
    v = vectors[:, 0]
    raw = discs(A, v=np.where(v == 0, 1e-30, v)).left_ends
    assert np.abs(raw - eigenvalues[0]).max() > 1e-3
    assert np.abs(align(A).left_ends - eigenvalues[0]).max() <= 1e-9


@settings(max_examples=50)
@given(seeds, st.integers(1, 30))
def test_components_are_aligned_each_at_its_own_lambda_min(seed, n):
    A = balanced(seed, n, connected=False)
    a = align(A)
    for k, value in enumerate(a.component_lambda):
        nodes = a.components == k
        own = np.linalg.eigvalsh(A[np.ix_(nodes, nodes)])[0]
        assert abs(value - own) <= 1e-9
        assert np.abs(a.left_ends[nodes] - own).max() <= 1e-9
        assert np.linalg.norm(a.v[nodes]) == pytest.approx(1)
    assert a.lambda_min == a.component_lambda.min()


@given(seeds, st.integers(2, 20))
def test_colors_switch_every_off_diagonal_entry_to_minus(seed, n):
    A = balanced(seed, n)
    a = align(A)
    switched = A * np.outer(a.colors, a.colors)
    assert (switched - np.diag(np.diag(switched)) <= 0).all()
    assert (np.sign(a.v) == a.colors).all()


@given(seeds)
def test_left_ends_enclose_lambda_min_for_any_positive_vector(seed):
    # Collatz and Wielandt: why `spread` bounds the error.
    A = balanced(seed, 12)
    v = np.random.default_rng(seed).uniform(0.1, 1, 12)
    ends = discs(A, v=v).left_ends
    smallest = np.linalg.eigvalsh(A)[0]
    assert ends.min() <= smallest + 1e-12
    assert ends.max() >= smallest - 1e-12


def test_start_does_not_change_the_answer_and_a_good_one_ends_at_once():
    A = balanced(3, 25)
    cold = align(A)
    other = align(A, v=np.random.default_rng(0).uniform(0.1, 1, 25))
    np.testing.assert_allclose(other.v, cold.v, rtol=1e-8)
    assert align(A, v=cold.v).iterations == 0 < cold.iterations


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
def test_units_do_not_matter(scale):
    a = align(M * scale)
    np.testing.assert_allclose(a.left_ends / scale, align(M).lambda_min, rtol=1e-12)


def test_one_and_two_nodes():
    one = align([[-3.0]])
    assert (one.lambda_min, one.left_ends.tolist(), abs(one.v[0])) == (-3, [-3], 1)
    two = align([[1, 2], [2, 1]])
    assert two.lambda_min == pytest.approx(-1, abs=1e-12)
    assert two.colors.tolist() == [1, -1]
    assert align(np.zeros((2, 2))).left_ends.tolist() == [0, 0]


def test_repeated_smallest_eigenvalue_of_two_components():
    A = sp.block_diag([M, M]).tocsr()
    np.testing.assert_allclose(align(A).left_ends, align(M).lambda_min, atol=1e-12)


def test_large_sparse_graph():
    # A 90 x 90 grid with random colours: 8100 nodes, conjugate gradients first.
    line = sp.diags_array([np.ones(89), np.ones(89)], offsets=[-1, 1])
    rng = np.random.default_rng(0)
    colors = sp.diags_array(rng.choice([-1.0, 1.0], 8100))
    W = colors @ (sp.kron(line, sp.eye_array(90)) + sp.kron(sp.eye_array(90), line)) @ colors
    A = (sp.diags_array(abs(W).sum(axis=1) + rng.uniform(0, 1, 8100)) - W).tocsr()
    a = align(A)
    assert a.converged
    assert a.left_ends.max() - a.left_ends.min() <= 1e-9
    # The vector proves it: a positive (switched) eigenvector belongs to the smallest eigenvalue.
    assert np.linalg.norm(A @ a.v - a.lambda_min * a.v) <= 1e-9


def test_unbalanced_graph_is_refused_with_an_odd_cycle():
    A = np.array([[3.0, 1, -1, 0], [1, 3, -1, 0], [-1, -1, 3, -1], [0, 0, -1, 3]])
    with pytest.raises(ValueError, match="not balanced") as error:
        align(A)
    cycle = [int(node) for node in str(error.value).split("nodes ")[1].split(" has")[0].split("-")]
    assert cycle[0] == cycle[-1]
    signs = [-np.sign(A[i, j]) for i, j in pairwise(cycle)]
    assert np.prod(signs) == -1


def test_what_cannot_be_reached_is_said():
    # Entries of v would span far more than the range of floats.
    n = 60
    A = np.diag(10.0 ** np.linspace(0, 12, n)) - 1e-3 * (np.eye(n, k=1) + np.eye(n, k=-1))
    with pytest.warns(ConvergenceWarning, match="left-ends differ"):
        a = align(A)
    assert not a.converged
    assert np.isfinite(a.left_ends).all()
    assert a.left_ends.min() <= np.linalg.eigvalsh(A)[0] + 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"A": [[1, 2], [3, 1]]}, "symmetric"),
        ({"A": [[1, np.nan], [np.nan, 1]]}, "finite"),
        ({"A": np.zeros((0, 0))}, "at least one"),
        ({"A": M, "v": [1, 1]}, "v must have shape"),
        ({"A": M, "v": [1, 0, 1]}, r"v\[1\] is 0"),
        ({"A": M, "tol": 0}, "tol=0"),
        ({"A": M, "tol": np.nan}, "tol=nan"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        align(**options)


def test_transform_wants_the_matrix_that_was_aligned():
    with pytest.raises(ValueError, match="3 rows"):
        align(M).transform(np.eye(2))


@pytest.mark.parametrize("seed", range(10))
def test_certified_bound_is_below_the_eigenvalue_and_near_it(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    W = np.triu(rng.random((n, n)) < 0.4, 1) * rng.uniform(0.1, 1, (n, n))
    colors = rng.choice([-1, 1], n)
    A = np.diag(rng.normal(size=n)) - (W + W.T) * np.outer(colors, colors)
    a = align(A)
    size = np.abs(A).sum(axis=1).max()
    assert a.certified <= np.linalg.eigvalsh(A)[0] + 1e-15 * size
    assert a.certified >= a.lambda_min - 1e-11 * size
