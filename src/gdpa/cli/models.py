"""The classifier of the command line, and its model files.

The only module that names the estimator's class. A model file is that of
:meth:`gdpa.CommitteeClassifier.save`: arrays and JSON with a checksum, no pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..tables import Table, TableEncoder, TableError
from ..tables.source import open_file
from .files import Column

if TYPE_CHECKING:
    from ..estimators import CommitteeClassifier, GraphClassifier


def new_classifier(
    *,
    columns: TableEncoder | None = None,
    n_neighbors: int | None = None,
    method: str = "committee",
    class_prior: bool = False,
    random_state: int = 0,
    callback: Callable[[Mapping[str, Any]], None] | None = None,
) -> CommitteeClassifier | GraphClassifier:
    """Return the estimator that all commands use, with their options.

    Parameters
    ----------
    columns : TableEncoder, optional
        How the columns of a table are encoded.
    n_neighbors, method, class_prior
        The options of ``gdpa fit`` of the same names.
    random_state : int, default=0
        Random seed.
    callback : callable, optional
        Called with the progress of the fit.

    Returns
    -------
    CommitteeClassifier or GraphClassifier
        Not fitted. Unknown labels are None. The ensemble for method "committee"; for any method
        of :func:`gdpa.list_methods` one neighbour graph.
    """
    from ..estimators import CommitteeClassifier, GraphClassifier, GraphOptions

    shared: dict[str, Any] = {
        "unlabeled": None,
        "n_neighbors": n_neighbors or "auto",
        "class_prior": "labeled" if class_prior else None,
        "random_state": random_state,
        "n_jobs": -1,
        "options": GraphOptions(callback=callback),
    }
    if method == "committee":
        return CommitteeClassifier(columns=columns, **shared)
    return GraphClassifier(method=method, **shared)


class Predictions(NamedTuple):
    """Predicted label of each row, its probability, its lead over the second class, uncertainty."""

    prediction: NDArray[Any]
    probability: NDArray[np.float64]
    margin: NDArray[np.float64]
    unsure: NDArray[np.bool_]

    def counts(self, classes: NDArray[Any], among: Any = slice(None)) -> dict[str, int]:
        """Return how many rows `among` all are predicted to be in each class."""
        counts = (self.prediction[among, None] == classes).sum(axis=0).tolist()
        return dict(zip(map(str, classes), counts, strict=True))


@dataclass(frozen=True)
class FittedTable:
    """A fitted classifier and a description of its table.

    Parameters
    ----------
    model : CommitteeClassifier or GraphClassifier
        The classifier; it encodes tables, unless it was fitted on an array in Python.
    about : dict
        Target column, source, names of the rows, threshold of uncertain predictions.
    """

    model: CommitteeClassifier | GraphClassifier
    about: dict[str, Any]

    @property
    def encoder(self) -> TableEncoder | None:
        """How columns are encoded."""
        return getattr(self.model, "encoder_", None)

    @property
    def as_text(self) -> frozenset[str]:
        """Columns of a CSV file that must be read as text."""
        texts = frozenset() if self.encoder is None else self.encoder.as_text_
        named = self.about.get("id_column")
        return texts | {str(named)} if self.model.ensemble_.linked and named else texts

    def predictions(
        self, P: NDArray[np.float64], codes: NDArray[np.intp], sure: float | None = None
    ) -> Predictions:
        """Return predictions; all are uncertain where no label could be held out."""
        least = self.about.get("sure", 0.75) if sure is None else sure
        rows = np.arange(codes.size)
        top, others = P[rows, codes], P.copy()
        others[rows, codes] = 0.0
        unsure = (top < least) | (not self.model.ensemble_.calibrated)
        return Predictions(self.model.classes_[codes], top, top - others.max(axis=1), unsure)

    def fitted_rows(self) -> Predictions:
        """Return the predictions of the rows that were fitted; given labels are kept."""
        model = self.model
        codes = np.searchsorted(model.classes_, model.transduction_)
        found = self.predictions(model.ensemble_.probabilities(), codes)
        found.unsure[model.ensemble_.labels.codes >= 0] = False
        found.unsure[model.unreached_] = True
        return found

    def points(self, table: Table) -> Any:
        """Return the features: a neighbour graph keeps them, a given graph does not."""
        from ..report.evaluation import fitted_points

        kept = fitted_points(self.model.ensemble_.first.graph)
        return self.model.encoder_.encode(table)[0] if kept is None else kept

    def save(self, path: Path) -> None:
        """Write the model file."""
        # The callback of the progress display cannot be stored.
        self.model.options = None
        self.model.save(path, extra={"table": self.about})

    def rows(self, table: Table) -> Any:
        """Return what the model takes: the table, or its numbers if it was fitted on an array."""
        if self.encoder is not None:
            return table
        rows = table.without(["target"])
        kinds = dict.fromkeys(rows.names, "number")
        X = TableEncoder(scale="none", columns=kinds).fit(rows).encode(rows)[0]
        if X.shape[1] != self.model.n_features_in_:
            raise TableError(
                f"{table.source} has {X.shape[1]} features, the model was fitted on "
                f"{self.model.n_features_in_}"
            )
        return X


def load_model(path: str) -> FittedTable:
    """Read a model file; one that is missing, damaged, newer or no model raises ValueError."""
    open_file(path, path).close()  # the same errors for missing, empty and other files everywhere
    from ..estimators import committee, graph  # noqa: F401 - the kinds that a file may hold
    from ..estimators.base import BaseClassifier

    try:
        model = BaseClassifier.load(path)
        table = model.extra_.get("table")
        if not (table is None or isinstance(table, dict)):
            raise ValueError("the description of its table is damaged")
        about = dict(table or {})
        ids = about.get("ids")
        if ids is not None and len(ids) != model.graph_.shape[0]:
            raise ValueError("the number of row names differs from the number of rows")
        fitted = FittedTable(model, about)
        if not 0.0 <= about.get("sure", 0.75) <= 1.0:
            raise ValueError("the threshold of uncertain predictions is not a probability")
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(path) else f"{path}: {text}") from error
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path} is damaged or no model: {error!r}") from error
    return fitted


def first_columns(
    table: Table, keep: bool, id_column: str | None, ids: list[str] | None
) -> list[tuple[str, Column]]:
    """Return the first columns of the output: all of the input, or the names of the rows."""
    if not keep:
        return [(id_column or "row", range(1, table.n_rows + 1) if ids is None else ids)]
    reserved = {"prediction", "probability", "margin", "unsure", "known", "links"}
    return [
        (f"{name} (input)" if name in reserved else name, column.cells())
        for name, column in zip(table.names, table.columns, strict=True)
    ]
