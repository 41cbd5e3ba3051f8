"""Charts as inline SVG: no script, no network, and a text alternative for each.

Colours are CSS variables of the page, so that dark mode applies to charts too. Classes differ in
shape as well as in colour (the palette is that of Okabe and Ito).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .markup import escape, number

__all__ = ["MOST_SHOWN", "bars", "discs_chart", "graph_chart", "histogram", "legend"]

FloatArray = NDArray[np.float64]

MOST_SHOWN = 8  # classes with a colour of their own
LEVELS = 5
# Drawn from the current point; about equal in area.
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


def _frame(name: str, width: int, height: int, title: str, description: str, body: str) -> str:
    """One chart with its text alternative."""
    return (
        f'<svg class="chart" role="img" aria-labelledby="{name}-t {name}-d" '
        f'viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{name}-t">{escape(title)}</title>'
        f'<desc id="{name}-d">{escape(description, 1000)}</desc>{body}</svg>'
    )


def _text(x: float, y: float, words: str, anchor: str = "middle", style: str = "") -> str:
    mark = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{mark}>{escape(words)}</text>'


def _ticks(low: float, high: float, most: int = 6, whole: bool = False) -> list[float]:
    """Round values between two limits."""
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


def histogram(
    name: str,
    values: FloatArray,
    edges: FloatArray,
    *,
    title: str,
    axis: str,
    marked_below: float | None = None,
    mark_name: str = "",
) -> str:
    """Bars of counts, those below a threshold hatched.

    Parameters
    ----------
    name : str
        Identifier of the chart in the page.
    values : ndarray
        The values.
    edges : ndarray
        Edges of the bins, ascending.
    title, axis : str
        What it shows, and what the values are.
    marked_below : float, optional
        Bars below this are hatched, and a line is drawn.
    mark_name : str, default=""
        What the line means.

    Returns
    -------
    str
        SVG.
    """
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    width, height, left, right, top, base = 480, 250, 52, 12, 26, 200
    peak = max(int(counts.max(initial=0)), 1)
    span = float(edges[-1] - edges[0]) or 1.0

    def place(value: float) -> float:
        return left + (value - float(edges[0])) / span * (width - left - right)

    parts = [
        f'<defs><pattern id="{name}-h" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="6" height="6" class="k1"/>'
        '<rect width="2" height="6" class="paper"/></pattern></defs>'
    ]
    for tick in _ticks(0.0, peak, 4, whole=True):
        y = base - tick / peak * (base - top)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{width - right}"/>')
        parts.append(_text(left - 6, y + 4, number(tick), "end"))
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        # A bar of one row beside one of thousands must still be seen.
        tall = max((base - top) * int(count) / peak, 2.0) if count else 0.0
        hatched = marked_below is not None and (low + high) / 2 < marked_below
        fill = f'fill="url(#{name}-h)"' if hatched else 'class="k0"'
        x = place(float(low))
        parts.append(
            f'<rect {fill} x="{x + 0.6:.1f}" y="{base - tall:.1f}" '
            f'width="{max(place(float(high)) - x - 1.2, 0.8):.1f}" height="{tall:.1f}"/>'
        )
    parts.append(f'<path class="axis" d="M{left} {base}H{width - right}"/>')
    for tick in _ticks(float(edges[0]), float(edges[-1])):
        parts.append(_text(place(tick), base + 17, f"{tick:.4g}"))
    parts.append(_text((left + width - right) / 2, base + 38, axis))
    if marked_below is not None and edges[0] < marked_below < edges[-1]:
        x = place(marked_below)
        parts.append(f'<path class="mark" d="M{x:.1f} {top - 6}V{base}"/>')
        parts.append(_text(x - 5, top - 10, mark_name, "end" if x > 240 else "start"))
    description = ", ".join(
        f"{low:.2g} to {high:.2g}: {int(c)}"
        for c, low, high in zip(counts, edges[:-1], edges[1:], strict=True)
        if c
    )
    return _frame(name, width, height, title, f"Histogram of {axis}. {description}", "".join(parts))


def bars(
    name: str, labels: Sequence[str], values: Sequence[float], *, title: str, axis: str
) -> str:
    """Horizontal bars, one under the other, each with its name and value.

    Parameters
    ----------
    name : str
        Identifier of the chart in the page.
    labels : sequence of str
        Names; escaped here.
    values : sequence of float
        Shares between 0 and 1.
    title, axis : str
        What it shows, and what the values are.

    Returns
    -------
    str
        SVG.
    """
    width, left, right, step = 480, 170, 52, 24
    peak = max(*values, 1e-12)
    parts = []
    for i, (label, value) in enumerate(zip(labels, values, strict=True)):
        y = 6 + step * i
        long = max((width - left - right) * value / peak, 1.0)
        short = label if len(label) <= 22 else label[:21] + "\u2026"
        parts.append(_text(left - 8, y + 15, short, "end"))
        parts.append(f'<rect class="k0" x="{left}" y="{y + 2}" width="{long:.1f}" height="17"/>')
        parts.append(_text(left + long + 6, y + 15, f"{100 * value:.0f} %", "start"))
    description = ", ".join(
        f"{label}: {100 * v:.0f} %" for label, v in zip(labels, values, strict=True)
    )
    height = 12 + step * len(labels)
    return _frame(name, width, height, title, f"Bars of the {axis}. {description}", "".join(parts))


def legend(names: Sequence[str], kinds: Sequence[int], *, levels: bool = False) -> str:
    """Shapes and colours with their names.

    Parameters
    ----------
    names : sequence of str
        The names; escaped here.
    kinds : sequence of int
        Number of the colour (and shape) of each.
    levels : bool, default=False
        Whether the colours are those of levels instead of classes.

    Returns
    -------
    str
        HTML list.
    """
    items = []
    for name, kind in zip(names, kinds, strict=True):
        shape = SHAPES[0 if levels else kind % len(SHAPES)]
        style = f"u{kind}" if levels else f"k{kind}"
        items.append(
            '<li><svg viewBox="-5 -5 10 10" aria-hidden="true">'
            f'<path class="{style} dot" d="M0 0{shape}"/></svg>{escape(name, 40)}</li>'
        )
    return f'<ul class="legend">{"".join(items)}</ul>'


def graph_chart(
    name: str,
    positions: FloatArray,
    edges: NDArray[np.intp],
    kinds: NDArray[np.intp],
    known: NDArray[np.bool_],
    *,
    title: str,
    description: str,
    levels: bool = False,
) -> str:
    """Nodes and edges; a ring marks the labelled nodes.

    Parameters
    ----------
    name : str
        Identifier of the chart in the page.
    positions : ndarray of shape (n_nodes, 2)
        Places in the unit square.
    edges : ndarray of shape (n_edges, 2)
        Pairs of nodes.
    kinds : ndarray of int of shape (n_nodes,)
        Class number, or level of uncertainty.
    known : ndarray of bool of shape (n_nodes,)
        Which nodes had a label.
    title, description : str
        Text alternative.
    levels : bool, default=False
        Whether `kinds` are levels.

    Returns
    -------
    str
        SVG.
    """
    size, margin = 480, 12
    places = np.rint(10 * (margin + positions * (size - 2 * margin))) / 10
    words = [f"{x:g} {y:g}" for x, y in places]
    lines = "".join(f"M{words[i]}L{words[j]}" for i, j in edges)
    parts = [f'<path class="edge" d="{lines}"/>']
    for kind in np.unique(kinds):
        shape = SHAPES[0 if levels else int(kind) % len(SHAPES)]
        dots = "".join(f"M{words[i]}{shape}" for i in np.flatnonzero(kinds == kind))
        style = f"u{kind}" if levels else f"k{kind}"
        parts.append(f'<path class="{style} dot" d="{dots}"/>')
    ring = "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z"
    rings = "".join(f"M{words[i]}{ring}" for i in np.flatnonzero(known))
    if rings:
        parts.append(f'<path class="ring" d="{rings}"/>')
    return _frame(name, size, size, title, description, "".join(parts))


def discs_chart(
    name: str,
    centers: FloatArray,
    radii: FloatArray,
    mark: float,
    *,
    title: str,
    limits: tuple[float, float],
) -> str:
    """Gershgorin discs as intervals of the real axis, one per row, with the smallest eigenvalue.

    Parameters
    ----------
    name : str
        Identifier of the chart in the page.
    centers, radii : ndarray
        The discs.
    mark : float
        The smallest eigenvalue.
    title : str
        What it shows.
    limits : tuple of float
        Range of the axis.

    Returns
    -------
    str
        SVG.
    """
    n = centers.size
    step = 9
    width, left, right, top = 480, 14, 14, 22
    base = top + step * n + 4
    low, high = limits

    def place(value: float) -> float:
        return left + (value - low) / (high - low) * (width - left - right)

    parts = []
    for i, (c, r) in enumerate(zip(centers, radii, strict=True)):
        y = top + step * (i + 0.5)
        x0, x1 = place(max(c - r, low)), place(min(c + r, high))
        parts.append(f'<path class="disc" d="M{x0:.1f} {y:.1f}H{x1:.1f}"/>')
        parts.append(f'<path class="k1" d="M{x0:.1f} {y:.1f}{SHAPES[0]}"/>')
        parts.append(f'<path class="k0" d="M{place(c):.1f} {y:.1f}{SHAPES[1]}"/>')
    x = place(mark)
    parts.append(f'<path class="mark" d="M{x:.1f} {top - 8}V{base}"/>')
    parts.append(_text(x + 4, top - 8, f"smallest eigenvalue {mark:.4g}", "start"))
    parts.append(f'<path class="axis" d="M{left} {base}H{width - right}"/>')
    for tick in _ticks(low, high):
        parts.append(_text(place(tick), base + 16, f"{tick:.4g}"))
    ends = centers - radii
    description = (
        f"{n} discs drawn as intervals; their left ends lie between {ends.min():.4g} and "
        f"{ends.max():.4g}; the smallest eigenvalue is {mark:.4g}."
    )
    return _frame(name, width, base + 24, title, description, "".join(parts))
