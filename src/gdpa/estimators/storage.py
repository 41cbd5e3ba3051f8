"""Save and load fitted classifiers: arrays and JSON in one ``.npz`` file, never pickle.

The file holds plain numeric and text arrays, a JSON text with the parameters, the version of the
format, and a SHA-256 over all of it. Loading runs no code from the file: it refuses objects, other
formats, newer versions and files whose checksum does not match.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..graph.adjacency import degrees, laplacian_parts
from ..graph.neighbor_graph import NeighborGraph
from ..graph.neighbors import NeighborIndex
from ..graph.rescale import Rescaler
from ..npz import read_npz, write_npz
from .graphs import ClassifierGraph
from .labels import LabelCoding, is_missing
from .options import FitOptions
from .probabilities import winners
from .state import FitRun, FittedState
from .stored_checks import check_state
from .tuning import Setting, Tuning

__all__ = [
    "FORMAT",
    "VERSION",
    "classes_of",
    "get_matrix",
    "plain_params",
    "put_matrix",
    "read_file",
    "read_state",
    "restored_params",
    "state_arrays",
    "write_file",
]

FORMAT = "gdpa-classifier"
# 2: committees.
VERSION = 2
# What a run says that is no number or text; it is computed again where it is asked for.
RUN_ARRAYS = ("seconds", "bounds")


def write_file(path: str | os.PathLike[str], arrays: dict[str, Any], meta: dict[str, Any]) -> Path:
    """Write arrays and JSON with version and checksum.

    Parameters
    ----------
    path : path-like
        Where to; never half written, see :func:`gdpa.files.written_whole`.
    arrays : dict
        Numeric or text arrays.
    meta : dict
        What JSON can hold.

    Returns
    -------
    Path
        The file.
    """
    target = Path(path)
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds Python objects and cannot be stored safely")
    text = json.dumps({"format": FORMAT, "version": VERSION, **meta}, sort_keys=True)
    payload = {**arrays, "json": np.array(text)}
    payload["checksum"] = np.array(_checksum(payload))
    write_npz(target, payload)
    return target


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read and verify a file of :func:`write_file`.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    arrays : dict
        The arrays.
    meta : dict
        The JSON part.

    Raises
    ------
    ValueError
        If it is no such file, damaged, or of a newer version.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"there is no file {source}")
    try:
        arrays = read_npz(source)
        meta = json.loads(str(arrays["json"][()]))
        stored = str(arrays.pop("checksum")[()])
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise ValueError(f"{source} is damaged or no saved classifier: {error}") from error
    except Exception as error:  # zlib.error and the like: whatever a damaged archive provokes
        raise ValueError(f"{source} is damaged: {error}") from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ValueError(f"{source} is no saved classifier")
    if not isinstance(meta.get("version"), int) or meta["version"] < 1:
        raise ValueError(f"{source} is no saved classifier: it has no version")
    if meta["version"] > VERSION:
        raise ValueError(
            f"{source} has format version {meta['version']}, this gdpa reads up to {VERSION}; "
            "install a newer gdpa"
        )
    if _checksum(arrays) != stored:
        raise ValueError(f"{source} is damaged: its checksum does not match its content")
    del arrays["json"]
    return arrays, meta


def _checksum(arrays: dict[str, Any]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def state_arrays(state: FittedState) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take a fitted state apart.

    Parameters
    ----------
    state : FittedState
        The state.

    Returns
    -------
    arrays : dict
        Its arrays.
    meta : dict
        Its numbers and names.
    """
    graph, tuning = state.graph, state.tuning
    arrays: dict[str, Any] = {
        "codes": state.coding.codes,
        "classes": _plain_classes(state.coding.classes),
        "scores": state.scores,
        "shares": state.shares,
        "prior": state.prior,
        "offset": state.offset,
        "unreached": state.unreached,
    }
    _put_sparse(arrays, "W", graph.W)
    meta: dict[str, Any] = {
        "graph": {"kind": graph.kind, "laplacian": graph.laplacian},
        "classes_as_objects": state.coding.classes.dtype.kind == "O",
        "sharpness": state.sharpness,
        "setting": {
            "label_weight": _number(state.setting.label_weight),
            "self_loop": state.setting.self_loop,
        },
        "tuning": {"loss": tuning.loss, "source": tuning.source, "tried": tuning.tried},
        "run": {
            f.name: getattr(state.run, f.name) for f in fields(FitRun) if f.name not in RUN_ARRAYS
        },
    }
    if tuning.left_out is not None:
        arrays["left_out"] = tuning.left_out
    if tuning.checked is not None:
        arrays["left_out_labels"] = tuning.checked
    if graph.rescaler is not None:
        scaler = graph.rescaler
        arrays |= {
            "rescale_columns": scaler.columns,
            "rescale_shift": scaler.shift,
            "rescale_scale": scaler.scale,
        }
        meta["graph"]["rescale"] = {"kind": scaler.kind, "unit_norm": bool(scaler.unit_norm)}
    points = graph.points
    if graph.neighbors is not None:
        near = graph.neighbors
        points = near.index.X
        arrays["scales"] = near.scales
        meta["graph"] |= {
            "n_neighbors": int(near.n_neighbors),
            "bandwidth": near.bandwidth,
            "algorithm": near.algorithm,
            "recall": float(near.recall),
            "prepared_for": int(near.index.prepared_for),
        }
    elif graph.scales is not None:
        arrays["scales"] = graph.scales
        meta["graph"]["bandwidth"] = graph.bandwidth
    if points is not None:
        put_matrix(arrays, "X", points)
    return arrays, meta


