"""Figures of the reproduction, in the paper's form.

Colours are Okabe and Ito's, which stay apart for colour-blind readers; a marker and a line style go
with each, so that the figures can be read in grey too. Files are written without a display.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import require
from .paper_examples import draw_example

__all__ = ["OKABE_ITO", "draw"]

OKABE_ITO = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#5C5C5C",
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

# One look per method in all figures: (colour, marker, line style).
_LOOKS: dict[str, tuple[int, int, str]] = {
    "GDPA as published": (1, 0, "-"),
    "GDPA as written": (1, 1, ":"),
    "GDPA, default": (0, 0, "-"),
    "SDR, interior point": (2, 2, "-"),
    "SDR, ADMM": (2, 3, "--"),
    "SDR, low rank": (2, 4, ":"),
    "Modified dual, ADMM": (3, 2, "-"),
    "BCR, authors' variant": (4, 1, "-"),
    "SDcut": (4, 3, "--"),
    "GLR-box": (5, 4, "-"),
    "SNS, authors' variant": (5, 5, "--"),
    "Harmonic (closed-form GLR)": (6, 6, "-"),
    "One-step vote": (7, 7, "--"),
    "Exact minimum cut": (7, 3, "-"),
    "SPEC": (6, 1, "-"),
    "SDR": (2, 2, "-"),
    "GDPA": (1, 0, "-"),
    "SNS": (5, 5, "-"),
    "exact cut": (7, 3, "-"),
    "SeDuMi": (2, 2, "-"),
    "MOSEK": (2, 5, "--"),
    "CDCS-8": (2, 3, "--"),
    "CDCS-20": (3, 2, "-"),
    "BCR": (4, 1, "-"),
    "GLR": (6, 6, "-"),
}
_STYLE = {
    "figure.dpi": 150,
    "savefig.dpi": 200,
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "svg.fonttype": "none",
    "svg.hashsalt": "gdpa",
}


def _look(label: str) -> dict[str, Any]:
    number = sum(label.encode())  # the same in every process, unlike hash()
    colour, marker, line = _LOOKS.get(label, (number % 8, number // 8 % 8, "-"))
    return {"color": OKABE_ITO[colour], "marker": _MARKERS[marker], "linestyle": line}


def draw(name: str, data: Mapping[str, Any], folder: Path, origin: str = "") -> tuple[Path, ...]:
    """Draw the figures of one experiment.

    Parameters
    ----------
    name : str
        Name of the experiment.
    data : mapping
        What the experiment's ``figure`` gives.
    folder : pathlib.Path
        Where the files go; PNG and SVG of each figure.
    origin : str, default=""
        Commit, date and versions; written into the files.

    Returns
    -------
    tuple of pathlib.Path
        The PNG files.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    require("matplotlib", "plot")
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    makers: dict[str, Callable[[Any, Mapping[str, Any]], bool]] = {
        "example": draw_example,
        "table1": _table1,
        "table2": _table2,
        "runtime": _runtime,
        "cod-rna": _cod_rna,
        "bound": _bound,
    }
    with matplotlib.rc_context(_STYLE):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)  # no pyplot: no display, no global state
        if not makers[name](figure, data):
            return ()
        path = folder / f"{name}.png"
        figure.savefig(path, metadata={"Comment": origin})
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Description": origin})
    return (path,)


def _legend_below(figure: Any, axes: Any, columns: int) -> None:
    handles, labels = [], []
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def _table1(figure: Any, data: Mapping[str, Any]) -> bool:
    """Error over noise, a panel per length and graph: ours filled, the paper's open."""
    ours, paper = data["ours"], data["paper"]
    if not ours:
        return False
    figure.set_size_inches(6.8, 5.2)
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    for row, n in enumerate((100, 200)):
        for column, hops in enumerate((1, 2)):
            axis = axes[row, column]
            for label in ("SPEC", "SDR", "GDPA", "SNS", "exact cut"):
                for source, name in ((ours, label), (paper, f"{label}, paper")):
                    cells = source.get(label, {})
                    points = sorted((c[2], v) for c, v in cells.items() if c[:2] == (n, hops))
                    if not points:
                        continue
                    look = _look(label)
                    if source is paper:
                        look |= {"linestyle": "none", "markerfacecolor": "none", "markersize": 8}
                    axis.plot(*zip(*points, strict=True), label=name, **look)
            axis.set_title(f"N = {n}, {hops}-hop line graph")
            axis.set_xticks([1.0, 1.5, 2.0])
            axis.set_ylim(bottom=0)
            if row == 1:
                axis.set_xlabel("noise standard deviation σ")
            if column == 0:
                axis.set_ylabel("restoration error (%)")
    _legend_below(figure, axes.flat, 5)
    return True


