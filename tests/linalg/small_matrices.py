"""Small examples for the tests of this folder."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def laplacian(n: int, shift: float, seed: int = 0, density: float = 0.2) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    W = np.triu((rng.random((n, n)) < density) * rng.uniform(0.5, 1.5, (n, n)), 1)
    W = W + W.T
    return sp.csr_array(np.diag(W.sum(axis=1) + shift) - W)


def path(n: int) -> sp.csr_array:
    return sp.csr_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))


def as_matrix(M, n: int) -> np.ndarray:
    return np.column_stack([M(column) for column in np.eye(n)])
