"""GershgorinDisplay: the discs of a matrix, before and after alignment.

Alignment is a similarity transform. It keeps the eigenvalues and moves the discs so that all their
left ends are at lambda_min (see :mod:`gdpa.gershgorin`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import check_choice, require
from ..gershgorin import Alignment, Discs, align, discs
from .axes import COLORS, FAINT, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("auto", "circles", "intervals")


@dataclass
class GershgorinDisplay(Display):
    """Gershgorin discs of a symmetric matrix.

    Create one with :meth:`from_matrix` or :meth:`from_alignment`.

    Parameters
    ----------
    discs : mapping of str to Discs
        Sets of discs of the same matrix by name, in drawing order.
    lambda_min : float, optional
        Smallest eigenvalue, marked by a line.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    See Also
    --------
    gdpa.gershgorin.discs : Compute the discs.
    gdpa.gershgorin.align : Align the discs.

    Examples
    --------
    >>> from gdpa.plotting import GershgorinDisplay
    >>> A = [[2, -2, -1], [-2, 5, -2], [-1, -2, 4]]
    >>> display = GershgorinDisplay.from_alignment(A)
    >>> print(display.discs["aligned"].left_ends.round(4))
    [0.1078 0.1078 0.1078]
    """

    discs: Mapping[str, Discs]
    lambda_min: float | None = None

    @classmethod
    def from_matrix(
        cls, A: ArrayLike, *, v: ArrayLike | None = None, ax: Axes | None = None, **options: Any
    ) -> GershgorinDisplay:
        """Draw the discs of ``S A S^-1`` with ``S = diag(1 / v)``.

        Parameters
        ----------
        A : array-like or sparse matrix of shape (n, n)
            Symmetric, real, finite.
        v : array-like of shape (n,), optional
            Non-zero scaling; all ones by default.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.
        **options
            Options of :meth:`plot`.

        Returns
        -------
        GershgorinDisplay
            The display, drawn.
        """
        return cls({"discs": discs(A, v=v)}).plot(ax, **options)

    @classmethod
    def from_alignment(
        cls,
        A: ArrayLike,
        alignment: Alignment | None = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> GershgorinDisplay:
        """Draw the discs of a balanced matrix before and after alignment.

        Parameters
        ----------
        A : array-like or sparse matrix of shape (n, n)
            Symmetric matrix of a balanced signed graph.
        alignment : Alignment, optional
            Result of :func:`gdpa.gershgorin.align`; computed if not given.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.
        **options
            Options of :meth:`plot`.

        Returns
        -------
        GershgorinDisplay
            The display, drawn.
        """
        aligned = align(A) if alignment is None else alignment
        sets = {"original": discs(A), "aligned": discs(A, v=aligned.v)}
        return cls(sets, lambda_min=aligned.lambda_min).plot(ax, **options)

    def plot(
        self, ax: Axes | None = None, *, kind: str = "auto", max_rows: int = 60
    ) -> GershgorinDisplay:
        """Draw the discs.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.
        kind : {"auto", "circles", "intervals"}, default="auto"
            Circles in the complex plane, or intervals on the real axis, one line per row. "auto"
            draws circles for up to 6 rows.
        max_rows : int, default=60
            Maximum number of rows to draw. If there are more, rows are taken at even steps in the
            order of their first left ends, including the first and the last.

        Returns
        -------
        GershgorinDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        check_choice("kind", kind, KINDS)
        if max_rows < 2:
            raise ValueError(f"max_rows={max_rows!r} must be at least 2")
        first = next(iter(self.discs.values()))
        ax = self._start(ax)
        if kind == "circles" or (kind == "auto" and first.centers.size <= 6):
            self._circles(ax)
        else:
            order = np.argsort(first.left_ends, kind="stable")
            rows = np.arange(order.size)
            if order.size > max_rows:
                rows = order[np.linspace(0, order.size - 1, max_rows).round().astype(int)]
            self._intervals(ax, rows)
        if self.lambda_min is not None:
            ax.axvline(self.lambda_min, color=COLORS[7], linewidth=1.0, label="smallest eigenvalue")
        ax.axvline(0.0, color=FAINT, linewidth=0.8, linestyle=":", zorder=0)
        # Large discs leave no room for a legend inside the axes.
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16)}
        ax.legend(ncols=3, frameon=False, fontsize=9, **below)
        return self

    def _circles(self, ax: Axes) -> None:
        patches = require("matplotlib.patches", "plot")
        for number, (name, d) in enumerate(self.discs.items(), 1):
            last = number == len(self.discs)
            color = COLORS[0] if last else COLORS[1]
            style = {"facecolor": (color, 0.10)} if last else {"fill": False, "linestyle": "--"}
            style |= {"edgecolor": color, "linewidth": 1.6}
            for center, radius in zip(d.centers, d.radii, strict=True):
                circle = ax.add_patch(patches.Circle((center, 0.0), radius, **style))
                ax.plot(center, 0.0, marker="+", color=COLORS[7], markersize=6)
            circle.set_label(name)
        ax.set(xlabel="real part", ylabel="imaginary part", aspect="equal")

    def _intervals(self, ax: Axes, rows: NDArray[np.intp]) -> None:
        y = np.arange(rows.size, dtype=np.float64)
        width = float(np.clip(90.0 / (rows.size * len(self.discs)), 0.6, 5.0))
        shifts = np.linspace(-0.175, 0.175, len(self.discs)) if len(self.discs) > 1 else [0.0]
        for number, (name, d) in enumerate(self.discs.items(), 1):
            last = number == len(self.discs)
            color = COLORS[0] if last else COLORS[1]
            left = d.left_ends[rows]
            place = y + shifts[number - 1]
            ax.hlines(place, left, d.right_ends[rows], color=color, linewidth=width, alpha=0.45)
            size, edge = (min(5.0, 2.0 + width), 1.0) if last else (3.0 + 2.0 * width, 1.8)
            (ends,) = ax.plot(left, place, "o" if last else "|", color=color)
            ends.set(label=f"{name}: left ends", markersize=size, markeredgewidth=edge)
        ax.invert_yaxis()
        ax.set(xlabel="real part", ylabel="row")
        if rows.size <= 12:
            ax.set_yticks(y, [str(int(r)) for r in rows])
        elif not np.array_equal(rows, np.arange(rows.size)):
            ax.set(ylabel=f"{rows.size} of the rows, in order of left ends", yticks=[])
