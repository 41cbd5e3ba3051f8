r"""The paper in one file of dense NumPy, in its own order and notation.

Yang, Cheung, Zhai, "Projection-free Graph-based Classifier Learning using Gershgorin Disc Perfect
Alignment" (arXiv 2106.01642). Every function names the section and the \label of what it computes.
Read it beside the paper; it is not meant to be fast. ``gdpa.solve(problem, "gdpa")`` runs the same
loop on sparse graphs. The two differ where a linear program has several optima: HiGHS, used here,
returns a vertex, which erases the labels (z = 0), and the closed form of the package keeps the
current point if it is optimal. ``docs/theory.md`` discusses the results. Labels `x_hat` are +1 or
-1, or 0 if unknown; known labels may be at any positions, not only on the first M nodes.
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
    """Return the generalised Laplacian D - W + diag(W), which keeps self-loops u_i = W_ii."""
    return np.asarray(np.diag(W.sum(axis=1)) - W + np.diag(np.diag(W)))


def glr(L: Array, x: Array) -> float:
    """Return the smoothness x'Lx (eq:glr), the sum of w_ij (x_i - x_j)^2 and u_i x_i^2."""
    return float(x @ L @ x)


def disc_left_ends(A: Array, s: Array | None = None) -> Array:
    """Return the disc left-ends of S A S^-1, S = diag(s): centre minus radius (eq:GCT_bound).

    For any s, the smallest of them is a lower bound of the smallest eigenvalue of A.
    """
    s = np.ones(len(A)) if s is None else s
    scaled = np.abs(s[:, None] * A / s[None, :])
    return np.asarray(np.diag(A) - (scaled.sum(axis=1) - np.diag(scaled)))


def first_eigenvector(A: Array, guess: Array | None = None) -> tuple[float, Array]:
    """Return the smallest eigenvalue and its eigenvector; of several, the closest to `guess`.

    This replaces LOBPCG with a warm start (ssec:linearization).
    """
    values, vectors = np.linalg.eigh(A)
    first = vectors[:, values <= values[0] + 1e-9 * np.abs(values).max()]
    several = guess is not None and first.shape[1] > 1
    v = first @ (first.T @ guess) if several else first[:, 0]
    return float(values[0]), v / np.linalg.norm(v)


def alignment(A: Array, guess: Array | None = None) -> Array:
    """Return the scalars s_i = 1 / v_i that align all left-ends of a balanced A at lambda_min(A).

    Where v_i vanishes (a node without edges) any scalar will do.
    """
    _, v = first_eigenvector(A, guess)
    return 1.0 / np.copysign(np.maximum(np.abs(v), 1e-10), v)


# eq:GCT_linConst replaces "A psd" by N linear constraints, one left-end each: `lp` below.


# --- sec:formulate, subsec:SDP_primal ----------------------------------------------------------


def binary_classification(L: Array, x_hat: Array) -> tuple[float, Array]:
    """Solve eq:binaryClass by trying all signs that agree with the known labels."""
    unknown = np.flatnonzero(x_hat == 0)
    best = np.inf
    best_x = x_hat
    for signs in product([-1.0, 1.0], repeat=len(unknown)):
        x = x_hat.astype(float)
        x[unknown] = signs
        if glr(L, x) < best:
            best = glr(L, x)
            best_x = x
    return best, best_x


def M_matrix(x: Array) -> Array:
    """Return M = [X x; x' 1] with X = xx'; eq:primal relaxes it to M psd with X_ii = 1."""
    return np.outer(np.append(x, 1.0), np.append(x, 1.0))


def primal_objective(L: Array, M: Array) -> float:
    """Return the objective Tr(L X) of eq:primal."""
    return float(np.trace(L @ M[:-1, :-1]))


# --- subsec:SDP_dual ---------------------------------------------------------------------------


def A_matrix(i: int, n: int) -> Array:
    """Return A_i of eq:AB, for the constraint X_ii = 1."""
    A = np.zeros((n, n))
    A[i, i] = 1.0
    return A


def B_matrix(i: int, n: int, last: int) -> Array:
    """Return B_i of eq:AB, for the constraint x_i = x_hat_i: an edge between i and `last`."""
    B = np.zeros((n, n))
    B[i, last] = B[last, i] = 1.0
    return B


