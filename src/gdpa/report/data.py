"""The content of the report as plain data, without HTML."""

from __future__ import annotations

import hashlib
import platform
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator

from ..arrays import FloatArray, NDArray
from ..certificate import Certificate, certify
from ..estimators.probabilities import cautions
from ..evaluation import Evaluation
from ..graph.adjacency import component_labels
from ..plotting.layout import Picture, picture
from ..problem import GraphProblem
from ..tables.frames import table_of
from ..version import __version__
from .evaluation import Baselines, baselines, fitted_points

CERTIFY_UP_TO = 20_000  # rows; the minimum cut takes seconds at this size


@dataclass(frozen=True)
class CommitteeCard:
    """Models of the ensemble by weight, and columns by importance.

    Losses are log losses on held-out labels; None if there were too few labels. `graph_share` is
    the mean weight of the models that use links, over rows without a label; None without links.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    losses: tuple[float, ...] | None
    loss: float | None
    columns: tuple[str, ...]
    importances: tuple[float, ...]
    graph_share: float | None = None


@dataclass(frozen=True)
class GraphSummary:
    """Size and connectivity of the graph."""

    n_nodes: int
    n_edges: int
    degrees: NDArray[np.intp]
    n_components: int
    largest: int  # nodes in the largest component
    isolated: int  # nodes without neighbours
    agreement: float | None  # share of edge weight between labelled nodes with equal labels
    labeled_edges: int  # edges between two labelled nodes
    chance: float  # expected agreement of random labels
    predicted_agreement: float  # share of edge weight between equal predictions


@dataclass(frozen=True)
class ReportData:
    """The content of the page; see :func:`gather`."""

    title: str
    asked: Mapping[str, str]
    command: str
    notes: tuple[str, ...]
    classes: tuple[str, ...]
    labeled_counts: tuple[int, ...]
    predicted_counts: tuple[int, ...]
    columns: tuple[tuple[str, str, str, str], ...]  # name, encoding, missing cells, content
    fingerprint: str
    graph: GraphSummary
    top: FloatArray
    sure: float
    calibrated: bool
    n_unsure: int
    n_unreached: int
    questions: tuple[tuple[str, ...], ...]  # name, two classes with probabilities, some cells
    question_columns: tuple[str, ...]
    picture: Picture
    picture_classes: NDArray[np.intp]
    picture_uncertainty: FloatArray
    picture_labeled: NDArray[np.bool_]
    held_out: Evaluation | None
    doubts: tuple[tuple[str, str, str, str, str], ...]  # name, label, prediction, probabilities
    accuracy_unknown: str  # why no label was held out; empty if labels were
    cautions: tuple[str, ...]
    committee: CommitteeCard | None
    baselines: Baselines | None
    certificate: Certificate | None
    setting: Mapping[str, str]
    versions: Mapping[str, str]


def gather(
    model: BaseEstimator,
    X: Any,
    *,
    title: str = "gdpa report",
    asked: Mapping[str, str] | None = None,
    command: str = "",
    notes: Sequence[str] = (),
    table: Any = None,
    columns: Any = (),
    target: str | None = None,
    sure: float = 0.75,
    ids: Sequence[str] | None = None,
    compared: Baselines | None = None,
) -> ReportData:
    """Return the content of the report.

    Parameters
    ----------
    model : CommitteeClassifier
        Fitted classifier.
    X : ndarray of shape (n_samples, n_features) or None
        Its features; None uses those that the classifier keeps, if any.
    title : str, default="gdpa report"
        Title of the page.
    asked : mapping, optional
        Description of the task, by name.
    command : str, default=""
        The command that reproduces the report.
    notes : sequence of str
        Messages about reading and encoding the data.
    table : frame, optional
        The table before encoding, to show cells of the rows to label next.
    columns : ColumnList
        Encoding of its columns.
    target : str, optional
        Its target column.
    sure : float, default=0.75
        Probability below which a prediction is marked uncertain.
    ids : sequence of str, optional
        Row names; numbers from 1 by default.
    compared : Baselines, optional
        Comparison with simple classifiers; computed if not given.

    Returns
    -------
    ReportData
        The content of the page.
    """
    state = model.ensemble_
    P = state.probabilities()
    codes = np.searchsorted(model.classes_, model.transduction_)
    known = state.labels.codes >= 0
    k = model.classes_.size
    top = P[np.arange(codes.size), codes]
    unsure = ((top < sure) | (not state.calibrated)) & ~known
    unsure[model.unreached_] = True
    points = fitted_points(state.first.graph) if X is None else X
    if X is not None and state.rescaler is not None:
        points = state.rescaler.transform(X)
    drawn = picture(model.graph_, points, keep=np.flatnonzero(known))
    questions, shown = _questions(model, None if table is None else table_of(table), target, ids)
    return ReportData(
        title=title,
        asked=dict(asked or {}),
        command=command,
        notes=tuple(notes),
        classes=tuple(str(c) for c in model.classes_),
        labeled_counts=tuple(np.bincount(codes[known], minlength=k).tolist()),
        predicted_counts=tuple(np.bincount(codes[~known], minlength=k).tolist()),
        columns=tuple((p.name, p.done(), f"{p.missing:,}", p.content) for p in columns),
        fingerprint=fingerprint(points if X is None else X, state.labels.codes),
        graph=_graph(model.graph_, codes, known, k),
        top=top[~known],
        sure=sure,
        calibrated=state.calibrated,
        n_unsure=int(unsure.sum()),
        n_unreached=int(model.unreached_.size),
        questions=questions,
        question_columns=shown,
        picture=drawn,
        picture_classes=codes[drawn.nodes],
        picture_uncertainty=np.where(known, 0.0, 1.0 - top)[drawn.nodes] * k / max(k - 1, 1),
        picture_labeled=known[drawn.nodes],
        held_out=None if model.accuracy_ is None else model.evaluate(),
        doubts=_doubts(model, ids),
        accuracy_unknown=model.tuning_.reason,
        cautions=tuple(cautions(state)),
        committee=_committee(model),
        baselines=compared or baselines(model, points),
        certificate=_certificate(model, known, codes),
        setting=_setting(model),
        versions=versions(),
    )


def _graph(
    W: sp.csr_array, codes: NDArray[np.intp], known: NDArray[np.bool_], k: int
) -> GraphSummary:
    count, component = component_labels(W)
    upper = sp.triu(W, 1).tocoo()
    i = upper.coords[0]
    j = upper.coords[1]
    weight = upper.data
    total = float(weight.sum())
    same = codes[i] == codes[j]
    both = known[i] & known[j]
    between = float(weight[both].sum())
    shares = np.bincount(codes[known], minlength=k) / max(int(known.sum()), 1)
    degree = np.diff(W.indptr)
    return GraphSummary(
        n_nodes=int(W.shape[0]),
        n_edges=int(upper.nnz),
        degrees=degree,
        n_components=count,
        largest=int(np.bincount(component).max()),
        isolated=int((degree == 0).sum()),
        agreement=float(weight[both & same].sum()) / between if between > 0 else None,
        labeled_edges=int(both.sum()),
        chance=float((shares**2).sum()),
        predicted_agreement=float(weight[same].sum()) / total if total > 0 else 1.0,
    )


def _certificate(
    model: BaseEstimator, known: NDArray[np.bool_], codes: NDArray[np.intp]
) -> Certificate | None:
    if model.classes_.size != 2 or codes.size > CERTIFY_UP_TO:
        return None
    signs = np.where(codes == 1, 1, -1)
    problem = GraphProblem(
        model.graph_, np.where(known, signs, 0), laplacian=model.ensemble_.first.graph.laplacian
    )
    with warnings.catch_warnings(action="ignore"):
        return certify(problem, signs)


def _questions(
    model: BaseEstimator, table: Any, target: str | None, ids: Sequence[str] | None
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Return the rows to label next, and the names of the columns shown."""
    state = model.ensemble_
    if (state.labels.codes >= 0).all() or model.classes_.size < 2:
        return (), ()
    P = state.probabilities()
    names = () if table is None else tuple(c for c in table.names if c != target)[:4]
    rows = []
    for i in model.query(20):
        row = [str(i + 1) if ids is None else str(ids[i])]
        for c in np.argsort(-P[i], kind="stable")[:2]:
            row += [str(model.classes_[c]), f"{P[i, c]:.2f}"]
        rows.append((*row, *(table.column(name).cell(i) for name in names)))
    return tuple(rows), names


