"""What the report says, gathered from a fitted classifier: numbers only, no HTML."""

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
from numpy.typing import NDArray

from ..certificate import Certificate, certify
from ..graph.adjacency import component_labels
from ..plotting.layout import Picture, picture
from ..problem import GraphProblem
from ..tables.frames import table_of
from ..version import __version__
from .committee import CommitteeCard, cautions, committee_card
from .evaluation import Baselines, LeftOut, baselines, left_out_labels

__all__ = ["ColumnCard", "GraphSummary", "Question", "ReportData", "fitted_points", "gather"]

FloatArray = NDArray[np.float64]

CERTIFY_UP_TO = 20_000  # nodes; the exact cut takes seconds there
QUESTIONS = 20
SHOWN_COLUMNS = 4


@dataclass(frozen=True)
class ColumnCard:
    """One column of the data: its name, what was done with it, missing cells, content."""

    name: str
    done: str
    missing: int
    content: str


@dataclass(frozen=True)
class GraphSummary:
    """The graph in numbers.

    Parameters
    ----------
    n_nodes, n_edges : int
        Size.
    degrees : ndarray
        Neighbours per node.
    n_components, largest, isolated : int
        Components, nodes in the largest, nodes without a neighbour.
    agreement : float or None
        Share of the weight between two labelled nodes that joins equal labels.
    labeled_edges : int
        Edges between two labelled nodes.
    chance : float
        What the share would be if labels were dealt at random.
    predicted_agreement : float
        Share of all weight that joins equal predictions.
    """

    n_nodes: int
    n_edges: int
    degrees: NDArray[np.intp]
    n_components: int
    largest: int
    isolated: int
    agreement: float | None
    labeled_edges: int
    chance: float
    predicted_agreement: float


@dataclass(frozen=True)
class Question:
    """A row worth labelling: its name, prediction, runner-up, and some of its cells."""

    name: str
    prediction: str
    probability: float
    runner_up: str
    runner_up_probability: float
    cells: tuple[str, ...]


@dataclass(frozen=True)
class ReportData:
    """Everything the page shows; see :func:`gather`."""

    title: str
    asked: Mapping[str, str]
    command: str
    notes: tuple[str, ...]
    classes: tuple[str, ...]
    labeled_counts: tuple[int, ...]
    predicted_counts: tuple[int, ...]
    columns: tuple[ColumnCard, ...]
    fingerprint: str
    graph: GraphSummary
    top: FloatArray
    sure: float
    n_unsure: int
    n_unreached: int
    questions: tuple[Question, ...]
    question_columns: tuple[str, ...]
    picture: Picture
    picture_classes: NDArray[np.intp]
    picture_uncertainty: FloatArray
    picture_known: NDArray[np.bool_]
    left_out: LeftOut | None
    cautions: tuple[str, ...]
    committee: CommitteeCard | None
    baselines: Baselines | None
    certificate: Certificate | None
    certificate_note: str
    setting: Mapping[str, str]
    versions: Mapping[str, str]

    @property
    def n_rows(self) -> int:
        """Rows of the data."""
        return self.graph.n_nodes

    @property
    def n_labeled(self) -> int:
        """Rows with a label."""
        return sum(self.labeled_counts)


def gather(
    model: Any,
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
) -> ReportData:
    """Gather what the report says.

    Parameters
    ----------
    model : CommitteeClassifier
        Fitted classifier.
    X : ndarray of shape (n_samples, n_features) or None
        Its features; by default those that the classifier keeps, none for a precomputed graph.
    title : str, default="gdpa report"
        Title of the page.
    asked : mapping, optional
        What was asked for, in words.
    command : str, default=""
        The command that makes the report again.
    notes : sequence of str
        What was done to the data.
    table : frame, optional
        The table that the features were made from; for the cells of rows to label next.
    columns : ColumnList
        What was done with its columns.
    target : str, optional
        Name of its target column.
    sure : float, default=0.75
        Probability below which a prediction is called unsure.
    ids : sequence of str, optional
        Names of the rows; numbers from 1 by default.

    Returns
    -------
    ReportData
        The content of the page.
    """
    state = model.ensemble_
    table = None if table is None else table_of(table)
    P = state.probabilities()
    codes = np.searchsorted(model.classes_, model.transduction_)
    known = state.labels.codes >= 0
    k = model.classes_.size
    top = P[np.arange(codes.size), codes]
    unsure = (top < sure) & ~known
    unsure[model.unreached_] = True
    points = fitted_points(state.graph) if X is None else X
    if X is not None and state.rescaler is not None:
        points = state.rescaler.transform(X)
    drawn = picture(model.graph_, points, keep=np.flatnonzero(known))
    certificate, why = _certificate(model, known, codes)
    questions, shown = _questions(model, P, table, target, ids, known)
    return ReportData(
        title=title,
        asked=dict(asked or {}),
        command=command,
        notes=tuple(notes),
        classes=tuple(str(c) for c in model.classes_),
        labeled_counts=_counts(codes[known], k),
        predicted_counts=_counts(codes[~known], k),
        columns=_columns(columns),
        fingerprint=_fingerprint(points if X is None else X, state.labels.codes),
        graph=_graph(model.graph_, codes, known, k),
        top=top[~known],
        sure=sure,
        n_unsure=int(unsure.sum()),
        n_unreached=int(model.unreached_.size),
        questions=questions,
        question_columns=shown,
        picture=drawn,
        picture_classes=codes[drawn.nodes],
        picture_uncertainty=np.where(known, 0.0, 1.0 - top)[drawn.nodes] * k / max(k - 1, 1),
        picture_known=known[drawn.nodes],
        left_out=left_out_labels(model),
        cautions=cautions(model),
        committee=committee_card(model, columns),
        baselines=baselines(model, points),
        certificate=certificate,
        certificate_note=why,
        setting=_setting(model),
        versions=_versions(),
    )


