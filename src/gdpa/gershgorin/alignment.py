"""Perfect alignment of the Gershgorin discs of a balanced generalised Laplacian.

For the generalised Laplacian A of a balanced, connected signed graph, the first eigenvector v has
no zero entry, and with ``S = diag(1 / v_i)`` every disc left-end of ``S A S^-1`` is

    A_ii - sum_{j != i} |A_ij| |v_j / v_i|  =  lambda_min(A).

Alignment needs a more accurate v than an eigensolver returns: an error of 1e-12 in an entry of 1e-9
changes the radius of its disc by a thousandth. The vector is therefore refined by Noda's iteration.
After switching signs by the 2-colouring, ``A - sigma I`` with sigma the smallest left-end is an
M-matrix with a positive inverse. The step ``v <- (A - sigma I)^-1 v`` keeps v positive, raises the
smallest left-end, and converges quadratically, with small relative errors in all entries.
Reference: T. Noda, "Note on the computation of the maximal eigenvalue of a non-negative irreducible
matrix", Numer. Math. 17 (1971).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import splu

from ..arrays import FloatArray
from ..checks import check_positive
from ..errors import ConvergenceWarning
from ..graph.adjacency import check_adjacency, component_labels
from ..graph.signed import balance
from ..linalg import first_eigenvector, solve_spd
from ..linalg.operator import MatrixLike
from .discs import check_scaling, disc_radii, raised_diagonal

# Up to FACTOR_BELOW nodes, systems are factorised. Up to FACTOR_LIMIT, conjugate gradients are
# tried first. Larger systems are never factorised.
FACTOR_BELOW = 5_000
FACTOR_LIMIT = 20_000
# Lower bound of the entries of v, so that quotients stay finite.
SMALLEST = 1e-290


@dataclass(frozen=True)
class Alignment:
    """Similarity transform that aligns all disc left-ends.

    Parameters
    ----------
    v : ndarray of shape (n,)
        First eigenvector of each component, with unit norm per component.
    lambda_min : float
        Smallest eigenvalue of the matrix.
    certified : float
        Lower bound of `lambda_min` that the discs prove, with rounding errors included.
    left_ends : ndarray of shape (n,)
        Disc left-ends of ``S A S^-1``. Within a component they equal its smallest eigenvalue.
    spread : float
        Largest difference between two left-ends of one component. The smallest eigenvalue of a
        component lies between its smallest and its largest left-end, so `spread` also bounds the
        error of `component_lambda`.
    colors : ndarray of int8 of shape (n,)
        2-colouring (+1 or -1), which gives the signs of v.
    components : ndarray of shape (n,)
        Component of each node.
    component_lambda : ndarray of shape (n_components,)
        Smallest eigenvalue of each component.
    iterations : int
        Number of refinement steps.
    converged : bool
        Whether `spread` meets the tolerance.
    """

    v: FloatArray
    lambda_min: float
    certified: float
    left_ends: FloatArray
    spread: float
    colors: NDArray[np.int8]
    components: NDArray[np.int32]
    component_lambda: FloatArray
    iterations: int
    converged: bool

    @property
    def s(self) -> FloatArray:
        """Diagonal of S, ``1 / v``."""
        return 1.0 / self.v

    def transform(self, A: MatrixLike) -> sp.csr_array:
        """Return ``S A S^-1``, whose discs are aligned.

        Parameters
        ----------
        A : array-like or sparse matrix of shape (n, n)
            The matrix that was aligned.

        Returns
        -------
        csr_array
            The transformed matrix, which is not symmetric.
        """
        matrix = check_adjacency(A, name="A", signed=True, keep_diagonal=True)
        if matrix.shape[0] != self.v.size:
            raise ValueError(f"A must have {self.v.size} rows, as when aligned, got {matrix.shape}")
        return sp.csr_array(sp.diags_array(self.s) @ matrix @ sp.diags_array(self.v))


def align(
    A: MatrixLike, *, v: ArrayLike | None = None, tol: float = 1e-12, random_state: int = 0
) -> Alignment:
    """Align the Gershgorin discs of a balanced generalised Laplacian at lambda_min.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (n, n)
        Symmetric matrix whose off-diagonal entries form a balanced signed graph (a negative
        off-diagonal entry is a positive edge). The diagonal is arbitrary.
    v : array-like of shape (n,), optional
        Start without zeros, such as the vector of a similar matrix. Its signs do not matter.
    tol : float, default=1e-12
        Stop when the left-ends of each component agree to within `tol` times the largest
        ``|centre| + radius`` of the discs of A.
    random_state : int, default=0
        Random seed of the eigensolver, which is used for large matrices.

    Returns
    -------
    Alignment
        The vector, the aligned left-ends and lambda_min.

    Raises
    ------
    ValueError
        If A is not symmetric and finite, or if its graph is not balanced. In the latter case the
        message names a cycle with an odd number of negative edges.

    Warns
    -----
    ConvergenceWarning
        If the tolerance is not met; see `spread`. This happens if the entries of v span more than
        about 290 orders of magnitude. It may also happen on graphs of more than 20 000 nodes, where
        conjugate gradients alone may not resolve the smallest entries.

    Notes
    -----
    A disconnected graph has one first eigenvector per component. No scaling can align the discs of
    two components with different smallest eigenvalues, so each component is aligned separately.

    Examples
    --------
    >>> from gdpa.gershgorin import align
    >>> a = align([[2, -2, -1], [-2, 5, -2], [-1, -2, 4]])
    >>> print(round(a.lambda_min, 4), a.left_ends.round(4))
    0.1078 [0.1078 0.1078 0.1078]
    """
    matrix = check_adjacency(A, name="A", signed=True, keep_diagonal=True)
    n = matrix.shape[0]
    tol = check_positive(tol, "tol")
    start = None if v is None else np.abs(check_scaling(v, n))
    colors = two_coloring(matrix)
    count, components = component_labels(matrix)
    # Scale entries to order one, so that left-ends do not overflow.
    exponent = int(np.frexp(np.abs(matrix.data).max(initial=0.0))[1])
    unit = sp.csr_array(
        (np.ldexp(matrix.data, -exponent), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    problem = _Switched(unit, components, count, tol)
    if start is None:
        start = _first_guess(unit, colors, random_state)
    p, iterations = problem.polish(start)
    low, high = problem.bracket(p)
    rayleigh = problem.rayleigh(p)
    component_lambda = np.ldexp(np.clip(rayleigh, low, high), exponent)
    spread = float((high - low).max())
    converged = spread <= problem.threshold
    if not converged:
        warnings.warn(
            f"left-ends differ by {np.ldexp(spread, exponent):.3g} after {iterations} refinement "
            f"steps, which is more than tol={tol:g} allows",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Alignment(
        v=colors * problem.normalized(p),
        lambda_min=float(component_lambda.min()),
        certified=float(np.ldexp(problem.proved_bound(p), exponent)),
        left_ends=np.ldexp(problem.left_ends(p), exponent),
        spread=float(np.ldexp(spread, exponent)),
        colors=colors,
        components=components,
        component_lambda=component_lambda,
        iterations=iterations,
        converged=converged,
    )


def two_coloring(A: sp.csr_array) -> NDArray[np.int8]:
    """Return the 2-colouring of the graph of a generalised Laplacian.

    Positive edges (negative off-diagonal entries) join equal colours, negative edges different
    ones. If the graph is not balanced, raise a ValueError that names an odd cycle.
    """
    result = balance(-A)
    if result.witness is not None:
        cycle = " - ".join(str(int(node)) for node in result.witness)
        raise ValueError(
            "the signed graph of A is not balanced, so its discs cannot be aligned: the cycle of "
            f"nodes {cycle} has an odd number of negative edges (positive off-diagonal entries)"
        )
    return np.asarray(result.colors, dtype=np.int8)


def _first_guess(A: sp.csr_array, colors: NDArray[np.int8], random_state: int) -> FloatArray:
    """Return a positive start: ones for small matrices, otherwise the eigensolver's vector."""
    n = A.shape[0]
    if n <= 2_000:
        return np.ones(n)
    # Convergence is judged by the discs, not by the eigensolver.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        result = first_eigenvector(A, v0=colors.astype(np.float64), random_state=random_state)
    vector = np.abs(result.vector)
    return np.asarray(np.maximum(vector, 1e-12 * vector.max()))


