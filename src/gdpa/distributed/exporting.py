"""A subset of a finished fit as an ordinary :class:`gdpa.GraphClassifier` file."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators import GraphClassifier
from ..estimators.frames import adopt_encoder
from ..estimators.probabilities import to_shares
from ..graph.rescale import Rescaler
from ..tables import TableEncoder
from .new_rows import finished_model, values_of
from .sample import load_plan
from .shuffle import part_file
from .store import open_folder

__all__ = ["export"]


def export(
    work: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    n_rows: int = 50_000,
    random_state: int = 0,
) -> GraphClassifier:
    """Write a subset of the rows of a finished fit as a classifier for one machine.

    Its nodes are rows of the fit with the scores that all rows together gave them; `gdpa predict`
    and :meth:`gdpa.GraphClassifier.load` read it, columns are encoded as in the fit.

    Parameters
    ----------
    work : path-like or URL
        Work folder of the fit; it is only read.
    path : path-like
        The file; ".npz" is customary.
    n_rows : int, default=50000
        Rows: labelled ones first, at most half of them, others at random from all parts.
    random_state : int, default=0
        Seed of the choice.

    Returns
    -------
    GraphClassifier
        The classifier in the file.
    """
    if not isinstance(n_rows, int | np.integer) or n_rows < 2:
        raise ValueError(f"n_rows={n_rows!r} must be a whole number, at least 2")
    folder = open_folder(os.fspath(work))
    manifest, model = finished_model(folder)
    plan = load_plan(folder.url)
    starts = np.asarray(model["starts"])
    nodes = _choose(folder, starts, int(n_rows), random_state)
    codes = values_of(folder, "code", nodes, starts)
    scores = values_of(folder, "scores", nodes, starts)
    X = _points(folder, nodes, starts)
    classes = np.array(model["classes"], dtype=object)
    y = np.full(nodes.size, None, dtype=object)
    # Classes without a label among the rows are kept: one row stands for each while it is fitted.
    y[codes >= 0] = classes[codes[codes >= 0]]
    for c in np.setdiff1d(np.arange(classes.size), codes):
        y[int(np.argmax(scores[:, c]))] = classes[c]
    classifier = GraphClassifier(
        n_neighbors=min(model["n_neighbors"], nodes.size - 1),
        label_weight=float(model["label_weight"]),
        self_loop=model["self_loop"],
        unlabeled=None,
    ).fit(X, y)
    ensemble, prior = classifier.ensemble_, np.asarray(model["prior"])
    shares, coding = to_shares(scores, prior), ensemble.labels
    coding = replace(coding, codes=codes.astype(np.int32))
    none = np.empty(0, dtype=np.intp)
    first = replace(
        ensemble.first, labels=coding, scores=scores, shares=shares, prior=prior, abstaining=none
    )
    classifier._adopt(
        replace(
            ensemble,
            labels=coding,
            members=(first,),
            shares=shares,
            codes=np.where(codes >= 0, codes, shares.argmax(axis=1)),
            prior=prior,
            sharpness=model["sharpness"],
            unreached=none,
            rescaler=_metric(plan.factors),
        )
    )
    encoder = TableEncoder.from_plain(json.loads(folder.read("plan/encoder.json")))
    adopt_encoder(classifier, encoder)
    about = {
        "target": manifest.parameters["target"],
        "source": model["source"],
        "id_column": None,
        "ids": None,
    }
    classifier.save(Path(path), extra={"table": about})
    return classifier


def _metric(factors: NDArray[np.float64]) -> Rescaler | None:
    """The metric of the fit as a re-scaling of encoded rows."""
    if (factors == 1.0).all():
        return None
    d = factors.size
    return Rescaler("min-max", np.ones(d, dtype=bool), np.zeros(d), 1.0 / factors, False)


def _choose(folder: Any, starts: NDArray[np.int64], n_rows: int, seed: int) -> NDArray[np.int64]:
    """Nodes of the subset, ascending."""
    n = int(starts[-1])
    rng = np.random.default_rng(seed)
    known = np.concatenate(
        [folder.read_array(part_file(p, "labeled")) + starts[p] for p in range(starts.size - 1)]
    )
    taken = np.sort(rng.permutation(known)[: max(n_rows // 2, n_rows - (n - known.size))])
    free = np.ones(n, dtype=bool)
    free[known] = False
    others = rng.permutation(np.flatnonzero(free))[: n_rows - taken.size]
    return np.sort(np.concatenate([taken, others]))


def _points(folder: Any, nodes: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[Any]:
    """Features of some nodes, ascending."""
    part = np.searchsorted(starts, nodes, side="right") - 1
    return np.concatenate(
        [
            folder.read_array(part_file(p, "X"))[nodes[part == p] - starts[p]]
            for p in np.unique(part).tolist()
        ]
    )
