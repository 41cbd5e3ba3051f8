"""Show how a call walks through the package: the functions that it enters, file by file.

    python -m benchmarks.walk --write docs/walk.md

A call is watched by the interpreter's profile hook; a function is listed at its first visit, under
the one that called it.
"""

from __future__ import annotations

import argparse
import ast
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
        "The functions that one call enters, each at its first visit under its caller.",
        "`python -m benchmarks.walk --write docs/walk.md` records this page.",
        "",
        "## Files, in the order in which the first call reaches them",
        "",
    ]
    first = next(iter(walks))
    for file in walks[first].files:
        docstring = ast.get_docstring(ast.parse((ROOT / file).read_text(encoding="utf-8"))) or ""
        summary = docstring.split("\n\n")[0].replace("\n", " ")
        lines.append(f"- `{file}`: {summary}")
    for name, found in walks.items():
        lines += ["", f"## {name}", "", "```text"]
        lines += [f"{'  ' * (depth - 1)}{file}: {what}" for depth, file, what in found.steps]
        lines.append("```")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page, or print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", type=Path, help="file to write the page to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.write is None:
        print(page())
    else:
        options.write.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
