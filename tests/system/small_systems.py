"""Small examples for the tests of this folder."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from gdpa.system import LabeledSystem


def graph(n: int, seed: int = 0, density: float = 0.2) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    W = np.triu((rng.random((n, n)) < density) * rng.uniform(0.5, 1.5, (n, n)), 1)
    W += np.diag(np.full(n - 1, 0.3), 1)  # connected
    return sp.csr_array(W + W.T)


def ring(n: int, weight: float = 0.5) -> sp.csr_array:
    """All nodes have degree ``2 * weight``."""
    offsets = [-1, 1, n - 1, 1 - n]
    return sp.csr_array(sp.diags_array([weight] * 4, offsets=offsets, shape=(n, n)))


def system(n: int = 40, m: int = 5, columns: int = 2, seed: int = 0, **options) -> LabeledSystem:
    rng = np.random.default_rng(seed)
    W = graph(n, seed)
    nodes = np.sort(rng.permutation(n)[:m])
    targets = rng.standard_normal((m, columns))
    return LabeledSystem(W, np.asarray(W.sum(axis=1)), nodes, targets, **options)


def dense(given: LabeledSystem) -> np.ndarray:
    """Solve the definition with all rows."""
    n, nodes = given.diagonal.size, given.labeled
    h = given.evidence
    e = given.evidence_weight
    if e is None:
        e = 0.0 if h is None else np.abs(h).reshape(n, -1).sum(axis=1)
    K = np.diag(given.diagonal + given.self_loop + e) - given.adjacency.toarray()
    b = np.zeros((n, given.targets.shape[1])) if h is None else h.reshape(n, -1).copy()
    if np.isinf(given.label_weight).all():
        K[nodes] = np.eye(n)[nodes]
        b[nodes] = given.targets
    else:
        K[nodes, nodes] += given.label_weight
        b[nodes] += np.reshape(given.label_weight, (-1, 1)) * given.targets
    return np.linalg.solve(K, b)
