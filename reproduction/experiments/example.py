"""The paper's worked examples: Fig. 1 (a 3 x 3 matrix, aligned) and Fig. 2 (a line of three nodes).

Fig. 2 has symbols, no numbers; it is drawn at the paper's start (y = 1 on labelled nodes, 0 else,
M at the apex, z = -xh) with unit weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gdpa.graph import balance
from gdpa.problem import GraphProblem
from gdpa.problem.dual import build_H, build_H_bar
from gdpa.solution import DualVariables

from ..config import Config
from ..store import Row, Task
from ..tables import Cell, Table, difference, make_table
from .base import Experiment, Params, Started, finished_rows

M = np.array([[2.0, -2.0, -1.0], [-2.0, 5.0, -2.0], [-1.0, -2.0, 4.0]])
# What the paper prints: the key in our rows, its name, the number.
PRINTED = (
    ("lambda_min", "smallest eigenvalue", 0.1078),
    ("left_0", "left end of the first disc", -1.0),
    ("aligned_low", "lowest left end after scaling", 0.1078),
    ("aligned_high", "highest left end after scaling", 0.1078),
    ("entry_0", "entry (1, 2) of S M S⁻¹", -1.30),
    ("entry_1", "entry (1, 3) of S M S⁻¹", -0.59),
    ("entry_2", "entry (2, 1) of S M S⁻¹", -3.07),
    ("entry_3", "entry (2, 3) of S M S⁻¹", -1.82),
    ("entry_4", "entry (3, 1) of S M S⁻¹", -1.69),
    ("entry_5", "entry (3, 2) of S M S⁻¹", -2.20),
)


class Example(Experiment):
    """Fig. 1 and Fig. 2."""

    name = "example"
    summary = "the paper's worked examples, Fig. 1 and Fig. 2"

    def tasks(self, config: Config) -> list[Task]:
        """One row per figure."""
        if config.datasets is not None or config.methods is not None:
            return []
        return [Task(self.name, {"figure": number}) for number in (1, 2)]

    def compute(self, params: Params, started: Started) -> dict[str, Any]:
        """Numbers of one figure."""
        started()
        return _alignment() if params["figure"] == 1 else _split()

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Each number of Fig. 1 beside ours; what Fig. 2 shows."""
        found = {row.params["figure"]: row.values for row in finished_rows(rows)}
        tables = []
        if 1 in found:
            body: list[tuple[Cell, ...]] = [
                (words, paper, found[1][key], difference(found[1][key], paper))
                for key, words, paper in PRINTED
            ]
            tables.append(make_table("example", body))
        if 2 in found:
            ours = found[2]
            body = [
                ("nodes of H, and of H̄", "4, and 5", f"{ours['n']}, and {ours['n_bar']}"),
                ("signs of the edges of node 4 in H", "both", ours["signs"]),
                ("H̄ is balanced", "yes", "yes" if ours["balanced"] else "no"),
                ("λmin(H) − λmin(H̄) at the start", None, f"{ours['gap']:.4f}"),
            ]
            tables.append(make_table("example-line", body))
        return tables

    def figure(self, rows: Sequence[Row]) -> dict[str, Any]:
        """``matrix`` and its first eigenvector ``v``; ``graphs``: matrices of Fig. 2."""
        problem, dual = _line()
        matrices = {
            "(a) line graph": problem.L,
            "(b) H": build_H(problem, dual),
            "(c) H̄": build_H_bar(problem, dual),
        }
        graphs = {name: matrix.toarray().tolist() for name, matrix in matrices.items()}
        return {"matrix": M, "v": np.linalg.eigh(M)[1][:, 0], "graphs": graphs}


def _discs(A: NDArray[np.float64]) -> list[tuple[float, float]]:
    radii = np.abs(A).sum(axis=1) - np.abs(np.diag(A))
    return [(float(c), float(r)) for c, r in zip(np.diag(A), radii, strict=True)]


def _alignment() -> dict[str, Any]:
    values, vectors = np.linalg.eigh(M)
    v = vectors[:, 0]
    scaled = M * v[None, :] / v[:, None]  # S M S^-1 with S = diag(1 / v)
    ends = [c - r for c, r in _discs(scaled)]
    return {
        "lambda_min": float(values[0]),
        "left_0": float(M[0, 0] - np.abs(M[0, 1:]).sum()),
        "aligned_low": min(ends),
        "aligned_high": max(ends),
        **{f"entry_{k}": float(e) for k, e in enumerate(scaled[~np.eye(3, dtype=bool)])},
    }


def _line() -> tuple[GraphProblem, DualVariables]:
    problem = GraphProblem([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [1, -1, 0])
    return problem, DualVariables(y=np.array([1.0, 1.0, 0.0, 2.0]), z=np.array([-1.0, 1.0]))


def _split() -> dict[str, Any]:
    problem, dual = _line()
    H, H_bar = build_H(problem, dual).toarray(), build_H_bar(problem, dual).toarray()
    signs = set(np.sign(-H[-1, :-1]).tolist())
    return {
        "n": H.shape[0],
        "n_bar": H_bar.shape[0],
        "signs": "both" if {-1.0, 1.0} <= signs else "one",
        "balanced": bool(balance(np.diag(np.diag(H_bar)) - H_bar).balanced),
        "gap": float(np.linalg.eigvalsh(H)[0] - np.linalg.eigvalsh(H_bar)[0]),
    }
