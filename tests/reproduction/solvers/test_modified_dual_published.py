"""The modified dual at the authors' tolerances."""

from __future__ import annotations

import numpy as np
import pytest

import gdpa
from reproduction.solvers import ModifiedDualPublished


def test_published_variant_is_the_vote_where_the_unlabelled_diagonal_is_above():
    pytest.importorskip("scs", reason="ADMM is SCS (extra sdp)")
    above = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(14, 2))
        W = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
        np.fill_diagonal(W, 0.0)
        labels = np.where(np.arange(14) < 6 + seed % 3, np.sign(X[:, 0]), 0).astype(int)
        labels[:2] = 1, -1
        problem = gdpa.GraphProblem(W, labels, laplacian="normalized")
        found = ModifiedDualPublished().solve(problem)
        vote = gdpa.solve(problem, "vote")
        assert found.bound_status == "none"
        if found.info["above"]:
            above += 1
            assert np.array_equal(found.labels, vote.labels)
    assert above > 0
