"""Figures of the reproduction, in the paper's form.

Colours are Okabe and Ito's, which stay apart for colour-blind readers; a marker and a line style go
with each, so that the figures can be read in grey too. Files are written without a display.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from gdpa.errors import require
from gdpa.plotting import GershgorinDisplay

from .methods import METHODS

OKABE_ITO = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#5C5C5C",
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

# Looks of the names that no method here has: columns of the paper and of the authors' files.
_LOOKS = {
    "SDR": (2, 2, "-"), "GDPA": (1, 0, "-"), "SNS": (5, 5, "-"), "exact cut": (7, 3, "-"),
    "SeDuMi": (2, 2, "-"), "MOSEK": (2, 5, "--"), "CDCS-8": (2, 3, "--"), "CDCS-20": (3, 2, "-"),
    "BCR": (4, 1, "-"), "GLR": (6, 6, "-"), "authors' GDPA": (1, 2, "--"),
    "authors' SNS": (5, 4, "--"),
} | {spec.label: spec.look for spec in METHODS.values() if spec.look}  # fmt: skip

# Places of the nodes: the line, then the apex (or its halves) above it.
_PLACES = {
    3: [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)],
    4: [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (0.5, 1.0)],
    5: [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (0.0, 1.0), (1.0, 1.0)],
}


def _look(label: str) -> dict[str, Any]:
    if label.endswith(", one label"):
        return {**_look(label.removesuffix(", one label")), "linestyle": ":", "alpha": 0.6}
    number = sum(label.encode())  # the same in every process, unlike hash()
    colour, marker, line = _LOOKS.get(label, (number % 8, number // 8 % 8, "-"))
    return {"color": OKABE_ITO[colour], "marker": _MARKERS[marker], "linestyle": line}


def draw(name: str, data: Mapping[str, Any], folder: Path, origin: str = "") -> Path:
    """Draw the figure of one experiment as PNG and SVG.

    Parameters
    ----------
    name : str
        Name of the experiment.
    data : mapping
        What the experiment's ``figure`` returns.
    folder : pathlib.Path
        Where the files go.
    origin : str, default=""
        Commit, date and versions; written into the files.

    Returns
    -------
    pathlib.Path
        The PNG file.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    require("matplotlib", "plot")
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    makers: dict[str, Callable[[Any, Any], None]] = {
        "example": _example, "table1": _table1, "table2": _table2, "runtime": _runtime,
        "cod-rna": _cod_rna, "bound": _bound,
    }  # fmt: skip
    with as_file(files(__package__) / "figures.mplstyle") as style, rc_context(fname=style):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        makers[name](figure, data)
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.png"
        figure.savefig(path, metadata={"Comment": origin})
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Description": origin})
    return path


def _legend_below(figure: Any, axes: Any, columns: int) -> None:
    handles, labels = [], []
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _example(figure: Any, data: Mapping[str, Any]) -> None:
    """Fig. 1, discs before and after alignment, above Fig. 2, the split last node."""
    figure.set_size_inches(6.8, 5.0)
    grid = figure.add_gridspec(2, 6)
    for column, (title, v) in enumerate((("M", None), ("S M S⁻¹, aligned", data["v"]))):
        axis = figure.add_subplot(grid[0, 3 * column : 3 * column + 3])
        GershgorinDisplay.from_matrix(data["matrix"], v=v, ax=axis)
        axis.set_title(f"Fig. 1: discs of {title}")
    for column, (name, matrix) in enumerate(data["graphs"].items()):
        axis = figure.add_subplot(grid[1, 2 * column : 2 * column + 2])
        _graph(axis, matrix)
        axis.set_title(f"Fig. 2 {name}")


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
                    [x0, x1], [y0, y1], color=OKABE_ITO[0] if positive else OKABE_ITO[1],
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
    axis.set(xlim=(-0.4, 2.4), ylim=(-0.5, 1.5))
    axis.set_axis_off()


def _table1(figure: Any, data: Mapping[str, Any]) -> None:
    """Error over noise, a panel per length and graph: ours filled, the paper's open."""
    ours, paper = data["ours"], data["paper"]
    figure.set_size_inches(6.8, 5.2)
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    opened = {"linestyle": "none", "markerfacecolor": "none", "markersize": 8}
    for axis, (n, hops) in zip(axes.flat, itertools.product((100, 200), (1, 2)), strict=True):
        for label in ("SPEC", "SDR", "GDPA", "SNS", "exact cut"):
            look = _look(label)
            for source, name, extra in ((ours, "", {}), (paper, ", paper", opened)):
                cells = source.get(label, {}).items()
                points = sorted((c[2], v) for c, v in cells if c[:2] == (n, hops))
                if points:
                    axis.plot(*zip(*points, strict=True), label=label + name, **look | extra)
        axis.set(title=f"N = {n}, {hops}-hop line graph", xticks=[1.0, 1.5, 2.0])
        axis.set_ylim(bottom=0)
    for axis in axes[1]:
        axis.set_xlabel("noise standard deviation σ")
    for axis in axes[:, 0]:
        axis.set_ylabel("restoration error (%)")
    _legend_below(figure, axes.flat, 5)


