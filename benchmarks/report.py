"""Turn results.json into Markdown and plots: RESULTS.md and part of performance.md."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "RESULTS.md"
PERFORMANCE = ROOT / "docs" / "performance.md"
PLOTS = HERE / "plots"
BEGIN = "<!-- measured: begin (python -m benchmarks --markdown results.json) -->"
END = "<!-- measured: end -->"

HEADINGS = {
    "seconds": "seconds",
    "error_percent": "error %",
    "peak_mb": "peak MB",
    "graph_s": "graph s",
    "tuning_s": "tuning s",
    "solve_s": "solve s",
    "product_s": "product s",
    "graph_mb": "graph MB",
    "graph_peak_mb": "building it, peak MB",
    "solve_peak_mb": "solve, peak MB",
    "fit_peak_mb": "fit, peak MB",
    "fit_kept_mb": "fit, kept MB",
    "data_mb": "data MB",
    "graph_cpu_s": "graph, CPU s",
    "cpu_s": "CPU s",
    "cells_s": "cells s",
    "faiss_s": "faiss s",
    "graph_peak_bytes": "peak bytes per point",
    "kept_over_graph": "kept / graph",
    "gdpa_s": "gdpa s",
    "semi_supervised_s": "semi_supervised s",
    "bare_s": "bare interpreter s",
}
# Okabe and Ito's colours: told apart with any kind of colour vision.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def write_report(data: dict[str, Any]) -> list[Path]:
    """Write RESULTS.md, the plots and the table in docs/performance.md."""
    written = _plots(data)
    shown = [path.name for path in written]
    RESULTS.write_text(_results(data, shown))
    written.append(RESULTS)
    if PERFORMANCE.exists():
        text = PERFORMANCE.read_text()
        if BEGIN in text and END in text:
            head, rest = text.split(BEGIN, 1)
            tail = rest.split(END, 1)[1]
            PERFORMANCE.write_text(f"{head}{BEGIN}\n{_performance(data)}{END}{tail}")
            written.append(PERFORMANCE)
    return written


def number(value: Any) -> str:
    """Print a number in at most four digits."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 0.01:
        return f"{value:.3g}"
    return f"{value:.2e}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _machine(data: dict[str, Any]) -> str:
    m = data["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in m["versions"].items() if v)
    load = m.get("load_at_start")
    return (
        f"Machine: {m['processor']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']}, "
        f"Python {m['python']}; commit {m['commit']}; load at the start "
        f"{'unknown' if load is None else ', '.join(map(str, load))}.\n\nVersions: {versions}.\n"
    )


def _heading(key: str) -> str:
    return HEADINGS.get(key, key.replace("_", " "))


def _case_table(case: dict[str, Any]) -> str:
    measurements = case["measurements"]
    rows_of = [m["median"].get("rows") for m in measurements]
    if any(rows_of):  # cases that make their own rows
        rows = [row for part in rows_of if part for row in part]
        keys = [k for k in case["columns"] or rows[0] if any(k in row for row in rows)]
        body = [[number(row.get(k)) for k in keys] for row in rows]
        return _table([_heading(k) for k in keys], body)
    columns = [c for c in case["columns"] if any(c in m["median"] for m in measurements)]
    body = []
    for m in measurements:
        found = m["median"]
        cells = [number(found.get(c)) for c in columns]
        if found.get("status") != "ok":
            text = str(found.get("status"))
            if "more_than_s" in found:
                text = f"more than {found['more_than_s']:.0f} (stopped)"
            cells = [text, *["-"] * (len(columns) - 1)]
        body.append([m["label"], *cells, str(found.get("runs", 0))])
    return _table(["", *(_heading(c) for c in columns), "runs"], body)


def _claims_table(claims: list[dict[str, Any]]) -> str:
    verdict = {True: "yes", False: "**no**", None: "not measured"}
    return _table(
        ["", "measured", "required", "holds"],
        [
            [
                claim["text"] + (f" ({claim['note']})" if claim.get("note") else ""),
                number(claim["value"]),
                f"{'at least' if claim['at_least'] else 'at most'} {claim['bound']:g}",
                verdict[claim["holds"]],
            ]
            for claim in claims
        ],
    )


def _command(name: str, case: dict[str, Any], data: dict[str, Any]) -> str:
    """Return the command of a case; the commit too, where it is not that of the whole run."""
    text = f"`python -m benchmarks --case {name}{' --quick' if case['quick'] else ''}`"
    commit = case.get("commit")
    return text + (
        f" at commit {commit}" if commit not in (None, data["machine"]["commit"]) else ""
    )


def _results(data: dict[str, Any], plots: list[str]) -> str:
    parts = [
        "# Results of the benchmarks\n",
        "Measured by `python -m benchmarks --out DIR` and written by `python -m benchmarks "
        "--markdown DIR/results.json`; do not edit. Each measurement runs in a new process with "
        "two threads. Repeats are interleaved, and numbers are medians. Peak memory is that of the "
        "whole process, including imports and data. Graphs have 10 neighbours; all other settings, "
        "and all of `CommitteeClassifier`, are the defaults. Extra trees (300) use no graph and no "
        "unlabelled points.\n",
        _machine(data),
    ]
    for name, case in data["cases"].items():
        parts.append(f"## {case['title']}\n")
        parts.append(f"{_command(name, case, data)}\n")
        parts.append(_case_table(case))
        if case["claims"]:
            parts.append(_claims_table(case["claims"]))
        parts += [f"![{case['title']}](plots/{p})\n" for p in plots if p == f"{name}.svg"]
    return "\n".join(parts)


def _performance(data: dict[str, Any]) -> str:
    parts = [_machine(data)]
    for name in ("growth", "million", "memory-20000x50"):
        case = data["cases"].get(name)
        if case is None:
            continue
        parts.append(f"{case['title']}: {_command(name, case, data)}\n")
        parts.append(_case_table(case))
        if case["claims"]:
            parts.append(_claims_table(case["claims"]))
    return "\n".join(parts)


def _plots(data: dict[str, Any]) -> list[Path]:
    if find_spec("matplotlib") is None:
        return []
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "gdpa", "font.size": 10})
    PLOTS.mkdir(exist_ok=True)
    written = []
    for name, case in data["cases"].items():
        if name == "growth":
            written.append(_growth_plot(case, PLOTS / f"{name}.svg"))
        elif "error_percent" in case["columns"]:
            path = _scatter(case, PLOTS / f"{name}.svg")
            if path is not None:
                written.append(path)
    return written


