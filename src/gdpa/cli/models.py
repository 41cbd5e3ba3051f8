"""The classifier that the commands use, and its model files.

Model files are those of :meth:`gdpa.CommitteeClassifier.save`: arrays and JSON with a checksum, no
pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..tables.source import open_file
from ..tables.table import Table, TableError
from ..tables.write import typed_cells
from .files import Column, InputColumn

if TYPE_CHECKING:
    from ..estimators import CommitteeClassifier, GraphClassifier
    from ..tables import TableEncoder


def new_classifier(
    *,
    columns: TableEncoder | None = None,
    n_neighbors: int | None = None,
    method: str = "committee",
    class_prior: bool = False,
    random_state: int = 0,
    callback: Callable[[Mapping[str, Any]], None] | None = None,
) -> CommitteeClassifier | GraphClassifier:
    """Return an unfitted estimator for the options of ``gdpa fit``; unknown labels are None.

    Method "committee" is the ensemble; any method of :func:`gdpa.list_methods` is one neighbour
    graph.
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
    """Predictions, their probability and lead over the second class; whether they are unsure."""

    prediction: NDArray[Any]
    probability: NDArray[np.float64]
    margin: NDArray[np.float64]
    unsure: NDArray[np.bool_]

    def counts(self, classes: NDArray[Any], among: Any = slice(None)) -> dict[str, int]:
        """Return the number of predictions of each class among some rows."""
        counts = (self.prediction[among, None] == classes).sum(axis=0).tolist()
        return dict(zip(map(str, classes), counts, strict=True))


@dataclass(frozen=True)
class FittedTable:
    """A fitted classifier and the facts about its table that a model file keeps.

    These are the target column, the source, the row names and the threshold of `unsure`. A
    classifier that was fitted on an array in Python has none of them, and no encoder.
    """

    model: CommitteeClassifier | GraphClassifier
    about: dict[str, Any]

    @property
    def encoder(self) -> TableEncoder | None:
        """The encoder of the columns, or None."""
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
        """Return predictions; all are unsure if there were too few labels to hold any out."""
        least = self.about.get("sure", 0.75) if sure is None else sure
        rows = np.arange(codes.size)
        top = P[rows, codes]
        others = P.copy()
        others[rows, codes] = 0.0
        unsure = (top < least) | (not self.model.ensemble_.calibrated)
        return Predictions(self.model.classes_[codes], top, top - others.max(axis=1), unsure)

    def fitted_rows(self) -> Predictions:
        """Return the predictions of the fitted rows; given labels are kept."""
        model = self.model
        codes = np.searchsorted(model.classes_, model.transduction_)
        predicted = self.predictions(model.ensemble_.probabilities(), codes)
        predicted.unsure[model.ensemble_.labels.codes >= 0] = False
        predicted.unsure[model.unreached_] = True
        return predicted

    def points(self, table: Table) -> Any:
        """Return the features; encode the table if the model did not keep them."""
        from ..report.evaluation import fitted_points

        kept = fitted_points(self.model.ensemble_.first.graph)
        return self.model.encoder_.encode(table)[0] if kept is None else kept

    def save(self, path: Path) -> None:
        """Write the model file."""
        # The options hold the progress callback, which cannot be stored.
        self.model.options = None
        self.model.save(path, extra={"table": self.about})

    def card(self, table: Table, title: str) -> str:
        """Return the model card."""
        from ..report.card import model_card

        return model_card(self.model, self.points(table), self.about, title=title)

    def rows(self, table: Table) -> Any:
        """Return the input of the model: the table, or an array if it was fitted on one."""
        if self.encoder is not None:
            return table
        from ..tables import TableEncoder

        rows = table.without(["target"])
        kinds = dict.fromkeys(rows.names, "number")
        X = TableEncoder(scale="none", columns=kinds).fit(rows).encode(rows)[0]
        if X.shape[1] != self.model.n_features_in_:
            raise TableError(
                f"{table.source} has {X.shape[1]} features, the model was fitted on "
                f"{self.model.n_features_in_}"
            )
        return X


def card_path(model: str) -> str:
    """Return the file of the model card: plants-card.md for plants.npz."""
    path = Path(model)
    return str(path.with_name(f"{path.stem}-card.md"))


def load_model(path: str) -> FittedTable:
    """Read a model file; raise ValueError if it is missing, damaged, newer, or not a model."""
    open_file(path, path).close()  # reports missing and empty files as for tables
    # The kinds of classifiers that a file may hold.
    from ..estimators import committee_classifier, graph_classifier  # noqa: F401
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
            raise ValueError("the threshold of unsure predictions is not a probability")
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(path) else f"{path}: {text}") from error
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path} is damaged or not a model: {error!r}") from error
    return fitted


def first_columns(
    table: Table, keep: bool, id_column: str | None, ids: list[str] | None
) -> list[tuple[str, Column]]:
    """Return the first output columns: the whole input, or the row names."""
    if not keep:
        if id_column is not None and id_column in table.written:
            ids = table.written_cells(id_column)
        return [(id_column or "row", range(1, table.n_rows + 1) if ids is None else ids)]
    reserved = {"prediction", "probability", "margin", "unsure", "known", "links"}
    return [
        (
            f"{name} (input)" if name in reserved else name,
            InputColumn(table.written_cells(name), typed_cells(column)),
        )
        for name, column in zip(table.names, table.columns, strict=True)
    ]
