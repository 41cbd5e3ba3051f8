"""
The general linearisation
=========================

:func:`gdpa.gershgorin.linearize` minimises a linear function of theta subject to
``A0 + sum theta_k A_k`` positive semi-definite, where the pattern is a balanced signed graph, by
linear programs alone. The paper's rule takes the first eigenvector of the current matrix as the
scaling of the next program; it can stall. The rule "dual" lets the multipliers of the program tell
which scalings are missing, and reaches the optimum.
"""

# %%
# What do the cheapest self-loops cost that make a matrix psd? A ring of 8 nodes with a chord, edges
# of both signs but balanced, and a price per node.
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
# Both end at a psd matrix; only the second says, with an equal bound, that it is the cheapest. The
# two choices of self-loops:
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for k, (rule, color) in enumerate((("eigenvector", "#D55E00"), ("dual", "#0072B2"))):
    ax.bar(np.arange(n) + 0.4 * (k - 0.5), results[rule].theta, 0.38, color=color, label=rule)
ax.set_xticks(np.arange(n), [f"{i}\nprice {p:.1f}" for i, p in enumerate(price)])
ax.set(ylabel="self-loop")
ax.legend(frameon=False)
plt.show()

# %%
# The discs of the optimum. As they are, they prove nothing; scaled by the first eigenvector, all
# left-ends are at zero, which proves that the matrix is psd.
A = A0 + np.diag(results["dual"].theta)
print("left-ends of A      ", discs(A).left_ends.round(2))
print("left-ends, aligned  ", discs(A, v=results["dual"].v).left_ends.round(6) + 0.0)
GershgorinDisplay.from_alignment(A)
plt.show()
