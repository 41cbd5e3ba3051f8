"""ConvergenceDisplay: the quantities that a method reported in its iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import nearest_name, require
from .axes import COLORS, FAINT, Display, get_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..gershgorin import LinearizationResult
    from ..solution import Solution

__all__ = ["ConvergenceDisplay"]

# Quantities on the scale of the objective, and those that go to zero.
VALUES = ("objective", "value", "primal", "dual", "bound", "dual_value")
DISTANCES = ("gap", "residual", "change", "violation", "moved")


class ConvergenceDisplay(Display):
    """Convergence of an iterative method.

    It is recommended to use :meth:`from_solution` to make one.

    Parameters
    ----------
    iterations : array-like of shape (n_iterations,)
        Numbers of the iterations.
    series : mapping of str to array-like of shape (n_iterations,)
        What was reported, by name; NaN where an iteration did not report it.
    title : str, default=""
        Name of the method.
    lower_bound : float, optional
        Final lower bound, drawn as a line beside quantities of the objective's scale.

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

    def __init__(
        self,
        iterations: ArrayLike,
        series: Mapping[str, ArrayLike],
        *,
        title: str = "",
        lower_bound: float | None = None,
    ) -> None:
        self.iterations = np.asarray(iterations)
        self.series = {k: np.asarray(v, dtype=np.float64) for k, v in series.items()}
        for name, values in self.series.items():
            if values.shape != self.iterations.shape:
                raise ValueError(
                    f"series[{name!r}] has shape {values.shape}; one value per iteration is "
                    f"needed, {self.iterations.shape}"
                )
        self.title = title
        self.lower_bound = lower_bound

    @classmethod
    def from_solution(
        cls,
        solution: Solution | LinearizationResult,
        *,
        quantities: str | Sequence[str] | None = None,
        ax: Axes | None = None,
        log: bool | None = None,
    ) -> ConvergenceDisplay:
        """Draw the history of a solution.

        Parameters
        ----------
        solution : Solution or LinearizationResult
            Anything with a `history`: :func:`gdpa.solve` and :func:`gdpa.gershgorin.linearize`
            return such.
        quantities : str or sequence of str, optional
            Which of the reported numbers to draw. By default those on the scale of the objective;
            where there are none, those that go to zero.
        ax : matplotlib Axes, optional
            Where to draw.
        log : bool, optional
            As in :meth:`plot`.

        Returns
        -------
        ConvergenceDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If the history is empty or does not report a quantity.
        """
        history = tuple(getattr(solution, "history", ()))
        method = str(getattr(solution, "method", getattr(solution, "update", "")))
        if not history:
            raise ValueError(f"solution of {method!r} has no history; there is nothing to draw")
        reported = _reported(history)
        if isinstance(quantities, str):
            quantities = (quantities,)
        if quantities is None:
            quantities = [q for q in VALUES if q in reported] or [
                q for q in DISTANCES if q in reported
            ]
            quantities = quantities or reported[:1]
        for name in quantities:
            if name not in reported:
                raise ValueError(
                    f"quantities has {name!r}, which {method!r} does not report; "
                    f"{nearest_name(name, reported)}"
                )
        series = {q: [_number(entry.get(q)) for entry in history] for q in quantities}
        numbers = [entry.get("iteration", i + 1) for i, entry in enumerate(history)]
        on_scale = any(q in ("value", "primal", "dual", "bound") for q in quantities)
        bound = float(getattr(solution, "lower_bound", -np.inf))
        display = cls(
            numbers,
            series,
            title=method,
            lower_bound=bound if on_scale and np.isfinite(bound) else None,
        )
        return display.plot(ax=ax, log=log)

    def plot(self, ax: Axes | None = None, *, log: bool | None = None) -> ConvergenceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        log : bool, optional
            Whether the vertical axis is logarithmic. By default it is for quantities that go to
            zero, if all are positive.

        Returns
        -------
        ConvergenceDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        self.figure_, self.ax_ = get_axes(ax)
        for number, (name, values) in enumerate(self.series.items()):
            self.ax_.plot(
                self.iterations,
                values,
                color=COLORS[number % len(COLORS)],
                linestyle=("-", "--", "-.", ":")[number % 4],
                marker="o",
                markersize=3.5,
                label=name.replace("_", " "),
            )
        if self.lower_bound is not None:
            self.ax_.axhline(
                self.lower_bound, color=FAINT, linestyle=":", zorder=0, label="lower bound"
            )
        if log is None:
            distances = all(name in DISTANCES for name in self.series)
            known = [v[np.isfinite(v)] for v in self.series.values()]
            log = distances and all(v.size and (v > 0).all() for v in known)
        if log:
            self.ax_.set_yscale("log")
        self.ax_.xaxis.set_major_locator(
            require("matplotlib.ticker", "plot").MaxNLocator(integer=True)
        )
        self.ax_.set(xlabel="iteration", title=self.title)
        self.ax_.legend(frameon=False)
        return self


def _number(value: object) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return np.nan
    return float(value)


def _reported(history: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the numbers in a history, in the order of their first appearance."""
    names: dict[str, None] = {}
    for entry in history:
        for name, value in entry.items():
            if name != "iteration" and np.isfinite(_number(value)):
                names.setdefault(name)
    return list(names)
