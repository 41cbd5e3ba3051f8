"""Trace one call through the package: which functions it enters, in which files, how deep.

    python -m benchmarks.walk                      # the counts of four calls
    python -m benchmarks.walk --write docs/walk.md # the page of the documents

A call is watched by the interpreter's profile hook; a function is listed at its first visit, under
the one that called it.
"""

from __future__ import annotations

import argparse
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import gdpa

__all__ = ["CALLS", "Walk", "page", "walk"]

ROOT = Path(gdpa.__file__).parent
FILES = {
    "graph/features.py": "features checked at the door; blocks of rows, duplicates",
    "graph/search.py": "which search fits; distances; the truth an approximate one is tuned to",
    "graph/adjacency.py": "graphs checked at the door; Laplacians, components",
    "graph/cells.py": "cells of points compared by matrix products",
    "graph/cell_space.py": "where the cells are",
    "threads.py": "how many threads, and of whom",
    "estimators/committee.py": "the ensemble as a scikit-learn estimator",
    "estimators/graph.py": "one graph as a scikit-learn estimator",
    "estimators/base.py": "checks parameters and features, publishes what was fitted",
    "estimators/labels.py": "labels of any kind become class numbers; folds",
    "estimators/options.py": "what the fit is asked for; its progress",
    "estimators/ensemble.py": "members are cross-fitted, weighted, fitted and combined",
    "estimators/members/base.py": "what every member sees, and helpers of members",
    "estimators/members/graphs.py": "graphs as members: labels spread over neighbours",
    "estimators/members/forest.py": "the forest, and its trees as arrays",
    "estimators/members/linear.py": "linear models and Gaussian classes",
    "estimators/members/kernel.py": "kernel machines",
    "estimators/tuning.py": "weights and graph, chosen by cross-validation",
    "estimators/probabilities.py": "scores become shares, shares probabilities; warnings",
    "graph/neighbor_graph.py": "neighbours and distances become weights",
    "graph/neighbors.py": "who is near whom: one index for all searches",
    "system/labeled.py": "the labelled system, written down once",
    "system/closed_form.py": "scores of labels without themselves, all settings at once",
    "system/left_out.py": "the same fold by fold",
    "linalg/spd.py": "positive definite systems, one loop of conjugate gradients",
    "linalg/operator.py": "what can be multiplied",
    "solvers/base.py": "what is done once for all methods",
    "solvers/harmonic.py": "the method: the labelled system, and its bound",
    "gershgorin/bounds.py": "the bounds that discs prove, and the vector that aligns them",
}


@dataclass
class Walk:
    """What one call entered.

    Parameters
    ----------
    steps : list of (int, str, str)
        Depth, file and function, at the first visit of each.
    """

    steps: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def files(self) -> list[str]:
        """Files, in the order of the first visit."""
        return list(dict.fromkeys(file for _, file, _ in self.steps))

    @property
    def depth(self) -> int:
        """How deep calls were nested."""
        return max(depth for depth, _, _ in self.steps)

    def __str__(self) -> str:
        return f"{len(self.steps)} functions in {len(self.files)} files, at most {self.depth} deep"


def walk(call: Callable[[], Any]) -> Walk:
    """Watch a call.

    Parameters
    ----------
    call : callable
        Called once.

    Returns
    -------
    Walk
        What it entered.
    """
    found, seen, root = Walk(), set(), str(ROOT)

    def watch(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(root):
            return
        key = (code.co_filename, code.co_qualname)
        if key in seen:
            return
        seen.add(key)
        depth = 0
        while frame is not None:
            depth += frame.f_code.co_filename.startswith(root)
            frame = frame.f_back
        file = Path(code.co_filename).relative_to(root).as_posix()
        found.steps.append((depth, file, code.co_qualname))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def _fit(n: int, estimator: Any = gdpa.GraphClassifier) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.standard_normal((20, 8))
    group = rng.integers(0, 20, n)
    X = (centres[group] + rng.standard_normal((n, 8))).astype(np.float32)
    y = np.full(n, -1)
    known = rng.choice(n, max(20, n // 100), replace=False)
    y[known] = group[known] % 2
    return lambda: estimator().fit(X, y)


def _solve(n: int) -> Callable[[], Any]:
    model = _fit(n)()
    codes = model.ensemble_.labels.codes
    labels = np.where(codes < 0, 0, 2 * codes - 1)
    return lambda: gdpa.solve(gdpa.GraphProblem(model.graph_, labels))


CALLS: dict[str, Callable[[], Callable[[], Any]]] = {
    "CommitteeClassifier().fit, 2,000 points": lambda: _fit(2_000, gdpa.CommitteeClassifier),
    "GraphClassifier().fit, 2,000 points": lambda: _fit(2_000),
    "GraphClassifier().fit, 60,000 points": lambda: _fit(60_000),
    "gdpa.solve, 2,000 nodes": lambda: _solve(2_000),
}


def page(names: list[str] | None = None) -> str:
    """The page of the documents.

    Parameters
    ----------
    names : list of str, optional
        Which calls; all by default.

    Returns
    -------
    str
        Markdown.
    """
    _fit(300, gdpa.CommitteeClassifier)()  # imports
    walks = {name: walk(CALLS[name]()) for name in names or CALLS}
    lines = [
        "# How a fit walks through the code",
        "",
        "The functions that one call enters: each at its first visit, under the one that called",
        "it. `python -m benchmarks.walk --write docs/walk.md` records this page.",
        "",
        "| call | functions | files | deepest |",
        "|---|---|---|---|",
    ]
    for name, found in walks.items():
        lines.append(f"| `{name}` | {len(found.steps)} | {len(found.files)} | {found.depth} |")
    first = next(iter(walks))
    lines += ["", "## The files, in the order in which the first call comes to them", ""]
    for file in walks[first].files:
        lines.append(f"- `{file}`: {FILES[file]}" if file in FILES else f"- `{file}`")
    for name, found in walks.items():
        lines += ["", f"## {name}", "", "```text"]
        lines += [f"{'  ' * (depth - 1)}{file}: {what}" for depth, file, what in found.steps]
        lines.append("```")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Count, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", type=Path, help="file to write the page to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.write is not None:
        options.write.write_text(page(), encoding="utf-8")
        return
    _fit(300)()
    for name, make in CALLS.items():
        print(f"{name}: {walk(make())}")


if __name__ == "__main__":
    main()
