"""What all displays share: the axes to draw on, and colours that colour-blind readers tell apart.

Colours are Okabe and Ito's, and two of Tol's. A class also has a marker, so that pictures can be
read in grey.
"""

from __future__ import annotations

from typing import Any

from ..errors import require

__all__ = ["CLASS_MARKERS", "COLORS", "FAINT", "class_look", "get_axes", "pyplot"]

COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00",
    "#56B4E9", "#7F7F7F", "#000000", "#882255", "#999933",
)  # fmt: skip
CLASS_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", "p")
FAINT = "#9AA3AB"


def pyplot() -> Any:
    """Import matplotlib.pyplot, or say which extra installs it."""
    return require("matplotlib.pyplot", "plot")


def get_axes(ax: Any, *, figsize: tuple[float, float] = (6.0, 4.0)) -> tuple[Any, Any]:
    """Axes to draw on, with their figure.

    Parameters
    ----------
    ax : matplotlib Axes or None
        Given axes, or None for a new figure.
    figsize : pair of float, default=(6, 4)
        Size of a new figure, in inches.

    Returns
    -------
    figure, ax
        The figure and the axes.
    """
    plt = pyplot()
    if ax is None:
        figure, ax = plt.subplots(figsize=figsize, layout="constrained")
        return figure, ax
    if not hasattr(ax, "figure") or not hasattr(ax, "plot"):
        raise ValueError(f"ax={ax!r} is not accepted; a matplotlib Axes, or None for a new figure")
    return ax.figure, ax


def class_look(number: int) -> dict[str, Any]:
    """Colour and marker of the class with this number."""
    shift = number // len(COLORS)
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": CLASS_MARKERS[(number + shift) % len(CLASS_MARKERS)],
    }
