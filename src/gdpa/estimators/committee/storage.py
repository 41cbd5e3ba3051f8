"""Committees as plain arrays: what :mod:`gdpa.estimators.storage` does for one graph, for members.

Every member has a number and its arrays that number as a prefix; the forest, which several may use,
is stored once. What is read is checked: trees by :meth:`Forest.from_arrays`, all else for its kind,
shape and range.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...graph.forest import LeafEmbedding
from ...graph.rescale import Rescaler
from ..options import FitOptions
from ..state import FittedState
from ..storage import get_matrix, put_matrix, read_state, state_arrays
from .arrays import Arrays, get_forest, numbers, put_forest
from .committee import Committee, Judgement
from .forest import ForestModel, LeafMachine
from .gaussian import GaussianClasses
from .graph import GraphMember, View, leaf_graph
from .kernel import KernelMachine
from .linear import LinearModel
from .link_storage import get_linked, put_linked
from .member import LinkedMember, Member
from .supervised import Supervised

__all__ = ["pack_state", "unpack_state"]

FloatArray = NDArray[np.float64]


def pack_state(state: FittedState) -> tuple[Arrays, dict[str, Any]]:
    """Take a fitted state apart, its committee included.

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

    Raises
    ------
    ValueError
        If a member is a model of the user, which only pickle could store.
    """
    arrays, meta = state_arrays(state)
    committee = state.committee
    if not isinstance(committee, Committee):
        return arrays, meta
    j = committee.judgement
    arrays |= {"own_shares": state.own_shares, "weights": j.weights, "sharpness": j.sharpness}
    if j.losses is not None:
        arrays["losses"] = j.losses
    if committee.importances is not None:
        arrays["importances"] = committee.importances
    meta["committee"] = {
        "names": list(j.names),
        "loss": j.loss,
        "width": committee.width,
        "members": [_put_member(m, f"member{i}_", arrays) for i, m in enumerate(committee.members)],
    }
    return arrays, meta


def unpack_state(arrays: Arrays, meta: dict[str, Any], options: FitOptions) -> FittedState:
    """Put a fitted state together again.

    Parameters
    ----------
    arrays, meta : dict
        What :func:`pack_state` gave.
    options : FitOptions
        Options of the fit.

    Returns
    -------
    FittedState
        The state.

    Raises
    ------
    ValueError
        If something is missing or does not fit.
    """
    state = read_state(arrays, meta, options)
    about = meta.get("committee")
    if about is None:
        return state
    try:
        names = tuple(str(name) for name in about["names"])
        n, k = state.n_nodes, state.n_classes
        judgement = Judgement(
            names,
            numbers(arrays, "weights", (len(names),), least=0.0),
            numbers(arrays, "losses", (len(names),)) if "losses" in arrays else None,
            numbers(arrays, "sharpness", (len(names),), least=0.0),
            None if about["loss"] is None else float(about["loss"]),
        )
        members = tuple(
            _get_member(part, f"member{i}_", arrays, state, options)
            for i, part in enumerate(about["members"])
        )
        own_shares = numbers(arrays, "own_shares", (n, k), least=0.0)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"the committee is not stored whole: {error}") from error
    voting = [name for name, w in zip(names, judgement.weights, strict=True) if w > 0]
    known = {member.name for member in members} | set(names[:1])
    if not voting or not known.issuperset(voting):
        raise ValueError(f"the committee's votes {voting} are not those of its members")
    importances = None
    if "importances" in arrays:
        importances = numbers(arrays, "importances", (arrays["importances"].size,), least=0.0)
    return replace(
        state,
        committee=Committee(judgement, members, importances, about.get("width")),
        own_shares=own_shares,
    )


def _put_columns(columns: Rescaler | None, prefix: str, arrays: Arrays) -> None:
    if columns is not None:
        arrays |= {
            f"{prefix}columns": columns.columns,
            f"{prefix}shift": columns.shift,
            f"{prefix}scale": columns.scale,
        }


def _get_columns(prefix: str, arrays: Arrays) -> Rescaler | None:
    if f"{prefix}columns" not in arrays:
        return None
    columns = np.asarray(arrays[f"{prefix}columns"])
    if columns.dtype != np.bool_ or columns.ndim != 1:
        raise ValueError(f"{prefix}columns must be true or false for each column")
    kept = (int(columns.sum()),)
    shift = numbers(arrays, f"{prefix}shift", kept)
    scale = numbers(arrays, f"{prefix}scale", kept, least=0.0)
    if (scale == 0).any():
        raise ValueError(f"{prefix}scale has 0")
    return Rescaler("standard", columns, shift, scale, False)


def _needed_columns(prefix: str, arrays: Arrays) -> Rescaler:
    columns = _get_columns(prefix, arrays)
    if columns is None:
        raise ValueError(f"{prefix}columns is missing")
    return columns


def _put_member(member: Member, prefix: str, arrays: Arrays) -> dict[str, Any]:
    if isinstance(member, GraphMember):
        return _put_graph(member, prefix, arrays)
    if isinstance(member, LinkedMember):
        return {"linked": True} | put_linked(member, prefix, arrays)
    assert isinstance(member, Supervised)
    about: dict[str, Any] = {"name": member.name}
    arrays[f"{prefix}shares"] = member.shares
    if member.place is not None:
        arrays[f"{prefix}place"] = member.place
    model = member.model
    if isinstance(model, ForestModel):
        about["kind"] = "forest"
        put_forest(model.forest, arrays)
    elif isinstance(model, LeafMachine):
        about["kind"] = "leaves"
        put_forest(model.forest, arrays)
        arrays[f"{prefix}scores"] = model.scores
    elif isinstance(model, GaussianClasses):
        about["kind"] = "gaussian"
        _put_columns(model.scaling, prefix, arrays)
        arrays |= {f"{prefix}means": model.means, f"{prefix}roots": model.roots}
        arrays[f"{prefix}constants"] = model.constants
    elif isinstance(model, LinearModel):
        about["kind"] = "linear"
        _put_columns(model.scaling, prefix, arrays)
        arrays |= {f"{prefix}slopes": model.coefficients, f"{prefix}constants": model.intercepts}
    elif isinstance(model, KernelMachine):
        about |= {"kind": "kernel", "gamma": float(model.gamma)}
        _put_columns(model.scaling, prefix, arrays)
        put_matrix(arrays, f"{prefix}points", model.points)
        arrays[f"{prefix}slopes"] = model.coefficients
    else:
        raise ValueError(
            f"evidence model {member.name} cannot be stored without pickle; use pickle or joblib, "
            "and only for files that you trust"
        )
    return about


def _put_graph(member: GraphMember, prefix: str, arrays: Arrays) -> dict[str, Any]:
    parts, about = state_arrays(member.state)
    arrays |= {prefix + name: a for name, a in parts.items()}
    _put_columns(member.view.columns, f"{prefix}view_", arrays)
    if member.view.mix is not None:
        arrays[f"{prefix}mix"] = member.view.mix
    if member.view.forest is not None:
        put_forest(member.view.forest, arrays)
    if member.view.embedding is not None:
        arrays[f"{prefix}vectors"] = member.view.embedding.vectors
        arrays[f"{prefix}first"] = member.view.embedding.first
    leaves = getattr(member.state.graph, "leaves", None)
    if leaves is not None:
        arrays[f"{prefix}leaves"] = leaves.astype(np.min_scalar_type(int(leaves.max())))
    return {
        "name": member.name,
        "kind": "graph",
        "state": about,
        "kept": member.state.graph.n_neighbors,
        "forest": member.view.forest is not None,
    }


def _get_member(
    about: dict[str, Any], prefix: str, arrays: Arrays, state: FittedState, options: FitOptions
) -> Member:
    name, kind = str(about["name"]), about["kind"]
    if about.get("linked"):
        return cast(Member, get_linked(about, prefix, arrays, state, options))
    n, k = state.n_nodes, state.n_classes
    if kind == "graph":
        return _get_graph(about, prefix, arrays, state, options)
    shares = numbers(arrays, f"{prefix}shares", (n, k), least=0.0)
    place = arrays.get(f"{prefix}place")
    if place is not None:
        if place.ndim != 1 or place.dtype.kind not in "iu" or not np.isin(place, range(k)).all():
            raise ValueError(f"{prefix}place must be numbers of classes")
        k = int(place.size)
    model: Any
    if kind == "forest":
        model = ForestModel(get_forest(arrays, k))
    elif kind == "leaves":
        forest = get_forest(arrays, k)
        scores = numbers(arrays, f"{prefix}scores", (forest.feature.size, k))
        model = LeafMachine(forest, scores.astype(np.float32))
    elif kind == "gaussian":
        columns = _needed_columns(prefix, arrays)
        d = columns.scale.size
        each = 1 if np.shape(arrays[f"{prefix}roots"])[:1] == (1,) else k
        model = GaussianClasses(
            columns,
            numbers(arrays, f"{prefix}means", (k, d)),
            numbers(arrays, f"{prefix}roots", (each, d, d)),
            numbers(arrays, f"{prefix}constants", (k,)),
        )
    elif kind == "linear":
        columns = _needed_columns(prefix, arrays)
        slopes = numbers(arrays, f"{prefix}slopes", (columns.scale.size, k))
        model = LinearModel(columns, slopes, numbers(arrays, f"{prefix}constants", (k,)))
    elif kind == "kernel":
        points = get_matrix(arrays, f"{prefix}points")
        slopes = numbers(arrays, f"{prefix}slopes", (points.shape[0], k))
        gamma = float(about["gamma"])
        if not (np.isfinite(gamma) and gamma > 0):
            raise ValueError(f"gamma={gamma!r} of the kernel must be positive")
        model = KernelMachine(_get_columns(prefix, arrays), points, slopes, gamma)
    else:
        raise ValueError(f"member {name!r} is of the unknown kind {kind!r}")
    return Supervised(name, model, shares, place)


def _get_graph(
    about: dict[str, Any], prefix: str, arrays: Arrays, state: FittedState, options: FitOptions
) -> GraphMember:
    size = len(prefix)
    parts = {name[size:]: a for name, a in arrays.items() if name.startswith(prefix)}
    found = read_state(parts, about["state"], options)
    if found.n_nodes != state.n_nodes or found.n_classes != state.n_classes:
        raise ValueError(f"member {about['name']!r} has other nodes or classes than the rest")
    forest = embedding = None
    if about["forest"]:
        known = np.unique(found.coding.codes[found.coding.codes >= 0]).size
        width = int(arrays["forest_value"].shape[-1]) if "forest_value" in arrays else known
        forest = get_forest(arrays, width)
        if "vectors" in parts:
            first = np.asarray(parts["first"])
            vectors = np.asarray(parts["vectors"])
            good = first.dtype.kind in "iu" and first.shape == (forest.n_trees + 1,)
            good = good and first[0] == 0 and bool((np.diff(first) > 0).all())
            if not (good and vectors.ndim == 2 and vectors.shape[0] == first[-1]):
                raise ValueError("the leaves' points do not fit the forest")
            shape = (int(first[-1]), int(vectors.shape[1]))
            values = numbers(parts, "vectors", shape).astype(np.float32)
            embedding = LeafEmbedding(values, first.astype(np.int64))
        else:
            leaves = np.asarray(parts["leaves"])
            if leaves.dtype.kind not in "iu" or leaves.shape != (found.n_nodes, forest.n_trees):
                raise ValueError("the nodes' leaves do not fit the forest")
            graph = leaf_graph(found.graph.W, leaves, int(about["kept"]), found.graph.laplacian)
            found = replace(found, graph=graph)
    columns, mix = _get_columns(f"{prefix}view_", arrays), None
    if columns is not None and "mix" in parts:
        mix = numbers(parts, "mix", (int(columns.scale.size), np.shape(parts["mix"])[-1]))
    view = View(columns, forest, embedding, mix)
    return GraphMember(str(about["name"]), view, found)
