"""Print the results of a run as Markdown, and store its rows for the page "Evidence"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

STORE = Path(__file__).resolve().parent / "speed.json"

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


def store_rows(data: dict[str, Any], store: Path = STORE) -> None:
    """Add the rows of a run to the stored ones, from which the page "Evidence" is written."""
    kept = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {"cases": {}}
    machine = data["machine"]
    kept["machine"] = (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"{machine['system']}, Python {machine['python']}"
    )
    for name, case in data["cases"].items():
        rows = []
        for measurement in case["measurements"]:
            median = measurement["median"]
            found = median.get("rows") or [median]
            for row in found:
                shown = {_heading(key): row.get(key) for key in case["columns"] if key in row}
                rows.append({"label": measurement["label"], **shown})
        commit = case.get("commit") or machine["commit"]
        kept["cases"][name] = {"title": case["title"], "commit": commit, "rows": rows}
    store.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


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


def page(data: dict[str, Any]) -> str:
    """Return the results of a run as Markdown.

    Each measurement runs in a new process with two threads. Repeats are interleaved, and numbers
    are medians. Peak memory is that of the whole process, including imports and data.
    """
    parts = ["# Results of the benchmarks\n", _machine(data)]
    for name, case in data["cases"].items():
        parts.append(f"## {case['title']}\n")
        parts.append(f"{_command(name, case, data)}\n")
        parts.append(_case_table(case))
        if case["claims"]:
            parts.append(_claims_table(case["claims"]))
    return "\n".join(parts)
