"""Charts of the page "Evidence": bars, lines and dots that can be read on a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .claim import Chart

# Okabe and Ito's colours, which can be told apart with any kind of colour vision.
OURS = "#0072B2"
OTHER = "#9aa5ad"
SERIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#555555")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
WIDTH = 6.4


def bars(
    values: Mapping[str, float], label: str, ours: Sequence[str] = (), digits: int = 1
) -> Chart:
    """Return horizontal bars, the smallest value first, with ours in blue."""

    def draw(ax: Any) -> None:
        names = sorted(values, key=lambda name: values[name], reverse=True)
        colours = [OURS if name in ours else OTHER for name in names]
        ax.barh(names, [values[name] for name in names], color=colours)
        for place, name in enumerate(names):
            ax.text(values[name], place, f" {values[name]:.{digits}f}", va="center")
        ax.set_xlabel(label)
        ax.margins(x=0.12)

    return draw


def lines(
    series: Mapping[str, Mapping[float, float]],
    x: str,
    y: str,
    *,
    log: str = "",
    ticks: Sequence[float] = (),
) -> Chart:
    """Return one line per series; `log` names the logarithmic axes, such as "xy"."""

    def draw(ax: Any) -> None:
        for place, (name, points) in enumerate(series.items()):
            ax.plot(
                list(points),
                list(points.values()),
                color=SERIES[place % len(SERIES)],
                marker=MARKERS[place % len(MARKERS)],
                linewidth=2.5 if place == 0 else 1.5,
                label=name,
            )
        if "x" in log:
            ax.set_xscale("log")
        if "y" in log:
            ax.set_yscale("log")
        if ticks:
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.minorticks_off()
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        ax.grid(True, alpha=0.25)
        ax.legend(frameon=False, fontsize=9)

    return draw


def pairs(rows: Mapping[str, Mapping[str, float]], label: str) -> Chart:
    """Return a line of dots per row, one dot per method: differences are seen at a glance."""

    def draw(ax: Any) -> None:
        names = list(rows)[::-1]
        methods = list(next(iter(rows.values())))
        for place, name in enumerate(names):
            found = list(rows[name].values())
            ax.plot([min(found), max(found)], [place, place], color="#d5dadd", zorder=1)
        for i, method in enumerate(methods):
            ax.scatter(
                [rows[name].get(method) for name in names],
                range(len(names)),
                color=SERIES[i % len(SERIES)],
                marker=MARKERS[i % len(MARKERS)],
                label=method,
                zorder=3 if i == 0 else 2,
                s=48 if i == 0 else 30,
            )
        ax.set_yticks(range(len(names)), names)
        ax.set_xlabel(label)
        ax.figure.legend(frameon=False, fontsize=9, loc="outside upper center", ncols=2)

    return draw


def save(chart: Chart, path: Path, height: float) -> None:
    """Draw a chart and write it as SVG, with the same bytes for the same numbers."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    settings = {
        "svg.hashsalt": "gdpa",
        "svg.fonttype": "path",
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(settings):
        figure, ax = plt.subplots(figsize=(WIDTH, height), layout="constrained")
        chart(ax)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
