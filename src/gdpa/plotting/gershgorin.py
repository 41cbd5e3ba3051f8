"""GershgorinDisplay: the discs of a matrix, before and after alignment.

Alignment is a similarity transform: the eigenvalues stay, the discs move until all their left-ends
sit at lambda_min (see :mod:`gdpa.gershgorin`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import nearest_name, require
from ..gershgorin import Alignment, Discs, align, discs
from .axes import COLORS, FAINT, Display, get_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GershgorinDisplay"]

KINDS = ("auto", "circles", "intervals")


class GershgorinDisplay(Display):
    """Gershgorin discs of a symmetric matrix.

    It is recommended to use :meth:`from_matrix` or :meth:`from_alignment` to make one.

    Parameters
    ----------
    discs : mapping of str to Discs
        One or more sets of discs of the same matrix, by name; drawn in this order.
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
    gdpa.gershgorin.discs : The discs as numbers.
    gdpa.gershgorin.align : The alignment.

    Examples
    --------
    >>> from gdpa.plotting import GershgorinDisplay
    >>> A = [[2, -2, -1], [-2, 5, -2], [-1, -2, 4]]
    >>> display = GershgorinDisplay.from_alignment(A)
    >>> print(display.discs["aligned"].left_ends.round(4))
    [0.1078 0.1078 0.1078]
    """

    def __init__(self, discs: Mapping[str, Discs], *, lambda_min: float | None = None) -> None:
        if not discs:
            raise ValueError("discs is empty; at least one set of discs is needed")
        sizes = {d.centers.size for d in discs.values()}
        if len(sizes) > 1:
            raise ValueError(f"discs has sets of different sizes: {sorted(sizes)}")
        self.discs = dict(discs)
        self.lambda_min = lambda_min

    @classmethod
    def from_matrix(
        cls,
        A: ArrayLike,
        *,
        v: ArrayLike | None = None,
        name: str = "discs",
        ax: Axes | None = None,
        **options: Any,
    ) -> GershgorinDisplay:
        """Draw the discs of ``S A S^-1``, ``S = diag(1 / v)``.

        Parameters
        ----------
        A : array-like or sparse matrix of shape (n, n)
            Symmetric, real, finite.
        v : array-like of shape (n,), optional
            Scaling without zeros; the discs of A itself by default.
        name : str, default="discs"
            What the legend calls them.
        ax : matplotlib Axes, optional
            Where to draw.
        **options
            Options of :meth:`plot`.

        Returns
        -------
        GershgorinDisplay
            The display, drawn.
        """
        return cls({name: discs(A, v=v)}).plot(ax=ax, **options)

    @classmethod
    def from_alignment(
        cls,
        A: ArrayLike,
        alignment: Alignment | None = None,
        *,
        before: bool = True,
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
        before : bool, default=True
            Whether to draw the discs of A itself too.
        ax : matplotlib Axes, optional
            Where to draw.
        **options
            Options of :meth:`plot`.

        Returns
        -------
        GershgorinDisplay
            The display, drawn.
        """
        aligned = align(A) if alignment is None else alignment
        sets = {"original": discs(A)} if before else {}
        sets["aligned"] = discs(A, v=aligned.v)
        return cls(sets, lambda_min=aligned.lambda_min).plot(ax=ax, **options)

    def plot(
        self, ax: Axes | None = None, *, kind: str = "auto", max_rows: int = 60
    ) -> GershgorinDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        kind : {"auto", "circles", "intervals"}, default="auto"
            Circles in the complex plane, or their real parts, one line per row. "auto" draws
            circles up to 6 rows.
        max_rows : int, default=60
            Draw no more rows than this; if there are more, they are picked evenly from the rows in
            the order of their first left-ends, the outermost included.

        Returns
        -------
        GershgorinDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is not known; {nearest_name(kind, list(KINDS))}")
        if max_rows < 2:
            raise ValueError(f"max_rows={max_rows!r} is not accepted; at least 2 is needed")
        n = next(iter(self.discs.values())).centers.size
        circles = kind == "circles" or (kind == "auto" and n <= 6)
        self.figure_, self.ax_ = get_axes(ax)
        if circles:
            self._circles()
        else:
            self._intervals(self._rows(max_rows))
        if self.lambda_min is not None:
            self.ax_.axvline(
                self.lambda_min, color=COLORS[7], linewidth=1.0, label="smallest eigenvalue"
            )
        self.ax_.axvline(0.0, color=FAINT, linewidth=0.8, linestyle=":", zorder=0)
        # Below the axes: discs of large radius leave no empty corner.
        self.ax_.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False, fontsize=9
        )
        return self

    def _rows(self, max_rows: int) -> NDArray[np.intp]:
        order = np.argsort(next(iter(self.discs.values())).left_ends, kind="stable")
        if order.size <= max_rows:
            return np.arange(order.size)
        picked = np.unique(np.linspace(0, order.size - 1, max_rows).round().astype(int))
        return np.asarray(order[picked])

    def _circles(self) -> None:
        patches = require("matplotlib.patches", "plot")
        ax = self.ax_
        for number, (name, d) in enumerate(self.discs.items()):
            last = number == len(self.discs) - 1
            color = COLORS[0] if last else COLORS[1]
            for i, (center, radius) in enumerate(zip(d.centers, d.radii, strict=True)):
                ax.add_patch(
                    patches.Circle(
                        (center, 0.0),
                        radius,
                        edgecolor=color,
                        facecolor=(color, 0.10) if last else "none",
                        linestyle="-" if last else "--",
                        linewidth=1.6,
                        label=name if i == 0 else None,
                    )
                )
                ax.plot(center, 0.0, marker="+", color=COLORS[7], markersize=6)
        low = min(float(d.left_ends.min()) for d in self.discs.values())
        high = max(float(d.right_ends.max()) for d in self.discs.values())
        tall = max(float(d.radii.max()) for d in self.discs.values())
        margin = 0.05 * max(high - low, 1e-12)
        ax.set(xlim=(low - margin, high + margin), ylim=(-tall - margin, tall + margin))
        ax.set_aspect("equal")
        ax.set(xlabel="real part", ylabel="imaginary part")

    def _intervals(self, rows: NDArray[np.intp]) -> None:
        ax = self.ax_
        y = np.arange(rows.size, dtype=np.float64)
        step = 0.7 / len(self.discs) if len(self.discs) > 1 else 0.0
        width = float(np.clip(90.0 / max(rows.size * len(self.discs), 1), 0.6, 5.0))
        for number, (name, d) in enumerate(self.discs.items()):
            last = number == len(self.discs) - 1
            color = COLORS[0] if last else COLORS[1]
            shift = (number - 0.5 * (len(self.discs) - 1)) * step
            left, right = d.left_ends[rows], d.right_ends[rows]
            ax.hlines(y + shift, left, right, color=color, linewidth=width, alpha=0.45)
            ax.plot(
                left,
                y + shift,
                linestyle="none",
                marker="o" if last else "|",
                markersize=min(5.0, 2.0 + width) if last else 3.0 + 2.0 * width,
                markeredgewidth=1.0 if last else 1.8,
                color=color,
                label=f"{name}: left ends",
            )
        ax.invert_yaxis()
        ax.set(xlabel="real part", ylabel="row")
        if rows.size <= 12:
            ax.set_yticks(y, [str(int(r)) for r in rows])
        elif not np.array_equal(rows, np.arange(rows.size)):
            ax.set_ylabel(f"{rows.size} of the rows, by their left ends")
            ax.set_yticks([])
