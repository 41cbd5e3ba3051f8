"""
Subsampling a 3-D point cloud
=============================

We choose 60 of 600 points on a surface, so that a signal, here the height, can be reconstructed
from them. Aligned discs choose the points with a certified bound for the worst case.
"""

# %%
# Choose 60 points on the neighbour graph of a torus.
import matplotlib.pyplot as plt
import numpy as np

from gdpa.gershgorin import reconstruct, sample_nodes
from gdpa.graph import neighbor_graph

rng = np.random.default_rng(0)
a, b = rng.uniform(0, 2 * np.pi, (2, 600))
P = np.column_stack([(2 + np.cos(b)) * np.cos(a), (2 + np.cos(b)) * np.sin(a), np.sin(b)])
W = neighbor_graph(P, n_neighbors=10)
kept = sample_nodes(W, 60)
print(f"smallest eigenvalue of L + diag(samples) at least {kept.bound:.4f}")

# %%
# Reconstruct the height from these points, and from random points.


def error(nodes):
    height = reconstruct(W, nodes, P[nodes, 2], weight=10.0)
    return np.sqrt(np.mean((height - P[:, 2]) ** 2))


random = [error(rng.choice(600, 60, replace=False)) for _ in range(20)]
print(f"error {error(kept.nodes):.4f}, median with random points {np.median(random):.4f}")

fig = plt.figure(figsize=(6, 5))
axes = fig.add_subplot(projection="3d")
axes.scatter(*P.T, s=4, alpha=0.3)
axes.scatter(*P[kept.nodes].T, s=40, color="C3")
axes.set_box_aspect((3, 3, 1))
axes.set_title("60 of 600 points")
