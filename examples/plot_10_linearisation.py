"""
The general linearisation
=========================

:func:`gdpa.gershgorin.linearize` minimises a linear function of theta such that ``A0 + sum theta_k
A_k`` is positive semidefinite, by linear programs alone. The sparsity pattern must be a balanced
signed graph. The paper's rule uses the first eigenvector of the current matrix as the scaling of
the next program; it can stall. The rule "dual" finds missing scalings from the dual multipliers of
the program, and reaches the optimum.
"""

# %%
# Find the cheapest self-loops that make a matrix positive semidefinite (psd). The graph is a ring
# of 8 nodes with a chord; its signs are balanced, and each node has a price.
import matplotlib.pyplot as plt
import numpy as np

from gdpa.gershgorin import discs, linearize
from gdpa.plotting import GershgorinDisplay

n = 8
rng = np.random.default_rng(0)
side = np.where(np.arange(n) < 4, 1, -1)  # balanced: edges between the sides are negative
A0 = np.zeros((n, n))
for i, j in [(i, (i + 1) % n) for i in range(n)] + [(0, 4)]:
    A0[i, j] = A0[j, i] = -side[i] * side[j] * rng.uniform(0.5, 2.0)
price = rng.uniform(1.0, 10.0, n)
loops = [np.diag(row) for row in np.eye(n)]

results = {
    rule: linearize(price, A0, loops, bounds=(0, None), update=rule)
    for rule in ("eigenvector", "dual")
}
for rule, result in results.items():
    print(
        f"{rule:12s} cost {result.objective:9.4f}, at least {result.lower_bound:9.4f}; "
        f"smallest eigenvalue {result.lambda_min:+.0e} after {result.iterations} linear programs"
    )

# %%
# Both rules end at a psd matrix. Only the bound of the second equals the cost, which proves that it
# is optimal. Draw the two choices of self-loops:
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for k, (rule, color) in enumerate((("eigenvector", "#D55E00"), ("dual", "#0072B2"))):
    ax.bar(np.arange(n) + 0.4 * (k - 0.5), results[rule].theta, 0.38, color=color, label=rule)
ax.set_xticks(np.arange(n), [f"{i}\nprice {p:.1f}" for i, p in enumerate(price)])
ax.set(ylabel="self-loop")
ax.legend(frameon=False)
plt.show()

# %%
# Draw the discs of the optimum. Without scaling they prove nothing. Scaled by the first
# eigenvector, all left ends are at zero, which proves that the matrix is psd.
A = A0 + np.diag(results["dual"].theta)
print("left ends of A      ", discs(A).left_ends.round(2))
print("left ends, aligned  ", discs(A, v=results["dual"].v).left_ends.round(6) + 0.0)
GershgorinDisplay.from_alignment(A)
plt.show()
