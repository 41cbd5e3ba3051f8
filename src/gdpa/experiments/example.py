"""The worked example of the paper's first figure: a 3 x 3 matrix and its aligned discs."""

from __future__ import annotations

import numpy as np

from .tables import Cell, Table, difference

__all__ = ["example_table"]

M = np.array([[2.0, -2.0, -1.0], [-2.0, 5.0, -2.0], [-1.0, -2.0, 4.0]])
LAMBDA_MIN = 0.1078
FIRST_LEFT_END = -1.0
# Off-diagonal entries of S M S^-1 as printed, row by row.
SCALED = (-1.30, -0.59, -3.07, -1.82, -1.69, -2.20)


def example_table() -> Table:
    """Compute the numbers of the example.

    Returns
    -------
    Table
        Each number of the figure beside ours.
    """
    values, vectors = np.linalg.eigh(M)
    v = vectors[:, 0]
    scaled = M * v[None, :] / v[:, None]  # S M S^-1 with S = diag(1 / v)
    off = scaled[~np.eye(3, dtype=bool)]
    left_ends = np.diag(M) - np.abs(scaled - np.diag(np.diag(scaled))).sum(axis=1)
    first = float(M[0, 0] - np.abs(M[0, 1:]).sum())
    rows: list[tuple[Cell, ...]] = [
        ("smallest eigenvalue", LAMBDA_MIN, float(values[0])),
        ("left end of the first disc", FIRST_LEFT_END, first),
        ("lowest left end after scaling", LAMBDA_MIN, float(left_ends.min())),
        ("highest left end after scaling", LAMBDA_MIN, float(left_ends.max())),
    ]
    places = [(i, j) for i in range(3) for j in range(3) if i != j]
    for (i, j), paper, ours in zip(places, SCALED, off, strict=True):
        rows.append((f"entry ({i + 1}, {j + 1}) of S M S⁻¹", paper, float(ours)))
    body = tuple((*row, difference(float(row[2] or 0.0), float(row[1] or 0.0))) for row in rows)
    columns = ("number", "paper", "ours", "difference")
    title = "The paper's first figure: aligned discs of a 3 × 3 matrix"
    return Table("example", title, columns, body, digits=4)
