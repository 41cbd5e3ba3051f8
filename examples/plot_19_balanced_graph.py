"""
Learning and sampling a balanced graph of correlations
======================================================

Positive and negative correlations between variables form a signed graph. We learn a balanced graph
by one linear program per node, choose nodes to measure, and reconstruct new observations from the
measured nodes.
"""

# %%
# Create 30 variables in two groups, with positive links within groups and negative links between.
import matplotlib.pyplot as plt
import numpy as np

from gdpa.gershgorin import reconstruct, sample_nodes
from gdpa.graph import balance, learn_balanced_graph

rng = np.random.default_rng(0)
d = 30
group = np.repeat([1.0, -1.0], d // 2)
near = np.abs(np.subtract.outer(np.arange(d), np.arange(d))) % (d - 1) <= 2
W = near * rng.uniform(0.5, 1, (d, d)) * np.outer(group, group)
W = np.triu(W, 1) + np.triu(W, 1).T
L = np.diag(np.abs(W).sum(axis=1) + 0.05) - W
X = rng.multivariate_normal(np.zeros(d), np.linalg.inv(L), 300)

graph = learn_balanced_graph(X[:200])
found = balance(graph.adjacency)
print(f"balanced: {found.balanced}, edges: {graph.adjacency.nnz // 2} ({np.count_nonzero(W) // 2})")
print("groups recovered:", abs(int(graph.colors @ group)) == d)

# %%
# Compare the reconstruction from six nodes chosen by aligned discs with that from six random nodes.
chosen = sample_nodes(graph.adjacency, 6)
print(f"certified: smallest eigenvalue at least {chosen.bound:.4f}")


def error(nodes):
    signal = reconstruct(graph.adjacency, nodes, X[200:, nodes].T, weight=10.0)
    return np.sqrt(np.mean((signal - X[200:].T) ** 2))


random = [error(rng.choice(d, 6, replace=False)) for _ in range(50)]
print(f"error {error(chosen.nodes):.3f}, median with random nodes {np.median(random):.3f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
limit = abs(graph.adjacency).max()
left.imshow(graph.adjacency.toarray(), cmap="coolwarm", vmin=-limit, vmax=limit)
left.set_title("learned weights")
right.hist(random, bins=15, label="random nodes")
right.axvline(error(chosen.nodes), color="C3", label="aligned discs")
right.set_xlabel("reconstruction error")
right.legend()
fig.tight_layout()
