"""Make the couplings of a reduced form non-negative by switching signs, if possible.

Replacing x_i by -x_i flips the sign of every coupling of node i. A signed graph can be switched to
non-negative couplings exactly when it is balanced: its nodes have two colours such that positive
couplings join equal colours and negative couplings join different colours. The apex is excluded.
Its couplings c may have any sign, because they are the evidence at the other nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..graph.signed import balance
from ..problem import ReducedForm

_REORDER_FROM = 20_000  # number of rows from which reordering W pays off


@dataclass(frozen=True, eq=False)
class SwitchedForm:
    """A reduced form in z with ``x_i = signs_i * z_i``, whose couplings are non-negative.

    The objective is ``constant - z' W z - 2 c' z`` for z in {-1, +1}^n.

    Parameters
    ----------
    W : csr_array of shape (n, n)
        Couplings of the nodes other than the apex, non-negative.
    c : ndarray of shape (n,)
        Couplings to the apex, of any sign.
    constant : float
        Constant of the reduced form.
    signs : ndarray of shape (n,)
        Switching signs; all +1 if the couplings were already non-negative.
    """

    W: sp.csr_array
    c: FloatArray
    constant: float
    signs: NDArray[np.int8]

    def objective(self, z: NDArray[np.int8] | FloatArray) -> float:
        """Return the objective of the problem at the switched variables."""
        z = np.asarray(z, dtype=np.float64)
        return float(self.constant - z @ (self.W @ z) - 2.0 * (self.c @ z))


def switched_form(form: ReducedForm) -> SwitchedForm | None:
    """Split a reduced form into W >= 0 and c by switching signs; None if it is not balanced."""
    n = form.P.shape[0]
    others = np.delete(np.arange(n), form.apex)
    c = form.P[[form.apex]].toarray().ravel()[others]
    W = form.P[:-1, :-1] if form.apex == n - 1 else form.P[others][:, others]
    W = sp.csr_array(W)
    colors = np.ones(n - 1, dtype=np.int8)
    if W.data.min(initial=0.0) < 0:
        coloring = balance(W)
        if not coloring.balanced:
            return None
        colors = coloring.colors
        rows = np.repeat(colors, np.diff(W.indptr))
        W = sp.csr_array((W.data * rows * colors[W.indices], W.indices, W.indptr), shape=W.shape)
        c = c * colors
    return SwitchedForm(W=W, c=c, constant=form.constant, signs=colors)


def nearby_numbering(form: SwitchedForm) -> tuple[SwitchedForm, NDArray[np.intp] | None]:
    """Reorder a large form (reverse Cuthill-McKee), which speeds up products with W.

    Also returns the order, with ``new[k] = old[order[k]]``, or None if it is unchanged.
    """
    if form.c.size < _REORDER_FROM:
        return form, None
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee(form.W, symmetric_mode=True)
    W = form.W[order][:, order]
    W.sort_indices()
    return SwitchedForm(W, form.c[order], form.constant, form.signs[order]), order
