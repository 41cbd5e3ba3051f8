"""The warm start of the first eigenvector, on a graph that its weights hardly hold together."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gdpa
from reproduction.experiments import warm_start


@pytest.mark.parametrize("weight", [1.0, 1e-300])
def test_weights_next_to_nothing_between_groups(monkeypatch, weight):
    # Min-max columns of a table with 2,000 of them: weights between groups underflow, the first
    # eigenvector lives on one of them and is 0 elsewhere.
    group = np.repeat([0, 1, 2], [4, 5, 3])
    W = np.where(group[:, None] == group, 1.0, weight)
    np.fill_diagonal(W, 0.0)
    labels = np.zeros(12, dtype=int)
    labels[[0, 11]] = 1, -1
    problem = gdpa.GraphProblem(W, labels, laplacian="combinatorial")
    run = SimpleNamespace(problem=lambda: problem, y=labels)
    monkeypatch.setattr(warm_start, "one_run", lambda *_: run)
    params = {"dataset": "", "rescaling": "min-max", "fold": 0, "split": 1}
    with np.errstate(divide="raise", invalid="raise"):
        found = warm_start.WarmStart().compute(params, lambda: None)
    assert found["size"] == 12
    assert 0 <= found["warm"] <= found["cold"]
