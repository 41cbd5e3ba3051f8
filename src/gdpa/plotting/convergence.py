"""ConvergenceDisplay: the progress of an iterative method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import nearest_name, require
from ..solution import Solution
from .axes import COLORS, FAINT, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..gershgorin import LinearizationResult

# Quantities on the scale of the objective, and quantities that converge to zero.
VALUES = ("objective", "value", "primal", "dual", "bound", "dual_value")
DISTANCES = ("gap", "residual", "change", "violation", "moved")


@dataclass
class ConvergenceDisplay(Display):
    """Convergence of an iterative method.

    Create one with :meth:`from_solution`.

    Parameters
    ----------
    iterations : array-like of shape (n_iterations,)
        Iteration numbers.
    series : mapping of str to array-like of shape (n_iterations,)
        Reported quantities by name; NaN where an iteration did not report one.
    title : str, default=""
        Name of the method.
    lower_bound : float, optional
        Final lower bound, drawn as a line.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> import gdpa
    >>> from gdpa.plotting import ConvergenceDisplay
    >>> problem, _ = gdpa.datasets.make_moons_graph(60, random_state=0)
    >>> display = ConvergenceDisplay.from_solution(gdpa.solve(problem, "sdr-low-rank"))
    >>> sorted(display.series)
    ['bound', 'value']
    """

    iterations: ArrayLike
    series: Mapping[str, NDArray[np.float64]]
    title: str = ""
    lower_bound: float | None = None

    @classmethod
    def from_solution(
        cls,
        solution: Solution | LinearizationResult,
        *,
        quantities: str | Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> ConvergenceDisplay:
        """Draw the history of a solution.

        Parameters
        ----------
        solution : Solution or LinearizationResult
            Result of :func:`gdpa.solve` or :func:`gdpa.gershgorin.linearize`.
        quantities : str or sequence of str, optional
            The quantities to draw. By default those on the scale of the objective, or, if there
            are none, those that converge to zero.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the history is empty or does not report a quantity.
        """
        history = solution.history
        method = solution.method if isinstance(solution, Solution) else solution.update
        if not history:
            raise ValueError(f"solution of {method!r} has no history to draw")
        names = dict.fromkeys(name for entry in history for name in entry if name != "iteration")
        every = {name: np.array([_number(e.get(name)) for e in history]) for name in names}
        reported = {name: values for name, values in every.items() if np.isfinite(values).any()}
        if isinstance(quantities, str):
            quantities = (quantities,)
        if quantities is None:
            quantities = [q for q in VALUES if q in reported]
            quantities = quantities or [q for q in DISTANCES if q in reported] or [*reported][:1]
        for name in quantities:
            if name not in reported:
                raise ValueError(
                    f"quantities has {name!r}, which {method!r} does not report; "
                    f"{nearest_name(name, list(reported))}"
                )
        bounded = set(quantities) & set(VALUES) and np.isfinite(solution.lower_bound)
        return cls(
            [entry.get("iteration", i) for i, entry in enumerate(history, 1)],
            {name: reported[name] for name in quantities},
            title=method,
            lower_bound=solution.lower_bound if bounded else None,
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> ConvergenceDisplay:
        """Draw the quantities; the scale is logarithmic if all of them converge to zero.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        ConvergenceDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        ax = self._start(ax)
        for number, (name, values) in enumerate(self.series.items()):
            style = ("-", "--", "-.", ":")[number % 4]
            color = COLORS[number % len(COLORS)]
            label = name.replace("_", " ")
            ax.plot(self.iterations, values, f"o{style}", color=color, markersize=3.5, label=label)
        if self.lower_bound is not None:
            ax.axhline(self.lower_bound, color=FAINT, linestyle=":", zorder=0, label="lower bound")
        if all(name in DISTANCES and not (v <= 0).any() for name, v in self.series.items()):
            ax.set_yscale("log")
        ax.xaxis.set_major_locator(require("matplotlib.ticker", "plot").MaxNLocator(integer=True))
        ax.set(xlabel="iteration", title=self.title)
        ax.legend(frameon=False)
        return self


def _number(value: object) -> float:
    """Return a real number as a float, anything else as NaN."""
    return float(value) if isinstance(value, Real) else np.nan
