"""Model files of the command line: a classifier together with how its features were made.

The file is that of :meth:`gdpa.CommitteeClassifier.save`: arrays and JSON with a checksum.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables import Table, TableEncoder, TableError
from ..tables.source import open_file

__all__ = ["FittedTable", "kept_columns", "load_model", "predictions", "row_names"]


@dataclass(frozen=True)
class FittedTable:
    """A classifier and where its rows came from.

    Parameters
    ----------
    model : CommitteeClassifier
        The fitted classifier; it knows how columns become features, unless it was fitted on an
        array in Python.
    about : dict
        Target column, source, identifiers of the rows, threshold of "unsure".
    """

    model: Any
    about: dict[str, Any]

    @property
    def sure(self) -> float:
        """Probability below which a prediction is called unsure."""
        return float(self.about.get("sure", 0.75))

    @property
    def encoder(self) -> TableEncoder | None:
        """How columns become features."""
        return getattr(self.model, "encoder_", None)

    @property
    def as_text(self) -> frozenset[str]:
        """Columns of a CSV file that must not be taken for plain numbers."""
        texts = frozenset() if self.encoder is None else self.encoder.as_text_
        named = self.about.get("id_column")
        return texts | {str(named)} if self.model.ensemble_.linked and named else texts

    def nodes(self, edges: str) -> list[str]:
        """Names of the fitted rows that edges may lead to.

        Parameters
        ----------
        edges : str
            The file that needs them, for messages.

        Returns
        -------
        list of str
            The names.

        Raises
        ------
        ValueError
            If the model was fitted without links, or without names.
        """
        if not self.model.ensemble_.linked:
            raise ValueError(f"--edges {edges} needs a model of fit --edges; this one has no links")
        ids = self.about.get("ids")
        if ids is None:
            raise ValueError(
                f"--edges {edges} needs names of the fitted rows; fit with --id once more"
            )
        return [str(name) for name in ids]

    def save(self, path: Path) -> None:
        """Write the model file."""
        self.model.set_params(callback=None)
        self.model.save(path, extra={"table": self.about})

    def rows(self, table: Table) -> Any:
        """What the model takes: the table, or for a model of an array its numbers."""
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
    """Read a model file.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    FittedTable
        The classifier and what is known about its rows.

    Raises
    ------
    ValueError
        If the file is missing, damaged, of a newer version, or no model.
    """
    open_file(path, path).close()  # missing, a directory, empty: said in the words of all commands
    from ..estimators import committee, graph  # noqa: F401 - the kinds that a file may hold
    from ..estimators.base import BaseClassifier

    try:
        model = BaseClassifier.load(path)
        table = model.extra_.get("table")
        if not (table is None or isinstance(table, dict)):
            raise ValueError("what it says about its table is damaged")
        about = dict(table or {})
        ids = about.get("ids")
        if ids is not None and len(ids) != model.graph_.shape[0]:
            raise ValueError("as many identifiers as rows are needed")
        fitted = FittedTable(model, about)
        if not 0.0 <= fitted.sure <= 1.0:
            raise ValueError("the threshold of sure predictions is no probability")
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(path) else f"{path}: {text}") from error
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path} is damaged or no model: {error!r}") from error
    return fitted


def predictions(
    classes: NDArray[Any], probabilities: NDArray[np.float64], sure: float
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Most probable class, its probability, its lead, and whether that is below `sure`."""
    best = probabilities.argmax(axis=1)
    ordered = np.sort(probabilities, axis=1)
    top = ordered[:, -1]
    second = ordered[:, -2] if ordered.shape[1] > 1 else np.zeros_like(top)
    return classes[best], top, top - second, top < sure


def row_names(n_rows: int, ids: list[str] | None) -> list[str]:
    """What rows are called in a list of edges: their identifiers, or numbers from 1."""
    return [str(i) for i in range(1, n_rows + 1)] if ids is None else ids


def kept_columns(
    table: Table, keep: bool, id_column: str | None, ids: list[str] | None
) -> tuple[list[str], list[Any]]:
    """First columns of the output: all of the input, or what names the rows.

    Parameters
    ----------
    table : Table
        The input.
    keep : bool
        Whether all its columns are kept.
    id_column : str or None
        The column that names the rows.
    ids : list of str or None
        Its cells.

    Returns
    -------
    header : list of str
        Names; where the input has a name that the command uses itself, it is marked.
    columns : list
        Cells.
    """
    if not keep:
        names: list[Any] = list(range(1, table.n_rows + 1)) if ids is None else list(ids)
        return [id_column or "row"], [names]
    reserved = {"prediction", "probability", "margin", "unsure", "known", "links"}
    header = [f"{name} (input)" if name in reserved else name for name in table.names]
    return header, [column.cells() for column in table.columns]
