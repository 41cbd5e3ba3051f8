"""README quotes the figures of the benchmark's page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What README says -> the row of benchmarks/TABLES.md that says it.
ROWS = {
    r"(\d+\.\d) / (\d+\.\d) % error, best mean rank": "gdpa",
    r"extra trees (\d+\.\d) / (\d+\.\d)": "extra trees, 300",
    r"one graph of neighbours (\d+\.\d) / (\d+\.\d)": 'gdpa, graph="knn"',
}


def flat(path: str) -> str:
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


def means(row: str) -> list[float]:
    """Mean errors of a row of the benchmark's page, with 5 and with 20 labels a class."""
    found = re.findall(rf"\| {re.escape(row)} \| (\d+\.\d+) \| \d", flat("benchmarks/TABLES.md"))
    assert len(found) == 2
    return [float(value) for value in found]


@pytest.mark.parametrize("said", list(ROWS))
def test_errors_on_real_tables_are_those_of_the_benchmark(said):
    quoted = re.search(said, flat("README.md"))
    assert quoted is not None, f"README.md does not say {said!r}"
    for value, mean in zip(map(float, quoted.groups()), means(ROWS[said]), strict=True):
        assert abs(value - mean) <= 0.0501  # both are rounded


def test_commands_that_print_figures_exist():
    for module in set(re.findall(r"python -m (benchmarks[.a-z_]*)", flat("README.md"))):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