def _table2(figure: Any, data: Mapping[str, Any]) -> None:
    """Mean error per method, a panel per re-scaling: ours filled, the paper's open."""
    means: Sequence[tuple[str, Mapping[str, tuple[float, float | None]]]] = data["means"]
    figure.set_size_inches(6.8, 1.1 + 0.2 * len(means))
    axes = figure.subplots(1, 2, sharey=True, sharex=True)
    means = sorted(means, key=lambda item: -sum(v[0] for v in item[1].values()) / len(item[1]))
    positions = range(len(means))
    for axis, rescaling in zip(axes, ("min-max", "standardization"), strict=True):
        for position, (_, entry) in zip(positions, means, strict=True):
            if rescaling not in entry:
                continue
            ours, paper = entry[rescaling]
            if paper is not None:
                axis.plot([ours, paper], [position] * 2, color="#999999", linewidth=1, zorder=1)
                axis.plot(
                    paper, position, "D", color=OKABE_ITO[1], markerfacecolor="white",
                    label="paper", zorder=2,
                )  # fmt: skip
            axis.plot(ours, position, "o", color=OKABE_ITO[0], label="ours", zorder=3)
        axis.set(title=rescaling, xlabel="mean classification error (%)")
    axes[0].set_yticks(list(positions), [label for label, _ in means])
    _legend_below(figure, axes, 2)


def _runtime(figure: Any, data: Mapping[str, Any]) -> None:
    """Time in milliseconds, logarithmic, over data sets in ascending order of size."""
    figure.set_size_inches(6.8, 7.6)
    axes = figure.subplots(2, 1, sharex=True, sharey=True)
    places = range(len(data["ticks"]))
    panels = (("series", "ours, processor time"), ("authors", "the authors' stored times"))
    for axis, (key, title) in zip(axes, panels, strict=True):
        for label, values in data[key].items():
            axis.plot(places, values, label=label, **_look(label))
        axis.set(title=title, yscale="log", ylabel="time (ms)")
        axis.grid(axis="x", visible=False)
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[1].set_xlabel("data set (problem size)")
    axes[1].set_xticks(places, data["ticks"], rotation=60, ha="right", rotation_mode="anchor")


def _cod_rna(figure: Any, data: Mapping[str, Any]) -> None:
    """Time over number of samples, both logarithmic, a panel per graph."""
    series: Mapping[tuple[str, str], tuple[list[int], list[float]]] = data["series"]
    figure.set_size_inches(6.8, 4.6)
    titles = {"full": "full graph (the paper's)", "sparse": "10-nearest-neighbour graph"}
    panels = [graph for graph in titles if any(key[0] == graph for key in series)]
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, graph in zip(axes, panels, strict=True):
        for (which, label), (sizes, values) in series.items():
            if which == graph:
                axis.plot(sizes, values, label=label, **_look(label))
        axis.set(xscale="log", yscale="log", title=titles[graph], xlabel="number of samples N")
    axes[0].set_ylabel("processor time (ms)")
    _legend_below(figure, axes, 3)


def _bound(figure: Any, data: Mapping[str, Any]) -> None:
    """Bound over true gap, one point per run, with the line on which they are equal."""
    values = [value for pairs in data.values() for pair in pairs for value in pair]
    figure.set_size_inches(4.2, 3.8)
    axis = figure.subplots()
    for colour, marker, (rescaling, pairs) in zip(OKABE_ITO, _MARKERS, data.items(), strict=False):
        look = {"color": colour, "marker": marker, "linestyle": "none", "alpha": 0.8}
        axis.plot(*zip(*pairs, strict=True), label=rescaling, **look)
    ends = [min(values), max(values)]
    axis.plot(ends, ends, color="#777777", linewidth=0.8, label="bound = gap")
    axis.set(xscale="log", xlabel="true gap F(H̄) − F(H)")
    axis.set(yscale="log", ylabel="error bound F(H̄) − F(H̃)")
    axis.legend(loc="upper left")
