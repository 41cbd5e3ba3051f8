"""
All methods side by side, with their bounds
===========================================

Every method returns labels, and most also return a lower bound of the objective of any labelling.
On a small problem the exact optimum is known, so we can compare both with it.
"""

# %%
# Use a problem on which the methods disagree: noisy moons with three labels each.
import warnings

import matplotlib.pyplot as plt
import numpy as np

import gdpa
from gdpa.errors import ConvergenceWarning

problem, truth = gdpa.datasets.make_moons_graph(
    60, n_labeled=6, n_neighbors=8, noise=0.2, random_state=3
)
optimum = gdpa.solve(problem, "min-cut").objective

rows = []
for method in gdpa.list_methods():
    if method.name == "modified-dual-interior-point":
        continue  # slow; the same value as modified-dual-admm
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = gdpa.solve(problem, method.name)
    error = (solution.labels != truth)[problem.unlabeled].mean()
    rows.append((method.name, solution, error))
    bound = f"{solution.lower_bound:10.2f}" if np.isfinite(solution.lower_bound) else "         -"
    print(
        f"{method.name:20s} error {error:5.1%}  objective {solution.objective:6.1f}  "
        f"bound {bound} ({solution.bound_status})"
    )

# %%
# Objectives are to the right of the optimum, bounds to the left. A small objective does not imply a
# small error: the minimum cut is exact, but it cuts off the few labels of one class.
figure, ax = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
place = np.arange(len(rows))
top = 1.15 * max(solution.objective for _, solution, _ in rows)
for i, (_, solution, _) in enumerate(rows):
    low = solution.lower_bound
    if low > 0:
        ax.plot([low, solution.objective], [i, i], color="#9AA3AB", linewidth=2, zorder=0)
        ax.plot(low, i, "|", color="#0072B2", markersize=12, markeredgewidth=2)
    ax.plot(solution.objective, i, "o", color="#D55E00")
ax.axvline(optimum, color="black", linewidth=1)
ax.set_yticks(place, [f"{name}  ({error:.0%} wrong)" for name, _, error in rows])
ax.invert_yaxis()
ax.set(xlim=(0, top), xlabel="bound (bar), optimum (line) and objective of the labels (dot)")
plt.show()
