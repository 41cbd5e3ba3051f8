"""Graphs on disk: one .npz file, or a folder of .npy files that can be memory-mapped.

Nothing is pickled: a graph from an unknown source cannot run code. What is read is checked before
it is used.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..files import write_text, written_whole
from ..npz import read_npz
from .adjacency import csr_from_parts

__all__ = ["load_graph", "save_graph"]

FORMAT = 1
PARTS = ("data", "indices", "indptr")


def save_graph(path: str | os.PathLike[str], W: Any) -> Path:
    """Save a sparse graph.

    Parameters
    ----------
    path : str or path
        A name that ends in ``.npz`` makes one file; any other makes a folder, which can be loaded
        memory-mapped. An existing graph there is replaced.
    W : sparse matrix or array-like of shape (n_nodes, n_nodes)
        The weights; type and index type are kept.

    Returns
    -------
    Path
        Where it was saved.
    """
    A = sp.csr_array(W)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"W must be square, got shape {A.shape}")
    if A.dtype.kind not in "fiub":
        raise ValueError(f"W must have real numbers, got dtype {A.dtype}")
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    target = Path(path)
    parts = {name: getattr(A, name) for name in PARTS}
    if target.suffix == ".npz":
        if target.is_dir():
            raise ValueError(f"path {str(target)!r} is a folder; a .npz file was expected")
        with written_whole(target) as staged, staged.open("wb") as file:
            np.savez(file, format=FORMAT, shape=np.array(A.shape, dtype=np.int64), **parts)
        return target
    if target.exists() and not target.is_dir():
        raise ValueError(f"path {str(target)!r} is a file; give a folder or a name with .npz")
    target.mkdir(parents=True, exist_ok=True)
    description = target / "graph.json"
    # Without its description a folder is no graph: a save that is cut short leaves none behind.
    description.unlink(missing_ok=True)
    for name, part in parts.items():
        # Replaced, not overwritten: a graph that is still memory-mapped keeps its old file.
        with written_whole(target / f"{name}.npy") as staged, staged.open("wb") as file:
            np.save(file, part, allow_pickle=False)
    write_text(description, json.dumps({"format": FORMAT, "shape": list(A.shape)}))
    return target


def load_graph(path: str | os.PathLike[str], *, mmap: bool = False) -> sp.csr_array:
    """Load a graph saved by :func:`save_graph`.

    Parameters
    ----------
    path : str or path
        The .npz file or the folder.
    mmap : bool, default=False
        Leave the parts on disk and read what is used (folders only, read-only arrays).

    Returns
    -------
    csr_array
        The graph.

    Raises
    ------
    ValueError
        If there is no graph at `path`, or its parts do not fit together.
    """
    source = Path(path)
    if source.is_dir():
        try:
            described = json.loads((source / "graph.json").read_text())
            # Mapped in any case: an array that declares more than its file has is refused there.
            mapped = {
                name: np.load(source / f"{name}.npy", mmap_mode="r", allow_pickle=False)
                for name in PARTS
            }
            parts = mapped if mmap else {name: np.array(part) for name, part in mapped.items()}
            version, shape = described["format"], tuple(described["shape"])
        except Exception as error:  # a damaged header can provoke any error of the parser
            raise ValueError(
                f"path {str(source)!r} is not a complete saved graph: {error}"
            ) from error
    elif source.is_file():
        if mmap:
            raise ValueError("mmap=True needs a folder; save the graph under a name without .npz")
        try:
            archive = read_npz(source, accepts={*PARTS, "format", "shape"}.__contains__)
            parts = {name: archive[name] for name in PARTS}
            version, shape = int(archive["format"]), tuple(archive["shape"].tolist())
        except Exception as error:
            raise ValueError(f"path {str(source)!r} is not a saved graph: {error}") from error
    else:
        raise ValueError(f"path {str(source)!r} does not exist")
    if version != FORMAT:
        raise ValueError(f"path {str(source)!r} has format {version}; {FORMAT} can be read")
    _check_parts(parts, shape, source)
    return csr_from_parts(parts["data"], parts["indices"], parts["indptr"], shape)


def _check_parts(parts: dict[str, Any], shape: tuple[Any, ...], source: Path) -> None:
    data, indices, indptr = (parts[name] for name in PARTS)
    good = (
        len(shape) == 2
        and shape[0] == shape[1]
        and all(part.ndim == 1 for part in parts.values())
        and indices.dtype.kind == "i"
        and indptr.dtype.kind == "i"
        and data.dtype.kind in "fiub"
        and indptr.size == shape[0] + 1
        and indices.size == data.size
        and indptr[0] == 0
        and indptr[-1] == data.size
        and bool((np.diff(indptr) >= 0).all())
        and (indices.size == 0 or (indices.min() >= 0 and indices.max() < shape[1]))
    )
    if not good:
        raise ValueError(f"path {str(source)!r} holds parts that do not fit together")
