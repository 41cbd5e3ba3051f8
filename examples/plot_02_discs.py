"""
Gershgorin discs before and after alignment
===========================================

Every eigenvalue of a matrix lies in one of its Gershgorin discs. The smallest left end of the discs
is therefore a lower bound of the smallest eigenvalue, but usually a loose one. For the generalised
Laplacian of a *balanced* signed graph, a similarity transform moves all left ends exactly to the
smallest eigenvalue. The bound is then tight, and a positive semidefinite constraint becomes one
linear constraint per row.
"""

# %%
# The matrix in the paper's introduction is positive definite, but its discs reach below zero. After
# alignment all left ends coincide.
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from gdpa.datasets import moons
from gdpa.gershgorin import align, discs
from gdpa.graph import laplacian, neighbor_graph
from gdpa.plotting import GershgorinDisplay

A = np.array([[2, -2, -1], [-2, 5, -2], [-1, -2, 4]])
alignment = align(A)
print("eigenvalues     ", np.linalg.eigvalsh(A).round(4))
print("left ends before", discs(A).left_ends)
print("left ends after ", alignment.left_ends.round(4))
GershgorinDisplay.from_alignment(A, alignment)
plt.show()

# %%
# The same for the Laplacian of a graph of two moons, with random self-loops. Each line is a row,
# truncated on the right; the dots are the left ends.
X, _ = moons(60, noise=0.05, random_state=0)
W = neighbor_graph(X, 8)
loops = np.random.default_rng(0).uniform(-0.5, 1.0, 60)
L = laplacian(W) + sp.diags_array(loops)
aligned = align(L)
print(f"smallest eigenvalue     {aligned.lambda_min:.6f}")
print(f"bound of the discs of L {discs(L).lower_bound:.6f}")
print(f"largest difference of two aligned left ends {aligned.spread:.1e}")
display = GershgorinDisplay.from_alignment(L, aligned, kind="intervals", max_rows=30)
display.ax_.set_xlim(-0.8, 3.0)
plt.show()

# %%
# An unbalanced graph cannot be aligned. The error names a cycle with an odd number of negative
# edges.
try:
    align([[3, 1, -1], [1, 3, -1], [-1, -1, 3]])
except ValueError as error:
    print(error)