def fitted_points(graph: Any) -> Any:
    """Features that a fitted graph keeps, re-scaled; None for a precomputed one."""
    return graph.points if graph.neighbors is None else graph.neighbors.index.X


def _counts(codes: NDArray[np.intp], k: int) -> tuple[int, ...]:
    return tuple(int(c) for c in np.bincount(codes, minlength=k))


def _graph(
    W: sp.csr_array, codes: NDArray[np.intp], known: NDArray[np.bool_], k: int
) -> GraphSummary:
    count, component = component_labels(W)
    upper = sp.triu(W, 1).tocoo()
    i, j, weight = upper.coords[0], upper.coords[1], upper.data
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
    model: Any, known: NDArray[np.bool_], codes: NDArray[np.intp]
) -> tuple[Certificate | None, str]:
    if model.classes_.size != 2:
        return None, "Certificates are for two classes; this data has more."
    if codes.size > CERTIFY_UP_TO:
        return None, f"Left out for more than {CERTIFY_UP_TO:,} rows: the exact cut takes long."
    signs = np.where(codes == 1, 1, -1)
    problem = GraphProblem(
        model.graph_, np.where(known, signs, 0), laplacian=model.ensemble_.graph.laplacian
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return certify(problem, signs), ""


def _questions(
    model: Any,
    P: FloatArray,
    table: Any,
    target: str | None,
    ids: Sequence[str] | None,
    known: NDArray[np.bool_],
) -> tuple[tuple[Question, ...], tuple[str, ...]]:
    if known.all() or model.classes_.size < 2:
        return (), ()
    chosen = model.query(QUESTIONS, "margin")
    names = () if table is None else tuple(c for c in table.names if c != target)[:SHOWN_COLUMNS]
    rows = []
    for i in chosen:
        first, second = np.argsort(-P[i], kind="stable")[:2]
        rows.append(
            Question(
                name=str(i + 1) if ids is None else str(ids[i]),
                prediction=str(model.classes_[first]),
                probability=float(P[i, first]),
                runner_up=str(model.classes_[second]),
                runner_up_probability=float(P[i, second]),
                cells=tuple(table.column(name).cell(i) for name in names),
            )
        )
    return tuple(rows), names


def _columns(plans: Any) -> tuple[ColumnCard, ...]:
    return tuple(ColumnCard(p.name, p.done(), p.missing, p.content) for p in plans)


def _fingerprint(X: Any, codes: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    if X is not None:
        A = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        digest.update(np.ascontiguousarray(A).tobytes())
    digest.update(np.ascontiguousarray(codes).tobytes())
    return digest.hexdigest()


def _setting(model: Any) -> dict[str, str]:
    tuning = model.tuning_
    encoder = getattr(model, "encoder_", None)  # scales the columns of a table itself
    return {
        "method": str(getattr(model, "method", "committee")),
        "neighbours": str(model.n_neighbors_),
        "re-scaling": str((encoder.scale if encoder else model.expert_options.rescale) or "none"),
        "Laplacian": str(model.ensemble_.graph.laplacian),
        "label weight": f"{model.label_weight_:g}",
        "self-loop": f"{model.self_loop_:g}",
        "chosen by": f"{tuning.source} ({tuning.tried} settings tried)",
        "seed": str(model.random_state),
    }


def _versions() -> dict[str, str]:
    return {
        "gdpa": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
