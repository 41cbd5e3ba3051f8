"""
The paper in 30 minutes
=======================

This page walks through Gershgorin disc perfect alignment (GDPA) on a small data set, one step at
a time, with the functions of :mod:`gdpa.paper`. They follow the order and the notation of the
paper "Projection-free Graph-based Classifier Learning using Gershgorin Disc Perfect Alignment"
(Yang, Cheung and Zhai). You need linear algebra, and nothing else: each step computes something
small enough to print or to draw.
"""

# %%
# 1. A graph and a few labels
# ---------------------------
# Sixty points on two moons. Similar points are joined by edges with positive weights. Four points
# of each class have a label, +1 or -1. The other labels are unknown, written as 0.

import matplotlib.pyplot as plt
import numpy as np

import gdpa
from gdpa import paper

X, truth = gdpa.datasets.moons(60, noise=0.06, random_state=3)
W = gdpa.graph.neighbor_graph(X, n_neighbors=6).toarray()
rng = np.random.default_rng(3)
known = np.zeros(60, dtype=bool)
for label in (-1, 1):
    known[rng.choice(np.flatnonzero(truth == label), 4, replace=False)] = True
x_hat = np.where(known, truth, 0).astype(float)

figure, ax = plt.subplots(figsize=(5, 3.2))
for i, j in np.argwhere(np.triu(W) > 0):
    ax.plot(*X[[i, j]].T, color="0.8", linewidth=1, zorder=1)
ax.scatter(*X.T, c="0.5", s=15, zorder=2)
ax.scatter(*X[known].T, c=x_hat[known], cmap="coolwarm", s=70, edgecolor="black", zorder=3)
ax.set_title("similarity graph, eight labels")
ax.set_axis_off()

# %%
# 2. What is minimised
# --------------------
# A labelling x of +1 and -1 is smooth if neighbours agree. With the Laplacian L, the smoothness
# ``x' L x`` adds up ``w_ij (x_i - x_j)^2`` over all edges. The problem is to find the labelling
# with the smallest value that agrees with the known labels. Here we use the normalised Laplacian,
# so that every point has the same degree.

degree = W.sum(axis=1)
L = np.eye(60) - W / np.sqrt(np.outer(degree, degree))
print(f"smoothness of the true labels: {paper.glr(L, truth.astype(float)):.2f}")
print(f"smoothness of random labels:   {paper.glr(L, rng.choice([-1.0, 1.0], 60)):.2f}")

# %%
# 3. The dual, and one more node
# ------------------------------
# Trying all labellings is out of the question. The paper replaces the labels by a positive
# semidefinite matrix and takes the dual of this relaxation. Its variables are y, one number per
# node, and z, one number per label. Together with L they form a matrix H, which must be positive
# semidefinite. H is the Laplacian of a graph with one more node, the apex. Edges of weight -z_i
# join the apex with the labelled nodes: edges to nodes labelled +1 are positive, edges to nodes
# labelled -1 are negative.

y = np.append(known.astype(float), known.sum())
z = -x_hat[known]
H = paper.H_matrix(L, x_hat, y, z)
print(f"smallest eigenvalue of H: {paper.first_eigenvector(H)[0]:.4f}")

# %%
# 4. Balance the graph
# --------------------
# A graph with negative edges is balanced if its nodes have two colours such that positive edges
# join equal colours and negative edges join different ones. The graph of H is not balanced. The
# paper splits the apex into two nodes, one with the positive and one with the negative edges. The
# result, H_bar, is balanced: all original nodes and the first half have one colour, the second
# half has the other. If H_bar is positive semidefinite, so is H.

H_bar = paper.H_bar_matrix(L, x_hat, y, z)
print(f"H has {len(H)} rows, H_bar has {len(H_bar)}")
print(f"smallest eigenvalue of H_bar: {paper.first_eigenvector(H_bar)[0]:.4f}")

# %%
# 5. Discs
# --------
# Each row of a matrix defines a disc: its centre is the diagonal entry, its radius the sum of the
# absolute values of the other entries. By Gershgorin's theorem the smallest left end of all discs
# is a lower bound of the smallest eigenvalue. A linear program could require all left ends to be
# non-negative, but for H_bar this bound is poor: left ends are scattered. Now multiply row i by
# s_i and column i by 1 / s_i. This changes the discs and keeps the eigenvalues. With ``s_i = 1 /
# v_i``, v being the first eigenvector, all left ends move to the smallest eigenvalue itself. This
# is disc perfect alignment. It needs a balanced graph, where the colours give the signs of v.

colours = np.append(np.ones(61), -1.0)
s = paper.alignment(H_bar, guess=colours)
before = paper.disc_left_ends(H_bar)
after = paper.disc_left_ends(H_bar, s)

