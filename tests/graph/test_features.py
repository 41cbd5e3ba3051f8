"""How features are stored."""

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.graph.features import stored_by_density


@pytest.mark.parametrize(
    ("columns", "filled", "sparse"),
    [(500, 50, True), (200, 28, True), (784, 150, False), (99, 1, False)],
)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_words_are_sparse_and_pictures_are_not(columns, filled, sparse, container):
    row = np.where(np.arange(columns) < filled, 1.0, 0.0)
    X = np.array([np.roll(row, i) for i in range(20)])
    found = stored_by_density(container(X))
    assert sp.issparse(found) is sparse
    np.testing.assert_array_equal(found.toarray() if sparse else found, X)
