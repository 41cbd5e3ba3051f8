"""Axes and colours of all displays.

The colours are those of Okabe and Ito and two of Tol's, which colour-blind readers can distinguish.
Each class also has a marker, so that figures can be read in black and white.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

COLORS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#7F7F7F",
    "#000000",
    "#882255",
    "#999933",
)
CLASS_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", "p")
FAINT = "#9AA3AB"


class Display:
    """Base class of the displays, with the axes and the figure."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _start(self, ax: Axes | None, figsize: tuple[float, float] = (6.0, 4.0)) -> Axes:
        """Set and return the axes to draw on; None creates a figure of this size in inches."""
        plt = pyplot()
        if ax is None:
            _, ax = plt.subplots(figsize=figsize, layout="constrained")
        elif not hasattr(ax, "figure") or not hasattr(ax, "plot"):
            raise ValueError(f"ax={ax!r} must be a matplotlib Axes, or None for a new one")
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax


def pyplot() -> ModuleType:
    """Return matplotlib.pyplot, or raise an error that names the extra."""
    return require("matplotlib.pyplot", "plot")


def class_style(number: int) -> dict[str, Any]:
    """Return the colour and marker of a class."""
    shift = number // len(COLORS)
    marker = CLASS_MARKERS[(number + shift) % len(CLASS_MARKERS)]
    return {"color": COLORS[number % len(COLORS)], "marker": marker}