def classes_of(arrays: dict[str, Any], meta: dict[str, Any]) -> NDArray[Any]:
    """The classes of a stored state."""
    classes = np.asarray(arrays["classes"])
    return classes.astype(object) if meta["classes_as_objects"] else classes


def read_state(arrays: dict[str, Any], meta: dict[str, Any], options: FitOptions) -> FittedState:
    """Put a fitted state together again.

    Parameters
    ----------
    arrays, meta : dict
        From :func:`read_file`.
    options : FitOptions
        Options of the fit.

    Returns
    -------
    FittedState
        The state.
    """
    check_state(arrays, meta)
    about = meta["graph"]
    W = _get_sparse(arrays, "W")
    adjacency, diagonal = laplacian_parts(W, about["laplacian"])
    rescaler = None
    if "rescale" in about:
        rescaler = Rescaler(
            about["rescale"]["kind"],
            arrays["rescale_columns"],
            arrays["rescale_shift"],
            arrays["rescale_scale"],
            about["rescale"]["unit_norm"],
        )
    X = get_matrix(arrays, "X") if "X_data" in arrays or "X" in arrays else None
    rest: dict[str, Any] = {}
    if about["kind"] == "knn":
        index = NeighborIndex(
            X,
            algorithm=options.algorithm,
            n_jobs=options.n_jobs,
            random_state=options.random_state,
        )
        index.prepared_for = about.get("prepared_for", 0)  # searches as the fitted one did
        rest["neighbors"] = NeighborGraph(
            W,
            index,
            arrays["scales"],
            about["n_neighbors"],
            about["bandwidth"],
            about["algorithm"],
            about["recall"],
        )
    elif about["kind"] == "full":
        rest |= {"points": X, "scales": arrays["scales"], "bandwidth": about["bandwidth"]}
    graph = ClassifierGraph(
        about["kind"],
        W,
        about["laplacian"],
        adjacency,
        diagonal,
        degrees(W),
        rescaler=rescaler,
        **rest,
    )
    coding = LabelCoding(arrays["codes"], classes_of(arrays, meta))
    labels = winners(arrays["shares"], float(meta["sharpness"]), arrays["offset"])
    labels[coding.labeled] = coding.codes[coding.labeled]
    kept = {f.name for f in fields(FitRun)} - set(RUN_ARRAYS)
    setting = Setting(float(meta["setting"]["label_weight"]), float(meta["setting"]["self_loop"]))
    about_tuning = meta["tuning"]
    return FittedState(
        graph=graph,
        coding=coding,
        labels=labels,
        tuning=Tuning(
            setting,
            about_tuning["loss"],
            about_tuning["source"],
            arrays.get("left_out"),
            about_tuning["tried"],
            checked=arrays.get("left_out_labels"),
        ),
        scores=arrays["scores"],
        shares=arrays["shares"],
        prior=arrays["prior"],
        sharpness=float(meta["sharpness"]),
        offset=arrays["offset"],
        unreached=arrays["unreached"],
        run=FitRun(**{"tol": options.tol} | {k: v for k, v in meta["run"].items() if k in kept}),
    )


def plain_params(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON can hold them, or a refusal that names the one that it cannot."""
    out: dict[str, Any] = {}
    for name, value in params.items():
        if name in ("callback", "evidence"):
            continue
        if name == "columns":  # the fitted encoder is stored whole
            value = dict(value) if isinstance(value, dict) else None
        if name == "unlabeled" and is_missing(value):
            value = None
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float):
            value = _number(value)
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}={value!r} cannot be stored without pickle") from error
        out[name] = value
    return out


def restored_params(params: dict[str, Any]) -> dict[str, Any]:
    """Inverse of :func:`plain_params`."""
    return {
        name: float("inf") if name in ("label_weight",) and value == "inf" else value
        for name, value in params.items()
    }


def _number(value: float) -> float | str:
    return "inf" if value == float("inf") else float(value)


def _plain_classes(classes: NDArray[Any]) -> NDArray[Any]:
    if classes.dtype.kind != "O":
        return classes
    if all(isinstance(c, str) for c in classes):
        return classes.astype(str)
    kinds = sorted({type(c).__name__ for c in classes})
    raise ValueError(
        f"classes of kind {', '.join(kinds)} cannot be stored without pickle; use numbers or text"
    )


def _put_sparse(arrays: dict[str, Any], name: str, A: Any) -> None:
    arrays |= {
        f"{name}_data": A.data,
        f"{name}_indices": A.indices,
        f"{name}_indptr": A.indptr,
        f"{name}_shape": np.array(A.shape),
    }


def put_matrix(arrays: dict[str, Any], name: str, A: Any) -> None:
    """Store a matrix, dense or sparse."""
    if sp.issparse(A):
        _put_sparse(arrays, name, A)
    else:
        arrays[name] = np.asarray(A)


def get_matrix(arrays: dict[str, Any], name: str) -> Any:
    """Read a matrix of finite numbers, dense or sparse."""
    A = _get_sparse(arrays, name) if f"{name}_data" in arrays else np.asarray(arrays[name])
    values: NDArray[Any] = A.data if sp.issparse(A) else A  # type: ignore[assignment]
    if A.ndim != 2 or values.dtype.kind != "f" or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a matrix of finite numbers")
    return A


def _get_sparse(arrays: dict[str, Any], name: str) -> sp.csr_array:
    shape = tuple(int(s) for s in arrays[f"{name}_shape"])
    parts = (arrays[f"{name}_data"], arrays[f"{name}_indices"], arrays[f"{name}_indptr"])
    A = sp.csr_array(parts, shape=shape)
    A.check_format(full_check=True)  # an index out of range would be followed in compiled code
    return A
