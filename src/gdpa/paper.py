r"""The paper in one file: dense NumPy, in the order and the notation of the text.

Yang, Cheung, Zhai, "Projection-free Graph-based Classifier Learning using Gershgorin Disc Perfect
Alignment" (arXiv 2106.01642). Every function names the section and the \label of what it computes.
It is written to be read beside the paper, not to be fast: ``gdpa.solve(problem, "gdpa")`` does the
same on sparse graphs, and ``docs/theory.md`` says what comes of it. Known labels `x_hat` are +1 or
-1, and 0 where a label is unknown; they may stand anywhere, not only on the first M nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]


# --- sec:prelim --------------------------------------------------------------------------------


def laplacian(W: Array) -> Array:
    """Generalised Laplacian D - W + diag(W): a self-loop u_i = W_ii stays on the diagonal."""
    return np.asarray(np.diag(W.sum(axis=1)) - W + np.diag(np.diag(W)))


def glr(L: Array, x: Array) -> float:
    """eq:glr: smoothness x'Lx of a signal, the sum of w_ij (x_i - x_j)^2 and u_i x_i^2."""
    return float(x @ L @ x)


def disc_left_ends(A: Array, s: Array | None = None) -> Array:
    """eq:GCT_bound: centre minus radius of the discs of S A S^-1, S = diag(s).

    The smallest of them is a lower bound of the smallest eigenvalue of A, whatever s is.
    """
    s = np.ones(len(A)) if s is None else s
    scaled = np.abs(s[:, None] * A / s[None, :])
    return np.asarray(np.diag(A) - (scaled.sum(axis=1) - np.diag(scaled)))


def first_eigenvector(A: Array, guess: Array | None = None) -> tuple[float, Array]:
    """Smallest eigenvalue and its vector; of several vectors the one nearest to `guess`.

    A dense stand-in for LOBPCG with warm start (ssec:linearization).
    """
    values, vectors = np.linalg.eigh(A)
    first = vectors[:, values <= values[0] + 1e-9 * np.abs(values).max()]
    several = guess is not None and first.shape[1] > 1
    v = first @ (first.T @ guess) if several else first[:, 0]
    return float(values[0]), v / np.linalg.norm(v)


def alignment(A: Array, guess: Array | None = None) -> Array:
    """Scalars s_i = 1 / v_i: with them all left-ends of a balanced A stand at lambda_min(A).

    An entry that vanishes (a node without edges) may be scaled by anything.
    """
    _, v = first_eigenvector(A, guess)
    return 1.0 / np.copysign(np.maximum(np.abs(v), 1e-10), v)


# eq:GCT_linConst replaces "A psd" by N linear constraints, one left-end each: `lp` below.


# --- sec:formulate, subsec:SDP_primal ----------------------------------------------------------


def binary_classification(L: Array, x_hat: Array) -> tuple[float, Array]:
    """eq:binaryClass: the smoothest signs that agree with the known labels, by trying them all."""
    unknown = np.flatnonzero(x_hat == 0)
    best, best_x = np.inf, x_hat
    for signs in product([-1.0, 1.0], repeat=len(unknown)):
        x = x_hat.astype(float)
        x[unknown] = signs
        if glr(L, x) < best:
            best, best_x = glr(L, x), x
    return best, best_x


def M_matrix(x: Array) -> Array:
    """M = [X x; x' 1] with X = xx', which eq:primal relaxes to: M psd with X_ii = 1."""
    return np.outer(np.append(x, 1.0), np.append(x, 1.0))


def primal_objective(L: Array, M: Array) -> float:
    """eq:primal: Tr(L X)."""
    return float(np.trace(L @ M[:-1, :-1]))


# --- subsec:SDP_dual ---------------------------------------------------------------------------


def A_matrix(i: int, n: int) -> Array:
    """eq:AB: the constraint X_ii = 1."""
    A = np.zeros((n, n))
    A[i, i] = 1.0
    return A


def B_matrix(i: int, n: int, last: int) -> Array:
    """eq:AB: the constraint x_i = x_hat_i, an edge between node i and node `last`."""
    B = np.zeros((n, n))
    B[i, last] = B[last, i] = 1.0
    return B


def objective(x_hat: Array, y: Array, z: Array) -> float:
    """eq:SDP_dual and eq:bc: 1'y + b'z with b_i = 2 x_hat_i, to be minimised."""
    b = 2.0 * x_hat[x_hat != 0]
    return float(y.sum() + b @ z)


def H_matrix(L: Array, x_hat: Array, y: Array, z: Array) -> Array:
    """eq:SDP_dual (eq:ex_H for three nodes): the matrix that must be psd."""
    N = len(L)
    H = np.zeros((N + 1, N + 1))
    H[:N, :N] = L
    for i in range(N + 1):
        H += y[i] * A_matrix(i, N + 1)
    for node, z_i in zip(np.flatnonzero(x_hat), z, strict=True):
        H += z_i * B_matrix(int(node), N + 1, last=N)
    return H


# --- subsec:reformulate ------------------------------------------------------------------------


