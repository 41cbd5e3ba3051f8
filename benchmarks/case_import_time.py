"""Import time in fresh interpreters: gdpa beside scikit-learn's semi_supervised."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

from .runner import Case, Claim, Measurement, Medians, value_of

MODULES = {"gdpa_s": "gdpa", "semi_supervised_s": "sklearn.semi_supervised", "bare_s": "sys"}


def interpreters(repeats: int = 7) -> dict[str, Any]:
    """Median over fresh interpreters, interleaved, the bare interpreter taken off."""
    times: dict[str, list[float]] = {key: [] for key in MODULES}
    for turn in range(repeats + 1):
        for key, module in MODULES.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
            if turn:  # the first reads files from disk
                times[key].append(time.perf_counter() - start)
    result = {key: statistics.median(values) for key, values in times.items()}
    bare = result["bare_s"]
    result["ratio"] = (result["gdpa_s"] - bare) / (result["semi_supervised_s"] - bare)
    return result


def plan(quick: bool) -> list[Measurement]:
    """One measurement."""
    return [
        Measurement(
            "import",
            "benchmarks.case_import_time:interpreters",
            {"repeats": 3 if quick else 7},
            repeats=1,
            limit=120.0,
        )
    ]


def claims(medians: Medians) -> list[Claim]:
    """Under one and a half times."""
    return [
        Claim(
            "import of gdpa over import of sklearn.semi_supervised",
            value_of(medians, "import", "ratio"),
            1.5,
            at_least=False,
        )
    ]


CASE = Case(
    "import-time", "Import time", plan, claims, ("gdpa_s", "semi_supervised_s", "bare_s", "ratio")
)
