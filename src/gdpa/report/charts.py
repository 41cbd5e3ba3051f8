"""Layout of the report's charts, which ``templates/charts.html`` draws as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..arrays import FloatArray, NDArray

Chart = dict[str, object]

LEVELS = 5  # of uncertainty
CANVAS = 480  # width and height of a graph
MARGIN = 12
# Shapes of the classes as relative SVG paths of about equal area.
SHAPES = (
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
    "m-2.7 -2.7h5.4v5.4h-5.4z",
    "m0 -3.6l3.4 6h-6.8z",
    "m0 -3.8l3.8 3.8l-3.8 3.8l-3.8 -3.8z",
    "m0 3.6l3.4 -6h-6.8z",
    "m-1.1 -3.3h2.2v2.2h2.2v2.2h-2.2v2.2h-2.2v-2.2h-2.2v-2.2h2.2z",
    "m-3.6 -1.8h7.2v3.6h-7.2z",
    "m-1.8 -3.6h3.6v7.2h-3.6z",
)


def _ticks(low: float, high: float, most: int = 6, whole: bool = False) -> list[float]:
    """Return round values between two limits."""
    span = high - low
    if span <= 0:
        return [low]
    step = 10.0 ** np.floor(np.log10(span / most))
    step *= next(m for m in (1, 2, 2.5, 5, 10, 20) if span / (m * step) <= most)
    if whole:
        step = max(1.0, np.ceil(step))
    first = np.ceil(low / step - 1e-9)
    # Adding zero turns -0 into 0.
    return [float(step * k) + 0.0 for k in np.arange(first, np.floor(high / step + 1e-9) + 1)]


def _scale(low: float, high: float, left: float, right: float) -> Callable[[float], float]:
    """Return a linear map from [low, high] to [left, right]."""
    return lambda value: left + (float(value) - low) / ((high - low) or 1.0) * (right - left)


def histogram(
    values: FloatArray, edges: FloatArray, *, axis: str, threshold: float | None = None
) -> Chart:
    """Lay out a histogram; bars below the threshold are hatched, and a line marks it.

    Parameters
    ----------
    values : ndarray
        The values.
    edges : ndarray
        Bin edges in ascending order.
    axis : str
        Axis label.
    threshold : float, optional
        The threshold.

    Returns
    -------
    dict
        Positions for the template.
    """
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    left = 52
    right = 468
    top = 26
    base = 200
    peak = max(int(counts.max(initial=0)), 1)
    low = float(edges[0])
    high = float(edges[-1])
    place = _scale(low, high, left, right)
    drawn = []
    for count, start, end in zip(counts, edges[:-1], edges[1:], strict=True):
        # Keep small counts visible.
        height = max((base - top) * int(count) / peak, 2.0) if count else 0.0
        drawn.append(
            {
                "x": place(start) + 0.6,
                "y": base - height,
                "width": max(place(end) - place(start) - 1.2, 0.8),
                "height": height,
                "hatched": threshold is not None and (start + end) / 2 < threshold,
                "count": int(count),
                "range": f"{start:.2g} to {end:.2g}",
            }
        )
    marked = threshold is not None and low < threshold < high
    return {
        "width": 480,
        "height": 250,
        "left": left,
        "right": right,
        "top": top,
        "base": base,
        "axis": axis,
        "bars": drawn,
        "counts": [
            (base - t / peak * (base - top), f"{int(t):,}") for t in _ticks(0, peak, 4, whole=True)
        ],
        "ticks": [(place(t), f"{t:.4g}") for t in _ticks(low, high)],
        "mark": place(threshold) if marked and threshold is not None else None,
    }


def bars(labels: Sequence[str], values: Sequence[float], *, axis: str) -> Chart:
    """Lay out horizontal bars for values between 0 and 1.

    Parameters
    ----------
    labels : sequence of str
        Name of each bar.
    values : sequence of float
        Lengths of the bars.
    axis : str
        Axis label.

    Returns
    -------
    dict
        Positions for the template.
    """
    left = 170
    room = 258
    step = 24
    peak = max(*values, 1e-12)
    return {
        "width": 480,
        "height": 12 + step * len(labels),
        "left": left,
        "axis": axis,
        "bars": [
            {"y": 6 + step * i, "width": max(room * v / peak, 1.0), "label": n, "value": v}
            for i, (n, v) in enumerate(zip(labels, values, strict=True))
        ],
    }


def _on_canvas(positions: FloatArray) -> FloatArray:
    """Return positions of the unit square on the canvas of a graph, to a tenth."""
    return np.asarray(np.rint(10 * (MARGIN + positions * (CANVAS - 2 * MARGIN))) / 10)


def graph(
    positions: FloatArray,
    edges: NDArray[np.intp],
    kinds: NDArray[np.intp],
    labeled: NDArray[np.bool_],
    *,
    levels: bool = False,
) -> Chart:
    """Lay out nodes and edges; a ring marks the labelled nodes.

    Parameters
    ----------
    positions : ndarray of shape (n_nodes, 2)
        Positions in the unit square.
    edges : ndarray of shape (n_edges, 2)
        Pairs of nodes.
    kinds : ndarray of int of shape (n_nodes,)
        Class number, or level of uncertainty.
    labeled : ndarray of bool of shape (n_nodes,)
        Nodes with a given label.
    levels : bool, default=False
        Whether `kinds` are levels of uncertainty, drawn in one shape.

    Returns
    -------
    dict
        Paths for the template.
    """
    places = [f"{x:g} {y:g}" for x, y in _on_canvas(positions)]
    ring = "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z"
    dots = []
    for kind in np.unique(kinds):
        shape = SHAPES[0 if levels else int(kind) % len(SHAPES)]
        path = "".join(f"M{places[i]}{shape}" for i in np.flatnonzero(kinds == kind))
        dots.append((f"{'u' if levels else 'k'}{kind}", path))
    return {
        "width": CANVAS,
        "height": CANVAS,
        "edges": "".join(f"M{places[i]}L{places[j]}" for i, j in edges),
        "dots": dots,
        "rings": "".join(f"M{places[i]}{ring}" for i in np.flatnonzero(labeled)),
    }


def intervals(
    left: FloatArray, right: FloatArray, *, low: float, high: float, mark: float
) -> Chart:
    """Lay out intervals on the real axis, one line each; their left ends are dots.

    Parameters
    ----------
    left, right : ndarray
        Ends of the intervals; what lies beyond the axis is cut off.
    low, high : float
        Ends of the axis.
    mark : float
        Position of the dashed line.

    Returns
    -------
    dict
        Paths for the template.
    """
    start = 16
    end = 464
    top = 10
    step = 6
    span = (high - low) or 1.0
    place = _scale(low - 0.04 * span, high, start, end)
    base = top + step * left.size + 6
    heights = top + step * np.arange(left.size)
    lines = "".join(
        f"M{place(a):.1f} {y}H{min(place(b), end):.1f}"
        for a, b, y in zip(left, right, heights, strict=True)
    )
    dots = "".join(f"M{place(a) - 2:.1f} {y}h4" for a, y in zip(left, heights, strict=True))
    return {
        "width": 480,
        "height": base + 30,
        "left": start,
        "right": end,
        "base": base,
        "top": top,
        "lines": lines,
        "dots": dots,
        "ticks": [(place(t), f"{t:.4g}") for t in _ticks(low, high)],
        "mark": place(mark),
        "low": float(left.min()),
        "high": float(left.max()),
        "value": mark,
    }


def star(name: str, centre: tuple[float, float], leaves: FloatArray) -> Chart:
    """Lay out a node with edges to others, in the coordinates of :func:`graph`.

    Parameters
    ----------
    name : str
        Style of the edges.
    centre : tuple of float
        Position of the node in the unit square.
    leaves : ndarray of shape (n, 2)
        Positions of the nodes that it is linked to.

    Returns
    -------
    dict
        Paths for the template.
    """
    x, y = _on_canvas(np.array(centre))
    edges = "".join(f"M{x:g} {y:g}L{a:g} {b:g}" for a, b in _on_canvas(leaves))
    return {"name": name, "x": float(x), "y": float(y), "edges": edges}
