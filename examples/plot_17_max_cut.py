"""
Maximum cut: a good solution and a proved bound
===============================================

In a spin glass on a torus, each coupling of a square grid prefers equal or different neighbours, at
random. Not all couplings can be satisfied. Local search finds a state, the semidefinite relaxation
bounds the energy of any state, and triangle inequalities tighten the bound.
"""

# %%
# Create couplings of +1 and -1 on an 8 x 8 grid, and compute two bounds.
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import gdpa

side = 8
rng = np.random.default_rng(0)
node = np.arange(side**2).reshape(side, side)
pairs = [(node, np.roll(node, -1, axis)) for axis in (0, 1)]
i, j = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
J = sp.coo_array((rng.choice([-1.0, 1.0], i.size), (i, j)), shape=(side**2, side**2))
problem = gdpa.BinaryQuadratic.ising(None, J + J.T)

bounds = {}
for bound in ("sdr", "triangle"):
    solution = gdpa.solve(problem, "search", bound=bound)
    bounds[bound] = solution.bound
    print(
        f"{bound:8s} energy {solution.value:g}, bound {solution.bound:.2f}, {solution.bound_kind}"
    )

# %%
# Draw the state with its unsatisfied couplings, and the energies.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=(1, 1))
state = solution.labels.reshape(side, side)
left.imshow(state, cmap="coolwarm", alpha=0.6)
broken = solution.labels[i] * solution.labels[j] * J.data > 0
for a, b in zip(i[broken], j[broken], strict=True):
    (r, c), (s, d) = divmod(a, side), divmod(b, side)
    if abs(r - s) + abs(c - d) == 1:  # does not wrap around
        left.plot([c, d], [r, s], color="black", linewidth=2)
left.set_title("state and unsatisfied couplings", fontsize=10)
left.set_axis_off()
names = ["all couplings\nsatisfied", "semidefinite\nbound", "with\ntriangles", "energy\nfound"]
values = [-float(i.size), bounds["sdr"], bounds["triangle"], solution.value]
right.barh(names, values, color=["#bbbbbb", "#8da0cb", "#4c72b0", "#c44e52"])
right.invert_yaxis()
right.set_xlabel("energy")
fig.tight_layout()
plt.show()
