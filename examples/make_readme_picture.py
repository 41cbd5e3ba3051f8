"""Draw docs/_static/readme.png: ``python examples/make_readme_picture.py``.

Two moons classified from six labels, and the Gershgorin discs of their graph before and after
alignment.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import gdpa
from gdpa.plotting import GershgorinDisplay, GraphDisplay

TARGET = Path(__file__).resolve().parents[1] / "docs" / "_static" / "readme.png"


def draw(target: Path) -> Path:
    X, truth = gdpa.datasets.moons(220, noise=0.09, random_state=7)
    y = np.zeros(truth.size, dtype=int)
    for sign in (-1, 1):
        y[np.flatnonzero(truth == sign)[:3]] = sign
    model = gdpa.GraphClassifier(unlabeled=0).fit(X, y)
    right = (model.transduction_ == truth)[y == 0].mean()

    few = np.arange(0, truth.size, 8)
    W = gdpa.graph.neighbor_graph(X[few], 7)
    loops = np.random.default_rng(1).uniform(-0.6, 1.4, few.size)
    L = gdpa.graph.laplacian(W) + sp.diags_array(loops)

    figure, axes = plt.subplots(
        1, 2, figsize=(9.6, 3.9), width_ratios=[1.15, 1], layout="constrained"
    )
    GraphDisplay.from_estimator(model, X, ax=axes[0])
    axes[0].get_legend().remove()
    axes[0].set_title(f"One graph, 6 labels: {right:.0%} of 214 samples correct", fontsize=11)
    GershgorinDisplay.from_alignment(L, kind="intervals", ax=axes[1])
    axes[1].set(xlim=(-0.8, 3.2))
    axes[1].set_title("Gershgorin discs of a graph, before and after alignment", fontsize=11)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)
    plt.close(figure)
    return target


if __name__ == "__main__":
    print(draw(TARGET))