def _doubts(
    model: BaseEstimator, ids: Sequence[str] | None
) -> tuple[tuple[str, str, str, str, str], ...]:
    """Return the given labels that the model doubts."""
    if model.accuracy_ is None:
        return ()
    return tuple(
        (
            str(each.row + 1) if ids is None else str(ids[each.row]),
            str(each.label),
            f"{each.label_probability:.2f}",
            str(each.prediction),
            f"{each.prediction_probability:.2f}",
        )
        for each in model.evaluate().doubts()
    )


def _committee(model: BaseEstimator) -> CommitteeCard | None:
    """Return the models by weight and the columns by importance; None for a single graph."""
    committee = model.committee_
    if committee is None:
        return None
    order = np.argsort(-committee.weights, kind="stable")
    values = getattr(model, "feature_importances_", np.zeros(0))
    names = getattr(model, "feature_names_in_", [f"column {j + 1}" for j in range(values.size)])
    unknown = model.ensemble_.labels.codes < 0
    share = None
    if model.ensemble_.linked:
        share = float(model.graph_share_[unknown].mean()) if unknown.any() else 0.0
    top = np.argsort(-values, kind="stable")[:15]
    return CommitteeCard(
        tuple(committee.names[i] for i in order),
        tuple(float(committee.weights[i]) for i in order),
        None if committee.losses is None else tuple(float(committee.losses[i]) for i in order),
        committee.loss,
        tuple(str(names[i]) for i in top),
        tuple(float(values[i]) for i in top),
        share,
    )


def fingerprint(X: Any, codes: NDArray[Any]) -> str:
    """Return the SHA-256 of features and labels."""
    digest = hashlib.sha256()
    if X is not None:
        A = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        digest.update(np.ascontiguousarray(A).tobytes())
    digest.update(np.ascontiguousarray(codes).tobytes())
    return digest.hexdigest()


def _setting(model: BaseEstimator) -> dict[str, str]:
    tuning = model.tuning_
    encoder = getattr(model, "encoder_", None)  # scales the columns of a table
    rescale = getattr(model.options, "rescale", None)
    return {
        "method": str(getattr(model, "method", "committee")),
        "neighbours": str(model.n_neighbors_),
        "rescaling": str((encoder.scale if encoder else rescale) or "none"),
        "Laplacian": str(model.ensemble_.first.graph.laplacian),
        "label weight": f"{model.label_weight_:g}",
        "self-loop": f"{model.self_loop_:g}",
        "chosen by": f"{tuning.source} ({tuning.tried} settings tried)",
        "seed": str(model.random_state),
    }


def versions() -> dict[str, str]:
    """Return the versions of the package and of what it is built on."""
    modules = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn}
    found = {"gdpa": __version__, "python": platform.python_version()}
    return found | {name: str(module.__version__) for name, module in modules.items()}