def H_bar_matrix(L: Array, x_hat: Array, y: Array, z: Array) -> Array:
    """eq:SDP_dual2: the last node split into N+1 with its positive and N+2 with its negative edges.

    It is the Laplacian of a balanced graph. lemma:Hbar says lambda_min(H_bar) <= lambda_min(H),
    which holds where lambda_min(H) >= 0; in any case H_bar psd implies H psd.
    """
    N = len(L)
    known = np.flatnonzero(x_hat)
    positive = x_hat[known] > 0
    u = y[N] + z.sum()  # self-loop of the last node
    kappa = [-z[positive].sum(), u - z[~positive].sum()]  # degrees of its two halves
    H_bar = np.zeros((N + 2, N + 2))
    H_bar[:N, :N] = L
    for i in range(N):
        H_bar += y[i] * A_matrix(i, N + 2)
    for half in (0, 1):
        H_bar += kappa[half] * A_matrix(N + half, N + 2)
    for node, z_i, plus in zip(known, z, positive, strict=True):
        H_bar += z_i * B_matrix(int(node), N + 2, last=N if plus else N + 1)
    return H_bar


def H_tilde_matrix(L: Array, x_hat: Array, y: Array, z: Array, phi: float) -> Array:
    """H with phi added to the weight of every edge of the last node.

    lemma:Htilde: lambda_min(H) <= lambda_min(H_tilde), for what is added is a star's Laplacian.
    """
    leaf = phi * np.append(x_hat != 0, 0.0)
    star = np.diag(leaf)
    star[-1], star[:, -1], star[-1, -1] = -leaf, -leaf, leaf.sum()
    return H_matrix(L, x_hat, y, z) + star


def error_bound(L: Array, x_hat: Array, phi: float) -> float:
    """eq:errBound: ``|F(H_bar) - F(H_tilde)|``, where phi is large enough to cover the optimal z.

    F(H_tilde) is taken over positive graphs (z_i <= phi), from a point without self-loops.
    """
    known = x_hat[x_hat != 0]
    z = np.minimum(-known, phi)
    y = np.zeros(len(L) + 1)
    y[:-1][x_hat != 0], y[-1] = -z, -z.sum()

    def H_tilde(y: Array, z: Array) -> Array:
        return H_tilde_matrix(L, x_hat, y, z, phi)

    y, z = linearization(H_tilde, x_hat, y, z, np.ones(len(L) + 1), largest=phi)
    return abs(objective(x_hat, *gdpa(L, x_hat)) - objective(x_hat, y, z))


# --- sec:algo, ssec:linearization --------------------------------------------------------------


def lp(
    matrix: Callable[[Array, Array], Array], x_hat: Array, s: Array, largest: float = np.inf
) -> tuple[Array, Array]:
    """eq:LP_dual: the objective over y and z, subject to all disc left-ends >= 0.

    As signs are known (those of s by the colours of the balanced graph, those of z by the labels:
    z_i <= 0 where x_hat_i = 1, z_i >= 0 where x_hat_i = -1) every ``|s_i A_ij / s_j|`` is
    -A_ij v_j / v_i, and the left-end of row i is (A v)_i / v_i: affine in y and z.
    """
    known = x_hat[x_hat != 0]
    n, v = len(x_hat) + 1, 1.0 / s
    zero = np.zeros(n + len(known))
    fixed = (matrix(zero[:n], zero[n:]) @ v) / v
    columns = [(matrix(e[:n], e[n:]) @ v) / v - fixed for e in np.eye(n + len(known))]
    cost = np.append(np.ones(n), 2.0 * known)
    signs = [(None, 0.0) if label > 0 else (0.0, largest) for label in known]
    found = linprog(cost, -np.column_stack(columns), fixed, bounds=[(None, None)] * n + signs)
    if found.x is None:
        raise ArithmeticError(f"the linear program was not solved: {found.message}")
    return found.x[:n], found.x[n:]


def linearization(
    matrix: Callable[[Array, Array], Array],
    x_hat: Array,
    y: Array,
    z: Array,
    v: Array,
    largest: float = np.inf,
    tol: float = 1e-6,
) -> tuple[Array, Array]:
    """The loop: align the discs at the current solution, solve the LP, until nothing is gained.

    By alignment the current solution stays feasible, so the objective never rises.
    """
    for _ in range(100):
        before = objective(x_hat, y, z)
        s = alignment(matrix(y, z), guess=v)
        y, z = lp(matrix, x_hat, s, largest)
        v = 1.0 / s
        if before - objective(x_hat, y, z) <= tol * (1.0 + np.abs(y).sum()):
            break
    return y, z


def gdpa(L: Array, x_hat: Array) -> tuple[Array, Array]:
    """The algorithm: the loop for H_bar from the initial point of sec:algo."""
    known = x_hat != 0
    y = np.append(known.astype(float), known.sum())
    z = -x_hat[known].astype(float)
    v = np.append(np.ones(len(L) + 1), -1.0)  # colours of the balanced graph

    def H_bar(y: Array, z: Array) -> Array:
        return H_bar_matrix(L, x_hat, y, z)

    return linearization(H_bar, x_hat, y, z, v)


def extract_labels(L: Array, x_hat: Array, y: Array, z: Array) -> Array:
    """Labels sign(x_hat_1 v_1 v), v the first eigenvector of H at the converged solution."""
    _, v = first_eigenvector(H_matrix(L, x_hat, y, z), guess=np.ones(len(L) + 1))
    first = np.flatnonzero(x_hat)[0]
    x = np.where(x_hat[first] * v[first] * v[:-1] >= 0, 1.0, -1.0)
    return np.where(x_hat != 0, x_hat, x)


def classify(W: Array, x_hat: Array) -> Array:
    """The paper from graph to labels."""
    L = laplacian(W)
    return extract_labels(L, x_hat, *gdpa(L, x_hat))
