"""What the tests of displays share."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import gdpa

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def moons():
    X, y = gdpa.datasets.moons(80, noise=0.08, random_state=3)
    known = np.concatenate([np.flatnonzero(y == s)[:8] for s in (-1, 1)])
    labels = np.full(80, -1)
    labels[known] = y[known] > 0
    return X, labels, gdpa.GraphClassifier().fit(X, labels)