class _Switched:
    """The matrix after sign switching, ``diag(A) - |off-diagonal|``, and its components."""

    def __init__(
        self, A: sp.csr_array, components: NDArray[np.int32], count: int, tol: float
    ) -> None:
        self.A = A
        self.diagonal = A.diagonal()
        self.components = components
        self.count = count
        self.off = abs(A - sp.diags_array(self.diagonal)).tocsr()
        self.off.eliminate_zeros()
        self.size = float((np.abs(self.diagonal) + disc_radii(A)).max(initial=0.0))
        # Left-ends are rounded sums, accurate to a few units in the last place only.
        self.threshold = max(tol, 16 * np.finfo(float).eps) * self.size
        self.order = np.argsort(components, kind="stable")
        self.first = np.searchsorted(components[self.order], np.arange(count))

    def left_ends(self, p: FloatArray) -> FloatArray:
        """Return the disc left-ends for the scaling p."""
        return np.asarray(self.diagonal - disc_radii(self.A, p))

    def proved_bound(self, p: FloatArray) -> float:
        """Return the smallest left-end with radii rounded up, a proved bound for any positive p."""
        return float((self.diagonal - raised_diagonal(self.off, p, self.off @ p)).min())

    def bracket(self, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and largest left-end per component, which enclose its lambda_min."""
        ends = self.left_ends(p)[self.order]
        return np.minimum.reduceat(ends, self.first), np.maximum.reduceat(ends, self.first)

    def normalized(self, p: FloatArray) -> FloatArray:
        """Return p scaled to unit norm per component."""
        largest = np.maximum.reduceat(p[self.order], self.first)
        p = np.maximum(p / largest[self.components], SMALLEST)
        return np.asarray(p / np.sqrt(self._sums(p * p))[self.components])

    def rayleigh(self, p: FloatArray) -> FloatArray:
        """Return the Rayleigh quotient per component."""
        p = self.normalized(p)
        return self._sums(p * (self.diagonal * p - self.off @ p)) / self._sums(p * p)

    def _sums(self, x: FloatArray) -> FloatArray:
        """Return the sum of x per component."""
        sums = np.bincount(self.components, weights=x, minlength=self.count)
        return np.asarray(sums, dtype=np.float64)

    def polish(self, p: FloatArray) -> tuple[FloatArray, int]:
        """Iterate until the left-ends agree; return the best vector and the number of steps."""
        n = self.A.shape[0]
        solvers: list[Callable[[FloatArray, FloatArray], FloatArray]] = []
        if n > FACTOR_BELOW:
            solvers.append(self._solve_iterative)
        if n <= FACTOR_LIMIT:
            solvers.append(self._solve_direct)
        best = self.normalized(p)
        total = 0
        best_spread = self._spread(best)
        for solve in solvers:
            p = best
            stalled = 0
            while best_spread > self.threshold and stalled < 3 and total < 50:
                p = self.normalized(self._noda(p, solve))
                spread = self._spread(p)
                stalled = stalled + 1 if spread >= best_spread else 0
                if spread < best_spread:
                    best = p
                    best_spread = spread
                total += 1
        return best, total

    def _spread(self, p: FloatArray) -> float:
        """Return the largest difference between two left-ends of one component."""
        low, high = self.bracket(p)
        return float((high - low).max())

    def _noda(
        self, p: FloatArray, solve: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> FloatArray:
        """Solve ``(A - sigma I) y = p`` with sigma just below lambda_min, per component.

        Noda's shift is the smallest left-end. While small entries of p are inaccurate, this shift
        is far too low, and the Rayleigh quotient minus the residual is a better one. It is valid if
        y is positive. The margin keeps the system non-singular at convergence.
        """
        p = self.normalized(p)
        low, _ = self.bracket(p)
        quotient = self.rayleigh(p)
        rest = self.diagonal * p - self.off @ p - quotient[self.components] * p
        below = np.maximum(low, quotient - 2 * np.sqrt(self._sums(rest * rest)))
        margin = 4 * np.finfo(float).eps * self.size
        while margin < 1e3 * self.size:
            y = solve(self.diagonal - below[self.components] + margin, p)
            if np.isfinite(y).all() and (y >= 0).all() and (self._sums(y) > 0).all():
                return y
            # Rounding destroyed the M-matrix property: a larger margin is slower but safer.
            margin *= 1e3
            below = np.minimum(below, np.maximum(low, below - margin))
        return p

    def _solve_direct(self, shift: FloatArray, p: FloatArray) -> FloatArray:
        """Solve ``(diag(shift) - off) y = p`` by a sparse factorisation; NaN if singular."""
        try:
            factor = splu(
                (sp.diags_array(shift) - self.off).tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError:  # exactly singular
            return np.full_like(p, np.nan)
        return np.asarray(factor.solve(p), dtype=np.float64)

    def _solve_iterative(self, shift: FloatArray, p: FloatArray) -> FloatArray:
        """Solve ``(diag(shift) - off) y = p``, which is nearly singular, by conjugate gradients."""
        if (shift <= 0).any():
            return np.full_like(p, np.nan)
        B = sp.diags_array(shift) - self.off
        # Start at the solution along p, p / gap, so that only a small correction remains.
        guess = p * (p @ p) / max(float(p @ (B @ p)), np.finfo(float).tiny)
        # The caller checks the solution, whether or not the iteration converged.
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            return solve_spd(
                B, p, x0=guess, tol=1e-10, max_iter=500, preconditioner="jacobi", dense_below=0
            ).x
