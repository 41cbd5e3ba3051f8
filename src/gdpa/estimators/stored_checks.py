"""What a stored classifier must be, checked in every length, range and word before it is used.

A checksum shows damage; whoever tampers with a file computes it anew. So nothing that is read is
believed: numbers are finite and in range, arrays fit each other, words are among those known.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..graph.adjacency import check_adjacency
from ..graph.features import check_features
from .state import FitRun

__all__ = ["check_features_in", "check_state", "refusing"]

GRAPHS = ("knn", "full", "precomputed", "forest")
LAPLACIANS = ("normalized", "combinatorial")
BANDWIDTHS = ("self-tuning", "median")
ROUNDING = 1e-6


@contextlib.contextmanager
def refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever a content that does not fit provokes into a ValueError with the file's name."""
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError) as error:
        what = f"{type(error).__name__} {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path} is no valid saved classifier: {what}") from error


def must(holds: object, what: str) -> None:
    """Refuse the file unless `holds`."""
    if not holds:
        raise ValueError(what)


def check_state(arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Check the arrays and the description of one fitted state.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        As stored; sparse matrices in their parts.
    meta : mapping
        As stored.

    Raises
    ------
    ValueError
        If something is missing, of another kind, length or range.
    """
    classes = _array(arrays, "classes", "iufbUSMm", 1)
    k = classes.size
    must(k >= 1 and np.unique(classes).size == k, "classes are not distinct")
    must(classes.dtype.kind != "f" or np.isfinite(classes).all(), "a class is not finite")
    codes = _array(arrays, "codes", "iu", 1)
    n = codes.size
    must(n >= 1 and codes.min() >= -1 and codes.max() < k, "codes of labels are out of range")
    must(np.unique(codes[codes >= 0]).size == k, "a class has no label")
    _check_scores(arrays, n, k)
    _check_graph(arrays, _part(meta, "graph"), n)
    _check_words(meta)
    labeled = int(np.count_nonzero(codes >= 0))
    if "left_out" in arrays:
        left_out = _floats(arrays, "left_out", 2)
        must(left_out.shape[1] == k and left_out.shape[0] <= labeled, "left_out has a wrong shape")
        if "left_out_labels" in arrays:
            checked = _array(arrays, "left_out_labels", "iu", 1)
            must(checked.size == left_out.shape[0], "left_out_labels has a wrong length")
            _in_range(checked, labeled, "left_out_labels")
        else:
            must(left_out.shape[0] == labeled, "left_out has a wrong length")


def _check_scores(arrays: Mapping[str, Any], n: int, k: int) -> None:
    scores = _floats(arrays, "scores", 2)
    shares = _floats(arrays, "shares", 2)
    must(scores.shape == shares.shape == (n, k), "scores or shares have a wrong shape")
    must(scores.min() >= -1e-2 * max(1.0, float(scores.max())), "a score is negative")
    must(shares.min() >= 0, "a share is negative")
    must(np.abs(shares.sum(axis=1) - 1).max() < ROUNDING, "shares do not add up to 1")
    prior, offset = _floats(arrays, "prior", 1), _floats(arrays, "offset", 1)
    must(prior.size == offset.size == k, "prior or offset have a wrong length")
    must(prior.min() >= 0 and abs(prior.sum() - 1) < ROUNDING, "prior is none")
    must(np.abs(offset).max() < 1e3, "offset is out of range")
    unreached = _array(arrays, "unreached", "iu", 1)
    must(np.unique(unreached).size == unreached.size, "unreached names a node twice")
    _in_range(unreached, n, "unreached")


def _check_graph(arrays: Mapping[str, Any], about: Mapping[str, Any], n: int) -> None:
    kind = _word(about, "kind", GRAPHS)
    _word(about, "laplacian", LAPLACIANS)
    W = _sparse(arrays, "W")
    must(W.shape == (n, n), "W has a wrong shape")
    check_adjacency(W, name="W")
    if kind in ("precomputed", "forest"):
        must("X" not in arrays and "X_data" not in arrays, f"a {kind} graph has features")
        if "rescale" in about:
            _check_rescale(arrays, about)
        return
    X = _sparse(arrays, "X") if "X_data" in arrays else arrays["X"]
    must(X.ndim == 2 and X.shape[0] == n, "X has a wrong shape")
    must(X.dtype.kind == "f", "X is of another type")
    check_features(X)
    scales = _floats(arrays, "scales", 1)
    must(scales.size == n and scales.min() > 0, "scales are out of range")
    bandwidth = about["bandwidth"]
    if isinstance(bandwidth, str):
        must(bandwidth in BANDWIDTHS, f"bandwidth={bandwidth!r} is not known")
    else:
        must(_number(bandwidth, "bandwidth") > 0, "bandwidth is not positive")
    if kind == "knn":
        must(_whole(about, "n_neighbors") >= 1, "n_neighbors is out of range")
        must(isinstance(about["algorithm"], str), "algorithm is no word")
        must(0 <= _number(about["recall"], "recall") <= 1, "recall is out of range")
        must(_whole(about, "prepared_for", 0) <= n, "prepared_for is out of range")
    if "rescale" in about:
        width = _check_rescale(arrays, about)
        must(width == X.shape[1], "the re-scaling has a wrong length")


def _check_rescale(arrays: Mapping[str, Any], about: Mapping[str, Any]) -> int:
    """Check a re-scaling; returns how many columns it leaves."""
    rescale = _part(about, "rescale")
    _word(rescale, "kind", ("min-max", "standard", "none"))
    must(isinstance(rescale["unit_norm"], bool), "unit_norm is neither true nor false")
    columns = _array(arrays, "rescale_columns", "b", 1)
    shift, scale = _floats(arrays, "rescale_shift", 1), _floats(arrays, "rescale_scale", 1)
    width = int(columns.sum())
    must(shift.size == scale.size == width, "the re-scaling has a wrong length")
    must((scale > 0).all(), "a scale is not positive")
    return width


def _check_words(meta: Mapping[str, Any]) -> None:
    must(isinstance(meta["classes_as_objects"], bool), "classes_as_objects is no flag")
    must(0 < _number(meta["sharpness"], "sharpness") < 1e4, "sharpness is out of range")
    setting = _part(meta, "setting")
    weight = setting["label_weight"]
    must(weight == "inf" or _number(weight, "label_weight") > 0, "label_weight is out of range")
    must(_number(setting["self_loop"], "self_loop") >= 0, "self_loop is out of range")
    tuning = _part(meta, "tuning")
    _number(tuning["loss"], "loss")
    must(isinstance(tuning["source"], str), "source is no word")
    must(_whole(tuning, "tried") >= 0, "tried is out of range")
    known = {f.name: type(f.default) for f in fields(FitRun)}
    for name, value in _part(meta, "run").items():
        must(name in known, f"run has an unknown entry {name!r}")
        kind = known[name]
        if kind is float:
            must(_number(value, name) >= 0, f"{name} is out of range")
        elif kind is int:
            must(type(value) is int and 0 <= value < 2**63, f"{name} is out of range")
        elif kind in (bool, str):
            must(type(value) is kind, f"{name} is of another type")
        else:
            raise ValueError(f"run has an entry {name!r} that is not stored")


def check_features_in(
    arrays: Mapping[str, Any], meta: Mapping[str, Any], params: Mapping[str, Any]
) -> int:
    """Check what the file says about the estimator itself.

    Parameters
    ----------
    arrays, meta : mapping
        As stored, after :func:`check_state`.
    params : mapping
        Parameters of the estimator.

    Returns
    -------
    int
        How many features the graph was made of.

    Raises
    ------
    ValueError
        If the number or the names of the features, or the parameters, do not fit the state.
    """
    about = meta["graph"]
    linked = params["graph"] == "auto" and about["kind"] == "precomputed"
    graph = "knn" if params["graph"] == "auto" else params["graph"]
    graph = "precomputed" if linked else graph
    for name, value in (("kind", graph), ("laplacian", params["laplacian"])):
        must(value == about[name], f"{value!r} is not the {name} of the graph")
    if "rescale" in about:
        width = arrays["rescale_columns"].size
    elif linked:
        width = _whole(meta["committee"], "width")
    elif about["kind"] == "precomputed":
        width = arrays["codes"].size
    else:
        width = int(arrays["X_shape"][1]) if "X_shape" in arrays else arrays["X"].shape[1]
    # A frame has fewer columns than features are made of them.
    framed = meta.get("encoder") is not None
    expected = len(_part(meta, "encoder")["columns"]) if framed else width
    must(_whole(meta, "n_features_in") == expected, "n_features_in is not that of the features")
    names = meta["feature_names_in"]
    if names is not None:
        must(isinstance(names, list) and len(names) == expected, "feature_names_in are too many")
        must(all(isinstance(name, str) for name in names), "a feature's name is no text")
    must(isinstance(meta.get("extra", {}), dict), "extra is no mapping")
    return int(width)


def _part(meta: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = meta[name]
    must(isinstance(part, dict), f"{name} is no mapping")
    return part  # type: ignore[no-any-return]


def _word(meta: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    word = meta[name]
    must(isinstance(word, str) and word in known, f"{name}={word!r} is not known")
    return str(word)


def _number(value: Any, name: str) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    must(good and np.isfinite(float(value)), f"{name}={value!r} is no finite number")
    return float(value)


def _whole(meta: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = meta[name] if default is None else meta.get(name, default)
    must(type(value) is int and abs(value) < 2**62, f"{name}={value!r} is no whole number")
    return int(value)


def _array(arrays: Mapping[str, Any], name: str, kinds: str, ndim: int) -> NDArray[Any]:
    array = arrays[name]
    must(array.dtype.kind in kinds and array.ndim == ndim, f"{name} is of another type or shape")
    return np.asarray(array)


def _floats(arrays: Mapping[str, Any], name: str, ndim: int) -> NDArray[Any]:
    array = _array(arrays, name, "f", ndim)
    must(np.isfinite(array).all() and array.size > 0, f"{name} is not finite")
    return array


def _in_range(values: NDArray[Any], n: int, name: str) -> None:
    must(values.size == 0 or (values.min() >= 0 and values.max() < n), f"{name} is out of range")


def _sparse(arrays: Mapping[str, Any], name: str) -> Any:
    """Check a sparse matrix in its parts: an index out of range would be followed in C."""
    shape = _array(arrays, f"{name}_shape", "iu", 1)
    data = _array(arrays, f"{name}_data", "f", 1)
    indices, indptr = (_array(arrays, f"{name}_{part}", "i", 1) for part in ("indices", "indptr"))
    must(shape.size == 2 and shape.min() >= 1, f"{name} has no shape of a matrix")
    must(indptr.size == shape[0] + 1, f"{name} has a wrong number of rows")
    must(indptr[0] == 0 and indptr[-1] == data.size == indices.size, f"{name} is not whole")
    must((np.diff(indptr) >= 0).all(), f"{name} has rows of negative length")
    _in_range(indices, int(shape[1]), f"{name}_indices")
    A = sp.csr_array((data, indices, indptr), shape=tuple(int(s) for s in shape))
    must(A.has_canonical_format, f"{name} has entries twice or out of order")
    return A