def _save(figure: Any, path: Path) -> Path:
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    return path


def _growth_plot(case: dict[str, Any], path: Path) -> Path:
    from matplotlib.figure import Figure

    good = [m["median"] for m in case["measurements"] if m["median"].get("status") == "ok"]
    figure = Figure(figsize=(8, 3.2))
    left, right = figure.subplots(1, 2)
    n = [row["nodes"] for row in good]
    for axis, unit, keys in (
        (left, "seconds", {"graph_s": "graph", "solve_s": "solve", "product_s": "one product"}),
        (right, "MB", {"graph_peak_mb": "building, peak", "graph_mb": "graph"}),
    ):
        for (key, label), colour, marker in zip(keys.items(), COLOURS, MARKERS, strict=False):
            axis.loglog(
                n, [max(row[key], 1e-6) for row in good], color=colour, marker=marker, label=label
            )
        axis.set_xlabel("points")
        axis.set_ylabel(unit)
        axis.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        axis.grid(alpha=0.3)
    figure.tight_layout()
    return _save(figure, path)


def _scatter(case: dict[str, Any], path: Path) -> Path | None:
    """Time against error, one mark per contender."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    rows = [m for m in case["measurements"] if "error_percent" in m["median"]]
    if len(rows) < 2:
        return None
    figure = Figure(figsize=(5.5, 3.2))
    axis = figure.subplots()
    for m, colour, marker in zip(rows, COLOURS, MARKERS, strict=False):
        axis.scatter(
            m["median"]["seconds"],
            m["median"]["error_percent"],
            color=colour,
            marker=marker,
            s=60,
            label=m["label"],
        )
    axis.set_xscale("log")
    # Plain numbers at 1, 2 and 5: powers of ten crowd where the range is short.
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("seconds")
    axis.set_ylabel("error %")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=8, bbox_to_anchor=(1.02, 1), loc="upper left")
    return _save(figure, path)
