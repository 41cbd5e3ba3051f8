"""Each row of a product depends on the same row of the first factor only."""

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.linalg.row_products import row_products, row_squares


def check_batches(predict, n_rows, seed=0):
    """Compare predictions of single rows, small batches and permuted rows with those of all."""
    rng = np.random.default_rng(seed)
    whole = predict(np.arange(n_rows))
    for row in range(0, n_rows, 3):
        np.testing.assert_array_equal(predict(np.array([row])), whole[[row]])
    for size in (2, 7, 33):
        for start in range(0, n_rows, 3 * size):
            rows = np.arange(start, min(start + size, n_rows))
            np.testing.assert_array_equal(predict(rows), whole[rows])
    for _ in range(3):
        order = rng.permutation(n_rows)
        np.testing.assert_array_equal(predict(order), whole[order])
    several = np.tile(np.arange(n_rows), 3)
    np.testing.assert_array_equal(predict(several), whole[several])


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("d", "k"), [(1, 1), (3, 1), (7, 2), (64, 10), (257, 33), (1000, 1), (400, 400), (30, 5000)]
)
def test_rows_of_a_product_do_not_depend_on_other_rows(kind, d, k):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((37, d)).astype(kind)
    B = rng.standard_normal((d, k)).astype(kind)
    whole = row_products(X, B)
    np.testing.assert_allclose(whole, X @ B, rtol=1e-3, atol=1e-3 if kind == np.float32 else 1e-12)
    check_batches(lambda rows: row_products(X[rows], B), X.shape[0])
    check_batches(lambda rows: row_products(np.asfortranarray(X[rows]), B), X.shape[0])
    check_batches(lambda rows: row_squares(np.asfortranarray(X[rows])), X.shape[0])
    np.testing.assert_array_equal(row_products(X, np.asfortranarray(B)), whole)
    np.testing.assert_allclose(
        row_products(sp.csr_array(X), B), whole, rtol=1e-3, atol=1e-3 if d > 300 else 1e-4
    )
