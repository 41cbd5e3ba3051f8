"""
How linear programs can erase the labels
========================================

The paper replaces the dual of a semidefinite relaxation by a sequence of linear programs. On the
normalised Laplacian of its experiments, an exact LP solver ends at a point that does not depend on
the labels. The numbers that the authors published are in most runs those of a one-step vote. The
package has both as methods; neither is the default.
"""

# %%
# Use the paper's setting: a full graph with weights exp(-d^2), and half of the samples labelled.
import warnings

import matplotlib.pyplot as plt
import numpy as np

import gdpa
from gdpa.errors import DegenerateProblemWarning
from gdpa.plotting import GraphDisplay
from gdpa.problem.dual import dual_objective, optimal_point

n = 120
X, truth = gdpa.datasets.moons(n, noise=0.15, random_state=2)
labels = np.where(np.arange(n) < n // 2, truth, 0)
W = gdpa.graph.full_graph(gdpa.graph.rescale_minmax(X))
problem = gdpa.GraphProblem(W, labels, laplacian="normalized")

# %%
# Every label weight ``a`` gives an optimal point of the split dual with the same objective. So do
# other labels: the optimum does not depend on them (fact 1 of :doc:`/theory`).
flipped = problem.with_labels(-labels)
for a in (0.0, 1.0, 100.0):
    print(
        f"a = {a:5.0f}: dual objective {dual_objective(problem, optimal_point(problem, a)):+.3e}, "
        f"all labels flipped {dual_objective(flipped, optimal_point(flipped, a)):+.3e}"
    )

# %%
# On this Laplacian ``a = 0`` is the only optimum of the linear program, which multiplies the labels
# by zero (method "gdpa"). An interior-point solver stops near it. With the Laplacian scaled by
# 1e-15, as in the authors' program, the first eigenvector is a vote of the labelled neighbours
# (method "gdpa-published"). The default is the harmonic function, which spreads labels along the
# graph. That does not help on a full graph, so the last figure uses 8 nearest neighbours.
neighbors = gdpa.GraphProblem(gdpa.graph.neighbor_graph(X, 8), labels, laplacian="normalized")
with warnings.catch_warnings():
    # The warning reports the effect that this example shows.
    warnings.simplefilter("ignore", DegenerateProblemWarning)
    runs = {
        "as written": gdpa.solve(problem, "gdpa"),
        "as published": gdpa.solve(problem, "gdpa-published"),
        "one-step vote": gdpa.solve(problem, "vote"),
        "default": gdpa.solve(problem),
        "default, 8 neighbours": gdpa.solve(neighbors),
    }
unlabeled = problem.unlabeled
same = (runs["as published"].labels == runs["one-step vote"].labels).mean()
print(f"nodes on which 'published' and the vote agree: {same:.0%}")
figure, axes = plt.subplots(2, 2, figsize=(7.6, 5.4), layout="constrained")
shown = iter(axes.flat)
for name, solution in runs.items():
    error = (solution.labels != truth)[unlabeled].mean()
    z = getattr(solution.dual, "z", None)
    weight = "-" if z is None else f"{np.abs(z).max():.2g}"
    print(f"{name:22s} error {error:6.1%}, largest label weight in the dual point {weight}")
    if name != "one-step vote":
        graph = neighbors if "neighbours" in name else problem
        ax = next(shown)
        GraphDisplay.from_solution(graph, solution, X, max_edges=600, ax=ax)
        ax.set_title(f"{name}: {error:.0%} wrong")
plt.show()
