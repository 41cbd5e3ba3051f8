"""Which neighbour search fits a size and a dimension."""

from __future__ import annotations

from ..errors import nearest_name

__all__ = ["ALGORITHMS", "KD_TREE_FEATURES", "choose_algorithm"]

ALGORITHMS = ("auto", "exact", "approximate", "faiss")

# Measured with 5,000 to 50,000 points, clustered and not: up to here the KD-tree beats products of
# whole blocks (at 12 features it is 0.7 to 4 times their time, at 16 2 to 12 times).
KD_TREE_FEATURES = 10
# Up to this many points exact search takes a few seconds at most, and is preferred: by products of
# whole blocks, and by KD-tree. In few dimensions the tree is the fastest at any size.
EXACT_POINTS_BRUTE = 20_000
EXACT_POINTS_TREE = 50_000
ALWAYS_TREE_FEATURES = 5


def choose_algorithm(
    n_samples: int, n_features: int, *, sparse: bool = False, algorithm: str = "auto"
) -> str:
    """Name the search structure for a size and dimension.

    Parameters
    ----------
    n_samples, n_features : int
        Size of the features.
    sparse : bool, default=False
        Whether they are sparse: searched exhaustively, always.
    algorithm : {"auto", "exact", "approximate", "faiss"}, default="auto"
        "exact" is a KD-tree up to 10 features and exhaustive search by blocks beyond.
        "approximate" compares whole cells of points (:class:`~gdpa.graph.cells.CellJoin`). "auto"
        is exact up to 50,000 points (20,000 with more than 10 features; any number with up to 5
        features), else approximate. "faiss" is the inverted file of that library.

    Returns
    -------
    str
        "kd-tree", "brute-force", "cells" or "inverted-file".
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"algorithm={algorithm!r} is not known; {nearest_name(algorithm, list(ALGORITHMS))}"
        )
    exact = "kd-tree" if n_features <= KD_TREE_FEATURES else "brute-force"
    if sparse:
        return "brute-force"
    if algorithm == "exact":
        return exact
    if algorithm == "faiss":
        return "inverted-file"
    limit = EXACT_POINTS_TREE if exact == "kd-tree" else EXACT_POINTS_BRUTE
    if algorithm == "auto" and (n_samples <= limit or n_features <= ALWAYS_TREE_FEATURES):
        return exact
    return "cells"
