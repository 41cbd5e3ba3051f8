"""Write the tables of docs/distributed.md from measurements: ``python -m benchmarks.spread_page``.

``--add DIR/results.json`` first stores the cases of a run of ``python -m benchmarks --case spread``
or ``--case spread-kills`` in ``spread.json``, beside this file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from gdpa.files import write_text

HERE = Path(__file__).resolve().parent
STORE = HERE / "spread.json"
PAGE = HERE.parent / "docs" / "distributed.md"
BEGIN = "<!-- measured: begin (python -m benchmarks.spread_page) -->"
END = "<!-- measured: end -->"
CASES = ("spread", "spread-kills")
HOUR = 3600.0


def add(path: Path) -> None:
    """Store the cases of a run; measurements of the same name are replaced."""
    stored = json.loads(STORE.read_text()) if STORE.exists() else {}
    given = json.loads(path.read_text())
    for name in CASES:
        if name not in given["cases"]:
            continue
        case = given["cases"][name]
        rows = stored.setdefault(name, {})
        for measurement in case["measurements"]:
            if measurement["median"].get("status") == "ok":
                rows[measurement["label"]] = {
                    "arguments": measurement["arguments"],
                    "commit": case["commit"],
                    **measurement["median"],
                }
    stored["machine"] = {key: given["machine"][key] for key in ("processor", "cores", "memory_gb")}
    stored["versions"] = given["machine"]["versions"]
    write_text(STORE, json.dumps(stored, indent=1) + "\n")


def _number(value: object, digits: int = 3) -> str:
    if not isinstance(value, int | float):
        return ""
    text = f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.{digits}g}"
    return text if "e" not in text else f"{value:.4f}"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def _networks(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Return the table of all measurements."""
    keys = ("seconds", "cpu_s", "passes", "moved_gb", "worker_peak_gb", "disk_gb", "load")
    found = [[label, *(_number(row.get(key)) for key in keys)] for label, row in rows.items()]
    return _table(
        ["network, and what solved it", "seconds", "CPU s", "passes", "GB moved",
         "peak GB of a process", "GB of disk", "load"],
        found,
    )  # fmt: skip


def _plans(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Return the table of estimates, each beside its measurement."""
    pairs = (
        ("seconds", "plan_s"), ("passes", "plan_passes"), ("worker_peak_gb", "plan_peak_gb"),
        ("disk_gb", "plan_disk_gb"),
    )  # fmt: skip
    runs = {label: row for label, row in rows.items() if "plan_s" in row}
    found = [
        [
            label,
            *(f"{_number(row[plan])} / {_number(row[real])}" for real, plan in pairs),
            _number(row["plan_took_s"]),
        ]
        for label, row in runs.items()
    ]
    worst = []
    for real, plan in pairs:
        ratios = [row[plan] / row[real] for row in runs.values()]
        worst.append(f"{max(max(r, 1 / r) for r in ratios):.2f}")
    found.append(["**largest ratio**", *worst, ""])
    head = ["run", "seconds", "passes", "GB of a worker", "GB of disk", "the plan took, s"]
    return _table(head, found)


def _hour(rows: dict[str, dict[str, Any]], large: dict[str, Any]) -> list[str]:
    """Return what an hour is enough for, extrapolated from the largest runs."""
    lines = []
    sizes = {"power law": large, "planar": rows.get("planar, 1e+07 edges, 2 workers")}
    for kind, row in sizes.items():
        if row is None:
            continue
        per_edge = row["seconds"] / row["edges"]
        # The time of an edge grows with the passes, and these with the size.
        power = 1.0 if kind == "power law" else 1.25
        most = row["edges"] * (HOUR / row["seconds"]) ** (1.0 / power)
        lines.append(
            f"- {kind}: {row['edges']:.0e} edges took {row['seconds']:,.0f} s "
            f"({1e6 * per_edge:.1f} s per million). Extrapolated, not measured: an hour is enough "
            f"for {most:.1e} edges, if time grows like the number of edges"
            + (" to the power 1.25." if power > 1 else ".")
        )
    return lines


def _kills(rows: dict[str, dict[str, Any]]) -> str:
    """Return what the kills did."""
    row = rows["random kills"]
    stages = ", ".join(
        f"{name.removeprefix('in ')} {row[name]:.0f}" for name in row if name.startswith("in ")
    )
    return (
        f"`python -m benchmarks --case spread-kills` (commit {row['commit']}): "
        f"{row['kills']:.0f} kills at random times, {row['workers']:.0f} of a worker and "
        f"{row['clients']:.0f} of the client with its scheduler, in {row['runs']:.0f} runs. "
        f"{row['same']:.0f} of {row['runs']:.0f} runs ended with the bytes of an undisturbed run; "
        f"{row['failed']:.0f} failed. {row['start again']:.0f} times a worker was killed before it "
        f"had answered, and the command asked to be run again. Kills by stage: {stages}. "
        + row.get("note", "")
    ).rstrip()


def text(stored: dict[str, Any]) -> str:
    """Return the measured part of the page."""
    rows = stored["spread"]
    commits = sorted({row["commit"] for row in rows.values()})
    machine = stored["machine"]
    large = stored["hundred million"]
    parts = [
        f"`python -m benchmarks --case spread` (commit {', '.join(commits)}), once each, on "
        f"{machine['cores']} cores ({machine['processor']}) with {machine['memory_gb']:.0f} GB, "
        "which were busy with other work: the load average is in the last column; at 2 both cores "
        "have something to do. So processor time says more than seconds. scikit-network "
        "is its diffusion with 10 passes, NetworkX its harmonic function with 30; neither solves "
        "the system to a tolerance. Their time does not include reading the edges; ours does.",
        "",
        *_networks(rows),
        "",
        f"With a hundred million power-law edges and two workers: {large['seconds']:,.0f} s, "
        f"{large['passes']} passes, {large['worker_peak_gb']} GB per worker. {large['note']}",
        "",
        "What an hour is enough for on this machine, with two workers:",
        "",
        *_hour(rows, large),
        "",
        "Estimates of `gdpa distributed plan`, each made before its run, and what was measured:",
        "",
        *_plans(rows),
        "",
        "The estimates of WordNet are those of commit 3e2022c, which did not use the load average.",
    ]
    if "spread-kills" in stored:
        parts += ["", _kills(stored["spread-kills"])]
    return "\n".join(parts)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--add", type=Path, nargs="*", default=[], metavar="FILE")
    for path in parser.parse_args().add:
        add(path)
    stored = json.loads(STORE.read_text())
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    write_text(PAGE, f"{before}{BEGIN}\n\n{text(stored)}\n\n{END}{after}")
    print(PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
