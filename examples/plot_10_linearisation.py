"""
The general linearisation
=========================

:func:`gdpa.gershgorin.linearize` minimises a linear function of theta subject to
``A0 + sum theta_k A_k`` being positive semi-definite (psd), where the off-diagonal entries form a
balanced signed graph. It solves only linear programs. The paper's rule, "eigenvector", scales the
next program by the first eigenvector of the current matrix. It can stall. The rule "dual" derives
the missing scalings from the multipliers of the program and reaches the optimum.
"""

# %%
# What is the lowest cost of self-loops that make a matrix psd? The graph is a ring of 8 nodes with
# a chord. It is balanced, with edges of both signs, and self-loops have a price at each node.
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
        f"{rule:12s} cost {result.objective:9.4f}, lower bound {result.lower_bound:9.4f}; "
        f"smallest eigenvalue {result.lambda_min:+.0e} after {result.iterations} linear programs"
    )

# %%
# Both rules return a psd matrix. Only for "dual" does the lower bound equal the cost, which proves
# that the solution is optimal. The figure compares the self-loops.
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for k, (rule, color) in enumerate((("eigenvector", "#D55E00"), ("dual", "#0072B2"))):
    ax.bar(np.arange(n) + 0.4 * (k - 0.5), results[rule].theta, 0.38, color=color, label=rule)
ax.set_xticks(np.arange(n), [f"{i}\nprice {p:.1f}" for i, p in enumerate(price)])
ax.set(ylabel="self-loop")
ax.legend(frameon=False)
plt.show()

# %%
# The original discs of the optimal matrix prove nothing, because some left-ends are negative.
# Scaled by the first eigenvector, all left-ends are zero, which proves that the matrix is psd.
A = A0 + np.diag(results["dual"].theta)
print("left-ends of A      ", discs(A).left_ends.round(2))
print("aligned left-ends   ", discs(A, v=results["dual"].v).left_ends.round(6) + 0.0)
GershgorinDisplay.from_alignment(A)
plt.show()
