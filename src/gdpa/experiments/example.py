"""The paper's worked examples: Fig. 1 (a 3 x 3 matrix, aligned) and Fig. 2 (a line of three nodes).

Fig. 2 has symbols, no numbers; it is drawn at the paper's start (y = 1 on labelled nodes, 0 else,
M at the apex, z = -xh) with unit weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import balance
from ..problem import GraphProblem
from ..problem.dual import build_H, build_H_bar
from ..solution import DualVariables
from .base import Experiment, Findings, Started, finished_rows
from .config import Config
from .store import Row, Task
from .tables import Cell, Table, difference

__all__ = ["Example"]

M = np.array([[2.0, -2.0, -1.0], [-2.0, 5.0, -2.0], [-1.0, -2.0, 4.0]])
LAMBDA_MIN = 0.1078
FIRST_LEFT_END = -1.0
# Off-diagonal entries of S M S^-1 as printed, row by row.
SCALED = (-1.30, -0.59, -3.07, -1.82, -1.69, -2.20)


class Example(Experiment):
    """Fig. 1 and Fig. 2."""

    name = "example"
    summary = "the paper's worked examples, Fig. 1 and Fig. 2"

    def tasks(self, config: Config) -> list[Task]:
        """One row per figure."""
        if config.datasets is not None or config.methods is not None:
            return []
        return [Task(self.name, {"figure": number}) for number in (1, 2)]

    def compute(self, params: Mapping[str, Any], started: Started) -> dict[str, Any]:
        """Numbers of one figure."""
        started()
        return _alignment() if params["figure"] == 1 else _split()

    def tables(self, rows: Sequence[Row], config: Config) -> list[Table]:
        """Each number of Fig. 1 beside ours; what Fig. 2 shows."""
        found = {row.params["figure"]: row.values for row in finished_rows(rows)}
        tables = []
        if 1 in found:
            ours = found[1]
            body: list[tuple[Cell, ...]] = [
                ("smallest eigenvalue", LAMBDA_MIN, ours["lambda_min"]),
                ("left end of the first disc", FIRST_LEFT_END, ours["left_0"]),
                ("lowest left end after scaling", LAMBDA_MIN, ours["aligned_low"]),
                ("highest left end after scaling", LAMBDA_MIN, ours["aligned_high"]),
            ]
            for k, paper in enumerate(SCALED):
                i, j = divmod(k + k // 3 + 1, 3)
                body.append((f"entry ({i + 1}, {j + 1}) of S M S⁻¹", paper, ours[f"entry_{k}"]))
            lines = tuple((*b, difference(float(b[2] or 0), float(b[1] or 0))) for b in body)
            title = "Fig. 1: aligned discs of a 3 × 3 matrix"
            columns = ("number", "paper", "ours", "difference")
            tables.append(Table("example", title, columns, lines, digits=4))
        if 2 in found:
            ours = found[2]
            lines = (
                ("nodes of H, and of H̄", "4, and 5", f"{ours['n']}, and {ours['n_bar']}"),
                ("signs of the edges of node 4 in H", "both", ours["signs"]),
                ("H̄ is balanced", "yes", "yes" if ours["balanced"] else "no"),
                ("λmin(H) − λmin(H̄) at the start", None, f"{ours['gap']:.4f}"),
            )
            title = "Fig. 2: a line of three nodes, labels +1 and −1 on the first two"
            tables.append(Table("example-line", title, ("what", "paper", "ours"), lines))
        return tables

    def figure(self, rows: Sequence[Row]) -> dict[str, Any]:
        """``matrix``, ``scaled``: centres and radii of the discs; ``graphs``: edges of Fig. 2."""
        if not finished_rows(rows):
            return {"matrix": [], "scaled": [], "graphs": {}}
        _, vectors = np.linalg.eigh(M)
        v = np.abs(vectors[:, 0])
        scaled = M * v[None, :] / v[:, None]
        problem, dual = _line()
        matrices = {
            "(a) line graph": problem.L.toarray(),
            "(b) H": build_H(problem, dual).toarray(),
            "(c) H̄": build_H_bar(problem, dual).toarray(),
        }
        return {
            "matrix": _discs(M),
            "scaled": _discs(scaled),
            "graphs": {name: matrix.tolist() for name, matrix in matrices.items()},
        }

    def findings(self, rows: Sequence[Row]) -> Findings:
        """Fig. 1 agrees to its digits."""
        found = {row.params["figure"]: row.values for row in finished_rows(rows)}
        if 1 not in found:
            return Findings()
        largest = max(abs(found[1][f"entry_{k}"] - paper) for k, paper in enumerate(SCALED))
        text = (
            f"Fig. 1: every number agrees to its printed digits (largest difference {largest:.4f})."
        )
        return Findings((text,)) if largest < 0.01 else Findings((), (text,))


def _discs(A: np.ndarray[Any, Any]) -> list[tuple[float, float]]:
    radii = np.abs(A).sum(axis=1) - np.abs(np.diag(A))
    return [(float(c), float(r)) for c, r in zip(np.diag(A), radii, strict=True)]


def _alignment() -> dict[str, Any]:
    values, vectors = np.linalg.eigh(M)
    v = vectors[:, 0]
    scaled = M * v[None, :] / v[:, None]  # S M S^-1 with S = diag(1 / v)
    off = scaled[~np.eye(3, dtype=bool)]
    ends = [c - r for c, r in _discs(scaled)]
    return {
        "lambda_min": float(values[0]),
        "left_0": float(M[0, 0] - np.abs(M[0, 1:]).sum()),
        "aligned_low": min(ends),
        "aligned_high": max(ends),
        **{f"entry_{k}": float(entry) for k, entry in enumerate(off)},
    }


def _line() -> tuple[GraphProblem, DualVariables]:
    problem = GraphProblem([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [1, -1, 0])
    return problem, DualVariables(y=np.array([1.0, 1.0, 0.0, 2.0]), z=np.array([-1.0, 1.0]))


def _split() -> dict[str, Any]:
    problem, dual = _line()
    H, H_bar = build_H(problem, dual).toarray(), build_H_bar(problem, dual).toarray()
    signs = np.sign(-H[-1, :-1])
    return {
        "n": H.shape[0],
        "n_bar": H_bar.shape[0],
        "signs": "both" if {-1.0, 1.0} <= set(signs.tolist()) else "one",
        "balanced": bool(balance(np.diag(np.diag(H_bar)) - H_bar).balanced),
        "gap": float(np.linalg.eigvalsh(H)[0] - np.linalg.eigvalsh(H_bar)[0]),
    }
