"""Draw docs/_static/readme.png: ``python examples/make_readme_picture.py``.

The paper's pipeline on two moons: features, similarity graph, balanced graph, aligned discs, labels
and bound.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from PIL import Image

import gdpa
from gdpa.plotting import GershgorinDisplay
from gdpa.problem.dual import build_H_bar, paper_start

TARGET = Path(__file__).resolve().parents[1] / "docs" / "_static" / "readme.png"
COLORS = {1: "#0072B2", -1: "#E69F00", 0: "#9aa5ad"}
TITLES = (
    "1  features, some labels",
    "2  similarity graph",
    "3  balanced graph, label node split",
    "4  discs of H_bar, aligned",
)


def draw_graph(ax, X, W, labels):
    """Draw edges, then nodes in the colours of their labels."""
    i, j = W.nonzero()
    ax.add_collection(LineCollection(X[np.column_stack([i, j])], colors="#d5dadd", linewidths=0.7))
    for label, color in COLORS.items():
        ax.scatter(*X[labels == label].T, s=18, color=color, zorder=2)


def draw(target: Path) -> Path:
    """Draw the picture and return its path."""
    X, truth = gdpa.datasets.moons(140, noise=0.08, random_state=7)
    known = np.random.default_rng(2).random(truth.size) < 0.3
    y = np.where(known, truth, 0)
    model = gdpa.GDPAClassifier(unlabeled=0, n_neighbors=8).fit(X, y)
    W = model.graph_
    problem = gdpa.GraphProblem(W, y, laplacian="normalized")
    H_bar = build_H_bar(problem, paper_start(problem))

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    panels = axes.ravel()
    draw_graph(panels[0], X, 0 * W, y)
    draw_graph(panels[1], X, W, y)
    draw_graph(panels[2], X, W, y)
    top = X[:, 1].max() + 0.9
    halves = {1: (X[:, 0].min() + 0.6, top), -1: (X[:, 0].max() - 0.6, top)}
    for label, place in halves.items():
        for node in X[y == label]:
            style = "-" if label > 0 else "--"
            ends = np.array([place, node]).T
            panels[2].plot(*ends, style, color=COLORS[label], linewidth=0.6, zorder=1)
        panels[2].scatter(*place, s=110, color="white", edgecolor="black", zorder=3)
        panels[2].annotate(
            "N+1" if label > 0 else "N+2", place, (9, -4), textcoords="offset points"
        )
    GershgorinDisplay.from_alignment(H_bar, kind="intervals", max_rows=40, ax=panels[3])
    panels[3].get_legend().remove()
    panels[3].set(xlim=(-0.3, 2.2), yticks=[], xlabel="orange: left ends before, blue: after")
    panels[3].spines[["top", "right", "left"]].set_visible(False)
    draw_graph(panels[4], X, W, model.transduction_)
    right = (model.transduction_ == truth)[~known].mean()
    used = "first eigenvector" if model.recovery_ == "eigenvector" else "slackness"
    solution = model.solution_
    optimum = gdpa.solve(problem, "min-cut").objective
    bars = {
        "bound proved by discs": solution.lower_bound,
        "exact optimum": optimum,
        "these labels": solution.objective,
    }
    panels[5].barh(list(bars), list(bars.values()), color=["#6b757d", "#6b757d", "#0072B2"])
    for row, (name, value) in enumerate(bars.items()):
        panels[5].text(0, row, f"  {name}: {value:.2f}", va="center", color="white", weight="bold")
    panels[5].set(yticks=[], xlabel="disagreement of neighbours, x'Lx")
    panels[5].spines[["top", "right", "left"]].set_visible(False)
    titles = (*TITLES, f"5  labels by {used}: {right:.0%} correct", "6  objective and bound")
    for ax, title in zip(panels, titles, strict=True):
        ax.set_title(title, fontsize=11, loc="left")
    for ax in panels[[0, 1, 2, 4]]:
        ax.set_axis_off()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=100)
    plt.close(figure)
    Image.open(target).convert("RGB").quantize(64).save(
        target, optimize=True
    )  # a third of the size
    return target


if __name__ == "__main__":
    print(draw(TARGET))