def _table2(figure: Any, data: Mapping[str, Any]) -> bool:
    """Mean error per method, a panel per re-scaling: ours filled, the paper's open."""
    means: Sequence[tuple[str, Mapping[str, tuple[float, float | None]]]] = data["means"]
    if not means:
        return False
    figure.set_size_inches(6.8, 0.6 + 0.2 * len(means) + 0.5)
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
        axis.set_title(rescaling)
        axis.set_xlabel("mean classification error of 17 sets (%)")
    axes[0].set_yticks(list(positions), [label for label, _ in means])
    _legend_below(figure, axes, 2)
    return True


def _runtime(figure: Any, data: Mapping[str, Any]) -> bool:
    """Time in milliseconds, logarithmic, over data sets in ascending order of size."""
    names, sizes = data["names"], data["sizes"]
    if not names:
        return False
    figure.set_size_inches(6.8, 7.6)
    axes = figure.subplots(2, 1, sharex=True, sharey=True)
    ticks = [f"{name} ({size})" for name, size in zip(names, sizes, strict=True)]
    panels = (("series", "ours, processor time"), ("authors", "the authors' stored times"))
    for axis, (key, title) in zip(axes, panels, strict=True):
        for label, values in data[key].items():
            axis.plot(range(len(names)), values, label=label, **_look(label))
        axis.set_title(title)
        axis.set_yscale("log")
        axis.set_ylabel("time (ms)")
        axis.grid(axis="x", visible=False)
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes[1].set_xlabel("data set (problem size)")
    axes[1].set_xticks(range(len(names)), ticks, rotation=60, ha="right", rotation_mode="anchor")
    return True


def _cod_rna(figure: Any, data: Mapping[str, Any]) -> bool:
    """Time over number of samples, both logarithmic, a panel per graph."""
    series: Mapping[tuple[str, str], tuple[list[int], list[float], float | None]] = data["series"]
    if not series:
        return False
    figure.set_size_inches(6.8, 4.6)
    titles = {"full": "full graph (the paper's)", "sparse": "10-nearest-neighbour graph"}
    panels = [graph for graph in titles if any(key[0] == graph for key in series)]
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, graph in zip(axes, panels, strict=True):
        for (which, label), (sizes, values, _) in series.items():
            if which == graph:
                axis.plot(sizes, values, label=label, **_look(label))
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(titles[graph])
        axis.set_xlabel("number of samples N")
    axes[0].set_ylabel("processor time (ms)")
    bottom, top = axes[0].get_ylim()
    for axis in axes:
        _slopes(axis, bottom / 3.0)
    axes[0].set_ylim(bottom / 3.0, top)
    _legend_below(figure, axes, 4)
    return True


def _slopes(axis: Any, bottom: float) -> None:
    """Two guides in the empty lower right corner: linear and cubic growth."""
    left, right = axis.get_xlim()
    for power, name, end in ((1, "N", right / 1.2), (3, "N³", right / 8.0)):
        start = end / (5.0 if power == 1 else 2.0)
        low = bottom * 1.5
        high = low * (end / start) ** power
        axis.plot([start, end], [low, high], color="#777777", linewidth=0.8, zorder=0)
        axis.annotate(
            f"∝ {name}", (start, low), color="#777777", fontsize=7, ha="right", va="bottom",
            xytext=(-2, 0), textcoords="offset points",
        )  # fmt: skip
    axis.set_xlim(left, right)


def _bound(figure: Any, data: Mapping[str, Any]) -> bool:
    """Bound over true gap, one point per run, with the line on which they are equal."""
    gap, bound = data["gap"], data["bound"]
    if not any(value > 0 for value in gap):
        return False
    figure.set_size_inches(4.2, 3.8)
    axis = figure.subplots()
    for index, rescaling in enumerate(("min-max", "standardization")):
        points = [
            (g, b)
            for g, b, r in zip(gap, bound, data["rescaling"], strict=True)
            if r == rescaling and g > 0 and b > 0
        ]
        if points:
            axis.plot(
                *zip(*points, strict=True), linestyle="none", marker=_MARKERS[index],
                color=OKABE_ITO[index], label=rescaling, alpha=0.8,
            )  # fmt: skip
    low = min(value for value in [*gap, *bound] if value > 0)
    high = max([*gap, *bound])
    axis.plot([low, high], [low, high], color="#777777", linewidth=0.8, label="bound = gap")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("true gap F(H̄) − F(H)")
    axis.set_ylabel("error bound F(H̄) − F(H̃)")
    axis.legend(frameon=False, loc="upper left")
    return True