figure, ax = plt.subplots(figsize=(6, 3))
ax.plot(before, ".", label="left ends before")
ax.plot(after, ".", label="left ends after alignment")
ax.axhline(np.linalg.eigvalsh(H_bar)[0], color="black", linewidth=1, label="smallest eigenvalue")
ax.set_xlabel("row of H_bar")
ax.legend()
ax.set_title("discs of H_bar")

# %%
# 6. A linear program instead of a cone
# -------------------------------------
# For fixed s, the left ends are linear in y and z. So "H_bar is positive semidefinite" becomes 62
# linear inequalities, and the dual becomes a linear program. Its optimum gives new y and z, which
# give a new H_bar and a new s, and so on. The objective never increases, because the present
# point remains feasible.


def H_bar_of(y, z):
    """Return H_bar as a function of the dual variables."""
    return paper.H_bar_matrix(L, x_hat, y, z)


y_lp, z_lp = paper.lp(H_bar_of, x_hat, s)
print(f"objective: {paper.objective(x_hat, y, z):.4f} -> {paper.objective(x_hat, y_lp, z_lp):.4f}")
print(f"largest |z| after the linear program: {np.abs(z_lp).max():.4f}")

# %%
# All z are zero now. The linear program has **erased the labels**: with z = 0 no edge joins the
# apex with a label, and no rule can read the classes off this point. The reason is that the
# optimal value of this dual does not depend on the labels. Every label weight ``a >= 0`` gives an
# optimal point, and the solver took a = 0.
#
# 7. Read the labels off the first eigenvector
# --------------------------------------------
# So we choose the weight. The following point is optimal for every a. We take a large one, and
# read the labels off the signs of the first eigenvector of H, relative to its entry at the apex.

a = 100.0
row_sums = L @ np.ones(60)
y = np.append(a * known - row_sums, a * known.sum())
z = -a * x_hat[known]
H = paper.H_matrix(L, x_hat, y, z)
smallest, v = paper.first_eigenvector(H)
eigenvector_labels = np.sign(v[:-1] / v[-1])
wrong = (eigenvector_labels != truth)[~known]
print(f"first eigenvector: {wrong.sum()} of {wrong.size} unlabelled points are wrong")

# %%
# 8. When this works
# ------------------
# As a grows, the eigenvector solves ``(K_uu - lambda I) x_u = W_ul x_l``. Here u are the
# unlabelled and l the labelled nodes, K is L without its row sums, and lambda is the smallest
# eigenvalue of H. With lambda = 0 this would be the harmonic function, the average of the
# neighbours at every unlabelled node. The closer lambda comes to the smallest eigenvalue of K_uu,
# the more the nearly constant eigenvector of K_uu takes over, until all nodes have one class. One
# number tells how close it is:

K = L - np.diag(row_sums)
K_uu = K[np.ix_(~known, ~known)]
print(f"lambda / smallest eigenvalue of K_uu: {smallest / np.linalg.eigvalsh(K_uu)[0]:.2f}")

# %%
# It is close to 1 here, so the eigenvector is at risk. Complementary slackness at the same dual
# point gives the harmonic function instead (with a large label weight), without this risk.

slackness = np.linalg.solve(K_uu, -L[np.ix_(~known, known)] @ x_hat[known])
wrong = np.sign(slackness) != truth[~known]
print(f"complementary slackness: {wrong.sum()} of {wrong.size} unlabelled points are wrong")

figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
scores = {"first eigenvector": v[:-1] / v[-1], "slackness": np.where(known, x_hat, 0.0)}
scores["slackness"][~known] = slackness
for ax, (name, score) in zip(axes, scores.items(), strict=True):
    ax.scatter(*X.T, c=np.clip(score, -1, 1), cmap="coolwarm", vmin=-1, vmax=1, s=30)
    ax.set_title(name)
    ax.set_axis_off()

# %%
# 9. How good is a labelling?
# ---------------------------
# Any labelling can be compared with a bound that no labelling can beat. For a graph with
# non-negative weights the exact optimum is a minimum cut, which :func:`gdpa.certify` computes.

problem = gdpa.GraphProblem(W, x_hat.astype(int), laplacian="normalized")
print(gdpa.certify(problem, np.where(eigenvector_labels > 0, 1, -1)))
print(gdpa.certify(problem, truth))

# %%
# Where to go from here
# ---------------------
# ``gdpa.solve(problem, "gdpa")`` runs the same algorithm on sparse graphs, and ``docs/theory.md``
# proves what this page only shows. :class:`gdpa.GDPAClassifier` puts the steps together as a
# scikit-learn estimator.