def objective(x_hat: Array, y: Array, z: Array) -> float:
    """Return the dual objective 1'y + b'z with b_i = 2 x_hat_i (eq:SDP_dual, eq:bc)."""
    b = 2.0 * x_hat[x_hat != 0]
    return float(y.sum() + b @ z)


def H_matrix(L: Array, x_hat: Array, y: Array, z: Array) -> Array:
    """Return H, the matrix that must be psd (eq:SDP_dual; eq:ex_H for three nodes)."""
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
    """Return H_bar (eq:SDP_dual2): H with the last node split by the sign of its edges.

    Node N+1 has the positive and N+2 the negative edges, so the graph is balanced. lemma:Hbar
    states lambda_min(H_bar) <= lambda_min(H), which holds if lambda_min(H) >= 0. In any case H_bar
    psd implies H psd.
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
    """Return H_tilde: H with phi added to the weight of every edge of the last node.

    lemma:Htilde: lambda_min(H) <= lambda_min(H_tilde), since the added matrix is the Laplacian of
    a star.
    """
    leaf = phi * np.append(x_hat != 0, 0.0)
    star = np.diag(leaf)
    star[-1], star[:, -1], star[-1, -1] = -leaf, -leaf, leaf.sum()
    return H_matrix(L, x_hat, y, z) + star


def error_bound(L: Array, x_hat: Array, phi: float) -> float:
    """Return the bound ``|F(H_bar) - F(H_tilde)|`` (eq:errBound), for phi above the optimal z.

    F(H_tilde) is computed over positive graphs (z_i <= phi), from a point without self-loops.
    """
    known = x_hat[x_hat != 0]
    z = np.minimum(-known, phi)
    y = np.zeros(len(L) + 1)
    y[:-1][x_hat != 0], y[-1] = -z, -z.sum()

    def H_tilde(y: Array, z: Array) -> Array:
        return H_tilde_matrix(L, x_hat, y, z, phi)

    y, z = linearization(H_tilde, x_hat, y, z, np.ones(len(L) + 1), largest=phi)
    return abs(objective(x_hat, *gdpa(L, x_hat)) - objective(x_hat, y, z))


# --- the three semidefinite programs, for comparison -------------------------------------------


def sdp(
    cost: Array, constant: Array, matrices: list[Array], bounds: Array | None = None
) -> tuple[Array, Array]:
    """Minimise cost't subject to constant + sum_k t_k matrices_k psd, by an interior point.

    `bounds` holds rows (coefficients of t) that must not be negative. Returns t and the multiplier
    of the matrix, which solves the dual program. Needs the extra ``sdp`` (Clarabel).
    """
    import clarabel
    from scipy.sparse import csc_array

    n = len(constant)
    rows, columns = np.triu_indices(n)
    order = np.lexsort((rows, columns))  # the upper triangle, column by column
    rows = rows[order]
    columns = columns[order]
    scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
    entries = np.column_stack([scale * A[rows, columns] for A in matrices])
    fixed = scale * constant[rows, columns]
    cones = [clarabel.PSDTriangleConeT(n)]
    if bounds is not None and len(bounds):
        entries = np.vstack([entries, bounds])
        fixed = np.append(fixed, np.zeros(len(bounds)))
        cones.append(clarabel.NonnegativeConeT(len(bounds)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    zero = csc_array((len(cost), len(cost)))
    solver = clarabel.DefaultSolver(zero, cost, csc_array(-entries), fixed, cones, settings)
    found = solver.solve()
    multiplier = np.zeros((n, n))
    values = np.asarray(found.z)[: len(rows)] / scale
    multiplier[rows, columns] = multiplier[columns, rows] = values
    return np.asarray(found.x), multiplier


def solve_dual(L: Array, x_hat: Array) -> tuple[float, Array, Array, Array]:
    """Solve eq:SDP_dual; return its value, y, z, and the M of eq:primal as its multiplier."""
    known = np.flatnonzero(x_hat)
    n = len(L) + 1
    zero = np.zeros(n + len(known))
    constant = H_matrix(L, x_hat, zero[:n], zero[n:])
    matrices = [H_matrix(L, x_hat, e[:n], e[n:]) - constant for e in np.eye(zero.size)]
    cost = np.append(np.ones(n), 2.0 * x_hat[known])
    t, M = sdp(cost, constant, matrices)
    return float(cost @ t), t[:n], t[n:], M


def solve_primal(L: Array, x_hat: Array) -> tuple[float, Array]:
    """Solve eq:primal with all X_ii = 1; return its value and M.

    The unknowns are the entries of M above the diagonal that the labels leave free.
    """
    N = len(L)
    constant = np.eye(N + 1)
    constant[N, :N] = constant[:N, N] = x_hat
    free = [(i, j) for i in range(N) for j in range(i + 1, N + 1) if j < N or x_hat[i] == 0]
    matrices = []
    for i, j in free:
        E = np.zeros((N + 1, N + 1))
        E[i, j] = E[j, i] = 1.0
        matrices.append(E)
    cost = np.array([2.0 * L[i, j] if j < N else 0.0 for i, j in free])
    t, _ = sdp(cost, constant, matrices)
    M = constant + sum(t_k * E for t_k, E in zip(t, matrices, strict=True))
    return primal_objective(L, M), M


def solve_dual2(L: Array, x_hat: Array) -> tuple[float, Array, Array]:
    """Solve eq:SDP_dual2, the dual with H_bar and the signs of z; return its value, y and z."""
    known = np.flatnonzero(x_hat)
    n = len(L) + 1
    zero = np.zeros(n + len(known))
    constant = H_bar_matrix(L, x_hat, zero[:n], zero[n:])
    matrices = [H_bar_matrix(L, x_hat, e[:n], e[n:]) - constant for e in np.eye(zero.size)]
    cost = np.append(np.ones(n), 2.0 * x_hat[known])
    signs = np.zeros((len(known), zero.size))
    signs[np.arange(len(known)), n + np.arange(len(known))] = -x_hat[known]
    t, _ = sdp(cost, constant, matrices, signs)
    return float(cost @ t), t[:n], t[n:]


# --- sec:algo, ssec:linearization --------------------------------------------------------------


def lp(
    matrix: Callable[[Array, Array], Array], x_hat: Array, s: Array, largest: float = np.inf
) -> tuple[Array, Array]:
    """Minimise the objective over y and z, subject to all disc left-ends >= 0 (eq:LP_dual).

    The signs are known: those of s from the colours of the balanced graph, those of z from the
    labels (z_i <= 0 if x_hat_i = 1, z_i >= 0 if x_hat_i = -1). So ``|s_i A_ij / s_j|`` is
    -A_ij v_j / v_i, and the left-end of row i is (A v)_i / v_i, which is affine in y and z.
    """
    known = x_hat[x_hat != 0]
    n = len(x_hat) + 1
    v = 1.0 / s
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
    """Alternate between disc alignment and the LP until the objective stops improving.

    Because of the alignment the current solution stays feasible, so the objective never increases.
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
    """Run the algorithm: linearise H_bar from the initial point of sec:algo."""
    known = x_hat != 0
    y = np.append(known.astype(float), known.sum())
    z = -x_hat[known].astype(float)
    v = np.append(np.ones(len(L) + 1), -1.0)  # colours of the balanced graph

    def H_bar(y: Array, z: Array) -> Array:
        return H_bar_matrix(L, x_hat, y, z)

    return linearization(H_bar, x_hat, y, z, v)


def extract_labels(L: Array, x_hat: Array, y: Array, z: Array) -> Array:
    """Return the labels sign(x_hat_1 v_1 v), v being the first eigenvector of H at the solution."""
    _, v = first_eigenvector(H_matrix(L, x_hat, y, z), guess=np.ones(len(L) + 1))
    first = np.flatnonzero(x_hat)[0]
    x = np.where(x_hat[first] * v[first] * v[:-1] >= 0, 1.0, -1.0)
    return np.where(x_hat != 0, x_hat, x)


def classify(W: Array, x_hat: Array) -> Array:
    """Classify the nodes of a graph: the whole method of the paper."""
    L = laplacian(W)
    return extract_labels(L, x_hat, *gdpa(L, x_hat))
