"""Members that know a given graph, as plain arrays: features once, the graph is the state's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...graph.smoothing import Smoother
from ..evidence import Evidence
from ..graphs import assemble_graph
from ..options import FitOptions
from ..probabilities import MOST_SHARPNESS
from ..state import FittedState
from ..storage import get_matrix, put_matrix, read_state, state_arrays
from ..tuning import Setting
from .arrays import Arrays, get_forest, numbers, put_forest
from .forest import ForestModel
from .link_members import Recovered, Smoothed, SmoothedForest, StepModels, Union
from .member import LinkedMember
from .supervised import Supervised

__all__ = ["get_linked", "put_linked"]

FEATURES = "linked_features"
GRAPH = ("W_data", "W_indices", "W_indptr", "W_shape")


def put_linked(member: LinkedMember, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Take a member apart.

    Parameters
    ----------
    member : LinkedMember
        The member.
    prefix : str
        What its arrays' names begin with.
    arrays : dict
        Where they go.

    Returns
    -------
    dict
        Its numbers and names.
    """
    if isinstance(member, Smoothed):
        return _put_smoothed(member, prefix, arrays)
    if isinstance(member, SmoothedForest):
        put_matrix(arrays, FEATURES, member.smoother.features)
        model = member.forest.model
        assert isinstance(model, ForestModel)
        put_forest(model.forest, arrays, f"{prefix}forest_")
        arrays[f"{prefix}shares"] = member.shares
        if member.forest.place is not None:
            arrays[f"{prefix}place"] = member.forest.place
        return {"name": member.name, "kind": "smoothed forest", "steps": member.steps}
    if isinstance(member, Recovered):
        about = {"model": _put_smoothed(member.model, f"{prefix}model_", arrays)}
        stored, state = state_arrays(replace(member.state, evidence=None))
        arrays |= {prefix + name: a for name, a in stored.items() if name not in GRAPH}
        e = float(member.state.setting.evidence_weight)
        return about | {"name": member.name, "kind": "recovered", "state": state, "e": e}
    assert isinstance(member, Union)
    stored, state = state_arrays(member.state)
    arrays |= {prefix + name: a for name, a in stored.items() if name not in GRAPH}
    near, about_near = state_arrays(replace(member.state, graph=member.nearest))
    arrays |= {f"{prefix}near_{name}": a for name, a in near.items()}
    return {
        "name": member.name,
        "kind": "union",
        "state": state,
        "near": about_near,
        "factors": list(member.factors),
    }


def _put_smoothed(member: Smoothed, prefix: str, arrays: Arrays) -> dict[str, Any]:
    put_matrix(arrays, FEATURES, member.smoother.features)
    arrays |= {
        f"{prefix}slopes": member.models.slopes,
        f"{prefix}constants": member.models.constants,
        f"{prefix}shares": member.shares,
    }
    if member.place is not None:
        arrays[f"{prefix}place"] = member.place
    return {
        "name": member.name,
        "kind": "smoothed",
        "steps": list(member.models.steps),
        "sharpness": member.models.sharpness,
    }


