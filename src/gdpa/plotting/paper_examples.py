"""The paper's Fig. 1 and Fig. 2: discs before and after alignment, and the split last node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["draw_example"]

_BLUE, _RED = "#0072B2", "#D55E00"
# Places of the nodes: the line, then the apex (or its halves) above it.
_PLACES = {
    3: [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)],
    4: [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (0.5, 1.0)],
    5: [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (0.0, 1.0), (1.0, 1.0)],
}


def draw_example(figure: Any, data: Mapping[str, Any]) -> bool:
    """Draw discs in the upper row and the three graphs in the lower one.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Empty figure.
    data : mapping
        ``matrix`` and ``scaled``: (centre, radius) of each disc; ``graphs``: name -> matrix.

    Returns
    -------
    bool
        Whether there was anything to draw.
    """
    if not data["matrix"]:
        return False
    figure.set_size_inches(6.8, 5.0)
    grid = figure.add_gridspec(2, 6)
    low = min(c - r for c, r in data["matrix"])
    high = max(c + r for key in ("matrix", "scaled") for c, r in data[key])
    titles = {"matrix": "Fig. 1: discs of M", "scaled": "Fig. 1: discs of S M S⁻¹, aligned"}
    for column, (key, title) in enumerate(titles.items()):
        axis = figure.add_subplot(grid[0, 3 * column : 3 * column + 3])
        _discs(axis, data[key], (low - 0.5, high + 0.5))
        axis.set_title(title)
    for column, (name, matrix) in enumerate(data["graphs"].items()):
        axis = figure.add_subplot(grid[1, 2 * column : 2 * column + 2])
        _graph(axis, matrix)
        axis.set_title(f"Fig. 2 {name}")
    return True


def _discs(axis: Any, discs: list[tuple[float, float]], limits: tuple[float, float]) -> None:
    from matplotlib.patches import Circle

    for number, (centre, radius) in enumerate(discs):
        colour = ("#0072B2", "#D55E00", "#009E73")[number % 3]
        axis.add_patch(Circle((centre, 0.0), radius, fill=False, color=colour, linewidth=1.2))
        axis.plot(centre, 0.0, "o", color=colour, label=f"disc {number + 1}")
        axis.plot(centre - radius, 0.0, "|", color=colour, markersize=12)
    left = min(c - r for c, r in discs)
    axis.axvline(left, color="#777777", linewidth=0.8, linestyle=":")
    half = limits[1] / 2
    axis.annotate(
        f"{left:.4g}", (left, -half), fontsize=7, ha="left", va="bottom",
        xytext=(3, 0), textcoords="offset points",
    )  # fmt: skip
    axis.set_xlim(*limits)
    axis.set_ylim(-half - 0.5, half + 2.5)
    axis.set_aspect("equal")
    axis.set_xlabel("real axis")
    axis.set_ylabel("imaginary axis")
    axis.legend(frameon=False, loc="upper center", ncols=3, columnspacing=1.0, handletextpad=0.2)


def _graph(axis: Any, matrix: list[list[float]]) -> None:
    """Edges blue where positive, red and dashed where negative; self-loops as numbers."""
    places = _PLACES[len(matrix)]
    for i, row in enumerate(matrix):
        for j in range(i):
            weight = -row[j]
            if weight:
                (x0, y0), (x1, y1) = places[i], places[j]
                positive = weight > 0
                axis.plot(
                    [x0, x1], [y0, y1], color=_BLUE if positive else _RED,
                    linestyle="-" if positive else "--", zorder=1,
                )  # fmt: skip
                middle = ((x0 + x1) / 2, (y0 + y1) / 2)
                axis.annotate(
                    f"{weight:+.0f}", middle, fontsize=7, ha="center", va="center",
                    bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"},
                )  # fmt: skip
        loop = sum(row)
        x, y = places[i]
        axis.plot(x, y, "o", color="white", markeredgecolor="#333333", markersize=14, zorder=2)
        axis.annotate(str(i + 1), (x, y), ha="center", va="center", fontsize=8, zorder=3)
        if abs(loop) > 1e-12:
            below = -14 if y == 0 else 10
            axis.annotate(
                f"u = {loop:.0f}", (x, y), xytext=(0, below), textcoords="offset points",
                ha="center", va="center", fontsize=7, color="#555555",
            )  # fmt: skip
    axis.set_xlim(-0.4, 2.4)
    axis.set_ylim(-0.5, 1.5)
    axis.set_axis_off()
