"""Classes that look alike as numbers: ``gdpa fit`` keeps every label byte for byte."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

from gdpa.cli.app import run as run_command

from .outcome import RIGHT, generator, must

GROUPS = (
    ("007", "7", "7.0"),
    ("1.10", "1.1", "01.1"),
    ("12345678901234567890", "12345678901234567891"),
    ("1e3", "1000", "1E3"),
    ("TRUE", "True", "true"),
    ("0x10", "16"),
    ("-0", "0", "+0"),
    ("é", "e\u0301"),
)


def run(seed: int) -> str:
    """One table."""
    rng = generator("labels", seed)
    names = list(GROUPS[int(rng.integers(len(GROUPS)))])
    if rng.random() < 0.3:
        names += GROUPS[int(rng.integers(len(GROUPS)))]
    names = list(dict.fromkeys(names))
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "t.csv", Path(folder) / "p.csv"
        rows = [
            [f"{rng.normal() + 3 * (i % len(names)):.3f}", f"{rng.normal():.3f}",
             names[i % len(names)] if i < 40 else ""]
            for i in range(60)
        ]  # fmt: skip
        with data.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["a", "b", "y"], *rows])
        words = [
            "--target",
            "y",
            "--keep",
            "--out",
            str(out),
            "-q",
        ]
        must(run_command(["fit", str(data), *words]) in (0, 1), "the fit fails")
        with out.open(newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        must(len(table) == 60, "a row is missing")
        must(all(row["prediction"] in names for row in table), "a class that nobody gave")
        given = [row["prediction"] for row in table[:40]]
        must(given == [row[2] for row in rows[:40]], "a known label was changed")
    return RIGHT