def get_linked(
    about: dict[str, Any], prefix: str, arrays: Arrays, state: FittedState, options: FitOptions
) -> LinkedMember:
    """Put a member together again.

    Parameters
    ----------
    about : dict
        What :func:`put_linked` gave.
    prefix : str
        What its arrays' names begin with.
    arrays : dict
        All arrays.
    state : FittedState
        The state of the given graph.
    options : FitOptions
        Options of the fit.

    Returns
    -------
    LinkedMember
        The member.

    Raises
    ------
    ValueError
        If something is missing or does not fit.
    """
    kind = about["kind"]
    if kind == "smoothed":
        return _get_smoothed(about, prefix, arrays, state)
    if kind == "smoothed forest":
        smoother = _smoother(arrays, state)
        place = _place(prefix, arrays, state.n_classes)
        known = state.n_classes if place is None else place.size
        trees = ForestModel(get_forest(arrays, known, f"{prefix}forest_"))
        shares = numbers(arrays, f"{prefix}shares", state.shares.shape, least=0.0)
        steps = _steps([about["steps"]])[0]
        return SmoothedForest(smoother, steps, Supervised("smoothed forest", trees, shares, place))
    size = len(prefix)
    own = {name[size:]: a for name, a in arrays.items() if name.startswith(prefix)}
    if kind == "recovered":
        model = _get_smoothed(about["model"], f"{prefix}model_", arrays, state)
        found = read_state(own | {name: arrays[name] for name in GRAPH}, about["state"], options)
        e = float(about["e"])
        if not (np.isfinite(e) and e > 0) or found.scores.shape != state.scores.shape:
            raise ValueError(f"member {about['name']!r} does not fit the given graph")
        setting = Setting(found.setting.label_weight, found.setting.self_loop, e)
        evidence = Evidence((), np.empty(0), model.shares)
        tuning = replace(found.tuning, setting=setting)
        return Recovered(model, replace(found, tuning=tuning, evidence=evidence))
    if kind != "union":
        raise ValueError(f"member {about['name']!r} is of the unknown kind {kind!r}")
    near = read_state(
        {name[5:]: a for name, a in own.items() if name.startswith("near_")}, about["near"], options
    )
    factors = tuple(float(f) for f in about["factors"])
    if len(factors) != 2 or not all(np.isfinite(f) and f > 0 for f in factors):
        raise ValueError(f"factors={factors!r} must be two positive numbers")
    if near.graph.W.shape != state.graph.W.shape:
        raise ValueError(f"member {about['name']!r} does not fit the given graph")
    W = sp.csr_array(factors[0] * state.graph.W + factors[1] * near.graph.W)
    graph = assemble_graph("precomputed", W, state.graph.laplacian, None)
    names = {name: arrays[name] for name in GRAPH}
    found = replace(read_state(own | names, about["state"], options), graph=graph)
    if found.scores.shape != state.scores.shape:
        raise ValueError(f"member {about['name']!r} does not fit the given graph")
    return Union(near.graph, (factors[0], factors[1]), found)


def _smoother(arrays: Arrays, state: FittedState) -> Smoother:
    features = get_matrix(arrays, FEATURES)
    if features.shape[0] != state.n_nodes:
        raise ValueError(f"{FEATURES} has {features.shape[0]} rows for {state.n_nodes} nodes")
    return Smoother(state.graph.W, features)


def _place(prefix: str, arrays: Arrays, k: int) -> Any:
    place = arrays.get(f"{prefix}place")
    if place is None:
        return None
    place = np.asarray(place)
    if place.ndim != 1 or place.dtype.kind not in "iu" or not np.isin(place, range(k)).all():
        raise ValueError(f"{prefix}place must be numbers of classes")
    return place.astype(np.intp)


def _steps(values: Any) -> tuple[int, ...]:
    steps = tuple(int(t) for t in values)
    if not steps or min(steps) < 0 or max(steps) > 64:
        raise ValueError(f"steps={steps!r} must be from 0 to 64")
    return steps


def _get_smoothed(
    about: dict[str, Any], prefix: str, arrays: Arrays, state: FittedState
) -> Smoothed:
    smoother = _smoother(arrays, state)
    place = _place(prefix, arrays, state.n_classes)
    k = state.n_classes if place is None else place.size
    steps = _steps(about["steps"])
    sharpness = float(about.get("sharpness", 1.0))
    if not 0.0 < sharpness <= MOST_SHARPNESS:
        raise ValueError(f"sharpness={sharpness!r} must be from 0 to {MOST_SHARPNESS:g}")
    models = StepModels(
        steps,
        numbers(arrays, f"{prefix}slopes", (len(steps), smoother.features.shape[1], k)),
        numbers(arrays, f"{prefix}constants", (len(steps), k)),
        sharpness,
    )
    shares = numbers(arrays, f"{prefix}shares", state.shares.shape, least=0.0)
    return Smoothed(smoother, models, shares, place)
