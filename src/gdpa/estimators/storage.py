"""Save and load fitted estimators as arrays and JSON in one ``.npz`` file, without pickle.

:mod:`gdpa.codec` stores the fitted state, which consists of frozen dataclasses of arrays, with a
version and a checksum. It validates every field on loading. This module adds the parameters of the
estimator, the encoder of its data frame, and a final check that the state can predict.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import codec
from ..errors import any_error_as_value_error
from ..graph.features import Features
from ..tables import TableEncoder
from .fitted import FittedClassifier
from .labels import is_missing
from .options import GraphOptions

FORMAT = "classifier"
VERSION = 5


@codec.storable("estimator")
@dataclass(frozen=True, kw_only=True, eq=False)
class StoredEstimator:
    """A fitted estimator as stored in a file.

    Parameters
    ----------
    kind : str
        Name of its class.
    params : dict
        Constructor parameters, including expert options, as plain data.
    ensemble : FittedClassifier
        The fitted state.
    n_features_in : int
        Number of features, or of columns of a data frame.
    feature_names_in : list of str or None
        Their names.
    encoder : str or None
        The data frame encoder, as JSON.
    skipped : list of int
        Samples passed to `skip`.
    extra : dict
        Additional plain data from the user.
    """

    kind: str
    params: dict[str, Any]
    ensemble: FittedClassifier
    n_features_in: int
    feature_names_in: list[str] | None
    encoder: str | None
    skipped: list[int] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        names = self.feature_names_in
        width = self.ensemble.n_features
        if self.encoder is None and self.n_features_in != width:
            raise ValueError("n_features_in does not match the features")
        if names is not None and len(names) != self.n_features_in:
            raise ValueError("feature_names_in has a wrong length")
        n = self.ensemble.n_samples
        k = self.ensemble.labels.classes.size
        if not all(0 <= i < n for i in self.skipped):
            raise ValueError("skipped contains an unknown sample")
        links = sp.csr_array((1, n)) if self.ensemble.linked else None
        row: Features | None = np.zeros((1, width))
        if self.ensemble.sparse:
            row = sp.csr_array((1, width))
        if width == 0:  # a graph without features
            row = None
        if self.ensemble.predict(row, links).shape != (1, k):
            raise ValueError("the members are inconsistent")


def save_model(model: Any, path: str | os.PathLike[str], extra: dict[str, Any]) -> Path:
    """Write a fitted estimator."""
    ensemble = model.ensemble_
    encoder = getattr(model, "encoder_", None)
    names = getattr(model, "feature_names_in_", None)
    stored = StoredEstimator(
        kind=type(model).__name__,
        params=_plain_params(model.get_params(deep=False)),
        ensemble=ensemble,
        n_features_in=int(model.n_features_in_),
        feature_names_in=None if names is None else [str(name) for name in names],
        encoder=None if encoder is None else json.dumps(encoder.to_plain()),
        skipped=model.skipped_.tolist(),
        extra=extra,
    )
    return codec.save(path, stored, kind=FORMAT, version=VERSION)


def load_model(cls: type[Any], path: str | os.PathLike[str]) -> Any:
    """Read an estimator that :func:`save_model` wrote, of class `cls` or a subclass."""
    stored = codec.load(path, StoredEstimator, kind=FORMAT, version=VERSION)
    with any_error_as_value_error(f"{path} is not a valid saved {FORMAT}"):
        kinds = [cls]
        for known in kinds:  # the list grows by subclasses of subclasses
            kinds += known.__subclasses__()
        kind = next((known for known in kinds if known.__name__ == stored.kind), None)
        if kind is None:
            raise ValueError(f"it contains {stored.kind!r:.40}, not {cls.__name__}")
        params = dict(stored.params)
        if params.get("options") is not None:
            params["options"] = GraphOptions(**params["options"])
        model = kind(**params)
        model._validate_params()
        model._fit_options(stored.ensemble.labels.classes)
        if stored.encoder is not None:
            model.encoder_ = TableEncoder.from_plain(json.loads(stored.encoder))
            columns = model.encoder_.columns_
            width = stored.ensemble.n_features
            if (len(columns), columns.n_features) != (stored.n_features_in, width):
                raise ValueError("the columns do not match the features")
        # An estimator without this parameter may have a neighbour graph or a graph of links.
        chosen = "graph" in model.get_params(deep=False) or model.graph != "knn"
        kind_of_graph = stored.ensemble.first.graph.kind
        # Any estimator takes a graph object instead of features.
        if chosen and kind_of_graph not in (model.graph, "precomputed"):
            raise ValueError(f"graph={model.graph!r} is not the kind of the stored graph")
    model._adopt(stored.ensemble)
    model.skipped_ = np.array(stored.skipped, dtype=np.intp)
    model.n_features_in_ = stored.n_features_in
    if stored.feature_names_in is not None:
        model.feature_names_in_ = np.array(stored.feature_names_in, dtype=object)
    model.extra_ = stored.extra
    return model


def _plain_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as plain data; raise an error that names one that cannot be stored."""
    plain: dict[str, Any] = {}
    for name, value in params.items():
        if name == "models":
            if value is not None:
                raise ValueError(
                    "models cannot be stored without pickle; use pickle or joblib, and only for "
                    "files that you trust"
                )
            continue
        if name == "columns":  # the fitted encoder is stored separately
            value = dict(value) if isinstance(value, dict) else None
        if name == "unlabeled" and is_missing(value):
            value = None
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, GraphOptions):
            value = {f.name: getattr(value, f.name) for f in fields(value) if f.name != "callback"}
            if value["method_options"] is not None:
                value["method_options"] = dict(value["method_options"])
        plain[name] = value
    return plain
